//! What holds lanes: pauses, circuits, rates, scheduling; and sources that keep what comes. Rows B10, D4.

use std::sync::Arc;

use posthaste_core::{
    Class, Classified, Command, Details, Disposition, DurationMs, Effect, Failure, Fence, JobId, Kind,
    LaneId, LaneRules, Policy, Rate, Share, StateName, TenantId,
    lane::{Circuit, Turn},
};
use posthaste_store::{
    Configure, Configured, DestinationKind, Due, JobCommand, LaneAct, LaneCommand, LaneEventKind, LaneView,
    LeaseRequest, NewMessage, Steered, Target,
};

use crate::store_suite::{
    bench::{Bench, fail_softly, finish, job_command, lease_request, new_destination},
    case_list,
};

case_list![
    r_b10_a_paused_lane_gives_nothing_and_loses_nothing,
    r_b10_a_pause_that_is_there_stays_as_it_is,
    r_b10_what_runs_goes_on_during_a_pause,
    r_b6_time_held_by_a_pause_is_not_the_jobs,
    r_b10_paused_scheduling_holds_what_becomes_due,
    r_b6_time_held_by_scheduling_is_not_the_jobs,
    r_b10_a_paused_source_keeps_messages_and_makes_their_jobs_later,
    r_d4_an_ill_receivers_circuit_opens_and_one_probe_closes_it,
    r_d4_a_probe_that_is_lost_makes_room,
    r_d4_a_receiver_that_is_gone_is_disabled_until_enabled,
    r_d4_a_rate_bounds_a_lease,
    r_d4_a_destination_that_takes_no_part_is_held,
    r_b10_a_deleted_destination_leaves_no_pause_behind,
    lanes_that_are_not_there_can_not_be_steered,
];

async fn steer(bench: &Bench, tenant: TenantId, lane: Option<LaneId>, act: LaneAct) -> Steered {
    let command = LaneCommand { tenant, lane, act, reason: "an incident".into(), actor: "on-call".into() };
    bench.store().steer(vec![command]).await.unwrap().remove(0)
}

/// Steers; it must change something.
async fn must(bench: &Bench, tenant: TenantId, lane: Option<LaneId>, act: LaneAct) {
    let steered = steer(bench, tenant, lane, act).await;
    let changed =
        matches!(steered, Steered::Lane { changed: true, .. } | Steered::Scheduling { changed: true, .. });
    assert!(changed, "{steered:?}");
}

async fn lane_view(bench: &Bench, lane: LaneId) -> LaneView {
    let lanes = bench.store().lanes().await.unwrap();
    lanes.into_iter().find(|view| view.id == lane).unwrap()
}

async fn events(bench: &Bench, tenant: TenantId, lane: Option<LaneId>) -> Vec<LaneEventKind> {
    let events = bench.store().lane_events(tenant, vec![lane]).await.unwrap();
    assert!(events.iter().all(|event| event.lane == lane && !event.reason.is_empty()));
    events.into_iter().map(|event| event.what).collect()
}

async fn leased(bench: &Bench, tenant: TenantId, lane: LaneId) -> Vec<JobId> {
    let grant = bench.grant(lease_request(tenant, lane, 100)).await;
    grant.jobs.into_iter().map(|leased| leased.job.id).collect()
}

async fn r_b10_a_paused_lane_gives_nothing_and_loses_nothing(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let (queue, other) = (bench.queue(tenant, "orders").await, bench.queue(tenant, "other").await);
    let before = bench.job(tenant, "before", &queue).await;
    must(&bench, tenant, Some(queue.lane), LaneAct::Pause).await;
    let during = bench.job(tenant, "during", &queue).await;
    let elsewhere = bench.job(tenant, "elsewhere", &other).await;
    bench.advance(DurationMs::from_secs(60));
    let grant = bench.grant(lease_request(tenant, queue.lane, 10)).await;
    assert!(grant.jobs.is_empty() && grant.next_due.is_none(), "{grant:?}");
    let heads = bench.store().heads().await.unwrap();
    assert_eq!(vec![other.lane], heads.iter().map(|head| head.lane).collect::<Vec<_>>());
    assert_eq!(2, bench.store().held_jobs().await.unwrap());
    assert_eq!(vec![elsewhere], leased(&bench, tenant, other.lane).await);
    must(&bench, tenant, Some(queue.lane), LaneAct::Resume).await;
    assert_eq!(vec![before, during], leased(&bench, tenant, queue.lane).await, "in order");
    assert_eq!(0, bench.store().held_jobs().await.unwrap());
    use LaneEventKind::{Paused, Resumed};
    assert_eq!(vec![Paused, Resumed], events(&bench, tenant, Some(queue.lane)).await);
    assert!(events(&bench, tenant, Some(other.lane)).await.is_empty());
}

