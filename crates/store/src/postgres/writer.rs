//! The tasks that write, each with a connection of its own.

use std::{
    collections::VecDeque,
    sync::{Arc, atomic::AtomicBool},
    time::Duration,
};

use parking_lot::Mutex;
use posthaste_core::Epoch;
use tokio::time::timeout;

use super::{
    batch::{self, Broken},
    connect::{Connection, Connector},
    fault::Fault,
    open::{Use, open_again},
    options::PostgresOptions,
    work::Work,
};
use crate::{StoreError, queue::Queue};

/// The first wait before a database that failed is tried again; doubled each time.
const RETRY_BASE: Duration = Duration::from_millis(50);

/// The longest such wait.
const RETRY_MAX: Duration = Duration::from_secs(5);

/// How long a connection that ended while nothing was done may be missing before anybody is told.
const UNNOTICED: Duration = Duration::from_secs(1);

/// What all writers have in common.
pub(super) struct Room {
    pub(super) options: PostgresOptions,
    pub(super) connector: Connector,
    pub(super) queue: Queue<dyn Work>,
    pub(super) epoch: Epoch,
    /// There may be ledger entries.
    pub(super) ledger_used: AtomicBool,
    /// How many writers have a connection.
    serving: Mutex<usize>,
}

impl Room {
    pub(super) fn new(
        options: PostgresOptions,
        connector: Connector,
        queue: Queue<dyn Work>,
        epoch: Epoch,
    ) -> Self {
        let serving = Mutex::new(options.writers.get());
        Self { options, connector, queue, epoch, ledger_used: AtomicBool::new(false), serving }
    }

    /// A writer lost its connection. When the last one did, what waits is refused.
    fn leave(&self, fault: &Fault) {
        let mut serving = self.serving.lock();
        *serving = serving.saturating_sub(1);
        if *serving == 0 {
            self.queue.break_off(|| -> StoreError { fault.clone().of_batch() });
        }
    }

    /// A writer has a connection again.
    fn come_back(&self) {
        let mut serving = self.serving.lock();
        *serving += 1;
        self.queue.serve();
    }
}

/// One writer.
pub(super) struct Desk {
    pub(super) room: Arc<Room>,
    /// Whose counts of jobs are its.
    pub(super) shard: i64,
}

impl std::ops::Deref for Desk {
    type Target = Room;

    fn deref(&self) -> &Room {
        &self.room
    }
}

impl Desk {
    /// Serves until the store is closed, through any number of faults.
    pub(super) async fn run(self, first: Connection) {
        let mut waiting = VecDeque::new();
        let mut conn = first;
        loop {
            let broken = match self.serve(&mut conn, &mut waiting).await {
                Ok(()) => return conn.close().await,
                Err(broken) => broken,
            };
            drop(conn);
            if broken.is_idle()
                && let Ok(Ok(again)) = timeout(UNNOTICED, self.connect()).await
            {
                tracing::info!(fault = %broken.fault, "a connection to the database was made anew");
                conn = again;
                continue;
            }
            tracing::error!(fault = %broken.fault, "the database failed: connecting again");
            self.leave(&broken.fault);
            let refused = waiting.drain(..);
            refused.for_each(|work: Box<dyn Work>| work.refuse(broken.fault.clone().of_batch()));
            broken.tell();
            let Some(again) = self.reconnect().await else { return };
            conn = again;
            self.come_back();
        }
    }

    /// `None` if the store is closed meanwhile.
    async fn reconnect(&self) -> Option<Connection> {
        let mut wait = RETRY_BASE;
        loop {
            let connected = tokio::select! {
                biased;
                () = self.queue.closed() => return None,
                connected = self.connect() => connected,
            };
            match connected {
                Ok(conn) => {
                    tracing::info!(at = %self.connector.at, "the database is reached again");
                    return Some(conn);
                }
                Err(error) => {
                    let cause = std::error::Error::source(&error).map(ToString::to_string);
                    tracing::warn!(%error, cause, "the database can't be used yet");
                }
            }
            // Whether it is for the wait or for the end of the store is seen above.
            let _ = timeout(wait, self.queue.closed()).await;
            wait = (wait * 2).min(RETRY_MAX);
        }
    }

    async fn connect(&self) -> Result<Connection, super::OpenError> {
        open_again(&self.connector, self.epoch, Use::Write).await
    }

    /// Until the store is closed, or the connection is of no use any more.
    async fn serve(
        &self,
        conn: &mut Connection,
        waiting: &mut VecDeque<Box<dyn Work>>,
    ) -> Result<(), Broken> {
        loop {
            let more = tokio::select! {
                biased;
                () = conn.ended() => return Err(Broken::idle(Fault::Unreachable("the connection ended"))),
                more = self.queue.next_batch(waiting) => more,
            };
            if !more {
                return Ok(());
            }
            let ran = batch::run(self, conn, waiting).await;
            self.queue.end_batch();
            ran?;
        }
    }
}
