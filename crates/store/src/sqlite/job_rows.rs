//! A job's rows to and from SQL. What the columns mean stands in [`posthaste_core::JobRow`].

use posthaste_core::{
    Cause, CorruptRow, Evidence, Job, JobId, JobRow, LeaseRow, MessageId, MessageKey, NextStep, StateName,
    TenantId, Timestamp,
};
use rusqlite::{Row, Statement, params};

use super::{
    cells::{Cells, signed},
    fault::Fault,
    session::Session,
};
pub(super) use crate::rows::job::Extra;
use crate::rows::job::{is_new, job_row, lease_row, only_attempt_differs};

/// Columns of a job before its message's.
const JOB_COLUMNS: usize = 26;

/// A job with what stands beside it.
#[derive(Debug)]
pub(super) struct Stored {
    pub(super) job: Job,
    pub(super) extra: Extra,
    pub(super) message: MessageId,
    pub(super) key: MessageKey,
    pub(super) accepted_at: Timestamp,
}

/// The bounds of the one message that a job belongs to, and of a message's jobs: ids that share the first 96 bits.
pub(super) fn family(id: u128) -> ([u8; 16], [u8; 16]) {
    let (first, last) = MessageId(id).job_range();
    (first.0.to_be_bytes(), last.0.to_be_bytes())
}

/// The job, wherever it lives.
pub(super) fn load(
    live: &mut Statement<'_>,
    done: &mut Statement<'_>,
    tenant: TenantId,
    id: JobId,
) -> Result<Option<Result<Stored, CorruptRow>>, Fault> {
    match load_from(live, tenant, id)? {
        None => load_from(done, tenant, id),
        found => Ok(found),
    }
}

fn load_from(
    statement: &mut Statement<'_>,
    tenant: TenantId,
    id: JobId,
) -> Result<Option<Result<Stored, CorruptRow>>, Fault> {
    let (first, last) = family(id.0);
    let mut rows = statement.query(params![tenant.0, id.0.to_be_bytes(), first, last])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(stored(row, tenant, id)))
}

fn stored(row: &Row<'_>, tenant: TenantId, id: JobId) -> Result<Stored, CorruptRow> {
    let mut cells = Cells::of(row, id.0);
    let (job_row, extra) = job_row(&mut cells, tenant, id)?;
    let Some(message) = cells.maybe_id()? else {
        return Err(CorruptRow { id: id.0, what: "its message is missing" });
    };
    let key = cells.key()?;
    let accepted_at = cells.at()?;
    let job = Job::from_rows(job_row, lease_row(&mut cells)?)?;
    Ok(Stored { job, extra, message: MessageId(message), key, accepted_at })
}

/// The id that follows the columns of [`job_row`].
pub(super) fn id_after_job(row: &Row<'_>) -> Result<JobId, CorruptRow> {
    Cells::from(row, 0, JOB_COLUMNS).id().map(JobId)
}

