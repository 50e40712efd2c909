//! Cancel, settle, replay, resend, abandon. Rows B7 to B9.

use std::fmt::Write;

use crate::common::*;
use expect_test::expect;
use posthaste_core::{
    Answer, Attempt, CancelAnswer, Cause, Command, DurationMs, Effect, EffectSpan, Entry, Evidence, Facts,
    Fence, FinishOutcome, Job, Nature, OnUnknown, Policy, Refusal, Share, Start, State, StateName, Verdict,
    transition,
};

#[test]
fn r_b8_a_running_worker_learns_of_a_cancel_and_its_commit_is_still_recorded() {
    let mut world = World::new();
    let fence = world.lease();
    assert_eq!(Ok(Answer::Cancel(CancelAnswer::Requested)), world.tell(&cancel_command()));
    let other = Command::Cancel { reason: "another".into() };
    assert_eq!(Verdict::Recorded(Answer::Cancel(CancelAnswer::Requested)), world.apply(&other));
    let Ok(Answer::Extended { cancel_requested, .. }) = world.tell(&extend_command(fence)) else { panic!() };
    assert!(cancel_requested);
    world.tell(&finish_command(fence, FinishOutcome::Committed)).unwrap();
    assert_eq!(StateName::Committed, world.state());
    assert_eq!(Some("no longer wanted"), world.job.reason.as_deref(), "shown for ever");
}

#[test]
fn r_b8_the_reason_of_a_guard_is_kept_and_never_over_an_operators() {
    let guarded = |fence| Command::Finish {
        fence,
        outcome: FinishOutcome::Cancelled,
        evidence: Evidence::Worker,
        reason: Some("already paid".into()),
        details: posthaste_core::Details::default(),
    };
    let mut world = World::new();
    let fence = world.lease();
    let mut asked = world.clone();
    world.tell(&guarded(fence)).unwrap();
    assert_eq!(Some("already paid"), world.job.reason.as_deref());
    asked.tell(&cancel_command()).unwrap();
    asked.tell(&guarded(fence)).unwrap();
    assert_eq!(Some("no longer wanted"), asked.job.reason.as_deref());
}

#[test]
fn r_b8_after_a_cancel_was_asked_every_other_end_is_cancelled() {
    let ends: [fn(Fence) -> Command; 4] = [
        |fence| fail_command(fence, failure(Effect::None)),
        |fence| fail_command(fence, permanent()),
        |fence| Command::Release { fence },
        |fence| finish_command(fence, FinishOutcome::Cancelled),
    ];
    for end in ends {
        for on_unknown in [OnUnknown::Retry, RECONCILE, OnUnknown::DeadLetter] {
            let mut world = World::on_unknown(on_unknown);
            let fence = world.lease();
            world.tell(&cancel_command()).unwrap();
            assert_eq!(Ok(moved(StateName::Cancelled)), world.tell(&end(fence)));
            assert!(world.row(1).end.reported);
        }
    }
}

#[test]
fn r_b8_a_cancel_before_the_start_is_at_once_and_the_attempt_gets_its_row() {
    let mut world = World::new();
    world.starts = Start::Fenced;
    let fence = world.lease();
    assert_eq!(Ok(Answer::Cancel(CancelAnswer::Cancelled)), world.tell(&cancel_command()));
    assert_eq!(StateName::Cancelled, world.state());
    let end = &world.row(1).end;
    assert_eq!(
        ("cancelled", Effect::None, false),
        (end.report.outcome.as_str(), end.report.effect, end.reported)
    );
    let settled = Refusal::AlreadySettled { state: StateName::Cancelled };
    assert_eq!(settled, world.refused(&Command::Start { fence }));
    assert_eq!(Err(settled), world.tell(&finish_command(fence, FinishOutcome::Committed)));
    assert!(world.row(1).commit_heard_at.is_some());
}

#[test]
fn r_b8_a_cancel_ends_whatever_waits_and_discards_a_dead_letter() {
    let mut dead = World::new();
    dead.fail(permanent());
    let mut retryable = World::new();
    retryable.lose();
    for mut world in [World::new(), retryable, dead] {
        assert_eq!(Ok(Answer::Cancel(CancelAnswer::Cancelled)), world.tell(&cancel_command()));
        assert_eq!(State::Cancelled { at: world.now }, world.job.state);
        assert_eq!(Some("no longer wanted"), world.job.reason.as_deref());
        let again = Command::Cancel { reason: "another".into() };
        assert_eq!(Verdict::Recorded(Answer::Cancel(CancelAnswer::Cancelled)), world.apply(&again));
    }
    let mut done = World::new();
    done.commit();
    assert_eq!(Verdict::Recorded(Answer::Cancel(CancelAnswer::TooLate)), done.apply(&cancel_command()));
}

