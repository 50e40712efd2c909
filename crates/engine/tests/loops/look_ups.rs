//! Look-ups: what is asked, when "absent" is believed, and that nobody's silence keeps others waiting. Row C10.

use posthaste_core::{
    Cause, DurationMs, Evidence, LookUpVerdict, NextStep, State, StateName, TransportFault,
};
use posthaste_engine::{
    Judgement, PublishTo,
    config::{ClassifySpec, DurationText, EndpointSpec, OnUnknownSpec, ReconcileSpec},
    ports::{OutboundRequest, SendOutcome},
};
use posthaste_receiver::{Request, Scheme, Verifier, VerifyOptions};
use posthaste_store::{JobView, ManagedBy, MessageName, Reads, Stage};
use posthaste_testkit::{Scripted, header};

use crate::support::{Bench, endpoint, id, message};

/// An endpoint that is asked before anything is sent again.
fn asked(name: &str) -> EndpointSpec {
    let reconcile = ReconcileSpec {
        url: format!("https://{name}.example.com/status?key={{event_id}}"),
        method: None,
        settle: DurationText(DurationMs::from_mins(2)),
        pointer: None,
        present: Vec::new(),
        absent: Vec::new(),
        in_progress: Vec::new(),
    };
    EndpointSpec { on_unknown: Some(OnUnknownSpec::Reconcile), reconcile: Some(reconcile), ..endpoint(name) }
}

fn look_ups(bench: &Bench) -> Vec<OutboundRequest> {
    bench.sender.sent().into_iter().filter(|request| request.url.contains("/status")).collect()
}

async fn custody(bench: &Bench, key: &str) -> Vec<String> {
    let key = posthaste_core::MessageKey::new(key).unwrap();
    let message = bench.store.message(bench.tenant, MessageName::Key(key)).await.unwrap().unwrap();
    let entries = bench.store.custody(bench.tenant, message.id).await.unwrap();
    let of_stage = entries.into_iter().filter(|entry| entry.stage == Stage::Reconciled);
    of_stage.map(|entry| entry.detail.unwrap().into()).collect()
}

/// Waits until `count` look-ups were answered and written.
async fn answered(bench: &Bench, key: &str, count: usize) -> JobView {
    loop {
        if custody(bench, key).await.len() >= count {
            return bench.jobs(key).await.remove(0);
        }
        tokio::task::yield_now().await;
    }
}

/// A job whose first attempt may have acted.
async fn owed(bench: &Bench, key: &str, name: &str) -> JobView {
    bench.sender.then_status(500);
    bench.publish(message(key, PublishTo::Endpoints(vec![id(name)]))).await;
    let view = bench.ended(key, 1).await;
    assert!(matches!(view.job.state, State::Retryable { next: NextStep::LookUp, .. }), "{view:?}");
    view
}

#[tokio::test]
async fn r_c10_absent_is_believed_only_once_the_last_send_can_no_longer_act() {
    let bench = Bench::new().await;
    bench.endpoint(asked("fan_17")).await;
    let owed = owed(&bench, "k/1", "fan_17").await;
    let ended_at = owed.attempts[0].end.finished_at;
    bench.sender.then_status(404);
    bench.advance(10);
    let view = answered(&bench, "k/1", 1).await;
    let settled_at = ended_at.after(DurationMs::from_mins(2));
    assert_eq!(State::Retryable { due_at: settled_at, next: NextStep::LookUp }, view.job.state);
    assert_eq!(1, view.attempts.len(), "a look-up has no attempt number");

    bench.sender.then_status(404);
    bench.advance(120);
    let done = bench.job_in("k/1", StateName::Committed).await;
    assert_eq!(2, done.attempts.len());
    assert_eq!(4, bench.sender.sent().len(), "two deliveries, two look-ups");
    let said = "{\"said\":\"the receiver answered 404\",\"verdict\":\"absent\"}";
    assert_eq!(vec![said; 2], custody(&bench, "k/1").await);
    assert!(bench.engine.metrics().encode().contains("posthaste_look_ups_total{verdict=\"absent\"} 2"));
}

