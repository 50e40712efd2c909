//! The conformance suite on SQLite.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

use std::sync::Arc;

use posthaste_store::sqlite::{SqliteOptions, SqliteStore};
use posthaste_testkit::{
    ManualClock,
    store_suite::{Harness, run_all},
};

async fn open(clock: Arc<ManualClock>) -> Harness {
    let folder = tempfile::tempdir().unwrap();
    let mut options = SqliteOptions::new(folder.path().join("store.db"), clock);
    // So few that every case sees names on their way into the tree.
    options.new_names_max = 1;
    let store = SqliteStore::open(options).unwrap();
    Harness { store: Arc::new(store), keep: Some(Box::new(folder)) }
}

#[tokio::test]
async fn sqlite_conforms() {
    run_all(open).await;
}
