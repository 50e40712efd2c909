//! What can go wrong below, and how far it reaches.

use std::sync::Arc;

use posthaste_core::CorruptRow;
use tokio_postgres::error::SqlState;

use crate::StoreError;

/// Something went wrong. Cheap to copy, since everybody who waited is told.
#[derive(Clone, Debug, thiserror::Error)]
pub(crate) enum Fault {
    /// PostgreSQL refused, or can't be reached.
    #[error(transparent)]
    Sql(Arc<tokio_postgres::Error>),
    /// A row doesn't fit.
    #[error(transparent)]
    Row(#[from] CorruptRow),
    /// Somebody else wrote what this transaction is about to write: again, from the beginning.
    #[error("somebody else wrote first")]
    Raced,
    /// Rows don't fit together.
    #[error("{0}")]
    Invariant(&'static str),
    /// It can't be reached, or took too long.
    #[error("{0}")]
    Unreachable(&'static str),
}

/// How far a fault reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Reach {
    /// The operation that met it.
    Operation,
    /// The transaction: the same again may go well.
    Transaction,
    /// The connection, and with it all operations of the batch.
    Connection,
}

impl From<tokio_postgres::Error> for Fault {
    fn from(error: tokio_postgres::Error) -> Self {
        Self::Sql(Arc::new(error))
    }
}

impl Fault {
    pub(crate) fn reach(&self) -> Reach {
        let error = match self {
            Self::Row(_) | Self::Invariant(_) => return Reach::Operation,
            Self::Raced => return Reach::Transaction,
            Self::Unreachable(_) => return Reach::Connection,
            Self::Sql(error) => error,
        };
        let Some(state) = error.code() else { return Reach::Connection };
        match &state.code()[..2] {
            // Serialization failures, deadlocks.
            "40" => Reach::Transaction,
            // What was given doesn't fit: data exceptions, integrity, programs that are too complex.
            "22" | "23" | "54" => Reach::Operation,
            _ if *state == SqlState::LOCK_NOT_AVAILABLE => Reach::Transaction,
            _ => Reach::Connection,
        }
    }

    /// What the caller of an operation that failed alone is told.
    pub(crate) fn of_operation(self) -> StoreError {
        let taken = matches!(&self, Self::Sql(error) if error.code() == Some(&SqlState::UNIQUE_VIOLATION));
        if taken || matches!(self, Self::Raced) {
            StoreError::Conflict
        } else {
            StoreError::Corrupt(Box::new(self))
        }
    }

    /// What everybody in the batch is told: nothing was committed.
    pub(crate) fn of_batch(self) -> StoreError {
        StoreError::unavailable_because("the database failed", self)
    }

    /// What everybody in the batch is told if the commit itself failed: a server that says so rolled back; without an
    /// answer nobody knows.
    pub(crate) fn of_commit(self) -> StoreError {
        match &self {
            Self::Sql(error) if error.code().is_some_and(is_surely_none) => self.of_batch(),
            Self::Sql(_) | Self::Row(_) | Self::Raced | Self::Invariant(_) | Self::Unreachable(_) => {
                StoreError::InDoubt(Box::new(self))
            }
        }
    }
}

/// Whether a commit that was answered so is surely none. A server that is being shut down may have written it.
fn is_surely_none(state: &SqlState) -> bool {
    matches!(&state.code()[..2], "22" | "23" | "25" | "40" | "53")
}
