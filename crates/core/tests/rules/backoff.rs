//! When the next attempt may start. Row B5.

use std::collections::BTreeSet;

use crate::common::{attempt, exact_policy, new_job};
use expect_test::expect;
use posthaste_core::{Backoff, DurationMs, JobId, Permille, Policy, Timestamp, limits, release_delay};
use proptest::prelude::*;

fn exponential(base: u64, cap: u64, jitter: u16) -> Policy {
    let jitter = Permille::new(jitter).unwrap();
    Policy {
        backoff: Backoff::Exponential { base: DurationMs(base), cap: DurationMs(cap), jitter },
        ..exact_policy()
    }
}

fn fixed(delays: &[u64], jitter: u16) -> Policy {
    let delays = delays.iter().copied().map(DurationMs).collect();
    Policy { backoff: Backoff::Fixed { delays, jitter: Permille::new(jitter).unwrap() }, ..exact_policy() }
}

/// The delays of many jobs after the same failure.
fn spread(policy: &Policy, failures: u32) -> BTreeSet<u64> {
    (0..20_000).map(|job| policy.delay(JobId(job << 32), Some(attempt(1)), failures).0).collect()
}

#[test]
fn r_b5_attempts_1_to_10000_stay_between_the_fixed_share_and_the_cap() {
    let policy = Policy::queue_default();
    for failures in 1..=10_000 {
        let delay = policy.delay(new_job().id, Some(attempt(failures)), failures).0;
        let full = 5_000_u64.saturating_mul(1 << (failures - 1).min(40)).min(900_000);
        assert!((full / 2..=full).contains(&delay), "failure {failures}: {delay} of {full}");
    }
}

#[test]
fn r_b5_delays_double_up_to_the_cap() {
    let policy = exponential(1_000, 60_000, 0);
    let delays: Vec<_> = (0..9).map(|n| policy.delay(new_job().id, None, n).0).collect();
    assert_eq!([1_000, 1_000, 2_000, 4_000, 8_000, 16_000, 32_000, 60_000, 60_000], *delays);
}

#[test]
fn r_b5_the_default_jitter_is_half_fixed_half_random() {
    let Backoff::Exponential { jitter, .. } = Policy::queue_default().backoff else {
        panic!("not exponential")
    };
    assert_eq!(500, jitter.get());
    // Both bounds are reached, and nothing lies outside them.
    let seen = spread(&exponential(100, 100, 500), 1);
    assert_eq!((50..=100).collect::<BTreeSet<_>>(), seen);
}

#[test]
fn r_b5_the_random_share_is_as_configured() {
    assert_eq!(BTreeSet::from([1_000]), spread(&exponential(1_000, 1_000, 0), 1));
    assert_eq!((0..=100).collect::<BTreeSet<_>>(), spread(&exponential(100, 100, 1_000), 1));
    assert_eq!((90..=100).collect::<BTreeSet<_>>(), spread(&exponential(100, 100, 100), 1));
    assert_eq!(Some(1_000), Permille::new(1_000).map(Permille::get));
    assert_eq!(None, Permille::new(1_001));
}

#[test]
fn r_b5_fixed_delays_are_never_earlier_than_written() {
    let policy = fixed(&[100, 7, 2_000], 100);
    assert_eq!((100..=110).collect::<BTreeSet<_>>(), spread(&policy, 1));
    assert_eq!(BTreeSet::from([7]), spread(&policy, 2));
    assert_eq!((2_000..=2_200).collect::<BTreeSet<_>>(), spread(&policy, 3));
    // A lost lease more than there are delays waits the last of them.
    assert_eq!((2_000..=2_200).collect::<BTreeSet<_>>(), spread(&policy, 4));
    assert_eq!((2_000..=2_200).collect::<BTreeSet<_>>(), spread(&policy, u32::MAX));
    assert_eq!(BTreeSet::from([0]), spread(&fixed(&[], 100), 1));
}

#[test]
fn r_b5_jitter_is_a_hash_of_job_and_attempt() {
    let policy = exponential(1_000_000, 1_000_000, 1_000);
    let delay = |job: u128, number| policy.delay(JobId(job), Some(attempt(number)), 1);
    assert_eq!(delay(1, 1), delay(1, 1));
    let of_attempts: BTreeSet<_> = (1..=100).map(|number| delay(1, number)).collect();
    let of_messages: BTreeSet<_> = (1..=100).map(|job| delay(job << 64, 1)).collect();
    let of_lanes: BTreeSet<_> = (1..=100).map(|job| delay(job, 1)).collect();
    assert!(of_attempts.len() > 95 && of_messages.len() > 95 && of_lanes.len() > 95);
    // The same on every machine and in every release: a recorded time can be checked.
    expect!["[DurationMs(974685), DurationMs(512129), DurationMs(458087), DurationMs(108260)]"]
        .assert_eq(&format!("{:?}", [delay(1, 1), delay(1, 2), delay(1 << 64, 1), delay(u128::MAX, 9)]));
}

/// The wait at `now` = 0 for a job whose own backoff is exactly 10 s.
fn next_due(retry_after: Option<u64>, job: u128) -> u64 {
    let retry_after = retry_after.map(DurationMs);
    let due = exact_policy().next_due(JobId(job), Some(attempt(1)), 1, retry_after, Timestamp(0));
    u64::try_from(due.0).unwrap()
}

