//! Leasing: due jobs only, fairly, and never from a held lane.

use std::{collections::BTreeSet, sync::Arc};

use bytes::Bytes;
use posthaste_core::{
    Command, DestinationId, DurationMs, Effect, JobId, LaneId, Nature, OnUnknown, Path, Policy, RetryWish,
    Share, Start, State, StateName, TenantId, Timestamp, limits,
};
use posthaste_store::{
    AppliedOutcome, Due, JobCommand, LeaseGrant, LeaseRequest, LeasedJob, NewMessage, Target,
};

use crate::store_suite::{
    bench::{Bench, LEASE, fail, fail_softly, finish, job_command, lease_request},
    case_list,
};

case_list![
    r_b1_nothing_is_leased_before_it_is_due_and_the_oldest_goes_first,
    r_b6_slots_are_shared_between_fresh_retried_and_bulk_work,
    r_b6_slots_that_a_share_leaves_go_to_the_others,
    r_b5_a_held_lane_gives_nothing_until_its_time,
    r_b5_a_hold_is_never_shortened,
    r_b5_a_hold_is_written_whatever_becomes_of_the_command,
    r_b11_a_grant_stops_at_its_bytes_but_takes_one_job_of_any_size,
    r_b16_a_lease_takes_at_most_its_limit,
    r_a9_a_lease_names_its_path,
    r_b11_a_leased_job_comes_with_its_message,
    r_b3_requests_of_one_call_get_different_jobs,
    r_b3_requests_at_the_same_time_get_different_jobs,
    r_b9_evidence_settles_a_job_where_an_attempt_would_begin,
    r_c10_a_job_that_waits_for_a_look_up_is_not_leased,
    r_b3_expired_leases_are_listed_oldest_first_with_the_next_one,
    r_b3_an_unknown_lane_gives_nothing,
];

fn ids(grant: &LeaseGrant) -> Vec<JobId> {
    grant.jobs.iter().map(|leased| leased.job.id).collect()
}

async fn job_due(bench: &Bench, tenant: TenantId, key: &str, target: &Target, due_at: Timestamp) -> JobId {
    let message = bench.message(tenant, key, std::slice::from_ref(target));
    bench.accept_new(NewMessage { due: Due::At(due_at), ..message }).await.jobs[0].id
}

async fn r_b1_nothing_is_leased_before_it_is_due_and_the_oldest_goes_first(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let in_ms = |ms| bench.now().after(DurationMs(ms));
    let third = job_due(&bench, tenant, "third", &queue, in_ms(300)).await;
    let first = job_due(&bench, tenant, "first", &queue, in_ms(100)).await;
    let second = job_due(&bench, tenant, "second", &queue, in_ms(200)).await;
    let also_second = job_due(&bench, tenant, "also-second", &queue, in_ms(200)).await;
    bench.advance(DurationMs(99));
    let grant = bench.grant(lease_request(tenant, queue.lane, 10)).await;
    assert_eq!((0, Some(in_ms(1))), (grant.jobs.len(), grant.next_due));
    bench.advance(DurationMs(101));
    let grant = bench.grant(lease_request(tenant, queue.lane, 2)).await;
    assert_eq!(
        (vec![first, second], Some(bench.now())),
        (ids(&grant), grant.next_due),
        "by due time, then id"
    );
    let grant = bench.grant(lease_request(tenant, queue.lane, 2)).await;
    assert_eq!((vec![also_second], Some(in_ms(100))), (ids(&grant), grant.next_due));
    bench.advance(DurationMs(100));
    let grant = bench.grant(lease_request(tenant, queue.lane, 2)).await;
    assert_eq!((vec![third], None), (ids(&grant), grant.next_due));
    assert_eq!(0, bench.store().heads().await.unwrap().len());
}

