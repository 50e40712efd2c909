//! Look-ups that are due, and what a sweep finds. Rows B14, C10.

use std::sync::Arc;

use posthaste_core::{
    Backoff, Command, DurationMs, Effect, EventId, Evidence, JobId, LookUpVerdict, OnUnknown, Permille,
    Policy, RetryWish, StateName, TenantId,
    ledger::{OnExpired, Outcome},
};
use posthaste_store::{
    LedgerAction, LedgerAnswer, LedgerCommand, LookUpDue, LookUps, StoredResult, SweepCursor, Target,
};

use crate::store_suite::{
    Bench,
    bench::{fail, fail_softly, finish, job_command, key},
    case_list,
};

case_list![
    r_c10_look_ups_are_found_when_they_are_due_oldest_first,
    r_c10_one_lanes_look_ups_do_not_hide_anothers,
    r_c10_a_look_up_that_was_answered_is_owed_no_more,
    r_b14_a_sweep_finds_what_the_ledger_says_is_done,
    r_b14_a_sweep_finds_a_dead_letter_whose_commit_was_heard,
    r_b14_a_sweep_goes_on_where_it_was_and_ends,
    r_b14_a_sweeps_settlement_is_applied_behind_the_rest,
    r_b6_a_lane_that_was_never_held_has_no_held_time,
];

fn reconcile() -> Arc<Policy> {
    let on_unknown = OnUnknown::Reconcile { settle: DurationMs::from_secs(60) };
    let base = DurationMs::from_secs(5);
    let jitter = Permille::new(0).unwrap();
    let backoff = Backoff::Exponential { base, cap: DurationMs::from_mins(15), jitter };
    Arc::new(Policy { on_unknown, backoff, ..Policy::queue_default() })
}

/// A job whose attempt may have acted, so that a look-up is owed.
async fn owed(bench: &Bench, tenant: TenantId, name: &str, queue: &Target) -> JobId {
    let job = bench.job(tenant, name, queue).await;
    let leased = bench.lease(tenant, queue.lane).await;
    let mut command = job_command(tenant, job, fail(leased.fence, Effect::Possible, RetryWish::Yes));
    command.policy = reconcile();
    bench.try_apply(command).await.0.unwrap();
    job
}

/// A job that waits after an attempt without effect.
async fn waiting(bench: &Bench, tenant: TenantId, name: &str, queue: &Target) -> JobId {
    let job = bench.job(tenant, name, queue).await;
    let leased = bench.lease(tenant, queue.lane).await;
    assert_eq!(job, leased.job.id);
    bench.apply(tenant, job, fail_softly(leased.fence)).await;
    job
}

async fn look_ups(bench: &Bench, per_lane: usize, limit: usize) -> (Vec<JobId>, LookUps) {
    let found = bench.store().look_ups(per_lane, limit).await.unwrap();
    (found.due.iter().map(|due| due.job).collect(), found)
}

/// Claims the event id as a receiver would that does not say which job it is, and completes it.
async fn done(bench: &Bench, tenant: TenantId, name: &str, queue: &Target, outcome: Outcome) {
    let event = EventId::of(&key(name), &queue.destination);
    let ask = |action| LedgerCommand { tenant, key: event.clone(), job: None, action, actor: None };
    let claim = LedgerAction::Claim {
        lease: DurationMs::from_secs(30),
        fingerprint: None,
        claim_id: None,
        on_expired: OnExpired::Retake,
    };
    let answer = bench.store().ledger(vec![ask(claim)]).await.unwrap().remove(0).answer;
    let LedgerAnswer::Granted(entry) = answer else { panic!("{answer:?}") };
    let complete =
        LedgerAction::Complete { fence: entry.entry.fence, outcome, result: StoredResult::default() };
    bench.store().ledger(vec![ask(complete)]).await.unwrap();
}

/// A whole pass, `limit` at a time.
async fn pass(bench: &Bench, limit: usize) -> Vec<JobId> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let step = bench.store().provable(after, limit).await.unwrap();
        assert_eq!(0, step.corrupt);
        found.extend(step.jobs.into_iter().map(|(_, job)| job));
        after = step.next;
        if after.is_none() {
            return found;
        }
    }
}

