//! What is genuine and doesn't fit: kept, told, replayed with today's configuration. Rows A2, A8, A10, B7. On both stores.

use posthaste_store::sqlite::{SqliteOptions, SqliteStore};
use serde_json::{Value, json};

use crate::harness::{Reply, SECRET, Server, signature, with};

/// Runs `test` on a server of each store, with the queues `carts` and `dlq`.
async fn on_both(test: impl AsyncFn(&Server)) {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let sqlite = Server::with_store(|clock| {
        std::sync::Arc::new(SqliteStore::open(SqliteOptions::new(&path, clock)).unwrap())
    });
    for server in [Server::start().await, sqlite.await] {
        for queue in ["carts", "dlq"] {
            server.queue(server.tenant, json!({"name": queue, "lease": "60s"})).await;
        }
        test(&server).await;
    }
}

/// A source by the name `shop`, whose key is the body's `id`.
async fn shop(server: &Server, more: Value) {
    let base = json!({"name": "shop", "scheme": "github", "secrets": [SECRET], "key": "json:/id",
        "to": {"queue": "carts"}, "owner": "team-shop"});
    server.source(server.tenant, with(base, more)).await;
}

async fn deliver(server: &Server, body: &[u8]) -> Reply {
    deliver_as(server, "application/json", "push", body).await
}

async fn deliver_as(server: &Server, content_type: &str, event: &str, body: &[u8]) -> Reply {
    let signature = signature(SECRET, body);
    let headers = [
        ("content-type", content_type),
        ("x-github-event", event),
        ("x-hub-signature-256", &signature),
        ("x-order", "17"),
    ];
    server.send("POST", "/in/shop", &headers, body).await
}

/// Delivers what doesn't fit; gives its answer and its job.
async fn quarantined(server: &Server, body: &[u8], cause: &str) -> (Value, Value) {
    let answer = deliver(server, body).await.expect(202);
    assert_eq!((&json!("first_run"), &json!(cause)), (&answer["path"], &answer["quarantined"]), "{answer}");
    (answer.clone(), job_of(server, answer["key"].as_str().unwrap()).await)
}

async fn job_of(server: &Server, key: &str) -> Value {
    let timeline = server.get(&format!("/v1/timeline?key={key}")).await.expect(200);
    let id = timeline["jobs"][0]["id"].as_str().unwrap().to_owned();
    server.get(&format!("/v1/jobs/{id}")).await.expect(200)
}

async fn replay(server: &Server, job: &Value, reason: &str) -> Reply {
    let path = format!("/v1/jobs/{}/replay", job["id"].as_str().unwrap());
    server.post(&path, &json!({"attempt": null, "reason": reason})).await
}

/// The one job that `queue` gives within the patience of the server's loops.
async fn taken_from(server: &Server, queue: &str) -> Value {
    let reply =
        server.post("/v1/queue/consume", &json!({"queue": queue, "worker": "w", "wait": "20s"})).await;
    let jobs = reply.expect(200)["jobs"].clone();
    assert_eq!(1, jobs.as_array().unwrap().len(), "{jobs}");
    jobs[0].clone()
}