/// Makes `count` jobs of each of the three shares, all due after a minute.
async fn jobs_of_each_share(bench: &Bench, tenant: TenantId, queue: &Target, counts: [usize; 3]) {
    for number in 0..counts[2] {
        bench.job(tenant, &format!("bulk-{number}"), queue).await;
        let leased = bench.lease(tenant, queue.lane).await;
        bench.apply(tenant, leased.job.id, finish(leased.fence)).await;
        let seen = leased.job.attempt;
        let resend = Command::Resend { seen, reason: "lost".into() };
        bench.apply(tenant, leased.job.id, resend).await;
        // Out of the way of the next ones.
        let leased = bench.lease(tenant, queue.lane).await;
        bench.apply(tenant, leased.job.id, fail_softly(leased.fence)).await;
    }
    for number in 0..counts[1] {
        bench.job(tenant, &format!("retry-{number}"), queue).await;
        let leased = bench.lease(tenant, queue.lane).await;
        bench.apply(tenant, leased.job.id, fail_softly(leased.fence)).await;
    }
    for number in 0..counts[0] {
        bench.job(tenant, &format!("fresh-{number}"), queue).await;
    }
    bench.advance(DurationMs::from_mins(1));
}

fn shares(grant: &LeaseGrant) -> Vec<Share> {
    grant.jobs.iter().map(|leased| leased.job.share).collect()
}

async fn r_b6_slots_are_shared_between_fresh_retried_and_bulk_work(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    jobs_of_each_share(&bench, tenant, &queue, [12, 12, 12]).await;
    let grant = bench.grant(lease_request(tenant, queue.lane, 10)).await;
    let mut expected = vec![Share::Fresh; 7];
    expected.extend([Share::Retry, Share::Retry, Share::Bulk]);
    assert_eq!(expected, shares(&grant));
    for (share, count) in [(Share::Fresh, 7), (Share::Retry, 2), (Share::Bulk, 1)] {
        let due: Vec<Timestamp> =
            grant.jobs.iter().filter(|leased| leased.job.share == share).map(due_of).collect();
        assert_eq!((count, true), (due.len(), due.is_sorted()), "{share}");
    }
}

fn due_of(leased: &LeasedJob) -> Timestamp {
    match &leased.job.state {
        State::Leased(lease) => lease.due_at,
        other => panic!("a leased job is leased: {other:?}"),
    }
}

async fn r_b6_slots_that_a_share_leaves_go_to_the_others(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    jobs_of_each_share(&bench, tenant, &queue, [0, 3, 12]).await;
    let grant = bench.grant(lease_request(tenant, queue.lane, 10)).await;
    let mut expected = vec![Share::Retry; 3];
    expected.extend([Share::Bulk; 7]);
    assert_eq!(expected, shares(&grant));
    let grant = bench.grant(lease_request(tenant, queue.lane, 10)).await;
    assert_eq!((5, None), (grant.jobs.len(), grant.next_due));
}

fn held(command: JobCommand, until: Timestamp) -> JobCommand {
    JobCommand { hold_lane_until: Some(until), ..command }
}

async fn r_b5_a_held_lane_gives_nothing_until_its_time(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let (queue, other) = (bench.queue(tenant, "orders").await, bench.queue(tenant, "other").await);
    bench.job(tenant, "one", &queue).await;
    let leased = bench.lease(tenant, queue.lane).await;
    bench.job(tenant, "two", &queue).await;
    bench.job(tenant, "elsewhere", &other).await;
    let until = bench.now().after(DurationMs::from_secs(20));
    let command = held(job_command(tenant, leased.job.id, fail_softly(leased.fence)), until);
    bench.try_apply(command).await.0.unwrap();
    let grant = bench.grant(lease_request(tenant, queue.lane, 10)).await;
    assert_eq!((0, Some(until)), (grant.jobs.len(), grant.next_due));
    assert_eq!(1, bench.grant(lease_request(tenant, other.lane, 10)).await.jobs.len());
    let heads = bench.store().heads().await.unwrap();
    assert_eq!(
        vec![(queue.lane, until)],
        heads.iter().map(|head| (head.lane, head.due_at)).collect::<Vec<_>>()
    );
    bench.advance(DurationMs(19_999));
    assert_eq!(0, bench.grant(lease_request(tenant, queue.lane, 10)).await.jobs.len());
    bench.advance(DurationMs(1));
    assert_eq!(2, bench.grant(lease_request(tenant, queue.lane, 10)).await.jobs.len());
}

