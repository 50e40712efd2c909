//! Intake: what a provider is answered.

use std::time::Duration;

use posthaste::http::HttpLimits;
use posthaste_core::{DestinationId, DurationMs};
use posthaste_store::DestinationKind;
use serde_json::{Value, json};
use tokio::{io::AsyncWriteExt as _, net::TcpStream};

use crate::harness::{Reply, SECRET, Server, read_reply, signature, with};

/// 256 KiB.
const LIMIT: usize = 262_144;

async fn server() -> Server {
    let server = Server::with_queue().await;
    server.source(server.tenant, github("github", json!({}))).await;
    server
}

fn github(name: &str, more: Value) -> Value {
    with(json!({"name": name, "scheme": "github", "secrets": [SECRET], "to": {"queue": "carts"}}), more)
}

async fn deliver(server: &Server, path: &str, id: &str, body: &[u8]) -> Reply {
    let signature = signature(SECRET, body);
    let headers = [
        ("content-type", "application/json"),
        ("x-github-delivery", id),
        ("x-github-event", "push"),
        ("x-hub-signature-256", &signature),
    ];
    server.send("POST", path, &headers, body).await
}

#[tokio::test]
async fn r_a9_a_delivery_is_new_once_and_known_afterwards() {
    let server = server().await;
    let first = deliver(&server, "/in/github", "d-1", b"{}").await.expect(202);
    assert_eq!(json!({"path": "first_run", "key": "github:d-1", "message_id": first["message_id"]}), first);
    assert!(first["message_id"].as_str().unwrap().starts_with("msg_"));
    let again = deliver(&server, "/in/github", "d-1", b"{}").await.expect(200);
    assert_eq!(
        json!({"path": "duplicate_done", "key": "github:d-1", "message_id": first["message_id"]}),
        again
    );
    assert_eq!(1, server.jobs_total().await);
}

#[tokio::test]
async fn r_a1_every_wrong_signature_gets_the_same_answer() {
    let server = server().await;
    let body = b"{\"a\":1}";
    let good = signature(SECRET, body);
    let other = signature("another secret", body);
    let of_other_body = signature(SECRET, b"{}");
    let upper = good.to_uppercase();
    let wrong: [Option<&str>; 9] = [
        None,
        Some(""),
        Some("sha256="),
        Some("sha256=zz"),
        Some(&good[..good.len() - 1]),
        Some(&other),
        Some(&of_other_body),
        Some(&good[7..]),
        Some(&upper),
    ];
    let mut answers = Vec::new();
    for signature in wrong {
        let mut headers = vec![("x-github-delivery", "d-1")];
        headers.extend(signature.map(|signature| ("x-hub-signature-256", signature)));
        let reply = server.send("POST", "/in/github", &headers, body).await;
        reply.problem(401, "signature_invalid");
        answers.push(reply.body);
    }
    assert!(answers.windows(2).all(|two| two[0] == two[1]));
    assert_eq!(0, server.jobs_total().await);
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains("posthaste_signature_rejections_total{"), "{metrics}");
}

#[tokio::test]
async fn r_a1_nothing_is_parsed_before_the_signature_fits() {
    let server = server().await;
    let headers = [("x-github-delivery", "d-1"), ("x-hub-signature-256", "sha256=00")];
    server.send("POST", "/in/github", &headers, b"{not json").await.problem(401, "signature_invalid");
}

#[tokio::test]
async fn what_is_no_source_is_not_found() {
    let server = server().await;
    server.source(server.tenant, github("off", json!({"enabled": false}))).await;
    for path in
        ["/in/unknown", "/in/carts", "/in/off", "/in/-bad", "/in/a%20b", "/in/%ff", "/in/other/github"]
    {
        let reply = deliver(&server, path, "d-1", b"{}").await;
        let code = if path == "/in/%ff" { "not_found" } else { "unknown_source" };
        reply.problem(404, code);
    }
    for path in ["/in", "/in/", "/in/a/b/c"] {
        deliver(&server, path, "d-1", b"{}").await.problem(404, "not_found");
    }
    assert_eq!(0, server.jobs_total().await);
}

#[tokio::test]
async fn r_a3_only_post_is_allowed_and_the_answer_says_so() {
    let server = server().await;
    for method in ["GET", "PUT", "DELETE", "PATCH", "OPTIONS"] {
        for path in ["/in/github", "/in/default/github", "/in/unknown"] {
            let reply = server.send(method, path, &[], b"").await;
            reply.problem(405, "method_not_allowed");
            assert_eq!(Some("POST"), reply.header("allow"), "{method} {path}");
        }
    }
}

#[tokio::test]
async fn r_a3_a_body_of_the_limit_fits_and_one_byte_more_does_not() {
    let server = server().await;
    server.source(server.tenant, github("small", json!({"body_limit": 10}))).await;
    let mut body = vec![b' '; LIMIT];
    body[..2].copy_from_slice(b"{}");
    deliver(&server, "/in/github", "d-1", &body).await.expect(202);
    let stored = server.get("/v1/messages?key=github:d-1").await.expect(200);
    assert_eq!(LIMIT, stored["payload_bytes"]);
    body.push(b' ');
    deliver(&server, "/in/github", "d-2", &body).await.problem(413, "payload_too_large");
    deliver(&server, "/in/small", "d-3", b"1234567890").await.expect(202);
    deliver(&server, "/in/small", "d-4", b"12345678901").await.problem(413, "payload_too_large");
    assert_eq!(2, server.jobs_total().await);
}

