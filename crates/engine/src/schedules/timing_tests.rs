//! When schedules fire, through changes of the clock. Row B14.

use super::*;

fn timing(cron: &str, zone: &str) -> Timing {
    Timing::parse(cron, Some(zone)).unwrap()
}

fn instant(text: &str) -> Timestamp {
    Timestamp(text.parse::<Instant>().unwrap().as_millisecond())
}

/// Firings after `from` and up to `until`, in UTC without what is always the same.
fn firings(timing: &Timing, from: &str, until: &str) -> Vec<String> {
    let (mut at, until) = (instant(from), instant(until));
    let mut found = Vec::new();
    while let Some(next) = timing.next_after(at).filter(|next| *next <= until) {
        assert!(next > at, "{next:?} after {at:?}");
        found.push(rfc3339(next)[5..16].to_owned());
        at = next;
    }
    found
}

/// Instants at which whole quarters of an hour begin, in UTC.
fn quarters(from: &str, until: &str) -> usize {
    let (from, until) = (instant(from).0, instant(until).0);
    usize::try_from(until / 900_000 - from / 900_000).unwrap()
}

#[test]
fn r_b14_berlin_in_spring_a_missing_time_fires_once_after_the_gap() {
    // 01:00Z: 02:00 becomes 03:00.
    let (from, until) = ("2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z");
    let zone = "Europe/Berlin";
    for (cron, expected) in [
        ("30 2 * * *", vec!["03-29T01:00", "03-30T00:30"]),
        ("0 2 * * *", vec!["03-29T01:00", "03-30T00:00"]),
        ("59 1 * * *", vec!["03-29T00:59", "03-29T23:59"]),
        ("0 3 * * *", vec!["03-29T01:00", "03-30T01:00"]),
        // Of several in the gap one is left, and it is the one that comes anyway.
        ("0,20,40 2 * * *", vec!["03-29T01:00", "03-30T00:00", "03-30T00:20", "03-30T00:40"]),
        ("30 2,3 * * *", vec!["03-29T01:00", "03-29T01:30", "03-30T00:30", "03-30T01:30"]),
        ("*/30 2 * * *", vec!["03-29T01:00", "03-30T00:00", "03-30T00:30"]),
        ("0 2 29 3 *", vec!["03-29T01:00"]),
    ] {
        assert_eq!(expected, firings(&timing(cron, zone), from, until), "{cron}");
    }
}

#[test]
fn r_b14_berlin_in_autumn_a_time_that_comes_twice_fires_the_first_time() {
    // 01:00Z: 03:00 becomes 02:00.
    let (from, until) = ("2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z");
    let zone = "Europe/Berlin";
    for (cron, expected) in [
        ("30 2 * * *", vec!["10-25T00:30", "10-26T01:30"]),
        ("0 2 * * *", vec!["10-25T00:00", "10-26T01:00"]),
        ("0 3 * * *", vec!["10-25T02:00", "10-26T02:00"]),
        ("0,30 2 * * *", vec!["10-25T00:00", "10-25T00:30", "10-26T01:00", "10-26T01:30"]),
        // A rhythm within some hours fires both times.
        (
            "*/30 2 * * *",
            vec!["10-25T00:00", "10-25T00:30", "10-25T01:00", "10-25T01:30", "10-26T01:00", "10-26T01:30"],
        ),
    ] {
        assert_eq!(expected, firings(&timing(cron, zone), from, until), "{cron}");
    }
}

#[test]
fn r_b14_new_york_at_both_changes() {
    let zone = "America/New_York";
    // 2026-03-08T07:00Z: 02:00 becomes 03:00.
    let spring = ("2026-03-07T12:00:00Z", "2026-03-09T12:00:00Z");
    assert_eq!(vec!["03-08T07:00", "03-09T06:30"], firings(&timing("30 2 * * *", zone), spring.0, spring.1));
    assert_eq!(vec!["03-08T06:30", "03-09T05:30"], firings(&timing("30 1 * * *", zone), spring.0, spring.1));
    // 2026-11-01T06:00Z: 02:00 becomes 01:00.
    let autumn = ("2026-10-31T12:00:00Z", "2026-11-02T12:00:00Z");
    assert_eq!(vec!["11-01T05:30", "11-02T06:30"], firings(&timing("30 1 * * *", zone), autumn.0, autumn.1));
    assert_eq!(vec!["11-01T07:30", "11-02T07:30"], firings(&timing("30 2 * * *", zone), autumn.0, autumn.1));
}

