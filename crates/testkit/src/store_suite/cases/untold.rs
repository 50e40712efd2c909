//! Quarantined messages, and dead letters that somebody must be told of.

use std::sync::Arc;

use posthaste_core::{
    Answer, Attempt, Cause, Command, DurationMs, Effect, Evidence, JobId, RetryWish, State, StateName,
    TenantId,
};
use posthaste_store::{Acceptance, DestinationKind, Due, NewMessage, Target, Untold};

use crate::store_suite::{
    bench::{Bench, fail, finish, job_command},
    case_list,
};

case_list![
    r_a2_a_quarantined_message_is_owed_to_its_source_and_dead_from_the_start,
    r_a2_a_quarantined_message_that_comes_again_is_a_duplicate,
    r_a2_a_quarantined_job_is_never_leased_and_can_be_discarded_or_settled,
    r_a2_what_is_quarantined_can_get_another_cause_and_nothing_else_can,
    r_b7_every_dead_letter_is_told_of_until_somebody_was_told,
    r_b7_a_job_that_dies_again_is_told_of_again,
    r_b7_what_ends_otherwise_is_not_told_of,
    r_g6_dead_letters_of_two_tenants_are_told_apart,
];

/// A source, as the target of what it quarantined.
async fn source(bench: &Bench, tenant: TenantId, id: &str) -> Target {
    let row = bench.destination(tenant, id, DestinationKind::Source).await;
    let kind = posthaste_core::Kind::Pull;
    Target { lane: row.lane, destination: row.id, kind, wire_id: None, owner: None }
}

fn quarantined(bench: &Bench, tenant: TenantId, key: &str, source: &Target, cause: Cause) -> NewMessage {
    let message = bench.message(tenant, key, std::slice::from_ref(source));
    NewMessage { due: Due::Never(cause), source: Some(source.destination.clone()), ..message }
}

async fn quarantine(bench: &Bench, tenant: TenantId, key: &str, source: &Target, cause: Cause) -> JobId {
    bench.accept_new(quarantined(bench, tenant, key, source, cause)).await.jobs[0].id
}

async fn untold(bench: &Bench) -> Vec<Untold> {
    bench.store().untold(100).await.unwrap()
}

async fn r_a2_a_quarantined_message_is_owed_to_its_source_and_dead_from_the_start(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let shop = source(&bench, tenant, "shop").await;
    for (number, cause) in
        [Cause::MissingKey, Cause::InvalidPayload, Cause::KeyReused].into_iter().enumerate()
    {
        let key = format!("shop:quarantine:{number}");
        let accepted = bench.accept_new(quarantined(&bench, tenant, &key, &shop, cause)).await;
        assert_eq!((1, 1, false), (accepted.jobs_total, accepted.jobs.len(), accepted.fanout_running));
        assert_eq!((StateName::DeadLettered, None), (accepted.jobs[0].state, accepted.jobs[0].due_at));
        let view = bench.read(tenant, accepted.jobs[0].id).await;
        assert_eq!(State::DeadLettered { at: bench.now(), cause }, view.job.state);
        assert_eq!((shop.destination.clone(), None), (view.destination, view.job.attempt));
        let told = Untold { tenant, job: view.job.id, at: bench.now(), attempt: None, cause };
        assert_eq!(Some(&told), untold(&bench).await.last());
    }
}

async fn r_a2_a_quarantined_message_that_comes_again_is_a_duplicate(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let shop = source(&bench, tenant, "shop").await;
    let first = quarantined(&bench, tenant, "shop:quarantine:1", &shop, Cause::MissingKey);
    bench.accept_new(first.clone()).await;
    // Sent again after a lost answer, it is new again; as another delivery it is known.
    assert!(matches!(bench.accept(first).await, Acceptance::New(_)));
    let again = quarantined(&bench, tenant, "shop:quarantine:1", &shop, Cause::InvalidPayload);
    let Acceptance::Duplicate(known) = bench.accept(again).await else { panic!("it is known") };
    let State::DeadLettered { cause, .. } = bench.read(tenant, known.jobs[0].id).await.job.state else {
        panic!("it stays what it is");
    };
    assert_eq!((Cause::MissingKey, 1), (cause, untold(&bench).await.len()));
}

async fn r_a2_a_quarantined_job_is_never_leased_and_can_be_discarded_or_settled(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let shop = source(&bench, tenant, "shop").await;
    let first = quarantine(&bench, tenant, "shop:quarantine:1", &shop, Cause::MissingKey).await;
    let second = quarantine(&bench, tenant, "shop:quarantine:2", &shop, Cause::MissingKey).await;
    bench.advance(DurationMs::from_hours(24));
    assert!(bench.store().heads().await.unwrap().is_empty());
    let grant = bench.grant(crate::store_suite::bench::lease_request(tenant, shop.lane, 10)).await;
    assert!(grant.jobs.is_empty() && grant.next_due.is_none(), "{grant:?}");
    bench.apply(tenant, first, Command::Cancel { reason: "spam".into() }).await;
    assert_eq!(StateName::Cancelled, bench.state(tenant, first).await);
    bench.apply(tenant, second, Command::Settle { evidence: Evidence::Reconciled }).await;
    assert_eq!(StateName::Committed, bench.state(tenant, second).await);
}

