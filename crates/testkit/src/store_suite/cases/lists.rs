//! Lists: in order, page by page, by what they are asked for.

use std::sync::Arc;

use posthaste_core::{Command, DurationMs, JobId, LaneId, MessageId, StateName, TenantId};
use posthaste_store::{CustodyEntry, JobFilter, Stage};

use crate::store_suite::{
    bench::{Bench, fail_softly, finish},
    case_list,
};

case_list![
    jobs_are_listed_by_creation_newest_first_unless_asked_otherwise,
    jobs_are_listed_page_by_page_without_gap_or_repeat,
    jobs_are_listed_by_state_and_lane,
    a_messages_jobs_come_by_lane_with_their_attempts,
    custody_comes_as_it_was_written_and_a_thousand_at_most,
    heads_come_by_tenant_and_lane_with_the_earliest_due_time,
];

async fn list(bench: &Bench, tenant: TenantId, filter: JobFilter) -> Vec<JobId> {
    let jobs = bench.store().jobs(tenant, filter).await.unwrap();
    assert!(jobs.iter().all(|view| view.attempts.is_empty()), "lists come without attempts");
    jobs.into_iter().map(|view| view.job.id).collect()
}

/// A dozen jobs in two lanes, in every state but cancelled; oldest first.
async fn dozen(bench: &Bench) -> (TenantId, [LaneId; 2], Vec<JobId>) {
    let tenant = bench.tenant("default").await;
    let (one, two) = (bench.queue(tenant, "one").await, bench.queue(tenant, "two").await);
    let mut jobs = Vec::new();
    for round in 0..6 {
        for queue in [&one, &two] {
            let job = bench.job(tenant, &format!("{}-{round}", queue.destination), queue).await;
            jobs.push(job);
            match round {
                0 => {
                    let leased = bench.lease(tenant, queue.lane).await;
                    bench.apply(tenant, job, finish(leased.fence)).await;
                }
                1 => {
                    let leased = bench.lease(tenant, queue.lane).await;
                    bench.apply(tenant, job, fail_softly(leased.fence)).await;
                }
                2 => {
                    bench.lease(tenant, queue.lane).await;
                }
                3 => {
                    bench
                        .apply(tenant, job, Command::Abandon { cause: posthaste_core::Cause::Exhausted })
                        .await;
                }
                _ => {}
            }
            bench.advance(DurationMs(1));
        }
    }
    (tenant, [one.lane, two.lane], jobs)
}

async fn jobs_are_listed_by_creation_newest_first_unless_asked_otherwise(bench: Arc<Bench>) {
    let (tenant, _, mut jobs) = dozen(&bench).await;
    let filter = JobFilter { oldest_first: true, limit: 100, ..JobFilter::default() };
    assert_eq!(jobs, list(&bench, tenant, filter).await);
    jobs.reverse();
    assert_eq!(jobs, list(&bench, tenant, JobFilter { limit: 100, ..JobFilter::default() }).await);
    assert_eq!(jobs[..3], list(&bench, tenant, JobFilter { limit: 3, ..JobFilter::default() }).await);
    assert_eq!(0, list(&bench, tenant, JobFilter::default()).await.len(), "a limit of nothing lists nothing");
}

async fn jobs_are_listed_page_by_page_without_gap_or_repeat(bench: Arc<Bench>) {
    let (tenant, _, jobs) = dozen(&bench).await;
    for oldest_first in [true, false] {
        let mut seen = Vec::new();
        loop {
            let filter =
                JobFilter { oldest_first, after: seen.last().copied(), limit: 5, ..JobFilter::default() };
            let page = list(&bench, tenant, filter).await;
            if page.is_empty() {
                break;
            }
            seen.extend(page);
        }
        if !oldest_first {
            seen.reverse();
        }
        assert_eq!(jobs, seen);
    }
    // A mark that is no job is a place in the order all the same.
    let between = Some(JobId(jobs[5].0 + 1));
    let filter = JobFilter { oldest_first: true, after: between, limit: 1, ..JobFilter::default() };
    assert_eq!(jobs[6..7], list(&bench, tenant, filter).await);
    let filter = JobFilter { after: between, limit: 1, ..JobFilter::default() };
    assert_eq!(jobs[5..6], list(&bench, tenant, filter).await);
}

