//! Push deliveries end to end: published, leased, signed, sent, classified, retried, settled.

use crate::support::{Bench, endpoint, id, message, retry};
use posthaste_core::{AttemptOutcome, Cause, Class, Effect, Evidence, State, StateName, TransportFault};
use posthaste_engine::{PublishTo, config::OnUnknownSpec, ports::SendOutcome};
use posthaste_receiver::{Request, Scheme, Verifier, VerifyOptions};
use posthaste_testkit::{Scripted, header};

#[tokio::test]
async fn r_d1_a_delivery_is_signed_when_it_is_sent_and_keeps_its_identity() {
    let bench = Bench::new().await;
    bench.endpoint(endpoint("fan_17")).await;
    bench.sender.then_status(503);
    bench.publish(message("ship_482:v3", PublishTo::Endpoints(vec![id("fan_17")]))).await;
    let waiting = bench.job_in("ship_482:v3", StateName::Retryable).await;
    bench.advance(10);
    let done = bench.job_in("ship_482:v3", StateName::Committed).await;
    assert_eq!(waiting.job.id, done.job.id);

    let sent = bench.sender.sent();
    assert_eq!(2, sent.len());
    let of = |index: usize, name: &str| header(&sent[index], name).unwrap();
    for (index, request) in sent.iter().enumerate() {
        assert_eq!("https://fan_17.example.com/hooks", request.url);
        assert_eq!(b"{\"a\":1}", request.body.as_ref());
        assert_eq!(done.job.id.to_string(), of(index, "webhook-id"));
        assert_eq!("ship_482:v3:fan_17", of(index, "idempotency-key"));
        assert_eq!((index + 1).to_string(), of(index, "posthaste-attempt"));
        assert_eq!("ship.updated", of(index, "posthaste-event-type"));
        let headers: Vec<(&str, &[u8])> =
            request.headers.iter().map(|(name, value)| (name.as_str(), value.as_slice())).collect();
        let signed = Request { method: "POST", url: &request.url, headers: &headers, body: &request.body };
        let options = VerifyOptions { tolerance_seconds: Some(0), hmac: None };
        let secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let verifier = Verifier::new(Scheme::StandardWebhooks, &[secret], &options).unwrap();
        let sent_at: i64 = of(index, "webhook-timestamp").parse().unwrap();
        verifier.verify(&signed, sent_at * 1_000).unwrap();
    }
    assert_ne!(of(0, "webhook-timestamp"), of(1, "webhook-timestamp"), "signed anew at each send");
}

#[tokio::test]
async fn r_b5_a_retry_after_holds_the_whole_lane() {
    let bench = Bench::new().await;
    bench.endpoint(endpoint("fan_17")).await;
    bench.sender.then_retry_after(429, "120");
    bench.publish(message("one", PublishTo::Endpoints(vec![id("fan_17")]))).await;
    bench.job_in("one", StateName::Retryable).await;
    bench.publish(message("two", PublishTo::Endpoints(vec![id("fan_17")]))).await;
    bench.advance(119);
    tokio::task::yield_now().await;
    assert_eq!(1, bench.sender.sent().len(), "nothing goes to a receiver that asked for quiet");
    bench.advance(30);
    bench.job_in("one", StateName::Committed).await;
    bench.job_in("two", StateName::Committed).await;
    let one = bench.jobs("one").await.remove(0);
    assert_eq!(Some(Class::Throttled), one.attempts[0].end.report.class);
    let wait = one.attempts[0].end.next_at.unwrap().since(one.attempts[0].end.finished_at);
    assert!((120_000..=130_000).contains(&wait.0), "{wait:?}");
}

#[tokio::test]
async fn r_b7_exhaustion_dead_letters_with_every_attempt() {
    let bench = Bench::new().await;
    bench.endpoint(support_retry("fan_17", 3)).await;
    for _ in 0..3 {
        bench.sender.then_status(500);
    }
    bench.publish(message("k", PublishTo::Endpoints(vec![id("fan_17")]))).await;
    for ended in 1..=2 {
        bench.ended("k", ended).await;
        bench.advance(100_000);
    }
    let dead = bench.job_in("k", StateName::DeadLettered).await;
    assert!(matches!(dead.job.state, State::DeadLettered { cause: Cause::Exhausted, .. }));
    assert_eq!(3, dead.attempts.len());
    for attempt in &dead.attempts {
        assert_eq!(AttemptOutcome::Failed, attempt.end.report.outcome);
        assert_eq!(Some(Class::ServerError), attempt.end.report.class);
        assert_eq!(Effect::Possible, attempt.end.report.effect);
        assert_eq!(Some(500), attempt.end.details.status);
        assert_eq!(Some(&b"scripted"[..]), attempt.end.details.excerpt.as_deref());
    }
    assert!(bench.engine.metrics().encode().contains("posthaste_dead_lettered_total{cause=\"exhausted\"} 1"));
}

fn support_retry(name: &str, failures_max: u32) -> posthaste_engine::config::EndpointSpec {
    posthaste_engine::config::EndpointSpec { retry: Some(retry(failures_max)), ..endpoint(name) }
}

