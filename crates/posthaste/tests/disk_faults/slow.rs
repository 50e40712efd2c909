//! A disk that hangs for seconds: answered at the deadline, and harmless.

use std::time::{Duration, Instant};

use serde_json::json;

use crate::{
    client::{Client, assert_refused},
    server::github_headers,
    shim::Disk,
};

/// `accept_deadline` unless told.
const DEADLINE: Duration = Duration::from_secs(2);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a5_a_commit_that_outlasts_the_deadline_is_found_by_the_redelivery() {
    let disk = Disk::new();
    let server = disk.serve();
    let mut client = Client::of(&server).await;
    client.must_be_acknowledged(3).await;
    disk.fail("delay 6000");
    let mut others = [client.again().await, client.again().await, client.again().await];
    let begun = Instant::now();
    let [publisher, provider, second] = &mut others;
    let message = json!({"key": "slow", "payload": 1, "to": {"queue": "carts"}});
    let body = b"{}";
    let headers = github_headers("slow", body);
    let (published, delivered, redelivered) = tokio::join!(
        publisher.call("POST", "/v1/messages", &message),
        provider.send("POST", "/in/github", &headers, body),
        second.send("POST", "/in/github", &headers, body),
    );
    let elapsed = begun.elapsed();
    for answer in [&published, &delivered, &redelivered] {
        assert_refused(answer);
    }
    assert!(elapsed >= DEADLINE.mul_f64(0.95) && elapsed < DEADLINE * 2, "refused after {elapsed:?}");
    assert_eq!(503, client.ready().await, "a disk that hangs is not ready");
    client.find_all().await;
    disk.heal();
    client.wait_until_ready_is(200).await;
    let again = publisher.call("POST", "/v1/messages", &message).await;
    assert!([200, 202].contains(&again.status), "{}", again.json());
    let again = provider.send("POST", "/in/github", &headers, body).await;
    assert!([200, 202].contains(&again.status), "{}", again.json());
    assert_eq!(200, second.send("POST", "/in/github", &headers, body).await.status);
    client.acknowledged.extend(["slow".to_owned(), "github:slow".to_owned()]);
    client.must_be_acknowledged(3).await;
    client.find_all().await;
    let reopened = disk.calls().iter().filter(|call| call.what == "open" && call.file == "log").count();
    let ended = server.stop();
    assert_eq!(Some(0), ended.code, "{}", ended.err);
    // The writer, two readers and the thread that moves the log have a connection each.
    assert!(reopened <= 4, "a slow disk is no broken one: {reopened} opens of the log");
}
