//! A server with an endpoint for each fault, and what became of the one message that all of them get.

use std::{collections::HashMap, fmt::Write as _, time::Duration};

use serde_json::Value;

use crate::{
    cli_support::{Server, posthaste},
    receiver::{Act, Receiver},
};

/// The time-out of every endpoint here, in milliseconds.
pub(crate) const TIMEOUT_MS: u64 = 6_000;

/// What a machine under load may add to a deadline before the test says that a slot outlived it.
const SLACK_MS: u64 = 10_000;

/// The first delay of every endpoint here, in milliseconds; jitter adds at most a tenth.
pub(crate) const OWN_DELAY_MS: i64 = 600_000;

/// One fault.
pub(crate) struct Fault {
    /// The endpoint's id, and the path that it asks for.
    pub(crate) id: String,
    /// What the receiver does; `None`: `url` says where else to go.
    pub(crate) script: Option<Vec<Act>>,
    /// Where to send, if not to the receiver.
    pub(crate) url: Option<String>,
}

impl Fault {
    pub(crate) fn new(id: impl Into<String>, script: Vec<Act>) -> Self {
        Self { id: id.into(), script: Some(script), url: None }
    }

    /// An answer with this status and these headers, each with its line end, and nothing more.
    pub(crate) fn answer(id: impl Into<String>, status: u16, headers: &str, body: &str) -> Self {
        let length = body.len();
        let text = format!("HTTP/1.1 {status} X\r\n{headers}content-length: {length}\r\n\r\n{body}");
        Self::new(id, vec![Act::Write(text.into_bytes()), Act::Hang])
    }
}

/// A server that has sent the message to every endpoint once.
pub(crate) struct Stage {
    pub(crate) server: Server,
    pub(crate) receiver: Receiver,
    jobs: HashMap<String, Value>,
    _folder: tempfile::TempDir,
}

impl Stage {
    /// Plays all faults at once, and waits until each endpoint's first attempt has ended.
    #[allow(clippy::needless_pass_by_value)] // nobody needs them afterwards
    pub(crate) fn play(faults: Vec<Fault>) -> Self {
        assert!(faults.len() <= 100, "all are listed in one answer");
        let scripts = faults.iter().filter_map(|fault| Some((fault.id.clone(), fault.script.clone()?)));
        let receiver = Receiver::start(scripts.collect());
        let folder = tempfile::tempdir().unwrap();
        let mut text = "[outbound]\nprivate_networks = [\"127.0.0.0/8\"]\nallow_http = true\n".to_owned();
        for (number, fault) in faults.iter().enumerate() {
            // An address for each, so that none gets a connection that another one has made useless.
            let here = || format!("http://127.0.1.{}:{}/{}", number + 1, receiver.address.port(), fault.id);
            let url = fault.url.clone().unwrap_or_else(here);
            write!(
                text,
                "[[endpoint]]\nid = \"{}\"\nurl = \"{url}\"\ntypes = [\"*\"]\ntimeout = \"{TIMEOUT_MS}ms\"\nidempotent = true\n\
                 [endpoint.retry]\ndelays = [\"{OWN_DELAY_MS}ms\"]\n",
                fault.id
            )
            .unwrap();
        }
        std::fs::write(folder.path().join("posthaste.toml"), text).unwrap();
        let mut command = posthaste(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
        let server = Server::start_as(folder.path(), &mut command);
        // More than a segment of body, so that there is something to leave unread.
        std::fs::write(folder.path().join("data.json"), format!("\"{}\"", "x".repeat(4_096))).unwrap();
        server.cli(&["publish", "--key", "hostile:1", "--type", "hostile", "--data", "@data.json"]);
        let jobs = wait(&server, faults.len());
        Self { server, receiver, jobs, _folder: folder }
    }

    /// The job of one endpoint.
    pub(crate) fn job(&self, id: &str) -> &Value {
        &self.jobs[id]
    }

    /// Its first attempt.
    pub(crate) fn attempt(&self, id: &str) -> &Value {
        &self.job(id)["attempts"][0]
    }

    /// Checks one endpoint's first attempt, which is stored whole.
    #[track_caller]
    pub(crate) fn check(&self, id: &str, expected: &Expected) {
        let (job, attempt) = (self.job(id), self.attempt(id));
        let got = (
            job["state"].as_str(),
            attempt["class"].as_str(),
            attempt["effect"].as_str(),
            attempt["status"].as_u64(),
        );
        let wanted = (Some(expected.state), expected.class, Some(expected.effect), expected.status);
        assert_eq!(wanted, got, "{id}: {attempt:#}");
        assert!(attempt["finished_at"].is_string() && attempt["worker"].is_string(), "{id}: {attempt:#}");
        if expected.class.is_some() {
            assert!(attempt["policy"].as_str().is_some_and(|policy| !policy.is_empty()), "{id}: {attempt:#}");
            assert!(job["budgets"].as_str().unwrap().contains(" of 2 failures"), "{id}: {job:#}");
        }
        let took = attempt["duration_ms"].as_u64().unwrap();
        assert!(took <= TIMEOUT_MS + SLACK_MS, "{id} held its slot for {took} ms");
    }

    /// How long after its end the next attempt may start, in milliseconds.
    pub(crate) fn wait_ms(&self, id: &str) -> i64 {
        let at = |name: &str| -> i64 {
            let text =
                self.attempt(id)[name].as_str().unwrap_or_else(|| panic!("{id}: {:#}", self.attempt(id)));
            text.parse::<jiff::Timestamp>().unwrap().as_millisecond()
        };
        at("next_at") - at("finished_at")
    }
}

/// What an attempt must show.
pub(crate) struct Expected {
    pub(crate) state: &'static str,
    pub(crate) class: Option<&'static str>,
    pub(crate) effect: &'static str,
    pub(crate) status: Option<u64>,
}

/// Taken.
pub(crate) fn taken(status: u64) -> Expected {
    Expected { state: "committed", class: None, effect: "reported", status: Some(status) }
}

/// Tried again.
pub(crate) fn again(class: &'static str, effect: &'static str, status: Option<u64>) -> Expected {
    Expected { state: "retryable", class: Some(class), effect, status }
}

/// Given up at once.
pub(crate) fn given_up(status: u64) -> Expected {
    Expected { state: "dead_lettered", class: Some("client_error"), effect: "none", status: Some(status) }
}

/// Every job, by destination, once each has ended an attempt.
#[allow(clippy::disallowed_methods)] // another process is looked at, now and then
fn wait(server: &Server, count: usize) -> HashMap<String, Value> {
    // A bound, not a pace: the receivers hang for as long as they are let.
    for _ in 0..600 {
        let timeline = server.json(&["timeline", "hostile:1"]);
        let jobs = timeline["jobs"].as_array().unwrap();
        let ended = |job: &&Value| job["state"] != "leased" && job["attempts"][0]["finished_at"].is_string();
        if jobs.len() == count && jobs.iter().filter(ended).count() == count {
            let by_id = |job: &Value| (job["destination"].as_str().unwrap().to_owned(), job.clone());
            return jobs.iter().map(by_id).collect();
        }
        std::thread::sleep(Duration::from_millis(100));
    }
    panic!("some attempt does not end: {:#}", server.json(&["timeline", "hostile:1"]));
}
