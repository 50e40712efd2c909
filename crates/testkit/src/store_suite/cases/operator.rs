//! What operators and the engine itself ask: cancel, replay, resend, settle, abandon, look up.

use std::sync::Arc;

use posthaste_core::{
    Answer, Attempt, CancelAnswer, Cause, Command, DurationMs, Effect, Evidence, LookUpVerdict, OnUnknown,
    Policy, Refusal, RetryWish, Share, State, StateName,
};
use posthaste_store::{JobCommand, Stage};

use crate::store_suite::{
    bench::{Bench, LEASE, fail, finish, job_command},
    case_list,
};

case_list![
    r_b8_a_waiting_job_is_cancelled_for_good_with_its_reason,
    r_b8_a_running_job_is_asked_to_stop_and_what_it_reports_is_recorded,
    r_b8_a_dead_letter_is_discarded_with_a_reason,
    r_b9_a_replay_is_refused_where_an_attempt_may_have_acted,
    r_b9_a_replay_goes_where_nothing_can_have_acted,
    r_b9_a_replay_names_the_attempt_that_it_saw,
    r_b9_an_idempotent_destination_is_replayed_without_a_word,
    r_b9_a_resend_sends_a_committed_job_again_under_its_identity,
    r_c10_a_look_up_decides_what_follows,
    r_c10_evidence_settles_a_dead_letter,
    r_b6_an_abandoned_job_is_dead_lettered_at_once_or_when_its_attempt_ends,
];

fn replay(seen: Option<Attempt>, assume_not_done: bool) -> Command {
    Command::Replay { seen, assume_not_done, reason: "fixed \"it\"".into() }
}

async fn stages(bench: &Bench, tenant: posthaste_core::TenantId, key: &str) -> Vec<(Stage, String)> {
    let name = posthaste_store::MessageName::Key(crate::store_suite::bench::key(key));
    let id = bench.store().message(tenant, name).await.unwrap().unwrap().id;
    let entries = bench.store().custody(tenant, id).await.unwrap();
    entries.into_iter().map(|entry| (entry.stage, entry.detail.unwrap_or_default().into())).collect()
}

async fn r_b8_a_waiting_job_is_cancelled_for_good_with_its_reason(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let job = bench.job(tenant, "order-1", &queue).await;
    let cancel = || job_command(tenant, job, Command::Cancel { reason: "paid \u{2714}".into() });
    let (reply, change) = bench.try_apply(cancel()).await;
    assert_eq!((Ok(Answer::Cancel(CancelAnswer::Cancelled)), true), (reply, change.is_some()));
    let view = bench.read(tenant, job).await;
    assert_eq!(State::Cancelled { at: bench.now() }, view.job.state);
    assert_eq!(Some("paid \u{2714}"), view.job.reason.as_deref());
    let (reply, change) = bench.try_apply(cancel()).await;
    assert_eq!((Ok(Answer::Cancel(CancelAnswer::Cancelled)), true), (reply, change.is_none()));
    assert_eq!(
        vec![(Stage::Cancelled, "{\"reason\":\"paid \u{2714}\"}".to_owned())],
        stages(&bench, tenant, "order-1").await
    );
    assert_eq!(0, bench.store().heads().await.unwrap().len());
}

async fn r_b8_a_running_job_is_asked_to_stop_and_what_it_reports_is_recorded(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let job = bench.job(tenant, "order-1", &queue).await;
    let leased = bench.lease(tenant, queue.lane).await;
    let (reply, _) =
        bench.try_apply(job_command(tenant, job, Command::Cancel { reason: "stop".into() })).await;
    assert_eq!(Ok(Answer::Cancel(CancelAnswer::Requested)), reply);
    let extend = Command::Extend { fence: leased.fence, lease_for: LEASE, checkpoint: None };
    let (reply, _) = bench.try_apply(job_command(tenant, job, extend)).await;
    assert!(matches!(reply, Ok(Answer::Extended { cancel_requested: true, .. })), "{reply:?}");
    bench.apply(tenant, job, finish(leased.fence)).await;
    let view = bench.read(tenant, job).await;
    assert_eq!((StateName::Committed, Some("stop")), (view.job.state.name(), view.job.reason.as_deref()));
    let (reply, _) =
        bench.try_apply(job_command(tenant, job, Command::Cancel { reason: "stop".into() })).await;
    assert_eq!(Ok(Answer::Cancel(CancelAnswer::TooLate)), reply);
    let seen: Vec<Stage> =
        stages(&bench, tenant, "order-1").await.into_iter().map(|(stage, _)| stage).collect();
    assert_eq!(vec![Stage::CancelRequested], seen);
}