#[test]
fn r_b14_lord_howe_shifts_by_half_an_hour() {
    let zone = "Australia/Lord_Howe";
    // 2026-04-04T15:00Z: 02:00 becomes 01:30.
    let autumn = ("2026-04-03T20:00:00Z", "2026-04-05T20:00:00Z");
    assert_eq!(vec!["04-04T14:45", "04-05T15:15"], firings(&timing("45 1 * * *", zone), autumn.0, autumn.1));
    assert_eq!(vec!["04-04T14:15", "04-05T14:45"], firings(&timing("15 1 * * *", zone), autumn.0, autumn.1));
    // 2026-10-03T15:30Z: 02:00 becomes 02:30.
    let spring = ("2026-10-02T20:00:00Z", "2026-10-04T20:00:00Z");
    assert_eq!(vec!["10-03T15:30", "10-04T15:15"], firings(&timing("15 2 * * *", zone), spring.0, spring.1));
    assert_eq!(vec!["10-03T15:45", "10-04T15:45"], firings(&timing("45 2 * * *", zone), spring.0, spring.1));
}

#[test]
fn r_b14_rhythms_go_by_elapsed_time_at_every_change() {
    for (zone, from, until) in [
        ("Europe/Berlin", "2026-03-28T12:00:00Z", "2026-03-30T12:00:00Z"),
        ("Europe/Berlin", "2026-10-24T12:00:00Z", "2026-10-26T12:00:00Z"),
        ("America/New_York", "2026-03-07T12:00:00Z", "2026-03-09T12:00:00Z"),
        ("America/New_York", "2026-10-31T12:00:00Z", "2026-11-02T12:00:00Z"),
        ("Australia/Lord_Howe", "2026-04-03T20:00:00Z", "2026-04-05T20:00:00Z"),
        ("Australia/Lord_Howe", "2026-10-02T20:00:00Z", "2026-10-04T20:00:00Z"),
    ] {
        let found = firings(&timing("*/15 * * * *", zone), from, until);
        assert_eq!(quarters(from, until), found.len(), "{zone} from {from}");
        let distinct: std::collections::BTreeSet<_> = found.iter().collect();
        assert_eq!(found.len(), distinct.len());
        // Times that don't begin with an hour, once an hour: nothing is made up for in the gap.
        if zone != "Australia/Lord_Howe" {
            let hourly = firings(&timing("7 * * * *", zone), from, until);
            assert_eq!(48, hourly.len(), "{zone} from {from}");
            assert!(hourly.iter().all(|at| at.ends_with(":07")), "{hourly:?}");
        }
    }
}

#[test]
fn r_b14_going_on_from_any_instant_finds_the_same_firings() {
    // As after a restart: nothing but the instant is known.
    let (from, until) = ("2026-10-24T22:00:00Z", "2026-10-25T03:00:00Z");
    for cron in ["30 2 * * *", "*/15 * * * *", "*/30 2 * * *", "0 3 * * *"] {
        let timing = timing(cron, "Europe/Berlin");
        let whole = firings(&timing, from, until);
        let (mut at, mut found) = (instant(from).0, std::collections::BTreeSet::new());
        while at < instant(until).0 {
            let next = timing.next_after(Timestamp(at)).unwrap();
            if next <= instant(until) {
                found.insert(rfc3339(next)[5..16].to_owned());
            }
            at += 61_000;
        }
        assert_eq!(whole, found.into_iter().collect::<Vec<_>>(), "{cron}");
    }
}