#[tokio::test]
async fn r_a3_a_body_of_unannounced_length_is_cut_at_the_limit() {
    let server = server().await;
    let head =
        "POST /in/github HTTP/1.1\r\nhost: a\r\nconnection: close\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = format!("10000\r\n{}\r\n", "x".repeat(65_536));
    let bytes = format!("{head}{}0\r\n\r\n", chunk.repeat(5));
    server.exchange(bytes.as_bytes()).await.problem(413, "payload_too_large");
    assert_eq!(0, server.jobs_total().await);
}

#[tokio::test]
async fn r_a3_a_body_that_does_not_come_times_out() {
    let limits = HttpLimits { body_read_timeout: Duration::from_millis(50), ..HttpLimits::standard() };
    let server = Server::with_limits(limits).await;
    server.source(server.tenant, github("github", json!({"to": null}))).await;
    for path in ["/in/github", "/v1/messages"] {
        let mut stream = TcpStream::connect(server.address).await.unwrap();
        let head = format!(
            "POST {path} HTTP/1.1\r\nhost: a\r\nconnection: close\r\nauthorization: Bearer {}\r\ncontent-length: 9\r\n\r\n{{",
            server.admin
        );
        stream.write_all(head.as_bytes()).await.unwrap();
        read_reply(&mut stream).await.problem(408, "body_timeout");
    }
}

#[tokio::test]
async fn a_source_answers_as_its_provider_likes() {
    let server = server().await;
    server.source(server.tenant, github("empty", json!({"answer": "empty"}))).await;
    server.source(server.tenant, github("fixed", json!({"answer": 204}))).await;
    for (path, first, second) in [("/in/empty", 202, 200), ("/in/fixed", 204, 204)] {
        for status in [first, second] {
            let reply = deliver(&server, path, "d-1", b"{}").await;
            assert_eq!((status, ""), (reply.status, reply.text().as_str()), "{path}");
        }
    }
}

#[tokio::test]
async fn r_g6_a_tenants_source_has_the_tenants_name_in_its_path() {
    let server = server().await;
    let acme = server.engine.ensure_tenant("acme").await.unwrap();
    server.queue(acme, json!({"name": "carts"})).await;
    server.source(acme, github("hooks", json!({}))).await;
    deliver(&server, "/in/acme/hooks", "d-1", b"{}").await.expect(202);
    deliver(&server, "/in/default/github", "d-1", b"{}").await.expect(202);
    deliver(&server, "/in/hooks", "d-1", b"{}").await.problem(404, "unknown_source");
    deliver(&server, "/in/acme/github", "d-1", b"{}").await.problem(404, "unknown_source");
    assert_eq!(1, server.jobs_total().await);
}

#[tokio::test]
async fn r_a4_what_can_not_be_kept_is_asked_for_again() {
    let server = server().await;
    let queue = DestinationId::new("carts").unwrap();
    server.engine.delete_destination(server.tenant, DestinationKind::Queue, &queue).await.unwrap();
    let reply = deliver(&server, "/in/github", "d-1", b"{}").await;
    reply.problem(503, "source_unavailable");
    assert!(reply.header("retry-after").is_some());
    assert!(!reply.text().contains("carts"), "a provider learns nothing of queues");
}

#[tokio::test]
async fn r_b15_a_server_that_drains_takes_nothing() {
    let server = server().await;
    server.engine.drain(DurationMs::from_secs(1)).await;
    for reply in [
        deliver(&server, "/in/github", "d-1", b"{}").await,
        server.post("/v1/queue/publish", &json!({"queue": "carts", "key": "k"})).await,
        server.post("/v1/queue/consume", &json!({"queue": "carts"})).await,
        server.get("/readyz").await,
    ] {
        reply.problem(503, "draining");
        assert!(reply.header("retry-after").is_some());
    }
    server.get("/healthz").await.expect(200);
}

#[tokio::test]
async fn r_f5_a_request_id_of_the_caller_names_the_message() {
    let server = server().await;
    let signature = signature(SECRET, b"{}");
    let trace = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
    let headers = [
        ("x-github-delivery", "d-1"),
        ("x-hub-signature-256", signature.as_str()),
        ("x-request-id", "req-17"),
        ("traceparent", trace),
    ];
    server.send("POST", "/in/github", &headers, b"{}").await.expect(202);
    let message = server.get("/v1/messages?key=github:d-1").await.expect(200);
    assert_eq!(
        (json!("req-17"), json!(trace)),
        (message["correlation_id"].clone(), message["traceparent"].clone())
    );
    let timeline = server.get("/v1/timeline?key=github:d-1").await.expect(200);
    assert!(timeline["entries"].as_array().unwrap().iter().all(|entry| entry["correlation_id"] == "req-17"));
}

