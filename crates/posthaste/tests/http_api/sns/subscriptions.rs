//! SNS's question whether a topic is to send here, and its word that it does so no more. Row A11.

use posthaste_core::{DurationMs, TransportFault};
use posthaste_engine::ports::SendOutcome;
use posthaste_testkit::Scripted;
use serde_json::{Value, json};

use super::signer::{
    CERTIFICATE_URL, SNS, STRANGER, SUBSCRIBE_URL, about_subscription, deliver, notification, refused,
    server, then_certificate,
};
use crate::harness::{Server, with};

/// Moves the clock until so many requests were sent in all.
async fn sent(server: &Server, count: usize) {
    for _ in 0..100_000 {
        if server.sender.sent().len() >= count {
            return;
        }
        server.clock.advance(DurationMs::from_secs(1));
        tokio::task::yield_now().await;
    }
    panic!("{:?}", server.sender.sent());
}

/// Resolves once the outcome of a handshake is counted.
async fn counted(server: &Server, outcome: &str) {
    let line = format!(r#"posthaste_handshakes_total{{source="sns",outcome="{outcome}"}} 1"#);
    let mut metrics = String::new();
    for _ in 0..1_000 {
        metrics = server.get("/metrics").await.text();
        if metrics.contains(&line) {
            return;
        }
    }
    panic!("{line}\n{metrics}");
}

#[tokio::test]
async fn r_a11_the_subscription_of_an_allowed_topic_is_confirmed() {
    let server = server().await;
    then_certificate(&server);
    let reply = deliver(&server, &SNS.sign(about_subscription(&server, "SubscriptionConfirmation"))).await;
    assert_eq!((200, ""), (reply.status, reply.text().as_str()));
    counted(&server, "answered").await;
    counted(&server, "confirmed").await;
    let sent = server.sender.sent();
    let sent: Vec<(&str, &str)> = sent.iter().map(|sent| (sent.method, sent.url.as_str())).collect();
    assert_eq!([("GET", CERTIFICATE_URL), ("GET", SUBSCRIBE_URL)], *sent);
    assert_eq!(0, server.jobs_total().await, "a handshake makes no message");
}

#[tokio::test]
async fn r_a11_the_answer_waits_for_no_confirmation_and_a_question_is_answered_once() {
    let server = server().await;
    then_certificate(&server);
    server.sender.then(Scripted::Hang);
    let body = SNS.sign(about_subscription(&server, "SubscriptionConfirmation"));
    for _ in 0..3 {
        assert_eq!(200, deliver(&server, &body).await.status);
    }
    server.sender.wait_for(2).await;
    assert_eq!(2, server.sender.sent().len());
    // A drain does not wait for it either.
    server.engine.drain(DurationMs::from_secs(1)).await;
}

#[tokio::test]
async fn r_a11_a_confirmation_that_fails_is_tried_again_and_not_for_ever() {
    let server = server().await;
    then_certificate(&server);
    server.sender.then_status(500);
    let fault = TransportFault::Connect;
    let unanswered = SendOutcome::Unanswered { fault, sent: false, detail: "refused".to_owned() };
    server.sender.then(Scripted::Outcome(unanswered));
    server.sender.then_status(429);
    let body = SNS.sign(about_subscription(&server, "SubscriptionConfirmation"));
    assert_eq!(200, deliver(&server, &body).await.status);
    sent(&server, 5).await;
    counted(&server, "confirmed").await;
    for _ in 0..6 {
        server.sender.then_status(503);
    }
    let again = with(about_subscription(&server, "SubscriptionConfirmation"), json!({"MessageId": "m-2"}));
    assert_eq!(200, deliver(&server, &SNS.sign(again)).await.status);
    sent(&server, 11).await;
    counted(&server, "unconfirmed").await;
    assert_eq!(11, server.sender.sent().len(), "six tries");
}

#[tokio::test]
async fn r_a11_what_sns_refuses_is_not_tried_again() {
    let server = server().await;
    then_certificate(&server);
    server.sender.then_status(403);
    let body = SNS.sign(about_subscription(&server, "SubscriptionConfirmation"));
    assert_eq!(200, deliver(&server, &body).await.status);
    counted(&server, "unconfirmed").await;
    assert_eq!(2, server.sender.sent().len());
}

#[tokio::test]
async fn r_a11_a_redirect_is_not_followed() {
    let server = server().await;
    then_certificate(&server);
    server.sender.then_status(302);
    let body = SNS.sign(about_subscription(&server, "SubscriptionConfirmation"));
    assert_eq!(200, deliver(&server, &body).await.status);
    counted(&server, "unconfirmed").await;
    assert_eq!(2, server.sender.sent().len());
}

#[tokio::test]
async fn r_a11_nothing_is_confirmed_but_what_sns_asks_for_an_allowed_topic() {
    let server = server().await;
    then_certificate(&server);
    // A message of somebody's own, its type changed.
    let signed: Value = serde_json::from_slice(&SNS.sign(notification(&server, "m-1"))).unwrap();
    let changed = with(signed.clone(), json!({"Type": "SubscriptionConfirmation"})).to_string();
    refused(&server, changed.as_bytes(), "malformed_body", 1).await;
    let more = json!({"Type": "SubscriptionConfirmation", "Token": "t", "SubscribeURL": SUBSCRIBE_URL});
    refused(&server, with(signed, more).to_string().as_bytes(), "signature_mismatch", 1).await;
    let asked = |more| with(about_subscription(&server, "SubscriptionConfirmation"), more);
    let body = STRANGER.sign(asked(json!({})));
    refused(&server, &body, "signature_mismatch", 2).await;
    let elsewhere: Value = serde_json::from_slice(&SNS.sign(asked(json!({})))).unwrap();
    let elsewhere = with(elsewhere, json!({"SubscribeURL": "https://evil.example.com/"})).to_string();
    refused(&server, elsewhere.as_bytes(), "signature_mismatch", 3).await;
    let body = SNS.sign(asked(json!({"TopicArn": "arn:aws:sns:us-east-1:999999999999:orders"})));
    refused(&server, &body, "topic_not_allowed", 1).await;
    for (count, url) in [
        (1, "https://evil.example.com/?Action=ConfirmSubscription"),
        (2, "http://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription"),
        (3, "https://user@sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription"),
        (4, "https://sns.us-east-1.amazonaws.com:8443/?Action=ConfirmSubscription"),
        (5, "https://sns.evil.amazonaws.com.example.com/?Action=ConfirmSubscription"),
    ] {
        refused(&server, &SNS.sign(asked(json!({ "SubscribeURL": url }))), "bad_subscribe_url", count).await;
    }
    assert_eq!(1, server.sender.sent().len(), "the certificate: {:?}", server.sender.sent());
}

#[tokio::test]
async fn r_a11_the_end_of_a_subscription_is_noted_and_makes_no_job() {
    let server = server().await;
    then_certificate(&server);
    let body = SNS.sign(about_subscription(&server, "UnsubscribeConfirmation"));
    let reply = deliver(&server, &body).await;
    assert_eq!((200, ""), (reply.status, reply.text().as_str()));
    counted(&server, "ended").await;
    assert_eq!(1, server.sender.sent().len(), "nothing is asked for it again");
    assert_eq!(0, server.jobs_total().await);
}

#[tokio::test]
async fn r_a11_a_paused_source_confirms_nothing_until_it_goes_on() {
    let server = server().await;
    then_certificate(&server);
    server.post("/v1/pause", &json!({"source": "sns", "reason": "moving"})).await.expect(200);
    let body = SNS.sign(about_subscription(&server, "SubscriptionConfirmation"));
    deliver(&server, &body).await.problem(503, "source_paused");
    assert_eq!(1, server.sender.sent().len());
    server.post("/v1/resume", &json!({"source": "sns", "reason": "moved"})).await.expect(200);
    assert_eq!(200, deliver(&server, &body).await.status);
    counted(&server, "confirmed").await;
}
