//! Publishing: the exact answers.

use serde_json::{Value, json};

use crate::harness::{Reply, Server, escaped, with};

async fn publish(server: &Server, more: Value) -> Reply {
    let body = with(json!({"key": "k", "to": {"queue": "carts"}}), more);
    server.post("/v1/messages", &body).await
}

#[tokio::test]
async fn r_b1_a_message_is_answered_with_its_jobs() {
    let server = Server::with_queue().await;
    let request = json!({"key": "ship_482:v3", "type": "shipment.updated", "metadata": {"order": "17"},
        "payload": {"any": "json"}, "delay": "30s", "to": {"queue": "carts"}});
    let first = server.post("/v1/messages", &request).await.expect(202);
    let (message, job) = (&first["message"], &first["jobs"][0]);
    assert_eq!(
        json!({
            "path": "first_run",
            "message": {"id": message["id"], "key": "ship_482:v3", "accepted_at": "2026-01-01T00:00:00.000Z"},
            "jobs_total": 1,
            "fanout": "done",
            "jobs": [{
                "id": job["id"], "event_id": "ship_482:v3:carts", "state": "scheduled", "destination": "carts",
                "scheduled_at": "2026-01-01T00:00:30.000Z", "due_at": "2026-01-01T00:00:30.000Z",
            }],
        }),
        first
    );
    let again = server.post("/v1/messages", &request).await.expect(200);
    assert_eq!("duplicate_done", again["path"]);
    assert_eq!(first["message"], again["message"]);
    assert_eq!(first["jobs"], again["jobs"]);
    let shown = server.get(&format!("/v1/messages/{}", message["id"].as_str().unwrap())).await.expect(200);
    assert_eq!(json!({"order": "17"}), shown["metadata"]);
    assert_eq!(1, shown["duplicates"]);
    assert_eq!(first["jobs"], shown["jobs"]);
}

#[tokio::test]
async fn a_body_that_is_no_json_is_refused_with_the_place() {
    let server = Server::with_queue().await;
    let call = async |body: &str| server.call("POST", "/v1/messages", &server.admin, body.as_bytes()).await;
    for (body, line, column) in
        [("", 1, 0), ("{", 1, 1), ("{\"key\":\n\"k\",}", 2, 5), ("{\"key\":\"k\"} x", 1, 13)]
    {
        let problem = call(body).await.problem(400, "invalid_json");
        assert_eq!(
            (json!(line), json!(column)),
            (problem["line"].clone(), problem["column"].clone()),
            "{body}"
        );
    }
    call("[]").await.problem(422, "invalid_type");
    call("\u{feff}{}").await.problem(400, "invalid_json");
    let invalid_utf8 = server.call("POST", "/v1/messages", &server.admin, b"{\"key\":\"\xff\"}").await;
    invalid_utf8.problem(400, "invalid_json");
}

#[tokio::test]
async fn r_b14_nobody_takes_the_key_of_a_firing_before_it() {
    let server = Server::with_queue().await;
    for key in ["schedule:nightly:2026-01-02T00:00:00.000Z", "posthaste:job.dead_lettered:job_1"] {
        let problem = publish(&server, json!({"key": key})).await.problem(422, "invalid_name");
        assert!(problem["detail"].as_str().unwrap().contains("are ours"), "{problem}");
    }
    publish(&server, json!({"key": "scheduled:1"})).await.expect(202);
}

#[tokio::test]
async fn a_number_where_a_word_belongs_is_no_fault_of_syntax() {
    let server = Server::with_queue().await;
    let body = json!({"id": "shop", "url": "https://shop.test/", "on_unknown": 1});
    let problem = server.post("/v1/endpoints", &body).await.problem(422, "invalid_type");
    assert_eq!("on_unknown", problem["path"], "{problem}");
}

