//! The three budgets: failures, lost leases, the horizon; and what is not charged. Row B6.

use crate::common::*;
use posthaste_core::{
    Cause, Class, Command, Disposition, DurationMs, Effect, Entry, Failure, FinishOutcome, LookUpVerdict,
    NextStep, OnUnknown, Policy, RetryWish, Share, Start, StateName, Timestamp,
};

fn in_progress(retry_after: Option<DurationMs>) -> Failure {
    Failure::of_worker(Class::InProgress, None, RetryWish::ByTable, retry_after)
}

#[test]
fn r_b6_the_budget_of_failures_dead_letters_as_exhausted() {
    let mut world = World::new();
    for failures in 1..5 {
        world.fail(failure(Effect::Possible));
        assert_eq!((StateName::Retryable, failures), (world.state(), world.job.budgets.failures));
        assert_eq!(10_000 << (failures - 1), world.wait_ms(), "the backoff counts from the failure");
    }
    world.fail(failure(Effect::None));
    assert_eq!(Cause::Exhausted, world.cause());
    assert_eq!("the budget of failures is spent", world.row(5).end.policy);
}

#[test]
fn r_b6_the_budget_of_lost_leases_dead_letters_as_lease_lost() {
    let mut world = World::new();
    for lost in 1..3 {
        world.lose();
        assert_eq!((StateName::Retryable, lost), (world.state(), world.job.budgets.lost_leases));
        assert_eq!(10_000 << (lost - 1), world.wait_ms());
    }
    world.lose();
    assert_eq!(Cause::LeaseLost, world.cause());
    assert_eq!("the budget of lost leases is spent", world.row(3).end.policy);
}

#[test]
fn r_b6_failures_and_lost_leases_are_separate_budgets_with_one_backoff() {
    let mut world = World::new();
    world.lose();
    world.lose();
    world.fail_times(4, failure(Effect::None));
    assert_eq!((4, 2), (world.job.budgets.failures, world.job.budgets.lost_leases));
    assert_eq!(StateName::Retryable, world.state());
    assert_eq!(320_000, world.wait_ms(), "the sixth wait");
}

#[test]
fn r_b6_the_horizon_dead_letters_as_exhausted() {
    let mut world = World::with(Policy { horizon: DurationMs::from_secs(100), ..exact_policy() });
    world.pass(DurationMs::from_secs(90));
    let mut other = world.clone();
    world.fail(failure(Effect::None));
    assert_eq!(100_000, world.due_at().since(T0).0, "just within");
    other.pass(DurationMs(1));
    other.fail(failure(Effect::None));
    assert_eq!(Cause::Exhausted, other.cause());
    assert_eq!(1, other.job.budgets.failures);
    // A lost lease too.
    let mut lost = World::with(Policy { horizon: DurationMs::from_secs(60), ..exact_policy() });
    lost.lose();
    assert_eq!(Cause::Exhausted, lost.cause());
}

#[test]
fn r_b6_held_time_does_not_count() {
    let policy = Policy { horizon: DurationMs::from_secs(100), ..exact_policy() };
    let mut world = World::with(policy.clone());
    world.pass(DurationMs::from_secs(5_000));
    // The lane was held for 4,910 s of that.
    world.held_ms = 4_910_000;
    world.fail(failure(Effect::None));
    assert_eq!(StateName::Retryable, world.state());
    // What the lane was held before the job was made is nothing to it.
    let mut world = World::with(policy);
    world.job.budgets.held_ms = 1;
    world.held_ms = 4_910_000;
    world.pass(DurationMs::from_secs(5_000));
    world.fail(failure(Effect::None));
    assert_eq!(Cause::Exhausted, world.cause());
}

