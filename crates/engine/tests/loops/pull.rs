//! Pull workers: consume, extend, report; leases that run out; fences.

use crate::support::{Bench, id, message};
use posthaste_core::{CancelAnswer, Class, DurationMs, FinishOutcome, JobId, Path, RetryWish, StateName};
use posthaste_engine::{
    Consume, EngineError, Publish, PublishDue, PublishTo, WorkerAnswer, WorkerReport, WorkerSays,
};
use posthaste_store::LeasedJob;

fn consume(wait_seconds: u64) -> Consume {
    Consume {
        queue: id("carts"),
        max: 10,
        wait: DurationMs::from_secs(wait_seconds),
        lease: Some(DurationMs::from_secs(60)),
        worker: "w-1".into(),
    }
}

async fn take_one(bench: &Bench) -> LeasedJob {
    let mut jobs = bench.engine.consume(bench.tenant, consume(0)).await.unwrap();
    assert_eq!(1, jobs.len());
    jobs.remove(0)
}

async fn report(
    bench: &Bench,
    job: JobId,
    fence: &str,
    says: WorkerSays,
) -> Result<WorkerAnswer, EngineError> {
    let report = WorkerReport { job, fence: fence.into(), report: says };
    bench.engine.report(bench.tenant, "w-1", vec![report]).await.unwrap().remove(0)
}

fn ack() -> WorkerSays {
    WorkerSays::Ack { outcome: FinishOutcome::Committed, result: None, reason: None }
}

fn reject() -> WorkerSays {
    WorkerSays::Reject {
        class: Class::Worker,
        effect: None,
        retry: RetryWish::ByTable,
        retry_after: None,
        code: Some("E17".into()),
        message: Some("no paper".into()),
    }
}

fn code(answer: Result<WorkerAnswer, EngineError>) -> &'static str {
    answer.unwrap_err().code()
}

fn state(answer: Result<WorkerAnswer, EngineError>) -> StateName {
    match answer.unwrap() {
        WorkerAnswer::Moved { state, .. } => state,
        WorkerAnswer::Extended { .. } => panic!("not a state"),
    }
}

async fn bench_with(key: &str) -> Bench {
    let bench = Bench::new().await;
    bench.queue("carts").await;
    bench.publish(message(key, PublishTo::Queue(id("carts")))).await;
    bench
}

#[tokio::test]
async fn r_b3_a_superseded_worker_changes_nothing_and_its_commit_is_remembered() {
    let bench = bench_with("k").await;
    let first = take_one(&bench).await;
    assert_eq!(Path::FirstRun, first.path);
    bench.advance(61);
    bench.job_in("k", StateName::Retryable).await;
    bench.advance(3_600);
    let second = take_one(&bench).await;
    assert_eq!(Path::RetryAfterFailure, second.path);
    assert_eq!(first.job.id, second.job.id);
    assert_ne!(first.fence, second.fence);

    let stale = first.fence.to_string();
    assert_eq!("stale_fence", code(report(&bench, first.job.id, &stale, ack()).await));
    assert_eq!("stale_fence", code(report(&bench, first.job.id, &stale, reject()).await));
    bench.job_in("k", StateName::Leased).await;
    // The second attempt fails: a third is not needed, since the first one's commit was heard.
    let fence = second.fence.to_string();
    assert_eq!(StateName::Committed, state(report(&bench, second.job.id, &fence, reject()).await));
}

#[tokio::test]
async fn r_b3_a_worker_that_is_merely_late_may_still_finish() {
    let bench = bench_with("k").await;
    let leased = take_one(&bench).await;
    bench.advance(61);
    bench.job_in("k", StateName::Retryable).await;
    let fence = leased.fence.to_string();
    let extend = WorkerSays::Extend { lease: None, checkpoint: None };
    assert_eq!("lease_expired", code(report(&bench, leased.job.id, &fence, extend).await));
    assert_eq!(StateName::Committed, state(report(&bench, leased.job.id, &fence, ack()).await));
    assert_eq!(StateName::Committed, state(report(&bench, leased.job.id, &fence, ack()).await));
    assert_eq!("already_reported", code(report(&bench, leased.job.id, &fence, reject()).await));
}

