//! A job: one message owed to one destination, and its six states.

use crate::{Attempt, DurationMs, Evidence, JobId, Kind, LaneId, Policy, TenantId, Timestamp, words::words};

words! {
    /// The six states, and no others. Row B2.
    StateName {
        /// Waits for its due time; no attempt failed yet, or it was sent round again.
        Scheduled = "scheduled",
        /// One attempt is running.
        Leased = "leased",
        /// An attempt failed or was lost; the next one may start at the due time.
        Retryable = "retryable",
        /// The receiver has it. Only a resend leaves this state.
        Committed = "committed",
        /// Given up, with the reason. A person or evidence leads on.
        DeadLettered = "dead_lettered",
        /// Called off. Final.
        Cancelled = "cancelled",
    }
}

words! {
    /// Why a job was dead-lettered.
    Cause {
        /// The budget of failures or the horizon ran out.
        Exhausted = "exhausted",
        /// The receiver will never take it.
        Permanent = "permanent",
        /// Authentic, but of unexpected shape.
        InvalidPayload = "invalid_payload",
        /// No key could be derived.
        MissingKey = "missing_key",
        /// The key was used for another payload before.
        KeyReused = "key_reused",
        /// It may have happened, and nobody knows.
        OutcomeUnknown = "outcome_unknown",
        /// The endpoint is gone.
        EndpointGone = "endpoint_gone",
        /// The budget of lost leases ran out.
        LeaseLost = "lease_lost",
    }
}

impl Cause {
    /// Whether this is why something authentic was never executed: its shape, and no attempt, is to blame. Row A2.
    pub const fn is_quarantine(self) -> bool {
        match self {
            Self::InvalidPayload | Self::MissingKey | Self::KeyReused => true,
            Self::Exhausted
            | Self::Permanent
            | Self::OutcomeUnknown
            | Self::EndpointGone
            | Self::LeaseLost => false,
        }
    }
}

words! {
    /// Which share of a lane's capacity a live job draws on. Row B6.
    Share {
        /// Never failed.
        Fresh = "fresh",
        /// Failed before.
        Retry = "retry",
        /// Replays, and fan-out of old messages.
        Bulk = "bulk",
    }
}

words! {
    /// What a retryable job waits for.
    NextStep {
        /// Another attempt.
        Attempt = "attempt",
        /// A look-up: did the last attempt have its effect?
        LookUp = "look_up",
    }
}

/// One running attempt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lease {
    /// Who has it.
    pub worker: Box<str>,
    /// When the job had become due for it.
    pub due_at: Timestamp,
    /// Since when.
    pub leased_at: Timestamp,
    /// When the work began; `None` until a Start, where one is needed.
    pub started_at: Option<Timestamp>,
    /// Until when, unless extended.
    pub expires_at: Timestamp,
    /// Until when at most.
    pub deadline_at: Timestamp,
}

/// A state with its data. What a state doesn't have can't be read in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum State {
    /// See [`StateName::Scheduled`].
    Scheduled {
        /// When the next attempt may start.
        due_at: Timestamp,
    },
    /// See [`StateName::Leased`].
    Leased(Lease),
    /// See [`StateName::Retryable`].
    Retryable {
        /// When the next step may be taken.
        due_at: Timestamp,
        /// Which step.
        next: NextStep,
    },
    /// See [`StateName::Committed`].
    Committed {
        /// Since when.
        at: Timestamp,
        /// On what grounds.
        evidence: Evidence,
    },
    /// See [`StateName::DeadLettered`].
    DeadLettered {
        /// Since when.
        at: Timestamp,
        /// Why.
        cause: Cause,
    },
    /// See [`StateName::Cancelled`].
    Cancelled {
        /// Since when.
        at: Timestamp,
    },
}

impl State {
    /// The state's name.
    pub fn name(&self) -> StateName {
        match self {
            Self::Scheduled { .. } => StateName::Scheduled,
            Self::Leased(_) => StateName::Leased,
            Self::Retryable { .. } => StateName::Retryable,
            Self::Committed { .. } => StateName::Committed,
            Self::DeadLettered { .. } => StateName::DeadLettered,
            Self::Cancelled { .. } => StateName::Cancelled,
        }
    }

    /// When the next step may be taken, if one waits for its time.
    pub fn due_at(&self) -> Option<Timestamp> {
        match self {
            Self::Scheduled { due_at } | Self::Retryable { due_at, .. } => Some(*due_at),
            Self::Leased(_) | Self::Committed { .. } | Self::DeadLettered { .. } | Self::Cancelled { .. } => {
                None
            }
        }
    }

    /// When a settled state was reached.
    pub fn settled_at(&self) -> Option<Timestamp> {
        match self {
            Self::Committed { at, .. } | Self::DeadLettered { at, .. } | Self::Cancelled { at } => Some(*at),
            Self::Scheduled { .. } | Self::Leased(_) | Self::Retryable { .. } => None,
        }
    }
}

