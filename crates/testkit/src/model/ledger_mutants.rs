//! Faults on purpose in the ledger: each wraps the real functions and leaves one rule out.

use posthaste_core::{
    Timestamp,
    ledger::{self, Admission, Claim, Entry, Outcome, Previous, Report, Seen, Status},
};

use super::{
    job_row::{LATER, PAST},
    ledger_row::CURRENT,
    rules::LedgerRules,
    sentences::sentences,
};

sentences! {
    /// A fault in the ledger.
    LedgerMutant {
        RetakesOnTimeAlone = "a claim looks at the lock's time alone: what is done runs again",
        RetakeLeavesFailed = "a claim of a failed entry leaves it failed",
        CompleteWithoutFence = "complete does not compare the fence",
        FailWithoutFence = "fail does not compare the fence",
        FailWithoutStatus = "fail compares the fence, not the status",
        TakeoverKeepsFence = "a takeover does not move the fence",
        EarlyTakeover = "a takeover comes before the lease ran out",
        NoRollback = "a handler whose complete is stale commits its effect all the same",
        ResetUnnamed = "a reset names nothing that its asker saw",
        ResetWithoutStatus = "a reset names the fence, not the status",
        ResetDeletes = "a reset deletes the row",
        FencesRestart = "a key without a row begins with a fence that was given before",
        ClaimNameIgnored = "a repeated claim is not known by its name",
    }
}

impl LedgerRules for LedgerMutant {
    fn admit(&self, entry: Option<&Entry>, claim: &Claim, now: Timestamp) -> Admission {
        let tampered = |tamper: fn(&mut Entry)| {
            let mut entry = entry.cloned();
            if let Some(entry) = &mut entry {
                tamper(entry);
            }
            ledger::admit(entry.as_ref(), claim, now)
        };
        let regranted = |previous, tamper: fn(&mut Entry)| {
            let mut admission = ledger::admit(entry, claim, now);
            if let Admission::Granted(granted) = &mut admission
                && granted.previous == previous
            {
                tamper(granted);
            }
            admission
        };
        match self {
            Self::RetakesOnTimeAlone => tampered(|entry| entry.status = Status::InProgress),
            Self::RetakeLeavesFailed => {
                regranted(Previous::Failed, |granted| granted.status = Status::Failed)
            }
            Self::TakeoverKeepsFence => regranted(Previous::Expired, |granted| granted.fence -= 1),
            Self::EarlyTakeover => tampered(|entry| entry.locked_until = PAST),
            Self::ClaimNameIgnored => tampered(|entry| entry.claim_id = None),
            Self::CompleteWithoutFence
            | Self::FailWithoutFence
            | Self::FailWithoutStatus
            | Self::NoRollback
            | Self::ResetUnnamed
            | Self::ResetWithoutStatus
            | Self::ResetDeletes
            | Self::FencesRestart => ledger::admit(entry, claim, now),
        }
    }

    fn complete(&self, entry: Option<&Entry>, fence: u64, outcome: Outcome) -> Report {
        let known = entry.map_or(fence, |entry| entry.fence);
        let compared = if *self == Self::CompleteWithoutFence { known } else { fence };
        self.locked_on(ledger::complete(entry, compared, outcome))
    }

    fn fail(&self, entry: Option<&Entry>, fence: u64) -> Report {
        let known = entry.map_or(fence, |entry| entry.fence);
        let in_progress =
            entry.map(|entry| Entry { status: Status::InProgress, outcome: None, ..entry.clone() });
        let compared = if *self == Self::FailWithoutFence { known } else { fence };
        let looked_at = if *self == Self::FailWithoutStatus { in_progress.as_ref() } else { entry };
        self.locked_on(ledger::fail(looked_at, compared))
    }

    fn reset(&self, entry: Option<&Entry>, seen: Seen) -> Report {
        let seen = match (self, entry) {
            (Self::ResetUnnamed, Some(entry)) => Seen { fence: entry.fence, status: entry.status },
            (Self::ResetWithoutStatus, Some(entry)) => Seen { status: entry.status, ..seen },
            _ => seen,
        };
        ledger::reset(entry, seen)
    }

    fn after_reset(&self, entry: Entry) -> Option<Entry> {
        (*self != Self::ResetDeletes).then_some(entry)
    }

    fn rolls_back(&self) -> bool {
        *self != Self::NoRollback
    }

    fn first_fence(&self, unused: u64) -> u64 {
        let restarts = matches!(self, Self::FencesRestart | Self::ResetDeletes);
        if restarts { CURRENT.into() } else { unused }
    }

    fn settled_entries_expire(&self) -> bool {
        *self == Self::RetakesOnTimeAlone
    }
}

impl LedgerMutant {
    /// The lock's time goes on in a settled entry, for the fault that reads it.
    fn locked_on(self, mut report: Report) -> Report {
        if let Report::Write(entry) = &mut report
            && self == Self::RetakesOnTimeAlone
        {
            entry.locked_until = LATER;
        }
        report
    }
}
