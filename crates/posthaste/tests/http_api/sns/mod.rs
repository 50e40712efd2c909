//! AWS SNS: what is genuine, and what becomes of a subscription. Rows A1, A11.

mod certificates;
mod signer;
mod subscriptions;

use posthaste_core::{DurationMs, Timestamp};
use serde_json::{Value, json};

use self::signer::{SNS, TOPIC, deliver, notification, refused, server, stamp, then_body, then_certificate};
use crate::harness::{SECRET, Server, with};

#[tokio::test]
async fn r_a1_a_message_of_an_allowed_topic_is_taken_under_its_id() {
    let server = server().await;
    then_certificate(&server);
    let body = SNS.sign(notification(&server, "m-1"));
    assert_eq!("sns:m-1", deliver(&server, &body).await.expect(202)["key"]);
    assert_eq!("duplicate_done", deliver(&server, &body).await.expect(200)["path"]);
    let without_subject = with(notification(&server, "m-2"), json!({"Message": "é\n\"two\" lines\n"}));
    let Value::Object(mut without_subject) = without_subject else { panic!("an object") };
    without_subject.remove("Subject");
    assert_eq!("sns:m-2", deliver(&server, &SNS.sign(without_subject.into())).await.expect(202)["key"]);
    assert_eq!(2, server.jobs_total().await);
    let job = server.consume().await;
    let payload = job["payload_base64"].as_str().expect("SNS says text/plain");
    let payload = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, payload).unwrap();
    let payload: Value = serde_json::from_slice(&payload).unwrap();
    assert_eq!(TOPIC, payload["TopicArn"], "as it came: {job}");
}

#[tokio::test]
async fn r_a1_version_1_of_the_signature_is_taken_too() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../receiver/tests/vectors/aws_sns.json");
    let vectors: Vec<Value> = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let vector = vectors.iter().find(|vector| vector["name"] == "aws_sns/notification_v1/a").unwrap();
    let body = base64::Engine::decode(
        &base64::engine::general_purpose::STANDARD,
        vector["body_base64"].as_str().unwrap(),
    )
    .unwrap();
    let message: Value = serde_json::from_slice(&body).unwrap();
    let server = Server::with_queue().await;
    server.clock.set(Timestamp(vector["now_unix"].as_i64().unwrap() * 1_000));
    let spec = json!({"name": "sns", "scheme": "aws_sns", "topic_arns": [message["TopicArn"]], "to": {"queue": "carts"}});
    server.source(server.tenant, spec).await;
    then_body(&server, 200, vector["config"]["signing_cert_pem"].as_str().unwrap().as_bytes(), false);
    let key = format!("sns:{}", message["MessageId"].as_str().unwrap());
    assert_eq!(key, deliver(&server, &body).await.expect(202)["key"]);
}

#[tokio::test]
async fn r_a1_what_was_changed_after_it_was_signed_is_refused() {
    let server = server().await;
    then_certificate(&server);
    let body = SNS.sign(notification(&server, "m-1"));
    let signed: Value = serde_json::from_slice(&body).unwrap();
    for (at, change) in [
        json!({"Message": "{\"order\":18}"}),
        json!({"MessageId": "m-2"}),
        json!({"Subject": "another"}),
        json!({"Timestamp": stamp(Timestamp(server.engine.now().0 + 1_000))}),
        json!({"SignatureVersion": "1"}),
        json!({"Signature": ""}),
        json!({"Signature": "AAAA"}),
        // The same lines, cut differently.
        json!({"Message": "{\"order\":17}\nMessageId\nm-1", "Subject": "x"}),
    ]
    .into_iter()
    .enumerate()
    {
        let changed = with(signed.clone(), change).to_string();
        refused(&server, changed.as_bytes(), "signature_mismatch", u32::try_from(at).unwrap() + 1).await;
    }
    assert_eq!(1, server.sender.sent().len(), "one certificate for all of them");
}

