//! The receiver's ledger over HTTP, and queues that keep it.

use posthaste_core::DurationMs;
use serde_json::{Value, json};

use crate::harness::{Server, with};

async fn claim(server: &Server, key: &str, more: Value) -> Value {
    server.post("/v1/ledger/claim", &with(json!({"key": key}), more)).await.expect(200)
}

async fn entry(server: &Server, key: &str) -> Value {
    server.get(&format!("/v1/ledger?key={key}")).await.expect(200)
}

#[tokio::test]
async fn r_c1_a_claim_is_told_one_of_four_paths() {
    let server = Server::start().await;
    let first = claim(&server, "charge:7", json!({"lease": "30s"})).await;
    let expected = json!({
        "path": "first_run", "fence": first["fence"], "attempts": 1, "previous": "none",
        "locked_until": "2026-01-01T00:00:30.000Z",
    });
    assert_eq!(expected, first);
    let other = server.post("/v1/ledger/claim", &json!({"key": "charge:7"})).await;
    assert_eq!(Some("30"), other.header("retry-after"));
    let expected = json!({"path": "in_progress_elsewhere", "locked_until": "2026-01-01T00:00:30.000Z"});
    assert_eq!(expected, other.expect(200));
    let report = |verb: &'static str, more: Value| {
        let body = with(json!({"key": "charge:7", "fence": first["fence"]}), more);
        (format!("/v1/ledger/{verb}"), body)
    };
    let (path, body) = report("fail", json!({"class": "timeout", "message": "no answer"}));
    assert_eq!("failed", server.post(&path, &body).await.expect(200)["status"]);
    let again = claim(&server, "charge:7", json!({})).await;
    assert_eq!(
        (json!("retry_after_failure"), json!("failed")),
        (again["path"].clone(), again["previous"].clone())
    );
    let (path, body) = report("complete", json!({}));
    let problem = server.post(&path, &body).await.problem(409, "stale_fence");
    assert_eq!((&json!("in_progress"), &again["fence"]), (&problem["entry_status"], &problem["fence"]));
    let body = json!({"key": "charge:7", "fence": again["fence"], "result": {"id" : "ch_1"}});
    let done = server.post("/v1/ledger/complete", &body).await.expect(200);
    assert_eq!(
        json!({"status": "done", "outcome": "committed", "fence": again["fence"], "locked_until": null}),
        done
    );
    assert_eq!(done, server.post("/v1/ledger/complete", &body).await.expect(200), "a repeat is told yes");
    let expected = json!({
        "path": "duplicate_done", "outcome": "committed", "result": {"id": "ch_1"}, "result_base64": null,
        "content_type": "application/json", "status": null,
    });
    assert_eq!(expected, claim(&server, "charge:7", json!({})).await);
}

