//! `fan-out`: one message for very many endpoints, and what others notice of it.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::bench::{
    figures::{Figure, Measure},
    float,
    plan::Template,
    requests,
    server::{Endpoint, Reading, Server, Setup},
    stage::{self, ReceiverProcess, Stage},
    times::Times,
};

pub(super) const ABOUT: &str = "one message after another, each for every endpoint that subscribed to its type, while others are \
     accepted; times of the acceptance are those of the others";

/// Endpoints, unless told.
const ENDPOINTS: usize = 10_000;

/// Requests a second of the others.
const OTHERS: f64 = 500.0;

/// Connections of the others.
const OTHERS_CONNECTIONS: usize = 16;

const TYPE: &str = "fan.out";

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Figure>> {
    let count = endpoints(stage);
    let mut receiver = stage.receiver()?;
    let mut server = stage.server(&setup(&receiver, count))?;
    let others = requests::github("github", &requests::payload(stage.options.payload_bytes));
    let mut before = Figure::new(format!("{OTHERS} others a second, alone"), "requests");
    before.set_load(&stage.run(&plan(stage, &server, others.clone()))?);
    before.set(Measure::StartUp, server.start_up.listening.as_secs_f64() * 1e3);

    let load = stage.start(&plan(stage, &server, others))?;
    let mut meanwhile = Figure::new(format!("the same beside fan-outs to {count}"), "requests");
    fan_out(stage, &mut server, &mut receiver, &mut meanwhile)?;
    let outcome = load.finish()?;
    meanwhile.set_load(&outcome);
    meanwhile.set_alone(&before);
    for figure in [&mut before, &mut meanwhile] {
        figure.set_sync(stage.machine.sync_p50_ms);
    }
    server.end(&mut meanwhile);
    Ok(vec![before, meanwhile])
}

fn endpoints(stage: &Stage) -> usize {
    stage.options.endpoint_count.unwrap_or(ENDPOINTS)
}

fn setup(receiver: &ReceiverProcess, count: usize) -> Setup {
    let url = receiver.url("ok", "fan-out");
    let setup = Setup::default().source("github", "queue = \"carts\"").queue("carts");
    (0..count).fold(setup, |setup, number| {
        let id = format!("e{number}");
        setup.endpoint(&Endpoint { event_type: Some(TYPE), ..Endpoint::new(&id, &url) })
    })
}

fn plan(stage: &Stage, server: &Server, others: Template) -> crate::bench::plan::Plan {
    stage.plan(server.address(), OTHERS_CONNECTIONS, stage::paced(vec![others], OTHERS))
}

/// Sends a message to all, waits until all have it, and again until the measured time is over.
fn fan_out(
    stage: &Stage,
    server: &mut Server,
    receiver: &mut ReceiverProcess,
    figure: &mut Figure,
) -> anyhow::Result<()> {
    let payload = requests::payload(stage.options.payload_bytes);
    let payload: serde_json::Value = serde_json::from_str(&payload)?;
    let jobs = u64::try_from(endpoints(stage))?;
    let until = Instant::now() + stage.seconds();
    let (mut acknowledged, mut committed) = (Times::new(), Vec::new());
    let first = server.read()?;
    let mut before: Reading = first;
    while committed.is_empty() || Instant::now() < until {
        let key = format!("fan-out:{}", committed.len());
        let message = json!({ "key": key, "type": TYPE, "payload": payload }).to_string();
        let begun = Instant::now();
        server.api().post("/v1/messages", &message)?;
        acknowledged.record(begun.elapsed());
        let accepted = Instant::now();
        let all = jobs * (u64::try_from(committed.len())? + 1);
        stage.until_received(receiver, "fan-out", all)?;
        let settled = stage.until_committed(server, &before, jobs)?;
        committed.push(accepted.elapsed());
        before = settled.reading;
        if settled.committed < float(jobs) {
            figure.fault(format!("of {jobs} deliveries {} were committed", settled.committed));
            break;
        }
    }
    let rounds = u32::try_from(committed.len())?;
    let mean = committed.iter().sum::<Duration>() / rounds;
    figure.set(Measure::Acknowledged, float(acknowledged.quantiles().p50) / 1e3);
    figure.set(Measure::AllCommitted, mean.as_secs_f64());
    figure.set(Measure::Jobs, float(jobs));
    figure.set_server(&first, &before, jobs * u64::from(rounds));
    figure.set_memory(server.memory());
    Ok(())
}
