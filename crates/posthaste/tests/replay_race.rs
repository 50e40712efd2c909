//! An operator replays while the late report of the last attempt lands and the next worker waits, over real HTTP and the
//! durable store. Rows B3, B9.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod server;

use std::{net::SocketAddr, sync::Arc};

use posthaste::http::{AppOptions, AppState, HttpLimits, router, serve};
use posthaste_core::{DurationMs, StateName};
use posthaste_engine::{
    Engine, EngineParts, Metrics, Settings,
    config::QueueSpec,
    ports::{Secrets, UrlJudge},
};
use posthaste_store::{
    JobFilter, ManagedBy, Reads,
    sqlite::{SqliteOptions, SqliteStore},
};
use posthaste_testkit::{ManualClock, ScriptedSender};
use serde_json::{Value, json};
use server::Connection;
use tokio::net::TcpListener;
use tokio_util::sync::{CancellationToken, DropGuard};

/// Races; each of its own job.
const ROUNDS: usize = 600;

/// The variable by which a run is repeated.
const SEED: &str = "POSTHASTE_RACE_SEED";

struct Trusting;

impl Secrets for Trusting {
    fn open(&self, stored: &str) -> Result<String, String> {
        Ok(stored.to_owned())
    }

    fn seal(&self, secret: &str) -> Result<String, String> {
        Ok(secret.to_owned())
    }
}

impl UrlJudge for Trusting {
    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

/// A server on the durable store with a clock that stands still until it is told to move.
struct Stage {
    store: Arc<SqliteStore>,
    clock: Arc<ManualClock>,
    address: SocketAddr,
    key: String,
    _stop: DropGuard,
    _folder: tempfile::TempDir,
}

impl Stage {
    async fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let clock = Arc::new(ManualClock::default());
        let options = SqliteOptions::new(folder.path().join("store.db"), clock.clone());
        let store = Arc::new(SqliteStore::open(options).unwrap());
        let engine = Engine::start(EngineParts {
            store: store.clone(),
            clock: clock.clone(),
            sender: Arc::new(ScriptedSender::default()),
            secrets: Arc::new(Trusting),
            url_judge: Arc::new(Trusting),
            metrics: Metrics::new(),
            settings: Settings::standard("race"),
        })
        .await
        .unwrap();
        let tenant = engine.ensure_tenant("default").await.unwrap();
        for (name, idempotent) in [("bare", false), ("guarded", true)] {
            let spec = json!({"name": name, "idempotent": idempotent, "ledger": false, "lease": "60s",
                "retry": {"lost_leases_max": 1}});
            let spec: QueueSpec = serde_json::from_value(spec).unwrap();
            engine.put_queue(tenant, spec, ManagedBy::Api, false).await.unwrap();
        }
        let (_, key) = engine.create_api_key(tenant, "on-call", "admin").await.unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let stop = CancellationToken::new();
        let router = router(AppState::new(engine, AppOptions::standard()));
        tokio::spawn(serve(listener, router, HttpLimits::standard(), stop.clone()));
        Self { store, clock, address, key, _stop: stop.drop_guard(), _folder: folder }
    }

    /// Waits until every job is a dead letter.
    async fn dead_lettered(&self, count: usize) {
        let tenant = self.store.tenants().await.unwrap()[0].0;
        let filter =
            || JobFilter { state: Some(StateName::DeadLettered), limit: count, ..JobFilter::default() };
        while self.store.jobs(tenant, filter()).await.unwrap().len() < count {
            tokio::task::yield_now().await;
        }
    }
}

/// What the lost worker did, and says late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Late {
    /// It acted.
    Committed,
    /// It surely did not.
    NoEffect,
    /// It does not know: it may have.
    Perhaps,
}

/// One race, as the seed has it.
#[derive(Clone, Copy, Debug)]
struct Round {
    late: Late,
    /// It acted; known to nobody but the test where it does not say so.
    acted: bool,
    guarded: bool,
    vouched: bool,
    /// Who yields how often before it begins.
    yields: [u64; 3],
}

/// Splitmix64.
struct Chance(u64);

