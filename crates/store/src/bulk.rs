//! Bulk runs: an operator's order for many jobs, kept as a row and carried out a few jobs at a time.
//!
//! A run goes over the jobs of its tenant by id, once. Each step takes the next of them through the very decision that a
//! single command takes, and commits what was decided together with how far the run is: so a crash at any moment neither
//! leaves a job out nor takes one twice. The reasons are in docs/adr/0006-recovery-bulk.md.

use std::{collections::BTreeMap, sync::Arc};

use posthaste_core::{
    BulkFilter, BulkOutcome, Command, DestinationId, Job, JobId, LaneId, Policy, RunControl, RunId, RunKind,
    RunState, TenantId, Timestamp, limits,
};

use crate::{BoxFuture, Change, CustodyEntry, JobCommand, StoreError};

/// Jobs that one step looks at, whether they fit or not: little enough to go along with what others wait for.
pub(crate) const STEP_EXAMINED_MAX: usize = 256;

/// Jobs that one look of a count passes over.
pub(crate) const COUNT_EXAMINED_MAX: usize = 4_096;

/// What a run is to do. Two requests under one idempotency key must be the same.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkRequest {
    /// Replay or cancel.
    pub kind: RunKind,
    /// Which jobs.
    pub filter: BulkFilter,
    /// The name of the filter's lane, for people.
    pub destination: Option<DestinationId>,
    /// Why; shown with every job. 1 to [`limits::REASON_BYTES_MAX`] bytes.
    pub reason: Box<str>,
    /// The asker vouches that no effect has happened, though attempts may have acted.
    pub assume_not_done: bool,
    /// Jobs a second, 1 to [`limits::BULK_RATE_MAX`].
    pub per_second: u32,
}

/// A run to begin.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewBulkRun {
    /// Whose.
    pub tenant: TenantId,
    /// Its name, new.
    pub id: RunId,
    /// What it is to do.
    pub request: BulkRequest,
    /// Names the request: the same key finds the same run, for ever.
    pub idempotency_key: Option<Box<str>>,
    /// Who asks.
    pub actor: Box<str>,
    /// How many jobs fit shortly before, if they were counted.
    pub expected: Option<u64>,
}

/// What [`Bulk::bulk_begin`] came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Begun {
    /// It runs.
    New(Box<BulkRun>),
    /// The same request came before: this is its run.
    Same(Box<BulkRun>),
    /// Another request had the idempotency key.
    KeyReused(RunId),
    /// The tenant has [`limits::BULK_RUNS_LIVE_MAX`] runs that run or are paused.
    TooMany,
}

/// A run as it stands.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct BulkRun {
    /// Whose.
    pub tenant: TenantId,
    /// Its name.
    pub id: RunId,
    /// What it is to do.
    pub request: BulkRequest,
    /// See [`NewBulkRun::idempotency_key`].
    pub idempotency_key: Option<Box<str>>,
    /// Who asked.
    pub actor: Box<str>,
    /// How it stands.
    pub state: RunState,
    /// How many jobs fit shortly before it began, if they were counted.
    pub expected: Option<u64>,
    /// When it began: jobs that came to fit later are not touched.
    pub began_at: Timestamp,
    /// The last job that it looked at.
    pub cursor: Option<JobId>,
    /// What it did.
    pub counts: BulkCounts,
    /// The first jobs that were refused, at most [`limits::BULK_REFUSED_LISTED_MAX`].
    pub refused: Vec<RefusedJob>,
    /// Why it failed.
    pub problem: Option<Box<str>>,
    /// Since when it stands so.
    pub updated_at: Timestamp,
    /// When it ended.
    pub finished_at: Option<Timestamp>,
}

/// What a run did, job by job.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BulkCounts {
    /// Jobs that it looked at.
    pub examined: u64,
    /// Those that fit: the sum of `done`, `requested`, `settled` and all of `refused`.
    pub matched: u64,
    /// Replayed, or called off.
    pub done: u64,
    /// Running ones whose worker was asked to stop.
    pub requested: u64,
    /// Settled by evidence; nothing is sent.
    pub settled: u64,
    /// Jobs that fit, but only since the run began.
    pub skipped: u64,
    /// Left as they are, by the code of the refusal.
    pub refused: BTreeMap<Box<str>, u64>,
}