async fn r_b10_a_pause_that_is_there_stays_as_it_is(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let lane = bench.queue(tenant, "orders").await.lane;
    must(&bench, tenant, Some(lane), LaneAct::Pause).await;
    let first = lane_view(&bench, lane).await.lane;
    let hold = first.paused.clone().unwrap();
    assert_eq!((bench.now(), "an incident", "on-call"), (hold.at, &*hold.reason, &*hold.by));
    bench.advance(DurationMs::from_secs(5));
    let again = LaneCommand {
        tenant,
        lane: Some(lane),
        act: LaneAct::Pause,
        reason: "another".into(),
        actor: "somebody".into(),
    };
    let steered = bench.store().steer(vec![again]).await.unwrap().remove(0);
    assert_eq!(Steered::Lane { changed: false, lane: Box::new(first) }, steered);
    must(&bench, tenant, Some(lane), LaneAct::Resume).await;
    let steered = steer(&bench, tenant, Some(lane), LaneAct::Resume).await;
    assert!(matches!(steered, Steered::Lane { changed: false, .. }), "one resume ends it");
    assert_eq!(2, events(&bench, tenant, Some(lane)).await.len());
}

async fn r_b10_what_runs_goes_on_during_a_pause(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let (one, two) = (bench.job(tenant, "one", &queue).await, bench.job(tenant, "two", &queue).await);
    let mut grant = bench.grant(lease_request(tenant, queue.lane, 2)).await.jobs;
    must(&bench, tenant, Some(queue.lane), LaneAct::Pause).await;
    let (second, first) = (grant.pop().unwrap(), grant.pop().unwrap());
    let extend =
        Command::Extend { fence: first.fence, lease_for: DurationMs::from_secs(60), checkpoint: None };
    bench.apply(tenant, one, extend).await;
    bench.apply(tenant, one, finish(first.fence)).await;
    bench.apply(tenant, two, fail_softly(second.fence)).await;
    assert_eq!(StateName::Committed, bench.state(tenant, one).await);
    bench.advance(DurationMs::from_hours(1));
    assert!(leased(&bench, tenant, queue.lane).await.is_empty(), "but nothing begins again");
    must(&bench, tenant, Some(queue.lane), LaneAct::Resume).await;
    assert_eq!(vec![two], leased(&bench, tenant, queue.lane).await);
}

/// Fails the one due job of the lane under a horizon of a minute; the job's state after it.
async fn fail_within_a_minute(bench: &Bench, tenant: TenantId, lane: LaneId) -> StateName {
    let policy = Arc::new(Policy { horizon: DurationMs::from_secs(60), ..Policy::queue_default() });
    let leased = bench.lease(tenant, lane).await;
    let command = JobCommand { policy, ..job_command(tenant, leased.job.id, fail_softly(leased.fence)) };
    bench.try_apply(command).await.1.unwrap().job.state.name()
}

async fn r_b6_time_held_by_a_pause_is_not_the_jobs(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    bench.job(tenant, "held", &queue).await;
    must(&bench, tenant, Some(queue.lane), LaneAct::Pause).await;
    bench.advance(DurationMs::from_hours(100));
    must(&bench, tenant, Some(queue.lane), LaneAct::Resume).await;
    assert_eq!(StateName::Retryable, fail_within_a_minute(&bench, tenant, queue.lane).await);
    let held = lane_view(&bench, queue.lane).await.lane;
    assert_eq!((360_000_000, None), (held.held_ms, held.held_since));
    // A job that is made later has no part in it, and a hold that goes on counts for one that runs.
    let job = bench.job(tenant, "later", &queue).await;
    assert_eq!(360_000_000, bench.read(tenant, job).await.job.budgets.held_ms);
    let leased = bench.lease(tenant, queue.lane).await;
    must(&bench, tenant, Some(queue.lane), LaneAct::Pause).await;
    bench.advance(DurationMs::from_secs(20));
    let policy = Arc::new(Policy { horizon: DurationMs::from_secs(10), ..Policy::queue_default() });
    let command = JobCommand { policy, ..job_command(tenant, job, fail_softly(leased.fence)) };
    let change = bench.try_apply(command).await.1.unwrap();
    assert_eq!(StateName::Retryable, change.job.state.name());
}

