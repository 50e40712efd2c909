//! Reports on their way from a worker to the store: once sent they may arrive late, repeated, in any order.

use posthaste_core::{
    Class, Command, Details, Effect, Epoch, Evidence, Failure, Fence, FinishOutcome, Reading, RetryWish,
    TransportFault, read_fault,
};

use super::{job_row::attempt_of, rules::SenderRules};

/// What a worker may say of its attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Said {
    /// 2xx.
    Committed,
    /// 503 with Retry-After, or no connection: nothing happened.
    Nothing,
    /// Time-out: nobody knows.
    Unknown,
    /// 500.
    ServerError,
    /// 422.
    Rejected,
    /// 409: somebody else is at it.
    Busy,
    /// A worker's own word: somebody else is at it, and this attempt may have acted as well.
    BusyUnknown,
    /// Given back, nothing sent.
    Released,
    /// It no longer applied.
    Cancelled,
}

impl Said {
    pub(crate) const ALL: [Self; 9] = [
        Self::Committed,
        Self::Nothing,
        Self::Unknown,
        Self::ServerError,
        Self::Rejected,
        Self::Busy,
        Self::BusyUnknown,
        Self::Released,
        Self::Cancelled,
    ];

    const fn bit(self) -> u16 {
        1 << (self as u16)
    }

    /// The command that the report is, classified by `rules`.
    pub(crate) fn command(self, rules: &dyn SenderRules, epoch: u8, attempt: u8) -> Command {
        let fence = fence(epoch, attempt);
        let details = Details::default();
        let finish = |outcome| Command::Finish {
            fence,
            outcome,
            evidence: Evidence::Answered,
            reason: None,
            details: Details::default(),
        };
        let fail = |failure| Command::Fail { fence, failure, details: details.clone() };
        let answered = |status, retry_after| match rules.read_status(status, retry_after) {
            Reading::Accepted => finish(FinishOutcome::Committed),
            Reading::Failed(classified) => fail(Failure::classified(classified, None)),
        };
        match self {
            Self::Committed => answered(200, false),
            Self::Nothing => answered(503, true),
            Self::Unknown => fail(Failure::classified(read_fault(TransportFault::Timeout, true), None)),
            Self::ServerError => answered(500, false),
            Self::Rejected => answered(422, false),
            Self::Busy => answered(409, true),
            Self::BusyUnknown => {
                let effect = Some(Effect::Possible);
                fail(Failure::of_worker(Class::InProgress, effect, RetryWish::ByTable, None))
            }
            Self::Released => Command::Release { fence },
            Self::Cancelled => finish(FinishOutcome::Cancelled),
        }
    }

    pub(crate) fn accepted(self) -> &'static str {
        match self {
            Self::Committed => "commit accepted",
            Self::Nothing => "fail without effect accepted",
            Self::Unknown => "fail with effect unknown accepted",
            Self::ServerError => "fail by 500 accepted",
            Self::Rejected => "fail by 422 accepted",
            Self::Busy => "fail by 409 accepted",
            Self::BusyUnknown => "fail in_progress with effect possible accepted",
            Self::Released => "release accepted",
            Self::Cancelled => "finish cancelled accepted",
        }
    }

    pub(crate) fn refused(self) -> &'static str {
        match self {
            Self::Committed => "commit refused",
            Self::Nothing => "fail without effect refused",
            Self::Unknown => "fail with effect unknown refused",
            Self::ServerError => "fail by 500 refused",
            Self::Rejected => "fail by 422 refused",
            Self::Busy => "fail by 409 refused",
            Self::BusyUnknown => "fail in_progress with effect possible refused",
            Self::Released => "release refused",
            Self::Cancelled => "finish cancelled refused",
        }
    }
}

/// A set of reports of one attempt.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Reports(u16);

impl Reports {
    pub(crate) const NONE: Self = Self(0);

    pub(crate) fn has(self, said: Said) -> bool {
        self.0 & said.bit() != 0
    }

    pub(crate) fn add(&mut self, said: Said) {
        self.0 |= said.bit();
    }

    pub(crate) fn drop_where(&mut self, gone: impl Fn(Said) -> bool) {
        for said in Said::ALL {
            if self.has(said) && gone(said) {
                self.0 &= !said.bit();
            }
        }
    }

    pub(crate) fn iter(self) -> impl Iterator<Item = Said> {
        Said::ALL.into_iter().filter(move |said| self.has(*said))
    }
}

/// The proof of `attempt` that a store in `epoch` gave.
pub(crate) fn fence(epoch: u8, attempt: u8) -> Fence {
    Fence { epoch: Epoch(epoch.into()), attempt: attempt_of(attempt) }
}
