//! A ledger entry to and from SQL.

use posthaste_core::{Class, EventId, TenantId, ledger::Outcome};
use rusqlite::{Statement, params};

use super::{
    cells::{Cells, signed},
    fault::Fault,
    job_rows::one,
    session::Session,
};
use crate::{
    LedgerEntry, Place,
    rows::entry::{archived_entry, entry},
};

/// The entry that has a row of its own.
pub(super) fn find(
    ledger_find: &mut Statement<'_>,
    tenant: TenantId,
    key: &EventId,
) -> Result<Option<LedgerEntry>, Fault> {
    let mut rows = ledger_find.query(params![tenant.0, key.as_str()])?;
    match rows.next()? {
        Some(row) => Ok(Some(entry(&mut Cells::of(row, 0), key)?)),
        None => Ok(None),
    }
}

/// What is still known of an entry that left, or of a job's that did.
pub(super) fn find_archived(
    archived_entries_find: &mut Statement<'_>,
    tenant: TenantId,
    key: &EventId,
) -> Result<Option<LedgerEntry>, Fault> {
    let mut rows = archived_entries_find.query(params![tenant.0, key.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(archived_entry(&mut Cells::of(row, 0), key)?.0))
}

impl Session<'_> {
    /// Writes the entry, new or over what is there.
    pub(super) fn put_entry(&mut self, tenant: TenantId, entry: &LedgerEntry) -> Result<(), Fault> {
        let LedgerEntry {
            key, entry, result, class, message, created_at, updated_at, reset, of_job: _, ..
        } = entry;
        let written = self.sql.ledger_put.execute(params![
            tenant.0,
            key.as_str(),
            entry.status.as_str(),
            signed(entry.fence),
            entry.attempts,
            entry.locked_until.0,
            entry.fingerprint,
            entry.claim_id,
            entry.path.as_str(),
            entry.previous.as_str(),
            entry.on_expired.as_str(),
            entry.outcome.map(Outcome::as_str),
            result.bytes.as_deref(),
            result.content_type,
            result.status,
            class.map(Class::as_str),
            message,
            created_at.0,
            updated_at.0,
            reset.as_ref().map(|reset| reset.at.0),
            reset.as_ref().and_then(|reset| reset.by.as_deref()),
            reset.as_ref().map(|reset| &*reset.reason),
        ])?;
        self.ledger_used = true;
        one(written)
    }

    /// The fence of a key that has no row.
    pub(super) fn first_fence(&mut self) -> Result<u64, Fault> {
        let fence: i64 = self.sql.ledger_first_fence.query_row([], |row| row.get(0))?;
        u64::try_from(fence).map_err(|_| Fault::Invariant("the first fence is below zero"))
    }

    /// The entry that has a row of its own, or had one before it left.
    pub(super) fn entry_of(&mut self, tenant: TenantId, key: &EventId) -> Result<Option<LedgerEntry>, Fault> {
        if let Some(entry) = find(&mut self.sql.ledger_find, tenant, key)? {
            return Ok(Some(entry));
        }
        Ok(self.archived_entry(tenant, key)?.filter(|entry| entry.of_job.is_none()))
    }

    /// What is still known of an entry that left, or of a job's that did.
    pub(super) fn archived_entry(
        &mut self,
        tenant: TenantId,
        key: &EventId,
    ) -> Result<Option<LedgerEntry>, Fault> {
        find_archived(&mut self.sql.archived_entries_find, tenant, key)
    }

    /// Keeps what claims of an entry that leaves are told.
    pub(super) fn put_archived_entry(
        &mut self,
        tenant: TenantId,
        entry: &LedgerEntry,
        place: Option<&Place>,
    ) -> Result<(), Fault> {
        let LedgerEntry { key, entry: core, result, class, message, reset, of_job, result_at, .. } = entry;
        let written = self.sql.archived_entries_put.execute(params![
            tenant.0,
            key.as_str(),
            core.status.as_str(),
            signed(core.fence),
            core.attempts,
            core.locked_until.0,
            core.fingerprint,
            core.claim_id,
            core.path.as_str(),
            core.previous.as_str(),
            core.on_expired.as_str(),
            core.outcome.map(Outcome::as_str),
            result.bytes.as_deref(),
            result.content_type,
            result.status,
            class.map(Class::as_str),
            message,
            entry.created_at.0,
            entry.updated_at.0,
            reset.as_ref().map(|reset| reset.at.0),
            reset.as_ref().and_then(|reset| reset.by.as_deref()),
            reset.as_ref().map(|reset| &*reset.reason),
            of_job.map(|job| job.0.to_be_bytes()),
            result_at.is_some(),
            self.now.0,
            place.map(|place| &place.file),
            place.map(|place| signed(place.at_byte)),
            place.map(|place| signed(place.bytes)),
        ])?;
        one(written)
    }
}
