//! Row A4, seen from outside: the real binary under strace. No answer leaves before the sync of what it rests on; and
//! mutants that break this are noticed.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod checker;
#[path = "../cli_support/mod.rs"]
mod cli_support;
#[path = "../server/mod.rs"]
mod server;
mod trace;
mod traffic;

use std::{path::Path, process::Command};

use checker::{Answered, Event};
use cli_support::{posthaste, run};

/// A mutant is noticed at its first answers.
const ROUNDS_OF_MUTANT: u32 = 1;

/// What a server did and what its clients were told.
struct Seen {
    events: Vec<Event>,
    answered: Vec<Answered>,
}

impl Seen {
    fn violations(&self) -> Vec<String> {
        checker::violations(&self.events, &self.answered)
    }
}

fn serve(folder: &Path) -> Command {
    posthaste(folder, &["serve", "--listen", "127.0.0.1:0"])
}

/// The server under strace, with `faults`. The tracer is not its parent, so that signals reach the server.
fn traced(folder: &Path, faults: &str) -> Command {
    let mut command = Command::new("strace");
    command
        .args(["-D", "-f", "-tt", "-yy", "-s", "4096", "-o", "trace"])
        .args(["-e", "trace=fdatasync,fsync,write,writev,pwrite64,sendto,sendmsg", "-e", "signal=none"])
        .args([env!("CARGO_BIN_EXE_posthaste"), "serve", "--listen", "127.0.0.1:0"])
        .current_dir(folder)
        .env_clear()
        .env("PATH", std::env::var_os("PATH").unwrap())
        .env("POSTHASTE_FAULTS", faults);
    command
}

/// Serves clients with `faults` for some rounds.
async fn seen(faults: &str, rounds: u32) -> Seen {
    let strace = Command::new("strace").arg("-V").output();
    assert!(
        strace.is_ok_and(|output| output.status.success()),
        "strace is needed: scripts/services/install.sh"
    );
    let folder = tempfile::tempdir().unwrap();
    server::write_config(folder.path(), "");
    // A mutant may be too broken to make a store: it would not find what it has just written.
    let maker = cli_support::Server::start_as(folder.path(), &mut serve(folder.path()));
    assert_eq!(Some(0), maker.stop().code);
    let server = cli_support::Server::start_as(folder.path(), &mut traced(folder.path(), faults));
    let address = server.url.strip_prefix("http://").unwrap().parse().unwrap();
    let answered = traffic::send(address, rounds).await;
    // Its output ends when the tracer has ended too.
    let ended = server.stop();
    assert_eq!(Some(0), ended.code, "{}", ended.err);
    let trace = std::fs::read_to_string(folder.path().join("trace")).unwrap();
    Seen { events: checker::events(&trace::parse(&trace)), answered }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_no_answer_leaves_before_the_sync_that_it_rests_on() {
    let seen = seen("", 8).await;
    let violations = seen.violations();
    assert!(violations.is_empty(), "{} of {}: {violations:#?}", violations.len(), seen.answered.len());
    for status in [200, 202, 409, 422] {
        let of = seen.answered.iter().filter(|answer| answer.status == status).count();
        assert!(of >= 30, "{of} answers {status} were judged");
    }
    let syncs = seen.events.iter().filter(|event| matches!(event, Event::Sync { .. })).count();
    println!("{} answers rest on {syncs} syncs", seen.answered.len());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_a_server_that_syncs_too_little_is_noticed() {
    for faults in ["synchronous=normal", "synchronous=off"] {
        let seen = seen(faults, ROUNDS_OF_MUTANT).await;
        let violations = seen.violations();
        assert!(violations.len() * 2 > seen.answered.len(), "{faults}: {violations:#?}");
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_a_server_that_answers_before_its_commit_is_noticed() {
    let seen = seen("answer_before_commit", ROUNDS_OF_MUTANT).await;
    let violations = seen.violations();
    assert!(violations.len() * 4 > seen.answered.len(), "{violations:#?}");
    assert!(violations.iter().all(|violation| violation.contains("no sync since")), "{violations:#?}");
}

#[test]
fn an_unknown_fault_is_refused_at_the_start() {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(serve(folder.path()).env("POSTHASTE_FAULTS", "synchronous=normal,kill:somewhere:1"));
    assert_eq!(Some(1), ended.code, "{}", ended.err);
    assert!(ended.err.contains("\"kill:somewhere:1\" is unknown"), "{}", ended.err);
    assert!(!folder.path().join("posthaste.db").exists(), "nothing is made");
}
