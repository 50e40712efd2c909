//! What a decision rests on, and what comes out of it.

use crate::{
    Attempt, AttemptEnd, AttemptRecord, Cause, CommandName, EffectSpan, Epoch, Fence, Job, LateReport, Path,
    Report, StateName, Timestamp,
};

/// What the rows beside the job say: gathered by the store under the job's lock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Facts {
    /// The store's epoch.
    pub epoch: Epoch,
    /// The ended attempt that the command names, if there is one. May be left out where the named attempt is
    /// the one that is running.
    pub own: Option<AttemptRecord>,
    /// What the ledger entry of the job's event id says.
    pub entry: Entry,
    /// All ended attempts together, by [`EffectSpan::of_attempts`]. Only Replay asks; elsewhere
    /// [`EffectSpan::NONE`] will do.
    pub span: EffectSpan,
    /// The lane's total of held time, in milliseconds.
    pub lane_held_ms: u64,
}

impl Facts {
    /// Nothing beside the job.
    pub fn bare(epoch: Epoch) -> Self {
        Self { epoch, own: None, entry: Entry::Unknown, span: EffectSpan::NONE, lane_held_ms: 0 }
    }
}

/// What a ledger entry says of the effect. "No ledger known" is not "absent".
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Entry {
    /// No ledger is known for this destination.
    Unknown,
    /// There is a ledger, and it does not say done.
    NotDone,
    /// Done.
    Done,
    /// Done in the sense that it no longer applies.
    DoneCancelled,
}

/// What became of a command.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Rows must be written; the reply leaves after their commit.
    Write(Box<Decision>),
    /// The command was carried out before: its answer again, nothing written.
    Recorded(Answer),
    /// No, and nothing is written.
    Refused(Refusal),
}

/// A write that the core allows. Only this crate can make one, so a store can't write a state that
/// [`crate::transition`] did not choose.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Decision {
    pub(crate) from: StateName,
    pub(crate) command: CommandName,
    pub(crate) next: Job,
    pub(crate) row: Option<RowWrite>,
    pub(crate) reply: Result<Answer, Refusal>,
    pub(crate) nature: Nature,
}

/// What kind of write a decision is; for coverage counts, logs and metrics.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Nature {
    /// The command did what it says.
    Plain,
    /// A report of an attempt whose lease had run out, applied.
    Late,
    /// A report that was written down and changes nothing.
    Heard,
    /// Evidence settled the job where an attempt would have begun.
    SettledInstead,
}

/// What to write about an attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RowWrite {
    /// Insert the attempt's row.
    End {
        /// The row.
        row: Box<AttemptEnd>,
        /// Set if the end is a commit.
        commit_heard_at: Option<Timestamp>,
    },
    /// Write a late report beside the attempt's end, which stays as it is.
    Late {
        /// The report.
        report: Box<LateReport>,
        /// Set if the report is a commit and none was heard before.
        commit_heard_at: Option<Timestamp>,
    },
    /// Note that a commit was heard.
    Heard {
        /// Of which attempt.
        attempt: Attempt,
        /// When.
        at: Timestamp,
    },
}

impl Decision {
    /// The job as it must be written.
    pub fn next(&self) -> &Job {
        &self.next
    }

    /// The state before.
    pub fn from(&self) -> StateName {
        self.from
    }

    /// What was asked.
    pub fn command(&self) -> CommandName {
        self.command
    }

    /// What to write about an attempt.
    pub fn row(&self) -> Option<&RowWrite> {
        self.row.as_ref()
    }

    /// What to answer after the commit. Even a refusal may rest on something written.
    pub fn reply(&self) -> &Result<Answer, Refusal> {
        &self.reply
    }

    /// What kind of write this is.
    pub fn nature(&self) -> Nature {
        self.nature
    }

    /// The edge of the state machine, for coverage counts.
    pub fn edge(&self) -> (StateName, CommandName, StateName, Nature) {
        (self.from, self.command, self.next.state.name(), self.nature)
    }

