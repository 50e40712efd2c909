//! A ledger entry to and from SQL.

use bytes::Bytes;
use posthaste_core::{
    Class, EventId, Path, TenantId,
    ledger::{Entry, OnExpired, Outcome, Previous, Status},
};
use rusqlite::{Row, Statement, params};

use super::{
    cells::{Cells, signed},
    fault::Fault,
    job_rows::one,
    session::Session,
};
use crate::{LedgerEntry, ResetNote, StoredResult};

/// The entry that has a row of its own.
pub(super) fn find(
    ledger_find: &mut Statement<'_>,
    tenant: TenantId,
    key: &EventId,
) -> Result<Option<LedgerEntry>, Fault> {
    let mut rows = ledger_find.query(params![tenant.0, key.as_str()])?;
    match rows.next()? {
        Some(row) => Ok(Some(entry(row, key)?)),
        None => Ok(None),
    }
}

fn entry(row: &Row<'_>, key: &EventId) -> Result<LedgerEntry, posthaste_core::CorruptRow> {
    let mut cells = Cells::of(row, 0);
    let status = cells.word(Status::parse)?;
    let (fence, attempts, locked_until) = (cells.int()?, cells.int()?, cells.at()?);
    let entry = Entry {
        status,
        fence,
        attempts,
        locked_until,
        fingerprint: cells.maybe_bytes()?.map(Box::from),
        claim_id: cells.maybe_text()?,
        path: cells.word(Path::parse)?,
        previous: cells.word(Previous::parse)?,
        on_expired: cells.word(OnExpired::parse)?,
        outcome: cells.maybe_word(Outcome::parse)?,
    };
    let result = StoredResult {
        bytes: cells.maybe_bytes()?.map(Bytes::copy_from_slice),
        content_type: cells.maybe_text()?,
        status: cells.maybe_int()?,
    };
    let (class, message) = (cells.maybe_word(Class::parse)?, cells.maybe_text()?);
    let (created_at, updated_at) = (cells.at()?, cells.at()?);
    let (reset_at, reset_by, reset_reason) = (cells.maybe_at()?, cells.maybe_text()?, cells.maybe_text()?);
    let reset = reset_at.zip(reset_reason).map(|(at, reason)| ResetNote { at, by: reset_by, reason });
    Ok(LedgerEntry {
        key: key.clone(),
        entry,
        result,
        class,
        message,
        created_at,
        updated_at,
        reset,
        of_job: None,
    })
}

impl Session<'_> {
    /// Writes the entry, new or over what is there.
    pub(super) fn put_entry(&mut self, tenant: TenantId, entry: &LedgerEntry) -> Result<(), Fault> {
        let LedgerEntry { key, entry, result, class, message, created_at, updated_at, reset, of_job: _ } =
            entry;
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

    /// The entry that has a row of its own.
    pub(super) fn entry_of(&mut self, tenant: TenantId, key: &EventId) -> Result<Option<LedgerEntry>, Fault> {
        find(&mut self.sql.ledger_find, tenant, key)
    }
}
