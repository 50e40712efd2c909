//! Instants and lengths of time, in whole milliseconds.

/// Milliseconds since the Unix epoch, UTC. Arithmetic saturates: no input overflows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Timestamp(pub i64);

/// A length of time in milliseconds. Arithmetic saturates.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DurationMs(pub u64);

impl Timestamp {
    /// The instant `delay` later.
    #[must_use]
    pub fn after(self, delay: DurationMs) -> Self {
        Self(self.0.saturating_add(i64::try_from(delay.0).unwrap_or(i64::MAX)))
    }

    /// How long after `earlier` this is; zero if it is not.
    #[must_use]
    pub fn since(self, earlier: Self) -> DurationMs {
        DurationMs(u64::try_from(self.0.saturating_sub(earlier.0)).unwrap_or(0))
    }
}

impl DurationMs {
    /// No time at all.
    pub const ZERO: Self = Self(0);

    /// `seconds` as milliseconds.
    pub const fn from_secs(seconds: u64) -> Self {
        Self(seconds.saturating_mul(1_000))
    }

    /// `minutes` as milliseconds.
    pub const fn from_mins(minutes: u64) -> Self {
        Self::from_secs(minutes.saturating_mul(60))
    }

    /// `hours` as milliseconds.
    pub const fn from_hours(hours: u64) -> Self {
        Self::from_mins(hours.saturating_mul(60))
    }

    /// The sum, saturating.
    #[must_use]
    pub const fn plus(self, other: Self) -> Self {
        Self(self.0.saturating_add(other.0))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arithmetic_saturates_at_both_ends() {
        assert_eq!(Timestamp(i64::MAX), Timestamp(1).after(DurationMs(u64::MAX)));
        assert_eq!(DurationMs::ZERO, Timestamp(i64::MIN).since(Timestamp(i64::MAX)));
        assert_eq!(DurationMs(7), Timestamp(10).since(Timestamp(3)));
        assert_eq!(DurationMs(u64::MAX), DurationMs(u64::MAX).plus(DurationMs(1)));
        assert_eq!(DurationMs(86_400_000), DurationMs::from_hours(24));
    }
}
