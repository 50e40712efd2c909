//! What workers say: in time, late, again, or after somebody else began.

use std::sync::Arc;

use posthaste_core::{
    Answer, Attempt, AttemptOutcome, Class, Command, Details, DurationMs, Effect, Epoch, Evidence, Failure,
    Fence, FinishOutcome, JobId, Nature, Refusal, RetryWish, Start, State, StateName, TenantId,
};
use posthaste_store::{LeaseRequest, LeasedJob, Stage, Target};

use crate::store_suite::{
    Snapshot,
    bench::{Bench, LEASE, fail, fail_softly, finish, job_command, lease_request},
    case_list,
};

case_list![
    r_b3_a_report_in_time_counts_and_its_attempt_is_kept,
    r_b3_the_same_report_again_gets_the_same_answer,
    r_b3_another_report_of_the_same_attempt_is_refused,
    r_b3_a_stale_fence_changes_nothing,
    r_b3_a_superseded_worker_changes_nothing_but_its_commit_is_heard,
    r_b3_a_late_commit_counts,
    r_b3_a_late_failure_is_kept_beside_the_lost_lease,
    r_b3_a_checkpoint_is_kept_for_the_successor,
    r_b3_an_extend_moves_the_end_up_to_the_deadline,
    r_b3_a_fenced_start_is_recorded_once,
    r_b3_a_release_is_not_charged_and_waits_longer_each_time,
    r_b1_scheduled_due_and_started_are_three_facts,
    r_b7_an_attempt_is_kept_to_the_byte,
    r_f1_refused_reports_are_noted_a_hundred_times_at_most,
];

async fn leased_job(bench: &Bench) -> (TenantId, Target, LeasedJob) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    bench.job(tenant, "order-1", &queue).await;
    let leased = bench.lease(tenant, queue.lane).await;
    (tenant, queue, leased)
}

async fn snapshot_of(bench: &Bench, tenant: TenantId, leased: &LeasedJob) -> Snapshot {
    bench.snapshot(&[(tenant, leased.message.id)]).await
}

async fn r_b3_a_report_in_time_counts_and_its_attempt_is_kept(bench: Arc<Bench>) {
    let (tenant, _, leased) = leased_job(&bench).await;
    bench.advance(DurationMs::from_secs(2));
    let change = bench.apply(tenant, leased.job.id, finish(leased.fence)).await;
    assert_eq!((StateName::Leased, Nature::Plain), (change.from, change.nature));
    assert_eq!(
        (posthaste_core::CommandName::Finish, leased.message.key.clone()),
        (change.command, change.key)
    );
    let view = bench.read(tenant, leased.job.id).await;
    assert_eq!(change.job, view.job);
    assert_eq!(State::Committed { at: bench.now(), evidence: Evidence::Worker }, view.job.state);
    assert_eq!((1, Some(bench.now())), (view.attempts.len(), view.attempts[0].commit_heard_at));
    let end = &view.attempts[0].end;
    assert_eq!(change.ended.as_deref(), Some(end));
    assert_eq!((leased.fence.attempt, bench.now(), true), (end.attempt, end.finished_at, end.reported));
    assert_eq!((AttemptOutcome::Committed, Effect::Reported), (end.report.outcome, end.report.effect));
    assert_eq!(0, bench.store().custody(tenant, leased.message.id).await.unwrap().len());
}

async fn r_b3_the_same_report_again_gets_the_same_answer(bench: Arc<Bench>) {
    let (tenant, _, leased) = leased_job(&bench).await;
    let report = job_command(tenant, leased.job.id, fail_softly(leased.fence));
    let (first, change) = bench.try_apply(report.clone()).await;
    assert!(change.is_some());
    let before = snapshot_of(&bench, tenant, &leased).await;
    bench.advance(DurationMs(10));
    let (again, change) = bench.try_apply(report).await;
    assert_eq!((first, true), (again, change.is_none()));
    assert_eq!(before, snapshot_of(&bench, tenant, &leased).await);
}

