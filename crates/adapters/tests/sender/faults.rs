//! What a receiver answers, and every way in which it does not.

use std::time::Duration;

use posthaste_adapters::sender::{GuardedSender, HEAD_BYTES_MAX, HEADERS_MAX};
use posthaste_core::TransportFault;
use posthaste_engine::ports::SendLimits;
use tokio::net::TcpListener;

use super::{
    AMPLE, BRIEF, Scripted, answered, blocked, config, guard, post,
    receiver::{Act, Receiver, answering},
    send, sender, timed_out_unsent, unanswered,
};

#[tokio::test]
async fn r_d3_an_answer_is_passed_on_as_received() {
    let answer = "HTTP/1.1 503 Busy\r\nretry-after: 120\r\nposthaste-ledger: dup=1\r\nwebhook-delivery: stop\r\n\
                  content-length: 5\r\n\r\nbusy!";
    let mut receiver = Receiver::start(vec![answering(answer, 1)]).await;
    let answer = answered(send(&sender(), post(receiver.url(), AMPLE)).await);
    assert_eq!(answer.status, 503);
    assert_eq!(answer.retry_after.as_deref(), Some(b"120".as_slice()));
    assert_eq!(answer.ledger.as_deref(), Some(b"dup=1".as_slice()));
    assert_eq!(answer.delivery_control.as_deref(), Some(b"stop".as_slice()));
    assert_eq!((&*answer.excerpt, answer.excerpt_truncated), (b"busy!".as_slice(), false));
    assert_eq!(answer.peer, Some(receiver.address));

    let request = receiver.request().await;
    let (head, body) = request.split_once("\r\n\r\n").unwrap();
    let mut lines: Vec<_> = head.lines().collect();
    lines.sort_unstable();
    let host = format!("host: {}", receiver.address);
    let expected = [
        "POST /hook HTTP/1.1",
        "content-length: 7",
        "content-type: application/json",
        &host,
        "webhook-id: msg_1",
    ];
    assert_eq!(lines, expected, "the request as given, host and content-length, nothing else");
    assert_eq!(body, "{\"a\":1}");
}

#[tokio::test]
async fn r_d3_overlong_values_count_as_absent() {
    let long = "x".repeat(2_000);
    let answer = format!(
        "HTTP/1.1 200 OK\r\nretry-after: {long}\r\nposthaste-ledger: {long}\r\nwebhook-delivery: {long}\r\n\
         content-length: 0\r\n\r\n"
    );
    let receiver = Receiver::start(vec![answering(&answer, 1)]).await;
    let answer = answered(send(&sender(), post(receiver.url(), AMPLE)).await);
    assert_eq!((answer.retry_after, answer.ledger, answer.delivery_control), (None, None, None));
}

#[tokio::test]
async fn r_d3_an_empty_body_still_states_its_length() {
    let mut receiver = Receiver::start(vec![answering("HTTP/1.1 204 No Content\r\n\r\n", 1)]).await;
    let mut request = post(receiver.url(), AMPLE);
    request.body = bytes::Bytes::new();
    assert_eq!(answered(send(&sender(), request).await).status, 204);
    let seen = receiver.request().await;
    assert_eq!(seen.matches("content-length: 0\r\n").count(), 1, "{seen}");
}

#[tokio::test]
async fn r_d3_interim_answers_are_skipped() {
    let answer = "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 103 Early Hints\r\nlink: </a>\r\n\r\n\
                  HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n";
    let receiver = Receiver::start(vec![answering(answer, 1)]).await;
    assert_eq!(answered(send(&sender(), post(receiver.url(), AMPLE)).await).status, 200);
}

#[tokio::test]
async fn r_d3_a_wordy_head_is_an_answer() {
    let lines = format!("x: {}\r\n", "a".repeat(200)).repeat(HEADERS_MAX - 10);
    let answer = format!("HTTP/1.1 200 OK\r\n{lines}content-length: 0\r\n\r\n");
    let receiver = Receiver::start(vec![answering(&answer, 1)]).await;
    assert_eq!(answered(send(&sender(), post(receiver.url(), AMPLE)).await).status, 200);
}

