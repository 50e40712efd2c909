//! Every table is strict, and every CHECK refuses what it is there for.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use rusqlite::{Connection, types::Value};

/// A good row of each table, column by column; each bad row is a good one with some cells changed.
const TABLES: &[(&str, &[(&str, &str)])] = &[
    ("meta", &[("singleton", "1"), ("epoch", "1"), ("created_at", "0")]),
    ("tenants", &[("tenant", "1"), ("name", "'t'"), ("created_at", "0")]),
    ("lanes", &[("tenant", "1"), ("lane", "1"), ("destination", "'d'")]),
    (
        "destinations",
        &[
            ("tenant", "1"),
            ("id", "'d'"),
            ("kind", "'queue'"),
            ("lane", "1"),
            ("config", "'{}'"),
            ("managed_by", "'api'"),
            ("enabled", "1"),
            ("created_at", "0"),
            ("updated_at", "0"),
        ],
    ),
    (
        "api_keys",
        &[
            ("tenant", "1"),
            ("id", "zeroblob(16)"),
            ("name", "'n'"),
            ("secret_hash", "zeroblob(32)"),
            ("scopes", "''"),
            ("created_at", "0"),
        ],
    ),
    ("keys", &[("tenant", "1"), ("key", "'k'"), ("kind", "'key'"), ("message", "zeroblob(16)")]),
    ("keys_new", &[("tenant", "1"), ("key", "'k'"), ("kind", "'key'"), ("message", "zeroblob(16)")]),
    (
        "messages",
        &[
            ("tenant", "1"),
            ("id", "zeroblob(16)"),
            ("key", "'k'"),
            ("accepted_at", "0"),
            ("jobs_total", "1"),
            ("fingerprint", "zeroblob(80)"),
            ("correlation_id", "''"),
            ("payload", "x''"),
        ],
    ),
    (
        "fanouts",
        &[("seq", "1"), ("tenant", "1"), ("message", "zeroblob(16)"), ("due_at", "0"), ("targets", "x'01'")],
    ),
    ("jobs", JOB),
    ("jobs_done", DONE),
    ("attempts", ATTEMPT),
    ("custody", &[("tenant", "1"), ("message", "zeroblob(16)"), ("at", "0"), ("stage", "'paused'")]),
    ("job_counts", &[("tenant", "1"), ("state", "'leased'"), ("jobs", "0")]),
];

const JOB: &[(&str, &str)] = &[
    ("tenant", "1"),
    ("id", "zeroblob(16)"),
    ("lane", "1"),
    ("kind", "'pull'"),
    ("state", "'scheduled'"),
    ("share", "'fresh'"),
    ("due_at", "0"),
    ("next_step", "NULL"),
    ("attempt", "1"),
    ("failed_before", "0"),
    ("created_at", "0"),
    ("scheduled_at", "0"),
    ("failures", "0"),
    ("lost_leases", "0"),
    ("uncharged", "0"),
    ("budget_since", "0"),
    ("budget_held_ms", "0"),
    ("cancel_requested", "0"),
    ("commit_heard", "0"),
    ("evidence_floor", "0"),
];

const DONE: &[(&str, &str)] = &[
    ("tenant", "1"),
    ("id", "zeroblob(16)"),
    ("lane", "1"),
    ("kind", "'pull'"),
    ("state", "'cancelled'"),
    ("share", "'fresh'"),
    ("settled_at", "0"),
    ("attempt", "1"),
    ("failed_before", "0"),
    ("created_at", "0"),
    ("scheduled_at", "0"),
    ("failures", "0"),
    ("lost_leases", "0"),
    ("uncharged", "0"),
    ("budget_since", "0"),
    ("budget_held_ms", "0"),
    ("cancel_requested", "0"),
    ("commit_heard", "0"),
    ("evidence_floor", "0"),
];

const ATTEMPT: &[(&str, &str)] = &[
    ("tenant", "1"),
    ("job", "zeroblob(16)"),
    ("attempt", "1"),
    ("kind", "'pull'"),
    ("path", "'first_run'"),
    ("worker", "'w'"),
    ("due_at", "0"),
    ("leased_at", "0"),
    ("finished_at", "0"),
    ("outcome", "'committed'"),
    ("effect", "'reported'"),
    ("reported", "1"),
    ("state", "'committed'"),
    ("policy", "'p'"),
];

/// The cells of a lease, and one more that replaces its like.
const fn leased(cell: (&'static str, &'static str)) -> [(&'static str, &'static str); 8] {
    [
        ("state", "'leased'"),
        ("due_at", "NULL"),
        ("worker", "'w'"),
        ("lease_due_at", "0"),
        ("leased_at", "0"),
        ("expires_at", "1"),
        ("deadline_at", "1"),
        cell,
    ]
}