async fn r_b3_another_report_of_the_same_attempt_is_refused(bench: Arc<Bench>) {
    let (tenant, _, leased) = leased_job(&bench).await;
    bench.apply(tenant, leased.job.id, finish(leased.fence)).await;
    let before = bench.read(tenant, leased.job.id).await;
    let (reply, change) =
        bench.try_apply(job_command(tenant, leased.job.id, fail_softly(leased.fence))).await;
    assert!(
        matches!(reply, Err(Refusal::AlreadyReported { report }) if report.outcome == AttemptOutcome::Committed)
    );
    assert!(change.is_none());
    assert_eq!(format!("{before:?}"), format!("{:?}", bench.read(tenant, leased.job.id).await));
    let custody = bench.store().custody(tenant, leased.message.id).await.unwrap();
    assert_eq!((1, Stage::StaleReport), (custody.len(), custody[0].stage));
    assert_eq!((Some(leased.job.id), Some(leased.fence.attempt)), (custody[0].job, custody[0].attempt));
    assert_eq!(Some("tester"), custody[0].actor.as_deref());
    assert!(custody[0].detail.as_deref().unwrap().contains("already_reported"), "{:?}", custody[0].detail);
}

async fn r_b3_a_stale_fence_changes_nothing(bench: Arc<Bench>) {
    let (tenant, _, leased) = leased_job(&bench).await;
    let before = format!("{:?}", bench.read(tenant, leased.job.id).await);
    let Fence { epoch, attempt } = leased.fence;
    let never = Attempt::new(attempt.get() + 1).unwrap();
    for fence in [Fence { epoch: Epoch(epoch.0 + 1), attempt }, Fence { epoch, attempt: never }] {
        let extend = Command::Extend { fence, lease_for: LEASE, checkpoint: Some(b"x"[..].into()) };
        for command in
            [finish(fence), fail_softly(fence), Command::Release { fence }, Command::Start { fence }, extend]
        {
            let (reply, change) = bench.try_apply(job_command(tenant, leased.job.id, command)).await;
            assert_eq!(
                (Err(Refusal::StaleFence { current: Some(attempt) }), true),
                (reply, change.is_none())
            );
        }
    }
    assert_eq!(before, format!("{:?}", bench.read(tenant, leased.job.id).await));
    let custody = bench.store().custody(tenant, leased.message.id).await.unwrap();
    assert_eq!(6, custody.len(), "three reports each; a start or an extend says nothing about the work");
}

/// Lets the first lease run out and leases again.
async fn superseded(bench: &Bench) -> (TenantId, LeasedJob, LeasedJob) {
    let (tenant, queue, first) = leased_job(bench).await;
    bench.advance(LEASE);
    bench.apply(tenant, first.job.id, Command::Expire).await;
    bench.advance(DurationMs::from_mins(5));
    let second = bench.lease(tenant, queue.lane).await;
    (tenant, first, second)
}

async fn r_b3_a_superseded_worker_changes_nothing_but_its_commit_is_heard(bench: Arc<Bench>) {
    let (tenant, first, second) = superseded(&bench).await;
    let job = first.job.id;
    for command in [fail_softly(first.fence), Command::Release { fence: first.fence }] {
        let before = format!("{:?}", bench.read(tenant, job).await);
        assert!(bench.try_apply(job_command(tenant, job, command)).await.0.is_err());
        assert_eq!(before, format!("{:?}", bench.read(tenant, job).await));
    }
    let (reply, change) = bench.try_apply(job_command(tenant, job, finish(first.fence))).await;
    assert_eq!(Err(Refusal::StaleFence { current: Some(second.fence.attempt) }), reply);
    let change = change.expect("the commit is written down");
    assert_eq!((Nature::Heard, StateName::Leased), (change.nature, change.job.state.name()));
    let view = bench.read(tenant, job).await;
    assert_eq!((Some(bench.now()), None), (view.attempts[0].commit_heard_at, view.attempts[0].late.clone()));
    assert_eq!(Some(first.fence.attempt), view.job.commit_heard);
    // The one who holds the lease is not disturbed.
    bench.apply(tenant, job, finish(second.fence)).await;
    assert_eq!(StateName::Committed, bench.state(tenant, job).await);
}

