//! Writing what the rules changed: the working set is compared with what was loaded, and what differs is written with a
//! few statements, however much it is.
//!
//! Rows that are new are inserted in the order of their keys and table by table in one order, so that two transactions
//! that insert the same never wait for each other crosswise.

mod attempts;
mod beside;
mod configured;
mod jobs;
mod lanes;
mod ledger;
mod messages;
mod retired;
mod runs;
mod write;

use self::write::Write;
use super::{fault::Fault, session::Session};

impl Session<'_> {
    /// Writes what differs, in one round trip, and says whether anything did.
    pub(crate) async fn flush(&mut self) -> Result<bool, Fault> {
        let mut writes = Vec::new();
        self.collect(&mut writes)?;
        if writes.is_empty() {
            return Ok(false);
        }
        write::run_all(self, &writes).await?;
        Ok(true)
    }

    fn collect(&self, writes: &mut Vec<Write>) -> Result<(), Fault> {
        self.write_tenants(writes);
        self.write_lanes(writes);
        self.write_scheduling(writes);
        self.write_lane_events(writes);
        self.write_destinations(writes);
        self.write_api_keys(writes);
        self.write_names(writes)?;
        self.write_messages(writes);
        self.write_fanouts(writes)?;
        self.write_jobs(writes);
        self.write_attempts(writes)?;
        self.write_custody(writes);
        self.write_ledger(writes);
        self.write_archived(writes);
        self.write_archived_entries(writes);
        self.write_archive_files(writes);
        self.write_schedules(writes);
        self.write_bulk_runs(writes);
        self.write_untold(writes);
        self.write_job_counts(writes);
        Ok(())
    }
}
