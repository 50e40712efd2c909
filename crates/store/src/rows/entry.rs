//! An entry of the ledger.

use bytes::Bytes;
use posthaste_core::{
    Class, CorruptRow, EventId, JobId, Path,
    ledger::{Entry, OnExpired, Outcome, Previous, Status},
};

use super::{cells::Cells, words};
use crate::{LedgerEntry, Place, ResetNote, StoredResult};

/// The columns of an entry after its key.
pub(crate) fn entry(cells: &mut Cells<'_>, key: &EventId) -> Result<LedgerEntry, CorruptRow> {
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
        result_at: None,
    })
}

/// The same of an entry that left, or of a job's that did, and where the archive has it.
pub(crate) fn archived_entry(
    cells: &mut Cells<'_>,
    key: &EventId,
) -> Result<(LedgerEntry, Option<Place>), CorruptRow> {
    let entry = entry(cells, key)?;
    let (of_job, elsewhere) = (cells.maybe_id()?.map(JobId), cells.flag()?);
    let place = words::place(cells)?;
    let result_at = place.clone().filter(|_| elsewhere);
    Ok((LedgerEntry { of_job, result_at, ..entry }, place))
}
