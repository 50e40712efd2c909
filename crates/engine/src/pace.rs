//! How fast a bulk run goes: evenly, in small steps, and without making up for long waits.

use posthaste_core::{DurationMs, Timestamp};

/// Time between two steps, where the rate allows for so many.
const STEP_EVERY_US: i64 = 10_000;

/// What was not used of the rate for longer than this is lost, so that a run that waited doesn't rush.
const BURST_US: i64 = 100_000;

/// After a step that found no job that fits, before the next.
const LOOK_PAUSE_US: i64 = 2_000;

/// The first wait after an error; doubled for each in a row.
const RETRY_BASE: DurationMs = DurationMs(250);

/// The longest such wait.
const RETRY_MAX: DurationMs = DurationMs::from_secs(30);

const US_PER_SECOND: i64 = 1_000_000;

/// When the next step of a run is due, and how many jobs it may take.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Pace {
    per_second: i64,
    /// Up to here the rate is used, in microseconds.
    used_us: i64,
    /// Not before, in microseconds.
    next_us: i64,
    failures: u32,
}

impl Pace {
    /// Begins now.
    pub(crate) fn new(per_second: u32, now: Timestamp) -> Self {
        let now_us = us(now);
        let mut pace = Self { per_second: i64::from(per_second.max(1)), used_us: 0, next_us: 0, failures: 0 };
        // The first step is due at once.
        pace.used_us = now_us.saturating_sub(pace.chunk_us());
        pace.next_us = now_us;
        pace
    }

    /// When the next step is due.
    pub(crate) fn due_at(&self) -> Timestamp {
        let at_us = self.next_us.max(self.used_us.saturating_add(self.chunk_us()));
        Timestamp(at_us.saturating_add(999).div_euclid(1_000))
    }

    /// How many jobs a step that is due may take.
    pub(crate) fn jobs(&self, now: Timestamp) -> usize {
        let free_us = us(now).saturating_sub(self.used_us).min(BURST_US.max(self.chunk_us()));
        usize::try_from(free_us.saturating_mul(self.per_second) / US_PER_SECOND).unwrap_or(0).max(1)
    }

    /// A step took `jobs`.
    pub(crate) fn took(&mut self, jobs: usize, now: Timestamp) {
        let now_us = us(now);
        self.failures = 0;
        let floor_us = now_us.saturating_sub(BURST_US.max(self.chunk_us()));
        let cost_us = i64::try_from(jobs).unwrap_or(i64::MAX).saturating_mul(US_PER_SECOND) / self.per_second;
        self.used_us = self.used_us.max(floor_us).saturating_add(cost_us);
        self.next_us = now_us.saturating_add(LOOK_PAUSE_US);
    }

    /// A step failed; gives how many did in a row.
    pub(crate) fn failed(&mut self, now: Timestamp) -> u32 {
        let wait = RETRY_BASE.0.saturating_mul(1 << self.failures.min(16)).min(RETRY_MAX.0);
        self.failures = self.failures.saturating_add(1);
        self.next_us = us(now.after(DurationMs(wait)));
        self.failures
    }

    /// What a step of even size uses of the rate: of one job at least.
    fn chunk_us(&self) -> i64 {
        STEP_EVERY_US.max(US_PER_SECOND / self.per_second)
    }
}

fn us(at: Timestamp) -> i64 {
    at.0.saturating_mul(1_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Steps for `seconds`, with a store that takes `step_ms` for each: how many jobs, and the most in one step.
    fn run(per_second: u32, seconds: i64, step_ms: i64) -> (usize, usize) {
        let (mut now, mut jobs, mut most) = (0, 0, 0);
        let mut pace = Pace::new(per_second, Timestamp(now));
        while pace.due_at().0 < seconds * 1_000 {
            now = pace.due_at().0.max(now);
            let step = pace.jobs(Timestamp(now));
            now += step_ms;
            pace.took(step, Timestamp(now));
            jobs += step;
            most = most.max(step);
        }
        (jobs, most)
    }

    #[test]
    fn r_b9_a_run_keeps_its_rate_in_small_steps() {
        for (per_second, step_max) in [(1, 1), (7, 1), (50, 1), (500, 5), (3_000, 30), (10_000, 100)] {
            let (jobs, most) = run(per_second, 10, 0);
            let expected = usize::try_from(per_second).unwrap() * 10;
            assert!(jobs.abs_diff(expected) <= step_max + expected / 50, "{per_second}: {jobs}");
            assert!(most <= step_max + 1, "{per_second}: {most} in one step");
        }
    }

    #[test]
    fn r_b9_a_slow_store_is_given_larger_steps_and_no_rush_after_a_wait() {
        let (jobs, most) = run(500, 10, 40);
        assert!((4_800..=5_100).contains(&jobs), "{jobs}");
        assert!(most <= 50, "{most}");
        let mut pace = Pace::new(500, Timestamp(0));
        pace.took(5, Timestamp(0));
        assert_eq!(50, pace.jobs(Timestamp(3_600_000)), "an hour's wait is not made up for");
    }

    #[test]
    fn r_b9_a_step_that_found_nothing_rests_and_one_that_failed_waits_longer_each_time() {
        let mut pace = Pace::new(1_000, Timestamp(0));
        pace.took(0, Timestamp(50));
        assert_eq!(Timestamp(52), pace.due_at());
        let mut now = Timestamp(100);
        for expected in [250, 500, 1_000, 2_000, 4_000, 8_000, 16_000, 30_000, 30_000] {
            pace.failed(now);
            assert_eq!(now.after(DurationMs(expected)), pace.due_at());
            now = pace.due_at();
        }
        pace.took(0, now);
        assert_eq!(1, pace.failed(now), "it begins anew");
    }
}