#[tokio::test]
async fn r_b4_what_never_left_is_told_apart_from_what_may_have_arrived() {
    let bench = Bench::new().await;
    bench.endpoint(endpoint("fan_17")).await;
    for (fault, sent) in [(TransportFault::Connect, false), (TransportFault::Timeout, true)] {
        let detail = "scripted".to_owned();
        bench.sender.then(Scripted::Outcome(SendOutcome::Unanswered { fault, sent, detail }));
    }
    bench.sender.then(Scripted::Outcome(SendOutcome::Blocked { reason: "10.0.0.1 is private".to_owned() }));
    bench.publish(message("k", PublishTo::Endpoints(vec![id("fan_17")]))).await;
    for ended in 1..=3 {
        bench.ended("k", ended).await;
        bench.advance(100_000);
    }
    let view = bench.job_in("k", StateName::Committed).await;
    let seen: Vec<_> = view
        .attempts
        .iter()
        .map(|a| (a.end.report.class, a.end.report.effect, a.end.report.outcome))
        .collect();
    let failed = AttemptOutcome::Failed;
    assert_eq!(
        vec![
            (Some(Class::Connect), Effect::None, failed),
            (Some(Class::Timeout), Effect::Possible, failed),
            (Some(Class::Blocked), Effect::None, failed),
            (None, Effect::Reported, AttemptOutcome::Committed),
        ],
        seen
    );
}

#[tokio::test]
async fn r_b4_a_permanent_refusal_is_not_repeated() {
    for (status, cause) in [
        (400, Cause::Permanent),
        (401, Cause::Permanent),
        (422, Cause::Permanent),
        (410, Cause::EndpointGone),
    ] {
        let bench = Bench::new().await;
        bench.endpoint(endpoint("fan_17")).await;
        bench.sender.then_status(status);
        bench.publish(message("k", PublishTo::Endpoints(vec![id("fan_17")]))).await;
        let dead = bench.job_in("k", StateName::DeadLettered).await;
        assert!(matches!(dead.job.state, State::DeadLettered { cause: c, .. } if c == cause), "{status}");
        assert_eq!(1, bench.sender.sent().len());
    }
}

#[tokio::test]
async fn r_c10_an_unknown_outcome_is_left_to_a_person_where_that_is_configured() {
    let bench = Bench::new().await;
    let spec = posthaste_engine::config::EndpointSpec {
        on_unknown: Some(OnUnknownSpec::DeadLetter),
        ..endpoint("fan_17")
    };
    bench.endpoint(spec).await;
    let (fault, detail) = (TransportFault::Timeout, "scripted".to_owned());
    bench.sender.then(Scripted::Outcome(SendOutcome::Unanswered { fault, sent: true, detail }));
    bench.publish(message("k", PublishTo::Endpoints(vec![id("fan_17")]))).await;
    let dead = bench.job_in("k", StateName::DeadLettered).await;
    assert!(matches!(dead.job.state, State::DeadLettered { cause: Cause::OutcomeUnknown, .. }));
    assert!(dead.attempts[0].end.started_at.is_some(), "the start was committed before the first byte");
}

#[tokio::test]
async fn r_b3_a_receivers_ledger_is_believed() {
    let bench = Bench::new().await;
    bench.endpoint(endpoint("fan_17")).await;
    let SendOutcome::Answered(answered) = posthaste_testkit::answer(200, None) else { unreachable!() };
    let ledger = Some(b"path=duplicate_done, outcome=committed, attempt=1".to_vec());
    let answered = posthaste_engine::ports::Answered { ledger, ..answered };
    bench.sender.then(Scripted::Outcome(SendOutcome::Answered(answered)));
    bench.publish(message("k", PublishTo::Endpoints(vec![id("fan_17")]))).await;
    let done = bench.job_in("k", StateName::Committed).await;
    assert!(matches!(done.job.state, State::Committed { evidence: Evidence::Ledger, .. }));
    assert_eq!(AttemptOutcome::Duplicate, done.attempts[0].end.report.outcome);
}

#[tokio::test]
async fn r_b15_a_drain_waits_for_what_runs_and_reports_what_it_cut_off() {
    let bench = Bench::new().await;
    bench.endpoint(endpoint("fan_17")).await;
    bench.sender.then(Scripted::Hang);
    bench.publish(message("k", PublishTo::Endpoints(vec![id("fan_17")]))).await;
    bench.sender.wait_for(1).await;
    let engine = bench.engine.clone();
    let draining = tokio::spawn(async move { engine.drain(posthaste_core::DurationMs::from_secs(30)).await });
    while !bench.engine.is_draining() {
        tokio::task::yield_now().await;
    }
    let refused = bench.engine.publish(bench.tenant, vec![message("x", PublishTo::Subscribers)]).await;
    assert_eq!("draining", refused.unwrap_err().code());
    bench.advance(31);
    draining.await.unwrap();
    let view = bench.job_in("k", StateName::Retryable).await;
    assert_eq!(Effect::Possible, view.attempts[0].end.report.effect, "it may have arrived");
}

