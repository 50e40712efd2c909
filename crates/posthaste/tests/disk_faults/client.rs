//! A client that keeps account of what it was promised.

use std::{
    collections::BTreeSet,
    net::SocketAddr,
    time::{Duration, Instant},
};

use serde_json::{Value, json};

use crate::{
    cli_support::{KEY, Server},
    server::{Answer, Connection, github_headers},
};

/// How long the server may take to work again; the last of its own waits is 5 s.
const RECOVERY: Duration = Duration::from_secs(30);

/// A pause between two looks.
const LOOK_AGAIN: Duration = Duration::from_millis(20);

pub(crate) struct Client {
    address: SocketAddr,
    connection: Connection,
    /// Keys whose messages were acknowledged.
    pub(crate) acknowledged: BTreeSet<String>,
    /// Keys whose messages were refused, and may or may not be there.
    pub(crate) refused: BTreeSet<String>,
    next: u32,
}

impl Client {
    pub(crate) async fn of(server: &Server) -> Self {
        let address = server.url.strip_prefix("http://").unwrap().parse().unwrap();
        let connection = Connection::to(address, KEY).await;
        Self { address, connection, acknowledged: BTreeSet::new(), refused: BTreeSet::new(), next: 0 }
    }

    /// The same client after a restart of the server.
    pub(crate) async fn moved_to(self, server: &Server) -> Self {
        let new = Self::of(server).await;
        Self { address: new.address, connection: new.connection, ..self }
    }

    pub(crate) async fn get(&mut self, path: &str) -> Answer {
        self.connection.call("GET", path, &Value::Null).await
    }

    /// Another connection, for what is to wait meanwhile.
    pub(crate) async fn again(&self) -> Connection {
        Connection::to(self.address, KEY).await
    }

    pub(crate) async fn ready(&mut self) -> u16 {
        self.get("/readyz").await.status
    }

    /// Waits until the server says that it works, or that it doesn't.
    pub(crate) async fn wait_until_ready_is(&mut self, status: u16) {
        let begun = Instant::now();
        while self.ready().await != status {
            assert!(begun.elapsed() < RECOVERY, "/readyz is never {status}");
            tokio::time::sleep(LOOK_AGAIN).await;
        }
    }

    /// A name for the next message.
    fn name(&mut self) -> String {
        self.next += 1;
        format!("m{}", self.next)
    }

    async fn publish_as(&mut self, key: &str, bytes: usize) -> Answer {
        let message = json!({"key": key, "payload": "x".repeat(bytes), "to": {"queue": "carts"}});
        self.connection.call("POST", "/v1/messages", &message).await
    }

    async fn deliver_as(&mut self, delivery: &str) -> Answer {
        let body = json!({ "delivery": delivery }).to_string();
        let headers = github_headers(delivery, body.as_bytes());
        self.connection.send("POST", "/in/github", &headers, body.as_bytes()).await
    }

    /// Keeps account of an answer: an acknowledgement, or a refusal in order. True if it is one.
    fn account(&mut self, key: String, answer: &Answer) -> bool {
        if [200, 202].contains(&answer.status) {
            self.refused.remove(&key);
            self.acknowledged.insert(key);
            return true;
        }
        assert_refused(answer);
        self.refused.insert(key);
        false
    }

    /// A message of so many bytes; true if it is acknowledged.
    pub(crate) async fn publish(&mut self, bytes: usize) -> bool {
        let key = self.name();
        let answer = self.publish_as(&key, bytes).await;
        self.account(key, &answer)
    }

    /// A signed delivery; true if it is acknowledged.
    pub(crate) async fn deliver(&mut self) -> bool {
        let name = self.name();
        let answer = self.deliver_as(&name).await;
        self.account(format!("github:{name}"), &answer)
    }

    /// Messages and deliveries, all acknowledged.
    pub(crate) async fn must_be_acknowledged(&mut self, times: u32) {
        for _ in 0..times {
            assert!(self.publish(10).await && self.deliver().await);
        }
    }

    /// Takes a job; None if it is refused.
    pub(crate) async fn consume(&mut self) -> Option<Value> {
        let answer = self.connection.call("POST", "/v1/queue/consume", &json!({"queue": "carts"})).await;
        if answer.status == 200 {
            return Some(answer.json()["jobs"][0].clone());
        }
        assert_refused(&answer);
        None
    }

    /// Reports a job as done; false if it is refused.
    pub(crate) async fn ack(&mut self, job: &Value) -> bool {
        let ack = json!({"job": job["id"], "fence": job["fence"]});
        let answer = self.connection.call("POST", "/v1/queue/ack", &ack).await;
        if answer.status != 200 {
            assert_refused(&answer);
        }
        answer.status == 200
    }

    /// Sends what was refused again, as its sender would, and then once more: done once, whatever became of it.
    pub(crate) async fn send_the_refused_again(&mut self) {
        for key in self.refused.clone() {
            for statuses in [&[200, 202][..], &[200]] {
                let answer = match key.strip_prefix("github:") {
                    Some(delivery) => self.deliver_as(delivery).await,
                    None => self.publish_as(&key, REFUSED_BYTES).await,
                };
                assert!(statuses.contains(&answer.status), "{key}: {}", answer.json());
                self.account(key.clone(), &answer);
            }
        }
        assert!(self.refused.is_empty());
    }

    /// How many of those that were refused are there all the same.
    pub(crate) async fn refused_and_there(&mut self) -> usize {
        let mut there = 0;
        for key in self.refused.clone() {
            there += usize::from(self.get(&format!("/v1/timeline?key={key}")).await.status == 200);
        }
        there
    }

    /// All that was acknowledged is there, once.
    pub(crate) async fn find_all(&mut self) {
        for key in self.acknowledged.clone() {
            let answer = self.get(&format!("/v1/timeline?key={key}")).await;
            assert_eq!(
                200,
                answer.status,
                "{key} was acknowledged: {}",
                String::from_utf8_lossy(&answer.body)
            );
            assert_eq!(1, answer.json()["jobs"].as_array().unwrap().len(), "{key} has one job");
        }
    }
}

/// How large messages are that are sent while the disk fails.
pub(crate) const REFUSED_BYTES: usize = 3_000;

/// "Come back later", in the form that machines read.
pub(crate) fn assert_refused(answer: &Answer) {
    let text = String::from_utf8_lossy(&answer.body);
    let header = |wanted: &str| {
        answer.headers.iter().find(|(name, _)| name == wanted).map(|(_, value)| value.as_str())
    };
    assert_eq!(503, answer.status, "{text}");
    assert_eq!(Some("application/problem+json"), header("content-type"), "{text}");
    let after: u64 = header("retry-after").expect("Retry-After").parse().unwrap();
    assert!((1..=60).contains(&after), "{after}");
    assert!(["store_unavailable", "overloaded"].contains(&answer.json()["code"].as_str().unwrap()), "{text}");
}
