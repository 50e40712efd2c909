//! What can go wrong below, and how far it reaches.

use std::sync::Arc;

use posthaste_core::CorruptRow;
use rusqlite::ErrorCode;

use crate::StoreError;
pub(super) use crate::panic_text::PanicText;

/// Something went wrong. Cheap to copy, since everybody who waited is told.
#[derive(Clone, Debug, thiserror::Error)]
pub(super) enum Fault {
    /// SQLite refused.
    #[error(transparent)]
    Sql(Arc<rusqlite::Error>),
    /// A row doesn't fit.
    #[error(transparent)]
    Row(#[from] CorruptRow),
    /// Rows don't fit together.
    #[error("{0}")]
    Invariant(&'static str),
}

/// How far a fault reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Reach {
    /// The operation that met it: the connection is well.
    Operation,
    /// The connection, and with it all operations of the batch.
    Connection,
}

impl From<rusqlite::Error> for Fault {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sql(Arc::new(error))
    }
}

impl Fault {
    pub(super) fn reach(&self) -> Reach {
        let Self::Sql(error) = self else {
            return Reach::Operation;
        };
        match error.sqlite_error_code() {
            // Not of SQLite, but of what was read: a type that doesn't fit.
            None => Reach::Operation,
            Some(ErrorCode::ConstraintViolation | ErrorCode::TypeMismatch | ErrorCode::TooBig) => {
                Reach::Operation
            }
            Some(_) => Reach::Connection,
        }
    }

    /// Whether the disk, or what we are allowed of it, is full: then a failed commit is surely none.
    pub(super) fn is_full(&self) -> bool {
        matches!(self, Self::Sql(error) if error.sqlite_error_code() == Some(ErrorCode::DiskFull))
    }

    fn is_taken(&self) -> bool {
        use rusqlite::ffi::{
            SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_ROWID, SQLITE_CONSTRAINT_UNIQUE,
        };
        let Self::Sql(error) = self else {
            return false;
        };
        let code = error.sqlite_error().map(|error| error.extended_code);
        code.is_some_and(|code| {
            [SQLITE_CONSTRAINT_PRIMARYKEY, SQLITE_CONSTRAINT_ROWID, SQLITE_CONSTRAINT_UNIQUE].contains(&code)
        })
    }

    /// What the caller of an operation that failed alone is told.
    pub(super) fn of_operation(self) -> StoreError {
        if self.is_taken() { StoreError::Conflict } else { StoreError::Corrupt(Box::new(self)) }
    }

    /// What everybody in the batch is told.
    pub(super) fn of_batch(self) -> StoreError {
        let reason = if self.is_full() { "the disk is full" } else { "the database failed" };
        StoreError::unavailable_because(reason, self)
    }

    /// What everybody in the batch is told if the commit itself failed.
    ///
    /// A commit that met a full disk is none: its last frame was not written whole. Any other may have reached the
    /// disk although SQLite couldn't say so.
    pub(super) fn of_commit(self) -> StoreError {
        if self.is_full() { self.of_batch() } else { StoreError::InDoubt(Box::new(self)) }
    }
}
