//! Schedules over the API, on both stores. Rows B10, B14.

use std::sync::Arc;

use posthaste_core::DurationMs;
use posthaste_store::sqlite::{SqliteOptions, SqliteStore};
use serde_json::{Value, json};

use crate::harness::{Reply, Server};

/// Runs a test on the memory store, then on SQLite.
async fn on_both(test: impl AsyncFn(&Server)) {
    let server = Server::with_queue().await;
    test(&server).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let open = |clock| SqliteStore::open(SqliteOptions::new(&path, clock)).unwrap();
    let server = Server::with_store(|clock| Arc::new(open(clock))).await;
    server.queue(server.tenant, json!({"name": "carts", "lease": "60s"})).await;
    test(&server).await;
}

async fn put(server: &Server, name: &str, spec: &Value) -> Reply {
    let body = spec.to_string();
    server.call("PUT", &format!("/v1/schedules/{name}"), &server.admin, body.as_bytes()).await
}

/// Waits until the schedule shows `value` as its `field`.
async fn shows(server: &Server, name: &str, field: &str, value: &str) -> Value {
    let waiting = async {
        loop {
            let shown = server.get(&format!("/v1/schedules/{name}")).await.expect(200);
            if shown[field] == value {
                return shown;
            }
        }
    };
    let waited = tokio::time::timeout(std::time::Duration::from_mins(1), waiting).await;
    waited.unwrap_or_else(|_| panic!("{name} never shows {value} as its {field}"))
}

fn nightly() -> Value {
    json!({"name": "nightly", "cron": "30 2 * * *", "timezone": "Europe/Berlin", "to": {"queue": "carts"},
        "payload": {"at": "{{scheduled_at}}"}, "owner": "team-reports"})
}

#[tokio::test]
async fn r_b14_a_schedule_is_made_fires_and_is_shown() {
    on_both(async |server| {
        let made = server.post("/v1/schedules", &nightly()).await.expect(201);
        assert_eq!(
            json!(["nightly", "active", true, "team-reports", "api", "2026-01-01T01:30:00.000Z", null, null]),
            json!([
                made["id"],
                made["state"],
                made["enabled"],
                made["owner"],
                made["managed_by"],
                made["next_fire_at"],
                made["last_fired_at"],
                made["problem"]
            ])
        );
        server.post("/v1/schedules", &nightly()).await.problem(409, "already_exists");
        server.clock.advance(DurationMs::from_mins(90));
        let shown = shows(server, "nightly", "last_fired_at", "2026-01-01T01:30:00.000Z").await;
        assert_eq!("2026-01-02T01:30:00.000Z", shown["next_fire_at"]);
        let timeline =
            server.get("/v1/timeline?key=schedule:nightly:2026-01-01T01:30:00.000Z").await.expect(200);
        assert_eq!(1, timeline["jobs"].as_array().unwrap().len());
        let message =
            server.get("/v1/messages?key=schedule:nightly:2026-01-01T01:30:00.000Z").await.expect(200);
        assert_eq!(shown["last_message_id"], message["id"]);
        assert_eq!(
            json!({"schedule": "nightly", "scheduled_at": "2026-01-01T01:30:00.000Z"}),
            message["metadata"]
        );
        let job = server.consume().await;
        assert_eq!(json!({"at": "2026-01-01T01:30:00.000Z"}), job["payload"]);
    })
    .await;
}