impl Chance {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn round(&mut self) -> Round {
        let late = [Late::Committed, Late::NoEffect, Late::Perhaps][usize::try_from(self.below(3)).unwrap()];
        let acted = match late {
            Late::Committed => true,
            Late::NoEffect => false,
            Late::Perhaps => self.below(2) == 0,
        };
        let (guarded, vouched) = (self.below(2) == 0, self.below(3) == 0);
        Round { late, acted, guarded, vouched, yields: [self.below(40), self.below(40), self.below(40)] }
    }
}

/// What the three were told.
struct Told {
    operator: (u16, Value),
    late: (u16, Value),
    /// The next attempt, if the next worker was given one.
    next: Option<Value>,
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_b9_a_replay_that_races_the_late_report_never_doubles_an_effect_unasked() {
    let seed = std::env::var(SEED).ok().map_or_else(
        || u64::from(std::process::id()) ^ 0x5eed_0000,
        |text| text.parse().expect("the seed is a number"),
    );
    eprintln!("{SEED}={seed}");
    let mut chance = Chance(seed);
    let rounds: Vec<Round> = (0..ROUNDS).map(|_| chance.round()).collect();
    let stage = Stage::start().await;
    let mut callers = Vec::new();
    for _ in 0..3 {
        callers.push(Connection::to(stage.address, &stage.key).await);
    }
    let leased = lose_all(&stage, &mut callers[0], &rounds).await;
    let mut seen = [0_usize; 5];
    for (number, (round, lease)) in rounds.iter().zip(leased).enumerate() {
        let (told, back) = race(*round, &lease, callers).await;
        callers = back;
        let job =
            call(&mut callers[0], "GET", &format!("/v1/jobs/{}", text(&lease["id"])), &Value::Null).await.1;
        let case = format!("{SEED}={seed} round {number}: {round:?}\n{:?} {:?}", told.operator, told.late);
        seen[judge(&case, *round, &told, &job)] += 1;
        put_away(&mut callers[0], &told, &lease).await;
    }
    eprintln!(
        "replayed and run: {}, replayed and overtaken: {}, settled: {}, refused as unknown: {}, too late: {}",
        seen[0], seen[1], seen[2], seen[3], seen[4]
    );
    assert!(seen[0] > 0 && seen[3] > 0 && seen[4] > 0, "the race went more than one way: {seen:?}");
}

/// One job a round, leased by a worker that is then silent until its lease has run out, and the job a dead letter.
async fn lose_all(stage: &Stage, caller: &mut Connection, rounds: &[Round]) -> Vec<Value> {
    let mut leased = Vec::new();
    for (number, round) in rounds.iter().enumerate() {
        let queue = queue(*round);
        let body = json!({"queue": queue, "key": format!("k:{number}"), "payload": number});
        assert_eq!(202, call(caller, "POST", "/v1/queue/publish", &body).await.0);
        let body = json!({"queue": queue, "worker": "lost"});
        leased.push(call(caller, "POST", "/v1/queue/consume", &body).await.1["jobs"][0].clone());
    }
    stage.clock.advance(DurationMs::from_secs(61));
    stage.dead_lettered(rounds.len()).await;
    leased
}

async fn race(round: Round, lease: &Value, callers: Vec<Connection>) -> (Told, Vec<Connection>) {
    let [mut operator, mut late, mut next]: [Connection; 3] = callers.try_into().ok().unwrap();
    let job = text(&lease["id"]).to_owned();
    let mut replay = json!({"attempt": 1, "reason": "they are back"});
    if round.vouched {
        replay["assume"] = "not_done".into();
    }
    let mut report = json!({"job": job, "fence": lease["fence"]});
    let verb = match round.late {
        Late::Committed => "ack",
        Late::NoEffect | Late::Perhaps => "reject",
    };
    if round.late != Late::Committed {
        report["effect"] = if round.late == Late::NoEffect { "none" } else { "possible" }.into();
        report["retry"] = true.into();
    }
    let operating = tokio::spawn(async move {
        yield_often(round.yields[0]).await;
        let told = call(&mut operator, "POST", &format!("/v1/jobs/{job}/replay"), &replay).await;
        (operator, told)
    });
    let reporting = tokio::spawn(async move {
        yield_often(round.yields[1]).await;
        let told = call(&mut late, "POST", &format!("/v1/queue/{verb}"), &report).await;
        (late, told)
    });
    let working = tokio::spawn(async move {
        yield_often(round.yields[2]).await;
        let body = json!({"queue": queue(round), "worker": "next"});
        let told = call(&mut next, "POST", "/v1/queue/consume", &body).await.1["jobs"].get(0).cloned();
        (next, told)
    });
    let (operator, told_operator) = operating.await.unwrap();
    let (late, told_late) = reporting.await.unwrap();
    let (mut next, mut leased) = working.await.unwrap();
    if leased.is_none() {
        let body = json!({"queue": queue(round), "worker": "next"});
        leased = call(&mut next, "POST", "/v1/queue/consume", &body).await.1["jobs"].get(0).cloned();
    }
    (Told { operator: told_operator, late: told_late, next: leased }, vec![operator, late, next])
}

/// Checks one race, and says which way it went.
fn judge(case: &str, round: Round, told: &Told, job: &Value) -> usize {
    let (status, answer) = &told.operator;
    let state = text(&job["state"]);
    let attempts = job["attempts"].as_array().unwrap();
    let numbers: Vec<u64> = attempts.iter().map(|attempt| attempt["attempt"].as_u64().unwrap()).collect();
    let expected: &[u64] = if told.next.is_some() { &[1, 2] } else { &[1] };
    assert_eq!(expected, numbers, "{case}: an attempt for each lease: {job}");
    // The second worker acts whenever it is given the job; a receiver that guards the key has one effect all the same.
    let runs = u32::from(round.acted) + u32::from(told.next.is_some());
    if runs > 1 && !round.guarded {
        assert!(round.vouched, "{case}: nobody vouched, and it was done twice: {job}");
        if round.late == Late::Committed {
            assert_eq!(
                (409, &json!("stale_fence")),
                (told.late.0, &told.late.1["code"]),
                "{case}: it was told"
            );
            assert_eq!(json!(2), job["effects"]["hi"], "{case}: both are shown");
        }
    }
    if round.late == Late::Committed && told.late.0 == 200 {
        assert_eq!(
            (&json!("committed"), None),
            (&job["state"], told.next.as_ref()),
            "{case}: it was believed"
        );
    }
    match (*status, answer["result"].as_str(), answer["code"].as_str()) {
        (200, Some("replayed"), _) => {
            let free = round.guarded || round.vouched || round.late == Late::NoEffect;
            assert!(free, "{case}: it may have happened, and was replayed");
            if told.next.is_some() {
                assert_eq!("leased", state, "{case}");
                return 0;
            }
            assert_eq!("committed", state, "{case}: only the report can have come between");
            1
        }
        (200, Some("settled"), _) => {
            assert_eq!((Late::Committed, "committed"), (round.late, state), "{case}");
            2
        }
        (409, _, Some("outcome_unknown")) => {
            assert!(!round.guarded && !round.vouched, "{case}: nothing to refuse");
            assert_eq!(json!({"lo": 0, "hi": 1}), answer["effects"], "{case}");
            assert_eq!(
                if round.late == Late::Committed { "committed" } else { "dead_lettered" },
                state,
                "{case}"
            );
            3
        }
        (409, _, Some("not_dead_lettered")) => {
            assert_eq!((Late::Committed, "committed"), (round.late, state), "{case}");
            4
        }
        other => panic!("{case}: {other:?}"),
    }
}

/// Nothing of this round may be given to the next one's worker.
async fn put_away(caller: &mut Connection, told: &Told, lease: &Value) {
    if let Some(next) = &told.next {
        let ack = json!({"job": lease["id"], "fence": next["fence"]});
        assert_eq!(200, call(caller, "POST", "/v1/queue/ack", &ack).await.0);
    }
}

fn queue(round: Round) -> &'static str {
    if round.guarded { "guarded" } else { "bare" }
}

async fn call(caller: &mut Connection, method: &str, path: &str, body: &Value) -> (u16, Value) {
    let answer = caller.call(method, path, body).await;
    (answer.status, answer.json())
}

async fn yield_often(times: u64) {
    for _ in 0..times {
        tokio::task::yield_now().await;
    }
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap()
}
