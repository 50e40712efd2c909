//! Workers: leases, reports, and what stale, late and repeated reports are answered.

use posthaste_core::DurationMs;
use serde_json::{Value, json};

use crate::harness::{Reply, Server, with};

async fn report(server: &Server, verb: &str, job: &Value, more: Value) -> Reply {
    let body = with(json!({"job": job["id"], "fence": job["fence"]}), more);
    server.post(&format!("/v1/queue/{verb}"), &body).await
}

async fn job_of(server: &Server, job: &Value) -> Value {
    server.get(&format!("/v1/jobs/{}", job["id"].as_str().unwrap())).await.expect(200)
}

#[tokio::test]
async fn r_b3_a_leased_job_holds_what_its_attempt_needs() {
    let server = Server::with_queue().await;
    let request = json!({"queue": "carts", "key": "cart:8f31:expire", "type": "cart.expire", "metadata": {"a": 1},
        "payload": {"cart": "8f31"}, "delay": "24h"});
    let published = server.post("/v1/queue/publish", &request).await.expect(202);
    let nothing = server.post("/v1/queue/consume", &json!({"queue": "carts"})).await.expect(200);
    assert_eq!(json!({"jobs": []}), nothing);
    server.clock.advance(DurationMs::from_hours(25));
    let job = server.consume().await;
    let expected = json!({
        "id": published["jobs"][0]["id"], "event_id": "cart:8f31:expire:carts", "message_id": published["message"]["id"],
        "key": "cart:8f31:expire", "attempt": 1, "fence": job["fence"], "path": "first_run", "type": "cart.expire",
        "metadata": {"a": 1}, "payload": {"cart": "8f31"}, "payload_base64": null, "payload_ref": null,
        "content_type": "application/json", "subscriber_id": "carts", "checkpoint": null,
        "scheduled_at": "2026-01-02T00:00:00.000Z", "due_at": "2026-01-02T00:00:00.000Z",
        "leased_at": "2026-01-02T01:00:00.000Z", "lease_expires_at": "2026-01-02T01:01:00.000Z",
        "deadline_at": "2026-01-02T01:15:00.000Z", "traceparent": null,
    });
    assert_eq!(expected, job);
    assert!(job["fence"].as_str().unwrap().len() <= 128);
}

#[tokio::test]
async fn r_b3_a_job_is_done_once_and_a_lost_answer_is_had_again() {
    let server = Server::with_queue().await;
    server.publish("k").await;
    let job = server.consume().await;
    let ack = json!({"outcome": "committed", "result": {"sent": true}});
    let first = report(&server, "ack", &job, ack.clone()).await.expect(200);
    assert_eq!(json!({"state": "committed", "due_at": null}), first);
    assert_eq!(first, report(&server, "ack", &job, ack).await.expect(200));
    let problem =
        report(&server, "ack", &job, json!({"outcome": "duplicate"})).await.problem(409, "already_reported");
    assert_eq!("committed", problem["reported"]["outcome"]);
    report(&server, "reject", &job, json!({"class": "timeout"})).await.problem(409, "already_reported");
    let shown = job_of(&server, &job).await;
    assert_eq!((json!("committed"), json!("worker")), (shown["state"].clone(), shown["evidence"].clone()));
    assert_eq!(json!({"sent": true}), shown["attempts"][0]["result"]);
    assert_eq!(json!({"lo": 1, "hi": 1}), shown["effects"]);
}

#[tokio::test]
async fn r_b3_a_forged_fence_changes_nothing() {
    let server = Server::with_queue().await;
    server.publish("k").await;
    let job = server.consume().await;
    let before = job_of(&server, &job).await;
    for fence in ["", "x", "1", "1.0", "1.2", "2.1", "01.1", "1.1 ", "4294967296.1", &"9".repeat(200)] {
        for (verb, more) in
            [("extend", json!({})), ("ack", json!({})), ("reject", json!({})), ("release", json!({}))]
        {
            let mut forged = job.clone();
            forged["fence"] = fence.into();
            report(&server, verb, &forged, more).await.problem(409, "stale_fence");
        }
    }
    assert_eq!(before, job_of(&server, &job).await);
    report(&server, "ack", &job, json!({})).await.expect(200);
}