#[tokio::test]
async fn r_c4_what_duplicates_are_answered_comes_back_byte_for_byte() {
    let server = Server::start().await;
    let granted = claim(&server, "a", json!({})).await;
    let body = json!({
        "key": "a", "fence": granted["fence"], "outcome": "cancelled", "result_base64": "AP8gew==",
        "content_type": "application/x", "status": 201,
    });
    server.post("/v1/ledger/complete", &body).await.expect(200);
    let expected = json!({
        "path": "duplicate_done", "outcome": "cancelled", "result": null, "result_base64": "AP8gew==",
        "content_type": "application/x", "status": 201,
    });
    assert_eq!(expected, claim(&server, "a", json!({})).await);
    // JSON as it was written, spaces and all.
    let granted = claim(&server, "b", json!({})).await;
    let text = format!(r#"{{"key":"b","fence":{},"result": {{ "b" : 1.50 }} }}"#, granted["fence"]);
    server.call("POST", "/v1/ledger/complete", &server.admin, text.as_bytes()).await.expect(200);
    let answer = server.post("/v1/ledger/claim", &json!({"key": "b"})).await;
    let answer = String::from_utf8(answer.body.clone()).unwrap();
    assert!(answer.contains(r#""result":{ "b" : 1.50 }"#), "{answer}");
}

#[tokio::test]
async fn r_c7_a_claim_that_is_sent_again_gets_its_own_grant() {
    let server = Server::start().await;
    let named = json!({"claim_id": "delivery-1", "fingerprint": "sha256:1"});
    let first = claim(&server, "a", named.clone()).await;
    assert_eq!(first, claim(&server, "a", named).await);
    let other = json!({"key": "a", "claim_id": "delivery-1", "fingerprint": "sha256:2"});
    let problem = server.post("/v1/ledger/claim", &other).await.problem(422, "key_reused");
    assert_eq!("fingerprint", problem["field"]);
    assert_eq!("in_progress", entry(&server, "a").await["status"], "untouched");
}

#[tokio::test]
async fn r_c3_a_grant_is_prolonged_while_it_holds_and_taken_over_after() {
    let server = Server::start().await;
    let first = claim(&server, "a", json!({"lease": "10s"})).await;
    let extend = json!({"key": "a", "fence": first["fence"], "lease": "20s"});
    let extended = server.post("/v1/ledger/extend", &extend).await.expect(200);
    assert_eq!("2026-01-01T00:00:20.000Z", extended["locked_until"]);
    server.clock.advance(DurationMs::from_secs(20));
    server.post("/v1/ledger/extend", &extend).await.problem(409, "lease_expired");
    let held = claim(&server, "h", json!({"lease": "1s", "on_expired": "hold"})).await;
    server.clock.advance(DurationMs::from_secs(2));
    let expected = json!({"path": "in_progress_elsewhere", "locked_until": null});
    assert_eq!(expected, claim(&server, "h", json!({})).await);
    assert_eq!("expired", claim(&server, "a", json!({})).await["previous"]);
    let complete = json!({"key": "h", "fence": held["fence"]});
    server.post("/v1/ledger/complete", &complete).await.expect(200);
}

#[tokio::test]
async fn r_c9_a_reset_names_what_it_saw_needs_a_reason_and_is_for_operators() {
    let server = Server::start().await;
    let granted = claim(&server, "a", json!({})).await;
    let complete = json!({"key": "a", "fence": granted["fence"]});
    server.post("/v1/ledger/complete", &complete).await.expect(200);
    let reset =
        json!({"key": "a", "fence": granted["fence"], "status": "done", "reason": "refunded by mistake"});
    let worker = server.key(server.tenant, "work read").await;
    let refused = server.call("POST", "/v1/ledger/reset", &worker, reset.to_string().as_bytes()).await;
    refused.problem(403, "forbidden");
    let wrong = with(reset.clone(), json!({"status": "failed"}));
    let problem = server.post("/v1/ledger/reset", &wrong).await.problem(409, "entry_changed");
    assert_eq!("done", problem["entry_status"]);
    server
        .post("/v1/ledger/reset", &with(reset.clone(), json!({"reason": " "})))
        .await
        .problem(422, "invalid_value");
    assert_eq!("failed", server.post("/v1/ledger/reset", &reset).await.expect(200)["status"]);
    let shown = entry(&server, "a").await;
    let expected = json!({"at": "2026-01-01T00:00:00.000Z", "by": "tester", "reason": "refunded by mistake"});
    assert_eq!(expected, shown["reset"]);
    server.post("/v1/ledger/complete", &complete).await.problem(409, "stale_fence");
    assert_eq!("retry_after_failure", claim(&server, "a", json!({})).await["path"]);
    let nothing = json!({"key": "b", "fence": "1.1", "status": "done", "reason": "x"});
    server.post("/v1/ledger/reset", &nothing).await.problem(404, "not_found");
}

#[tokio::test]
async fn what_can_not_be_meant_is_refused_with_its_place() {
    let server = Server::start().await;
    let granted = claim(&server, "a", json!({})).await;
    for (path, body, code) in [
        ("claim", json!({"key": ""}), "invalid_name"),
        ("claim", json!({"key": "a b"}), "invalid_name"),
        ("claim", json!({"key": "x".repeat(322)}), "invalid_name"),
        ("claim", json!({"key": "b", "lease": "1ms"}), "invalid_value"),
        ("claim", json!({"key": "b", "lease": "13h"}), "invalid_value"),
        ("claim", json!({"key": "b", "lease": 30}), "invalid_duration"),
        ("claim", json!({"key": "b", "leas": "30s"}), "unknown_field"),
        ("claim", json!({"key": "b", "claim_id": ""}), "invalid_value"),
        ("claim", json!({"key": "b", "fingerprint": "x".repeat(257)}), "invalid_value"),
        ("claim", json!({"key": "b", "on_expired": "wait"}), "invalid_value"),
        ("claim", json!({}), "missing_field"),
        ("complete", json!({"key": "a"}), "missing_field"),
        ("complete", json!({"key": "a", "fence": "1.1", "outcome": "duplicate"}), "invalid_value"),
        (
            "complete",
            json!({"key": "a", "fence": "1.1", "result": 1, "result_base64": "AA=="}),
            "payload_conflict",
        ),
        ("complete", json!({"key": "a", "fence": "1.1", "result_base64": "?"}), "invalid_value"),
        ("complete", json!({"key": "a", "fence": "1.1", "status": 99}), "invalid_value"),
        ("complete", json!({"key": "a", "fence": "1.1", "content_type": "a\nb"}), "invalid_value"),
        ("complete", json!({"key": "a", "fence": "1.1", "result": "x".repeat(65_536)}), "invalid_value"),
        ("fail", json!({"key": "a", "fence": "1.1", "class": "bad luck"}), "invalid_value"),
    ] {
        server.post(&format!("/v1/ledger/{path}"), &body).await.problem(422, code);
    }
    for never in ["", "1", "2.1", "1.01", "x"] {
        let complete = json!({"key": "a", "fence": never});
        server.post("/v1/ledger/complete", &complete).await.problem(409, "stale_fence");
    }
    server.get("/v1/ledger?key=b").await.problem(404, "not_found");
    assert_eq!(granted["fence"], entry(&server, "a").await["fence"], "nothing was changed");
}

#[tokio::test]
async fn r_e5_a_key_that_is_bound_to_a_destination_claims_its_event_ids_alone() {
    let server = Server::with_queue().await;
    let bound = server.key(server.tenant, "work:carts").await;
    let claim = async |key: &str| {
        let body = json!({"key": key}).to_string();
        server.call("POST", "/v1/ledger/claim", &bound, body.as_bytes()).await
    };
    claim("k:carts").await.expect(200);
    claim("k:others").await.problem(403, "forbidden");
    claim("k").await.problem(403, "forbidden");
}

#[tokio::test]
async fn r_g6_a_ledger_is_the_tenants_own() {
    let server = Server::start().await;
    claim(&server, "a", json!({})).await;
    let other = server.engine.ensure_tenant("other").await.unwrap();
    let key = server.key(other, "work read").await;
    server.call("GET", "/v1/ledger?key=a", &key, b"").await.problem(404, "not_found");
    let first = server.call("POST", "/v1/ledger/claim", &key, br#"{"key":"a"}"#).await.expect(200);
    assert_eq!("first_run", first["path"]);
}

#[tokio::test]
async fn r_c2_a_queue_keeps_the_ledger_of_its_jobs() {
    let server = Server::with_queue().await;
    server.publish("k").await;
    let job = server.consume().await;
    let shown = entry(&server, "k:carts").await;
    assert_eq!((json!("in_progress"), job["id"].clone()), (shown["status"].clone(), shown["of_job"].clone()));
    assert_eq!("in_progress_elsewhere", claim(&server, "k:carts", json!({})).await["path"]);
    let ack = json!({"job": job["id"], "fence": job["fence"], "result": {"sent": true}});
    server.post("/v1/queue/ack", &ack).await.expect(200);
    let done = claim(&server, "k:carts", json!({"job": job["id"]})).await;
    assert_eq!(
        (json!("duplicate_done"), json!({"sent": true})),
        (done["path"].clone(), done["result"].clone())
    );
    let wrong = json!({"key": "other:carts", "job": job["id"]});
    server.post("/v1/ledger/claim", &wrong).await.problem(422, "invalid_value");
}

#[tokio::test]
async fn r_c2_a_job_whose_effect_is_done_is_finished_without_being_handed_out() {
    let server = Server::with_queue().await;
    server.publish("k").await;
    let granted = claim(&server, "k:carts", json!({"lease": "2m"})).await;
    let nothing = server.post("/v1/queue/consume", &json!({"queue": "carts"})).await.expect(200);
    assert_eq!(json!({"jobs": []}), nothing, "somebody else is at it");
    let complete = json!({"key": "k:carts", "fence": granted["fence"]});
    server.post("/v1/ledger/complete", &complete).await.expect(200);
    server.clock.advance(DurationMs::from_hours(1));
    let nothing = server.post("/v1/queue/consume", &json!({"queue": "carts"})).await.expect(200);
    assert_eq!(json!({"jobs": []}), nothing);
    let timeline = server.get("/v1/timeline?key=k").await.expect(200);
    let job = &timeline["jobs"][0];
    let told = (job["state"].clone(), job["evidence"].clone());
    assert_eq!((json!("committed"), json!("ledger")), told, "{timeline}");
    // Both truths side by side. Row C8.
    let entry = &timeline["ledger"][0];
    let told = (entry["key"].clone(), entry["status"].clone(), entry["of_job"].clone());
    assert_eq!((json!("k:carts"), json!("done"), json!(null)), told);
}
