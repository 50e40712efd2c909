//! The guard at connect time: what resolves where, and what is dialled.

use std::{collections::BTreeSet, sync::Arc};

use posthaste_adapters::sender::{GuardedSender, SystemNames};
use posthaste_core::TransportFault;
use posthaste_engine::ports::SendOutcome;

use super::{
    AMPLE, Scripted, answered, blocked, config, guard, post,
    receiver::{Act, Receiver, answering},
    send, sender_for, unanswered,
};

const OK: &str = "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-length: 0\r\n\r\n";

/// A sink that may be dialled, on 127.0.0.2, and a canary that may not, on 127.0.0.1, at the same port.
async fn sink_and_canary() -> (Receiver, Receiver) {
    let sink = Receiver::start_at("127.0.0.2:0", vec![answering(OK, 1)]).await;
    let canary =
        Receiver::start_at(&format!("127.0.0.1:{}", sink.address.port()), vec![vec![Act::AwaitEnd]]).await;
    (sink, canary)
}

fn sender_with(names: Arc<Scripted>) -> GuardedSender {
    GuardedSender::with_names(guard(&["127.0.0.2/32"]), &config(), names).unwrap()
}

#[tokio::test]
async fn r_d2_a_name_that_changes_its_address_never_reaches_the_forbidden_one() {
    let (sink, canary) = sink_and_canary().await;
    let alternating: Vec<&[&str]> =
        (0..200).map(|round| if round % 2 == 0 { &["127.0.0.2"][..] } else { &["127.0.0.1"] }).collect();
    let names = Scripted::addresses(&alternating);
    let sender = sender_with(Arc::clone(&names));
    let url = format!("http://r1.test:{}/", sink.address.port());
    let mut blocked = 0;
    for _ in 0..alternating.len() {
        match send(&sender, post(url.clone(), AMPLE)).await {
            SendOutcome::Answered(answer) => assert_eq!(answer.peer, Some(sink.address)),
            SendOutcome::Blocked { .. } => blocked += 1,
            outcome @ SendOutcome::Unanswered { .. } => panic!("{outcome:?}"),
        }
    }
    assert_eq!((sink.accepted(), blocked, canary.accepted()), (100, 100, 0));
    assert_eq!(names.asked(), 200, "one look-up per connection, and none after the judgement");
}

#[tokio::test]
async fn r_d2_mixed_answers_are_refused_whole() {
    let (sink, canary) = sink_and_canary().await;
    let url = format!("http://r2.test:{}/", sink.address.port());
    for mixed in [
        ["127.0.0.2", "127.0.0.1"],
        ["127.0.0.1", "127.0.0.2"],
        ["127.0.0.2", "::ffff:127.0.0.1"],
        ["127.0.0.2", "::1"],
    ] {
        let sender = sender_with(Scripted::addresses(&[&mixed]));
        let reason = blocked(send(&sender, post(url.clone(), AMPLE)).await);
        assert!(!reason.contains("127.0.0.1"), "the refusal does not tell the address: {reason}");
    }
    assert_eq!((sink.accepted(), canary.accepted()), (0, 0));
}

#[tokio::test]
async fn r_d2_the_host_header_keeps_the_name_while_the_address_is_dialled() {
    let (mut sink, _canary) = sink_and_canary().await;
    let sender = sender_with(Scripted::addresses(&[&["127.0.0.2"]]));
    let authority = format!("hooks.test:{}", sink.address.port());
    assert_eq!(answered(send(&sender, post(format!("http://{authority}/"), AMPLE)).await).status, 200);
    let request = sink.request().await;
    assert!(request.contains(&format!("host: {authority}\r\n")), "{request}");
}

#[tokio::test]
async fn r_d2_literals_in_every_spelling_are_judged_at_connect() {
    let canary = Receiver::start(vec![vec![Act::AwaitEnd]]).await;
    let sender = sender_for(&[], &config());
    let port = canary.address.port();
    for host in
        ["127.0.0.1", "2130706433", "0x7f.1", "127.1", "[::ffff:127.0.0.1]", "[::1]", "0", "localhost"]
    {
        for scheme in ["http", "https"] {
            let url = format!("{scheme}://{host}:{port}/");
            blocked(send(&sender, post(url, AMPLE)).await);
        }
    }
    assert_eq!(canary.accepted(), 0);
}

#[tokio::test]
async fn r_d2_localhost_is_dialled_only_where_loopback_is_listed() {
    let receiver = Receiver::start(vec![answering(OK, 1)]).await;
    let url = format!("http://localhost:{}/", receiver.address.port());
    blocked(send(&sender_for(&["10.0.0.0/8"], &config()), post(url.clone(), AMPLE)).await);
    let sender = sender_for(&["127.0.0.0/8"], &config());
    assert_eq!(answered(send(&sender, post(url, AMPLE)).await).status, 200);
    assert_eq!(receiver.accepted(), 1);
}

#[tokio::test]
async fn r_d2_a_refusal_is_no_dns_fault_and_leaves_no_connection() {
    let sender = sender_with(Scripted::addresses(&[&["10.0.0.5"], &[]]));
    blocked(send(&sender, post("https://r4.test/", AMPLE)).await);
    let outcome = send(&sender, post("https://r4.test/", AMPLE)).await;
    assert_eq!(unanswered(&outcome), (TransportFault::Dns, false));
    assert_eq!(sender.open_connections(), 0);
}

#[test]
fn a_sender_can_be_built_before_the_runtime_starts() {
    let sender = GuardedSender::new(guard(&[]), &config()).unwrap();
    assert_eq!(sender.open_connections(), 0);
}

#[tokio::test]
async fn r_d2_names_of_the_hosts_file_are_found_and_judged() {
    let hosts = std::fs::read_to_string("/etc/hosts").unwrap_or_default();
    let local: BTreeSet<_> = hosts
        .lines()
        .filter_map(|line| line.split('#').next()?.trim().strip_prefix("127.0.0.1"))
        .flat_map(str::split_whitespace)
        .filter(|name| *name != "localhost" && !name.ends_with(".localhost"))
        .collect();
    let sender =
        GuardedSender::with_names(guard(&[]), &config(), Arc::new(SystemNames::from_system())).unwrap();
    for name in local {
        blocked(send(&sender, post(format!("https://{name}/"), AMPLE)).await);
    }
}
