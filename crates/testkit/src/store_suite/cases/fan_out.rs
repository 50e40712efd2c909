//! Fan-out: many jobs of one message, made in chunks.

use std::{collections::BTreeSet, sync::Arc};

use posthaste_core::{DurationMs, JobId, Share, StateName, limits};
use posthaste_store::{Acceptance, Due, FanOutStep, NewMessage};

use crate::store_suite::{
    bench::{Bench, fail_softly, job_command, lease_request},
    case_list,
};

case_list![
    r_b13_up_to_a_hundred_jobs_are_made_at_once_and_more_by_a_cursor,
    r_b13_a_fan_out_is_resumable_and_makes_each_job_once,
    r_b13_the_oldest_message_goes_first_whoever_has_it,
    r_b13_targets_are_taken_in_the_order_given,
    r_b13_a_duplicate_during_a_fan_out_finds_what_is_made,
    r_b6_jobs_of_an_old_message_are_bulk,
    r_b13_a_step_tells_its_lanes_next_due_times,
    r_b13_a_step_of_nothing_makes_nothing,
    r_b13_two_steps_at_once_make_each_job_once,
];

async fn r_b13_up_to_a_hundred_jobs_are_made_at_once_and_more_by_a_cursor(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let targets = bench.queues(tenant, limits::FANOUT_INLINE_MAX + 1).await;
    let inline = bench.message(tenant, "inline", &targets[1..]);
    let accepted = bench.accept_new(inline).await;
    assert_eq!((100, false, 100), (accepted.jobs_total, accepted.fanout_running, accepted.jobs.len()));
    let cursor = bench.accept_new(bench.message(tenant, "cursor", &targets)).await;
    assert_eq!((101, true, 0), (cursor.jobs_total, cursor.fanout_running, cursor.jobs.len()));
    assert!(bench.view(tenant, cursor.id).await.fanout_running);
    // A lane that is named twice is one job, and doesn't count twice.
    let mut repeated = targets[1..].to_vec();
    repeated.push(targets[1].clone());
    let repeated = bench.accept_new(bench.message(tenant, "repeated", &repeated)).await;
    assert_eq!((100, false), (repeated.jobs_total, repeated.fanout_running));
}

async fn r_b13_a_fan_out_is_resumable_and_makes_each_job_once(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let targets = bench.queues(tenant, 1_050).await;
    let message =
        NewMessage { due: Due::In(DurationMs::from_mins(5)), ..bench.message(tenant, "wide", &targets) };
    let accepted = bench.accept_new(message.clone()).await;
    let due_at = accepted.accepted_at.after(DurationMs::from_mins(5));
    let mut made = 0;
    loop {
        bench.advance(DurationMs::from_secs(1));
        let step = bench.store().fan_out(97).await.unwrap();
        made += step.jobs;
        assert_eq!(step.jobs, step.heads.len());
        assert!(step.heads.iter().all(|head| head.due_at == due_at));
        assert_eq!(made < 1_050, step.more);
        assert_eq!(step.more, bench.view(tenant, accepted.id).await.fanout_running);
        if !step.more {
            break;
        }
        assert_eq!(97, step.jobs);
    }
    assert_eq!(1_050, made);
    let jobs = bench.store().message_jobs(tenant, accepted.id, 2_000).await.unwrap();
    let expected: BTreeSet<JobId> =
        targets.iter().map(|target| JobId::of(accepted.id, target.lane)).collect();
    assert_eq!(expected, jobs.iter().map(|view| view.job.id).collect());
    assert!(
        jobs.iter().all(|view| view.job.scheduled_at == due_at && view.job.created_at > accepted.accepted_at)
    );
    let listed = bench.accept_new(message).await;
    assert_eq!(
        (1_050, false, limits::JOBS_LISTED_MAX),
        (listed.jobs_total, listed.fanout_running, listed.jobs.len())
    );
    let first: Vec<JobId> = expected.into_iter().take(limits::JOBS_LISTED_MAX).collect();
    assert_eq!(first, listed.jobs.iter().map(|brief| brief.id).collect::<Vec<_>>());
    assert_eq!(1_050, bench.store().counts().await.unwrap()[0].jobs);
    assert_eq!(FanOutStep::default(), bench.store().fan_out(500).await.unwrap());
}

async fn r_b13_the_oldest_message_goes_first_whoever_has_it(bench: Arc<Bench>) {
    let (one, two) = (bench.tenant("one").await, bench.tenant("two").await);
    let (ones, twos) = (bench.queues(one, 101).await, bench.queues(two, 101).await);
    // Accepted first, although its id is the larger one.
    let later_id = bench.message(one, "a", &ones);
    let first = bench.message(two, "b", &twos);
    let (first, second) = (bench.accept_new(first).await, bench.accept_new(later_id).await);
    let third = bench.accept_new(bench.message(two, "c", &twos)).await;
    let step = bench.store().fan_out(150).await.unwrap();
    assert_eq!((150, true, 150), (step.jobs, step.more, step.heads.len()));
    let order: Vec<_> = step.heads.iter().map(|head| (head.tenant, head.lane)).collect();
    assert!(order.is_sorted(), "heads come by tenant and lane");
    let made = async |tenant, id| bench.store().message_jobs(tenant, id, 1_000).await.unwrap().len();
    assert_eq!(
        (101, 49, 0),
        (made(two, first.id).await, made(one, second.id).await, made(two, third.id).await)
    );
    let step = bench.store().fan_out(1_000).await.unwrap();
    assert_eq!((153, false), (step.jobs, step.more));
}

