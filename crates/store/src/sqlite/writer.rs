//! The thread that owns the only connection that writes.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::Arc,
    time::Duration,
};

use posthaste_core::Epoch;
use rusqlite::Connection;

use super::{
    batch::{self, Broken, Refused},
    checkpoints::Log,
    fault::{Fault, PanicText},
    open::open_again,
    options::SqliteOptions,
    recent_names::RecentNames,
    session::Session,
    work::Work,
};
use crate::{
    StoreError,
    queue::{Queue, Taken},
};

/// The first wait before a database that failed is tried again; doubled each time.
const RETRY_BASE: Duration = Duration::from_millis(50);

/// The longest such wait.
const RETRY_MAX: Duration = Duration::from_secs(5);

pub(super) struct Writer {
    pub(super) options: Arc<SqliteOptions>,
    pub(super) queue: Arc<Queue<dyn Work>>,
    pub(super) epoch: Epoch,
    pub(super) recent: Arc<RecentNames>,
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
                Ok(Err(Broken::Fault(fault, refused))) => {
                    tracing::error!(%fault, "the database failed: opening it again");
                    self.refuse(&mut waiting, &fault);
                    refused.tell();
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
        self.queue.break_off(error);
        waiting.drain(..).for_each(|work| work.refuse(error()));
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
        let mut log = Log::watch(conn, &self.options).map_err(fault)?;
        let mut session =
            Session::new(conn, self.epoch, &self.options, self.recent.clone()).map_err(broken)?;
        session.read_recent_names().map_err(fault)?;
        loop {
            match self.queue.take(waiting, self.options.idle_after) {
                Taken::Batch => {
                    batch::run(&mut session, waiting, self.options.batch_work)?;
                    log.after_batch(&mut session).map_err(fault)?;
                }
                Taken::Idle => log.when_idle(&mut session).map_err(fault)?,
                Taken::Closing => return log.when_closing(&mut session).map_err(fault),
            }
        }
    }
}

fn broken(error: rusqlite::Error) -> Broken {
    fault(error.into())
}

fn fault(fault: Fault) -> Broken {
    Broken::Fault(fault, Refused::default())
}