async fn r_b10_paused_scheduling_holds_what_becomes_due(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let other_tenant = bench.tenant("other").await;
    let queue = bench.queue(tenant, "orders").await;
    let other = bench.queue(other_tenant, "orders").await;
    let retried = bench.job(tenant, "retried", &queue).await;
    let taken = bench.lease(tenant, queue.lane).await;
    bench.apply(tenant, retried, fail_softly(taken.fence)).await;
    let before = bench.job(tenant, "before", &queue).await;
    let delayed = NewMessage {
        due: Due::In(DurationMs::from_secs(1)),
        ..bench.message(tenant, "delayed", std::slice::from_ref(&queue))
    };
    let delayed = bench.accept_new(delayed).await.jobs[0].id;
    bench.advance(DurationMs(1));
    must(&bench, tenant, None, LaneAct::Pause).await;
    let during = bench.job(tenant, "during", &queue).await;
    let elsewhere = bench.job(other_tenant, "during", &other).await;
    bench.advance(DurationMs::from_mins(30));
    assert_eq!(vec![before, retried], leased(&bench, tenant, queue.lane).await, "what was due, and retries");
    assert_eq!(vec![elsewhere], leased(&bench, other_tenant, other.lane).await, "another tenant's");
    let grant = bench.grant(lease_request(tenant, queue.lane, 10)).await;
    assert!(grant.jobs.is_empty() && grant.next_due.is_none(), "{grant:?}");
    assert!(bench.store().heads().await.unwrap().is_empty());
    assert_eq!(2, bench.store().held_jobs().await.unwrap());
    let kept = bench.store().scheduling().await.unwrap();
    assert!(matches!(&kept[..], [(of, kept)] if *of == tenant && kept.paused.is_some()), "{kept:?}");
    must(&bench, tenant, None, LaneAct::Resume).await;
    assert_eq!(vec![during, delayed], leased(&bench, tenant, queue.lane).await, "as they became due");
    assert_eq!(2, events(&bench, tenant, None).await.len());
}

async fn r_b6_time_held_by_scheduling_is_not_the_jobs(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    must(&bench, tenant, None, LaneAct::Pause).await;
    bench.job(tenant, "held", &queue).await;
    bench.advance(DurationMs::from_hours(100));
    must(&bench, tenant, None, LaneAct::Resume).await;
    assert_eq!(StateName::Retryable, fail_within_a_minute(&bench, tenant, queue.lane).await);
}

async fn r_b10_a_paused_source_keeps_messages_and_makes_their_jobs_later(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let source = bench.destination(tenant, "stripe", DestinationKind::Source).await;
    let calm = bench.destination(tenant, "github", DestinationKind::Source).await;
    let of = |key, source: &posthaste_store::DestinationRow| NewMessage {
        source: Some(source.id.clone()),
        ..bench.message(tenant, key, std::slice::from_ref(&queue))
    };
    must(&bench, tenant, Some(source.lane), LaneAct::Pause).await;
    let held = [bench.accept_new(of("h-1", &source)).await, bench.accept_new(of("h-2", &source)).await];
    assert!(held.iter().all(|message| message.fanout_running && message.jobs.is_empty()));
    let unrouted = NewMessage { targets: Vec::new(), ..of("unrouted", &source) };
    assert!(!bench.accept_new(unrouted).await.fanout_running);
    let free = bench.accept_new(of("free", &calm)).await.jobs[0].id;
    let step = bench.store().fan_out(100).await.unwrap();
    assert_eq!((0, false), (step.jobs, step.more));
    // A fan-out that nobody holds goes past them.
    let targets: Vec<Target> = bench.queues(tenant, 101).await;
    let wide = NewMessage { targets, ..of("wide", &calm) };
    bench.accept_new(wide).await;
    assert_eq!(101, bench.store().fan_out(200).await.unwrap().jobs);
    must(&bench, tenant, Some(source.lane), LaneAct::Resume).await;
    let step = bench.store().fan_out(1).await.unwrap();
    assert_eq!((1, true), (step.jobs, step.more));
    let step = bench.store().fan_out(100).await.unwrap();
    assert_eq!((1, false), (step.jobs, step.more));
    let jobs: Vec<JobId> = leased(&bench, tenant, queue.lane).await;
    assert_eq!(3, jobs.len(), "{free} and the two that were held");
    assert!(!bench.view(tenant, held[1].id).await.fanout_running);
}

