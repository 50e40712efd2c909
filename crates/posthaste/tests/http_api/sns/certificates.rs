//! The certificate that a message of SNS names: where it may be, and what becomes of one that is not there or not right.

use posthaste_core::{DurationMs, TransportFault};
use posthaste_engine::ports::SendOutcome;
use posthaste_testkit::Scripted;
use serde_json::json;

use super::signer::{
    CERTIFICATE_URL, SNS, STRANGER, certificate_of, deliver, notification, refused, server, then_body,
    then_certificate,
};
use crate::harness::with;

#[tokio::test]
async fn r_a1_the_certificate_is_fetched_once_and_with_limits() {
    let server = server().await;
    then_certificate(&server);
    for id in ["m-1", "m-2", "m-3"] {
        deliver(&server, &SNS.sign(notification(&server, id))).await.expect(202);
    }
    let sent = server.sender.sent();
    assert_eq!(1, sent.len());
    assert_eq!(("GET", CERTIFICATE_URL), (sent[0].method, sent[0].url.as_str()));
    assert!(sent[0].body.is_empty());
    assert!(sent[0].limits.total_timeout.as_secs() <= 5, "{:?}", sent[0].limits);
    assert!(sent[0].limits.excerpt_bytes_max <= 16 * 1024, "{:?}", sent[0].limits);
}

#[tokio::test]
async fn r_a1_no_certificate_is_fetched_from_anywhere_but_sns() {
    let server = server().await;
    for (at, url) in [
        "https://evil.example.com/SimpleNotificationService-1.pem",
        "http://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem",
        "https://user@sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem",
        "https://sns.us-east-1.amazonaws.com@evil.example.com/SimpleNotificationService-1.pem",
        "https://sns.us-east-1.amazonaws.com:8443/SimpleNotificationService-1.pem",
        "https://sns.us-east-1.amazonaws.com:443/SimpleNotificationService-1.pem",
        "https://sns.evil.amazonaws.com.example.com/SimpleNotificationService-1.pem",
        "https://sns.us-east-1.amazonaws.com.example.com/SimpleNotificationService-1.pem",
        "https://sns.s3.amazonaws.com/SimpleNotificationService-1.pem",
        "https://s3.amazonaws.com/evil/SimpleNotificationService-1.pem",
        "https://evil.example.com/?https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem",
        "https://evil.example.com\\@sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem",
        "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.pem?to=https://evil.example.com",
        "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-1.der",
        "https://127.0.0.1/SimpleNotificationService-1.pem",
        "file:///etc/ssl/certs/SimpleNotificationService-1.pem",
        "",
    ]
    .into_iter()
    .enumerate()
    {
        // Signed, as a stranger could who serves a certificate of their own there.
        let body = STRANGER.sign(with(notification(&server, "m-1"), json!({ "SigningCertURL": url })));
        refused(&server, &body, "bad_cert_url", u32::try_from(at).unwrap() + 1).await;
    }
    assert!(server.sender.sent().is_empty(), "{:?}", server.sender.sent());
}

#[tokio::test]
async fn r_a1_without_the_certificate_the_answer_is_503_and_nothing_is_lost() {
    let server = server().await;
    let body = SNS.sign(notification(&server, "m-1"));
    let unanswered =
        SendOutcome::Unanswered { fault: TransportFault::Connect, sent: false, detail: "refused".to_owned() };
    let blocked = SendOutcome::Blocked { reason: "not among the destinations".to_owned() };
    // A redirect is not followed, wherever it points.
    for status in [301, 302, 307, 403, 404, 429, 500, 503] {
        then_body(&server, status, SNS.certificate((2025, 1, 1), (2027, 1, 1)).as_bytes(), false);
    }
    then_body(&server, 200, b"-----BEGIN CERTIF", true);
    server.sender.then(Scripted::Outcome(unanswered));
    server.sender.then(Scripted::Outcome(blocked));
    for tried in 1..=11 {
        let reply = deliver(&server, &body).await;
        reply.problem(503, "certificate_unavailable");
        assert_eq!(Some("2"), reply.header("retry-after"));
        assert_eq!(tried, server.sender.sent().len());
        assert_eq!(0, server.jobs_total().await);
    }
    then_certificate(&server);
    assert_eq!("first_run", deliver(&server, &body).await.expect(202)["path"]);
    assert!(server.sender.sent().iter().all(|sent| sent.url == CERTIFICATE_URL));
    assert!(!server.get("/metrics").await.text().contains("signature_rejections_total{"));
}

#[tokio::test]
async fn r_a1_a_certificate_that_does_not_fit_is_a_rejected_signature() {
    let server = server().await;
    let body = SNS.sign(notification(&server, "m-1"));
    let day = |year| (year, 1, 1);
    let elliptic = certificate_of(&rcgen::KeyPair::generate().unwrap(), day(2025), day(2027));
    let expired = SNS.certificate(day(2024), (2025, 12, 31));
    let not_yet = SNS.certificate((2026, 1, 2), day(2027));
    let huge = [b"-----BEGIN CERTIFICATE-----\n".as_slice(), &[b'A'; 16 * 1024]].concat();
    for (at, (pem, truncated)) in [
        (&huge[..16 * 1024], true),
        (b"".as_slice(), false),
        (b"<html>", false),
        (b"-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n", false),
        (elliptic.as_bytes(), false),
        (expired.as_bytes(), false),
        (not_yet.as_bytes(), false),
    ]
    .into_iter()
    .enumerate()
    {
        then_body(&server, 200, pem, truncated);
        refused(&server, &body, "bad_certificate", u32::try_from(at).unwrap() + 1).await;
    }
    // One that doesn't fit is not kept; one that does is, and whoever signs with another key is refused.
    then_body(&server, 200, STRANGER.certificate(day(2025), day(2027)).as_bytes(), false);
    refused(&server, &body, "signature_mismatch", 1).await;
    refused(&server, &body, "signature_mismatch", 2).await;
    assert_eq!(8, server.sender.sent().len());
}

#[tokio::test]
async fn r_a1_a_certificate_is_kept_until_its_end() {
    let server = server().await;
    then_body(&server, 200, SNS.certificate((2025, 1, 1), (2026, 1, 2)).as_bytes(), false);
    deliver(&server, &SNS.sign(notification(&server, "m-1"))).await.expect(202);
    server.clock.advance(DurationMs::from_hours(24));
    deliver(&server, &SNS.sign(notification(&server, "m-2"))).await.expect(202);
    assert_eq!(1, server.sender.sent().len());
    server.clock.advance(DurationMs::from_secs(1));
    then_certificate(&server);
    deliver(&server, &SNS.sign(notification(&server, "m-3"))).await.expect(202);
    assert_eq!(2, server.sender.sent().len());
}