/// Table, and the cells that make a good row bad.
const BAD: &[(&str, &[(&str, &str)])] = &[
    ("meta", &[("singleton", "2")]),
    ("meta", &[("epoch", "0")]),
    ("tenants", &[("tenant", "0")]),
    ("tenants", &[("name", "NULL")]),
    ("lanes", &[("lane", "0")]),
    ("lanes", &[("lane", "4294967296")]),
    ("lanes", &[("held_ms", "-1")]),
    ("destinations", &[("kind", "'topic'")]),
    ("destinations", &[("managed_by", "'hand'")]),
    ("destinations", &[("enabled", "2")]),
    ("destinations", &[("config", "NULL")]),
    ("api_keys", &[("id", "zeroblob(15)")]),
    ("api_keys", &[("secret_hash", "zeroblob(31)")]),
    ("keys", &[("key", "''")]),
    ("keys", &[("kind", "'name'")]),
    ("keys", &[("message", "zeroblob(17)")]),
    ("keys", &[("duplicates", "-1")]),
    ("keys_new", &[("key", "''")]),
    ("keys_new", &[("kind", "'alias'")]),
    ("keys_new", &[("message", "zeroblob(17)")]),
    ("keys_new", &[("duplicates", "-1")]),
    ("messages", &[("id", "zeroblob(15)")]),
    ("messages", &[("jobs_total", "-1")]),
    ("messages", &[("fingerprint", "zeroblob(79)")]),
    ("messages", &[("payload", "NULL")]),
    ("fanouts", &[("message", "zeroblob(1)")]),
    ("fanouts", &[("made", "-1")]),
    ("jobs", &[("id", "zeroblob(17)")]),
    ("jobs", &[("kind", "'pushed'")]),
    ("jobs", &[("state", "'committed'")]),
    ("jobs", &[("share", "'stale'")]),
    ("jobs", &[("state", "'retryable'"), ("next_step", "'wait'")]),
    ("jobs", &[("attempt", "-1")]),
    ("jobs", &[("attempt", "4294967296")]),
    ("jobs", &[("failed_before", "2")]),
    ("jobs", &[("failures", "-1")]),
    ("jobs", &[("lost_leases", "-1")]),
    ("jobs", &[("uncharged", "-1")]),
    ("jobs", &[("budget_held_ms", "-1")]),
    ("jobs", &[("cancel_requested", "2")]),
    ("jobs", &[("abandon", "'tired'")]),
    ("jobs", &[("commit_heard", "2")]),
    ("jobs", &[("evidence_floor", "2")]),
    ("jobs", &[("failures", "1"), ("lost_leases", "1")]),
    ("jobs", &[("state", "'leased'")]),
    ("jobs", &[("due_at", "NULL")]),
    ("jobs", &[("state", "'retryable'")]),
    ("jobs", &[("next_step", "'attempt'")]),
    ("jobs", &[("worker", "'w'")]),
    ("jobs", &[("lease_started_at", "1")]),
    ("jobs", &leased(("attempt", "0"))),
    ("jobs", &leased(("due_at", "0"))),
    ("jobs", &leased(("worker", "NULL"))),
    ("jobs", &leased(("lease_due_at", "NULL"))),
    ("jobs", &leased(("leased_at", "NULL"))),
    ("jobs", &leased(("expires_at", "NULL"))),
    ("jobs", &leased(("deadline_at", "NULL"))),
    ("jobs", &leased(("expires_at", "2"))),
    ("jobs_done", &[("id", "zeroblob(17)")]),
    ("jobs_done", &[("kind", "'pushed'")]),
    ("jobs_done", &[("state", "'scheduled'")]),
    ("jobs_done", &[("share", "'stale'")]),
    ("jobs_done", &[("state", "'dead_lettered'"), ("cause", "'tired'")]),
    ("jobs_done", &[("state", "'committed'"), ("evidence", "'hope'")]),
    ("jobs_done", &[("attempt", "-1")]),
    ("jobs_done", &[("attempt", "4294967296")]),
    ("jobs_done", &[("failed_before", "2")]),
    ("jobs_done", &[("failures", "-1")]),
    ("jobs_done", &[("lost_leases", "-1")]),
    ("jobs_done", &[("uncharged", "-1")]),
    ("jobs_done", &[("budget_held_ms", "-1")]),
    ("jobs_done", &[("cancel_requested", "2")]),
    ("jobs_done", &[("abandon", "'tired'")]),
    ("jobs_done", &[("commit_heard", "2")]),
    ("jobs_done", &[("evidence_floor", "2")]),
    ("jobs_done", &[("failures", "1"), ("lost_leases", "1")]),
    ("jobs_done", &[("cause", "'exhausted'")]),
    ("jobs_done", &[("state", "'dead_lettered'")]),
    ("jobs_done", &[("evidence", "'worker'")]),
    ("jobs_done", &[("state", "'committed'")]),
    ("attempts", &[("job", "zeroblob(15)")]),
    ("attempts", &[("attempt", "0")]),
    ("attempts", &[("kind", "'pushed'")]),
    ("attempts", &[("path", "'second_run'")]),
    ("attempts", &[("outcome", "'fine'")]),
    ("attempts", &[("effect", "'some'")]),
    ("attempts", &[("wish", "'maybe'")]),
    ("attempts", &[("reported", "2")]),
    ("attempts", &[("late_at", "1")]),
    ("attempts", &[("late_outcome", "'committed'")]),
    ("attempts", &[("late_effect", "'none'")]),
    ("attempts", &[("late_state", "'committed'")]),
    ("attempts", &[("late_accepted", "1")]),
    ("attempts", &[("late_wish", "'maybe'")]),
    (
        "attempts",
        &[
            ("late_at", "1"),
            ("late_outcome", "'fine'"),
            ("late_effect", "'none'"),
            ("late_state", "''"),
            ("late_accepted", "1"),
        ],
    ),
    (
        "attempts",
        &[
            ("late_at", "1"),
            ("late_outcome", "'failed'"),
            ("late_effect", "'some'"),
            ("late_state", "''"),
            ("late_accepted", "1"),
        ],
    ),
    (
        "attempts",
        &[
            ("late_at", "1"),
            ("late_outcome", "'failed'"),
            ("late_effect", "'none'"),
            ("late_state", "''"),
            ("late_accepted", "2"),
        ],
    ),
    ("custody", &[("message", "zeroblob(15)")]),
    ("custody", &[("job", "zeroblob(15)")]),
    ("job_counts", &[("state", "'lost'")]),
    ("job_counts", &[("jobs", "-1")]),
];

