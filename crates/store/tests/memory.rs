//! The conformance suite on the store in memory.

use std::sync::Arc;

use posthaste_store::memory::MemoryStore;
use posthaste_testkit::{
    ManualClock,
    store_suite::{Harness, run_all},
};

async fn open(clock: Arc<ManualClock>) -> Harness {
    Harness { store: Arc::new(MemoryStore::new(clock)), keep: None }
}

#[tokio::test]
async fn the_store_in_memory_conforms() {
    run_all(open).await;
}