async fn r_b8_a_dead_letter_is_discarded_with_a_reason(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    bench.job(tenant, "order-1", &queue).await;
    let job = bench.dead_letter(tenant, queue.lane, Effect::Possible).await;
    assert_eq!(1, bench.store().counts().await.unwrap().len());
    bench.apply(tenant, job, Command::Cancel { reason: "never mind".into() }).await;
    let view = bench.read(tenant, job).await;
    assert_eq!(
        (StateName::Cancelled, Some("never mind")),
        (view.job.state.name(), view.job.reason.as_deref())
    );
    let counts = bench.store().counts().await.unwrap();
    assert_eq!((1, StateName::Cancelled, 1), (counts.len(), counts[0].state, counts[0].jobs));
}

async fn r_b9_a_replay_is_refused_where_an_attempt_may_have_acted(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    bench.job(tenant, "order-1", &queue).await;
    let job = bench.dead_letter(tenant, queue.lane, Effect::Possible).await;
    let before = format!("{:?}", bench.read(tenant, job).await);
    let seen = Some(Attempt::FIRST);
    let (reply, change) = bench.try_apply(job_command(tenant, job, replay(seen, false))).await;
    match reply {
        Err(Refusal::OutcomeUnknown { span, cause: Cause::Permanent }) => {
            assert_eq!((0, 1), (span.lo, span.hi));
        }
        other => panic!("{other:?}"),
    }
    assert!(change.is_none());
    assert_eq!(before, format!("{:?}", bench.read(tenant, job).await));
    assert_eq!(0, stages(&bench, tenant, "order-1").await.len());
    bench.advance(DurationMs::from_mins(1));
    let change = bench.apply(tenant, job, replay(seen, true)).await;
    assert_eq!(State::Scheduled { due_at: bench.now() }, change.job.state);
    let detail = "{\"assume_not_done\":true,\"reason\":\"fixed \\\"it\\\"\"}".to_owned();
    assert_eq!(vec![(Stage::Replayed, detail)], stages(&bench, tenant, "order-1").await);
}

async fn r_b9_a_replay_goes_where_nothing_can_have_acted(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    bench.job(tenant, "order-1", &queue).await;
    let job = bench.dead_letter(tenant, queue.lane, Effect::None).await;
    bench.apply(tenant, job, replay(Some(Attempt::FIRST), false)).await;
    let again = bench.lease(tenant, queue.lane).await;
    assert_eq!((job, 2, Share::Bulk), (again.job.id, again.fence.attempt.get(), again.job.share));
    // All attempts count: the next dead letter's gate looks at the first one too.
    bench.apply(tenant, job, fail(again.fence, Effect::Possible, RetryWish::No)).await;
    let (reply, _) =
        bench.try_apply(job_command(tenant, job, replay(Some(again.fence.attempt), false))).await;
    assert!(matches!(reply, Err(Refusal::OutcomeUnknown { span, .. }) if span.hi == 1), "{reply:?}");
    assert_eq!(2, bench.read(tenant, job).await.attempts.len());
}

async fn r_b9_a_replay_names_the_attempt_that_it_saw(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    bench.job(tenant, "order-1", &queue).await;
    let job = bench.dead_letter(tenant, queue.lane, Effect::None).await;
    for seen in [None, Attempt::new(2)] {
        let (reply, _) = bench.try_apply(job_command(tenant, job, replay(seen, true))).await;
        assert_eq!(Err(Refusal::AttemptChanged { current: Some(Attempt::FIRST) }), reply);
    }
    // Two operators at once: the second one has seen a job that has moved on.
    let command = || job_command(tenant, job, replay(Some(Attempt::FIRST), true));
    let both = bench.store().apply(vec![command(), command()]).await.unwrap();
    let yes = both.iter().filter(|applied| {
        matches!(&applied.outcome, posthaste_store::AppliedOutcome::Decided { reply: Ok(_), .. })
    });
    assert_eq!(1, yes.count());
}

async fn r_b9_an_idempotent_destination_is_replayed_without_a_word(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    bench.job(tenant, "order-1", &queue).await;
    let job = bench.dead_letter(tenant, queue.lane, Effect::Possible).await;
    let policy = Arc::new(Policy { idempotent: true, ..Policy::queue_default() });
    let command = JobCommand { policy, ..job_command(tenant, job, replay(Some(Attempt::FIRST), false)) };
    bench.try_apply(command).await.0.unwrap();
    assert_eq!(StateName::Scheduled, bench.state(tenant, job).await);
}

