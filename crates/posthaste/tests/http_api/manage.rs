//! Destinations, sources and API keys at run time.

use posthaste_engine::config::QueueSpec;
use posthaste_store::ManagedBy;
use serde_json::{Value, json};

use crate::harness::{Reply, Server};

async fn delete(server: &Server, path: &str) -> Reply {
    server.call("DELETE", path, &server.admin, b"").await
}

#[tokio::test]
async fn r_e5_an_endpoints_secret_is_shown_once() {
    let server = Server::start().await;
    let spec = json!({"id": "fan_17", "url": "https://example.com/", "types": ["shipment.*"], "owner": "team-a",
        "headers": {"x-token": "confidential"}});
    let made = server.post("/v1/endpoints", &spec).await.expect(201);
    assert!(made["secret"].as_str().unwrap().starts_with("whsec_"), "{made}");
    assert_eq!(
        (json!("fan_17"), json!("endpoint"), json!(true), json!("api"), json!("team-a"), json!(1)),
        (
            made["id"].clone(),
            made["kind"].clone(),
            made["enabled"].clone(),
            made["managed_by"].clone(),
            made["owner"].clone(),
            made["secrets_total"].clone()
        )
    );
    assert_eq!("2026-01-01T00:00:00.000Z", made["created_at"]);
    for path in ["/v1/endpoints/fan_17", "/v1/endpoints"] {
        let shown = server.get(path).await;
        assert_eq!(200, shown.status);
        assert!(
            !shown.text().contains("whsec_") && !shown.text().contains("confidential"),
            "{}",
            shown.text()
        );
    }
    server.post("/v1/endpoints", &spec).await.problem(409, "already_exists");
    let mut changed = spec.clone();
    changed["timeout"] = json!("5s");
    let body = changed.to_string();
    let put = server.call("PUT", "/v1/endpoints/fan_17", &server.admin, body.as_bytes()).await.expect(200);
    assert_eq!((json!("5s"), Value::Null), (put["timeout"].clone(), put["secret"].clone()));
    server
        .call("PUT", "/v1/endpoints/other", &server.admin, body.as_bytes())
        .await
        .problem(422, "invalid_value");
    assert_eq!(204, delete(&server, "/v1/endpoints/fan_17").await.status);
    server.get("/v1/endpoints/fan_17").await.problem(404, "unknown_endpoint");
    delete(&server, "/v1/endpoints/fan_17").await.problem(404, "unknown_endpoint");
}

#[tokio::test]
async fn r_g2_a_wrong_configuration_is_refused_with_what_would_be_right() {
    let server = Server::start().await;
    for (path, spec, code, place) in [
        ("queues", json!({"name": "a b"}), "invalid_configuration", "name"),
        ("queues", json!({"name": "a", "lease": "1"}), "invalid_value", "lease"),
        ("queues", json!({"name": "a", "lease": "1ms"}), "invalid_configuration", "lease"),
        ("queues", json!({"name": "a", "leese": "1s"}), "unknown_field", "leese"),
        ("queues", json!({"lease": "1s"}), "missing_field", ""),
        (
            "queues",
            json!({"name": "a", "retry": {"delays": ["1s"], "base": "1s"}}),
            "invalid_configuration",
            "retry",
        ),
        ("endpoints", json!({"id": "a", "url": "ftp://a"}), "invalid_configuration", "url"),
        ("sources", json!({"name": "a", "scheme": "none"}), "invalid_configuration", "scheme"),
        ("sources", json!({"name": "a", "scheme": "github"}), "invalid_configuration", "secrets"),
    ] {
        let problem = server.post(&format!("/v1/{path}"), &spec).await.problem(422, code);
        assert!(place.is_empty() || problem["path"] == place, "{place}: {problem}");
    }
}

#[tokio::test]
async fn one_namespace_holds_endpoints_queues_and_sources() {
    let server = Server::start().await;
    server.post("/v1/queues", &json!({"name": "carts"})).await.expect(201);
    let endpoint = json!({"id": "carts", "url": "https://example.com/"});
    server.post("/v1/endpoints", &endpoint).await.problem(409, "already_exists");
    let body = endpoint.to_string();
    server
        .call("PUT", "/v1/endpoints/carts", &server.admin, body.as_bytes())
        .await
        .problem(409, "already_exists");
    server.get("/v1/endpoints/carts").await.problem(404, "unknown_endpoint");
    delete(&server, "/v1/endpoints/carts").await.problem(404, "unknown_endpoint");
    server.get("/v1/queues/carts").await.expect(200);
}

