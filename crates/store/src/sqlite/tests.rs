//! What the seam can't provoke: operations that panic or break their connection.

use std::sync::{
    Arc, Mutex,
    atomic::{AtomicBool, AtomicI64, Ordering},
    mpsc::{Receiver, channel},
};

use posthaste_core::{DurationMs, Timestamp};

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
    let error = store.write(Foreground, None, 0, culprit, |_, culprit| culprit()).await.unwrap_err();
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
    let gone = store.write(Foreground, None, 0, (), |_, ()| {
        RAN.store(true, Ordering::SeqCst);
        Ok(())
    });
    drop(gone);
    first.await.unwrap();
    assert!(!RAN.load(Ordering::SeqCst), "a future that was never polled does nothing");
}

/// Each look at it is a millisecond later.
#[derive(Default)]
struct Ticking(AtomicI64);

impl Clock for Ticking {
    fn now(&self) -> Timestamp {
        Timestamp(1_767_225_600_000 + self.0.fetch_add(1, Ordering::Relaxed))
    }
}

/// Lets operations of so many bytes queue up while the writer is held, and counts the batches that they take.
async fn batches_of(folder: &tempfile::TempDir, operations: usize, bytes: usize) -> usize {
    let options = SqliteOptions::new(folder.path().join("store.db"), Arc::new(Ticking::default()));
    assert_eq!((DurationMs(5), 4 * 1024 * 1024), (options.batch_work, options.batch_bytes_max));
    let store = Arc::new(SqliteStore::open(options).unwrap());
    let (go, held) = channel::<()>();
    let hold = |_: &mut super::Session<'_>, held: &Mutex<Receiver<()>>| {
        held.lock().unwrap().recv().unwrap();
        Ok(())
    };
    let holder = store.clone();
    let holding =
        tokio::spawn(async move { holder.write(Foreground, None, 0, Mutex::new(held), hold).await });
    let others: Vec<_> = (0..operations)
        .map(|_| {
            let store = store.clone();
            tokio::spawn(async move {
                store.write(Foreground, None, bytes, (), |session, ()| Ok(session.now)).await
            })
        })
        .collect();
    // Each has queued its operation once it was polled.
    tokio::task::yield_now().await;
    go.send(()).unwrap();
    holding.await.unwrap().unwrap();
    let mut times = Vec::new();
    for other in others {
        times.push(other.await.unwrap().unwrap());
    }
    // The clock is looked at once for each operation, and once more where a batch begins.
    1 + times.windows(2).filter(|two| two[1].since(two[0]) > DurationMs(1)).count()
}

#[tokio::test]
async fn a_batch_works_for_five_milliseconds() {
    let folder = tempfile::tempdir().unwrap();
    let batches = batches_of(&folder, 100, 0).await;
    assert!((20..=21).contains(&batches), "{batches} batches of 100 operations that take a millisecond each");
}

#[tokio::test]
async fn a_batch_has_four_mebibytes() {
    let folder = tempfile::tempdir().unwrap();
    let batches = batches_of(&folder, 40, 1024 * 1024).await;
    assert!((10..=11).contains(&batches), "{batches} batches of 40 MiB");
}

#[tokio::test]
async fn a_commit_that_fails_leaves_all_of_its_batch_in_doubt_and_the_next_one_succeeds() {
    let folder = tempfile::tempdir().unwrap();
    let store = open(&folder);
    for _ in 0..3 {
        // What is wrong here shows at the commit.
        let fail = |session: &mut super::Session<'_>, (): &()| {
            Ok(session.conn.execute_batch(
                "CREATE TEMP TABLE parents (id INTEGER PRIMARY KEY);
                 CREATE TEMP TABLE children (id REFERENCES parents DEFERRABLE INITIALLY DEFERRED);
                 INSERT INTO children VALUES (1)",
            )?)
        };
        let (doomed, neighbour) =
            tokio::join!(store.write(Foreground, None, 0, (), fail), store.configure(tenant(0)));
        assert!(matches!(doomed, Err(StoreError::InDoubt(_))), "{doomed:?}");
        // It was in the same batch, or came too late for it.
        assert!(!matches!(neighbour, Err(StoreError::Corrupt(_) | StoreError::Conflict)), "{neighbour:?}");
        // The same again is answered well, whatever became of it.
        while !matches!(store.configure(tenant(0)).await.as_deref(), Ok([Configured::Tenant(_)])) {
            tokio::task::yield_now().await;
        }
        assert_eq!(1, store.tenants().await.unwrap().len());
    }
}
