//! Batches: who shares a commit, and what a fault does to whom.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

mod sqlite_support;

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use posthaste_core::{MessageKey, TenantId};
use posthaste_store::{
    Acceptance, AppliedOutcome, MessageName, Reads, Store, StoreError, Target,
    sqlite::{SqliteOptions, SqliteStore},
};
use rusqlite::Connection;
use sqlite_support::{accept, accept_new, configure, finish, id, lease, message, open, options};
use tempfile::{TempDir, tempdir};

/// Many at once, so that many share a batch.
async fn accept_all(
    store: &Arc<SqliteStore>,
    messages: Vec<posthaste_store::NewMessage>,
) -> Vec<Result<Acceptance, StoreError>> {
    let started: Vec<_> = messages
        .into_iter()
        .map(|message| {
            let store = store.clone();
            tokio::spawn(async move { accept(&*store, message).await })
        })
        .collect();
    let mut answers = Vec::new();
    for answer in started {
        answers.push(answer.await.unwrap());
    }
    answers
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a5_of_a_thousand_at_once_one_is_new() {
    let folder = tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let (tenant, target) = configure(&*store).await;
    let messages = (0..1_000).map(|number| message(tenant, number, "the-key", &target)).collect();
    let answers = accept_all(&store, messages).await;
    let mut new = Vec::new();
    let mut duplicates = Vec::new();
    for answer in answers {
        match answer.unwrap() {
            Acceptance::New(accepted) => new.push(accepted.id),
            Acceptance::Duplicate(accepted) => duplicates.push(accepted.id),
            reused @ Acceptance::KeyReused { .. } => panic!("{reused:?}"),
        }
    }
    assert_eq!((1, 999), (new.len(), duplicates.len()));
    assert!(duplicates.iter().all(|id| *id == new[0]));
    let view = store.message(tenant, MessageName::Id(new[0])).await.unwrap().unwrap();
    assert_eq!(999, view.duplicates);
    assert_eq!(100, store.custody(tenant, new[0]).await.unwrap().len());
}

/// A store in which the row of `key-0` can't be read.
async fn with_corrupt_message() -> (TempDir, Arc<SqliteStore>, TenantId, Target) {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let (tenant, target) = configure(&store).await;
    accept_new(&store, message(tenant, 0, "key-0", &target)).await;
    store.close();
    damage(&folder, "UPDATE messages SET fingerprint = x'00'");
    let store = Arc::new(open(folder.path()));
    (folder, store, tenant, target)
}

fn damage(folder: &TempDir, sql: &str) {
    let conn = Connection::open(folder.path().join("store.db")).unwrap();
    conn.execute_batch("PRAGMA ignore_check_constraints = ON").unwrap();
    conn.execute_batch(sql).unwrap();
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn one_poisoned_operation_never_fails_its_neighbours() {
    let (_folder, store, tenant, target) = with_corrupt_message().await;
    for round in 0..10 {
        // Every seventh meets the row that can't be read.
        let key = |number: u32| {
            if number.is_multiple_of(7) { "key-0".to_owned() } else { format!("key-{round}-{number}") }
        };
        let from = 1_000 * (round + 1);
        let messages = (0..100).map(|number| message(tenant, from + number, &key(number), &target)).collect();
        let answers = accept_all(&store, messages).await;
        for (number, answer) in answers.into_iter().enumerate() {
            if number % 7 == 0 {
                assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{number}: {answer:?}");
            } else {
                assert!(matches!(answer, Ok(Acceptance::New(_))), "{number}: {answer:?}");
            }
        }
    }
    let counts = store.counts().await.unwrap();
    assert_eq!(1 + 10 * 85, counts[0].jobs, "what failed alone is not counted: {counts:?}");
}

#[tokio::test]
async fn a_job_that_cannot_be_read_stops_no_other() {
    let folder = tempdir().unwrap();
    let store = open(folder.path());
    let (tenant, target) = configure(&store).await;
    for number in 0..4 {
        accept_new(&store, message(tenant, number, &format!("key-{number}"), &target)).await;
    }
    store.close();
    damage(&folder, "UPDATE jobs SET failures = 9 WHERE id = (SELECT min(id) FROM jobs)");
    let store = open(folder.path());
    let leased = lease(&store, tenant, &target, 1).await;
    assert_eq!(1, leased.len(), "the one at the head is passed over");
    let rest = lease(&store, tenant, &target, 10).await;
    assert_eq!(2, rest.len());
    assert!(store.lease(Vec::new()).await.unwrap().is_empty());
    let corrupt = posthaste_core::JobId::of(id(0), target.lane);
    let command = |job, fence| finish(tenant, job, fence);
    let commands = vec![command(corrupt, leased[0].fence), command(leased[0].job.id, leased[0].fence)];
    let applied = store.apply(commands).await.unwrap();
    assert!(matches!(applied[0].outcome, AppliedOutcome::Corrupt(_)), "{applied:?}");
    assert!(matches!(applied[1].outcome, AppliedOutcome::Decided { reply: Ok(_), .. }), "{applied:?}");
    assert!(matches!(store.job(tenant, corrupt).await, Err(StoreError::Corrupt(_))));
    let listed =
        store.jobs(tenant, posthaste_store::JobFilter { limit: 10, ..Default::default() }).await.unwrap();
    assert_eq!(3, listed.len(), "the others are listed");
}

#[tokio::test]
async fn r_a4_on_a_full_disk_nothing_is_answered_that_is_not_stored() {
    let folder = tempdir().unwrap();
    drop(open(folder.path()));
    let options = options(folder.path());
    let limit = options.page_limit.clone();
    limit.set(120);
    let store = SqliteStore::open(options).unwrap();
    let (tenant, target) = configure(&store).await;
    let large = |number: u32| {
        let mut message = message(tenant, number, &format!("key-{number}"), &target);
        message.payload = Bytes::from(vec![b'x'; 8_192]);
        message
    };
    let mut answered = Vec::new();
    let mut refused = Vec::new();
    for number in 0..100 {
        match accept(&store, large(number)).await {
            Ok(Acceptance::New(accepted)) => answered.push(accepted.id),
            Ok(other) => panic!("{other:?}"),
            Err(StoreError::Unavailable { .. }) => refused.push(number),
            Err(other) => panic!("a full disk makes the store unavailable: {other:?}"),
        }
    }
    assert!(!answered.is_empty() && refused.len() > 10, "{} answered", answered.len());
    for answered in &answered {
        assert!(store.message(tenant, MessageName::Id(*answered)).await.unwrap().is_some());
    }
    for refused in &refused {
        assert!(store.message(tenant, MessageName::Id(id(*refused))).await.unwrap().is_none());
    }

    limit.set(0);
    let works = async {
        while accept(&store, large(refused[0])).await.is_err() {
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_mins(1), works).await.expect("with room again it works again");
    let key = MessageName::Key(MessageKey::new(&format!("key-{}", refused[0])).unwrap());
    assert!(store.message(tenant, key).await.unwrap().is_some());
    assert_eq!(answered.len() as u64 + 1, store.counts().await.unwrap()[0].jobs);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_refuses_at_once() {
    let folder = tempdir().unwrap();
    let options = SqliteOptions { queue_ops_max: 4, ..options(folder.path()) };
    let store = Arc::new(SqliteStore::open(options).unwrap());
    let (tenant, target) = configure(&*store).await;
    let messages =
        (0..500).map(|number| message(tenant, number, &format!("key-{number}"), &target)).collect();
    let answers = accept_all(&store, messages).await;
    let overloaded = answers.iter().filter(|answer| matches!(answer, Err(StoreError::Overloaded))).count();
    let accepted = answers.iter().filter(|answer| matches!(answer, Ok(Acceptance::New(_)))).count();
    assert_eq!(500, overloaded + accepted);
    assert_eq!(accepted as u64, store.counts().await.unwrap().first().map_or(0, |count| count.jobs));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_reads_see_every_commit_that_was_answered() {
    let folder = tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let (tenant, target) = configure(&*store).await;
    let writers: Vec<_> = (0..8)
        .map(|writer| {
            let (store, target) = (store.clone(), target.clone());
            tokio::spawn(async move {
                for number in 0..50 {
                    let number = writer * 1_000 + number;
                    let new =
                        accept_new(&*store, message(tenant, number, &format!("key-{number}"), &target)).await;
                    let found = store.job(tenant, new.jobs[0].id).await.unwrap();
                    assert!(found.is_some(), "{number} is seen");
                }
            })
        })
        .collect();
    for writer in writers {
        writer.await.unwrap();
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
#[allow(clippy::print_stdout)]
async fn throughput_is_printed() {
    let folder = tempdir().unwrap();
    let store = Arc::new(open(folder.path()));
    let (tenant, target) = configure(&*store).await;
    let started = std::time::Instant::now();
    let messages =
        (0..2_000).map(|number| message(tenant, number, &format!("key-{number}"), &target)).collect();
    assert!(accept_all(&store, messages).await.iter().all(Result::is_ok));
    println!("2,000 acceptances in {:?}", started.elapsed());
    let started = std::time::Instant::now();
    let mut drained = 0;
    loop {
        let leased = lease(&*store, tenant, &target, 100).await;
        if leased.is_empty() {
            break;
        }
        drained += leased.len();
        let commands = leased.iter().map(|leased| finish(tenant, leased.job.id, leased.fence)).collect();
        store.apply(commands).await.unwrap();
    }
    println!("{drained} jobs leased and finished in {:?}", started.elapsed());
    assert_eq!(2_000, drained);
}