async fn r_b13_targets_are_taken_in_the_order_given(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let mut targets = bench.queues(tenant, 120).await;
    targets.reverse();
    targets[0].wire_id = Some("wire-1".into());
    targets[0].owner = Some("team-a".into());
    let id = bench.accept_new(bench.message(tenant, "wide", &targets)).await.id;
    bench.store().fan_out(2).await.unwrap();
    let jobs = bench.store().message_jobs(tenant, id, 10).await.unwrap();
    let lanes: Vec<_> = jobs.iter().map(|view| view.job.lane).collect();
    assert_eq!(vec![targets[1].lane, targets[0].lane], lanes);
    assert_eq!((Some("wire-1"), Some("team-a")), (jobs[1].wire_id.as_deref(), jobs[1].owner.as_deref()));
    assert_eq!((None, None), (jobs[0].wire_id.as_deref(), jobs[0].owner.as_deref()));
    assert_eq!(targets[0].destination, jobs[1].destination);
}

async fn r_b13_a_duplicate_during_a_fan_out_finds_what_is_made(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let targets = bench.queues(tenant, 150).await;
    bench.accept_new(bench.message(tenant, "wide", &targets)).await;
    bench.store().fan_out(30).await.unwrap();
    match bench.accept(bench.message(tenant, "wide", &[])).await {
        Acceptance::Duplicate(known) => {
            assert_eq!((150, true, 30), (known.jobs_total, known.fanout_running, known.jobs.len()));
        }
        other => panic!("{other:?}"),
    }
}

async fn r_b6_jobs_of_an_old_message_are_bulk(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let targets = bench.queues(tenant, 101).await;
    let id = bench.accept_new(bench.message(tenant, "wide", &targets)).await.id;
    let fresh_for = DurationMs::from_mins(10);
    bench.advance(DurationMs(fresh_for.0 - 1));
    bench.store().fan_out(1).await.unwrap();
    bench.advance(DurationMs(1));
    bench.store().fan_out(1).await.unwrap();
    let jobs = bench.store().message_jobs(tenant, id, 10).await.unwrap();
    assert_eq!(vec![Share::Fresh, Share::Bulk], jobs.iter().map(|view| view.job.share).collect::<Vec<_>>());
    // Due at once, so scheduled for when they were made.
    assert_eq!(bench.now(), jobs[1].job.scheduled_at);
}

async fn r_b13_a_step_tells_its_lanes_next_due_times(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let targets = bench.queues(tenant, 101).await;
    let earlier = bench.job(tenant, "earlier", &targets[0]).await;
    bench.job(tenant, "held", &targets[1]).await;
    let earlier_due = bench.read(tenant, earlier).await.job.state.due_at().unwrap();
    bench.advance(DurationMs::from_secs(60));
    let until = bench.now().after(DurationMs::from_mins(3));
    let leased = bench.lease(tenant, targets[1].lane).await;
    let mut command = job_command(tenant, leased.job.id, fail_softly(leased.fence));
    command.hold_lane_until = Some(until);
    bench.try_apply(command).await.0.unwrap();
    bench.accept_new(bench.message(tenant, "wide", &targets)).await;
    let heads = bench.store().fan_out(3).await.unwrap().heads;
    assert_eq!(
        vec![earlier_due, until, bench.now()],
        heads.iter().map(|head| head.due_at).collect::<Vec<_>>()
    );
    assert_eq!(0, bench.grant(lease_request(tenant, targets[1].lane, 5)).await.jobs.len());
}

async fn r_b13_a_step_of_nothing_makes_nothing(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    assert_eq!(FanOutStep::default(), bench.store().fan_out(10).await.unwrap());
    let targets = bench.queues(tenant, 101).await;
    bench.accept_new(bench.message(tenant, "wide", &targets)).await;
    let step = bench.store().fan_out(0).await.unwrap();
    assert_eq!((0, 0, true), (step.jobs, step.heads.len(), step.more));
}

async fn r_b13_two_steps_at_once_make_each_job_once(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let targets = bench.queues(tenant, 400).await;
    let id = bench.accept_new(bench.message(tenant, "wide", &targets)).await.id;
    let mut racers = tokio::task::JoinSet::new();
    for _ in 0..10 {
        let store = bench.shared_store();
        racers.spawn(async move { store.fan_out(60).await.unwrap().jobs });
    }
    assert_eq!(400, racers.join_all().await.into_iter().sum::<usize>());
    let jobs = bench.store().message_jobs(tenant, id, 1_000).await.unwrap();
    assert_eq!(400, jobs.len());
    assert!(jobs.iter().all(|view| view.job.state.name() == StateName::Scheduled));
}