/// An endpoint with due jobs, as the target of messages.
async fn endpoint(bench: &Bench, tenant: TenantId, jobs: usize) -> Target {
    let row = bench.destination(tenant, "fan", DestinationKind::Endpoint).await;
    let target =
        Target { lane: row.lane, destination: row.id, kind: Kind::Push, wire_id: None, owner: row.owner };
    for number in 0..jobs {
        bench.job(tenant, &format!("ship-{number}"), &target).await;
        bench.advance(DurationMs(1));
    }
    target
}

fn failed(fence: Fence, disposition: Disposition) -> Command {
    let classified = Classified { class: Class::ClientError, effect: Effect::None, disposition };
    Command::Fail { fence, failure: Failure::classified(classified, None), details: Details::default() }
}

async fn r_d4_an_ill_receivers_circuit_opens_and_one_probe_closes_it(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let lane = endpoint(&bench, tenant, 14).await.lane;
    let grant = bench.grant(lease_request(tenant, lane, 11)).await;
    let mut turns = Vec::new();
    for leased in &grant.jobs {
        let change = bench.apply(tenant, leased.job.id, failed(leased.fence, Disposition::Retry)).await;
        turns.extend(change.turn);
    }
    let [turned] = &turns[..] else { panic!("{turns:?}") };
    let until = bench.now().after(DurationMs::from_secs(30));
    assert_eq!(Turn::CircuitOpened { until, trips: 1 }, turned.turn);
    let grant = bench.grant(lease_request(tenant, lane, 10)).await;
    assert_eq!((0, Some(until)), (grant.jobs.len(), grant.next_due));
    assert_eq!(until, bench.store().heads().await.unwrap()[0].due_at);
    assert_eq!(3, bench.store().held_jobs().await.unwrap(), "those that are due");
    bench.advance(DurationMs::from_secs(30));
    let mut grant = bench.grant(lease_request(tenant, lane, 10)).await;
    assert_eq!(1, grant.jobs.len(), "one probes");
    assert!(leased(&bench, tenant, lane).await.is_empty(), "exactly one");
    let probe = grant.jobs.remove(0);
    let view = lane_view(&bench, lane).await.lane;
    assert!(matches!(view.circuit, Circuit::HalfOpen { probe: job, .. } if job == probe.job.id));
    let change = bench.apply(tenant, probe.job.id, finish(probe.fence)).await;
    assert_eq!(Some(Turn::CircuitClosed), change.turn.map(|turned| turned.turn));
    let view = lane_view(&bench, lane).await.lane;
    assert_eq!((30_000, Circuit::Closed), (view.held_ms, view.circuit));
    assert!(leased(&bench, tenant, lane).await.len() >= 2, "it goes on");
    use LaneEventKind::{Closed, Opened};
    assert_eq!(vec![Opened, Closed], events(&bench, tenant, Some(lane)).await);
}

async fn r_d4_a_probe_that_is_lost_makes_room(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let lane = endpoint(&bench, tenant, 8).await.lane;
    for leased in bench.grant(lease_request(tenant, lane, 5)).await.jobs {
        let refused = failed(leased.fence, Disposition::PermanentDestination);
        bench.apply(tenant, leased.job.id, refused).await;
    }
    bench.advance(DurationMs::from_secs(30));
    let probe = bench.lease(tenant, lane).await;
    bench.advance(DurationMs::from_secs(30));
    let change = bench.apply(tenant, probe.job.id, Command::Expire).await;
    assert_eq!(Some(Turn::ProbeLost), change.turn.map(|turned| turned.turn));
    assert_eq!(1, leased(&bench, tenant, lane).await.len());
}

