//! What every store must do: one conformance suite for all of them, and a snapshot to compare them by.
//!
//! A store's own tests call [`run_all`] with a function that opens an empty store. Each case gets a store of its own;
//! all cases are run, and those that failed are named at the end. `POSTHASTE_CASE` runs only those whose name
//! contains it.

// The cases are tests, although they stand in a library.
#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

mod bench;
mod cases;
pub mod differential;
mod faulty;
mod snapshot;

use std::{any::Any, future::Future, pin::Pin, sync::Arc};

use posthaste_store::Store;

pub use bench::Bench;
pub use cases::groups;
pub use faulty::{Fault, Faulty};
pub use snapshot::{Named, Scope, Snapshot, actual_counts, snapshot};

use crate::ManualClock;

/// An empty store on a clock, with whatever must live as long as it.
pub struct Harness {
    /// The store.
    pub store: Arc<dyn Store>,
    /// Dropped after the store: a directory, for example.
    pub keep: Option<Box<dyn Any + Send + Sync>>,
}

type CaseFuture = Pin<Box<dyn Future<Output = ()> + Send>>;

/// One case: a name that is a sentence, and what is done.
pub struct Case {
    /// Begins with the id of the requirement row that it shows, if it shows one.
    pub name: &'static str,
    pub(crate) run: fn(Arc<Bench>) -> CaseFuture,
}

/// Declares `CASES` from functions. A case that is left out is dead code, so that none is lost silently.
macro_rules! case_list {
    ($($name:ident),+ $(,)?) => {
        /// Every case of this file.
        pub(super) const CASES: &[$crate::store_suite::Case] = &[$(
            $crate::store_suite::Case { name: stringify!($name), run: |bench| Box::pin($name(bench)) },
        )+];
    };
}
use case_list;

/// Runs every case of every group, each on a store that `make` opens for it.
///
/// Panics at the end if a case failed, or if none was run.
pub async fn run_all(make: impl AsyncFn(Arc<ManualClock>) -> Harness) {
    let only = std::env::var("POSTHASTE_CASE").unwrap_or_default();
    let (run, failed) = run_some(&only, make).await;
    assert!(run > 0, "no case's name contains {only:?}");
    assert!(failed.is_empty(), "{} of {run} cases failed: {failed:#?}", failed.len());
}

/// Runs the cases whose name contains `only`: how many, and which failed.
pub async fn run_some(
    only: &str,
    make: impl AsyncFn(Arc<ManualClock>) -> Harness,
) -> (usize, Vec<&'static str>) {
    let all = groups().into_iter().flat_map(|(_, cases)| cases);
    let (mut run, mut failed) = (0, Vec::new());
    for case in all.filter(|case| case.name.contains(only)) {
        let clock = Arc::new(ManualClock::default());
        let harness = make(clock.clone()).await;
        let bench = Arc::new(Bench::new(harness, clock));
        run += 1;
        if tokio::spawn((case.run)(bench)).await.is_err() {
            failed.push(case.name);
        }
    }
    (run, failed)
}
