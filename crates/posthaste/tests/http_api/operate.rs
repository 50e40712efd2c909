//! Replay, resend and reconcile over HTTP: every answer and every refusal. Rows B9, C8.

use posthaste_core::DurationMs;
use posthaste_testkit::header;
use serde_json::{Value, json};

use crate::harness::{Reply, Server, with};

/// A job of `carts`, dead-lettered by a worker that failed for good, with what it said of the effect.
async fn dead_letter(server: &Server, key: &str, effect: &str) -> String {
    server.publish(key).await;
    let job = server.consume().await;
    let says =
        json!({"job": job["id"], "fence": job["fence"], "effect": effect, "retry": false, "code": "E17"});
    let answer = server.post("/v1/queue/reject", &says).await.expect(200);
    assert_eq!("dead_lettered", answer["state"]);
    job["id"].as_str().unwrap().to_owned()
}

async fn ask(server: &Server, job: &str, verb: &str, body: Value) -> Reply {
    server.post(&format!("/v1/jobs/{job}/{verb}"), &body).await
}

async fn shown(server: &Server, job: &str) -> Value {
    server.get(&format!("/v1/jobs/{job}")).await.expect(200)
}

async fn entries(server: &Server, key: &str, stage: &str) -> Vec<Value> {
    let timeline = server.get(&format!("/v1/timeline?key={key}")).await.expect(200);
    let entries = timeline["entries"].as_array().unwrap().iter();
    entries.filter(|entry| entry["stage"] == stage).cloned().collect()
}

#[tokio::test]
async fn r_b9_a_dead_letter_without_effect_goes_round_again_and_a_waiting_worker_gets_it() {
    let server = Server::with_queue().await;
    let job = dead_letter(&server, "k", "none").await;
    let waiting = json!({"queue": "carts", "wait": "20s", "worker": "w-2"});
    let waiting = server.post("/v1/queue/consume", &waiting);
    let body = json!({"attempt": 1, "reason": "the printer has paper again"});
    let (leased, replayed) = tokio::join!(waiting, ask(&server, &job, "replay", body));
    let expected = json!({
        "result": "replayed", "state": "scheduled", "attempt": 1, "due_at": "2026-01-01T00:00:00.000Z", "evidence": null,
    });
    assert_eq!(expected, replayed.expect(200));
    let leased = leased.expect(200)["jobs"][0].clone();
    assert_eq!((&json!(job), &json!(2)), (&leased["id"], &leased["attempt"]), "the same job, numbers go on");
    assert_eq!("retry_after_failure", leased["path"]);
    let entry = entries(&server, "k", "replayed").await.remove(0);
    assert_eq!((&json!("tester"), &json!("k:carts")), (&entry["actor"], &entry["event_id"]));
    assert_eq!("the printer has paper again", entry["detail"]["reason"]);
    assert_eq!(1, entries(&server, "k", "dead_lettered").await.len(), "the history stays");
}

#[tokio::test]
async fn r_b9_a_replayed_delivery_is_sent_under_its_identity() {
    let server = Server::start().await;
    let spec = json!({"id": "fan_17", "url": "https://fan.example.com/hooks",
        "secrets": ["whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="]});
    server.endpoint(server.tenant, spec).await;
    server.sender.then_status(400);
    let message = json!({"key": "ship:1", "payload": {"n": 1}, "to": {"endpoints": ["fan_17"]}});
    let published = server.post("/v1/messages", &message).await.expect(202);
    let job = published["jobs"][0]["id"].as_str().unwrap().to_owned();
    server.sender.wait_for(1).await;
    let answer = loop {
        // The report of what was just sent may still be on its way.
        let answer = ask(&server, &job, "replay", json!({"attempt": 1, "reason": "mended"})).await;
        if answer.status == 200 {
            break answer.expect(200);
        }
        answer.problem(409, "not_dead_lettered");
        tokio::task::yield_now().await;
    };
    assert_eq!("replayed", answer["result"]);
    server.sender.wait_for(2).await;
    let sent = server.sender.sent();
    for name in ["webhook-id", "idempotency-key"] {
        assert_eq!(header(&sent[0], name), header(&sent[1], name), "{name}");
    }
    assert_eq!(Some("2".to_owned()), header(&sent[1], "posthaste-attempt"));
}

