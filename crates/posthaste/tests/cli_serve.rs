//! The server as its operator meets it: started, asked, reloaded, stopped; over real HTTP.

#![allow(clippy::unwrap_used)]

mod cli_support;

use cli_support::{KEY, Server, posthaste, run};
use serde_json::Value;
use std::{
    io::{BufRead, BufReader, Read, Write},
    net::TcpListener,
    path::Path,
    sync::mpsc::{Receiver, channel},
    thread,
    time::Duration,
};

/// A receiver that answers each request by `status`, and tells what came.
struct Receiving {
    url: String,
    requests: Receiver<(Vec<String>, Vec<u8>)>,
}

impl Receiving {
    fn answering(status: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}/hook", listener.local_addr().unwrap());
        let (sender, requests) = channel();
        thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let mut stream = BufReader::new(stream);
                let head: Vec<String> = stream
                    .by_ref()
                    .lines()
                    .map_while(Result::ok)
                    .take_while(|line| !line.is_empty())
                    .collect();
                let length = head.iter().find_map(|line| line.strip_prefix("content-length: "));
                let mut body = vec![0; length.map_or(0, |length| length.parse().unwrap())];
                stream.read_exact(&mut body).unwrap();
                let answer = format!("HTTP/1.1 {status}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
                stream.get_mut().write_all(answer.as_bytes()).unwrap();
                if sender.send((head, body)).is_err() {
                    return;
                }
            }
        });
        Self { url, requests }
    }

    fn next(&self) -> (Vec<String>, Vec<u8>) {
        self.requests.recv_timeout(Duration::from_secs(30)).unwrap()
    }
}

fn write(folder: &Path, name: &str, text: &str) {
    std::fs::write(folder.join(name), text).unwrap();
}

#[test]
fn r_g1_one_binary_serves_publishes_and_tells_the_story() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start_new(folder.path());
    server.cli(&["queues", "add", "carts", "--lease", "30s", "--owner", "team-carts"]);
    let first = server.cli(&["publish", "--key", "cart:1:expire", "--queue", "carts", "--delay", "24h"]);
    assert!(first.starts_with("accepted  cart:1:expire  msg_"), "{first}");
    assert!(first.contains("scheduled") && first.contains("(in 23h)"), "{first}");
    let again = server.cli(&["publish", "--key", "cart:1:expire", "--queue", "carts", "--delay", "24h"]);
    assert!(again.starts_with("duplicate"), "{again}");

    let story = server.cli(&["timeline", "cart:1:expire"]);
    for text in ["came twice, claimed once", "accepted", "scheduled", "duplicate", "jobs cancel", "carts"] {
        assert!(story.contains(text), "{text}: {story}");
    }
    assert!(!story.contains('\u{1b}'), "no colours into a pipe");

    let jobs = server.json(&["jobs", "list", "--queue", "carts", "--state", "scheduled", "--oldest", "5"]);
    let id = jobs["data"][0]["id"].as_str().unwrap();
    assert!(server.cli(&["jobs", "list"]).contains(id));
    assert!(server.cli(&["jobs", "show", id]).contains("cart:1:expire:carts"));
    assert_eq!("cancelled\n", server.cli(&["jobs", "cancel", id, "--reason", "a test"]));
    assert_eq!("cancelled", server.json(&["jobs", "show", id])["state"]);

    let ended = run(&mut server.command(&["publish", "--key", "cart:1:expire", "--queue", "carts"]));
    assert_eq!(Some(1), ended.code);
    assert!(ended.err.contains("(key_reused)") && ended.err.contains("delay"), "{}", ended.err);
    let ended = run(&mut server.command(&["timeline", "nobody"]));
    assert_eq!((Some(1), true), (ended.code, ended.err.contains("(not_found)")), "{}", ended.err);
    let ended = run(server.command(&["jobs", "list"]).env_remove("POSTHASTE_API_KEY"));
    assert_eq!((Some(1), true), (ended.code, ended.err.contains("POSTHASTE_API_KEY")), "{}", ended.err);
    assert_eq!(Some(0), server.stop().code);
}

#[test]
fn r_g1_a_second_process_on_the_same_store_names_the_first() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let ended = run(&mut posthaste(folder.path(), &["serve", "--listen", "127.0.0.1:0"]));
    assert_eq!(Some(1), ended.code);
    let named = format!("in use by process {}", server.pid());
    assert!(ended.err.contains(&named), "{}", ended.err);
    assert_eq!(Some(0), server.stop().code);
}

