//! PostgreSQL: the store of many nodes.
//!
//! A transaction locks and loads what its operations will look at, runs over it the rules that the memory store runs,
//! and writes the difference. Every write waits in a bounded queue; what queued up is one transaction. Nothing here
//! decides: the core does.

mod batch;
mod columns;
mod connect;
mod decode;
mod fault;
mod flush;
mod guard;
mod load;
mod nodes;
mod open;
mod open_error;
mod options;
mod outbox;
mod params;
mod readers;
mod reads;
mod seam;
mod seam_rest;
mod session;
mod tls;
mod wants;
mod work;
mod writer;

use std::sync::Arc;

use posthaste_core::{TenantId, Timestamp};
use tokio::{sync::oneshot, task::JoinHandle};

use self::{
    connect::Connector,
    readers::{Read, Readers},
    wants::Wants,
    work::{Pending, Work},
    writer::{Desk, Room},
};
pub use self::{open_error::OpenError, options::PostgresOptions};
use crate::{
    BoxFuture, StoreError,
    memory::tables::Tables,
    queue::{Limits, Queue, Rank},
    weight,
};

/// The store of many nodes. Each node opens it with the same database and schema.
///
/// Dropping it is closing it without waiting: what waits is still committed, while the runtime runs.
pub struct PostgresStore {
    room: Arc<Room>,
    readers: Readers,
    writers: Vec<JoinHandle<()>>,
}

impl PostgresStore {
    /// Opens the store, making its schema or bringing it up to date as needed, on one node while the others wait. Needs a
    /// runtime of tokio, on which the store's tasks run from then on.
    ///
    /// Errors: [`OpenError`], whose text names the server and what to do. Cancel: safe; the schema is as it was, or up to
    /// date.
    pub async fn open(options: PostgresOptions) -> Result<Self, OpenError> {
        let connector = Connector::new(&options)?;
        let first = connector.connect().await?;
        let opened = open::open_first(&first, &connector, &options).await?;
        let mut conns = vec![first];
        while conns.len() < opened.shards.len() {
            conns.push(connector.connect().await?);
        }
        let queue = Queue::<dyn Work>::new(Limits {
            waiting_ops: options.queue_ops_max,
            waiting_bytes: options.queue_bytes_max,
            batch_ops: options.batch_ops_max.get(),
            batch_bytes: options.batch_bytes_max,
        });
        let readers = Readers::new(options.readers.get());
        let room = Arc::new(Room::new(options, connector, queue, opened.epoch));
        let writers = conns.into_iter().zip(opened.shards);
        let writers = writers.map(|(conn, shard)| {
            let desk = Desk { room: Arc::clone(&room), shard };
            tokio::spawn(desk.run(conn))
        });
        Ok(Self { writers: writers.collect(), room, readers })
    }

    /// Commits what waits and closes the connections.
    pub async fn close(mut self) {
        self.shut();
        for writer in self.writers.drain(..) {
            // A task that panicked has nothing left to do.
            let _ = writer.await;
        }
    }

    fn shut(&self) {
        self.readers.close();
        self.room.queue.close();
    }

    /// Queues one operation and waits for its answer.
    fn write<I: Send + 'static, O: Send + 'static>(
        &self,
        (rank, tenant, bytes): (Rank, Option<TenantId>, usize),
        input: I,
        wants: fn(&mut Wants, &I),
        run: fn(&mut Tables, &I, Timestamp) -> O,
    ) -> BoxFuture<'_, Result<O, StoreError>> {
        Box::pin(async move {
            let (reply, answer) = oneshot::channel();
            let work = Box::new(Pending { input, bytes, wants, run, output: None, reply });
            self.room.queue.push(work, rank, tenant)?;
            let gone = |error| Err(StoreError::InDoubt(Box::new(error)));
            answer.await.unwrap_or_else(gone)
        })
    }

    /// Reads one state of everything.
    fn read<I: Send + Sync + 'static, O: Send + 'static>(
        &self,
        input: I,
        read: Read<I, O>,
    ) -> BoxFuture<'_, Result<O, StoreError>> {
        Box::pin(async move { self.readers.read(&self.room, &input, read).await })
    }
}

impl Drop for PostgresStore {
    fn drop(&mut self) {
        self.shut();
    }
}