#[test]
fn r_b7_a_dead_letter_is_no_trap_for_a_done_effect() {
    for (entry, state) in [(Entry::Done, StateName::Committed), (Entry::DoneCancelled, StateName::Cancelled)]
    {
        let mut world = World::new();
        world.lose_times(3);
        world.entry = entry;
        assert_eq!(Ok(moved(state)), world.tell(&Command::Settle { evidence: Evidence::Ledger }));
        assert_eq!(state, world.state());
    }
    let mut world = World::on_unknown(OnUnknown::DeadLetter);
    let fence = world.fail(failure(Effect::Possible));
    world.tell(&finish_command(fence, FinishOutcome::Committed)).unwrap_err();
    world.tell(&Command::Settle { evidence: Evidence::Ledger }).unwrap();
    assert_eq!(State::Committed { at: world.now, evidence: Evidence::Reconciled }, world.job.state);
}

#[test]
fn r_b7_nothing_is_settled_without_evidence() {
    let mut world = World::new();
    world.lose_times(3);
    for evidence in [Evidence::Answered, Evidence::Ledger, Evidence::Worker] {
        assert_eq!("wrong_state", world.refused(&Command::Settle { evidence }).code());
    }
    world.tell(&Command::Settle { evidence: Evidence::Reconciled }).unwrap();
    assert_eq!(State::Committed { at: world.now, evidence: Evidence::Reconciled }, world.job.state);
}

#[test]
fn r_b3_the_lease_is_settled_by_a_done_entry_and_no_attempt_begins() {
    for (entry, state) in [(Entry::Done, StateName::Committed), (Entry::DoneCancelled, StateName::Cancelled)]
    {
        let mut world = World { entry, ..World::new() };
        let Verdict::Write(decision) = world.apply(&lease_command(Start::WithLease)) else { panic!() };
        assert_eq!(Nature::SettledInstead, decision.nature());
        assert_eq!((state, None), (world.state(), world.job.attempt));
    }
}

fn dead_with(entry: Entry, policy: Policy, span: EffectSpan) -> (Job, Facts, Policy) {
    let mut world = World::new();
    world.fail(permanent());
    let facts = Facts { entry, span, ..Facts::bare(world.epoch) };
    (world.job, facts, policy)
}

