//! One rule of the table or a statement each.

use posthaste_receiver::ledger::sql::{self, Dialect};

use crate::support::{self, Ledger, Refusal, Session, Statements};

const HOUR_MS: i64 = 3_600_000;

fn each(mut check: impl FnMut(&mut Ledger<'_>, &mut Ledger<'_>)) {
    support::each(|database| {
        let statements = Statements::ours(database.dialect());
        println!("on {}", database.name());
        check(&mut statements.on(database), &mut statements.on(database));
    });
}

#[allow(clippy::needless_pass_by_value, reason = "reads better where it is called")]
fn is_constraint<T: std::fmt::Debug>(answer: Result<T, Refusal>) {
    assert!(matches!(answer, Err(Refusal::Constraint(_))), "{answer:?}");
}

#[test]
fn r_c7_invalid_rows_are_errors_and_never_duplicates() {
    each(|ledger, _| {
        is_constraint(ledger.claim_with("", Some("x"), 1, None, "retake"));
        is_constraint(ledger.claim_with(&"k".repeat(322), Some("x"), 1, None, "retake"));
        is_constraint(ledger.claim_with("k", None, 1, None, "retake"));
        is_constraint(ledger.claim_with("k", Some(""), 1, None, "retake"));
        is_constraint(ledger.claim_with("k", Some(&"x".repeat(129)), 1, None, "retake"));
        is_constraint(ledger.claim_with("k", Some("x"), 1, Some(""), "retake"));
        is_constraint(ledger.claim_with("k", Some("x"), 1, Some(&"f".repeat(257)), "retake"));
        is_constraint(ledger.claim_with("k", Some("x"), 1, None, "sometimes"));
        assert!(ledger.get("k").is_none(), "nothing was written");
        let fence = ledger.claim(&"k".repeat(321), "x", HOUR_MS).unwrap().granted().unwrap();
        is_constraint(ledger.complete(&"k".repeat(321), fence, "perhaps", b""));
        is_constraint(ledger.reset(&"k".repeat(321), fence, "in_progress", ""));
        assert_eq!(ledger.get(&"k".repeat(321)).unwrap().text("status").unwrap(), "in_progress");
    });
}

#[test]
fn rows_that_no_statement_of_ours_writes_are_refused() {
    each(|ledger, _| {
        ledger.claim("k", "x", HOUR_MS).unwrap();
        for wrong in [
            "status = 'finished'",
            "status = NULL",
            "attempts = -1",
            "locked_until = NULL",
            "fence = -1",
            "claim_id = NULL",
            "previous = NULL",
            "previous = 'none of these'",
            "outcome = 'committed'",
            "status = 'done'",
            "result_type = 'text/plain'",
            "result_status = 200",
            "status = 'done', outcome = 'committed', result_status = 99",
            "status = 'done', outcome = 'committed', result_status = 600",
            "reset_reason = 'no time'",
        ] {
            is_constraint(ledger.session.batch(&format!("UPDATE webhook_events SET {wrong}")));
        }
        is_constraint(ledger.session.batch("INSERT INTO webhook_events (event_key) VALUES ('n')"));
        is_constraint(
            ledger.session.batch("INSERT INTO webhook_events (event_key, status) VALUES ('k', 'failed')"),
        );
    });
}

#[test]
fn r_c4_the_stored_answer_comes_back_byte_for_byte() {
    let bytes: Vec<u8> = (0..=255).chain([0, 0xff, 0xfe, b'\n', b'"']).collect();
    each(|ledger, other| {
        let fence = ledger.claim("k", "x", HOUR_MS).unwrap().granted().unwrap();
        assert!(ledger.complete("k", fence, "committed", &bytes).unwrap());
        let again = other.claim("k", "y", HOUR_MS).unwrap();
        assert_eq!((again.path.as_str(), again.fence), ("duplicate_done", None));
        assert_eq!(again.row.bytes("result_bytes").unwrap(), bytes);
        assert_eq!(again.row.text("result_type").unwrap(), "application/octet-stream");
        assert_eq!(again.row.int("result_status"), Some(200));
        // The first answer stays, whatever a repeat says.
        assert!(ledger.complete("k", fence, "committed", b"another").unwrap());
        assert_eq!(other.claim("k", "z", HOUR_MS).unwrap().row.bytes("result_bytes").unwrap(), bytes);
        assert!(!ledger.complete("k", fence, "cancelled", b"").unwrap(), "done is final");
    });
}

