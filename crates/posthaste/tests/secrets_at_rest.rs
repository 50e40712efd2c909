//! Secrets are references or sealed, and the store's file is its user's alone.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod server;

use std::{os::unix::fs::PermissionsExt as _, sync::Arc};

use axum::{Router, http::HeaderMap, routing::post};
use serde_json::json;
use server::Server;
use tokio::sync::Notify;

const TOKEN: &str = "Bearer a-token-that-nobody-else-may-see";

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_g2_an_endpoints_headers_are_kept_as_secrets_are() {
    let seen = Arc::new((std::sync::Mutex::new(Vec::new()), Notify::new()));
    let shared = Arc::clone(&seen);
    let take = move |headers: HeaderMap| async move {
        shared.0.lock().unwrap().push(headers.get("authorization").unwrap().to_str().unwrap().to_owned());
        shared.1.notify_one();
    };
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/hooks", listener.local_addr().unwrap());
    tokio::spawn(async move { axum::serve(listener, Router::new().route("/hooks", post(take))).await });
    let folder = tempfile::tempdir().unwrap();
    let token = folder.path().join("token");
    std::fs::write(&token, format!("{TOKEN}\n")).unwrap();
    let server = Server::start(&format!(
        "[outbound]\nprivate_networks = [\"127.0.0.0/8\"]\n[[endpoint]]\nid = \"from-file\"\nurl = \"{url}\"\n\
         headers = {{ authorization = \"file:{}\" }}",
        token.display()
    ))
    .await;
    let mut operator = server.connect().await;
    let spec = json!({ "id": "from-api", "url": url, "headers": { "authorization": TOKEN } });
    let made = operator.call("POST", "/v1/endpoints", &spec).await;
    assert_eq!(201, made.status, "{made:?}");
    assert!(!String::from_utf8(made.body).unwrap().contains(TOKEN));
    for endpoint in ["from-file", "from-api"] {
        let message = json!({ "key": endpoint, "payload": 1, "to": { "endpoints": [endpoint] } });
        assert_eq!(202, operator.call("POST", "/v1/messages", &message).await.status);
        seen.1.notified().await;
    }
    assert_eq!(vec![TOKEN, TOKEN], *seen.0.lock().unwrap());
    for entry in std::fs::read_dir(server.folder.path()).unwrap() {
        let path = entry.unwrap().path();
        let bytes = std::fs::read(&path).unwrap();
        let found = bytes.windows(TOKEN.len()).any(|window| window == TOKEN.as_bytes());
        assert!(!found, "{} holds the token", path.display());
        if path.to_string_lossy().contains("posthaste.db") && !path.ends_with("posthaste.db.lock") {
            let mode = std::fs::metadata(&path).unwrap().permissions().mode() & 0o777;
            assert_eq!(0o600, mode, "{}", path.display());
        }
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_g2_only_the_servers_own_file_may_name_things_on_the_server() {
    let server = Server::start("").await;
    let mut operator = server.connect().await;
    for secret in ["env:HOME", "file:/etc/hostname"] {
        let source = json!({ "name": "s", "scheme": "github", "secrets": [secret] });
        let refused = operator.call("POST", "/v1/sources", &source).await;
        assert_eq!((422, "invalid_configuration".into()), (refused.status, refused.json()["code"].clone()));
        let endpoint = json!({ "id": "e", "url": "https://example.com/", "headers": { "x-token": secret } });
        assert_eq!(422, operator.call("POST", "/v1/endpoints", &endpoint).await.status);
    }
}
