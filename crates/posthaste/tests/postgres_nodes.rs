//! Several nodes on one PostgreSQL server, in this process: one claim each, one lease each, and the outbox of applications.
//! Rows A5, B3, B10, D5.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

use std::{collections::BTreeMap, time::Duration};

use posthaste::{
    config::{self, Sources},
    serve::{self, Running},
};
use posthaste_core::DurationMs;
use posthaste_testkit::PostgresServer;
use secrecy::ExposeSecret as _;
use serde_json::{Value, json};
use tokio_postgres::{Client, NoTls};

use crate::server::Connection;

#[path = "server/mod.rs"]
mod server;

const MASTER_KEY: &str = "AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA=";

/// A machine under load, not a wait.
const PATIENCE: Duration = Duration::from_mins(1);

async fn node(database: &PostgresServer, folder: &tempfile::TempDir) -> Running {
    let file = folder.path().join("posthaste.toml");
    let key = folder.path().join("master");
    std::fs::write(&key, MASTER_KEY).unwrap();
    let text = format!(
        "store = \"{}\"\nlisten = \"127.0.0.1:0\"\nmaster_key = \"file:{}\"\n[[queue]]\nname = \"carts\"\n",
        database.url(),
        key.display(),
    );
    std::fs::write(&file, text).unwrap();
    let sources = Sources { file: Some(file), flags: Vec::new(), variables: Vec::new() };
    let config = config::load(&sources).unwrap_or_else(|faults| panic!("{faults}"));
    serve::start(&config).await.unwrap_or_else(|error| panic!("{error:#}"))
}

/// Two nodes on a server of their own, and their admin key.
struct Nodes {
    nodes: [Running; 2],
    key: String,
    database: PostgresServer,
    _folder: tempfile::TempDir,
}

impl Nodes {
    async fn start() -> Self {
        let database = PostgresServer::start();
        let folder = tempfile::tempdir().unwrap();
        let first = node(&database, &folder).await;
        let key = first.admin_key.as_ref().unwrap().expose_secret().to_owned();
        let second = node(&database, &folder).await;
        assert!(second.admin_key.is_none(), "the second node finds the first one's store");
        Self { nodes: [first, second], key, database, _folder: folder }
    }

    async fn connect(&self, node: usize) -> Connection {
        Connection::to(self.nodes[node].address, &self.key).await
    }

    async fn sql(&self) -> Client {
        let (client, connection) = tokio_postgres::connect(&self.database.url(), NoTls).await.unwrap();
        tokio::spawn(connection);
        client
    }

    async fn stop(self) {
        for node in self.nodes {
            node.stop(DurationMs::from_secs(5)).await;
        }
    }
}

