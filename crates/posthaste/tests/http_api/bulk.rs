//! Bulk replay and bulk cancel over HTTP: rates, progress, pause, stop, refusals. Rows B8, B9.

use posthaste_core::DurationMs;
use posthaste_store::Clock as _;
use serde_json::{Value, json};

use crate::harness::{Server, with};

/// Dead letters of `carts`, of one effect.
async fn dead_letters(server: &Server, first: usize, count: usize, effect: &str) {
    for number in first..first + count {
        server.publish(&format!("k:{number}")).await;
        let job = server.consume().await;
        let says = json!({"job": job["id"], "fence": job["fence"], "effect": effect, "retry": false});
        assert_eq!("dead_lettered", server.post("/v1/queue/reject", &says).await.expect(200)["state"]);
    }
}

fn all(more: Value) -> Value {
    with(json!({"filter": {"all": true}, "reason": "the printer has paper again"}), more)
}

async fn begin(server: &Server, path: &str, body: &Value) -> (String, Value) {
    let run = server.post(path, body).await.expect(202);
    (format!("{path}/{}", run["id"].as_str().unwrap()), run)
}

/// Moves time on until the run is in `state`. Bounded: a test that hangs says where.
async fn until(server: &Server, path: &str, state: &str) -> Value {
    let mut run = Value::Null;
    for _ in 0..20_000 {
        run = server.get(path).await.expect(200);
        if run["state"] == state {
            return run;
        }
        server.clock.advance(DurationMs(20));
        tokio::task::yield_now().await;
    }
    panic!("it is not {state}: {run}");
}

/// Lets what is due happen, in time that stands still.
async fn settled(server: &Server, path: &str) -> u64 {
    let (mut last, mut same) = (u64::MAX, 0);
    while same < 20 {
        let done = server.get(path).await.expect(200)["counts"]["done"].as_u64().unwrap();
        same = if done == last { same + 1 } else { 0 };
        last = done;
    }
    last
}

async fn states(server: &Server) -> Vec<String> {
    let jobs = server.get("/v1/jobs?limit=500&order=oldest").await.expect(200);
    let states = jobs["data"].as_array().unwrap().iter().map(|job| job["state"].as_str().unwrap().to_owned());
    states.collect()
}

#[tokio::test]
async fn r_b9_a_run_keeps_its_rate_shows_its_progress_and_can_be_paused_and_stopped() {
    let server = Server::with_queue().await;
    dead_letters(&server, 0, 30, "none").await;
    let begun = server.clock.now();
    let (path, run) = begin(&server, "/v1/replays", &all(json!({"rate": "10/s"}))).await;
    assert_eq!(
        (&json!("replay"), &json!("10/s"), &json!(30)),
        (&run["kind"], &run["rate"], &run["expected"])
    );
    assert_eq!(1, settled(&server, &path).await, "in no time, one");
    // Second by second.
    for second in 1..=2_u64 {
        for _ in 0..10 {
            server.clock.advance(DurationMs(100));
            settled(&server, &path).await;
        }
        let done = settled(&server, &path).await;
        assert!(done.abs_diff(10 * second) <= 1, "after {second} s: {done}");
    }
    let paused = server.post(&format!("{path}/pause"), &json!({})).await.expect(200);
    assert_eq!("paused", paused["state"]);
    let before = settled(&server, &path).await;
    server.clock.advance(DurationMs::from_secs(60));
    assert_eq!(before, settled(&server, &path).await, "a minute of pause");
    server.post(&format!("{path}/pause"), &json!({})).await.expect(200);
    server.post(&format!("{path}/resume"), &json!({})).await.expect(200);
    server.clock.advance(DurationMs(100));
    let went_on = settled(&server, &path).await;
    assert!(went_on > before && went_on <= before + 2, "{before} to {went_on}: no rush");
    let stopped = server.post(&format!("{path}/stop"), &json!({})).await.expect(200);
    assert_eq!("stopped", stopped["state"]);
    let done = settled(&server, &path).await;
    server.clock.advance(DurationMs::from_secs(60));
    assert_eq!(done, settled(&server, &path).await);
    let states = states(&server).await;
    let count = |state: &str| states.iter().filter(|one| *one == state).count() as u64;
    assert_eq!((done, 30 - done), (count("scheduled"), count("dead_lettered")));
    server.post(&format!("{path}/resume"), &json!({})).await.problem(409, "run_ended");
    // The rest, by a second run of the same kind.
    let (path, run) = begin(&server, "/v1/replays", &all(json!({}))).await;
    assert_eq!((&json!(30 - done), &json!("500/s")), (&run["expected"], &run["rate"]));
    assert_eq!(30 - done, until(&server, &path, "done").await["counts"]["done"]);
    assert!(server.clock.now() > begun);
    let listed = server.get("/v1/replays").await.expect(200);
    assert_eq!(2, listed["data"].as_array().unwrap().len());
    assert_eq!(json!([]), server.get("/v1/cancels").await.expect(200)["data"]);
}

