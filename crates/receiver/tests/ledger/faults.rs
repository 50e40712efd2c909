//! Statements and procedures that people copy, with the fault that each has. A scenario tells right from wrong: ours
//! passes it, the faulty one does not. The statements are in `tests/faulty`.

use posthaste_receiver::ledger::sql::Dialect;

use crate::support::{self, Answer, Database, Statements};

const LEASE_MS: i64 = 3_600_000;

/// What a scenario found wrong.
type Verdict = Result<(), String>;
type Scenario = fn(&Statements, &dyn Database) -> Verdict;

/// Holds for ours, fails for the faulty one, on every database that has it.
fn tells(scenario: Scenario, name: &str, faulty: &str) {
    support::each(|database| {
        let ours = Statements::ours(database.dialect());
        assert_eq!(scenario(&ours, database), Ok(()), "ours, {}", database.name());
        support::prepare(&mut *database.session(), database.dialect());
        let verdict = scenario(&ours.with(name, faulty), database);
        println!("{}, {faulty}: {verdict:?}", database.name());
        assert!(verdict.is_err(), "{faulty} passes, {}", database.name());
        support::prepare(&mut *database.session(), database.dialect());
    });
}

fn expect(holds: bool, what: &str) -> Verdict {
    if holds { Ok(()) } else { Err(what.to_owned()) }
}

fn done_stays_done(statements: &Statements, database: &dyn Database) -> Verdict {
    let mut ledger = statements.on(database);
    let fence = ledger.claim("k", "x", LEASE_MS).unwrap().granted().unwrap();
    assert!(ledger.complete("k", fence, "committed", b"").unwrap());
    ledger.pass(2 * LEASE_MS);
    let path = ledger.claim("k", "y", LEASE_MS).unwrap().path;
    expect(path == "duplicate_done", &format!("a done key was {path}"))
}

fn one_grant_in_force_after_a_failure(statements: &Statements, database: &dyn Database) -> Verdict {
    let (mut ledger, mut other) = (statements.on(database), statements.on(database));
    let fence = ledger.claim("k", "x", LEASE_MS).unwrap().granted().unwrap();
    assert!(ledger.fail("k", fence).unwrap());
    let first = ledger.claim("k", "y", LEASE_MS).unwrap().granted();
    let second = other.claim("k", "z", LEASE_MS).unwrap().granted();
    expect(first.is_some() && second.is_none(), "two grants in force")
}

fn one_grant_in_force(statements: &Statements, database: &dyn Database) -> Verdict {
    let (mut ledger, mut other) = (statements.on(database), statements.on(database));
    ledger.claim("k", "x", LEASE_MS).unwrap().granted().unwrap();
    expect(other.claim("k", "y", LEASE_MS).unwrap().granted().is_none(), "two grants in force")
}

