//! `archive`: everything that was settled leaves for the archive, beside traffic.

use std::{thread, time::Duration};

use anyhow::{Context, ensure};
use serde_json::Value;

use super::pull;
use crate::bench::{
    figures::{Figure, Measure},
    float,
    requests::{self, To},
    server::{Server, Setup},
    spells::{Load, Spells},
    stage::Stage,
};

pub(super) const ABOUT: &str = "publishes, one a request, at a steady rate: alone, and while the settled jobs of --scheduled are archived, \
                                by turns on one store; the medians of spells of --seconds";

/// Publishes a second: far from what the server can do, so that the disturbance is measured and not a queue.
const PER_SECOND: f64 = 500.0;

/// Connections that publish.
const CONNECTIONS: usize = 16;

/// Turns of spells alone and spells beside the archive: what the machine does meanwhile is in both. The server is killed
/// between them.
const ROUNDS: usize = 5;

/// Spells of a turn.
const SPELLS: usize = 4;

/// So many are archived to the last one; of more, as many as leave meanwhile.
const TO_THE_END_MAX: usize = 10_000;

/// Jobs that are published, consumed and acknowledged before the next ones are.
const FILLED_AT_ONCE: usize = 100_000;

/// The queue whose jobs are archived.
const OLD: &str = "old";

/// The queue of the traffic.
const FRESH: &str = "fresh";

/// Everything settled expires as soon as it may: a job is tried for 2 s at most.
const RETENTION: &str =
    "[retention]\narchive = \"file:archive\"\ncommitted = \"1m\"\ndead_lettered = \"1m\"\nledger = \"1m\"";

/// The stay of `RETENTION`, and what clocks may differ.
const EXPIRED_AFTER: Duration = Duration::from_secs(62);

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Figure>> {
    let short = "retry = { base = \"1s\", cap = \"1s\", horizon = \"1s\" }";
    let setup = Setup::default().queue_with(OLD, short).queue_with(FRESH, short);
    let mut server = stage.server(&setup)?;
    let payload = requests::payload(stage.options.payload_bytes);
    fill(stage, &server, &payload)?;
    stage.rest(EXPIRED_AFTER)?;
    let template = requests::publish(&To::queue(FRESH), server.key(), &payload);
    let load = Load { template, per_second: PER_SECOND, connections: CONNECTIONS, spells: SPELLS };
    let (mut alone, mut beside) = (Spells::default(), Spells::default());
    for round in 1..=ROUNDS {
        server = server.start_again_with("")?;
        alone.measure(stage, &server, &load)?;
        server = server.start_again_with(RETENTION)?;
        stage.tell(&format!("archiving, round {round} of {ROUNDS}"));
        let pass = archive_all(&server)?;
        beside.measure(stage, &server, &load)?;
        if round == ROUNDS && stage.options.scheduled <= TO_THE_END_MAX {
            pass.join().map_err(|_| anyhow::anyhow!("a thread panicked"))??;
        }
    }
    let archived = archived(&mut server)?;
    let mut figures = [alone.figure("alone", "requests"), beside.figure("beside the archive", "requests")];
    let [alone, beside] = &mut figures;
    beside.set_alone(alone).set(Measure::Jobs, float(archived));
    let expected = u64::try_from(stage.options.scheduled)?;
    if archived == 0 || (stage.options.scheduled <= TO_THE_END_MAX && archived < expected) {
        beside.fault(format!("{archived} of {expected} were archived"));
    }
    beside.set_memory(server.memory());
    server.end(beside);
    for figure in &mut figures {
        figure.set_sync(stage.machine.sync_p50_ms);
    }
    Ok(figures.into())
}

/// Settles as many jobs as are to be archived.
fn fill(stage: &Stage, server: &Server, payload: &str) -> anyhow::Result<()> {
    let mut left = stage.options.scheduled;
    while left > 0 {
        let many = left.min(FILLED_AT_ONCE);
        server.fill(&To::queue(OLD), many, payload, None)?;
        let done = pull::work(stage, server, OLD)?;
        ensure!(done.good == u64::try_from(many)?, "{} of {many} jobs were acknowledged", done.good);
        left -= many;
    }
    Ok(())
}

/// Asks for a pass until one is done, or the server is.
fn archive_all(server: &Server) -> anyhow::Result<thread::JoinHandle<anyhow::Result<()>>> {
    let mut api = server.connect()?;
    Ok(thread::spawn(move || {
        while api.post("/v1/archive/run", "")?["state"] != "done" {}
        Ok(())
    }))
}

/// Records in the archive.
fn archived(server: &mut Server) -> anyhow::Result<u64> {
    let (mut records, mut cursor) = (0, String::new());
    server.connect_again()?;
    loop {
        let page = server.api().get(&format!("/v1/archive/files?limit=500{cursor}"))?;
        let page: Value = serde_json::from_str(&page)?;
        let files = page["data"].as_array().context("a list of files")?;
        records += files.iter().filter_map(|file| file["records"].as_u64()).sum::<u64>();
        match page["next_cursor"].as_str() {
            Some(next) => cursor = format!("&cursor={next}"),
            None => return Ok(records),
        }
    }
}
