//! Memory and PostgreSQL give the same answers and hold the same rows, whatever is asked.

use std::sync::Arc;

use posthaste_store::memory::MemoryStore;
use posthaste_testkit::{
    ManualClock,
    store_suite::{
        Harness,
        differential::{self, Coverage, Pair, Settings, reachable, same_limits},
    },
};

use crate::support::harness;

/// Rounds of random commands, unless it may take long.
const ROUNDS: usize = 2;

fn memory(clock: Arc<ManualClock>) -> Harness {
    Harness { store: Arc::new(MemoryStore::new(clock)), keep: None }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout)]
async fn memory_and_postgres_are_the_same_over_every_edge_and_cell() {
    let goal = reachable();
    let mut settings = Settings::from_env();
    // Every edge and cell takes some fifty rounds, and a round here twenty times as long as on SQLite.
    let is_long = cfg!(feature = "long-tests");
    if !is_long {
        settings.rounds_max = ROUNDS;
    }
    println!("POSTHASTE_SEED={}", settings.seed);
    let both = async |clock: Arc<ManualClock>| (memory(clock.clone()), harness(clock).await);
    let (seen, rounds) =
        differential::run(settings, &goal, both).await.unwrap_or_else(|found| panic!("{found}"));
    println!("{rounds} rounds, {} edges, {} cells", seen.edges.len(), seen.cells.len());
    if is_long {
        assert_eq!(Coverage::default(), goal.beyond(&seen), "not seen by both");
    }
    assert_eq!(Coverage::default(), seen.beyond(&goal), "seen, and not known to the table");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn memory_and_postgres_have_the_same_limits() {
    let clock = Arc::new(ManualClock::default());
    let pair = Pair::new(memory(clock.clone()), harness(clock.clone()).await, clock);
    same_limits(&pair).await.unwrap_or_else(|found| panic!("{found}"));
}
