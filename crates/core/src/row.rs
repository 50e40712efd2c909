//! The flat rows that every SQL store reads and writes. The mapping lives here, once.

use crate::{
    Attempt, Budgets, Cause, Evidence, Job, JobId, Kind, Lease, NextStep, Share, State, StateName, TenantId,
    Timestamp,
};

/// One row of `jobs` or `jobs_done`, column for column; `None` is SQL NULL.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each column is documented in docs/adr/0001-schema.md
pub struct JobRow {
    pub tenant: u32,
    pub id: u128,
    pub kind: Kind,
    pub state: StateName,
    pub due_at: Option<i64>,
    pub next_step: Option<NextStep>,
    pub settled_at: Option<i64>,
    pub cause: Option<Cause>,
    pub evidence: Option<Evidence>,
    pub share: Share,
    pub attempt: u32,
    pub failed_before: bool,
    pub created_at: i64,
    pub scheduled_at: i64,
    pub started_at: Option<i64>,
    pub failures: u32,
    pub lost_leases: u32,
    pub uncharged: u32,
    pub budget_since: i64,
    pub budget_held_ms: u64,
    pub reason: Option<Box<str>>,
    pub cancel_requested: bool,
    pub abandon: Option<Cause>,
    pub commit_heard: u32,
    pub evidence_floor: u32,
    pub checkpoint: Option<Box<[u8]>>,
}

/// One row of `leases`: exactly the leased jobs have one.
#[derive(Clone, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // each column is documented in docs/adr/0001-schema.md
pub struct LeaseRow {
    pub worker: Box<str>,
    pub due_at: i64,
    pub leased_at: i64,
    pub started_at: Option<i64>,
    pub expires_at: i64,
    pub deadline_at: i64,
}

/// Rows that no write of ours can have produced. Don't retry; tell a person.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("job {} is corrupt: {what}", JobId(*.id))]
pub struct CorruptRow {
    /// Which job.
    pub id: u128,
    /// What doesn't fit.
    pub what: &'static str,
}

impl Job {
    /// The rows of this job.
    pub fn to_rows(&self) -> (JobRow, Option<LeaseRow>) {
        let (next_step, cause, evidence) = match self.state {
            State::Retryable { next, .. } => (Some(next), None, None),
            State::DeadLettered { cause, .. } => (None, Some(cause), None),
            State::Committed { evidence, .. } => (None, None, Some(evidence)),
            State::Scheduled { .. } | State::Leased(_) | State::Cancelled { .. } => (None, None, None),
        };
        let row = JobRow {
            tenant: self.tenant.0,
            id: self.id.0,
            kind: self.kind,
            state: self.state.name(),
            due_at: self.state.due_at().map(|at| at.0),
            next_step,
            settled_at: self.state.settled_at().map(|at| at.0),
            cause,
            evidence,
            share: self.share,
            attempt: self.attempt.map_or(0, Attempt::get),
            failed_before: self.failed_before,
            created_at: self.created_at.0,
            scheduled_at: self.scheduled_at.0,
            started_at: self.started_at.map(|at| at.0),
            failures: self.budgets.failures,
            lost_leases: self.budgets.lost_leases,
            uncharged: self.budgets.uncharged,
            budget_since: self.budgets.since.0,
            budget_held_ms: self.budgets.held_ms,
            reason: self.reason.clone(),
            cancel_requested: self.cancel_requested,
            abandon: self.abandon,
            commit_heard: self.commit_heard.map_or(0, Attempt::get),
            evidence_floor: self.evidence_floor,
            checkpoint: self.checkpoint.clone(),
        };
        let State::Leased(lease) = &self.state else {
            return (row, None);
        };
        let lease = LeaseRow {
            worker: lease.worker.clone(),
            due_at: lease.due_at.0,
            leased_at: lease.leased_at.0,
            started_at: lease.started_at.map(|at| at.0),
            expires_at: lease.expires_at.0,
            deadline_at: lease.deadline_at.0,
        };
        (row, Some(lease))
    }

