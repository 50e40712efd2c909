//! Retention and the archive as an operator meets them: configured, killed in the middle, listed, checked. Row C9.

#![allow(clippy::unwrap_used)]

mod cli_support;

use std::{
    fs,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use cli_support::{Server, posthaste, run};
use serde_json::Value;

/// A job may be tried for two seconds, so that what is settled may leave after two.
const CONFIG: &str = r#"
[retention]
committed = "2s"
dead_lettered = "2s"
ledger = "2s"
archive = "file:archive"
every = "1d"

[[queue]]
name = "carts"
on_unknown = "dead_letter"
[queue.retry]
base = "1s"
cap = "1s"
horizon = "1s"
"#;

fn folder(config: &str) -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("posthaste.toml"), config).unwrap();
    folder
}

fn serve(folder: &Path, faults: &str) -> Server {
    let mut command = posthaste(folder, &["serve", "--listen", "127.0.0.1:0"]);
    Server::start_as(folder, command.env("POSTHASTE_FAULTS", faults))
}

/// Publishes messages and calls their jobs off, so that they are settled.
fn settle(server: &Server, first: usize, count: usize) {
    for number in first..first + count {
        let key = format!("cart:{number}");
        let published = server.json(&["publish", "--key", &key, "--queue", "carts"]);
        let job = published["jobs"][0]["id"].as_str().unwrap();
        server.cli(&["jobs", "cancel", job, "--reason", "sold"]);
    }
}

fn stage_of(timeline: &Value) -> Vec<&str> {
    timeline["entries"].as_array().unwrap().iter().map(|entry| entry["stage"].as_str().unwrap()).collect()
}

/// Passes until every key is in the archive. Bounded.
fn all_archived(server: &Server, count: usize) {
    let begun = Instant::now();
    loop {
        server.json(&["archive", "now"]);
        let archived = (0..count).all(|number| {
            let timeline = server.json(&["timeline", &format!("cart:{number}")]);
            stage_of(&timeline).contains(&"archived")
        });
        if archived {
            return;
        }
        assert!(begun.elapsed() < Duration::from_mins(1), "they never leave");
    }
}

fn files(folder: &Path) -> Vec<PathBuf> {
    let files = fs::read_dir(folder.join("archive")).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> = files.filter(|path| path.to_string_lossy().ends_with(".jsonl.gz")).collect();
    files.sort();
    files
}

#[test]
fn r_c9_an_archived_key_is_shown_and_answered_and_verify_tells_what_is_wrong() {
    let folder = folder(CONFIG);
    let server = serve(folder.path(), "");
    settle(&server, 0, 2);
    let before = server.json(&["timeline", "cart:1"]);
    all_archived(&server, 2);
    let after = server.json(&["timeline", "cart:1"]);
    assert_eq!(before["jobs"], after["jobs"]);
    assert_eq!([stage_of(&before), vec!["archived"]].concat(), stage_of(&after));
    assert_eq!(before["entries"][0]["correlation_id"], after["entries"][0]["correlation_id"]);
    let again = server.json(&["publish", "--key", "cart:1", "--queue", "carts"]);
    assert_eq!(
        ("duplicate_done", &before["message_id"]),
        (again["path"].as_str().unwrap(), &again["message"]["id"])
    );
    let other =
        run(&mut server.command(&["publish", "--key", "cart:1", "--queue", "carts", "--delay", "1h"]));
    assert_eq!(Some(1), other.code, "{}", other.out);
    assert!(other.err.contains("key_reused"), "{}", other.err);
    let archived = after["entries"].as_array().unwrap().last().unwrap();
    let file = archived["detail"]["file"].as_str().unwrap().to_owned();
    let listed = server.json(&["archive", "list"]);
    assert!(listed["data"].as_array().unwrap().iter().any(|one| one["file"] == *file), "{listed}");
    let good = server.json(&["archive", "verify"]);
    assert_eq!(Value::Bool(true), good["ok"], "{good}");
    let path = folder.path().join("archive").join(&file);
    let whole = fs::read(&path).unwrap();
    let mut bent = whole.clone();
    bent[whole.len() / 2] ^= 1;
    fs::write(&path, bent).unwrap();
    let found = run(&mut server.command(&["archive", "verify"]));
    assert_eq!(Some(1), found.code);
    assert!(found.out.contains(&file) && found.out.contains("SHA-256"), "{}", found.out);
    fs::remove_file(&path).unwrap();
    let found = run(&mut server.command(&["archive", "verify", "--json"]));
    assert_eq!(Some(1), found.code);
    assert!(found.out.contains("it is missing"), "{}", found.out);
    let missing = server.json(&["timeline", "cart:1"]);
    assert!(missing["summary"].as_str().unwrap().contains("missing from file:archive"), "{missing}");
    fs::write(&path, whole).unwrap();
    assert_eq!(Some(0), run(&mut server.command(&["archive", "verify"])).code);
    server.stop();
}