#[tokio::test]
async fn r_b3_a_repeated_report_gets_the_recorded_answer() {
    let bench = bench_with("k").await;
    let leased = take_one(&bench).await;
    let fence = leased.fence.to_string();
    let first = report(&bench, leased.job.id, &fence, reject()).await.unwrap();
    bench.advance(1);
    let again = report(&bench, leased.job.id, &fence, reject()).await.unwrap();
    assert_eq!(first, again);
    assert_eq!("already_reported", code(report(&bench, leased.job.id, &fence, ack()).await));
    for forged in ["", "1.9", "9.1", "0.1", "not a fence", "01.1"] {
        assert_eq!("stale_fence", code(report(&bench, leased.job.id, forged, ack()).await), "{forged}");
    }
    let nowhere = JobId(7);
    assert_eq!("not_found", code(report(&bench, nowhere, &fence, ack()).await));
}

#[tokio::test]
async fn r_b3_a_checkpoint_reaches_the_successor() {
    let bench = bench_with("k").await;
    let leased = take_one(&bench).await;
    let checkpoint = Some(b"{\"page\":3}".to_vec().into_boxed_slice());
    let extend =
        WorkerSays::Extend { lease: Some(DurationMs::from_secs(90)), checkpoint: checkpoint.clone() };
    let answer = report(&bench, leased.job.id, &leased.fence.to_string(), extend).await.unwrap();
    let WorkerAnswer::Extended { lease_expires_at, cancel_requested } = answer else {
        panic!("not extended")
    };
    assert_eq!(bench.engine.now().after(DurationMs::from_secs(90)), lease_expires_at);
    assert!(!cancel_requested);
    bench.advance(91);
    bench.job_in("k", StateName::Retryable).await;
    bench.advance(3_600);
    assert_eq!(checkpoint, take_one(&bench).await.job.checkpoint);
}

#[tokio::test]
async fn r_b8_a_running_worker_learns_of_the_cancel_on_its_next_heartbeat() {
    let bench = bench_with("k").await;
    let leased = take_one(&bench).await;
    let answer = bench.engine.cancel(bench.tenant, leased.job.id, "order withdrawn", "ops").await.unwrap();
    assert_eq!(CancelAnswer::Requested, answer);
    let extend = WorkerSays::Extend { lease: None, checkpoint: None };
    let fence = leased.fence.to_string();
    let answer = report(&bench, leased.job.id, &fence, extend).await.unwrap();
    assert!(matches!(answer, WorkerAnswer::Extended { cancel_requested: true, .. }));
    assert_eq!(StateName::Cancelled, state(report(&bench, leased.job.id, &fence, reject()).await));
    let view = bench.job_in("k", StateName::Cancelled).await;
    assert_eq!(Some("order withdrawn"), view.job.reason.as_deref());
    let again = bench.engine.cancel(bench.tenant, leased.job.id, "again", "ops").await.unwrap();
    assert_eq!(CancelAnswer::Cancelled, again);
}

#[tokio::test]
async fn r_b8_cancelling_what_waits_or_is_done() {
    let bench = bench_with("k").await;
    let job = bench.jobs("k").await.remove(0).job.id;
    assert!(bench.engine.cancel(bench.tenant, job, " ", "ops").await.is_err(), "a reason is needed");
    let answer = bench.engine.cancel(bench.tenant, job, "why not", "ops").await.unwrap();
    assert_eq!(CancelAnswer::Cancelled, answer);
    assert!(bench.engine.consume(bench.tenant, consume(0)).await.unwrap().is_empty());

    bench.publish(message("done", PublishTo::Queue(id("carts")))).await;
    let leased = take_one(&bench).await;
    report(&bench, leased.job.id, &leased.fence.to_string(), ack()).await.unwrap();
    let answer = bench.engine.cancel(bench.tenant, leased.job.id, "too late", "ops").await.unwrap();
    assert_eq!(CancelAnswer::TooLate, answer);
}