    /// Takes the parts that a store writes.
    pub fn into_parts(self) -> (Job, Option<RowWrite>, Result<Answer, Refusal>) {
        (self.next, self.row, self.reply)
    }
}

/// Yes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Answer {
    /// An attempt was given.
    Leased {
        /// Its proof.
        fence: Fence,
        /// First run, or after a failure.
        path: Path,
    },
    /// The lease goes on.
    Extended {
        /// Until when.
        expires_at: Timestamp,
        /// The worker is asked to stop.
        cancel_requested: bool,
    },
    /// The job is in this state now.
    Moved {
        /// Which.
        state: StateName,
        /// When the next attempt may start.
        due_at: Option<Timestamp>,
    },
    /// What an operator's cancel came to.
    Cancel(CancelAnswer),
}

/// What an operator's cancel came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum CancelAnswer {
    /// It will not run, or not again.
    Cancelled,
    /// It is running; the worker is asked to stop.
    Requested,
    /// It is done.
    TooLate,
}

impl CancelAnswer {
    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Requested => "requested",
            Self::TooLate => "too_late",
        }
    }
}

/// No. Final unless the variant says otherwise.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// A newer attempt has begun, or this one never was.
    #[error("the fence is stale: {}", current_text(*.current))]
    StaleFence {
        /// The job's last attempt.
        current: Option<Attempt>,
    },
    /// Another report of this attempt was recorded before.
    #[error("attempt was already reported as {}", .report.outcome)]
    AlreadyReported {
        /// Which.
        report: Report,
    },
    /// The job is settled; the report was at most written down.
    #[error("the job is {state} already")]
    AlreadySettled {
        /// How.
        state: StateName,
    },
    /// The lease ran out; stop extending. Finishing is still accepted.
    #[error("the lease has expired")]
    LeaseExpired,
    /// Not before its time.
    #[error("the job is not due yet")]
    NotDue {
        /// When it is.
        due_at: Timestamp,
    },
    /// The lease still runs.
    #[error("the lease has not expired")]
    NotExpired {
        /// Until when.
        expires_at: Timestamp,
    },
    /// A look-up must come before the next attempt.
    #[error("the outcome of the last attempt must be looked up first")]
    LookUpOwed,
    /// The command makes no sense in this state.
    #[error("{command} is not possible while the job is {state}")]
    WrongState {
        /// The state.
        state: StateName,
        /// What was asked.
        command: CommandName,
    },
    /// The asker saw another attempt than the last.
    #[error("the job has moved on since it was looked at")]
    AttemptChanged {
        /// The last attempt.
        current: Option<Attempt>,
    },
    /// The effect may have happened, and nobody vouched that it did not.
    #[error("the effect may have happened: {} to {} attempts may have acted", .span.lo, .span.hi)]
    OutcomeUnknown {
        /// What the attempts say.
        span: EffectSpan,
        /// Why the job was dead-lettered.
        cause: Cause,
    },
}

fn current_text(current: Option<Attempt>) -> String {
    match current {
        Some(attempt) => format!("the job's last attempt is {}", attempt.get()),
        None => "the job has had no attempt".to_owned(),
    }
}

impl Refusal {
    /// The stable code on the wire.
    pub fn code(&self) -> &'static str {
        match self {
            Self::StaleFence { .. } => "stale_fence",
            Self::AlreadyReported { .. } => "already_reported",
            Self::AlreadySettled { .. } => "already_settled",
            Self::LeaseExpired => "lease_expired",
            Self::NotDue { .. } => "not_due",
            Self::NotExpired { .. } => "not_expired",
            Self::LookUpOwed => "look_up_owed",
            Self::WrongState { command: CommandName::Replay, .. } => "not_dead_lettered",
            Self::WrongState { command: CommandName::Resend, .. } => "not_committed",
            Self::WrongState { .. } => "wrong_state",
            Self::AttemptChanged { .. } => "attempt_changed",
            Self::OutcomeUnknown { .. } => "outcome_unknown",
        }
    }
}
