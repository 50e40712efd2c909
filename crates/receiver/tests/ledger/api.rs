//! The crate's own calls, on SQLite.

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Arc, Mutex},
    time::Duration,
};

use posthaste_receiver::ledger::{
    Admission, Answer, Claim, ClaimError, CommitError, Completion, Failure, LedgerError, OnExpired, Outcome,
    Path, Previous, Ran, Reset, RunError, Status, rusqlite as ledger,
};
use rusqlite::{Connection, Transaction};

use crate::support::Sqlite;

const LEASE: Duration = Duration::from_mins(1);

fn open(sqlite: &Sqlite) -> Connection {
    let connection = sqlite.connect();
    ledger::create(&connection).unwrap();
    connection.execute_batch("CREATE TABLE IF NOT EXISTS effects (event_key TEXT)").unwrap();
    connection
}

fn claim() -> Claim {
    Claim::new("k", LEASE).unwrap()
}

fn effect(transaction: &Transaction<'_>) -> Result<Completion, rusqlite::Error> {
    transaction.execute("INSERT INTO effects VALUES ('k')", [])?;
    Ok(Completion::committed(Answer::new(201, "image/png", [0, 0xff])))
}

fn effects(connection: &Connection) -> i64 {
    connection.query_row("SELECT count(*) FROM effects", [], |row| row.get(0)).unwrap()
}

fn granted(admission: Admission) -> posthaste_receiver::ledger::Grant {
    admission.grant().expect("granted")
}