/// Asks until the answer fits.
async fn until<T>(mut ask: impl AsyncFnMut() -> Option<T>) -> T {
    let found = async {
        loop {
            if let Some(found) = ask().await {
                return found;
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    };
    tokio::time::timeout(PATIENCE, found).await.expect("it never came")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a5_two_nodes_claim_each_delivery_once_and_hand_out_each_job_once() {
    const KEYS: usize = 200;
    let nodes = Nodes::start().await;
    let publish = async |node: usize| {
        let mut connection = nodes.connect(node).await;
        let mut answers = Vec::new();
        for number in 0..KEYS {
            let body = json!({"queue": "carts", "key": format!("race:{number}"), "payload": number});
            answers.push(connection.call("POST", "/v1/queue/publish", &body).await);
        }
        answers
    };
    let (one, other) = tokio::join!(publish(0), publish(1));
    for (one, other) in one.iter().zip(&other) {
        let mut statuses = [one.status, other.status];
        statuses.sort_unstable();
        assert_eq!([200, 202], statuses, "{one:?} {other:?}");
        assert_eq!(one.json()["message"]["id"], other.json()["message"]["id"]);
    }
    let work = async |node: usize| {
        let mut connection = nodes.connect(node).await;
        let mut got: BTreeMap<String, usize> = BTreeMap::new();
        loop {
            let take = json!({"queue": "carts", "max": 7, "worker": format!("w-{node}")});
            let taken = connection.call("POST", "/v1/queue/consume", &take).await.json();
            let jobs = taken["jobs"].as_array().unwrap();
            if jobs.is_empty() {
                return got;
            }
            for job in jobs {
                *got.entry(job["key"].as_str().unwrap().to_owned()).or_default() += 1;
            }
            let reports: Vec<Value> =
                jobs.iter().map(|job| json!({"job": job["id"], "fence": job["fence"]})).collect();
            let told = connection.call("POST", "/v1/queue/ack", &json!({"jobs": reports})).await.json();
            assert!(told["results"].as_array().unwrap().iter().all(|one| one["status"] == 200), "{told}");
        }
    };
    let (one, other) = tokio::join!(work(0), work(1));
    let mut all = one;
    for (key, count) in other {
        *all.entry(key).or_default() += count;
    }
    assert_eq!((KEYS, KEYS), (all.len(), all.values().sum()), "each job is handed out once");
    nodes.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_b10_what_one_node_changes_the_other_knows() {
    let nodes = Nodes::start().await;
    let (mut one, mut other) = (nodes.connect(0).await, nodes.connect(1).await);
    let made = one.call("POST", "/v1/queues", &json!({"name": "mails"})).await;
    assert_eq!(201, made.status, "{made:?}");
    let publish = json!({"queue": "mails", "key": "m-1", "payload": 1});
    until(async || (other.call("POST", "/v1/queue/publish", &publish).await.status == 202).then_some(()))
        .await;
    let why = json!({"queue": "mails", "reason": "the mail server is down"});
    assert_eq!(200, one.call("POST", "/v1/pause", &why).await.status);
    let take = json!({"queue": "mails", "worker": "w"});
    let taken = other.call("POST", "/v1/queue/consume", &take).await.json();
    assert_eq!(json!([]), taken["jobs"], "the pause is in the lane's row");
    assert_eq!(200, one.call("POST", "/v1/resume", &why).await.status);
    until(async || {
        let taken = other.call("POST", "/v1/queue/consume", &take).await.json();
        taken["jobs"].as_array().is_some_and(|jobs| jobs.len() == 1).then_some(())
    })
    .await;
    let seen = until(async || {
        let overview = one.call("GET", "/v1/overview", &Value::Null).await.json();
        let seen = overview["nodes"].as_array().unwrap().clone();
        (seen.len() == 2).then_some(seen)
    })
    .await;
    assert!(seen.iter().all(|node| node["skew_ms"].as_i64().unwrap().abs() < 60_000), "{seen:?}");
    nodes.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_d5_the_outbox_takes_what_is_there_however_late_it_commits() {
    let nodes = Nodes::start().await;
    let mut api = nodes.connect(0).await;
    let (mut late, early) = (nodes.sql().await, nodes.sql().await);
    let publish = |key: &str| {
        let message = json!({"to": {"queue": "carts"}, "key": key, "payload": {"of": key}});
        format!("SELECT posthaste.publish('{message}')")
    };
    let open = late.transaction().await.unwrap();
    open.batch_execute(&publish("order-1")).await.unwrap();
    // Its row has a later number and commits first.
    early.batch_execute(&publish("order-2")).await.unwrap();
    early.batch_execute(&publish("order-2")).await.expect("a duplicate never raises");
    let there = async |api: &mut Connection, key: &str| {
        api.call("GET", &format!("/v1/messages?key={key}"), &Value::Null).await.status == 200
    };
    until(async || there(&mut api, "order-2").await.then_some(())).await;
    assert!(!there(&mut api, "order-1").await, "it is not committed");
    open.commit().await.unwrap();
    until(async || there(&mut api, "order-1").await.then_some(())).await;
    let astray = r#"SELECT posthaste.publish('{"to": {"queue": "nowhere"}, "key": "k", "payload": 1}')"#;
    early.batch_execute(astray).await.unwrap();
    let rest = "SELECT count(*), min(problem) FROM posthaste.outbox";
    let problem: String = until(async || {
        let row = early.query_one(rest, &[]).await.unwrap();
        (row.get::<_, i64>(0) == 1).then(|| row.get::<_, Option<String>>(1)).flatten()
    })
    .await;
    assert!(problem.contains("nowhere"), "{problem}");
    let jobs = api.call("GET", "/v1/jobs?limit=100", &Value::Null).await.json();
    assert_eq!(2, jobs["data"].as_array().unwrap().len(), "{jobs}");
    nodes.stop().await;
}