#[tokio::test]
async fn r_b14_schedules_are_listed_changed_and_deleted() {
    on_both(async |server| {
        for name in ["c", "a", "b"] {
            let mut spec = nightly();
            spec["name"] = name.into();
            put(server, name, &spec).await.expect(200);
        }
        let page = server.get("/v1/schedules?limit=2").await.expect(200);
        assert_eq!(json!(["a", "b"]), json!([page["data"][0]["id"], page["data"][1]["id"]]));
        let page = server.get("/v1/schedules?limit=2&cursor=b").await.expect(200);
        assert_eq!((&json!("c"), &Value::Null), (&page["data"][0]["id"], &page["next_cursor"]));
        put(server, "other", &nightly()).await.problem(422, "invalid_value");
        let mut changed = nightly();
        (changed["name"], changed["cron"]) = ("a".into(), "0 3 * * *".into());
        let changed = put(server, "a", &changed).await.expect(200);
        assert_eq!("2026-01-01T02:00:00.000Z", changed["next_fire_at"]);
        assert_eq!(204, server.call("DELETE", "/v1/schedules/a", &server.admin, b"").await.status);
        server.call("DELETE", "/v1/schedules/a", &server.admin, b"").await.problem(404, "not_found");
        server.get("/v1/schedules/a").await.problem(404, "not_found");
        server.get("/v1/schedules/a%20b").await.problem(404, "not_found");
    })
    .await;
}

#[tokio::test]
async fn r_b10_a_pause_needs_a_reason_and_says_who_and_why() {
    on_both(async |server| {
        server.post("/v1/schedules", &nightly()).await.expect(201);
        let path = "/v1/schedules/nightly/pause";
        server.post(path, &json!({})).await.problem(422, "missing_field");
        server.post(path, &json!({"reason": " "})).await.problem(422, "invalid_value");
        server.post(path, &json!({"reason": "x", "why": "y"})).await.problem(422, "unknown_field");
        let paused = server.post(path, &json!({"reason": "stock-taking"})).await.expect(200);
        assert_eq!(
            json!(["paused", "tester", "stock-taking", "2026-01-01T00:00:00.000Z"]),
            json!([paused["state"], paused["paused_by"], paused["paused_reason"], paused["paused_at"]])
        );
        let again = server.post(path, &json!({"reason": "another"})).await.expect(200);
        assert_eq!("stock-taking", again["paused_reason"]);
        server.clock.advance(DurationMs::from_mins(91));
        let resumed =
            server.post("/v1/schedules/nightly/resume", &json!({"reason": "done"})).await.expect(200);
        assert_eq!(
            json!(["active", null, null, "2026-01-02T01:30:00.000Z", null]),
            json!([
                resumed["state"],
                resumed["paused_at"],
                resumed["paused_reason"],
                resumed["next_fire_at"],
                resumed["last_fired_at"]
            ])
        );
        server.post("/v1/schedules/gone/pause", &json!({"reason": "x"})).await.problem(404, "not_found");
        server.post("/v1/schedules/gone/resume", &json!({"reason": "x"})).await.problem(404, "not_found");
    })
    .await;
}

#[tokio::test]
async fn r_b14_a_schedule_is_fired_out_of_turn_once_a_request() {
    on_both(async |server| {
        server.post("/v1/schedules", &nightly()).await.expect(201);
        let authorization = format!("Bearer {}", server.admin);
        let headers = [("authorization", authorization.as_str()), ("idempotency-key", "r-1")];
        let path = "/v1/schedules/nightly/run";
        let first = server.send("POST", path, &headers, b"").await.expect(202);
        assert_eq!(json!(["first_run", "schedule:nightly:run:r-1"]), json!([first["path"], first["key"]]));
        server.clock.advance(DurationMs(5));
        let again = server.send("POST", path, &headers, b"").await.expect(200);
        assert_eq!((&json!("duplicate_done"), &first["message_id"]), (&again["path"], &again["message_id"]));
        let plain = server.call("POST", path, &server.admin, b"").await.expect(202);
        assert_eq!("schedule:nightly:run:2026-01-01T00:00:00.005Z", plain["key"]);
        assert_eq!(2, server.jobs_total().await);
        server
            .send("POST", path, &[headers[0], ("idempotency-key", "a b")], b"")
            .await
            .problem(422, "invalid_name");
    })
    .await;
}

