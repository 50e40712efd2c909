//! Reports of attempts: in time, late, stale, repeated. Row B3, and the architecture's footnotes.

use crate::common::*;
use posthaste_core::{
    Answer, AttemptOutcome, Cause, Class, Command, DurationMs, Effect, Entry, Epoch, Evidence, Failure,
    Fence, FinishOutcome, NextStep, OnUnknown, Refusal, RetryWish, Start, State, StateName, Timestamp,
    Verdict,
};

/// A worker's command, once it has a fence.
type Report = fn(Fence) -> Command;

const COMMITTED: FinishOutcome = FinishOutcome::Committed;

fn commit_command(fence: Fence) -> Command {
    finish_command(fence, COMMITTED)
}

#[test]
fn r_b3_a_report_in_time_ends_the_attempt_and_its_row_says_how() {
    for (outcome, state, effect) in [
        (FinishOutcome::Committed, StateName::Committed, Effect::Reported),
        (FinishOutcome::Duplicate, StateName::Committed, Effect::Reported),
        (FinishOutcome::Cancelled, StateName::Cancelled, Effect::None),
    ] {
        let mut world = World::new();
        let fence = world.lease();
        world.pass(DurationMs(5));
        assert_eq!(Ok(moved(state)), world.tell(&finish_command(fence, outcome)));
        let row = world.row(1);
        assert_eq!((outcome.attempt_outcome(), effect), (row.end.report.outcome, row.end.report.effect));
        assert!(row.end.reported);
        assert_eq!((state, None), (row.end.state, row.end.next_at));
        let times = (row.end.due_at, row.end.leased_at, row.end.started_at, row.end.finished_at);
        assert_eq!((T0, T0, Some(T0), T0.after(DurationMs(5))), times);
        assert_eq!(state == StateName::Committed, row.commit_heard_at.is_some());
    }
}

#[test]
fn r_b3_the_evidence_and_the_reason_of_a_finish_are_kept() {
    let mut world = World::new();
    let fence = world.lease();
    let command = Command::Finish {
        fence,
        outcome: COMMITTED,
        evidence: Evidence::Ledger,
        reason: Some("as told".into()),
        details: posthaste_core::Details { status: Some(204), ..Default::default() },
    };
    world.tell(&command).unwrap();
    assert_eq!(State::Committed { at: T0, evidence: Evidence::Ledger }, world.job.state);
    assert_eq!(Some("as told"), world.job.reason.as_deref());
    assert_eq!(
        (Effect::Confirmed, Some(204)),
        (world.row(1).end.report.effect, world.row(1).end.details.status)
    );
}

#[test]
fn r_b3_a_late_commit_is_applied_from_every_state_that_expire_led_to() {
    let retryable = World::on_unknown(OnUnknown::Retry);
    let looked_up = World::on_unknown(RECONCILE);
    let dead = World::on_unknown(OnUnknown::DeadLetter);
    for mut world in [retryable, looked_up, dead] {
        let fence = world.lose();
        world.pass(DurationMs(9));
        assert_eq!(Ok(moved(StateName::Committed)), world.tell(&commit_command(fence)));
        assert_eq!(StateName::Committed, world.state());
        let row = world.row(1);
        assert_eq!(AttemptOutcome::LeaseLost, row.end.report.outcome, "the end stays as it was");
        let late = row.late.as_ref().unwrap();
        assert_eq!(
            (AttemptOutcome::Committed, true, world.now),
            (late.report.outcome, late.accepted, late.at)
        );
        assert_eq!(Some(world.now), row.commit_heard_at);
        assert_eq!(Effect::Reported, row.record().effect());
    }
}

#[test]
fn r_b3_a_late_commit_is_applied_after_replay_before_the_next_lease() {
    let mut world = World::on_unknown(OnUnknown::DeadLetter);
    let fence = world.lose();
    world.replay(true).unwrap();
    assert_eq!(StateName::Scheduled, world.state());
    assert_eq!(Ok(moved(StateName::Committed)), world.tell(&commit_command(fence)));
}

#[test]
fn r_b3_a_report_between_the_end_of_the_lease_and_expire_is_in_time() {
    let mut world = World::new();
    let fence = world.lease();
    world.pass(DEADLINE);
    assert_eq!(Refusal::LeaseExpired, world.refused(&extend_command(fence)));
    assert_eq!(Ok(moved(StateName::Committed)), world.tell(&commit_command(fence)));
    assert!(world.row(1).end.reported);
}

