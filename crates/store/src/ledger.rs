//! The receiver's ledger as a service: entries by key, decided by [`posthaste_core::ledger`].
//!
//! The event id of a job needs no entry of its own while nobody but its queue guards it: the job's row is the entry
//! then ([`of_job`]). An entry is made when somebody claims or resets that key over the ledger's own calls, and counts
//! from then on.

use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::{
    Attempt, Class, Command, Details, DurationMs, Effect, Entry as Fact, EventId, Evidence, Failure, Fence,
    Job, JobId, LaneId, MessageId, MessageKey, Path, Policy, RetryWish, State, TenantId, Timestamp,
    ledger::{self, Claim, Entry, OnExpired, Outcome, Previous, Report, Seen, Status},
};

use crate::{AttemptView, Change, CustodyEntry, JobCommand, Stage};

/// One command on one entry.
#[derive(Clone, Debug)]
pub struct LedgerCommand {
    /// Whose.
    pub tenant: TenantId,
    /// Which entry.
    pub key: EventId,
    /// The job that this event id would be, if the key has its form and there is such a destination.
    pub job: Option<NamedJob>,
    /// What is asked.
    pub action: LedgerAction,
    /// Who asks.
    pub actor: Option<Box<str>>,
}

/// A job by its event id: its message's key and its destination's lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NamedJob {
    /// The key of its message.
    pub key: MessageKey,
    /// The lane of its destination.
    pub lane: LaneId,
    /// Whether the destination is a queue that keeps the ledger, so that the job's row is an entry.
    pub guarded: bool,
}

/// What is asked of an entry. The rules are those of [`posthaste_core::ledger`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerAction {
    /// May the effect begin?
    Claim {
        /// How long the grant holds.
        lease: DurationMs,
        /// What the payload is.
        fingerprint: Option<Box<[u8]>>,
        /// Names this request, so that a repeat gets the same grant.
        claim_id: Option<Box<str>>,
        /// What becomes of the grant if it runs out.
        on_expired: OnExpired,
    },
    /// The effect happened, or surely never will.
    Complete {
        /// Proof of the grant.
        fence: u64,
        /// Which of the two.
        outcome: Outcome,
        /// What duplicates are answered.
        result: StoredResult,
    },
    /// The effect surely did not happen.
    Fail {
        /// Proof of the grant.
        fence: u64,
        /// Why.
        class: Option<Class>,
        /// Why, for people.
        message: Option<Box<str>>,
    },
    /// The effect takes longer.
    Extend {
        /// Proof of the grant.
        fence: u64,
        /// From now until the grant ends.
        lease: DurationMs,
    },
    /// An operator wants the effect anew.
    Reset {
        /// What the operator saw.
        seen: Seen,
        /// Why, for ever shown.
        reason: Box<str>,
    },
}

/// What a duplicate is answered: kept and given back byte for byte.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredResult {
    /// The bytes; `None`: there is no answer.
    pub bytes: Option<Bytes>,
    /// Their media type.
    pub content_type: Option<Box<str>>,
    /// The HTTP status they were sent with.
    pub status: Option<u16>,
}

impl StoredResult {
    /// What a worker of a queue reported: JSON.
    pub(crate) fn of_worker(result: Option<&[u8]>) -> Self {
        Self {
            bytes: result.map(Bytes::copy_from_slice),
            content_type: result.map(|_| "application/json".into()),
            status: None,
        }
    }
}

/// A reset, for ever shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ResetNote {
    /// When.
    pub at: Timestamp,
    /// Who.
    pub by: Option<Box<str>>,
    /// Why.
    pub reason: Box<str>,
}