#[tokio::test]
async fn r_a1_a_field_that_would_pass_for_two_is_refused() {
    let server = server().await;
    // A publisher chose the message so that its lines, under the same signature, could be read as another id.
    let chosen = with(notification(&server, "m-1"), json!({"Message": "a\nMessageId\nm-0"}));
    let body: Value = serde_json::from_slice(&SNS.sign(chosen)).unwrap();
    let forged = with(body, json!({"Message": "a", "MessageId": "m-0\nMessageId\nm-1"})).to_string();
    refused(&server, forged.as_bytes(), "malformed_body", 1).await;
    let body = String::from_utf8(SNS.sign(notification(&server, "m-1"))).unwrap();
    let twice = body.replacen('{', r#"{"MessageId":"m-0","#, 1);
    refused(&server, twice.as_bytes(), "malformed_body", 2).await;
    assert!(server.sender.sent().is_empty());
}

#[tokio::test]
async fn r_a1_another_topic_is_refused_before_anything_is_fetched() {
    let server = server().await;
    for (count, topic) in [
        (1, "arn:aws:sns:us-east-1:999999999999:orders"),
        (2, "arn:aws:sns:us-east-1:123456789012:orders2"),
        (3, "arn:aws:sns:eu-west-1:123456789012:orders"),
        (4, ""),
    ] {
        let body = SNS.sign(with(notification(&server, "m-1"), json!({ "TopicArn": topic })));
        refused(&server, &body, "topic_not_allowed", count).await;
    }
    assert!(server.sender.sent().is_empty());
}

#[tokio::test]
async fn r_a1_an_old_message_is_refused_and_a_retry_of_an_hour_is_not() {
    let server = server().await;
    then_certificate(&server);
    let late = SNS.sign(notification(&server, "m-1"));
    server.clock.advance(DurationMs::from_hours(1));
    deliver(&server, &late).await.expect(202);
    server.clock.advance(DurationMs::from_hours(2));
    deliver(&server, &late).await.problem(401, "signature_invalid");
    let ahead = stamp(server.engine.now().after(DurationMs::from_hours(3)));
    let ahead = SNS.sign(with(notification(&server, "m-2"), json!({ "Timestamp": ahead })));
    deliver(&server, &ahead).await.problem(401, "signature_invalid");
    let odd = SNS.sign(with(notification(&server, "m-3"), json!({ "Timestamp": "yesterday" })));
    deliver(&server, &odd).await.problem(401, "signature_invalid");
    let metrics = server.get("/metrics").await.text();
    for reason in ["timestamp_too_old", "timestamp_too_new", "malformed_timestamp"] {
        let line = format!(r#"signature_rejections_total{{source="sns",reason="{reason}"}} 1"#);
        assert!(metrics.contains(&line), "{line}\n{metrics}");
    }
    assert_eq!(1, server.jobs_total().await);
}

#[tokio::test]
async fn r_a1_what_is_no_message_of_sns_is_refused() {
    let server = server().await;
    let unknown = SNS.sign(with(notification(&server, "m-1"), json!({"Type": "Other"})));
    // The second is raw message delivery: nothing in it is signed.
    for (at, body) in [b"".as_slice(), b"{\"order\":17}", b"[]", b"\xff", &unknown].into_iter().enumerate() {
        refused(&server, body, "malformed_body", u32::try_from(at).unwrap() + 1).await;
    }
    let version = SNS.sign(with(notification(&server, "m-1"), json!({"SignatureVersion": "3"})));
    refused(&server, &version, "unsupported_version", 1).await;
    assert!(server.sender.sent().is_empty());
}

#[tokio::test]
async fn r_a1_a_source_of_sns_names_its_topics_and_has_no_secret() {
    let server = Server::with_queue().await;
    for (more, path) in [
        (json!({"scheme": "aws_sns"}), "topic_arns"),
        (json!({"scheme": "aws_sns", "topic_arns": []}), "topic_arns"),
        (json!({"scheme": "aws_sns", "topic_arns": ["*"]}), "topic_arns"),
        (json!({"scheme": "aws_sns", "topic_arns": ["arn:aws:sns:us-east-1:123456789012:*"]}), "topic_arns"),
        (json!({"scheme": "aws_sns", "topic_arns": [TOPIC], "secrets": ["s"]}), "secrets"),
        (json!({"scheme": "github", "topic_arns": [TOPIC], "secrets": ["s"]}), "topic_arns"),
    ] {
        let body = with(json!({"name": "a"}), more);
        let problem = server.post("/v1/sources", &body).await.problem(422, "invalid_configuration");
        assert_eq!(path, problem["path"], "{problem}");
    }
    // Secrets of what it was before are not kept.
    let github = json!({"name": "a", "scheme": "github", "secrets": [SECRET]});
    server.post("/v1/sources", &github).await.expect(201);
    let sns = json!({"name": "a", "scheme": "aws_sns", "topic_arns": [TOPIC]}).to_string();
    let shown = server.call("PUT", "/v1/sources/a", &server.admin, sns.as_bytes()).await.expect(200);
    assert_eq!(json!([TOPIC]), shown["topic_arns"], "{shown}");
}
