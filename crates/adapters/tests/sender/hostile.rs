//! Receivers that try to hold a slot, a socket or memory for longer than the deadline.

use std::{sync::Arc, time::Duration};

use bytes::Bytes;
use posthaste_core::TransportFault;
use posthaste_engine::ports::{HttpSender as _, SendLimits, SendOutcome};

use super::{
    AMPLE, BRIEF, answered, post,
    receiver::{Act, Receiver, answering},
    send, sender, unanswered, within_bound,
};

const OK: &str = "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\nok";

#[tokio::test]
async fn r_d3_heads_without_end_are_time_outs_and_the_request_was_sent() {
    for act in [
        Act::Drip(b"HTTP/1.1 200 OK\r\nx: y".to_vec()),
        Act::Drip(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()),
        Act::Flood(b"HTTP/1.1 100 Continue\r\n\r\n".to_vec()),
        Act::Flood(b"HTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n".repeat(200)),
    ] {
        let mut receiver = Receiver::start(vec![vec![Act::ReadRequest, act.clone()]]).await;
        let sender = sender();
        let outcome = send(&sender, post(receiver.url(), BRIEF)).await;
        assert_eq!(unanswered(&outcome), (TransportFault::Timeout, true), "{outcome:?}");
        receiver.ended().await;
    }
}

#[tokio::test]
async fn r_d3_a_head_that_grows_without_end_is_cut_at_its_limit() {
    let script = vec![
        Act::ReadRequest,
        Act::Write(b"HTTP/1.1 200 OK\r\n".to_vec()),
        Act::Flood(format!("x: {}\r\n", "a".repeat(1_000)).into()),
    ];
    let mut receiver = Receiver::start(vec![script]).await;
    let sender = sender();
    let outcome = send(&sender, post(receiver.url(), AMPLE)).await;
    assert_eq!(unanswered(&outcome), (TransportFault::Protocol, true));
    receiver.ended().await;
}

#[tokio::test]
async fn r_d3_a_dripping_body_is_kept_as_far_as_it_came() {
    for framing in ["content-length: 1000000", "connection: close"] {
        let head = format!("HTTP/1.1 200 OK\r\n{framing}\r\n\r\n");
        let script = vec![Act::ReadRequest, Act::Write(head.into()), Act::Drip(b"z".to_vec())];
        let mut receiver = Receiver::start(vec![script]).await;
        let limits = SendLimits { excerpt_bytes_max: 1_000_000, ..BRIEF };
        let sender = sender();
        let answer = answered(send(&sender, post(receiver.url(), limits)).await);
        assert_eq!((answer.status, answer.excerpt_truncated), (200, true));
        assert!(answer.excerpt.starts_with(b"z"), "what was received is kept");
        receiver.ended().await;
    }
}

#[tokio::test]
async fn r_d3_a_body_that_stops_is_kept_and_its_connection_closed() {
    let head = "HTTP/1.1 200 OK\r\ncontent-length: 1000\r\n\r\nhalf";
    let mut receiver = Receiver::start(vec![answering(head, 1)]).await;
    let sender = sender();
    let answer = answered(send(&sender, post(receiver.url(), BRIEF)).await);
    assert_eq!((&*answer.excerpt, answer.excerpt_truncated), (b"half".as_slice(), true));
    receiver.ended().await;
}

#[tokio::test]
async fn r_d3_an_endless_body_is_cut_at_the_excerpt() {
    let head = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n";
    let chunk = format!("400\r\n{}\r\n", "b".repeat(0x400));
    let script = vec![Act::ReadRequest, Act::Write(head.into()), Act::Flood(chunk.into())];
    let mut receiver = Receiver::start(vec![script]).await;
    let sender = sender();
    let answer = answered(send(&sender, post(receiver.url(), AMPLE)).await);
    assert_eq!((answer.excerpt.len(), answer.excerpt_truncated), (AMPLE.excerpt_bytes_max, true));
    receiver.ended().await;
}

#[tokio::test]
async fn r_d3_a_body_of_exactly_the_excerpt_is_whole() {
    let body = "c".repeat(AMPLE.excerpt_bytes_max);
    let answer = format!("HTTP/1.1 200 OK\r\ncontent-length: {}\r\n\r\n{body}", body.len());
    let receiver = Receiver::start(vec![answering(&answer, 1)]).await;
    let answer = answered(send(&sender(), post(receiver.url(), AMPLE)).await);
    assert_eq!((&*answer.excerpt, answer.excerpt_truncated), (body.as_bytes(), false));
}