#[tokio::test]
async fn r_d3_a_stray_header_line_does_not_undo_an_acceptance() {
    let answer = "HTTP/1.1 200 OK\r\nno colon here\r\nbad name: x\r\n folded\r\ncontent-length: 0\r\n\r\n";
    let receiver = Receiver::start(vec![answering(answer, 1)]).await;
    assert_eq!(answered(send(&sender(), post(receiver.url(), AMPLE)).await).status, 200);
}

#[tokio::test]
async fn r_d2_a_redirect_is_an_answer_and_is_not_followed() {
    let target = Receiver::start(vec![answering("HTTP/1.1 200 OK\r\ncontent-length: 0\r\n\r\n", 1)]).await;
    for status in [301, 302, 303, 307, 308] {
        let answer =
            format!("HTTP/1.1 {status} Go\r\nlocation: {}\r\ncontent-length: 0\r\n\r\n", target.url());
        let receiver = Receiver::start(vec![answering(&answer, 1)]).await;
        assert_eq!(answered(send(&sender(), post(receiver.url(), AMPLE)).await).status, status);
    }
    assert_eq!(target.accepted(), 0);
}

#[tokio::test]
async fn r_d3_a_refused_connect_is_a_connect_fault_and_nothing_was_sent() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    drop(listener);
    let outcome = send(&sender(), post(format!("http://{address}/"), AMPLE)).await;
    assert_eq!(unanswered(&outcome), (TransportFault::Connect, false));
}

#[tokio::test]
async fn r_d3_a_name_without_addresses_is_a_dns_fault_and_nothing_was_sent() {
    for answer in [Ok(Vec::new()), Err("no such name".to_owned())] {
        let names = Scripted::new([Some(answer)]);
        let sender = GuardedSender::with_names(guard(&["127.0.0.0/8"]), &config(), names).unwrap();
        let outcome = send(&sender, post("http://hooks.test/", AMPLE)).await;
        assert_eq!(unanswered(&outcome), (TransportFault::Dns, false));
    }
}

#[tokio::test]
async fn r_d3_a_look_up_without_end_is_a_time_out_and_nothing_was_sent() {
    let limits = SendLimits { connect_timeout: Duration::from_millis(100), ..AMPLE };
    for limits in [limits, BRIEF] {
        let names = Scripted::new([None]);
        let sender = GuardedSender::with_names(guard(&["127.0.0.0/8"]), &config(), names).unwrap();
        let outcome = send(&sender, post("http://hooks.test/", limits)).await;
        timed_out_unsent(&outcome, "name look-up");
    }
}

#[tokio::test]
async fn r_d3_a_silent_network_ends_the_connect_and_nothing_was_sent() {
    // Where the network says "unreachable" at once, that is a connect fault; else it is the time-out.
    let limits = SendLimits { connect_timeout: Duration::from_millis(200), ..AMPLE };
    let sender = super::sender_for(&["192.0.2.0/24"], &config());
    let outcome = send(&sender, post("http://192.0.2.1:9/", limits)).await;
    let (fault, sent) = unanswered(&outcome);
    assert!(matches!(fault, TransportFault::Timeout | TransportFault::Connect), "{outcome:?}");
    assert!(!sent);
}

#[tokio::test]
async fn r_d3_no_answer_is_a_time_out_and_the_request_was_sent() {
    let first_byte = SendLimits { first_byte_timeout: Duration::from_millis(200), ..AMPLE };
    for limits in [first_byte, BRIEF] {
        let mut receiver = Receiver::start(vec![vec![Act::ReadRequest, Act::AwaitEnd]]).await;
        let sender = sender();
        let outcome = send(&sender, post(receiver.url(), limits)).await;
        assert_eq!(unanswered(&outcome), (TransportFault::Timeout, true));
        receiver.ended().await;
    }
}

#[tokio::test]
async fn r_d3_a_connection_that_breaks_before_the_head_is_a_reset_and_the_request_was_sent() {
    let head = Act::Write(b"HTTP/1.1 200 OK\r\ncontent-le".to_vec());
    for script in [
        vec![Act::ReadRequest],
        vec![Act::ReadRequest, Act::Reset],
        vec![Act::ReadRequest, head.clone()],
        vec![Act::ReadRequest, head, Act::Reset],
    ] {
        let receiver = Receiver::start(vec![script.clone()]).await;
        let outcome = send(&sender(), post(receiver.url(), AMPLE)).await;
        assert_eq!(unanswered(&outcome), (TransportFault::Reset, true), "{script:?}");
    }
}