#[test]
fn r_b3_a_late_worker_may_say_that_it_no_longer_applied() {
    let mut world = World::new();
    let fence = world.lose();
    let command = finish_command(fence, FinishOutcome::Cancelled);
    assert_eq!(Ok(moved(StateName::Cancelled)), world.tell(&command));
    assert_eq!(Verdict::Recorded(moved(StateName::Cancelled)), world.apply(&command));
    assert_eq!(Effect::None, world.row(1).record().effect());
}

#[test]
fn r_b3_a_stale_fence_changes_nothing_whatever_it_reports() {
    let mut world = World::new();
    let old = world.lose();
    let new = world.lease();
    let before = world.job.clone();
    let stale = Refusal::StaleFence { current: Some(attempt(2)) };
    for command in [
        fail_command(old, failure(Effect::None)),
        fail_command(old, permanent()),
        finish_command(old, FinishOutcome::Cancelled),
        Command::Release { fence: old },
        extend_command(old),
        Command::Start { fence: old },
    ] {
        assert_eq!(stale, world.refused(&command), "{command:?}");
    }
    assert_eq!(before, world.job);
    assert!(world.row(1).late.is_none());
    assert_eq!(Ok(moved(StateName::Committed)), world.tell(&commit_command(new)));
    assert_eq!("stale_fence", stale.code());
    assert_eq!("the fence is stale: the job's last attempt is 2", stale.to_string());
}

#[test]
fn r_b3_a_stale_commit_is_refused_and_heard() {
    let mut world = World::new();
    let old = world.lose();
    world.lease();
    let stale = Refusal::StaleFence { current: Some(attempt(2)) };
    for again in [false, true] {
        assert_eq!(Err(stale.clone()), world.tell(&commit_command(old)));
        assert_eq!(StateName::Leased, world.state());
        assert_eq!(Some(attempt(1)), world.job.commit_heard);
        assert!(world.row(1).late.is_none() && world.row(1).commit_heard_at.is_some());
        assert!(!again || matches!(world.decide(&commit_command(old)), Verdict::Refused(_)), "written once");
    }
}

#[test]
fn r_b3_a_heard_commit_wins_wherever_an_attempt_ends_without_success() {
    let ends: [(&str, Report); 4] = [
        ("fail", |fence| fail_command(fence, failure(Effect::None))),
        ("permanent", |fence| fail_command(fence, permanent())),
        ("release", |fence| Command::Release { fence }),
        ("no longer applies", |fence| finish_command(fence, FinishOutcome::Cancelled)),
    ];
    let heard = || {
        let mut world = World::new();
        let old = world.lose();
        let new = world.lease();
        world.tell(&commit_command(old)).unwrap_err();
        (world, new)
    };
    for (name, end) in ends {
        for cancelled_too in [false, true] {
            let (mut world, new) = heard();
            if cancelled_too {
                world.tell(&cancel_command()).unwrap();
            }
            assert_eq!(Ok(moved(StateName::Committed)), world.tell(&end(new)), "{name}");
            let State::Committed { evidence, .. } = world.job.state else { panic!("{name}") };
            assert_eq!(Evidence::Reconciled, evidence);
            assert_eq!("an earlier attempt's commit was heard: committed", world.row(2).end.policy);
        }
    }
    let (mut world, _) = heard();
    world.expire();
    assert_eq!(StateName::Committed, world.state());
}

#[test]
fn r_b3_a_done_entry_wins_wherever_an_attempt_ends_without_success() {
    for (entry, state) in [(Entry::Done, StateName::Committed), (Entry::DoneCancelled, StateName::Cancelled)]
    {
        let mut world = World::new();
        let fence = world.lease();
        world.entry = entry;
        assert_eq!(Ok(moved(state)), world.tell(&fail_command(fence, permanent())));
        let mut world = World::on_unknown(OnUnknown::DeadLetter);
        world.lease();
        world.entry = entry;
        world.expire();
        assert_eq!(state, world.state());
    }
    for entry in [Entry::Unknown, Entry::NotDone] {
        let mut world = World::new();
        let fence = world.lease();
        world.entry = entry;
        world.tell(&fail_command(fence, permanent())).unwrap();
        assert_eq!(StateName::DeadLettered, world.state());
    }
}

