//! An attempt: one lease of one job. Its number is the fence; its row is written once, when it ends.

use std::{borrow::Cow, fmt, num::NonZeroU32};

use crate::{Answer, Class, DurationMs, Effect, Refusal, RetryWish, StateName, Timestamp, words::words};

/// The number of an attempt, counted from 1 over the whole life of a job, replays included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Attempt(NonZeroU32);

impl Attempt {
    /// The first attempt.
    pub const FIRST: Self = Self(NonZeroU32::MIN);

    /// Attempt `number`, from 1.
    pub const fn new(number: u32) -> Option<Self> {
        match NonZeroU32::new(number) {
            Some(number) => Some(Self(number)),
            None => None,
        }
    }

    /// The number.
    pub const fn get(self) -> u32 {
        self.0.get()
    }

    /// The attempt that follows `last`, or the first; `None` after four billion attempts, so that no number is
    /// ever given twice.
    pub fn following(last: Option<Self>) -> Option<Self> {
        last.map_or(Some(Self::FIRST), |last| last.0.checked_add(1).map(Self))
    }
}

/// Changes when a store goes back in time (restore, fail-over to an older copy), so that attempt numbers that
/// are then given a second time can't be confused with the first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Epoch(pub u32);

/// Proof of one attempt. On the wire `{epoch}.{attempt}`, opaque to users.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Fence {
    /// The store's epoch when the lease was given.
    pub epoch: Epoch,
    /// The attempt.
    pub attempt: Attempt,
}

impl Fence {
    /// The fence that `text` spells; only the exact spelling of [`fmt::Display`] is one.
    pub fn parse(text: &str) -> Option<Self> {
        let (epoch, attempt) = text.split_once('.')?;
        let fence = Self { epoch: Epoch(epoch.parse().ok()?), attempt: Attempt::new(attempt.parse().ok()?)? };
        (fence.to_string() == text).then_some(fence)
    }
}

impl fmt::Display for Fence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}.{}", self.epoch.0, self.attempt.get())
    }
}

words! {
    /// How an attempt ended.
    AttemptOutcome {
        /// The receiver did it.
        Committed = "committed",
        /// The receiver had done it before.
        Duplicate = "duplicate",
        /// It no longer applied, or was called off before it began.
        Cancelled = "cancelled",
        /// It failed.
        Failed = "failed",
        /// It was given back; nothing was sent.
        Released = "released",
        /// Its lease ran out.
        LeaseLost = "lease_lost",
    }
}

words! {
    /// The named path of a claim. Row A9.
    Path {
        /// Nobody had it before.
        FirstRun = "first_run",
        /// An earlier try failed or was lost.
        RetryAfterFailure = "retry_after_failure",
        /// It is done already.
        DuplicateDone = "duplicate_done",
        /// Somebody else is doing it now.
        InProgressElsewhere = "in_progress_elsewhere",
    }
}

words! {
    /// What a commit rests on.
    Evidence {
        /// The receiver answered 2xx.
        Answered = "answered",
        /// The receiver's ledger says so.
        Ledger = "ledger",
        /// A worker said so.
        Worker = "worker",
        /// It was found out afterwards.
        Reconciled = "reconciled",
    }
}

words! {
    /// How a job's attempts are made.
    Kind {
        /// We send to an endpoint.
        Push = "push",
        /// A worker takes it from a queue.
        Pull = "pull",
    }
}

/// What is written down about an attempt beside what decides: for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// The HTTP status of the answer.
    pub status: Option<u16>,
    /// How long the exchange or the work took.
    pub duration: Option<DurationMs>,
    /// The reporter's own error code.
    pub code: Option<Box<str>>,
    /// The error's text, at most [`crate::limits::ERROR_TEXT_BYTES_MAX`] bytes.
    pub message: Option<Box<str>>,
    /// The head of the receiver's answer, at most [`crate::limits::EXCERPT_BYTES_MAX`] bytes.
    pub excerpt: Option<Box<[u8]>>,
    /// The worker's result, at most [`crate::limits::RESULT_BYTES_MAX`] bytes of JSON.
    pub result: Option<Box<[u8]>>,
}