#[cfg(feature = "faults")]
#[test]
fn r_c9_a_crash_between_the_archive_and_the_rows_loses_nothing() {
    // With a file in place and nothing gone; and when the first of two steps is durable.
    for (faults, count) in [("kill:archive_written:1", 3), ("kill:mid_retire:1", 60)] {
        let folder = folder(CONFIG);
        let server = serve(folder.path(), "");
        settle(&server, 0, count);
        server.stop();
        let server = serve(folder.path(), faults);
        let begun = Instant::now();
        // Until one finds something: then the server ends.
        while run(&mut server.command(&["archive", "now"])).code == Some(0) {
            assert!(begun.elapsed() < Duration::from_mins(1), "{faults}: it is never reached");
        }
        drop(server);
        let written = files(folder.path()).len();
        assert_eq!(1, written, "{faults}");
        let server = serve(folder.path(), "");
        all_archived(&server, count);
        assert!(files(folder.path()).len() >= 2, "{faults}: what had not left is written again");
        let good = server.json(&["archive", "verify"]);
        assert_eq!(Value::Bool(true), good["ok"], "{faults}: {good}");
        for number in 0..count {
            let again = server.json(&["publish", "--key", &format!("cart:{number}"), "--queue", "carts"]);
            assert_eq!("duplicate_done", again["path"], "{faults}");
        }
        server.stop();
    }
}

fn faults_of(config: &str) -> String {
    let folder = folder(config);
    let ended = run(&mut posthaste(folder.path(), &["check-config"]));
    let started = run(&mut posthaste(folder.path(), &["serve", "--listen", "127.0.0.1:0"]));
    assert_eq!((Some(1), Some(1)), (ended.code, started.code), "{} {}", ended.out, started.err);
    ended.out
}

#[test]
fn r_c9_a_retention_that_is_shorter_than_the_retries_is_refused_with_the_sum() {
    let endpoint = "[outbound]\nprivate_networks = [\"127.0.0.0/8\"]\n[[endpoint]]\nid = \"fan_17\"\nurl = \"http://127.0.0.1:9/\"\n";
    let said = faults_of(&format!("[retention]\narchive = \"none\"\ncommitted = \"7d\"\n{endpoint}"));
    let expected = "posthaste.toml:3:1: retention.committed: 7d is shorter than a job may be tried: fan_17 takes 4d (horizon) + \
                    3d3h35m5s (delays) + 7h33m30s500ms (10 % jitter) = 7d11h8m35s500ms; write \"8d\" or more, or give fan_17 \
                    a shorter retry";
    assert!(said.contains(expected), "{said}");
    // A default too; said where the archive is switched on.
    let queue = "[[queue]]\nname = \"slow\"\n[queue.retry]\nbase = \"1h\"\ncap = \"1d\"\nhorizon = \"60d\"\n";
    let said = faults_of(&format!("[retention]\narchive = \"none\"\n{queue}"));
    let expected = "posthaste.toml:2:1: retention.committed: 30d is shorter than a job may be tried: slow takes 60d (horizon) + \
                    1d (longest delay) = 61d; write \"61d\" or more";
    assert!(said.contains(expected), "{said}");
    assert!(said.contains("1 fault"), "the others are longer: {said}");
}

#[test]
fn r_c9_an_archive_that_is_none_is_refused() {
    for (setting, expected) in [
        ("archive = \"/var/archive\"", "this is no archive; write \"file:/var/lib/posthaste/archive\""),
        ("archive = \"s3://b\"", "this is no archive"),
        ("archive = \"s3://bucket/a\"", "`retention.access_key` is missing"),
        ("archive = \"s3://bucket\"\naccess_key = \"AKIA\"", "a credential itself has no place"),
        ("archive = \"none\"\nevery = \"0s\"", "this is out of range; give 1s to 1d"),
        ("archive = \"none\"\ncommitted = \"30\"", "retention.committed"),
        ("archve = \"none\"", "did you mean `archive`?"),
    ] {
        let said = faults_of(&format!("[retention]\n{setting}\n"));
        assert!(said.contains(expected), "{setting}: {said}");
    }
    let folder = folder("[retention]\ncommitted = \"30d\"\n");
    let ended = run(&mut posthaste(folder.path(), &["check-config"]));
    assert_eq!(Some(0), ended.code, "{}", ended.out);
    assert!(ended.out.contains("without `retention.archive` nothing is deleted"), "{}", ended.out);
    let unwritable = folder.path().join("taken");
    fs::write(&unwritable, "").unwrap();
    fs::write(folder.path().join("posthaste.toml"), "[retention]\narchive = \"file:taken\"\n").unwrap();
    let started = run(&mut posthaste(folder.path(), &["serve", "--listen", "127.0.0.1:0"]));
    assert_eq!(Some(1), started.code);
    assert!(started.err.contains("file:taken"), "{}", started.err);
}

#[test]
fn r_c9_without_an_archive_archive_now_says_so() {
    let folder = folder("");
    let server = serve(folder.path(), "");
    let refused = run(&mut server.command(&["archive", "now"]));
    assert_eq!(Some(1), refused.code);
    assert!(refused.err.contains("archive_not_configured"), "{}", refused.err);
    server.stop();
}
