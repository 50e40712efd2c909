//! Commands as such: in batches, refused, missing.

use std::sync::Arc;

use posthaste_core::{Answer, Command, CommandName, DurationMs, JobId, LaneId, Refusal, StateName};
use posthaste_store::{AppliedOutcome, Stage};

use crate::store_suite::{
    actual_counts,
    bench::{Bench, LEASE, fail_softly, finish, job_command},
    case_list,
};

case_list![
    r_b3_commands_of_one_call_see_each_other_and_answer_in_order,
    r_b3_a_refused_command_leaves_the_store_as_it_was,
    a_job_that_is_not_there_is_missing_and_stops_no_other,
    counts_are_the_real_numbers_through_every_state,
    a_change_tells_what_was_before_and_what_is_now,
    a_dropped_call_leaves_the_store_working,
    the_store_tells_its_time_and_epoch,
];

async fn r_b3_commands_of_one_call_see_each_other_and_answer_in_order(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let one = bench.job(tenant, "one", &queue).await;
    let first = bench.lease(tenant, queue.lane).await;
    let two = bench.job(tenant, "two", &queue).await;
    let commands = vec![
        job_command(tenant, one, finish(first.fence)),
        job_command(tenant, two, Command::Cancel { reason: "x".into() }),
        job_command(tenant, one, Command::Resend { seen: Some(first.fence.attempt), reason: "y".into() }),
        job_command(tenant, one, Command::Cancel { reason: "z".into() }),
        job_command(tenant, one, finish(first.fence)),
        job_command(tenant, two, Command::Resend { seen: None, reason: "y".into() }),
    ];
    let applied = bench.store().apply(commands).await.unwrap();
    assert_eq!(
        vec![one, two, one, one, one, two],
        applied.iter().map(|applied| applied.job).collect::<Vec<_>>()
    );
    let states: Vec<Option<StateName>> = applied
        .iter()
        .map(|applied| match &applied.outcome {
            AppliedOutcome::Decided { change, .. } => change.as_ref().map(|change| change.job.state.name()),
            other => panic!("{other:?}"),
        })
        .collect();
    use StateName::*;
    assert_eq!(vec![Some(Committed), Some(Cancelled), Some(Scheduled), Some(Cancelled), None, None], states);
    let stages: Vec<Stage> = {
        let entries = bench.store().custody(tenant, first.message.id).await.unwrap();
        entries.iter().map(|entry| entry.stage).collect()
    };
    assert_eq!(vec![Stage::Resent, Stage::Cancelled], stages);
    assert_eq!(0, bench.store().apply(Vec::new()).await.unwrap().len());
}

async fn r_b3_a_refused_command_leaves_the_store_as_it_was(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let job = bench.job(tenant, "one", &queue).await;
    let leased = bench.lease(tenant, queue.lane).await;
    let scope = [(tenant, leased.message.id)];
    let before = bench.snapshot(&scope).await;
    for command in [
        Command::Expire,
        Command::Settle { evidence: posthaste_core::Evidence::Ledger },
        Command::Replay { seen: None, assume_not_done: true, reason: "x".into() },
        Command::Resend { seen: None, reason: "x".into() },
        Command::LookUp {
            seen: leased.job.attempt,
            asked_at: bench.now(),
            verdict: posthaste_core::LookUpVerdict::Present,
            settled_at: bench.now(),
            said: None,
        },
    ] {
        let name = command.name();
        let (reply, change) = bench.try_apply(job_command(tenant, job, command)).await;
        assert!(reply.is_err() && change.is_none(), "{name}: {reply:?}");
    }
    let lease = Command::Lease {
        worker: "thief".into(),
        lease_for: LEASE,
        deadline_after: LEASE,
        starts: posthaste_core::Start::WithLease,
    };
    let (reply, _) = bench.try_apply(job_command(tenant, job, lease)).await;
    assert_eq!(Err(Refusal::WrongState { state: StateName::Leased, command: CommandName::Lease }), reply);
    assert_eq!(before, bench.snapshot(&scope).await);
}

