//! Handshakes: how a provider asks whether a source is meant. Row A11. None makes a message.

use serde_json::{Value, json};

use crate::harness::{SECRET, Server, signature, with};

async fn server(more: Value) -> Server {
    let server = Server::with_queue().await;
    let base = json!({"name": "asked", "scheme": "github", "secrets": [SECRET], "to": {"queue": "carts"}});
    server.source(server.tenant, with(base, more)).await;
    server
}

#[tokio::test]
async fn r_a11_slacks_challenge_is_given_back_after_the_signature() {
    let server = server(json!({"handshake": "slack"})).await;
    let body = br#"{"type":"url_verification","token":"x","challenge":"3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P"}"#;
    let signed = signature(SECRET, body);
    let headers = [("x-hub-signature-256", signed.as_str()), ("content-type", "application/json")];
    let reply = server.send("POST", "/in/asked", &headers, body).await;
    assert_eq!(
        (200, "3eZbrw1aBm2rZgRNFdxV2595E9CY3gmdALWMmHkvFXO7tYXAYM8P".to_owned()),
        (reply.status, reply.text())
    );
    assert_eq!(Some("text/plain; charset=utf-8"), reply.header("content-type"));
    server.send("POST", "/in/asked", &[], body).await.problem(401, "signature_invalid");
    // Nothing that a browser would run is given back.
    let odd = br#"{"type":"url_verification","challenge":"<script>"}"#;
    let signed = signature(SECRET, odd);
    let headers = [("x-hub-signature-256", signed.as_str())];
    assert_eq!(
        "missing_key",
        server.send("POST", "/in/asked", &headers, odd).await.expect(202)["quarantined"]
    );
    assert_eq!(1, server.jobs_total().await, "a handshake makes no message");
}

#[tokio::test]
async fn r_a11_without_the_setting_a_challenge_is_a_delivery_like_any_other() {
    let server = server(json!({})).await;
    let body = br#"{"type":"url_verification","challenge":"abc"}"#;
    let signed = signature(SECRET, body);
    let headers = [("x-hub-signature-256", signed.as_str()), ("x-github-delivery", "d-1")];
    assert_eq!("asked:d-1", server.send("POST", "/in/asked", &headers, body).await.expect(202)["key"]);
}

#[tokio::test]
async fn r_a11_metas_challenge_is_given_back_if_the_token_fits() {
    let server = server(json!({"handshake": "meta", "verify_token": "t0ken"})).await;
    let ask = |query: &str| format!("/in/asked?{query}");
    let good = ask("hub.mode=subscribe&hub.challenge=1158201444&hub.verify_token=t0ken");
    let reply = server.send("GET", &good, &[], b"").await;
    assert_eq!((200, "1158201444".to_owned()), (reply.status, reply.text()));
    for query in [
        "hub.mode=subscribe&hub.challenge=1&hub.verify_token=other",
        "hub.mode=subscribe&hub.challenge=1",
        "hub.mode=unsubscribe&hub.challenge=1&hub.verify_token=t0ken",
        "hub.mode=subscribe&hub.challenge=%3Cb%3E&hub.verify_token=t0ken",
        "hub.mode=subscribe&hub.verify_token=t0ken",
    ] {
        server.send("GET", &ask(query), &[], b"").await.problem(401, "signature_invalid");
    }
    let metrics = server.get("/metrics").await.text();
    assert!(
        metrics.contains(r#"signature_rejections_total{source="asked",reason="handshake"} 5"#),
        "{metrics}"
    );
    assert_eq!(0, server.jobs_total().await);
    // The token is not shown, and stays where it is not given anew.
    let shown = server.get("/v1/sources/asked").await.expect(200);
    assert_eq!("(hidden)", shown["verify_token"], "{shown}");
    let spec = json!({"name": "asked", "scheme": "github", "to": {"queue": "carts"}, "handshake": "meta", "verify_token": "(hidden)"});
    server.call("PUT", "/v1/sources/asked", &server.admin, spec.to_string().as_bytes()).await.expect(200);
    assert_eq!(200, server.send("GET", &good, &[], b"").await.status);
}

#[tokio::test]
async fn r_a11_a_sender_of_cloudevents_is_told_what_is_allowed() {
    let server = server(json!({"handshake": "cloudevents"})).await;
    let origin = [("webhook-request-origin", "eventemitter.example.com")];
    let reply = server.send("OPTIONS", "/in/asked", &origin, b"").await;
    assert_eq!(200, reply.status);
    assert_eq!(Some("eventemitter.example.com"), reply.header("webhook-allowed-origin"));
    assert_eq!((Some("*"), Some("POST")), (reply.header("webhook-allowed-rate"), reply.header("allow")));
    let reply = server.send("OPTIONS", "/in/asked", &[], b"").await;
    reply.problem(405, "method_not_allowed");
    let more = json!({"name": "asked", "scheme": "github", "secrets": [SECRET], "handshake": "cloudevents",
        "allowed_origins": ["a.example.com"], "allowed_rate": 120});
    server.source(server.tenant, more).await;
    server.send("OPTIONS", "/in/asked", &origin, b"").await.problem(405, "method_not_allowed");
    let reply =
        server.send("OPTIONS", "/in/asked", &[("webhook-request-origin", "A.example.com")], b"").await;
    assert_eq!((200, Some("120")), (reply.status, reply.header("webhook-allowed-rate")));
}

#[tokio::test]
async fn r_a11_a_source_without_a_handshake_takes_posts_alone() {
    let server = server(json!({})).await;
    for (method, path) in [
        ("GET", "/in/asked"),
        ("GET", "/in/asked?hub.mode=subscribe&hub.challenge=1&hub.verify_token="),
        ("OPTIONS", "/in/asked"),
        ("PUT", "/in/default/asked"),
        ("GET", "/in/nowhere"),
    ] {
        let reply = server.send(method, path, &[("webhook-request-origin", "a")], b"").await;
        reply.problem(405, "method_not_allowed");
        assert_eq!(Some("POST"), reply.header("allow"), "{method} {path}");
    }
}

#[tokio::test]
async fn r_a11_handshakes_are_configured_whole_or_not_at_all() {
    let server = Server::with_queue().await;
    for (more, path) in [
        (json!({"handshake": "meta"}), "verify_token"),
        (json!({"verify_token": "x"}), "verify_token"),
        (json!({"handshake": "meta", "verify_token": "env:X"}), "secrets"),
        (json!({"handshake": "slack", "allowed_rate": 1}), "allowed_rate"),
        (json!({"handshake": "cloudevents", "allowed_rate": 0}), "allowed_rate"),
        (json!({"handshake": "cloudevents", "allowed_origins": ["a b"]}), "allowed_origins"),
    ] {
        let body = with(json!({"name": "a", "scheme": "github", "secrets": ["s"]}), more);
        let problem = server.post("/v1/sources", &body).await.problem(422, "invalid_configuration");
        assert_eq!(path, problem["path"], "{problem}");
    }
}
