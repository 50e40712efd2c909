//! Cron expressions, read and matched against local times. Knows no time zone: see [`super::timing`].
//!
//! Five fields: minute, hour, day of the month, month, day of the week, each a list of `*`, values, ranges and steps.
//! Months and weekdays have names; 7 is Sunday as 0 is. `L` is the month's last day, `5#2` its second Friday, `5L` its
//! last one. If both days are restricted, either will do, as cron has always done it.

use jiff::{civil::Date, tz::Offset};

use crate::config::ConfigError;

/// Local seconds in a day.
const DAY_S: i64 = 86_400;

/// The longest that a pattern may have nothing to match: from one 29 February to the next over a year such as 2100, and
/// something over.
pub(super) const LONGEST_GAP_S: i64 = 12 * 366 * DAY_S;

/// An expression, understood.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cron {
    minutes: u64,
    hours: u64,
    days: Days,
    months: u64,
    minute_is_star: bool,
}

/// Which days of a month.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Days {
    of_month: u64,
    last_of_month: bool,
    of_week: u64,
    /// The weekday, and which one of the month.
    nth: Vec<(u8, Nth)>,
    /// Either will do.
    either: bool,
}

/// Which of a month's Fridays, for example.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Nth {
    /// From 1.
    At(i8),
    Last,
}

/// One of the five fields.
struct Field {
    name: &'static str,
    min: u8,
    max: u8,
    names: &'static [&'static str],
}

const MONTHS: &[&str] = &["JAN", "FEB", "MAR", "APR", "MAY", "JUN", "JUL", "AUG", "SEP", "OCT", "NOV", "DEC"];
const WEEKDAYS: &[&str] = &["SUN", "MON", "TUE", "WED", "THU", "FRI", "SAT"];

const FIELDS: [Field; 5] = [
    Field { name: "minute", min: 0, max: 59, names: &[] },
    Field { name: "hour", min: 0, max: 23, names: &[] },
    Field { name: "day of the month", min: 1, max: 31, names: &[] },
    Field { name: "month", min: 1, max: 12, names: MONTHS },
    Field { name: "day of the week", min: 0, max: 7, names: WEEKDAYS },
];

/// Spellings of common expressions.
const NICKNAMES: &[(&str, &str)] = &[
    ("@yearly", "0 0 1 1 *"),
    ("@annually", "0 0 1 1 *"),
    ("@monthly", "0 0 1 * *"),
    ("@weekly", "0 0 * * 0"),
    ("@daily", "0 0 * * *"),
    ("@midnight", "0 0 * * *"),
    ("@hourly", "0 * * * *"),
];

impl Cron {
    /// Reads an expression.
    ///
    /// Errors: which field is wrong, and what it may be.
    pub fn parse(text: &str) -> Result<Self, ConfigError> {
        let known = NICKNAMES.iter().find(|(nickname, _)| nickname.eq_ignore_ascii_case(text.trim()));
        let spelled = known.map_or(text, |(_, spelled)| spelled);
        let parts: Vec<&str> = spelled.split_ascii_whitespace().collect();
        if spelled.trim_start().starts_with('@') {
            let names: Vec<&str> = NICKNAMES.iter().map(|(nickname, _)| *nickname).collect();
            let remedy = format!("write {} or @every 15m", names.join(", "));
            return Err(wrong(format!("{text:?} is not known"), remedy));
        }
        let [minute, hour, day, month, weekday] = parts[..] else {
            let seconds = if parts.len() > 5 { "; seconds and years are not supported" } else { "" };
            let problem = format!("{} fields are given{seconds}", parts.len());
            let remedy = "give five: minute, hour, day of the month, month, day of the week; for example \"30 2 * * *\"";
            return Err(wrong(problem, remedy));
        };
        let mut days = Days {
            of_month: 0,
            last_of_month: false,
            of_week: 0,
            nth: Vec::new(),
            either: !day.starts_with(['*', '?']) && !weekday.starts_with(['*', '?']),
        };
        read_days(day, &mut days)?;
        read_weekdays(weekday, &mut days)?;
        Ok(Self {
            minutes: FIELDS[0].read(minute)?,
            hours: FIELDS[1].read(hour)?,
            days,
            months: FIELDS[3].read(month)?,
            minute_is_star: minute.starts_with('*'),
        })
    }

    /// Whether it fires in every hour of a day on which it fires.
    pub(super) fn every_hour(&self) -> bool {
        self.hours == (1 << 24) - 1
    }

    /// Whether it means a rhythm rather than times of the day: every hour, or a minute field that begins with `*`.
    pub(super) fn is_rhythm(&self) -> bool {
        self.every_hour() || self.minute_is_star
    }

    /// The first local time that matches, from `from` (included) to `until` (not included), both in seconds as if the
    /// place had UTC.
    pub(super) fn next_local(&self, from: i64, until: i64) -> Option<i64> {
        // Up to a whole minute.
        let from = from.checked_add(59)?.div_euclid(60) * 60;
        let until = until.min(from.saturating_add(LONGEST_GAP_S));
        let mut day = from.div_euclid(DAY_S);
        let mut in_day = from.rem_euclid(DAY_S) / 60;
        let mut date = date_of(day)?;
        while day * DAY_S + in_day * 60 < until {
            if self.months & (1 << date.month()) != 0
                && self.days.include(date)
                && let Some(minute) = self.next_minute(in_day)
            {
                let found = day * DAY_S + minute * 60;
                return (found < until).then_some(found);
            }
            (day, in_day, date) = (day + 1, 0, date.tomorrow().ok()?);
        }
        None
    }

