//! How work that can wait makes room: it rests for longer than it works.

use posthaste_core::{DurationMs, Timestamp};

/// A rest is so many times as long as the work before it: with a tenth of the time, the 99th percentile of others hardly knows.
const FACTOR: u64 = 9;

/// Shorter rests are put together.
const SHORTEST: DurationMs = DurationMs(2);

/// The rests of one piece of work that goes on for long.
pub(crate) struct Rests {
    hurry_from: Timestamp,
    since: Timestamp,
    owed: DurationMs,
}

impl Rests {
    /// Begins now. Work that isn't done by `hurry_from` is behind, and rests no more.
    pub(crate) fn new(now: Timestamp, hurry_from: Timestamp) -> Self {
        Self { hurry_from, since: now, owed: DurationMs::ZERO }
    }

    /// Until when to rest, now; `None`: go on.
    pub(crate) fn due(&mut self, now: Timestamp) -> Option<Timestamp> {
        let worked = now.since(self.since);
        self.since = now;
        if now >= self.hurry_from {
            return None;
        }
        self.owed = self.owed.plus(DurationMs(worked.0.saturating_mul(FACTOR)));
        (self.owed >= SHORTEST).then(|| now.after(std::mem::replace(&mut self.owed, DurationMs::ZERO)))
    }

    /// The rest is over.
    pub(crate) fn rested(&mut self, now: Timestamp) {
        self.since = now;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_rests_nine_times_as_long_as_it_works_until_it_is_late() {
        let at = Timestamp;
        let mut rests = Rests::new(at(0), at(1_000));
        assert_eq!(None, rests.due(at(0)), "nothing was done yet");
        assert_eq!(Some(at(10)), rests.due(at(1)));
        rests.rested(at(10));
        assert_eq!(None, rests.due(at(10)));
        assert_eq!(Some(at(60)), rests.due(at(15)), "5 ms of work");
        rests.rested(at(990));
        assert_eq!(None, rests.due(at(1_000)), "from here on it hurries");
    }
}
