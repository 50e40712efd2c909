//! Rows of PostgreSQL, as the tables in memory have them. Each function reads the columns that [`super::columns`] lists,
//! which come first in the row.

use bytes::Bytes;
use posthaste_core::{
    Attempt, Cause, CorruptRow, DurationMs, EventId, JobId, LaneId, MessageId, MessageKey, Scheduling,
    TenantId, Timestamp,
};
use tokio_postgres::Row;

use super::fault::Fault;
use crate::{
    ApiKeyRow, ArchiveFile, ArchivedMessage, AttemptView, BulkRun, CustodyEntry, DestinationRow, Due,
    KeyKind, LaneEvent, LaneEventKind, LedgerEntry, NewMessage, ScheduleRow, Stage, Target, Untold,
    memory::{
        retention::{Archived, ArchivedEntry},
        tables::{FanOut, JobEntry, LaneRow, Message},
    },
    rows::{
        self,
        cells::Cells,
        words::{fingerprint, key_kind, lanes_of, place},
    },
    targets::{self, Owed},
};

/// Stands for a tenant's scheduling among the lanes of events.
pub(crate) const SCHEDULING: u32 = 0;

/// A job with its lease, if it has one. A row that can't be read is the job's trouble alone.
pub(crate) fn job(row: &Row) -> Result<(TenantId, JobId, Result<JobEntry, CorruptRow>), Fault> {
    let mut cells = Cells::of(row, 0);
    let (tenant, id) = (TenantId(cells.int()?), JobId(cells.id()?));
    Ok((tenant, id, job_entry(row, tenant, id)))
}

fn job_entry(row: &Row, tenant: TenantId, id: JobId) -> Result<JobEntry, CorruptRow> {
    let mut cells = Cells::from(row, id.0, 2);
    let (row, extra) = rows::job::job_row(&mut cells, tenant, id)?;
    let lease = rows::job::lease_row(&mut cells)?;
    Ok(JobEntry { row, lease, wire_id: extra.wire_id, owner: extra.owner })
}

/// A message, without what its names tell: its other names and duplicates.
pub(crate) fn message(row: &Row) -> Result<(TenantId, MessageId, Message), Fault> {
    let mut cells = Cells::of(row, 0);
    let (tenant, id) = (TenantId(cells.int()?), cells.message_id()?);
    let mut cells = Cells::from(row, id.0, 2);
    let seq = cells.int()?;
    let (key, event_type, source) = (cells.key()?, cells.maybe_text()?, cells.maybe_destination()?);
    let (accepted_at, jobs_total) = (cells.at()?, cells.int()?);
    let given = NewMessage {
        tenant,
        id,
        key,
        aliases: Vec::new(),
        event_type,
        source,
        fingerprint: fingerprint(&cells.array()?),
        correlation_id: cells.text()?,
        traceparent: cells.maybe_text()?,
        content_type: cells.maybe_text()?,
        headers: cells.maybe_text()?,
        metadata: cells.maybe_text()?,
        payload_ref: cells.maybe_text()?,
        payload: Bytes::copy_from_slice(cells.bytes()?),
        due: Due::In(DurationMs(0)),
        targets: Vec::new(),
    };
    let others = std::collections::BTreeMap::new();
    Ok((tenant, id, Message { seq, accepted_at, jobs_total, duplicates: 0, others, given }))
}

/// An ended attempt.
pub(crate) fn attempt(row: &Row) -> Result<((TenantId, JobId, Attempt), AttemptView), Fault> {
    let mut cells = Cells::of(row, 0);
    let (tenant, job) = (TenantId(cells.int()?), JobId(cells.id()?));
    let view = rows::attempt::view(&mut Cells::from(row, job.0, 2), job)?;
    Ok(((tenant, job, view.end.attempt), view))
}

/// A lane.
pub(crate) fn lane(row: &Row) -> Result<((TenantId, LaneId), LaneRow), Fault> {
    let mut cells = Cells::of(row, 0);
    let (tenant, id) = (TenantId(cells.int()?), LaneId(cells.int()?));
    let mut cells = Cells::from(row, u128::from(id.0), 2);
    let destination = cells.destination()?;
    Ok(((tenant, id), LaneRow { destination, lane: rows::lane::lane(&mut cells)? }))
}