async fn r_a2_what_is_quarantined_can_get_another_cause_and_nothing_else_can(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let shop = source(&bench, tenant, "shop").await;
    let job = quarantine(&bench, tenant, "shop:quarantine:1", &shop, Cause::MissingKey).await;
    let since = bench.now();
    bench.advance(DurationMs::from_hours(1));
    bench.apply(tenant, job, Command::Abandon { cause: Cause::InvalidPayload }).await;
    let now = bench.read(tenant, job).await.job.state;
    assert_eq!(State::DeadLettered { at: since, cause: Cause::InvalidPayload }, now);
    let same = job_command(tenant, job, Command::Abandon { cause: Cause::InvalidPayload });
    let (reply, change) = bench.try_apply(same).await;
    assert!(matches!(reply, Ok(Answer::Moved { .. })) && change.is_none(), "{reply:?}");
    let other = job_command(tenant, job, Command::Abandon { cause: Cause::EndpointGone });
    assert!(bench.try_apply(other).await.0.is_err(), "only by what it is itself");
    assert_eq!(1, untold(&bench).await.len(), "it died once");
    // What was tried is no quarantined job, whatever it is called.
    let queue = bench.queue(tenant, "carts").await;
    bench.job(tenant, "cart-1", &queue).await;
    let tried = bench.dead_letter(tenant, queue.lane, Effect::None).await;
    let command = job_command(tenant, tried, Command::Abandon { cause: Cause::InvalidPayload });
    assert!(bench.try_apply(command).await.0.is_err());
}

async fn r_b7_every_dead_letter_is_told_of_until_somebody_was_told(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "carts").await;
    let mut jobs = Vec::new();
    for number in 0..3 {
        bench.job(tenant, &format!("cart-{number}"), &queue).await;
        jobs.push(bench.dead_letter(tenant, queue.lane, Effect::None).await);
    }
    let rows = untold(&bench).await;
    assert_eq!(jobs, rows.iter().map(|row| row.job).collect::<Vec<_>>());
    assert!(rows.iter().all(|row| row.attempt == Some(Attempt::FIRST) && row.at == bench.now()), "{rows:?}");
    assert!(rows.iter().all(|row| row.cause == Cause::Permanent), "{rows:?}");
    assert_eq!(rows[..2], bench.store().untold(2).await.unwrap());
    bench.store().told(rows[..2].to_vec()).await.unwrap();
    // Told twice is told.
    bench.store().told(rows[1..2].to_vec()).await.unwrap();
    assert_eq!(rows[2..], untold(&bench).await);
    // What becomes of it meanwhile changes nothing: it was a dead letter.
    let reason = "fixed".into();
    let replay = Command::Replay { seen: Some(Attempt::FIRST), assume_not_done: false, reason };
    bench.apply(tenant, jobs[2], replay).await;
    assert_eq!(rows[2..], untold(&bench).await);
}

async fn r_b7_a_job_that_dies_again_is_told_of_again(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "carts").await;
    let job = bench.job(tenant, "cart-1", &queue).await;
    bench.dead_letter(tenant, queue.lane, Effect::None).await;
    let replay = |seen| Command::Replay { seen, assume_not_done: false, reason: "again".into() };
    bench.advance(DurationMs::from_secs(1));
    bench.apply(tenant, job, replay(Some(Attempt::FIRST))).await;
    // Given up before it is tried again: the attempt is the same, the death is not.
    bench.apply(tenant, job, Command::Abandon { cause: Cause::EndpointGone }).await;
    let causes: Vec<Cause> = untold(&bench).await.iter().map(|row| row.cause).collect();
    assert_eq!(vec![Cause::Permanent, Cause::EndpointGone], causes);
}

async fn r_b7_what_ends_otherwise_is_not_told_of(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "carts").await;
    bench.job(tenant, "cart-1", &queue).await;
    let leased = bench.lease(tenant, queue.lane).await;
    bench.apply(tenant, leased.job.id, finish(leased.fence)).await;
    let cancelled = bench.job(tenant, "cart-2", &queue).await;
    bench.apply(tenant, cancelled, Command::Cancel { reason: "no".into() }).await;
    bench.job(tenant, "cart-3", &queue).await;
    let leased = bench.lease(tenant, queue.lane).await;
    bench.apply(tenant, leased.job.id, fail(leased.fence, Effect::None, RetryWish::Yes)).await;
    assert!(untold(&bench).await.is_empty());
}

async fn r_g6_dead_letters_of_two_tenants_are_told_apart(bench: Arc<Bench>) {
    let (one, other) = (bench.tenant("one").await, bench.tenant("other").await);
    for tenant in [one, other] {
        let shop = source(&bench, tenant, "shop").await;
        quarantine(&bench, tenant, "shop:quarantine:1", &shop, Cause::MissingKey).await;
    }
    let rows = untold(&bench).await;
    assert_eq!(vec![one, other], rows.iter().map(|row| row.tenant).collect::<Vec<_>>());
    bench.store().told(vec![Untold { tenant: other, ..rows[0] }]).await.unwrap();
    assert_eq!(2, untold(&bench).await.len(), "of another tenant's job nothing is known");
    bench.store().told(rows[..1].to_vec()).await.unwrap();
    assert_eq!(rows[1..], untold(&bench).await);
}
