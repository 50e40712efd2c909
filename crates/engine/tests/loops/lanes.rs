//! Pauses, circuits and disabled endpoints through the engine. Rows B4, B6, B10, D4.

use crate::support::{Bench, endpoint, id, message, retry};
use posthaste_core::{Cause, DurationMs, State, StateName, TenantId};
use posthaste_engine::{
    Consume, Held, PauseScope, Publish, PublishDue, PublishTo, Why,
    config::{CircuitSpec, DurationText, EndpointSpec},
    ports::{Answered, SendOutcome},
};
use posthaste_store::{DestinationKind, ManagedBy, Stage};
use posthaste_testkit::{Scripted, answer};

fn fan() -> PublishTo {
    PublishTo::Endpoints(vec![id("fan")])
}

fn why() -> Why {
    Why { reason: "an incident".into(), actor: "on-call".into() }
}

fn scope(kind: DestinationKind, name: &str) -> PauseScope {
    PauseScope::Destination { kind, id: id(name) }
}

impl Bench {
    async fn pause(&self, scope: &PauseScope) -> bool {
        self.engine.pause(self.tenant, scope, why()).await.unwrap().changed
    }

    async fn resume(&self, scope: &PauseScope) -> bool {
        self.engine.resume(self.tenant, scope, why()).await.unwrap().changed
    }

    fn held(&self, name: &str) -> Held {
        let directory = self.engine.directory();
        self.engine.held(directory.find(self.tenant, &id(name)).unwrap())
    }

    async fn stages(&self, key: &str) -> Vec<(Stage, String)> {
        let key = posthaste_core::MessageKey::new(key).unwrap();
        let timeline = self.engine.timeline(self.tenant, &key, None).await.unwrap().unwrap();
        let said = |name: &str, detail: &serde_json::Map<String, serde_json::Value>| {
            detail.get(name).and_then(|value| value.as_str().map(str::to_owned)).unwrap_or_default()
        };
        let held =
            timeline.entries.iter().filter(|entry| matches!(entry.stage, Stage::Paused | Stage::Resumed));
        held.map(|entry| {
            let detail = &entry.detail;
            (
                entry.stage,
                format!("{} {} {}", said("scope", detail), said("what", detail), said("reason", detail)),
            )
        })
        .collect()
    }
}

/// Lets everything that can go on go on.
async fn settle() {
    for _ in 0..500 {
        tokio::task::yield_now().await;
    }
}

#[tokio::test]
async fn r_b10_nothing_goes_to_a_paused_endpoint_and_all_of_it_after() {
    let bench = Bench::new().await;
    bench.endpoint(endpoint("fan")).await;
    bench.endpoint(endpoint("other")).await;
    let fan_scope = scope(DestinationKind::Endpoint, "fan");
    assert!(bench.pause(&fan_scope).await);
    assert!(!bench.pause(&fan_scope).await, "a second pause changes nothing");
    bench.publish(message("one", fan())).await;
    bench.publish(message("two", PublishTo::Endpoints(vec![id("other")]))).await;
    bench.job_in("two", StateName::Committed).await;
    bench.advance(60);
    settle().await;
    assert_eq!(1, bench.sender.sent().len());
    assert_eq!("an incident", &*bench.held("fan").paused.unwrap().reason);
    bench.engine.refresh_gauges().await;
    let metrics = bench.engine.metrics().encode();
    assert!(metrics.contains("posthaste_held_jobs 1"), "{metrics}");
    assert!(
        metrics.contains("oldest_due_job_age_seconds{destination_kind=\"endpoint\",outcome=\"none\"} 0.0"),
        "held lanes apart: {metrics}"
    );
    assert!(bench.resume(&fan_scope).await);
    bench.job_in("one", StateName::Committed).await;
    assert!(!bench.resume(&fan_scope).await);
    let stages = bench.stages("one").await;
    let [(Stage::Paused, paused), (Stage::Resumed, _)] = &stages[..] else { panic!("{stages:?}") };
    assert_eq!("endpoint  an incident", paused);
    assert!(bench.stages("two").await.is_empty(), "it is not concerned");
}