#[test]
fn a_port_that_is_taken_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let ended = run(&mut posthaste(folder.path(), &["serve", "--listen", &address]));
    assert_eq!(Some(1), ended.code);
    assert!(ended.err.contains(&format!("can't listen on {address}")), "{}", ended.err);
}

#[test]
fn r_b15_a_signal_drains_and_work_is_there_after_the_restart() {
    let folder = tempfile::tempdir().unwrap();
    let mut server = Server::start(folder.path());
    server.cli(&["queues", "add", "carts"]);
    server.cli(&["publish", "--key", "k:1", "--queue", "carts"]);
    server.signal("INT");
    server.err.wait_for("draining");
    server.out.wait_for("\"stopped\"");
    let ended = server.stop_after_signal();
    assert_eq!(Some(0), ended.code, "{}", ended.err);
    let server = Server::start(folder.path());
    assert_eq!("scheduled", server.json(&["timeline", "k:1"])["jobs"][0]["state"]);
    assert_eq!(Some(0), server.stop().code);
}

#[test]
fn r_b15_a_second_signal_ends_at_once_and_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let mut command = posthaste(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("POSTHASTE_OUTBOUND__PRIVATE_NETWORKS", "127.0.0.1");
    let mut server = Server::start_as(folder.path(), &mut command);
    server.cli(&["endpoints", "add", "silent", "--to-url", &url]);
    server.cli(&["publish", "--key", "k:1", "--endpoint", "silent"]);
    // It is on its way, and will not be answered.
    let (_held, _) = silent.accept().unwrap();
    server.signal("TERM");
    server.err.wait_for("draining");
    let ended = server.stop();
    assert_eq!((Some(1), true), (ended.code, ended.err.contains("leases expire")), "{}", ended.err);
    let server = Server::start(folder.path());
    assert_eq!("leased", server.json(&["timeline", "k:1"])["jobs"][0]["state"]);
}

#[test]
fn r_b15_at_the_deadline_what_was_sent_is_recorded_as_perhaps_done() {
    let folder = tempfile::tempdir().unwrap();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/", silent.local_addr().unwrap());
    let mut command = posthaste(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("POSTHASTE_OUTBOUND__PRIVATE_NETWORKS", "127.0.0.1").env("POSTHASTE_DRAIN_DEADLINE", "200ms");
    let mut server = Server::start_as(folder.path(), &mut command);
    server.cli(&["endpoints", "add", "silent", "--to-url", &url]);
    server.cli(&["queues", "add", "carts"]);
    server.cli(&["publish", "--key", "k:1", "--endpoint", "silent"]);
    server.cli(&["publish", "--key", "k:2", "--queue", "carts"]);
    let (_held, _) = silent.accept().unwrap();
    server.signal("TERM");
    server.err.wait_for("draining");
    let ended = server.stop_after_signal();
    assert_eq!(Some(0), ended.code, "{}", ended.err);
    let server = Server::start(folder.path());
    let job = &server.json(&["timeline", "k:1"])["jobs"][0];
    assert_eq!("retryable", job["state"], "{job}");
    let attempt = &job["attempts"][0];
    assert_eq!(
        ("timeout", "possible"),
        (attempt["class"].as_str().unwrap(), attempt["effect"].as_str().unwrap())
    );
    assert!(attempt["message"].as_str().unwrap().contains("shutdown"), "{attempt}");
    assert_eq!(
        "scheduled",
        server.json(&["timeline", "k:2"])["jobs"][0]["state"],
        "what ran nowhere is as it was"
    );
}

#[test]
fn r_g2_a_reload_takes_effect_without_a_restart() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "posthaste.toml",
        "[[queue]]\nname = \"old\"\n[[queue]]\nname = \"of.acme\"\ntenant = \"acme\"\n",
    );
    let mut server = Server::start(folder.path());
    assert_eq!("file", server.json(&["queues", "show", "old"])["managed_by"]);
    let refused = run(&mut server.command(&["queues", "remove", "old"]));
    assert_eq!((Some(1), true), (refused.code, refused.err.contains("(managed_by_file)")), "{}", refused.err);

    write(folder.path(), "posthaste.toml", "[[queue]]\nnam = \"new\"\n");
    server.signal("HUP");
    let line = server.out.wait_for("did you mean `name`?");
    assert!(line.contains("reload_refused") && line.contains("posthaste.toml:2:1"), "{line}");
    assert_eq!(true, server.json(&["queues", "show", "old"])["enabled"]);

    write(folder.path(), "posthaste.toml", "accept_deadline = \"3s\"\n[[queue]]\nname = \"new\"\n");
    server.signal("HUP");
    let line = server.out.wait_for("reload_needs_restart");
    assert!(line.contains("accept_deadline"), "{line}");
    server.out.wait_for("\"reloaded\"");
    assert_eq!(false, server.json(&["queues", "show", "old"])["enabled"], "disabled, never deleted");
    assert_eq!(true, server.json(&["queues", "show", "new"])["enabled"]);
    assert_eq!(Some(0), server.stop().code);
}

