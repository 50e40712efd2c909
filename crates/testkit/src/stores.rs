//! The store that tests of what stands above stores run on: `POSTHASTE_TEST_STORE` names it.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use posthaste_store::{
    Clock,
    memory::MemoryStore,
    postgres::{PostgresOptions, PostgresStore},
    sqlite::{SqliteOptions, SqliteStore},
};

use crate::{ManualClock, PostgresServer, store_suite::Harness};

/// Names the store: `memory` (also if it is not set), `sqlite` or `postgres`.
pub const VARIABLE: &str = "POSTHASTE_TEST_STORE";

/// An empty store of the kind that [`VARIABLE`] names.
///
/// Panics if it names none, and if the store can't be opened.
pub async fn chosen(clock: Arc<ManualClock>) -> Harness {
    match std::env::var(VARIABLE).as_deref() {
        Err(_) | Ok("memory") => Harness { store: Arc::new(MemoryStore::new(clock)), keep: None },
        Ok("sqlite") => {
            // In memory where that is possible: nothing here is about surviving a loss of power.
            let folder = tempfile::tempdir_in("/dev/shm").or_else(|_| tempfile::tempdir()).expect("a folder");
            let options = SqliteOptions::new(folder.path().join("store.db"), clock);
            let store = SqliteStore::open(options).expect("a new store opens");
            Harness { store: Arc::new(store), keep: Some(Box::new(folder)) }
        }
        Ok("postgres") => {
            static SCHEMAS: AtomicUsize = AtomicUsize::new(0);
            let number = SCHEMAS.fetch_add(1, Ordering::Relaxed);
            let clock: Arc<dyn Clock> = clock;
            let mut options = PostgresOptions::new(PostgresServer::shared().url(), Some(clock));
            options.schema = format!("s{}_{number}", std::process::id()).into();
            let store = PostgresStore::open(options).await.expect("a new store opens");
            Harness { store: Arc::new(store), keep: None }
        }
        Ok(other) => panic!("{VARIABLE} is {other:?}; it may be memory, sqlite or postgres"),
    }
}