#[test]
fn r_b15_a_new_process_finds_all_work_from_the_rows_alone() {
    let process = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = process();
    let (store, clock) = first.block_on(async {
        let bench = Bench::new().await;
        bench.endpoint(endpoint("fan_17")).await;
        bench.sender.then(Scripted::Hang);
        bench.publish(message("running", PublishTo::Endpoints(vec![id("fan_17")]))).await;
        bench.sender.wait_for(1).await;
        let later = posthaste_engine::Publish {
            due: posthaste_engine::PublishDue::In(posthaste_core::DurationMs::from_hours(24)),
            ..message("later", PublishTo::Endpoints(vec![id("fan_17")]))
        };
        bench.publish(later).await;
        (bench.store.clone(), bench.clock.clone())
    });
    // The first process is gone without a word; only its rows stay.
    drop(first);
    process().block_on(async {
        let next = Bench::over(store, clock).await;
        next.advance(60);
        next.ended("running", 1).await;
        next.advance(86_500);
        let running = next.job_in("running", StateName::Committed).await;
        assert_eq!(AttemptOutcome::LeaseLost, running.attempts[0].end.report.outcome);
        assert_eq!(2, running.attempts.len());
        next.job_in("later", StateName::Committed).await;
    });
}

#[tokio::test]
async fn r_b13_a_message_goes_to_every_endpoint_that_wants_its_type() {
    let bench = Bench::new().await;
    for (name, types) in [("a", vec!["ship.*"]), ("b", vec!["*"]), ("c", vec!["bill.*"]), ("d", vec![])] {
        let types = types.into_iter().map(str::to_owned).collect();
        bench.endpoint(posthaste_engine::config::EndpointSpec { types, ..endpoint(name) }).await;
    }
    let published = bench.publish(message("k", PublishTo::Subscribers)).await;
    assert_eq!(2, published.message.jobs_total);
    bench.sender.wait_for(2).await;
    let mut urls: Vec<String> = bench.sender.sent().into_iter().map(|request| request.url).collect();
    urls.sort();
    assert_eq!(vec!["https://a.example.com/hooks", "https://b.example.com/hooks"], urls);
    let other = posthaste_engine::Publish {
        event_type: Some("nobody.wants".into()),
        ..message("unrouted", PublishTo::Endpoints(vec![]))
    };
    let unrouted = bench.publish(other).await;
    assert_eq!(0, unrouted.message.jobs_total);
    assert!(bench.engine.metrics().encode().contains("posthaste_unrouted_total 1"));
}

#[tokio::test]
async fn r_b16_an_endpoint_gets_no_more_requests_at_once_than_it_may() {
    let bench = Bench::new().await;
    bench.endpoint(posthaste_engine::config::EndpointSpec { concurrency: Some(3), ..endpoint("slow") }).await;
    bench.endpoint(endpoint("quick")).await;
    // It earns its slots by answering.
    for number in 0..3 {
        let key = format!("earned-{number}");
        bench.publish(message(&key, PublishTo::Endpoints(vec![id("slow")]))).await;
        bench.job_in(&key, StateName::Committed).await;
    }
    for _ in 0..3 {
        bench.sender.then(Scripted::Hang);
    }
    for number in 0..10 {
        bench.publish(message(&format!("slow-{number}"), PublishTo::Endpoints(vec![id("slow")]))).await;
    }
    bench.sender.wait_for(6).await;
    bench.publish(message("quick-1", PublishTo::Endpoints(vec![id("quick")]))).await;
    bench.job_in("quick-1", StateName::Committed).await;
    let sent = bench.sender.sent().len();
    assert_eq!(3 + 3 + 1, sent, "three that were answered, three that hang, and the other endpoint's");
}

#[tokio::test]
async fn a_deleted_endpoints_jobs_are_dead_lettered_with_the_cause() {
    let bench = Bench::new().await;
    bench.endpoint(endpoint("fan_17")).await;
    let delayed = posthaste_engine::Publish {
        due: posthaste_engine::PublishDue::In(posthaste_core::DurationMs::from_hours(1)),
        ..message("k", PublishTo::Endpoints(vec![id("fan_17")]))
    };
    bench.publish(delayed).await;
    let kind = posthaste_store::DestinationKind::Endpoint;
    bench.engine.delete_destination(bench.tenant, kind, &id("fan_17")).await.unwrap();
    let dead = bench.job_in("k", StateName::DeadLettered).await;
    assert!(matches!(dead.job.state, State::DeadLettered { cause: Cause::EndpointGone, .. }));
    assert!(bench.sender.sent().is_empty());
}

#[tokio::test]
async fn r_b16_a_capped_lane_goes_on_with_each_slot_that_comes_free() {
    let bench = Bench::new().await;
    let spec = posthaste_engine::config::EndpointSpec { concurrency: Some(2), ..endpoint("slow") };
    bench.endpoint(spec).await;
    for number in 0..50 {
        bench.publish(message(&format!("k-{number}"), PublishTo::Endpoints(vec![id("slow")]))).await;
    }
    for number in 0..50 {
        bench.job_in(&format!("k-{number}"), StateName::Committed).await;
    }
    assert_eq!(50, bench.sender.sent().len());
}