async fn r_c10_look_ups_are_found_when_they_are_due_oldest_first(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    assert_eq!(LookUps::default(), look_ups(&bench, 9, 9).await.1);
    let first = owed(&bench, tenant, "order-1", &queue).await;
    bench.advance(DurationMs::from_mins(1));
    let second = owed(&bench, tenant, "order-2", &queue).await;
    let due = bench.read(tenant, second).await.job.state.due_at().unwrap();
    let (jobs, found) = look_ups(&bench, 9, 9).await;
    assert_eq!((vec![first], Some(due)), (jobs, found.next_due));
    bench.advance(due.since(bench.now()));
    let (jobs, found) = look_ups(&bench, 9, 9).await;
    assert_eq!((vec![first, second], None), (jobs, found.next_due));
    assert_eq!(LookUpDue { due_at: due, tenant, job: second }, found.due[1]);
    assert_eq!(vec![first], look_ups(&bench, 9, 1).await.0, "the oldest, as many as were asked for");
    assert_eq!(vec![first], look_ups(&bench, 1, 9).await.0);
    let of_lane = bench.store().lane_look_ups(tenant, queue.lane, 9).await.unwrap();
    assert_eq!(vec![first, second], of_lane);
    assert_eq!(0, bench.store().heads().await.unwrap().len(), "none of them waits for an attempt");
}

async fn r_c10_one_lanes_look_ups_do_not_hide_anothers(bench: Arc<Bench>) {
    let (tenant, other) = (bench.tenant("default").await, bench.tenant("other").await);
    let busy = bench.queue(tenant, "busy").await;
    let quiet = bench.queue(tenant, "quiet").await;
    let foreign = bench.queue(other, "orders").await;
    let mut all = Vec::new();
    for number in 0..5 {
        all.push(owed(&bench, tenant, &format!("busy-{number}"), &busy).await);
        bench.advance(DurationMs(1));
    }
    let late = owed(&bench, tenant, "quiet", &quiet).await;
    let theirs = owed(&bench, other, "theirs", &foreign).await;
    bench.advance(DurationMs::from_mins(10));
    let mut found = look_ups(&bench, 2, 9).await.0;
    found.sort_unstable();
    let mut expected = vec![all[0], all[1], late, theirs];
    expected.sort_unstable();
    assert_eq!(expected, found);
    assert_eq!(Vec::<JobId>::new(), bench.store().lane_look_ups(other, quiet.lane, 9).await.unwrap());
}

async fn r_c10_a_look_up_that_was_answered_is_owed_no_more(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    for (verdict, owed_again) in
        [(LookUpVerdict::Present, false), (LookUpVerdict::Absent, false), (LookUpVerdict::Unsure, true)]
    {
        let job = owed(&bench, tenant, &format!("order-{verdict}"), &queue).await;
        let (seen, asked_at) = (bench.read(tenant, job).await.job.attempt, bench.now());
        let said = Some("404 of the status page".into());
        let answer = Command::LookUp { seen, asked_at, verdict, settled_at: asked_at, said };
        let mut command = job_command(tenant, job, answer);
        command.policy = reconcile();
        bench.try_apply(command).await.0.unwrap();
        bench.advance(DurationMs::from_mins(30));
        let found = look_ups(&bench, 9, 9).await.0;
        assert_eq!(owed_again, found.contains(&job), "{verdict}");
        let message = bench
            .store()
            .message(tenant, posthaste_store::MessageName::Key(key(&format!("order-{verdict}"))));
        let message = message.await.unwrap().unwrap().id;
        let custody = bench.store().custody(tenant, message).await.unwrap();
        let detail = custody.last().unwrap().detail.clone().unwrap();
        assert!(detail.contains("404 of the status page"), "what it was read from is shown: {detail}");
        let cancel = Command::Cancel { reason: "next".into() };
        bench.try_apply(job_command(tenant, job, cancel)).await.0.unwrap();
    }
    assert_eq!(LookUps::default(), look_ups(&bench, 9, 9).await.1);
}