#[test]
fn r_b9_the_gates_of_replay_are_golden() {
    let spans = [
        EffectSpan::NONE,
        EffectSpan { effect: Effect::Possible, lo: 0, hi: 2 },
        EffectSpan { effect: Effect::Reported, lo: 1, hi: 2 },
        EffectSpan { effect: Effect::Confirmed, lo: 1, hi: 1 },
    ];
    let mut text = String::new();
    for span in spans {
        for entry in [Entry::Unknown, Entry::NotDone, Entry::Done, Entry::DoneCancelled] {
            write!(text, "{:<10}{:<14}", span.effect.as_str(), format!("{entry:?}")).unwrap();
            for (idempotent, assume_not_done) in [(false, false), (false, true), (true, false), (true, true)]
            {
                let (job, facts, policy) = dead_with(entry, Policy { idempotent, ..exact_policy() }, span);
                let command = Command::Replay { seen: job.attempt, assume_not_done, reason: "r".into() };
                let comes_to = match transition(&job, &facts, &command, &policy, T0) {
                    Verdict::Write(decision) => decision.next().state.name().as_str(),
                    Verdict::Refused(refusal) => {
                        assert_eq!(Refusal::OutcomeUnknown { span, cause: Cause::Permanent }, refusal);
                        "refused"
                    }
                    Verdict::Recorded(_) => "recorded",
                };
                write!(text, "{comes_to:<11}").unwrap();
            }
            text.truncate(text.trim_end().len());
            text.push('\n');
        }
    }
    // Columns: plain, assume, idempotent, idempotent and assume.
    expect![[r#"
        none      Unknown       scheduled  scheduled  scheduled  scheduled
        none      NotDone       scheduled  scheduled  scheduled  scheduled
        none      Done          committed  committed  committed  committed
        none      DoneCancelled cancelled  cancelled  cancelled  cancelled
        possible  Unknown       refused    scheduled  scheduled  scheduled
        possible  NotDone       refused    scheduled  scheduled  scheduled
        possible  Done          committed  committed  committed  committed
        possible  DoneCancelled cancelled  cancelled  cancelled  cancelled
        reported  Unknown       committed  committed  committed  committed
        reported  NotDone       committed  committed  committed  committed
        reported  Done          committed  committed  committed  committed
        reported  DoneCancelled cancelled  cancelled  cancelled  cancelled
        confirmed Unknown       committed  committed  committed  committed
        confirmed NotDone       committed  committed  committed  committed
        confirmed Done          committed  committed  committed  committed
        confirmed DoneCancelled cancelled  cancelled  cancelled  cancelled
    "#]]
    .assert_eq(&text);
    let span = EffectSpan { effect: Effect::Possible, lo: 0, hi: 2 };
    let refusal = Refusal::OutcomeUnknown { span, cause: Cause::Permanent };
    assert_eq!("outcome_unknown", refusal.code());
    assert_eq!("the effect may have happened: 0 to 2 attempts may have acted", refusal.to_string());
}

#[test]
fn r_b9_replay_and_resend_name_the_attempt_that_they_saw() {
    let mut dead = World::new();
    dead.fail(permanent());
    let mut committed = World::new();
    committed.commit();
    for seen in [None, Attempt::new(2)] {
        let changed = Refusal::AttemptChanged { current: Some(attempt(1)) };
        let replay = Command::Replay { seen, assume_not_done: true, reason: "r".into() };
        assert_eq!(changed, dead.refused(&replay));
        assert_eq!(changed, committed.refused(&Command::Resend { seen, reason: "r".into() }));
        assert_eq!("attempt_changed", changed.code());
    }
    // The same request again, after its first was carried out and failed: no second replay.
    let again = Command::Replay { seen: Attempt::new(1), assume_not_done: true, reason: "r".into() };
    dead.tell(&again).unwrap();
    assert_eq!("not_dead_lettered", dead.refused(&again).code());
    dead.fail(permanent());
    assert_eq!("attempt_changed", dead.refused(&again).code());
    assert_eq!("not_dead_lettered", committed.refused(&again).code());
    assert_eq!(
        "not_committed",
        dead.refused(&Command::Resend { seen: Attempt::new(2), reason: "r".into() }).code()
    );
}

#[test]
fn r_b9_replay_settles_what_has_happened() {
    // A worker's own word, given with its failure.
    let mut world = World::new();
    world.fail(posthaste_core::Failure { wish: posthaste_core::RetryWish::No, ..failure(Effect::Reported) });
    let Verdict::Write(decision) =
        world.apply(&Command::Replay { seen: world.job.attempt, assume_not_done: true, reason: "r".into() })
    else {
        panic!()
    };
    assert_eq!(Nature::SettledInstead, decision.nature());
    assert_eq!(State::Committed { at: world.now, evidence: Evidence::Reconciled }, world.job.state);
    assert_eq!(Some("r"), world.job.reason.as_deref());
    // A commit that was heard.
    let mut world = World::new();
    let fence = world.fail(permanent());
    world.tell(&finish_command(fence, FinishOutcome::Committed)).unwrap_err();
    assert_eq!(Ok(moved(StateName::Committed)), world.replay(true));
    assert_eq!(Some("again"), world.job.reason.as_deref());
}

#[test]
fn r_b9_replay_keeps_identity_history_and_checkpoint() {
    let mut world = World::new();
    let fence = world.lease();
    let checkpoint = Some(b"row 9".as_slice().into());
    world.tell(&Command::Extend { fence, lease_for: LEASE, checkpoint }).unwrap();
    world.tell(&fail_command(fence, permanent())).unwrap();
    let before = world.job.clone();
    world.replay(false).unwrap();
    let expected = Job {
        state: State::Scheduled { due_at: world.now },
        share: Share::Bulk,
        budgets: posthaste_core::Budgets::fresh(world.now, 0),
        reason: Some("again".into()),
        ..before
    };
    assert_eq!(expected, world.job);
}

#[test]
fn r_b9_replay_of_a_quarantined_message_needs_no_attempt() {
    let mut world = World::new();
    world.job = Job::quarantined(new_job(), Cause::InvalidPayload);
    assert_eq!(State::DeadLettered { at: T0, cause: Cause::InvalidPayload }, world.job.state);
    world.replay(false).unwrap();
    assert_eq!(attempt(1), world.lease().attempt);
}

#[test]
fn r_b9_a_resend_is_not_settled_by_old_evidence() {
    let mut world = World::on_unknown(OnUnknown::DeadLetter);
    let old = world.lose();
    world.tell(&Command::Settle { evidence: Evidence::Reconciled }).unwrap();
    world.entry = Entry::Done;
    world.resend().unwrap();
    assert_eq!((1, None), (world.job.evidence_floor, world.job.commit_heard));
    // A commit of the first round comes only now: recorded, no more.
    let stale = Refusal::StaleFence { current: Some(attempt(1)) };
    assert_eq!(Err(stale.clone()), world.tell(&finish_command(old, FinishOutcome::Committed)));
    assert!(world.row(1).commit_heard_at.is_some());
    assert_eq!(None, world.job.commit_heard);
    assert_eq!(stale, world.refused(&fail_command(old, permanent())));
    // The done entry doesn't keep it from being sent, nor settle it where it is left unknown.
    let new = world.lease();
    assert_eq!(attempt(2), new.attempt);
    world.expire();
    assert_eq!(Cause::OutcomeUnknown, world.cause());
    assert_eq!("wrong_state", world.refused(&Command::Settle { evidence: Evidence::Ledger }).code());
    // Nor is a replay settled by what came before the resend; it is judged as unknown.
    assert_eq!("outcome_unknown", world.replay(false).unwrap_err().code());
    let mut replayed = world.clone();
    replayed.replay(true).unwrap();
    assert_eq!(StateName::Scheduled, replayed.state());
    // What came after the resend counts.
    assert_eq!(Ok(moved(StateName::Committed)), world.tell(&finish_command(new, FinishOutcome::Committed)));
}

#[test]
fn r_b9_a_commit_heard_after_a_resend_counts() {
    let mut world = World::new();
    world.commit();
    world.resend().unwrap();
    let second = world.lose();
    world.lease();
    world.tell(&finish_command(second, FinishOutcome::Committed)).unwrap_err();
    assert_eq!(Some(second.attempt), world.job.commit_heard);
    world.expire();
    assert_eq!(StateName::Committed, world.state());
    // A second resend forgets it.
    world.resend().unwrap();
    assert_eq!((None, 3), (world.job.commit_heard, world.job.evidence_floor));
    world.lease();
}

#[test]
fn r_b9_a_resend_begins_from_the_beginning() {
    let mut world = World::new();
    let fence = world.lease();
    let checkpoint = Some(b"row 9".as_slice().into());
    world.tell(&Command::Extend { fence, lease_for: LEASE, checkpoint }).unwrap();
    world.tell(&cancel_command()).unwrap();
    world.tell(&Command::Abandon { cause: Cause::EndpointGone }).unwrap();
    world.tell(&finish_command(fence, FinishOutcome::Committed)).unwrap();
    world.resend().unwrap();
    assert_eq!(
        (None, false, None),
        (world.job.checkpoint.clone(), world.job.cancel_requested, world.job.abandon)
    );
    assert_eq!(State::Scheduled { due_at: world.now }, world.job.state);
    world.fail(failure(Effect::None));
    assert_eq!(StateName::Retryable, world.state());
}

#[test]
fn r_b7_abandon_dead_letters_what_waits_and_what_runs_when_it_ends() {
    let abandon = |cause| Command::Abandon { cause };
    let mut retryable = World::new();
    retryable.lose();
    for mut world in [World::new(), retryable] {
        assert_eq!(Ok(moved(StateName::DeadLettered)), world.tell(&abandon(Cause::EndpointGone)));
        assert_eq!(Cause::EndpointGone, world.cause());
        assert_eq!("wrong_state", world.refused(&abandon(Cause::Exhausted)).code());
    }
    let mut world = World::new();
    let fence = world.lease();
    assert_eq!(Ok(moved(StateName::Leased)), world.tell(&abandon(Cause::EndpointGone)));
    let again = world.apply(&abandon(Cause::Exhausted));
    assert_eq!(Verdict::Recorded(moved(StateName::Leased)), again, "the first cause stays");
    world.tell(&Command::Release { fence }).unwrap();
    assert_eq!((Cause::EndpointGone, None), (world.cause(), world.job.abandon));
    assert_eq!("the job was abandoned while it ran", world.row(1).end.policy);
    // A replay of it is not abandoned again.
    world.replay(false).unwrap();
    world.fail(failure(Effect::None));
    assert_eq!(StateName::Retryable, world.state());
}

#[test]
fn r_a2_what_is_quarantined_takes_another_cause_of_quarantine_and_nothing_else_does() {
    let abandon = |cause| Command::Abandon { cause };
    let mut world = World::new();
    world.job.state = State::DeadLettered { at: world.now, cause: Cause::MissingKey };
    assert_eq!(Ok(moved(StateName::DeadLettered)), world.tell(&abandon(Cause::InvalidPayload)));
    assert_eq!(Cause::InvalidPayload, world.cause());
    let same = world.apply(&abandon(Cause::InvalidPayload));
    assert_eq!(Verdict::Recorded(moved(StateName::DeadLettered)), same);
    assert_eq!("wrong_state", world.refused(&abandon(Cause::EndpointGone)).code());
    world.job.state = State::DeadLettered { at: world.now, cause: Cause::EndpointGone };
    assert_eq!("wrong_state", world.refused(&abandon(Cause::KeyReused)).code());
    // What was tried did not die of its shape.
    let mut tried = World::new();
    tried.fail(permanent());
    let State::DeadLettered { at, .. } = tried.job.state else { panic!() };
    tried.job.state = State::DeadLettered { at, cause: Cause::InvalidPayload };
    assert_eq!("wrong_state", tried.refused(&abandon(Cause::MissingKey)).code());
}

#[test]
fn r_b7_a_cancel_goes_before_an_abandon_and_evidence_before_both() {
    let mut world = World::new();
    let fence = world.lease();
    world.tell(&cancel_command()).unwrap();
    world.tell(&Command::Abandon { cause: Cause::EndpointGone }).unwrap();
    let mut done = World { entry: Entry::Done, ..world.clone() };
    world.tell(&fail_command(fence, permanent())).unwrap();
    assert_eq!(StateName::Cancelled, world.state());
    done.tell(&fail_command(fence, permanent())).unwrap();
    assert_eq!(StateName::Committed, done.state());
}

#[test]
fn r_b9_effects_are_counted_over_all_attempts() {
    let mut world = World::new();
    let first = world.lose();
    let span = |world: &World| {
        let records: Vec<_> = world.attempts.iter().map(AttemptRow::record).collect();
        EffectSpan::of_attempts(&records)
    };
    assert_eq!(EffectSpan { effect: Effect::Possible, lo: 0, hi: 1 }, span(&world));
    let mut twice = world.clone();
    twice.commit();
    assert_eq!(EffectSpan { effect: Effect::Reported, lo: 1, hi: 2 }, span(&twice));
    // The second delivery was a no-op.
    let fence = world.lease();
    world.tell(&finish_command(fence, FinishOutcome::Duplicate)).unwrap();
    assert_eq!(EffectSpan { effect: Effect::Reported, lo: 1, hi: 1 }, span(&world));
    // The first one's word lowers or raises what was assumed of it.
    let mut world = World::new();
    let fence = world.lose();
    assert_eq!(first, fence);
    world.tell(&fail_command(fence, failure(Effect::None))).unwrap();
    assert_eq!(EffectSpan::NONE, span(&world));
    world.tell(&finish_command(fence, FinishOutcome::Committed)).unwrap_err();
    assert_eq!(EffectSpan { effect: Effect::Reported, lo: 1, hi: 1 }, span(&world));
    // Done before, by somebody else's hand.
    let mut world = World::new();
    let fence = world.lease();
    world.tell(&finish_command(fence, FinishOutcome::Duplicate)).unwrap();
    assert_eq!(EffectSpan { effect: Effect::Reported, lo: 1, hi: 1 }, span(&world));
}

#[test]
fn refusals_say_what_is_the_matter() {
    let lines = [
        Refusal::LeaseExpired,
        Refusal::NotDue { due_at: T0 },
        Refusal::NotExpired { expires_at: T0 },
        Refusal::LookUpOwed,
        Refusal::AttemptChanged { current: None },
    ]
    .map(|refusal| format!("{}: {refusal}", refusal.code()));
    expect![[r#"
        lease_expired: the lease has expired
        not_due: the job is not due yet
        not_expired: the lease has not expired
        look_up_owed: the outcome of the last attempt must be looked up first
        attempt_changed: the job has moved on since it was looked at"#]]
    .assert_eq(&lines.join("\n"));
    assert_eq!(
        ["cancelled", "requested", "too_late"],
        [CancelAnswer::Cancelled, CancelAnswer::Requested, CancelAnswer::TooLate].map(CancelAnswer::as_str)
    );
    let mut world = World::new();
    world.pass(DurationMs(3));
    let Verdict::Write(decision) = world.decide(&lease_command(Start::WithLease)) else { panic!() };
    assert_eq!("lease", decision.command().as_str());
    let (from, command, to, nature) = decision.edge();
    assert_eq!(
        ("scheduled", "lease", "leased", Nature::Plain),
        (from.as_str(), command.as_str(), to.as_str(), nature)
    );
    let (job, row, reply) = decision.into_parts();
    assert!(job.state.name() == to && row.is_none() && reply.is_ok());
}
