//! When to try again, and when to stop: retry policies and their arithmetic.

use crate::{Attempt, ClassRule, DurationMs, JobId, LaneRules, Timestamp, limits};

/// How much of a delay is random, in thousandths. A newtype, so that it can't be mistaken for a delay.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Permille(u16);

impl Permille {
    /// `value` thousandths, if it is at most 1,000.
    pub const fn new(value: u16) -> Option<Self> {
        if value <= 1_000 { Some(Self(value)) } else { None }
    }

    /// The thousandths.
    pub const fn get(self) -> u16 {
        self.0
    }
}

/// How long to wait after a failure.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Backoff {
    /// `base · 2ⁿ⁻¹` after failure n, at most `cap`; the share `jitter` of it is random, the rest is fixed.
    Exponential {
        /// After the first failure, in full.
        base: DurationMs,
        /// The longest delay, in full.
        cap: DurationMs,
        /// The random share.
        jitter: Permille,
    },
    /// The n-th delay after failure n, plus at most the share `jitter` of it: never earlier than written.
    /// There are at most as many retries as delays.
    Fixed {
        /// In order.
        delays: Vec<DurationMs>,
        /// The random addition.
        jitter: Permille,
    },
}

/// What to do when an attempt may have had its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnUnknown {
    /// Try again under the same identity.
    Retry,
    /// Look first. "Absent" is believed only `settle` after the last attempt ended.
    Reconcile {
        /// How long the last send can still act: request time-out plus the receiver's longest handling.
        settle: DurationMs,
    },
    /// Leave it to a person.
    DeadLetter,
}

/// When to try again, and when to stop. Three budgets: failures, lost leases, and the horizon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Policy {
    /// The wait after a failure.
    pub backoff: Backoff,
    /// Failures after which the job is dead-lettered; from 1.
    pub failures_max: u32,
    /// Lost leases after which the job is dead-lettered; from 1.
    pub lost_leases_max: u32,
    /// How long after it became due a job may be tried, pauses not counted.
    pub horizon: DurationMs,
    /// What to do when an attempt may have had its effect.
    pub on_unknown: OnUnknown,
    /// The receiver guards our idempotency key: a repeated delivery has no second effect.
    pub idempotent: bool,
    /// How the lane's receiver is treated.
    pub lane: LaneRules,
    /// What the destination says otherwise than the classification of every destination.
    pub classes: Vec<ClassRule>,
}

impl Policy {
    /// The policy of a queue that says nothing: 5 s doubling to 15 min, 25 failures, 5 lost leases, 4 days.
    pub fn queue_default() -> Self {
        Self {
            backoff: Backoff::Exponential {
                base: DurationMs::from_secs(5),
                cap: DurationMs::from_mins(15),
                jitter: Permille(500),
            },
            failures_max: 25,
            lost_leases_max: 5,
            horizon: DurationMs::from_hours(96),
            on_unknown: OnUnknown::Retry,
            idempotent: false,
            lane: LaneRules::STANDARD,
            classes: Vec::new(),
        }
    }

    /// The policy of an endpoint that says nothing: the delays of the Standard Webhooks specification, ten
    /// attempts over three days. <https://github.com/standard-webhooks/standard-webhooks>
    pub fn endpoint_default() -> Self {
        let delays = [5, 300, 1_800, 7_200, 18_000, 36_000, 50_400, 72_000, 86_400];
        Self {
            backoff: Backoff::Fixed {
                delays: delays.into_iter().map(DurationMs::from_secs).collect(),
                jitter: Permille(100),
            },
            failures_max: 10,
            ..Self::queue_default()
        }
    }