/// A tenant's scheduling.
pub(crate) fn scheduling(row: &Row) -> Result<(TenantId, Scheduling), Fault> {
    let mut cells = Cells::of(row, 0);
    Ok((TenantId(cells.int()?), rows::lane::scheduling(&mut cells)?))
}

/// What befell a lane.
pub(crate) fn lane_event(row: &Row) -> Result<((TenantId, Option<LaneId>), LaneEvent), Fault> {
    let mut cells = Cells::of(row, 0);
    let (tenant, lane) = (TenantId(cells.int()?), cells.int()?);
    let lane = (lane != SCHEDULING).then_some(LaneId(lane));
    let (at, what) = (cells.at()?, cells.word(LaneEventKind::parse)?);
    let (actor, reason) = (cells.text()?, cells.text()?);
    Ok(((tenant, lane), LaneEvent { lane, at, what, actor, reason }))
}

/// An entry of the ledger.
pub(crate) fn entry(row: &Row) -> Result<((TenantId, EventId), LedgerEntry), Fault> {
    let (tenant, key) = entry_name(row)?;
    let entry = rows::entry::entry(&mut Cells::from(row, 0, 2), &key)?;
    Ok(((tenant, key), entry))
}

/// What is known of an entry that left.
pub(crate) fn archived_entry(row: &Row) -> Result<((TenantId, EventId), ArchivedEntry), Fault> {
    let (tenant, key) = entry_name(row)?;
    let (entry, place) = rows::entry::archived_entry(&mut Cells::from(row, 0, 2), &key)?;
    Ok(((tenant, key), ArchivedEntry { entry, place }))
}

fn entry_name(row: &Row) -> Result<(TenantId, EventId), Fault> {
    let mut cells = Cells::of(row, 0);
    Ok((TenantId(cells.int()?), cells.event_id()?))
}

/// What is known of a message that left, without what its names tell: its other names and duplicates.
pub(crate) fn archived(row: &Row) -> Result<((TenantId, MessageId), Archived), Fault> {
    let mut cells = Cells::of(row, 0);
    let (tenant, id) = (TenantId(cells.int()?), cells.message_id()?);
    let mut cells = Cells::from(row, id.0, 2);
    let (key, accepted_at, jobs_total) = (cells.key()?, cells.at()?, cells.int()?);
    let fingerprint = fingerprint(&cells.array()?);
    let correlation_id = cells.text()?;
    let dead_lanes = lanes_of(cells.maybe_bytes()?.unwrap_or_default());
    let known = ArchivedMessage {
        tenant,
        id,
        key,
        aliases: Vec::new(),
        duplicates: 0,
        accepted_at,
        jobs_total,
        correlation_id,
        archived_at: cells.at()?,
        place: place(&mut cells)?,
    };
    Ok(((tenant, id), Archived { known, fingerprint, dead_lanes }))
}

/// An entry of a message's custody.
pub(crate) fn custody(row: &Row) -> Result<CustodyEntry, Fault> {
    let mut cells = Cells::of(row, 0);
    let (tenant, message) = (TenantId(cells.int()?), cells.message_id()?);
    let mut cells = Cells::from(row, message.0, 2);
    Ok(CustodyEntry {
        tenant,
        message,
        job: cells.maybe_id()?.map(JobId),
        at: cells.at()?,
        stage: cells.word(Stage::parse)?,
        attempt: cells.maybe_int()?.and_then(Attempt::new),
        actor: cells.maybe_text()?,
        detail: cells.maybe_text()?,
    })
}

/// A fan-out that is running, by its place in the order of acceptance. Its row doesn't tell the destinations: each
/// target has the same that means nothing.
pub(crate) fn fanout(row: &Row) -> Result<(u64, FanOut), Fault> {
    let mut cells = Cells::of(row, 0);
    let (seq, tenant, message) = (cells.int()?, TenantId(cells.int()?), cells.message_id()?);
    let (due_at, made) = (cells.at()?, cells.int()?);
    let (owed, _) = targets::decode(cells.bytes()?, 0, usize::MAX).map_err(Fault::Invariant)?;
    let targets = owed.into_iter().map(target).collect::<Result<_, _>>()?;
    let held_by = cells.maybe_int()?.map(LaneId);
    Ok((seq, FanOut { tenant, message, due_at, targets, made, held_by }))
}

