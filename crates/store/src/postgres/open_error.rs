//! What can go wrong when a store is opened.

use std::path::PathBuf;

use crate::BoxError;

/// Why a store could not be opened. The texts name the server and what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// The URL says nothing that can be understood.
    #[error("the URL of the database is wrong: {problem}")]
    Url {
        /// What is wrong.
        problem: Box<str>,
    },
    /// The name of a schema.
    #[error(
        "{schema:?} can't be the name of a schema: use a lower-case letter or `_`, then such letters, digits and `_`, at \
         most 63, and no `pg_` at the start"
    )]
    SchemaName {
        /// The name.
        schema: Box<str>,
    },
    /// The file of authorities.
    #[error("{} can't be read as certificates in PEM", path.display())]
    CaFile {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// TLS can't be set up.
    #[error("TLS can't be set up")]
    Tls {
        /// Why.
        #[source]
        source: BoxError,
    },
    /// The server can't be reached, or doesn't let us in.
    #[error("no connection to {at}")]
    Unreachable {
        /// Host, port and database.
        at: Box<str>,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// The server is too old.
    #[error("{at} is PostgreSQL {found}: 13 or later is needed")]
    OldServer {
        /// Host, port and database.
        at: Box<str>,
        /// Its version.
        found: Box<str>,
    },
    /// The server would lose what was answered.
    #[error(
        "{at} has `{setting} = {found}`, with which a crash can lose or damage what was accepted: set `{setting} = on` \
         in its configuration and restart it"
    )]
    Setting {
        /// Host, port and database.
        at: Box<str>,
        /// Which setting.
        setting: &'static str,
        /// What it is.
        found: Box<str>,
    },
    /// The server takes no writes.
    #[error(
        "{at} takes no writes, since it is a standby or was made read-only: name the primary in the URL, or all of them"
    )]
    ReadOnly {
        /// Host, port and database.
        at: Box<str>,
    },
    /// The database can't keep every text.
    #[error("{at} has the encoding {found}: make a database with `ENCODING 'UTF8'`")]
    Encoding {
        /// Host, port and database.
        at: Box<str>,
        /// Its encoding.
        found: Box<str>,
    },
    /// The schema is of something else.
    #[error(
        "the schema {schema} of {at} has tables that are not posthaste's: choose another schema or database"
    )]
    Foreign {
        /// Host, port and database.
        at: Box<str>,
        /// The schema.
        schema: Box<str>,
    },
    /// Another store is there now.
    #[error("{at} has another store than before: restart this node if that was meant")]
    OtherStore {
        /// Host, port and database.
        at: Box<str>,
    },
    /// A newer posthaste wrote it.
    #[error(
        "{at} has schema version {found}, and this posthaste knows versions up to {known}: run the version that wrote \
         it, or restore the backup made before the upgrade"
    )]
    NewerSchema {
        /// Host, port and database.
        at: Box<str>,
        /// The version that it has.
        found: i64,
        /// The newest one known here.
        known: i64,
    },
    /// A migration that was applied has changed since.
    #[error(
        "{at} has schema version {version} in another form than this posthaste: keep the database and report this"
    )]
    ChangedSchema {
        /// Host, port and database.
        at: Box<str>,
        /// Which version.
        version: i64,
    },
    /// The server refuses.
    #[error("{at} can't be used: {doing} failed")]
    Database {
        /// Host, port and database.
        at: Box<str>,
        /// At what.
        doing: &'static str,
        /// Why.
        #[source]
        source: BoxError,
    },
}

impl OpenError {
    pub(super) fn database<E: Into<BoxError>>(at: &str, doing: &'static str) -> impl FnOnce(E) -> Self {
        let at = at.into();
        move |source| Self::Database { at, doing, source: source.into() }
    }
}
