//! `jobs replay`, `resend` and `reconcile` as an operator types them: what was done, or why not and what to do next. Row B9.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod cli_support;
mod server;

use std::net::SocketAddr;

use cli_support::{Server, posthaste, run};
use serde_json::{Value, json};
use server::Connection;

/// A worker of the queue `carts`.
struct Worker(Connection);

impl Worker {
    async fn of(server: &Server) -> Self {
        let address: SocketAddr = server.url.strip_prefix("http://").unwrap().parse().unwrap();
        Self(Connection::to(address, &server.key).await)
    }

    async fn post(&mut self, path: &str, body: Value) -> Value {
        let answer = self.0.call("POST", path, &body).await;
        assert_eq!(200, answer.status, "{answer:?}");
        answer.json()
    }

    /// Takes the job that is due, and gives it with its fence.
    async fn take(&mut self) -> Value {
        let taken =
            self.post("/v1/queue/consume", json!({"queue": "carts", "worker": "w-1", "wait": "20s"})).await;
        taken["jobs"][0].clone()
    }

    /// Takes the job that is due and fails for good.
    async fn fail(&mut self, effect: &str) -> String {
        let job = self.take().await;
        let report = json!({"job": job["id"], "fence": job["fence"], "effect": effect, "retry": false});
        assert_eq!("dead_lettered", self.post("/v1/queue/reject", report).await["state"]);
        job["id"].as_str().unwrap().to_owned()
    }
}

/// Runs a command and checks its exit code; what it printed to standard output, then to standard error.
fn ends(server: &Server, code: i32, arguments: &[&str]) -> (String, String) {
    let ended = run(&mut server.command(arguments));
    assert_eq!(Some(code), ended.code, "{arguments:?}: {}{}", ended.out, ended.err);
    (ended.out, ended.err)
}

fn says(text: &str, parts: &[&str]) {
    for part in parts {
        assert!(text.contains(part), "{part:?} is not said: {text}");
    }
}

#[tokio::test]
async fn r_b9_an_operator_replays_and_resends_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let mut worker = Worker::of(&server).await;
    server.cli(&["queues", "add", "carts"]);
    server.cli(&["publish", "--key", "k:1", "--queue", "carts"]);
    let job = worker.fail("none").await;
    let job = job.as_str();

    // Nothing is sent round that nobody looked at.
    let (_, err) = ends(&server, 2, &["jobs", "replay", job, "--reason", "mended"]);
    says(&err, &["name the attempt", "dead_lettered (permanent), attempt 1", "--attempt 1", "jobs show"]);
    let (_, err) = ends(&server, 1, &["jobs", "replay", job, "--attempt", "0", "--reason", "mended"]);
    says(&err, &["(attempt_changed)", "the last attempt is 1 now", "--attempt 1"]);
    let (_, err) = ends(&server, 1, &["jobs", "resend", job, "--attempt", "1", "--reason", "mended"]);
    says(&err, &["(not_committed)", "jobs replay"]);
    let (_, err) = ends(&server, 1, &["jobs", "reconcile", job]);
    says(&err, &["(no_evidence)", "none: no attempt can have acted", "no entry"]);
    ends(&server, 2, &["jobs", "replay", job, "--attempt", "1"]);
    ends(&server, 2, &["jobs", "replay", job, "--attempt", "1", "--reason", "x", "--assume", "done"]);

    let (out, _) = ends(&server, 0, &["jobs", "replay", job, "--attempt", "1", "--reason", "mended"]);
    says(&out, &["replayed: attempt 2 is due"]);
    let (_, err) = ends(&server, 1, &["jobs", "replay", job, "--attempt", "1", "--reason", "other"]);
    says(&err, &["(not_dead_lettered)", "on its way by itself"]);
    let again = server.json(&["jobs", "replay", job, "--attempt", "1", "--reason", "mended"]);
    assert_eq!("replayed", again["result"], "the same again is harmless");

    let leased = worker.take().await;
    worker.post("/v1/queue/ack", json!({"job": job, "fence": leased["fence"]})).await;
    let (out, _) = ends(&server, 0, &["jobs", "reconcile", job]);
    says(&out, &["settled, nothing was sent", "a worker reported so"]);
    let (_, err) = ends(&server, 1, &["jobs", "replay", job, "--attempt", "2", "--reason", "x"]);
    says(&err, &["(not_dead_lettered)", "jobs resend"]);
    let (out, _) =
        ends(&server, 0, &["jobs", "resend", job, "--attempt", "2", "--reason", "their disk died"]);
    says(&out, &["resent: attempt 3 is due"]);

    let story = server.cli(&["timeline", "k:1"]);
    says(
        &story,
        &["replayed", "by admin", "reason: mended", "resent", "reason: their disk died", "dead_lettered"],
    );
    assert_eq!(Some(0), server.stop().code);
}

