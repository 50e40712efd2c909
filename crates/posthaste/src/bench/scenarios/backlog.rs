//! `backlog`: a store full of jobs for later must start, accept and hand out as an empty one does.

use std::time::{Duration, Instant};

use anyhow::{Context, ensure};
use serde_json::{Value, json};

use super::{accept, pull};
use crate::bench::{
    figures::{Figure, Measure},
    float,
    requests::{self, To},
    server::{Server, Setup},
    stage::Stage,
    times::Times,
};

pub(super) const ABOUT: &str = "an empty store and one full of jobs for tomorrow, in the queue that is worked on; \
                                started again after a kill, then measured";

/// The queue that holds the backlog and is worked on.
const QUEUE: &str = "carts";

/// Pick-ups that are timed at most.
const PICK_UPS_MAX: usize = 1_000;

/// Time for a worker's question to arrive, so that it waits when the job is published.
const ASK_AHEAD: Duration = Duration::from_millis(3);

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Figure>> {
    let empty = with_backlog(stage, 0)?;
    let mut full = with_backlog(stage, stage.options.scheduled)?;
    for (full, empty) in full.iter_mut().zip(&empty) {
        full.set_alone(empty);
    }
    Ok(empty.into_iter().chain(full).collect())
}

fn with_backlog(stage: &Stage, scheduled: usize) -> anyhow::Result<Vec<Figure>> {
    let payload = requests::payload(stage.options.payload_bytes);
    let setup = Setup::default().source("github", "queue = \"inbox\"").queue("inbox").queue(QUEUE);
    let server = stage.server(&setup)?;
    server.fill(&To::queue(QUEUE), scheduled, &payload, Some("24h"))?;
    let mut server = server.start_again()?;
    let mut figures = vec![start(&server), pick_up(stage, &mut server)?];
    figures.push(pull::one(stage, &mut server, QUEUE, stage.options.jobs, &payload)?);
    for connections in &stage.options.connections {
        let template = requests::github("github", &payload);
        figures.push(accept::one(stage, &mut server, *connections, template)?);
    }
    for figure in &mut figures {
        figure.name = format!("{}: {}", if scheduled == 0 { "empty" } else { "full" }, figure.name);
        figure.set(Measure::Waiting, float(u64::try_from(scheduled)?));
        figure.set_sync(stage.machine.sync_p50_ms);
    }
    if let Some(last) = figures.last_mut() {
        server.end(last);
    }
    Ok(figures)
}

fn start(server: &Server) -> Figure {
    let mut figure = Figure::new("start", "starts");
    let milliseconds = |time: Duration| time.as_secs_f64() * 1e3;
    figure.set(Measure::StartUp, milliseconds(server.start_up.listening));
    figure.set(Measure::Ready, milliseconds(server.start_up.ready));
    figure.set(Measure::Store, server.store_mib());
    figure.set_memory(server.memory());
    figure
}

/// One job at a time: from sending a publish that is due at once to the answer of a worker that was waiting for it.
fn pick_up(stage: &Stage, server: &mut Server) -> anyhow::Result<Figure> {
    let (mut worker, mut times) = (server.connect()?, Times::new());
    let until = Instant::now() + stage.seconds();
    let mut rounds = 0;
    while rounds < PICK_UPS_MAX && (rounds == 0 || Instant::now() < until) {
        worker.send("/v1/queue/consume", &json!({ "queue": QUEUE, "wait": "20s" }).to_string())?;
        stage.rest(ASK_AHEAD)?;
        let key = format!("pick-up:{rounds}");
        let message = json!({ "queue": QUEUE, "key": key, "payload": { "order": rounds } }).to_string();
        let begun = Instant::now();
        server.api().post("/v1/queue/publish", &message)?;
        let answer = worker.receive()?;
        times.record(begun.elapsed());
        acknowledge(&mut worker, &answer, &key)?;
        rounds += 1;
    }
    let mut figure = Figure::new("publish → picked up", "jobs");
    figure.set_times(&times.quantiles());
    figure.set(Measure::Jobs, float(u64::try_from(rounds)?));
    Ok(figure)
}

fn acknowledge(worker: &mut crate::bench::api::Api, answer: &Value, key: &str) -> anyhow::Result<()> {
    let job = answer["jobs"].get(0).context("no job came in 20 s")?;
    ensure!(job["key"] == key, "another job was handed out: {}", job["key"]);
    worker.post("/v1/queue/ack", &json!({ "job": job["id"], "fence": job["fence"] }).to_string())?;
    Ok(())
}