#[tokio::test]
async fn r_b14_the_next_firings_are_foretold_in_local_time_and_utc() {
    on_both(async |server| {
        server.clock.set(posthaste_core::Timestamp(1_774_650_000_000));
        server.post("/v1/schedules", &nightly()).await.expect(201);
        let next = server.get("/v1/schedules/nightly/next?limit=2").await.expect(200);
        assert_eq!(
            json!([
                {"at": "2026-03-28T01:30:00.000Z", "local": "2026-03-28T02:30:00+01:00[Europe/Berlin]"},
                {"at": "2026-03-29T01:00:00.000Z", "local": "2026-03-29T03:00:00+02:00[Europe/Berlin]"},
            ]),
            next["data"]
        );
        server.get("/v1/schedules/nightly/next?limit=0").await.problem(422, "invalid_parameter");
        server.get("/v1/schedules/gone/next").await.problem(404, "not_found");
    })
    .await;
}

#[tokio::test]
async fn r_b14_what_is_wrong_is_refused_with_its_place() {
    let server = Server::with_queue().await;
    for (changed, place) in [
        (json!({"cron": "61 * * * *"}), "cron"),
        (json!({"cron": "0 0 30 2 *"}), "cron"),
        (json!({"timezone": "Berlin"}), "timezone"),
        (json!({"to": {"queue": "gone"}}), "to"),
        (json!({"to": {"endpoints": ["carts"]}}), "to"),
        (json!({"name": "a b"}), "name"),
        (json!({"jitter": "3d"}), "jitter"),
    ] {
        let mut spec = nightly();
        spec.as_object_mut().unwrap().extend(changed.as_object().unwrap().clone());
        let problem = server.post("/v1/schedules", &spec).await.problem(422, "invalid_configuration");
        assert_eq!(place, problem["path"], "{problem}");
    }
    let mut typo = nightly();
    typo["catchup"] = "all".into();
    server.post("/v1/schedules", &typo).await.problem(422, "unknown_field");
    assert_eq!(json!([]), server.get("/v1/schedules").await.expect(200)["data"]);
}

#[tokio::test]
async fn r_g6_schedules_are_the_tenants_own_and_want_a_scope() {
    let server = Server::with_queue().await;
    server.post("/v1/schedules", &nightly()).await.expect(201);
    let other = server.engine.ensure_tenant("other").await.unwrap();
    let stranger = server.key(other, "operate read").await;
    assert_eq!(json!([]), server.call("GET", "/v1/schedules", &stranger, b"").await.expect(200)["data"]);
    for (method, path) in [
        ("GET", "/v1/schedules/nightly"),
        ("GET", "/v1/schedules/nightly/next"),
        ("DELETE", "/v1/schedules/nightly"),
        ("POST", "/v1/schedules/nightly/run"),
    ] {
        server.call(method, path, &stranger, b"").await.problem(404, "not_found");
    }
    let reader = server.key(server.tenant, "read").await;
    server.call("GET", "/v1/schedules/nightly", &reader, b"").await.expect(200);
    for (method, path) in [
        ("POST", "/v1/schedules"),
        ("PUT", "/v1/schedules/nightly"),
        ("DELETE", "/v1/schedules/nightly"),
        ("POST", "/v1/schedules/nightly/pause"),
        ("POST", "/v1/schedules/nightly/resume"),
        ("POST", "/v1/schedules/nightly/run"),
    ] {
        server.call(method, path, &reader, b"{}").await.problem(403, "forbidden");
    }
}

#[tokio::test]
async fn r_b14_the_overview_tells_of_a_schedule_that_cannot_fire() {
    let server = Server::with_queue().await;
    server.post("/v1/schedules", &nightly()).await.expect(201);
    assert_eq!("active", server.get("/v1/overview").await.expect(200)["schedules"][0]["state"]);
    server.call("DELETE", "/v1/queues/carts", &server.admin, b"").await;
    let line = server.get("/v1/overview").await.expect(200)["schedules"][0].clone();
    assert_eq!(
        json!(["nightly", "broken", "team-reports", "there is no queue \"carts\""]),
        json!([line["id"], line["state"], line["owner"], line["problem"]])
    );
}
