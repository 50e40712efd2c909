//! `isolation`: what one destination or tenant does to the others.

use std::time::Duration;

use crate::bench::{
    figures::{Figure, Measure},
    float,
    plan::{Load, Outcome, Template},
    receiver::Group,
    requests::{self, To},
    server::{Endpoint, Server, Setup},
    stage::{self, ReceiverProcess, Stage},
    times::now_us,
    token,
};

pub(super) const ABOUT: &str = "deliveries of one endpoint or tenant alone, and beside others that hang, lag or flood; p50 and p99 are \
     the acceptance's, except where it says sent → received";

/// Endpoints that hang, unless told.
const HANGING: usize = 500;

/// Messages for each of them.
const MESSAGES_FOR_HANGING: usize = 10;

/// Deliveries at once of the endpoint that is measured.
const CONCURRENCY: u32 = 256;

/// Time for what disturbs to begin.
const BEGIN: Duration = Duration::from_secs(1);

/// Messages a second of the quiet tenant.
const QUIET: f64 = 100.0;

/// Connections of the quiet tenant.
const QUIET_CONNECTIONS: usize = 8;

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Figure>> {
    let mut figures = Vec::from(beside_hanging(stage)?);
    figures.extend(beside_a_full_lane(stage)?);
    figures.extend(beside_a_flood(stage)?);
    Ok(figures)
}

fn connections(stage: &Stage) -> usize {
    stage.options.connections.first().copied().unwrap_or(64)
}

fn beside_hanging(stage: &Stage) -> anyhow::Result<[Figure; 2]> {
    let count = stage.options.endpoint_count.unwrap_or(HANGING);
    let prepare = |receiver: &ReceiverProcess| {
        let url = receiver.url("hang", "hanging");
        (0..count).fold(Setup::default(), |setup, number| {
            setup.endpoint(&Endpoint::new(&format!("h{number}"), &url))
        })
    };
    let alone = healthy(stage, "healthy endpoint alone", prepare, |_| Ok(()))?;
    let disturb = |server: &mut Server| {
        let to = |number| To::endpoint(&format!("h{number}"));
        let templates: Vec<Template> =
            (0..count).map(|number| requests::publish(&to(number), server.key(), "{}")).collect();
        let limit = u64::try_from(count * MESSAGES_FOR_HANGING)?;
        let load =
            Load::Requests { templates, salt: token::new_salt(), per_second: None, limit: Some(limit) };
        let mut plan = stage.plan(server.address(), 16, load);
        plan.measured_ms = 60_000;
        anyhow::ensure!(stage.run(&plan)?.good == limit, "not all messages for hanging endpoints were taken");
        stage.rest(BEGIN)
    };
    let mut beside = healthy(stage, &format!("beside {count} that hang"), prepare, disturb)?;
    beside.set_alone(&alone);
    Ok([alone, beside])
}

fn beside_a_full_lane(stage: &Stage) -> anyhow::Result<[Figure; 2]> {
    let prepare = |receiver: &ReceiverProcess| {
        let url = receiver.url("slow-1000", "slow");
        Setup::default().endpoint(&Endpoint { concurrency: 1, ..Endpoint::new("slow", &url) })
    };
    let due = stage.options.due;
    let payload = requests::payload(stage.options.payload_bytes);
    let alone = healthy(stage, "beside an idle endpoint", prepare, |_| Ok(()))?;
    let disturb = |server: &mut Server| server.fill(&To::endpoint("slow"), due, &payload, None);
    let name = format!("beside one of concurrency 1 with {due} due");
    let mut beside = healthy(stage, &name, prepare, disturb)?;
    beside.set_alone(&alone);
    Ok([alone, beside])
}

