//! The rules by name, and the counters that show what a history holds.

use std::{collections::BTreeMap, fmt};

/// A promise that a history can show broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Rule {
    /// Every acknowledged message is there with each of its jobs.
    Lost,
    /// After quiescence nothing is left to do.
    Unfinished,
    /// Nothing is delivered, handed out or kept that nobody published.
    Ghost,
    /// The bytes delivered are the bytes published.
    Payload,
    /// One key is one message, new once, with one job for each destination.
    OneMessage,
    /// A key stands for one content.
    KeyReused,
    /// A claim names its path: 202 is new, 200 is known.
    Path,
    /// No attempt is given out twice.
    AttemptTwice,
    /// Attempts grow with time.
    AttemptOrder,
    /// A job has one event id, one job id and one `webhook-id` for ever, and shares none of them.
    Identity,
    /// A fence belongs to one attempt.
    Fence,
    /// A superseded worker can change nothing.
    Stale,
    /// A repeated report is answered as the first.
    Repeat,
    /// The holder's report counts while nobody began anew.
    Refused,
    /// What is settled stays settled.
    Settled,
    /// A state follows from the job's attempts.
    Unearned,
    /// Nothing starts before it is due.
    Early,
    /// There are six states, and the contract's other words.
    States,
    /// The recorded attempts are those that were observed.
    Attempts,
    /// A lease has one owner at a time.
    TwoLeases,
}

impl Rule {
    /// All of them.
    pub const ALL: [Self; 20] = [
        Self::Lost,
        Self::Unfinished,
        Self::Ghost,
        Self::Payload,
        Self::OneMessage,
        Self::KeyReused,
        Self::Path,
        Self::AttemptTwice,
        Self::AttemptOrder,
        Self::Identity,
        Self::Fence,
        Self::Stale,
        Self::Repeat,
        Self::Refused,
        Self::Settled,
        Self::Unearned,
        Self::Early,
        Self::States,
        Self::Attempts,
        Self::TwoLeases,
    ];

    /// The requirement row that it holds up.
    pub fn row(self) -> &'static str {
        match self {
            Self::Lost => "A4",
            Self::Unfinished => "B15",
            Self::Ghost => "B13",
            Self::Payload => "B11",
            Self::OneMessage => "A5",
            Self::KeyReused => "A10",
            Self::Path => "A9",
            Self::Identity => "D1",
            Self::AttemptTwice
            | Self::AttemptOrder
            | Self::Fence
            | Self::Stale
            | Self::Repeat
            | Self::Refused
            | Self::Settled
            | Self::TwoLeases => "B3",
            Self::Unearned => "B4",
            Self::Early => "B1",
            Self::States => "B2",
            Self::Attempts => "F2",
        }
    }
}

impl fmt::Display for Rule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?} ({})", self.row())
    }
}

/// How many of each kind a history holds, so that one that shows nothing can't pass.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Seen(BTreeMap<&'static str, u64>);

impl Seen {
    /// Counts one more of `kind`.
    pub(super) fn count(&mut self, kind: &'static str) {
        *self.0.entry(kind).or_default() += 1;
    }

    /// How many of `kind`.
    pub fn of(&self, kind: &str) -> u64 {
        self.0.get(kind).copied().unwrap_or_default()
    }

    /// Those of `wanted`, a kind and its least number, that were seen too seldom.
    pub fn too_few(&self, wanted: &[(&str, u64)]) -> Vec<String> {
        let few = wanted.iter().filter(|(kind, least)| self.of(kind) < *least);
        few.map(|(kind, least)| format!("{kind}: {} seen, {least} wanted", self.of(kind))).collect()
    }
}

impl fmt::Display for Seen {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (kind, count) in &self.0 {
            writeln!(f, "  {kind}: {count}")?;
        }
        Ok(())
    }
}