/// Field case B03: gzip of `{"a":1}`.
const PACKED: &[u8] = &[
    0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0x02, 0x03, 0xab, 0x56, 0x4a, 0x54, 0xb2, 0x32, 0xac, 0x05, 0, 0xaf,
    0xac, 0x1b, 0x56, 0x07, 0, 0, 0,
];

async fn deliver_packed(server: &Server, path: &str, encoding: &str, signed: &[u8], body: &[u8]) -> Reply {
    let signature = signature(SECRET, signed);
    let headers = [
        ("content-type", "application/json"),
        ("content-encoding", encoding),
        ("x-github-event", "push"),
        ("x-hub-signature-256", &signature),
    ];
    server.send("POST", path, &headers, body).await
}

#[tokio::test]
async fn r_a3_case_b03_a_compressed_body_is_verified_as_its_provider_signs_it() {
    let server = server().await;
    server.source(server.tenant, github("wire", json!({"key": "json:/a"}))).await;
    server.source(server.tenant, github("decoded", json!({"key": "json:/a", "signed": "decoded"}))).await;
    let plain = b"{\"a\":1}";
    assert_eq!(
        "wire:1",
        deliver_packed(&server, "/in/wire", "gzip", PACKED, PACKED).await.expect(202)["key"]
    );
    assert_eq!(
        "decoded:1",
        deliver_packed(&server, "/in/decoded", "gzip", plain, PACKED).await.expect(202)["key"]
    );
    // Never both silently.
    deliver_packed(&server, "/in/wire", "gzip", plain, PACKED).await.problem(401, "signature_invalid");
    deliver_packed(&server, "/in/decoded", "gzip", PACKED, PACKED).await.problem(401, "signature_invalid");
    // What can't be unpacked where it must be.
    // Genuine by its signature, and unreadable: kept. Where the signature is over what can't be unpacked, it is refused.
    let kept = deliver_packed(&server, "/in/wire", "br", b"xyz", b"xyz").await.expect(202);
    assert_eq!("invalid_payload", kept["quarantined"]);
    deliver_packed(&server, "/in/decoded", "br", b"xyz", b"xyz").await.problem(415, "unsupported_encoding");
    let kept = deliver_packed(&server, "/in/wire", "gzip", plain, plain).await.expect(202);
    assert_eq!("invalid_payload", kept["quarantined"]);
    deliver_packed(&server, "/in/decoded", "gzip", plain, plain).await.problem(400, "invalid_body");
    // The bytes stay as they came, and so does what describes them.
    let message = server.get("/v1/messages?key=wire:1").await.expect(200);
    let payload = server.get(&format!("/v1/messages/{}/payload", message["id"].as_str().unwrap())).await;
    assert_eq!(PACKED, payload.body);
}

#[tokio::test]
async fn r_a3_case_b03_a_body_that_unpacks_without_end_is_refused_at_the_cap() {
    use std::io::Write as _;

    let server = server().await;
    server.source(server.tenant, github("decoded", json!({"key": "json:/a", "signed": "decoded"}))).await;
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::best());
    encoder.write_all(&vec![b' '; 32 * 1024 * 1024]).unwrap();
    let bomb = encoder.finish().unwrap();
    assert!(bomb.len() < LIMIT / 2);
    deliver_packed(&server, "/in/decoded", "gzip", b"unsigned", &bomb)
        .await
        .problem(413, "payload_too_large");
    assert_eq!(0, server.jobs_total().await);
}

#[tokio::test]
async fn r_a8_ids_that_are_rounded_are_no_keys() {
    let server = server().await;
    server.source(server.tenant, github("numbers", json!({"key": "json:/id"}))).await;
    for body in [r#"{"id":12345678901234567890123}"#, r#"{"id":1e400}"#, r#"{"id":1.0}"#, "{}", "not json"] {
        let answer = deliver(&server, "/in/numbers", "d", body.as_bytes()).await.expect(202);
        assert_eq!("missing_key", answer["quarantined"], "{body}");
    }
    let key =
        deliver(&server, "/in/numbers", "d", br#"{"id":9007199254740993}"#).await.expect(202)["key"].clone();
    assert_eq!("numbers:9007199254740993", key);
}

#[tokio::test]
async fn r_a8_the_first_rule_that_finds_something_gives_the_key() {
    let server = server().await;
    server.source(server.tenant, github("two", json!({"key": ["json:/id", "json:/alt"]}))).await;
    let first = deliver(&server, "/in/two", "d-1", br#"{"id":"1","alt":"A"}"#).await.expect(202);
    assert_eq!("two:1", first["key"]);
    let by_alias = deliver(&server, "/in/two", "d-2", br#"{"alt":"A"}"#).await.expect(200);
    assert_eq!(first["message_id"], by_alias["message_id"]);
    assert_eq!("two:B", deliver(&server, "/in/two", "d-3", br#"{"alt":"B"}"#).await.expect(202)["key"]);
}
