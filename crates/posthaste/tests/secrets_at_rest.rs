//! Secrets are references or sealed, and the store's file is its user's alone.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod server;

use std::{os::unix::fs::PermissionsExt as _, sync::Arc};

use axum::{Router, http::HeaderMap, routing::post};
use serde_json::{Value, json};
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
    // What was read can be changed and written back: a value that is not shown stays.
    let mut shown = operator.call("GET", "/v1/endpoints/from-api", &Value::Null).await.json();
    assert_eq!("(hidden)", shown["headers"]["authorization"]);
    let spec = json!({ "id": "from-api", "url": url, "headers": shown["headers"].take(), "concurrency": 3 });
    assert_eq!(200, operator.call("PUT", "/v1/endpoints/from-api", &spec).await.status);
    let message = json!({ "key": "again", "payload": 1, "to": { "endpoints": ["from-api"] } });
    assert_eq!(202, operator.call("POST", "/v1/messages", &message).await.status);
    seen.1.notified().await;
    assert_eq!(vec![TOKEN; 3], *seen.0.lock().unwrap());
    let spec = json!({ "id": "new", "url": url, "headers": { "x-token": "(hidden)" } });
    assert_eq!(422, operator.call("POST", "/v1/endpoints", &spec).await.status);
    // What the file defines is changed there: said before anything else is found wrong.
    let changed =
        operator.call("PUT", "/v1/endpoints/from-file", &json!({ "id": "from-file", "url": url })).await;
    assert_eq!(
        (409, "managed_by_file".into()),
        (changed.status, changed.json()["code"].clone()),
        "{changed:?}"
    );
    let source = json!({ "name": "github", "scheme": "github" });
    let changed = operator.call("PUT", "/v1/sources/github", &source).await;
    assert_eq!(
        (409, "managed_by_file".into()),
        (changed.status, changed.json()["code"].clone()),
        "{changed:?}"
    );
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