#[tokio::test]
async fn case_b44_a_range_with_delivered_pending_and_cancelled_ones_replays_only_dead_letters_once() {
    let server = Server::with_queue().await;
    dead_letters(&server, 0, 3, "none").await;
    dead_letters(&server, 3, 1, "possible").await;
    server.publish("k:delivered").await;
    let job = server.consume().await;
    server.post("/v1/queue/ack", &json!({"job": job["id"], "fence": job["fence"]})).await.expect(200);
    let pending = server.publish("k:pending").await;
    let cancelled = server.publish("k:cancelled").await;
    let cancel = format!("/v1/jobs/{}/cancel", cancelled["id"].as_str().unwrap());
    server.post(&cancel, &json!({"reason": "sold"})).await.expect(200);
    let request = json!({"filter": {"key_prefix": "k:", "queue": "carts", "created_since": "2025-12-31T23:00:00+01:00"},
        "reason": "mended"});
    let dry = server.post("/v1/replays", &with(request.clone(), json!({"dry_run": true}))).await.expect(200);
    assert_eq!(json!({"dry_run": true, "matched": 4, "examined": 4, "complete": true}), dry);
    assert_eq!(json!([]), server.get("/v1/replays").await.expect(200)["data"], "it was only counted");
    let authorization = format!("Bearer {}", server.admin);
    let headers = [("authorization", &*authorization), ("idempotency-key", "night-1")];
    let body = request.to_string();
    let first = server.send("POST", "/v1/replays", &headers, body.as_bytes()).await.expect(202);
    let path = format!("/v1/replays/{}", first["id"].as_str().unwrap());
    let done = until(&server, &path, "done").await;
    let counts = &done["counts"];
    assert_eq!((&json!(4), &json!(3), &json!(1)), (&counts["matched"], &counts["done"], &counts["refused"]));
    assert_eq!(json!({"outcome_unknown": 1}), counts["refused_by_code"]);
    assert_eq!("outcome_unknown", done["refused_jobs"][0]["code"]);
    // The second identical request is recognised.
    let again = server.send("POST", "/v1/replays", &headers, body.as_bytes()).await.expect(200);
    assert_eq!(done, again);
    let other = all(json!({})).to_string();
    let reused =
        server.send("POST", "/v1/replays", &headers, other.as_bytes()).await.problem(422, "key_reused");
    assert_eq!(first["id"], reused["run"]);
    let states = states(&server).await;
    let count = |state: &str| states.iter().filter(|one| *one == state).count();
    assert_eq!([4, 1, 1, 1], ["scheduled", "dead_lettered", "committed", "cancelled"].map(count));
    let untouched = server.get("/v1/timeline?key=k:pending").await.expect(200);
    assert!(
        untouched["entries"].as_array().unwrap().iter().all(|one| one["stage"] != "replayed"),
        "{pending}"
    );
    let replayed = server.get("/v1/timeline?key=k:0").await.expect(200);
    let entry =
        replayed["entries"].as_array().unwrap().iter().find(|one| one["stage"] == "replayed").unwrap();
    assert_eq!((&first["id"], &json!("mended")), (&entry["detail"]["run"], &entry["detail"]["reason"]));
    assert_eq!("tester", entry["actor"]);
    // Whoever vouches gets the rest.
    let vouched = with(request, json!({"assume": "not_done"}));
    let (path, _) = begin(&server, "/v1/replays", &vouched).await;
    assert_eq!(1, until(&server, &path, "done").await["counts"]["done"]);
}

