//! When a schedule fires: pure functions over an expression, a time zone's rules and an instant. Row B14.
//!
//! Where clocks are put forward, a local time that doesn't exist fires at the first instant after the gap, once however
//! many fell into it. Where they are put back, a local time that comes twice fires the first time it comes. Rhythms
//! (every hour, or a minute field that begins with `*`) go by elapsed time: they fire both times; and those of every hour
//! make up nothing for a gap, in which no time passed.

use jiff::{Timestamp as Instant, tz::TimeZone};
use posthaste_core::{DurationMs, Timestamp, limits};

use super::cron::{Cron, LONGEST_GAP_S};
use crate::config::{ConfigError, format_duration, parse_duration};

/// Bytes of the longest expression.
const EXPRESSION_BYTES_MAX: usize = 256;

/// The shortest and the longest interval.
const EVERY: (DurationMs, DurationMs) = (DurationMs::from_mins(1), DurationMs(366 * 86_400_000));

/// When a schedule fires.
#[derive(Clone, Debug)]
pub enum Timing {
    /// At local times.
    Cron {
        /// Which.
        cron: Box<Cron>,
        /// Where.
        zone: TimeZone,
    },
    /// Every so often, counted from 1970-01-01T00:00:00Z, so that restarts and several nodes agree.
    Every(DurationMs),
}

impl Timing {
    /// Reads `cron` (an expression, or `@every 15m`) and `timezone`; UTC unless told.
    ///
    /// Errors: what is wrong, and what would be right; also for expressions that never fire.
    pub fn parse(cron: &str, timezone: Option<&str>) -> Result<Self, ConfigError> {
        if cron.len() > EXPRESSION_BYTES_MAX {
            let problem = format!("{} bytes are given", cron.len());
            return Err(ConfigError::new("cron", problem, format!("give at most {EXPRESSION_BYTES_MAX}")));
        }
        if let Some(every) = cron.trim().strip_prefix("@every") {
            if timezone.is_some() {
                let problem = "an interval knows no time zone: it is counted from 1970-01-01T00:00:00Z";
                return Err(ConfigError::new("timezone", problem, "leave it out"));
            }
            return interval(every.trim()).map(Self::Every);
        }
        let zone = zone(timezone.unwrap_or("UTC"))?;
        let timing = Self::Cron { cron: Box::new(Cron::parse(cron)?), zone };
        // From a year that is the first of a cycle of leap years.
        if timing.next_after(Timestamp(1_767_225_600_000)).is_none() {
            let problem = format!("{cron:?} never comes: no month has such a day");
            return Err(ConfigError::new("cron", problem, "correct the day or the month"));
        }
        Ok(timing)
    }

    /// The first instant after `after` at which it fires; `None`: there is none in the next 12 years, or before the year
    /// 10,000.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        let next = match self {
            Self::Every(every) => {
                let every = i64::try_from(every.0).ok()?;
                after.0.div_euclid(every).checked_add(1)?.checked_mul(every)?
            }
            Self::Cron { cron, zone } => {
                next_in_zone(cron, zone, after.0.div_euclid(1_000))?.checked_mul(1_000)?
            }
        };
        (next <= limits::TIMESTAMP_MAX.0).then_some(Timestamp(next))
    }

    /// An instant as the schedule's place has it, for people: `2026-03-29T03:00:00+02:00[Europe/Berlin]`.
    pub fn local(&self, at: Timestamp) -> String {
        let zone = match self {
            Self::Cron { zone, .. } => zone.clone(),
            Self::Every(_) => TimeZone::UTC,
        };
        match Instant::from_millisecond(at.0) {
            Ok(at) => at.to_zoned_datetime(zone).to_string(),
            Err(_) => at.0.to_string(),
        }
    }
}

/// `2026-11-30T09:00:00.000Z`.
pub(crate) fn rfc3339(at: Timestamp) -> String {
    Instant::from_millisecond(at.0).map_or_else(|_| at.0.to_string(), |at| format!("{at:.3}"))
}

fn interval(text: &str) -> Result<DurationMs, ConfigError> {
    let refused = |problem: String| {
        let remedy = format!("write @every and {} to {}", format_duration(EVERY.0), format_duration(EVERY.1));
        ConfigError::new("cron", problem, remedy)
    };
    let every = parse_duration(text).map_err(|error| refused(error.to_string()))?;
    if every < EVERY.0 || every > EVERY.1 {
        return Err(refused(format!("the interval {text:?} is out of range")));
    }
    Ok(every)
}

fn zone(name: &str) -> Result<TimeZone, ConfigError> {
    let remedy = "give a name of the IANA database, for example \"Europe/Berlin\", or \"UTC\"";
    if name == "UTC" {
        return Ok(TimeZone::UTC);
    }
    // `UTC+1` and the like mean different things to different people.
    let zone = TimeZone::get(name).ok().filter(|zone| zone.iana_name().is_some());
    zone.ok_or_else(|| {
        ConfigError::new("timezone", format!("{name:?} is no time zone that is known"), remedy)
    })
}

/// A stretch of time in which a place keeps one offset. Seconds.
struct Stretch {
    /// `None`: since ever.
    begins: Option<i64>,
    /// `None`: for ever.
    ends: Option<i64>,
    offset: i64,
    /// The offset before it.
    before: i64,
}

impl Stretch {
    /// The one in which `at` lies.
    fn around(zone: &TimeZone, at: i64) -> Option<Self> {
        let instant = Instant::from_second(at).ok()?;
        let after = Instant::from_second(at.checked_add(1)?).ok()?;
        let begins = zone.preceding(after).next().map(|change| change.timestamp().as_second());
        let ends = zone.following(instant).next().map(|change| change.timestamp().as_second());
        let offset_at = |at: Instant| i64::from(zone.to_offset(at).seconds());
        let offset = offset_at(instant);
        let earlier = begins.and_then(|begins| Instant::from_second(begins - 1).ok());
        Some(Self { begins, ends, offset, before: earlier.map_or(offset, offset_at) })
    }

    /// The first match at or after `from`, which lies in it.
    fn first(&self, cron: &Cron, from: i64) -> Option<i64> {
        let mut local_from = from + self.offset;
        if let Some(begins) = self.begins {
            let jumped = self.before < self.offset && from == begins && !cron.every_hour();
            if jumped && cron.next_local(begins + self.before, begins + self.offset).is_some() {
                return Some(begins);
            }
            if self.offset < self.before && !cron.is_rhythm() {
                // What came before the change doesn't come again.
                local_from = local_from.max(begins + self.before);
            }
        }
        let local_until = self.ends.map_or(i64::MAX, |ends| ends + self.offset);
        cron.next_local(local_from, local_until).map(|local| local - self.offset)
    }
}

/// The first second after `after` at which `cron` fires in `zone`.
fn next_in_zone(cron: &Cron, zone: &TimeZone, after: i64) -> Option<i64> {
    let until = after.checked_add(LONGEST_GAP_S)?;
    let mut from = after.checked_add(1)?;
    while from < until {
        let stretch = Stretch::around(zone, from)?;
        if let Some(found) = stretch.first(cron, from) {
            return Some(found);
        }
        from = stretch.ends?;
    }
    None
}

#[cfg(test)]
#[path = "timing_tests.rs"]
mod tests;
