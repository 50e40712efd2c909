//! `ledger`: claims over HTTP, with few entries in the ledger and with very many.

use crate::bench::{
    figures::{Figure, Measure},
    float,
    plan::{Load, Template},
    requests::{self},
    server::{Server, Setup},
    stage::{self, Stage},
    token,
};

pub(super) const ABOUT: &str = "claims of new keys, one a request, at a steady rate: with a thousand entries, and with those of --scheduled";

/// Claims a second while times are taken: far from what the server can do, so that the ledger is measured and not a
/// queue before it.
const PER_SECOND: f64 = 2_000.0;

/// Entries of a small ledger.
const FEW: u64 = 1_000;

/// Filling ends when it is done, and at the latest after this time.
const FILL_TIMEOUT_MS: u64 = 600_000;

/// Connections that claim.
const CONNECTIONS: usize = 16;

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Figure>> {
    let server = stage.server(&Setup::default())?;
    fill(stage, &server, FEW)?;
    let few = claims(stage, &server, "1,000 entries")?;
    let many = u64::try_from(stage.options.scheduled)?;
    fill(stage, &server, many)?;
    let mut much = claims(stage, &server, &format!("{many} entries"))?;
    much.set_alone(&few);
    server.end(&mut much);
    Ok(vec![few, much])
}

fn template(server: &Server) -> Template {
    let body = format!("{{\"key\":\"l:{}\"}}", token::BLANK);
    requests::templated(requests::api_request("/v1/ledger/claim", server.key(), None, &body))
}

fn fill(stage: &Stage, server: &Server, entries: u64) -> anyhow::Result<()> {
    let load = Load::Requests {
        templates: vec![template(server)],
        salt: token::new_salt(),
        per_second: None,
        limit: Some(entries),
    };
    let mut plan = stage.plan(server.address(), 4 * CONNECTIONS, load);
    plan.measured_ms = FILL_TIMEOUT_MS;
    let outcome = stage.run(&plan)?;
    anyhow::ensure!(outcome.good == entries, "{} of {entries} claims were granted", outcome.good);
    Ok(())
}

fn claims(stage: &Stage, server: &Server, name: &str) -> anyhow::Result<Figure> {
    let load = stage::paced(vec![template(server)], PER_SECOND);
    let outcome = stage.run(&stage.plan(server.address(), CONNECTIONS, load))?;
    let mut figure = Figure::new(name, "claims");
    figure.set(Measure::Rate, outcome.rate());
    figure.set_times(&outcome.latency);
    figure.add_errors(&outcome);
    figure.set_memory(server.memory());
    figure.set_sync(stage.machine.sync_p50_ms);
    figure.set(Measure::Jobs, float(outcome.good));
    Ok(figure)
}