#[tokio::test]
async fn a_typo_can_not_lose_a_delay() {
    let server = Server::with_queue().await;
    let problem = publish(&server, json!({"dely": "30s"})).await.problem(422, "unknown_field");
    assert!(problem["detail"].as_str().unwrap().contains("`dely`"), "{problem}");
    publish(&server, json!({"to": {"queu": "carts"}})).await.problem(422, "unknown_field");
    publish(&server, json!({"to": ["carts"]})).await.problem(422, "invalid_type");
    let problem = publish(&server, json!({"type": 7})).await.problem(422, "invalid_type");
    assert_eq!("type", problem["path"]);
    for to in [json!({}), json!({"endpoints": []}), json!({"queue": "carts", "endpoints": ["a"]})] {
        publish(&server, json!({"to": to})).await.problem(422, "invalid_value");
    }
    publish(&server, json!({"metadata": [1]})).await.problem(422, "invalid_type");
    let twice = br#"{"key":"a","key":"b"}"#;
    server.call("POST", "/v1/messages", &server.admin, twice).await.problem(422, "duplicate_field");
    assert_eq!(0, server.jobs_total().await);
}

#[tokio::test]
async fn r_b1_times_need_an_offset_and_may_be_past() {
    let server = Server::with_queue().await;
    for (key, given, due) in [
        ("a", "2026-12-01T09:00:00+01:00", "2026-12-01T08:00:00.000Z"),
        ("b", "2000-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z"),
        ("c", "9999-12-31T23:59:59.999Z", "9999-12-31T23:59:59.999Z"),
        ("d", "0000-01-01T00:00:00Z", "2026-01-01T00:00:00.000Z"),
    ] {
        let answer = publish(&server, json!({"key": key, "due_at": given})).await.expect(202);
        assert_eq!(due, answer["jobs"][0]["due_at"], "{given}");
        assert_eq!(due, answer["jobs"][0]["scheduled_at"], "{given}");
    }
    for (given, code) in [
        ("2026-12-01T09:00:00", "naive_time"),
        ("2026-12-01", "naive_time"),
        ("9999-12-31T23:59:59-01:00", "time_out_of_range"),
        ("10000-01-01T00:00:00Z", "time_out_of_range"),
        ("tomorrow", "invalid_time"),
        ("2026-02-30T00:00:00Z", "invalid_time"),
        ("", "invalid_time"),
    ] {
        let problem = publish(&server, json!({"due_at": given})).await.problem(422, code);
        assert_eq!("due_at", problem["path"]);
    }
    publish(&server, json!({"due_at": 1_796_029_200})).await.problem(422, "invalid_type");
    publish(&server, json!({"due_at": "2026-12-01T09:00:00Z", "delay": "1s"}))
        .await
        .problem(422, "due_conflict");
}

#[tokio::test]
async fn r_b1_delays_need_a_unit() {
    let server = Server::with_queue().await;
    for (given, detail) in [
        (json!("30"), "`delay`: the duration \"30\" has no unit; write for example \"30s\""),
        (json!(30), "`delay`: the duration \"30\" has no unit; write for example \"30s\""),
        (json!("-1s"), "`delay`: the duration \"-1s\" is negative"),
        (json!(-1), "`delay`: the duration \"-1\" is negative"),
        (json!("99999999999999999999s"), "`delay`: the duration \"99999999999999999999s\" is too long"),
        (json!("1000001d"), "`delay`: the duration \"1000001d\" is too long"),
        (json!(""), "`delay`: a duration must not be empty; write for example \"30s\" or \"24h\""),
    ] {
        let problem = publish(&server, json!({"delay": given})).await.problem(422, "invalid_duration");
        assert_eq!(detail, problem["detail"]);
    }
    let answer = publish(&server, json!({"delay": "1000000d"})).await.expect(202);
    assert_eq!("4763-11-29T00:00:00.000Z", answer["jobs"][0]["due_at"]);
}

