//! Times and durations as people type them. A person waits in front of it, so it may read the clock.

use jiff::Timestamp;
use posthaste_core::DurationMs;
use posthaste_engine::config::{format_duration, parse_duration};

use super::exit::Failure;

/// `24h` as the API takes it.
pub(super) fn delay(text: &str) -> Result<String, Failure> {
    parse_duration(text).map(|_| text.to_owned()).map_err(|error| Failure::usage(format!("--delay: {error}")))
}

/// An instant with an offset, as the API takes it.
pub(super) fn instant(text: &str) -> Result<String, Failure> {
    text.parse::<Timestamp>().map(|_| text.to_owned()).map_err(|_| {
        Failure::usage(format!(
            "--due-at: {text:?} is no time; write for example 2026-12-01T09:00:00Z or 2026-12-01T09:00:00+01:00"
        ))
    })
}

/// Unix seconds of now.
pub(super) fn now_unix() -> i64 {
    Timestamp::now().as_second()
}

/// `2026-11-30T09:00:00.000Z` as `2026-11-30 09:00:00.000`; anything else as it is.
pub(super) fn short(text: &str) -> String {
    match text.parse::<Timestamp>() {
        Ok(instant) => instant.strftime("%Y-%m-%d %H:%M:%S%.3f").to_string(),
        Err(_) => super::output::printable(text),
    }
}

/// `09:00:00.000`, for a list whose day is known.
pub(super) fn of_day(text: &str) -> String {
    short(text).split_once(' ').map_or_else(|| short(text), |(_, time)| time.to_owned())
}

/// The day of an instant.
pub(super) fn day(text: &str) -> String {
    short(text).split_once(' ').map_or_else(|| short(text), |(day, _)| day.to_owned())
}

/// How far `text` lies from now: `in 23h` or `4m ago`.
pub(super) fn from_now(text: &str) -> Option<String> {
    let then = text.parse::<Timestamp>().ok()?.as_millisecond();
    let distance = then - Timestamp::now().as_millisecond();
    let rough = rough(distance.unsigned_abs());
    Some(if distance >= 0 { format!("in {rough}") } else { format!("{rough} ago") })
}

/// The largest whole unit of a duration.
fn rough(ms: u64) -> String {
    let unit = [86_400_000, 3_600_000, 60_000, 1_000].into_iter().find(|unit| ms >= *unit);
    unit.map_or_else(|| "0s".to_owned(), |unit| format_duration(DurationMs(ms / unit * unit)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_shown_short_and_durations_roughly() {
        assert_eq!("2026-11-30 09:00:00.125", short("2026-11-30T09:00:00.125Z"));
        assert_eq!("08:00:00.000", of_day("2026-11-30T09:00:00+01:00"));
        assert_eq!("2026-11-30", day("2026-11-30T09:00:00Z"));
        assert_eq!("soon", short("soon"));
        for (ms, text) in [(0, "0s"), (999, "0s"), (61_000, "1m"), (3_600_000, "1h"), (90_000_000, "1d")] {
            assert_eq!(text, rough(ms));
        }
    }

    #[test]
    fn a_time_without_an_offset_is_refused() {
        assert!(instant("2026-12-01T09:00:00").is_err());
        assert!(instant("2026-12-01T09:00:00+01:00").is_ok());
        assert!(delay("24").is_err() && delay("24h").is_ok());
    }
}