#[tokio::test]
async fn r_b9_what_may_have_happened_is_refused_with_the_evidence_unless_somebody_vouches() {
    let server = Server::with_queue().await;
    let job = dead_letter(&server, "k", "possible").await;
    let body = json!({"attempt": 1, "reason": "again"});
    let problem = ask(&server, &job, "replay", body.clone()).await.problem(409, "outcome_unknown");
    assert_eq!((&json!("permanent"), &json!("possible")), (&problem["cause"], &problem["effect"]));
    assert_eq!(json!({"lo": 0, "hi": 1}), problem["effects"]);
    assert_eq!(Value::Null, problem["ledger"], "no ledger is known");
    let attempts = problem["attempts"].as_array().unwrap();
    assert_eq!(1, attempts.len());
    assert_eq!((&json!(1), &json!("possible")), (&attempts[0]["attempt"], &attempts[0]["effect"]));
    assert_eq!((&json!("w-1"), &json!("E17")), (&attempts[0]["worker"], &attempts[0]["code"]));
    // An entry that is not done is shown, and proves nothing.
    server.post("/v1/ledger/claim", &json!({"key": "k:carts"})).await.expect(200);
    let problem = ask(&server, &job, "replay", body.clone()).await.problem(409, "outcome_unknown");
    assert_eq!(
        (&json!("in_progress"), &json!("k:carts")),
        (&problem["ledger"]["status"], &problem["ledger"]["key"])
    );
    let problem = ask(&server, &job, "reconcile", json!({})).await.problem(409, "no_evidence");
    assert_eq!("in_progress", problem["ledger"]["status"]);
    assert_eq!(0, entries(&server, "k", "replayed").await.len(), "a refusal leaves nothing");
    let vouched = with(body, json!({"assume": "not_done"}));
    assert_eq!("replayed", ask(&server, &job, "replay", vouched).await.expect(200)["result"]);
    assert_eq!(true, entries(&server, "k", "replayed").await[0]["detail"]["assume_not_done"]);
}

#[tokio::test]
async fn r_b9_what_has_happened_is_settled_instead() {
    let server = Server::with_queue().await;
    server.publish("k").await;
    let first = server.consume().await;
    server.clock.advance(DurationMs::from_hours(1));
    let second = loop {
        // The lease that ran out is ended by a loop of the engine's.
        let jobs = server.post("/v1/queue/consume", &json!({"queue": "carts"})).await.expect(200);
        if let Some(job) = jobs["jobs"].get(0) {
            break job.clone();
        }
        server.clock.advance(DurationMs::from_hours(1));
        tokio::task::yield_now().await;
    };
    let job = first["id"].as_str().unwrap();
    let reject = json!({"job": job, "fence": second["fence"], "effect": "none", "retry": false});
    assert_eq!("dead_lettered", server.post("/v1/queue/reject", &reject).await.expect(200)["state"]);
    let ack = json!({"job": job, "fence": first["fence"]});
    server.post("/v1/queue/ack", &ack).await.problem(409, "stale_fence");
    let body = json!({"attempt": 2, "reason": "again"});
    let settled = ask(&server, job, "replay", body.clone()).await.expect(200);
    let expected = json!({
        "result": "settled", "state": "committed", "attempt": 2, "due_at": null, "evidence": "reconciled",
    });
    assert_eq!(expected, settled);
    assert_eq!(settled, ask(&server, job, "replay", body).await.expect(200), "again is harmless");
    let entry = entries(&server, "k", "reconciled").await.remove(0);
    assert_eq!((&json!("tester"), &json!("again")), (&entry["actor"], &entry["detail"]["reason"]));
    let nothing = server.post("/v1/queue/consume", &json!({"queue": "carts"})).await.expect(200);
    assert_eq!(json!({"jobs": []}), nothing, "nothing goes out");
}

