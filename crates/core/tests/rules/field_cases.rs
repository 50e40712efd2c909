//! Faults that others met in the field, by the ids of the field cases.

use crate::common::{attempt, exact_policy, new_job};
use posthaste_core::{
    Backoff, Disposition, DurationMs, Permille, Policy, Reading, Timestamp, limits, parse_retry_after,
    read_status,
};

const NOW: Timestamp = Timestamp(1_767_225_600_000);

#[test]
fn case_b17_only_whole_seconds_and_dates_are_numbers_of_retry_after() {
    let cap = limits::RETRY_AFTER_MAX.0;
    for (value, expected) in [
        ("0", Some(0)),
        ("120", Some(120_000)),
        ("00120", Some(120_000)),
        (" 7 ", Some(7_000)),
        ("2147483648", Some(cap)),
        ("9999999999", Some(cap)),
        ("18446744073709551616", Some(cap)),
        ("99999999999999999999", Some(cap)),
        ("-5", None),
        ("+3", None),
        ("1.5", None),
        ("299.997", None),
        ("inf", None),
        ("Infinity", None),
        ("nan", None),
        ("1e3", None),
        ("1e400", None),
        ("0x10", None),
        ("12abc", None),
        ("1,5", None),
        ("5, 60", None),
        ("", None),
        ("\u{661}\u{662}", None),
    ] {
        assert_eq!(expected.map(DurationMs), parse_retry_after(value.as_bytes(), NOW), "{value:?}");
    }
}

#[test]
fn case_b19_the_later_of_backoff_and_retry_after_counts_and_jitter_only_adds() {
    let delays = [5_000, 30_000, 300_000].map(DurationMs).to_vec();
    let policy =
        Policy { backoff: Backoff::Fixed { delays, jitter: Permille::new(200).unwrap() }, ..exact_policy() };
    for (failures, backoff_ms, asked_s) in
        [(1, 5_000_u64, Some(120_u64)), (2, 30_000, Some(2)), (3, 300_000, Some(86_400)), (1, 5_000, None)]
    {
        let asked = asked_s.map(DurationMs::from_secs);
        let due = policy.next_due(new_job().id, Some(attempt(failures)), failures, asked, NOW);
        let waited = due.since(NOW).0;
        let least = backoff_ms.max(asked.map_or(0, |asked| asked.0));
        let most = (backoff_ms + backoff_ms / 5).max(asked.map_or(0, |asked| asked.0 + 10_000));
        assert!((least..=most).contains(&waited), "{failures} {asked_s:?}: {waited} of {least} to {most}");
    }
    // On a 2xx the header is not looked at.
    for status in [200, 202] {
        assert!(matches!(read_status(status, true), Reading::Accepted), "{status}");
    }
}

#[test]
fn case_b20_a_redirect_is_a_failure_that_is_tried_again() {
    for status in 300..400 {
        let Reading::Failed(read) = read_status(status, false) else { panic!("{status} is no success") };
        assert_eq!(Disposition::Retry, read.disposition, "{status}");
    }
}

#[test]
fn case_b22_every_status_has_one_meaning() {
    for status in [200, 201, 202, 204, 205, 206, 226, 299] {
        assert!(matches!(read_status(status, false), Reading::Accepted), "{status}");
    }
    let disposition = |status| match read_status(status, false) {
        Reading::Failed(read) => read.disposition,
        Reading::Accepted => panic!("{status} is no success"),
    };
    for status in
        [304, 404, 405, 408, 425, 429, 451, 499, 500, 501, 502, 503, 504, 520, 599, 0, 99, 600, 999, u16::MAX]
    {
        assert_eq!(Disposition::Retry, disposition(status), "{status}");
    }
    for status in [400, 413, 415, 422, 431] {
        assert_eq!(Disposition::PermanentMessage, disposition(status), "{status}");
    }
    for status in [401, 403] {
        assert_eq!(Disposition::PermanentDestination, disposition(status), "{status}");
    }
    assert_eq!(Disposition::InProgress, disposition(409));
}