#[test]
fn r_b6_a_job_made_for_later_has_its_horizon_from_its_due_time() {
    let mut new = new_job();
    new.due_at = T0.after(DurationMs::from_hours(1_000));
    new.lane_held_ms = 77;
    let job = posthaste_core::Job::new(new);
    assert_eq!((new.due_at, 77), (job.budgets.since, job.budgets.held_ms));
    assert_eq!((new.due_at, Some(new.due_at)), (job.scheduled_at, job.state.due_at()));
    new.due_at = Timestamp(5);
    assert_eq!(T0, posthaste_core::Job::new(new).scheduled_at, "a past time is now");
}

#[test]
fn r_b6_replay_and_resend_restart_all_three_budgets_and_attempt_numbers_go_on() {
    let mut world = World::new();
    world.lose();
    world.fail_times(5, failure(Effect::None));
    assert_eq!(Cause::Exhausted, world.cause());
    world.pass(DurationMs::from_hours(100));
    world.held_ms = 5;
    world.replay(true).unwrap();
    let budgets = world.job.budgets;
    assert_eq!((0, 0, 0), (budgets.failures, budgets.lost_leases, budgets.uncharged));
    assert_eq!((world.now, 5), (budgets.since, budgets.held_ms));
    assert_eq!((Share::Bulk, world.now), (world.job.share, world.due_at()));
    assert_eq!(Some("again"), world.job.reason.as_deref());
    world.fail(failure(Effect::None));
    assert_eq!((StateName::Retryable, Share::Bulk), (world.state(), world.job.share));
    assert_eq!(8, world.commit().attempt.get());

    world.pass(DurationMs::from_hours(100));
    world.held_ms = 9;
    world.resend().unwrap();
    let budgets = world.job.budgets;
    assert_eq!((0, 0, 0), (budgets.failures, budgets.lost_leases, budgets.uncharged));
    assert_eq!((world.now, 9), (budgets.since, budgets.held_ms));
    assert_eq!(Some("data lost"), world.job.reason.as_deref());
    assert_eq!(9, world.lease().attempt.get());
}

#[test]
fn r_b4_in_progress_is_not_charged_and_waits_for_retry_after_or_the_backoff() {
    let mut world = World::new();
    for nth in 0..30 {
        world.fail(in_progress(None));
        assert_eq!((0, 0), (world.job.budgets.failures, world.job.budgets.lost_leases));
        assert_eq!((10_000 << nth.min(60)).min(600_000), world.wait_ms());
    }
    let mut world = World::new();
    world.fail(in_progress(Some(DurationMs::from_secs(50))));
    assert!((50_000..=55_000).contains(&world.wait_ms()));
    assert_eq!("in progress elsewhere: not charged", world.row(1).end.policy);
}

#[test]
fn r_b4_a_receiver_in_progress_is_asked_when_it_says_and_not_after_a_backoff_of_minutes() {
    let mut world = World::new();
    for nth in 0..30 {
        world.fail(in_progress(Some(DurationMs::from_secs(20))));
        // Never sooner than 1 s doubling to 60 s, so that nobody is asked every second for days.
        let soonest = (1_000 << nth).clamp(20_000, 60_000);
        assert!((soonest..=soonest.max(22_000)).contains(&world.wait_ms()), "{nth}: {}", world.wait_ms());
    }
    let mut world = World::new();
    for nth in 0..8 {
        world.fail(in_progress(Some(DurationMs::ZERO)));
        assert_eq!((1_000 << nth).min(60_000), world.wait_ms());
    }
}

#[test]
fn r_b4_in_progress_is_bounded_by_the_horizon_and_then_the_outcome_is_unknown() {
    let mut world = World::new();
    for _ in 0..24 {
        if world.state() != StateName::DeadLettered {
            world.fail(in_progress(Some(DurationMs::from_hours(1))));
        }
    }
    assert_eq!(Cause::OutcomeUnknown, world.cause());
    assert!(world.now.since(T0) <= DurationMs::from_hours(24));
}

#[test]
fn r_b6_a_charged_failure_ends_the_row_of_uncharged_ends() {
    let mut world = World::new();
    world.fail(in_progress(None));
    world.fail(in_progress(None));
    assert_eq!(2, world.job.budgets.uncharged);
    let mut lost = world.clone();
    lost.lose();
    assert_eq!((0, 1), (lost.job.budgets.uncharged, lost.job.budgets.lost_leases));
    world.fail(failure(Effect::None));
    assert_eq!((0, 1), (world.job.budgets.uncharged, world.job.budgets.failures));
}

