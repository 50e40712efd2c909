//! SQLite: the embedded store. One file, one process, one thread that writes.
//!
//! Every write waits in a bounded queue for the writer, which takes what queued up while its last commit ran and
//! commits it with one sync. Readers have connections and threads of their own. Nothing here decides: the core does.

mod accept;
mod apply;
mod attempt_rows;
mod batch;
mod bulk;
mod bulk_rows;
mod bulk_seam;
mod checkpoints;
mod configure;
mod counts;
mod fan_out;
mod fault;
mod job_rows;
mod lanes;
mod lease;
mod leased;
mod ledger;
mod ledger_rows;
mod lock;
mod note;
mod open;
mod options;
mod read_jobs;
mod read_rest;
mod readers;
mod recent_names;
mod record_rows;
mod retention;
mod schedules;
mod seam;
mod session;
#[doc(hidden)]
pub mod statements;
#[cfg(test)]
mod tests;
mod unsettled;
mod untold;
mod work;
mod writer;

use std::{
    sync::Arc,
    thread::{Builder, JoinHandle},
};

use posthaste_core::{Epoch, TenantId};
use tokio::sync::oneshot;

pub use self::options::{Checkpoints, CommitWatch, OpenError, PageLimit, SqliteOptions};
use self::{
    fault::Fault,
    lock::FileLock,
    readers::{PendingRead, ReadQueue, ReadSession},
    recent_names::RecentNames,
    session::Session,
    work::{Pending, Rank, Work},
    writer::Writer,
};
use crate::{
    BoxFuture, StoreError,
    queue::{Limits, Queue},
    rows::cells,
    targets, weight,
};

/// The embedded store.
///
/// Dropping it is closing it: it blocks until what waits is committed and the threads have ended.
pub struct SqliteStore {
    options: Arc<SqliteOptions>,
    epoch: Epoch,
    queue: Arc<Queue<dyn Work>>,
    reads: Arc<ReadQueue>,
    recent: Arc<RecentNames>,
    writer: Option<JoinHandle<()>>,
    readers: Vec<JoinHandle<()>>,
    /// Freed last.
    _lock: FileLock,
}

impl SqliteStore {
    /// Opens the store, making the file or bringing its schema up to date as needed. Blocks.
    ///
    /// Errors: [`OpenError`], whose text names the file and what to do.
    pub fn open(options: SqliteOptions) -> Result<Self, OpenError> {
        let path = lock::true_path(&options.path)?;
        let options = Arc::new(SqliteOptions { path, ..options });
        let lock = FileLock::take(&options.path)?;
        let (conn, epoch) = open::open_first(&options)?;
        let queue = Arc::new(Queue::new(Limits {
            waiting_ops: options.queue_ops_max,
            waiting_bytes: options.queue_bytes_max,
            batch_ops: options.batch_ops_max.get(),
            batch_bytes: options.batch_bytes_max,
        }));
        let reads = Arc::new(ReadQueue::new(options.reads_waiting_max));
        let recent = RecentNames::read(&conn).map_err(|source| OpenError::Sqlite {
            path: options.path.clone(),
            doing: "reading its new names",
            source: source.into(),
        })?;
        let recent = Arc::new(recent);
        let mut store =
            Self { options, epoch, queue, reads, recent, writer: None, readers: Vec::new(), _lock: lock };
        // From here on, an error drops the store, which ends the threads that run.
        store.start(conn)?;
        Ok(store)
    }

    fn start(&mut self, conn: rusqlite::Connection) -> Result<(), OpenError> {
        let failed = |source| OpenError::File { path: self.options.path.clone(), source };
        for number in 0..self.options.readers.get() {
            let conn = open::open_reader(&self.options)?;
            let (options, reads, recent) = (self.options.clone(), self.reads.clone(), self.recent.clone());
            let reader = Builder::new().name(format!("sqlite-reader-{number}"));
            let reader =
                reader.spawn(move || readers::run(&options, &reads, &recent, conn)).map_err(failed)?;
            self.readers.push(reader);
        }
        let (options, queue, recent) = (self.options.clone(), self.queue.clone(), self.recent.clone());
        let writer = Writer { options, queue, epoch: self.epoch, recent };
        let thread = Builder::new().name("sqlite-writer".to_owned());
        self.writer = Some(thread.spawn(move || writer.run(conn)).map_err(failed)?);
        Ok(())
    }

    /// Commits what waits, ends the threads, empties the write-ahead log and closes the file. Blocks.
    pub fn close(self) {
        drop(self);
    }

    /// The settings on which durability and speed rest, as the connection that writes has them.
    ///
    /// Errors: as for every write. Cancel: safe.
    pub fn settings(&self) -> BoxFuture<'_, Result<Vec<(&'static str, String)>, StoreError>> {
        self.write(Rank::Foreground, None, 0, (), |session, ()| open::settings_of(session.conn))
    }

    /// Queues one operation and waits for its answer.
    fn write<I: Send + 'static, O: Send + 'static>(
        &self,
        rank: Rank,
        tenant: Option<TenantId>,
        bytes: usize,
        input: I,
        run: fn(&mut Session<'_>, &I) -> Result<O, Fault>,
    ) -> BoxFuture<'_, Result<O, StoreError>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.queue.push(Box::new(Pending { input, bytes, run, output: None, reply }), rank, tenant)?;
            let gone = |error| Err(StoreError::InDoubt(Box::new(error)));
            answer.await.unwrap_or_else(gone)
        })
    }

    /// Queues one read and waits for its answer.
    fn read<I: Send + 'static, O: Send + 'static>(
        &self,
        input: I,
        read: fn(&mut ReadSession<'_>, &I) -> Result<O, Fault>,
    ) -> BoxFuture<'_, Result<O, StoreError>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            self.reads.push(Box::new(PendingRead { input, read, reply }))?;
            let gone = |error| Err(StoreError::unavailable_because("the read panicked", error));
            answer.await.unwrap_or_else(gone)
        })
    }
}

impl Drop for SqliteStore {
    fn drop(&mut self) {
        self.reads.close();
        for reader in self.readers.drain(..) {
            // A thread that panicked has nothing left to do.
            let _ = reader.join();
        }
        self.queue.close();
        if let Some(writer) = self.writer.take() {
            let _ = writer.join();
        }
    }
}
