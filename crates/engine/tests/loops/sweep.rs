//! The reconciliation sweep: lost hints are found, and what evidence shows to have ended is settled. Row B14.

use bytes::Bytes;
use posthaste_core::{
    Class, DurationMs, EventId, Evidence, Kind, MessageId, MessageKey, RetryWish, State, StateName,
    ledger::{OnExpired, Outcome},
};
use posthaste_engine::{Consume, PublishTo, WorkerReport, WorkerSays};
use posthaste_store::{
    Due, Fingerprint, LedgerAction, LedgerAnswer, LedgerCommand, NewMessage, Store, StoredResult, Target,
};

use crate::support::{Bench, endpoint, id, message};

/// Accepts a message behind the engine's back: the hint that wakes its lane is lost.
async fn accept_silently(bench: &Bench, key: &str, destination: &str, kind: Kind) {
    let directory = bench.engine.directory();
    let row = &directory.find(bench.tenant, &id(destination)).unwrap().row;
    let target = Target { lane: row.lane, destination: row.id.clone(), kind, wire_id: None, owner: None };
    let message = NewMessage {
        tenant: bench.tenant,
        id: MessageId(0x0189_0a5d_ac96_774b_bcce_b302_0000_0000),
        key: MessageKey::new(key).unwrap(),
        aliases: Vec::new(),
        event_type: None,
        source: None,
        fingerprint: Fingerprint([[1; 16]; 5]),
        correlation_id: "request-1".into(),
        traceparent: None,
        content_type: None,
        headers: None,
        metadata: None,
        payload_ref: None,
        payload: Bytes::from_static(b"{}"),
        due: Due::In(DurationMs::ZERO),
        targets: vec![target],
    };
    bench.store.accept(vec![message]).await.unwrap();
}

#[tokio::test]
async fn r_b14_a_job_whose_hint_was_lost_is_found() {
    let bench = Bench::new().await;
    bench.endpoint(endpoint("fan_17")).await;
    // The first look is over.
    bench.publish(message("first", PublishTo::Endpoints(vec![id("fan_17")]))).await;
    bench.job_in("first", StateName::Committed).await;
    accept_silently(&bench, "lost", "fan_17", Kind::Push).await;
    for _ in 0..100 {
        tokio::task::yield_now().await;
    }
    assert_eq!(1, bench.sender.sent().len(), "nobody was told");
    bench.advance(30);
    bench.job_in("lost", StateName::Committed).await;
}

/// What a receiver's own ledger would say over HTTP, without naming the job.
async fn complete(bench: &Bench, event: &str) {
    let ask = |action| LedgerCommand {
        tenant: bench.tenant,
        key: EventId::new(event).unwrap(),
        job: None,
        action,
        actor: Some("receiver".into()),
    };
    let claim = LedgerAction::Claim {
        lease: DurationMs::from_secs(30),
        fingerprint: None,
        claim_id: None,
        on_expired: OnExpired::Retake,
    };
    let answer = bench.store.ledger(vec![ask(claim)]).await.unwrap().remove(0).answer;
    let LedgerAnswer::Granted(entry) = answer else { panic!("{answer:?}") };
    let (fence, result) = (entry.entry.fence, StoredResult::default());
    let complete = LedgerAction::Complete { fence, outcome: Outcome::Committed, result };
    bench.store.ledger(vec![ask(complete)]).await.unwrap();
}

#[tokio::test]
async fn r_b14_what_the_ledger_says_is_done_is_settled_without_being_handed_out() {
    let bench = Bench::new().await;
    bench.queue("carts").await;
    for (key, retry, state) in
        [("waits", RetryWish::Yes, StateName::Retryable), ("dead", RetryWish::No, StateName::DeadLettered)]
    {
        bench.publish(message(key, PublishTo::Queue(id("carts")))).await;
        let consume =
            Consume { queue: id("carts"), max: 1, wait: DurationMs::ZERO, lease: None, worker: "w-1".into() };
        let leased = bench.engine.consume(bench.tenant, consume).await.unwrap().remove(0);
        let says = WorkerSays::Reject {
            class: Class::Timeout,
            effect: None,
            retry,
            // Far off, so that only the sweep can be quicker.
            retry_after: Some(DurationMs::from_hours(5)),
            code: None,
            message: None,
        };
        let report =
            WorkerReport { job: leased.job.id, fence: leased.fence.to_string().into(), report: says };
        bench.engine.report(bench.tenant, "w-1", vec![report]).await.unwrap().remove(0).unwrap();
        bench.job_in(key, state).await;
        complete(&bench, &format!("{key}:carts")).await;
        assert_eq!(state, bench.jobs(key).await[0].job.state.name(), "nothing has looked yet");
    }
    bench.advance(60);
    for key in ["waits", "dead"] {
        let view = bench.job_in(key, StateName::Committed).await;
        assert!(matches!(view.job.state, State::Committed { evidence: Evidence::Ledger, .. }), "{view:?}");
        assert_eq!(1, view.attempts.len(), "it was not handed out again");
    }
    // The counters follow the commit.
    while !bench.engine.metrics().encode().contains("posthaste_swept_total 2") {
        tokio::task::yield_now().await;
    }
}