/// A report, as far as it decides. Two reports are the same if these are equal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Report {
    /// How the attempt ended, in the reporter's words.
    pub outcome: AttemptOutcome,
    /// Why it failed.
    pub class: Option<Class>,
    /// What is known about the effect.
    pub effect: Effect,
    /// Whether another attempt was wanted; only of failures.
    pub wish: Option<RetryWish>,
}

/// The row of an ended attempt: written once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AttemptEnd {
    /// Its number.
    pub attempt: Attempt,
    /// Pushed or pulled.
    pub kind: Kind,
    /// First run, or after a failure.
    pub path: Path,
    /// Who had the lease.
    pub worker: Box<str>,
    /// When the job became visible for this attempt.
    pub due_at: Timestamp,
    /// When it was leased.
    pub leased_at: Timestamp,
    /// When it began; `None` if it never did.
    pub started_at: Option<Timestamp>,
    /// When it ended.
    pub finished_at: Timestamp,
    /// How it ended. For [`AttemptOutcome::LeaseLost`] and an operator's cancel nobody reported.
    pub report: Report,
    /// False if the end was ours (expiry, cancel), so that a report may still come.
    pub reported: bool,
    /// The state that the job went to: the answer that a repeated report gets again.
    pub state: StateName,
    /// When the next attempt may start.
    pub next_at: Option<Timestamp>,
    /// The line of policy that decided; with the destination's own rule, where one did.
    pub policy: Cow<'static, str>,
    /// For people.
    pub details: Details,
}

/// A report that came after the lease had run out: written once, beside the attempt's own end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LateReport {
    /// Which attempt.
    pub attempt: Attempt,
    /// When it came.
    pub at: Timestamp,
    /// What it said.
    pub report: Report,
    /// The state that the job had after it.
    pub state: StateName,
    /// When the next attempt may start.
    pub next_at: Option<Timestamp>,
    /// Whether the reporter was told yes; if not, the job was settled otherwise, and a repeat is told so again.
    pub accepted: bool,
    /// For people.
    pub details: Details,
}

/// What an ended attempt's row tells a decision.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AttemptRecord {
    /// Its number.
    pub attempt: Attempt,
    /// How it ended.
    pub report: Report,
    /// Whether somebody reported that end.
    pub reported: bool,
    /// The state that the job went to.
    pub state: StateName,
    /// When the next attempt might start, then.
    pub next_at: Option<Timestamp>,
    /// What a late report said, and the state and due time that it led to.
    pub late: Option<(Report, StateName, Option<Timestamp>)>,
    /// [`LateReport::accepted`]; says nothing without a late report.
    pub late_accepted: bool,
    /// When a commit of this attempt was heard, whatever came of it.
    pub commit_heard_at: Option<Timestamp>,
}

impl AttemptRecord {
    /// What the rows of one attempt tell.
    pub fn of(end: &AttemptEnd, late: Option<&LateReport>, commit_heard_at: Option<Timestamp>) -> Self {
        Self {
            attempt: end.attempt,
            report: end.report,
            reported: end.reported,
            state: end.state,
            next_at: end.next_at,
            late: late.map(|late| (late.report, late.state, late.next_at)),
            late_accepted: late.is_some_and(|late| late.accepted),
            commit_heard_at,
        }
    }

    /// What a reporter said of this attempt, if one did, and the answer it got.
    pub fn heard_report(&self) -> Option<(Report, StateName, Option<Timestamp>)> {
        self.late.or_else(|| self.reported.then_some((self.report, self.state, self.next_at)))
    }