async fn r_b3_a_late_commit_counts(bench: Arc<Bench>) {
    let (tenant, _, leased) = leased_job(&bench).await;
    bench.advance(LEASE);
    bench.apply(tenant, leased.job.id, Command::Expire).await;
    bench.advance(DurationMs(1));
    let change = bench.apply(tenant, leased.job.id, finish(leased.fence)).await;
    assert_eq!((Nature::Late, StateName::Retryable), (change.nature, change.from));
    assert!(change.ended.is_none(), "the attempt had ended before");
    let view = bench.read(tenant, leased.job.id).await;
    assert_eq!(StateName::Committed, view.job.state.name());
    let attempt = &view.attempts[0];
    assert_eq!((AttemptOutcome::LeaseLost, false), (attempt.end.report.outcome, attempt.end.reported));
    let late = attempt.late.as_ref().expect("the late report is kept");
    assert_eq!((bench.now(), AttemptOutcome::Committed), (late.at, late.report.outcome));
    assert_eq!(Some(bench.now()), attempt.commit_heard_at);
    let custody = bench.store().custody(tenant, leased.message.id).await.unwrap();
    assert_eq!(vec![Stage::LateReport], custody.iter().map(|entry| entry.stage).collect::<Vec<_>>());
    // Again: the same answer.
    let (reply, change) = bench.try_apply(job_command(tenant, leased.job.id, finish(leased.fence))).await;
    assert!(reply.is_ok() && change.is_none());
}

async fn r_b3_a_late_failure_is_kept_beside_the_lost_lease(bench: Arc<Bench>) {
    let (tenant, _, leased) = leased_job(&bench).await;
    bench.advance(LEASE);
    bench.apply(tenant, leased.job.id, Command::Expire).await;
    let details = Details { code: Some("E1".into()), status: Some(500), ..Details::default() };
    let failure = Failure::of_worker(Class::Timeout, Some(Effect::Possible), RetryWish::Yes, None);
    let command = Command::Fail { fence: leased.fence, failure, details: details.clone() };
    let change = bench.apply(tenant, leased.job.id, command).await;
    assert_eq!((1, 0), (change.job.budgets.failures, change.job.budgets.lost_leases));
    let view = bench.read(tenant, leased.job.id).await;
    let late = view.attempts[0].late.as_ref().expect("the late report is kept");
    assert_eq!((Some(Class::Timeout), Some(RetryWish::Yes)), (late.report.class, late.report.wish));
    assert_eq!((details, StateName::Retryable), (late.details.clone(), late.state));
    assert_eq!(None, view.attempts[0].commit_heard_at);
    // It is known in the next decision too: another report is refused.
    let (reply, _) = bench.try_apply(job_command(tenant, leased.job.id, finish(leased.fence))).await;
    assert!(matches!(reply, Err(Refusal::AlreadyReported { .. })), "{reply:?}");
}

async fn r_b3_a_checkpoint_is_kept_for_the_successor(bench: Arc<Bench>) {
    let (tenant, queue, leased) = leased_job(&bench).await;
    let extend = |checkpoint: Option<&[u8]>| Command::Extend {
        fence: leased.fence,
        lease_for: LEASE,
        checkpoint: checkpoint.map(Into::into),
    };
    bench.apply(tenant, leased.job.id, extend(Some(b"row 7\0\xFF"))).await;
    bench.apply(tenant, leased.job.id, extend(None)).await;
    bench.advance(LEASE);
    bench.apply(tenant, leased.job.id, Command::Expire).await;
    bench.advance(DurationMs::from_mins(5));
    let next = bench.lease(tenant, queue.lane).await;
    assert_eq!(Some(&b"row 7\0\xFF"[..]), next.job.checkpoint.as_deref());
    let empty = Command::Extend { fence: next.fence, lease_for: LEASE, checkpoint: Some(b""[..].into()) };
    bench.apply(tenant, leased.job.id, empty).await;
    let view = bench.read(tenant, leased.job.id).await;
    assert_eq!(Some(&b""[..]), view.job.checkpoint.as_deref(), "an empty checkpoint is one");
}

