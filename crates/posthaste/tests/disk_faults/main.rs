//! Rows A4, A5 and B15 on disks that fail, fill up, hang or forget: the real binary over a file system that does so on
//! request, and over real ones that are full or read-only.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

#[path = "../cli_support/mod.rs"]
mod cli_support;
mod client;
#[cfg(feature = "services-tests")]
mod mounts;
#[path = "../server/mod.rs"]
mod server;
mod shim;
mod slow;

use client::{Client, REFUSED_BYTES};
use shim::{Disk, used_after_a_failed_sync};

/// Messages before and after each fault.
const SOME: u32 = 10;

/// A server that has acknowledged some, and a job that a worker has.
async fn serving(disk: &Disk) -> (cli_support::Server, Client, serde_json::Value) {
    some_acknowledged(disk.serve()).await
}

async fn some_acknowledged(server: cli_support::Server) -> (cli_support::Server, Client, serde_json::Value) {
    let mut client = Client::of(&server).await;
    client.must_be_acknowledged(SOME).await;
    let job = client.consume().await.unwrap();
    (server, client, job)
}

/// Nothing is acknowledged while the disk fails; what is known can be read, and the server says how it is.
async fn nothing_is_acknowledged(client: &mut Client, job: &serde_json::Value) {
    assert!(!client.publish(REFUSED_BYTES).await);
    for _ in 0..SOME {
        assert_eq!(503, client.ready().await, "after a failed write");
        assert!(!client.publish(REFUSED_BYTES).await);
        assert!(!client.deliver().await);
        assert!(client.consume().await.is_none());
        assert!(!client.ack(job).await);
        assert_eq!(200, client.get("/healthz").await.status);
    }
    client.find_all().await;
}

/// It works again by itself, and everything that was promised is there; also after a crash.
async fn all_is_well(disk: &Disk, server: cli_support::Server, client: Client, job: &serde_json::Value) {
    let server = works_again(server, client, job, || disk.serve()).await;
    assert_eq!(Vec::<&shim::Call>::new(), used_after_a_failed_sync(&disk.calls()));
    assert_eq!(Some(0), server.stop().code);
}

async fn works_again(
    server: cli_support::Server,
    mut client: Client,
    job: &serde_json::Value,
    start: impl Fn() -> cli_support::Server,
) -> cli_support::Server {
    client.wait_until_ready_is(200).await;
    assert!(client.ack(job).await, "a worker that reports again is heard");
    client.must_be_acknowledged(SOME).await;
    client.send_the_refused_again().await;
    assert!(client.consume().await.unwrap().is_object(), "workers go on");
    client.find_all().await;
    server.signal("KILL");
    server.stop_after_signal();
    let server = start();
    let mut client = client.moved_to(&server).await;
    client.find_all().await;
    client.must_be_acknowledged(1).await;
    server
}

async fn fails_for_a_while(how: &str) {
    let disk = Disk::new();
    let (server, mut client, job) = serving(&disk).await;
    disk.fail(how);
    nothing_is_acknowledged(&mut client, &job).await;
    assert!(disk.calls().iter().any(|call| call.failed), "{how} was met");
    disk.heal();
    all_is_well(&disk, server, client, &job).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_nothing_is_acknowledged_while_syncs_fail() {
    fails_for_a_while("sync eio").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_nothing_is_acknowledged_while_writes_fail() {
    fails_for_a_while("write eio").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_nothing_is_acknowledged_while_there_is_no_space() {
    fails_for_a_while("write enospc").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_nothing_is_acknowledged_while_the_disk_is_read_only() {
    fails_for_a_while("read-only").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_nothing_is_acknowledged_while_nothing_works() {
    fails_for_a_while("sync eio write eio open eio").await;
}

/// A sync fails once, and the next one succeeds although what was written before is lost, or although it isn't.
async fn fails_once(how: &str) {
    let disk = Disk::new();
    let (server, mut client, job) = serving(&disk).await;
    for _ in 0..SOME {
        disk.fail(how);
        let mut other = Client::of(&server).await;
        // One of them meets it; whoever is refused may find that it was done.
        let answers = tokio::join!(client.publish(REFUSED_BYTES), other.deliver());
        assert!(!answers.0 || !answers.1, "{how} was met");
        client.wait_until_ready_is(200).await;
        client.send_the_refused_again().await;
        other.send_the_refused_again().await;
        other.find_all().await;
        client.find_all().await;
    }
    all_is_well(&disk, server, client, &job).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_what_a_failed_sync_lost_is_not_taken_for_durable() {
    fails_once("sync eio once").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a5_a_commit_that_is_in_doubt_is_harmless() {
    fails_once("sync eio once kept").await;
}

/// The process is killed between a failed sync and its recovery: what it left behind may be there or not.
async fn killed_during_recovery(how: &str) {
    let disk = Disk::new();
    let (server, mut client, job) = serving(&disk).await;
    disk.fail(how);
    nothing_is_acknowledged(&mut client, &job).await;
    server.signal("KILL");
    server.stop_after_signal();
    disk.heal();
    let server = disk.serve();
    let client = client.moved_to(&server).await;
    all_is_well(&disk, server, client, &job).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_b15_a_crash_during_recovery_loses_nothing_that_was_acknowledged() {
    killed_during_recovery("sync eio open eio").await;
    killed_during_recovery("sync eio kept").await;
    killed_during_recovery("write eio").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a4_what_a_crash_left_in_the_log_is_made_durable_before_anything_rests_on_it() {
    let disk = Disk::new();
    let (server, mut client, job) = serving(&disk).await;
    // The commit is in the log and in the page cache, yet perhaps not on the disk; no sync of the log will tell.
    disk.fail("sync eio kept");
    assert!(!client.publish(REFUSED_BYTES).await);
    server.signal("KILL");
    server.stop_after_signal();
    disk.heal();
    assert!(disk.log_bytes() > 0, "the crash leaves a log");
    let before = disk.calls().len();
    let server = disk.serve();
    let calls = disk.calls().split_off(before);
    assert!(calls.iter().any(|call| call.what == "sync" && call.file == "database"), "{calls:?}");
    let mut client = client.moved_to(&server).await;
    assert_eq!(1, client.refused_and_there().await, "the commit was in doubt, and was one");
    all_is_well(&disk, server, client, &job).await;
}
