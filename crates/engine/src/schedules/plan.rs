//! What to do about firings that are due: a pure function. Row B10, B14.

use posthaste_core::{DurationMs, Timestamp};

use super::timing::Timing;

/// Firings that are later than this were missed: nobody was there, or they were not to be.
pub(crate) const ON_TIME_FOR: DurationMs = DurationMs::from_mins(1);

/// Missed firings that are made up for at most, the latest ones.
pub(crate) const CATCH_UP_MAX: usize = 1_000;

/// How far back the last missed firings are looked for, at first; then so many times as far.
const LOOK_BACK: (DurationMs, u64) = (DurationMs::from_mins(2 * 60), 24);

/// What becomes of firings that were missed.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CatchUp {
    /// They are not made up for.
    #[default]
    Skip,
    /// The latest of them is.
    Once,
    /// All are, up to the last 1,000.
    All,
}

/// What to fire, and what then.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Plan {
    /// Oldest first.
    pub(crate) fire: Vec<Timestamp>,
    /// The first one that was missed and isn't made up for.
    pub(crate) skipped_from: Option<Timestamp>,
    /// What is due next.
    pub(crate) next: Option<Timestamp>,
}

/// Plans for a schedule whose next firing is, or was, at `due`.
pub(crate) fn plan(timing: &Timing, due: Timestamp, now: Timestamp, catch_up: CatchUp) -> Plan {
    // The last instant that is late enough to have been missed.
    let missed_until = before(now, DurationMs(ON_TIME_FOR.0 + 1));
    let mut fire = Vec::new();
    let mut skipped_from = None;
    let mut next = Some(due);
    if due <= missed_until {
        let wanted = match catch_up {
            CatchUp::Skip => 0,
            CatchUp::Once => 1,
            CatchUp::All => CATCH_UP_MAX,
        };
        fire = last_of(timing, due, missed_until, wanted);
        skipped_from = (fire.first() != Some(&due)).then_some(due);
        next = timing.next_after(missed_until);
    }
    while let Some(at) = next.filter(|at| *at <= now) {
        fire.push(at);
        next = timing.next_after(at);
    }
    Plan { fire, skipped_from, next }
}

/// What follows once everything up to now is let go of.
pub(crate) fn pass_over(timing: &Timing, due: Timestamp, now: Timestamp) -> Option<Timestamp> {
    if due > now { Some(due) } else { timing.next_after(now) }
}

/// The last `wanted` firings from `due` to `until`, both included, oldest first.
fn last_of(timing: &Timing, due: Timestamp, until: Timestamp, wanted: usize) -> Vec<Timestamp> {
    if wanted == 0 {
        return Vec::new();
    }
    let mut back = LOOK_BACK.0;
    loop {
        let from = before(until, back).max(due);
        let mut found = std::collections::VecDeque::new();
        let mut next = if from == due { Some(due) } else { timing.next_after(from) };
        while let Some(at) = next.filter(|at| *at <= until) {
            if found.len() == wanted {
                found.pop_front();
            }
            found.push_back(at);
            next = timing.next_after(at);
        }
        if found.len() == wanted || from == due {
            return found.into();
        }
        back = DurationMs(back.0.saturating_mul(LOOK_BACK.1));
    }
}

fn before(at: Timestamp, by: DurationMs) -> Timestamp {
    Timestamp(at.0.saturating_sub_unsigned(by.0))
}

#[cfg(test)]
mod tests {
    use super::*;

    const MINUTE: i64 = 60_000;

    fn every(minutes: u64) -> Timing {
        Timing::Every(DurationMs::from_mins(minutes))
    }

    fn at(minute: i64) -> Timestamp {
        Timestamp(minute * MINUTE)
    }

    fn planned(due: i64, now: Timestamp, catch_up: CatchUp) -> (Vec<i64>, Option<i64>, Option<i64>) {
        let plan = plan(&every(10), at(due), now, catch_up);
        let minutes = |at: Timestamp| at.0 / MINUTE;
        (plan.fire.into_iter().map(minutes).collect(), plan.skipped_from.map(minutes), plan.next.map(minutes))
    }

    #[test]
    fn r_b14_what_is_on_time_fires_however_missed_ones_are_treated() {
        for catch_up in [CatchUp::Skip, CatchUp::Once, CatchUp::All] {
            assert_eq!((vec![], None, Some(10)), planned(10, Timestamp(10 * MINUTE - 1), catch_up));
            assert_eq!((vec![10], None, Some(20)), planned(10, at(10), catch_up));
            assert_eq!((vec![10], None, Some(20)), planned(10, at(11), catch_up), "a minute late is on time");
        }
    }

    #[test]
    fn r_b10_what_was_missed_is_skipped_made_up_once_or_made_up_for_all() {
        let late = Timestamp(11 * MINUTE + 1);
        assert_eq!((vec![], Some(10), Some(20)), planned(10, late, CatchUp::Skip));
        assert_eq!((vec![10], None, Some(20)), planned(10, late, CatchUp::Once));
        assert_eq!((vec![10], None, Some(20)), planned(10, late, CatchUp::All));
        let later = Timestamp(45 * MINUTE);
        assert_eq!((vec![], Some(10), Some(50)), planned(10, later, CatchUp::Skip));
        assert_eq!((vec![40], Some(10), Some(50)), planned(10, later, CatchUp::Once));
        assert_eq!((vec![10, 20, 30, 40], None, Some(50)), planned(10, later, CatchUp::All));
        // Beside one that is on time.
        let now = Timestamp(50 * MINUTE + 5);
        assert_eq!((vec![50], Some(10), Some(60)), planned(10, now, CatchUp::Skip));
        assert_eq!((vec![40, 50], Some(10), Some(60)), planned(10, now, CatchUp::Once));
        assert_eq!((vec![10, 20, 30, 40, 50], None, Some(60)), planned(10, now, CatchUp::All));
    }

    #[test]
    fn r_b10_what_is_made_up_for_is_bounded() {
        let timing = every(1);
        let now = at(5_000_000);
        let plan = plan(&timing, at(1), now, CatchUp::All);
        // The last two minutes are on time.
        assert_eq!(CATCH_UP_MAX + 2, plan.fire.len());
        assert_eq!((Some(&at(5_000_000 - 1_001)), Some(&now)), (plan.fire.first(), plan.fire.last()));
        assert_eq!((Some(at(1)), Some(at(5_000_001))), (plan.skipped_from, plan.next));
        assert!(plan.fire.is_sorted());
    }

    #[test]
    fn r_b10_letting_go_leaves_what_is_still_to_come() {
        assert_eq!(Some(at(10)), pass_over(&every(10), at(10), at(9)));
        assert_eq!(Some(at(20)), pass_over(&every(10), at(10), at(10)));
        assert_eq!(Some(at(50)), pass_over(&every(10), at(10), at(49)));
    }
}
