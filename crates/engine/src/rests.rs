//! How work that can wait makes room: it goes in small steps, and rests for longer than it works.

use posthaste_core::{DurationMs, Timestamp};

/// Shorter rests are put together.
const SHORTEST: DurationMs = DurationMs(2);

/// How a piece of work goes on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Pace {
    /// How much is done in one commit, for which everybody else's commits wait.
    pub(crate) step: usize,
    /// A rest is so many times as long as the work before it.
    rests: u64,
}

/// In time: whoever waits for a step waits a millisecond or two. Measured by `bench archive`: others' 99th percentile is
/// some 2 ms longer, and was 4 ms longer with steps of ten.
const UNHURRIED: Pace = Pace { step: 1, rests: 4 };

/// Late.
const HURRIED: Pace = Pace { step: 4, rests: 1 };

/// Twice as late: more comes than leaves, and a store that grows without end is worse for others than long steps.
const BEHIND: Pace = Pace { step: 50, rests: 0 };

/// The rests of one piece of work that goes on for long.
pub(crate) struct Rests {
    late_from: Timestamp,
    behind_from: Timestamp,
    since: Timestamp,
    owed: DurationMs,
}

impl Rests {
    /// Begins now. Work that isn't done after `time` is late, and after twice that, behind.
    pub(crate) fn new(now: Timestamp, time: DurationMs) -> Self {
        let late_from = now.after(time);
        Self { late_from, behind_from: late_from.after(time), since: now, owed: DurationMs::ZERO }
    }

    /// How to go on.
    pub(crate) fn pace(&self, now: Timestamp) -> Pace {
        match now {
            now if now < self.late_from => UNHURRIED,
            now if now < self.behind_from => HURRIED,
            _ => BEHIND,
        }
    }

    /// Until when to rest, now; `None`: go on.
    pub(crate) fn due(&mut self, now: Timestamp) -> Option<Timestamp> {
        let worked = now.since(self.since);
        self.since = now;
        self.owed = self.owed.plus(DurationMs(worked.0.saturating_mul(self.pace(now).rests)));
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
    fn it_rests_longer_than_it_works_until_it_is_late() {
        let at = Timestamp;
        let mut rests = Rests::new(at(0), DurationMs(1_000));
        assert_eq!(None, rests.due(at(0)), "nothing was done yet");
        assert_eq!(Some(at(5)), rests.due(at(1)));
        rests.rested(at(5));
        assert_eq!(None, rests.due(at(5)));
        assert_eq!(Some(at(30)), rests.due(at(10)), "5 ms of work");
        rests.rested(at(990));
        assert_eq!((UNHURRIED, HURRIED), (rests.pace(at(999)), rests.pace(at(1_000))));
        assert_eq!(Some(at(1_020)), rests.due(at(1_005)), "15 ms of work");
        rests.rested(at(1_999));
        assert_eq!(BEHIND, rests.pace(at(2_000)));
        assert_eq!(None, rests.due(at(2_500)), "more comes than leaves");
    }
}
