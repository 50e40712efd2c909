//! Memory and SQLite give the same answers and hold the same rows, whatever is asked; and the comparison would find
//! a store that does not.

use std::sync::Arc;

use posthaste_store::{
    memory::MemoryStore,
    sqlite::{SqliteOptions, SqliteStore},
};
use posthaste_testkit::{
    ManualClock,
    store_suite::{
        Fault, Faulty, Harness,
        differential::{self, Coverage, Pair, Settings, reachable, same_limits},
        run_some,
    },
};

/// Edges of the transition table that a store can write, and cells that it can answer.
const EDGES: usize = 64;
const CELLS: usize = 107;

fn memory(clock: Arc<ManualClock>) -> Harness {
    Harness { store: Arc::new(MemoryStore::new(clock)), keep: None }
}

fn sqlite(clock: Arc<ManualClock>) -> Harness {
    // In memory where that is possible: nothing here is about surviving a loss of power, and a sync costs the most.
    let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
    let mut options = SqliteOptions::new(folder.path().join("store.db"), clock);
    // So few that names are on their way into the tree all the time.
    options.new_names_max = 3;
    let store = SqliteStore::open(options).expect("a new store opens");
    Harness { store: Arc::new(store), keep: Some(Box::new(folder)) }
}

fn faulty(clock: Arc<ManualClock>, fault: Fault) -> Harness {
    Harness { store: Arc::new(Faulty { inner: memory(clock).store, fault }), keep: None }
}

#[tokio::test]
async fn memory_and_sqlite_are_the_same_over_every_edge_and_cell() {
    let goal = reachable();
    assert_eq!((EDGES, CELLS), (goal.edges.len(), goal.cells.len()), "the table has changed: {goal:#?}");
    let settings = Settings::from_env();
    println!("POSTHASTE_SEED={}", settings.seed);
    let both = async |clock: Arc<ManualClock>| (memory(clock.clone()), sqlite(clock));
    let (seen, rounds) =
        differential::run(settings, &goal, both).await.unwrap_or_else(|found| panic!("{found}"));
    println!("{rounds} rounds, {} edges, {} cells", seen.edges.len(), seen.cells.len());
    assert_eq!(Coverage::default(), goal.beyond(&seen), "not seen by both");
    assert_eq!(Coverage::default(), seen.beyond(&goal), "seen, and not known to the table");
}

#[tokio::test]
async fn memory_and_sqlite_have_the_same_limits() {
    let clock = Arc::new(ManualClock::default());
    let pair = Pair::new(memory(clock.clone()), sqlite(clock.clone()), clock);
    same_limits(&pair).await.unwrap_or_else(|found| panic!("{found}"));
}

#[tokio::test]
async fn a_store_with_a_fault_is_found_by_the_comparison() {
    let settings = Settings { rounds_max: 20, ..Settings::from_env() };
    for fault in Fault::ALL {
        let both = async |clock: Arc<ManualClock>| (memory(clock.clone()), faulty(clock, fault));
        let found = differential::run(settings, &Coverage::default(), both).await;
        assert!(found.is_err(), "{fault:?} is not found");
    }
}

#[tokio::test]
async fn a_store_with_a_fault_is_found_by_the_suite() {
    for fault in Fault::ALL {
        let (_, failed) = run_some("", async |clock| faulty(clock, fault)).await;
        assert!(!failed.is_empty(), "{fault:?} is not found");
    }
}
