//! What can go wrong, sorted by what the caller does about it. `D` is the driver's error.

use std::error::Error;

/// An error of the effect, of whatever type.
pub type BoxError = Box<dyn Error + Send + Sync>;

/// A statement did not run, or its answer made no sense.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError<D: Error + 'static> {
    /// The database refused, or could not be reached.
    #[error("the ledger's statement failed")]
    Database(#[source] D),
    /// The row is none that this version knows. Its cause is at the table, not at the delivery.
    #[error("the ledger's row makes no sense: {0}")]
    Row(&'static str),
}

/// An effect could not be committed with its entry.
#[derive(Debug, thiserror::Error)]
pub enum CommitError<D: Error + 'static> {
    /// Somebody else was granted the key meanwhile, or it was reset. The effect was rolled back. Nothing to report.
    #[error("another claim was granted meanwhile; the effect was rolled back")]
    Superseded,
    /// It surely did not commit.
    #[error("the effect was rolled back")]
    NotCommitted(#[source] LedgerError<D>),
    /// COMMIT was sent and its answer missed: it may have taken hold. Report nothing; the next claim will know.
    #[error("whether the effect was committed is not known")]
    Unknown(#[source] D),
}

/// A run did not come to an end that can be told to the sender as done.
#[derive(Debug, thiserror::Error)]
pub enum RunError<D: Error + 'static> {
    /// The claim failed: nothing was begun. Answer 503.
    #[error("the claim failed")]
    Claim(#[source] LedgerError<D>),
    /// The effect failed and was rolled back; the entry was told. Answer 503: the next delivery tries again.
    #[error("the effect failed")]
    Effect(#[source] BoxError),
    /// The effect could not be committed.
    #[error(transparent)]
    Commit(#[from] CommitError<D>),
}