#[test]
fn r_b5_retry_after_is_honoured_on_every_retried_answer() {
    let mut world = World::new();
    world.fail(Failure { retry_after: Some(DurationMs::from_secs(3_600)), ..failure(Effect::None) });
    assert!((3_600_000..=3_610_000).contains(&world.wait_ms()));
    // The computed time is what is recorded.
    assert_eq!(Some(world.due_at()), world.row(1).end.next_at);
}

#[test]
fn r_b6_a_release_is_not_charged_and_waits_1_s_doubling_to_60_s() {
    let mut world = World::new();
    for seconds in [1, 2, 4, 8, 16, 32, 60, 60] {
        let fence = world.lease();
        world.tell(&Command::Release { fence }).unwrap();
        assert_eq!((StateName::Scheduled, seconds * 1_000), (world.state(), world.wait_ms()));
    }
    assert_eq!((0, 0), (world.job.budgets.failures, world.job.budgets.lost_leases));
    assert_eq!(Share::Fresh, world.job.share);
    world.fail(failure(Effect::None));
    let fence = world.lease();
    world.tell(&Command::Release { fence }).unwrap();
    assert_eq!(
        (StateName::Retryable, 1_000),
        (world.state(), world.wait_ms()),
        "a failure ends the row of releases"
    );
}

#[test]
fn r_b6_failed_work_moves_to_the_share_of_retries() {
    let ends: [fn(&mut World); 3] = [
        |world| world.fail_times(1, failure(Effect::None)),
        |world| world.lose_times(1),
        |world| world.fail_times(1, in_progress(None)),
    ];
    for end in ends {
        let mut world = World::new();
        end(&mut world);
        assert_eq!((Share::Retry, true), (world.job.share, world.job.failed_before));
        let mut world = World::new();
        world.job.share = Share::Bulk;
        end(&mut world);
        assert_eq!(Share::Bulk, world.job.share);
    }
}

#[test]
fn r_c10_a_possible_effect_is_left_to_a_person_where_the_policy_says_so() {
    for failing in [
        failure(Effect::Possible),
        Failure { wish: RetryWish::Yes, ..failure(Effect::Possible) },
        Failure { wish: RetryWish::No, ..failure(Effect::Possible) },
        Failure { effect: Effect::Possible, ..in_progress(None) },
        failure(Effect::Reported),
    ] {
        let mut world = World::on_unknown(OnUnknown::DeadLetter);
        world.fail(failing);
        assert_eq!(Cause::OutcomeUnknown, world.cause());
    }
    let mut world = World::on_unknown(OnUnknown::DeadLetter);
    world.fail(failure(Effect::None));
    assert_eq!(StateName::Retryable, world.state());
    world.fail(permanent());
    assert_eq!(Cause::Permanent, world.cause());
}

#[test]
fn r_c10_a_possible_effect_is_looked_up_first_where_the_policy_says_so() {
    for failing in [
        failure(Effect::Possible),
        Failure { wish: RetryWish::No, ..failure(Effect::Possible) },
        Failure { effect: Effect::Possible, ..in_progress(None) },
    ] {
        let mut world = World::on_unknown(RECONCILE);
        world.fail(failing);
        assert_eq!(NextStep::LookUp, world.next_step());
    }
    for failing in [failure(Effect::None), in_progress(None)] {
        let mut world = World::on_unknown(RECONCILE);
        world.fail(failing);
        assert_eq!(NextStep::Attempt, world.next_step());
    }
}

/// A look-up that says, once the last send can no longer act, that nothing happened.
fn absent(world: &mut World) {
    let settled_at = world.now;
    world.tell(&look_up_now(world, LookUpVerdict::Absent, settled_at)).unwrap();
}