/// A job that a run left as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedJob {
    /// Which.
    pub job: JobId,
    /// Why.
    pub code: Box<str>,
}

/// Whether the jobs of a lane may go round again, and by which policy that is decided.
#[derive(Clone, Debug)]
pub enum LaneGate {
    /// By this policy.
    Open(Arc<Policy>),
    /// Nothing could be sent; with the code.
    Closed(&'static str),
}

/// The gate of each lane of a tenant.
pub type LaneGates = Arc<dyn Fn(LaneId) -> LaneGate + Send + Sync>;

/// One step of a run.
#[derive(Clone)]
pub struct BulkStep {
    /// Whose.
    pub tenant: TenantId,
    /// Which run.
    pub run: RunId,
    /// At most so many jobs that fit.
    pub jobs_max: usize,
    /// The lanes as they are configured now.
    pub gates: LaneGates,
}

/// What a step did.
#[derive(Clone, Debug)]
pub struct BulkStepped {
    /// The run after it.
    pub run: BulkRun,
    /// How many jobs that fit it took.
    pub taken: usize,
    /// What it wrote.
    pub changes: Vec<Change>,
}

/// What somebody asks of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BulkChange {
    /// An operator.
    Control(RunControl),
    /// It can't go on: why.
    Fail(Box<str>),
}

/// What became of a [`BulkChange`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Controlled {
    /// The tenant has no such run.
    Missing,
    /// Not in this state.
    Refused(RunState),
    /// It stands so now; perhaps it did before.
    Stands(Box<BulkRun>),
}

/// Where a count goes on.
#[derive(Clone, Debug)]
pub struct BulkCount {
    /// Whose jobs.
    pub tenant: TenantId,
    /// For which kind of run.
    pub kind: RunKind,
    /// Which jobs.
    pub filter: BulkFilter,
    /// After this one.
    pub after: Option<JobId>,
}

/// What one look of a count found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BulkCounted {
    /// Jobs that it looked at.
    pub examined: u64,
    /// Those that fit.
    pub matched: u64,
    /// Where to go on; `None` at the end.
    pub next: Option<JobId>,
}

/// Bulk runs. Errors and durability as for [`crate::Store`] and [`crate::Reads`].
pub trait Bulk: Send + Sync {
    /// Begins a run, or finds the one that the same request began. One commit.
    fn bulk_begin(&self, new: NewBulkRun) -> BoxFuture<'_, Result<Begun, StoreError>>;

    /// Takes the next jobs of a run: what is decided for them, and how far the run is, in one commit. Background.
    ///
    /// By id, each job once. Jobs that fit and were so when the run began ([`posthaste_core::BulkRow::was_so_at`]) are
    /// decided with the facts of this transaction, in the name of the attempt that is seen in it. A run that is not
    /// running is given as it is. `None`: the tenant has no such run.
    fn bulk_step(&self, step: BulkStep) -> BoxFuture<'_, Result<Option<BulkStepped>, StoreError>>;

    /// Pauses, resumes, stops or fails a run. One commit; the next step sees it.
    fn bulk_control(
        &self,
        tenant: TenantId,
        run: RunId,
        change: BulkChange,
    ) -> BoxFuture<'_, Result<Controlled, StoreError>>;

    /// Counts the jobs that a run would be about if it began now; looks at so many rows at most.
    fn bulk_count(&self, count: BulkCount) -> BoxFuture<'_, Result<BulkCounted, StoreError>>;

    /// A run.
    fn bulk_run(&self, tenant: TenantId, run: RunId) -> BoxFuture<'_, Result<Option<BulkRun>, StoreError>>;