async fn r_b5_a_hold_is_never_shortened(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    bench.job(tenant, "one", &queue).await;
    let leased = bench.lease(tenant, queue.lane).await;
    bench.job(tenant, "two", &queue).await;
    let far = bench.now().after(DurationMs::from_mins(2));
    let near = bench.now().after(DurationMs::from_secs(2));
    let extend = |until| {
        let command = Command::Extend { fence: leased.fence, lease_for: LEASE, checkpoint: None };
        held(job_command(tenant, leased.job.id, command), until)
    };
    bench.store().apply(vec![extend(far), extend(near)]).await.unwrap();
    bench.try_apply(extend(near)).await.0.unwrap();
    assert_eq!(Some(far), bench.grant(lease_request(tenant, queue.lane, 1)).await.next_due);
}

async fn r_b5_a_hold_is_written_whatever_becomes_of_the_command(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let (queue, other) = (bench.queue(tenant, "orders").await, bench.queue(tenant, "other").await);
    let job = bench.job(tenant, "one", &queue).await;
    bench.job(tenant, "two", &other).await;
    let until = bench.now().after(DurationMs::from_secs(20));
    let refused = held(job_command(tenant, job, Command::Expire), until);
    assert!(bench.try_apply(refused).await.0.is_err());
    // A job that is not there holds nothing, although its lane is.
    let missing = JobId::of(bench.message_id(), other.lane);
    let outcome = bench.outcome(held(job_command(tenant, missing, Command::Expire), until)).await;
    assert!(matches!(outcome, AppliedOutcome::Missing));
    let heads = bench.store().heads().await.unwrap();
    assert_eq!(vec![until, bench.now()], heads.iter().map(|head| head.due_at).collect::<Vec<_>>());
}

async fn r_b11_a_grant_stops_at_its_bytes_but_takes_one_job_of_any_size(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    for (number, bytes) in [600, 300, 100, 1, 0, 5_000, 0].into_iter().enumerate() {
        let message = bench.message(tenant, &format!("order-{number}"), std::slice::from_ref(&queue));
        let message = NewMessage { payload: Bytes::from(vec![b'x'; bytes]), ..message };
        bench.accept_new(message).await;
        bench.advance(DurationMs(1));
    }
    let sizes = async |bytes_max| {
        let request = LeaseRequest { bytes_max, ..lease_request(tenant, queue.lane, 10) };
        let grant = bench.grant(request).await;
        grant.jobs.iter().map(|leased| leased.message.payload.len()).collect::<Vec<_>>()
    };
    assert_eq!(vec![600, 300, 100], sizes(1_000).await);
    assert_eq!(vec![1, 0], sizes(1).await);
    assert_eq!(vec![5_000], sizes(0).await);
    assert_eq!(
        vec![0],
        sizes(1_000).await,
        "an empty payload is none too many, but not after too large a one"
    );
    assert_eq!(Vec::<usize>::new(), sizes(1_000).await);
}

async fn r_b16_a_lease_takes_at_most_its_limit(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    for number in 0..5 {
        bench.job(tenant, &format!("order-{number}"), &queue).await;
    }
    let grant = bench.grant(lease_request(tenant, queue.lane, 0)).await;
    assert_eq!((0, Some(bench.now())), (grant.jobs.len(), grant.next_due));
    assert_eq!(3, bench.grant(lease_request(tenant, queue.lane, 3)).await.jobs.len());
    assert_eq!(2, bench.grant(lease_request(tenant, queue.lane, limits::CONSUME_MAX)).await.jobs.len());
    assert_eq!(0, bench.store().lease(Vec::new()).await.unwrap().len());
}

async fn r_a9_a_lease_names_its_path(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let job = bench.job(tenant, "one", &queue).await;
    let first = bench.lease(tenant, queue.lane).await;
    assert_eq!((Path::FirstRun, "1.1".to_owned()), (first.path, first.fence.to_string()));
    bench.apply(tenant, job, fail_softly(first.fence)).await;
    bench.advance(DurationMs::from_mins(1));
    let second = bench.lease(tenant, queue.lane).await;
    assert_eq!((Path::RetryAfterFailure, "1.2".to_owned()), (second.path, second.fence.to_string()));
    let change = bench.apply(tenant, job, finish(second.fence)).await;
    assert_eq!(Path::RetryAfterFailure, change.ended.unwrap().path);
}

