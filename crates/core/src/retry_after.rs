//! `Retry-After`, as the world sends it.

use std::time::UNIX_EPOCH;

use crate::{DurationMs, Timestamp, limits};

/// How long a `Retry-After` asks to wait from `now`, capped at [`limits::RETRY_AFTER_MAX`].
///
/// Whole seconds of any length and the three date forms of RFC 9110, section 10.2.3, are understood; a date in
/// the past is no wait. Anything else (negative, a fraction, words) is `None`: as if the header were not there.
pub fn parse_retry_after(value: &[u8], now: Timestamp) -> Option<DurationMs> {
    let text = std::str::from_utf8(value).ok()?.trim_matches([' ', '\t']);
    if text.is_empty() {
        return None;
    }
    if text.bytes().all(|byte| byte.is_ascii_digit()) {
        // All digits and still no u64: longer than any cap.
        let seconds = text.parse().unwrap_or(u64::MAX);
        return Some(DurationMs::from_secs(seconds).min(limits::RETRY_AFTER_MAX));
    }
    let date = httpdate::parse_http_date(text).ok()?;
    let since_epoch = date.duration_since(UNIX_EPOCH).ok()?;
    let at = Timestamp(i64::try_from(since_epoch.as_millis()).unwrap_or(i64::MAX));
    Some(at.since(now).min(limits::RETRY_AFTER_MAX))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// 1994-11-06 08:49:00 UTC, 37 seconds before the example of RFC 9110.
    const NOW: Timestamp = Timestamp(784_111_740_000);

    #[test]
    fn r_b5_every_form_of_retry_after_has_one_reading() {
        let cases: &[(&[u8], Option<u64>)] = &[
            (b"0", Some(0)),
            (b"120", Some(120_000)),
            (b" 7\t", Some(7_000)),
            (b"0000000000000000000000000000000000005", Some(5_000)),
            (b"86400", Some(86_400_000)),
            (b"86401", Some(86_400_000)),
            (b"1000000000000000000000000000000", Some(86_400_000)),
            (b"Sun, 06 Nov 1994 08:49:37 GMT", Some(37_000)),
            (b"Sunday, 06-Nov-94 08:49:37 GMT", Some(37_000)),
            (b"Sun Nov  6 08:49:37 1994", Some(37_000)),
            (b"Sun, 06 Nov 1994 08:48:00 GMT", Some(0)),
            (b"Fri, 31 Dec 9999 23:59:59 GMT", Some(86_400_000)),
            (b"Thu, 01 Jan 1970 00:00:00 GMT", Some(0)),
            (b"", None),
            (b"  ", None),
            (b"-1", None),
            (b"+1", None),
            (b"1.5", None),
            (b"1e3", None),
            (b"0x10", None),
            (b"soon", None),
            (b"Sun, 99 Nov 1994 08:49:37 GMT", None),
            (b"1994-11-06T08:49:37Z", None),
            (b"12, 13", None),
            (b"\xff\xfe", None),
            ("\u{661}\u{662}".as_bytes(), None),
        ];
        for (value, expected) in cases {
            let text = String::from_utf8_lossy(value);
            assert_eq!(expected.map(DurationMs), parse_retry_after(value, NOW), "{text}");
        }
    }

    proptest! {
        #[test]
        fn r_b5_no_retry_after_breaks_the_parser(
            value in proptest::collection::vec(any::<u8>(), 0..80),
            now in any::<i64>(),
        ) {
            if let Some(delay) = parse_retry_after(&value, Timestamp(now)) {
                prop_assert!(delay <= limits::RETRY_AFTER_MAX);
            }
        }

        #[test]
        fn r_b5_any_number_of_seconds_is_capped(seconds in "[0-9]{1,40}") {
            let delay = parse_retry_after(seconds.as_bytes(), NOW);
            prop_assert!(delay.is_some_and(|delay| delay <= limits::RETRY_AFTER_MAX));
        }
    }
}