impl StateName {
    /// Whether the job's row lives among the settled ones.
    pub fn is_settled(self) -> bool {
        matches!(self, Self::Committed | Self::DeadLettered | Self::Cancelled)
    }
}

/// What was used of the three budgets since the job was made, replayed or resent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Budgets {
    /// Charged failures.
    pub failures: u32,
    /// Charged lost leases.
    pub lost_leases: u32,
    /// Ends in a row that were not charged: releases, answers that the work is in progress, and look-ups that
    /// could not tell.
    pub uncharged: u32,
    /// From when the horizon counts.
    pub since: Timestamp,
    /// The lane's total of held time at that moment, in milliseconds: what came later doesn't count.
    pub held_ms: u64,
}

impl Budgets {
    /// Nothing used.
    pub fn fresh(since: Timestamp, held_ms: u64) -> Self {
        Self { failures: 0, lost_leases: 0, uncharged: 0, since, held_ms }
    }

    /// The end of the horizon, with the lane's total of held time as it is now.
    pub fn horizon_at(&self, policy: &Policy, lane_held_ms: u64) -> Timestamp {
        let held = DurationMs(lane_held_ms.saturating_sub(self.held_ms));
        self.since.after(policy.horizon).after(held)
    }

    /// How much was used, of how much `policy` allows.
    pub fn remaining(&self, policy: &Policy, lane_held_ms: u64) -> Remaining {
        Remaining {
            failures: self.failures,
            failures_max: policy.failures_allowed(),
            lost_leases: self.lost_leases,
            lost_leases_max: policy.lost_leases_max,
            gives_up_at: self.horizon_at(policy, lane_held_ms),
        }
    }
}

/// How much of the three budgets was used, of how much.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Remaining {
    /// Charged failures.
    pub failures: u32,
    /// Failures after which the job is given up.
    pub failures_max: u32,
    /// Charged lost leases.
    pub lost_leases: u32,
    /// Lost leases after which the job is given up.
    pub lost_leases_max: u32,
    /// When the job is given up at the latest; later by what its lane is held meanwhile.
    pub gives_up_at: Timestamp,
}

/// One message owed to one destination: what decisions need of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Job {
    /// Its name.
    pub id: JobId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Where it goes.
    pub lane: LaneId,
    /// Pushed or pulled.
    pub kind: Kind,
    /// Its state.
    pub state: State,
    /// The last attempt begun, if any was.
    pub attempt: Option<Attempt>,
    /// Whether an attempt failed or was lost, ever.
    pub failed_before: bool,
    /// When it was made.
    pub created_at: Timestamp,
    /// The time asked for; never changes.
    pub scheduled_at: Timestamp,
    /// When the first attempt began.
    pub started_at: Option<Timestamp>,
    /// Its share of the lane.
    pub share: Share,
    /// What was used.
    pub budgets: Budgets,
    /// A running attempt was asked to stop, or a settled job says why: the operator's or worker's reason.
    pub reason: Option<Box<str>>,
    /// A cancel of the running attempt was asked for.
    pub cancel_requested: bool,
    /// To be dead-lettered when the running attempt ends, or when the look-up that is owed finds no effect.
    pub abandon: Option<Cause>,
    /// An attempt other than the running one whose commit was heard, and counts.
    pub commit_heard: Option<Attempt>,
    /// Attempts up to this number can't settle the job: they came before a resend.
    pub evidence_floor: u32,
    /// What a worker left for its successor.
    pub checkpoint: Option<Box<[u8]>>,
}

/// What a new job is made of.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NewJob {
    /// Its name.
    pub id: JobId,
    /// Whose it is.
    pub tenant: TenantId,
    /// Pushed or pulled.
    pub kind: Kind,
    /// When the first attempt may start; a past time is `created_at`.
    pub due_at: Timestamp,
    /// Now.
    pub created_at: Timestamp,
    /// [`Share::Fresh`], or [`Share::Bulk`] for the fan-out of an old message.
    pub share: Share,
    /// The lane's total of held time.
    pub lane_held_ms: u64,
}

impl Job {
    /// A job that waits for its first attempt.
    pub fn new(new: NewJob) -> Self {
        let due_at = new.due_at.max(new.created_at);
        Self {
            id: new.id,
            tenant: new.tenant,
            lane: new.id.lane(),
            kind: new.kind,
            state: State::Scheduled { due_at },
            attempt: None,
            failed_before: false,
            created_at: new.created_at,
            scheduled_at: due_at,
            started_at: None,
            share: new.share,
            budgets: Budgets::fresh(due_at, new.lane_held_ms),
            reason: None,
            cancel_requested: false,
            abandon: None,
            commit_heard: None,
            evidence_floor: 0,
            checkpoint: None,
        }
    }

    /// A job that is dead-lettered from the start: authentic, but not to be executed as it is. Row A2.
    pub fn quarantined(new: NewJob, cause: Cause) -> Self {
        Self { state: State::DeadLettered { at: new.created_at, cause }, ..Self::new(new) }
    }
}