fn schema() -> Connection {
    let conn = Connection::open_in_memory().unwrap();
    conn.execute_batch(include_str!("../migrations/sqlite/V1__schema.sql")).unwrap();
    conn
}

fn insert(conn: &Connection, table: &str, changed: &[(&str, &str)]) -> rusqlite::Result<usize> {
    let (_, good) = TABLES.iter().find(|(name, _)| *name == table).expect("the table has a good row");
    let mut cells: Vec<(&str, &str)> = good.to_vec();
    for (column, value) in changed {
        cells.retain(|(known, _)| known != column);
        cells.push((column, value));
    }
    let columns: Vec<_> = cells.iter().map(|(column, _)| *column).collect();
    let values: Vec<_> = cells.iter().map(|(_, value)| *value).collect();
    conn.execute(&format!("INSERT INTO {table} ({}) VALUES ({})", columns.join(", "), values.join(", ")), [])
}

#[test]
fn good_rows_are_taken() {
    for (table, _) in TABLES {
        insert(&schema(), table, &[]).unwrap_or_else(|error| panic!("{table}: {error}"));
    }
}

#[test]
fn every_check_refuses_a_bad_row() {
    for (table, changed) in BAD {
        let error = insert(&schema(), table, changed).expect_err(&format!("{table} takes {changed:?}"));
        let code = error.sqlite_error_code();
        assert_eq!(Some(rusqlite::ErrorCode::ConstraintViolation), code, "{table} {changed:?}: {error}");
    }
}

#[test]
fn every_check_has_a_bad_row_that_only_it_refuses() {
    // Each CHECK is taken away in turn; some bad row must then be taken.
    let sql = include_str!("../migrations/sqlite/V1__schema.sql");
    for (start, _) in sql.match_indices("CHECK (") {
        let end = start + closing(&sql[start..]);
        let without = format!("{}CHECK (1){}", &sql[..start], &sql[end..]);
        let conn = Connection::open_in_memory().unwrap();
        conn.execute_batch(&without).unwrap();
        let taken = BAD.iter().any(|(table, changed)| {
            conn.execute_batch("SAVEPOINT row").unwrap();
            let taken = insert(&conn, table, changed).is_ok();
            conn.execute_batch("ROLLBACK TO row; RELEASE row").unwrap();
            taken
        });
        assert!(taken, "no bad row is refused by this alone: {}", &sql[start..end]);
    }
}

/// Where the bracket closes that opens first.
fn closing(text: &str) -> usize {
    let mut depth = 0;
    for (index, character) in text.char_indices() {
        match character {
            '(' => depth += 1,
            ')' => depth -= 1,
            _ => continue,
        }
        if depth == 0 {
            return index + 1;
        }
    }
    panic!("a bracket is open");
}

#[test]
fn every_table_is_strict_and_has_a_good_row() {
    let conn = schema();
    let mut statement =
        conn.prepare("SELECT name, strict FROM pragma_table_list WHERE schema = 'main'").unwrap();
    let tables: Vec<(String, Value)> =
        statement.query_map([], |row| Ok((row.get(0)?, row.get(1)?))).unwrap().map(Result::unwrap).collect();
    for (name, strict) in tables.into_iter().filter(|(name, _)| !name.starts_with("sqlite_")) {
        assert_eq!(Value::Integer(1), strict, "{name} is strict");
        assert!(TABLES.iter().any(|(known, _)| *known == name), "{name} has a good row here");
    }
}