#[test]
fn r_b3_no_attempt_begins_once_a_commit_was_heard() {
    let mut world = World::new();
    let fence = world.fail(failure(Effect::Possible));
    let other = Refusal::AlreadyReported { report: world.row(1).end.report };
    assert_eq!(Err(other), world.tell(&commit_command(fence)));
    world.pass(DEADLINE);
    assert_eq!(Ok(moved(StateName::Committed)), world.tell(&lease_command(Start::WithLease)));
    assert_eq!(Some(attempt(1)), world.job.attempt);
}

#[test]
fn r_b3_a_fence_never_given_is_refused_and_nothing_is_heard() {
    let mut world = World::new();
    let never = Fence { epoch: world.epoch, attempt: attempt(1) };
    assert_eq!(Refusal::StaleFence { current: None }, world.refused(&commit_command(never)));
    assert_eq!(
        "the fence is stale: the job has had no attempt",
        Refusal::StaleFence { current: None }.to_string()
    );
    world.lease();
    let next = Fence { attempt: attempt(2), ..never };
    for command in [commit_command(next), extend_command(next), Command::Start { fence: next }] {
        assert_eq!(Refusal::StaleFence { current: Some(attempt(1)) }, world.refused(&command));
    }
    assert_eq!(None, world.job.commit_heard);
}

#[test]
fn r_b3_a_fence_of_another_epoch_is_refused_and_nothing_is_heard() {
    let mut world = World::new();
    let old = world.lease();
    world.epoch = Epoch(2);
    let stale = Refusal::StaleFence { current: Some(attempt(1)) };
    for command in [
        commit_command(old),
        fail_command(old, permanent()),
        extend_command(old),
        Command::Start { fence: old },
        Command::Release { fence: old },
    ] {
        assert_eq!(stale, world.refused(&command));
    }
    world.expire();
    assert_eq!(stale, world.refused(&commit_command(old)));
    assert_eq!(Epoch(2), world.lease().epoch);
}

#[test]
fn r_b3_a_repeated_report_gets_the_recorded_answer_even_when_a_newer_attempt_runs() {
    let commands: [Report; 2] =
        [|fence| fail_command(fence, failure(Effect::Possible)), |fence| Command::Release { fence }];
    for command in commands {
        let mut world = World::new();
        let fence = world.lease();
        let told = world.tell(&command(fence)).unwrap();
        assert!(matches!(told, Answer::Moved { due_at: Some(_), .. }));
        world.lease();
        assert_eq!(Verdict::Recorded(told), world.apply(&command(fence)));
    }
}

#[test]
fn r_b3_a_repeated_late_report_gets_the_recorded_answer() {
    let mut world = World::new();
    let fence = world.lose();
    let told = world.tell(&fail_command(fence, failure(Effect::None))).unwrap();
    world.lease();
    assert_eq!(Verdict::Recorded(told), world.apply(&fail_command(fence, failure(Effect::None))));
}

#[test]
fn r_b3_a_repeated_commit_is_answered_yes_after_a_resend_too() {
    let mut world = World::new();
    let fence = world.commit();
    world.resend().unwrap();
    assert_eq!(Verdict::Recorded(moved(StateName::Committed)), world.apply(&commit_command(fence)));
}

#[test]
fn r_b3_another_report_is_already_reported_and_leaves_no_trace_unless_it_is_a_commit() {
    let mut world = World::new();
    let fence = world.fail(failure(Effect::None));
    let recorded = world.row(1).end.report;
    let refusal = Refusal::AlreadyReported { report: recorded };
    for other in [
        fail_command(fence, failure(Effect::Possible)),
        fail_command(fence, permanent()),
        fail_command(fence, Failure { class: Class::Timeout, ..failure(Effect::None) }),
        finish_command(fence, FinishOutcome::Cancelled),
        Command::Release { fence },
        extend_command(fence),
    ] {
        assert_eq!(refusal, world.refused(&other), "{other:?}");
    }
    for outcome in [FinishOutcome::Duplicate, COMMITTED] {
        assert_eq!(Err(refusal.clone()), world.tell(&finish_command(fence, outcome)));
        assert_eq!(Some(attempt(1)), world.job.commit_heard);
    }
    assert_eq!("already_reported", refusal.code());
    assert_eq!("attempt was already reported as failed", refusal.to_string());
}