#[tokio::test]
async fn r_b10_workers_of_a_paused_queue_wait_and_are_woken() {
    let bench = Bench::new().await;
    bench.queue("carts").await;
    let queue = scope(DestinationKind::Queue, "carts");
    bench.pause(&queue).await;
    bench.publish(message("k", PublishTo::Queue(id("carts")))).await;
    let consume = |wait| Consume {
        queue: id("carts"),
        max: 5,
        wait: DurationMs::from_secs(wait),
        lease: None,
        worker: "w-1".into(),
    };
    assert!(bench.engine.consume(bench.tenant, consume(0)).await.unwrap().is_empty());
    let engine = bench.engine.clone();
    let (tenant, asked) = (bench.tenant, consume(20));
    let waiting = tokio::spawn(async move { engine.consume(tenant, asked).await.unwrap() });
    settle().await;
    assert!(!waiting.is_finished());
    bench.resume(&queue).await;
    assert_eq!(1, waiting.await.unwrap().len());
}

#[tokio::test]
async fn r_b10_paused_scheduling_holds_new_publishes_and_stands_apart_from_other_pauses() {
    let bench = Bench::new().await;
    bench.endpoint(endpoint("fan")).await;
    bench.sender.then_status(503);
    bench.publish(message("before", fan())).await;
    bench.job_in("before", StateName::Retryable).await;
    bench.advance(1);
    assert!(bench.pause(&PauseScope::Scheduling).await);
    let told = bench.engine.scheduling_pause(bench.tenant).unwrap();
    assert_eq!(("an incident", "on-call"), (&*told.reason, &*told.by));
    assert_eq!(None, bench.engine.scheduling_pause(TenantId(99)));
    bench.publish(message("new", fan())).await;
    bench.advance(60);
    bench.job_in("before", StateName::Committed).await;
    settle().await;
    assert_eq!(StateName::Scheduled, bench.jobs("new").await[0].job.state.name());
    let fan_scope = scope(DestinationKind::Endpoint, "fan");
    bench.pause(&fan_scope).await;
    assert!(bench.resume(&PauseScope::Scheduling).await);
    settle().await;
    assert_eq!(
        StateName::Scheduled,
        bench.jobs("new").await[0].job.state.name(),
        "the endpoint stays paused"
    );
    bench.resume(&fan_scope).await;
    bench.job_in("new", StateName::Committed).await;
    let scopes: Vec<String> = bench.stages("new").await.into_iter().map(|(_, told)| told).collect();
    assert_eq!(4, scopes.len(), "{scopes:?}");
    assert!(scopes[0].starts_with("scheduling"), "{scopes:?}");
}

#[tokio::test]
async fn r_b10_a_pause_needs_a_reason_and_something_to_pause() {
    let bench = Bench::new().await;
    bench.queue("carts").await;
    let pause = |scope, reason: String| {
        let why = Why { reason: reason.into(), actor: "a".into() };
        let (engine, tenant) = (bench.engine.clone(), bench.tenant);
        async move { engine.pause(tenant, &scope, why).await.unwrap_err().code() }
    };
    assert_eq!("invalid_value", pause(PauseScope::Scheduling, "  ".to_owned()).await);
    assert_eq!("invalid_value", pause(PauseScope::Scheduling, "x".repeat(1_025)).await);
    let wrong_kind = scope(DestinationKind::Endpoint, "carts");
    assert_eq!("unknown_endpoint", pause(wrong_kind, "x".to_owned()).await);
}

