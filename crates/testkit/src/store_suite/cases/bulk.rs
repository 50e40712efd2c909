//! Bulk runs: begun once, moved on a few jobs at a time, each job taken once and through the gate of a single command.

use std::sync::Arc;

use posthaste_core::{
    BulkFilter, Cause, Class, Command, DestinationId, Effect, JobId, LaneId, Policy, RunControl, RunId,
    RunKind, RunState, Share, StateName, TenantId, limits,
};
use posthaste_store::{
    Begun, BulkChange, BulkCount, BulkRequest, BulkRun, BulkStep, BulkStepped, Controlled, LaneGate,
    MessageName, NewBulkRun, Stage, Target,
};

use crate::store_suite::{
    bench::{Bench, key},
    case_list,
};

case_list![
    r_b9_a_run_replays_what_nobody_can_have_done_and_counts_the_rest,
    r_b9_a_job_that_dies_again_is_not_replayed_twice_by_one_run,
    r_b9_a_run_goes_on_from_its_cursor_and_ends,
    r_b9_the_same_idempotency_key_is_the_same_run,
    r_b9_a_paused_run_takes_nothing_and_a_stopped_one_never_again,
    r_b9_a_filter_narrows_by_row_message_and_attempt,
    r_b9_a_lane_that_is_closed_refuses_its_jobs,
    r_b8_a_cancel_run_calls_off_what_lives_and_asks_what_runs,
    r_g6_a_run_is_its_tenants_alone,
    r_b16_a_tenant_has_so_many_runs_at_once,
];

fn request(kind: RunKind, filter: BulkFilter) -> BulkRequest {
    let reason = "mended \"it\"".into();
    let destination = filter.lane.map(|_| DestinationId::new("orders").unwrap());
    BulkRequest { kind, filter, destination, reason, assume_not_done: false, per_second: 500 }
}

fn new_run(bench: &Bench, tenant: TenantId, request: BulkRequest) -> NewBulkRun {
    let id = RunId(bench.message_id().0);
    NewBulkRun { tenant, id, request, idempotency_key: None, actor: "on-call".into(), expected: Some(7) }
}

async fn begin(bench: &Bench, tenant: TenantId, kind: RunKind, filter: BulkFilter) -> BulkRun {
    let new = new_run(bench, tenant, request(kind, filter));
    match bench.store().bulk_begin(new).await.unwrap() {
        Begun::New(run) => *run,
        other => panic!("it is new: {other:?}"),
    }
}

async fn step_through(bench: &Bench, run: &BulkRun, jobs_max: usize, gate: LaneGate) -> BulkStepped {
    let gates = Arc::new(move |_: LaneId| gate.clone());
    let step = BulkStep { tenant: run.tenant, run: run.id, jobs_max, gates };
    bench.store().bulk_step(step).await.unwrap().expect("the run is there")
}

async fn step(bench: &Bench, run: &BulkRun, jobs_max: usize) -> BulkStepped {
    step_through(bench, run, jobs_max, LaneGate::Open(Arc::new(Policy::queue_default()))).await
}

async fn control(bench: &Bench, run: &BulkRun, control: RunControl) -> Controlled {
    bench.store().bulk_control(run.tenant, run.id, BulkChange::Control(control)).await.unwrap()
}

/// Dead letters of `queue`, each with what its attempt may have done.
async fn dead(bench: &Bench, tenant: TenantId, queue: &Target, effects: &[(&str, Effect)]) -> Vec<JobId> {
    let mut jobs = Vec::new();
    for (name, effect) in effects {
        bench.job(tenant, name, queue).await;
        jobs.push(bench.dead_letter(tenant, queue.lane, *effect).await);
    }
    jobs
}

