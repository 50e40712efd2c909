//! The rows, and the few ways in which they are found and written.

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use posthaste_core::{
    ApiKeyId, Attempt, CorruptRow, DestinationId, Epoch, EventId, Job, JobId, JobRow, Lane, LaneId, LeaseRow,
    MessageId, MessageKey, NextStep, RunId, Scheduling, Share, State, TenantId, Timestamp,
};

use super::retention::{Archived, ArchivedEntry};
use crate::{
    ApiKeyRow, ArchiveFile, AttemptView, BulkRun, CustodyEntry, DestinationRow, KeyKind, LaneEvent,
    LedgerEntry, NewMessage, ScheduleRow, Stage, Target, Untold, step,
};

/// The epoch of every store in memory: it can't go back in time.
pub(crate) const EPOCH: Epoch = Epoch(1);

/// Everything that is stored; or, in a transaction of PostgreSQL, the part of it that is locked. Tenants come first in
/// every key.
#[derive(Clone, Default)]
pub(crate) struct Tables {
    pub(crate) tenants: BTreeMap<TenantId, Box<str>>,
    pub(crate) lanes: BTreeMap<(TenantId, LaneId), LaneRow>,
    pub(crate) scheduling: BTreeMap<TenantId, Scheduling>,
    /// Of each lane, oldest first; of `None` the tenant's scheduling.
    pub(crate) lane_events: BTreeMap<(TenantId, Option<LaneId>), Vec<LaneEvent>>,
    pub(crate) destinations: BTreeMap<(TenantId, DestinationId), DestinationRow>,
    pub(crate) api_keys: BTreeMap<(TenantId, ApiKeyId), ApiKeyRow>,
    /// Every name of every message.
    pub(crate) names: BTreeMap<(TenantId, MessageKey), MessageId>,
    pub(crate) messages: BTreeMap<(TenantId, MessageId), Message>,
    /// In the order of acceptance.
    pub(crate) fanouts: BTreeMap<u64, FanOut>,
    /// Written by [`Tables::write_job`] only.
    pub(crate) jobs: BTreeMap<(TenantId, JobId), JobEntry>,
    /// What waits for an attempt.
    pub(crate) waiting: BTreeSet<(TenantId, LaneId, Share, Timestamp, JobId)>,
    /// What waits for a look-up.
    pub(crate) owed: BTreeSet<(TenantId, LaneId, Timestamp, JobId)>,
    /// What is leased, by the end of the lease.
    pub(crate) leased: BTreeSet<(Timestamp, TenantId, JobId)>,
    pub(crate) attempts: BTreeMap<(TenantId, JobId, Attempt), AttemptView>,
    pub(crate) custody: BTreeMap<(TenantId, MessageId), Vec<CustodyEntry>>,
    pub(crate) ledger: BTreeMap<(TenantId, EventId), LedgerEntry>,
    /// The last place in the order of acceptance.
    pub(crate) last_seq: u64,
    pub(crate) archived: BTreeMap<(TenantId, MessageId), Archived>,
    pub(crate) archived_entries: BTreeMap<(TenantId, EventId), ArchivedEntry>,
    pub(crate) archive_files: BTreeMap<Box<str>, ArchiveFile>,
    pub(crate) schedules: BTreeMap<(TenantId, DestinationId), ScheduleRow>,
    pub(crate) bulk_runs: BTreeMap<(TenantId, RunId), BulkRun>,
    /// Dead letters that nobody was told of yet.
    pub(crate) untold: BTreeMap<(TenantId, JobId, Timestamp), Untold>,
    /// The fence of a key without a row, if it is above 1.
    pub(crate) first_fence: u64,
    /// If it is not [`EPOCH`].
    pub(crate) epoch: Option<Epoch>,
    /// Jobs whose rows can't be read.
    pub(crate) corrupt: BTreeMap<(TenantId, JobId), CorruptRow>,
    /// Messages whose payloads are stored and not here: nobody is given their jobs.
    pub(crate) unread: BTreeSet<(TenantId, MessageId)>,
    /// Custody entries that are stored and not here, where their number counts.
    pub(crate) noted_before: BTreeMap<(TenantId, MessageId, Option<JobId>, Stage), usize>,
    /// Where the store has given out places in the order of acceptance: the next ones.
    pub(crate) reserved_seqs: VecDeque<u64>,
}

/// A lane outlives its destination.
#[derive(Clone, PartialEq)]
pub(crate) struct LaneRow {
    pub(crate) destination: DestinationId,
    pub(crate) lane: Lane,
}

/// A message as it was accepted, without its targets.
#[derive(Clone)]
pub(crate) struct Message {
    /// Counts acceptances.
    pub(crate) seq: u64,
    pub(crate) accepted_at: Timestamp,
    pub(crate) jobs_total: usize,
    pub(crate) duplicates: u64,
    /// Its names beside the business key.
    pub(crate) others: BTreeMap<MessageKey, KeyKind>,
    pub(crate) given: NewMessage,
}

/// Jobs that are still to be made.
#[derive(Clone, PartialEq)]
pub(crate) struct FanOut {
    pub(crate) tenant: TenantId,
    pub(crate) message: MessageId,
    pub(crate) due_at: Timestamp,
    pub(crate) targets: Vec<Target>,
    pub(crate) made: usize,
    /// The lane of the source that was paused when the message came.
    pub(crate) held_by: Option<LaneId>,
}

