//! The write-ahead log: how long it is, and how it goes into the database file.
//!
//! A long log is moved by a thread of its own, with a connection of its own, while the writer goes on: copying and syncing
//! thousands of pages takes tens of milliseconds, which nobody who waits for a commit should wait for too. Only what came
//! in meanwhile is left for the writer, so that the log can begin anew.

use std::{
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
        mpsc::{Receiver, SyncSender, TryRecvError, sync_channel},
    },
    thread::{Builder, JoinHandle},
    time::Duration,
};

use rusqlite::Connection;

use super::{
    fault::Fault,
    open::open_checkpointer,
    options::{Checkpoints, SqliteOptions},
    session::Session,
};

/// The thread goes over the log again while so many pages came in meanwhile; the writer moves fewer at once.
const LEFT_FOR_WRITER: i64 = 512;

/// How often at most: a writer that is faster than the thread must not keep it for ever.
const PASSES_MAX: usize = 4;

/// A log that is longer by this factor than it should be is moved by the writer itself, whatever the thread does.
const OVERDUE_FACTOR: u32 = 8;

pub(super) struct Log {
    pages: Arc<AtomicU32>,
    pages_max: u32,
    /// Next time at so many pages.
    due_at_pages: u32,
    checkpoints: Checkpoints,
    busy_timeout: Duration,
    mover: Option<Mover>,
}

/// What a checkpoint came to.
struct Checkpointed {
    complete: bool,
    left: i64,
}

/// The thread that moves pages.
struct Mover {
    orders: Option<SyncSender<()>>,
    reports: Receiver<Result<(), Fault>>,
    thread: Option<JoinHandle<()>>,
    works: bool,
}

impl Log {
    pub(super) fn watch(conn: &mut Connection, options: &SqliteOptions) -> Result<Self, Fault> {
        // Unknown what an earlier connection left: as if there were something.
        let pages = Arc::new(AtomicU32::new(1));
        let seen = pages.clone();
        conn.wal_hook(Some(move |_: &mut rusqlite::hooks::Wal, pages| {
            seen.store(u32::try_from(pages).unwrap_or(u32::MAX), Ordering::Relaxed);
            Ok(())
        }))?;
        let mover = match options.checkpoints {
            Checkpoints::Own => Some(Mover::start(options)?),
            Checkpoints::External => None,
        };
        Ok(Self {
            pages,
            pages_max: options.wal_pages_max,
            due_at_pages: options.wal_pages_max,
            checkpoints: options.checkpoints,
            busy_timeout: options.busy_timeout,
            mover,
        })
    }

    /// Has a long log moved into the database, without waiting for readers.
    pub(super) fn after_batch(&mut self, session: &mut Session<'_>) -> Result<(), Fault> {
        let Some(mover) = &mut self.mover else { return Ok(()) };
        let pages = self.pages.load(Ordering::Relaxed);
        if mover.works {
            let moved = mover.report()?;
            if !moved && pages < self.pages_max.saturating_mul(OVERDUE_FACTOR) {
                return Ok(());
            }
            return self.finish(session, pages);
        }
        if pages >= self.due_at_pages {
            mover.order();
        }
        Ok(())
    }

    /// What the thread left.
    fn finish(&mut self, session: &mut Session<'_>, pages: u32) -> Result<(), Fault> {
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
    pub(super) fn when_idle(&mut self, session: &mut Session<'_>) -> Result<(), Fault> {
        if let Some(mover) = &mut self.mover
            && mover.works
            && !mover.report()?
        {
            return Ok(());
        }
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

    /// The same, for the last time.
    pub(super) fn when_closing(&mut self, session: &mut Session<'_>) -> Result<(), Fault> {
        if let Some(mover) = &mut self.mover {
            mover.end();
        }
        self.when_idle(session)
    }
}

impl Mover {
    fn start(options: &SqliteOptions) -> Result<Self, Fault> {
        let conn = open_checkpointer(options)?;
        let (orders, ordered) = sync_channel(1);
        let (reporter, reports) = sync_channel(1);
        let run = move || {
            while ordered.recv().is_ok() {
                if reporter.send(move_pages(&conn)).is_err() {
                    return;
                }
            }
        };
        let thread = Builder::new().name("sqlite-log".to_owned()).spawn(run);
        let thread = thread.map_err(|_| Fault::Invariant("no thread for the log could be had"))?;
        Ok(Self { orders: Some(orders), reports, thread: Some(thread), works: false })
    }

    fn order(&mut self) {
        if let Some(orders) = &self.orders {
            // There is room: the last order was reported on.
            self.works = orders.try_send(()).is_ok();
        }
    }

    /// Whether it is done with its order. Errors: it failed; the database is to be opened again.
    fn report(&mut self) -> Result<bool, Fault> {
        match self.reports.try_recv() {
            Ok(moved) => {
                self.works = false;
                moved.map(|()| true)
            }
            Err(TryRecvError::Empty) => Ok(false),
            Err(TryRecvError::Disconnected) => {
                Err(Fault::Invariant("the thread that moves the log has ended"))
            }
        }
    }

    /// Lets it finish what it does, and ends it.
    fn end(&mut self) {
        self.orders = None;
        if let Some(thread) = self.thread.take() {
            // A thread that panicked has nothing left to do.
            let _ = thread.join();
        }
        self.works = false;
    }
}

impl Drop for Mover {
    fn drop(&mut self) {
        self.end();
    }
}

/// Moves the log's pages while others write to it, until few are left.
fn move_pages(conn: &Connection) -> Result<(), Fault> {
    let mut passive = conn.prepare(include_str!("sql/checkpoint_passive.sql"))?;
    for _ in 0..PASSES_MAX {
        if checkpoint(&mut passive)?.left <= LEFT_FOR_WRITER {
            break;
        }
    }
    Ok(())
}

fn checkpoint(statement: &mut rusqlite::Statement<'_>) -> rusqlite::Result<Checkpointed> {
    statement.query_row([], |row| {
        let (busy, in_log, moved): (i64, i64, i64) = (row.get(0)?, row.get(1)?, row.get(2)?);
        Ok(Checkpointed { complete: busy == 0 && in_log == moved, left: in_log - moved })
    })
}