#[tokio::test]
async fn a_key_is_1_to_256_bytes_of_visible_ascii() {
    let server = Server::with_queue().await;
    let (longest, too_long) = ("k".repeat(256), "k".repeat(257));
    for key in ["!", "~", "a/b?c#d%20&e=f+g", "\"quoted\\\"", &longest] {
        publish(&server, json!({"key": key})).await.expect(202);
        let path = escaped(key);
        for route in ["messages", "timeline"] {
            let shown = server.get(&format!("/v1/{route}?key={path}")).await.expect(200);
            assert_eq!(key, shown["key"]);
        }
    }
    let too_long_escaped = escaped(&too_long);
    for (key, in_query) in [
        ("", ""),
        (too_long.as_str(), too_long_escaped.as_str()),
        ("clé", "cl%C3%A9"),
        ("a b", "a%20b"),
        ("a\u{0}", "a%00"),
        ("a\n", "a%0A"),
        ("\u{7f}", "%7F"),
    ] {
        let problem = publish(&server, json!({"key": key})).await.problem(422, "invalid_name");
        assert_eq!("key", problem["path"]);
        server.get(&format!("/v1/messages?key={in_query}")).await.problem(422, "invalid_name");
        server.get(&format!("/v1/timeline?key={in_query}")).await.problem(422, "invalid_name");
    }
    server.get("/v1/messages").await.problem(422, "missing_key");
    server.get("/v1/messages?kye=a").await.problem(422, "unknown_parameter");
    server.get("/v1/messages?key=nobody").await.problem(404, "not_found");
    server.get("/v1/messages/msg_nonsense").await.problem(404, "not_found");
}

#[tokio::test]
async fn the_key_may_come_as_a_header() {
    let server = Server::with_queue().await;
    let authorization = format!("Bearer {}", server.admin);
    let send = async |key: &str, body: Value| {
        let headers = [("authorization", authorization.as_str()), ("idempotency-key", key)];
        server.send("POST", "/v1/messages", &headers, body.to_string().as_bytes()).await
    };
    let to = json!({"queue": "carts"});
    let by_header = send("h-1", json!({"to": to})).await.expect(202);
    assert_eq!("h-1", by_header["message"]["key"]);
    send("h-1", json!({"key": "h-1", "to": to})).await.expect(200);
    send("h-1", json!({"key": "h-2", "to": to})).await.problem(400, "key_conflict");
    send("a b", json!({"to": to})).await.problem(422, "invalid_name");
    server.post("/v1/messages", &json!({"to": to})).await.problem(422, "missing_key");
    server.post("/v1/messages", &json!({"key": null, "to": to})).await.problem(422, "missing_key");
}

#[tokio::test]
async fn r_a10_a_key_that_stood_for_something_else_is_refused() {
    let server = Server::with_queue().await;
    server.queue(server.tenant, json!({"name": "other"})).await;
    let first = publish(&server, json!({"payload": 1, "type": "t"})).await.expect(202);
    for (more, field) in [
        (json!({"payload": 2, "type": "t"}), "payload"),
        (json!({"payload": 1, "type": "u"}), "type"),
        (json!({"payload": 1, "type": "t", "to": {"queue": "other"}}), "to"),
        (json!({"payload": 1, "type": "t", "delay": "1s"}), "delay"),
        (json!({"payload": 1, "type": "t", "content_type": "text/plain"}), "content_type"),
    ] {
        let problem = publish(&server, more).await.problem(422, "key_reused");
        assert_eq!(field, problem["field"]);
        assert_eq!(first["message"]["id"], problem["message_id"]);
    }
    assert_eq!(1, server.jobs_total().await);
}

#[tokio::test]
async fn unknown_destinations_are_named() {
    let server = Server::with_queue().await;
    server.endpoint(server.tenant, json!({"id": "fan_17", "url": "https://example.com/"})).await;
    for queue in ["nowhere", "fan_17"] {
        publish(&server, json!({"to": {"queue": queue}})).await.problem(404, "unknown_queue");
        server
            .post("/v1/queue/publish", &json!({"queue": queue, "key": "k"}))
            .await
            .problem(404, "unknown_queue");
        server.post("/v1/queue/consume", &json!({"queue": queue})).await.problem(404, "unknown_queue");
    }
    publish(&server, json!({"to": {"endpoints": ["fan_17", "nobody"]}}))
        .await
        .problem(404, "unknown_endpoint");
    publish(&server, json!({"to": {"queue": "a b"}})).await.problem(422, "invalid_name");
    assert_eq!(0, server.jobs_total().await);
    let both = publish(&server, json!({"to": {"endpoints": ["fan_17", "fan_17"]}})).await.expect(202);
    assert_eq!(1, both["jobs_total"]);
    let unrouted =
        server.post("/v1/messages", &json!({"key": "u", "type": "nobody.wants.it"})).await.expect(202);
    assert_eq!((json!(0), json!([])), (unrouted["jobs_total"].clone(), unrouted["jobs"].clone()));
}

