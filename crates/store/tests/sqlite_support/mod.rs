//! What the SQLite tests have in common.

#![allow(dead_code, unused_imports, clippy::unwrap_used)] // each test file uses its part; helpers of tests are tests

#[path = "../rows/mod.rs"]
mod rows;

use std::{path::Path, sync::Arc};

use posthaste_store::sqlite::{SqliteOptions, SqliteStore};
use posthaste_testkit::ManualClock;

pub(crate) use rows::{accept, accept_new, configure, finish, id, lease, message};

pub(crate) fn options(folder: &Path) -> SqliteOptions {
    SqliteOptions::new(folder.join("store.db"), Arc::new(ManualClock::default()))
}

pub(crate) fn open(folder: &Path) -> SqliteStore {
    SqliteStore::open(options(folder)).unwrap()
}
