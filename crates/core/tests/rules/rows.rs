//! The row codec: what is written is read back, and what no write of ours made is refused.

use std::{collections::BTreeMap, fmt::Write};

use crate::common::{walk::walk, *};
use expect_test::expect;
use posthaste_core::{
    Attempt, Cause, Evidence, Job, JobRow, Kind, LeaseRow, NextStep, OnUnknown, Share, Start, StateName,
    Timestamp,
};
use proptest::prelude::*;

proptest! {
    #[test]
    fn rows_of_every_job_that_a_walk_reaches_are_read_back(seed in any::<u64>()) {
        walk(seed, 60, |world| {
            let (row, lease) = world.job.to_rows();
            assert_eq!(world.state() == StateName::Leased, lease.is_some());
            assert_eq!(row.state.is_settled(), row.settled_at.is_some());
            assert_eq!(Ok(&world.job), Job::from_rows(row, lease).as_ref());
        });
    }
}

/// One full job of each state.
fn specimens() -> BTreeMap<StateName, Job> {
    let mut lost = World::new();
    lost.lose();
    lost.fail(failure(posthaste_core::Effect::None));
    let mut leased = lost.clone();
    let fence = leased.lease();
    leased.tell(&cancel_command()).unwrap();
    let mut committed = leased.clone();
    committed.tell(&finish_command(fence, posthaste_core::FinishOutcome::Committed)).unwrap();
    let mut dead = World::on_unknown(OnUnknown::DeadLetter);
    dead.lose();
    let mut cancelled = lost.clone();
    cancelled.tell(&cancel_command()).unwrap();
    let worlds = [World::new(), leased, lost, committed, dead, cancelled];
    worlds.into_iter().map(|world| (world.state(), world.job)).collect()
}

/// A job no two of whose columns hold the same, so that a swap shows.
fn distinct() -> Job {
    Job {
        attempt: Attempt::new(90),
        failed_before: true,
        created_at: Timestamp(1),
        scheduled_at: Timestamp(2),
        started_at: Some(Timestamp(3)),
        kind: Kind::Push,
        share: Share::Bulk,
        budgets: posthaste_core::Budgets {
            failures: 11,
            lost_leases: 12,
            uncharged: 13,
            since: Timestamp(4),
            held_ms: 14,
        },
        reason: Some("why".into()),
        cancel_requested: true,
        abandon: Some(Cause::EndpointGone),
        commit_heard: Attempt::new(15),
        evidence_floor: 16,
        checkpoint: Some([1, 2].into()),
        state: posthaste_core::State::Leased(posthaste_core::Lease {
            worker: "w".into(),
            due_at: Timestamp(5),
            leased_at: Timestamp(6),
            started_at: Some(Timestamp(7)),
            expires_at: Timestamp(8),
            deadline_at: Timestamp(9),
        }),
        ..Job::new(new_job())
    }
}