#[tokio::test]
async fn r_b3_a_superseded_worker_can_change_nothing() {
    let server = Server::with_queue().await;
    server.publish("k").await;
    let stale = server.consume().await;
    let answer = report(&server, "reject", &stale, json!({"class": "connect"})).await.expect(200);
    assert_eq!("retryable", answer["state"]);
    assert!(answer["due_at"].is_string());
    server.clock.advance(DurationMs::from_mins(20));
    let current = server.consume().await;
    assert_eq!(
        (json!(2), json!("retry_after_failure")),
        (current["attempt"].clone(), current["path"].clone())
    );
    report(&server, "ack", &stale, json!({})).await.problem(409, "already_reported");
    report(&server, "extend", &stale, json!({})).await.problem(409, "stale_fence");
    assert_eq!("leased", job_of(&server, &current).await["state"]);
    report(&server, "ack", &current, json!({})).await.expect(200);
}

#[tokio::test]
async fn r_b3_a_late_worker_may_still_finish_but_not_extend() {
    let server = Server::with_queue().await;
    server.publish("k").await;
    let job = server.consume().await;
    let extended =
        report(&server, "extend", &job, json!({"lease": "90s", "checkpoint": {"page": 7}})).await.expect(200);
    let expected = json!({"lease_expires_at": "2026-01-01T00:01:30.000Z", "cancel_requested": false});
    assert_eq!(expected, extended);
    server.clock.advance(DurationMs::from_secs(91));
    report(&server, "extend", &job, json!({"lease": "60s"})).await.problem(409, "lease_expired");
    assert_eq!("committed", report(&server, "ack", &job, json!({})).await.expect(200)["state"]);
}

#[tokio::test]
async fn r_b3_a_successor_gets_the_checkpoint() {
    let server = Server::with_queue().await;
    server.publish("k").await;
    let job = server.consume().await;
    report(&server, "extend", &job, json!({"checkpoint": {"page": 7}})).await.expect(200);
    let too_large = json!({"checkpoint": "x".repeat(4 * 1024)});
    report(&server, "extend", &job, too_large).await.problem(422, "invalid_value");
    let released = report(&server, "release", &job, json!({})).await.expect(200);
    assert_eq!("scheduled", released["state"]);
    server.clock.advance(DurationMs::from_mins(2));
    assert_eq!(json!({"page": 7}), server.consume().await["checkpoint"]);
}

#[tokio::test]
async fn r_b8_a_running_worker_learns_of_a_cancel_and_what_it_reports_counts() {
    let server = Server::with_queue().await;
    server.publish("k").await;
    let job = server.consume().await;
    let path = format!("/v1/jobs/{}/cancel", job["id"].as_str().unwrap());
    server.post(&path, &json!({})).await.problem(422, "missing_field");
    server.post(&path, &json!({"reason": " "})).await.problem(422, "invalid_value");
    let answer = server.post(&path, &json!({"reason": "paid by phone"})).await.expect(200);
    assert_eq!(json!({"result": "requested"}), answer);
    assert_eq!(true, report(&server, "extend", &job, json!({})).await.expect(200)["cancel_requested"]);
    let ended = json!({"outcome": "cancelled", "reason": "stopped"});
    assert_eq!("cancelled", report(&server, "ack", &job, ended).await.expect(200)["state"]);
}

#[tokio::test]
async fn r_b8_a_waiting_job_is_called_off_for_good() {
    let server = Server::with_queue().await;
    let job = server.publish("k").await;
    let path = format!("/v1/jobs/{}/cancel", job["id"].as_str().unwrap());
    assert_eq!("cancelled", server.post(&path, &json!({"reason": "mistake"})).await.expect(200)["result"]);
    let shown = job_of(&server, &job).await;
    assert_eq!((json!("cancelled"), json!("mistake")), (shown["state"].clone(), shown["reason"].clone()));
    assert_eq!(
        json!({"jobs": []}),
        server.post("/v1/queue/consume", &json!({"queue": "carts"})).await.expect(200)
    );
    server.publish("done").await;
    let done = server.consume().await;
    report(&server, "ack", &done, json!({})).await.expect(200);
    let path = format!("/v1/jobs/{}/cancel", done["id"].as_str().unwrap());
    assert_eq!("too_late", server.post(&path, &json!({"reason": "late"})).await.expect(200)["result"]);
    server.post("/v1/jobs/job_nonsense/cancel", &json!({"reason": "r"})).await.problem(404, "not_found");
}