async fn r_b9_a_run_replays_what_nobody_can_have_done_and_counts_the_rest(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let effects =
        [("a", Effect::None), ("b", Effect::Possible), ("c", Effect::Reported), ("d", Effect::None)];
    let jobs = dead(&bench, tenant, &queue, &effects).await;
    let run = begin(&bench, tenant, RunKind::Replay, BulkFilter::default()).await;
    assert_eq!((RunState::Running, Some(7)), (run.state, run.expected));
    let stepped = step(&bench, &run, 100).await;
    let after = &stepped.run;
    assert_eq!((RunState::Done, Some(bench.now())), (after.state, after.finished_at));
    let counts = &after.counts;
    assert_eq!((4, 4, 2, 1), (counts.examined, counts.matched, counts.done, counts.settled));
    assert_eq!(Some(&1), counts.refused.get("outcome_unknown"));
    assert_eq!((jobs[1], "outcome_unknown"), (after.refused[0].job, &*after.refused[0].code));
    let mut states = Vec::new();
    for job in &jobs {
        states.push(bench.state(tenant, *job).await);
    }
    use StateName::{Committed, DeadLettered, Scheduled};
    assert_eq!([Scheduled, DeadLettered, Committed, Scheduled], *states);
    assert_eq!(3, stepped.changes.len());
    assert_eq!(Share::Bulk, bench.read(tenant, jobs[0]).await.job.share, "it takes the lane's share of bulk");
    assert_eq!(Some(after), bench.store().bulk_run(tenant, run.id).await.unwrap().as_ref());
    let message = bench.store().message(tenant, MessageName::Key(key("a"))).await.unwrap().unwrap();
    let entries = bench.store().custody(tenant, message.id).await.unwrap();
    let entry = entries.iter().find(|entry| entry.stage == Stage::Replayed).unwrap();
    let detail: serde_json::Value = serde_json::from_str(entry.detail.as_deref().unwrap()).unwrap();
    assert_eq!(run.id.to_string(), detail["run"]);
    assert_eq!(
        ("mended \"it\"", Some("on-call")),
        (detail["reason"].as_str().unwrap(), entry.actor.as_deref())
    );
    // A second such run finds what is left.
    let again = begin(&bench, tenant, RunKind::Replay, BulkFilter::default()).await;
    assert_eq!(1, step(&bench, &again, 100).await.run.counts.matched);
}

async fn r_b9_a_job_that_dies_again_is_not_replayed_twice_by_one_run(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    dead(&bench, tenant, &queue, &[("a", Effect::None), ("c", Effect::None)]).await;
    let later = bench.job(tenant, "b", &queue).await;
    let run = begin(&bench, tenant, RunKind::Replay, BulkFilter::default()).await;
    bench.advance(posthaste_core::DurationMs(1));
    assert_eq!(1, step(&bench, &run, 1).await.run.counts.done);
    // Both die after the run began: one for the second time.
    for _ in 0..2 {
        bench.dead_letter(tenant, queue.lane, Effect::None).await;
    }
    let run = step(&bench, &run, 100).await.run;
    assert_eq!(
        (RunState::Done, 2, 1, 2),
        (run.state, run.counts.done, run.counts.skipped, run.counts.matched)
    );
    assert_eq!(StateName::DeadLettered, bench.state(tenant, later).await);
    let jobs = bench.store().counts().await.unwrap();
    assert_eq!(
        vec![(StateName::Scheduled, 1), (StateName::DeadLettered, 2)],
        jobs.iter().map(|one| (one.state, one.jobs)).collect::<Vec<_>>()
    );
}

async fn r_b9_a_run_goes_on_from_its_cursor_and_ends(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let names: Vec<String> = (0..300).map(|number| format!("k{number}")).collect();
    let effects: Vec<(&str, Effect)> = names.iter().map(|name| (&**name, Effect::None)).collect();
    let jobs = dead(&bench, tenant, &queue, &effects).await;
    let filter = BulkFilter { key_prefix: Some("k29".into()), ..BulkFilter::default() };
    // 256 are looked at in a step: k29 is among them, k290 to k299 are not.
    let run = begin(&bench, tenant, RunKind::Replay, filter).await;
    let first = step(&bench, &run, 100).await;
    assert_eq!((1, 256, RunState::Running), (first.taken, first.run.counts.examined, first.run.state));
    assert_eq!(Some(jobs[255]), first.run.cursor);
    let running = bench.store().bulk_running().await.unwrap();
    assert_eq!(vec![first.run.clone()], running, "what a start finds");
    let second = step(&bench, &run, 4).await;
    assert_eq!((4, RunState::Running), (second.taken, second.run.state));
    assert_eq!(Some(jobs[293]), second.run.cursor, "not beyond what it took");
    let third = step(&bench, &run, 100).await;
    assert_eq!((6, 11, RunState::Done), (third.taken, third.run.counts.done, third.run.state));
    assert_eq!(300, third.run.counts.examined, "each once");
    let over = step(&bench, &run, 100).await;
    assert_eq!((0, &third.run), (over.taken, &over.run));
    assert_eq!(0, bench.store().bulk_running().await.unwrap().len());
}