/// Deliveries of an endpoint that answers at once, on a server with what `prepare` declares, after `disturb`.
fn healthy(
    stage: &Stage,
    name: &str,
    prepare: impl Fn(&ReceiverProcess) -> Setup,
    disturb: impl Fn(&mut Server) -> anyhow::Result<()>,
) -> anyhow::Result<Figure> {
    let mut receiver = stage.receiver()?;
    let url = receiver.url("ok", "healthy");
    let endpoint = Endpoint { concurrency: CONCURRENCY, ..Endpoint::new("healthy", &url) };
    let setup = prepare(&receiver).source("github", "endpoints = [\"healthy\"]").endpoint(&endpoint);
    let mut server = stage.server(&setup)?;
    disturb(&mut server)?;
    let template = requests::github("github", &requests::payload(stage.options.payload_bytes));
    let before = server.read()?;
    let load = stage::requests(vec![template]);
    let outcome = stage.run(&stage.plan(server.address(), connections(stage), load))?;
    let received = stage.until_received(&mut receiver, "healthy", outcome.good)?;
    let after = server.read()?;
    let mut figure = Figure::new(name, "deliveries");
    figure.set_load(&outcome);
    set_received(&mut figure, &outcome, &received);
    figure.set_server(&before, &after, outcome.good);
    figure.set_memory(server.memory());
    figure.set_sync(stage.machine.sync_p50_ms);
    server.end(&mut figure);
    Ok(figure)
}

fn set_received(figure: &mut Figure, outcome: &Outcome, received: &Group) {
    let missing = outcome.good.saturating_sub(received.distinct);
    // What did not come took until now at least.
    let last_us = if missing > 0 { now_us() } else { received.last_us };
    let seconds = float(last_us.saturating_sub(outcome.begun_us)) / 1e6;
    figure.set(Measure::Rate, float(received.distinct) / seconds);
    figure.set(Measure::Jobs, float(received.distinct));
    figure.set(Measure::Seconds, seconds);
    figure.set(Measure::Undelivered, float(missing));
    if missing > 0 {
        figure.fault(format!("{missing} of {} were not delivered", outcome.good));
    }
}

/// Two tenants on one server: one floods, the other sends little.
fn beside_a_flood(stage: &Stage) -> anyhow::Result<[Figure; 2]> {
    let mut receiver = stage.receiver()?;
    let (noisy, alone, beside) =
        (receiver.url("ok", "noisy"), receiver.url("ok", "alone"), receiver.url("ok", "beside"));
    let of = |tenant, id, url| Endpoint { tenant: Some(tenant), ..Endpoint::new(id, url) };
    let setup = Setup::default()
        .endpoint(&Endpoint { concurrency: CONCURRENCY, ..of("noisy", "sink", &noisy) })
        .endpoint(&of("quiet", "alone", &alone))
        .endpoint(&of("quiet", "beside", &beside));
    let mut server = stage.server(&setup)?;
    let mut alone = quiet(stage, &mut server, &mut receiver, "alone")?;
    let to = To { tenant: Some("noisy".to_owned()), ..To::endpoint("sink") };
    let template = requests::publish(&to, server.key(), &requests::payload(stage.options.payload_bytes));
    let mut plan = stage.plan(server.address(), connections(stage), stage::requests(vec![template]));
    plan.measured_ms += 2 * u64::try_from(BEGIN.as_millis())?;
    let flood = stage.start(&plan)?;
    stage.rest(BEGIN)?;
    let mut beside = quiet(stage, &mut server, &mut receiver, "beside")?;
    let flood = flood.finish()?;
    let flooded = format!("quiet tenant beside a flood of {:.0} a second: sent → received", flood.rate());
    beside.add_errors(&flood);
    "quiet tenant alone: sent → received".clone_into(&mut alone.name);
    beside.name = flooded;
    beside.set_alone(&alone);
    server.end(&mut beside);
    Ok([alone, beside])
}

/// Messages of the quiet tenant to its endpoint `id`.
fn quiet(
    stage: &Stage,
    server: &mut Server,
    receiver: &mut ReceiverProcess,
    id: &str,
) -> anyhow::Result<Figure> {
    let to = To { tenant: Some("quiet".to_owned()), ..To::endpoint(id) };
    let template = requests::publish(&to, server.key(), &requests::payload(stage.options.payload_bytes));
    let load = stage::paced(vec![template], QUIET);
    let outcome = stage.run(&stage.plan(server.address(), QUIET_CONNECTIONS, load))?;
    let received = stage.until_received(receiver, id, outcome.good)?;
    let mut figure = Figure::new(id, "deliveries");
    figure.add_errors(&outcome);
    set_received(&mut figure, &outcome, &received);
    figure.set_times(&received.latency);
    figure.set_memory(server.memory());
    figure.set_sync(stage.machine.sync_p50_ms);
    Ok(figure)
}