#[tokio::test]
async fn r_b3_many_reports_are_answered_each() {
    let server = Server::with_queue().await;
    for key in ["a", "b", "c"] {
        server.publish(key).await;
    }
    let consume = json!({"queue": "carts", "max": 10});
    let leased = server.post("/v1/queue/consume", &consume).await.expect(200)["jobs"].clone();
    let jobs = json!([
        {"job": leased[0]["id"], "fence": leased[0]["fence"]},
        {"job": leased[1]["id"], "fence": "forged"},
        {"job": leased[2]["id"], "fence": leased[2]["fence"], "outcome": "done"},
        {"job": "job_nonsense", "fence": "1.1"},
        {"fence": "1.1"},
        7,
    ]);
    let answer = server.post("/v1/queue/ack", &json!({"jobs": jobs})).await.expect(200);
    let results = answer["results"].as_array().unwrap();
    let said: Vec<(u64, &str)> = results
        .iter()
        .map(|result| {
            let said = result["code"].as_str().or(result["state"].as_str()).unwrap();
            (result["status"].as_u64().unwrap(), said)
        })
        .collect();
    let expected = [
        (200, "committed"),
        (409, "stale_fence"),
        (422, "invalid_value"),
        (404, "not_found"),
        (422, "missing_field"),
        (422, "invalid_type"),
    ];
    assert_eq!(expected.to_vec(), said);
    assert_eq!(leased[1]["id"], results[1]["job"]);
    let mixed = json!({"jobs": [], "job": "job_x", "fence": "1.1"});
    server.post("/v1/queue/ack", &mixed).await.problem(422, "unknown_field");
    let many = json!({"jobs": vec![json!({}); 1_001]});
    server.post("/v1/queue/release", &many).await.problem(422, "too_many_items");
}

#[tokio::test]
async fn reports_are_read_strictly() {
    let server = Server::with_queue().await;
    server.publish("k").await;
    let job = server.consume().await;
    for (verb, more, code) in [
        ("ack", json!({"outcome": "failed"}), "invalid_value"),
        ("ack", json!({"outcom": "committed"}), "unknown_field"),
        ("ack", json!({"result": "x".repeat(64 * 1024)}), "invalid_value"),
        ("reject", json!({"class": "cosmic_rays"}), "invalid_value"),
        ("reject", json!({"effect": "some"}), "invalid_value"),
        ("reject", json!({"retry": "maybe"}), "invalid_value"),
        ("reject", json!({"retry_after": "30"}), "invalid_duration"),
        ("extend", json!({"lease": "0s"}), "invalid_value"),
        ("extend", json!({"lease": "13h"}), "invalid_value"),
        ("extend", json!({"lease": -1}), "invalid_duration"),
    ] {
        report(&server, verb, &job, more).await.problem(422, code);
    }
    for (more, code) in [
        (json!({"max": 0}), "invalid_value"),
        (json!({"max": 1_001}), "invalid_value"),
        (json!({"max": -1}), "invalid_value"),
        (json!({"wait": "20"}), "invalid_duration"),
        (json!({"worker": "w".repeat(129)}), "invalid_value"),
    ] {
        server.post("/v1/queue/consume", &with(json!({"queue": "carts"}), more)).await.problem(422, code);
    }
    for retry in [json!(true), json!(false), json!("auto")] {
        let answer = report(&server, "reject", &job, json!({"retry": retry, "class": "server_error"})).await;
        assert!([200, 409].contains(&answer.status), "{}", answer.text());
    }
}

#[tokio::test]
async fn r_b3_a_worker_that_waits_gets_the_job_when_it_comes() {
    let server = Server::with_queue().await;
    let waiting = async {
        let consume = json!({"queue": "carts", "wait": "20s"});
        server.post("/v1/queue/consume", &consume).await.expect(200)["jobs"][0]["key"].clone()
    };
    let (key, _) = tokio::join!(waiting, server.publish("k"));
    assert_eq!("k", key);
}