#[tokio::test]
async fn r_b9_what_may_have_happened_is_shown_with_the_next_step() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let mut worker = Worker::of(&server).await;
    server.cli(&["queues", "add", "carts"]);
    server.cli(&["publish", "--key", "k:1", "--queue", "carts"]);
    let job = worker.fail("possible").await;
    let replay = ["jobs", "replay", &job, "--attempt", "1", "--reason", "again"];
    let (out, err) = ends(&server, 1, &replay);
    says(&err, &["(outcome_unknown)", "possible, 0 to 1 times", "which proves nothing", "ask the receiver"]);
    says(&err, &["--assume not-done", "jobs cancel"]);
    says(&out, &["ATTEMPT", "MAY HAVE ACTED", "w-1"]);
    let (out, err) = ends(&server, 1, &[&replay[..], &["--json"]].concat());
    let problem: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(("outcome_unknown", ""), (problem["code"].as_str().unwrap(), err.as_str()));
    says(&server.cli(&["jobs", "show", &job]), &["possible, 0 to 1 times"]);
    let (out, _) = ends(&server, 0, &[&replay[..], &["--assume", "not-done"]].concat());
    says(&out, &["replayed"]);
    says(&server.cli(&["timeline", "k:1"]), &["vouched that it was not done"]);
    let url = server.url.clone();
    assert_eq!(Some(0), server.stop().code);
    let ended = run(posthaste(folder.path(), &replay).env("POSTHASTE_URL", url));
    assert_eq!(Some(3), ended.code, "{}", ended.err);
}

#[tokio::test]
async fn r_b10_an_operator_pauses_and_resumes_from_the_command_line() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    ends(&server, 0, &["queues", "add", "carts"]);
    let (out, _) = ends(&server, 0, &["pause", "--queue", "carts", "--reason", "the database is down"]);
    says(&out, &["paused queue carts", "the database is down"]);
    let (out, _) = ends(&server, 0, &["pause", "--queue", "carts", "--reason", "again"]);
    says(&out, &["queue carts is paused already", "the database is down"]);
    let (out, _) = ends(&server, 0, &["queues", "list"]);
    says(&out, &["paused: the database is down"]);
    let (out, _) = ends(&server, 0, &["resume", "--queue", "carts"]);
    says(&out, &["resumed queue carts"]);
    let (out, _) = ends(&server, 0, &["resume", "--queue", "carts", "--reason", "x"]);
    says(&out, &["queue carts is not paused"]);
    let (out, _) = ends(&server, 0, &["pause", "--scheduling", "--reason", "an incident", "--json"]);
    let answer: Value = serde_json::from_str(&out).unwrap();
    assert_eq!(
        ("paused", "scheduling"),
        (answer["result"].as_str().unwrap(), answer["scope"].as_str().unwrap(),)
    );
    let (out, _) = ends(&server, 0, &["resume", "--scheduling"]);
    says(&out, &["resumed scheduling"]);
    ends(&server, 2, &["pause", "--reason", "of nothing"]);
    ends(&server, 2, &["pause", "--scheduling", "--queue", "carts", "--reason", "of two"]);
    ends(&server, 2, &["pause", "--scheduling"]);
    ends(&server, 1, &["pause", "--endpoint", "carts", "--reason", "of another kind"]);
    ends(&server, 0, &["endpoints", "add", "fan", "--to-url", "https://example.com/hooks"]);
    let (out, _) = ends(&server, 0, &["endpoints", "enable", "fan"]);
    says(&out, &["endpoint fan is enabled already"]);
    ends(&server, 2, &["queues", "enable", "carts"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn r_c10_an_operator_says_what_they_found_out() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    server.cli(&["queues", "add", "carts"]);
    let mut worker = Worker::of(&server).await;
    server.cli(&["publish", "--key", "cart:1", "--queue", "carts"]);
    let job = worker.fail("possible").await;
    let (out, _) = ends(&server, 0, &["jobs", "show", &job]);
    says(&out, &["budgets", "0 of 25 failures, 0 of 5 lost leases"]);

    let verdict = |verdict| ["jobs", "reconcile", &job, "--verdict", verdict];
    let why = ["--attempt", "1", "--reason", "their support saw it"];
    let (_, err) = ends(&server, 2, &verdict("present"));
    says(&err, &["--reason"]);
    let (_, err) = ends(&server, 2, &[&verdict("present")[..], &why[2..]].concat());
    says(&err, &["name the attempt that you saw", "attempt 1"]);
    let (_, err) = ends(&server, 1, &[&verdict("absent")[..], &why].concat());
    says(&err, &["wrong_state"]);
    let (out, _) = ends(&server, 0, &[&verdict("present")[..], &why].concat());
    says(&out, &["settled, nothing was sent", "committed"]);
    says(&ends(&server, 0, &["timeline", "cart:1"]).0, &["their support saw it"]);
}

#[test]
fn r_b4_the_classification_of_one_destination_is_printed() {
    let folder = tempfile::tempdir().unwrap();
    let queue = "[[queue]]\nname = \"carts\"\n[queue.classify]\nclient_error = \"retry\"\n";
    std::fs::write(folder.path().join("posthaste.toml"), queue).unwrap();
    let server = Server::start(folder.path());
    let (out, _) = ends(&server, 0, &["classes", "--queue", "carts"]);
    says(&out, &["queue[carts].classify client_error = retry", "the classification"]);
    let json = server.json(&["classes", "--queue", "carts"]);
    assert_eq!(15, json["classes"].as_array().unwrap().len());
    ends(&server, 1, &["classes", "--endpoint", "carts"]);
}
