//! The long form of the crash test: hundreds of kills over tens of thousands of messages.

#[path = "crash/harness/mod.rs"]
mod harness;

use std::time::Duration;

use harness::{Plan, chance, kills::mixed};

/// What it must at least have seen.
const AT_LEAST: &[(&str, u64)] = &[
    ("keys.acknowledged", 50_000),
    ("keys.fanned_out", 30),
    ("publishes.single", 5_000),
    ("publishes.batch", 10_000),
    ("publishes.intake", 2_000),
    ("publishes.known", 1_000),
    ("publishes.refused", 50),
    ("publishes.unanswered", 300),
    ("jobs.handed_out", 20_000),
    ("jobs.lost_a_lease", 1_000),
    ("jobs.shown", 2_000),
    ("reports.stale", 100),
    ("reports.refused", 100),
    ("reports.unanswered", 20),
    ("deliveries.taken", 20_000),
    ("deliveries.taken_again", 50),
    ("deliveries.answered_otherwise", 1_000),
    ("deliveries.unanswered", 500),
    ("server.started", 150),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_b15_two_hundred_kills_lose_nothing_that_was_acknowledged() {
    let seed = chance::seed();
    println!("{}={seed}", chance::SEED);
    let plan = Plan {
        seed,
        kills: mixed(seed, (120, 100..1_600), 20),
        fault: None,
        settle_patience: Duration::from_mins(2),
        keys_min: 50_000,
        pace_ms: 10..50,
        subscribers: 600,
        fan_out_pace_ms: 800..3_000,
    };
    let run = harness::run(plan).await;
    println!("{run}");
    run.assert_holds(AT_LEAST);
}
