//! Unknown outcomes over the API: look-ups by us, by workers and by people; rules of destinations; budgets in words.
//! Rows B4, B6, C10.

use std::{future::Future, sync::Arc};

use posthaste_core::DurationMs;
use posthaste_store::{
    Store,
    sqlite::{SqliteOptions, SqliteStore},
};
use serde_json::{Value, json};

use crate::harness::{Server, with};

/// Runs `case` on every store.
async fn on_each_store<F: Future<Output = ()>>(case: impl Fn(Server) -> F) {
    case(Server::start().await).await;
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let open = |clock| {
        let store: Arc<dyn Store> = Arc::new(SqliteStore::open(SqliteOptions::new(&path, clock)).unwrap());
        store
    };
    case(Server::with_store(open).await).await;
}

fn endpoint() -> Value {
    json!({
        "id": "fan_17", "url": "https://fan.example.com/hooks",
        "secrets": ["whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="],
    })
}

fn asked() -> Value {
    let reconcile = json!({"url": "https://fan.example.com/status?key={key}", "settle": "2m"});
    with(endpoint(), json!({"on_unknown": "reconcile", "reconcile": reconcile}))
}

/// Publishes to the endpoint, whose receiver answers `status`, and waits until the first attempt has ended.
async fn sent(server: &Server, key: &str, status: u16) -> Value {
    server.sender.then_status(status);
    let message = json!({"key": key, "payload": {"n": 1}, "to": {"endpoints": ["fan_17"]}});
    let published = server.post("/v1/messages", &message).await.expect(202);
    let job = published["jobs"][0]["id"].as_str().unwrap().to_owned();
    loop {
        let shown = server.get(&format!("/v1/jobs/{job}")).await.expect(200);
        if shown["attempts"][0]["finished_at"].is_string() {
            return shown;
        }
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn r_c10_an_operator_asks_the_receiver_or_gives_a_verdict() {
    on_each_store(|server| async move {
        server.endpoint(server.tenant, asked()).await;
        let job = sent(&server, "k/1", 500).await;
        assert_eq!(
            ("retryable", "look_up"),
            (job["state"].as_str().unwrap(), job["next_step"].as_str().unwrap())
        );
        assert_eq!("the effect is possible, on_unknown = reconcile", job["attempts"][0]["policy"]);
        let path = format!("/v1/jobs/{}/reconcile", job["id"].as_str().unwrap());

        server.sender.then_status(404);
        let answer = server.post(&path, &json!({"look_up": true})).await.expect(200);
        let believed_at = "2026-01-01T00:02:00.000Z";
        let expected = json!({
            "result": "waits", "state": "retryable", "attempt": 1, "due_at": believed_at, "evidence": null,
            "verdict": "absent", "believed_at": believed_at,
        });
        assert_eq!(expected, answer);
        let asked = server.sender.sent().pop().unwrap();
        assert_eq!("https://fan.example.com/status?key=k%2F1", asked.url);

        for (body, path_named) in [
            (json!({"verdict": "present", "reason": "seen"}), "attempt"),
            (json!({"verdict": "present", "attempt": 1}), "reason"),
            (json!({"verdict": "maybe", "attempt": 1, "reason": "seen"}), "verdict"),
            (json!({"attempt": 1}), "attempt"),
            (json!({"verdict": "present", "attempt": 1, "reason": "seen", "look_up": true}), "look_up"),
        ] {
            let problem = server.post(&path, &body).await.problem(422, "invalid_value");
            assert_eq!(path_named, problem["path"], "{body}");
        }
        let verdict =
            |attempt| json!({"verdict": "present", "attempt": attempt, "reason": "their support saw it"});
        server.post(&path, &verdict(2)).await.problem(409, "attempt_changed");
        let answer = server.post(&path, &verdict(1)).await.expect(200);
        assert_eq!(
            ("settled", "committed", "reconciled"),
            (
                answer["result"].as_str().unwrap(),
                answer["state"].as_str().unwrap(),
                answer["evidence"].as_str().unwrap()
            )
        );
        let timeline = server.get("/v1/timeline?key=k%2F1").await.expect(200);
        let steps = timeline["entries"].as_array().unwrap().iter();
        let told: Vec<_> = steps.filter(|entry| entry["stage"] == "reconciled").collect();
        let said = |at: usize| {
            (told[at]["detail"]["verdict"].as_str().unwrap(), told[at]["detail"]["said"].as_str().unwrap())
        };
        assert_eq!(("absent", "the receiver answered 404"), said(0));
        assert_eq!(("present", "their support saw it"), said(1));
        server.post(&path, &json!({"look_up": true})).await.problem(409, "wrong_state");
    })
    .await;
}

#[tokio::test]
async fn r_c10_a_queues_workers_look_up_what_nobody_is_sure_of() {
    on_each_store(|server| async move {
        let queue = json!({"name": "carts", "on_unknown": "reconcile", "reconcile": {"settle": "1m"}});
        server.queue(server.tenant, queue).await;
        server.publish("cart:1").await;
        let job = server.consume().await;
        let says = json!({"job": job["id"], "fence": job["fence"], "class": "timeout"});
        server.post("/v1/queue/reject", &says).await.expect(200);
        server.clock.advance(DurationMs::from_secs(10));

        let plain = json!({"queue": "carts", "worker": "w-1"});
        let looking = with(plain.clone(), json!({"reconcile": true, "max": 5}));
        assert_eq!(json!({"jobs": []}), server.post("/v1/queue/consume", &plain).await.expect(200));
        let taken = server.post("/v1/queue/consume", &looking).await.expect(200);
        let look_up = &taken["look_ups"][0];
        assert_eq!(
            ("reconcile", "cart:1:carts", &job["id"]),
            (look_up["kind"].as_str().unwrap(), look_up["event_id"].as_str().unwrap(), &look_up["job"])
        );
        let other = server.post("/v1/queue/consume", &looking).await.expect(200);
        assert_eq!(json!({"jobs": [], "look_ups": []}), other, "one worker is asked at a time");

        let found = |token: &Value, verdict: &str| {
            json!({"job": job["id"], "look_up": token, "verdict": verdict, "message": "no such row"})
        };
        for never in [json!("2.1767225600000"), json!("1.9999999999999"), json!("x")] {
            server.post("/v1/queue/reconcile", &found(&never, "present")).await.problem(409, "attempt_changed");
        }
        let answer = server.post("/v1/queue/reconcile", &found(&look_up["look_up"], "absent")).await.expect(200);
        assert_eq!(("waits", "2026-01-01T00:01:00.000Z"), (answer["result"].as_str().unwrap(), answer["believed_at"].as_str().unwrap()));

        server.clock.advance(DurationMs::from_mins(1));
        let taken = server.post("/v1/queue/consume", &looking).await.expect(200);
        let token = &taken["look_ups"][0]["look_up"];
        assert_eq!(1, taken["look_ups"].as_array().unwrap().len(), "it is asked again");
        server.post("/v1/queue/reconcile", &found(token, "absent")).await.expect(200);
        let again = server.consume().await;
        assert_eq!((&job["id"], &json!(2)), (&again["id"], &again["attempt"]), "absent, and so it is tried again");
        server.post("/v1/queue/reconcile", &found(token, "present")).await.problem(409, "wrong_state");
    })
    .await;
}

#[tokio::test]
async fn r_c10_a_look_up_that_no_worker_makes_ends_at_the_horizon() {
    on_each_store(|server| async move {
        let queue = json!({
            "name": "carts", "on_unknown": "reconcile", "reconcile": {"settle": "1m"}, "retry": {"horizon": "1h"},
        });
        server.queue(server.tenant, queue).await;
        server.publish("cart:1").await;
        let job = server.consume().await;
        let says = json!({"job": job["id"], "fence": job["fence"], "class": "timeout"});
        server.post("/v1/queue/reject", &says).await.expect(200);
        server.clock.advance(DurationMs::from_hours(2));
        loop {
            let shown = server.get(&format!("/v1/jobs/{}", job["id"].as_str().unwrap())).await.expect(200);
            if shown["state"] == "dead_lettered" {
                assert_eq!("outcome_unknown", shown["cause"]);
                break;
            }
            tokio::task::yield_now().await;
        }
    })
    .await;
}

#[tokio::test]
async fn r_c10_a_worker_must_be_of_the_queue_whose_effect_it_judges() {
    let server = Server::start().await;
    let queue = json!({"name": "carts", "on_unknown": "reconcile", "reconcile": {"settle": "1m"}});
    server.queue(server.tenant, queue).await;
    let job = server.publish("cart:1").await;
    let other = server.key(server.tenant, "work:parcels").await;
    let body = json!({"job": job["id"], "look_up": "1.1", "verdict": "present"}).to_string();
    server.call("POST", "/v1/queue/reconcile", &other, body.as_bytes()).await.problem(403, "forbidden");
    let reader = server.key(server.tenant, "read").await;
    server.call("POST", "/v1/queue/reconcile", &reader, body.as_bytes()).await.problem(403, "forbidden");
}

#[tokio::test]
async fn r_b4_the_classification_in_force_is_shown_with_what_says_so() {
    let server = Server::start().await;
    let classify =
        json!({"404": "permanent", "5xx": {"follows": "retry", "effect": "none"}, "dns": "permanent"});
    server.endpoint(server.tenant, with(endpoint(), json!({"classify": classify}))).await;
    let shown = server.get("/v1/classes?endpoint=fan_17").await.expect(200);
    let line = |list: &str, field: &str, value: &str| -> Value {
        let lines = shown[list].as_array().unwrap().iter();
        lines
            .clone()
            .find(|line| line[field] == value)
            .unwrap_or_else(|| panic!("{value}: {shown:#}"))
            .clone()
    };
    let own = json!({
        "answer": "404", "class": "client_error", "effect": "none", "follows": "permanent_message",
        "by": "endpoint[fan_17].classify 404 = permanent",
    });
    assert_eq!(own, line("answers", "answer", "404"));
    assert_eq!(
        "endpoint[fan_17].classify 5xx = retry, effect none",
        line("answers", "answer", "500-599")["by"]
    );
    assert_eq!("the classification", line("answers", "answer", "409")["by"]);
    assert_eq!("permanent_message", line("classes", "class", "dns")["follows"]);
    let all = server.get("/v1/classes").await.expect(200);
    assert!(all["answers"].as_array().unwrap().iter().all(|line| line["by"] == "the classification"));
    server.get("/v1/classes?queue=fan_17").await.problem(404, "unknown_queue");
    server.get("/v1/classes?queue=a&endpoint=b").await.problem(422, "invalid_parameter");

    let job = sent(&server, "k", 404).await;
    assert_eq!("dead_lettered", job["state"]);
    let policy = "the failure is permanent, by endpoint[fan_17].classify 404 = permanent";
    assert_eq!(policy, job["attempts"][0]["policy"]);
}

#[tokio::test]
async fn r_b4_rules_that_can_not_be_meant_are_refused_by_name() {
    let server = Server::start().await;
    for (more, says) in [
        (json!({"classify": {"200": "retry"}}), "classify.200"),
        (json!({"classify": {"teapot": "retry"}}), "classify.teapot"),
        (json!({"classify": {"404": "explode"}}), "classify.404"),
        (json!({"on_unknown": "reconcile"}), "on_unknown"),
        (json!({"reconcile": {"url": "https://x.example/{key}", "settle": "2m"}}), "reconcile"),
        (
            with(
                asked(),
                json!({"timeout": "1m", "reconcile": {"url": "https://x.example/{key}", "settle": "30s"}}),
            ),
            "reconcile.settle",
        ),
        (
            with(asked(), json!({"reconcile": {"url": "http://x.example/{key}", "settle": "2m"}})),
            "reconcile.url",
        ),
    ] {
        let problem =
            server.post("/v1/endpoints", &with(endpoint(), more)).await.problem(422, "invalid_configuration");
        assert!(problem["detail"].as_str().unwrap().contains(says), "{problem}");
    }
}

#[tokio::test]
async fn r_b6_the_budgets_that_are_left_are_told_in_words() {
    on_each_store(|server| async move {
        server.endpoint(server.tenant, endpoint()).await;
        let job = sent(&server, "k", 500).await;
        let words = "1 of 10 failures, 0 of 5 lost leases, gives up at 2026-01-05T00:00:00.000Z";
        assert_eq!(words, job["budgets"]);
        let timeline = server.get("/v1/timeline?key=k").await.expect(200);
        assert_eq!(words, timeline["jobs"][0]["budgets"]);
        assert_eq!(Value::Null, server.get("/v1/jobs").await.expect(200)["data"][0]["budgets"]);
        let dead = sent(&server, "dead", 400).await;
        assert_eq!("0 of 10 failures, 0 of 5 lost leases", dead["budgets"]);
    })
    .await;
}