/// A job's rows, and what no decision reads.
#[derive(Clone, PartialEq)]
pub(crate) struct JobEntry {
    pub(crate) row: JobRow,
    pub(crate) lease: Option<LeaseRow>,
    pub(crate) wire_id: Option<Box<str>>,
    pub(crate) owner: Option<Box<str>>,
}

impl JobEntry {
    pub(crate) fn job(&self) -> Result<Job, CorruptRow> {
        Job::from_rows(self.row.clone(), self.lease.clone())
    }
}

impl Tables {
    /// The next place in the order of acceptance.
    pub(crate) fn next_seq(&mut self) -> u64 {
        self.last_seq = self.reserved_seqs.pop_front().unwrap_or(self.last_seq + 1);
        self.last_seq
    }

    /// Takes a job in that is stored. One that can't be read is among [`Self::corrupt`].
    pub(crate) fn load_job(&mut self, tenant: TenantId, id: JobId, entry: JobEntry) {
        match entry.job() {
            Ok(job) => {
                self.index(&job);
                self.jobs.insert((tenant, id), entry);
            }
            Err(corrupt) => {
                self.corrupt.insert((tenant, id), corrupt);
            }
        }
    }

    /// Inserts the job of `target`.
    pub(crate) fn insert_job(&mut self, job: &Job, target: Target) {
        let (row, lease) = job.to_rows();
        let entry = JobEntry { row, lease, wire_id: target.wire_id, owner: target.owner };
        let taken = self.jobs.insert((job.tenant, job.id), entry);
        assert!(taken.is_none(), "{} was made twice", job.id);
        self.index(job);
        self.note_untold(job);
    }

    /// Writes what the core decided over the rows of `before`.
    pub(crate) fn write_job(&mut self, before: &Job, after: &Job) {
        self.unindex(before);
        let entry = self.jobs.get_mut(&(after.tenant, after.id)).expect("the job was read under this lock");
        (entry.row, entry.lease) = after.to_rows();
        self.index(after);
        if !matches!(before.state, State::DeadLettered { .. }) {
            self.note_untold(after);
        }
    }

    /// Notes a job that became a dead letter; any other is none of it.
    fn note_untold(&mut self, job: &Job) {
        if let State::DeadLettered { at, cause } = job.state {
            let untold = Untold { tenant: job.tenant, job: job.id, at, attempt: job.attempt, cause };
            self.untold.insert((job.tenant, job.id, at), untold);
        }
    }

    fn index(&mut self, job: &Job) {
        if let Some(due_at) = waits_since(job) {
            self.waiting.insert((job.tenant, job.lane, job.share, due_at, job.id));
        }
        if let State::Retryable { due_at, next: NextStep::LookUp } = job.state {
            self.owed.insert((job.tenant, job.lane, due_at, job.id));
        }
        if let State::Leased(lease) = &job.state {
            self.leased.insert((lease.expires_at, job.tenant, job.id));
        }
    }

    fn unindex(&mut self, job: &Job) {
        if let Some(due_at) = waits_since(job) {
            self.waiting.remove(&(job.tenant, job.lane, job.share, due_at, job.id));
        }
        if let State::Retryable { due_at, next: NextStep::LookUp } = job.state {
            self.owed.remove(&(job.tenant, job.lane, due_at, job.id));
        }
        if let State::Leased(lease) = &job.state {
            self.leased.remove(&(lease.expires_at, job.tenant, job.id));
        }
    }

    /// The message that the job belongs to.
    pub(crate) fn message_of(&self, tenant: TenantId, job: JobId) -> (MessageId, &Message) {
        let (first, last) = (MessageId(job.0 & !0xFFFF_FFFF), MessageId(job.0 | 0xFFFF_FFFF));
        let ((_, id), message) = self
            .messages
            .range((tenant, first)..=(tenant, last))
            .next()
            .expect("a job is made of its message");
        assert!(step::is_job_of(*id, job), "the range is that of the job's message");
        (*id, message)
    }

    /// The jobs of one share that wait for an attempt, oldest due time first.
    pub(crate) fn waiting_of(
        &self,
        tenant: TenantId,
        lane: LaneId,
        share: Share,
    ) -> impl Iterator<Item = (Timestamp, JobId)> {
        let first = (tenant, lane, share, Timestamp(i64::MIN), JobId(u128::MIN));
        let last = (tenant, lane, share, Timestamp(i64::MAX), JobId(u128::MAX));
        self.waiting.range(first..=last).map(|(.., due_at, job)| (*due_at, *job))
    }

    pub(crate) fn note(&mut self, entry: CustodyEntry) {
        self.custody.entry((entry.tenant, entry.message)).or_default().push(entry);
    }

    /// How many entries of `stage` the message, or its `job`, has.
    pub(crate) fn noted(
        &self,
        tenant: TenantId,
        message: MessageId,
        job: Option<JobId>,
        stage: Stage,
    ) -> usize {
        let entries = self.custody.get(&(tenant, message)).map_or(&[][..], Vec::as_slice);
        let before = self.noted_before.get(&(tenant, message, job, stage)).copied().unwrap_or(0);
        before + entries.iter().filter(|entry| entry.job == job && entry.stage == stage).count()
    }
}

/// Since when, or from when, the job waits for an attempt, if it does. A job that waits for a look-up does not.
fn waits_since(job: &Job) -> Option<Timestamp> {
    match &job.state {
        State::Scheduled { due_at } | State::Retryable { due_at, next: NextStep::Attempt } => Some(*due_at),
        State::Retryable { next: NextStep::LookUp, .. }
        | State::Leased(_)
        | State::Committed { .. }
        | State::DeadLettered { .. }
        | State::Cancelled { .. } => None,
    }
}
