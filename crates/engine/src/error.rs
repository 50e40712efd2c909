//! What the engine refuses, with the stable codes of the wire.

use posthaste_core::{MessageId, NameError, Refusal};
use posthaste_store::{DestinationKind, FingerprintField, StoreError};

use crate::config::ConfigError;

/// A refusal or failure. [`EngineError::code`] is stable; the text is for people.
#[derive(Debug, thiserror::Error)]
pub enum EngineError {
    /// The store said no.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Accepting took longer than `accept_deadline`; it may or may not be stored.
    #[error("the store did not confirm in time")]
    DeadlinePassed,
    /// We are stopping.
    #[error("the server is shutting down")]
    Draining,
    /// No key was given.
    #[error("a key is required: give `key`, or an `Idempotency-Key` header")]
    MissingKey,
    /// A name is not well-formed.
    #[error("`{field}`: {error}")]
    Name {
        /// Where.
        field: &'static str,
        /// What.
        error: NameError,
    },
    /// A value is out of bounds.
    #[error("`{field}`: {problem}")]
    Invalid {
        /// Where.
        field: &'static str,
        /// What is wrong and what would be right.
        problem: String,
    },
    /// The payload is too large.
    #[error("the payload has {bytes} bytes; at most {max} are taken")]
    TooLarge {
        /// What was given.
        bytes: usize,
        /// What is taken.
        max: usize,
    },
    /// The key was used for something else.
    #[error("the key was used before with another {}: message {message}", .field.as_str())]
    KeyReused {
        /// What differs.
        field: FingerprintField,
        /// The message that has the key.
        message: MessageId,
    },
    /// There is no such thing.
    #[error("there is no {what} {id:?}")]
    NotFound {
        /// What kind of thing.
        what: &'static str,
        /// Its name, as asked.
        id: String,
    },
    /// A destination does not take part at the moment, or its configuration is not understood.
    #[error("{what} {id:?} is not available: {problem}")]
    NotAvailable {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        id: String,
        /// Why.
        problem: String,
    },
    /// The core refused.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// A configuration is not valid.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The id is taken.
    #[error("{id:?} is taken: there is {} of this id", article(*.by))]
    Taken {
        /// The id.
        id: String,
        /// By what.
        by: DestinationKind,
    },
    /// The name is taken.
    #[error("there is a {what} {id:?} already")]
    Exists {
        /// What kind of thing.
        what: &'static str,
        /// Its name.
        id: String,
    },
    /// A file defines it.
    #[error("{id:?} is managed by the configuration file; change it there")]
    ManagedByFile {
        /// The id.
        id: String,
    },
    /// Random bytes could not be had, or a secret not be sealed.
    #[error("a secret could not be made: {0}")]
    Secret(String),
}

fn article(kind: DestinationKind) -> &'static str {
    match kind {
        DestinationKind::Endpoint => "an endpoint",
        DestinationKind::Queue => "a queue",
        DestinationKind::Source => "a source",
    }
}

impl EngineError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Store(StoreError::Overloaded) => "overloaded",
            Self::Store(StoreError::Conflict) => "conflict",
            Self::Store(StoreError::Corrupt(_)) => "corrupt",
            Self::Store(StoreError::Unavailable { .. } | StoreError::InDoubt(_)) | Self::DeadlinePassed => {
                "store_unavailable"
            }
            Self::Draining => "draining",
            Self::MissingKey => "missing_key",
            Self::Name { .. } => "invalid_name",
            Self::Invalid { .. } => "invalid_value",
            Self::TooLarge { .. } => "payload_too_large",
            Self::KeyReused { .. } => "key_reused",
            Self::NotFound { what, .. } => match *what {
                "queue" => "unknown_queue",
                "endpoint" => "unknown_endpoint",
                _ => "not_found",
            },
            Self::NotAvailable { .. } => "not_available",
            Self::Refused(refusal) => refusal.code(),
            Self::Config(_) => "invalid_configuration",
            Self::Taken { .. } | Self::Exists { .. } => "already_exists",
            Self::ManagedByFile { .. } => "managed_by_file",
            Self::Secret(_) => "secret_unavailable",
        }
    }

    /// There is no `what` called `id`.
    pub(crate) fn not_found(what: &'static str, id: &impl ToString) -> Self {
        Self::NotFound { what, id: id.to_string() }
    }

    /// A value is out of bounds.
    pub(crate) fn invalid(field: &'static str, problem: impl Into<String>) -> Self {
        Self::Invalid { field, problem: problem.into() }
    }
}