async fn jobs_are_listed_by_state_and_lane(bench: Arc<Bench>) {
    let (tenant, lanes, jobs) = dozen(&bench).await;
    let of = async |state, lane| {
        let filter = JobFilter { state, lane, oldest_first: true, limit: 100, ..JobFilter::default() };
        list(&bench, tenant, filter).await
    };
    use StateName::*;
    let by_round = [Committed, Retryable, Leased, DeadLettered, Scheduled, Scheduled];
    for state in StateName::ALL.iter().copied() {
        let expected = |lane: Option<LaneId>| -> Vec<JobId> {
            let fits = |(index, job): (usize, &JobId)| {
                (by_round[index / 2] == state && lane.is_none_or(|lane| job.lane() == lane)).then_some(*job)
            };
            jobs.iter().enumerate().filter_map(fits).collect()
        };
        for lane in [None, Some(lanes[0]), Some(lanes[1]), Some(LaneId(9))] {
            assert_eq!(expected(lane), of(Some(state), lane).await, "{state}, {lane:?}");
        }
    }
    let even: Vec<JobId> = jobs.iter().copied().step_by(2).collect();
    assert_eq!(even, of(None, Some(lanes[0])).await);
    let filter = JobFilter {
        state: Some(Scheduled),
        lane: Some(lanes[1]),
        after: Some(jobs[11]),
        limit: 5,
        ..JobFilter::default()
    };
    assert_eq!(vec![jobs[9]], list(&bench, tenant, filter).await, "all that is given must fit");
    let after = Some(jobs[8]);
    let filter =
        JobFilter { state: Some(Scheduled), after, oldest_first: true, limit: 2, ..JobFilter::default() };
    assert_eq!(jobs[9..11], list(&bench, tenant, filter).await);
}

async fn a_messages_jobs_come_by_lane_with_their_attempts(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let mut targets = bench.queues(tenant, 3).await;
    targets.reverse();
    let id = bench.accept_new(bench.message(tenant, "wide", &targets)).await.id;
    let other = bench.accept_new(bench.message(tenant, "other", &targets)).await.id;
    let leased = bench.lease(tenant, targets[1].lane).await;
    bench.apply(tenant, leased.job.id, finish(leased.fence)).await;
    let jobs = bench.store().message_jobs(tenant, id, 10).await.unwrap();
    let found: Vec<(LaneId, usize)> = jobs.iter().map(|view| (view.job.lane, view.attempts.len())).collect();
    assert_eq!(vec![(targets[2].lane, 0), (targets[1].lane, 1), (targets[0].lane, 0)], found);
    assert_eq!(2, bench.store().message_jobs(tenant, id, 2).await.unwrap().len());
    assert_eq!(0, bench.store().message_jobs(tenant, id, 0).await.unwrap().len());
    assert_eq!(3, bench.store().message_jobs(tenant, other, 10).await.unwrap().len());
    let briefs = bench.store().briefs(tenant, id).await.unwrap();
    let states: Vec<StateName> = briefs.iter().map(|brief| brief.state).collect();
    assert_eq!(vec![StateName::Scheduled, StateName::Committed, StateName::Scheduled], states);
    // Ids are close together; a message's jobs are only its own.
    assert_eq!(0, bench.store().briefs(tenant, MessageId(id.0 + 1)).await.unwrap().len());
}

async fn custody_comes_as_it_was_written_and_a_thousand_at_most(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let id = bench.accept_new(bench.message(tenant, "order-1", &[])).await.id;
    let entry = |number: i64| CustodyEntry {
        tenant,
        message: id,
        job: (number % 2 == 0).then_some(JobId(id.0)),
        // Out of order on purpose: the order is that of writing.
        at: bench.now().after(DurationMs(number.unsigned_abs() % 7)),
        stage: Stage::ALL[usize::try_from(number).unwrap() % Stage::ALL.len()],
        attempt: (number % 3 == 0).then_some(posthaste_core::Attempt::FIRST),
        actor: (number % 5 == 0).then(|| format!("actor\0 {number}").into()),
        detail: (number % 4 == 0).then(|| format!("{{\"n\":{number}}}").into()),
    };
    let entries: Vec<CustodyEntry> = (0..1_003).map(entry).collect();
    bench.store().note(entries[..500].to_vec()).await.unwrap();
    bench.store().note(Vec::new()).await.unwrap();
    bench.store().note(entries[500..].to_vec()).await.unwrap();
    assert_eq!(entries[..1_000], bench.store().custody(tenant, id).await.unwrap());
    assert!(bench.store().custody(TenantId(tenant.0 + 1), id).await.unwrap().is_empty());
}

async fn heads_come_by_tenant_and_lane_with_the_earliest_due_time(bench: Arc<Bench>) {
    let (one, two) = (bench.tenant("one").await, bench.tenant("two").await);
    let mut expected = Vec::new();
    for tenant in [one, two] {
        for target in bench.queues(tenant, 3).await {
            for (number, minutes) in [9, 3, 6].into_iter().enumerate() {
                let message = bench.message(
                    tenant,
                    &format!("{}-{number}", target.destination),
                    std::slice::from_ref(&target),
                );
                let due = posthaste_store::Due::In(DurationMs::from_mins(minutes));
                bench.accept_new(posthaste_store::NewMessage { due, ..message }).await;
            }
            expected.push((tenant, target.lane, bench.now().after(DurationMs::from_mins(3))));
        }
    }
    let heads = bench.store().heads().await.unwrap();
    let heads: Vec<_> = heads.iter().map(|head| (head.tenant, head.lane, head.due_at)).collect();
    assert_eq!(expected, heads);
}