    /// The wait after failure number `failures` (from 1), jitter included: a hash of the job and its attempt, so
    /// that equal input gives equal output.
    pub fn delay(&self, job: JobId, attempt: Option<Attempt>, failures: u32) -> DurationMs {
        let random = mix(job, attempt.map_or(0, Attempt::get));
        match &self.backoff {
            Backoff::Exponential { base, cap, jitter } => {
                let doublings = failures.saturating_sub(1).min(63);
                let full = base.0.saturating_mul(1 << doublings).min(cap.0);
                let spread = share_of(full, *jitter);
                DurationMs(full - spread + pick(random, spread))
            }
            Backoff::Fixed { delays, jitter } => {
                let index = usize::try_from(failures.saturating_sub(1)).unwrap_or(usize::MAX);
                let full = delays.get(index).or(delays.last()).map_or(0, |delay| delay.0);
                DurationMs(full.saturating_add(pick(random, share_of(full, *jitter))))
            }
        }
    }

    /// When the next attempt may start after a failure at `now`: our own backoff, or what the receiver asked
    /// for, whichever is later. A `retry_after` gets a small random addition and never shortens the backoff.
    pub fn next_due(
        &self,
        job: JobId,
        attempt: Option<Attempt>,
        failures: u32,
        retry_after: Option<DurationMs>,
        now: Timestamp,
    ) -> Timestamp {
        let own = self.delay(job, attempt, failures);
        let asked = retry_after.map_or(DurationMs::ZERO, |asked| asked_for(job, attempt, asked));
        now.after(own.max(asked))
    }

    /// When to ask a receiver again that said, for the `times`-th time in a row (from 1), that another run is under way:
    /// when it said, with a small random addition, so that its word counts and not a backoff of hours; but never sooner
    /// than after 1 s doubling to 60 s, unless our own backoff is shorter. Without a word from it, our own backoff.
    pub fn next_asked(
        &self,
        job: JobId,
        attempt: Option<Attempt>,
        times: u32,
        retry_after: Option<DurationMs>,
        now: Timestamp,
    ) -> Timestamp {
        let own = self.delay(job, attempt, times);
        now.after(retry_after.map_or(own, |asked| {
            let soonest = own.min(release_delay(times.saturating_sub(1)));
            soonest.max(asked_for(job, attempt, asked))
        }))
    }

    /// How many failures the policy allows: the explicit budget, or one more than there are fixed delays.
    pub fn failures_allowed(&self) -> u32 {
        match &self.backoff {
            Backoff::Exponential { .. } => self.failures_max,
            Backoff::Fixed { delays, .. } => {
                let by_delays = u32::try_from(delays.len()).unwrap_or(u32::MAX).saturating_add(1);
                self.failures_max.min(by_delays)
            }
        }
    }
}

/// What a receiver asked for, within bounds and spread a little.
fn asked_for(job: JobId, attempt: Option<Attempt>, asked: DurationMs) -> DurationMs {
    let asked = asked.min(limits::RETRY_AFTER_MAX);
    let spread = (asked.0 / 10).min(limits::RETRY_AFTER_JITTER_MAX.0);
    asked.plus(DurationMs(pick(mix(job, attempt.map_or(0, Attempt::get)), spread)))
}

/// The wait after the `earlier`-th release in a row (from 0): 1 s doubling to 60 s.
pub fn release_delay(earlier: u32) -> DurationMs {
    let full = limits::RELEASE_DELAY_BASE.0.saturating_mul(1 << earlier.min(16));
    DurationMs(full.min(limits::RELEASE_DELAY_MAX.0))
}

fn share_of(full: u64, share: Permille) -> u64 {
    let product = u128::from(full) * u128::from(share.0) / 1_000;
    u64::try_from(product).expect("a share is at most the whole")
}

/// A number from 0 to `max`, both included.
fn pick(random: u64, max: u64) -> u64 {
    max.checked_add(1).map_or(random, |bound| random % bound)
}

/// The finaliser of SplitMix64 over job and attempt; good enough to spread retries.
#[allow(clippy::cast_possible_truncation)] // both halves are wanted
fn mix(job: JobId, attempt: u32) -> u64 {
    let mut z = (job.0 as u64) ^ ((job.0 >> 64) as u64).rotate_left(32);
    z = z.wrapping_add(0x9E37_79B9_7F4A_7C15_u64.wrapping_mul(u64::from(attempt) + 1));
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}