/// A look-up that is asked and answered in one instant.
fn look_up_now(world: &World, verdict: LookUpVerdict, settled_at: Timestamp) -> Command {
    Command::LookUp { seen: world.job.attempt, asked_at: world.now, verdict, settled_at, said: None }
}

#[test]
fn r_c10_what_a_failure_called_for_follows_once_the_look_up_found_nothing() {
    let permanent_gone = Failure { disposition: Disposition::Gone, ..failure(Effect::Possible) };
    for (failing, cause) in [
        (Failure { wish: RetryWish::No, ..failure(Effect::Possible) }, Cause::Permanent),
        (permanent_gone, Cause::EndpointGone),
    ] {
        let mut world = World::on_unknown(RECONCILE);
        world.fail(failing);
        absent(&mut world);
        assert_eq!((cause, None), (world.cause(), world.job.abandon));
    }
}

#[test]
fn r_c10_a_spent_budget_is_looked_up_before_it_dead_letters() {
    let mut world = World::on_unknown(RECONCILE);
    (0..2).for_each(|_| {
        world.lose();
        absent(&mut world);
    });
    world.lose();
    assert_eq!(NextStep::LookUp, world.next_step());
    absent(&mut world);
    assert_eq!(Cause::LeaseLost, world.cause());

    let mut world = World::on_unknown(RECONCILE);
    world.fail_times(4, failure(Effect::None));
    world.fail(failure(Effect::Possible));
    assert_eq!(NextStep::LookUp, world.next_step());
    absent(&mut world);
    assert_eq!(Cause::Exhausted, world.cause());
}

#[test]
fn r_c10_a_late_failure_takes_the_place_of_the_lost_lease_that_was_the_last() {
    let mut world = World::on_unknown(RECONCILE);
    world.policy.lost_leases_max = 1;
    let fence = world.lose();
    assert_eq!(Some(Cause::LeaseLost), world.job.abandon);
    world.tell(&fail_command(fence, failure(Effect::Possible))).unwrap();
    absent(&mut world);
    assert_eq!((StateName::Retryable, NextStep::Attempt), (world.state(), world.next_step()));
    assert_eq!((1, 0), (world.job.budgets.failures, world.job.budgets.lost_leases));
}

#[test]
fn r_c10_a_look_up_takes_no_attempt_number_and_must_come_first() {
    let mut world = World::on_unknown(RECONCILE);
    world.lose();
    world.pass(DEADLINE);
    let refusal = world.refused(&lease_command(Start::WithLease));
    assert_eq!("look_up_owed", refusal.code());
    assert_eq!("the outcome of the last attempt must be looked up first", refusal.to_string());
    absent(&mut world);
    assert_eq!(world.now, world.due_at());
    assert_eq!(attempt(2), world.lease().attempt);
}

#[test]
fn r_c10_absent_is_believed_only_after_the_last_send_can_no_longer_act() {
    let mut world = World::on_unknown(RECONCILE);
    world.lose();
    let settled_at = world.now.after(SETTLE);
    world.tell(&look_up_now(&world, LookUpVerdict::Absent, settled_at)).unwrap();
    assert_eq!(
        (NextStep::LookUp, settled_at),
        (world.next_step(), world.due_at()),
        "not asked in vain before"
    );
    world.now = Timestamp(settled_at.0 - 1);
    let early = look_up_now(&world, LookUpVerdict::Absent, settled_at);
    world.tell(&early).unwrap();
    assert_eq!(NextStep::LookUp, world.next_step());
    world.now = settled_at;
    world.tell(&early).unwrap();
    assert_eq!(NextStep::LookUp, world.next_step(), "judged by when it was asked, not by when it is written");
    world.tell(&look_up_now(&world, LookUpVerdict::Absent, settled_at)).unwrap();
    assert_eq!(NextStep::Attempt, world.next_step());
    assert_eq!(0, world.job.budgets.uncharged);
}