async fn r_b9_a_resend_sends_a_committed_job_again_under_its_identity(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let mut queue = bench.queue(tenant, "orders").await;
    queue.wire_id = Some("wire-1".into());
    let job = bench.job(tenant, "order-1", &queue).await;
    let first = bench.lease(tenant, queue.lane).await;
    bench.apply(tenant, job, finish(first.fence)).await;
    bench.advance(DurationMs::from_hours(1));
    let resend = Command::Resend { seen: Some(first.fence.attempt), reason: "lost".into() };
    bench.apply(tenant, job, resend).await;
    let again = bench.lease(tenant, queue.lane).await;
    assert_eq!((job, Some("wire-1")), (again.job.id, again.wire_id.as_deref()));
    assert_eq!((2, 1), (again.fence.attempt.get(), again.job.evidence_floor));
    assert_eq!(
        (first.message.payload, first.job.scheduled_at),
        (again.message.payload, again.job.scheduled_at)
    );
    assert_eq!(Stage::Resent, stages(&bench, tenant, "order-1").await[0].0);
}

async fn r_c10_a_look_up_decides_what_follows(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let settle = DurationMs::from_secs(60);
    let policy = Arc::new(Policy { on_unknown: OnUnknown::Reconcile { settle }, ..Policy::queue_default() });
    let with_policy = |command| JobCommand { policy: policy.clone(), ..command };
    let cases = [
        (LookUpVerdict::Present, 0, StateName::Committed),
        (LookUpVerdict::Absent, 0, StateName::Retryable),
        (LookUpVerdict::Unsure, 0, StateName::Retryable),
        (LookUpVerdict::InProgress, 60, StateName::Retryable),
    ];
    for (verdict, settled_in, expected) in cases {
        let name = format!("order-{verdict}");
        let job = bench.job(tenant, &name, &queue).await;
        let leased = bench.lease(tenant, queue.lane).await;
        let failure = fail(leased.fence, Effect::Possible, RetryWish::Yes);
        bench.try_apply(with_policy(job_command(tenant, job, failure))).await.0.unwrap();
        let settled_at = bench.now().after(DurationMs::from_secs(settled_in));
        let (seen, asked_at) = (leased.job.attempt, bench.now());
        let look_up = Command::LookUp { seen, asked_at, verdict, settled_at, said: None };
        let (reply, change) = bench.try_apply(with_policy(job_command(tenant, job, look_up))).await;
        assert!(reply.is_ok() && change.is_some(), "{verdict}: {reply:?}");
        assert_eq!(expected, bench.state(tenant, job).await, "{verdict}");
        assert_eq!(
            vec![(Stage::Reconciled, format!("{{\"verdict\":\"{verdict}\"}}"))],
            stages(&bench, tenant, &name).await
        );
        // Only "absent", once the last send can no longer act, makes the job ready for another attempt.
        let waits = bench.store().heads().await.unwrap().len();
        assert_eq!(usize::from(verdict == LookUpVerdict::Absent), waits, "{verdict}");
        bench.try_apply(job_command(tenant, job, Command::Cancel { reason: "next".into() })).await.0.unwrap();
    }
}

async fn r_c10_evidence_settles_a_dead_letter(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    bench.job(tenant, "order-1", &queue).await;
    let job = bench.dead_letter(tenant, queue.lane, Effect::Possible).await;
    let (reply, _) =
        bench.try_apply(job_command(tenant, job, Command::Settle { evidence: Evidence::Ledger })).await;
    assert!(reply.is_err(), "no ledger entry is known: {reply:?}");
    bench.apply(tenant, job, Command::Settle { evidence: Evidence::Reconciled }).await;
    let view = bench.read(tenant, job).await;
    assert_eq!(State::Committed { at: bench.now(), evidence: Evidence::Reconciled }, view.job.state);
    let detail = "{\"evidence\":\"reconciled\"}".to_owned();
    assert_eq!(vec![(Stage::Reconciled, detail)], stages(&bench, tenant, "order-1").await);
}

async fn r_b6_an_abandoned_job_is_dead_lettered_at_once_or_when_its_attempt_ends(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let waiting = bench.job(tenant, "waiting", &queue).await;
    bench.apply(tenant, waiting, Command::Abandon { cause: Cause::EndpointGone }).await;
    let view = bench.read(tenant, waiting).await;
    assert_eq!(State::DeadLettered { at: bench.now(), cause: Cause::EndpointGone }, view.job.state);
    let running = bench.job(tenant, "running", &queue).await;
    let leased = bench.lease(tenant, queue.lane).await;
    bench.apply(tenant, running, Command::Abandon { cause: Cause::Exhausted }).await;
    let view = bench.read(tenant, running).await;
    assert_eq!((StateName::Leased, Some(Cause::Exhausted)), (view.job.state.name(), view.job.abandon));
    bench.apply(tenant, running, fail(leased.fence, Effect::None, RetryWish::Yes)).await;
    assert_eq!(StateName::DeadLettered, bench.state(tenant, running).await);
    for name in ["waiting", "running"] {
        assert_eq!(Stage::DeadLettered, stages(&bench, tenant, name).await[0].0, "{name}");
    }
}
