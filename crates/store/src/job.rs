//! Jobs as they are commanded, leased and read back.

use std::{
    borrow::Cow,
    sync::{Arc, OnceLock},
};

use parking_lot::Mutex;
use posthaste_core::{
    Answer, AttemptEnd, Command, CommandName, CorruptRow, DestinationId, DurationMs, Fence, Job, JobId,
    LaneId, LateReport, MessageKey, Nature, Path, Policy, Refusal, Start, StateName, TenantId, Timestamp,
};

use crate::{LaneTurn, MessageBody};

/// Distinct lines of policy that are kept in memory. The core has some twenty.
const POLICY_LINES_MAX: usize = 256;

/// One command on one job.
#[derive(Clone, Debug)]
pub struct JobCommand {
    /// Whose job: a job of another tenant is [`AppliedOutcome::Missing`].
    pub tenant: TenantId,
    /// Which job.
    pub job: JobId,
    /// What is asked.
    pub command: Command,
    /// The policy of the job's destination.
    pub policy: Arc<Policy>,
    /// Nothing is leased from the lane before this time: what a receiver asked for. Written with the command,
    /// whatever the core decides; never shortens a hold. It is no held time in the sense of the budgets.
    pub hold_lane_until: Option<Timestamp>,
    /// Who asks, for the timeline: an API key's name, a worker, `posthaste`.
    pub actor: Option<Box<str>>,
}

/// What became of a [`JobCommand`].
#[derive(Clone, Debug)]
pub struct Applied {
    /// Which job.
    pub job: JobId,
    /// What became of it.
    pub outcome: AppliedOutcome,
}

/// See [`Applied`].
#[derive(Clone, Debug)]
pub enum AppliedOutcome {
    /// The tenant has no such job.
    Missing,
    /// The job's rows break an invariant; nothing was written.
    Corrupt(CorruptRow),
    /// The core decided, and what it decided is committed.
    Decided {
        /// The answer.
        reply: Result<Answer, Refusal>,
        /// What was written, if anything was: not for a refusal, nor for an answer that was recorded before.
        change: Option<Box<Change>>,
    },
}

/// One step of one job.
#[derive(Clone, Debug)]
pub struct Change {
    /// The state before.
    pub from: StateName,
    /// What was asked.
    pub command: CommandName,
    /// What kind of write it was.
    pub nature: Nature,
    /// The job after it.
    pub job: Job,
    /// The attempt's row, if this step ended one.
    pub ended: Option<Box<AttemptEnd>>,
    /// The key of the job's message.
    pub key: MessageKey,
    /// When the message was accepted.
    pub accepted_at: Timestamp,
    /// What the end of an attempt meant for the lane, if it was news.
    pub turn: Option<Box<LaneTurn>>,
}

/// Asks for due jobs of one lane.
#[derive(Clone, Debug)]
pub struct LeaseRequest {
    /// Whose.
    pub tenant: TenantId,
    /// Which lane.
    pub lane: LaneId,
    /// At most so many jobs; 1 to [`posthaste_core::limits::CONSUME_MAX`]. 0 takes none and still tells `next_due`.
    pub limit: usize,
    /// Payload bytes after which no further job is taken; the first is taken whatever its size.
    pub bytes_max: usize,
    /// Who.
    pub worker: Box<str>,
    /// Until the leases expire, unless extended.
    pub lease_for: DurationMs,
    /// Until the attempts must have ended.
    pub deadline_after: DurationMs,
    /// Whether the leases are the starts.
    pub starts: Start,
    /// The lane's policy.
    pub policy: Arc<Policy>,
    /// The lane is that of a queue that keeps the ledger: a job whose key somebody else has is not handed out.
    pub guarded: bool,
}

/// What a [`LeaseRequest`] got.
#[derive(Clone, Debug)]
pub struct LeaseGrant {
    /// The leased jobs, by share, then oldest `due_at` first.
    pub jobs: Vec<LeasedJob>,
    /// Jobs that evidence settled where an attempt would have begun.
    pub settled: Vec<Change>,
    /// When the lane's next job is due after this, held times included; `None` if none waits, or somebody must act first.
    /// May be past. What [`crate::Reads::heads`] would say of the lane, but not before its rate allows the next attempt.
    pub next_due: Option<Timestamp>,
}

/// A leased job with what its attempt needs.
#[derive(Clone, Debug)]
pub struct LeasedJob {
    /// The job, leased.
    pub job: Job,
    /// Proof of the attempt.
    pub fence: Fence,
    /// First run, or after a failure.
    pub path: Path,
    /// What `webhook-id` is, if not the job's id.
    pub wire_id: Option<Box<str>>,
    /// The message.
    pub message: MessageBody,
}

/// A lane's next due time, for the dispatcher's heap.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LaneHead {
    /// Whose.
    pub tenant: TenantId,
    /// Which lane.
    pub lane: LaneId,
    /// When its next job is due, held times included.
    pub due_at: Timestamp,
}

/// A job as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JobView {
    /// What decisions see.
    pub job: Job,
    /// The key of its message.
    pub key: MessageKey,
    /// Its destination.
    pub destination: DestinationId,
    /// What `webhook-id` is, if not the job's id.
    pub wire_id: Option<Box<str>>,
    /// Who answers for it.
    pub owner: Option<Box<str>>,
    /// Its ended attempts, oldest first; empty in lists.
    pub attempts: Vec<AttemptView>,
}

/// An ended attempt as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptView {
    /// Its end.
    pub end: AttemptEnd,
    /// A report that came after the end.
    pub late: Option<LateReport>,
    /// When a commit of it was heard.
    pub commit_heard_at: Option<Timestamp>,
}

/// Which jobs to list. Everything given must fit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct JobFilter {
    /// Only of this state.
    pub state: Option<StateName>,
    /// Only of this destination's lane.
    pub lane: Option<LaneId>,
    /// Oldest first; newest first otherwise. By creation.
    pub oldest_first: bool,
    /// After this one, in the list's order.
    pub after: Option<JobId>,
    /// At most so many.
    pub limit: usize,
}

/// A line of policy as [`posthaste_core::AttemptEnd::policy`] holds it, read back. The first `POLICY_LINES_MAX` texts
/// are kept for ever, so that the core's own lines cost nothing.
pub fn policy_line(line: &str) -> Cow<'static, str> {
    static LINES: OnceLock<Mutex<Vec<&'static str>>> = OnceLock::new();
    let mut lines = LINES.get_or_init(Mutex::default).lock();
    if let Some(known) = lines.iter().find(|known| **known == line) {
        return Cow::Borrowed(known);
    }
    if lines.len() >= POLICY_LINES_MAX {
        return Cow::Owned(line.to_owned());
    }
    let line: &'static str = String::from(line).leak();
    lines.push(line);
    Cow::Borrowed(line)
}
