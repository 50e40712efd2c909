//! Random walks over the state machine: what must hold whatever is asked, and when.

use std::{collections::BTreeSet, fmt::Write};

use crate::common::{
    walk::{EXTREME_TIMES, Random, Walk, walk},
    *,
};
use expect_test::expect;
use posthaste_core::{
    Backoff, Budgets, Command, CommandName, DurationMs, Entry, Facts, Job, Lease, OnUnknown, Policy, State,
    StateName, Verdict, transition,
};

/// The seed of a run is printed by the failing walk; put it here to see it again.
const SEEDS: std::ops::Range<u64> = 0..600;

#[test]
fn r_b2_the_invariants_hold_on_random_walks_and_every_state_is_met() {
    let mut met = BTreeSet::new();
    for seed in SEEDS {
        walk(seed, 120, |world| {
            met.insert(world.state());
        });
    }
    assert_eq!(StateName::ALL.iter().copied().collect::<BTreeSet<_>>(), met);
}

#[test]
fn r_b2_every_edge_is_walked() {
    let mut edges = BTreeSet::new();
    for seed in SEEDS {
        let mut walk = Walk::new(seed);
        for _ in 0..120 {
            for _ in 0..8 {
                let command = walk.command();
                let due_at = walk.world.job.state.due_at().unwrap_or(walk.world.now);
                let done = walk.random.one_of(&[Entry::Done, Entry::DoneCancelled]);
                let entry = if walk.random.chance(20) { done } else { walk.world.entry };
                let probed = World { now: walk.world.now.max(due_at), entry, ..walk.world.clone() };
                if let Verdict::Write(decision) = probed.decide(&command) {
                    edges.insert(decision.edge());
                }
            }
            walk.step();
        }
    }
    let commands: BTreeSet<_> = edges.iter().map(|(_, command, ..)| *command).collect();
    assert_eq!(CommandName::ALL.iter().copied().collect::<BTreeSet<_>>(), commands);
    // One line an edge: state, command, and the states it leads to, with how they come about.
    let mut text = String::new();
    for &from in StateName::ALL {
        for &command in CommandName::ALL {
            let ends = edges.iter().filter(|edge| (edge.0, edge.1) == (from, command));
            let ends: Vec<_> = ends.map(|(_, _, to, nature)| format!("{to} {nature:?}")).collect();
            if !ends.is_empty() {
                writeln!(text, "{from:<14}{command:<9}{}", ends.join(", ")).unwrap();
            }
        }
    }
    expect![[r#"
        scheduled     lease    leased Plain, committed SettledInstead, cancelled SettledInstead
        scheduled     finish   scheduled Heard, committed Late, cancelled Late
        scheduled     fail     scheduled Late
        scheduled     cancel   cancelled Plain
        scheduled     abandon  dead_lettered Plain
        leased        start    leased Plain
        leased        extend   leased Plain
        leased        finish   leased Heard, committed Plain, cancelled Plain
        leased        fail     retryable Plain, committed Plain, dead_lettered Plain, cancelled Plain
        leased        release  scheduled Plain, retryable Plain, committed Plain, dead_lettered Plain, cancelled Plain
        leased        expire   retryable Plain, committed Plain, dead_lettered Plain, cancelled Plain
        leased        cancel   leased Plain, cancelled Plain
        leased        abandon  leased Plain
        retryable     lease    leased Plain, committed SettledInstead, cancelled SettledInstead
        retryable     finish   retryable Heard, committed Late, cancelled Late
        retryable     fail     retryable Late, committed Late, dead_lettered Late, cancelled Late
        retryable     cancel   cancelled Plain
        retryable     settle   committed Plain, cancelled Plain
        retryable     abandon  dead_lettered Plain
        retryable     look_up  retryable Plain, committed Plain, committed SettledInstead, dead_lettered Plain, cancelled SettledInstead
        committed     finish   committed Heard
        committed     resend   scheduled Plain
        dead_lettered finish   committed Late, dead_lettered Heard, cancelled Late
        dead_lettered fail     dead_lettered Late
        dead_lettered cancel   cancelled Plain
        dead_lettered settle   committed Plain, cancelled Plain
        dead_lettered replay   scheduled Plain, committed SettledInstead, cancelled SettledInstead
        cancelled     finish   cancelled Heard
        cancelled     fail     cancelled Heard
    "#]].assert_eq(&text);
}

#[test]
fn r_b3_every_command_has_its_name_and_only_a_workers_has_a_fence() {
    let mut walk = Walk::new(1);
    for _ in 0..500 {
        let command = walk.command();
        let name = command.name();
        assert!(format!("{command:?}").to_lowercase().starts_with(&name.as_str().replace('_', "")));
        assert_eq!(
            ["start", "extend", "finish", "fail", "release"].contains(&name.as_str()),
            command.fence().is_some(),
            "{name}"
        );
    }
}

/// A job with extreme values wherever one fits.
fn extreme_job(random: &mut Random) -> Job {
    let mut job = Walk::new(random.next()).world.job;
    let time = |random: &mut Random| random.one_of(&EXTREME_TIMES);
    let count = |random: &mut Random| random.one_of(&[0, 1, u32::MAX / 2, u32::MAX - 1, u32::MAX]);
    job.attempt = Some(attempt(count(random).max(1)));
    job.budgets = Budgets {
        failures: count(random),
        lost_leases: count(random),
        uncharged: count(random),
        since: time(random),
        held_ms: random.one_of(&[0, u64::MAX]),
    };
    job.evidence_floor = count(random);
    job.commit_heard = random.one_of(&[None, Some(attempt(1)), Some(attempt(u32::MAX))]);
    job.cancel_requested = random.chance(20);
    let due_at = time(random);
    job.state = match random.below(6) {
        0 => State::Scheduled { due_at },
        1 => State::Retryable { due_at, next: random.one_of(posthaste_core::NextStep::ALL) },
        2 => State::Committed { at: due_at, evidence: random.one_of(posthaste_core::Evidence::ALL) },
        3 => State::DeadLettered { at: due_at, cause: random.one_of(posthaste_core::Cause::ALL) },
        4 => State::Cancelled { at: due_at },
        _ => State::Leased(Lease {
            worker: "w".into(),
            due_at,
            leased_at: time(random),
            started_at: random.chance(50).then_some(due_at),
            expires_at: time(random),
            deadline_at: time(random),
        }),
    };
    job
}

fn extreme_policy(random: &mut Random) -> Policy {
    let duration = |random: &mut Random| DurationMs(random.one_of(&[0, 1, 1_000, u64::MAX]));
    let jitter = posthaste_core::Permille::new(random.one_of(&[0, 500, 1_000])).unwrap();
    let backoff = if random.chance(50) {
        Backoff::Exponential { base: duration(random), cap: duration(random), jitter }
    } else {
        Backoff::Fixed { delays: vec![duration(random); usize::try_from(random.below(3)).unwrap()], jitter }
    };
    Policy {
        backoff,
        failures_max: random.one_of(&[0, 1, u32::MAX]),
        lost_leases_max: random.one_of(&[0, 1, u32::MAX]),
        horizon: duration(random),
        on_unknown: random.one_of(&[OnUnknown::Retry, RECONCILE, OnUnknown::DeadLetter]),
        idempotent: random.chance(50),
        classes: Vec::new(),
        lane: posthaste_core::LaneRules::STANDARD,
    }
}

#[test]
fn r_b5_no_extreme_value_panics() {
    let mut random = Random(42);
    for round in 0..40_000_u64 {
        let mut walk = Walk::new(round);
        walk.world.job = extreme_job(&mut random);
        walk.world.now = random.one_of(&EXTREME_TIMES);
        let command = match walk.command() {
            Command::Lease { worker, starts, .. } => {
                let lease_for = DurationMs(random.one_of(&[0, u64::MAX]));
                Command::Lease { worker, lease_for, deadline_after: DurationMs(u64::MAX), starts }
            }
            command => command,
        };
        let mut world = World::new();
        let fence = world.lose();
        let own = world.attempts[0].record();
        let own =
            command.fence().map(|named| posthaste_core::AttemptRecord { attempt: named.attempt, ..own });
        assert_eq!(fence.attempt, attempt(1));
        let facts = Facts { own, lane_held_ms: random.one_of(&[0, u64::MAX]), ..walk.world.facts(&command) };
        let policy = extreme_policy(&mut random);
        let verdict = transition(&walk.world.job, &facts, &command, &policy, walk.world.now);
        if let Verdict::Write(decision) = verdict {
            let (row, lease) = decision.next().to_rows();
            match Job::from_rows(row, lease) {
                Ok(job) => assert_eq!(decision.next(), &job),
                Err(corrupt) => assert!(!corrupt.what.contains("fit no state"), "{corrupt}"),
            }
        }
    }
}