fn target(owed: Owed) -> Result<Target, Fault> {
    let destination = posthaste_core::DestinationId::new("unread");
    let destination = destination.map_err(|_| Fault::Invariant("a destination's id is none"))?;
    let Owed { lane, kind, extra } = owed;
    Ok(Target { lane, destination, kind, wire_id: extra.wire_id, owner: extra.owner })
}

/// A destination.
pub(crate) fn destination(row: &Row) -> Result<DestinationRow, Fault> {
    Ok(rows::configured::destination(&mut Cells::of(row, 0))?)
}

/// An API key.
pub(crate) fn api_key(row: &Row) -> Result<ApiKeyRow, Fault> {
    Ok(rows::configured::api_key(&mut Cells::of(row, 0))?)
}

/// A schedule.
pub(crate) fn schedule(row: &Row) -> Result<ScheduleRow, Fault> {
    Ok(rows::configured::schedule(&mut Cells::of(row, 0))?)
}

/// A bulk run.
pub(crate) fn bulk_run(row: &Row) -> Result<BulkRun, Fault> {
    Ok(rows::bulk_run::run(Cells::of(row, 0))?)
}

/// A dead letter that nobody was told of yet.
pub(crate) fn untold(row: &Row) -> Result<Untold, Fault> {
    let mut cells = Cells::of(row, 0);
    let (tenant, job, at) = (TenantId(cells.int()?), JobId(cells.id()?), cells.at()?);
    let (attempt, cause) = (Attempt::new(cells.int()?), cells.word(Cause::parse)?);
    Ok(Untold { tenant, job, at, attempt, cause })
}

/// A file of the archive.
pub(crate) fn archive_file(row: &Row) -> Result<ArchiveFile, Fault> {
    Ok(rows::configured::archive_file(&mut Cells::of(row, 0))?)
}

/// A name: what it is, whose, and how often it came again, which counts at the business key.
pub(crate) fn key(row: &Row) -> Result<((TenantId, MessageKey), KeyKind, MessageId, u64), Fault> {
    let mut cells = Cells::of(row, 0);
    let (tenant, key) = (TenantId(cells.int()?), cells.key()?);
    Ok(((tenant, key), cells.word(key_kind)?, cells.message_id()?, cells.int()?))
}

/// A number.
pub(crate) fn int(row: &Row, index: usize) -> Result<i64, Fault> {
    Ok(Cells::from(row, 0, index).int()?)
}

/// A number, or none.
pub(crate) fn maybe_int(row: &Row, index: usize) -> Result<Option<i64>, Fault> {
    Ok(Cells::from(row, 0, index).maybe_int()?)
}

/// A number that counts.
pub(crate) fn count(row: &Row, index: usize) -> Result<u64, Fault> {
    Ok(Cells::from(row, 0, index).int()?)
}

/// What EXISTS and comparisons say; a flag of a table is a number.
pub(crate) fn flag(row: &Row, index: usize) -> Result<bool, Fault> {
    Ok(row.try_get(index)?)
}

/// A time.
pub(crate) fn at(row: &Row, index: usize) -> Result<Timestamp, Fault> {
    Ok(Cells::from(row, 0, index).at()?)
}

/// A tenant.
pub(crate) fn tenant(row: &Row, index: usize) -> Result<TenantId, Fault> {
    Ok(TenantId(Cells::from(row, 0, index).int()?))
}

/// A lane.
pub(crate) fn lane_id(row: &Row, index: usize) -> Result<LaneId, Fault> {
    Ok(LaneId(Cells::from(row, 0, index).int()?))
}

/// An id.
pub(crate) fn id(row: &Row, index: usize) -> Result<u128, Fault> {
    Ok(Cells::from(row, 0, index).id()?)
}

/// A text.
pub(crate) fn text(row: &Row, index: usize) -> Result<Box<str>, Fault> {
    Ok(Cells::from(row, 0, index).text()?)
}