#[tokio::test]
async fn r_b9_whoever_saw_another_attempt_or_state_is_refused() {
    let server = Server::with_queue().await;
    let job = dead_letter(&server, "k", "none").await;
    for attempt in [json!(2), json!(null)] {
        let body = json!({"attempt": attempt, "reason": "again"});
        let problem = ask(&server, &job, "replay", body.clone()).await.problem(409, "attempt_changed");
        assert_eq!(1, problem["current_attempt"]);
        let problem = ask(&server, &job, "resend", body).await.problem(409, "not_committed");
        assert_eq!("dead_lettered", problem["state"]);
    }
    let body = json!({"attempt": 1, "reason": "again"});
    let first = ask(&server, &job, "replay", body.clone()).await.expect(200);
    assert_eq!(first, ask(&server, &job, "replay", body.clone()).await.expect(200), "again is harmless");
    let other = json!({"attempt": 1, "reason": "another"});
    let problem = ask(&server, &job, "replay", other).await.problem(409, "not_dead_lettered");
    assert_eq!("scheduled", problem["state"]);
    ask(&server, &job, "reconcile", json!({})).await.problem(409, "wrong_state");
    let leased = server.consume().await;
    ask(&server, &job, "replay", body.clone()).await.problem(409, "not_dead_lettered");
    let ack = json!({"job": job, "fence": leased["fence"]});
    server.post("/v1/queue/ack", &ack).await.expect(200);
    ask(&server, &job, "replay", json!({"attempt": 2, "reason": "x"}))
        .await
        .problem(409, "not_dead_lettered");
    assert_eq!("settled", ask(&server, &job, "reconcile", json!({})).await.expect(200)["result"]);
    assert_eq!(1, entries(&server, "k", "replayed").await.len(), "one replay is noted");
}

#[tokio::test]
async fn r_b9_what_a_subscriber_lost_is_resent() {
    let server = Server::with_queue().await;
    server.publish("k").await;
    let first = server.consume().await;
    let job = first["id"].as_str().unwrap();
    server.post("/v1/queue/ack", &json!({"job": job, "fence": first["fence"]})).await.expect(200);
    ask(&server, job, "resend", json!({"attempt": 2, "reason": "x"})).await.problem(409, "attempt_changed");
    let body = json!({"attempt": 1, "reason": "their disk is gone"});
    let resent = ask(&server, job, "resend", body.clone()).await.expect(200);
    assert_eq!((&json!("resent"), &json!("scheduled")), (&resent["result"], &resent["state"]));
    assert_eq!(resent, ask(&server, job, "resend", body.clone()).await.expect(200), "again is harmless");
    let second = server.consume().await;
    assert_eq!((&first["event_id"], &json!(2)), (&second["event_id"], &second["attempt"]));
    ask(&server, job, "resend", body).await.problem(409, "not_committed");
    server.post("/v1/queue/ack", &json!({"job": job, "fence": second["fence"]})).await.expect(200);
    assert_eq!(json!({"lo": 1, "hi": 2}), shown(&server, job).await["effects"]);
    let entry = entries(&server, "k", "resent").await.remove(0);
    assert_eq!(
        (&json!("tester"), &json!("their disk is gone")),
        (&entry["actor"], &entry["detail"]["reason"])
    );
}

#[tokio::test]
async fn r_c8_a_ledger_entry_is_shown_beside_the_attempts() {
    let server = Server::with_queue().await;
    server.queue(server.tenant, json!({"name": "plain", "ledger": false})).await;
    let body = json!({"queue": "plain", "key": "k", "payload": 1, "delay": "1h"});
    let job = server.post("/v1/queue/publish", &body).await.expect(202)["jobs"][0]["id"].clone();
    let job = job.as_str().unwrap();
    let before = shown(&server, job).await;
    assert_eq!((&json!("none"), &json!({"lo": 0, "hi": 0})), (&before["effect"], &before["effects"]));
    let granted = server.post("/v1/ledger/claim", &json!({"key": "k:plain"})).await.expect(200);
    let done = json!({"key": "k:plain", "fence": granted["fence"], "outcome": "committed"});
    server.post("/v1/ledger/complete", &done).await.expect(200);
    let now = shown(&server, job).await;
    assert_eq!((&json!("confirmed"), &json!({"lo": 1, "hi": 1})), (&now["effect"], &now["effects"]));
    let timeline = server.get("/v1/timeline?key=k").await.expect(200);
    assert_eq!("confirmed", timeline["jobs"][0]["effect"]);
    let summary = timeline["summary"].as_str().unwrap();
    assert!(summary.contains("1 effect by the receiver's ledger"), "{summary}");
}

