//! What the seam can't provoke: operations that panic or break their connection.

use std::sync::{
    Arc,
    atomic::{AtomicBool, Ordering},
};

use posthaste_core::Timestamp;

use super::{SqliteOptions, SqliteStore, fault::Fault, work::Rank::Foreground};
use crate::{Clock, Configure, Configured, Reads, Store, StoreError};

struct Still;

impl Clock for Still {
    fn now(&self) -> Timestamp {
        Timestamp(1_767_225_600_000)
    }
}

fn open(folder: &tempfile::TempDir) -> Arc<SqliteStore> {
    Arc::new(SqliteStore::open(SqliteOptions::new(folder.path().join("store.db"), Arc::new(Still))).unwrap())
}

fn tenant(number: usize) -> Vec<Configure> {
    vec![Configure::Tenant { name: format!("tenant-{number}").into() }]
}

/// Starts operations around one that goes wrong, all at once, and gives how the neighbours fared.
async fn around(
    store: &Arc<SqliteStore>,
    culprit: fn() -> Result<(), Fault>,
) -> (StoreError, Vec<Result<(), StoreError>>) {
    let neighbours: Vec<_> = (0..40)
        .map(|number| {
            let store = store.clone();
            tokio::spawn(async move { store.configure(tenant(number)).await.map(|_| ()) })
        })
        .collect();
    let error = store.write(Foreground, 0, culprit, |_, culprit| culprit()).await.unwrap_err();
    let mut answers = Vec::new();
    for neighbour in neighbours {
        answers.push(neighbour.await.unwrap());
    }
    (error, answers)
}

#[tokio::test]
async fn a_panic_fails_its_operation_alone() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    for _ in 0..3 {
        let (error, neighbours) = around(&store, || panic!("on purpose")).await;
        assert!(
            matches!(error, StoreError::Unavailable { reason: "the operation panicked", .. }),
            "{error:?}"
        );
        assert!(neighbours.iter().all(Result::is_ok), "{neighbours:?}");
    }
    assert_eq!(40, store.tenants().await.unwrap().len());
}

#[tokio::test]
async fn a_panicking_read_is_unavailable_and_the_next_one_works() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    for _ in 0..5 {
        let error = store.read((), |_, ()| -> Result<(), Fault> { panic!("on purpose") }).await.unwrap_err();
        assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
        assert!(store.tenants().await.unwrap().is_empty());
    }
}

#[tokio::test]
async fn a_broken_connection_fails_the_batch_and_is_opened_again() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let broken = || {
        let code = rusqlite::ffi::Error::new(rusqlite::ffi::SQLITE_IOERR_WRITE);
        Err(rusqlite::Error::SqliteFailure(code, None).into())
    };
    let (error, neighbours) = around(&store, broken).await;
    assert!(matches!(error, StoreError::Unavailable { .. }), "{error:?}");
    let refused = neighbours.iter().filter(|answer| answer.is_err()).count();
    // While it is broken the queue refuses at once; then it works again.
    while !matches!(store.configure(tenant(0)).await.as_deref(), Ok([Configured::Tenant(_)])) {
        tokio::task::yield_now().await;
    }
    let found = store.tenants().await.unwrap().len();
    assert!(found >= 40 - refused, "{found} tenants, {refused} refused");
}

#[tokio::test]
async fn operations_whose_caller_is_gone_are_left_out() {
    static RAN: AtomicBool = AtomicBool::new(false);
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    let first = store.configure(tenant(1));
    let gone = store.write(Foreground, 0, (), |_, ()| {
        RAN.store(true, Ordering::SeqCst);
        Ok(())
    });
    drop(gone);
    first.await.unwrap();
    assert!(!RAN.load(Ordering::SeqCst), "a future that was never polled does nothing");
}
