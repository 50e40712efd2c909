//! The receiver's ledger as a service, and where it meets jobs.

use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::{
    Command, DurationMs, Effect, EventId, Evidence, Path, Policy, Refusal, RetryWish, State, StateName,
    TenantId,
    ledger::{OnExpired, Outcome, Previous, Seen, Status},
};
use posthaste_store::{
    JobCommand, LeaseRequest, LedgerAction, LedgerAnswer, LedgerCommand, LedgerEntry, NamedJob, Stage,
    StoredResult, Target,
};

use crate::store_suite::{
    bench::{Bench, LEASE, fail, finish, job_command, key, lease_request},
    case_list,
};

case_list![
    r_c1_a_claim_is_told_one_of_four_paths,
    r_c3_a_done_entry_is_final_and_a_stale_fence_changes_nothing,
    r_c3_a_grant_that_ran_out_is_taken_over_unless_it_is_held,
    r_c4_the_stored_result_comes_back_byte_for_byte,
    r_a10_another_fingerprint_is_reused_and_touches_nothing,
    r_c9_a_reset_names_what_it_saw_and_keeps_the_old_worker_out,
    r_g6_entries_of_tenants_are_apart,
    r_c8_a_job_of_a_queue_that_keeps_the_ledger_is_its_own_entry,
    r_c3_a_job_whose_key_somebody_has_is_not_handed_out,
    r_c8_a_done_entry_settles_its_job_wherever_it_waits,
    r_c3_what_a_queue_took_over_it_completes,
    r_b9_a_dead_letter_whose_entry_is_done_is_settled_instead_of_replayed,
    r_c9_an_entry_is_not_reset_while_its_job_runs,
    r_c3_a_resend_is_the_jobs_own,
];

const LONG: DurationMs = DurationMs::from_secs(600);

fn claim(lease: DurationMs) -> LedgerAction {
    LedgerAction::Claim { lease, fingerprint: None, claim_id: None, on_expired: OnExpired::Retake }
}

fn complete(fence: u64) -> LedgerAction {
    LedgerAction::Complete { fence, outcome: Outcome::Committed, result: StoredResult::default() }
}

fn command(tenant: TenantId, key: &str, action: LedgerAction) -> LedgerCommand {
    let key = EventId::new(key).unwrap();
    LedgerCommand { tenant, key, job: None, action, actor: Some("tester".into()) }
}

async fn ask(bench: &Bench, command: LedgerCommand) -> LedgerAnswer {
    bench.store().ledger(vec![command]).await.unwrap().remove(0).answer
}

fn granted(answer: LedgerAnswer) -> LedgerEntry {
    let LedgerAnswer::Granted(entry) = answer else { panic!("it is granted: {answer:?}") };
    entry
}

async fn r_c1_a_claim_is_told_one_of_four_paths(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let ask = async |action| ask(&bench, command(tenant, "cart:1", action)).await;
    let first = granted(ask(claim(LONG)).await).entry;
    assert_eq!((Path::FirstRun, Previous::None, 1), (first.path, first.previous, first.attempts));
    let LedgerAnswer::InProgressElsewhere { locked_until } = ask(claim(LONG)).await else { panic!() };
    assert_eq!(Some(bench.now().after(LONG)), locked_until);
    let failed = LedgerAction::Fail { fence: first.fence, class: None, message: Some("no".into()) };
    assert!(matches!(ask(failed).await, LedgerAnswer::Written(_)));
    let second = granted(ask(claim(LONG)).await).entry;
    let told = (second.path, second.previous, second.attempts);
    assert_eq!((Path::RetryAfterFailure, Previous::Failed, 2), told);
    assert!(first.fence < second.fence);
    assert!(matches!(ask(complete(second.fence)).await, LedgerAnswer::Written(_)));
    let LedgerAnswer::DuplicateDone(done) = ask(claim(LONG)).await else { panic!() };
    assert_eq!(Some(Outcome::Committed), done.entry.outcome);
}

