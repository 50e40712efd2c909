//! Opening, closing and finding everything again.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod sqlite_support;

use std::{fs, path::Path};

use expect_test::expect;
use posthaste_core::{MessageKey, StateName};
use posthaste_store::{
    Acceptance, MessageName, Reads, Store,
    sqlite::{OpenError, SqliteStore},
};
use posthaste_testkit::store_suite::{Scope, snapshot};
use rusqlite::Connection;
use sqlite_support::{accept, accept_new, configure, finish, id, lease, message, open, options};
use tempfile::tempdir;

#[test]
fn a_second_open_fails_and_names_the_first_process() {
    let folder = tempdir().unwrap();
    let first = open(folder.path());
    let error = SqliteStore::open(options(folder.path())).err().expect("the file is in use");
    let text = error.to_string();
    assert!(text.contains(&format!("is in use by process {}", std::process::id())), "{text}");
    assert!(text.contains("store.db"), "{text}");
    drop(first);
    open(folder.path());
}

#[cfg(unix)]
#[test]
fn a_second_name_of_the_file_is_the_same_file() {
    let folder = tempdir().unwrap();
    let _first = open(folder.path());
    let mut other = options(folder.path());
    other.path = folder.path().join("other.db");
    std::os::unix::fs::symlink(folder.path().join("store.db"), &other.path).unwrap();
    assert!(matches!(SqliteStore::open(other), Err(OpenError::InUse { .. })));
}

#[test]
fn a_missing_folder_is_named() {
    let folder = tempdir().unwrap();
    let error = SqliteStore::open(options(&folder.path().join("missing"))).err().unwrap();
    assert!(error.to_string().contains("check that its folder exists"), "{error}");
}

#[tokio::test]
async fn r_a4_the_writer_syncs_in_full() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let settings = store.settings().await.unwrap();
    let lines: Vec<String> = settings.iter().map(|(name, value)| format!("{name} = {value}")).collect();
    let text = lines.join("\n") + "\n";
    expect![[r"
        journal_mode = wal
        synchronous = 2
        wal_autocheckpoint = 0
        journal_size_limit = 134217728
        page_size = 4096
        cache_size = -16384
        temp_store = 2
        mmap_size = 0
        foreign_keys = 1
        busy_timeout = 5000
    "]]
    .assert_eq(&text);
}

#[test]
fn the_database_of_another_program_is_left_alone() {
    let folder = tempdir().unwrap();
    let path = folder.path().join("store.db");
    let other = Connection::open(&path).unwrap();
    other.execute_batch("CREATE TABLE notes (text TEXT)").unwrap();
    drop(other);
    let before = fs::read(&path).unwrap();
    assert!(matches!(SqliteStore::open(options(folder.path())), Err(OpenError::Foreign { .. })));
    assert_eq!(before, fs::read(&path).unwrap());
}

#[test]
fn a_file_that_is_no_database_is_refused() {
    let folder = tempdir().unwrap();
    fs::write(
        folder.path().join("store.db"),
        "certainly no database, but long enough to look at".repeat(100),
    )
    .unwrap();
    let error = SqliteStore::open(options(folder.path())).err().unwrap();
    assert!(matches!(error, OpenError::Sqlite { .. }), "{error:?}");
}

#[test]
fn migrations_are_applied_once() {
    let folder = tempdir().unwrap();
    let history = || {
        drop(open(folder.path()));
        let conn = Connection::open(folder.path().join("store.db")).unwrap();
        let sql = "SELECT group_concat(version || applied_on || checksum) FROM refinery_schema_history";
        conn.query_row(sql, [], |row| row.get::<_, String>(0)).unwrap()
    };
    assert_eq!(history(), history());
}

#[test]
fn a_newer_schema_is_refused() {
    let folder = tempdir().unwrap();
    drop(open(folder.path()));
    let conn = Connection::open(folder.path().join("store.db")).unwrap();
    conn.execute(
        "INSERT INTO refinery_schema_history SELECT 99, 'later', applied_on, '1' FROM refinery_schema_history LIMIT 1",
        [],
    )
    .unwrap();
    drop(conn);
    let error = SqliteStore::open(options(folder.path())).err().unwrap();
    assert!(error.to_string().contains("has schema 99, and this posthaste knows schemas up to"), "{error}");
}

#[tokio::test]
async fn r_b15_everything_is_found_again_after_a_restart_and_after_a_crash() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let (tenant, target) = configure(&store).await;
    for number in 0..6 {
        accept_new(&store, message(tenant, number, &format!("key-{number}"), &target)).await;
    }
    let again = accept(&store, message(tenant, 99, "key-0", &target)).await.unwrap();
    assert!(matches!(again, Acceptance::Duplicate(_)), "{again:?}");
    let leased = lease(&store, tenant, &target, 3).await;
    let finished = &leased[0];
    store.apply(vec![finish(tenant, finished.job.id, finished.fence)]).await.unwrap();

    let scope = Scope { messages: (0..6).map(|number| (tenant, id(number))).collect(), ..Scope::default() };
    let before = snapshot(&store, &scope).await;

    // As a crash leaves them: the files while the store is open, the log not yet moved into the database.
    let crashed = tempdir().unwrap();
    copy_files(folder.path(), crashed.path());
    let after_crash = open(crashed.path());
    assert_eq!(
        Vec::<(String, String, String)>::new(),
        before.differences(&snapshot(&after_crash, &scope).await)
    );

    store.close();
    let reopened = open(folder.path());
    assert_eq!(
        Vec::<(String, String, String)>::new(),
        before.differences(&snapshot(&reopened, &scope).await)
    );
    let view = reopened.job(tenant, finished.job.id).await.unwrap().unwrap();
    assert_eq!(StateName::Committed, view.job.state.name());

    // The lease that was given before is good after, and the job is read from its rows.
    let running = &leased[1];
    let applied = reopened.apply(vec![finish(tenant, running.job.id, running.fence)]).await.unwrap();
    assert!(format!("{applied:?}").contains("Ok(Moved { state: Committed"), "{applied:?}");
}

