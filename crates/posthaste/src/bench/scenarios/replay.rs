//! `replay`: what a bulk replay does to fresh traffic.

use anyhow::Context as _;
use serde_json::{Value, json};

use crate::bench::{
    figures::{Figure, Measure},
    float,
    requests::{self, To},
    server::{Server, Setup},
    spells::{Load, Spells},
    stage::Stage,
};

pub(super) const ABOUT: &str = "2,000 messages a second published alone, and beside 500 dead letters a second that a bulk run replays, by \
     turns on one store; p50 and p99 are the acceptance's, the medians of spells of --seconds";

/// Messages a second.
const FRESH: f64 = 2_000.0;

/// Dead letters a second that are replayed.
const REPLAYED: f64 = 500.0;

/// Dead letters that are laid in.
const DEAD: usize = 100_000;

/// Turns of spells alone and spells beside the run.
const ROUNDS: usize = 5;

/// Spells of a turn.
const SPELLS: usize = 4;

/// Jobs of one consume.
const BATCH: usize = 1_000;

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Figure>> {
    let setup = Setup::default().queue("fresh").queue("dead");
    let mut server = stage.server(&setup)?;
    bury(stage, &mut server)?;
    server.connect_again()?;
    let order = json!({"filter": {"queue": "dead"}, "reason": "bench", "rate": format!("{REPLAYED:.0}/s")});
    let begun = server.api().post("/v1/replays", &order.to_string())?;
    let path = format!("/v1/replays/{}", begun["id"].as_str().context("a run has an id")?);
    let payload = requests::payload(stage.options.payload_bytes);
    let template = requests::publish(&To::queue("fresh"), server.key(), &payload);
    let connections = stage.options.connections.first().copied().unwrap_or(64);
    let load = Load { template, per_second: FRESH, connections, spells: SPELLS };
    let (mut alone, mut beside) = (Spells::default(), Spells::default());
    let (mut done, mut took_ms) = (0, 0);
    for _ in 0..ROUNDS {
        ask(&mut server, &path, "pause")?;
        alone.measure(stage, &server, &load)?;
        ask(&mut server, &path, "resume")?;
        let before = run_of(&mut server, &path)?;
        beside.measure(stage, &server, &load)?;
        server.connect_again()?;
        let after = run_of(&mut server, &path)?;
        if after.state != "running" {
            break;
        }
        done += after.done.saturating_sub(before.done);
        took_ms += after.at_ms.saturating_sub(before.at_ms);
    }
    let rate = float(done) / (float(took_ms.max(1)) / 1e3);
    ask(&mut server, &path, "stop")?;
    let name = format!("beside {rate:.0} replays a second");
    let mut figures = [alone.figure("alone", "messages"), beside.figure(&name, "messages")];
    let [alone, beside] = &mut figures;
    beside.set_alone(alone).set(Measure::Jobs, float(done));
    if rate < 0.9 * REPLAYED {
        beside.fault(format!("{REPLAYED:.0} dead letters a second were to be replayed"));
    }
    beside.set_memory(server.memory());
    server.end(beside);
    for figure in &mut figures {
        figure.set_sync(stage.machine.sync_p50_ms);
    }
    Ok(figures.into())
}

fn ask(server: &mut Server, path: &str, control: &str) -> anyhow::Result<()> {
    server.connect_again()?;
    server.api().post(&format!("{path}/{control}"), "{}")?;
    Ok(())
}

/// Publishes jobs and fails them for good.
fn bury(stage: &Stage, server: &mut Server) -> anyhow::Result<()> {
    server.fill(&To::queue("dead"), DEAD, &requests::payload(stage.options.payload_bytes), None)?;
    server.connect_again()?;
    let take = json!({"queue": "dead", "max": BATCH, "worker": "bench", "lease": "10m"}).to_string();
    let mut left = DEAD;
    while left > 0 {
        stage.rest(std::time::Duration::ZERO)?;
        let taken = server.api().post("/v1/queue/consume", &take)?;
        let jobs = taken["jobs"].as_array().context("a consume answers with jobs")?;
        anyhow::ensure!(!jobs.is_empty(), "{left} of {DEAD} jobs are not there");
        let report = |job: &Value| json!({"job": job["id"], "fence": job["fence"], "class": "worker", "effect": "none", "retry": false});
        left = left.saturating_sub(jobs.len());
        let reports: Vec<Value> = jobs.iter().map(report).collect();
        server.api().post_for_text("/v1/queue/reject", &json!({ "jobs": reports }).to_string())?;
    }
    Ok(())
}

/// A run at some moment.
struct Seen {
    state: String,
    done: u64,
    at_ms: u64,
}

fn run_of(server: &mut Server, path: &str) -> anyhow::Result<Seen> {
    let run: Value = serde_json::from_str(&server.api().get(path)?)?;
    Ok(Seen {
        state: run["state"].as_str().unwrap_or_default().to_owned(),
        done: run["counts"]["done"].as_u64().context("a run counts what is done")?,
        at_ms: crate::bench::times::now_us() / 1_000,
    })
}