#[tokio::test]
async fn case_b14_three_replays_are_three_attempts_and_a_request_that_comes_twice_is_one() {
    let server = Server::with_queue().await;
    dead_letters(&server, 0, 1, "none").await;
    let authorization = format!("Bearer {}", server.admin);
    let mut runs = Vec::new();
    for number in 0..3 {
        let name = format!("click-{number}");
        let headers = [("authorization", &*authorization), ("idempotency-key", &*name)];
        let body = all(json!({})).to_string();
        let first = server.send("POST", "/v1/replays", &headers, body.as_bytes()).await.expect(202);
        let twice = server.send("POST", "/v1/replays", &headers, body.as_bytes()).await.expect(200);
        assert_eq!(first["id"], twice["id"]);
        let path = format!("/v1/replays/{}", first["id"].as_str().unwrap());
        assert_eq!(1, until(&server, &path, "done").await["counts"]["done"]);
        let job = server.consume().await;
        assert_eq!(number + 2, job["attempt"], "each is one more attempt");
        let says = json!({"job": job["id"], "fence": job["fence"], "effect": "none", "retry": false});
        server.post("/v1/queue/reject", &says).await.expect(200);
        server.clock.advance(DurationMs(1));
        runs.push(first["id"].clone());
    }
    let timeline = server.get("/v1/timeline?key=k:0").await.expect(200);
    let entries = timeline["entries"].as_array().unwrap().iter().filter(|one| one["stage"] == "replayed");
    assert_eq!(runs, entries.map(|one| one["detail"]["run"].clone()).collect::<Vec<_>>());
}

#[tokio::test]
async fn r_b8_many_jobs_are_called_off_with_a_reason() {
    let server = Server::with_queue().await;
    dead_letters(&server, 0, 2, "possible").await;
    for number in 2..5 {
        server.publish(&format!("k:{number}")).await;
    }
    let running = server.consume().await;
    let body = json!({"filter": {"queue": "carts"}, "reason": "the shop is closed"});
    let (path, _) = begin(&server, "/v1/cancels", &body).await;
    let counts = until(&server, &path, "done").await["counts"].clone();
    assert_eq!(
        (&json!(2), &json!(1), &json!(3)),
        (&counts["done"], &counts["requested"], &counts["matched"])
    );
    let fence = json!({"job": running["id"], "fence": running["fence"]});
    assert_eq!(true, server.post("/v1/queue/extend", &fence).await.expect(200)["cancel_requested"]);
    let body = json!({"filter": {"state": "dead_lettered"}, "reason": "discarded"});
    let (path, _) = begin(&server, "/v1/cancels", &body).await;
    assert_eq!(2, until(&server, &path, "done").await["counts"]["done"]);
    server.get(&path.replace("cancels", "replays")).await.problem(404, "not_found");
}

