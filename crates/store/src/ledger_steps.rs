//! What steps of jobs make of ledger entries that stand beside them.

use posthaste_core::{
    AttemptEnd, AttemptOutcome, Command, CommandName, DurationMs, Effect, Kind, State, Timestamp,
    ledger::{self, Claim, Entry, OnExpired, Outcome, Report},
};

use crate::{
    Change, LedgerEntry, StoredResult,
    ledger::{claim_id_of, held_from},
};

/// What a step of a job makes of an entry that stands beside it; `None`: nothing. `guarded`: the job's queue keeps the
/// ledger, so that a lease is a claim.
pub(crate) fn after_step(
    found: &LedgerEntry,
    change: &Change,
    command: &Command,
    guarded: bool,
    now: Timestamp,
) -> Option<LedgerEntry> {
    let job = &change.job;
    let claim_id = claim_id_of(job.id, job.attempt?);
    let ours = found.entry.claim_id.as_deref() == Some(&*claim_id);
    match &job.state {
        State::Leased(lease) if ours => {
            let entry = Entry { locked_until: lease.expires_at, ..found.entry.clone() };
            (entry != found.entry).then(|| with(found, entry, now))
        }
        State::Leased(lease) if guarded && change.command == CommandName::Lease => {
            let left = lease.expires_at.0.saturating_sub(now.0).max(0).unsigned_abs();
            let claim = Claim {
                lease: DurationMs(left),
                fingerprint: None,
                claim_id: Some(claim_id),
                on_expired: OnExpired::Retake,
                first_fence: found.entry.fence,
            };
            match ledger::admit(Some(&found.entry), &claim, now) {
                ledger::Admission::Granted(entry) => Some(with(found, entry, now)),
                ledger::Admission::Repeated(_)
                | ledger::Admission::DuplicateDone(_)
                | ledger::Admission::InProgressElsewhere { .. }
                | ledger::Admission::KeyReused => None,
            }
        }
        State::Committed { .. } if ours => done(found, Outcome::Committed, command, now),
        // The entry was reset, or its grant ran out, while the worker was at it: the effect happened all the same.
        State::Committed { .. } if job.kind == Kind::Pull && held_from(&found.entry, now).is_none() => {
            done(found, Outcome::Committed, command, now)
        }
        State::Cancelled { .. } if ours => done(found, Outcome::Cancelled, command, now),
        State::Scheduled { .. } | State::Retryable { .. } | State::DeadLettered { .. } if ours => {
            not_done(found, change.ended.as_deref()?, now)
        }
        State::Leased(_)
        | State::Committed { .. }
        | State::Cancelled { .. }
        | State::Scheduled { .. }
        | State::Retryable { .. }
        | State::DeadLettered { .. } => None,
    }
}

fn with(found: &LedgerEntry, entry: Entry, now: Timestamp) -> LedgerEntry {
    LedgerEntry { entry, updated_at: now, ..found.clone() }
}

/// The queue's grant ended well, or the job was called off.
fn done(found: &LedgerEntry, outcome: Outcome, command: &Command, now: Timestamp) -> Option<LedgerEntry> {
    let Report::Write(entry) = ledger::complete(Some(&found.entry), found.entry.fence, outcome) else {
        return None;
    };
    let result = if let Command::Finish { details, .. } = command { details.result.as_deref() } else { None };
    let result = StoredResult::of_worker(result);
    Some(LedgerEntry { result, class: None, message: None, ..with(found, entry, now) })
}

/// The queue's grant ended otherwise.
fn not_done(found: &LedgerEntry, end: &AttemptEnd, now: Timestamp) -> Option<LedgerEntry> {
    let surely_none = end.report.effect == Effect::None || end.report.outcome == AttemptOutcome::Released;
    let entry = match ledger::fail(Some(&found.entry), found.entry.fence) {
        Report::Write(entry) if surely_none => entry,
        // The attempt is over, whatever it did: its successor need not wait for the clock.
        Report::Write(_) if now < found.entry.locked_until => {
            Entry { locked_until: now, ..found.entry.clone() }
        }
        Report::Write(_) | Report::Recorded | Report::Stale => return None,
    };
    let (class, message) = (end.report.class, end.details.message.clone());
    Some(LedgerEntry { class, message, ..with(found, entry, now) })
}
