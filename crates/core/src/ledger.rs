//! The receiver's ledger: the guard of one effect, as a small pure function over one entry.
//!
//! Its rules: a done entry is final. Complete and fail compare the fence and the status; where they don't fit, the
//! effect must be rolled back. Fences only grow for a key, whatever happens to its row.

use crate::{DurationMs, Path, Timestamp, words::words};

words! {
    /// Where an entry stands.
    Status {
        /// Somebody holds a grant, which may have run out.
        InProgress = "in_progress",
        /// The effect surely did not happen; the next claim may try.
        Failed = "failed",
        /// It happened, or surely never will. Final.
        Done = "done",
    }
}

words! {
    /// What "done" means.
    Outcome {
        /// The effect happened.
        Committed = "committed",
        /// It no longer applied.
        Cancelled = "cancelled",
    }
}

words! {
    /// What a new grant follows.
    Previous {
        /// Nothing: the key is new.
        None = "none",
        /// A failure that surely had no effect.
        Failed = "failed",
        /// A grant that ran out: its effect may have happened.
        Expired = "expired",
    }
}

words! {
    /// What becomes of a grant that ran out.
    OnExpired {
        /// The next claim takes it over.
        Retake = "retake",
        /// It is held until a person or a look-up ends it.
        Hold = "hold",
    }
}

/// One entry.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    /// Where it stands.
    pub status: Status,
    /// Proof of the last grant; grows with every grant and reset.
    pub fence: u64,
    /// Grants so far.
    pub attempts: u32,
    /// Until when the last grant holds.
    pub locked_until: Timestamp,
    /// What the payload was, if claimers say.
    pub fingerprint: Option<Box<[u8]>>,
    /// Names the request of the last grant, so that a repeated request gets the same grant.
    pub claim_id: Option<Box<str>>,
    /// The path that the last grant was told.
    pub path: Path,
    /// What the last grant followed.
    pub previous: Previous,
    /// What becomes of a grant that runs out.
    pub on_expired: OnExpired,
    /// What "done" means.
    pub outcome: Option<Outcome>,
}

/// A claim.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Claim {
    /// How long the grant holds.
    pub lease: DurationMs,
    /// What the payload is.
    pub fingerprint: Option<Box<[u8]>>,
    /// Names this request.
    pub claim_id: Option<Box<str>>,
    /// What becomes of the grant if it runs out.
    pub on_expired: OnExpired,
    /// The fence of a key that has no row: larger than any that a purged row of this key had.
    pub first_fence: u64,
}

/// What a claim gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Admission {
    /// Go: the entry must be written as given.
    Granted(Entry),
    /// This very request was granted before: the grant again, nothing written.
    Repeated(Entry),
    /// It is done.
    DuplicateDone(Outcome),
    /// Somebody else is at it.
    InProgressElsewhere {
        /// Until when at least, unless it ends sooner; `None` while it is held.
        locked_until: Option<Timestamp>,
    },
    /// The key was used for another payload.
    KeyReused,
}

/// What a report gets.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Report {
    /// The entry must be written as given.
    Write(Entry),
    /// It was recorded before.
    Recorded,
    /// The grant is not in force: roll the effect back.
    Stale,
}

/// What a reset names: what its asker saw.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Seen {
    /// The fence.
    pub fence: u64,
    /// The status.
    pub status: Status,
}

/// Decides a claim: the four paths, or another payload.
pub fn admit(entry: Option<&Entry>, claim: &Claim, now: Timestamp) -> Admission {
    let Some(entry) = entry else {
        return Admission::Granted(grant(claim, claim.first_fence, 1, Previous::None, None, now));
    };
    if let (Some(known), Some(given)) = (&entry.fingerprint, &claim.fingerprint)
        && known != given
    {
        return Admission::KeyReused;
    }
    let again = |previous| match entry.fence.checked_add(1) {
        Some(fence) => {
            let attempts = entry.attempts.saturating_add(1);
            Admission::Granted(grant(claim, fence, attempts, previous, Some(entry), now))
        }
        // No fence is left that would tell two grants apart: a person must look.
        None => Admission::InProgressElsewhere { locked_until: None },
    };
    match entry.status {
        Status::Done => Admission::DuplicateDone(entry.outcome.unwrap_or(Outcome::Committed)),
        Status::Failed => again(Previous::Failed),
        Status::InProgress => {
            let running = now < entry.locked_until;
            if (running || entry.on_expired == OnExpired::Hold)
                && claim.claim_id.is_some()
                && claim.claim_id == entry.claim_id
            {
                return Admission::Repeated(entry.clone());
            }
            match (running, entry.on_expired) {
                (true, _) => Admission::InProgressElsewhere { locked_until: Some(entry.locked_until) },
                (false, OnExpired::Hold) => Admission::InProgressElsewhere { locked_until: None },
                (false, OnExpired::Retake) => again(Previous::Expired),
            }
        }
    }
}

fn grant(
    claim: &Claim,
    fence: u64,
    attempts: u32,
    previous: Previous,
    entry: Option<&Entry>,
    now: Timestamp,
) -> Entry {
    Entry {
        status: Status::InProgress,
        fence,
        attempts,
        locked_until: now.after(claim.lease),
        fingerprint: entry.and_then(|entry| entry.fingerprint.clone()).or_else(|| claim.fingerprint.clone()),
        claim_id: claim.claim_id.clone(),
        path: if previous == Previous::None { Path::FirstRun } else { Path::RetryAfterFailure },
        previous,
        on_expired: claim.on_expired,
        outcome: None,
    }
}

/// Decides a complete: counts while the grant is in force, expired or not, and also after a fail of the same grant.
pub fn complete(entry: Option<&Entry>, fence: u64, outcome: Outcome) -> Report {
    match entry {
        Some(entry) if entry.fence == fence => match entry.status {
            Status::InProgress | Status::Failed => {
                Report::Write(Entry { status: Status::Done, outcome: Some(outcome), ..entry.clone() })
            }
            Status::Done if entry.outcome == Some(outcome) => Report::Recorded,
            Status::Done => Report::Stale,
        },
        Some(_) | None => Report::Stale,
    }
}

/// Decides a fail: "surely no effect".
pub fn fail(entry: Option<&Entry>, fence: u64) -> Report {
    match entry {
        Some(entry) if entry.fence == fence => match entry.status {
            Status::InProgress => Report::Write(Entry { status: Status::Failed, ..entry.clone() }),
            Status::Failed => Report::Recorded,
            Status::Done => Report::Stale,
        },
        Some(_) | None => Report::Stale,
    }
}

/// Decides an extend: a grant that ran out is not revived.
pub fn extend(entry: Option<&Entry>, fence: u64, lease: DurationMs, now: Timestamp) -> Report {
    match entry {
        Some(entry)
            if entry.fence == fence && entry.status == Status::InProgress && now < entry.locked_until =>
        {
            Report::Write(Entry { locked_until: now.after(lease), ..entry.clone() })
        }
        Some(_) | None => Report::Stale,
    }
}

/// Decides an operator's reset: keeps the row, failed, one fence on, so that an old worker stays fenced.
pub fn reset(entry: Option<&Entry>, seen: Seen) -> Report {
    let Some(entry) = entry.filter(|entry| entry.fence == seen.fence && entry.status == seen.status) else {
        return Report::Stale;
    };
    let Some(fence) = entry.fence.checked_add(1) else {
        return Report::Stale;
    };
    Report::Write(Entry { status: Status::Failed, fence, outcome: None, claim_id: None, ..entry.clone() })
}