#[tokio::test]
async fn a_bad_message_of_a_batch_fails_alone() {
    let server = Server::with_queue().await;
    let to = json!({"queue": "carts"});
    let messages = json!([
        {"key": "a", "to": to},
        {"key": "b", "to": to, "due_at": "2026-12-01T09:00:00"},
        {"key": "", "to": to},
        {"to": to},
        {"key": "c", "to": to, "dely": "1s"},
        {"key": "a", "to": to},
        {"key": "a", "to": to, "delay": "1s"},
        {"key": "d", "to": {"queue": "nowhere"}},
        7,
        {"key": "e", "to": to, "payload": "x".repeat(262_143)},
        {"key": "f", "to": to},
    ]);
    let answer = server.post("/v1/messages/batch", &json!({"messages": messages})).await.expect(200);
    let results: Vec<(u64, String)> = answer["results"]
        .as_array()
        .unwrap()
        .iter()
        .map(|result| {
            let said = result["code"].as_str().or(result["path"].as_str()).unwrap().to_owned();
            (result["status"].as_u64().unwrap(), said)
        })
        .collect();
    let expected = [
        (202, "first_run"),
        (422, "naive_time"),
        (422, "invalid_name"),
        (422, "missing_key"),
        (422, "unknown_field"),
        (200, "duplicate_done"),
        (422, "key_reused"),
        (404, "unknown_queue"),
        (422, "invalid_type"),
        (413, "payload_too_large"),
        (202, "first_run"),
    ];
    assert_eq!(expected.map(|(status, said)| (status, said.to_owned())).to_vec(), results);
    assert_eq!("f:carts", answer["results"][10]["jobs"][0]["event_id"]);
    assert_eq!(2, server.jobs_total().await);
}

#[tokio::test]
async fn a_batch_has_its_limits() {
    let server = Server::with_queue().await;
    let message = json!({"key": "k", "to": {"queue": "carts"}});
    let too_many = json!({"messages": vec![&message; 1_001]});
    server.post("/v1/messages/batch", &too_many).await.problem(422, "too_many_items");
    let too_large = json!({"messages": [{"key": "k", "payload": "x".repeat(4 * 1024 * 1024)}]});
    server.post("/v1/messages/batch", &too_large).await.problem(413, "body_too_large");
    server.post("/v1/messages/batch", &json!({"messages": {}})).await.problem(422, "invalid_type");
    server.post("/v1/messages/batch", &json!({})).await.problem(422, "missing_field");
    let authorization = format!("Bearer {}", server.admin);
    let headers = [("authorization", authorization.as_str()), ("idempotency-key", "k")];
    let batch = json!({"messages": [message]}).to_string();
    server.send("POST", "/v1/messages/batch", &headers, batch.as_bytes()).await.problem(400, "key_conflict");
    assert_eq!(
        json!({"results": []}),
        server.post("/v1/messages/batch", &json!({"messages": []})).await.expect(200)
    );
}

#[tokio::test]
async fn compressed_requests_are_refused_and_not_guessed_at() {
    let server = Server::with_queue().await;
    let authorization = format!("Bearer {}", server.admin);
    let headers = [("authorization", authorization.as_str()), ("content-encoding", "gzip")];
    server.send("POST", "/v1/messages", &headers, b"\x1f\x8b").await.problem(415, "unsupported_encoding");
}