#[tokio::test]
async fn r_d3_an_endpoints_job_shows_what_was_answered_and_can_not_be_reported() {
    let server = Server::start().await;
    server.endpoint(server.tenant, json!({"id": "fan_17", "url": "https://example.com/"})).await;
    server.sender.then_status(500);
    let request = json!({"key": "k", "payload": 1, "to": {"endpoints": ["fan_17"]}});
    let published = server.post("/v1/messages", &request).await.expect(202);
    server.sender.wait_for(1).await;
    let job = published["jobs"][0].clone();
    let shown = loop {
        let shown = job_of(&server, &job).await;
        if shown["state"] == "retryable" {
            break shown;
        }
        tokio::task::yield_now().await;
    };
    let attempt = &shown["attempts"][0];
    for (field, value) in [
        ("attempt", json!(1)),
        ("kind", json!("push")),
        ("path", json!("first_run")),
        ("outcome", json!("failed")),
        ("class", json!("server_error")),
        ("effect", json!("possible")),
        ("status", json!(500)),
        ("excerpt", json!("scripted")),
    ] {
        assert_eq!(value, attempt[field], "{field}");
    }
    assert_eq!(shown["due_at"], attempt["next_at"]);
    assert_eq!(json!({"lo": 0, "hi": 1}), shown["effects"]);
    let forged = json!({"job": job["id"], "fence": "1.1"});
    server.post("/v1/queue/ack", &forged).await.problem(404, "not_found");
}

#[tokio::test]
async fn jobs_are_listed_page_by_page() {
    let server = Server::with_queue().await;
    server.queue(server.tenant, json!({"name": "empty"})).await;
    for key in ["a", "b", "c"] {
        server.publish(key).await;
        server.clock.advance(DurationMs(1));
    }
    let keys = |page: &Value| -> Vec<String> {
        page["data"].as_array().unwrap().iter().map(|job| job["key"].as_str().unwrap().to_owned()).collect()
    };
    let first = server.get("/v1/jobs?state=scheduled&queue=carts&limit=2").await.expect(200);
    assert_eq!(["c", "b"].to_vec(), keys(&first));
    assert!(first["data"][0]["message_id"].as_str().unwrap().starts_with("msg_"));
    let cursor = first["next_cursor"].as_str().unwrap();
    let second = server.get(&format!("/v1/jobs?limit=2&cursor={cursor}")).await.expect(200);
    assert_eq!((vec!["a".to_owned()], Value::Null), (keys(&second), second["next_cursor"].clone()));
    assert_eq!(["a", "b", "c"].to_vec(), keys(&server.get("/v1/jobs?order=oldest").await.expect(200)));
    assert!(keys(&server.get("/v1/jobs?queue=empty").await.expect(200)).is_empty());
    assert!(keys(&server.get("/v1/jobs?state=committed").await.expect(200)).is_empty());
    for (query, status, code) in [
        ("state=done", 422, "invalid_parameter"),
        ("cursor=x", 422, "invalid_parameter"),
        ("limit=0", 422, "invalid_parameter"),
        ("stat=committed", 422, "unknown_parameter"),
        ("queue=carts&endpoint=a", 422, "invalid_parameter"),
        ("queue=nowhere", 404, "unknown_queue"),
        ("endpoint=carts", 404, "unknown_endpoint"),
    ] {
        server.get(&format!("/v1/jobs?{query}")).await.problem(status, code);
    }
}

#[tokio::test]
async fn r_f1_the_timeline_tells_every_step() {
    let server = Server::with_queue().await;
    server.publish("k").await;
    let job = server.consume().await;
    server.clock.advance(DurationMs::from_secs(1));
    report(&server, "ack", &job, json!({})).await.expect(200);
    let timeline = server.get("/v1/timeline?key=k&destination=carts").await.expect(200);
    assert_eq!("k", timeline["key"]);
    assert!(timeline["summary"].as_str().is_some_and(|summary| summary.contains("committed")), "{timeline}");
    let stages: Vec<&str> = timeline["entries"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| entry["stage"].as_str().unwrap())
        .collect();
    for stage in ["accepted", "scheduled", "published", "leased", "committed", "acknowledged"] {
        assert!(stages.contains(&stage), "{stage} in {stages:?}");
    }
    let committed =
        timeline["entries"].as_array().unwrap().iter().find(|entry| entry["stage"] == "committed").unwrap();
    assert_eq!(
        (json!("2026-01-01T00:00:01.000Z"), json!("k:carts"), json!(1), json!("w-1")),
        (
            committed["at"].clone(),
            committed["event_id"].clone(),
            committed["attempt"].clone(),
            committed["actor"].clone()
        )
    );
    assert_eq!(1, timeline["jobs"][0]["attempts"].as_array().unwrap().len());
    let nobody = server.get("/v1/timeline?key=k&destination=nowhere").await.expect(200);
    assert_eq!(json!([]), nobody["jobs"]);
    server.get("/v1/timeline?key=other").await.problem(404, "not_found");
}