/// A worker's lease runs out, another takes over; then the first one comes back.
fn taken_over(
    statements: &Statements,
    database: &dyn Database,
    late: fn(&mut support::Ledger<'_>, i64) -> Answer<bool>,
) -> Verdict {
    let (mut old, mut new) = (statements.on(database), statements.on(database));
    let fence = old.claim("k", "x", LEASE_MS).unwrap().granted().unwrap();
    old.pass(2 * LEASE_MS);
    let fence = fence - 2 * LEASE_MS * 1000;
    let taken = new.claim("k", "y", LEASE_MS).unwrap().granted().unwrap();
    expect(!late(&mut old, fence).unwrap(), "the old worker's report counted")?;
    expect(new.complete("k", taken, "committed", b"").unwrap(), "the new worker's did not")
}

fn a_stale_complete_is_refused(statements: &Statements, database: &dyn Database) -> Verdict {
    taken_over(statements, database, |old, fence| old.complete("k", fence, "committed", b"old"))
}

fn a_stale_fail_is_refused(statements: &Statements, database: &dyn Database) -> Verdict {
    taken_over(statements, database, |old, fence| old.fail("k", fence))
}

/// The answer to COMMIT is lost, and the worker says fail.
fn done_is_not_failed(statements: &Statements, database: &dyn Database) -> Verdict {
    let mut ledger = statements.on(database);
    let fence = ledger.claim("k", "x", LEASE_MS).unwrap().granted().unwrap();
    assert!(ledger.complete("k", fence, "committed", b"").unwrap());
    expect(!ledger.fail("k", fence).unwrap(), "a done key was failed")
}

/// A person sees the key in progress and asks for a reset; meanwhile it is done.
fn a_reset_sees_what_it_saw(statements: &Statements, database: &dyn Database) -> Verdict {
    let mut ledger = statements.on(database);
    let fence = ledger.claim("k", "x", LEASE_MS).unwrap().granted().unwrap();
    assert!(ledger.complete("k", fence, "committed", b"").unwrap());
    expect(!ledger.reset("k", fence, "in_progress", "hangs").unwrap(), "a done key was reset unseen")
}

/// A row is deleted by hand while its worker runs.
fn fences_do_not_restart(statements: &Statements, database: &dyn Database) -> Verdict {
    let mut ledger = statements.on(database);
    let fence = ledger.claim("k", "x", LEASE_MS).unwrap().granted().unwrap();
    // The clock may need a moment to go on.
    let anew = (0..500).map(|_| {
        ledger.session.batch("DELETE FROM webhook_events").unwrap();
        ledger.claim("k", "y", LEASE_MS).unwrap().granted().unwrap()
    });
    expect(anew.into_iter().any(|anew| anew > fence), "the fence came again")?;
    expect(!ledger.complete("k", fence, "committed", b"").unwrap(), "a worker of a deleted row is let in")
}

fn every_claim_says_its_path(statements: &Statements, database: &dyn Database) -> Verdict {
    let mut ledger = statements.on(database);
    let fence = ledger.claim("k", "x", LEASE_MS).unwrap().granted().unwrap();
    let elsewhere = ledger.claim_with("k", Some("y"), LEASE_MS, None, "retake").unwrap();
    expect(elsewhere.is_some_and(|claimed| claimed.path == "in_progress_elsewhere"), "nothing came back")?;
    assert!(ledger.complete("k", fence, "committed", b"").unwrap());
    let done = ledger.claim_with("k", Some("y"), LEASE_MS, None, "retake").unwrap();
    expect(done.is_some_and(|claimed| claimed.path == "duplicate_done"), "nothing came back")
}

fn an_invalid_claim_is_an_error(statements: &Statements, database: &dyn Database) -> Verdict {
    let mut ledger = statements.on(database);
    let said = ledger.claim_with("k", Some("x"), LEASE_MS, None, "sometimes");
    expect(said.is_err(), &format!("an event that was not stored: {said:?}"))
}

#[test]
fn r_c3_fault_1_retaking_by_the_lease_alone_runs_done_keys_again() {
    tells(done_stays_done, "claim.sql", "claim_retakes_by_lease_alone.sql");
}

#[test]
fn r_c3_fault_2_a_retake_that_stays_failed_lets_two_run() {
    tells(one_grant_in_force_after_a_failure, "claim.sql", "claim_leaves_failed.sql");
}

#[test]
fn r_c3_fault_3_reports_without_a_fence_let_stale_workers_in() {
    tells(a_stale_complete_is_refused, "complete.sql", "complete_by_key.sql");
    tells(a_stale_complete_is_refused, "complete.sql", "complete_by_status.sql");
    tells(a_stale_fail_is_refused, "fail.sql", "fail_by_key.sql");
}

#[test]
fn r_c3_a_takeover_that_keeps_the_fence_lets_stale_workers_in() {
    tells(a_stale_complete_is_refused, "claim.sql", "claim_keeps_fence.sql");
}

#[test]
fn r_c3_a_fail_that_asks_no_status_opens_done_keys_again() {
    tells(done_is_not_failed, "fail.sql", "fail_by_fence.sql");
    tells(done_is_not_failed, "fail.sql", "fail_by_key.sql");
}

#[test]
fn r_c1_a_takeover_before_the_lease_ends_lets_two_run() {
    tells(one_grant_in_force, "claim.sql", "claim_before_lease_ends.sql");
}

#[test]
fn r_c9_a_reset_that_asks_the_fence_alone_undoes_done() {
    tells(a_reset_sees_what_it_saw, "reset.sql", "reset_by_fence.sql");
}

#[test]
fn r_c3_a_fence_that_starts_at_one_comes_again() {
    tells(fences_do_not_restart, "claim.sql", "claim_starts_at_one.sql");
}

#[test]
fn r_c1_an_update_with_where_answers_nothing() {
    tells(every_claim_says_its_path, "claim.sql", "claim_where.sql");
}

#[test]
fn r_c7_fault_5_insert_or_ignore_loses_invalid_events() {
    let sqlite = support::Sqlite::new();
    let ours = Statements::ours(Dialect::Sqlite);
    support::prepare(&mut *sqlite.session(), Dialect::Sqlite);
    assert_eq!(an_invalid_claim_is_an_error(&ours, &sqlite), Ok(()));
    let faulty = ours.with("claim.sql", "claim_or_ignore.sql");
    assert!(an_invalid_claim_is_an_error(&faulty, &sqlite).is_err());
}

/// A crash between effect and entry: the lease ends, the next delivery runs. How many effects there are then.
fn effects_after_a_crash(database: &dyn Database, apart: bool) -> i64 {
    let ours = Statements::ours(database.dialect());
    support::prepare(&mut *database.session(), database.dialect());
    let mut crashing = ours.on(database);
    let fence = crashing.claim("k", "x", LEASE_MS).unwrap().granted().unwrap();
    crashing.session.begin().unwrap();
    crashing.effect("k", fence).unwrap();
    if apart {
        crashing.session.batch("COMMIT").unwrap();
    }
    drop(crashing);
    let mut next = ours.on(database);
    next.pass(2 * LEASE_MS);
    let fence = next.claim("k", "y", LEASE_MS).unwrap().granted().unwrap();
    next.session.begin().unwrap();
    next.effect("k", fence).unwrap();
    assert!(next.complete("k", fence, "committed", b"").unwrap());
    next.session.batch("COMMIT").unwrap();
    next.effects("k")
}

#[test]
fn r_c2_fault_4_an_effect_apart_from_its_entry_happens_twice_after_a_crash() {
    support::each(|database| {
        assert_eq!(effects_after_a_crash(database, false), 1, "ours, {}", database.name());
        assert_eq!(effects_after_a_crash(database, true), 2, "apart, {}", database.name());
    });
}

/// A worker is slow, another takes over and commits; then the slow one finds no row. How many effects there are.
fn effects_after_a_takeover(database: &dyn Database, heeds: bool) -> i64 {
    let ours = Statements::ours(database.dialect());
    support::prepare(&mut *database.session(), database.dialect());
    let (mut slow, mut quick) = (ours.on(database), ours.on(database));
    let fence = slow.claim("k", "x", LEASE_MS).unwrap().granted().unwrap();
    slow.pass(2 * LEASE_MS);
    let fence = fence - 2 * LEASE_MS * 1000;
    let taken = quick.claim("k", "y", LEASE_MS).unwrap().granted().unwrap();
    quick.session.begin().unwrap();
    quick.effect("k", taken).unwrap();
    assert!(quick.complete("k", taken, "committed", b"").unwrap());
    quick.session.batch("COMMIT").unwrap();
    slow.session.begin().unwrap();
    slow.effect("k", fence).unwrap();
    let counted = slow.complete("k", fence, "committed", b"").unwrap();
    assert!(!counted);
    slow.session.batch(if heeds { "ROLLBACK" } else { "COMMIT" }).unwrap();
    quick.effects("k")
}

#[test]
fn r_c2_committing_in_spite_of_no_row_does_the_effect_twice() {
    support::each(|database| {
        assert_eq!(effects_after_a_takeover(database, true), 1, "ours, {}", database.name());
        assert_eq!(effects_after_a_takeover(database, false), 2, "heedless, {}", database.name());
    });
}

#[cfg(feature = "services-tests")]
mod races {
    //! What a claim says that met another transaction's: only PostgreSQL has it wait and go on.

    use super::*;
    use crate::support::{Claimed, Postgres, Server};

    /// The entry has failed before, or is new; the first claim's transaction completes, leaves the key in progress, or
    /// rolls back. What the second claim is told, which came in between.
    fn second(statements: &Statements, database: &dyn Database, failed: bool, end: &str) -> Option<Claimed> {
        support::prepare(&mut *database.session(), database.dialect());
        let (mut first, mut watch) = (statements.on(database), statements.on(database));
        let ours = Statements::ours(database.dialect());
        if failed {
            let mut before = ours.on(database);
            let fence = before.claim("k", "w", LEASE_MS).unwrap().granted().unwrap();
            before.fail("k", fence).unwrap();
        }
        first.session.begin().unwrap();
        let fence = first.claim("k", "x", LEASE_MS).unwrap().granted().unwrap();
        if end == "done" {
            assert!(first.complete("k", fence, "committed", b"r1").unwrap());
        }
        let mut waiting = statements.on(database);
        waiting.session.batch("SET lock_timeout = 0").unwrap();
        let pid = "SELECT pg_backend_pid()::text AS pid";
        let pid = waiting.session.query(pid, &[]).unwrap()[0].text("pid").unwrap();
        std::thread::scope(|scope| {
            let second =
                scope.spawn(move || waiting.claim_with("k", Some("y"), LEASE_MS, None, "retake").unwrap());
            let blocked = format!("SELECT count(*) AS n FROM pg_locks WHERE NOT granted AND pid = {pid}");
            while watch.session.query(&blocked, &[]).unwrap()[0].int("n") == Some(0) {}
            first.session.batch(if end == "rolled back" { "ROLLBACK" } else { "COMMIT" }).unwrap();
            second.join().unwrap()
        })
    }

    #[test]
    fn r_c1_a_claim_that_met_another_is_told_the_truth() {
        let database = Postgres::new(Server::shared(), "read committed");
        let ours = Statements::ours(Dialect::Postgres);
        let told = |statements: &Statements, failed, end| {
            second(statements, &database, failed, end).map(|claimed| claimed.path)
        };
        for failed in [false, true] {
            assert_eq!(told(&ours, failed, "done").as_deref(), Some("duplicate_done"));
            assert_eq!(told(&ours, failed, "in progress").as_deref(), Some("in_progress_elsewhere"));
        }
        assert_eq!(told(&ours, false, "rolled back").as_deref(), Some("first_run"));
        assert_eq!(told(&ours, true, "rolled back").as_deref(), Some("retry_after_failure"));
        let done = second(&ours, &database, false, "done").unwrap();
        assert_eq!(done.row.bytes("result_bytes").as_deref(), Some(&b"r1"[..]));

        let plain = ours.clone().with("claim.sql", "claim_where.sql");
        assert_eq!(told(&plain, false, "done"), None);
        let read = ours.with("claim.sql", "claim_where_then_read.sql");
        assert_eq!(told(&read, false, "done"), None, "its snapshot is older than the entry");
        assert_eq!(told(&read, true, "done").as_deref(), Some("failed"), "its snapshot is older than done");
    }

    #[test]
    fn r_c2_a_claim_that_waits_too_long_is_refused_as_locked() {
        let database = Postgres::new(Server::shared(), "read committed");
        support::prepare(&mut *database.session(), Dialect::Postgres);
        let ours = Statements::ours(Dialect::Postgres);
        let (mut first, mut second) = (ours.on(&database), ours.on(&database));
        first.session.begin().unwrap();
        first.claim("k", "x", LEASE_MS).unwrap();
        second.session.batch("SET lock_timeout = '50ms'").unwrap();
        assert_eq!(second.claim("k", "y", LEASE_MS), Err(support::Refusal::Locked));
    }
}