async fn r_b14_a_sweep_finds_what_the_ledger_says_is_done(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let retried = waiting(&bench, tenant, "retried", &queue).await;
    let looked_up = owed(&bench, tenant, "looked-up", &queue).await;
    bench.job(tenant, "dead", &queue).await;
    let dead = bench.dead_letter(tenant, queue.lane, Effect::Possible).await;
    bench.job(tenant, "fresh", &queue).await;
    assert_eq!(Vec::<JobId>::new(), pass(&bench, 9).await, "nothing is known");
    for (name, outcome) in [
        ("retried", Outcome::Committed),
        ("looked-up", Outcome::Cancelled),
        ("dead", Outcome::Committed),
        ("fresh", Outcome::Committed),
    ] {
        done(&bench, tenant, name, &queue, outcome).await;
    }
    // What was never tried is settled when its turn comes.
    let mut found = pass(&bench, 9).await;
    found.sort_unstable();
    let mut expected = vec![retried, looked_up, dead];
    expected.sort_unstable();
    assert_eq!(expected, found);
    for job in found {
        bench.apply(tenant, job, Command::Settle { evidence: Evidence::Ledger }).await;
    }
    assert_eq!(StateName::Cancelled, bench.state(tenant, looked_up).await);
    assert_eq!(StateName::Committed, bench.state(tenant, dead).await);
    assert_eq!(Vec::<JobId>::new(), pass(&bench, 9).await, "what is settled is no more looked at");
}

async fn r_b14_a_sweep_finds_a_dead_letter_whose_commit_was_heard(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let job = waiting(&bench, tenant, "order-1", &queue).await;
    let first = bench.read(tenant, job).await.attempts[0].end.attempt;
    // A worker that failed says afterwards that it is done after all: heard, since another report is recorded.
    let fence = posthaste_core::Fence { epoch: bench.store().status().await.unwrap().epoch, attempt: first };
    let (reply, change) = bench.try_apply(job_command(tenant, job, finish(fence))).await;
    assert!(reply.is_err() && change.is_some(), "{reply:?}");
    assert_eq!(vec![job], pass(&bench, 9).await);
    bench.apply(tenant, job, Command::Abandon { cause: posthaste_core::Cause::Exhausted }).await;
    assert_eq!(vec![job], pass(&bench, 9).await, "also as a dead letter");
}

async fn r_b14_a_sweep_goes_on_where_it_was_and_ends(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let mut expected = Vec::new();
    for number in 0..5 {
        let name = format!("order-{number}");
        expected.push(waiting(&bench, tenant, &name, &queue).await);
        done(&bench, tenant, &name, &queue, Outcome::Committed).await;
    }
    for limit in [1, 2, 5, 6] {
        assert_eq!(expected, pass(&bench, limit).await, "{limit} at a time");
    }
    let step = bench.store().provable(None, 2).await.unwrap();
    assert_eq!(Some(SweepCursor { dead: false, tenant, job: expected[1] }), step.next);
}

async fn r_b14_a_sweeps_settlement_is_applied_behind_the_rest(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let job = waiting(&bench, tenant, "order-1", &queue).await;
    done(&bench, tenant, "order-1", &queue, Outcome::Committed).await;
    let settle = job_command(tenant, job, Command::Settle { evidence: Evidence::Ledger });
    let applied = bench.store().apply_behind(vec![settle.clone(), settle]).await.unwrap();
    let replies: Vec<bool> = applied
        .iter()
        .map(|applied| match &applied.outcome {
            posthaste_store::AppliedOutcome::Decided { reply, .. } => reply.is_ok(),
            other => panic!("{other:?}"),
        })
        .collect();
    assert_eq!(vec![true, false], replies, "once");
    assert_eq!(StateName::Committed, bench.state(tenant, job).await);
}

async fn r_b6_a_lane_that_was_never_held_has_no_held_time(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    assert_eq!(0, bench.store().lane_held_ms(tenant, queue.lane).await.unwrap());
    let unknown = posthaste_core::LaneId(77);
    assert_eq!(0, bench.store().lane_held_ms(tenant, unknown).await.unwrap());
}