async fn r_c3_a_done_entry_is_final_and_a_stale_fence_changes_nothing(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let ask = async |action| ask(&bench, command(tenant, "cart:1", action)).await;
    let first = granted(ask(claim(LEASE)).await).entry;
    bench.advance(LEASE);
    let second = granted(ask(claim(LEASE)).await).entry;
    let fail = |fence| LedgerAction::Fail { fence, class: None, message: None };
    for stale in
        [complete(first.fence), fail(first.fence), LedgerAction::Extend { fence: first.fence, lease: LONG }]
    {
        let LedgerAnswer::Stale(Some(entry)) = ask(stale).await else { panic!("a stale fence") };
        assert_eq!((Status::InProgress, second.fence), (entry.entry.status, entry.entry.fence));
    }
    assert!(matches!(ask(complete(second.fence)).await, LedgerAnswer::Written(_)));
    bench.advance(DurationMs::from_hours(24 * 365));
    assert!(matches!(ask(claim(LEASE)).await, LedgerAnswer::DuplicateDone(_)), "however old");
    assert!(matches!(ask(complete(second.fence)).await, LedgerAnswer::Written(_)), "a repeat is told yes");
    assert!(matches!(ask(fail(second.fence)).await, LedgerAnswer::Stale(_)));
}

async fn r_c3_a_grant_that_ran_out_is_taken_over_unless_it_is_held(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    granted(ask(&bench, command(tenant, "free", claim(LEASE))).await);
    let held = LedgerAction::Claim {
        lease: LEASE,
        fingerprint: None,
        claim_id: Some("claim-1".into()),
        on_expired: OnExpired::Hold,
    };
    let first = granted(ask(&bench, command(tenant, "held", held.clone())).await);
    bench.advance(LEASE);
    let taken = granted(ask(&bench, command(tenant, "free", claim(LEASE))).await);
    assert_eq!(Previous::Expired, taken.entry.previous);
    let LedgerAnswer::InProgressElsewhere { locked_until: None } =
        ask(&bench, command(tenant, "held", claim(LEASE))).await
    else {
        panic!("it is held")
    };
    assert_eq!(
        first,
        granted(ask(&bench, command(tenant, "held", held)).await),
        "its own request gets its grant"
    );
}

async fn r_c4_the_stored_result_comes_back_byte_for_byte(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let fence = granted(ask(&bench, command(tenant, "cart:1", claim(LONG))).await).entry.fence;
    let result = StoredResult {
        bytes: Some(Bytes::from_static(b"{\"a\" : 1}\0\xff\n")),
        content_type: Some("application/x; charset=\"y\"".into()),
        status: Some(201),
    };
    let done = LedgerAction::Complete { fence, outcome: Outcome::Cancelled, result: result.clone() };
    ask(&bench, command(tenant, "cart:1", done)).await;
    let LedgerAnswer::DuplicateDone(entry) = ask(&bench, command(tenant, "cart:1", claim(LONG))).await else {
        panic!("it is done")
    };
    assert_eq!((result, Some(Outcome::Cancelled)), (entry.result.clone(), entry.entry.outcome));
    let read = bench.store().entry(tenant, EventId::new("cart:1").unwrap(), None).await.unwrap();
    assert_eq!(Some(entry), read);
}

async fn r_a10_another_fingerprint_is_reused_and_touches_nothing(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let claim = |print: &[u8]| LedgerAction::Claim {
        lease: LEASE,
        fingerprint: Some(print.into()),
        claim_id: None,
        on_expired: OnExpired::Retake,
    };
    granted(ask(&bench, command(tenant, "cart:1", claim(b"one"))).await);
    bench.advance(LEASE);
    let read = async || bench.store().entry(tenant, EventId::new("cart:1").unwrap(), None).await.unwrap();
    let before = read().await;
    assert_eq!(LedgerAnswer::KeyReused, ask(&bench, command(tenant, "cart:1", claim(b"two"))).await);
    assert_eq!(before, read().await);
    granted(ask(&bench, command(tenant, "cart:1", claim(b"one"))).await);
}