async fn r_b11_a_leased_job_comes_with_its_message(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let mut queue = bench.queue(tenant, "orders").await;
    queue.wire_id = Some("msg_wire".into());
    let new = NewMessage {
        event_type: Some("order.paid".into()),
        content_type: Some("text/plain".into()),
        metadata: Some("{\"a\":1}".into()),
        traceparent: Some("00-1-2-01".into()),
        source: Some(DestinationId::new("shop").unwrap()),
        payload_ref: Some("file:///x".into()),
        payload: Bytes::from_static(b"\0bytes"),
        ..bench.message(tenant, "order-1", std::slice::from_ref(&queue))
    };
    bench.accept_new(new.clone()).await;
    bench.advance(DurationMs::from_secs(1));
    let leased = bench.lease(tenant, queue.lane).await;
    assert_eq!(Some("msg_wire"), leased.wire_id.as_deref());
    let message = leased.message;
    assert_eq!((new.id, new.key, new.event_type), (message.id, message.key, message.event_type));
    assert_eq!((new.content_type, new.metadata), (message.content_type, message.metadata));
    assert_eq!((new.traceparent, new.correlation_id), (message.traceparent, message.correlation_id));
    assert_eq!((new.payload_ref, new.payload), (message.payload_ref, message.payload));
    let read = bench.read(tenant, leased.job.id).await;
    assert_eq!(leased.job, read.job, "what was leased is what is stored");
    let State::Leased(lease) = read.job.state else { panic!("it is leased") };
    assert_eq!((bench.now(), Some(bench.now())), (lease.leased_at, lease.started_at));
    assert_eq!((bench.now().after(LEASE), "worker-1"), (lease.expires_at, &*lease.worker));
}

async fn r_b3_requests_of_one_call_get_different_jobs(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let (queue, other) = (bench.queue(tenant, "orders").await, bench.queue(tenant, "other").await);
    for number in 0..5 {
        bench.job(tenant, &format!("order-{number}"), &queue).await;
    }
    let job = bench.job(tenant, "elsewhere", &other).await;
    let requests = [(queue.lane, 3), (other.lane, 3), (queue.lane, 3)];
    let requests = requests.map(|(lane, limit)| lease_request(tenant, lane, limit));
    let grants = bench.store().lease(requests.to_vec()).await.unwrap();
    assert_eq!(vec![3, 1, 2], grants.iter().map(|grant| grant.jobs.len()).collect::<Vec<_>>());
    assert_eq!(vec![job], ids(&grants[1]));
    assert_eq!(6, grants.iter().flat_map(ids).collect::<BTreeSet<_>>().len());
}

async fn r_b3_requests_at_the_same_time_get_different_jobs(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    for number in 0..60 {
        bench.job(tenant, &format!("order-{number}"), &queue).await;
    }
    let mut racers = tokio::task::JoinSet::new();
    for _ in 0..30 {
        let (store, request) = (bench.shared_store(), lease_request(tenant, queue.lane, 3));
        racers.spawn(async move { ids(&store.lease(vec![request]).await.unwrap()[0]) });
    }
    let leased: Vec<JobId> = racers.join_all().await.into_iter().flatten().collect();
    assert_eq!(60, leased.len());
    assert_eq!(60, leased.iter().collect::<BTreeSet<_>>().len());
}

