//! Which connections serve a second request, and which do not.

use std::time::Duration;

use posthaste_adapters::sender::SenderConfig;
use posthaste_engine::ports::SendOutcome;

use super::{
    AMPLE, BRIEF, answered, config, post,
    receiver::{Act, Receiver, answering},
    send, sender, sender_for, unanswered,
};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

/// Connections that `rounds` requests in sequence take when each connection plays `script`.
async fn connections(config: &SenderConfig, script: Vec<Act>, rounds: usize) -> usize {
    let receiver = Receiver::start(vec![script]).await;
    let sender = sender_for(&["127.0.0.0/8"], config);
    for _ in 0..rounds {
        assert_eq!(answered(send(&sender, post(receiver.url(), AMPLE)).await).status, 200);
    }
    receiver.accepted()
}

#[tokio::test]
async fn r_d3_requests_in_sequence_share_a_connection() {
    assert_eq!(connections(&config(), answering(OK, 2), 2).await, 1);
    let chunked = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n\r\n";
    assert_eq!(connections(&config(), answering(chunked, 3), 3).await, 1);
    let empty = "HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    assert_eq!(connections(&config(), answering(empty, 3), 3).await, 1);
}

#[tokio::test]
async fn r_d3_a_connection_the_receiver_closes_is_not_used_again() {
    let last = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 2\r\n\r\nok";
    assert_eq!(connections(&config(), answering(last, 1), 2).await, 2);
}

#[tokio::test]
async fn r_d3_a_connection_with_an_unread_body_is_not_used_again() {
    let cut = format!("HTTP/1.1 200 OK\r\ncontent-length: 1000000\r\n\r\n{}", "a".repeat(1_000));
    assert_eq!(connections(&config(), answering(&cut, 1), 2).await, 2);
}

#[tokio::test]
async fn r_d2_connections_are_retired_by_age_and_by_number() {
    let aged = SenderConfig { connection_age_max: Duration::ZERO, ..config() };
    assert_eq!(connections(&aged, answering(OK, 1), 2).await, 2);
    let crowded = SenderConfig { connections_kept_max: 0, ..config() };
    assert_eq!(connections(&crowded, answering(OK, 1), 2).await, 2);
    let unpooled = SenderConfig { idle_connections_per_host_max: 0, ..config() };
    assert_eq!(connections(&unpooled, answering(OK, 1), 2).await, 2);
}

#[tokio::test]
async fn r_d3_an_idle_connection_is_closed_after_its_time() {
    let mut receiver = Receiver::start(vec![answering(OK, 1)]).await;
    let config = SenderConfig { idle_timeout: Duration::from_millis(100), ..config() };
    let sender = sender_for(&["127.0.0.0/8"], &config);
    answered(send(&sender, post(receiver.url(), AMPLE)).await);
    receiver.ended().await;
}

#[tokio::test]
async fn r_d3_a_pooled_connection_closed_under_a_request_never_sends_it_twice() {
    // The receiver answers once and then closes as soon as the next request begins to arrive, or before.
    for last in [None, Some(Act::Reset)] {
        let once = [Act::ReadRequest, Act::Write(OK.into())];
        let script: Vec<_> = once.into_iter().chain(last).collect();
        let receiver = Receiver::start(vec![script]).await;
        let sender = sender();
        let (mut answers, mut resets) = (0, 0);
        for _ in 0..50 {
            match send(&sender, post(receiver.url(), AMPLE)).await {
                SendOutcome::Answered(_) => answers += 1,
                outcome => {
                    assert_eq!(unanswered(&outcome).0, posthaste_core::TransportFault::Reset, "{outcome:?}");
                    resets += 1;
                }
            }
        }
        // One connection per answer: what failed on a stale connection was not tried again behind our back.
        assert_eq!((receiver.accepted(), answers + resets), (answers, 50));
    }
}

#[tokio::test]
async fn r_d3_a_slow_reader_has_the_time_of_its_own_request() {
    // The second request is blocked for longer than the first one had in all.
    let pause = Act::Pause(Duration::from_millis(1_800));
    let script = [Act::ReadRequest, Act::Write(OK.into()), pause, Act::ReadRequest, Act::Write(OK.into())];
    let receiver = Receiver::start(vec![script.into_iter().chain([Act::AwaitEnd]).collect()]).await;
    let sender = sender();
    answered(send(&sender, post(receiver.url(), BRIEF)).await);
    let mut request = post(receiver.url(), AMPLE);
    request.body = vec![b'a'; 16 * 1024 * 1024].into();
    answered(send(&sender, request).await);
    assert_eq!(receiver.accepted(), 1);
}

#[tokio::test]
async fn r_d3_bytes_nobody_asked_for_end_the_connection() {
    let two = format!("{OK}HTTP/1.1 500 Forged\r\ncontent-length: 0\r\n\r\n");
    let receiver = Receiver::start(vec![answering(&two, 1)]).await;
    let sender = sender();
    for _ in 0..10 {
        match send(&sender, post(receiver.url(), AMPLE)).await {
            SendOutcome::Answered(answer) => assert_eq!(answer.status, 200, "an answer is not carried over"),
            outcome => drop(unanswered(&outcome)),
        }
    }
}
