//! Instants of the proleptic Gregorian calendar in UTC, as certificates and AWS write them.

/// A point in time as it is written.
pub(crate) struct Civil {
    pub(crate) year: i64,
    pub(crate) month: i64,
    pub(crate) day: i64,
    pub(crate) hour: i64,
    pub(crate) minute: i64,
    pub(crate) second: i64,
    pub(crate) ms: i64,
}

impl Civil {
    /// Milliseconds since 1970; `None` if there is no such day or time. Leap seconds are none.
    pub(crate) fn unix_ms(&self) -> Option<i64> {
        let leap = self.year % 4 == 0 && (self.year % 100 != 0 || self.year % 400 == 0);
        let days_of_month = match self.month {
            1 | 3 | 5 | 7 | 8 | 10 | 12 => 31,
            4 | 6 | 9 | 11 => 30,
            2 if leap => 29,
            2 => 28,
            _ => return None,
        };
        let within = |value: i64, first: i64, last: i64| (first..=last).contains(&value);
        let valid = within(self.year, 1, 9_999)
            && within(self.day, 1, days_of_month)
            && within(self.hour, 0, 23)
            && within(self.minute, 0, 59)
            && within(self.second, 0, 59)
            && within(self.ms, 0, 999);
        let seconds = self.days() * 86_400 + self.hour * 3_600 + self.minute * 60 + self.second;
        valid.then_some(seconds * 1_000 + self.ms)
    }

    /// Days since 1970-01-01. Years begin in March here, so that the leap day is the last.
    ///
    /// Source: <https://howardhinnant.github.io/date_algorithms.html#days_from_civil>.
    fn days(&self) -> i64 {
        let year = if self.month > 2 { self.year } else { self.year - 1 };
        let (era, year_of_era) = (year.div_euclid(400), year.rem_euclid(400));
        let day_of_year = (153 * ((self.month + 9) % 12) + 2) / 5 + self.day - 1;
        era * 146_097 + year_of_era * 365 + year_of_era / 4 - year_of_era / 100 + day_of_year - 719_468
    }
}

/// Reads `2012-04-25T21:49:25.719Z`, the one form that SNS writes.
pub(crate) fn read_rfc3339(text: &str) -> Option<i64> {
    let bytes = text.as_bytes();
    let signs = [(4, b'-'), (7, b'-'), (10, b'T'), (13, b':'), (16, b':'), (19, b'.'), (23, b'Z')];
    if bytes.len() != 24 || signs.iter().any(|&(at, sign)| bytes[at] != sign) {
        return None;
    }
    let civil = Civil {
        year: digits(&bytes[..4])?,
        month: digits(&bytes[5..7])?,
        day: digits(&bytes[8..10])?,
        hour: digits(&bytes[11..13])?,
        minute: digits(&bytes[14..16])?,
        second: digits(&bytes[17..19])?,
        ms: digits(&bytes[20..23])?,
    };
    civil.unix_ms()
}

/// A number of nothing but decimal digits; at most 18 of them.
pub(crate) fn digits(text: &[u8]) -> Option<i64> {
    if text.is_empty() || text.len() > 18 {
        return None;
    }
    text.iter().try_fold(0, |sum, byte| byte.is_ascii_digit().then(|| sum * 10 + i64::from(byte - b'0')))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instants_are_read_in_one_form_alone() {
        assert_eq!(read_rfc3339("2025-08-01T07:42:03.000Z"), Some(1_754_034_123_000));
        assert_eq!(read_rfc3339("1970-01-01T00:00:00.001Z"), Some(1));
        assert_eq!(read_rfc3339("2000-02-29T23:59:59.999Z"), Some(951_868_799_999));
        assert_eq!(read_rfc3339("1969-12-31T23:59:59.000Z"), Some(-1_000));
        for odd in [
            "",
            "2025-08-01T07:42:03Z",
            "2025-08-01T07:42:03.0000",
            "2025-08-01 07:42:03.000Z",
            "2025-08-01T07:42:03.000z",
            "2025-02-29T07:42:03.000Z",
            "1900-02-29T07:42:03.000Z",
            "2025-13-01T07:42:03.000Z",
            "2025-00-01T07:42:03.000Z",
            "2025-08-01T24:00:00.000Z",
            "2025-08-01T07:42:60.000Z",
            "+025-08-01T07:42:03.000Z",
            "2025-08-01T07:42:03.000+",
        ] {
            assert_eq!(read_rfc3339(odd), None, "{odd}");
        }
    }
}