#[tokio::test]
async fn r_c10_present_commits_without_a_second_delivery() {
    let bench = Bench::new().await;
    bench.endpoint(asked("fan_17")).await;
    owed(&bench, "k/1", "fan_17").await;
    bench.advance(10);
    let done = bench.job_in("k/1", StateName::Committed).await;
    assert!(matches!(done.job.state, State::Committed { evidence: Evidence::Reconciled, .. }), "{done:?}");
    assert_eq!((1, 2), (done.attempts.len(), bench.sender.sent().len()));

    let look_up = look_ups(&bench).remove(0);
    assert_eq!(
        ("GET", "https://fan_17.example.com/status?key=k%2F1%3Afan_17"),
        (look_up.method, &*look_up.url)
    );
    assert!(look_up.body.is_empty());
    assert_eq!(Some("1".to_owned()), header(&look_up, "posthaste-look-up"));
    assert_eq!(None, header(&look_up, "idempotency-key"), "it is not the delivery");
    let headers: Vec<(&str, &[u8])> =
        look_up.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
    let signed = Request { method: "GET", url: &look_up.url, headers: &headers, body: b"" };
    let options = VerifyOptions { tolerance_seconds: Some(0), hmac: None };
    let secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
    let verifier = Verifier::new(Scheme::StandardWebhooks, &[secret], &options).unwrap();
    let sent_at: i64 = header(&look_up, "webhook-timestamp").unwrap().parse().unwrap();
    verifier.verify(&signed, sent_at * 1_000).unwrap();
}

#[tokio::test]
async fn r_c10_whoever_can_not_tell_is_asked_until_the_horizon() {
    let bench = Bench::new().await;
    bench.endpoint(asked("fan_17")).await;
    owed(&bench, "k", "fan_17").await;
    for (asked, outcome) in [
        SendOutcome::Unanswered { fault: TransportFault::Timeout, sent: true, detail: "slow".to_owned() },
        SendOutcome::Blocked { reason: "10.0.0.1 is private".to_owned() },
    ]
    .into_iter()
    .enumerate()
    {
        bench.sender.then(Scripted::Outcome(outcome));
        bench.advance(100_000);
        let view = answered(&bench, "k", asked + 1).await;
        assert!(matches!(view.job.state, State::Retryable { next: NextStep::LookUp, .. }), "{view:?}");
    }
    for asked in 2..20 {
        if bench.jobs("k").await[0].job.state.name() == StateName::DeadLettered {
            break;
        }
        bench.sender.then_status(503);
        bench.advance(100_000);
        answered(&bench, "k", asked + 1).await;
    }
    let dead = bench.job_in("k", StateName::DeadLettered).await;
    assert!(matches!(dead.job.state, State::DeadLettered { cause: Cause::OutcomeUnknown, .. }), "{dead:?}");
    assert_eq!(1, bench.sender.sent().len() - look_ups(&bench).len(), "nothing was sent again");
    let said = custody(&bench, "k").await;
    assert!(said[0].contains("no answer: slow") && said[1].contains("blocked: 10.0.0.1"), "{said:?}");
}

#[tokio::test]
async fn r_c10_receivers_that_hang_on_look_ups_keep_no_other_waiting() {
    let bench = Bench::new().await;
    bench.endpoint(asked("slow")).await;
    bench.endpoint(asked("quick")).await;
    for number in 0..6 {
        owed(&bench, &format!("slow-{number}"), "slow").await;
    }
    for _ in 0..4 {
        bench.sender.then(Scripted::Hang);
    }
    bench.advance(10);
    bench.sender.wait_for(10).await;
    owed(&bench, "quick", "quick").await;
    bench.advance(10);
    bench.job_in("quick", StateName::Committed).await;
    let of_slow = look_ups(&bench).iter().filter(|request| request.url.contains("slow")).count();
    assert_eq!(4, of_slow, "a lane has a few on their way, however many are due");
}

#[tokio::test]
async fn r_c10_what_nobody_can_be_asked_about_is_told_and_given_up_at_the_horizon() {
    let bench = Bench::new().await;
    bench.endpoint(asked("fan_17")).await;
    owed(&bench, "k", "fan_17").await;
    // The endpoint is configured anew, without a way to ask.
    bench.endpoint(endpoint("fan_17")).await;
    bench.advance(10);
    let view = answered(&bench, "k", 1).await;
    assert_eq!(StateName::Retryable, view.job.state.name());
    assert!(custody(&bench, "k").await[0].contains("nobody can be asked"));
    assert_eq!(1, bench.sender.sent().len(), "it is not taken for absent");
}

#[tokio::test]
async fn r_c10_a_deleted_destination_ends_what_waits_for_its_look_up() {
    let bench = Bench::new().await;
    bench.endpoint(asked("fan_17")).await;
    owed(&bench, "k", "fan_17").await;
    let kind = posthaste_store::DestinationKind::Endpoint;
    bench.engine.delete_destination(bench.tenant, kind, &id("fan_17")).await.unwrap();
    bench.advance(60);
    let dead = bench.job_in("k", StateName::DeadLettered).await;
    assert!(matches!(dead.job.state, State::DeadLettered { cause: Cause::EndpointGone, .. }));
}

