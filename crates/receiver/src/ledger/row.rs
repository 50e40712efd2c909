//! Rows of the statements, as every driver reads them, and what they mean.
#![allow(dead_code, reason = "used by the drivers")]

use std::time::Duration;

use super::{
    Admission, Answer, Done, Entry, Failure, Grant, Granted, LedgerError, OnExpired, Outcome, Path, Previous,
    Status,
};

/// What `claim.sql` returns.
pub(super) struct ClaimRow {
    pub(super) path: String,
    pub(super) fence: Option<i64>,
    pub(super) attempts: i32,
    pub(super) previous: Option<String>,
    pub(super) retry_after_ms: Option<i64>,
    pub(super) outcome: Option<String>,
    pub(super) answer: AnswerColumns,
}

/// The stored answer, as it stands in the table.
pub(super) struct AnswerColumns {
    pub(super) bytes: Option<Vec<u8>>,
    pub(super) content_type: Option<String>,
    pub(super) status: Option<i32>,
}

/// What `get.sql` returns.
pub(super) struct EntryRow {
    pub(super) key: String,
    pub(super) status: String,
    pub(super) attempts: i32,
    pub(super) fence: i64,
    pub(super) fingerprint: Option<String>,
    pub(super) previous: Option<String>,
    pub(super) on_expired: String,
    pub(super) outcome: Option<String>,
    pub(super) answer: AnswerColumns,
    pub(super) class: Option<String>,
    pub(super) message: Option<String>,
    pub(super) reset_reason: Option<String>,
    pub(super) reset_by: Option<String>,
    pub(super) retry_after_ms: Option<i64>,
}

impl AnswerColumns {
    fn read(self) -> Option<Answer> {
        let status = match self.status {
            None => None,
            Some(status) => Some(u16::try_from(status).ok().filter(|status| (100..=599).contains(status))?),
        };
        Some(Answer { status, content_type: self.content_type, bytes: self.bytes })
    }
}

/// A word of a column that may be empty; one that nobody knows is an error.
fn word<T, D: std::error::Error>(
    column: &'static str,
    text: Option<&str>,
    read: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, LedgerError<D>> {
    text.map(|text| read(text).ok_or(LedgerError::Row(column))).transpose()
}

impl ClaimRow {
    /// What it means. Anything unheard of is an error: it must not pass for a duplicate.
    pub(super) fn admission<D: std::error::Error>(self, key: &str) -> Result<Admission, LedgerError<D>> {
        if self.path == "key_reused" {
            return Ok(Admission::KeyReused);
        }
        let path = Path::from_word(&self.path).ok_or(LedgerError::Row("path"))?;
        let attempts = u32::try_from(self.attempts).map_err(|_| LedgerError::Row("attempts"))?;
        match path {
            Path::FirstRun | Path::RetryAfterFailure => {
                let fence = self.fence.ok_or(LedgerError::Row("fence"))?;
                let previous = self.previous.as_deref().and_then(Previous::from_word);
                let previous = previous.ok_or(LedgerError::Row("previous"))?;
                Ok(Admission::Granted(Grant::new(Granted { key: key.into(), fence, attempts, previous })))
            }
            Path::DuplicateDone => {
                let outcome = self.outcome.as_deref().and_then(Outcome::from_word);
                let outcome = outcome.ok_or(LedgerError::Row("outcome"))?;
                let answer = self.answer.read().ok_or(LedgerError::Row("result_status"))?;
                Ok(Admission::DuplicateDone(Done { path, attempts, outcome, answer }))
            }
            Path::InProgressElsewhere => {
                Ok(Admission::InProgressElsewhere { retry_after: self.retry_after_ms.map(duration) })
            }
        }
    }
}

impl EntryRow {
    pub(super) fn entry<D: std::error::Error>(self) -> Result<Entry, LedgerError<D>> {
        Ok(Entry {
            key: self.key,
            status: Status::from_word(&self.status).ok_or(LedgerError::Row("status"))?,
            fence: self.fence,
            attempts: u32::try_from(self.attempts).map_err(|_| LedgerError::Row("attempts"))?,
            lease_left: self.retry_after_ms.map(duration),
            fingerprint: self.fingerprint,
            previous: word("previous", self.previous.as_deref(), Previous::from_word)?,
            on_expired: OnExpired::from_word(&self.on_expired).ok_or(LedgerError::Row("on_expired"))?,
            outcome: word("outcome", self.outcome.as_deref(), Outcome::from_word)?,
            answer: self.answer.read().ok_or(LedgerError::Row("result_status"))?,
            failure: Failure { class: self.class, message: self.message },
            reset_reason: self.reset_reason,
            reset_by: self.reset_by,
        })
    }
}

fn duration(ms: i64) -> Duration {
    Duration::from_millis(u64::try_from(ms).unwrap_or(0))
}
