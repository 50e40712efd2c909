//! The clock: wall time read once, then carried by the monotonic clock.
//!
//! The only place that reads a clock. A step of the wall clock (NTP, an operator, a resumed machine) must not expire
//! leases or release delayed jobs in a burst, so it changes [`SystemClock::skew_ms`] and nothing else.

use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use posthaste_core::Timestamp;
use posthaste_engine::{
    StoreClock,
    ports::{BoxFuture, Clock},
};

/// Time that never goes back: the wall time at construction plus the monotonic time since.
///
/// On Linux the monotonic clock stands still while the machine is suspended; the skew then grows by the pause.
#[derive(Clone, Debug)]
pub struct SystemClock {
    wall_at_start_ms: i64,
    started_at: Instant,
}

impl SystemClock {
    /// Reads the wall clock, for the only time that matters.
    pub fn start() -> Self {
        Self { wall_at_start_ms: wall_ms(SystemTime::now()), started_at: Instant::now() }
    }

    /// Time that begins at `now`: that of a store which several machines share.
    pub fn start_at(now: Timestamp) -> Self {
        Self { wall_at_start_ms: now.0, started_at: Instant::now() }
    }

    /// Steady Unix time in milliseconds. Two reads are never out of order.
    pub fn now_ms(&self) -> i64 {
        steady_ms(self.wall_at_start_ms, self.started_at.elapsed())
    }

    /// Time since the construction, for measuring.
    pub fn elapsed(&self) -> Duration {
        self.started_at.elapsed()
    }

    /// How far the wall clock has moved from the steady time, in milliseconds; positive if the wall is ahead.
    ///
    /// For a warning and a metric. Large values mean that timestamps of this process differ from those of others.
    pub fn skew_ms(&self) -> i64 {
        skew_ms(wall_ms(SystemTime::now()), self.now_ms())
    }
}

impl StoreClock for SystemClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now_ms())
    }
}

impl Clock for SystemClock {
    fn wall(&self) -> Timestamp {
        Timestamp(wall_ms(SystemTime::now()))
    }

    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Again, should the timer have fired within the millisecond before.
            while self.now() < at {
                tokio::time::sleep(Duration::from_millis(at.since(self.now()).0)).await;
            }
        })
    }
}

fn wall_ms(wall: SystemTime) -> i64 {
    match wall.duration_since(UNIX_EPOCH) {
        Ok(since) => whole_ms(since),
        Err(before) => -whole_ms(before.duration()),
    }
}

fn steady_ms(wall_at_start_ms: i64, elapsed: Duration) -> i64 {
    wall_at_start_ms.saturating_add(whole_ms(elapsed))
}

fn skew_ms(wall_ms: i64, steady_ms: i64) -> i64 {
    wall_ms.saturating_sub(steady_ms)
}

fn whole_ms(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_clock_starts_at_wall_time_and_never_goes_back() {
        let before = wall_ms(SystemTime::now());
        let clock = SystemClock::start();
        let reads: Vec<_> = (0..1_000).map(|_| clock.now_ms()).collect();
        assert!(reads.is_sorted());
        assert!(reads[0] >= before);
        assert!(clock.skew_ms().abs() < 60_000);
    }

    #[tokio::test]
    async fn a_sleep_ends_at_its_instant_and_not_before() {
        let clock = SystemClock::start();
        let at = Timestamp(clock.now_ms() + 20);
        clock.sleep_until(at).await;
        assert!(clock.now() >= at);
        clock.sleep_until(Timestamp(0)).await;
    }

    #[test]
    fn a_step_of_the_wall_clock_shows_as_skew_and_not_as_time() {
        let hour_ms = 3_600_000;
        let steady = steady_ms(1_000_000_000, Duration::from_secs(10));
        assert_eq!(steady, 1_000_010_000);
        assert_eq!(skew_ms(steady + hour_ms, steady), hour_ms);
        assert_eq!(skew_ms(steady - hour_ms, steady), -hour_ms);
    }

    #[test]
    fn absurd_clocks_saturate() {
        assert_eq!(steady_ms(i64::MAX, Duration::MAX), i64::MAX);
        assert_eq!(skew_ms(i64::MIN, i64::MAX), i64::MIN);
        assert_eq!(wall_ms(UNIX_EPOCH - Duration::from_millis(5)), -5);
    }
}
