//! SNS, as far as a test needs it: a key, its certificate, and messages that it signs.

use std::{fmt::Write as _, sync::LazyLock};

use aws_lc_rs::{
    encoding::{AsDer as _, Pkcs8V1Der},
    rand::SystemRandom,
    rsa::{KeyPair, KeySize},
    signature::RSA_PKCS1_SHA256,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use posthaste_core::Timestamp;
use posthaste_engine::ports::SendOutcome;
use posthaste_testkit::{Scripted, answer};
use serde_json::{Map, Value, json};

use crate::harness::{Reply, Server};

pub(crate) const TOPIC: &str = "arn:aws:sns:us-east-1:123456789012:orders";
pub(crate) const CERTIFICATE_URL: &str =
    "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-c89aea61302265ae47283738db999fe8.pem";
pub(crate) const SUBSCRIBE_URL: &str = "https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&TopicArn=arn:aws:sns:us-east-1:123456789012:orders&Token=2336412f37";

/// SNS's key, and another one. Making one takes long.
pub(crate) static SNS: LazyLock<Signer> = LazyLock::new(Signer::new);
pub(crate) static STRANGER: LazyLock<Signer> = LazyLock::new(Signer::new);

pub(crate) struct Signer(KeyPair);

impl Signer {
    fn new() -> Self {
        Self(KeyPair::generate(KeySize::Rsa2048).unwrap())
    }

    /// A certificate of the key, in force between two days.
    pub(crate) fn certificate(&self, from: (i32, u8, u8), until: (i32, u8, u8)) -> String {
        let pkcs8: Pkcs8V1Der<'_> = self.0.as_der().unwrap();
        let key = rcgen::KeyPair::try_from(pkcs8.as_ref()).unwrap();
        certificate_of(&key, from, until)
    }

    /// `message` with its signature, as the bytes of a body.
    pub(crate) fn sign(&self, message: Value) -> Vec<u8> {
        let Value::Object(mut message) = message else { panic!("an object") };
        let mut signature = vec![0; self.0.public_modulus_len()];
        let text = signed_text(&message);
        self.0.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), text.as_bytes(), &mut signature).unwrap();
        message.insert("Signature".to_owned(), STANDARD.encode(signature).into());
        Value::Object(message).to_string().into_bytes()
    }
}

/// A certificate as SNS serves it.
pub(crate) fn certificate_of(key: &rcgen::KeyPair, from: (i32, u8, u8), until: (i32, u8, u8)) -> String {
    let mut parameters = rcgen::CertificateParams::new(vec!["sns.amazonaws.com".to_owned()]).unwrap();
    parameters.not_before = rcgen::date_time_ymd(from.0, from.1, from.2);
    parameters.not_after = rcgen::date_time_ymd(until.0, until.1, until.2);
    let base64 = STANDARD.encode(parameters.self_signed(key).unwrap().der());
    let lines = base64.as_bytes().chunks(64).fold(String::new(), |mut lines, line| {
        writeln!(lines, "{}", std::str::from_utf8(line).unwrap()).unwrap();
        lines
    });
    format!("-----BEGIN CERTIFICATE-----\n{lines}-----END CERTIFICATE-----\n")
}

/// What SNS signs, by its documentation.
fn signed_text(message: &Map<String, Value>) -> String {
    let names: &[&str] = if message["Type"] == "Notification" {
        &["Message", "MessageId", "Subject", "Timestamp", "TopicArn", "Type"]
    } else {
        &["Message", "MessageId", "SubscribeURL", "Timestamp", "Token", "TopicArn", "Type"]
    };
    names.iter().filter_map(|name| Some((name, message.get(*name)?))).fold(
        String::new(),
        |mut text, (name, value)| {
            writeln!(text, "{name}\n{}", value.as_str().unwrap()).unwrap();
            text
        },
    )
}

/// A message that was published now, not signed yet.
pub(crate) fn notification(server: &Server, id: &str) -> Value {
    json!({
        "Type": "Notification",
        "MessageId": id,
        "TopicArn": TOPIC,
        "Subject": "an order",
        "Message": "{\"order\":17}",
        "Timestamp": stamp(server.engine.now()),
        "SignatureVersion": "2",
        "SigningCertURL": CERTIFICATE_URL,
        "UnsubscribeURL": "https://sns.us-east-1.amazonaws.com/?Action=Unsubscribe&SubscriptionArn=x",
    })
}

/// SNS's question whether the topic is to send here, or its word that it does so no more; not signed yet.
pub(crate) fn about_subscription(server: &Server, kind: &str) -> Value {
    json!({
        "Type": kind,
        "MessageId": "165545c9-2a5c-472c-8df2-7ff2be2b3b1b",
        "Token": "2336412f37",
        "TopicArn": TOPIC,
        "Message": "You have chosen to subscribe to the topic.",
        "SubscribeURL": SUBSCRIBE_URL,
        "Timestamp": stamp(server.engine.now()),
        "SignatureVersion": "2",
        "SigningCertURL": CERTIFICATE_URL,
    })
}

pub(crate) fn stamp(at: Timestamp) -> String {
    jiff::Timestamp::from_millisecond(at.0).unwrap().strftime("%Y-%m-%dT%H:%M:%S.%3fZ").to_string()
}

/// The sender's next answer.
pub(crate) fn then_body(server: &Server, status: u16, body: &[u8], truncated: bool) {
    let SendOutcome::Answered(mut answered) = answer(status, None) else { panic!("an answer") };
    answered.excerpt = Bytes::copy_from_slice(body);
    answered.excerpt_truncated = truncated;
    server.sender.then(Scripted::Outcome(SendOutcome::Answered(answered)));
}

/// The sender's next answer: SNS's certificate.
pub(crate) fn then_certificate(server: &Server) {
    then_body(server, 200, SNS.certificate((2025, 1, 1), (2027, 1, 1)).as_bytes(), false);
}

/// A server with the source `sns` of [`TOPIC`].
pub(crate) async fn server() -> Server {
    let server = Server::with_queue().await;
    let spec = json!({"name": "sns", "scheme": "aws_sns", "topic_arns": [TOPIC], "to": {"queue": "carts"}});
    server.source(server.tenant, spec).await;
    server
}

pub(crate) async fn deliver(server: &Server, body: &[u8]) -> Reply {
    let headers = [("content-type", "text/plain; charset=UTF-8"), ("x-amz-sns-message-type", "Notification")];
    server.send("POST", "/in/sns", &headers, body).await
}

/// Refused, and this reason counted `count` times by now.
pub(crate) async fn refused(server: &Server, body: &[u8], reason: &str, count: u32) {
    deliver(server, body).await.problem(401, "signature_invalid");
    let line = format!(r#"signature_rejections_total{{source="sns",reason="{reason}"}} {count}"#);
    let metrics = server.get("/metrics").await.text();
    assert!(metrics.contains(&line), "{line}\n{metrics}");
    assert_eq!(0, server.jobs_total().await);
}