fn copy_files(from: &Path, to: &Path) {
    for file in fs::read_dir(from).unwrap() {
        let file = file.unwrap();
        fs::copy(file.path(), to.join(file.file_name())).unwrap();
    }
}

#[tokio::test]
async fn closing_empties_the_log_and_closed_stores_refuse() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let (tenant, target) = configure(&store).await;
    accept_new(&store, message(tenant, 1, "key", &target)).await;
    store.close();
    let log = folder.path().join("store.db-wal");
    assert!(!log.exists() || fs::metadata(log).unwrap().len() == 0);
}

#[tokio::test]
async fn an_own_operation_sent_again_is_answered_as_before() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let (tenant, target) = configure(&store).await;
    let first = accept_new(&store, message(tenant, 1, "key", &target)).await;
    let again = accept_new(&store, message(tenant, 1, "key", &target)).await;
    assert_eq!((first.id, first.jobs[0].id), (again.id, again.jobs[0].id));
    let view = store.message(tenant, MessageName::Id(id(1))).await.unwrap().unwrap();
    assert_eq!(0, view.duplicates);
}

#[tokio::test]
async fn two_messages_whose_jobs_would_have_the_same_ids_are_not_confused() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let (tenant, target) = configure(&store).await;
    accept_new(&store, message(tenant, 1, "key-1", &target)).await;
    let mut alike = message(tenant, 1, "key-2", &target);
    alike.id.0 |= 7;
    // Whoever makes ids sees to it that they differ; a lane never gets one job of two messages.
    accept(&store, alike).await.unwrap_err();
    assert!(
        store.message(tenant, MessageName::Key(MessageKey::new("key-2").unwrap())).await.unwrap().is_none()
    );
}
