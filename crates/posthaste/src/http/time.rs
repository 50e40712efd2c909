//! Times on the wire: RFC 3339, UTC, milliseconds. Row B1.

use std::fmt;

use posthaste_core::{Timestamp, limits};
use serde::{Serialize, Serializer};

use super::{Code, Problem};

const DAY_MS: i64 = 86_400_000;

/// The first instant that can be shown, 0000-01-01T00:00:00.000Z.
const FIRST: i64 = -62_167_219_200_000;

/// An instant that serialises as `2026-11-30T09:00:00.000Z`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Time(pub(crate) Timestamp);

impl Serialize for Time {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(text(&format(self.0)))
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(text(&format(self.0)))
    }
}

fn text(bytes: &[u8; 24]) -> &str {
    std::str::from_utf8(bytes).expect("digits and separators are ASCII")
}

/// The 24 characters of `at`; what is beyond the years 0 to 9999 is shown as their end.
fn format(at: Timestamp) -> [u8; 24] {
    let ms = at.0.clamp(FIRST, limits::TIMESTAMP_MAX.0);
    let (day, in_day) = (ms.div_euclid(DAY_MS), ms.rem_euclid(DAY_MS));
    let (year, month, day) = date_of(day);
    let mut out = *b"0000-00-00T00:00:00.000Z";
    digits(&mut out[0..4], year);
    digits(&mut out[5..7], month);
    digits(&mut out[8..10], day);
    digits(&mut out[11..13], in_day / 3_600_000);
    digits(&mut out[14..16], in_day / 60_000 % 60);
    digits(&mut out[17..19], in_day / 1_000 % 60);
    digits(&mut out[20..23], in_day % 1_000);
    out
}

fn digits(out: &mut [u8], mut value: i64) {
    for digit in out.iter_mut().rev() {
        *digit = b'0' + u8::try_from(value % 10).expect("one digit of a number that is not negative");
        value /= 10;
    }
}