#[tokio::test]
async fn r_b1_scheduled_due_and_started_are_three_facts() {
    let bench = Bench::new().await;
    bench.queue("carts").await;
    let begun = bench.engine.now();
    let delayed = Publish {
        due: PublishDue::In(DurationMs::from_hours(24)),
        ..message("cart:8f31:expire", PublishTo::Queue(id("carts")))
    };
    bench.publish(delayed).await;
    bench.advance(86_399);
    assert!(bench.engine.consume(bench.tenant, consume(0)).await.unwrap().is_empty(), "not before its time");
    bench.advance(6);
    let leased = take_one(&bench).await;
    let scheduled_at = begun.after(DurationMs::from_hours(24));
    assert_eq!(scheduled_at, leased.job.scheduled_at);
    assert_eq!(Some(scheduled_at.after(DurationMs::from_secs(5))), leased.job.started_at);
    report(&bench, leased.job.id, &leased.fence.to_string(), reject()).await.unwrap();
    let view = bench.job_in("cart:8f31:expire", StateName::Retryable).await;
    assert_eq!(scheduled_at, view.job.scheduled_at, "the time asked for never changes");
    assert_eq!(scheduled_at, view.attempts[0].end.due_at);
    assert!(view.job.state.due_at().unwrap() > leased.job.started_at.unwrap());
}

#[tokio::test]
async fn a_waiting_consumer_is_woken_by_a_job_and_by_its_due_time() {
    let bench = Bench::new().await;
    bench.queue("carts").await;
    let waiting = {
        let (engine, tenant) = (bench.engine.clone(), bench.tenant);
        tokio::spawn(async move { engine.consume(tenant, consume(30)).await.unwrap() })
    };
    tokio::task::yield_now().await;
    bench.publish(message("now", PublishTo::Queue(id("carts")))).await;
    assert_eq!("now", waiting.await.unwrap()[0].message.key.as_str());

    let waiting = {
        let (engine, tenant) = (bench.engine.clone(), bench.tenant);
        tokio::spawn(async move { engine.consume(tenant, consume(30)).await.unwrap() })
    };
    tokio::task::yield_now().await;
    let delayed = Publish {
        due: PublishDue::In(DurationMs::from_secs(10)),
        ..message("soon", PublishTo::Queue(id("carts")))
    };
    bench.publish(delayed).await;
    bench.advance(10);
    assert_eq!("soon", waiting.await.unwrap()[0].message.key.as_str());

    let empty = {
        let (engine, tenant) = (bench.engine.clone(), bench.tenant);
        tokio::spawn(async move { engine.consume(tenant, consume(5)).await.unwrap() })
    };
    tokio::task::yield_now().await;
    bench.advance(5);
    assert!(empty.await.unwrap().is_empty());
}

#[tokio::test]
async fn a_release_is_not_charged() {
    let bench = bench_with("k").await;
    for delay in [1, 2, 4] {
        let leased = take_one(&bench).await;
        assert_eq!(Path::FirstRun, leased.path);
        let answer = report(&bench, leased.job.id, &leased.fence.to_string(), WorkerSays::Release).await;
        assert_eq!(StateName::Scheduled, state(answer));
        bench.advance(delay);
    }
    assert_eq!(0, bench.jobs("k").await[0].job.budgets.failures);
}

#[tokio::test]
async fn r_g6_one_tenant_cannot_see_or_touch_anothers_work() {
    let bench = bench_with("k").await;
    let other = bench.engine.ensure_tenant("other").await.unwrap();
    let leased = take_one(&bench).await;
    let unknown = bench.engine.consume(other, consume(0)).await.unwrap_err();
    assert_eq!("unknown_queue", unknown.code());
    let forged = WorkerReport { job: leased.job.id, fence: leased.fence.to_string().into(), report: ack() };
    let answer = bench.engine.report(other, "w-2", vec![forged]).await.unwrap().remove(0);
    assert_eq!("not_found", code(answer));
    let error = bench.engine.cancel(other, leased.job.id, "mine", "eve").await.unwrap_err();
    assert_eq!("not_found", error.code());
    bench.job_in("k", StateName::Leased).await;
}