#[tokio::test]
async fn r_b9_a_request_that_makes_no_sense_is_refused_with_its_place() {
    let server = Server::with_queue().await;
    let refused = [
        (json!({"reason": "r"}), "missing_field", "filter"),
        (json!({"filter": {}, "reason": "r"}), "invalid_value", "\"all\": true"),
        (json!({"filter": {"all": true, "queue": "carts"}, "reason": "r"}), "invalid_value", "excludes"),
        (json!({"filter": {"all": true}}), "missing_field", "reason"),
        (json!({"filter": {"all": true}, "reason": " "}), "invalid_value", "say why"),
        (json!({"filter": {"al": true}, "reason": "r"}), "unknown_field", "`al`"),
        (all(json!({"rate": "0/s"})), "invalid_value", "\"1/s\""),
        (all(json!({"rate": "10001/s"})), "invalid_value", "\"10000/s\""),
        (all(json!({"rate": "5/m"})), "invalid_value", "jobs a second"),
        (all(json!({"assume": "done"})), "invalid_value", "not_done"),
        (json!({"filter": {"state": "scheduled"}, "reason": "r"}), "invalid_value", "dead_lettered"),
        (json!({"filter": {"source": "shop"}, "reason": "r"}), "invalid_value", "message by message"),
        (json!({"filter": {"state": "dead"}, "reason": "r"}), "invalid_value", "not known"),
        (json!({"filter": {"cause": "tired"}, "reason": "r"}), "invalid_value", "outcome_unknown"),
        (json!({"filter": {"class": "tired"}, "reason": "r"}), "invalid_value", "server_error"),
        (json!({"filter": {"created_since": "2026-01-01T00:00:00"}, "reason": "r"}), "naive_time", "offset"),
        (
            json!({"filter": {"created_since": "2026-01-02T00:00:00Z", "created_until": "2026-01-01T00:00:00Z"},
                "reason": "r"}),
            "invalid_value",
            "not after",
        ),
        (json!({"filter": {"key_prefix": ""}, "reason": "r"}), "invalid_value", "1 to 256"),
        (
            json!({"filter": {"queue": "carts", "endpoint": "carts"}, "reason": "r"}),
            "invalid_value",
            "exclude",
        ),
    ];
    for (body, code, part) in refused {
        let problem = server.post("/v1/replays", &body).await.problem(422, code);
        assert!(problem["detail"].as_str().unwrap().contains(part), "{body}: {problem}");
    }
    let unknown = json!({"filter": {"queue": "cart"}, "reason": "r"});
    server.post("/v1/replays", &unknown).await.problem(404, "unknown_queue");
    let assumed = server.post("/v1/cancels", &all(json!({"assume": "not_done"}))).await;
    assumed.problem(422, "invalid_value");
    let live = json!({"filter": {"cause": "exhausted"}, "reason": "r"});
    let problem = server.post("/v1/cancels", &live).await.problem(422, "invalid_value");
    assert!(problem["detail"].as_str().unwrap().contains("\"state\": \"dead_lettered\""), "{problem}");
    let authorization = format!("Bearer {}", server.admin);
    let headers = [("authorization", &*authorization), ("idempotency-key", "a b")];
    let body = all(json!({})).to_string();
    server.send("POST", "/v1/replays", &headers, body.as_bytes()).await.problem(422, "invalid_name");
    server.get("/v1/replays/run_1").await.problem(404, "not_found");
    assert_eq!(json!([]), server.get("/v1/replays").await.expect(200)["data"]);
}

#[tokio::test]
async fn r_g6_runs_need_the_scope_operate_and_are_their_tenants_alone() {
    let server = Server::with_queue().await;
    let (_, run) = begin(&server, "/v1/replays", &all(json!({}))).await;
    let path = format!("/v1/replays/{}", run["id"].as_str().unwrap());
    let reader = server.key(server.tenant, "read publish work").await;
    let body = all(json!({})).to_string();
    server.call("POST", "/v1/replays", &reader, body.as_bytes()).await.problem(403, "forbidden");
    server.call("POST", &format!("{path}/stop"), &reader, b"{}").await.problem(403, "forbidden");
    server.call("GET", &path, &reader, b"").await.expect(200);
    let other = server.engine.ensure_tenant("other").await.unwrap();
    let stranger = server.key(other, "operate read").await;
    server.call("GET", &path, &stranger, b"").await.problem(404, "not_found");
    server.call("POST", &format!("{path}/stop"), &stranger, b"{}").await.problem(404, "not_found");
    assert_eq!(json!([]), server.call("GET", "/v1/replays", &stranger, b"").await.expect(200)["data"]);
}