#[test]
fn r_c10_an_unsure_look_up_is_repeated_until_the_horizon_and_then_the_outcome_is_unknown() {
    for verdict in [LookUpVerdict::InProgress, LookUpVerdict::Unsure] {
        let mut world = World::on_unknown(RECONCILE);
        world.lose();
        let look_up = look_up_now(&world, verdict, T0);
        for nth in 0..4 {
            world.tell(&look_up).unwrap();
            assert_eq!((NextStep::LookUp, 10_000 << nth), (world.next_step(), world.wait_ms()));
        }
        // Every ten minutes, the longest backoff: at most 144 times in the horizon's day.
        for _ in 0..150 {
            if world.state() == StateName::Retryable {
                world.now = world.due_at();
                world.tell(&look_up).unwrap();
            }
        }
        assert_eq!(Cause::OutcomeUnknown, world.cause());
        assert!(world.now.since(T0) > DurationMs::from_hours(23));
    }
}

#[test]
fn r_c10_a_look_up_beyond_the_horizon_leaves_the_outcome_unknown() {
    let policy = Policy { horizon: DurationMs::from_secs(60), on_unknown: RECONCILE, ..exact_policy() };
    let mut lost = World::with(policy.clone());
    lost.lose();
    assert_eq!(Cause::OutcomeUnknown, lost.cause());
    let mut failed = World::with(policy);
    failed.pass(DurationMs::from_secs(59));
    failed.fail(failure(Effect::Possible));
    assert_eq!(Cause::OutcomeUnknown, failed.cause());
}

#[test]
fn r_c10_present_commits_and_other_evidence_goes_before_the_look_up() {
    let mut world = World::on_unknown(RECONCILE);
    world.lose();
    let mut found = world.clone();
    found.tell(&look_up_now(&world, LookUpVerdict::Present, T0)).unwrap();
    assert_eq!(StateName::Committed, found.state());
    world.entry = Entry::DoneCancelled;
    absent(&mut world);
    assert_eq!(StateName::Cancelled, world.state());
}

#[test]
fn r_c10_a_look_up_of_an_older_attempt_says_nothing_of_a_newer() {
    let mut world = World::on_unknown(RECONCILE);
    world.lose();
    let old = look_up_now(&world, LookUpVerdict::Absent, T0);
    absent(&mut world);
    world.lose();
    assert_eq!(NextStep::LookUp, world.next_step());
    assert_eq!("attempt_changed", world.refused(&old).code());
}

#[test]
fn r_c10_a_look_up_that_nobody_owes_is_refused() {
    let mut world = World::new();
    world.lose();
    let look_up = look_up_now(&world, LookUpVerdict::Present, T0);
    assert_eq!("wrong_state", world.refused(&look_up).code());
    // A policy that was changed meanwhile is no reason to drop the answer.
    let mut world = World::on_unknown(RECONCILE);
    world.lose();
    world.policy.on_unknown = OnUnknown::DeadLetter;
    world.tell(&look_up).unwrap();
    assert_eq!(StateName::Committed, world.state());
}

#[test]
fn r_b4_gone_and_permanent_dead_letter_at_once() {
    let with = |disposition| Failure { disposition, ..failure(Effect::None) };
    for (failing, cause) in [
        (with(Disposition::PermanentMessage), Cause::Permanent),
        (with(Disposition::PermanentDestination), Cause::Permanent),
        (with(Disposition::Gone), Cause::EndpointGone),
    ] {
        let mut world = World::new();
        world.fail(failing);
        assert_eq!(cause, world.cause());
        assert_eq!(Some(world.now), world.job.state.settled_at());
    }
}

#[test]
fn r_b8_a_job_of_a_spent_attempt_number_is_not_leased() {
    let mut world = World::new();
    world.job.attempt = Some(attempt(u32::MAX));
    assert_eq!("wrong_state", world.refused(&lease_command(Start::WithLease)).code());
    let fence = posthaste_core::Fence { epoch: world.epoch, attempt: attempt(u32::MAX) };
    world.refused(&finish_command(fence, FinishOutcome::Committed));
}