#[tokio::test]
async fn r_d3_a_body_that_breaks_off_is_an_answer_with_what_arrived() {
    for (head, last) in [
        ("content-length: 100", None),
        ("content-length: 100", Some(Act::Reset)),
        ("transfer-encoding: chunked", None),
    ] {
        let body = if head.starts_with('t') { "7\r\npartial\r\n" } else { "partial" };
        let answer = format!("HTTP/1.1 200 OK\r\n{head}\r\n\r\n{body}");
        let script = [Act::ReadRequest, Act::Write(answer.into())].into_iter().chain(last).collect();
        let receiver = Receiver::start(vec![script]).await;
        let answer = answered(send(&sender(), post(receiver.url(), AMPLE)).await);
        assert_eq!((answer.status, answer.excerpt_truncated), (200, true), "{head}");
        assert!(b"partial".starts_with(&answer.excerpt), "{answer:?}");
    }
}

#[tokio::test]
async fn r_d3_malformed_http_is_a_protocol_fault_and_the_request_was_sent() {
    let long_line = format!("HTTP/1.1 200 OK\r\nx: {}\r\n\r\n", "a".repeat(4 * HEAD_BYTES_MAX));
    let many_lines = format!("HTTP/1.1 200 OK\r\n{}\r\n", "x: a\r\n".repeat(HEADERS_MAX + 1));
    for answer in [
        "garbage\r\n\r\n",
        "SSH-2.0-OpenSSH_9.6\r\n",
        "\u{0}\u{0}\u{0}\u{0}\r\n\r\n",
        "HTTP/9.9 200 OK\r\n\r\n",
        "HTTP/1.1 9999 OK\r\n\r\n",
        "HTTP/1.1 OK\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: many\r\n\r\n",
        "HTTP/1.1 200 OK\r\ncontent-length: 1\r\ncontent-length: 2\r\n\r\n",
        "HTTP/1.1 200 OK\r\nx: a\u{0}b\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        &long_line,
        &many_lines,
    ] {
        let receiver = Receiver::start(vec![answering(answer, 1)]).await;
        let outcome = send(&sender(), post(receiver.url(), AMPLE)).await;
        let short: String = answer.chars().take(60).collect();
        assert_eq!(unanswered(&outcome), (TransportFault::Protocol, true), "{short:?}: {outcome:?}");
    }
}

#[tokio::test]
async fn r_d3_a_malformed_chunk_is_an_answer_with_what_arrived() {
    let answer = "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\nzz\r\nno";
    let receiver = Receiver::start(vec![answering(answer, 1)]).await;
    let answer = answered(send(&sender(), post(receiver.url(), AMPLE)).await);
    assert_eq!((answer.status, answer.excerpt_truncated), (200, true));
}

#[tokio::test]
async fn r_d2_headers_that_would_change_the_message_are_not_sent() {
    let receiver = Receiver::start(vec![vec![Act::AwaitEnd]]).await;
    for (name, value) in [
        ("host", b"evil.test".as_slice()),
        ("content-length", b"0"),
        ("transfer-encoding", b"chunked"),
        ("connection", b"keep-alive"),
        ("x-a", b"b\r\nx-injected: 1"),
        ("x-a", b"b\0"),
        ("x a", b"b"),
        ("", b"b"),
    ] {
        let mut request = post(receiver.url(), AMPLE);
        request.headers.push((name.into(), value.into()));
        let outcome = send(&sender(), request).await;
        assert_eq!(unanswered(&outcome), (TransportFault::Protocol, false), "{name:?}");
    }
    assert_eq!(receiver.accepted(), 0);
}

#[tokio::test]
async fn r_d2_a_url_that_registration_would_refuse_is_blocked_at_send_too() {
    let sender = sender();
    for url in
        ["ftp://127.0.0.1/", "http://user@127.0.0.1/", "http://10.0.0.1/", "http://8.8.8.8/", "nonsense"]
    {
        assert!(!blocked(send(&sender, post(url, AMPLE)).await).is_empty(), "{url}");
    }
}
