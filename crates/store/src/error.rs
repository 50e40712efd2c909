//! What can go wrong in a store, sorted by what the caller does next.

use std::error::Error;

/// An error with its cause.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// Sorted by what the caller does next; the detail is in the source.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Nothing was committed, and nothing will be until the store works again. Try again later.
    #[error("the store is unavailable: {reason}")]
    Unavailable {
        /// Why, in a few words.
        reason: &'static str,
        /// The cause, if there is one beside the reason.
        #[source]
        source: Option<BoxError>,
    },
    /// More work waits than the store takes on. Nothing was committed; answer 503 and come back later.
    #[error("the store has too much work waiting")]
    Overloaded,
    /// Somebody else wrote first and nothing was committed. Read again.
    #[error("somebody else wrote first")]
    Conflict,
    /// The commit was begun and its end is not known. Send the same again: what was done is found again.
    #[error("the commit's outcome is not known")]
    InDoubt(#[source] BoxError),
    /// A row breaks an invariant. Don't retry; tell a person. Other rows are not affected.
    #[error("a row is corrupt")]
    Corrupt(#[source] BoxError),
}

impl StoreError {
    /// The store is unavailable for `reason`.
    pub fn unavailable(reason: &'static str) -> Self {
        Self::Unavailable { reason, source: None }
    }

    /// The store is unavailable for `reason`, because of `source`.
    pub fn unavailable_because(reason: &'static str, source: impl Into<BoxError>) -> Self {
        Self::Unavailable { reason, source: Some(source.into()) }
    }
}
