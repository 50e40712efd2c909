//! Every statement, one a file, prepared once for each connection.

use rusqlite::{Connection, PrepFlags, Statement};

/// Declares a set of statements: a field for each file in `sql/`.
macro_rules! statements {
    ($(#[$meta:meta])* $set:ident, $all:ident { $($name:ident)+ }) => {
        $(#[$meta])*
        pub(super) struct $set<'c> { $(pub(super) $name: Statement<'c>,)+ }

        /// Name and text of each.
        pub(super) const $all: &[(&str, &str)] =
            &[$((stringify!($name), include_str!(concat!("sql/", stringify!($name), ".sql")))),+];

        impl<'c> $set<'c> {
            pub(super) fn prepare(conn: &'c Connection) -> rusqlite::Result<Self> {
                Ok(Self { $($name: prepare(conn, include_str!(concat!("sql/", stringify!($name), ".sql")))?,)+ })
            }
        }
    };
}

statements! {
    /// What the writer says. A job's state is written by `jobs_insert`, `jobs_insert_new`, `jobs_write`,
    /// `jobs_write_attempt` and `jobs_done_insert` only.
    WriteStatements, WRITES {
        begin commit rollback savepoint savepoint_release savepoint_rollback
        checkpoint_passive checkpoint_truncate
        keys_claim keys_find keys_of_message keys_count_duplicate
        keys_new_insert keys_new_find keys_new_list keys_new_move keys_new_differs keys_new_delete
        keys_new_count_duplicate
        messages_insert messages_accepted messages_body
        jobs_insert jobs_insert_new jobs_write jobs_write_attempt jobs_write_lease jobs_delete jobs_done_insert jobs_done_delete
        jobs_load jobs_done_load jobs_due_count jobs_due jobs_next_due jobs_of_message
        lanes_find lanes_put lanes_of_destination lanes_last lanes_insert lanes_any_paused
        scheduling_find scheduling_put lane_events_insert lane_events_trim
        attempts_insert attempts_late attempts_heard attempts_find attempts_of_job
        custody_insert custody_count
        fanouts_insert fanouts_oldest fanouts_oldest_held fanouts_next_held fanouts_advance fanouts_delete
        tenants_find tenants_insert
        destinations_find destinations_put destinations_delete
        api_keys_find api_keys_of_hash api_keys_insert api_keys_revoke
        schedules_find schedules_put schedules_delete
        counts_add
        ledger_find ledger_put ledger_any ledger_first_fence ledger_delete ledger_fences_raise
        messages_delete jobs_done_delete_all attempts_delete_all custody_delete
        archived_insert archived_accepted archived_entries_put archived_entries_find archive_files_insert
        bulk_runs_find bulk_runs_of_key bulk_runs_live bulk_runs_insert bulk_runs_write bulk_dead bulk_live bulk_message bulk_class untold_put untold_delete
    }
}

statements! {
    /// What the readers say.
    ReadStatements, READS {
        read_begin read_end
        keys_find keys_of_message keys_duplicates
        keys_new_find keys_new_duplicates keys_new_duplicates_anywhere
        messages_exists messages_view messages_payload
        jobs_load jobs_done_load jobs_of_message
        jobs_list_live_oldest jobs_list_live_newest jobs_list_done_oldest jobs_list_done_newest
        jobs_list_dead_oldest jobs_list_dead_newest
        lanes_find lanes_heads lanes_list lanes_held_jobs scheduling_list scheduling_held_jobs lane_events_of
        leases_by_expiry attempts_of_job custody_of_message
        tenants_list destinations_list api_keys_list counts_list schedules_find schedules_list
        ledger_find ledger_any
        look_ups_lane look_ups_of_lane sweep_live sweep_dead
        archived_in archived_entries_in archived_entries_find archive_files_list
        bulk_runs_find bulk_runs_list bulk_runs_running bulk_dead bulk_live bulk_message bulk_class untold_list
    }
}

statements! {
    /// What those who let go of messages say, reading as well as writing.
    RecordStatements, RECORDS {
        records_message records_jobs records_settled records_candidates records_entry_candidates
        keys_find keys_of_message keys_duplicates keys_new_find keys_new_duplicates keys_new_duplicates_anywhere
        attempts_of_job custody_of_message lanes_find lanes_of_destination
        messages_accepted jobs_load jobs_done_load ledger_find archived_find
    }
}

/// Persistent: otherwise the statements would fill the small, fast memory that SQLite keeps for values that are bound.
fn prepare<'c>(conn: &'c Connection, sql: &str) -> rusqlite::Result<Statement<'c>> {
    conn.prepare_with_flags(sql, PrepFlags::SQLITE_PREPARE_PERSISTENT)
}

/// Name and text of every statement, for tests of their plans.
#[doc(hidden)]
pub fn all() -> Vec<(&'static str, &'static str)> {
    let mut all: Vec<_> = WRITES.iter().chain(READS).chain(RECORDS).copied().collect();
    all.sort_unstable();
    all.dedup();
    all
}
