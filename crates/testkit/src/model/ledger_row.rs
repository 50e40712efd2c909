//! A ledger entry in a few bytes, with time taken out of it and its fences told apart only as far as they matter.
//!
//! Fences are only compared for equality and grow, so after every step they are renamed: the entry's is 2, a holder
//! of the same is 2, any older one is 1. A rule that lets a fence stand still or fall back still shows, since an old
//! holder then fits.

use posthaste_core::{
    DurationMs, Path,
    ledger::{Claim, Entry, OnExpired, Outcome, Previous, Status},
};

use super::job_row::{LATER, PAST};

/// The entry's fence after renaming.
pub(crate) const CURRENT: u8 = 2;
/// Any older fence after renaming.
pub(crate) const OLD: u8 = 1;
/// No fence at all.
pub(crate) const NO_FENCE: u8 = 0;

/// [`Entry`] without what no decision reads, and without instants.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct EntryRow {
    pub(crate) status: Status,
    pub(crate) fence: u8,
    /// Its last grant ran out.
    pub(crate) expired: bool,
    /// The claimer (from 1) whose request the last grant answered; 0 for none.
    pub(crate) claim_id: u8,
    pub(crate) previous: Previous,
    pub(crate) on_expired: OnExpired,
    pub(crate) outcome: Option<Outcome>,
}

impl EntryRow {
    pub(crate) fn to_core(self) -> Entry {
        Entry {
            status: self.status,
            fence: self.fence.into(),
            attempts: 1,
            locked_until: if self.expired { PAST } else { LATER },
            fingerprint: None,
            claim_id: claim_id(self.claim_id),
            path: if self.previous == Previous::None { Path::FirstRun } else { Path::RetryAfterFailure },
            previous: self.previous,
            on_expired: self.on_expired,
            outcome: self.outcome,
        }
    }

    /// `settled_expire`: keep the clock of an entry that is done or failed, though no rule reads it.
    pub(crate) fn of_core(entry: &Entry, settled_expire: bool) -> Self {
        let clock_matters = settled_expire || entry.status == Status::InProgress;
        Self {
            status: entry.status,
            fence: u8::try_from(entry.fence).expect("fences are renamed after every step"),
            expired: clock_matters && entry.locked_until <= PAST,
            claim_id: entry.claim_id.as_ref().map_or(0, |id| id.len().try_into().expect("a handful")),
            previous: entry.previous,
            on_expired: entry.on_expired,
            outcome: entry.outcome,
        }
    }

    /// Done, and not for lack of a reason to do it.
    pub(crate) fn is_committed(self) -> bool {
        self.status == Status::Done && self.outcome != Some(Outcome::Cancelled)
    }
}

/// The claim of `claimer` (0: without a name).
pub(crate) fn claim(claimer: u8, on_expired: OnExpired, first_fence: u64) -> Claim {
    Claim {
        lease: DurationMs::from_secs(30),
        fingerprint: None,
        claim_id: claim_id(claimer),
        on_expired,
        first_fence,
    }
}

/// Renames the fences of an entry and of all who hold one.
pub(crate) fn rename<'a>(entry: Option<&mut EntryRow>, held: impl Iterator<Item = &'a mut u8>) {
    let current = entry.map(|entry| std::mem::replace(&mut entry.fence, CURRENT));
    for fence in held {
        if *fence != NO_FENCE {
            // Without a row nothing tells the holders apart: none of them fits.
            *fence =
                if current == Some(*fence) || current.is_none() && *fence == CURRENT { CURRENT } else { OLD };
        }
    }
}

/// A name as long as its number: equal for equal claimers only.
fn claim_id(claimer: u8) -> Option<Box<str>> {
    (claimer > 0).then(|| "c".repeat(claimer.into()).into())
}