#[test]
fn r_c5_a_redelivery_of_a_cancelled_key_says_so() {
    each(|ledger, other| {
        let fence = ledger.claim("k", "x", HOUR_MS).unwrap().granted().unwrap();
        assert!(ledger.complete("k", fence, "cancelled", b"paid already").unwrap());
        let again = other.claim("k", "y", HOUR_MS).unwrap();
        assert_eq!(
            (again.path.as_str(), again.row.text("outcome").as_deref()),
            ("duplicate_done", Some("cancelled"))
        );
    });
}

#[test]
fn r_c3_a_done_entry_is_never_taken_over_however_old() {
    each(|ledger, other| {
        let fence = ledger.claim("k", "x", 1).unwrap().granted().unwrap();
        assert!(ledger.complete("k", fence, "committed", b"").unwrap());
        ledger.pass(20 * 365 * 24 * HOUR_MS);
        assert_eq!(other.claim("k", "x", 1).unwrap().path, "duplicate_done");
        assert!(!other.fail("k", ledger.get("k").unwrap().int("fence").unwrap()).unwrap());
        assert!(!other.extend("k", ledger.get("k").unwrap().int("fence").unwrap(), 1).unwrap());
    });
}

#[test]
fn r_c3_fences_never_restart_after_a_purge_or_a_reset() {
    each(|ledger, _| {
        let mut highest = 0;
        for round in 0..3 {
            for claim in 0..5 {
                let fence =
                    ledger.claim("k", &format!("{round}.{claim}"), HOUR_MS).unwrap().granted().unwrap();
                assert!(fence > highest, "{fence} after {highest}");
                highest = fence;
                assert!(ledger.fail("k", fence).unwrap());
            }
            assert!(ledger.reset("k", highest, "failed", "asked").unwrap());
            highest += 1;
            ledger.pass(2 * HOUR_MS);
            assert_eq!(ledger.purge(HOUR_MS), ["k"]);
            // The row was as old as that; its fence came from a clock of that time.
            highest -= 2 * HOUR_MS * 1000;
            assert!(ledger.get("k").is_none());
        }
    });
}

#[test]
fn r_c9_a_purge_takes_only_what_is_settled_and_old() {
    each(|ledger, _| {
        for (key, report) in [("done", 1), ("failed", 2), ("running", 3)] {
            let fence = ledger.claim(key, "x", 1).unwrap().granted().unwrap();
            match report {
                1 => assert!(ledger.complete(key, fence, "committed", b"kept").unwrap()),
                2 => assert!(ledger.fail(key, fence).unwrap()),
                _ => {}
            }
        }
        assert_eq!(ledger.purge(0), [""; 0], "an hour at least, whatever is said");
        ledger.pass(2 * HOUR_MS);
        assert_eq!(ledger.purge(3 * HOUR_MS), [""; 0]);
        let mut purged = ledger.purge(HOUR_MS);
        purged.sort();
        assert_eq!(purged, ["done", "failed"]);
        assert!(ledger.get("running").is_some(), "nobody knows what became of it");
    });
}

