//! Stores, each in a schema of its own.

use std::sync::{
    Arc,
    atomic::{AtomicUsize, Ordering},
};

use parking_lot::Mutex;
use posthaste_store::{
    Clock,
    postgres::{PostgresOptions, PostgresStore},
};
use posthaste_testkit::{ManualClock, PostgresServer, store_suite::Harness};
use tokio_postgres::{Client, NoTls};

/// Schemas of stores that are gone.
static GONE: Mutex<Vec<(String, String)>> = Mutex::new(Vec::new());

/// A schema that nobody else uses, dropped some time after this.
pub(crate) struct Scratch {
    url: String,
    pub(crate) schema: String,
}

impl Scratch {
    pub(crate) fn new(server: &PostgresServer) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let count = COUNT.fetch_add(1, Ordering::Relaxed);
        Self { url: server.url(), schema: format!("t{}_{count}", std::process::id()) }
    }

    pub(crate) fn options(&self, clock: Option<Arc<ManualClock>>) -> PostgresOptions {
        let clock = clock.map(|clock| clock as Arc<dyn Clock>);
        let mut options = PostgresOptions::new(self.url.clone(), clock);
        options.schema = self.schema.clone().into();
        options
    }

    pub(crate) async fn open(&self, clock: Option<Arc<ManualClock>>) -> PostgresStore {
        drop_gone().await;
        PostgresStore::open(self.options(clock)).await.unwrap_or_else(|error| panic!("{error:?}"))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        GONE.lock().push((std::mem::take(&mut self.url), std::mem::take(&mut self.schema)));
    }
}

async fn drop_gone() {
    let gone = std::mem::take(&mut *GONE.lock());
    for (url, schema) in gone {
        let client = connect(&url).await;
        // Its server may have gone too, or its store isn't quite at its end: nobody minds.
        let _ = client.batch_execute(&format!("DROP SCHEMA IF EXISTS {schema} CASCADE")).await;
    }
}

pub(crate) async fn connect(url: &str) -> Client {
    let (client, connection) = tokio_postgres::connect(url, NoTls).await.unwrap();
    tokio::spawn(async move { drop(connection.await) });
    client
}

/// An empty store of the server that all tests share.
pub(crate) async fn harness(clock: Arc<ManualClock>) -> Harness {
    let scratch = Scratch::new(PostgresServer::shared());
    // A schema of an earlier process of the same number.
    connect(&scratch.url)
        .await
        .batch_execute(&format!("DROP SCHEMA IF EXISTS {} CASCADE", scratch.schema))
        .await
        .unwrap();
    let store = scratch.open(Some(clock)).await;
    Harness { store: Arc::new(store), keep: Some(Box::new(scratch)) }
}