#[test]
fn r_b3_another_report_on_a_committed_job_is_already_reported() {
    let mut world = World::new();
    let fence = world.commit();
    let report = world.row(1).end.report;
    let other = finish_command(fence, FinishOutcome::Duplicate);
    assert_eq!(Refusal::AlreadyReported { report }, world.refused(&other));
    assert_eq!(Refusal::AlreadyReported { report }, world.refused(&fail_command(fence, permanent())));
}

#[test]
fn r_b3_a_late_failure_gives_the_lost_lease_back_and_is_charged_instead() {
    let mut world = World::new();
    world.lose();
    let fence = world.lose();
    let due_at = world.due_at();
    assert_eq!((0, 2), (world.job.budgets.failures, world.job.budgets.lost_leases));
    world.pass(DurationMs(3));
    assert_eq!(
        Ok(Answer::Moved { state: StateName::Retryable, due_at: Some(due_at) }),
        world.tell(&fail_command(fence, failure(Effect::None)))
    );
    assert_eq!((1, 1), (world.job.budgets.failures, world.job.budgets.lost_leases));
}

#[test]
fn r_b3_a_late_failure_of_an_unstarted_attempt_gives_nothing_back() {
    let mut world = World::new();
    world.lose();
    world.starts = Start::Fenced;
    let fence = world.lose();
    assert_eq!(1, world.job.budgets.lost_leases);
    world.tell(&fail_command(fence, failure(Effect::None))).unwrap();
    assert_eq!((1, 1), (world.job.budgets.failures, world.job.budgets.lost_leases));
}

#[test]
fn r_b3_a_late_permanent_failure_dead_letters_from_retryable() {
    let gone = Failure { disposition: posthaste_core::Disposition::Gone, ..failure(Effect::None) };
    for (failure, cause) in [(permanent(), Cause::Permanent), (gone, Cause::EndpointGone)] {
        let mut world = World::new();
        let fence = world.lose();
        assert_eq!(Ok(moved(StateName::DeadLettered)), world.tell(&fail_command(fence, failure)));
        assert_eq!(cause, world.cause());
    }
}

#[test]
fn r_b3_a_late_failure_can_spend_the_budget_of_failures() {
    let mut world = World::new();
    world.policy.failures_max = 1;
    let fence = world.lose();
    world.tell(&fail_command(fence, failure(Effect::Possible))).unwrap();
    assert_eq!(Cause::Exhausted, world.cause());
}

#[test]
fn r_b3_a_late_answer_of_in_progress_is_not_charged() {
    let mut world = World::new();
    world.policy.failures_max = 1;
    let fence = world.lose();
    let in_progress = Failure::of_worker(Class::InProgress, None, RetryWish::ByTable, None);
    world.tell(&fail_command(fence, in_progress)).unwrap();
    assert_eq!(StateName::Retryable, world.state());
    assert_eq!((0, 0), (world.job.budgets.failures, world.job.budgets.lost_leases));
}

#[test]
fn r_b3_a_late_failure_elsewhere_is_recorded_and_changes_nothing() {
    let mut dead = World::on_unknown(OnUnknown::DeadLetter);
    let of_dead = dead.lose();
    let mut replayed = dead.clone();
    replayed.replay(true).unwrap();
    for (mut world, fence) in [(dead, of_dead), (replayed, of_dead)] {
        let before = world.job.clone();
        let Verdict::Write(decision) = world.apply(&fail_command(fence, failure(Effect::None))) else {
            panic!("not written")
        };
        assert_eq!(posthaste_core::Nature::Late, decision.nature());
        assert_eq!(before, world.job);
        assert_eq!(Effect::None, world.row(1).record().effect(), "so that replay knows");
    }
}

#[test]
fn r_b3_a_late_failure_without_effect_makes_the_look_up_needless() {
    let mut world = World::on_unknown(RECONCILE);
    let fence = world.lose();
    assert_eq!(NextStep::LookUp, world.next_step());
    let mut possible = world.clone();
    possible.tell(&fail_command(fence, failure(Effect::Possible))).unwrap();
    assert_eq!(NextStep::LookUp, possible.next_step());
    world.tell(&fail_command(fence, failure(Effect::None))).unwrap();
    assert_eq!(NextStep::Attempt, world.next_step());
}