/// The civil date of a day counted from 1970-01-01. Howard Hinnant's algorithm:
/// <https://howardhinnant.github.io/date_algorithms.html#civil_from_days>.
fn date_of(day: i64) -> (i64, i64, i64) {
    let day = day + 719_468;
    let (era, day_of_era) = (day.div_euclid(146_097), day.rem_euclid(146_097));
    let year_of_era = (day_of_era - day_of_era / 1_460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let shifted = (5 * day_of_year + 2) / 153;
    let month = if shifted < 10 { shifted + 3 } else { shifted - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    (year, month, day_of_year - (153 * shifted + 2) / 5 + 1)
}

/// The day, counted from 1970-01-01, of a civil date. The inverse of [`date_of`].
fn day_of((year, month, day): (i64, i64, i64)) -> i64 {
    let year = year - i64::from(month <= 2);
    let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
    let shifted = if month > 2 { month - 3 } else { month + 9 };
    let day_of_year = (153 * shifted + 2) / 5 + day - 1;
    let day_of_era = year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year;
    era * 146_097 + day_of_era - 719_468
}

/// Reads an RFC 3339 time with its offset, for example `2026-12-01T09:00:00+01:00`. What is finer than a millisecond
/// is cut off; a leap second is the second after it.
///
/// Errors: `naive_time` without an offset, `time_out_of_range` beyond the year 9999, else `invalid_time`.
pub(crate) fn parse(field: &'static str, text: &str) -> Result<Timestamp, Problem> {
    read(text).map_err(|fault| {
        let (code, problem) = match fault {
            Fault::Naive => {
                (Code::NaiveTime, "has no offset; write for example 2026-12-01T09:00:00Z or …+01:00")
            }
            Fault::OutOfRange => {
                (Code::TimeOutOfRange, "is out of range; the last instant is 9999-12-31T23:59:59.999Z")
            }
            Fault::Malformed => {
                (Code::InvalidTime, "is no RFC 3339 time; write for example 2026-12-01T09:00:00Z")
            }
        };
        let shown: String = text.chars().take(64).collect();
        Problem::new(code, format!("`{field}`: {shown:?} {problem}")).with("path", field)
    })
}

#[derive(Debug, PartialEq, Eq)]
enum Fault {
    Naive,
    OutOfRange,
    Malformed,
}

fn read(text: &str) -> Result<Timestamp, Fault> {
    let mut rest = Cursor(text.as_bytes());
    let date = date(&mut rest)?;
    if rest.0.is_empty() {
        return Err(Fault::Naive);
    }
    rest.separator(b"Tt ")?;
    let (hour, minute) = hour_and_minute(&mut rest)?;
    rest.separator(b":")?;
    let second = rest.number(2, 0..=60)?;
    let ms = rest.fraction()?;
    let offset_minutes = offset(&mut rest)?;
    if !rest.0.is_empty() {
        return Err(Fault::Malformed);
    }
    let minutes = day_of(date) * 1_440 + hour * 60 + minute - offset_minutes;
    let at = Timestamp(minutes * 60_000 + second * 1_000 + ms);
    if at > limits::TIMESTAMP_MAX { Err(Fault::OutOfRange) } else { Ok(at) }
}

fn date(rest: &mut Cursor<'_>) -> Result<(i64, i64, i64), Fault> {
    // Five and more digits, or a sign, are how others spell years beyond 9999.
    let sign = rest.0.first().is_some_and(|byte| matches!(byte, b'+'));
    let digits = rest.0.iter().skip(usize::from(sign)).take_while(|byte| byte.is_ascii_digit()).count();
    if digits > 4 && rest.0.get(digits + usize::from(sign)) == Some(&b'-') {
        return Err(Fault::OutOfRange);
    }
    let year = rest.number(4, 0..=9_999)?;
    rest.separator(b"-")?;
    let month = rest.number(2, 1..=12)?;
    rest.separator(b"-")?;
    let day = rest.number(2, 1..=31)?;
    let date = (year, month, day);
    // 30 February is read as a March day and written differently.
    if date_of(day_of(date)) == date { Ok(date) } else { Err(Fault::Malformed) }
}

fn hour_and_minute(rest: &mut Cursor<'_>) -> Result<(i64, i64), Fault> {
    let hour = rest.number(2, 0..=23)?;
    rest.separator(b":")?;
    Ok((hour, rest.number(2, 0..=59)?))
}

/// The offset in minutes east of UTC.
fn offset(rest: &mut Cursor<'_>) -> Result<i64, Fault> {
    let sign = match rest.0 {
        [] => return Err(Fault::Naive),
        [b'Z' | b'z', after @ ..] => {
            rest.0 = after;
            return Ok(0);
        }
        [b'+', ..] => 1,
        [b'-', ..] => -1,
        _ => return Err(Fault::Malformed),
    };
    rest.0 = &rest.0[1..];
    let (hour, minute) = hour_and_minute(rest)?;
    Ok(sign * (hour * 60 + minute))
}

/// What is left to read.
struct Cursor<'a>(&'a [u8]);

impl Cursor<'_> {
    fn number(&mut self, length: usize, range: std::ops::RangeInclusive<i64>) -> Result<i64, Fault> {
        let (digits, rest) = self.0.split_at_checked(length).ok_or(Fault::Malformed)?;
        let value = digits.iter().try_fold(0, |value, digit| {
            digit.is_ascii_digit().then(|| value * 10 + i64::from(digit - b'0')).ok_or(Fault::Malformed)
        })?;
        self.0 = rest;
        if range.contains(&value) { Ok(value) } else { Err(Fault::Malformed) }
    }

    fn separator(&mut self, allowed: &[u8]) -> Result<(), Fault> {
        match self.0 {
            [first, rest @ ..] if allowed.contains(first) => {
                self.0 = rest;
                Ok(())
            }
            _ => Err(Fault::Malformed),
        }
    }

    /// The milliseconds of a fraction of a second, if there is one.
    fn fraction(&mut self) -> Result<i64, Fault> {
        let [b'.', rest @ ..] = self.0 else { return Ok(0) };
        let length = rest.iter().take_while(|byte| byte.is_ascii_digit()).count();
        if length == 0 {
            return Err(Fault::Malformed);
        }
        let digit = |at: usize| if at < length { i64::from(rest[at] - b'0') } else { 0 };
        let ms = digit(0) * 100 + digit(1) * 10 + digit(2);
        self.0 = &rest[length..];
        Ok(ms)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_b1_times_are_shown_in_utc_with_milliseconds() {
        for (ms, text) in [
            (0, "1970-01-01T00:00:00.000Z"),
            (-1, "1969-12-31T23:59:59.999Z"),
            (951_782_400_000, "2000-02-29T00:00:00.000Z"),
            (1_796_029_200_123, "2026-11-30T09:00:00.123Z"),
            (limits::TIMESTAMP_MAX.0, "9999-12-31T23:59:59.999Z"),
            (i64::MAX, "9999-12-31T23:59:59.999Z"),
            (FIRST, "0000-01-01T00:00:00.000Z"),
            (i64::MIN, "0000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(text, Time(Timestamp(ms)).to_string());
        }
    }

    #[test]
    fn r_b1_every_day_is_shown_as_it_is_read() {
        for day in (-719_528..2_932_897).step_by(17) {
            let at = Timestamp(day * DAY_MS + day.rem_euclid(1_000) * 61_003 % DAY_MS);
            assert_eq!(Ok(at), read(&Time(at).to_string()));
        }
    }

    #[test]
    fn r_b1_an_offset_is_taken_into_account() {
        for (text, same) in [
            ("2026-12-01T09:00:00+01:00", "2026-12-01T08:00:00.000Z"),
            ("2026-12-01t09:00:00.5z", "2026-12-01T09:00:00.500Z"),
            ("2026-12-01 09:00:00.123999-23:59", "2026-12-02T08:59:00.123Z"),
            ("2016-12-31T23:59:60Z", "2017-01-01T00:00:00.000Z"),
            ("9999-12-31T23:59:59.9999Z", "9999-12-31T23:59:59.999Z"),
            ("0000-01-01T00:00:00Z", "0000-01-01T00:00:00.000Z"),
        ] {
            assert_eq!(same, Time(read(text).unwrap()).to_string(), "{text}");
        }
    }

    #[test]
    fn r_b1_a_time_without_an_offset_is_refused() {
        for text in ["2026-12-01T09:00:00", "2026-12-01 09:00:00.5", "2026-12-01"] {
            assert_eq!(Err(Fault::Naive), read(text), "{text}");
        }
    }

    #[test]
    fn r_b1_what_is_no_time_or_too_late_is_refused() {
        for text in ["10000-01-01T00:00:00Z", "+010000-01-01T00:00:00Z", "9999-12-31T23:59:59-00:01"] {
            assert_eq!(Err(Fault::OutOfRange), read(text), "{text}");
        }
        for text in [
            "",
            "now",
            "1796029200",
            "2026-02-29T00:00:00Z",
            "2026-13-01T00:00:00Z",
            "2026-00-01T00:00:00Z",
            "2026-12-00T00:00:00Z",
            "2026-12-01T24:00:00Z",
            "2026-12-01T09:60:00Z",
            "2026-12-01T09:00:61Z",
            "2026-12-01T09:00Z",
            "2026-12-01T09:00:00.Z",
            "2026-12-01T09:00:00+24:00",
            "2026-12-01T09:00:00+0100",
            "2026-12-01T09:00:00Z ",
            "2026-12-01T09:00:00[Europe/Berlin]",
            "2026-12-01T09:00:00Z[UTC]",
            "-0001-12-01T09:00:00Z",
            "２０２６-12-01T09:00:00Z",
        ] {
            assert_eq!(Err(Fault::Malformed), read(text), "{text}");
        }
    }
}