    /// The job that the rows hold.
    ///
    /// Errors: [`CorruptRow`] if they fit no state, or break an invariant.
    pub fn from_rows(row: JobRow, lease: Option<LeaseRow>) -> Result<Self, CorruptRow> {
        let corrupt = |what| CorruptRow { id: row.id, what };
        let Some(state) = state_of(&row, lease) else {
            return Err(corrupt("its columns fit no state"));
        };
        if matches!(state, State::Leased(_) | State::Retryable { .. }) && row.attempt == 0 {
            return Err(corrupt("it is leased or retryable without an attempt"));
        }
        if matches!(&state, State::Leased(lease) if lease.expires_at > lease.deadline_at) {
            return Err(corrupt("its lease outlasts its deadline"));
        }
        if row.cancel_requested && !matches!(state, State::Leased(_)) && !state.name().is_settled() {
            return Err(corrupt("a cancel was asked of no running attempt"));
        }
        if row.commit_heard > row.attempt || row.evidence_floor > row.attempt {
            return Err(corrupt("it names an attempt that never was"));
        }
        let ended = if matches!(state, State::Leased(_)) { row.attempt - 1 } else { row.attempt };
        if row.failures.saturating_add(row.lost_leases) > ended {
            return Err(corrupt("more attempts were charged than ended"));
        }
        Ok(Self {
            id: JobId(row.id),
            tenant: TenantId(row.tenant),
            lane: JobId(row.id).lane(),
            kind: row.kind,
            state,
            attempt: Attempt::new(row.attempt),
            failed_before: row.failed_before,
            created_at: Timestamp(row.created_at),
            scheduled_at: Timestamp(row.scheduled_at),
            started_at: row.started_at.map(Timestamp),
            share: row.share,
            budgets: Budgets {
                failures: row.failures,
                lost_leases: row.lost_leases,
                uncharged: row.uncharged,
                since: Timestamp(row.budget_since),
                held_ms: row.budget_held_ms,
            },
            reason: row.reason,
            cancel_requested: row.cancel_requested,
            abandon: row.abandon,
            commit_heard: Attempt::new(row.commit_heard),
            evidence_floor: row.evidence_floor,
            checkpoint: row.checkpoint,
        })
    }
}

/// The one state that the columns fit, if they fit one.
fn state_of(row: &JobRow, lease: Option<LeaseRow>) -> Option<State> {
    let columns = (row.due_at, row.next_step, row.settled_at, row.cause, row.evidence, lease);
    match (row.state, columns) {
        (StateName::Scheduled, (Some(due_at), None, None, None, None, None)) => {
            Some(State::Scheduled { due_at: Timestamp(due_at) })
        }
        (StateName::Retryable, (Some(due_at), Some(next), None, None, None, None)) => {
            Some(State::Retryable { due_at: Timestamp(due_at), next })
        }
        (StateName::Leased, (None, None, None, None, None, Some(lease))) => Some(State::Leased(Lease {
            worker: lease.worker,
            due_at: Timestamp(lease.due_at),
            leased_at: Timestamp(lease.leased_at),
            started_at: lease.started_at.map(Timestamp),
            expires_at: Timestamp(lease.expires_at),
            deadline_at: Timestamp(lease.deadline_at),
        })),
        (StateName::Committed, (None, None, Some(at), None, Some(evidence), None)) => {
            Some(State::Committed { at: Timestamp(at), evidence })
        }
        (StateName::DeadLettered, (None, None, Some(at), Some(cause), None, None)) => {
            Some(State::DeadLettered { at: Timestamp(at), cause })
        }
        (StateName::Cancelled, (None, None, Some(at), None, None, None)) => {
            Some(State::Cancelled { at: Timestamp(at) })
        }
        _ => None,
    }
}
