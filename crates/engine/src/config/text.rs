//! Durations, rates and patterns as people write them.

use posthaste_core::DurationMs;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// Why a duration was refused. The texts say what would be right.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum DurationError {
    /// Nothing there.
    #[error("a duration must not be empty; write for example \"30s\" or \"24h\"")]
    Empty,
    /// A number without a unit.
    #[error("the duration {0:?} has no unit; write for example \"{0}s\"")]
    NoUnit(String),
    /// Below zero.
    #[error("the duration {0:?} is negative")]
    Negative(String),
    /// Not a duration.
    #[error("{0:?} is no duration; write whole numbers with ms, s, m, h or d, for example \"1h30m\"")]
    Malformed(String),
    /// Too long to count.
    #[error("the duration {0:?} is too long")]
    TooLong(String),
}

/// The units, with their length in milliseconds. `ms` comes first, so that it isn't read as `m`.
const UNITS: [(&str, u64); 5] = [("ms", 1), ("s", 1_000), ("m", 60_000), ("h", 3_600_000), ("d", 86_400_000)];

/// A million days: longer than anybody means, and far from overflow.
const LONGEST_MS: u64 = 1_000_000 * 86_400_000;

/// Reads `"250ms"`, `"30s"`, `"5m"`, `"24h"`, `"7d"` or a sum such as `"1h30m"`.
pub fn parse_duration(text: &str) -> Result<DurationMs, DurationError> {
    let owned = || text.to_owned();
    if text.is_empty() {
        return Err(DurationError::Empty);
    }
    if text.starts_with('-') {
        return Err(DurationError::Negative(owned()));
    }
    let (mut rest, mut total) = (text, 0_u64);
    while !rest.is_empty() {
        let digits = rest.bytes().take_while(u8::is_ascii_digit).count();
        let (number, after) = rest.split_at(digits);
        if number.is_empty() {
            return Err(DurationError::Malformed(owned()));
        }
        if after.is_empty() {
            return Err(DurationError::NoUnit(owned()));
        }
        let unit = UNITS.iter().find_map(|(unit, ms)| Some((after.strip_prefix(unit)?, ms)));
        let Some((after, unit_ms)) = unit else {
            return Err(DurationError::Malformed(owned()));
        };
        let number: u64 = number.parse().map_err(|_| DurationError::TooLong(owned()))?;
        total = number
            .checked_mul(*unit_ms)
            .and_then(|part| total.checked_add(part))
            .filter(|total| *total <= LONGEST_MS)
            .ok_or_else(|| DurationError::TooLong(owned()))?;
        rest = after;
    }
    Ok(DurationMs(total))
}

/// The shortest exact spelling that [`parse_duration`] reads back.
pub fn format_duration(duration: DurationMs) -> String {
    if duration.0 == 0 {
        return "0s".to_owned();
    }
    let (unit, unit_ms) = UNITS
        .iter()
        .rev()
        .find(|(_, unit_ms)| duration.0.is_multiple_of(*unit_ms))
        .expect("every duration is a multiple of a millisecond");
    format!("{}{unit}", duration.0 / unit_ms)
}

/// A duration in configuration and JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct DurationText(pub DurationMs);

impl<'de> Deserialize<'de> for DurationText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let text = String::deserialize(deserializer)?;
        parse_duration(&text).map(Self).map_err(serde::de::Error::custom)
    }
}

impl Serialize for DurationText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format_duration(self.0))
    }
}

/// Whether `event_type` fits `pattern`: equal, or `*` for everything, or `shipment.*` for everything below.
pub fn type_fits(pattern: &str, event_type: Option<&str>) -> bool {
    match (pattern, event_type) {
        ("*", _) => true,
        (_, None) => false,
        (pattern, Some(event_type)) => match pattern.strip_suffix(".*") {
            Some(prefix) => {
                event_type.strip_prefix(prefix).is_some_and(|rest| rest.starts_with('.') && rest.len() > 1)
            }
            None => pattern == event_type,
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_whole_numbers_with_units() {
        let good = [
            ("0s", 0),
            ("250ms", 250),
            ("30s", 30_000),
            ("5m", 300_000),
            ("24h", 86_400_000),
            ("7d", 604_800_000),
            ("1h30m", 5_400_000),
            ("1m1ms", 60_001),
        ];
        for (text, ms) in good {
            assert_eq!(Ok(DurationMs(ms)), parse_duration(text), "{text}");
        }
        use DurationError::*;
        assert_eq!(Err(Empty), parse_duration(""));
        for text in ["30", "1h30", "0"] {
            assert_eq!(Err(NoUnit(text.to_owned())), parse_duration(text));
        }
        for text in ["-1s", "-"] {
            assert_eq!(Err(Negative(text.to_owned())), parse_duration(text));
        }
        for text in ["s", " 1s", "1 s", "1.5s", "1e3s", "1w", "1S", "+1s", "é", "1é"] {
            assert_eq!(Err(Malformed(text.to_owned())), parse_duration(text), "{text}");
        }
        for text in ["99999999999999999999s", "18446744073709551615d", "1000001d"] {
            assert_eq!(Err(TooLong(text.to_owned())), parse_duration(text), "{text}");
        }
    }

    #[test]
    fn durations_are_spelled_as_they_are_read() {
        for (ms, text) in [(0, "0s"), (1, "1ms"), (1_500, "1500ms"), (60_000, "1m"), (86_400_000, "1d")] {
            assert_eq!(text, format_duration(DurationMs(ms)));
            assert_eq!(Ok(DurationMs(ms)), parse_duration(text));
        }
    }

    #[test]
    fn a_pattern_fits_itself_and_what_is_below_it() {
        for (pattern, event_type, fits) in [
            ("*", Some("a"), true),
            ("*", None, true),
            ("a", Some("a"), true),
            ("a", Some("a.b"), false),
            ("a.*", Some("a.b"), true),
            ("a.*", Some("a.b.c"), true),
            ("a.*", Some("a"), false),
            ("a.*", Some("a."), false),
            ("a.*", Some("ab.c"), false),
            ("a.*", None, false),
        ] {
            assert_eq!(fits, type_fits(pattern, event_type), "{pattern} {event_type:?}");
        }
    }
}