#[test]
fn case_b43_a_pause_survives_a_restart_and_loses_and_doubles_nothing() {
    let process = || tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    let first = process();
    let (store, clock) = first.block_on(async {
        let bench = Bench::new().await;
        bench.endpoint(EndpointSpec { retry: Some(retry(1)), ..endpoint("fan") }).await;
        bench.queue("carts").await;
        bench.sender.then_status(503);
        bench.publish(message("failed", fan())).await;
        let failed = bench.job_in("failed", StateName::DeadLettered).await;
        // In flight when it is paused.
        bench.sender.then(Scripted::Hang);
        bench.publish(message("in-flight", fan())).await;
        bench.sender.wait_for(2).await;
        let fan_scope = scope(DestinationKind::Endpoint, "fan");
        bench.pause(&fan_scope).await;
        bench.pause(&fan_scope).await;
        bench.pause(&scope(DestinationKind::Queue, "carts")).await;
        bench.publish(message("added", fan())).await;
        let due = PublishDue::In(DurationMs::from_secs(1));
        bench.publish(Publish { due, ..message("delayed", fan()) }).await;
        bench.publish(message("called-off", fan())).await;
        let again = posthaste_engine::RoundAgain {
            job: failed.job.id,
            seen: failed.job.attempt,
            reason: "again".into(),
            actor: "on-call".into(),
        };
        bench.engine.replay(bench.tenant, again, posthaste_engine::Assume::Nothing).await.unwrap_err();
        let again = posthaste_engine::RoundAgain {
            job: failed.job.id,
            seen: failed.job.attempt,
            reason: "again".into(),
            actor: "on-call".into(),
        };
        bench.engine.replay(bench.tenant, again, posthaste_engine::Assume::NotDone).await.unwrap();
        let off = bench.jobs("called-off").await.remove(0).job.id;
        bench.engine.cancel(bench.tenant, off, "not needed", "on-call").await.unwrap();
        bench.advance(60);
        settle().await;
        assert_eq!(2, bench.sender.sent().len(), "nothing starts");
        (bench.store.clone(), bench.clock.clone())
    });
    drop(first);
    process().block_on(async {
        let next = Bench::over(store, clock).await;
        next.advance(60);
        settle().await;
        assert!(next.sender.sent().is_empty(), "nor after a restart");
        assert_eq!("an incident", &*next.held("fan").paused.unwrap().reason);
        // Whoever was paused by itself stays so.
        assert!(next.resume(&scope(DestinationKind::Endpoint, "fan")).await, "one resume for two pauses");
        next.advance(100);
        for key in ["added", "delayed", "failed"] {
            next.job_in(key, StateName::Committed).await;
        }
        assert_eq!(StateName::Cancelled, next.jobs("called-off").await[0].job.state.name());
        let mut sent: Vec<String> = next
            .sender
            .sent()
            .iter()
            .map(|request| posthaste_testkit::header(request, "idempotency-key").unwrap())
            .collect();
        sent.sort();
        sent.dedup();
        assert_eq!(next.sender.sent().len(), sent.len(), "each once");
        assert!(next.held("carts").paused.is_some());
    });
}

#[tokio::test]
async fn case_b43_an_endpoint_that_is_deleted_while_paused_leaves_no_job_without_an_end() {
    let bench = Bench::new().await;
    bench.endpoint(endpoint("fan")).await;
    bench.pause(&scope(DestinationKind::Endpoint, "fan")).await;
    bench.publish(message("k", fan())).await;
    let kind = DestinationKind::Endpoint;
    bench.engine.delete_destination(bench.tenant, kind, &id("fan")).await.unwrap();
    let dead = bench.job_in("k", StateName::DeadLettered).await;
    assert!(matches!(dead.job.state, State::DeadLettered { cause: Cause::EndpointGone, .. }));
    // A new one of the same name begins without the pause.
    bench.endpoint(endpoint("fan")).await;
    bench.publish(message("anew", fan())).await;
    bench.job_in("anew", StateName::Committed).await;
}

#[tokio::test]
async fn case_b43_what_is_in_flight_when_it_is_paused_finishes() {
    let bench = Bench::new().await;
    bench.queue("carts").await;
    let queue = scope(DestinationKind::Queue, "carts");
    for number in 0..50 {
        bench.publish(message(&format!("k-{number}"), PublishTo::Queue(id("carts")))).await;
    }
    let consume =
        Consume { queue: id("carts"), max: 50, wait: DurationMs::ZERO, lease: None, worker: "w-1".into() };
    let jobs = bench.engine.consume(bench.tenant, consume).await.unwrap();
    bench.pause(&queue).await;
    let reports = jobs
        .iter()
        .map(|leased| posthaste_engine::WorkerReport {
            job: leased.job.id,
            fence: leased.fence.to_string().into(),
            report: posthaste_engine::WorkerSays::Ack {
                outcome: posthaste_core::FinishOutcome::Committed,
                result: None,
                reason: None,
            },
        })
        .collect();
    let answers = bench.engine.report(bench.tenant, "w-1", reports).await.unwrap();
    assert!(answers.len() == 50 && answers.iter().all(Result::is_ok));
}

#[tokio::test]
async fn r_d4_a_receiver_that_is_gone_is_disabled_and_what_is_left_is_held() {
    let bench = Bench::new().await;
    bench.endpoint(EndpointSpec { types: vec!["*".to_owned()], ..endpoint("fan") }).await;
    bench.sender.then_status(410);
    bench.publish(message("gone", fan())).await;
    bench.job_in("gone", StateName::DeadLettered).await;
    let disabled = bench.held("fan").disabled.unwrap();
    assert!(disabled.reason.contains("410"), "{disabled:?}");
    bench.publish(message("addressed", fan())).await;
    let subscribed = bench.publish(message("subscribed", PublishTo::Subscribers)).await;
    assert_eq!(1, subscribed.message.jobs_total, "it is still owed what it subscribed to");
    // A file that is read again does not undo it.
    let spec = endpoint("fan");
    bench.engine.put_endpoint(bench.tenant, spec, ManagedBy::File, false).await.unwrap();
    bench.advance(100_000);
    settle().await;
    assert_eq!(1, bench.sender.sent().len());
    let outcome = bench.engine.enable_endpoint(bench.tenant, &id("fan"), why()).await.unwrap();
    assert!(outcome.changed && outcome.held == Held::default());
    for key in ["addressed", "subscribed"] {
        bench.job_in(key, StateName::Committed).await;
    }
    let again = bench.engine.enable_endpoint(bench.tenant, &id("fan"), why()).await.unwrap();
    assert!(!again.changed);
}