#[test]
fn r_c9_a_reset_names_what_it_saw_and_fences_an_old_worker_off() {
    each(|ledger, operator| {
        let fence = ledger.claim("k", "x", HOUR_MS).unwrap().granted().unwrap();
        assert!(!operator.reset("k", fence, "done", "wrong status").unwrap());
        assert!(!operator.reset("k", fence + 1, "in_progress", "wrong fence").unwrap());
        assert!(operator.reset("k", fence, "in_progress", "the worker is gone").unwrap());
        assert!(!ledger.complete("k", fence, "committed", b"").unwrap());
        assert!(!ledger.fail("k", fence).unwrap());
        let entry = ledger.get("k").unwrap();
        assert_eq!(entry.text("reset_reason").as_deref(), Some("the worker is gone"));
        assert_eq!(entry.text("reset_by").as_deref(), Some("ops"));
        let again = ledger.claim("k", "y", HOUR_MS).unwrap();
        assert_eq!((again.path.as_str(), again.granted()), ("retry_after_failure", Some(fence + 2)));
    });
}

#[test]
fn a_claim_whose_answer_was_lost_gets_its_own_grant_again() {
    each(|ledger, other| {
        let first = ledger.claim("k", "x", HOUR_MS).unwrap();
        let again = other.claim("k", "x", HOUR_MS).unwrap();
        assert_eq!((again.path, again.fence), (first.path, first.fence));
        let elsewhere = other.claim("k", "y", HOUR_MS).unwrap();
        assert_eq!((elsewhere.path.as_str(), elsewhere.fence), ("in_progress_elsewhere", None));
        let wait = elsewhere.row.int("retry_after_ms").unwrap();
        assert!((1..=HOUR_MS).contains(&wait), "{wait}");
    });
}

#[test]
fn r_a10_another_payload_under_the_same_key_is_told_and_changes_nothing() {
    each(|ledger, other| {
        let claim = |ledger: &mut Ledger<'_>, id: &str, fingerprint| {
            ledger.claim_with("k", Some(id), HOUR_MS, fingerprint, "retake").unwrap().unwrap()
        };
        let fence = claim(ledger, "x", Some("one")).granted().unwrap();
        let before = ledger.get("k").map(untimed);
        assert_eq!(claim(other, "y", Some("two")).path, "key_reused");
        assert_eq!(claim(other, "x", Some("two")).path, "key_reused", "not even to the same caller");
        assert_eq!(ledger.get("k").map(untimed), before);
        assert!(ledger.fail("k", fence).unwrap());
        assert_eq!(claim(other, "y", Some("two")).path, "key_reused");
        let fence = claim(other, "y", None).granted().unwrap();
        assert!(other.complete("k", fence, "committed", b"").unwrap());
        assert_eq!(claim(other, "z", Some("two")).path, "key_reused");
        assert_eq!(claim(other, "z", Some("one")).path, "duplicate_done");
    });
}

/// An entry without what is left of its lease.
fn untimed(mut entry: support::Entry) -> support::Entry {
    entry.0.remove("retry_after_ms");
    entry
}

#[test]
fn a_grant_on_hold_is_not_taken_over_until_a_person_resets_it() {
    each(|ledger, other| {
        let claimed = ledger.claim_with("k", Some("x"), 1, None, "hold").unwrap().unwrap();
        let fence = claimed.granted().unwrap();
        ledger.pass(HOUR_MS);
        let fence = fence - HOUR_MS * 1000;
        let elsewhere = other.claim("k", "y", HOUR_MS).unwrap();
        assert_eq!(
            (elsewhere.path.as_str(), elsewhere.row.int("retry_after_ms")),
            ("in_progress_elsewhere", None)
        );
        assert_eq!(
            other.claim("k", "x", HOUR_MS).unwrap().granted(),
            Some(fence),
            "its own caller may go on"
        );
        assert!(!ledger.extend("k", fence, HOUR_MS).unwrap(), "what ran out is not revived");
        assert!(other.reset("k", fence, "in_progress", "looked: nothing happened").unwrap());
        assert!(other.claim("k", "y", HOUR_MS).unwrap().granted().is_some());
    });
}

