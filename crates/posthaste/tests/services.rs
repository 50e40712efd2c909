//! Tests that need other programs than ours: the standard's own library in Node.js.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod server;

use std::{
    collections::BTreeMap,
    io::Write,
    process::{Command, Stdio},
    sync::{Arc, Mutex},
};

use axum::{Router, body::Bytes, http::HeaderMap, routing::post};
use serde_json::json;
use server::Server;
use tokio::sync::Notify;

type Deliveries = Arc<(Mutex<Vec<(BTreeMap<String, String>, Bytes)>>, Notify)>;

/// A receiver that takes everything and remembers it.
async fn receiver() -> (String, Deliveries) {
    let deliveries: Deliveries = Arc::default();
    let shared = Arc::clone(&deliveries);
    let take = move |headers: HeaderMap, body: Bytes| async move {
        let headers =
            headers.iter().map(|(name, value)| (name.to_string(), value.to_str().unwrap().to_owned()));
        shared.0.lock().unwrap().push((headers.collect(), body));
        shared.1.notify_one();
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hooks", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/hooks", post(take))).await });
    (url, deliveries)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_d1_the_standards_own_library_verifies_a_real_delivery() {
    let node =
        std::env::var("POSTHASTE_TEST_NODE").expect("scripts/test prepares Node.js and names its folder");
    let server = Server::start("[outbound]\nprivate_networks = [\"127.0.0.0/8\"]").await;
    let (url, deliveries) = receiver().await;
    let mut operator = server.connect().await;
    let made = operator.call("POST", "/v1/endpoints", &json!({ "id": "shop", "url": url })).await;
    assert_eq!(201, made.status, "{made:?}");
    let secret = made.json()["new_secret"].as_str().or(made.json()["secret"].as_str()).unwrap().to_owned();
    for (key, payload) in
        [("k:1", json!({"a": 1})), ("k:2", json!("snowman \u{2603} \u{1f600}")), ("k:3", json!([]))]
    {
        let message = json!({ "key": key, "payload": payload, "to": { "endpoints": ["shop"] } });
        assert_eq!(202, operator.call("POST", "/v1/messages", &message).await.status);
        deliveries.1.notified().await;
    }
    let taken = deliveries.0.lock().unwrap().clone();
    let line = |secret: &str, headers: &BTreeMap<String, String>, body: &str| {
        json!({ "secret": secret, "headers": headers, "body": body }).to_string()
    };
    let mut input = String::new();
    for (headers, body) in &taken {
        input += &line(&secret, headers, std::str::from_utf8(body).unwrap());
        input.push('\n');
    }
    // The judge must be able to say no.
    let (headers, body) = &taken[0];
    input += &line(&secret, headers, &format!("{} ", std::str::from_utf8(body).unwrap()));
    input.push('\n');
    let mut child = Command::new("node")
        .arg("verify.mjs")
        .current_dir(node)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("node runs");
    child.stdin.take().unwrap().write_all(input.as_bytes()).unwrap();
    let output = child.wait_with_output().unwrap();
    let verdicts: Vec<String> =
        String::from_utf8(output.stdout).unwrap().lines().map(str::to_owned).collect();
    assert_eq!(4, verdicts.len(), "{verdicts:?}");
    assert!(verdicts[..3].iter().all(|verdict| verdict == "valid"), "{verdicts:?}");
    assert!(verdicts[3].starts_with("invalid"), "{verdicts:?}");
}
