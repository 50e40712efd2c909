//! Bulk runs in virtual time, on every store: their rate, pause, stop, and a restart in the middle. Row B9.

use std::{sync::Arc, time::Duration};

use posthaste_core::{BulkFilter, DurationMs, RunControl, RunId, RunKind, RunState, StateName};
use posthaste_engine::{BulkError, BulkStart};
use posthaste_store::{BulkRequest, BulkRun};

use crate::bench::{ACTOR, Bench, REASON, on_each_store};

const JOBS: u64 = 40;

fn start(per_second: u32) -> BulkStart {
    let (kind, filter) = (RunKind::Replay, BulkFilter::default());
    let request = BulkRequest {
        kind,
        filter,
        destination: None,
        reason: REASON.into(),
        assume_not_done: false,
        per_second,
    };
    BulkStart { request, idempotency_key: Some("night".into()), actor: ACTOR.into() }
}

async fn bury(bench: &Bench) {
    for number in 0..JOBS {
        bench.job(&format!("k:{number}"), false).await.dead_letter().await;
    }
}

async fn run(bench: &Bench, id: RunId) -> BulkRun {
    bench.engine.bulk_run(bench.tenant, RunKind::Replay, id).await.unwrap()
}

async fn count(bench: &Bench, state: StateName) -> u64 {
    let counts = bench.store.counts().await.unwrap();
    counts.iter().filter(|count| count.state == state).map(|count| count.jobs).sum()
}

/// Moves time on, 10 ms at a time, until `enough` holds; the rate is never above what it should be.
async fn go_on(bench: &Bench, id: RunId, per_second: u64, enough: impl Fn(&BulkRun) -> bool) -> BulkRun {
    let first = run(bench, id).await.counts.done;
    let waiting = async {
        let mut elapsed_ms = 0;
        loop {
            let now = run(bench, id).await;
            let most = first + 2 + per_second * (elapsed_ms + 10) / 1_000;
            assert!(now.counts.done <= most, "{} after {elapsed_ms} ms", now.counts.done);
            if enough(&now) {
                return now;
            }
            bench.clock.advance(DurationMs(10));
            elapsed_ms += 10;
            tokio::task::yield_now().await;
        }
    };
    tokio::time::timeout(Duration::from_secs(30), waiting).await.expect("the run goes on")
}

async fn control(bench: &Bench, id: RunId, control: RunControl) -> Result<BulkRun, BulkError> {
    bench.engine.bulk_control(bench.tenant, RunKind::Replay, id, control, ACTOR).await
}

#[tokio::test]
async fn r_b9_a_run_keeps_its_rate_and_pauses_and_stops_within_a_step() {
    on_each_store(|bench| async move {
        bury(&bench).await;
        let (begun, new) = bench.engine.bulk_start(bench.tenant, start(20)).await.unwrap();
        assert_eq!((true, Some(JOBS)), (new, begun.expected));
        let (again, new) = bench.engine.bulk_start(bench.tenant, start(20)).await.unwrap();
        assert_eq!((false, begun.id), (new, again.id));
        go_on(&bench, begun.id, 20, |run| run.counts.done >= 10).await;
        let paused = control(&bench, begun.id, RunControl::Pause).await.unwrap();
        bench.clock.advance(DurationMs::from_secs(60));
        // A step that is taken now is refused by the store itself.
        let after = run(&bench, begun.id).await;
        assert_eq!((RunState::Paused, paused.counts.done), (after.state, after.counts.done));
        control(&bench, begun.id, RunControl::Resume).await.unwrap();
        go_on(&bench, begun.id, 20, |run| run.counts.done >= 20).await;
        let stopped = control(&bench, begun.id, RunControl::Stop).await.unwrap();
        bench.clock.advance(DurationMs::from_secs(60));
        let after = run(&bench, begun.id).await;
        assert_eq!((RunState::Stopped, stopped.counts.done), (after.state, after.counts.done));
        assert_eq!(JOBS - stopped.counts.done, count(&bench, StateName::DeadLettered).await);
        let refused = control(&bench, begun.id, RunControl::Resume).await;
        assert!(
            matches!(refused, Err(BulkError::WrongState { state: RunState::Stopped, .. })),
            "{refused:?}"
        );
    })
    .await;
}

#[tokio::test]
async fn r_b9_a_run_goes_on_after_a_restart_and_takes_each_job_once() {
    on_each_store(|bench| async move {
        bury(&bench).await;
        let (begun, _) = bench.engine.bulk_start(bench.tenant, start(50)).await.unwrap();
        let before = go_on(&bench, begun.id, 50, |run| run.counts.done >= 15).await;
        bench.engine.drain(DurationMs::ZERO).await;
        let rest = count(&bench, StateName::DeadLettered).await;
        assert!(rest > 0 && rest <= JOBS - before.counts.done);
        let again = Bench::over(Arc::clone(&bench.store), Arc::clone(&bench.clock), None).await;
        let done = go_on(&again, begun.id, 50, |run| run.state == RunState::Done).await;
        assert_eq!((JOBS, JOBS), (done.counts.done, done.counts.examined));
        assert_eq!(JOBS, count(&again, StateName::Scheduled).await);
    })
    .await;
}