#[tokio::test]
async fn r_d4_a_receiver_can_ask_not_to_be_sent_anything_or_not_this_message() {
    let bench = Bench::new().await;
    bench.endpoint(endpoint("fan")).await;
    let says = |status, word: &str| {
        let SendOutcome::Answered(answered) = answer(status, None) else { unreachable!() };
        let delivery_control = Some(word.as_bytes().to_vec());
        Scripted::Outcome(SendOutcome::Answered(Answered { delivery_control, ..answered }))
    };
    bench.sender.then(says(503, "abort-message"));
    bench.publish(message("aborted", fan())).await;
    let dead = bench.job_in("aborted", StateName::DeadLettered).await;
    assert!(matches!(dead.job.state, State::DeadLettered { cause: Cause::Permanent, .. }));
    assert_eq!(Held::default(), bench.held("fan"), "that message only");
    bench.sender.then(says(200, "Disable"));
    bench.publish(message("last", fan())).await;
    bench.job_in("last", StateName::Committed).await;
    assert!(bench.held("fan").disabled.unwrap().reason.contains("webhook-delivery"));
    bench.publish(message("next", fan())).await;
    settle().await;
    assert_eq!(2, bench.sender.sent().len());
}

#[tokio::test]
async fn r_b4_five_refusals_open_the_circuit_and_the_rest_is_not_burnt() {
    let bench = Bench::new().await;
    bench.endpoint(endpoint("fan")).await;
    for _ in 0..12 {
        bench.sender.then_status(401);
    }
    for number in 0..20 {
        bench.publish(message(&format!("k-{number}"), fan())).await;
    }
    bench.sender.wait_for(5).await;
    settle().await;
    // Those that were on their way went through; none of the others did.
    let sent = bench.sender.sent().len();
    assert!((5..=12).contains(&sent), "{sent}");
    assert_eq!("open", bench.held("fan").circuit.word(bench.engine.now()));
    for _ in 0..10 {
        bench.advance(900);
        settle().await;
    }
    assert_eq!((20, Held::default()), (bench.sender.sent().len(), bench.held("fan")));
    let mut committed = 0;
    for number in 0..20 {
        let state = bench.jobs(&format!("k-{number}")).await[0].job.state.name();
        committed += usize::from(state == StateName::Committed);
    }
    assert_eq!(8, committed);
}

#[tokio::test]
async fn r_d4_a_probe_closes_the_circuit_and_its_limits_can_be_configured() {
    let bench = Bench::new().await;
    let seconds = |seconds| Some(DurationText(DurationMs::from_secs(seconds)));
    let circuit = CircuitSpec {
        failures: Some(1),
        open_for: seconds(5),
        open_for_max: seconds(7),
        disable_after: None,
    };
    bench.endpoint(EndpointSpec { circuit: Some(circuit), ..endpoint("fan") }).await;
    bench.sender.then_status(500);
    bench.sender.then_status(500);
    bench.publish(message("a", fan())).await;
    bench.ended("a", 1).await;
    bench.publish(message("b", fan())).await;
    bench.advance(4);
    settle().await;
    assert_eq!(1, bench.sender.sent().len());
    bench.advance(1);
    bench.sender.wait_for(2).await;
    settle().await;
    let until = bench.held("fan").circuit.held().unwrap().1;
    assert_eq!(7_000, until.since(bench.engine.now()).0, "doubled, up to its most");
    bench.advance(7);
    bench.job_in("a", StateName::Committed).await;
    bench.job_in("b", StateName::Committed).await;
    let stages = bench.stages("b").await;
    let [(Stage::Paused, opened), (Stage::Resumed, closed)] = &stages[..] else { panic!("{stages:?}") };
    assert!(opened.contains("circuit") && closed.contains("answers again"), "{stages:?}");
}