async fn r_b9_evidence_settles_a_job_where_an_attempt_would_begin(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let job = bench.job(tenant, "one", &queue).await;
    let first = bench.lease(tenant, queue.lane).await;
    for lost in 0..2 {
        if lost == 1 {
            bench.advance(DurationMs::from_mins(1));
            bench.lease(tenant, queue.lane).await;
        }
        bench.advance(LEASE);
        bench.apply(tenant, job, Command::Expire).await;
    }
    // The first attempt's commit comes too late to count at once, but not too late to be heard.
    assert!(bench.try_apply(job_command(tenant, job, finish(first.fence))).await.0.is_err());
    assert_eq!(StateName::Retryable, bench.state(tenant, job).await);
    bench.advance(DurationMs::from_mins(2));
    let other = bench.job(tenant, "two", &queue).await;
    let grant = bench.grant(lease_request(tenant, queue.lane, 5)).await;
    assert_eq!((vec![other], 1, None), (ids(&grant), grant.settled.len(), grant.next_due));
    let change = &grant.settled[0];
    assert_eq!((job, Nature::SettledInstead), (change.job.id, change.nature));
    assert_eq!((StateName::Retryable, "one"), (change.from, change.key.as_str()));
    assert_eq!(StateName::Committed, bench.state(tenant, job).await);
    assert_eq!(2, bench.read(tenant, job).await.attempts.len(), "no third attempt began");
}

async fn r_c10_a_job_that_waits_for_a_look_up_is_not_leased(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let policy = Policy {
        on_unknown: OnUnknown::Reconcile { settle: DurationMs::from_secs(60) },
        ..Policy::queue_default()
    };
    let policy = Arc::new(policy);
    for number in 0..3 {
        bench.job(tenant, &format!("order-{number}"), &queue).await;
        let leased = bench.lease(tenant, queue.lane).await;
        let command = fail(leased.fence, Effect::Possible, RetryWish::Yes);
        let command = JobCommand { policy: policy.clone(), ..job_command(tenant, leased.job.id, command) };
        bench.try_apply(command).await.0.unwrap();
        bench.advance(DurationMs(1));
    }
    bench.advance(DurationMs::from_hours(1));
    let grant = bench.grant(lease_request(tenant, queue.lane, 2)).await;
    assert_eq!((0, None), (grant.jobs.len(), grant.next_due));
    assert_eq!(0, bench.store().heads().await.unwrap().len());
    // They don't take the slots of those that wait for an attempt.
    let job = bench.job(tenant, "new", &queue).await;
    assert_eq!(vec![job], ids(&bench.grant(lease_request(tenant, queue.lane, 1)).await));
}

async fn r_b3_expired_leases_are_listed_oldest_first_with_the_next_one(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let mut jobs = Vec::new();
    for (number, seconds) in [30, 10, 20].into_iter().enumerate() {
        bench.job(tenant, &format!("order-{number}"), &queue).await;
        let request = LeaseRequest {
            lease_for: DurationMs::from_secs(seconds),
            starts: Start::Fenced,
            ..lease_request(tenant, queue.lane, 1)
        };
        jobs.push(bench.grant(request).await.jobs[0].job.id);
    }
    let start = bench.now();
    let at = |seconds| Some(start.after(DurationMs::from_secs(seconds)));
    assert_eq!((vec![], at(10)), bench.store().expired(10).await.unwrap());
    bench.advance(DurationMs(9_999));
    assert_eq!((vec![], at(10)), bench.store().expired(10).await.unwrap());
    bench.advance(DurationMs(1));
    assert_eq!((vec![(tenant, jobs[1])], at(20)), bench.store().expired(10).await.unwrap());
    bench.advance(DurationMs::from_secs(15));
    assert_eq!(
        (vec![(tenant, jobs[1]), (tenant, jobs[2])], at(30)),
        bench.store().expired(10).await.unwrap()
    );
    assert_eq!((vec![(tenant, jobs[1])], at(20)), bench.store().expired(1).await.unwrap());
    assert_eq!((vec![], at(10)), bench.store().expired(0).await.unwrap());
    bench.apply(tenant, jobs[1], Command::Expire).await;
    assert_eq!((vec![(tenant, jobs[2])], at(30)), bench.store().expired(10).await.unwrap());
}

async fn r_b3_an_unknown_lane_gives_nothing(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let grant = bench.grant(lease_request(tenant, LaneId(77), 5)).await;
    assert_eq!((0, 0, None), (grant.jobs.len(), grant.settled.len(), grant.next_due));
}
