//! The state of model C.

use std::fmt::Write as _;

use super::super::{
    desk::Store,
    ledger_row::{self, EntryRow, NO_FENCE},
    wire::{Reports, Said},
};

/// Attempts at most.
pub(super) const ATTEMPTS: usize = 4;
/// The place of the request that a proxy repeats.
pub(super) const REPEATED: usize = ATTEMPTS;
/// Requests at most.
pub(super) const REQUESTS: usize = ATTEMPTS + 1;

/// An attempt's process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Sender {
    None,
    Held,
    Waiting,
    Closed,
}

/// A request, and its handler at the receiver.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Request {
    None,
    Flying,
    /// Its handler has a grant.
    Claimed,
    /// Its effect is real, complete is to follow.
    Did,
    /// An answer is on its way back.
    Answered(Said),
    /// The same, after `duplicate_done`.
    AnsweredDuplicate,
}

/// What the operator's cancel was told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Told {
    Nothing,
    /// Cancelled, and shown without any effect.
    CancelledWithoutEffect,
    Other,
}

/// One state of the world.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub(super) store: Store,
    pub(super) senders: [Sender; ATTEMPTS],
    pub(super) net: [Reports; ATTEMPTS],
    pub(super) requests: [Request; REQUESTS],
    /// The fence of each request's grant.
    pub(super) fences: [u8; REQUESTS],
    pub(super) entry: Option<EntryRow>,
    pub(super) effects: u8,
    pub(super) repeated: bool,
    pub(super) replays: u8,
    pub(super) cancels: u8,
    pub(super) told: Told,
    pub(super) resets: u8,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            store: Store::NEW,
            senders: [Sender::None; ATTEMPTS],
            net: [Reports::NONE; ATTEMPTS],
            requests: [Request::None; REQUESTS],
            fences: [NO_FENCE; REQUESTS],
            entry: None,
            effects: 0,
            repeated: false,
            replays: 0,
            cancels: 0,
            told: Told::Nothing,
            resets: 0,
        }
    }

    /// Whether no request can reach the receiver any more.
    pub(super) fn is_quiet(&self) -> bool {
        let sends = |sender: &Sender| matches!(sender, Sender::Held | Sender::Waiting);
        !self.senders.iter().any(sends) && !self.requests.contains(&Request::Flying)
    }

    /// Merges states that no step can tell apart.
    pub(super) fn tidy(&mut self) {
        for place in 0..REQUESTS {
            let nobody_waits = place == REPEATED || self.senders[place] == Sender::Closed;
            let request = &mut self.requests[place];
            if nobody_waits && matches!(request, Request::Answered(_) | Request::AnsweredDuplicate) {
                *request = Request::None;
            }
            if !matches!(request, Request::Claimed | Request::Did) {
                self.fences[place] = NO_FENCE;
            }
        }
        ledger_row::rename(self.entry.as_mut(), self.fences.iter_mut());
        self.drop_spent_reports();
    }

    /// Model A keeps every report for ever and shows that these change nothing: what is recorded already, and of a
    /// superseded attempt all but a commit that was not heard yet.
    fn drop_spent_reports(&mut self) {
        let job = self.store.job;
        for attempt in 1..=job.attempt {
            let Some(record) = self.store.records.of(attempt) else {
                continue;
            };
            let closed = attempt < job.attempt || record.heard_report().is_some();
            self.net[usize::from(attempt) - 1]
                .drop_where(|said| if said == Said::Committed { record.commit_heard } else { closed });
        }
    }

    pub(super) fn show(&self) -> String {
        let job = &self.store.job;
        let mut text = format!("{:?}, attempt {}", job.state, job.attempt);
        for (attempt, record) in self.store.records.iter() {
            let _ = write!(text, "; row {attempt} {} ({})", record.report.outcome, record.effect());
        }
        match self.entry {
            Some(entry) => {
                let _ = write!(text, "; entry {}", entry.status);
            }
            None => text.push_str("; no entry"),
        }
        let _ = write!(text, "; effects {}, resets {}, told {:?}", self.effects, self.resets, self.told);
        text
    }
}
