//! What can be asked of a job.

use crate::{
    Attempt, AttemptOutcome, Cause, Class, Classified, Details, Disposition, DurationMs, Effect, Evidence,
    Fence, Policy, RetryWish, RuleAt, Ruling, Timestamp, read_class, words::words,
};

words! {
    /// A command's name.
    CommandName {
        /// See [`Command::Lease`].
        Lease = "lease",
        /// See [`Command::Start`].
        Start = "start",
        /// See [`Command::Extend`].
        Extend = "extend",
        /// See [`Command::Finish`].
        Finish = "finish",
        /// See [`Command::Fail`].
        Fail = "fail",
        /// See [`Command::Release`].
        Release = "release",
        /// See [`Command::Expire`].
        Expire = "expire",
        /// See [`Command::Cancel`].
        Cancel = "cancel",
        /// See [`Command::Settle`].
        Settle = "settle",
        /// See [`Command::Replay`].
        Replay = "replay",
        /// See [`Command::Resend`].
        Resend = "resend",
        /// See [`Command::Abandon`].
        Abandon = "abandon",
        /// See [`Command::LookUp`].
        LookUp = "look_up",
    }
}

words! {
    /// How a finished attempt ended.
    FinishOutcome {
        /// Done now.
        Committed = "committed",
        /// Done before; this attempt did nothing.
        Duplicate = "duplicate",
        /// No longer applies; nothing was done.
        Cancelled = "cancelled",
    }
}

words! {
    /// What a look-up found.
    LookUpVerdict {
        /// The effect happened.
        Present = "present",
        /// The effect did not happen.
        Absent = "absent",
        /// It is happening now.
        InProgress = "in_progress",
        /// The look-up can't tell.
        Unsure = "unsure",
    }
}

/// A failure, as reported and classified.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Failure {
    /// Why.
    pub class: Class,
    /// What is known about the effect.
    pub effect: Effect,
    /// What the classification says should follow.
    pub disposition: Disposition,
    /// What the reporter says should follow.
    pub wish: RetryWish,
    /// How long the receiver asked to wait.
    pub retry_after: Option<DurationMs>,
    /// The destination's own rule that classified it; none: the table.
    pub by: Option<RuleAt>,
}

impl Failure {
    /// A failure that the table classified.
    pub fn classified(classified: Classified, retry_after: Option<DurationMs>) -> Self {
        let Classified { class, effect, disposition } = classified;
        Self { class, effect, disposition, wish: RetryWish::ByTable, retry_after, by: None }
    }

    /// A failure that a destination classified, by its own rules or the table.
    pub fn ruled(ruling: Ruling, retry_after: Option<DurationMs>) -> Self {
        Self { by: ruling.by, ..Self::classified(ruling.classified, retry_after) }
    }

    /// A worker's failure: the policy of its queue fills in what the worker left out.
    pub fn of_worker_under(
        policy: &Policy,
        class: Class,
        effect: Option<Effect>,
        wish: RetryWish,
        retry_after: Option<DurationMs>,
    ) -> Self {
        let ruled = Self::ruled(policy.rule_class(class), retry_after);
        Self { effect: effect.unwrap_or(ruled.effect), wish, ..ruled }
    }

    /// A worker's failure: the table fills in what the worker left out.
    pub fn of_worker(
        class: Class,
        effect: Option<Effect>,
        wish: RetryWish,
        retry_after: Option<DurationMs>,
    ) -> Self {
        let table = read_class(class);
        Self { effect: effect.unwrap_or(table.effect), wish, ..Self::classified(table, retry_after) }
    }

    /// What follows: the reporter's wish over the classification.
    pub fn follows(&self) -> Disposition {
        match (self.wish, self.disposition) {
            (RetryWish::ByTable, disposition) => disposition,
            (RetryWish::Yes, Disposition::InProgress) => Disposition::InProgress,
            (RetryWish::Yes, _) => Disposition::Retry,
            (RetryWish::No, Disposition::Gone) => Disposition::Gone,
            (RetryWish::No, _) => Disposition::PermanentMessage,
        }
    }
}