#[tokio::test]
async fn r_a2_what_has_no_key_is_kept_and_never_executed() {
    on_both(async |server| {
        shop(server, json!({})).await;
        let body = br#"{"order":17}"#;
        let (answer, job) = quarantined(server, body, "missing_key").await;
        let key = answer["key"].as_str().unwrap();
        assert!(key.starts_with("shop:quarantine:") && key.len() == "shop:quarantine:".len() + 64, "{key}");
        assert_eq!(
            ("dead_lettered", "missing_key"),
            (job["state"].as_str().unwrap(), job["cause"].as_str().unwrap())
        );
        assert_eq!((&json!("shop"), &json!("team-shop")), (&job["destination"], &job["owner"]));
        assert_eq!(Value::Null, job["attempt"]);
        // The same bytes again: known.
        let again = deliver(server, body).await.expect(200);
        assert_eq!((&json!("duplicate_done"), &answer["message_id"]), (&again["path"], &again["message_id"]));
        assert_eq!(1, server.jobs_total().await);
        let payload = format!("/v1/messages/{}/payload", answer["message_id"].as_str().unwrap());
        assert_eq!(body.as_slice(), server.get(&payload).await.body);
        let timeline = server.get(&format!("/v1/timeline?key={key}")).await.expect(200);
        let stages: Vec<&str> = timeline["entries"]
            .as_array()
            .unwrap()
            .iter()
            .map(|entry| entry["stage"].as_str().unwrap())
            .collect();
        assert_eq!(vec!["accepted", "quarantined", "dead_lettered", "duplicate"], stages);
        assert!(timeline["summary"].as_str().unwrap().contains("quarantined, not executed"), "{timeline}");
        let metrics = server.get("/metrics").await.text();
        assert!(metrics.contains(r#"posthaste_dead_lettered_total{cause="missing_key"} 1"#), "{metrics}");
        assert!(metrics.contains(r#"posthaste_claims_total{source="shop",path="first_run"} 1"#), "{metrics}");
    })
    .await;
}

#[tokio::test]
async fn r_a2_content_type_event_type_and_schema_are_checked_after_the_signature() {
    on_both(async |server| {
        let schema = json!({"type": "object", "required": ["id", "amount"], "properties": {"amount": {"type": "integer"}}});
        shop(server, json!({"content_types": ["application/json"], "types": ["order.*"], "schema": schema})).await;
        let good = br#"{"id":"1","amount":3}"#;
        let wrong = server.send("POST", "/in/shop", &[("content-type", "text/plain")], b"x").await;
        wrong.problem(401, "signature_invalid");
        assert_eq!(0, server.jobs_total().await);
        let mut problems = Vec::new();
        for (content_type, event, body) in [
            ("text/plain", "order.paid", good.as_slice()),
            ("application/json", "cart.paid", br#"{"id":"2","amount":3}"#),
            ("application/json", "posthaste.job.dead_lettered", br#"{"id":"3","amount":3}"#),
            ("application/json", "order.paid", br#"{"id":"4","amount":"secret"}"#),
            ("application/json", "order.paid", b"not json"),
        ] {
            let answer = deliver_as(server, content_type, event, body).await.expect(202);
            assert_eq!("invalid_payload", answer["quarantined"], "{answer}");
            let job = job_of(server, answer["key"].as_str().unwrap()).await;
            problems.push(job["dead_letter"]["quarantine"]["problem"].as_str().unwrap().to_owned());
        }
        for (said, problem) in ["content type", "its type is none", "only our own", "/amount", "no JSON"].iter().zip(&problems) {
            assert!(problem.contains(said), "{said}: {problem}");
        }
        assert!(!problems.concat().contains("secret"), "no value of the body");
        let taken = deliver_as(server, "Application/JSON; charset=utf-8", "order.paid", br#"{"id":"5","amount":3}"#);
        assert_eq!("shop:5", taken.await.expect(202)["key"]);
    })
    .await;
}

#[tokio::test]
async fn r_a10_a_reused_key_is_quarantined_unless_it_is_to_be_rejected_or_accepted() {
    on_both(async |server| {
        shop(server, json!({})).await;
        let first = deliver(server, br#"{"id":"1"}"#).await.expect(202);
        let other = br#"{"id":"1","amount":999}"#;
        let (answer, job) = quarantined(server, other, "key_reused").await;
        let found = &job["dead_letter"]["quarantine"];
        assert_eq!((&json!("payload"), &first["message_id"]), (&found["field"], &found["known_message_id"]));
        assert_eq!(answer["message_id"], deliver(server, other).await.expect(200)["message_id"]);
        // The first one is still itself.
        assert_eq!(first["message_id"], deliver(server, br#"{"id":"1"}"#).await.expect(200)["message_id"]);
        shop(server, json!({"on_key_reused": "reject"})).await;
        let problem = deliver(server, other).await.problem(422, "key_reused");
        assert_eq!("payload", problem["field"]);
        shop(server, json!({"on_key_reused": "accept"})).await;
        let accepted = deliver(server, other).await.expect(200);
        assert_eq!((&json!("shop:1"), &first["message_id"]), (&accepted["key"], &accepted["message_id"]));
        let timeline = server.get("/v1/timeline?key=shop:1").await.expect(200);
        let noted = timeline["entries"]
            .as_array()
            .unwrap()
            .iter()
            .any(|entry| entry["detail"]["code"] == "key_reused");
        assert!(noted, "{timeline}");
    })
    .await;
}

#[tokio::test]
async fn r_a2_a_replay_runs_the_pipeline_with_todays_configuration() {
    on_both(async |server| {
        shop(server, json!({})).await;
        let (answer, job) = quarantined(server, br#"{"order":17,"id":null}"#, "missing_key").await;
        let refused = replay(server, &job, "try").await.problem(409, "still_quarantined");
        assert_eq!("missing_key", refused["cause"]);
        // Another rule finds a key, but now the schema does not fit: the cause is today's.
        shop(server, json!({"key": "json:/order", "schema": {"required": ["amount"]}})).await;
        let refused = replay(server, &job, "try again").await.problem(409, "still_quarantined");
        assert_eq!("invalid_payload", refused["cause"]);
        let now = job_of(server, answer["key"].as_str().unwrap()).await;
        assert_eq!((&json!("dead_lettered"), &json!("invalid_payload")), (&now["state"], &now["cause"]));
        assert_eq!("quarantined", last_stage(server, &answer, "quarantined").await["stage"]);
        // It was genuine when it came: neither the signature's age nor a new secret is asked about.
        shop(server, json!({"key": "json:/order", "secrets": ["another one"]})).await;
        let done = replay(server, &job, "the rule is mended").await.expect(200);
        assert_eq!(
            ("settled", "committed", "reconciled"),
            (
                done["result"].as_str().unwrap(),
                done["state"].as_str().unwrap(),
                done["evidence"].as_str().unwrap()
            )
        );
        let real = server.get("/v1/timeline?key=shop:17").await.expect(200);
        assert_eq!(real["entries"][0]["detail"]["message_id"], done["message_id"]);
        let went = last_stage(server, &answer, "replayed").await;
        assert_eq!(
            (&json!("shop:17"), &json!("the rule is mended")),
            (&went["detail"]["key"], &went["detail"]["reason"])
        );
        // The same request again gets the same answer, and another one is too late.
        assert_eq!(done, replay(server, &job, "the rule is mended").await.expect(200));
        replay(server, &job, "once more").await.problem(409, "not_dead_lettered");
        let leased = server.consume().await;
        assert_eq!(
            (&json!("shop:17:carts"), &json!({"order": 17, "id": null})),
            (&leased["event_id"], &leased["payload"])
        );
    })
    .await;
}

async fn last_stage(server: &Server, answer: &Value, stage: &str) -> Value {
    let key = answer["key"].as_str().unwrap();
    let timeline = server.get(&format!("/v1/timeline?key={key}")).await.expect(200);
    let mut entries = timeline["entries"].as_array().unwrap().iter();
    entries.rfind(|entry| entry["stage"] == stage).unwrap_or_else(|| panic!("{timeline}")).clone()
}

#[tokio::test]
async fn r_a2_a_replay_that_was_cut_off_comes_to_the_same_when_it_is_repeated() {
    on_both(async |server| {
        shop(server, json!({})).await;
        let (_, job) = quarantined(server, br#"{"order":17}"#, "missing_key").await;
        shop(server, json!({"key": "json:/order"})).await;
        // As far as a crash may let it come: accepted under its own key, and the dead letter not yet settled.
        let real = deliver(server, br#"{"order":17}"#).await.expect(202);
        assert_eq!("shop:17", real["key"]);
        let done = replay(server, &job, "again").await.expect(200);
        assert_eq!((&json!("settled"), &real["message_id"]), (&done["result"], &done["message_id"]));
        let timeline = server.get("/v1/timeline?key=shop:17").await.expect(200);
        assert_eq!(1, timeline["jobs"].as_array().unwrap().len(), "one job, one effect");
    })
    .await;
}

#[tokio::test]
async fn r_a2_headers_that_tomorrows_rule_looks_at_are_kept() {
    on_both(async |server| {
        shop(server, json!({})).await;
        let (_, job) = quarantined(server, b"{}", "missing_key").await;
        shop(server, json!({"key": "header:X-Order"})).await;
        replay(server, &job, "by the header").await.expect(200);
        server.get("/v1/timeline?key=shop:17").await.expect(200);
    })
    .await;
}

#[tokio::test]
async fn r_b8_a_quarantined_dead_letter_can_be_discarded() {
    on_both(async |server| {
        shop(server, json!({})).await;
        let (answer, job) = quarantined(server, b"[]", "missing_key").await;
        let path = format!("/v1/jobs/{}/cancel", job["id"].as_str().unwrap());
        assert_eq!("cancelled", server.post(&path, &json!({"reason": "spam"})).await.expect(200)["result"]);
        replay(server, &job, "late").await.problem(409, "not_dead_lettered");
        let now = job_of(server, answer["key"].as_str().unwrap()).await;
        assert_eq!((&json!("cancelled"), &Value::Null), (&now["state"], &now["dead_letter"]));
        let path = format!("/v1/jobs/{}/replay", job["id"].as_str().unwrap());
        server.post(&path, &json!({"attempt": 1, "reason": "x"})).await.problem(409, "not_dead_lettered");
    })
    .await;
}

#[tokio::test]
async fn r_a8_a_new_rule_knows_deliveries_of_the_old_one() {
    on_both(async |server| {
        shop(server, json!({"key": "json:/old"})).await;
        let body = br#"{"old":"a","new":"b"}"#;
        let first = deliver(server, body).await.expect(202);
        assert_eq!("shop:a", first["key"]);
        // The old rule stays as another name while the provider may still retry.
        shop(server, json!({"key": ["json:/new", "json:/old"]})).await;
        let retried = deliver(server, body).await.expect(200);
        assert_eq!((&json!("shop:a"), &first["message_id"]), (&retried["key"], &retried["message_id"]));
        let fresh = deliver(server, br#"{"old":"c","new":"d"}"#).await.expect(202);
        assert_eq!("shop:d", fresh["key"]);
        assert_eq!(2, server.jobs_total().await);
    })
    .await;
}

#[tokio::test]
async fn r_a2_no_key_of_a_provider_is_taken_for_something_quarantined() {
    on_both(async |server| {
        shop(server, json!({})).await;
        let (answer, _) = quarantined(server, b"{}", "missing_key").await;
        let suffix = answer["key"].as_str().unwrap().strip_prefix("shop:").unwrap();
        let body = json!({"id": suffix}).to_string();
        let real = deliver(server, body.as_bytes()).await.expect(202);
        assert!(real["quarantined"].is_null() && real["key"] != answer["key"], "{real}");
    })
    .await;
}

#[tokio::test]
async fn r_b7_a_dead_letter_queue_gets_the_whole_context() {
    on_both(async |server| {
        let spec =
            json!({"name": "carts", "lease": "60s", "dead_letter_queue": "dlq", "owner": "team-carts"});
        server.queue(server.tenant, spec).await;
        server.publish("cart:1").await;
        let job = server.consume().await;
        let says = json!({"job": job["id"], "fence": job["fence"], "effect": "possible", "retry": false,
            "code": "E17", "message": "the printer burns"});
        server.post("/v1/queue/reject", &says).await.expect(200);
        let told = taken_from(server, "dlq").await;
        assert_eq!("posthaste.job.dead_lettered", told["type"]);
        let key = told["key"].as_str().unwrap();
        assert!(
            key.starts_with(&format!("posthaste:job.dead_lettered:{}:", job["id"].as_str().unwrap())),
            "{key}"
        );
        // The very same that the API shows.
        let id = job["id"].as_str().unwrap();
        let shown = server.get(&format!("/v1/jobs/{id}")).await.expect(200);
        assert_eq!(shown, told["payload"]);
        let letter = &shown["dead_letter"];
        assert_eq!((&json!("permanent"), &json!("cart:1:carts")), (&letter["cause"], &shown["event_id"]));
        assert_eq!(
            (&json!(1), &json!("E17")),
            (&letter["last_error"]["attempt"], &letter["last_error"]["code"])
        );
        assert_eq!("team-carts", shown["owner"]);
        let payload = server.get(letter["payload_ref"].as_str().unwrap()).await;
        assert_eq!(br#"{"n":1}"#.as_slice(), payload.body);
        assert_eq!(
            (&json!("replay"), &json!(false)),
            (&letter["next"][0]["action"], &letter["next"][0]["safe"])
        );
        // What becomes of the message that tells is told to nobody: no loop.
        server.queue(server.tenant, json!({"name": "last"})).await;
        server.queue(server.tenant, json!({"name": "dlq", "dead_letter_queue": "last"})).await;
        let says = json!({"job": told["id"], "fence": told["fence"], "retry": false});
        assert_eq!("dead_lettered", server.post("/v1/queue/reject", &says).await.expect(200)["state"]);
        settle(server).await;
        let none =
            server.post("/v1/queue/consume", &json!({"queue": "last", "worker": "w"})).await.expect(200);
        assert_eq!(json!([]), none["jobs"]);
    })
    .await;
}

/// Waits until nothing is untold.
async fn settle(server: &Server) {
    while !server.engine.store().untold(1).await.unwrap().is_empty() {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn r_b7_subscribers_of_our_types_hear_of_dead_letters_and_quarantine() {
    on_both(async |server| {
        for (id, types) in [
            ("ops", json!(["posthaste.*"])),
            ("all", json!(["*"])),
            ("none", json!([])),
            ("dead", json!(["posthaste.job.dead_lettered"])),
        ] {
            let spec = json!({"id": id, "url": format!("https://{id}.example.com/"), "types": types});
            server.endpoint(server.tenant, spec).await;
        }
        shop(server, json!({"dead_letter_queue": "dlq"})).await;
        let (_, job) = quarantined(server, b"{}", "missing_key").await;
        let told = taken_from(server, "dlq").await;
        assert_eq!(("posthaste.job.dead_lettered", &job), (told["type"].as_str().unwrap(), &told["payload"]));
        settle(server).await;
        assert_eq!(vec!["ops:posthaste.message.quarantined"], heard(server).await);
        server.publish("cart:1").await;
        let leased = server.consume().await;
        let says = json!({"job": leased["id"], "fence": leased["fence"], "retry": false});
        server.post("/v1/queue/reject", &says).await.expect(200);
        settle(server).await;
        let expected = vec![
            "dead:posthaste.job.dead_lettered",
            "ops:posthaste.job.dead_lettered",
            "ops:posthaste.message.quarantined",
        ];
        assert_eq!(expected, heard(server).await);
    })
    .await;
}

/// Every operational message that is owed to an endpoint, as `endpoint:type`.
async fn heard(server: &Server) -> Vec<String> {
    let jobs = server.get("/v1/jobs?limit=500").await.expect(200)["data"].clone();
    let mut heard = Vec::new();
    for job in jobs.as_array().unwrap().iter().filter(|job| job["kind"] == "push") {
        let message =
            server.get(&format!("/v1/messages/{}", job["message_id"].as_str().unwrap())).await.expect(200);
        heard.push(format!("{}:{}", job["destination"].as_str().unwrap(), message["type"].as_str().unwrap()));
    }
    heard.sort();
    heard
}

#[tokio::test]
async fn r_b7_types_of_ours_are_refused_from_publishers() {
    let server = Server::with_queue().await;
    let body =
        json!({"key": "k", "type": "posthaste.job.dead_lettered", "payload": 1, "to": {"queue": "carts"}});
    let problem = server.post("/v1/messages", &body).await.problem(422, "invalid_value");
    assert_eq!("type", problem["path"]);
    let body = json!({"key": "k", "type": "posthastes.x", "payload": 1, "to": {"queue": "carts"}});
    server.post("/v1/messages", &body).await.expect(202);
}

#[tokio::test]
async fn r_b7_a_dead_letter_queue_must_be_there_and_be_another_one() {
    let server = Server::with_queue().await;
    for (path, body) in [
        ("/v1/queues", json!({"name": "a", "dead_letter_queue": "a"})),
        ("/v1/queues", json!({"name": "a", "dead_letter_queue": "nowhere"})),
        ("/v1/endpoints", json!({"id": "a", "url": "https://example.com", "dead_letter_queue": "nowhere"})),
        (
            "/v1/sources",
            json!({"name": "a", "scheme": "github", "secrets": ["s"], "dead_letter_queue": "nowhere"}),
        ),
    ] {
        let problem = server.post(path, &body).await.problem(422, "invalid_configuration");
        assert_eq!("dead_letter_queue", problem["path"], "{problem}");
    }
    server.post("/v1/queues", &json!({"name": "a", "dead_letter_queue": "carts"})).await.expect(201);
}

#[tokio::test]
async fn r_a2_a_schema_that_refers_elsewhere_is_refused() {
    let server = Server::with_queue().await;
    for (schema, said) in [
        (json!({"$ref": "https://example.com/order.json"}), "nothing is fetched"),
        (json!("file:/etc/hostname"), "file:"),
        (json!({"type": 7}), "schema"),
    ] {
        let body = json!({"name": "a", "scheme": "github", "secrets": ["s"], "schema": schema});
        let problem = server.post("/v1/sources", &body).await.problem(422, "invalid_configuration");
        assert_eq!("schema", problem["path"]);
        assert!(problem["detail"].as_str().unwrap().contains(said), "{problem}");
    }
}

/// Bodies that parsers and databases disagree about: kept to the byte, whatever becomes of them.
#[tokio::test]
async fn case_b52_b54_odd_bodies_are_kept_to_the_byte() {
    on_both(async |server| {
        shop(server, json!({})).await;
        let deep = [vec![b'['; 20_000], vec![b']'; 20_000]].concat();
        let odd: [&[u8]; 8] = [
            br#"{"a":"x\u0000y"}"#,
            br#"{"a\u0000":1}"#,
            br#"{"a":"\ud83e"}"#,
            b"{\"a\":\"\0\"}",
            br#"{"a":NaN}"#,
            br#"{"a":1}{"b":2}"#,
            br#"{"id":12345678901234567890123,"z":-0,"e":1E400,"a":1,"a":2}"#,
            &deep,
        ];
        for body in odd {
            let answer = deliver(server, body).await.expect(202);
            assert_eq!("missing_key", answer["quarantined"], "{answer}");
            let payload = format!("/v1/messages/{}/payload", answer["message_id"].as_str().unwrap());
            assert_eq!(body, server.get(&payload).await.body);
        }
    })
    .await;
}

#[tokio::test]
async fn r_b7_a_dead_letter_that_a_crash_left_untold_is_told_of_once() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("store.db");
    let key = left_by_a_crash(&path).await;
    let open = |clock| SqliteStore::open(SqliteOptions::new(&path, clock)).unwrap();
    let server = Server::with_store(|clock| std::sync::Arc::new(open(clock))).await;
    let told = taken_from(&server, "dlq").await;
    assert_eq!("posthaste.job.dead_lettered", told["type"]);
    assert_eq!((&json!(key), &json!("exhausted")), (&told["payload"]["key"], &told["payload"]["cause"]));
    settle(&server).await;
    let listed = server.get("/v1/jobs?queue=dlq").await.expect(200);
    assert_eq!(1, listed["data"].as_array().unwrap().len(), "{listed}");
}

/// A store in which a job of `carts` died, and nobody was told; gives its message's key.
async fn left_by_a_crash(path: &std::path::Path) -> &'static str {
    use posthaste_store::{
        Configure, Configured, DestinationKind, Due, Fingerprint, ManagedBy, NewDestination, NewMessage,
        Store as _, Target,
    };
    let clock = std::sync::Arc::new(posthaste_testkit::ManualClock::default());
    let store = SqliteStore::open(SqliteOptions::new(path, clock)).unwrap();
    let made = store.configure(vec![Configure::Tenant { name: "default".into() }]).await.unwrap();
    let Configured::Tenant(tenant) = made[0] else { panic!("{made:?}") };
    let mut lanes = Vec::new();
    for (name, config) in
        [("dlq", json!({"name": "dlq"})), ("carts", json!({"name": "carts", "dead_letter_queue": "dlq"}))]
    {
        let new = NewDestination {
            tenant,
            id: posthaste_core::DestinationId::new(name).unwrap(),
            kind: DestinationKind::Queue,
            config: config.to_string().into(),
            managed_by: ManagedBy::Api,
            enabled: true,
            owner: None,
            must_be_new: true,
        };
        let made = store.configure(vec![Configure::PutDestination(new)]).await.unwrap().remove(0);
        let Configured::Destination(row) = made else { panic!("{made:?}") };
        lanes.push(row);
    }
    let carts = lanes.pop().unwrap();
    let message = NewMessage {
        tenant,
        id: posthaste_core::MessageId(0x0190_0000_0000_7000_8000_0000_0000_0001),
        key: posthaste_core::MessageKey::new("cart:1").unwrap(),
        aliases: Vec::new(),
        event_type: None,
        source: None,
        fingerprint: Fingerprint([[1; 16]; 5]),
        correlation_id: "request".into(),
        traceparent: None,
        content_type: None,
        headers: None,
        metadata: None,
        payload_ref: None,
        payload: b"{}".as_slice().into(),
        due: Due::Never(posthaste_core::Cause::Exhausted),
        targets: vec![Target {
            lane: carts.lane,
            destination: carts.id,
            kind: posthaste_core::Kind::Pull,
            wire_id: None,
            owner: None,
        }],
    };
    store.accept(vec![message]).await.unwrap();
    "cart:1"
}

#[tokio::test]
async fn r_b7_a_notice_is_published_once_to_who_subscribed_to_it() {
    let server = Server::with_queue().await;
    for (id, types) in [("ops", json!(["posthaste.endpoint.*"])), ("all", json!(["*"]))] {
        let spec = json!({"id": id, "url": format!("https://{id}.example.com/"), "types": types});
        server.endpoint(server.tenant, spec).await;
    }
    let notice = posthaste_engine::Notice::EndpointDisabled {
        tenant: server.tenant,
        endpoint: posthaste_core::DestinationId::new("all").unwrap(),
        reason: "410".into(),
        at: server.engine.now(),
    };
    server.engine.notice(&notice);
    server.engine.notice(&notice);
    while heard(&server).await.is_empty() {
        tokio::task::yield_now().await;
    }
    assert_eq!(vec!["ops:posthaste.endpoint.disabled"], heard(&server).await);
    let circuit = posthaste_engine::Notice::CircuitClosed {
        tenant: server.tenant,
        endpoint: posthaste_core::DestinationId::new("all").unwrap(),
        at: server.engine.now(),
    };
    server.engine.notice(&circuit);
    server.engine.drain(posthaste_core::DurationMs::ZERO).await;
    assert_eq!(vec!["ops:posthaste.endpoint.disabled"], heard(&server).await);
}
