//! `pull`: a queue that is full of due jobs, worked through in batches.

use std::time::Duration;

use crate::bench::{
    figures::{Figure, Measure},
    float,
    plan::{Load, Outcome},
    requests::{self, To},
    server::{Server, Setup},
    stage::Stage,
};

pub(super) const ABOUT: &str =
    "jobs consumed and acknowledged; p50 and p99 are those of one acknowledgement of a whole batch";

/// Connections that pull.
const WORKERS: usize = 4;

/// Jobs of one consume.
const BATCH: usize = 100;

/// How long the whole queue may take.
const TIME_MAX: Duration = Duration::from_mins(5);

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Figure>> {
    let payload = requests::payload(stage.options.payload_bytes);
    let template = requests::github("github", &payload);
    let figure = stage.beside_bare(&template, WORKERS, || {
        let mut server = stage.server(&Setup::default().queue("carts"))?;
        let mut figure = one(stage, &mut server, "carts", stage.options.jobs, &payload)?;
        server.end(&mut figure);
        Ok(figure)
    })?;
    Ok(vec![figure])
}

/// Fills the queue with `jobs` jobs, and works through them.
pub(super) fn one(
    stage: &Stage,
    server: &mut Server,
    queue: &str,
    jobs: usize,
    payload: &str,
) -> anyhow::Result<Figure> {
    server.fill(&To::queue(queue), jobs, payload, None)?;
    let before = server.read()?;
    let outcome = work(stage, server, queue)?;
    let after = server.read()?;
    let mut figure = Figure::new(format!("{WORKERS} connections, batches of {BATCH}"), "jobs");
    figure.set_load(&outcome);
    figure.set(Measure::Jobs, float(outcome.good));
    figure.set_server(&before, &after, outcome.good);
    figure.set_memory(server.memory());
    let left = u64::try_from(jobs)?.saturating_sub(outcome.good);
    if left > 0 {
        figure.fault(format!("{left} jobs were not handed out"));
    }
    Ok(figure)
}

/// Works through what is due in the queue.
pub(super) fn work(stage: &Stage, server: &Server, queue: &str) -> anyhow::Result<Outcome> {
    let load =
        Load::Pull { queue: queue.to_owned(), batch: BATCH, api_key: server.key().to_owned(), wait: None };
    let mut plan = stage.plan(server.address(), WORKERS, load);
    // It ends when the queue is empty.
    plan.warm_up_ms = 0;
    plan.measured_ms = u64::try_from(TIME_MAX.as_millis())?;
    stage.run(&plan)
}
