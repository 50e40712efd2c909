//! A receiver that dies between any two statements, and a PostgreSQL that does: one effect, and the redelivery gets the
//! stored answer byte for byte.
//!
//! The receiver is this very program, started again with one delivery to work on and a point at which to die.

use std::{
    env,
    process::{Command, Stdio},
};

use crate::support::{self, Database, Ledger, Sqlite, Statements};

const LEASE_MS: i64 = 600_000;
const BYTES: &[u8] = b"\x00answer\xff";

pub(crate) const PLACE: &str = "LEDGER_TEST_PLACE";
pub(crate) const MODE: &str = "LEDGER_TEST_MODE";
pub(crate) const DIE_AT: &str = "LEDGER_TEST_DIE_AT";
const CHILD: &str = "kill::a_receiver_works_on_one_delivery";

/// How far a receiver comes: it dies before the step of this number; after the last it lives.
const STEPS: usize = 6;

/// One delivery, in one of the modes. What the sender is answered.
fn deliver(ledger: &mut Ledger<'_>, mode: &str, die_at: usize) -> Option<Vec<u8>> {
    let step = |number: usize| {
        if number == die_at {
            die();
        }
    };
    let claim_id = format!("{} {mode} {die_at}", std::process::id());
    step(0);
    if mode == "one_tx" {
        ledger.session.begin().unwrap();
        step(1);
    }
    let claimed = ledger.claim("k", &claim_id, LEASE_MS).unwrap();
    let Some(fence) = claimed.granted() else {
        if mode == "one_tx" {
            ledger.session.batch("ROLLBACK").unwrap();
        }
        return claimed.row.bytes("result_bytes");
    };
    if mode == "two_tx" {
        step(1);
        ledger.session.begin().unwrap();
    }
    step(2);
    ledger.effect("k", fence).unwrap();
    step(3);
    assert!(ledger.complete("k", fence, "committed", BYTES).unwrap());
    step(4);
    ledger.session.batch("COMMIT").unwrap();
    // The sender is not answered any more.
    step(5);
    Some(BYTES.to_vec())
}

/// As `kill -9` ends it: nothing is flushed, closed or rolled back by this process.
pub(crate) fn die() -> ! {
    let own = std::process::id().to_string();
    let sent = Command::new("kill").args(["-9", &own]).status();
    unreachable!("outlived kill -9: {sent:?}")
}

/// Alone it is a delivery like any other; with its environment set, the one that is killed.
#[test]
fn a_receiver_works_on_one_delivery() {
    let die_at = env::var(DIE_AT).map_or(STEPS, |text| text.parse().unwrap());
    let mode = env::var(MODE).unwrap_or_else(|_| "two_tx".to_owned());
    let own = Sqlite::new();
    support::prepare(&mut *own.session(), own.dialect());
    let database = open(&env::var(PLACE).unwrap_or_else(|_| own.place()));
    let statements = Statements::ours(database.dialect());
    let answer = deliver(&mut statements.on(&*database), &mode, die_at);
    assert_eq!(answer.as_deref(), Some(BYTES));
}

/// Runs the test of that name on one delivery, in a process of its own that dies at that step. Whether it lived.
pub(crate) fn run(test: &str, place: &str, mode: &str, die_at: usize) -> bool {
    let mut child = Command::new(env::current_exe().unwrap());
    child.args(["--exact", test]).env(PLACE, place).env(MODE, mode).env(DIE_AT, die_at.to_string());
    child.stdout(Stdio::null()).stderr(Stdio::null()).status().unwrap().success()
}

#[test]
fn r_c2_c4_a_receiver_killed_between_any_two_statements_does_the_effect_once() {
    each_place(|database, place| {
        let statements = Statements::ours(database.dialect());
        for mode in ["two_tx", "one_tx"] {
            for die_at in 0..STEPS {
                support::prepare(&mut *database.session(), database.dialect());
                let context = format!("{}, {mode}, killed at {die_at}", database.name());
                assert!(!run(CHILD, place, mode, die_at), "{context}: it lived");
                let mut ledger = statements.on(database);
                assert_eq!(ledger.effects("k"), i64::from(die_at == 5), "{context}");
                if mode == "two_tx" && (1..5).contains(&die_at) {
                    let path = ledger.claim("k", "too early", LEASE_MS).unwrap().path;
                    assert_eq!(path, "in_progress_elsewhere", "{context}: its lease still holds");
                }
                ledger.pass(2 * LEASE_MS);
                // The redelivery, and one more.
                for _ in 0..2 {
                    let answer = deliver(&mut ledger, mode, STEPS);
                    assert_eq!(answer.as_deref(), Some(BYTES), "{context}");
                }
                assert_eq!(ledger.effects("k"), 1, "{context}");
                assert!(run(CHILD, place, mode, STEPS), "{context}: another process is answered the same");
                assert_eq!(ledger.effects("k"), 1, "{context}");
            }
        }
    });
}

fn open(place: &str) -> Box<dyn Database> {
    #[cfg(feature = "services-tests")]
    if let Some(postgres) = support::Postgres::at(place) {
        return Box::new(postgres);
    }
    Box::new(Sqlite::at(place))
}

fn each_place(check: impl Fn(&dyn Database, &str)) {
    let sqlite = Sqlite::new();
    check(&sqlite, &sqlite.place());
    #[cfg(feature = "services-tests")]
    for level in ["read committed", "serializable"] {
        let postgres = support::Postgres::new(support::Server::shared(), level);
        check(&postgres, &postgres.place());
    }
}

#[cfg(feature = "services-tests")]
#[test]
fn r_c2_c4_a_postgresql_killed_in_the_middle_does_the_effect_once() {
    use posthaste_receiver::ledger::sql::Dialect;

    let server = support::Server::start();
    let database = support::Postgres::new(&server, "read committed").durable();
    let statements = Statements::ours(Dialect::Postgres);
    for mode in ["two_tx", "one_tx"] {
        for committed in [false, true] {
            let context = format!("{mode}, committed: {committed}");
            support::prepare(&mut *database.session(), Dialect::Postgres);
            let mut ledger = statements.on(&database);
            if mode == "one_tx" {
                ledger.session.begin().unwrap();
            }
            let fence = ledger.claim("k", "x", LEASE_MS).unwrap().granted().unwrap();
            if mode == "two_tx" {
                ledger.session.begin().unwrap();
            }
            ledger.effect("k", fence).unwrap();
            assert!(ledger.complete("k", fence, "committed", BYTES).unwrap());
            if committed {
                ledger.session.batch("COMMIT").unwrap();
            }
            let backend = "SELECT pg_backend_pid()::text AS pid";
            let backend = ledger.session.query(backend, &[]).unwrap()[0].text("pid").unwrap();
            server.kill(&backend);
            assert!(committed || ledger.session.batch("COMMIT").is_err(), "{context}: it lived");
            drop(ledger);
            server.up();
            let mut ledger = statements.on(&database);
            assert_eq!(ledger.effects("k"), i64::from(committed), "{context}");
            ledger.pass(2 * LEASE_MS);
            for _ in 0..2 {
                assert_eq!(deliver(&mut ledger, mode, STEPS).as_deref(), Some(BYTES), "{context}");
            }
            assert_eq!(ledger.effects("k"), 1, "{context}");
        }
    }
}
