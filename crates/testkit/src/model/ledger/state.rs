//! The state of model B.

use posthaste_core::ledger::Status;

use super::super::{
    ledger_row::{self, EntryRow, NO_FENCE},
    property::Witnesses,
};

/// Claimers at once.
pub(super) const CLAIMERS: usize = 3;
/// Grants that are told apart.
pub(super) const GRANTS: usize = 5;

/// How far a handler is.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Phase {
    Idle,
    /// Its claim was carried out, the answer is lost.
    Asking,
    Claimed,
    /// Its effect is in the open transaction, or over HTTP: is real.
    Did,
    /// Was told that it is done.
    Duplicate,
    Ended,
}

/// A handler.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Claimer {
    pub(super) phase: Phase,
    /// Its grant, from 1; 0 for none.
    pub(super) grant: u8,
    pub(super) runs: u8,
}

/// A reset on its way: what its asker saw.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct ResetAsked {
    pub(super) fence: u8,
    pub(super) status: Status,
}

/// One state of the world.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct LedgerState {
    pub(super) entry: Option<EntryRow>,
    pub(super) archived: bool,
    pub(super) claimers: [Claimer; CLAIMERS],
    /// In one transaction: the claimer (from 1) that has the row; 0 for none.
    pub(super) locked_by: u8,
    pub(super) grants: u8,
    /// Each grant's fence.
    pub(super) fences: [u8; GRANTS],
    /// Grants (bits) whose complete, or fail, is on its way.
    pub(super) completes: u8,
    pub(super) fails: u8,
    pub(super) reset_asked: Option<ResetAsked>,
    pub(super) resets: u8,
    // What only promises read.
    /// The grant that is in force; 0 for none.
    pub(super) live: u8,
    /// The grant that the row belongs to.
    pub(super) owner: u8,
    /// The grant whose complete made the entry done.
    pub(super) result: u8,
    pub(super) effects: u8,
    /// Grants (bits) whose effect is real.
    pub(super) effect_by: u8,
    pub(super) resets_of_done: u8,
    pub(super) reset_hits: u8,
    pub(super) seen: Witnesses,
}

impl LedgerState {
    pub(super) fn new() -> Self {
        Self {
            entry: None,
            archived: false,
            claimers: [Claimer { phase: Phase::Idle, grant: 0, runs: 0 }; CLAIMERS],
            locked_by: 0,
            grants: 0,
            fences: [NO_FENCE; GRANTS],
            completes: 0,
            fails: 0,
            reset_asked: None,
            resets: 0,
            live: 0,
            owner: 0,
            result: 0,
            effects: 0,
            effect_by: 0,
            resets_of_done: 0,
            reset_hits: 0,
            seen: Witnesses::default(),
        }
    }

    pub(super) fn fence(&self, grant: u8) -> u64 {
        self.fences[usize::from(grant) - 1].into()
    }

    pub(super) fn is_done(&self) -> bool {
        self.entry.is_some_and(|entry| entry.status == Status::Done)
    }

    pub(super) fn show(&self) -> String {
        let entry = self.entry.map_or("no entry".to_owned(), |entry| {
            let expired = if entry.expired { ", expired" } else { "" };
            format!("entry {} of grant {}{expired}", entry.status, self.owner)
        });
        let phases: Vec<String> =
            self.claimers.iter().map(|claimer| format!("{:?}", claimer.phase)).collect();
        let (effects, resets) = (self.effects, self.resets_of_done);
        format!("{entry}; claimers {}; effects {effects}, resets of a done entry {resets}", phases.join(" "))
    }

    pub(super) fn rename_fences(&mut self) {
        let asked = self.reset_asked.as_mut().map(|asked| &mut asked.fence);
        ledger_row::rename(self.entry.as_mut(), self.fences.iter_mut().chain(asked));
    }
}

/// The bit of `grant` in a set of grants.
pub(super) fn bit(grant: u8) -> u8 {
    1 << (grant - 1)
}
