//! Times in a histogram, and the wall clock that several processes of one machine share.

use std::time::{Duration, SystemTime};

use hdrhistogram::Histogram;

use super::plan::Quantiles;

/// Microseconds of the longest time that is told apart: ten minutes.
const LONGEST_US: u64 = 600_000_000;

/// Times from a microsecond to ten minutes, to three digits.
pub(super) struct Times(Histogram<u64>);

impl Times {
    pub(super) fn new() -> Self {
        Self(Histogram::new_with_bounds(1, LONGEST_US, 3).expect("the bounds are in order"))
    }

    pub(super) fn record(&mut self, time: Duration) {
        self.record_us(u64::try_from(time.as_micros()).unwrap_or(u64::MAX));
    }

    pub(super) fn record_us(&mut self, us: u64) {
        self.0.saturating_record(us.max(1));
    }

    pub(super) fn quantiles(&self) -> Quantiles {
        let at = |quantile| self.0.value_at_quantile(quantile);
        Quantiles { count: self.0.len(), p50: at(0.5), p99: at(0.99), max: self.0.max() }
    }
}

/// Microseconds of the Unix epoch: comparable between processes of this machine.
pub(super) fn now_us() -> u64 {
    let since = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    u64::try_from(since.as_micros()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantiles_are_right_to_three_digits() {
        let mut times = Times::new();
        (1..=10_000).for_each(|us| times.record_us(us));
        let found = times.quantiles();
        assert_eq!(10_000, found.count);
        assert!((4_990..=5_010).contains(&found.p50), "{}", found.p50);
        assert!((9_890..=9_910).contains(&found.p99), "{}", found.p99);
        times.record(Duration::from_hours(1));
        assert!(times.quantiles().max <= LONGEST_US * 2);
    }
}
