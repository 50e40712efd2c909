//! Reads: each sees one state of everything, on one of a few connections.

use std::{
    pin::pin,
    sync::atomic::{AtomicUsize, Ordering},
    task::Poll,
};

use parking_lot::Mutex;
use tokio::{
    sync::{Semaphore, SemaphorePermit},
    time::timeout,
};
use tokio_postgres::error::SqlState;

use super::{
    connect::Connection,
    fault::{Fault, Reach},
    guard::guarded_future,
    open::{self, Use, open_again},
    session::Session,
    writer::Room,
};
use crate::{BoxFuture, StoreError};

/// A read: it loads what it looks at, and looks.
pub(super) type Read<I, O> = for<'s, 'c> fn(&'s mut Session<'c>, &'s I) -> BoxFuture<'s, Result<O, Fault>>;

/// The connections that read.
pub(super) struct Readers {
    idle: Mutex<Vec<Connection>>,
    room: Semaphore,
    waiting: AtomicUsize,
}

/// Why a read gave no answer.
enum Failed {
    /// Another connection may do better.
    Connection(Fault),
    /// So it is.
    Refused(StoreError),
}

/// Counts one read that waits, for as long as it is there.
struct Waiting<'r>(&'r AtomicUsize);

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

impl Readers {
    pub(super) fn new(connections: usize) -> Self {
        Self { idle: Mutex::default(), room: Semaphore::new(connections), waiting: AtomicUsize::new(0) }
    }

    /// No read begins any more.
    pub(super) fn close(&self) {
        self.room.close();
        self.idle.lock().clear();
    }

    pub(super) async fn read<I: Sync, O>(
        &self,
        room: &Room,
        input: &I,
        read: Read<I, O>,
    ) -> Result<O, StoreError> {
        let _permit = self.permit(room).await?;
        if let Some(conn) = self.idle_one() {
            match self.read_on(room, conn, input, read).await {
                Ok(output) => return Ok(output),
                Err(Failed::Refused(error)) => return Err(error),
                Err(Failed::Connection(fault)) => tracing::debug!(%fault, "a read is done again"),
            }
        }
        let connected = open_again(&room.connector, room.epoch, Use::Read).await;
        let conn = connected
            .map_err(|error| StoreError::unavailable_because("the database can't be reached", error))?;
        match self.read_on(room, conn, input, read).await {
            Ok(output) => Ok(output),
            Err(Failed::Refused(error)) => Err(error),
            Err(Failed::Connection(fault)) => Err(fault.of_batch()),
        }
    }

    /// A connection that is not known to be dead.
    fn idle_one(&self) -> Option<Connection> {
        let mut idle = self.idle.lock();
        idle.retain(|conn| !conn.is_closed());
        idle.pop()
    }

    async fn permit(&self, room: &Room) -> Result<SemaphorePermit<'_>, StoreError> {
        let waiting = self.waiting.fetch_add(1, Ordering::Relaxed);
        let _waiting = Waiting(&self.waiting);
        if waiting >= room.options.reads_waiting_max {
            return Err(StoreError::Overloaded);
        }
        match timeout(room.options.read_timeout, self.room.acquire()).await {
            Ok(Ok(permit)) => Ok(permit),
            Ok(Err(_)) => Err(StoreError::unavailable("the store is closed")),
            Err(_) => Err(StoreError::Overloaded),
        }
    }

    /// Reads, and keeps the connection if it is well.
    async fn read_on<I: Sync, O>(
        &self,
        room: &Room,
        conn: Connection,
        input: &I,
        read: Read<I, O>,
    ) -> Result<O, Failed> {
        let reading = guarded_future(read_in(room, &conn, input, read));
        let fault = match timeout(room.options.read_timeout, reading).await {
            Err(_) => return Err(Failed::Refused(too_long())),
            Ok(None) => return Err(Failed::Refused(StoreError::unavailable("the read panicked"))),
            Ok(Some(Ok(output))) => {
                self.end(conn).await;
                return Ok(output);
            }
            Ok(Some(Err(fault))) => fault,
        };
        if matches!(&fault, Fault::Sql(error) if error.code() == Some(&SqlState::QUERY_CANCELED)) {
            return Err(Failed::Refused(too_long()));
        }
        if fault.reach() != Reach::Operation {
            return Err(Failed::Connection(fault));
        }
        self.end(conn).await;
        Err(Failed::Refused(StoreError::Corrupt(Box::new(fault))))
    }

    /// Ends the transaction without waiting for that: if it fails, so does the next one that begins.
    async fn end(&self, conn: Connection) {
        {
            let mut ending = pin!(conn.client.batch_execute("ROLLBACK"));
            std::future::poll_fn(|context| {
                let _ = ending.as_mut().poll(context);
                Poll::Ready(())
            })
            .await;
        }
        if !self.room.is_closed() {
            self.idle.lock().push(conn);
        }
    }
}

async fn read_in<I: Sync, O>(
    room: &Room,
    conn: &Connection,
    input: &I,
    read: Read<I, O>,
) -> Result<O, Fault> {
    let now = open::begin(&conn.client, &conn.begin_read, room.options.clock.as_deref()).await?;
    let ledger_used = room.ledger_used.load(Ordering::Relaxed);
    let mut session = Session::new(&conn.client, room.epoch, now, 0, ledger_used);
    read(&mut session, input).await
}

fn too_long() -> StoreError {
    StoreError::unavailable("the read took too long: ask for less")
}
