//! How a store is opened.

use std::{num::NonZeroUsize, path::PathBuf, sync::Arc, time::Duration};

use crate::{Clock, CommitWatch};

/// How a [`super::PostgresStore`] is opened. Start from [`PostgresOptions::new`].
///
/// # Encryption
///
/// The URL says with `sslmode` how the connection is protected, in the words of libpq. What is asked for is done, or the
/// connection is refused: nothing falls back to less.
///
/// - `disable`: never encrypted.
/// - `prefer`, the default: encrypted if the server can, and then without knowing who it is. Whoever stands in between can
///   read along.
/// - `require`: encrypted, or refused. Without a file of authorities nobody looks who the server is; with one it is as
///   `verify-ca`.
/// - `verify-ca`: the server's certificate is of one of the authorities in the file.
/// - `verify-full`: and it names the host. Without a file the operating system's authorities are asked. Use this for
///   whatever leaves a machine.
///
/// The file is `sslrootcert` of the URL, or [`PostgresOptions::ca_file`]. Channel binding and certificates of clients are
/// not supported.
#[derive(Clone)]
pub struct PostgresOptions {
    /// `postgres://user:password@host:port/database?...`, with more than one host if there are standbys: the one that
    /// takes writes is used.
    pub url: Box<str>,
    /// The schema of the database in which everything is; made if it is not there. Lower-case letters, digits and `_`.
    pub schema: Box<str>,
    /// The store's time; without one, the database's, which all nodes share.
    pub clock: Option<Arc<dyn Clock>>,
    /// Authorities that may vouch for the server, in PEM.
    pub ca_file: Option<PathBuf>,
    /// Connections that write, each with a transaction of its own.
    pub writers: NonZeroUsize,
    /// Connections that read, at most; opened as they are needed.
    pub readers: NonZeroUsize,
    /// Reads that may wait; more are refused.
    pub reads_waiting_max: usize,
    /// Writes that may wait; more are refused.
    pub queue_ops_max: usize,
    /// Bytes of writes that may wait; more are refused.
    pub queue_bytes_max: usize,
    /// Writes in one commit.
    pub batch_ops_max: NonZeroUsize,
    /// Bytes of writes in one commit; a larger write is alone in its own.
    pub batch_bytes_max: usize,
    /// How long connecting may take, for each address.
    pub connect_timeout: Duration,
    /// How long a statement may take.
    pub statement_timeout: Duration,
    /// How long a statement may wait for one lock; then the transaction is tried again.
    pub lock_timeout: Duration,
    /// How long a transaction may take before its commit.
    pub work_timeout: Duration,
    /// How long a commit may take. Then nobody knows whether it was one.
    pub commit_timeout: Duration,
    /// How long a read may wait for a connection, and how long it may take then.
    pub read_timeout: Duration,
    /// Who is told of commits.
    pub watch: Option<Arc<dyn CommitWatch>>,
}

impl PostgresOptions {
    /// What suits a server on a machine of its own, with a few nodes.
    pub fn new(url: impl Into<Box<str>>, clock: Option<Arc<dyn Clock>>) -> Self {
        Self {
            url: url.into(),
            schema: "posthaste".into(),
            clock,
            ca_file: None,
            writers: NonZeroUsize::MIN.saturating_add(1),
            readers: NonZeroUsize::MIN.saturating_add(3),
            reads_waiting_max: 4_096,
            queue_ops_max: 16_384,
            queue_bytes_max: 64 * 1024 * 1024,
            batch_ops_max: NonZeroUsize::MIN.saturating_add(1_023),
            batch_bytes_max: 4 * 1024 * 1024,
            connect_timeout: Duration::from_secs(10),
            statement_timeout: Duration::from_secs(30),
            lock_timeout: Duration::from_secs(5),
            work_timeout: Duration::from_mins(1),
            commit_timeout: Duration::from_secs(30),
            read_timeout: Duration::from_secs(10),
            watch: None,
        }
    }
}