async fn r_d4_a_receiver_that_is_gone_is_disabled_until_enabled(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let target = endpoint(&bench, tenant, 3).await;
    let lane = target.lane;
    let gone = bench.lease(tenant, lane).await;
    let change = bench.apply(tenant, gone.job.id, failed(gone.fence, Disposition::Gone)).await;
    assert_eq!(Some(Turn::Disabled), change.turn.map(|turned| turned.turn));
    assert!(leased(&bench, tenant, lane).await.is_empty());
    // Its configuration, written again, changes nothing about that; and what comes is kept.
    bench
        .configure(Configure::PutDestination(new_destination(tenant, "fan", DestinationKind::Endpoint)))
        .await;
    bench.job(tenant, "meanwhile", &target).await;
    assert!(leased(&bench, tenant, lane).await.is_empty());
    assert!(lane_view(&bench, lane).await.lane.disabled.unwrap().reason.contains("410"));
    must(&bench, tenant, Some(lane), LaneAct::Enable).await;
    assert_eq!(3, leased(&bench, tenant, lane).await.len());
    must(&bench, tenant, Some(lane), LaneAct::Disable).await;
    use LaneEventKind::{Disabled, Enabled};
    assert_eq!(vec![Disabled, Enabled, Disabled], events(&bench, tenant, Some(lane)).await);
}

async fn r_d4_a_rate_bounds_a_lease(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let lane = endpoint(&bench, tenant, 30).await.lane;
    let rules = LaneRules { rate: Rate::new(50, DurationMs::from_secs(1)), ..LaneRules::STANDARD };
    let policy = Arc::new(Policy { lane: rules, ..Policy::endpoint_default() });
    let request = || LeaseRequest { policy: policy.clone(), ..lease_request(tenant, lane, 100) };
    let grant = bench.grant(request()).await;
    assert_eq!(5, grant.jobs.len(), "a tenth of a second's worth");
    assert_eq!(Some(bench.now().after(DurationMs(20))), grant.next_due);
    assert!(bench.grant(request()).await.jobs.is_empty());
    bench.advance(DurationMs(40));
    assert_eq!(2, bench.grant(request()).await.jobs.len());
    bench.advance(DurationMs::from_secs(9));
    assert_eq!(5, bench.grant(request()).await.jobs.len(), "rest is not saved up");
    assert_eq!(18, leased(&bench, tenant, lane).await.len(), "without a rate, all of them");
}

async fn r_d4_a_destination_that_takes_no_part_is_held(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let lane = endpoint(&bench, tenant, 2).await.lane;
    let put = |enabled| {
        let new = new_destination(tenant, "fan", DestinationKind::Endpoint);
        Configure::PutDestination(posthaste_store::NewDestination { enabled, ..new })
    };
    bench.configure(put(false)).await;
    assert!(leased(&bench, tenant, lane).await.is_empty());
    assert!(bench.store().heads().await.unwrap().is_empty());
    bench.advance(DurationMs::from_secs(7));
    bench.configure(put(true)).await;
    assert_eq!(7_000, lane_view(&bench, lane).await.lane.held_ms);
    assert_eq!(2, leased(&bench, tenant, lane).await.len());
}

async fn r_b10_a_deleted_destination_leaves_no_pause_behind(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    must(&bench, tenant, Some(queue.lane), LaneAct::Pause).await;
    let delete =
        Configure::DeleteDestination { tenant, id: queue.destination.clone(), kind: DestinationKind::Queue };
    assert_eq!(Configured::Deleted, bench.configure(delete).await);
    let queue = bench.queue(tenant, "orders").await;
    let job = bench.job(tenant, "order-1", &queue).await;
    assert_eq!(vec![job], leased(&bench, tenant, queue.lane).await);
    assert_eq!(Share::Fresh, bench.read(tenant, job).await.job.share);
}

async fn lanes_that_are_not_there_can_not_be_steered(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    assert_eq!(Steered::Missing, steer(&bench, tenant, Some(LaneId(9)), LaneAct::Pause).await);
    assert_eq!(Steered::Missing, steer(&bench, tenant, None, LaneAct::Disable).await);
    let steered = steer(&bench, tenant, None, LaneAct::Resume).await;
    assert!(matches!(steered, Steered::Scheduling { changed: false, .. }), "{steered:?}");
    assert!(bench.store().lanes().await.unwrap().is_empty());
    assert!(bench.store().scheduling().await.unwrap().is_empty());
}
