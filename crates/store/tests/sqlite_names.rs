//! Names that are new and names that went into the tree are the same names. Rows A5, A9, A10.

#![allow(clippy::unwrap_used)]

mod sqlite_support;

use std::path::Path;

use posthaste_core::{MessageKey, TenantId};
use posthaste_store::{
    Acceptance, MessageName, Reads as _, Store as _, Target,
    sqlite::{SqliteOptions, SqliteStore},
};
use rusqlite::Connection;

use self::sqlite_support::{accept, accept_new, configure, id, message, options};

const AT_MOST: usize = 8;

fn few_names(folder: &Path) -> SqliteOptions {
    SqliteOptions { new_names_max: AT_MOST, ..options(folder) }
}

/// Keys in no order.
fn key(number: u32) -> String {
    format!("{:08x}", number.wrapping_mul(2_654_435_761))
}

fn rows(folder: &Path, table: &str) -> u32 {
    let conn = Connection::open(folder.join("store.db")).unwrap();
    conn.query_row(&format!("SELECT count(*) FROM {table}"), [], |row| row.get(0)).unwrap()
}

/// Every message is found by its name, once, and is known when it comes again.
async fn assert_all_known(store: &SqliteStore, tenant: TenantId, target: &Target, count: u32, times: u64) {
    for number in 0..count {
        let name = MessageName::Key(MessageKey::new(&key(number)).unwrap());
        let view = store.message(tenant, name).await.unwrap().unwrap_or_else(|| panic!("{number} is lost"));
        assert_eq!((id(number), times), (view.id, view.duplicates), "{number}");
        let again = accept(store, message(tenant, number + 100_000, &key(number), target)).await.unwrap();
        assert!(
            matches!(&again, Acceptance::Duplicate(known) if known.id == id(number)),
            "{number}: {again:?}"
        );
        let view = store.message(tenant, MessageName::Id(id(number))).await.unwrap().unwrap();
        assert_eq!(times + 1, view.duplicates, "{number}");
    }
}

#[tokio::test]
async fn r_a5_a_name_is_claimed_once_wherever_it_is_kept() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(few_names(folder.path())).unwrap();
    let (tenant, target) = configure(&store).await;
    // One a commit, so that names are in all stages of their way.
    for number in 0..300 {
        accept_new(&store, message(tenant, number, &key(number), &target)).await;
        if number % 7 == 0 {
            let earlier = number / 2;
            let again = message(tenant, number + 200_000, &key(earlier), &target);
            assert!(matches!(accept(&store, again).await.unwrap(), Acceptance::Duplicate(_)), "{earlier}");
        }
    }
    drop(store);
    let (new, old) = (rows(folder.path(), "keys_new"), rows(folder.path(), "keys"));
    assert!(old > 200 && new < 100, "they went into the tree: {new} new, {old} there");
}

#[tokio::test]
async fn r_a9_names_are_found_and_counted_before_while_and_after_they_move() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(few_names(folder.path())).unwrap();
    let (tenant, target) = configure(&store).await;
    for number in 0..50 {
        accept_new(&store, message(tenant, number, &key(number), &target)).await;
    }
    for times in 0..3 {
        assert_all_known(&store, tenant, &target, 50, times).await;
    }
    // After a start the names are read again, also those that stand in both tables.
    drop(store);
    let store = SqliteStore::open(few_names(folder.path())).unwrap();
    for number in 0..50 {
        let name = MessageName::Key(MessageKey::new(&key(number)).unwrap());
        let view = store.message(tenant, name).await.unwrap().unwrap();
        assert_eq!((id(number), 3), (view.id, view.duplicates), "{number}");
    }
}

#[tokio::test]
async fn r_a5_names_survive_a_start_at_any_stage_of_their_move() {
    let folder = tempfile::tempdir().unwrap();
    let mut known = 0_u32;
    let mut tenant_and_target = None;
    for round in 0..40_u32 {
        let store = SqliteStore::open(few_names(folder.path())).unwrap();
        if tenant_and_target.is_none() {
            tenant_and_target = Some(configure(&store).await);
        }
        let (tenant, target) = tenant_and_target.as_ref().unwrap();
        if let Some(last) = known.checked_sub(1) {
            let name = MessageName::Key(MessageKey::new(&key(last)).unwrap());
            assert!(store.message(*tenant, name).await.unwrap().is_some(), "unknown right after the start");
        }
        for _ in 0..=(round % 5) {
            accept_new(&store, message(*tenant, known, &key(known), target)).await;
            known += 1;
        }
        for number in 0..known {
            let name = MessageName::Key(MessageKey::new(&key(number)).unwrap());
            let view = store.message(*tenant, name).await.unwrap();
            assert_eq!(Some(id(number)), view.map(|view| view.id), "round {round}, {number}");
            let again = message(*tenant, number + 100_000 + round * 1_000, &key(number), target);
            assert!(matches!(accept(&store, again).await.unwrap(), Acceptance::Duplicate(_)), "{number}");
        }
    }
}

#[tokio::test]
async fn a_batch_that_is_separated_forgets_the_names_of_what_failed() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(few_names(folder.path())).unwrap();
    let (tenant, target) = configure(&store).await;
    // A target without a lane fails its whole operation; its name must not stay claimed.
    let nowhere = Target { lane: posthaste_core::LaneId(77), ..target.clone() };
    for number in 0..20 {
        let failed = store.accept(vec![message(tenant, number + 500, &key(number), &nowhere)]);
        let good = store.accept(vec![message(tenant, number + 1_000, &key(number + 1_000), &target)]);
        let (failed, good) = tokio::join!(failed, good);
        assert!(failed.is_err() && good.is_ok(), "{failed:?} {good:?}");
        accept_new(&store, message(tenant, number, &key(number), &target)).await;
    }
}

#[tokio::test]
async fn one_name_that_two_messages_have_does_not_stop_the_others() {
    let folder = tempfile::tempdir().unwrap();
    let store = SqliteStore::open(few_names(folder.path())).unwrap();
    let (tenant, target) = configure(&store).await;
    for number in 0..4 {
        accept_new(&store, message(tenant, number, &key(number), &target)).await;
    }
    let conn = Connection::open(folder.path().join("store.db")).unwrap();
    let bad = "INSERT INTO keys (tenant, key, kind, message) SELECT tenant, key, kind, zeroblob(16) FROM keys_new WHERE seq = 2";
    assert_eq!(1, conn.execute(bad, []).unwrap());
    drop(conn);
    for number in 4..200 {
        accept_new(&store, message(tenant, number, &key(number), &target)).await;
    }
    for number in (0..200).filter(|number| *number != 1) {
        let name = MessageName::Key(MessageKey::new(&key(number)).unwrap());
        assert!(store.message(tenant, name).await.unwrap().is_some(), "{number}");
    }
}