impl Session<'_> {
    /// Writes a job that is new.
    pub(super) fn insert_job(&mut self, job: &Job, extra: &Extra) -> Result<(), Fault> {
        let (row, lease) = job.to_rows();
        debug_assert!(lease.is_none(), "a new job is not leased");
        self.counts.moved(job.tenant, None, row.state);
        self.note_untold(&row)?;
        if row.state.is_settled() { self.insert_done(&row, extra) } else { self.insert_live(&row, extra) }
    }

    /// Writes what the core decided over the rows of `before`.
    pub(super) fn write_job(&mut self, before: &Job, after: &Job, extra: &Extra) -> Result<(), Fault> {
        let (old, old_lease) = before.to_rows();
        let (new, new_lease) = after.to_rows();
        self.counts.moved(after.tenant, Some(old.state), new.state);
        if old.state != StateName::DeadLettered {
            self.note_untold(&new)?;
        }
        match (old.state.is_settled(), new.state.is_settled()) {
            (false, false) => self.write_live(&old, old_lease.as_ref(), &new, new_lease.as_ref()),
            (true, true) if old == new => Ok(()),
            (false, true) => {
                self.delete_live(&old)?;
                self.insert_done(&new, extra)
            }
            (true, true) => {
                self.delete_done(&old)?;
                self.insert_done(&new, extra)
            }
            (true, false) => {
                debug_assert!(new_lease.is_none(), "a settled job is not leased at once");
                self.delete_done(&old)?;
                self.insert_live(&new, extra)
            }
        }
    }

    fn insert_live(&mut self, row: &JobRow, extra: &Extra) -> Result<(), Fault> {
        if is_new(row) {
            let inserted = self.sql.jobs_insert_new.execute(params![
                row.tenant,
                row.id.to_be_bytes(),
                JobId(row.id).lane().0,
                row.kind.as_str(),
                row.share.as_str(),
                row.due_at,
                row.created_at,
                row.scheduled_at,
                row.budget_since,
                signed(row.budget_held_ms),
                extra.wire_id,
                extra.owner,
            ])?;
            return one(inserted);
        }
        let inserted = self.sql.jobs_insert.execute(params![
            row.tenant,
            row.id.to_be_bytes(),
            JobId(row.id).lane().0,
            row.kind.as_str(),
            row.state.as_str(),
            row.share.as_str(),
            row.due_at,
            row.next_step.map(NextStep::as_str),
            row.attempt,
            row.failed_before,
            row.created_at,
            row.scheduled_at,
            row.started_at,
            row.failures,
            row.lost_leases,
            row.uncharged,
            row.budget_since,
            signed(row.budget_held_ms),
            row.reason,
            row.cancel_requested,
            row.abandon.map(Cause::as_str),
            row.commit_heard,
            row.evidence_floor,
            row.checkpoint,
            extra.wire_id,
            extra.owner,
        ])?;
        one(inserted)
    }

    fn write_live(
        &mut self,
        old: &JobRow,
        old_lease: Option<&LeaseRow>,
        row: &JobRow,
        lease: Option<&LeaseRow>,
    ) -> Result<(), Fault> {
        let written = if old == row && old_lease == lease {
            return Ok(());
        } else if let (true, Some(_), Some(lease)) = (old == row, old_lease, lease) {
            let id = row.id.to_be_bytes();
            self.sql.jobs_write_lease.execute(params![row.tenant, id, lease.started_at, lease.expires_at])?
        } else if only_attempt_differs(old, row) {
            self.write_attempt_of(row, lease)?
        } else {
            self.write_all_of(row, lease)?
        };
        one(written)
    }

    fn write_attempt_of(&mut self, row: &JobRow, lease: Option<&LeaseRow>) -> Result<usize, Fault> {
        let written = self.sql.jobs_write_attempt.execute(params![
            row.tenant,
            row.id.to_be_bytes(),
            row.state.as_str(),
            row.due_at,
            row.next_step.map(NextStep::as_str),
            row.attempt,
            row.started_at,
            lease.map(|lease| &lease.worker),
            lease.map(|lease| lease.due_at),
            lease.map(|lease| lease.leased_at),
            lease.and_then(|lease| lease.started_at),
            lease.map(|lease| lease.expires_at),
            lease.map(|lease| lease.deadline_at),
        ])?;
        Ok(written)
    }

    fn write_all_of(&mut self, row: &JobRow, lease: Option<&LeaseRow>) -> Result<usize, Fault> {
        let written = self.sql.jobs_write.execute(params![
            row.tenant,
            row.id.to_be_bytes(),
            row.state.as_str(),
            row.share.as_str(),
            row.due_at,
            row.next_step.map(NextStep::as_str),
            row.attempt,
            row.failed_before,
            row.started_at,
            row.failures,
            row.lost_leases,
            row.uncharged,
            row.budget_since,
            signed(row.budget_held_ms),
            row.reason,
            row.cancel_requested,
            row.abandon.map(Cause::as_str),
            row.commit_heard,
            row.evidence_floor,
            row.checkpoint,
            lease.map(|lease| &lease.worker),
            lease.map(|lease| lease.due_at),
            lease.map(|lease| lease.leased_at),
            lease.and_then(|lease| lease.started_at),
            lease.map(|lease| lease.expires_at),
            lease.map(|lease| lease.deadline_at),
        ])?;
        Ok(written)
    }

    fn insert_done(&mut self, row: &JobRow, extra: &Extra) -> Result<(), Fault> {
        let inserted = self.sql.jobs_done_insert.execute(params![
            row.tenant,
            row.id.to_be_bytes(),
            JobId(row.id).lane().0,
            row.kind.as_str(),
            row.state.as_str(),
            row.share.as_str(),
            row.settled_at,
            row.cause.map(Cause::as_str),
            row.evidence.map(Evidence::as_str),
            row.attempt,
            row.failed_before,
            row.created_at,
            row.scheduled_at,
            row.started_at,
            row.failures,
            row.lost_leases,
            row.uncharged,
            row.budget_since,
            signed(row.budget_held_ms),
            row.reason,
            row.cancel_requested,
            row.abandon.map(Cause::as_str),
            row.commit_heard,
            row.evidence_floor,
            row.checkpoint,
            extra.wire_id,
            extra.owner,
        ])?;
        one(inserted)
    }

    fn delete_live(&mut self, row: &JobRow) -> Result<(), Fault> {
        one(self.sql.jobs_delete.execute(params![row.tenant, row.id.to_be_bytes()])?)
    }

    fn delete_done(&mut self, row: &JobRow) -> Result<(), Fault> {
        one(self.sql.jobs_done_delete.execute(params![row.tenant, row.id.to_be_bytes()])?)
    }
}

/// Asserts that a statement wrote the one row that it was meant for.
pub(super) fn one(rows: usize) -> Result<(), Fault> {
    if rows == 1 { Ok(()) } else { Err(Fault::Invariant("a statement for one row wrote another number")) }
}
