//! `end-to-end`: from the request to the committed delivery, through one endpoint and through many.

use crate::bench::{
    figures::{Figure, Measure},
    float,
    plan::Template,
    requests::{self, To},
    server::{Endpoint, Server, Setup},
    stage::{self, ReceiverProcess, Stage},
};

pub(super) const ABOUT: &str = "committed deliveries, from the first request to the last commit; p50 and p99 are the \
                                acceptance's, except where it says sent → received";

/// Deliveries at once of the endpoint that takes all.
const CONCURRENCY: u32 = 256;

/// Endpoints that share the load, unless told.
const ENDPOINTS: usize = 100;

/// Requests a second that leave no backlog.
const GENTLE: f64 = 200.0;

/// Connections of the gentle load.
const GENTLE_CONNECTIONS: usize = 16;

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Figure>> {
    let connections = stage.options.connections.first().copied().unwrap_or(64);
    let payload = requests::payload(stage.options.payload_bytes);
    let github = requests::github("github", &payload);
    let mut receiver = stage.receiver()?;
    let setup = one_endpoint(&receiver, "sink");
    let through_one = stage.beside_bare(&github, connections, || {
        let mut server = stage.server(&setup)?;
        let name = format!("1 endpoint, {connections} connections in");
        let templates = vec![github.clone()];
        let mut figure =
            one(stage, &mut server, &mut receiver, Run { name, group: "sink", connections, templates })?;
        server.end(&mut figure);
        Ok(figure)
    })?;
    let count = stage.options.endpoint_count.unwrap_or(ENDPOINTS);
    let through_many = stage.beside_bare(&github, connections, || {
        let mut server = stage.server(&many_endpoints(&receiver, count))?;
        let name = format!("{count} endpoints, {connections} connections in");
        let to = |number| To::endpoint(&format!("e{number}"));
        let templates =
            (0..count).map(|number| requests::publish(&to(number), server.key(), &payload)).collect();
        let mut figure =
            one(stage, &mut server, &mut receiver, Run { name, group: "sinks", connections, templates })?;
        server.end(&mut figure);
        Ok(figure)
    })?;
    Ok(vec![through_one, through_many, gentle(stage, &mut receiver, github)?])
}

fn one_endpoint(receiver: &ReceiverProcess, group: &str) -> Setup {
    let url = receiver.url("ok", group);
    let endpoint = Endpoint { concurrency: CONCURRENCY, ..Endpoint::new("sink", &url) };
    Setup::default().source("github", "endpoints = [\"sink\"]").endpoint(&endpoint)
}

fn many_endpoints(receiver: &ReceiverProcess, count: usize) -> Setup {
    let url = receiver.url("ok", "sinks");
    (0..count).fold(Setup::default(), |setup, number| {
        let id = format!("e{number}");
        setup.endpoint(&Endpoint::new(&id, &url))
    })
}

struct Run {
    name: String,
    /// The receiver's group.
    group: &'static str,
    connections: usize,
    templates: Vec<Template>,
}

/// Takes in for the measured time, then waits until all is committed.
fn one(
    stage: &Stage,
    server: &mut Server,
    receiver: &mut ReceiverProcess,
    run: Run,
) -> anyhow::Result<Figure> {
    let received_before = receiver.stats()?;
    let before = server.read()?;
    let mut plan = stage.plan(server.address(), run.connections, stage::requests(run.templates));
    // Every delivery counts, so every acceptance does.
    plan.measured_ms += std::mem::take(&mut plan.warm_up_ms);
    let outcome = stage.run(&plan)?;
    let backlog = float(outcome.good) - server.read()?.metrics.since(&before.metrics).committed;
    stage.until_received(receiver, run.group, outcome.good)?;
    let settled = stage.until_committed(server, &before, outcome.good)?;
    let elapsed = outcome.elapsed_seconds() + settled.seconds_since(outcome.ended_us);
    let received = receiver.stats()?;
    let mut figure = Figure::new(run.name, "deliveries");
    figure.set_load(&outcome);
    figure.set(Measure::Rate, settled.committed / elapsed);
    figure.set(Measure::Jobs, settled.committed);
    figure.set(Measure::Seconds, elapsed);
    figure.set(Measure::Waiting, backlog.max(0.0));
    figure.set(Measure::Connections, float(received.connections - received_before.connections));
    figure.set_server(&before, &settled.reading, outcome.good);
    figure.set_memory(server.memory());
    let distinct = |stats: &crate::bench::receiver::Stats| -> u64 {
        stats.groups.values().map(|group| group.distinct).sum()
    };
    let arrived = distinct(&received) - distinct(&received_before);
    if arrived != outcome.good {
        figure.fault(format!("{} were accepted, {arrived} different ones arrived", outcome.good));
    }
    if settled.committed < float(outcome.good) {
        figure.fault(format!("{} were accepted, {} committed", outcome.good, settled.committed));
    }
    Ok(figure)
}

/// So few that nothing waits for anything else: how long a delivery takes.
fn gentle(stage: &Stage, receiver: &mut ReceiverProcess, github: Template) -> anyhow::Result<Figure> {
    let mut server = stage.server(&one_endpoint(receiver, "gentle"))?;
    let before = server.read()?;
    let load = stage::paced(vec![github], GENTLE);
    let outcome = stage.run(&stage.plan(server.address(), GENTLE_CONNECTIONS, load))?;
    let settled = stage.until_committed(&mut server, &before, outcome.good)?;
    let mut figure = Figure::new(format!("{GENTLE} a second: sent → received"), "deliveries");
    figure.set_load(&outcome);
    figure.set_times(&receiver.group("gentle")?.latency);
    figure.set_server(&before, &settled.reading, outcome.good);
    figure.set_memory(server.memory());
    figure.set_sync(stage.machine.sync_p50_ms);
    server.end(&mut figure);
    Ok(figure)
}
