//! Twilio: what it signs, behind a proxy too. Row A1.

use aws_lc_rs::{digest, hmac};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use serde_json::{Value, json};

use crate::harness::{Reply, SECRET, Server, with};

const FORM: &[u8] = b"MessageSid=SM1&Body=Hello+there&From=%2B14158675310&NumMedia=0";
/// The names and values of [`FORM`], sorted and decoded.
const SORTED: &str = "BodyHello thereFrom+14158675310MessageSidSM1NumMedia0";

async fn server(more: Value) -> Server {
    let server = Server::with_queue().await;
    let base = json!({"name": "twilio", "scheme": "twilio", "secrets": [SECRET], "to": {"queue": "carts"}});
    server.source(server.tenant, with(base, more)).await;
    server
}

fn signature(text: &str) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY, SECRET.as_bytes());
    STANDARD.encode(hmac::sign(&key, text.as_bytes()))
}

async fn deliver(server: &Server, path: &str, signature: &str, token: &str, body: &[u8]) -> Reply {
    let headers = [
        ("content-type", "application/x-www-form-urlencoded"),
        ("x-twilio-signature", signature),
        ("i-twilio-idempotency-token", token),
    ];
    server.send("POST", path, &headers, body).await
}

#[tokio::test]
async fn r_a1_twilio_signs_the_url_that_it_was_given_and_a_proxy_changes_it() {
    let given = "https://hooks.example.com/from/twilio";
    let behind_proxy = server(json!({ "public_url": given })).await;
    let good = signature(&format!("{given}{SORTED}"));
    let accepted = deliver(&behind_proxy, "/in/twilio", &good, "t-1", FORM).await.expect(202);
    assert_eq!("twilio:t-1", accepted["key"]);
    assert_eq!(
        "duplicate_done",
        deliver(&behind_proxy, "/in/twilio", &good, "t-1", FORM).await.expect(200)["path"]
    );
    let with_query = signature(&format!("{given}?shop=1&x=%20{SORTED}"));
    deliver(&behind_proxy, "/in/twilio?shop=1&x=%20", &with_query, "t-2", FORM).await.expect(202);
    // What the request itself says is not what was signed.
    let as_it_came = signature(&format!("http://posthaste.test/in/twilio{SORTED}"));
    deliver(&behind_proxy, "/in/twilio", &as_it_came, "t-3", FORM).await.problem(401, "signature_invalid");
    deliver(&behind_proxy, "/in/twilio?shop=2", &good, "t-3", FORM).await.problem(401, "signature_invalid");
    let without = server(json!({})).await;
    deliver(&without, "/in/twilio", &as_it_came, "t-1", FORM).await.expect(202);
    deliver(&without, "/in/twilio", &good, "t-2", FORM).await.problem(401, "signature_invalid");
}

#[tokio::test]
async fn r_a1_no_parameter_of_twilio_can_be_changed() {
    let given = "https://hooks.example.com/in/twilio";
    let server = server(json!({ "public_url": given })).await;
    let good = signature(&format!("{given}{SORTED}"));
    for body in [
        b"MessageSid=SM2&Body=Hello+there&From=%2B14158675310&NumMedia=0".as_slice(),
        b"MessageSid=SM1&Body=Hello+there&From=%2B14158675310",
        b"MessageSid=SM1&Body=Hello+there&From=%2B14158675310&NumMedia=0&More=1",
        b"{\"MessageSid\":\"SM1\"}",
        b"",
    ] {
        deliver(&server, "/in/twilio", &good, "t-1", body).await.problem(401, "signature_invalid");
    }
    // A body is never left out of what is signed, whatever it is said to be.
    let of_url = signature(given);
    let headers = [("content-type", "application/json"), ("x-twilio-signature", of_url.as_str())];
    let reply = server.send("POST", "/in/twilio", &headers, b"{\"a\":1}").await;
    reply.problem(401, "signature_invalid");
    assert_eq!(0, server.jobs_total().await);
    // The order and the escapes of a form are not signed: the same parameters are the same delivery.
    deliver(
        &server,
        "/in/twilio",
        &good,
        "t-1",
        b"From=%2b14158675310&NumMedia=0&Body=Hello%20there&MessageSid=SM1",
    )
    .await
    .expect(202);
}

#[tokio::test]
async fn r_a1_twilio_signs_the_hash_of_a_body_that_is_no_form() {
    let given = "https://hooks.example.com/in/twilio";
    let server = server(json!({ "public_url": given })).await;
    let body = br#"{"sid":"IS1"}"#;
    let hash = |body: &[u8]| -> String {
        let hash = digest::digest(&digest::SHA256, body);
        hash.as_ref().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}"))
    };
    let query = format!("bodySHA256={}", hash(body));
    let good = signature(&format!("{given}?{query}"));
    deliver(&server, &format!("/in/twilio?{query}"), &good, "t-1", body).await.expect(202);
    deliver(&server, &format!("/in/twilio?{query}"), &good, "t-2", b"{}")
        .await
        .problem(401, "signature_invalid");
    let moved = format!("/in/twilio?bodySHA256={}", hash(b"{}"));
    deliver(&server, &moved, &good, "t-2", b"{}").await.problem(401, "signature_invalid");
    let metrics = server.get("/metrics").await.text();
    for reason in ["body_hash_mismatch", "signature_mismatch"] {
        let line = format!(r#"signature_rejections_total{{source="twilio",reason="{reason}"}} 1"#);
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
    assert_eq!(1, server.jobs_total().await);
}

#[tokio::test]
async fn r_a1_the_public_url_is_checked_and_only_where_it_is_signed() {
    let server = Server::with_queue().await;
    for (scheme, url) in [
        ("twilio", "hooks.example.com/in/twilio"),
        ("twilio", "https://"),
        ("twilio", "https:///in/twilio"),
        ("twilio", "https://hooks.example.com/in/twilio?a=1"),
        ("twilio", "https://hooks.example.com/in/twilio#a"),
        ("twilio", "https://hooks.example.com/in twilio"),
        ("github", "https://hooks.example.com/in/twilio"),
    ] {
        let body = json!({"name": "a", "scheme": scheme, "secrets": ["s"], "public_url": url});
        let problem = server.post("/v1/sources", &body).await.problem(422, "invalid_configuration");
        assert_eq!("public_url", problem["path"], "{url}: {problem}");
    }
    let url = "https://hooks.example.com/in/square";
    let body =
        json!({"name": "a", "scheme": "square", "secrets": ["s"], "key": "json:/id", "public_url": url});
    assert_eq!(url, server.post("/v1/sources", &body).await.expect(201)["public_url"]);
}
