//! Dead letters that nobody was told of yet: written in the transaction that makes the dead letter, so that a crash
//! before somebody is told loses nothing. Rows B7, A2.
//!
//! Whether anybody wants to hear is not the store's to know: whoever reads the rows says so, and lets go of them.

use posthaste_core::{Attempt, Cause, JobId, TenantId, Timestamp};

use crate::{BoxFuture, StoreError};

/// A job that became a dead letter. Its name is all of (tenant, job, at).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Untold {
    /// Whose.
    pub tenant: TenantId,
    /// Which.
    pub job: JobId,
    /// When it became one.
    pub at: Timestamp,
    /// Its last attempt then.
    pub attempt: Option<Attempt>,
    /// Why it became one.
    pub cause: Cause,
}

/// Who must still be told of dead letters.
///
/// Every way into the state `dead_lettered` leaves a row: a step of a job, and the acceptance of a quarantined message.
/// A dead letter that only gets another cause leaves none. What becomes of the job afterwards changes nothing: it was
/// one.
pub trait Tell: Send + Sync {
    /// Up to `limit` rows, by tenant, job and time.
    ///
    /// Errors: [`StoreError::Unavailable`]. Cancel: safe.
    fn untold(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Untold>, StoreError>>;

    /// Lets go of rows: whoever wanted to hear was told, durably. A row that is not there is let go of already.
    ///
    /// Durability, errors and cancel safety: as [`crate::Store`].
    fn told(&self, rows: Vec<Untold>) -> BoxFuture<'_, Result<(), StoreError>>;
}
