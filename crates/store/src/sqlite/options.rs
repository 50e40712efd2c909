//! How a store is opened, and what can go wrong with that.

use std::{
    num::NonZeroUsize,
    path::{Path, PathBuf},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use posthaste_core::DurationMs;

pub use crate::CommitWatch;
use crate::{BoxError, Clock};

/// Who moves the write-ahead log into the database file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Checkpoints {
    /// The store itself, between batches.
    Own,
    /// Another program, such as litestream.
    External,
}

/// How a [`crate::sqlite::SqliteStore`] is opened. Start from [`SqliteOptions::new`].
#[derive(Clone)]
pub struct SqliteOptions {
    /// The database file; made if it is not there. Its folder must be.
    pub path: PathBuf,
    /// The store's time.
    pub clock: Arc<dyn Clock>,
    /// Connections that read, each on a thread of its own.
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
    /// Work in one commit, after which it is committed, by the store's clock.
    pub batch_work: DurationMs,
    /// Page cache of the connection that writes, in KiB. Each reader has a quarter.
    pub cache_kib: u32,
    /// Pages in the write-ahead log after which it is moved into the database file.
    pub wal_pages_max: u32,
    /// Without work for so long, the write-ahead log is emptied.
    pub idle_after: Duration,
    /// How long a connection waits for a lock that another program holds.
    pub busy_timeout: Duration,
    /// Who moves the write-ahead log into the database file.
    pub checkpoints: Checkpoints,
    /// New names that are kept in the order in which they came before they go into the tree of names, many at once.
    pub new_names_max: usize,
    /// Who is told of commits.
    pub watch: Option<Arc<dyn CommitWatch>>,
    /// For tests: pretends a full disk.
    #[doc(hidden)]
    pub page_limit: PageLimit,
}

impl SqliteOptions {
    /// What suits a machine with two cores and an SSD.
    pub fn new(path: impl Into<PathBuf>, clock: Arc<dyn Clock>) -> Self {
        Self {
            path: path.into(),
            clock,
            readers: NonZeroUsize::MIN.saturating_add(1),
            reads_waiting_max: 4_096,
            queue_ops_max: 16_384,
            queue_bytes_max: 64 * 1024 * 1024,
            batch_ops_max: NonZeroUsize::MIN.saturating_add(1_023),
            batch_bytes_max: 4 * 1024 * 1024,
            batch_work: DurationMs(5),
            // More is slower here: SQLite looks through all cached pages at each commit that split a page.
            cache_kib: 16 * 1024,
            wal_pages_max: 16_384,
            idle_after: Duration::from_secs(1),
            busy_timeout: Duration::from_secs(5),
            checkpoints: Checkpoints::Own,
            new_names_max: 65_536,
            watch: None,
            page_limit: PageLimit::default(),
        }
    }
}

/// For tests: the most pages that the file may have, read whenever the file is opened; 0 is no limit.
#[doc(hidden)]
#[derive(Clone, Debug, Default)]
pub struct PageLimit(Arc<AtomicU32>);

impl PageLimit {
    /// From the next time that the file is opened.
    pub fn set(&self, pages: u32) {
        self.0.store(pages, Ordering::Relaxed);
    }

    pub(super) fn pages(&self) -> u32 {
        self.0.load(Ordering::Relaxed)
    }
}

/// Why a store could not be opened. The texts name the file and what to do.
#[derive(Debug, thiserror::Error)]
pub enum OpenError {
    /// Another process has it.
    #[error(
        "{} is in use by process {holder}: stop that process, or give this one a file of its own",
        path.display()
    )]
    InUse {
        /// The database file.
        path: PathBuf,
        /// The other process, as far as its lock file tells.
        holder: Box<str>,
    },
    /// A file can't be made or opened.
    #[error("{} can't be opened: check that its folder exists and that this user may write there", path.display())]
    File {
        /// Which file.
        path: PathBuf,
        /// Why.
        #[source]
        source: std::io::Error,
    },
    /// The file is a database of something else.
    #[error("{} belongs to another program (application id {found:#010x}): choose another file", path.display())]
    Foreign {
        /// The database file.
        path: PathBuf,
        /// The application id that stands in it.
        found: i32,
    },
    /// A newer posthaste wrote it.
    #[error(
        "{} has schema {found}, and this posthaste knows schemas up to {known}: run the version that wrote it, or \
         restore the backup made before the upgrade",
        path.display()
    )]
    NewerSchema {
        /// The database file.
        path: PathBuf,
        /// The schema that it has.
        found: i32,
        /// The newest one known here.
        known: i32,
    },
    /// A migration failed, or one that was applied has changed since.
    #[error("the schema of {} can't be brought up to date: keep the file and report this", path.display())]
    Migration {
        /// The database file.
        path: PathBuf,
        /// Why.
        #[source]
        source: BoxError,
    },
    /// A promise of durability can't be kept.
    #[error(
        "{} doesn't take `PRAGMA {pragma}`: it says {found}, and {wanted} is needed. Is it on a network file system?",
        path.display()
    )]
    Pragma {
        /// The database file.
        path: PathBuf,
        /// Which setting.
        pragma: &'static str,
        /// What is needed.
        wanted: &'static str,
        /// What it says.
        found: Box<str>,
    },
    /// There is no space for what has to be written.
    #[error(
        "{} can't be used: {doing} failed since the disk is full: make some space; what was accepted is not lost",
        path.display()
    )]
    Full {
        /// The database file.
        path: PathBuf,
        /// At what.
        doing: &'static str,
    },
    /// Another program reads it for so long that its log can't be emptied.
    #[error("{} is being read by another program: wait for it, or stop it", path.display())]
    Busy {
        /// The database file.
        path: PathBuf,
    },
    /// SQLite refuses.
    #[error("{} can't be used: {doing} failed; if it is damaged, restore a backup", path.display())]
    Sqlite {
        /// The database file.
        path: PathBuf,
        /// At what.
        doing: &'static str,
        /// Why.
        #[source]
        source: BoxError,
    },
}

impl OpenError {
    pub(super) fn sqlite(path: &Path, doing: &'static str) -> impl FnOnce(rusqlite::Error) -> Self {
        move |source| match source.sqlite_error_code() {
            Some(rusqlite::ErrorCode::DiskFull) => Self::Full { path: path.to_owned(), doing },
            Some(_) | None => Self::Sqlite { path: path.to_owned(), doing, source: source.into() },
        }
    }
}