/// An entry with what no decision reads.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerEntry {
    /// Its key.
    pub key: EventId,
    /// What decisions see.
    pub entry: Entry,
    /// What duplicates are answered.
    pub result: StoredResult,
    /// Why the last grant failed.
    pub class: Option<Class>,
    /// Why the last grant failed, for people.
    pub message: Option<Box<str>>,
    /// When the first claim came.
    pub created_at: Timestamp,
    /// When it was written last.
    pub updated_at: Timestamp,
    /// The last reset.
    pub reset: Option<ResetNote>,
    /// The job whose row this entry is read from; `None`: it is a row of its own.
    pub of_job: Option<JobId>,
    /// Where in the archive the bytes of its result are, if they are only there.
    pub result_at: Option<crate::Place>,
}

impl LedgerEntry {
    /// Whether a job's attempt has it, or will: only reports on the job end that.
    pub fn is_held_by_job(&self, now: Timestamp) -> bool {
        let holds = now < self.entry.locked_until || self.entry.on_expired == OnExpired::Hold;
        self.entry.status == Status::InProgress && holds && self.names_job()
    }

    /// Whether the last grant was given by a queue, through a job.
    pub fn names_job(&self) -> bool {
        let attempt = self.entry.claim_id.as_deref().and_then(|id| id.rsplit_once('.'));
        self.of_job.is_some() || attempt.is_some_and(|(job, _)| JobId::parse(job).is_some())
    }
}

/// What became of a [`LedgerCommand`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LedgerAnswer {
    /// A claim was granted, or granted before to this very request.
    Granted(LedgerEntry),
    /// It is done.
    DuplicateDone(LedgerEntry),
    /// Somebody else is at it.
    InProgressElsewhere {
        /// Until when at least, unless it ends sooner; `None` while it is held.
        locked_until: Option<Timestamp>,
    },
    /// The key was used for another payload; the entry is untouched.
    KeyReused,
    /// A report or a reset was written, or was written before.
    Written(LedgerEntry),
    /// The grant is not in force, or the entry is not as the asker saw it: as it is.
    Stale(Option<LedgerEntry>),
}

/// What a [`LedgerCommand`] did.
#[derive(Clone, Debug)]
pub struct LedgerApplied {
    /// The answer.
    pub answer: LedgerAnswer,
    /// The job that waited, or was a dead letter, and whose effect is now known to have happened.
    pub settled: Option<Box<Change>>,
}

/// How an attempt of a queue that keeps the ledger names its grant.
pub(crate) fn claim_id_of(job: JobId, attempt: Attempt) -> Box<str> {
    format!("{job}.{}", attempt.get()).into()
}

/// What an entry says of the effect.
pub(crate) fn fact_of(entry: &Entry) -> Fact {
    match (entry.status, entry.outcome) {
        (Status::Done, Some(Outcome::Cancelled)) => Fact::DoneCancelled,
        (Status::Done, _) => Fact::Done,
        (Status::InProgress | Status::Failed, _) => Fact::NotDone,
    }
}

/// Until when somebody else's grant keeps a queue from handing the job out; `None`: it may go out.
pub(crate) fn held_from(entry: &Entry, now: Timestamp) -> Option<Timestamp> {
    if entry.status != Status::InProgress {
        return None;
    }
    match entry.on_expired {
        // Nobody knows how long: look again as soon as one may.
        OnExpired::Hold => Some(entry.locked_until.max(now.after(DurationMs::from_secs(60)))),
        OnExpired::Retake => (now < entry.locked_until).then_some(entry.locked_until),
    }
}

