//! Payloads are kept byte for byte.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::harness::{Reply, Server, with};

/// Publishes `payload` as it is written.
async fn publish(server: &Server, key: &str, payload: &str) -> Reply {
    let body = format!(r#"{{"queue":"carts","key":"{key}","payload":{payload}}}"#);
    server.call("POST", "/v1/queue/publish", &server.admin, body.as_bytes()).await
}

async fn payload_of(server: &Server, published: &Value) -> Reply {
    let id = published["message"]["id"].as_str().unwrap();
    server.get(&format!("/v1/messages/{id}/payload")).await
}

/// The one leased job, as bytes: parsing would hide what is asked for.
async fn consumed(server: &Server) -> String {
    let reply = server.post("/v1/queue/consume", &json!({"queue": "carts"})).await;
    assert_eq!(200, reply.status, "{}", reply.text());
    reply.text()
}

#[tokio::test]
async fn r_b11_json_is_kept_as_it_is_written() {
    let server = Server::with_queue().await;
    let deep = format!("{}{}", "[".repeat(10_000), "]".repeat(10_000));
    let common_parsers_refuse = [r#""\ud800""#, r#"{"\udc00\ud800":"\uD83D\uDE00"}"#, "1E400", deep.as_str()];
    let payloads = [
        r#"{"a":1,"a":2}"#,
        r#""\u0000""#,
        r#""\ud800""#,
        r#"{"\udc00\ud800":"\uD83D\uDE00"}"#,
        "9007199254740993",
        "-0.0",
        "1E400",
        "123456789012345678901234567890.10",
        "null",
        "false",
        "{ \"b\" : [ 1 , 2 ] ,\n\t\"a\":{} }",
        "\"\u{1F600} é \u{2028}\"",
        deep.as_str(),
    ];
    for (number, payload) in payloads.into_iter().enumerate() {
        let published = publish(&server, &format!("k{number}"), payload).await.expect(202);
        let reply = payload_of(&server, &published).await;
        assert_eq!(payload, reply.text());
        assert_eq!(Some("application/json"), reply.header("content-type"));
        let answer = consumed(&server).await;
        // What common parsers refuse would break the whole answer for a worker, and with it the other jobs' fences.
        let expected = if common_parsers_refuse.contains(&payload) {
            format!(r#""payload":null,"payload_base64":"{}","#, STANDARD.encode(payload))
        } else {
            format!(r#""payload":{payload},"payload_base64":null,"#)
        };
        assert!(answer.contains(&expected), "{answer}");
        serde_json::from_str::<Value>(&answer).unwrap();
    }
}

#[tokio::test]
async fn r_b11_metadata_is_kept_as_it_is_written() {
    let server = Server::with_queue().await;
    let metadata = r#"{"n":9007199254740993,"n":1, "s":"\u0000"}"#;
    let body = format!(r#"{{"queue":"carts","key":"k","metadata":{metadata}}}"#);
    server.call("POST", "/v1/queue/publish", &server.admin, body.as_bytes()).await.expect(202);
    let answer = consumed(&server).await;
    assert!(answer.contains(&format!(r#""metadata":{metadata},"#)), "{answer}");
    let too_large = json!({"queue": "carts", "key": "l", "metadata": {"m": "x".repeat(8 * 1024)}});
    server.post("/v1/queue/publish", &too_large).await.problem(422, "invalid_value");
    for poison in [r#"{"s":"\ud800"}"#, r#"{"n":1e400}"#] {
        let body = format!(r#"{{"queue":"carts","key":"m","metadata":{poison}}}"#);
        let reply = server.call("POST", "/v1/queue/publish", &server.admin, body.as_bytes()).await;
        reply.problem(422, "invalid_value");
    }
}

#[tokio::test]
async fn a_payload_that_is_no_json_is_refused_and_harms_nobody() {
    let server = Server::with_queue().await;
    let unclosed = "[".repeat(100_000);
    for payload in ["", "nul", "{a:1}", "'a'", "01", "NaN", "\"\\x\"", "\"\t\"", unclosed.as_str()] {
        publish(&server, "k", payload).await.problem(400, "invalid_json");
    }
    assert_eq!(0, server.jobs_total().await);
}

#[tokio::test]
async fn r_b11_bytes_come_back_as_they_were_given() {
    let server = Server::with_queue().await;
    let bytes: Vec<u8> = (0..=255).collect();
    for (key, bytes, content_type, shown) in [
        ("a", bytes.as_slice(), "application/octet-stream", None),
        ("b", b"{\"a\":1,\"a\":2}", "application/cloudevents+json; charset=utf-8", Some(r#"{"a":1,"a":2}"#)),
        ("c", b"not json", "application/json", None),
        ("d", b"{}", "text/plain", None),
        ("e", b"", "application/json", None),
        ("f", b"{} {}", "application/json", None),
    ] {
        let text = STANDARD.encode(bytes);
        let request =
            json!({"queue": "carts", "key": key, "payload_base64": text, "content_type": content_type});
        let published = server.post("/v1/queue/publish", &request).await.expect(202);
        let reply = payload_of(&server, &published).await;
        assert_eq!((bytes, Some(content_type)), (reply.body.as_slice(), reply.header("content-type")));
        let answer = consumed(&server).await;
        let expected = match shown {
            Some(json) => format!(r#""payload":{json},"payload_base64":null,"#),
            None => format!(r#""payload":null,"payload_base64":"{text}","#),
        };
        assert!(answer.contains(&expected), "{answer}");
    }
}

#[tokio::test]
async fn a_payload_is_no_page_of_ours() {
    let server = Server::with_queue().await;
    let html = STANDARD.encode("<script>alert(1)</script>");
    let request = json!({"queue": "carts", "key": "k", "payload_base64": html, "content_type": "text/html"});
    let published = server.post("/v1/queue/publish", &request).await.expect(202);
    let reply = payload_of(&server, &published).await;
    assert_eq!(Some("nosniff"), reply.header("x-content-type-options"));
    assert_eq!(Some("attachment"), reply.header("content-disposition"));
    assert_eq!(Some("sandbox"), reply.header("content-security-policy"));
    let request = json!({"queue": "carts", "key": "l", "payload": 1, "content_type": "a\r\nset-cookie: b"});
    server.post("/v1/queue/publish", &request).await.problem(422, "invalid_value");
}

#[tokio::test]
async fn the_ways_to_give_a_payload_exclude_each_other() {
    let server = Server::with_queue().await;
    let publish = async |more: Value| {
        server.post("/v1/queue/publish", &with(json!({"queue": "carts", "key": "k"}), more)).await
    };
    publish(json!({"payload": 1, "payload_base64": ""})).await.problem(422, "payload_conflict");
    publish(json!({"payload": 1, "payload_ref": "s3://a"})).await.problem(422, "payload_conflict");
    publish(json!({"payload_base64": "", "payload_ref": "s3://a"})).await.problem(422, "payload_conflict");
    publish(json!({"payload_base64": "?"})).await.problem(422, "invalid_value");
    publish(json!({"payload": null, "payload_base64": "aGk"})).await.expect(202);
    let endpoints = json!({"key": "e", "payload_ref": "s3://a", "to": {"endpoints": ["fan_17"]}});
    server.post("/v1/messages", &endpoints).await.problem(422, "invalid_value");
}

#[tokio::test]
async fn r_b11_a_reference_takes_the_payloads_place() {
    let server = Server::with_queue().await;
    let request = json!({"queue": "carts", "key": "k", "payload_ref": "s3://bucket/a"});
    let published = server.post("/v1/queue/publish", &request).await.expect(202);
    let job = server.consume().await;
    assert_eq!(json!("s3://bucket/a"), job["payload_ref"]);
    assert_eq!((Value::Null, Value::Null), (job["payload"].clone(), job["payload_base64"].clone()));
    let problem = payload_of(&server, &published).await.problem(404, "not_found");
    assert_eq!("s3://bucket/a", problem["payload_ref"]);
}

#[tokio::test]
async fn r_a3_a_payload_of_256_kib_fits_and_one_byte_more_does_not() {
    let server = Server::with_queue().await;
    let text = |length: usize| format!("\"{}\"", "x".repeat(length - 2));
    publish(&server, "a", &text(262_144)).await.expect(202);
    publish(&server, "b", &text(262_145)).await.problem(413, "payload_too_large");
    let base64 = |length: usize| json!({"queue": "carts", "key": length.to_string(), "payload_base64": STANDARD.encode(vec![0; length])});
    server.post("/v1/queue/publish", &base64(262_144)).await.expect(202);
    server.post("/v1/queue/publish", &base64(262_145)).await.problem(413, "payload_too_large");
    publish(&server, "c", &text(1_000_000)).await.problem(413, "body_too_large");
    assert_eq!(2, server.jobs_total().await);
}