#[test]
fn r_c6_a_table_of_the_common_shape_is_adopted_and_its_rows_count() {
    support::each(|database| {
        let statements = Statements::ours(database.dialect());
        let mut ledger = statements.on(database);
        common_shape(&mut *ledger.session, database.dialect());
        let adopt = sql::file(database.dialect(), "adopt.sql").unwrap();
        ledger.session.batch(adopt).unwrap();
        let again = ledger.session.batch(adopt);
        match database.dialect() {
            Dialect::Postgres => again.unwrap(),
            Dialect::Sqlite => {
                assert!(again.unwrap_err().to_string().contains("duplicate column name: fence"));
                ledger.session.batch("ROLLBACK").unwrap();
            }
        }
        if database.dialect() == Dialect::Postgres {
            // It waits for the transactions of other tests.
            ledger.session.batch("SET lock_timeout = 0").unwrap();
        }
        ledger.session.batch(sql::file(database.dialect(), "index.sql").unwrap()).unwrap();
        let done = ledger.claim("old done", "x", HOUR_MS).unwrap();
        assert_eq!(done.path, "duplicate_done");
        assert_eq!(done.row.bytes("result_bytes").as_deref(), Some(&br#"{"paid": true}"#[..]));
        assert_eq!(done.row.text("result_type").as_deref(), Some("application/json"));
        assert_eq!(done.row.text("outcome").as_deref(), Some("committed"));
        let failed = ledger.claim("old failed", "x", HOUR_MS).unwrap();
        assert_eq!((failed.path.as_str(), failed.fence), ("retry_after_failure", Some(1)));
        let stale = ledger.claim("old stale", "x", HOUR_MS).unwrap();
        assert_eq!((stale.path.as_str(), stale.row.int("attempts")), ("retry_after_failure", Some(4)));
        let running = ledger.claim("old running", "x", HOUR_MS).unwrap();
        assert_eq!(running.path, "in_progress_elsewhere");
        let new = ledger.claim("new", "x", HOUR_MS).unwrap();
        assert!(ledger.complete("new", new.granted().unwrap(), "committed", b"a").unwrap());
        // A program of before works on meanwhile, and finishes what it began.
        let old = "UPDATE webhook_events SET status = 'done' WHERE event_key = 'old running'";
        ledger.session.batch(old).unwrap();
        assert_eq!(ledger.claim("old running", "x", HOUR_MS).unwrap().path, "duplicate_done");
        is_constraint(ledger.claim("", "x", HOUR_MS));
        is_constraint(
            ledger.session.batch("INSERT INTO webhook_events (event_key, status) VALUES ('n', 'new')"),
        );
        support::prepare(&mut *database.session(), database.dialect());
    });
}

fn common_shape(session: &mut dyn Session, dialect: Dialect) {
    let (time, json, now, later) = match dialect {
        Dialect::Postgres => ("timestamptz", "jsonb", "now()", "now() + interval '1 hour'"),
        Dialect::Sqlite => ("DATETIME", "TEXT", "CURRENT_TIMESTAMP", "datetime('now', '+1 hour')"),
    };
    session.batch("DROP TABLE webhook_events").unwrap();
    session
        .batch(&format!(
            "CREATE TABLE webhook_events (event_key TEXT PRIMARY KEY, status TEXT NOT NULL, attempts INT NOT NULL, \
             result {json}, locked_until {time}, created_at {time} NOT NULL DEFAULT {now}, \
             updated_at {time} NOT NULL DEFAULT {now}, team TEXT)"
        ))
        .unwrap();
    session
        .batch(&format!(
            "INSERT INTO webhook_events (event_key, status, attempts, result, locked_until) VALUES \
             ('old done', 'done', 1, '{{\"paid\": true}}', {now}), ('old failed', 'failed', 2, NULL, NULL), \
             ('old stale', 'in_progress', 3, NULL, {now}), ('old running', 'in_progress', 1, NULL, {later})"
        ))
        .unwrap();
}