async fn r_b9_the_same_idempotency_key_is_the_same_run(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let named = |cause: Option<Cause>, name: &str| {
        let filter = BulkFilter { cause, ..BulkFilter::default() };
        let new = new_run(&bench, tenant, request(RunKind::Replay, filter));
        NewBulkRun { idempotency_key: Some(name.into()), ..new }
    };
    let Begun::New(first) = bench.store().bulk_begin(named(None, "n")).await.unwrap() else { panic!("new") };
    let ended = step(&bench, &first, 1).await.run;
    assert_eq!(RunState::Done, ended.state);
    let again = bench.store().bulk_begin(named(None, "n")).await.unwrap();
    assert_eq!(Begun::Same(Box::new(ended)), again, "even when it is over");
    let other = bench.store().bulk_begin(named(Some(Cause::Permanent), "n")).await.unwrap();
    assert_eq!(Begun::KeyReused(first.id), other);
    assert!(matches!(bench.store().bulk_begin(named(None, "m")).await.unwrap(), Begun::New(_)));
    let elsewhere = bench.tenant("other").await;
    let new = NewBulkRun { tenant: elsewhere, ..named(None, "n") };
    assert!(matches!(bench.store().bulk_begin(new).await.unwrap(), Begun::New(_)), "a tenant's own");
}

async fn r_b9_a_paused_run_takes_nothing_and_a_stopped_one_never_again(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    dead(&bench, tenant, &queue, &[("a", Effect::None), ("b", Effect::None), ("c", Effect::None)]).await;
    let run = begin(&bench, tenant, RunKind::Replay, BulkFilter::default()).await;
    step(&bench, &run, 1).await;
    let Controlled::Stands(paused) = control(&bench, &run, RunControl::Pause).await else { panic!("paused") };
    assert_eq!((RunState::Paused, None), (paused.state, paused.finished_at));
    assert_eq!(Controlled::Stands(paused.clone()), control(&bench, &run, RunControl::Pause).await);
    let waits = step(&bench, &run, 1).await;
    assert_eq!((0, *paused), (waits.taken, waits.run));
    assert_eq!(0, bench.store().bulk_running().await.unwrap().len());
    assert!(matches!(control(&bench, &run, RunControl::Resume).await, Controlled::Stands(_)));
    assert_eq!(1, step(&bench, &run, 1).await.taken);
    let problem = BulkChange::Fail("a row is broken".into());
    let failed = bench.store().bulk_control(tenant, run.id, problem.clone()).await.unwrap();
    let Controlled::Stands(failed) = failed else { panic!("failed") };
    assert_eq!((RunState::Failed, Some("a row is broken")), (failed.state, failed.problem.as_deref()));
    let twice = bench.store().bulk_control(tenant, run.id, problem).await.unwrap();
    assert_eq!(Controlled::Refused(RunState::Failed), twice);
    let Controlled::Stands(goes_on) = control(&bench, &run, RunControl::Resume).await else { panic!() };
    assert_eq!((None, None), (goes_on.problem, goes_on.finished_at));
    let Controlled::Stands(stopped) = control(&bench, &run, RunControl::Stop).await else {
        panic!("stopped")
    };
    assert_eq!((RunState::Stopped, Some(bench.now())), (stopped.state, stopped.finished_at));
    assert_eq!(Controlled::Refused(RunState::Stopped), control(&bench, &run, RunControl::Resume).await);
    assert_eq!((0, 2), (step(&bench, &run, 1).await.taken, stopped.counts.done), "two of three");
    let unknown = bench.store().bulk_control(tenant, RunId(1), BulkChange::Control(RunControl::Stop));
    assert_eq!(Controlled::Missing, unknown.await.unwrap());
}