#[test]
fn r_g6_a_file_declares_for_several_tenants_and_none_sees_another() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "posthaste.toml",
        "[[queue]]\nname = \"q\"\n[[queue]]\nname = \"of.acme\"\ntenant = \"acme\"\n",
    );
    let server = Server::start(folder.path());
    let ids = |arguments: &[&str]| -> Vec<String> {
        let list = server.json(arguments);
        list["data"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
    };
    assert_eq!(["q"], *ids(&["queues", "list"]));
    assert_eq!(["of.acme"], *ids(&["queues", "list", "--tenant", "acme"]));
    let ended = run(&mut server.command(&["publish", "--key", "a", "--queue", "of.acme"]));
    assert_eq!((Some(1), true), (ended.code, ended.err.contains("(unknown_queue)")), "{}", ended.err);
    assert_eq!(Some(0), server.stop().code);
}

#[test]
fn r_f2_f5_a_delivery_is_signed_logged_and_told_without_secrets() {
    let folder = tempfile::tempdir().unwrap();
    let receiving = Receiving::answering("200 OK");
    let secret = "whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw";
    let mut command = posthaste(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("POSTHASTE_OUTBOUND__PRIVATE_NETWORKS", "127.0.0.0/8");
    let mut server = Server::start_as(folder.path(), &mut command);
    server.cli(&[
        "endpoints",
        "add",
        "fan",
        "--to-url",
        &receiving.url,
        "--type",
        "ship.*",
        "--secret",
        secret,
    ]);
    let data = "{\"b\": 1.50, \"private\": \"payload-7c1f\"}";
    server.cli(&["publish", "--key", "s:1", "--type", "ship.sent", "--data", data]);
    let (head, body) = receiving.next();
    assert_eq!(data.as_bytes(), body);
    assert!(head.iter().any(|line| line == "idempotency-key: s:1:fan"), "{head:#?}");
    assert!(head.iter().any(|line| line.starts_with("webhook-signature: v1,")), "{head:#?}");
    let done = server.out.wait_for("\"done\"");
    let done: Value = serde_json::from_str(&done).unwrap();
    assert_eq!("s:1:fan", done["event_key"]);

    let story = server.cli(&["timeline", "s:1"]);
    for text in ["✓ committed", "acted (reported)", "HTTP 200", "#1"] {
        assert!(story.contains(text), "{text}: {story}");
    }
    let shown = server.cli(&["endpoints", "show", "fan"]);
    let wrong = run(server.command(&["jobs", "list"]).env("POSTHASTE_API_KEY", "phk_wrong-3b9d"));
    let ended = server.stop();
    assert_eq!(Some(0), ended.code);
    let kept = std::fs::read(folder.path().join("posthaste.db")).unwrap();
    let everything = [&ended.out, &ended.err, &shown, &story, &wrong.err].map(String::as_str).join("\n");
    for hidden in [&secret[6..], "payload-7c1f", KEY, "phk_wrong-3b9d", "sealed:"] {
        assert!(!everything.contains(hidden), "{hidden}: {everything}");
    }
    for line in ended.out.lines() {
        let line: Value = serde_json::from_str(line).unwrap_or_else(|_| panic!("no JSON: {line}"));
        assert!(line["event"].is_string() && line["level"].is_string(), "{line}");
    }
    assert!(!contains(&kept, &secret.as_bytes()[6..]), "the store keeps secrets sealed");
    assert!(contains(&kept, b"sealed:v1:"));
}

#[test]
fn r_f2_an_attempt_that_never_arrived_is_told_so() {
    let folder = tempfile::tempdir().unwrap();
    let nobody = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let busy = Receiving::answering("500 Internal Server Error");
    write(
        folder.path(),
        "posthaste.toml",
        &format!(
            "[outbound]\nprivate_networks = [\"127.0.0.1\"]\n[[endpoint]]\nid = \"gone\"\nurl = \"http://{nobody}/\"\n\
             [[endpoint]]\nid = \"busy\"\nurl = \"{}\"\n",
            busy.url
        ),
    );
    let mut server = Server::start(folder.path());
    server.cli(&["publish", "--key", "s:1", "--endpoint", "gone"]);
    server.out.wait_for("\"failed\"");
    assert!(server.cli(&["timeline", "s:1"]).contains("never reached the receiver"));
    server.cli(&["publish", "--key", "s:2", "--endpoint", "busy"]);
    busy.next();
    server.out.wait_for("\"failed\"");
    let story = server.cli(&["timeline", "s:2"]);
    assert!(story.contains("MAY HAVE ACTED") && story.contains("HTTP 500"), "{story}");
    assert_eq!(Some(0), server.stop().code);
}

#[test]
fn r_g2_sealed_secrets_need_their_key() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let made = server.json(&["endpoints", "add", "fan", "--to-url", "https://example.com/hook"]);
    assert!(made["secret"].as_str().unwrap().starts_with("whsec_"), "{made}");
    assert_eq!(Some(0), server.stop().code);
    std::fs::remove_file(folder.path().join("posthaste.db.key")).unwrap();
    let ended = run(&mut posthaste(folder.path(), &["serve", "--listen", "127.0.0.1:0"]));
    assert_eq!(Some(1), ended.code);
    assert!(ended.err.contains("posthaste.db.key is missing"), "{}", ended.err);
    assert!(!folder.path().join("posthaste.db.key").exists(), "no other key takes its place");
}

