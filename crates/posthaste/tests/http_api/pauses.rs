//! Pause, resume and enable over the API, on every store that needs no service. Rows B10, D4.

use std::{future::Future, sync::Arc};

use posthaste_core::DurationMs;
use posthaste_store::{
    memory::MemoryStore,
    sqlite::{SqliteOptions, SqliteStore},
};
use serde_json::{Value, json};

use crate::harness::{Reply, SECRET, Server, signature};

/// Runs `case` on every store.
async fn on_each_store<F: Future<Output = ()>>(case: impl Fn(Server) -> F) {
    case(Server::with_store(|clock| Arc::new(MemoryStore::new(clock))).await).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let open = |clock| Arc::new(SqliteStore::open(SqliteOptions::new(&path, clock)).unwrap());
    case(Server::with_store(|clock| open(clock)).await).await;
}

async fn taken(server: &Server) -> usize {
    let asked = json!({"queue": "carts", "worker": "w-1", "max": 10});
    server.post("/v1/queue/consume", &asked).await.expect(200)["jobs"].as_array().unwrap().len()
}

async fn publish(server: &Server, key: &str, to: Value) {
    let message = json!({"key": key, "payload": {}, "to": to});
    server.post("/v1/messages", &message).await.expect(202);
}

#[tokio::test]
async fn r_b10_a_queue_is_paused_with_a_reason_and_resumed() {
    on_each_store(|server| async move {
        server.queue(server.tenant, json!({"name": "carts"})).await;
        let pause = json!({"queue": "carts", "reason": "the database is down"});
        let paused = server.post("/v1/pause", &pause).await.expect(200);
        let at = paused["paused_at"].clone();
        let told = json!({
            "result": "paused", "scope": "queue", "id": "carts",
            "paused_at": at, "paused_reason": "the database is down", "paused_by": "tester",
            "disabled_at": null, "disabled_reason": null, "disabled_by": null,
            "circuit": "closed", "circuit_until": null,
        });
        assert_eq!(told, paused);
        server.clock.advance(DurationMs(5));
        let again = json!({"reason": "another"});
        let again = server.post("/v1/queues/carts/pause", &again).await.expect(200);
        assert_eq!(("already_paused", &at), (again["result"].as_str().unwrap(), &again["paused_at"]));
        assert_eq!("the database is down", again["paused_reason"], "the first one's reason stays");
        server.publish("k").await;
        assert_eq!(0, taken(&server).await);
        let shown = server.get("/v1/queues/carts").await.expect(200);
        assert_eq!(
            ("the database is down", "tester"),
            (shown["paused_reason"].as_str().unwrap(), shown["paused_by"].as_str().unwrap(),)
        );
        assert_eq!(at, server.get("/v1/queues").await.expect(200)["data"][0]["paused_at"]);
        let overview = server.get("/v1/overview").await.expect(200);
        assert_eq!(at, overview["destinations"][0]["paused_at"]);
        let resumed = server.post("/v1/resume", &json!({"queue": "carts"})).await.expect(200);
        assert_eq!(("resumed", &Value::Null), (resumed["result"].as_str().unwrap(), &resumed["paused_at"]));
        let again = server.post("/v1/queues/carts/resume", &json!({})).await.expect(200);
        assert_eq!("not_paused", again["result"]);
        assert_eq!(1, taken(&server).await);
        let timeline = server.get("/v1/timeline?key=k").await.expect(200);
        let stages: Vec<&str> =
            timeline["entries"].as_array().unwrap().iter().map(|e| e["stage"].as_str().unwrap()).collect();
        let held: Vec<&&str> = stages.iter().filter(|s| ["paused", "resumed"].contains(s)).collect();
        assert_eq!(vec![&"paused", &"resumed"], held, "{stages:?}");
    })
    .await;
}

#[tokio::test]
async fn r_b10_scheduling_is_paused_for_one_tenant() {
    on_each_store(|server| async move {
        server.queue(server.tenant, json!({"name": "carts"})).await;
        let pause = json!({"scope": "scheduling", "reason": "an incident"});
        assert_eq!("paused", server.post("/v1/pause", &pause).await.expect(200)["result"]);
        server.publish("k").await;
        assert_eq!(0, taken(&server).await, "accepted, not leased");
        let overview = server.get("/v1/overview").await.expect(200);
        assert_eq!("an incident", overview["scheduling_paused"]["reason"]);
        let page = server.get("/").await;
        assert!(page.status != 500, "{}", page.text());
        let resume = json!({"scope": "scheduling", "reason": "over"});
        assert_eq!("resumed", server.post("/v1/resume", &resume).await.expect(200)["result"]);
        assert_eq!(1, taken(&server).await);
        let overview = server.get("/v1/overview").await.expect(200);
        assert_eq!(Value::Null, overview["scheduling_paused"]);
    })
    .await;
}

async fn deliver(server: &Server, source: &str, id: &str) -> Reply {
    let signature = signature(SECRET, b"{}");
    let headers = [
        ("content-type", "application/json"),
        ("x-github-delivery", id),
        ("x-github-event", "push"),
        ("x-hub-signature-256", &signature),
    ];
    server.send("POST", &format!("/in/{source}"), &headers, b"{}").await
}