/// What somebody asks of a job.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Command {
    /// A worker takes the job for one attempt.
    Lease {
        /// Who.
        worker: Box<str>,
        /// Until the lease expires, unless extended.
        lease_for: DurationMs,
        /// Until the attempt must have ended, extended or not.
        deadline_after: DurationMs,
        /// Whether the lease is the start, or a fenced [`Command::Start`] must follow.
        starts: Start,
    },
    /// The first byte is about to leave.
    Start {
        /// Proof of the attempt.
        fence: Fence,
    },
    /// The worker needs more time.
    Extend {
        /// Proof of the attempt.
        fence: Fence,
        /// From now until the lease expires.
        lease_for: DurationMs,
        /// Left for a successor; `None` keeps what is there.
        checkpoint: Option<Box<[u8]>>,
    },
    /// The work ended well, or needs no doing.
    Finish {
        /// Proof of the attempt.
        fence: Fence,
        /// How.
        outcome: FinishOutcome,
        /// What the report rests on.
        evidence: Evidence,
        /// Why, if it no longer applies.
        reason: Option<Box<str>>,
        /// For people.
        details: Details,
    },
    /// The work failed.
    Fail {
        /// Proof of the attempt.
        fence: Fence,
        /// How.
        failure: Failure,
        /// For people.
        details: Details,
    },
    /// The attempt is given back. Says that nothing was sent.
    Release {
        /// Proof of the attempt.
        fence: Fence,
    },
    /// The lease ran out.
    Expire,
    /// An operator or the producer calls it off.
    Cancel {
        /// Why, for ever shown.
        reason: Box<str>,
    },
    /// Evidence says that it happened.
    Settle {
        /// Which.
        evidence: Evidence,
    },
    /// A dead letter is sent round again.
    Replay {
        /// The last attempt that the asker saw.
        seen: Option<Attempt>,
        /// The asker vouches that the effect did not happen.
        assume_not_done: bool,
        /// Why.
        reason: Box<str>,
    },
    /// A committed job is sent again: the receiver lost its data.
    Resend {
        /// The last attempt that the asker saw.
        seen: Option<Attempt>,
        /// Why.
        reason: Box<str>,
    },
    /// Ours alone: the endpoint is gone, or the horizon passed while the job waited.
    Abandon {
        /// Why.
        cause: Cause,
    },
    /// A look-up answered.
    LookUp {
        /// The last attempt when the look-up was asked: an answer about an older one says nothing of a newer.
        seen: Option<Attempt>,
        /// When it was asked: what happened after that it can't have seen.
        asked_at: Timestamp,
        /// What it found.
        verdict: LookUpVerdict,
        /// When the last send can no longer act; "absent" is believed only after it.
        settled_at: Timestamp,
        /// What the verdict was read from, for people.
        said: Option<Box<str>>,
    },
}

/// When an attempt counts as begun.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Start {
    /// With its lease.
    WithLease,
    /// With a [`Command::Start`] of its own.
    Fenced,
}

impl Command {
    /// The command's name.
    pub fn name(&self) -> CommandName {
        match self {
            Self::Lease { .. } => CommandName::Lease,
            Self::Start { .. } => CommandName::Start,
            Self::Extend { .. } => CommandName::Extend,
            Self::Finish { .. } => CommandName::Finish,
            Self::Fail { .. } => CommandName::Fail,
            Self::Release { .. } => CommandName::Release,
            Self::Expire => CommandName::Expire,
            Self::Cancel { .. } => CommandName::Cancel,
            Self::Settle { .. } => CommandName::Settle,
            Self::Replay { .. } => CommandName::Replay,
            Self::Resend { .. } => CommandName::Resend,
            Self::Abandon { .. } => CommandName::Abandon,
            Self::LookUp { .. } => CommandName::LookUp,
        }
    }

    /// The fence of a command that only a worker may give.
    pub fn fence(&self) -> Option<Fence> {
        match self {
            Self::Start { fence }
            | Self::Extend { fence, .. }
            | Self::Finish { fence, .. }
            | Self::Fail { fence, .. }
            | Self::Release { fence } => Some(*fence),
            Self::Lease { .. }
            | Self::Expire
            | Self::Cancel { .. }
            | Self::Settle { .. }
            | Self::Replay { .. }
            | Self::Resend { .. }
            | Self::Abandon { .. }
            | Self::LookUp { .. } => None,
        }
    }
}

impl FinishOutcome {
    /// The attempt's outcome.
    pub fn attempt_outcome(self) -> AttemptOutcome {
        match self {
            Self::Committed => AttemptOutcome::Committed,
            Self::Duplicate => AttemptOutcome::Duplicate,
            Self::Cancelled => AttemptOutcome::Cancelled,
        }
    }
}