/// The entry that a job of a queue that keeps the ledger is; `None` if it was never tried. `last` is its last ended
/// attempt.
pub(crate) fn of_job(job: &Job, key: &EventId, last: Option<&AttemptView>) -> Option<LedgerEntry> {
    let attempt = job.attempt?;
    let settled = match &job.state {
        State::Committed { at, .. } => Some((Outcome::Committed, *at)),
        // A resend that was called off leaves the first effect.
        State::Cancelled { at } if job.evidence_floor > 0 => Some((Outcome::Committed, *at)),
        State::Cancelled { at } => Some((Outcome::Cancelled, *at)),
        State::Leased(_) | State::Scheduled { .. } | State::Retryable { .. } | State::DeadLettered { .. } => {
            None
        }
    };
    let surely_none = last.is_none_or(|last| last.end.report.effect == Effect::None);
    // A resend is the job's own second effect: nobody else's.
    let resent = job.evidence_floor > 0 && settled.is_none() && !matches!(job.state, State::Leased(_));
    let (status, locked_until, updated_at) = match (&job.state, settled) {
        _ if resent => {
            (Status::InProgress, last.map_or(job.created_at, |last| last.end.finished_at), job.created_at)
        }
        (State::Leased(lease), _) => (Status::InProgress, lease.expires_at, lease.leased_at),
        (_, Some((_, at))) => (Status::Done, at, at),
        (_, None) => {
            let ended = last.map_or(job.created_at, |last| last.end.finished_at);
            (if surely_none { Status::Failed } else { Status::InProgress }, ended, ended)
        }
    };
    let previous = match (attempt.get(), surely_none) {
        (1, _) => Previous::None,
        (_, true) => Previous::Failed,
        (_, false) => Previous::Expired,
    };
    let entry = Entry {
        status,
        fence: u64::from(attempt.get()),
        attempts: attempt.get(),
        locked_until,
        fingerprint: None,
        claim_id: Some(claim_id_of(job.id, attempt)),
        path: if previous == Previous::None { Path::FirstRun } else { Path::RetryAfterFailure },
        previous,
        on_expired: if resent { OnExpired::Hold } else { OnExpired::Retake },
        outcome: settled.map(|(outcome, _)| outcome),
    };
    let result = last.filter(|_| settled.is_some()).and_then(|last| {
        let late = last.late.as_ref().and_then(|late| late.details.result.as_deref());
        late.or(last.end.details.result.as_deref())
    });
    Some(LedgerEntry {
        key: key.clone(),
        entry,
        result: StoredResult::of_worker(result),
        class: last.and_then(|last| last.end.report.class),
        message: last.and_then(|last| last.end.details.message.clone()),
        created_at: job.created_at,
        updated_at,
        reset: None,
        of_job: Some(job.id),
        result_at: None,
    })
}

/// What a command on `found` gets, and what must be written, if anything. `found` may be read from a job's row; what
/// is written is a row of its own.
pub(crate) fn decide(
    found: Option<LedgerEntry>,
    command: &LedgerCommand,
    first_fence: u64,
    now: Timestamp,
) -> (LedgerAnswer, Option<LedgerEntry>) {
    // A grant that a queue gave through a job is ended by a report on that job.
    let own = found.as_ref().filter(|found| found.of_job.is_none()).map(|found| &found.entry);
    let report = match &command.action {
        LedgerAction::Claim { lease, fingerprint, claim_id, on_expired } => {
            let claim = Claim {
                lease: *lease,
                fingerprint: fingerprint.clone(),
                claim_id: claim_id.clone(),
                on_expired: *on_expired,
                first_fence,
            };
            return claimed(found, &claim, command, now);
        }
        LedgerAction::Complete { fence, outcome, .. } => ledger::complete(own, *fence, *outcome),
        LedgerAction::Fail { fence, .. } => ledger::fail(own, *fence),
        LedgerAction::Extend { fence, lease } => ledger::extend(own, *fence, *lease, now),
        // A worker that runs can't be shut out by its entry alone.
        LedgerAction::Reset { .. } if found.as_ref().is_some_and(|found| found.is_held_by_job(now)) => {
            Report::Stale
        }
        LedgerAction::Reset { seen, .. } => ledger::reset(found.as_ref().map(|found| &found.entry), *seen),
    };
    match (report, found) {
        (Report::Write(entry), Some(found)) => {
            let written = reported(found, entry, command, now);
            (LedgerAnswer::Written(written.clone()), Some(written))
        }
        (Report::Recorded, Some(found)) => (LedgerAnswer::Written(found), None),
        (Report::Write(_) | Report::Recorded | Report::Stale, found) => (LedgerAnswer::Stale(found), None),
    }
}

