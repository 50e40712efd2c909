//! What clients send: everything whose answer rests on rows.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex},
};

use serde_json::{Value, json};
use tokio::sync::Barrier;

use crate::{
    checker::{Answered, mark},
    cli_support::KEY,
    server::{Answer, Connection, github_headers},
};

const CLIENTS: u32 = 6;

/// Marks that one client may use in one round.
const MARKS: u32 = 16;

struct Client {
    connection: Connection,
    answered: Vec<Answered>,
    next_mark: u32,
}

impl Client {
    fn new_mark(&mut self) -> u32 {
        self.next_mark += 1;
        self.next_mark
    }

    async fn call(&mut self, path: &str, body: &Value, rests_on: u32, statuses: &[u16]) -> Answer {
        let answer = self.connection.call("POST", path, body).await;
        self.note(&answer, rests_on, statuses);
        answer
    }

    fn note(&mut self, answer: &Answer, rests_on: u32, statuses: &[u16]) {
        assert!(statuses.contains(&answer.status), "{}", String::from_utf8_lossy(&answer.body));
        let port = self.connection.local_port();
        self.answered.push(Answered { port, status: answer.status, rests_on });
    }

    /// A message, its duplicate, and another message under its key.
    async fn publish(&mut self) {
        let number = self.new_mark();
        let message =
            |amount| json!({"key": mark(number), "payload": {"amount": amount}, "to": {"queue": "carts"}});
        self.call("/v1/messages", &message(1), number, &[202]).await;
        self.call("/v1/messages", &message(1), number, &[200]).await;
        self.call("/v1/messages", &message(2), number, &[422]).await;
    }

    /// A signed delivery and its duplicate.
    async fn deliver(&mut self) {
        let number = self.new_mark();
        let body = format!("{{\"commit\":\"{number}\"}}");
        let headers = github_headers(&mark(number), body.as_bytes());
        for status in [202, 200] {
            let answer = self.connection.send("POST", "/in/github", &headers, body.as_bytes()).await;
            self.note(&answer, number, &[status]);
        }
    }

    /// The mark of a lease, and the job.
    async fn lease(&mut self) -> (u32, Value) {
        let lease = self.new_mark();
        let ask = json!({"queue": "carts", "worker": mark(lease), "wait": "5s"});
        let leased = self.call("/v1/queue/consume", &ask, lease, &[200]).await.json();
        let job = &leased["jobs"][0];
        assert!(job.is_object(), "more is published than consumed: {leased}");
        (lease, job.clone())
    }

    /// A lease; a report with a fence that nobody has, the worker's own, again, and another that contradicts it.
    async fn work(&mut self) {
        let (lease, job) = self.lease().await;
        let forged = json!({"job": job["id"], "fence": "1.2"});
        self.call("/v1/queue/ack", &forged, lease, &[409]).await;
        let extension = self.new_mark();
        let extend = json!({"job": job["id"], "fence": job["fence"], "checkpoint": mark(extension)});
        self.call("/v1/queue/extend", &extend, extension, &[200]).await;
        let report = self.new_mark();
        let ack = json!({"job": job["id"], "fence": job["fence"], "result": mark(report)});
        self.call("/v1/queue/ack", &ack, report, &[200]).await;
        self.call("/v1/queue/ack", &ack, report, &[200]).await;
        let reject = json!({"job": job["id"], "fence": job["fence"], "class": "timeout"});
        self.call("/v1/queue/reject", &reject, report, &[409]).await;
    }

    /// The same key as everybody else at the same moment, for one of two messages: of those that come late, some are
    /// duplicates and some are refused, because of a row that may not be durable yet.
    async fn race_to_publish(&mut self, number: u32, client: u32) {
        let message = json!({"key": mark(number), "payload": client % 2, "to": {"queue": "carts"}});
        self.call("/v1/messages", &message, number, &[202, 200, 422]).await;
    }

    /// The same job as everybody else at the same moment, done or failed: one report is taken.
    async fn race_to_report(&mut self, number: u32, client: u32, job: &Value) {
        let report = |more: Value| {
            let mut report = json!({"job": job["id"], "fence": job["fence"]});
            report.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            report
        };
        if client.is_multiple_of(2) {
            let ack = report(json!({"result": mark(number)}));
            self.call("/v1/queue/ack", &ack, number, &[200, 409]).await;
        } else {
            let reject = report(json!({"class": "timeout", "message": mark(number)}));
            self.call("/v1/queue/reject", &reject, number, &[200, 409]).await;
        }
    }
}

/// Sends, from several connections at once, and gives all that was answered.
pub(crate) async fn send(address: SocketAddr, rounds: u32) -> Vec<Answered> {
    let together = Arc::new(Barrier::new(CLIENTS as usize));
    let shared_job = Arc::new(Mutex::new(Value::Null));
    let clients = (1..=CLIENTS).map(|client| {
        let (together, shared_job) = (Arc::clone(&together), Arc::clone(&shared_job));
        tokio::spawn(async move {
            let connection = Connection::to(address, KEY).await;
            let mut this = Client { connection, answered: Vec::new(), next_mark: client * rounds * MARKS };
            for round in 0..rounds {
                this.publish().await;
                this.deliver().await;
                this.work().await;
                if client == 1 {
                    *shared_job.lock().unwrap() = this.lease().await.1;
                }
                together.wait().await;
                let job = shared_job.lock().unwrap().clone();
                this.race_to_publish(2 * round, client).await;
                this.race_to_report(2 * round + 1, client, &job).await;
            }
            this.answered
        })
    });
    let clients: Vec<_> = clients.collect();
    let mut answered = Vec::new();
    for client in clients {
        answered.extend(client.await.unwrap());
    }
    answered
}