async fn r_b3_an_extend_moves_the_end_up_to_the_deadline(bench: Arc<Bench>) {
    let (tenant, _, leased) = leased_job(&bench).await;
    let start = bench.now();
    for (advance, seconds, expected) in [(10, 30, 40), (20, 3_600, 600)] {
        bench.advance(DurationMs::from_secs(advance));
        let lease_for = DurationMs::from_secs(seconds);
        let extend = Command::Extend { fence: leased.fence, lease_for, checkpoint: None };
        let (reply, _) = bench.try_apply(job_command(tenant, leased.job.id, extend)).await;
        let expires_at = start.after(DurationMs::from_secs(expected));
        assert_eq!(Ok(Answer::Extended { expires_at, cancel_requested: false }), reply);
        assert_eq!((vec![], Some(expires_at)), bench.store().expired(5).await.unwrap());
    }
    bench.advance(DurationMs::from_mins(20));
    let extend = Command::Extend { fence: leased.fence, lease_for: LEASE, checkpoint: None };
    let (reply, change) = bench.try_apply(job_command(tenant, leased.job.id, extend)).await;
    assert_eq!((Err(Refusal::LeaseExpired), true), (reply, change.is_none()));
}

async fn fenced_start(bench: &Bench) -> (TenantId, JobId, Fence) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let job = bench.job(tenant, "order-1", &queue).await;
    let request = LeaseRequest { starts: Start::Fenced, ..lease_request(tenant, queue.lane, 1) };
    (tenant, job, bench.grant(request).await.jobs[0].fence)
}

async fn r_b3_a_fenced_start_is_recorded_once(bench: Arc<Bench>) {
    let (tenant, job, fence) = fenced_start(&bench).await;
    assert_eq!(None, bench.read(tenant, job).await.job.started_at);
    bench.advance(DurationMs(5));
    let started_at = bench.now();
    bench.apply(tenant, job, Command::Start { fence }).await;
    bench.advance(DurationMs(5));
    let (reply, change) = bench.try_apply(job_command(tenant, job, Command::Start { fence })).await;
    assert!(reply.is_ok() && change.is_none());
    bench.apply(tenant, job, fail_softly(fence)).await;
    let view = bench.read(tenant, job).await;
    assert_eq!((Some(started_at), Some(started_at)), (view.job.started_at, view.attempts[0].end.started_at));
}

async fn r_b3_a_release_is_not_charged_and_waits_longer_each_time(bench: Arc<Bench>) {
    let (tenant, queue, mut leased) = leased_job(&bench).await;
    for seconds in [1, 2, 4] {
        let change = bench.apply(tenant, leased.job.id, Command::Release { fence: leased.fence }).await;
        let due_at = bench.now().after(DurationMs::from_secs(seconds));
        assert_eq!(State::Scheduled { due_at }, change.job.state);
        bench.advance(DurationMs::from_secs(seconds));
        leased = bench.lease(tenant, queue.lane).await;
    }
    let view = bench.read(tenant, leased.job.id).await;
    assert_eq!((0, 0, 3), (view.job.budgets.failures, view.job.budgets.lost_leases, view.attempts.len()));
    let numbers: Vec<u32> = view.attempts.iter().map(|attempt| attempt.end.attempt.get()).collect();
    assert_eq!(vec![1, 2, 3], numbers, "oldest first");
}

