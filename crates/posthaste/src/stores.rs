//! The configured store, opened; and the key that seals what is secret in it.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use anyhow::Context as _;
use posthaste_adapters::clock::SystemClock;
use posthaste_engine::CommitMetrics;
use posthaste_store::{
    CommitWatch, Store,
    postgres::{PostgresOptions, PostgresStore},
    sqlite::{SqliteOptions, SqliteStore},
};
use secrecy::ExposeSecret as _;

use crate::{
    config::{Config, StoreAt},
    secrets::{MasterKeyBytes, MissingKey, SEALED_PREFIX, key_file, parse_master_key, read_or_make_key},
};

/// The store of a running server.
pub(crate) enum OpenStore {
    Sqlite(Arc<SqliteStore>),
    Postgres(Arc<PostgresStore>),
}

impl OpenStore {
    /// Errors: a sentence for the operator, with its causes.
    pub(crate) async fn open(
        config: &Config,
        clock: SystemClock,
        commits: CommitMetrics,
    ) -> anyhow::Result<Self> {
        let watch: Arc<dyn CommitWatch> =
            Arc::new(CommitTimes { clock: clock.clone(), commits, begun_us: AtomicU64::new(0) });
        match &config.store {
            StoreAt::Sqlite(path) => {
                let mut options = SqliteOptions::new(path, Arc::new(clock));
                options.watch = Some(watch);
                let opened = tokio::task::spawn_blocking(move || SqliteStore::open(options)).await?;
                Ok(Self::Sqlite(Arc::new(opened?)))
            }
            StoreAt::Postgres { url, .. } => {
                // Without a clock of ours: the nodes share the database's.
                let mut options = PostgresOptions::new(url.expose_secret(), None);
                options.watch = Some(watch);
                Ok(Self::Postgres(Arc::new(PostgresStore::open(options).await?)))
            }
        }
    }

    pub(crate) fn shared(&self) -> Arc<dyn Store> {
        match self {
            Self::Sqlite(store) => Arc::<SqliteStore>::clone(store),
            Self::Postgres(store) => Arc::<PostgresStore>::clone(store),
        }
    }

    /// Commits what waits, and closes.
    pub(crate) async fn close(self) {
        match self {
            // Closing empties the write-ahead log, which blocks.
            Self::Sqlite(store) => {
                let closed = tokio::task::spawn_blocking(move || drop(store)).await;
                if let Err(error) = closed {
                    tracing::error!(event = "close_failed", %error);
                }
            }
            Self::Postgres(store) => {
                // Whoever still has it closes it with the last reference.
                if let Some(store) = Arc::into_inner(store) {
                    store.close().await;
                }
            }
        }
    }
}

/// The configured master key, or the one in a file beside an embedded store.
pub(crate) async fn master_key(config: &Config, store: &dyn Store) -> anyhow::Result<MasterKeyBytes> {
    if let Some(key) = &config.master_key {
        return parse_master_key(key.expose_secret()).map_err(anyhow::Error::msg);
    }
    let file = config.store.file().context(
        "a store on a server has no file beside it for its master key: every node must be given the same one; \
         make one with `openssl rand -base64 32` and set POSTHASTE_MASTER_KEY",
    )?;
    let sealed = format!("\"{SEALED_PREFIX}");
    let rows = store.destinations().await?;
    let missing = if rows.iter().any(|row| row.config.contains(&sealed)) {
        MissingKey::Refuse
    } else {
        MissingKey::Make
    };
    let path = key_file(file);
    tokio::task::spawn_blocking(move || read_or_make_key(&path, missing)).await?
}

/// Times the store's commits. One thread commits, so one instant is enough.
struct CommitTimes {
    clock: SystemClock,
    commits: CommitMetrics,
    begun_us: AtomicU64,
}

impl CommitTimes {
    fn now_us(&self) -> u64 {
        u64::try_from(self.clock.elapsed().as_micros()).unwrap_or(u64::MAX)
    }
}

impl CommitWatch for CommitTimes {
    fn begun(&self) {
        self.begun_us.store(self.now_us(), Ordering::Relaxed);
    }

    fn committed(&self, rows: u64) {
        let took = self.now_us().saturating_sub(self.begun_us.load(Ordering::Relaxed));
        self.commits.observe(Duration::from_micros(took), rows);
    }
}
