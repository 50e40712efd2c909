//! Signed timestamps: strict decimals, and a window around the verifier's clock.

use crate::{Reason, Rejection};

/// How far ahead a stamp may lie where the provider's own SDK never looks ahead (Stripe, Paddle, HubSpot): a fast sender
/// clock must not lose deliveries, yet a capture must not be good for a day.
pub(crate) const FUTURE_LEEWAY_SECONDS: u64 = 600;

const MALFORMED: Rejection =
    Rejection::new(Reason::MalformedTimestamp, "timestamp is not a plain decimal number");

/// The accepted distance from the verifier's clock, both limits inclusive.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Window {
    past_seconds: u64,
    future_seconds: u64,
}

impl Window {
    /// The same distance both ways. Zero means zero, never "unlimited".
    pub(crate) fn symmetric(seconds: u64) -> Self {
        Self { past_seconds: seconds, future_seconds: seconds }
    }

    /// At least [`FUTURE_LEEWAY_SECONDS`] ahead.
    pub(crate) fn lenient_ahead(seconds: u64) -> Self {
        Self { past_seconds: seconds, future_seconds: seconds.max(FUTURE_LEEWAY_SECONDS) }
    }

    /// Checks a stamp in whole seconds; returns it in milliseconds.
    pub(crate) fn check_seconds(self, stamp_s: i64, now_unix_ms: i64) -> Result<i64, Rejection> {
        let now_s = i128::from(now_unix_ms.div_euclid(1000));
        self.check(now_s - i128::from(stamp_s), 1)?;
        stamp_s.checked_mul(1000).ok_or(MALFORMED)
    }

    /// Checks a stamp in milliseconds; returns it.
    pub(crate) fn check_ms(self, stamp_ms: i64, now_unix_ms: i64) -> Result<i64, Rejection> {
        self.check(i128::from(now_unix_ms) - i128::from(stamp_ms), 1000)?;
        Ok(stamp_ms)
    }

    fn check(self, age: i128, units_per_second: i128) -> Result<(), Rejection> {
        if age > i128::from(self.past_seconds) * units_per_second {
            return Err(Rejection::new(Reason::TimestampTooOld, "timestamp is older than the tolerance"));
        }
        if -age > i128::from(self.future_seconds) * units_per_second {
            return Err(Rejection::new(
                Reason::TimestampTooNew,
                "timestamp is further ahead than the tolerance",
            ));
        }
        Ok(())
    }
}

/// Reads a decimal integer in its one canonical form: no plus sign, space, fraction or leading zero.
///
/// What is signed is the text, so a second spelling of the same number would be a second message.
pub(crate) fn parse(text: &[u8]) -> Result<i64, Rejection> {
    let digits = text.strip_prefix(b"-").unwrap_or(text);
    let canonical = match digits {
        [b'0'] => text.len() == 1,
        [b'1'..=b'9', rest @ ..] => rest.iter().all(u8::is_ascii_digit),
        _ => false,
    };
    if !canonical {
        return Err(MALFORMED);
    }
    std::str::from_utf8(text).ok().and_then(|text| text.parse().ok()).ok_or(MALFORMED)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn reason(stamp_s: i64, tolerance: u64) -> Option<Reason> {
        Window::symmetric(tolerance)
            .check_seconds(stamp_s, 1_767_225_600_999)
            .err()
            .map(|rejection| rejection.reason)
    }

    #[test]
    fn case_b07_the_window_is_inclusive_and_works_in_both_directions() {
        let now = 1_767_225_600;
        for accepted in [now - 299, now - 300, now, now + 299, now + 300] {
            assert_eq!(reason(accepted, 300), None, "{accepted}");
        }
        for too_old in [now - 301, 0, -1, i64::MIN] {
            assert_eq!(reason(too_old, 300), Some(Reason::TimestampTooOld), "{too_old}");
        }
        for too_new in [now + 301, now + 86_400, 1_767_225_600_000, i64::MAX] {
            assert_eq!(reason(too_new, 300), Some(Reason::TimestampTooNew), "{too_new}");
        }
    }

    #[test]
    fn case_b07_a_window_of_zero_means_zero_seconds() {
        assert_eq!(reason(1_767_225_600, 0), None);
        assert_eq!(reason(1_767_225_599, 0), Some(Reason::TimestampTooOld));
        assert_eq!(reason(1_767_225_601, 0), Some(Reason::TimestampTooNew));
    }

    #[test]
    fn case_b07_odd_spellings_are_malformed() {
        let odd = [
            "1767225600.5",
            " 1767225600",
            "1767225600 ",
            "01767225600",
            "+1767225600",
            "",
            "-",
            "-0",
            "00",
            "1e9",
        ];
        for text in odd.into_iter().chain(["9223372036854775808", "99999999999999999999999"]) {
            assert_eq!(parse(text.as_bytes()), Err(MALFORMED), "{text}");
        }
        assert_eq!(parse(b"9223372036854775807"), Ok(i64::MAX));
        assert_eq!(parse(b"-1"), Ok(-1));
        assert_eq!(parse(b"0"), Ok(0));
    }
}
