//! `kill -9` at any moment loses nothing that was acknowledged, and does nothing twice that the contract says is done once.

mod harness;

use std::time::Duration;

use harness::{
    Plan, chance,
    kills::{Kill, mixed},
};

/// What each short run must at least have seen.
const AT_LEAST: &[(&str, u64)] = &[
    ("keys.acknowledged", 1_500),
    ("keys.fanned_out", 2),
    ("publishes.single", 200),
    ("publishes.batch", 300),
    ("publishes.intake", 80),
    ("publishes.known", 20),
    ("publishes.unanswered", 5),
    ("jobs.handed_out", 700),
    ("jobs.lost_a_lease", 20),
    ("jobs.shown", 100),
    ("reports.stale", 3),
    ("reports.refused", 3),
    ("deliveries.taken", 1_000),
    ("deliveries.answered_otherwise", 50),
    ("deliveries.unanswered", 20),
];

fn short(seed: u64, kills: Vec<Kill>) -> Plan {
    Plan {
        seed,
        kills,
        fault: None,
        settle_patience: Duration::from_mins(1),
        keys_min: 2_000,
        pace_ms: 10..50,
        subscribers: 600,
        fan_out_pace_ms: 150..500,
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_b15_killed_at_any_moment_nothing_acknowledged_is_lost() {
    let seed = chance::seed();
    let run = harness::run(short(seed, mixed(seed, (8, 80..300), 2))).await;
    println!("{run}");
    run.assert_holds(AT_LEAST);
}

/// Whoever sees nothing proves nothing: here the server lies, and it must be found out.
#[cfg(feature = "faults")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_an_answer_before_its_commit_is_found_out() {
    use posthaste_testkit::history::Rule;

    let deaths = [20, 60, 40, 80, 30].map(|nth| Kill::Point { point: "before_commit", nth });
    let kills = [&[Kill::At(300)], &deaths[..]].concat();
    // What was lost never comes: there is nothing to wait for.
    let (fault, settle_patience) = (Some("answer_before_commit"), Duration::ZERO);
    let run =
        harness::run(Plan { fault, settle_patience, keys_min: 300, ..short(chance::seed(), kills) }).await;
    assert!(run.verdict.broken().contains(&Rule::Lost), "nothing was found:\n{run}");
    assert!(run.unreached.is_empty(), "{run}");
    println!("found out, as it should be:\n{run}");
}
