//! Loads a real server, kills it again and again, and has its whole history judged.
//!
//! What a run does is left to chance, drawn from one seed; when things happen is the machine's. So a seed repeats the load and
//! the kills, and not their exact interleaving.
#![allow(dead_code, reason = "each test program uses its own part")]
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

pub(crate) mod chance;
mod client;
mod configuration;
mod finish;
pub(crate) mod kills;
mod log;
mod message;
mod publishers;
mod receiver;
mod server;
mod stage;
mod workers;

use std::{
    collections::BTreeMap,
    fmt,
    io::Write as _,
    net::{Ipv4Addr, SocketAddr},
    path::PathBuf,
    sync::Arc,
    time::{Duration, Instant},
};

use posthaste_testkit::history::{
    Verdict, judge,
    record::{Publish, Record, write_line},
};
pub(crate) use stage::Plan;

use chance::Chance;
use kills::Kill;
use log::Log;
use server::Server;
use stage::Stage;

const PUBLISHERS: usize = 4;
const WORKERS: usize = 6;
/// How long a server may take to come to the point where it dies.
const POINT_PATIENCE: Duration = Duration::from_secs(10);

/// How many violations of one rule are shown.
const SHOWN_MAX: usize = 3;

/// What a run showed.
pub(crate) struct Run {
    seed: u64,
    /// By name: how many kills took place.
    kills: BTreeMap<&'static str, usize>,
    /// Points to which a server never came.
    pub(crate) unreached: Vec<Kill>,
    pub(crate) verdict: Verdict,
    history: Vec<Record>,
    /// Until the last kill, until nothing was left to do, until all was read and judged.
    took: [Duration; 3],
}

impl fmt::Display for Run {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "repeat the chances with {}={}", chance::SEED, self.seed)?;
        writeln!(f, "kills: {:?}; never reached: {:?}; {:?}", self.kills, self.unreached, self.took)?;
        writeln!(f, "seen:\n{}violations: {}", self.verdict.seen, self.verdict.violations.len())?;
        for rule in self.verdict.broken() {
            let of_rule = self.verdict.violations.iter().filter(|violation| violation.rule == rule);
            writeln!(f, "{rule}: {}", of_rule.clone().count())?;
            of_rule.take(SHOWN_MAX).try_for_each(|violation| write!(f, "  {violation}"))?;
        }
        Ok(())
    }
}

impl Run {
    /// Fails with everything that is wrong; the whole history is kept then.
    pub(crate) fn assert_holds(&self, at_least: &[(&str, u64)]) {
        let few = self.verdict.seen.too_few(at_least);
        let good = self.verdict.violations.is_empty() && self.unreached.is_empty() && few.is_empty();
        assert!(good, "{self}too few: {few:?}\nthe history: {}", self.keep().display());
    }

    fn keep(&self) -> PathBuf {
        let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(format!("history-{}.ndjson", self.seed));
        let mut file = std::io::BufWriter::new(std::fs::File::create(&path).unwrap());
        self.history.iter().for_each(|record| write_line(record, &mut file).unwrap());
        file.flush().unwrap();
        path
    }
}

/// Runs `plan` to its end and judges what was seen.
pub(crate) async fn run(plan: Plan) -> Run {
    let began = Instant::now();
    let folder = tempfile::tempdir().unwrap();
    let log = Arc::new(Log::start());
    let receiver = receiver::start(plan.seed, Arc::clone(&log)).await;
    let port = server::free_port(plan.seed);
    configuration::write(folder.path(), port, receiver, plan.subscribers);
    let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
    let stage = Arc::new(Stage::new(plan, Arc::clone(&log), address));
    let mut server = Server::new(folder.path(), address, Arc::clone(&log));

    let mut load: Vec<_> =
        (0..PUBLISHERS).map(|n| tokio::spawn(publishers::run(Arc::clone(&stage), n))).collect();
    load.push(tokio::spawn(publishers::run_fan_out(Arc::clone(&stage))));
    let mut others: Vec<_> =
        (0..WORKERS).map(|n| tokio::spawn(workers::run(Arc::clone(&stage), n))).collect();
    others.push(tokio::spawn(observe(Arc::clone(&stage))));

    let (kills, unreached) = live_and_die(&stage, &mut server).await;
    stage.end_load();
    for publisher in load {
        publisher.await.unwrap();
    }
    let load_took = began.elapsed();
    let quiescence = finish::settle(&stage, stage.plan.settle_patience).await;
    let settle_took = began.elapsed();
    stage.end_all();
    for other in others {
        other.await.unwrap();
    }
    server.assert_alive();
    finish::read_all(&stage, quiescence).await;
    server.kill();
    let history = log.with(<[Record]>::to_vec);
    let verdict = judge(&history);
    let took = [load_took, settle_took, began.elapsed()];
    Run { seed: stage.plan.seed, kills, unreached, verdict, history, took }
}

/// Every life of the plan and the last one, which goes on until enough is acknowledged.
async fn live_and_die(stage: &Stage, server: &mut Server) -> (BTreeMap<&'static str, usize>, Vec<Kill>) {
    let (mut done, mut unreached) = (Vec::new(), Vec::new());
    for (life, kill) in stage.plan.kills.iter().enumerate() {
        let fault = stage.plan.fault.filter(|_| life > 0).map(str::to_owned);
        let faults = [fault, kill.fault()];
        let faults: Vec<_> = faults.into_iter().flatten().collect();
        let started = server.start(&faults.join(",")).await;
        let ended = match kill {
            Kill::At(after_ms) => {
                assert!(started, "the server did not start:\n{}", server.printed());
                tokio::time::sleep(Duration::from_millis(*after_ms)).await;
                server.assert_alive();
                false
            }
            Kill::Point { point, .. } => server.died_at(point, POINT_PATIENCE).await,
        };
        if !ended {
            server.kill();
        }
        let list = if ended || matches!(kill, Kill::At(_)) { &mut done } else { &mut unreached };
        list.push(kill.clone());
    }
    assert!(server.start("").await, "the server did not start:\n{}", server.printed());
    while acknowledged(stage) < stage.plan.keys_min {
        server.assert_alive();
        tokio::time::sleep(Duration::from_millis(50)).await;
    }
    (kills::by_name(done.iter()), unreached)
}

/// How many keys were acknowledged so far.
fn acknowledged(stage: &Stage) -> u64 {
    stage.log.with(|records| {
        let new = |publish: &&Publish| publish.answer.as_ref().is_some_and(|answer| answer.status == 202);
        records.iter().filter_map(Record::publish).filter(new).count() as u64
    })
}

/// Looks at jobs while the load runs: what the API shows as settled must stay so.
async fn observe(stage: Arc<Stage>) {
    let mut chance = Chance::of(stage.plan.seed, "observer");
    let mut client = stage.client();
    let mut next = 0;
    while !stage.all_is_over() {
        let job = stage.log.with(|records| {
            let from = records.len().saturating_sub(2_000).max(next);
            next = (from + 40).min(records.len());
            let recent = records.get(from..next).unwrap_or_default();
            recent.iter().find_map(|record| {
                if let Record::Report(report) = record {
                    return Some(report.job.clone());
                }
                Some(record.publish()?.answer.as_ref()?.jobs.first()?.job.clone())
            })
        });
        if let Some(job) = job
            && let Some(shown) = finish::show(&mut client, &job).await
        {
            stage.log.add(Record::Shown(shown));
        }
        chance.pause(5..20).await;
    }
}
