//! What applications published within transactions of their own, in the database of the store. Row D5.

use crate::{BoxFuture, StoreError};

/// A row that waits to be published.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxRow {
    /// Its name among rows; says nothing of the order of commits.
    pub id: i64,
    /// The tenant's name.
    pub tenant: Box<str>,
    /// The message, as `POST /v1/messages` takes it.
    pub message: Box<str>,
}

/// What became of a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OutboxOutcome {
    /// Which row.
    pub id: i64,
    /// Why it can't be published; `None`: it is.
    pub problem: Option<Box<str>>,
}

/// Rows are taken because they are there, never by a remembered place: a row whose transaction commits late is not
/// passed over. A row that is published twice has the same key. Errors as for [`crate::Store`].
pub trait Outbox: Send + Sync {
    /// Rows that wait, at most `limit`, as they come. Cancel: safe.
    fn waiting(&self, limit: usize) -> BoxFuture<'_, Result<Vec<OutboxRow>, StoreError>>;

    /// What was published goes; what can't be stays with its problem. Cancel: it may be done.
    fn settle(&self, outcomes: Vec<OutboxOutcome>) -> BoxFuture<'_, Result<(), StoreError>>;
}