#[tokio::test]
async fn r_c9_a_reset_is_told_with_who_and_why() {
    let server = Server::with_queue().await;
    let job = dead_letter(&server, "k", "possible").await;
    let granted = server.post("/v1/ledger/claim", &json!({"key": "k:carts"})).await.expect(200);
    let reset =
        json!({"key": "k:carts", "fence": granted["fence"], "status": "in_progress", "reason": "it died"});
    server.post("/v1/ledger/reset", &reset).await.expect(200);
    let entry = entries(&server, "k", "reset").await.remove(0);
    assert_eq!((&json!("tester"), &json!("it died")), (&entry["actor"], &entry["detail"]["reason"]));
    assert_eq!(json!(job), entry["job"]);
}

#[tokio::test]
async fn malformed_requests_name_the_field_and_write_nothing() {
    let server = Server::with_queue().await;
    let job = dead_letter(&server, "k", "none").await;
    let before = shown(&server, &job).await;
    for (verb, body, code) in [
        ("replay", json!({"reason": "x"}), "missing_field"),
        ("replay", json!({"attempt": 1}), "missing_field"),
        ("replay", json!({"attempt": 0, "reason": "x"}), "invalid_value"),
        ("replay", json!({"attempt": "1", "reason": "x"}), "invalid_type"),
        ("replay", json!({"attempt": 1, "reason": ""}), "invalid_value"),
        ("replay", json!({"attempt": 1, "reason": "x".repeat(1_025)}), "invalid_value"),
        ("replay", json!({"attempt": 1, "reason": "x", "assume": "done"}), "invalid_value"),
        ("replay", json!({"attempt": 1, "reason": "x", "force": true}), "unknown_field"),
        ("resend", json!({"attempt": 1, "reason": "x", "assume": "not_done"}), "unknown_field"),
        ("resend", json!({"reason": "x"}), "missing_field"),
        ("reconcile", json!({"reason": ""}), "invalid_value"),
        ("reconcile", json!({"attempt": 1}), "invalid_value"),
    ] {
        ask(&server, &job, verb, body).await.problem(422, code);
    }
    assert_eq!(before, shown(&server, &job).await);
}

#[tokio::test]
async fn r_g6_only_an_operator_of_the_tenant_may() {
    let server = Server::with_queue().await;
    let job = dead_letter(&server, "k", "none").await;
    let elsewhere = server.engine.ensure_tenant("elsewhere").await.unwrap();
    let body = json!({"attempt": 1, "reason": "x"}).to_string();
    for verb in ["replay", "resend", "reconcile"] {
        let path = format!("/v1/jobs/{job}/{verb}");
        for scopes in ["read", "work", "publish"] {
            let key = server.key(server.tenant, scopes).await;
            server.call("POST", &path, &key, body.as_bytes()).await.problem(403, "forbidden");
        }
        let unknown = format!("/v1/jobs/job_01jdsn0000000000000000000000/{verb}");
        let body = if verb == "reconcile" { "{}" } else { &body };
        server.call("POST", &unknown, &server.admin, body.as_bytes()).await.problem(404, "not_found");
        let key = server.key(elsewhere, "operate").await;
        server.call("POST", &path, &key, body.as_bytes()).await.problem(404, "not_found");
    }
    let key = server.key(server.tenant, "operate").await;
    let path = format!("/v1/jobs/{job}/replay");
    server.call("POST", &path, &key, body.as_bytes()).await.expect(200);
    assert_eq!("somebody", entries(&server, "k", "replayed").await[0]["actor"]);
}