#[test]
fn r_b3_a_late_failure_is_settled_by_a_commit_heard_before() {
    let mut world = World::new();
    let first = world.lose();
    let second = world.lose();
    world.tell(&commit_command(first)).unwrap_err();
    assert_eq!(Ok(moved(StateName::Committed)), world.tell(&fail_command(second, permanent())));
    // Not so a dead letter: there the failure is only recorded, and Settle leads on.
    let mut world = World::on_unknown(OnUnknown::DeadLetter);
    let fence = world.lose();
    world.entry = Entry::Done;
    world.tell(&fail_command(fence, permanent())).unwrap();
    assert_eq!(StateName::DeadLettered, world.state());
}

#[test]
fn r_b5_a_late_failure_waits_for_retry_after_if_that_is_longer() {
    let asks =
        |seconds| Failure { retry_after: Some(DurationMs::from_secs(seconds)), ..failure(Effect::None) };
    let mut world = World::new();
    let fence = world.lose();
    let due_at = world.due_at();
    let mut short = world.clone();
    short.tell(&fail_command(fence, asks(1))).unwrap();
    assert_eq!(due_at, short.due_at());
    world.tell(&fail_command(fence, asks(3_600))).unwrap();
    assert!(world.wait_ms() >= 3_600_000, "{}", world.wait_ms());
}

#[test]
fn r_b3_giving_back_a_lost_lease_is_refused() {
    let mut world = World::new();
    let fence = world.lose();
    assert_eq!(Refusal::LeaseExpired, world.refused(&Command::Release { fence }));
}

#[test]
fn r_b3_extend_keeps_the_lease_up_to_its_deadline() {
    let mut world = World::new();
    let fence = world.lease();
    world.pass(DurationMs::from_secs(30));
    let answer =
        Answer::Extended { expires_at: T0.after(DurationMs::from_secs(90)), cancel_requested: false };
    assert_eq!(Ok(answer), world.tell(&extend_command(fence)));
    for _ in 0..20 {
        world.pass(DurationMs::from_secs(55));
        let Ok(Answer::Extended { expires_at, .. }) = world.tell(&extend_command(fence)) else { break };
        assert!(expires_at <= T0.after(DEADLINE));
    }
    assert_eq!(Refusal::LeaseExpired, world.refused(&extend_command(fence)));
    assert!(world.now >= T0.after(DEADLINE));
    // A first lease longer than the deadline is cut too.
    let mut world = World::new();
    let long = Command::Lease {
        worker: "w".into(),
        lease_for: DEADLINE,
        deadline_after: LEASE,
        starts: Start::WithLease,
    };
    world.tell(&long).unwrap();
    world.pass(LEASE);
    world.tell(&Command::Expire).unwrap();
}

#[test]
fn r_b3_a_lease_runs_out_at_its_end_and_not_before() {
    let mut world = World::new();
    let fence = world.lease();
    let expires_at = T0.after(LEASE);
    world.now = Timestamp(expires_at.0 - 1);
    assert_eq!(Refusal::NotExpired { expires_at }, world.refused(&Command::Expire));
    assert!(world.clone().tell(&extend_command(fence)).is_ok());
    world.now = expires_at;
    assert_eq!(Refusal::LeaseExpired, world.refused(&extend_command(fence)));
    assert!(world.tell(&Command::Expire).is_ok());
}

#[test]
fn r_b3_a_checkpoint_survives_to_the_successor() {
    let mut world = World::new();
    let fence = world.lease();
    let leave = |checkpoint: Option<&[u8]>| Command::Extend {
        fence,
        lease_for: LEASE,
        checkpoint: checkpoint.map(Into::into),
    };
    world.tell(&leave(Some(b"row 17"))).unwrap();
    world.tell(&leave(None)).unwrap();
    world.expire();
    world.lease();
    assert_eq!(Some(b"row 17".as_slice()), world.job.checkpoint.as_deref());
}