async fn r_b9_a_filter_narrows_by_row_message_and_attempt(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let (orders, carts) = (bench.queue(tenant, "orders").await, bench.queue(tenant, "carts").await);
    dead(&bench, tenant, &orders, &[("o:1", Effect::None), ("x:2", Effect::None)]).await;
    dead(&bench, tenant, &carts, &[("o:3", Effect::None)]).await;
    let never_tried = bench.job(tenant, "o:4", &carts).await;
    bench.apply(tenant, never_tried, Command::Abandon { cause: Cause::EndpointGone }).await;
    let typed = posthaste_store::NewMessage {
        event_type: Some("order.paid".into()),
        ..bench.message(tenant, "o:5", std::slice::from_ref(&orders))
    };
    bench.accept_new(typed).await;
    bench.dead_letter(tenant, orders.lane, Effect::None).await;
    let any = BulkFilter::default;
    let filters = [
        (5, any()),
        (3, BulkFilter { lane: Some(orders.lane), ..any() }),
        (1, BulkFilter { cause: Some(Cause::EndpointGone), ..any() }),
        (4, BulkFilter { key_prefix: Some("o:".into()), ..any() }),
        (2, BulkFilter { key_prefix: Some("o:".into()), lane: Some(carts.lane), ..any() }),
        (1, BulkFilter { event_type: Some("order.paid".into()), ..any() }),
        (4, BulkFilter { class: Some(Class::Worker), ..any() }),
        (0, BulkFilter { class: Some(Class::Timeout), ..any() }),
        (5, BulkFilter { created_since: Some(bench.now()), ..any() }),
        (0, BulkFilter { dead_lettered_until: Some(bench.now()), ..any() }),
    ];
    for (expected, filter) in filters {
        let count = BulkCount { tenant, kind: RunKind::Replay, filter: filter.clone(), after: None };
        let counted = bench.store().bulk_count(count).await.unwrap();
        assert_eq!((expected, 5, None), (counted.matched, counted.examined, counted.next), "{filter:?}");
        // A request is kept as it was given.
        let run = begin(&bench, tenant, RunKind::Replay, filter).await;
        assert_eq!(Some(&run), bench.store().bulk_run(tenant, run.id).await.unwrap().as_ref());
        control(&bench, &run, RunControl::Stop).await;
    }
    let destination = Some(orders.destination.clone());
    let filter = BulkFilter { lane: Some(orders.lane), event_type: Some("order.paid".into()), ..any() };
    let request = BulkRequest { destination, assume_not_done: true, ..request(RunKind::Replay, filter) };
    let Begun::New(run) = bench.store().bulk_begin(new_run(&bench, tenant, request)).await.unwrap() else {
        panic!("new")
    };
    assert_eq!(Some(&*run), bench.store().bulk_run(tenant, run.id).await.unwrap().as_ref());
    assert_eq!(1, step(&bench, &run, 10).await.run.counts.done);
}

async fn r_b9_a_lane_that_is_closed_refuses_its_jobs(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let names: Vec<String> = (0..25).map(|number| format!("k{number}")).collect();
    let effects: Vec<(&str, Effect)> = names.iter().map(|name| (&**name, Effect::None)).collect();
    dead(&bench, tenant, &queue, &effects).await;
    let run = begin(&bench, tenant, RunKind::Replay, BulkFilter::default()).await;
    let closed = step_through(&bench, &run, 100, LaneGate::Closed("not_available")).await;
    assert_eq!((Some(&25), 0), (closed.run.counts.refused.get("not_available"), closed.changes.len()));
    assert_eq!(limits::BULK_REFUSED_LISTED_MAX, closed.run.refused.len(), "the first are named");
    assert_eq!(Some(closed.run), bench.store().bulk_run(tenant, run.id).await.unwrap());
}