    /// Runs of one kind, newest first, before `before`, at most `limit`.
    fn bulk_runs(
        &self,
        tenant: TenantId,
        kind: RunKind,
        before: Option<RunId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<BulkRun>, StoreError>>;

    /// Every run of every tenant that goes on, by tenant and id: what is to be taken up after a start.
    fn bulk_running(&self) -> BoxFuture<'_, Result<Vec<BulkRun>, StoreError>>;
}

impl NewBulkRun {
    /// The run as it begins.
    pub(crate) fn begun(&self, now: Timestamp) -> BulkRun {
        BulkRun {
            tenant: self.tenant,
            id: self.id,
            request: self.request.clone(),
            idempotency_key: self.idempotency_key.clone(),
            actor: self.actor.clone(),
            state: RunState::Running,
            expected: self.expected,
            began_at: now,
            cursor: None,
            counts: BulkCounts::default(),
            refused: Vec::new(),
            problem: None,
            updated_at: now,
            finished_at: None,
        }
    }

    /// What it comes to where its key, or its id, is known.
    pub(crate) fn found(&self, known: BulkRun) -> Begun {
        if known.request == self.request { Begun::Same(Box::new(known)) } else { Begun::KeyReused(known.id) }
    }
}

impl BulkRun {
    /// What it asks of a job; or the code by which it leaves it alone.
    pub(crate) fn command_for(&self, job: &Job, gates: &LaneGates) -> Result<JobCommand, &'static str> {
        let reason = self.request.reason.clone();
        let (command, policy) = match (self.request.kind, gates(job.lane)) {
            (RunKind::Cancel, LaneGate::Open(policy)) => (Command::Cancel { reason }, policy),
            // Calling off sends nothing: it needs no destination.
            (RunKind::Cancel, LaneGate::Closed(_)) => {
                (Command::Cancel { reason }, Arc::new(Policy::queue_default()))
            }
            (RunKind::Replay, LaneGate::Closed(code)) => return Err(code),
            (RunKind::Replay, LaneGate::Open(policy)) => {
                let (seen, assume_not_done) = (job.attempt, self.request.assume_not_done);
                (Command::Replay { seen, assume_not_done, reason }, policy)
            }
        };
        let actor = Some(self.actor.clone());
        Ok(JobCommand { tenant: self.tenant, job: job.id, command, policy, hold_lane_until: None, actor })
    }

    /// Counts what was done with a job that fits.
    pub(crate) fn count(&mut self, job: JobId, outcome: BulkOutcome) {
        let counts = &mut self.counts;
        counts.matched += 1;
        match outcome {
            BulkOutcome::Done => counts.done += 1,
            BulkOutcome::Requested => counts.requested += 1,
            BulkOutcome::Settled => counts.settled += 1,
            BulkOutcome::Refused(code) => {
                *counts.refused.entry(code.into()).or_default() += 1;
                if self.refused.len() < limits::BULK_REFUSED_LISTED_MAX {
                    self.refused.push(RefusedJob { job, code: code.into() });
                }
            }
        }
    }

    /// How it stands after a step: at its end if `ended`.
    pub(crate) fn stepped(&mut self, ended: bool, now: Timestamp) {
        self.updated_at = now;
        if ended {
            self.state = RunState::Done;
            self.finished_at = Some(now);
        }
    }

    /// How it stands after `change`; `None` if that is not possible any more.
    pub(crate) fn changed(&self, change: &BulkChange, now: Timestamp) -> Option<Self> {
        let (state, problem) = match change {
            BulkChange::Control(control) => (self.state.after(*control)?, None),
            BulkChange::Fail(problem) if self.state == RunState::Running => {
                (RunState::Failed, Some(problem.clone()))
            }
            BulkChange::Fail(_) => return None,
        };
        if state == self.state {
            return Some(self.clone());
        }
        let finished_at = (!state.is_live()).then_some(now);
        Some(Self { state, problem, updated_at: now, finished_at, ..self.clone() })
    }
}

/// The entry with the run that it came by.
pub(crate) fn in_run(mut entry: CustodyEntry, run: RunId) -> CustodyEntry {
    let detail = entry.detail.as_deref().and_then(|text| serde_json::from_str(text).ok());
    let mut detail: serde_json::Map<String, serde_json::Value> = detail.unwrap_or_default();
    detail.insert("run".to_owned(), run.to_string().into());
    entry.detail = Some(serde_json::Value::Object(detail).to_string().into());
    entry
}