async fn r_c9_a_reset_names_what_it_saw_and_keeps_the_old_worker_out(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let ask = async |action| ask(&bench, command(tenant, "cart:1", action)).await;
    let old = granted(ask(claim(LONG)).await).entry;
    let reset = |fence, status| LedgerAction::Reset { seen: Seen { fence, status }, reason: "lost".into() };
    assert!(matches!(ask(reset(old.fence, Status::Done)).await, LedgerAnswer::Stale(_)));
    assert!(matches!(ask(reset(old.fence + 1, Status::InProgress)).await, LedgerAnswer::Stale(_)));
    let LedgerAnswer::Written(entry) = ask(reset(old.fence, Status::InProgress)).await else { panic!() };
    assert_eq!((Status::Failed, old.fence + 1), (entry.entry.status, entry.entry.fence));
    let note = entry.reset.expect("it is shown");
    assert_eq!((bench.now(), Some("tester"), "lost"), (note.at, note.by.as_deref(), &*note.reason));
    assert!(matches!(ask(complete(old.fence)).await, LedgerAnswer::Stale(_)));
    assert!(granted(ask(claim(LONG)).await).entry.fence > old.fence + 1);
}

async fn r_g6_entries_of_tenants_are_apart(bench: Arc<Bench>) {
    let (one, two) = (bench.tenant("one").await, bench.tenant("two").await);
    granted(ask(&bench, command(one, "cart:1", claim(LONG))).await);
    let other = granted(ask(&bench, command(two, "cart:1", claim(LONG))).await);
    assert_eq!(Path::FirstRun, other.entry.path);
}

/// A queue that keeps the ledger with one job in it, by key, and how the ledger is asked about that job.
async fn guarded(bench: &Bench) -> (TenantId, Target, impl Fn(LedgerAction) -> LedgerCommand) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    bench.job(tenant, "order-1", &queue).await;
    let job = NamedJob { key: key("order-1"), lane: queue.lane, guarded: true };
    let named =
        move |action| LedgerCommand { job: Some(job.clone()), ..command(tenant, "order-1:orders", action) };
    (tenant, queue, named)
}

fn request(tenant: TenantId, queue: &Target) -> LeaseRequest {
    LeaseRequest { guarded: true, ..lease_request(tenant, queue.lane, 1) }
}

async fn r_c8_a_job_of_a_queue_that_keeps_the_ledger_is_its_own_entry(bench: Arc<Bench>) {
    let (tenant, queue, named) = guarded(&bench).await;
    let read = async || {
        let LedgerCommand { key, job, .. } = named(claim(LONG));
        bench.store().entry(tenant, key, job).await.unwrap()
    };
    assert_eq!(None, read().await, "it was never tried");
    let leased = bench.grant(request(tenant, &queue)).await.jobs.remove(0);
    let entry = read().await.expect("the lease is a claim");
    assert_eq!(
        (Status::InProgress, bench.now().after(LEASE)),
        (entry.entry.status, entry.entry.locked_until)
    );
    let LedgerAnswer::InProgressElsewhere { .. } = ask(&bench, named(claim(LONG))).await else { panic!() };
    assert!(matches!(ask(&bench, named(complete(entry.entry.fence))).await, LedgerAnswer::Stale(_)));
    let mut done = finish(leased.fence);
    if let Command::Finish { details, .. } = &mut done {
        details.result = Some(b"{\"charge\":7}"[..].into());
    }
    bench.apply(tenant, leased.job.id, done).await;
    let LedgerAnswer::DuplicateDone(entry) = ask(&bench, named(claim(LONG))).await else { panic!() };
    assert_eq!(Some(&b"{\"charge\":7}"[..]), entry.result.bytes.as_deref());
    assert_eq!(Some(leased.job.id), entry.of_job);
}

