//! Custody entries.

use rusqlite::params;

use super::{fault::Fault, job_rows::one, session::Session};
use crate::CustodyEntry;

impl Session<'_> {
    pub(super) fn note(&mut self, entries: &[CustodyEntry]) -> Result<(), Fault> {
        entries.iter().try_for_each(|entry| self.insert_custody(entry))
    }

    pub(super) fn insert_custody(&mut self, entry: &CustodyEntry) -> Result<(), Fault> {
        let inserted = self.sql.custody_insert.execute(params![
            entry.tenant.0,
            entry.message.0.to_be_bytes(),
            entry.job.map(|job| job.0.to_be_bytes()),
            entry.at.0,
            entry.stage.as_str(),
            entry.attempt.map(posthaste_core::Attempt::get),
            entry.actor,
            entry.detail,
        ])?;
        one(inserted)
    }
}