#[tokio::test]
async fn r_b10_a_paused_source_sends_back_or_keeps_as_configured() {
    on_each_store(|server| async move {
        server.queue(server.tenant, json!({"name": "carts"})).await;
        for (name, when_paused) in [("refuses", "refuse"), ("holds", "hold")] {
            let spec = json!({
                "name": name, "scheme": "github", "secrets": [SECRET], "to": {"queue": "carts"},
                "when_paused": when_paused,
            });
            server.source(server.tenant, spec).await;
            let pause = json!({"source": name, "reason": "an incident"});
            server.post("/v1/pause", &pause).await.expect(200);
        }
        let refused = deliver(&server, "refuses", "d-1").await;
        refused.problem(503, "source_paused");
        assert!(refused.header("retry-after").is_some());
        let unsigned = server.send("POST", "/in/refuses", &[], b"{}").await;
        unsigned.problem(401, "signature_invalid");
        deliver(&server, "holds", "d-1").await.expect(202);
        deliver(&server, "holds", "d-1").await.expect(200);
        assert_eq!(0, taken(&server).await);
        for name in ["refuses", "holds"] {
            server.post(&format!("/v1/sources/{name}/resume"), &json!({})).await.expect(200);
        }
        deliver(&server, "refuses", "d-1").await.expect(202);
        // The fan-out is woken by the resume.
        let asked = json!({"queue": "carts", "worker": "w-1", "max": 10, "wait": "20s"});
        let mut jobs = 0;
        while jobs < 2 {
            let taken = server.post("/v1/queue/consume", &asked).await.expect(200);
            jobs += taken["jobs"].as_array().unwrap().len();
        }
        let timeline = server.get("/v1/timeline?key=holds:d-1").await.expect(200);
        let entries = timeline["entries"].as_array().unwrap();
        let paused = entries.iter().find(|entry| entry["stage"] == "paused").unwrap();
        assert_eq!(
            ("source", "holds"),
            (paused["detail"]["scope"].as_str().unwrap(), paused["destination"].as_str().unwrap(),)
        );
    })
    .await;
}

#[tokio::test]
async fn r_d4_a_disabled_endpoint_says_why_and_is_enabled_again() {
    on_each_store(|server| async move {
        let spec = json!({"id": "fan", "url": "https://example.com/hooks", "secrets": []});
        server.endpoint(server.tenant, spec.clone()).await;
        server.sender.then_status(410);
        publish(&server, "gone", json!({"endpoints": ["fan"]})).await;
        server.sender.wait_for(1).await;
        let disabled = loop {
            let shown = server.get("/v1/endpoints/fan").await.expect(200);
            if shown["enabled"] == false {
                break shown;
            }
        };
        assert!(disabled["disabled_reason"].as_str().unwrap().contains("410"), "{disabled}");
        assert_eq!("posthaste", disabled["disabled_by"]);
        publish(&server, "kept", json!({"endpoints": ["fan"]})).await;
        let enabled = server.post("/v1/endpoints/fan/enable", &json!({"reason": "it is back"})).await;
        assert_eq!("enabled", enabled.expect(200)["result"]);
        server.sender.wait_for(2).await;
        let again = server.call("POST", "/v1/endpoints/fan/enable", &server.admin, b"").await;
        assert_eq!("already_enabled", again.expect(200)["result"]);
        // One that its configuration disables, too.
        let off = json!({"id": "fan", "url": "https://example.com/hooks", "enabled": false});
        server.endpoint(server.tenant, off).await;
        assert_eq!(false, server.get("/v1/endpoints/fan").await.expect(200)["enabled"]);
        let enabled = server.post("/v1/endpoints/fan/enable", &json!({})).await;
        assert_eq!("enabled", enabled.expect(200)["result"]);
        assert_eq!(true, server.get("/v1/endpoints/fan").await.expect(200)["enabled"]);
    })
    .await;
}

#[tokio::test]
async fn r_b10_what_is_not_clear_is_refused() {
    let server = Server::with_queue().await;
    let reason = "x";
    for (body, code) in [
        (json!({"reason": reason}), "invalid_value"),
        (json!({"scope": "everything", "reason": reason}), "invalid_value"),
        (json!({"scope": "scheduling", "queue": "carts", "reason": reason}), "invalid_value"),
        (json!({"queue": "carts", "endpoint": "fan", "reason": reason}), "invalid_value"),
        (json!({"queue": "carts"}), "missing_field"),
        (json!({"queue": "carts", "reason": " "}), "invalid_value"),
        (json!({"queue": "carts", "reason": reason, "why": reason}), "unknown_field"),
    ] {
        server.post("/v1/pause", &body).await.problem(422, code);
    }
    let elsewhere = json!({"queue": "nowhere", "reason": reason});
    server.post("/v1/pause", &elsewhere).await.problem(404, "unknown_queue");
    let wrong_kind = json!({"endpoint": "carts", "reason": reason});
    server.post("/v1/pause", &wrong_kind).await.problem(404, "unknown_endpoint");
    let key = server.key(server.tenant, "publish read work").await;
    for path in ["/v1/pause", "/v1/resume", "/v1/queues/carts/pause", "/v1/endpoints/fan/enable"] {
        let body = json!({"queue": "carts", "reason": reason}).to_string();
        server.call("POST", path, &key, body.as_bytes()).await.problem(403, "forbidden");
    }
    assert_eq!(Value::Null, server.get("/v1/queues/carts").await.expect(200)["paused_at"]);
}