async fn r_c3_a_job_whose_key_somebody_has_is_not_handed_out(bench: Arc<Bench>) {
    let (tenant, queue, named) = guarded(&bench).await;
    let other = granted(ask(&bench, named(claim(LONG))).await);
    let grant = bench.grant(request(tenant, &queue)).await;
    assert_eq!((0, 1), (grant.jobs.len(), grant.settled.len()), "{grant:?}");
    let job = &grant.settled[0].job;
    let State::Retryable { due_at, .. } = job.state else { panic!("it waits: {job:?}") };
    assert!(due_at >= bench.now().after(LONG), "until the other grant ends");
    assert_eq!((0, 0), (job.budgets.failures, job.budgets.lost_leases), "uncharged");
    ask(&bench, named(complete(other.entry.fence))).await;
    bench.advance(DurationMs::from_hours(1));
    let grant = bench.grant(request(tenant, &queue)).await;
    assert!(grant.jobs.is_empty(), "it is done");
    assert_eq!(StateName::Committed, bench.state(tenant, job.id).await);
}

async fn r_c8_a_done_entry_settles_its_job_wherever_it_waits(bench: Arc<Bench>) {
    let (tenant, queue, named) = guarded(&bench).await;
    // Waiting for the first time: at its lease.
    let entry = granted(ask(&bench, named(claim(LONG))).await).entry;
    let applied = bench.store().ledger(vec![named(complete(entry.fence))]).await.unwrap().remove(0);
    assert!(applied.settled.is_none(), "a job that was never tried is settled when its turn comes");
    let settled = bench.grant(request(tenant, &queue)).await.settled;
    assert_eq!(StateName::Committed, settled[0].job.state.name());
    // A dead letter: at once.
    let job = bench.job(tenant, "order-2", &queue).await;
    bench.dead_letter(tenant, queue.lane, Effect::Possible).await;
    let other = NamedJob { key: key("order-2"), lane: queue.lane, guarded: false };
    let named =
        |action| LedgerCommand { job: Some(other.clone()), ..command(tenant, "order-2:orders", action) };
    let entry = granted(ask(&bench, named(claim(LONG))).await).entry;
    let applied = bench.store().ledger(vec![named(complete(entry.fence))]).await.unwrap().remove(0);
    let change = applied.settled.expect("the dead letter is no trap");
    assert_eq!((job, StateName::Committed), (change.job.id, change.job.state.name()));
    let State::Committed { evidence, .. } = bench.read(tenant, job).await.job.state else { panic!() };
    assert_eq!(Evidence::Ledger, evidence);
    let message =
        bench.store().message(tenant, posthaste_store::MessageName::Key(key("order-2"))).await.unwrap();
    let custody = bench.store().custody(tenant, message.unwrap().id).await.unwrap();
    assert!(custody.iter().any(|entry| entry.stage == Stage::Reconciled), "{custody:?}");
}

async fn r_c3_what_a_queue_took_over_it_completes(bench: Arc<Bench>) {
    let (tenant, queue, named) = guarded(&bench).await;
    let other = granted(ask(&bench, named(claim(LEASE))).await).entry;
    bench.advance(LEASE);
    let leased = bench.grant(request(tenant, &queue)).await.jobs.remove(0);
    assert!(
        matches!(ask(&bench, named(complete(other.fence))).await, LedgerAnswer::Stale(_)),
        "it was taken over"
    );
    // A failure without effect gives the key free.
    bench.apply(tenant, leased.job.id, fail(leased.fence, Effect::None, RetryWish::Yes)).await;
    bench.advance(DurationMs::from_hours(1));
    let again = granted(ask(&bench, named(claim(LEASE))).await).entry;
    assert_eq!(Previous::Failed, again.previous);
    // One that may have had it does as well, since its attempt is over: its own successor need not wait.
    bench.advance(LEASE);
    let leased = bench.grant(request(tenant, &queue)).await.jobs.remove(0);
    bench.apply(tenant, leased.job.id, fail(leased.fence, Effect::Possible, RetryWish::Yes)).await;
    bench.advance(DurationMs::from_hours(1));
    let leased = bench.grant(request(tenant, &queue)).await.jobs.remove(0);
    bench.apply(tenant, leased.job.id, finish(leased.fence)).await;
    let LedgerAnswer::DuplicateDone(_) = ask(&bench, named(claim(LEASE))).await else { panic!("it is done") };
}

