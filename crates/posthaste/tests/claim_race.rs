//! Many deliveries of one key at the same moment, over real HTTP and the durable store.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod server;

use serde_json::Value;
use server::{Server, github_headers};

const DELIVERIES: usize = 100;
const ROUNDS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_a5_a_hundred_concurrent_deliveries_of_one_key_are_claimed_once() {
    let server = Server::start("").await;
    let mut connections = Vec::new();
    for _ in 0..DELIVERIES {
        connections.push(server.connect().await);
    }
    let body = br#"{"ref":"refs/heads/main"}"#;
    for round in 0..ROUNDS {
        let delivery = format!("round-{round}");
        let headers = github_headers(&delivery, body);
        let racing = connections.into_iter().map(|mut connection| {
            let headers = headers.clone();
            tokio::spawn(async move {
                let answer = connection.send("POST", "/in/github", &headers, body).await;
                (connection, answer)
            })
        });
        let racing: Vec<_> = racing.collect();
        connections = Vec::with_capacity(DELIVERIES);
        let mut paths = Vec::with_capacity(DELIVERIES);
        for race in racing {
            let (connection, answer) = race.await.unwrap();
            connections.push(connection);
            paths.push((answer.status, answer.json()["path"].as_str().unwrap().to_owned()));
        }
        let first = paths.iter().filter(|(status, path)| *status == 202 && path == "first_run").count();
        let duplicate =
            paths.iter().filter(|(status, path)| *status == 200 && path == "duplicate_done").count();
        assert_eq!((1, DELIVERIES - 1), (first, duplicate), "round {round}: {paths:?}");
    }
    let mut operator = server.connect().await;
    for round in 0..ROUNDS {
        let timeline =
            operator.call("GET", &format!("/v1/timeline?key=github:round-{round}"), &Value::Null).await;
        assert_eq!(1, timeline.json()["jobs"].as_array().unwrap().len(), "one job each");
    }
    let overview = operator.call("GET", "/v1/overview", &Value::Null).await.json();
    assert!(overview.to_string().contains(&ROUNDS.to_string()), "{overview}");
}
