//! `publish`: messages for a queue, one a request, each with a key of its own.

use super::accept;
use crate::bench::{
    figures::Figure,
    requests::{self, To},
    server::Setup,
    stage::Stage,
};

pub(super) const ABOUT: &str =
    "POST /v1/messages, one message a request, distinct keys in no order; answered after the commit";

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Figure>> {
    let payload = requests::payload(stage.options.payload_bytes);
    let setup = Setup::default().queue("carts");
    // The bare server looks at no key.
    let alike = requests::publish(&To::queue("carts"), &format!("phk_{}", "A".repeat(43)), &payload);
    let each = stage.options.connections.iter().map(|connections| {
        stage.beside_bare(&alike, *connections, || {
            let mut server = stage.server(&setup)?;
            let template = requests::publish(&To::queue("carts"), server.key(), &payload);
            let mut figure = accept::one(stage, &mut server, *connections, template)?;
            server.end(&mut figure);
            Ok(figure)
        })
    });
    each.collect()
}