async fn r_b9_a_dead_letter_whose_entry_is_done_is_settled_instead_of_replayed(bench: Arc<Bench>) {
    let (tenant, queue, named) = guarded(&bench).await;
    let job = bench.dead_letter(tenant, queue.lane, Effect::Possible).await;
    let replay = |assume_not_done| {
        let seen = posthaste_core::Attempt::new(1);
        let command = Command::Replay { seen, assume_not_done, reason: "fixed".into() };
        JobCommand { policy: Arc::new(Policy::queue_default()), ..job_command(tenant, job, command) }
    };
    let (reply, _) = bench.try_apply(replay(false)).await;
    assert!(matches!(reply, Err(Refusal::OutcomeUnknown { .. })), "{reply:?}");
    // The receiver says it happened, on a key that the store does not connect with the job.
    let unconnected = |action| LedgerCommand { job: None, ..named(action) };
    let entry = granted(ask(&bench, unconnected(claim(LONG))).await).entry;
    ask(&bench, unconnected(complete(entry.fence))).await;
    bench.try_apply(replay(true)).await.0.expect("it is settled, whatever is assumed");
    assert_eq!(StateName::Committed, bench.state(tenant, job).await);
}

async fn r_c9_an_entry_is_not_reset_while_its_job_runs(bench: Arc<Bench>) {
    let (tenant, queue, named) = guarded(&bench).await;
    let leased = bench.grant(request(tenant, &queue)).await.jobs.remove(0);
    let reset = |fence, status| LedgerAction::Reset { seen: Seen { fence, status }, reason: "anew".into() };
    let LedgerAnswer::Stale(Some(entry)) = ask(&bench, named(reset(1, Status::InProgress))).await else {
        panic!()
    };
    assert!(entry.is_held_by_job(bench.now()), "a worker is at it");
    bench.apply(tenant, leased.job.id, finish(leased.fence)).await;
    let LedgerAnswer::Written(entry) = ask(&bench, named(reset(1, Status::Done))).await else { panic!() };
    assert_eq!(Status::Failed, entry.entry.status);
    granted(ask(&bench, named(claim(LEASE))).await);
    // A reset between an attempt's end and its late report: the effect happened all the same.
    bench.advance(LEASE);
    let job = bench.job(tenant, "order-2", &queue).await;
    let named = |action| LedgerCommand {
        job: Some(NamedJob { key: key("order-2"), lane: queue.lane, guarded: true }),
        ..command(tenant, "order-2:orders", action)
    };
    let leased = bench.grant(request(tenant, &queue)).await.jobs.remove(0);
    bench.advance(LEASE);
    bench.apply(tenant, job, Command::Expire).await;
    let LedgerAnswer::Written(_) = ask(&bench, named(reset(1, Status::InProgress))).await else { panic!() };
    bench.apply(tenant, job, finish(leased.fence)).await;
    let LedgerAnswer::DuplicateDone(_) = ask(&bench, named(claim(LEASE))).await else {
        panic!("it happened")
    };
}

async fn r_c3_a_resend_is_the_jobs_own(bench: Arc<Bench>) {
    let (tenant, queue, named) = guarded(&bench).await;
    let leased = bench.grant(request(tenant, &queue)).await.jobs.remove(0);
    bench.apply(tenant, leased.job.id, finish(leased.fence)).await;
    let seen = posthaste_core::Attempt::new(1);
    bench.apply(tenant, leased.job.id, Command::Resend { seen, reason: "lost".into() }).await;
    let LedgerAnswer::InProgressElsewhere { .. } = ask(&bench, named(claim(LEASE))).await else {
        panic!("the effect that is wanted anew is the job's")
    };
    bench.apply(tenant, leased.job.id, Command::Cancel { reason: "a mistake".into() }).await;
    let LedgerAnswer::DuplicateDone(entry) = ask(&bench, named(claim(LEASE))).await else { panic!() };
    assert_eq!(Some(Outcome::Committed), entry.entry.outcome, "the first effect stays");
}
