//! Faults that others met in the field, by the ids of the field cases.

use std::sync::Arc;

use posthaste_core::DurationMs;
use serde_json::{Value, json};

use crate::harness::{Reply, SECRET, Server, signature};

fn to_carts(key: &str, payload: &Value) -> Value {
    json!({"key": key, "to": {"queue": "carts"}, "payload": payload})
}

async fn payload_of(server: &Server, key: &str) -> Vec<u8> {
    let message = server.get(&format!("/v1/messages?key={key}")).await.expect(200);
    server.get(&format!("/v1/messages/{}/payload", message["id"].as_str().unwrap())).await.body
}

#[tokio::test]
async fn case_b11_of_fifty_requests_with_one_key_one_makes_the_job() {
    let server = Arc::new(Server::with_queue().await);
    let mut requests = tokio::task::JoinSet::new();
    for _ in 0..50 {
        let server = Arc::clone(&server);
        requests.spawn(async move { server.post("/v1/messages", &to_carts("k1", &json!(1))).await });
    }
    let replies = requests.join_all().await;
    let ids: std::collections::BTreeSet<String> =
        replies.iter().map(|reply| reply.json()["message"]["id"].to_string()).collect();
    assert_eq!(1, ids.len());
    assert_eq!(1, replies.iter().filter(|reply| reply.status == 202).count());
    assert!(replies.iter().all(|reply| [200, 202].contains(&reply.status)));
    assert_eq!(1, server.jobs_total().await);
}