#[test]
fn r_b3_start_is_refused_once_the_lease_is_lost() {
    let mut world = World::new();
    world.starts = Start::Fenced;
    let fence = world.lease();
    let start = Command::Start { fence };
    let mut late = world.clone();
    late.pass(LEASE);
    assert_eq!(Refusal::LeaseExpired, late.refused(&start));
    late.expire();
    assert_eq!(Refusal::LeaseExpired, late.refused(&start));
    world.pass(DurationMs(7));
    assert_eq!(Ok(moved(StateName::Leased)), world.tell(&start));
    assert_eq!(Some(T0.after(DurationMs(7))), world.job.started_at);
    assert_eq!(Verdict::Recorded(moved(StateName::Leased)), world.apply(&start), "the same again");
    world.tell(&commit_command(fence)).unwrap();
    assert_eq!(Refusal::AlreadySettled { state: StateName::Committed }, world.refused(&start));
}

fn leased_due_at(world: &World) -> Option<Timestamp> {
    match &world.job.state {
        State::Leased(lease) => Some(lease.due_at),
        _ => None,
    }
}

#[test]
fn r_b1_the_actual_start_is_that_of_the_first_attempt() {
    let mut pulled = World::new();
    pulled.pass(DurationMs(8)).lease();
    assert_eq!(
        (T0, Some(T0), Some(pulled.now)),
        (pulled.job.scheduled_at, leased_due_at(&pulled), pulled.job.started_at)
    );
    let mut world = World::new();
    world.starts = Start::Fenced;
    world.lose();
    assert_eq!(None, world.job.started_at);
    let fence = world.lease();
    world.pass(DurationMs(40));
    world.tell(&Command::Start { fence }).unwrap();
    let first = world.job.started_at;
    assert_eq!(Some(world.now), first);
    world.starts = Start::WithLease;
    world.expire();
    world.lease();
    assert_eq!(first, world.job.started_at);
}

#[test]
fn r_b3_an_unstarted_attempt_that_is_lost_is_a_plain_retry_whatever_the_policy() {
    for on_unknown in [OnUnknown::Retry, RECONCILE, OnUnknown::DeadLetter] {
        let mut world = World::on_unknown(on_unknown);
        world.starts = Start::Fenced;
        world.lose();
        assert_eq!((StateName::Retryable, NextStep::Attempt), (world.state(), world.next_step()));
        assert_eq!((0, world.now), (world.job.budgets.lost_leases, world.due_at()));
        assert_eq!(posthaste_core::Share::Retry, world.job.share);
        assert_eq!(Effect::None, world.row(1).end.report.effect);
    }
}

#[test]
fn r_b3_expire_asks_cancel_then_start_then_policy() {
    let end = |on_unknown, asked| {
        let mut world = World::on_unknown(on_unknown);
        world.lease();
        if asked {
            world.tell(&cancel_command()).unwrap();
        }
        world.expire();
        world
    };
    for on_unknown in [OnUnknown::Retry, RECONCILE, OnUnknown::DeadLetter] {
        let world = end(on_unknown, true);
        assert_eq!(StateName::Cancelled, world.state());
        assert_eq!(Effect::Possible, world.row(1).end.report.effect, "outcome unknown noted");
        assert_eq!("a cancel was requested", world.row(1).end.policy);
    }
    assert_eq!(Cause::OutcomeUnknown, end(OnUnknown::DeadLetter, false).cause());
    assert_eq!(NextStep::LookUp, end(RECONCILE, false).next_step());
    let retried = end(OnUnknown::Retry, false);
    assert_eq!((NextStep::Attempt, 1), (retried.next_step(), retried.job.budgets.lost_leases));
}

#[test]
fn r_b3_an_expired_row_is_never_leased_directly() {
    let mut world = World::new();
    world.lease();
    world.pass(DEADLINE);
    let refusal = world.refused(&lease_command(Start::WithLease));
    assert_eq!("lease is not possible while the job is leased", refusal.to_string());
    assert_eq!("wrong_state", refusal.code());
}

#[test]
fn r_b1_nothing_is_leased_before_its_time() {
    let mut world = World::new();
    world.now = Timestamp(T0.0 - 1);
    assert_eq!(Refusal::NotDue { due_at: T0 }, world.refused(&lease_command(Start::WithLease)));
}