#[test]
fn r_g2_a_given_admin_key_is_taken_and_not_shown() {
    let folder = tempfile::tempdir().unwrap();
    let server = Server::start(folder.path());
    let made = server.json(&["keys", "add", "carts", "--scope", "work:carts"]);
    let (id, key) = (made["id"].as_str().unwrap(), made["key"].as_str().unwrap());
    let with_it = |arguments: &[&str]| run(server.command(arguments).env("POSTHASTE_API_KEY", key));
    assert!(with_it(&["keys", "list"]).err.contains("(forbidden)"));
    server.cli(&["keys", "revoke", id]);
    assert!(with_it(&["keys", "list"]).err.contains("(unauthenticated)"));
    let ended = server.stop();
    assert!(!ended.err.contains("phk_") && !ended.out.contains("phk_"), "{}", ended.err);
    let mut serve = posthaste(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    let ended = run(serve.env("POSTHASTE_BOOTSTRAP_KEY", "hunter2-5f1a"));
    assert_eq!((Some(1), false), (ended.code, ended.err.contains("hunter2-5f1a")), "{}", ended.err);
    assert!(ended.err.contains("openssl rand"), "{}", ended.err);
}

#[test]
fn r_a3_intake_may_have_a_listener_of_its_own() {
    let folder = tempfile::tempdir().unwrap();
    write(
        folder.path(),
        "posthaste.toml",
        "intake_listen = \"127.0.0.1:0\"\n[[source]]\nname = \"gh\"\nscheme = \"github\"\nsecrets = [\"env:GH\"]\n",
    );
    let mut command = posthaste(folder.path(), &["serve", "--listen", "127.0.0.1:0"]);
    command.env("GH", "a secret");
    let server = Server::start_as(folder.path(), &mut command);
    let line = server.err.seen.iter().find(|line| line.starts_with("intake on http://")).unwrap();
    let intake = line.strip_prefix("intake on ").unwrap().strip_suffix("/in/{source}").unwrap().to_owned();
    assert_ne!(server.url, intake);
    // The API is not there.
    let ended = run(server.command(&["jobs", "list"]).env("POSTHASTE_URL", &intake));
    assert_eq!(Some(1), ended.code, "{}", ended.err);
    assert_eq!(Some(0), server.stop().code);
}

fn contains(bytes: &[u8], part: &[u8]) -> bool {
    bytes.windows(part.len()).any(|window| window == part)
}
