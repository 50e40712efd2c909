//! What comes back: admissions, stored answers, and what became of a run.

use std::{fmt, time::Duration};

use super::{Grant, OnExpired, Outcome, Path, Previous, Status};

/// What a duplicate is answered: kept and given back byte for byte.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Answer {
    /// The HTTP status, 100 to 599.
    pub status: Option<u16>,
    /// The media type.
    pub content_type: Option<String>,
    /// The bytes.
    pub bytes: Option<Vec<u8>>,
}

impl Answer {
    /// No answer: duplicates are only told that it is done.
    pub fn none() -> Self {
        Self::default()
    }

    /// An answer with a body.
    pub fn new(status: u16, content_type: &str, bytes: impl Into<Vec<u8>>) -> Self {
        Self { status: Some(status), content_type: Some(content_type.to_owned()), bytes: Some(bytes.into()) }
    }
}

/// Shows how much, never what.
impl fmt::Debug for Answer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { status, content_type, bytes } = self;
        let size = bytes.as_ref().map(Vec::len);
        f.debug_struct("Answer")
            .field("status", status)
            .field("content_type", content_type)
            .field("size", &size)
            .finish_non_exhaustive()
    }
}

/// What an effect reports.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Whether it happened, or no longer applied.
    pub outcome: Outcome,
    /// What duplicates are answered.
    pub answer: Answer,
}

impl Completion {
    /// The effect happened.
    pub fn committed(answer: Answer) -> Self {
        Self { outcome: Outcome::Committed, answer }
    }

    /// The effect no longer applied, and never will.
    pub fn cancelled(answer: Answer) -> Self {
        Self { outcome: Outcome::Cancelled, answer }
    }
}

/// An entry that is done.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Done {
    /// How this caller came to it: by a run of its own, or as a duplicate.
    pub path: Path,
    /// Grants of the key.
    pub attempts: u32,
    /// What "done" means.
    pub outcome: Outcome,
    /// What was stored.
    pub answer: Answer,
}

/// What a claim gets. A row that makes no sense is an error, never one of these.
#[derive(Debug)]
#[must_use = "only `Granted` is a leave to do the effect"]
pub enum Admission {
    /// Do the effect.
    Granted(Grant),
    /// It is done: give the stored answer.
    DuplicateDone(Done),
    /// Somebody else is at it: answer 409, never 2xx.
    InProgressElsewhere {
        /// When to come again; `None` while it is held for a person.
        retry_after: Option<Duration>,
    },
    /// The key came before with another fingerprint. The entry is untouched.
    KeyReused,
}

impl Admission {
    /// The grant, or what there is to answer without one.
    ///
    /// Errors: the answer.
    pub fn grant(self) -> Result<Grant, Ran> {
        match self {
            Self::Granted(grant) => Ok(grant),
            Self::DuplicateDone(done) => Err(Ran::Done(done)),
            Self::InProgressElsewhere { retry_after } => Err(Ran::InProgressElsewhere { retry_after }),
            Self::KeyReused => Err(Ran::KeyReused),
        }
    }
}

/// What became of a run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ran {
    /// It is done, and committed: by this run or an earlier one, as the path says.
    Done(Done),
    /// Somebody else is at it: answer 409, never 2xx.
    InProgressElsewhere {
        /// When to come again; `None` while it is held for a person.
        retry_after: Option<Duration>,
    },
    /// The key came before with another fingerprint. The entry is untouched.
    KeyReused,
}

impl Ran {
    /// The path; `None` for a reused key.
    pub fn path(&self) -> Option<Path> {
        match self {
            Self::Done(done) => Some(done.path),
            Self::InProgressElsewhere { .. } => Some(Path::InProgressElsewhere),
            Self::KeyReused => None,
        }
    }
}

/// Why an effect did not happen, for whoever looks at the entry.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Failure {
    /// What kind, such as `timeout`.
    pub class: Option<String>,
    /// For people; cut at 1,000 characters. No secrets.
    pub message: Option<String>,
}

/// An entry, for people and look-ups. It may be over when it is read: never decide an effect by it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its key.
    pub key: String,
    /// Where it stands.
    pub status: Status,
    /// Proof of the last grant. 0: written by a program that knows no fences.
    pub fence: i64,
    /// Grants so far.
    pub attempts: u32,
    /// What is left of the lease while in progress; zero: it ran out.
    pub lease_left: Option<Duration>,
    /// What the payload was.
    pub fingerprint: Option<String>,
    /// What the last grant followed.
    pub previous: Option<Previous>,
    /// What becomes of a grant that runs out.
    pub on_expired: OnExpired,
    /// What "done" means.
    pub outcome: Option<Outcome>,
    /// What duplicates are answered.
    pub answer: Answer,
    /// Why the last grant failed.
    pub failure: Failure,
    /// Why it was reset last.
    pub reset_reason: Option<String>,
    /// Who reset it.
    pub reset_by: Option<String>,
}

/// What a reset names: what its asker saw, and why.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reset<'a> {
    /// The fence that was seen.
    pub fence: i64,
    /// The status that was seen.
    pub status: Status,
    /// Why; not empty. Kept.
    pub reason: &'a str,
    /// Who. Kept.
    pub by: Option<&'a str>,
}
