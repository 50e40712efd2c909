//! `accept`: signed webhooks, one a request, each with a delivery id of its own.

use crate::bench::{
    figures::Figure,
    plan::Template,
    requests,
    server::{Server, Setup},
    stage::{self, Stage},
};

pub(super) const ABOUT: &str =
    "webhooks signed as GitHub's, one a request, distinct keys in no order; answered after the commit";

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Figure>> {
    let template = requests::github("github", &requests::payload(stage.options.payload_bytes));
    let setup = Setup::default().source("github", "queue = \"carts\"").queue("carts");
    let each = stage.options.connections.iter().map(|connections| {
        stage.beside_bare(&template, *connections, || {
            let mut server = stage.server(&setup)?;
            let mut figure = one(stage, &mut server, *connections, template.clone())?;
            server.end(&mut figure);
            Ok(figure)
        })
    });
    each.collect()
}

/// As many requests as are answered over so many connections.
pub(super) fn one(
    stage: &Stage,
    server: &mut Server,
    connections: usize,
    template: Template,
) -> anyhow::Result<Figure> {
    let before = server.read()?;
    let plan = stage.plan(server.address(), connections, stage::requests(vec![template]));
    let outcome = stage.run(&plan)?;
    let after = server.read()?;
    let mut figure = Figure::new(format!("{connections} connections"), "requests");
    figure.set_load(&outcome);
    figure.set_server(&before, &after, outcome.good);
    figure.set_memory(server.memory());
    Ok(figure)
}
