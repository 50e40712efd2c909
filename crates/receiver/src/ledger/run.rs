//! What the runs of all drivers share: one transaction's end, and how often it is begun again.
#![allow(dead_code, reason = "used by the drivers")]

use std::{
    any::Any,
    error::Error,
    future::poll_fn,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::pin,
    task::Poll,
    time::Duration,
};

use super::{Answer, BoxError, CommitError, Completion, Done, Failure, Granted, LedgerError, Ran, RunError};

/// How often a transaction is run that the database undoes for its own reasons: 40001, 40P01.
pub(super) const RUNS_MAX: u32 = 10;

/// When to come again where a lock and no lease was in the way.
pub(super) const LOCKED_RETRY_AFTER: Duration = Duration::from_secs(1);

/// How long one transaction waits for another's claim of the same key.
pub(super) const LOCK_TIMEOUT: Duration = Duration::from_secs(2);

/// How a transaction with an effect ended.
pub(super) enum End<D: Error + 'static> {
    /// It is committed.
    Committed(Completion),
    /// The effect failed, and was rolled back.
    Failed(BoxError),
    /// The effect panicked, and was rolled back.
    Panicked(Box<dyn Any + Send>),
    /// It is not committed, or nobody knows.
    Commit(CommitError<D>),
}

impl<D: Error + 'static> End<D> {
    /// What the entry is told, where the effect surely did not happen; `None`: nothing.
    pub(super) fn failure(&self) -> Option<Failure> {
        let (class, message) = match self {
            Self::Failed(error) => ("effect", error.to_string()),
            Self::Panicked(_) => ("panic", "the effect panicked".to_owned()),
            Self::Commit(CommitError::NotCommitted(error)) => ("database", error.to_string()),
            Self::Committed(_) | Self::Commit(CommitError::Superseded | CommitError::Unknown(_)) => {
                return None;
            }
        };
        Some(Failure { class: Some(class.to_owned()), message: Some(message.replace('\0', "")) })
    }

    /// Whether the database undid it for its own reasons, so that running it again is right.
    pub(super) fn is_conflict(&self, is_conflict: impl Fn(&D) -> bool) -> bool {
        match self {
            Self::Failed(error) => in_chain::<D>(error.as_ref()).is_some_and(is_conflict),
            Self::Commit(CommitError::NotCommitted(LedgerError::Database(error))) => is_conflict(error),
            Self::Committed(_) | Self::Panicked(_) | Self::Commit(_) => false,
        }
    }

    /// What the caller gets; a panic goes on.
    pub(super) fn ran(self, granted: &Granted) -> Result<Ran, RunError<D>> {
        match self {
            Self::Committed(Completion { outcome, answer }) => {
                Ok(Ran::Done(Done { path: granted.path(), attempts: granted.attempts, outcome, answer }))
            }
            Self::Failed(error) => Err(RunError::Effect(error)),
            Self::Panicked(panic) => std::panic::resume_unwind(panic),
            Self::Commit(error) => Err(RunError::Commit(error)),
        }
    }
}

/// The driver's error behind an effect's.
fn in_chain<'a, D: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a D> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<D>() {
            return Some(found);
        }
        next = error.source();
    }
    None
}

/// The status column's type.
pub(super) fn status_of(answer: &Answer) -> Option<i32> {
    answer.status.map(i32::from)
}

/// What `future` gives, or its panic.
pub(super) async fn caught<F: Future>(future: F) -> Result<F::Output, Box<dyn Any + Send>> {
    let mut future = pin!(future);
    poll_fn(|context| match catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(context))) {
        Ok(Poll::Pending) => Poll::Pending,
        Ok(Poll::Ready(value)) => Poll::Ready(Ok(value)),
        Err(panic) => Poll::Ready(Err(panic)),
    })
    .await
}