#[tokio::test]
async fn r_c10_an_operators_word_is_taken_and_absent_waits_as_for_anybody() {
    let bench = Bench::new().await;
    bench.endpoint(asked("fan_17")).await;
    let judgement = |view: &JobView, verdict| Judgement {
        job: view.job.id,
        seen: view.job.attempt,
        verdict,
        reason: "their support says so".into(),
        actor: "on-call".into(),
    };
    let one = owed(&bench, "one", "fan_17").await;
    let judged = bench.engine.judge(bench.tenant, judgement(&one, LookUpVerdict::Absent)).await.unwrap();
    let settled_at = one.attempts[0].end.finished_at.after(DurationMs::from_mins(2));
    assert_eq!(Some(settled_at), judged.believed_at);
    assert_eq!(Some(settled_at), judged.operated.due_at);
    let judged = bench.engine.judge(bench.tenant, judgement(&one, LookUpVerdict::Present)).await.unwrap();
    assert_eq!(StateName::Committed, judged.operated.state);
    let said = custody(&bench, "one").await;
    assert!(said.iter().all(|said| said.contains("their support says so")), "{said:?}");

    let two = owed(&bench, "two", "fan_17").await;
    let stale = Judgement { seen: None, ..judgement(&two, LookUpVerdict::Present) };
    let refused = bench.engine.judge(bench.tenant, stale).await.unwrap_err();
    assert_eq!("attempt_changed", refused.code());
    let asked = bench.engine.look_up_now(bench.tenant, two.job.id, "on-call").await.unwrap();
    assert_eq!((LookUpVerdict::Present, StateName::Committed), (asked.verdict, asked.operated.state));
    let again = bench.engine.look_up_now(bench.tenant, two.job.id, "on-call").await.unwrap_err();
    assert_eq!("wrong_state", again.code(), "nothing is owed any more");
    let settled = bench.engine.judge(bench.tenant, judgement(&two, LookUpVerdict::Absent)).await.unwrap_err();
    assert_eq!("wrong_state", settled.code());
}

#[tokio::test]
async fn r_b4_a_rule_of_the_endpoint_stands_over_the_table_and_is_named() {
    let bench = Bench::new().await;
    let rule = |follows: &str| ClassifySpec::Word(follows.to_owned());
    let classify = [("404", rule("permanent")), ("4xx", rule("retry")), ("timeout", rule("permanent"))];
    let classify = classify.into_iter().map(|(of, rule)| (of.to_owned(), rule)).collect();
    bench.endpoint(EndpointSpec { classify, ..endpoint("fan_17") }).await;
    let timeout =
        SendOutcome::Unanswered { fault: TransportFault::Timeout, sent: true, detail: "slow".to_owned() };
    for (key, outcome, state, policy) in [
        (
            "not-found",
            posthaste_testkit::answer(404, None),
            StateName::DeadLettered,
            "the failure is permanent, by endpoint[fan_17].classify 404 = permanent",
        ),
        (
            "refused",
            posthaste_testkit::answer(401, None),
            StateName::Retryable,
            "retried after backoff, by endpoint[fan_17].classify 4xx = retry",
        ),
        (
            "slow",
            timeout,
            StateName::DeadLettered,
            "the failure is permanent, by endpoint[fan_17].classify timeout = permanent",
        ),
        ("down", posthaste_testkit::answer(500, None), StateName::Retryable, "retried after backoff"),
    ] {
        bench.sender.then(Scripted::Outcome(outcome));
        bench.publish(message(key, PublishTo::Endpoints(vec![id("fan_17")]))).await;
        let view = bench.ended(key, 1).await;
        assert_eq!((state, policy), (view.job.state.name(), &*view.attempts[0].end.policy), "{key}");
    }
}

#[tokio::test]
async fn r_c10_a_look_up_must_be_sayable_when_it_is_configured() {
    let bench = Bench::new().await;
    let mut without = asked("fan_17");
    without.reconcile = None;
    let mut unused = asked("fan_17");
    unused.on_unknown = None;
    let mut hasty = asked("fan_17");
    hasty.reconcile.as_mut().unwrap().settle = DurationText(DurationMs::from_secs(1));
    for (spec, path) in [(without, "on_unknown"), (unused, "reconcile"), (hasty, "reconcile.settle")] {
        let refused = bench
            .engine
            .put_endpoint(bench.tenant, spec, ManagedBy::Api, false)
            .await
            .unwrap_err()
            .to_string();
        assert!(refused.starts_with(&format!("{path}: ")), "{refused}");
    }
}
