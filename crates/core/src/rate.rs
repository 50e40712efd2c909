//! How many attempts may begin in a time. Row D4.

use crate::{DurationMs, Timestamp};

/// So many attempts in so long: a token bucket that holds a tenth of a second's worth, at least one.
///
/// The bucket is one number in the lane's row: until when, in microseconds, what was taken is used up. The generic cell rate
/// algorithm: <https://en.wikipedia.org/wiki/Generic_cell_rate_algorithm>.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Rate {
    attempts: u32,
    per: DurationMs,
}

impl Rate {
    /// `attempts` in each `per`: 1 to 1,000,000 a second at most, and one a day at least.
    pub fn new(attempts: u32, per: DurationMs) -> Option<Self> {
        let rate = Self { attempts, per };
        let fits = attempts >= 1 && per.0 >= 1 && per <= DurationMs::from_hours(24);
        (fits && u64::from(attempts) <= per.0.saturating_mul(1_000)).then_some(rate)
    }

    /// The attempts.
    pub fn attempts(self) -> u32 {
        self.attempts
    }

    /// In how long.
    pub fn per(self) -> DurationMs {
        self.per
    }

    /// Microseconds between two attempts, rounded up: never faster than said.
    fn interval_us(self) -> i64 {
        let per_us = self.per.0.saturating_mul(1_000);
        i64::try_from(per_us.div_ceil(u64::from(self.attempts))).unwrap_or(i64::MAX).max(1)
    }

    /// How many attempts may begin in one instant after a rest.
    fn burst(self) -> i64 {
        (100_000 / self.interval_us()).max(1)
    }

    /// How many attempts may begin now.
    pub(crate) fn free(self, used_until_us: i64, now: Timestamp) -> usize {
        let now_us = now.0.saturating_mul(1_000);
        let used = used_until_us.max(now_us).saturating_sub(now_us);
        let room = self.burst().saturating_mul(self.interval_us()).saturating_sub(used);
        usize::try_from(room / self.interval_us()).unwrap_or(0)
    }

    /// Until when the bucket is used up after `attempts` more.
    pub(crate) fn take(self, used_until_us: i64, attempts: usize, now: Timestamp) -> i64 {
        let attempts = i64::try_from(attempts).unwrap_or(i64::MAX);
        let from = used_until_us.max(now.0.saturating_mul(1_000));
        from.saturating_add(attempts.saturating_mul(self.interval_us()))
    }

    /// When the next attempt may begin.
    pub(crate) fn next_at(self, used_until_us: i64) -> Timestamp {
        let before = self.burst().saturating_sub(1).saturating_mul(self.interval_us());
        let at_us = used_until_us.saturating_sub(before);
        Timestamp(at_us.div_euclid(1_000).saturating_add(i64::from(at_us.rem_euclid(1_000) > 0)))
    }
}