    /// The report that is recorded, and what its reporter was answered: a repeat is answered the same.
    pub(crate) fn recorded_answer(&self) -> Option<(Report, Result<Answer, Refusal>)> {
        let (report, state, due_at) = self.heard_report()?;
        let answer = if self.late.is_some() && !self.late_accepted {
            Err(Refusal::AlreadySettled { state })
        } else {
            Ok(Answer::Moved { state, due_at })
        };
        Some((report, answer))
    }

    /// What is known about this attempt's effect: the reporter's word over the assumption of a lost lease.
    pub fn effect(&self) -> Effect {
        let said = self.late.map_or(self.report.effect, |(report, ..)| report.effect);
        if self.commit_heard_at.is_some() { said.max(Effect::Reported) } else { said }
    }
}

/// How many effects a job may have had, from all its attempts: at least `lo`, at most `hi`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct EffectSpan {
    /// The strongest claim that any attempt makes.
    pub effect: Effect,
    /// One, if any attempt's effect was reported or confirmed.
    pub lo: u32,
    /// Attempts that may have acted.
    pub hi: u32,
}

impl EffectSpan {
    /// No attempt can have acted.
    pub const NONE: Self = Self { effect: Effect::None, lo: 0, hi: 0 };

    /// The span over a job's ended attempts. A duplicate says that the effect happened, and that this attempt
    /// had no part in it.
    pub fn of_attempts<'a>(attempts: impl IntoIterator<Item = &'a AttemptRecord>) -> Self {
        let span = attempts.into_iter().fold(Self::NONE, |span, attempt| {
            let effect = attempt.effect();
            let said = attempt.late.map_or(attempt.report, |(report, ..)| report);
            let acted = effect > Effect::None && said.outcome != AttemptOutcome::Duplicate;
            Self {
                effect: span.effect.max(effect),
                lo: span.lo.max(u32::from(effect >= Effect::Reported)),
                hi: span.hi.saturating_add(u32::from(acted)),
            }
        });
        Self { hi: span.hi.max(span.lo), ..span }
    }

    /// The span over `effects`, one an attempt.
    pub fn over(effects: impl IntoIterator<Item = Effect>) -> Self {
        effects.into_iter().fold(Self::NONE, |span, effect| Self {
            effect: span.effect.max(effect),
            lo: span.lo.max(u32::from(effect >= Effect::Reported)),
            hi: span.hi.saturating_add(u32::from(effect > Effect::None)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_b3_only_the_exact_spelling_is_a_fence() {
        let fence = Fence { epoch: Epoch(3), attempt: Attempt::new(17).unwrap() };
        assert_eq!("3.17", fence.to_string());
        assert_eq!(Some(fence), Fence::parse("3.17"));
        let longest = "4294967295.4294967295";
        assert_eq!(longest, Fence::parse(longest).unwrap().to_string());
        for text in
            ["", ".", "3", "3.", ".17", "3.0", "03.17", "3.017", "+3.17", "3.17 ", "3.17.1", "4294967296.1"]
        {
            assert_eq!(None, Fence::parse(text), "{text}");
        }
        assert_eq!(None, Fence::parse(&"1".repeat(129)));
    }

    #[test]
    fn attempt_numbers_are_never_given_twice() {
        assert_eq!(Some(Attempt::FIRST), Attempt::following(None));
        assert_eq!(Attempt::new(2), Attempt::following(Some(Attempt::FIRST)));
        assert_eq!(None, Attempt::following(Attempt::new(u32::MAX)));
    }

    #[test]
    fn the_effect_span_counts_what_may_have_acted() {
        use Effect::*;
        let check = |effects: &[Effect], effect, lo, hi| {
            assert_eq!(EffectSpan { effect, lo, hi }, EffectSpan::over(effects.iter().copied()));
        };
        check(&[], None, 0, 0);
        check(&[None, None], None, 0, 0);
        check(&[Possible, None], Possible, 0, 1);
        check(&[Possible, Reported, Possible], Reported, 1, 3);
        check(&[Confirmed, Reported], Confirmed, 1, 2);
    }
}
