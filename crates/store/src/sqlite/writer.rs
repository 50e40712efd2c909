//! The thread that owns the only connection that writes.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use posthaste_core::Epoch;
use rusqlite::Connection;

use super::{
    batch::{self, Broken},
    fault::{Fault, PanicText},
    open::open_again,
    options::{Checkpoints, SqliteOptions},
    queue::{Queue, Taken},
    session::Session,
    work::Work,
};
use crate::StoreError;

/// The first wait before a database that failed is tried again; doubled each time.
const RETRY_BASE: Duration = Duration::from_millis(50);

/// The longest such wait.
const RETRY_MAX: Duration = Duration::from_secs(5);

pub(super) struct Writer {
    pub(super) options: Arc<SqliteOptions>,
    pub(super) queue: Arc<Queue>,
    pub(super) epoch: Epoch,
}

impl Writer {
    /// Serves until the store is closed, through any number of faults.
    pub(super) fn run(self, first: Connection) {
        let mut waiting = VecDeque::new();
        let mut opened = Some(first);
        while let Some(mut conn) = opened.take().or_else(|| self.reopen()) {
            self.queue.serve();
            let served = catch_unwind(AssertUnwindSafe(|| self.serve(&mut conn, &mut waiting)));
            match served {
                Ok(Ok(())) => return,
                Ok(Err(Broken::Panicked)) => {}
                Ok(Err(Broken::Fault(fault))) => {
                    tracing::error!(%fault, "the database failed: opening it again");
                    self.refuse(&mut waiting, &fault);
                }
                Err(panic) => {
                    tracing::error!(panic = %PanicText(&*panic), "the writer panicked: opening the database again");
                    self.refuse(&mut waiting, &Fault::Invariant("the writer panicked"));
                }
            }
        }
        self.refuse(&mut waiting, &Fault::Invariant("the store was closed while its database was broken"));
    }

    fn refuse(&self, waiting: &mut VecDeque<Box<dyn Work>>, fault: &Fault) {
        let error = || -> StoreError { fault.clone().of_batch() };
        waiting.drain(..).for_each(|work| work.refuse(error()));
        self.queue.break_off(error);
    }

    /// Never the same handle again: a new one, checked. `None` if the store is closed meanwhile.
    fn reopen(&self) -> Option<Connection> {
        let mut wait = RETRY_BASE;
        loop {
            match open_again(&self.options, self.epoch) {
                Ok(conn) => {
                    tracing::info!(path = %self.options.path.display(), "the database is open again");
                    return Some(conn);
                }
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::warn!(%error, cause, "the database can't be opened yet");
                }
            }
            if self.queue.closed_within(wait) {
                return None;
            }
            wait = (wait * 2).min(RETRY_MAX);
        }
    }

    /// Until the store is closed, or the connection has to be.
    fn serve(&self, conn: &mut Connection, waiting: &mut VecDeque<Box<dyn Work>>) -> Result<(), Broken> {
        let log = Log::watch(conn, &self.options).map_err(broken)?;
        let mut session = Session::new(conn, self.epoch, self.options.clock.clone()).map_err(broken)?;
        let mut log = log;
        loop {
            match self.queue.take(waiting, self.options.idle_after) {
                Taken::Batch => {
                    batch::run(&mut session, waiting, self.options.batch_work)?;
                    log.after_batch(&mut session).map_err(broken)?;
                }
                Taken::Idle => log.when_idle(&mut session).map_err(broken)?,
                Taken::Closing => return log.when_idle(&mut session).map_err(broken),
            }
        }
    }
}

fn broken(error: rusqlite::Error) -> Broken {
    Broken::Fault(error.into())
}

/// The write-ahead log: how long it is, and when it goes into the database file.
struct Log {
    pages: Arc<AtomicU32>,
    pages_max: u32,
    /// Next time at so many pages.
    due_at_pages: u32,
    checkpoints: Checkpoints,
    busy_timeout: Duration,
}

/// What a checkpoint came to.
struct Checkpointed {
    complete: bool,
}

impl Log {
    fn watch(conn: &mut Connection, options: &SqliteOptions) -> rusqlite::Result<Self> {
        // Unknown what an earlier connection left: as if there were something.
        let pages = Arc::new(AtomicU32::new(1));
        let seen = pages.clone();
        conn.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            seen.store(u32::try_from(pages).unwrap_or(u32::MAX), Ordering::Relaxed);
            Ok(())
        }))?;
        Ok(Self {
            pages,
            pages_max: options.wal_pages_max,
            due_at_pages: options.wal_pages_max,
            checkpoints: options.checkpoints,
            busy_timeout: options.busy_timeout,
        })
    }

    /// Moves a long log into the database, without waiting for readers.
    fn after_batch(&mut self, session: &mut Session<'_>) -> rusqlite::Result<()> {
        let pages = self.pages.load(Ordering::Relaxed);
        if pages < self.due_at_pages || self.checkpoints == Checkpoints::External {
            return Ok(());
        }
        let done = checkpoint(&mut session.sql.checkpoint_passive)?;
        // A reader that holds on to old pages is not asked again after every batch.
        let again = pages.saturating_add(self.pages_max / 4);
        self.due_at_pages = if done.complete { self.pages_max } else { again };
        if done.complete {
            // The next commit begins it anew, and says so.
            self.pages.store(1, Ordering::Relaxed);
        }
        Ok(())
    }

    /// Empties the log, unless a reader is in the way.
    fn when_idle(&mut self, session: &mut Session<'_>) -> rusqlite::Result<()> {
        if self.pages.load(Ordering::Relaxed) == 0 || self.checkpoints == Checkpoints::External {
            return Ok(());
        }
        session.conn.busy_timeout(Duration::ZERO)?;
        let done = checkpoint(&mut session.sql.checkpoint_truncate);
        session.conn.busy_timeout(self.busy_timeout)?;
        if done?.complete {
            self.pages.store(0, Ordering::Relaxed);
            self.due_at_pages = self.pages_max;
        }
        Ok(())
    }
}

fn checkpoint(statement: &mut rusqlite::Statement<'_>) -> rusqlite::Result<Checkpointed> {
    statement.query_row([], |row| {
        let (busy, in_log, moved): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Checkpointed { complete: busy == 0 && in_log == moved })
    })
}