#[test]
fn r_b14_a_place_that_leaves_out_a_day_fires_at_its_end() {
    // Apia had no 30 December 2011.
    let found =
        firings(&timing("0 12 30 * *", "Pacific/Apia"), "2011-12-01T00:00:00Z", "2012-01-15T00:00:00Z");
    assert_eq!(vec!["12-30T10:00"], found);
}

#[test]
fn r_b14_intervals_are_counted_from_1970() {
    let timing = Timing::parse("@every 15m", None).unwrap();
    let (from, until) = ("2026-03-29T00:50:00Z", "2026-03-29T01:30:00Z");
    assert_eq!(vec!["03-29T01:00", "03-29T01:15", "03-29T01:30"], firings(&timing, from, until));
    assert_eq!(Some(Timestamp(0)), timing.next_after(Timestamp(-1)));
    assert_eq!(None, timing.next_after(limits::TIMESTAMP_MAX));
}

#[test]
fn r_b14_what_cannot_be_is_refused_with_what_could() {
    for (cron, zone, says) in [
        ("0 0 30 2 *", None, "cron: \"0 0 30 2 *\" never comes: no month has such a day"),
        ("@every 15m", Some("Europe/Berlin"), "timezone: an interval knows no time zone"),
        ("@every 30s", None, "cron: the interval \"30s\" is out of range; write @every and 1m to 366d"),
        ("@every", None, "cron: a duration must not be empty"),
        ("@every 5", None, "has no unit"),
        ("@every 400d", None, "is out of range"),
        (
            "0 0 * * *",
            Some("Berlin"),
            "timezone: \"Berlin\" is no time zone that is known; give a name of the IANA database",
        ),
        ("0 0 * * *", Some("UTC+1"), "is no time zone that is known"),
        ("0 0 * * *", Some("../../etc/passwd"), "is no time zone that is known"),
        ("0 0 * * *", Some(""), "is no time zone that is known"),
    ] {
        let error = Timing::parse(cron, zone).unwrap_err().to_string();
        assert!(error.contains(says), "{cron} {zone:?}: {error}");
    }
    let long = format!("{} * * * *", "1,".repeat(200));
    assert!(Timing::parse(&long, None).unwrap_err().to_string().contains("give at most 256"));
}

#[test]
fn r_b14_an_instant_is_shown_as_the_place_has_it() {
    let timing = timing("30 2 * * *", "Europe/Berlin");
    let at = timing.next_after(instant("2026-03-28T12:00:00Z")).unwrap();
    assert_eq!("2026-03-29T03:00:00+02:00[Europe/Berlin]", timing.local(at));
    assert_eq!("2026-03-29T01:00:00.000Z", rfc3339(at));
}

#[test]
fn case_b36_each_local_day_has_one_firing_and_each_quarter_of_an_hour_one() {
    for (zone, from, until) in [
        ("Europe/Berlin", "2026-03-27T12:00:00Z", "2026-04-02T12:00:00Z"),
        ("Europe/Berlin", "2026-10-22T12:00:00Z", "2026-10-28T12:00:00Z"),
        ("America/New_York", "2026-03-05T12:00:00Z", "2026-03-11T12:00:00Z"),
        ("America/New_York", "2026-10-29T12:00:00Z", "2026-11-04T12:00:00Z"),
    ] {
        for cron in ["0 10 * * *", "30 2 * * *", "30 1 * * *", "0 0 * * *"] {
            assert_eq!(6, firings(&timing(cron, zone), from, until).len(), "{cron} in {zone}");
        }
        assert_eq!(6 * 96, firings(&timing("*/15 * * * *", zone), from, until).len(), "{zone}");
    }
    for zone in ["utc+2", "Europe/Berlim", "CEST", "+02:00", "local"] {
        assert!(Timing::parse("0 10 * * *", Some(zone)).is_err(), "{zone}");
    }
    assert!(Timing::parse("0 10 * * *", Some("Europe/Kyiv")).is_ok());
}
