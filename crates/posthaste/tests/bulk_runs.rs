//! Bulk runs as an operator meets them: ordered and watched on the command line, and killed in the middle. Rows B8, B9.

#![allow(clippy::unwrap_used)]

mod cli_support;
mod server;

use std::{
    net::SocketAddr,
    path::Path,
    time::{Duration, Instant},
};

use cli_support::{Ended, Server, posthaste, run};
use serde_json::{Value, json};
use server::Connection;

const CONFIG: &str = "[[queue]]\nname = \"carts\"\n";

/// Published and dead-lettered.
const JOBS: usize = 120;

fn folder() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("posthaste.toml"), CONFIG).unwrap();
    folder
}

fn serve(folder: &Path, faults: &str) -> Server {
    let mut command = posthaste(folder, &["serve", "--listen", "127.0.0.1:0"]);
    Server::start_as(folder, command.env("POSTHASTE_FAULTS", faults))
}

fn cli(server: &Server, arguments: &[&str]) -> Ended {
    run(&mut server.command(arguments))
}

/// Publishes jobs, and fails them for good.
async fn bury(server: &Server, count: usize) {
    let address: SocketAddr = server.url.strip_prefix("http://").unwrap().parse().unwrap();
    let mut worker = Connection::to(address, &server.key).await;
    let messages: Vec<Value> = (0..count)
        .map(|number| json!({"key": format!("cart:{number}"), "payload": {}, "to": {"queue": "carts"}}))
        .collect();
    let published = worker.call("POST", "/v1/messages/batch", &json!({ "messages": messages })).await;
    assert!(published.status < 300, "{published:?}");
    let mut left = count;
    while left > 0 {
        let take = json!({"queue": "carts", "max": 100, "worker": "w-1"});
        let taken = worker.call("POST", "/v1/queue/consume", &take).await.json();
        let report =
            |job: &Value| json!({"job": job["id"], "fence": job["fence"], "effect": "none", "retry": false});
        let reports: Vec<Value> = taken["jobs"].as_array().unwrap().iter().map(report).collect();
        left -= reports.len();
        let answer = worker.call("POST", "/v1/queue/reject", &json!({ "jobs": reports })).await;
        assert_eq!(200, answer.status, "{answer:?}");
    }
}

/// How often each job was replayed, by its timeline.
fn replays(server: &Server) -> Vec<usize> {
    let count = |number: usize| {
        let timeline = server.json(&["timeline", &format!("cart:{number}")]);
        let entries = timeline["entries"].as_array().unwrap().iter();
        entries.filter(|entry| entry["stage"] == "replayed").count()
    };
    (0..JOBS).map(count).collect()
}

/// The one run, once it has ended. Bounded.
fn ended(server: &Server, id: &str) -> Value {
    let begun = Instant::now();
    loop {
        let run = server.json(&["jobs", "runs", "show", id]);
        if run["state"] != "running" {
            return run;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "it never ends: {run}");
    }
}

#[cfg(feature = "faults")]
#[tokio::test]
async fn r_b9_a_run_that_is_killed_goes_on_and_replays_each_job_once() {
    for faults in ["kill:mid_bulk:1", "kill:mid_bulk:4", "kill:before_commit:9", "kill:after_commit:9"] {
        let folder = folder();
        let server = serve(folder.path(), "");
        bury(&server, JOBS).await;
        server.stop();
        let server = serve(folder.path(), faults);
        let order = ["jobs", "replay", "--all", "--reason", "mended", "--idempotency-key", "n", "--detach"];
        // The server ends in the middle; perhaps before it answers.
        let begun = Instant::now();
        while cli(&server, &["jobs", "runs", "list"]).code == Some(0) {
            cli(&server, &order);
            assert!(begun.elapsed() < Duration::from_mins(1), "{faults}: it is never reached");
        }
        drop(server);
        let server = serve(folder.path(), "");
        // The same request again finds the run, or begins it if it was never committed.
        let run = server.json(&order);
        let run = ended(&server, run["id"].as_str().unwrap());
        assert_eq!(
            ("done", JOBS as u64),
            (run["state"].as_str().unwrap(), run["counts"]["done"].as_u64().unwrap()),
            "{faults}: {run}"
        );
        assert_eq!(vec![1; JOBS], replays(&server), "{faults}");
        assert_eq!(1, server.json(&["jobs", "runs", "list"])["data"].as_array().unwrap().len(), "{faults}");
        server.stop();
    }
}

#[tokio::test]
async fn r_b9_an_operator_counts_replays_watches_and_stops_from_the_command_line() {
    let folder = folder();
    let server = serve(folder.path(), "");
    bury(&server, JOBS).await;
    let neither = cli(&server, &["jobs", "replay", "--reason", "r"]);
    assert_eq!(Some(2), neither.code);
    assert!(neither.err.contains("which jobs?") && neither.err.contains("--dry-run"), "{}", neither.err);
    let both = cli(&server, &["jobs", "cancel", "job_1", "--all", "--reason", "r"]);
    assert_eq!(Some(2), both.code, "{}", both.err);
    let attempt = cli(&server, &["jobs", "replay", "--all", "--attempt", "1", "--reason", "r"]);
    assert_eq!(Some(2), attempt.code, "{}", attempt.err);
    let count = cli(&server, &["jobs", "replay", "--queue", "carts", "--dry-run", "--reason", "r"]);
    assert_eq!((Some(0), "120 jobs fit; nothing was changed\n"), (count.code, &*count.out), "{}", count.err);
    let slow = server.json(&["jobs", "replay", "--all", "--rate", "1/s", "--reason", "r", "--detach"]);
    let id = slow["id"].as_str().unwrap();
    assert_eq!("paused", server.json(&["jobs", "runs", "pause", id])["state"]);
    assert_eq!("running", server.json(&["jobs", "runs", "resume", id])["state"]);
    let stopped = cli(&server, &["jobs", "runs", "stop", id]);
    assert!(stopped.code == Some(1) && stopped.out.contains("stopped"), "{}{}", stopped.out, stopped.err);
    let rest = cli(&server, &["jobs", "replay", "--cause", "permanent", "--reason", "r"]);
    assert_eq!(Some(0), rest.code, "{}", rest.err);
    assert!(rest.out.contains(" done: ") && rest.out.contains(" replayed"), "{}", rest.out);
    assert!(rest.err.contains("jobs runs stop run_") && rest.err.contains(" of "), "progress: {}", rest.err);
    assert_eq!(vec![1; JOBS], replays(&server));
    let called_off = cli(&server, &["jobs", "cancel", "--key-prefix", "cart:11", "--reason", "sold"]);
    assert_eq!(Some(0), called_off.code, "{}", called_off.err);
    assert!(called_off.out.contains("11 cancelled"), "{}", called_off.out);
    let listed = cli(&server, &["jobs", "runs", "list"]);
    for word in ["replay", "cancel", "stopped", "done", "sold"] {
        assert!(listed.out.contains(word), "{word}: {}", listed.out);
    }
    server.stop();
}