#[tokio::test]
async fn r_g2_what_a_file_defines_is_read_only() {
    let server = Server::start().await;
    let spec: QueueSpec = serde_json::from_value(json!({"name": "carts"})).unwrap();
    server.engine.put_queue(server.tenant, spec, ManagedBy::File, false).await.unwrap();
    assert_eq!("file", server.get("/v1/queues/carts").await.expect(200)["managed_by"]);
    delete(&server, "/v1/queues/carts").await.problem(409, "managed_by_file");
    let put = server.call("PUT", "/v1/queues/carts", &server.admin, br#"{"name":"carts"}"#).await;
    put.problem(409, "managed_by_file");
}

#[tokio::test]
async fn lists_come_page_by_page() {
    let server = Server::start().await;
    for name in ["b", "a", "c"] {
        server.post("/v1/queues", &json!({"name": name})).await.expect(201);
    }
    let first = server.get("/v1/queues?limit=2").await.expect(200);
    assert_eq!((json!("a"), json!("b")), (first["data"][0]["id"].clone(), first["data"][1]["id"].clone()));
    let second = server
        .get(&format!("/v1/queues?cursor={}", first["next_cursor"].as_str().unwrap()))
        .await
        .expect(200);
    assert_eq!((json!("c"), Value::Null), (second["data"][0]["id"].clone(), second["next_cursor"].clone()));
    assert_eq!(json!([]), server.get("/v1/sources").await.expect(200)["data"]);
}

#[tokio::test]
async fn r_e5_an_api_key_is_shown_once_and_can_be_revoked() {
    let server = Server::with_queue().await;
    let request = json!({"name": "cart-service", "scopes": ["publish", "work:carts"]});
    let made = server.post("/v1/keys", &request).await.expect(201);
    let key = made["key"].as_str().unwrap();
    assert!(key.starts_with("phk_"));
    let publish = br#"{"queue":"carts","key":"k"}"#;
    server.call("POST", "/v1/queue/publish", key, publish).await.expect(202);
    let listed = server.get("/v1/keys").await;
    assert!(!listed.text().contains("phk_"), "{}", listed.text());
    let id = made["id"].as_str().unwrap();
    let listed =
        listed.expect(200)["data"].as_array().unwrap().iter().find(|row| row["id"] == id).cloned().unwrap();
    assert_eq!(
        (json!(["publish", "work:carts"]), Value::Null),
        (listed["scopes"].clone(), listed["revoked_at"].clone())
    );
    assert_eq!(204, delete(&server, &format!("/v1/keys/{id}")).await.status);
    server.call("POST", "/v1/queue/publish", key, publish).await.problem(401, "unauthenticated");
    delete(&server, "/v1/keys/key_nonsense").await.problem(404, "not_found");
    for (more, code) in [
        (json!({"name": "", "scopes": ["read"]}), "invalid_value"),
        (json!({"name": "n", "scopes": []}), "invalid_value"),
        (json!({"name": "n", "scopes": ["everything"]}), "invalid_value"),
        (json!({"name": "n", "scopes": "read"}), "invalid_type"),
        (json!({"name": "n", "scopes": ["read"], "tenant": "a b"}), "invalid_name"),
    ] {
        server.post("/v1/keys", &more).await.problem(422, code);
    }
}

#[tokio::test]
async fn r_g6_a_key_for_a_new_tenant_makes_the_tenant() {
    let server = Server::with_queue().await;
    let request = json!({"name": "first", "scopes": ["read"], "tenant": "acme"});
    let key = server.post("/v1/keys", &request).await.expect(201)["key"].as_str().unwrap().to_owned();
    let overview = server.call("GET", "/v1/overview", &key, b"").await.expect(200);
    assert_eq!((json!("acme"), json!([])), (overview["tenant"].clone(), overview["destinations"].clone()));
}

#[tokio::test]
async fn the_overview_counts_and_names_what_waits() {
    let server = Server::with_queue().await;
    server.publish("a").await;
    server.clock.advance(posthaste_core::DurationMs::from_secs(5));
    let overview = server.get("/v1/overview").await.expect(200);
    let states = ["cancelled", "committed", "dead_lettered", "leased", "retryable", "scheduled"];
    assert_eq!(states.to_vec(), overview["jobs"].as_object().unwrap().keys().collect::<Vec<_>>());
    assert_eq!(1, overview["jobs"]["scheduled"]);
    assert_eq!("2026-01-01T00:00:00.000Z", overview["oldest_due_at"]);
    assert_eq!("2026-01-01T00:00:05.000Z", overview["now"]);
    assert_eq!("2026-01-01T00:00:00.000Z", overview["destinations"][0]["next_due_at"]);
}
