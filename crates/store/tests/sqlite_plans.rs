//! How SQLite finds the rows of every statement. `UPDATE_EXPECT=1` writes the golden file anew.

#![allow(clippy::unwrap_used)] // helpers of tests are tests

use expect_test::expect_file;
use posthaste_store::sqlite::statements;
use rusqlite::Connection;

/// Statements that read a whole small table, because the whole of it is asked for.
const WHOLE_TABLES: &[&str] = &[
    "tenants_list",
    "destinations_list",
    "api_keys_list",
    "counts_list",
    "schedules_list",
    "ledger_any",
    "ledger_first_fence",
    "ledger_fences_raise",
    "keys_new_duplicates_anywhere",
    "keys_new_list",
    "scheduling_list",
    "scheduling_held_jobs",
    "untold_list",
];

fn plan(conn: &Connection, sql: &str) -> Vec<String> {
    let mut statement = conn.prepare(&format!("EXPLAIN QUERY PLAN {sql}")).unwrap();
    let parameters = statement.parameter_count();
    for index in 1..=parameters {
        statement.raw_bind_parameter(index, rusqlite::types::Null).unwrap();
    }
    let mut rows = statement.raw_query();
    let mut lines = Vec::new();
    while let Some(row) = rows.next().unwrap() {
        lines.push(row.get::<_, String>(3).unwrap());
    }
    lines
}

fn schema() -> Connection {
    let conn = Connection::open_in_memory().unwrap();
    for migration in [
        include_str!("../migrations/sqlite/V1__schema.sql"),
        include_str!("../migrations/sqlite/V2__ledger.sql"),
        include_str!("../migrations/sqlite/V3__retention.sql"),
        include_str!("../migrations/sqlite/V4__lanes.sql"),
        include_str!("../migrations/sqlite/V5__untold.sql"),
        include_str!("../migrations/sqlite/V6__bulk_runs.sql"),
        include_str!("../migrations/sqlite/V7__schedules.sql"),
        include_str!("../migrations/sqlite/V8__unsettled.sql"),
    ] {
        conn.execute_batch(migration).unwrap();
    }
    conn
}

#[test]
fn the_plans_of_all_statements() {
    let conn = schema();
    let mut golden = String::new();
    for (name, sql) in statements::all() {
        let keyword =
            sql.lines().find(|line| !line.starts_with("--")).and_then(|line| line.split(' ').next()).unwrap();
        if !["SELECT", "INSERT", "UPDATE", "DELETE"].contains(&keyword.trim()) {
            continue;
        }
        let plan = plan(&conn, sql);
        for line in &plan {
            let scans = line.starts_with("SCAN") && !line.contains("USING") && !line.contains("CONSTANT ROW");
            assert!(
                !scans
                    || WHOLE_TABLES.contains(&name)
                    || line.starts_with("SCAN lanes")
                    || line.contains("(subquery"),
                "{name} reads a whole table: {plan:#?}"
            );
            let all_of_a_tenant =
                line.ends_with("(tenant=?)") && !["lanes_last", "scheduling_held_jobs"].contains(&name);
            assert!(!all_of_a_tenant, "{name} reads all of a tenant: {plan:#?}");
            assert!(!line.contains("TEMP B-TREE") && !line.contains("AUTOMATIC"), "{name} sorts: {plan:#?}");
        }
        if !plan.is_empty() {
            golden.extend([name, "\n    ", &plan.join("\n    "), "\n"]);
        }
    }
    expect_file!["golden/sqlite_plans.txt"].assert_eq(&golden);
}

#[test]
fn leasing_uses_the_index_of_what_is_due() {
    let conn = schema();
    for (name, sql) in statements::all().into_iter().filter(|(name, _)| name.starts_with("jobs_due")) {
        let plan = plan(&conn, sql);
        assert!(
            plan.iter().any(|line| line.contains("jobs_due (tenant=? AND lane=? AND share=? AND due_at<?)")),
            "{name}: {plan:?}"
        );
    }
}

#[test]
fn a_jobs_state_is_written_by_four_statements_alone() {
    let writes_state = |sql: &str| {
        let writes =
            sql.contains("INTO jobs ") || sql.contains("INTO jobs_done ") || sql.contains("UPDATE jobs");
        writes && sql.contains("state")
    };
    let names: Vec<_> =
        statements::all().into_iter().filter(|(_, sql)| writes_state(sql)).map(|(name, _)| name).collect();
    assert_eq!(
        vec!["jobs_done_insert", "jobs_insert", "jobs_insert_new", "jobs_write", "jobs_write_attempt"],
        names
    );
}
