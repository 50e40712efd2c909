//! How the lives of a server end.

use std::{collections::BTreeMap, ops::Range};

use super::chance::Chance;

/// How one life ends.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Kill {
    /// From outside, so many milliseconds after it answers.
    At(u64),
    /// By itself, when it comes to `point` for the `nth` time.
    Point {
        /// Where.
        point: &'static str,
        /// At which time.
        nth: u64,
    },
}

impl Kill {
    /// The life's part of `POSTHASTE_FAULTS`.
    pub(crate) fn fault(&self) -> Option<String> {
        match self {
            Self::At(_) => None,
            Self::Point { point, nth } => Some(format!("kill:{point}:{nth}")),
        }
    }

    /// What it is counted as.
    pub(crate) fn name(&self) -> &'static str {
        match self {
            Self::At(_) => "at random",
            Self::Point { point, .. } => point,
        }
    }
}

/// The points that a server built for tests knows, each with the range from which the number is drawn: some come with every
/// commit, some only while a fan-out runs.
pub(crate) const POINTS: [(&str, Range<u64>); 4] =
    [("before_commit", 10..250), ("after_commit", 10..250), ("after_send", 3..150), ("mid_fan_out", 1..3)];

/// So many kills at random moments of a life of so many milliseconds, and so many at each of `points`, mixed.
pub(crate) fn mixed(seed: u64, (at_random, life_ms): (u64, Range<u64>), at_each_point: u64) -> Vec<Kill> {
    let mut chance = Chance::of(seed, "kills");
    let mut kills: Vec<_> = (0..at_random).map(|_| Kill::At(chance.within(life_ms.clone()))).collect();
    // Without the feature a server knows no points.
    let points = if cfg!(feature = "faults") { &POINTS[..] } else { &[] };
    for (point, nth) in points {
        kills.extend((0..at_each_point).map(|_| Kill::Point { point, nth: chance.within(nth.clone()) }));
    }
    for at in (1..kills.len()).rev() {
        let other = usize::try_from(chance.within(0..at as u64 + 1)).unwrap();
        kills.swap(at, other);
    }
    kills
}

/// How many of each name.
pub(crate) fn by_name<'k>(kills: impl Iterator<Item = &'k Kill>) -> BTreeMap<&'static str, usize> {
    kills.fold(BTreeMap::new(), |mut counts, kill| {
        *counts.entry(kill.name()).or_default() += 1;
        counts
    })
}
