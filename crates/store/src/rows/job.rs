//! A job's rows. What the columns mean stands in [`posthaste_core::JobRow`].

use posthaste_core::{
    Cause, CorruptRow, Evidence, JobId, JobRow, Kind, LeaseRow, NextStep, Share, StateName, TenantId,
};

use super::cells::Cells;

/// What a job's row holds and no decision reads.
#[derive(Clone, Debug, Default)]
pub(crate) struct Extra {
    pub(crate) wire_id: Option<Box<str>>,
    pub(crate) owner: Option<Box<str>>,
}

/// The columns of a job before those of its lease.
pub(crate) fn job_row(
    cells: &mut Cells<'_>,
    tenant: TenantId,
    id: JobId,
) -> Result<(JobRow, Extra), CorruptRow> {
    let row = JobRow {
        tenant: tenant.0,
        id: id.0,
        kind: cells.word(Kind::parse)?,
        state: cells.word(StateName::parse)?,
        share: cells.word(Share::parse)?,
        due_at: cells.maybe_int()?,
        next_step: cells.maybe_word(NextStep::parse)?,
        settled_at: cells.maybe_int()?,
        cause: cells.maybe_word(Cause::parse)?,
        evidence: cells.maybe_word(Evidence::parse)?,
        attempt: cells.int()?,
        failed_before: cells.flag()?,
        created_at: cells.int()?,
        scheduled_at: cells.int()?,
        started_at: cells.maybe_int()?,
        failures: cells.int()?,
        lost_leases: cells.int()?,
        uncharged: cells.int()?,
        budget_since: cells.int()?,
        budget_held_ms: cells.int()?,
        reason: cells.maybe_text()?,
        cancel_requested: cells.flag()?,
        abandon: cells.maybe_word(Cause::parse)?,
        commit_heard: cells.int()?,
        evidence_floor: cells.int()?,
        checkpoint: cells.maybe_bytes()?.map(Box::from),
    };
    let extra = Extra { wire_id: cells.maybe_text()?, owner: cells.maybe_text()? };
    Ok((row, extra))
}

/// The columns of a lease, all NULL without one.
pub(crate) fn lease_row(cells: &mut Cells<'_>) -> Result<Option<LeaseRow>, CorruptRow> {
    let Some(worker) = cells.maybe_text()? else { return Ok(None) };
    Ok(Some(LeaseRow {
        worker,
        due_at: cells.int()?,
        leased_at: cells.int()?,
        started_at: cells.maybe_int()?,
        expires_at: cells.int()?,
        deadline_at: cells.int()?,
    }))
}

/// Whether a row is as most begin, so that the short statement writes it.
pub(crate) fn is_new(row: &JobRow) -> bool {
    // Every column is named, so that a new one can't be left out here.
    let JobRow {
        tenant: _,
        id: _,
        kind: _,
        state,
        due_at: _,
        next_step,
        settled_at,
        cause,
        evidence,
        share: _,
        attempt,
        failed_before,
        created_at: _,
        scheduled_at: _,
        started_at,
        failures,
        lost_leases,
        uncharged,
        budget_since: _,
        budget_held_ms: _,
        reason,
        cancel_requested,
        abandon,
        commit_heard,
        evidence_floor,
        checkpoint,
    } = row;
    *state == StateName::Scheduled
        && (*attempt, *failures, *lost_leases, *uncharged, *commit_heard, *evidence_floor)
            == (0, 0, 0, 0, 0, 0)
        && (*failed_before, *cancel_requested, *abandon) == (false, false, None)
        && (*next_step, *settled_at, *cause, *evidence, *started_at) == (None, None, None, None, None)
        && (reason, checkpoint) == (&None, &None)
}

/// Whether two live rows are the same but for what a lease and a start change.
pub(crate) fn only_attempt_differs(old: &JobRow, new: &JobRow) -> bool {
    // Every column is named, so that a new one can't be left out here.
    let JobRow {
        tenant,
        id,
        kind,
        state: _,
        due_at: _,
        next_step: _,
        settled_at,
        cause,
        evidence,
        share,
        attempt: _,
        failed_before,
        created_at,
        scheduled_at,
        started_at: _,
        failures,
        lost_leases,
        uncharged,
        budget_since,
        budget_held_ms,
        reason,
        cancel_requested,
        abandon,
        commit_heard,
        evidence_floor,
        checkpoint,
    } = old;
    (*tenant, *id, *kind, *share) == (new.tenant, new.id, new.kind, new.share)
        && (*settled_at, *cause, *evidence) == (new.settled_at, new.cause, new.evidence)
        && (*failed_before, *cancel_requested, *abandon)
            == (new.failed_before, new.cancel_requested, new.abandon)
        && (*created_at, *scheduled_at) == (new.created_at, new.scheduled_at)
        && (*failures, *lost_leases, *uncharged) == (new.failures, new.lost_leases, new.uncharged)
        && (*budget_since, *budget_held_ms) == (new.budget_since, new.budget_held_ms)
        && (*commit_heard, *evidence_floor) == (new.commit_heard, new.evidence_floor)
        && (reason, checkpoint) == (&new.reason, &new.checkpoint)
}