async fn r_b8_a_cancel_run_calls_off_what_lives_and_asks_what_runs(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let buried = dead(&bench, tenant, &queue, &[("dead", Effect::Possible)]).await[0];
    let running = bench.job(tenant, "running", &queue).await;
    bench.lease(tenant, queue.lane).await;
    let waiting = bench.job(tenant, "waiting", &queue).await;
    let run = begin(&bench, tenant, RunKind::Cancel, BulkFilter::default()).await;
    bench.advance(posthaste_core::DurationMs(1));
    let later = bench.job(tenant, "later", &queue).await;
    let run = step_through(&bench, &run, 100, LaneGate::Closed("not_available")).await.run;
    let counts = &run.counts;
    assert_eq!(
        (RunState::Done, 2, 1, 1, 1),
        (run.state, counts.matched, counts.done, counts.requested, counts.skipped)
    );
    assert!(bench.read(tenant, running).await.job.cancel_requested);
    let view = bench.read(tenant, waiting).await;
    assert_eq!(
        (StateName::Cancelled, Some("mended \"it\"")),
        (view.job.state.name(), view.job.reason.as_deref())
    );
    assert_eq!(StateName::Scheduled, bench.state(tenant, later).await, "it came later");
    assert_eq!(StateName::DeadLettered, bench.state(tenant, buried).await, "nobody named dead letters");
    let filter = BulkFilter { state: Some(StateName::DeadLettered), ..BulkFilter::default() };
    let run = begin(&bench, tenant, RunKind::Cancel, filter).await;
    assert_eq!(1, step(&bench, &run, 100).await.run.counts.done);
    assert_eq!(StateName::Cancelled, bench.state(tenant, buried).await);
}

async fn r_g6_a_run_is_its_tenants_alone(bench: Arc<Bench>) {
    let (tenant, other) = (bench.tenant("default").await, bench.tenant("other").await);
    let (queue, theirs) = (bench.queue(tenant, "orders").await, bench.queue(other, "orders").await);
    dead(&bench, tenant, &queue, &[("a", Effect::None)]).await;
    let untouched = dead(&bench, other, &theirs, &[("a", Effect::None)]).await[0];
    let first = begin(&bench, tenant, RunKind::Replay, BulkFilter::default()).await;
    let run = step(&bench, &first, 100).await.run;
    assert_eq!((1, 1), (run.counts.examined, run.counts.done));
    assert_eq!(StateName::DeadLettered, bench.state(other, untouched).await);
    let store = bench.store();
    assert_eq!(None, store.bulk_run(other, run.id).await.unwrap());
    assert_eq!(0, store.bulk_runs(other, RunKind::Replay, None, 10).await.unwrap().len());
    let stop = BulkChange::Control(RunControl::Stop);
    assert_eq!(Controlled::Missing, store.bulk_control(other, run.id, stop).await.unwrap());
    // Lists are by kind, newest first, page by page.
    let second = begin(&bench, tenant, RunKind::Replay, BulkFilter::default()).await;
    begin(&bench, tenant, RunKind::Cancel, BulkFilter::default()).await;
    let listed = store.bulk_runs(tenant, RunKind::Replay, None, 10).await.unwrap();
    assert_eq!(vec![second.id, first.id], listed.iter().map(|run| run.id).collect::<Vec<_>>());
    let rest = store.bulk_runs(tenant, RunKind::Replay, Some(second.id), 10).await.unwrap();
    assert_eq!(vec![first.id], rest.iter().map(|run| run.id).collect::<Vec<_>>());
    assert_eq!(1, store.bulk_runs(tenant, RunKind::Replay, None, 1).await.unwrap().len());
}

async fn r_b16_a_tenant_has_so_many_runs_at_once(bench: Arc<Bench>) {
    let (tenant, other) = (bench.tenant("default").await, bench.tenant("other").await);
    let mut runs = Vec::new();
    for _ in 0..limits::BULK_RUNS_LIVE_MAX {
        runs.push(begin(&bench, tenant, RunKind::Replay, BulkFilter::default()).await);
    }
    control(&bench, &runs[0], RunControl::Pause).await;
    let one_more = || new_run(&bench, tenant, request(RunKind::Replay, BulkFilter::default()));
    assert_eq!(Begun::TooMany, bench.store().bulk_begin(one_more()).await.unwrap());
    begin(&bench, other, RunKind::Replay, BulkFilter::default()).await;
    control(&bench, &runs[0], RunControl::Stop).await;
    assert!(matches!(bench.store().bulk_begin(one_more()).await.unwrap(), Begun::New(_)));
}