fn claimed(
    found: Option<LedgerEntry>,
    claim: &Claim,
    command: &LedgerCommand,
    now: Timestamp,
) -> (LedgerAnswer, Option<LedgerEntry>) {
    match (ledger::admit(found.as_ref().map(|found| &found.entry), claim, now), found) {
        (ledger::Admission::Granted(entry), found) => {
            let created_at = found.as_ref().map_or(now, |found| found.created_at);
            let written = LedgerEntry {
                key: command.key.clone(),
                entry,
                result: StoredResult::default(),
                class: None,
                message: None,
                created_at,
                updated_at: now,
                reset: found.and_then(|found| found.reset),
                of_job: None,
                result_at: None,
            };
            (LedgerAnswer::Granted(written.clone()), Some(written))
        }
        (ledger::Admission::Repeated(_), Some(found)) => (LedgerAnswer::Granted(found), None),
        (ledger::Admission::DuplicateDone(_), Some(found)) => (LedgerAnswer::DuplicateDone(found), None),
        (ledger::Admission::InProgressElsewhere { locked_until }, _) => {
            (LedgerAnswer::InProgressElsewhere { locked_until }, None)
        }
        (ledger::Admission::KeyReused, _) => (LedgerAnswer::KeyReused, None),
        (ledger::Admission::Repeated(_) | ledger::Admission::DuplicateDone(_), None) => {
            unreachable!("only an entry can be repeated or done")
        }
    }
}

fn reported(found: LedgerEntry, entry: Entry, command: &LedgerCommand, now: Timestamp) -> LedgerEntry {
    let mut written = LedgerEntry { entry, updated_at: now, of_job: None, result_at: None, ..found };
    match &command.action {
        LedgerAction::Complete { result, .. } => {
            (written.result, written.class, written.message) = (result.clone(), None, None);
        }
        LedgerAction::Fail { class, message, .. } => {
            (written.class, written.message) = (*class, message.clone());
        }
        LedgerAction::Reset { reason, .. } => {
            written.result = StoredResult::default();
            written.reset = Some(ResetNote { at: now, by: command.actor.clone(), reason: reason.clone() });
        }
        LedgerAction::Claim { .. } | LedgerAction::Extend { .. } => {}
    }
    written
}

/// What a queue says of a job whose key somebody else has: uncharged, and asked again when the grant ends.
pub(crate) fn in_progress_elsewhere(fence: Fence, now: Timestamp, until: Timestamp) -> Command {
    let left = until.0.saturating_sub(now.0).max(0).unsigned_abs();
    let retry_after = Some(DurationMs(left));
    let failure = Failure::of_worker(Class::InProgress, Some(Effect::None), RetryWish::ByTable, retry_after);
    let message = Some("another claim has this key".into());
    Command::Fail { fence, failure, details: Details { message, ..Details::default() } }
}

/// What a reset leaves in the custody of the key's message.
pub(crate) fn reset_note(
    job: &Job,
    message: MessageId,
    command: &LedgerCommand,
    written: &LedgerEntry,
) -> Option<CustodyEntry> {
    let LedgerAction::Reset { seen, reason } = &command.action else { return None };
    let detail = serde_json::json!({ "reason": reason, "fence": seen.fence, "status": seen.status.as_str() });
    Some(CustodyEntry {
        tenant: command.tenant,
        message,
        job: Some(job.id),
        at: written.updated_at,
        stage: Stage::Reset,
        attempt: None,
        actor: command.actor.clone(),
        detail: Some(detail.to_string().into()),
    })
}

/// What is asked of the job whose entry became done.
pub(crate) fn settle(job: JobId, command: &LedgerCommand) -> JobCommand {
    JobCommand {
        tenant: command.tenant,
        job,
        command: Command::Settle { evidence: Evidence::Ledger },
        // Settling asks no policy.
        policy: Arc::new(Policy::queue_default()),
        hold_lane_until: None,
        actor: command.actor.clone(),
    }
}