#[test]
fn r_a9_the_path_tells_a_first_run_from_a_retry() {
    let path = |world: &mut World| {
        world.now = world.now.max(world.due_at());
        match world.tell(&lease_command(Start::WithLease)) {
            Ok(Answer::Leased { path, .. }) => path.as_str(),
            other => panic!("{other:?}"),
        }
    };
    let mut world = World::new();
    assert_eq!("first_run", path(&mut world));
    let fence = Fence { epoch: world.epoch, attempt: attempt(1) };
    world.tell(&Command::Release { fence }).unwrap();
    assert_eq!("first_run", path(&mut world), "nothing was tried");
    world.expire();
    assert_eq!("retry_after_failure", path(&mut world));
    assert_eq!("first_run", world.row(1).end.path.as_str());
}

#[test]
fn r_b3_a_commit_on_a_job_that_was_committed_otherwise_is_answered_yes_and_recorded() {
    let mut world = World::new();
    let fence = world.lose();
    world.tell(&Command::Settle { evidence: Evidence::Reconciled }).unwrap();
    let before = world.job.clone();
    assert_eq!(Ok(moved(StateName::Committed)), world.tell(&commit_command(fence)));
    assert_eq!(before, world.job);
    assert!(world.row(1).late.is_some() && world.row(1).commit_heard_at.is_some());
    assert_eq!(Verdict::Recorded(moved(StateName::Committed)), world.apply(&commit_command(fence)));
}

#[test]
fn r_b3_on_a_committed_job_failures_are_refused_and_a_guards_word_is_recorded() {
    let mut world = World::new();
    let fence = world.lose();
    world.tell(&Command::Settle { evidence: Evidence::Reconciled }).unwrap();
    let settled = Refusal::AlreadySettled { state: StateName::Committed };
    assert_eq!(settled, world.refused(&fail_command(fence, permanent())));
    assert_eq!(settled, world.refused(&Command::Release { fence }));
    assert_eq!(settled, world.refused(&extend_command(fence)));
    for _ in 0..2 {
        assert_eq!(Err(settled.clone()), world.tell(&finish_command(fence, FinishOutcome::Cancelled)));
        assert!(world.row(1).late.is_some() && world.row(1).commit_heard_at.is_none());
    }
    assert_eq!("already_settled", settled.code());
    assert_eq!("the job is committed already", settled.to_string());
}

#[test]
fn r_b8_every_report_on_a_cancelled_job_is_recorded_and_refused_the_same_way_twice() {
    let settled = Refusal::AlreadySettled { state: StateName::Cancelled };
    let commands: [(Report, Effect); 4] = [
        (|fence| finish_command(fence, COMMITTED), Effect::Reported),
        (|fence| finish_command(fence, FinishOutcome::Cancelled), Effect::None),
        (|fence| fail_command(fence, failure(Effect::None)), Effect::None),
        (|fence| fail_command(fence, failure(Effect::Possible)), Effect::Possible),
    ];
    for (command, effect) in commands {
        let mut world = World::new();
        let fence = world.lease();
        world.tell(&cancel_command()).unwrap();
        world.expire();
        for _ in 0..2 {
            assert_eq!(Err(settled.clone()), world.tell(&command(fence)));
            assert_eq!(StateName::Cancelled, world.state());
            assert_eq!(effect, world.row(1).record().effect());
        }
        assert_eq!(effect == Effect::Reported, world.row(1).commit_heard_at.is_some());
    }
    let mut world = World::new();
    let fence = world.lose();
    world.tell(&cancel_command()).unwrap();
    assert_eq!(settled, world.refused(&Command::Release { fence }));
}

#[test]
fn r_b3_a_stale_commit_on_a_settled_job_is_refused_and_heard() {
    let mut world = World::new();
    let old = world.lose();
    world.commit();
    let stale = Refusal::StaleFence { current: Some(attempt(2)) };
    assert_eq!(Err(stale), world.tell(&commit_command(old)));
    assert!(world.row(1).commit_heard_at.is_some(), "a second effect, shown");
    assert_eq!(StateName::Committed, world.state());
}

#[test]
fn r_b3_without_its_row_a_report_on_an_ended_attempt_is_stale() {
    let mut world = World::new();
    let fence = world.lose();
    world.attempts.clear();
    assert_eq!(Refusal::StaleFence { current: Some(attempt(1)) }, world.refused(&commit_command(fence)));
}
