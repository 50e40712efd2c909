//! The guarded sender against receivers that do as they are told, down to the byte.
//!
//! Time is asserted only as "ended before a generous bound"; the limits of each request are far below it.

#![allow(clippy::unwrap_used, clippy::wildcard_enum_match_arm, reason = "what is not expected ends the test")]

mod address;
mod faults;
mod hostile;
mod http2;
mod receiver;
mod reuse;
mod tls;

use std::{
    collections::VecDeque,
    net::IpAddr,
    sync::{Arc, Mutex},
    time::Duration,
};

use bytes::Bytes;
use posthaste_adapters::{
    guard::{Guard, GuardConfig, PlainHttp},
    sender::{GuardedSender, NameError, Names, Protocols, SenderConfig, Trust},
};
use posthaste_core::TransportFault;
use posthaste_engine::ports::{
    Answered, BoxFuture, HttpSender as _, OutboundRequest, SendLimits, SendOutcome,
};

/// No test waits longer than this for something that must happen.
const BOUND: Duration = Duration::from_secs(20);

/// For exchanges that are meant to succeed.
const AMPLE: SendLimits = SendLimits {
    connect_timeout: BOUND,
    tls_timeout: BOUND,
    first_byte_timeout: BOUND,
    total_timeout: BOUND,
    excerpt_bytes_max: 64,
};

/// For exchanges that are meant to run into the total deadline.
const BRIEF: SendLimits = SendLimits { total_timeout: Duration::from_millis(400), ..AMPLE };

/// A sender that may dial 127/8 over plain http.
fn sender() -> GuardedSender {
    sender_for(&["127.0.0.0/8"], &config())
}

fn sender_for(networks: &[&str], config: &SenderConfig) -> GuardedSender {
    GuardedSender::with_names(guard(networks), config, Arc::new(Unasked)).unwrap()
}

fn guard(networks: &[&str]) -> Arc<Guard> {
    Arc::new(Guard::new(GuardConfig {
        private_networks: networks.iter().map(|net| net.parse().unwrap()).collect(),
        destinations: Vec::new(),
        plain_http: PlainHttp::PrivateNetworksOnly,
    }))
}

fn config() -> SenderConfig {
    SenderConfig {
        trust: Trust::Only { roots: Vec::new() },
        protocols: Protocols::Http1AndHttp2,
        idle_timeout: BOUND,
        idle_connections_per_host_max: 4,
        connections_kept_max: 64,
        connection_age_max: BOUND,
    }
}

fn post(url: impl Into<String>, limits: SendLimits) -> OutboundRequest {
    OutboundRequest {
        url: url.into(),
        method: "POST",
        headers: vec![
            ("webhook-id".into(), b"msg_1".to_vec()),
            ("content-type".into(), b"application/json".to_vec()),
        ],
        body: Bytes::from_static(b"{\"a\":1}"),
        limits,
    }
}

/// Sends, and fails the test if the sender does not keep to its deadlines.
async fn send(sender: &GuardedSender, request: OutboundRequest) -> SendOutcome {
    within_bound(sender.send(request)).await
}

async fn within_bound<F: Future>(future: F) -> F::Output {
    tokio::time::timeout(BOUND, future).await.expect("ends within the bound")
}

#[track_caller]
fn answered(outcome: SendOutcome) -> Answered {
    match outcome {
        SendOutcome::Answered(answer) => answer,
        other => panic!("expected an answer: {other:?}"),
    }
}

#[track_caller]
fn unanswered(outcome: &SendOutcome) -> (TransportFault, bool) {
    match outcome {
        SendOutcome::Unanswered { fault, sent, detail } => {
            assert!(detail.len() <= 300 && !detail.is_empty(), "{detail:?}");
            (*fault, *sent)
        }
        other => panic!("expected no answer: {other:?}"),
    }
}

/// Asserts a time-out before anything was sent, in the step that `words` name.
#[track_caller]
fn timed_out_unsent(outcome: &SendOutcome, words: &str) {
    assert_eq!(unanswered(outcome), (TransportFault::Timeout, false), "{outcome:?}");
    assert!(format!("{outcome:?}").contains(words), "{outcome:?} names another step than {words}");
}

#[track_caller]
fn blocked(outcome: SendOutcome) -> String {
    match outcome {
        SendOutcome::Blocked { reason } => reason,
        other => panic!("expected a refusal: {other:?}"),
    }
}

/// A look-up for senders that are only given addresses.
struct Unasked;

impl Names for Unasked {
    fn addresses<'a>(&'a self, name: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, NameError>> {
        panic!("nobody should look up {name}")
    }
}

/// What a name resolves to; `None` is an answer that never comes.
type ScriptedAnswer = Option<Result<Vec<IpAddr>, String>>;

/// Answers in order; the last answer is repeated.
struct Scripted {
    answers: Mutex<VecDeque<ScriptedAnswer>>,
    asked: Mutex<usize>,
}

impl Scripted {
    fn new(answers: impl IntoIterator<Item = ScriptedAnswer>) -> Arc<Self> {
        Arc::new(Self { answers: Mutex::new(answers.into_iter().collect()), asked: Mutex::new(0) })
    }

    fn addresses(answers: &[&[&str]]) -> Arc<Self> {
        let parse = |texts: &&[&str]| texts.iter().map(|text| text.parse().unwrap()).collect();
        Self::new(answers.iter().map(|texts| Some(Ok(parse(texts)))))
    }

    fn asked(&self) -> usize {
        *self.asked.lock().unwrap()
    }
}

impl Names for Scripted {
    fn addresses<'a>(&'a self, _: &'a str) -> BoxFuture<'a, Result<Vec<IpAddr>, NameError>> {
        *self.asked.lock().unwrap() += 1;
        let mut answers = self.answers.lock().unwrap();
        let answer = if answers.len() > 1 { answers.pop_front().unwrap() } else { answers[0].clone() };
        match answer {
            Some(answer) => Box::pin(std::future::ready(answer.map_err(NameError))),
            None => Box::pin(std::future::pending()),
        }
    }
}
