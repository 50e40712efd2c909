//! Tenants can't see, touch or infer each other.

use std::sync::Arc;

use posthaste_core::{Command, DurationMs, StateName, TenantId};
use posthaste_store::{Acceptance, AppliedOutcome, JobFilter, MessageName, NewMessage, Target};

use crate::store_suite::{
    bench::{Bench, LEASE, finish, job_command, key, lease_request, new_message},
    case_list,
};

case_list![
    r_g6_the_same_keys_and_ids_in_two_tenants_are_two_messages,
    r_g6_a_job_of_another_tenant_is_missing,
    r_g6_nothing_of_another_tenant_is_read,
    r_g6_a_lease_and_a_hold_are_of_one_tenant,
    r_g6_counts_are_of_each_tenant,
];

/// Two tenants with a queue and a message each, of equal names and ids throughout.
async fn twins(bench: &Bench) -> ([TenantId; 2], Target, [NewMessage; 2]) {
    let tenants = [bench.tenant("one").await, bench.tenant("two").await];
    let target = bench.queue(tenants[0], "orders").await;
    assert_eq!(target.lane, bench.queue(tenants[1], "orders").await.lane);
    let id = bench.message_id();
    let messages = tenants.map(|tenant| NewMessage {
        payload: format!("of {tenant:?}").into_bytes().into(),
        ..new_message(tenant, id, "order-1", std::slice::from_ref(&target))
    });
    for message in &messages {
        bench.accept_new(message.clone()).await;
    }
    (tenants, target, messages)
}

async fn r_g6_the_same_keys_and_ids_in_two_tenants_are_two_messages(bench: Arc<Bench>) {
    let (tenants, target, messages) = twins(&bench).await;
    for (tenant, message) in tenants.into_iter().zip(messages) {
        assert_eq!(0, bench.view(tenant, message.id).await.duplicates);
        let (payload, _) = bench.store().payload(tenant, message.id).await.unwrap().unwrap();
        assert_eq!(message.payload, payload);
        let leased = bench.lease(tenant, target.lane).await;
        assert_eq!((tenant, message.payload), (leased.job.tenant, leased.message.payload));
    }
    // A duplicate in one tenant is none in the other.
    let again = bench.message(tenants[1], "order-1", &[]);
    assert!(matches!(bench.accept(again).await, Acceptance::Duplicate(_)));
    let id = bench.store().message(tenants[0], MessageName::Key(key("order-1"))).await.unwrap().unwrap();
    assert_eq!(0, id.duplicates);
}

async fn r_g6_a_job_of_another_tenant_is_missing(bench: Arc<Bench>) {
    let (one, two) = (bench.tenant("one").await, bench.tenant("two").await);
    let queue = bench.queue(one, "orders").await;
    let job = bench.job(one, "order-1", &queue).await;
    let leased = bench.lease(one, queue.lane).await;
    for command in [finish(leased.fence), Command::Cancel { reason: "x".into() }, Command::Expire] {
        let outcome = bench.outcome(job_command(two, job, command)).await;
        assert!(matches!(outcome, AppliedOutcome::Missing), "{outcome:?}");
    }
    assert_eq!(StateName::Leased, bench.state(one, job).await);
    assert_eq!(0, bench.store().custody(one, leased.message.id).await.unwrap().len());
}

async fn r_g6_nothing_of_another_tenant_is_read(bench: Arc<Bench>) {
    let (one, two) = (bench.tenant("one").await, bench.tenant("two").await);
    let queue = bench.queue(one, "orders").await;
    let message = bench.message(one, "order-1", &[queue]);
    let id = message.id;
    let job = bench.accept_new(message).await.jobs[0].id;
    bench.accept(bench.message(one, "order-1", &[])).await;
    let store = bench.store();
    assert!(store.job(two, job).await.unwrap().is_none());
    assert!(store.message(two, MessageName::Id(id)).await.unwrap().is_none());
    assert!(store.message(two, MessageName::Key(key("order-1"))).await.unwrap().is_none());
    assert!(store.payload(two, id).await.unwrap().is_none());
    assert!(store.custody(two, id).await.unwrap().is_empty());
    assert!(store.briefs(two, id).await.unwrap().is_empty());
    assert!(store.message_jobs(two, id, 10).await.unwrap().is_empty());
    let all = JobFilter { limit: 10, ..JobFilter::default() };
    assert!(store.jobs(two, all.clone()).await.unwrap().is_empty());
    assert_eq!(
        (1, 1),
        (store.jobs(one, all).await.unwrap().len(), store.custody(one, id).await.unwrap().len())
    );
}

async fn r_g6_a_lease_and_a_hold_are_of_one_tenant(bench: Arc<Bench>) {
    let (tenants, target, messages) = twins(&bench).await;
    let [one, two] = tenants;
    let leased = bench.lease(one, target.lane).await;
    assert_eq!(StateName::Scheduled, bench.state(two, leased.job.id).await);
    let until = bench.now().after(DurationMs::from_mins(5));
    let mut extend = job_command(
        one,
        leased.job.id,
        Command::Extend { fence: leased.fence, lease_for: LEASE, checkpoint: None },
    );
    extend.hold_lane_until = Some(until);
    bench.try_apply(extend).await.0.unwrap();
    bench.job(one, "order-2", &target).await;
    assert_eq!(0, bench.grant(lease_request(one, target.lane, 5)).await.jobs.len());
    assert_eq!(1, bench.grant(lease_request(two, target.lane, 5)).await.jobs.len());
    bench.advance(LEASE);
    let job = leased.job.id;
    assert_eq!(vec![(one, job), (two, job)], bench.store().expired(5).await.unwrap().0);
    bench.apply(two, job, Command::Expire).await;
    assert_eq!(
        (StateName::Leased, 0),
        (bench.state(one, job).await, bench.read(one, job).await.attempts.len())
    );
    assert_eq!(messages[0].id, leased.message.id);
}

async fn r_g6_counts_are_of_each_tenant(bench: Arc<Bench>) {
    let (tenants, target, messages) = twins(&bench).await;
    let job = posthaste_core::JobId::of(messages[0].id, target.lane);
    bench.apply(tenants[1], job, Command::Cancel { reason: "x".into() }).await;
    let counts = bench.store().counts().await.unwrap();
    let counts: Vec<_> = counts.iter().map(|count| (count.tenant, count.state, count.jobs)).collect();
    assert_eq!(vec![(tenants[0], StateName::Scheduled, 1), (tenants[1], StateName::Cancelled, 1)], counts);
}