    /// The first minute of a day that matches, from `from` on.
    fn next_minute(&self, from: i64) -> Option<i64> {
        let (hour, minute) = (from / 60, from % 60);
        let later = self.minutes >> minute;
        if self.hours & (1 << hour) != 0 && later != 0 {
            return Some(from + i64::from(later.trailing_zeros()));
        }
        let hours = self.hours >> (hour + 1);
        (hours != 0).then(|| {
            let hour = hour + 1 + i64::from(hours.trailing_zeros());
            hour * 60 + i64::from(self.minutes.trailing_zeros())
        })
    }
}

impl Days {
    fn include(&self, date: Date) -> bool {
        let of_month = self.of_month & (1 << date.day()) != 0
            || (self.last_of_month && date.day() == date.days_in_month());
        let weekday = date.weekday().to_sunday_zero_offset().unsigned_abs();
        let nth = |(of, nth): &(u8, Nth)| {
            *of == weekday
                && match nth {
                    Nth::At(nth) => (date.day() - 1) / 7 + 1 == *nth,
                    Nth::Last => date.day() + 7 > date.days_in_month(),
                }
        };
        let of_week = self.of_week & (1 << weekday) != 0 || self.nth.iter().any(nth);
        if self.either { of_month || of_week } else { of_month && of_week }
    }
}

/// The date of a day counted from 1970-01-01.
fn date_of(day: i64) -> Option<Date> {
    let at = jiff::Timestamp::from_second(day.checked_mul(DAY_S)?).ok()?;
    Some(Offset::UTC.to_datetime(at).date())
}

fn read_days(text: &str, days: &mut Days) -> Result<(), ConfigError> {
    for item in text.split(',') {
        match item {
            "L" | "l" => days.last_of_month = true,
            "?" => days.of_month |= FIELDS[2].read("*")?,
            item => days.of_month |= FIELDS[2].read(item)?,
        }
    }
    Ok(())
}

fn read_weekdays(text: &str, days: &mut Days) -> Result<(), ConfigError> {
    let field = &FIELDS[4];
    for item in text.split(',') {
        if let Some((weekday, nth)) = item.split_once('#') {
            let refused = || field.wrong(item, "write for example 5#2, the second Friday of a month");
            let nth = nth.parse().ok().filter(|nth| (1..=5).contains(nth)).ok_or_else(refused)?;
            days.nth.push((field.value(weekday)? % 7, Nth::At(nth)));
        } else if let Some(weekday) = item.strip_suffix(['L', 'l']).filter(|weekday| !weekday.is_empty()) {
            days.nth.push((field.value(weekday)? % 7, Nth::Last));
        } else {
            let bits = field.read(if item == "?" { "*" } else { item })?;
            days.of_week |= (bits & 0x7F) | (bits >> 7 & 1);
        }
    }
    Ok(())
}

impl Field {
    /// A list as bits.
    fn read(&self, text: &str) -> Result<u64, ConfigError> {
        text.split(',').try_fold(0, |bits, item| Ok(bits | self.item(item)?))
    }

    fn item(&self, item: &str) -> Result<u64, ConfigError> {
        let (range, step) = match item.split_once('/') {
            Some((range, step)) => {
                let refused = || self.wrong(item, "a step is a whole number from 1");
                let step = step.parse::<u8>().ok().filter(|step| *step >= 1).ok_or_else(refused)?;
                (range, Some(step))
            }
            None => (item, None),
        };
        let (first, last) = if range == "*" {
            (self.min, self.max)
        } else if let Some((first, last)) = range.split_once('-') {
            (self.value(first)?, self.value(last)?)
        } else {
            let value = self.value(range)?;
            (value, if step.is_some() { self.max } else { value })
        };
        if first > last {
            return Err(self.wrong(item, "a range goes from the smaller to the larger value"));
        }
        let step = usize::from(step.unwrap_or(1));
        Ok((first..=last).step_by(step).fold(0, |bits, value| bits | 1 << value))
    }

    fn value(&self, text: &str) -> Result<u8, ConfigError> {
        let named = self.names.iter().position(|name| name.eq_ignore_ascii_case(text));
        let named = named.and_then(|at| u8::try_from(at).ok()).map(|at| at + self.min);
        let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
        let number = digits.then(|| text.parse().ok()).flatten();
        let value = named.or(number).filter(|value| (self.min..=self.max).contains(value));
        value.ok_or_else(|| {
            let names = match self.names {
                [first, .., last] => format!(", or {first} to {last}"),
                _ => String::new(),
            };
            self.wrong(text, &format!("give {} to {}{names}", self.min, self.max))
        })
    }

    fn wrong(&self, text: &str, remedy: &str) -> ConfigError {
        wrong(format!("{text:?} is no {}", self.name), remedy)
    }
}

fn wrong(problem: impl Into<String>, remedy: impl Into<String>) -> ConfigError {
    ConfigError::new("cron", problem, remedy)
}

#[cfg(test)]
#[path = "cron_tests.rs"]
mod tests;
