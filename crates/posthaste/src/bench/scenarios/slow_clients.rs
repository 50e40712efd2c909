//! `slow-clients`: connections that send a byte a second must cost honest ones nothing.

use super::accept;
use crate::bench::{
    figures::{Figure, Measure},
    float,
    plan::{Load, Part},
    requests,
    server::Setup,
    stage::Stage,
};

pub(super) const ABOUT: &str = "webhooks accepted alone, and beside connections that send one byte a second; those that the server \
     cut came again and are counted again";

/// Milliseconds that the slow ones go on longer than the measured time.
const LONGER_MS: u64 = 1_000;

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Figure>> {
    let alone = one(stage, None)?;
    let mut figures = vec![alone];
    for part in [Part::Head, Part::Body] {
        let mut beside = one(stage, Some(part))?;
        beside.set_alone(&figures[0]);
        figures.push(beside);
    }
    Ok(figures)
}

/// Honest requests, beside slow ones if there are any. Each on a store of its own.
fn one(stage: &Stage, part: Option<Part>) -> anyhow::Result<Figure> {
    let template = requests::github("github", &requests::payload(stage.options.payload_bytes));
    let setup = Setup::default().source("github", "queue = \"carts\"").queue("carts");
    let mut server = stage.server(&setup)?;
    let slow = match part {
        None => None,
        Some(part) => {
            let load = Load::Drip { part, request: template.text.clone() };
            let mut plan = stage.plan(server.address(), stage.options.slow_connections, load);
            plan.measured_ms += LONGER_MS;
            Some(stage.start(&plan)?)
        }
    };
    let connections = stage.options.connections.first().copied().unwrap_or(64);
    let mut figure = accept::one(stage, &mut server, connections, template)?;
    let count = stage.options.slow_connections;
    figure.name = match part {
        None => format!("{connections} connections alone"),
        Some(Part::Head) => format!("beside {count} slow heads"),
        Some(Part::Body) => format!("beside {count} slow bodies"),
    };
    if let Some(slow) = slow {
        let slow = slow.finish()?;
        figure.set(Measure::Connections, float(slow.connections));
        figure.add_errors(&slow);
    }
    figure.set_sync(stage.machine.sync_p50_ms);
    server.end(&mut figure);
    Ok(figure)
}