#[test]
fn r_b5_retry_after_never_shortens_our_own_backoff() {
    assert_eq!(10_000, next_due(None, 1));
    assert_eq!(10_000, next_due(Some(0), 1));
    assert_eq!(10_000, next_due(Some(5_000), 1));
}

#[test]
fn r_b5_retry_after_gets_additive_jitter_of_a_tenth_up_to_10_s() {
    let waits = |asked| (0..40_000_u128).map(|job| next_due(Some(asked), job << 40)).collect::<BTreeSet<_>>();
    let of_20_s = waits(20_000);
    assert_eq!((Some(&20_000), Some(&22_000)), (of_20_s.first(), of_20_s.last()));
    let of_10_min = waits(600_000);
    assert!(*of_10_min.first().unwrap() >= 600_000 && *of_10_min.last().unwrap() <= 610_000);
    assert!(of_10_min.len() > 9_000, "spread over 10 s: {}", of_10_min.len());
}

#[test]
fn r_b5_retry_after_is_capped_at_24_h() {
    let day = 86_400_000;
    for asked in [day, day + 1, u64::MAX] {
        let wait = next_due(Some(asked), 3);
        assert!((day..=day + 10_000).contains(&wait), "{asked}: {wait}");
    }
    assert_eq!(DurationMs(day), limits::RETRY_AFTER_MAX);
}

#[test]
fn r_b5_as_many_retries_as_fixed_delays() {
    let allowed = |policy: Policy| policy.failures_allowed();
    assert_eq!(5, allowed(exact_policy()));
    assert_eq!(3, allowed(Policy { failures_max: 9, ..fixed(&[1, 2], 0) }));
    assert_eq!(2, allowed(Policy { failures_max: 2, ..fixed(&[1, 2, 3], 0) }));
    assert_eq!(1, allowed(Policy { failures_max: 9, ..fixed(&[], 0) }));
    let endpoint = Policy::endpoint_default();
    assert_eq!((10, 10), (endpoint.failures_allowed(), endpoint.failures_max));
}

#[test]
fn r_b5_the_default_policies_are_the_contracts() {
    expect![[r#"
        Policy {
            backoff: Exponential {
                base: DurationMs(
                    5000,
                ),
                cap: DurationMs(
                    900000,
                ),
                jitter: Permille(
                    500,
                ),
            },
            failures_max: 25,
            lost_leases_max: 5,
            horizon: DurationMs(
                345600000,
            ),
            on_unknown: Retry,
            idempotent: false,
            lane: LaneRules {
                rate: None,
                failures_to_open: 10,
                refusals_to_open: 5,
                open_for: DurationMs(
                    30000,
                ),
                open_for_max: DurationMs(
                    900000,
                ),
                disable_after: DurationMs(
                    432000000,
                ),
            },
            classes: [],
        }
    "#]]
    .assert_debug_eq(&Policy::queue_default());
    let Backoff::Fixed { delays, jitter } = Policy::endpoint_default().backoff else { panic!("not fixed") };
    let seconds = [5, 300, 1_800, 2 * 3_600, 5 * 3_600, 10 * 3_600, 14 * 3_600, 20 * 3_600, 24 * 3_600];
    assert_eq!(seconds.map(DurationMs::from_secs), *delays);
    assert_eq!(100, jitter.get());
}

#[test]
fn r_b6_a_release_waits_1_s_doubling_to_60_s() {
    let waits: Vec<_> = (0..8).map(|earlier| release_delay(earlier).0 / 1_000).collect();
    assert_eq!([1, 2, 4, 8, 16, 32, 60, 60], *waits);
    assert_eq!(DurationMs::from_secs(60), release_delay(u32::MAX));
}

proptest! {
    #[test]
    fn r_b5_no_input_overflows_the_backoff(
        base in any::<u64>(),
        cap in any::<u64>(),
        jitter in 0_u16..=1_000,
        failures in any::<u32>(),
        job in any::<u128>(),
        number in 1_u32..,
        retry_after in any::<Option<u64>>(),
        now in any::<i64>(),
    ) {
        let number = Some(attempt(number));
        let policy = exponential(base, cap, jitter);
        prop_assert!(policy.delay(JobId(job), number, failures).0 <= cap);
        let due = policy.next_due(JobId(job), number, failures, retry_after.map(DurationMs), Timestamp(now));
        prop_assert!(due >= Timestamp(now));
        let fixed = fixed(&[base], jitter);
        prop_assert!(fixed.delay(JobId(job), number, failures).0 >= base);
        let due = fixed.next_due(JobId(job), number, failures, retry_after.map(DurationMs), Timestamp(now));
        prop_assert!(due >= Timestamp(now));
    }
}

#[test]
fn r_b5_extremes_saturate() {
    for failures in [0, 1, 63, 64, 65, u32::MAX] {
        let policy = exponential(u64::MAX, u64::MAX, 1_000);
        let due = policy.next_due(JobId(0), None, failures, Some(DurationMs(u64::MAX)), Timestamp(i64::MAX));
        assert_eq!(Timestamp(i64::MAX), due);
    }
    let slow = exponential(1, u64::MAX, 0);
    assert_eq!([1 << 62, 1 << 63, 1 << 63], [63, 64, u32::MAX].map(|n| slow.delay(JobId(0), None, n).0));
}