async fn r_b1_scheduled_due_and_started_are_three_facts(bench: Arc<Bench>) {
    let (tenant, job, fence) = fenced_start(&bench).await;
    let scheduled_at = bench.now();
    bench.advance(DurationMs::from_secs(3));
    let started_at = bench.now();
    bench.apply(tenant, job, Command::Start { fence }).await;
    let change = bench.apply(tenant, job, fail_softly(fence)).await;
    let due_again = change.job.state.due_at().unwrap();
    bench.advance(DurationMs::from_mins(1));
    let again = bench.lease(tenant, change.job.lane).await;
    let leased_again = bench.now();
    bench.apply(tenant, job, finish(again.fence)).await;
    let view = bench.read(tenant, job).await;
    assert_eq!((scheduled_at, Some(started_at)), (view.job.scheduled_at, view.job.started_at));
    let ends: Vec<_> = view.attempts.iter().map(|attempt| &attempt.end).collect();
    assert_eq!(
        (scheduled_at, scheduled_at, Some(started_at)),
        (ends[0].due_at, ends[0].leased_at, ends[0].started_at)
    );
    assert_eq!((due_again, leased_again), (ends[1].due_at, ends[1].leased_at));
    assert_eq!((Some(leased_again), Some(due_again)), (ends[1].started_at, ends[0].next_at));
}

async fn r_b7_an_attempt_is_kept_to_the_byte(bench: Arc<Bench>) {
    let (tenant, queue, leased) = leased_job(&bench).await;
    let details = Details {
        status: Some(599),
        duration: Some(DurationMs(i64::MAX.unsigned_abs())),
        code: Some("E\0ode \u{1F525}".into()),
        message: Some("".into()),
        excerpt: Some(b"\0\xFF<html>"[..].into()),
        result: Some(b""[..].into()),
    };
    let failure = Failure::of_worker(Class::ServerError, Some(Effect::Possible), RetryWish::ByTable, None);
    let command = Command::Fail { fence: leased.fence, failure, details: details.clone() };
    bench.apply(tenant, leased.job.id, command).await;
    bench.advance(DurationMs::from_mins(5));
    let second = bench.lease(tenant, queue.lane).await;
    bench.apply(tenant, leased.job.id, fail(second.fence, Effect::None, RetryWish::No)).await;
    let view = bench.read(tenant, leased.job.id).await;
    assert_eq!(details, view.attempts[0].end.details);
    assert_eq!(Some(Class::ServerError), view.attempts[0].end.report.class);
    assert_eq!(Details::default(), view.attempts[1].end.details, "nothing is not the same as empty");
    assert!(!view.attempts[1].end.policy.is_empty(), "the line of policy is kept");
    let finished = Command::Finish {
        fence: second.fence,
        outcome: FinishOutcome::Duplicate,
        evidence: Evidence::Ledger,
        reason: None,
        details,
    };
    assert!(bench.try_apply(job_command(tenant, leased.job.id, finished)).await.0.is_err());
}

async fn r_f1_refused_reports_are_noted_a_hundred_times_at_most(bench: Arc<Bench>) {
    let (tenant, queue, leased) = leased_job(&bench).await;
    bench.apply(tenant, leased.job.id, finish(leased.fence)).await;
    let other = bench.job(tenant, "order-2", &queue).await;
    let stale = |job| job_command(tenant, job, fail_softly(leased.fence));
    let answers = bench.store().apply(vec![stale(leased.job.id); 99]).await.unwrap();
    assert_eq!(99, answers.len());
    bench.store().apply(vec![stale(leased.job.id), stale(other), stale(leased.job.id)]).await.unwrap();
    assert_eq!(100, bench.store().custody(tenant, leased.message.id).await.unwrap().len());
    let message = bench.store().jobs(tenant, posthaste_store::JobFilter { limit: 1, ..Default::default() });
    assert_eq!(other, message.await.unwrap()[0].job.id);
}