#[tokio::test]
async fn case_b12_a_key_stands_for_the_very_bytes_of_one_tenant() {
    let server = Server::with_queue().await;
    let raw = async |payload: &str| {
        let body = format!(r#"{{"key":"k2","to":{{"queue":"carts"}},"payload":{payload}}}"#);
        server.call("POST", "/v1/messages", &server.admin, body.as_bytes()).await
    };
    let first = raw(r#"{"amount":1}"#).await.expect(202);
    for other in [r#"{"amount":2}"#, r#"{"amount": 1}"#] {
        let problem = raw(other).await.problem(422, "key_reused");
        assert_eq!(
            json!(["payload", first["message"]["id"]]),
            json!([problem["field"], problem["message_id"]])
        );
    }
    raw(r#"{"amount":1}"#).await.expect(200);
    server.queue(server.tenant, json!({"name": "others"})).await;
    let elsewhere = json!({"key": "k2", "to": {"queue": "others"}, "payload": {"amount": 1}});
    assert_eq!("to", server.post("/v1/messages", &elsewhere).await.problem(422, "key_reused")["field"]);
    // Compared by bytes: no letter is folded, no quote taken off.
    for key in ["K2", "\"k2\"", "k2/../x", "%00"] {
        server.post("/v1/messages", &to_carts(key, &json!(1))).await.expect(202);
    }
    for key in ["", " k2 ", "\u{e9}", "e\u{301}", "a\u{0}", "a\nb"] {
        server.post("/v1/messages", &to_carts(key, &json!(1))).await.problem(422, "invalid_name");
    }
    let other = server.engine.ensure_tenant("other").await.unwrap();
    server.queue(other, json!({"name": "carts"})).await;
    let stranger = server.key(other, "publish read").await;
    let body = to_carts("k2", &json!({"amount": 5})).to_string();
    server.call("POST", "/v1/messages", &stranger, body.as_bytes()).await.expect(202);
}

#[tokio::test]
async fn case_b14_a_known_key_is_always_said_to_be_known() {
    let server = Server::with_queue().await;
    let again = async |key: &str, state: &str| {
        let answer = server.post("/v1/messages", &to_carts(key, &json!({"n": 1}))).await.expect(200);
        assert_eq!(
            (json!("duplicate_done"), json!(state)),
            (answer["path"].clone(), answer["jobs"][0]["state"].clone()),
            "{key}"
        );
    };
    let new = async |key: &str| {
        server.post("/v1/messages", &to_carts(key, &json!({"n": 1}))).await.expect(202);
    };
    new("done").await;
    let job = server.consume().await;
    again("done", "leased").await;
    server
        .post("/v1/queue/ack", &json!({"job": job["id"], "fence": job["fence"], "outcome": "committed"}))
        .await
        .expect(200);
    again("done", "committed").await;
    new("failed").await;
    let job = server.consume().await;
    let report = json!({"job": job["id"], "fence": job["fence"], "effect": "none", "retry": false});
    server.post("/v1/queue/reject", &report).await.expect(200);
    again("failed", "dead_lettered").await;
    // A replay is asked for by name of the attempt, and is never swallowed: it goes round, or says why not.
    let id = job["id"].as_str().unwrap();
    let replay = json!({"attempt": 1, "reason": "mended"});
    server.post(&format!("/v1/jobs/{id}/replay"), &replay).await.expect(200);
    again("failed", "scheduled").await;
    assert_eq!(2, server.jobs_total().await);
}

#[tokio::test]
async fn case_b33_the_longest_delays_neither_fire_early_nor_hide_what_is_near() {
    let server = Server::with_queue().await;
    for (number, delay) in
        ["2147483646ms", "2147483647ms", "2147483648ms", "30d", "366d", "803d", "1096d"].iter().enumerate()
    {
        let mut body = to_carts(&format!("far-{number}"), &json!(1));
        body["delay"] = (*delay).into();
        server.post("/v1/messages", &body).await.expect(202);
    }
    let mut last = to_carts("last", &json!(1));
    last["due_at"] = "9999-12-31T23:59:59Z".into();
    server.post("/v1/messages", &last).await.expect(202);
    let mut near = to_carts("near", &json!(1));
    near["delay"] = "2s".into();
    server.post("/v1/messages", &near).await.expect(202);
    server.clock.advance(DurationMs(1_999));
    let consume = json!({"queue": "carts", "worker": "w-1", "max": 10});
    let leased = async || server.post("/v1/queue/consume", &consume).await.expect(200)["jobs"].clone();
    assert_eq!(json!([]), leased().await);
    server.clock.advance(DurationMs(1));
    let jobs = leased().await;
    assert_eq!(json!(["near", null]), json!([jobs[0]["key"], jobs[1]["key"]]));
    // A jump of the clock makes due what is due by then, and nothing else.
    server.clock.advance(DurationMs(2_147_483_647 - 2_000));
    let jobs = leased().await;
    let keys: Vec<_> = jobs.as_array().unwrap().iter().map(|job| &job["key"]).collect();
    assert!(keys.contains(&&json!("far-0")) && keys.contains(&&json!("far-1")), "{jobs}");
    assert!(!keys.contains(&&json!("far-2")) && !keys.contains(&&json!("far-3")), "{jobs}");
}

#[tokio::test]
async fn case_b52_nul_and_lone_surrogates_pass_as_payload_and_are_refused_as_names() {
    let server = Server::with_queue().await;
    let bodies = [
        r#"{"a":"x\u0000y"}"#,
        r#"{"a\u0000":1}"#,
        r#"{"a":"\ud83e"}"#,
        r#"{"a":"\uDC59\uD835"}"#,
        r#"{"a":"\\u0000"}"#,
    ];
    for (number, payload) in bodies.into_iter().enumerate() {
        let body = format!(r#"{{"key":"k{number}","to":{{"queue":"carts"}},"payload":{payload}}}"#);
        server.call("POST", "/v1/messages", &server.admin, body.as_bytes()).await.expect(202);
        assert_eq!(payload.as_bytes(), payload_of(&server, &format!("k{number}")).await);
    }
    // A batch: what is refused harms nobody else.
    let mut messages: Vec<Value> =
        (0..99).map(|number| to_carts(&format!("b{number}"), &json!("x"))).collect();
    messages.insert(50, to_carts("b\u{0}", &json!("x")));
    let answer = server.post("/v1/messages/batch", &json!({"messages": messages})).await.expect(200);
    let failed: Vec<_> =
        answer["results"].as_array().unwrap().iter().filter(|result| result["status"] != 202).collect();
    assert_eq!((1, &json!("invalid_name")), (failed.len(), &failed[0]["code"]));
    let mut typed = to_carts("t", &json!(1));
    typed["type"] = "a\u{0}".into();
    assert_eq!("type", server.post("/v1/messages", &typed).await.problem(422, "invalid_value")["path"]);
    // At intake the bytes are the provider's.
    let source = json!({"name": "gh", "scheme": "github", "secrets": [SECRET], "to": {"queue": "carts"}});
    server.source(server.tenant, source).await;
    for (number, body) in
        [&b"{\"a\":\"\\u0000\"}"[..], b"{\"a\":\"\\ud83e\"}", b"a\0b"].into_iter().enumerate()
    {
        let delivery = format!("d-{number}");
        let signed = signature(SECRET, body);
        let headers =
            [("x-github-event", "push"), ("x-github-delivery", &delivery), ("x-hub-signature-256", &signed)];
        server.send("POST", "/in/gh", &headers, body).await.expect(202);
        assert_eq!(body, payload_of(&server, &format!("gh:{delivery}")).await);
    }
}

#[tokio::test]
async fn case_b54_a_payload_is_never_parsed_and_printed() {
    let server = Server::with_queue().await;
    let publish = async |key: &str, payload: &str| -> Reply {
        let body = format!(r#"{{"key":"{key}","to":{{"queue":"carts"}},"payload":{payload}}}"#);
        server.call("POST", "/v1/messages", &server.admin, body.as_bytes()).await
    };
    let numbers = r#"{"id":3544790567247868102,"n":9007199254740993,"d":0.1000000000000000055511151231257827,"z":-0,"e":1E400,"a":1,"a":2}"#;
    publish("a", numbers).await.expect(202);
    assert_eq!(numbers.as_bytes(), payload_of(&server, "a").await);
    let nested = |levels: usize| format!("{}{}", "[".repeat(levels), "]".repeat(levels));
    for levels in [129, 50_000] {
        let payload = nested(levels);
        let reply = publish(&format!("n{levels}"), &payload).await;
        // Either is right, and a crash is not.
        match reply.status {
            202 => assert_eq!(payload.as_bytes(), payload_of(&server, &format!("n{levels}")).await),
            status => assert_eq!(400, status, "{}", reply.text()),
        }
    }
    assert_eq!(413, publish("deep", &nested(200_000)).await.status);
    for payload in [r#"{"a":NaN}"#, r#"{"a":1}{"b":2}"#] {
        publish("bad", payload).await.problem(400, "invalid_json");
    }
    server.get("/v1/messages?key=bad").await.problem(404, "not_found");
}

#[tokio::test]
async fn case_b55_headers_that_break_a_request_or_are_ours_are_refused_when_they_are_set() {
    let server = Server::start().await;
    let with =
        |name: &str, value: &str| json!({"id": "e", "url": "https://example.com/", "headers": {name: value}});
    let long = "x".repeat(65_536);
    for (name, value) in [
        ("X-A", "a\r\nX-Evil: 1"),
        ("X-A", "a\nb"),
        ("X-A", "a\u{0}"),
        ("X-A", "\u{e9}"),
        ("X-A", long.as_str()),
        ("X A", "a"),
        ("X:A", "a"),
        ("", "a"),
        (":path", "/"),
        ("Content-Length", "1"),
        ("Transfer-Encoding", "chunked"),
        ("Host", "evil"),
        ("Connection", "close"),
        ("Expect", "100-continue"),
        ("webhook-id", "x"),
        ("webhook-signature", "x"),
        ("Idempotency-Key", "x"),
    ] {
        let refused =
            server.post("/v1/endpoints", &with(name, value)).await.problem(422, "invalid_configuration");
        assert!(!refused["detail"].as_str().unwrap().contains("X-Evil"), "{refused}");
    }
    server.post("/v1/endpoints", &with("Authorization", "Bearer abc")).await.expect(201);
    let change = with("X-A", "a\r\nb").to_string();
    server
        .call("PUT", "/v1/endpoints/e", &server.admin, change.as_bytes())
        .await
        .problem(422, "invalid_configuration");
}

#[tokio::test]
async fn case_b57_what_others_wrote_is_shown_as_text() {
    let server = Server::with_queue().await;
    let script = "<img/src=x/onerror=alert(1)>";
    server
        .post("/v1/messages", &to_carts(script, &json!("</script><script>alert(1)</script>")))
        .await
        .expect(202);
    let job = server.consume().await;
    let report = json!({"job": job["id"], "fence": job["fence"], "class": "connect",
        "message": "\"><svg/onload=alert(1)>"});
    server.post("/v1/queue/reject", &report).await.expect(200);
    let cookie = format!("posthaste_key={}", server.admin);
    for path in ["/", "/timeline?key=%3Cimg/src=x/onerror=alert(1)%3E", "/timeline?key=%3Cscript%3E"] {
        let page = server.send("GET", path, &[("cookie", &cookie)], b"").await;
        let text = page.text();
        for tag in ["<img/src", "<svg/onload", "<script"] {
            assert!(!text.contains(tag), "{path}: {text}");
        }
        assert!(page.header("content-security-policy").unwrap().starts_with("default-src 'none';"));
    }
    let id = server.get("/v1/messages?key=%3Cimg/src=x/onerror=alert(1)%3E").await.expect(200)["id"].clone();
    let raw = server.get(&format!("/v1/messages/{}/payload", id.as_str().unwrap())).await;
    assert_eq!(Some("nosniff"), raw.header("x-content-type-options"));
}

#[tokio::test]
async fn case_b60_a_hidden_header_does_not_follow_the_url_elsewhere() {
    let server = Server::start().await;
    let spec = json!({"id": "a", "url": "https://a.test/x", "headers": {"authorization": "Bearer CANARY"}});
    server.post("/v1/endpoints", &spec).await.expect(201);
    let put = async |url: &str, header: &str| {
        let spec = json!({"id": "a", "url": url, "headers": {"authorization": header}}).to_string();
        server.call("PUT", "/v1/endpoints/a", &server.admin, spec.as_bytes()).await
    };
    for url in [
        "https://evil.test/x",
        "https://a.test:8443/x",
        "https://a.test.evil.test/x",
        "https://evil.test\\@a.test/",
        "https://evil.test?a.test/x",
        "https://evil.test#https://a.test/x",
    ] {
        let refused = put(url, "(hidden)").await;
        assert_eq!(422, refused.status, "{url}: {}", refused.text());
        assert!(!refused.text().contains("CANARY"));
    }
    put("https://a.test/other", "(hidden)").await.expect(200);
    put("https://A.test/other", "(hidden)").await.expect(200);
    put("https://b.test/x", "Bearer NEW").await.expect(200);
}