async fn a_job_that_is_not_there_is_missing_and_stops_no_other(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let job = bench.job(tenant, "one", &queue).await;
    let message = bench.message_id();
    let cancel = |job| job_command(tenant, job, Command::Cancel { reason: "x".into() });
    let nowhere =
        [JobId::of(message, queue.lane), JobId(0), JobId(u128::MAX), JobId::of(message, LaneId(99))];
    let commands = nowhere.iter().map(|job| cancel(*job)).chain([cancel(job)]).collect();
    let applied = bench.store().apply(commands).await.unwrap();
    assert_eq!(5, applied.len());
    assert!(applied[..4].iter().all(|applied| matches!(applied.outcome, AppliedOutcome::Missing)));
    assert!(matches!(applied[4].outcome, AppliedOutcome::Decided { reply: Ok(Answer::Cancel(_)), .. }));
    for job in nowhere {
        assert!(bench.store().job(tenant, job).await.unwrap().is_none());
    }
}

async fn counts_are_the_real_numbers_through_every_state(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let check = async || {
        let kept: Vec<_> = bench.store().counts().await.unwrap();
        let kept: Vec<_> = kept.iter().map(|count| (count.tenant, count.state, count.jobs)).collect();
        assert_eq!(actual_counts(bench.store()).await, kept);
        kept.iter().map(|(_, state, jobs)| (*state, *jobs)).collect::<Vec<_>>()
    };
    use StateName::*;
    assert_eq!(0, check().await.len());
    let job = bench.job(tenant, "one", &queue).await;
    assert_eq!(vec![(Scheduled, 1)], check().await);
    let leased = bench.lease(tenant, queue.lane).await;
    bench.job(tenant, "two", &queue).await;
    assert_eq!(vec![(Scheduled, 1), (Leased, 1)], check().await);
    bench.apply(tenant, job, fail_softly(leased.fence)).await;
    assert_eq!(vec![(Scheduled, 1), (Retryable, 1)], check().await);
    let two = bench.lease(tenant, queue.lane).await;
    bench.apply(tenant, two.job.id, finish(two.fence)).await;
    bench.advance(DurationMs::from_mins(1));
    let again = bench.lease(tenant, queue.lane).await;
    let no = crate::store_suite::bench::fail(
        again.fence,
        posthaste_core::Effect::None,
        posthaste_core::RetryWish::No,
    );
    bench.apply(tenant, job, no).await;
    assert_eq!(vec![(Committed, 1), (DeadLettered, 1)], check().await);
    bench.apply(tenant, job, Command::Cancel { reason: "x".into() }).await;
    assert_eq!(vec![(Committed, 1), (Cancelled, 1)], check().await);
    let seen = two.job.attempt;
    bench.apply(tenant, two.job.id, Command::Resend { seen, reason: "x".into() }).await;
    assert_eq!(vec![(Scheduled, 1), (Cancelled, 1)], check().await);
}

async fn a_change_tells_what_was_before_and_what_is_now(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let job = bench.job(tenant, "one", &queue).await;
    let accepted_at = bench.now();
    bench.advance(DurationMs::from_secs(9));
    let change = bench.apply(tenant, job, Command::Cancel { reason: "x".into() }).await;
    assert_eq!((StateName::Scheduled, CommandName::Cancel), (change.from, change.command));
    assert_eq!((accepted_at, "one"), (change.accepted_at, change.key.as_str()));
    assert_eq!(bench.read(tenant, job).await.job, change.job);
    assert!(change.ended.is_none());
}

async fn a_dropped_call_leaves_the_store_working(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    for round in 0..20 {
        let message = bench.message(tenant, &format!("dropped-{round}"), std::slice::from_ref(&queue));
        let mut call = bench.store().accept(vec![message.clone()]);
        // Polled once at most, then dropped: done or not.
        let poll =
            std::future::poll_fn(|context| std::task::Poll::Ready(call.as_mut().poll(context).is_ready()));
        if round % 2 == 0 {
            poll.await;
        }
        drop(call);
        // Sent again it is there, once.
        bench.accept_new(message).await;
    }
    assert_eq!(20, bench.store().counts().await.unwrap()[0].jobs);
}

async fn the_store_tells_its_time_and_epoch(bench: Arc<Bench>) {
    let before = bench.store().status().await.unwrap();
    assert_eq!((1, bench.now(), 0), (before.epoch.0, before.now, before.waiting));
    bench.advance(DurationMs(1_234));
    assert_eq!(bench.now(), bench.store().status().await.unwrap().now);
}