#[tokio::test]
async fn r_d3_a_receiver_that_does_not_read_is_a_time_out() {
    let limits = SendLimits { first_byte_timeout: Duration::from_millis(300), ..AMPLE };
    for limits in [limits, BRIEF] {
        let receiver = Receiver::start(vec![vec![Act::Freeze]]).await;
        let mut request = post(receiver.url(), limits);
        request.body = Bytes::from(vec![b'a'; 16 * 1024 * 1024]);
        let outcome = send(&sender(), request).await;
        assert_eq!(unanswered(&outcome), (TransportFault::Timeout, true));
    }
}

#[tokio::test]
async fn r_d3_an_answer_while_the_request_is_still_written_is_an_answer() {
    let answer = b"HTTP/1.1 413 Too Big\r\ncontent-length: 0\r\n\r\n".to_vec();
    let receiver = Receiver::start(vec![vec![Act::ReadOneByte, Act::Write(answer), Act::Freeze]]).await;
    let mut request = post(receiver.url(), AMPLE);
    request.body = Bytes::from(vec![b'a'; 16 * 1024 * 1024]);
    assert_eq!(answered(send(&sender(), request).await).status, 413);
}

#[tokio::test]
async fn r_d3_an_answer_before_the_request_means_that_it_was_not_sent() {
    let answer = b"HTTP/1.1 408 Too Late\r\ncontent-length: 0\r\n\r\n".to_vec();
    let receiver = Receiver::start(vec![vec![Act::Write(answer), Act::AwaitEnd]]).await;
    match send(&sender(), post(receiver.url(), AMPLE)).await {
        // The bytes came first: the client gives the request back unwritten.
        SendOutcome::Unanswered { fault, sent, .. } => {
            assert_eq!((fault, sent), (TransportFault::Reset, false));
        }
        // They came while it was written, and pass for the answer.
        outcome => assert_eq!(answered(outcome).status, 408),
    }
}

#[tokio::test]
async fn r_d3_an_upgrade_nobody_asked_for_ends_the_connection() {
    let answer = "HTTP/1.1 101 Switching Protocols\r\nupgrade: websocket\r\nconnection: upgrade\r\n\r\n";
    let mut receiver = Receiver::start(vec![answering(answer, 1)]).await;
    let sender = sender();
    match send(&sender, post(receiver.url(), AMPLE)).await {
        SendOutcome::Answered(answer) => assert_eq!(answer.status, 101),
        outcome => assert_eq!(unanswered(&outcome), (TransportFault::Protocol, true)),
    }
    receiver.ended().await;
}

#[tokio::test]
async fn r_d3_limits_beyond_all_reason_are_no_overflow() {
    let receiver = Receiver::start(vec![answering(OK, 1)]).await;
    let limits = SendLimits {
        connect_timeout: Duration::MAX,
        tls_timeout: Duration::MAX,
        first_byte_timeout: Duration::MAX,
        total_timeout: Duration::MAX,
        excerpt_bytes_max: usize::MAX,
    };
    assert_eq!(answered(send(&sender(), post(receiver.url(), limits)).await).status, 200);
    let silent = Receiver::start(vec![vec![Act::AwaitEnd]]).await;
    let none = SendLimits { total_timeout: Duration::ZERO, ..AMPLE };
    let outcome = send(&sender(), post(silent.url(), none)).await;
    assert_eq!(unanswered(&outcome).0, TransportFault::Timeout);
}

#[tokio::test]
async fn r_d3_a_send_that_is_dropped_closes_its_connection() {
    let mut receiver = Receiver::start(vec![vec![Act::ReadRequest, Act::AwaitEnd]]).await;
    let sender = sender();
    let mut sending = sender.send(post(receiver.url(), AMPLE));
    tokio::select! {
        outcome = &mut sending => panic!("nobody answered: {outcome:?}"),
        _ = receiver.request() => {}
    }
    drop(sending);
    receiver.ended().await;
}

#[tokio::test]
async fn r_d3_fifty_hostile_receivers_do_not_delay_a_healthy_one() {
    let hostile =
        Receiver::start(vec![vec![Act::ReadRequest, Act::Drip(b"HTTP/1.1 200 OK\r\nx: ".to_vec())]]);
    let hostile = hostile.await;
    let healthy = Receiver::start(vec![answering(OK, 1)]).await;
    let sender = Arc::new(sender());
    let stuck: Vec<_> = (0..50)
        .map(|_| {
            let (sender, url) = (Arc::clone(&sender), hostile.url());
            let limits = SendLimits { total_timeout: Duration::from_secs(2), ..AMPLE };
            tokio::spawn(async move { sender.send(post(url, limits)).await })
        })
        .collect();
    let answer = answered(send(&sender, post(healthy.url(), AMPLE)).await);
    assert_eq!(answer.status, 200);
    for task in stuck {
        let outcome = within_bound(task).await.unwrap();
        assert_eq!(unanswered(&outcome), (TransportFault::Timeout, true));
    }
    assert_eq!(hostile.accepted(), 50);
}