#[test]
fn r_c2_both_modes_run_the_effect_once_and_answer_the_same_again() {
    for one_tx in [false, true] {
        let sqlite = Sqlite::new();
        let mut connection = open(&sqlite);
        for path in [Path::FirstRun, Path::DuplicateDone, Path::DuplicateDone] {
            let run = if one_tx { ledger::one_tx } else { ledger::two_tx };
            let ran =
                run(&mut connection, &claim(), |transaction: &Transaction<'_>, _: &_| effect(transaction));
            let Ran::Done(done) = ran.unwrap() else { panic!("not done") };
            assert_eq!((done.path, done.attempts, done.outcome), (path, 1, Outcome::Committed));
            assert_eq!(done.answer, Answer::new(201, "image/png", [0, 0xff]));
        }
        assert_eq!(effects(&connection), 1);
    }
}

#[test]
fn r_c2_an_effect_that_fails_or_panics_is_rolled_back_and_tried_again() {
    let sqlite = Sqlite::new();
    let mut connection = open(&sqlite);
    let failed = ledger::two_tx(&mut connection, &claim(), |transaction, _| {
        effect(transaction).unwrap();
        Err::<Completion, _>("no stock")
    });
    assert!(matches!(&failed, Err(RunError::Effect(error)) if error.to_string() == "no stock"), "{failed:?}");
    let entry = ledger::get(&connection, "k").unwrap().unwrap();
    assert_eq!((entry.status, entry.failure.message.as_deref()), (Status::Failed, Some("no stock")));
    let panicked = catch_unwind(AssertUnwindSafe(|| {
        ledger::two_tx(&mut connection, &claim(), |transaction, granted| -> Result<Completion, String> {
            assert_eq!(granted.previous, Previous::Failed);
            effect(transaction).unwrap();
            panic!("a fault in the effect")
        })
    }));
    assert!(panicked.is_err());
    assert_eq!(ledger::get(&connection, "k").unwrap().unwrap().failure.class.as_deref(), Some("panic"));
    assert_eq!(effects(&connection), 0);
    let ran = ledger::two_tx(&mut connection, &claim(), |transaction, _| effect(transaction)).unwrap();
    assert_eq!(ran.path(), Some(Path::RetryAfterFailure));
    assert_eq!(effects(&connection), 1);
}

#[test]
fn r_c2_in_one_transaction_a_failed_effect_leaves_nothing_behind() {
    let sqlite = Sqlite::new();
    let mut connection = open(&sqlite);
    let failed = ledger::one_tx(&mut connection, &claim(), |transaction, _| {
        effect(transaction).unwrap();
        Err::<Completion, _>("no stock")
    });
    assert!(matches!(failed, Err(RunError::Effect(_))));
    assert_eq!(ledger::get(&connection, "k").unwrap(), None);
    assert_eq!(effects(&connection), 0);
}

#[test]
fn r_c3_a_superseded_grant_rolls_its_effect_back() {
    let sqlite = Sqlite::new();
    let (mut connection, operator) = (open(&sqlite), open(&sqlite));
    let grant = granted(ledger::claim(&connection, &claim()).unwrap());
    let fence = grant.granted().fence;
    let reset = Reset { fence, status: Status::InProgress, reason: "hangs", by: Some("ops") };
    assert!(ledger::reset(&operator, "k", &reset).unwrap());
    let transaction = connection.transaction().unwrap();
    let completion = effect(&transaction).unwrap();
    let refused = ledger::commit(transaction, grant, &completion);
    assert!(matches!(refused, Err(CommitError::Superseded)), "{refused:?}");
    assert_eq!(effects(&operator), 0);
    let entry = ledger::get(&operator, "k").unwrap().unwrap();
    assert_eq!(
        (entry.status, entry.fence, entry.reset_reason.as_deref()),
        (Status::Failed, fence + 1, Some("hangs"))
    );
}

#[test]
fn the_steps_can_be_taken_apart() {
    let sqlite = Sqlite::new();
    let (mut connection, other) = (open(&sqlite), open(&sqlite));
    let asked = claim().fingerprint("f").unwrap().on_expired(OnExpired::Hold);
    let grant = granted(ledger::claim(&connection, &asked).unwrap());
    assert!(ledger::extend(&connection, grant.granted(), 2 * LEASE).unwrap());
    let Admission::InProgressElsewhere { retry_after: Some(wait) } = ledger::claim(&other, &claim()).unwrap()
    else {
        panic!("granted twice")
    };
    assert!(wait > LEASE, "{wait:?}");
    let reused = ledger::claim(&other, &claim().fingerprint("g").unwrap()).unwrap();
    assert!(matches!(reused, Admission::KeyReused));
    let failure = Failure { class: Some("timeout".to_owned()), message: None };
    let given_up = grant.give_up();
    assert!(ledger::fail(&connection, &given_up, &failure).unwrap());
    assert!(ledger::fail(&connection, &given_up, &failure).unwrap(), "said again");
    let grant = granted(ledger::claim(&other, &claim()).unwrap());
    assert!(!ledger::fail(&connection, &given_up, &failure).unwrap(), "somebody began anew");
    let transaction = connection.transaction().unwrap();
    let completion = Completion::cancelled(Answer::none());
    ledger::complete(&transaction, grant, &completion).unwrap();
    transaction.commit().unwrap();
    let entry = ledger::get(&other, "k").unwrap().unwrap();
    assert_eq!((entry.status, entry.outcome), (Status::Done, Some(Outcome::Cancelled)));
    assert_eq!((entry.attempts, entry.fingerprint.as_deref()), (2, Some("f")));
}

#[test]
fn a_dropped_grant_tells_its_hook_unless_it_was_completed_or_given_up() {
    let sqlite = Sqlite::new();
    let mut connection = open(&sqlite);
    let heard = Arc::new(Mutex::new(Vec::new()));
    let hear = || {
        let heard = Arc::clone(&heard);
        move |grant: posthaste_receiver::ledger::Unreported| heard.lock().unwrap().push(grant)
    };
    drop(granted(ledger::claim(&connection, &claim()).unwrap()).when_dropped(hear()));
    let dropped = heard.lock().unwrap().pop().unwrap();
    assert!(ledger::fail(&connection, &dropped, &Failure::default()).unwrap());
    let given_up = granted(ledger::claim(&connection, &claim()).unwrap()).when_dropped(hear()).give_up();
    assert!(ledger::fail(&connection, &given_up, &Failure::default()).unwrap());
    let grant = granted(ledger::claim(&connection, &claim()).unwrap()).when_dropped(hear());
    let transaction = connection.transaction().unwrap();
    ledger::commit(transaction, grant, &Completion::committed(Answer::none())).unwrap();
    assert!(heard.lock().unwrap().is_empty());
}

#[test]
fn a_database_that_is_busy_too_long_is_in_progress_elsewhere() {
    let sqlite = Sqlite::new();
    let (mut connection, other) = (open(&sqlite), open(&sqlite));
    connection.busy_timeout(Duration::ZERO).unwrap();
    other.execute_batch("BEGIN IMMEDIATE").unwrap();
    let said = ledger::claim(&connection, &claim()).unwrap();
    assert!(matches!(said, Admission::InProgressElsewhere { retry_after: Some(_) }), "{said:?}");
    let ran = ledger::one_tx(&mut connection, &claim(), |transaction, _| effect(transaction)).unwrap();
    assert!(matches!(ran, Ran::InProgressElsewhere { .. }), "{ran:?}");
}

#[test]
fn r_c7_a_row_that_makes_no_sense_is_an_error() {
    let sqlite = Sqlite::new();
    let connection = open(&sqlite);
    drop(granted(ledger::claim(&connection, &claim()).unwrap()));
    let broken = "PRAGMA ignore_check_constraints = ON; UPDATE webhook_events SET status = 'done', outcome = 'perhaps'; \
                  PRAGMA ignore_check_constraints = OFF";
    connection.execute_batch(broken).unwrap();
    let said = ledger::claim(&connection, &claim());
    assert!(matches!(said, Err(LedgerError::Database(_) | LedgerError::Row(_))), "{said:?}");
}

#[test]
fn what_no_ledger_takes_is_refused_before_it_is_asked() {
    assert_eq!(Claim::new("", LEASE), Err(ClaimError::Key));
    assert_eq!(Claim::new(&"k".repeat(322), LEASE), Err(ClaimError::Key));
    assert_eq!(Claim::new("a\0b", LEASE), Err(ClaimError::Key));
    assert_eq!(Claim::new("k", Duration::ZERO), Err(ClaimError::Lease));
    assert_eq!(Claim::new("k", Duration::from_hours(13)), Err(ClaimError::Lease));
    assert_eq!(claim().fingerprint(""), Err(ClaimError::Fingerprint));
    assert_eq!(claim().claim_id(&"x".repeat(129)), Err(ClaimError::ClaimId));
    assert!(Claim::new(&"k".repeat(321), LEASE).is_ok());
}

#[test]
fn r_c6_adopting_twice_is_harmless_and_a_bad_row_stops_it_whole() {
    let sqlite = Sqlite::new();
    let connection = sqlite.connect();
    let common = "CREATE TABLE webhook_events (event_key TEXT PRIMARY KEY, status TEXT, attempts INT, result TEXT, \
                  locked_until INT, created_at INT, updated_at INT); \
                  INSERT INTO webhook_events VALUES ('old', 'done', 1, NULL, 1764000000, 1764000000123, 1764000000), \
                  ('bad', 'finished', 1, NULL, NULL, 1764000000, 1764000000)";
    connection.execute_batch(common).unwrap();
    assert!(ledger::adopt(&connection).is_err());
    assert!(connection.is_autocommit(), "nothing is left open");
    connection.execute_batch("DELETE FROM webhook_events WHERE event_key = 'bad'").unwrap();
    ledger::adopt(&connection).unwrap();
    ledger::adopt(&connection).unwrap();
    let said = ledger::claim(&connection, &Claim::new("old", LEASE).unwrap()).unwrap();
    assert!(matches!(said, Admission::DuplicateDone(_)), "{said:?}");
    let created: String =
        connection.query_row("SELECT created_at FROM webhook_events", [], |row| row.get(0)).unwrap();
    assert_eq!(created, "2025-11-24 16:00:00.123");
}

#[test]
fn r_c9_purged_rows_are_given_to_the_archive() {
    let sqlite = Sqlite::new();
    let mut connection = open(&sqlite);
    ledger::two_tx(&mut connection, &claim(), |transaction, _| effect(transaction)).unwrap();
    let old = "UPDATE webhook_events SET updated_at = '2020-01-01 00:00:00.000'";
    connection.execute_batch(old).unwrap();
    let mut archived = Vec::new();
    let count = ledger::purge(&connection, Duration::from_hours(24), 10, |row| {
        archived.push((row.get::<_, String>("event_key")?, row.get::<_, Vec<u8>>("result_bytes")?));
        Ok(())
    });
    assert_eq!((count.unwrap(), archived), (1, vec![("k".to_owned(), vec![0, 0xff])]));
}

#[test]
fn the_files_that_are_printed_are_whole() {
    use posthaste_receiver::ledger::sql::{Dialect, file, files};
    for dialect in Dialect::ALL {
        assert_eq!(Dialect::from_name(dialect.name()), Some(dialect));
        let names: Vec<_> = files(dialect).iter().map(|(name, _)| *name).collect();
        let expected = [
            "table.sql",
            "adopt.sql",
            "index.sql",
            "claim.sql",
            "complete.sql",
            "fail.sql",
            "extend.sql",
            "reset.sql",
            "get.sql",
            "purge.sql",
        ];
        assert_eq!(names, expected);
        let folder = format!("{}/sql/{}", env!("CARGO_MANIFEST_DIR"), dialect.name());
        assert_eq!(std::fs::read_dir(folder).unwrap().count(), expected.len(), "each file is printed");
        assert!(files(dialect).iter().all(|(_, text)| text.starts_with("-- ") && text.ends_with(";\n")));
        assert_eq!(file(dialect, "claim.sql"), Some(files(dialect)[3].1));
    }
}