#[test]
fn every_column_is_what_its_name_says() {
    let (row, lease) = distinct().to_rows();
    expect![[r#"
        (
            JobRow {
                tenant: 1,
                id: 2040782911132661522235942287852961799,
                kind: Push,
                state: Leased,
                due_at: None,
                next_step: None,
                settled_at: None,
                cause: None,
                evidence: None,
                share: Bulk,
                attempt: 90,
                failed_before: true,
                created_at: 1,
                scheduled_at: 2,
                started_at: Some(
                    3,
                ),
                failures: 11,
                lost_leases: 12,
                uncharged: 13,
                budget_since: 4,
                budget_held_ms: 14,
                reason: Some(
                    "why",
                ),
                cancel_requested: true,
                abandon: Some(
                    EndpointGone,
                ),
                commit_heard: 15,
                evidence_floor: 16,
                checkpoint: Some(
                    [
                        1,
                        2,
                    ],
                ),
            },
            Some(
                LeaseRow {
                    worker: "w",
                    due_at: 5,
                    leased_at: 6,
                    started_at: Some(
                        7,
                    ),
                    expires_at: 8,
                    deadline_at: 9,
                },
            ),
        )
    "#]]
    .assert_debug_eq(&(&row, &lease));
    assert_eq!(Ok(distinct()), Job::from_rows(row, lease));
}

type Flip = (&'static str, fn(&mut JobRow, &mut Option<LeaseRow>));

/// Each column that a state may or may not have, given where it is missing and taken where it is there.
const STRUCTURE: [Flip; 8] = [
    ("due_at", |row, _| row.due_at = toggled(row.due_at, 5)),
    ("next_step", |row, _| row.next_step = toggled(row.next_step, NextStep::Attempt)),
    ("settled_at", |row, _| row.settled_at = toggled(row.settled_at, 5)),
    ("cause", |row, _| row.cause = toggled(row.cause, Cause::Permanent)),
    ("evidence", |row, _| row.evidence = toggled(row.evidence, Evidence::Worker)),
    ("lease", |_, lease| *lease = toggled(lease.take(), some_lease())),
    ("attempt", |row, _| row.attempt = u32::from(row.attempt == 0)),
    ("cancel_requested", |row, _| row.cancel_requested = !row.cancel_requested),
];

/// Numbers that may not go beyond the attempt's.
const BOUNDED: [Flip; 6] = [
    ("failures", |row, _| row.failures = row.attempt + 1),
    ("lost_leases", |row, _| row.lost_leases = row.attempt + 1),
    ("both", |row, _| (row.failures, row.lost_leases) = (u32::MAX, u32::MAX)),
    ("commit_heard", |row, _| row.commit_heard = row.attempt + 1),
    ("evidence_floor", |row, _| row.evidence_floor = row.attempt + 1),
    ("deadline_at", |_, lease| {
        if let Some(lease) = lease {
            lease.deadline_at = lease.expires_at - 1;
        }
    }),
];

fn toggled<T>(column: Option<T>, value: T) -> Option<T> {
    column.map_or(Some(value), |_| None)
}

fn some_lease() -> LeaseRow {
    LeaseRow { worker: "w".into(), due_at: 1, leased_at: 1, started_at: None, expires_at: 2, deadline_at: 3 }
}

#[test]
fn corrupt_rows_are_refused_by_what_is_wrong_with_them() {
    let mut text = String::new();
    for (state, job) in specimens() {
        for (column, flip) in STRUCTURE.into_iter().chain(BOUNDED) {
            let (mut row, mut lease) = job.to_rows();
            flip(&mut row, &mut lease);
            match Job::from_rows(row, lease) {
                Ok(read) if read == job => {}
                Ok(_) => writeln!(text, "{state:<14}{column:<17}taken as it is").unwrap(),
                Err(corrupt) => {
                    assert_eq!(job.id.0, corrupt.id);
                    writeln!(text, "{state:<14}{column:<17}{}", corrupt.what).unwrap();
                }
            }
        }
    }
    expect![[r#"
        scheduled     due_at           its columns fit no state
        scheduled     next_step        its columns fit no state
        scheduled     settled_at       its columns fit no state
        scheduled     cause            its columns fit no state
        scheduled     evidence         its columns fit no state
        scheduled     lease            its columns fit no state
        scheduled     attempt          taken as it is
        scheduled     cancel_requested a cancel was asked of no running attempt
        scheduled     failures         more attempts were charged than ended
        scheduled     lost_leases      more attempts were charged than ended
        scheduled     both             more attempts were charged than ended
        scheduled     commit_heard     it names an attempt that never was
        scheduled     evidence_floor   it names an attempt that never was
        leased        due_at           its columns fit no state
        leased        next_step        its columns fit no state
        leased        settled_at       its columns fit no state
        leased        cause            its columns fit no state
        leased        evidence         its columns fit no state
        leased        lease            its columns fit no state
        leased        attempt          it is leased or retryable without an attempt
        leased        cancel_requested taken as it is
        leased        failures         more attempts were charged than ended
        leased        lost_leases      more attempts were charged than ended
        leased        both             more attempts were charged than ended
        leased        commit_heard     it names an attempt that never was
        leased        evidence_floor   it names an attempt that never was
        leased        deadline_at      its lease outlasts its deadline
        retryable     due_at           its columns fit no state
        retryable     next_step        its columns fit no state
        retryable     settled_at       its columns fit no state
        retryable     cause            its columns fit no state
        retryable     evidence         its columns fit no state
        retryable     lease            its columns fit no state
        retryable     attempt          it is leased or retryable without an attempt
        retryable     cancel_requested a cancel was asked of no running attempt
        retryable     failures         more attempts were charged than ended
        retryable     lost_leases      more attempts were charged than ended
        retryable     both             more attempts were charged than ended
        retryable     commit_heard     it names an attempt that never was
        retryable     evidence_floor   it names an attempt that never was
        committed     due_at           its columns fit no state
        committed     next_step        its columns fit no state
        committed     settled_at       its columns fit no state
        committed     cause            its columns fit no state
        committed     evidence         its columns fit no state
        committed     lease            its columns fit no state
        committed     attempt          more attempts were charged than ended
        committed     cancel_requested taken as it is
        committed     failures         more attempts were charged than ended
        committed     lost_leases      more attempts were charged than ended
        committed     both             more attempts were charged than ended
        committed     commit_heard     it names an attempt that never was
        committed     evidence_floor   it names an attempt that never was
        dead_lettered due_at           its columns fit no state
        dead_lettered next_step        its columns fit no state
        dead_lettered settled_at       its columns fit no state
        dead_lettered cause            its columns fit no state
        dead_lettered evidence         its columns fit no state
        dead_lettered lease            its columns fit no state
        dead_lettered attempt          taken as it is
        dead_lettered cancel_requested taken as it is
        dead_lettered failures         more attempts were charged than ended
        dead_lettered lost_leases      more attempts were charged than ended
        dead_lettered both             more attempts were charged than ended
        dead_lettered commit_heard     it names an attempt that never was
        dead_lettered evidence_floor   it names an attempt that never was
        cancelled     due_at           its columns fit no state
        cancelled     next_step        its columns fit no state
        cancelled     settled_at       its columns fit no state
        cancelled     cause            its columns fit no state
        cancelled     evidence         its columns fit no state
        cancelled     lease            its columns fit no state
        cancelled     attempt          more attempts were charged than ended
        cancelled     cancel_requested taken as it is
        cancelled     failures         more attempts were charged than ended
        cancelled     lost_leases      more attempts were charged than ended
        cancelled     both             more attempts were charged than ended
        cancelled     commit_heard     it names an attempt that never was
        cancelled     evidence_floor   it names an attempt that never was
    "#]]
    .assert_eq(&text);
}

#[test]
fn a_row_says_whose_it_is_when_it_is_corrupt() {
    let (row, _) = specimens()[&StateName::Leased].to_rows();
    let corrupt = Job::from_rows(row, None).unwrap_err();
    assert_eq!(
        "job job_01h455vb4pex5vsknk08000007 is corrupt: its columns fit no state",
        corrupt.to_string()
    );
}

#[test]
fn a_state_that_is_called_by_another_name_is_refused() {
    for (state, job) in specimens() {
        for &other in StateName::ALL {
            let (row, lease) = job.to_rows();
            let fits = Job::from_rows(JobRow { state: other, ..row }, lease).is_ok();
            assert_eq!(state == other, fits, "{state} called {other}");
        }
    }
}

#[test]
fn as_many_may_be_charged_as_ended() {
    let mut world = World::new();
    world.starts = Start::WithLease;
    world.lose();
    world.lease();
    let (row, lease) = world.job.to_rows();
    assert!(Job::from_rows(JobRow { failures: 0, lost_leases: 1, ..row.clone() }, lease.clone()).is_ok());
    assert!(Job::from_rows(JobRow { failures: 1, lost_leases: 0, ..row.clone() }, lease.clone()).is_ok());
    assert!(Job::from_rows(JobRow { failures: 1, lost_leases: 1, ..row.clone() }, lease.clone()).is_err());
    let with = |commit_heard, evidence_floor| JobRow { commit_heard, evidence_floor, ..row.clone() };
    assert!(Job::from_rows(with(2, 2), lease.clone()).is_ok());
    assert!(Job::from_rows(with(3, 2), lease.clone()).is_err());
    assert!(Job::from_rows(with(2, 3), lease).is_err());
}
