//! What cron expressions mean, and what they refuse.

use super::*;

/// Seconds of a local time such as `2026-03-29T02:30`.
fn local(text: &str) -> i64 {
    let time: jiff::civil::DateTime = format!("{text}:00").parse().unwrap();
    Offset::UTC.to_timestamp(time).unwrap().as_second()
}

fn shown(seconds: i64) -> String {
    let at = jiff::Timestamp::from_second(seconds).unwrap();
    Offset::UTC.to_datetime(at).to_string()[..16].to_owned()
}

/// The first `count` matches after the beginning of `from`.
fn matches(text: &str, from: &str, count: usize) -> Vec<String> {
    let cron = Cron::parse(text).unwrap();
    let mut at = local(from);
    let mut found = Vec::new();
    while found.len() < count {
        let Some(next) = cron.next_local(at, i64::MAX) else { break };
        found.push(shown(next));
        at = next + 1;
    }
    found
}

#[test]
fn r_b14_every_kind_of_field_matches_what_it_says() {
    for (text, from, expected) in [
        ("30 2 * * *", "2026-01-01T00:00", vec!["2026-01-01T02:30", "2026-01-02T02:30"]),
        ("30 2 * * *", "2026-01-01T02:30", vec!["2026-01-01T02:30"]),
        ("30 2 * * *", "2026-01-01T02:31", vec!["2026-01-02T02:30"]),
        ("*/20 * * * *", "2026-01-01T23:21", vec!["2026-01-01T23:40", "2026-01-02T00:00"]),
        ("5-59/20 * * * *", "2026-01-01T00:00", vec!["2026-01-01T00:05", "2026-01-01T00:25"]),
        ("10/25 * * * *", "2026-01-01T00:11", vec!["2026-01-01T00:35", "2026-01-01T01:10"]),
        (
            "0,30 8-9 * * *",
            "2026-01-01T08:31",
            vec!["2026-01-01T09:00", "2026-01-01T09:30", "2026-01-02T08:00"],
        ),
        ("0 0 1 */3 *", "2026-01-02T00:00", vec!["2026-04-01T00:00", "2026-07-01T00:00"]),
        ("0 0 1 feb,Apr *", "2026-01-02T00:00", vec!["2026-02-01T00:00", "2026-04-01T00:00"]),
        ("0 9 * * MON-FRI", "2026-01-02T10:00", vec!["2026-01-05T09:00", "2026-01-06T09:00"]),
        ("0 9 * * 7", "2026-01-01T00:00", vec!["2026-01-04T09:00"]),
        ("0 9 * * 0", "2026-01-01T00:00", vec!["2026-01-04T09:00"]),
        ("0 9 * * 5-7", "2026-01-01T00:00", vec!["2026-01-02T09:00", "2026-01-03T09:00", "2026-01-04T09:00"]),
        ("0 0 L * *", "2028-01-31T00:01", vec!["2028-02-29T00:00", "2028-03-31T00:00"]),
        ("0 0 * * 5#2", "2026-01-01T00:00", vec!["2026-01-09T00:00", "2026-02-13T00:00"]),
        ("0 0 * * friL", "2026-01-01T00:00", vec!["2026-01-30T00:00", "2026-02-27T00:00"]),
        ("0 0 31 * *", "2026-02-01T00:00", vec!["2026-03-31T00:00", "2026-05-31T00:00"]),
        ("0 0 29 2 *", "2096-03-01T00:00", vec!["2104-02-29T00:00"]),
        ("@daily", "2026-01-01T00:01", vec!["2026-01-02T00:00"]),
        ("@Weekly", "2026-01-01T00:01", vec!["2026-01-04T00:00"]),
    ] {
        assert_eq!(expected, matches(text, from, expected.len()), "{text} from {from}");
    }
}

#[test]
fn r_b14_two_restricted_days_are_alternatives_and_a_star_is_no_restriction() {
    let either = matches("0 0 13 * 5", "2026-01-01T00:00", 3);
    assert_eq!(vec!["2026-01-02T00:00", "2026-01-09T00:00", "2026-01-13T00:00"], either);
    let both = matches("0 0 13 * *", "2026-01-01T00:00", 1);
    assert_eq!(vec!["2026-01-13T00:00"], both);
    let stepped = matches("0 0 */2 * 1", "2026-01-01T00:00", 1);
    assert_eq!(vec!["2026-01-05T00:00"], stepped, "an odd Monday");
    let asked = matches("0 0 ? * 5", "2026-01-01T00:00", 1);
    assert_eq!(vec!["2026-01-02T00:00"], asked);
}

#[test]
fn r_b14_what_never_comes_is_found_out() {
    for text in ["0 0 30 2 *", "0 0 31 4,6,9,11 *"] {
        assert!(matches(text, "2026-01-01T00:00", 1).is_empty(), "{text}");
    }
    let cron = Cron::parse("0 0 * * *").unwrap();
    assert_eq!(None, cron.next_local(local("2026-01-01T00:01"), local("2026-01-02T00:00")));
    assert!(cron.next_local(local("2026-01-01T00:01"), local("2026-01-02T00:01")).is_some());
}

#[test]
fn r_b14_a_wrong_expression_says_which_field_and_what_would_be_right() {
    for (text, says) in [
        ("", "cron: 0 fields are given; give five"),
        ("* * * *", "cron: 4 fields are given; give five"),
        ("0 0 0 * * *", "seconds and years are not supported"),
        ("60 * * * *", "\"60\" is no minute; give 0 to 59"),
        ("-1 * * * *", "\"\" is no minute"),
        ("+1 * * * *", "\"+1\" is no minute"),
        ("* 24 * * *", "\"24\" is no hour; give 0 to 23"),
        ("* * 0 * *", "\"0\" is no day of the month; give 1 to 31"),
        ("* * * 13 *", "\"13\" is no month; give 1 to 12, or JAN to DEC"),
        ("* * * * 8", "\"8\" is no day of the week; give 0 to 7, or SUN to SAT"),
        ("* * * * 5#6", "\"5#6\" is no day of the week; write for example 5#2"),
        ("*/0 * * * *", "a step is a whole number from 1"),
        ("*/x * * * *", "a step is a whole number from 1"),
        ("30-10 * * * *", "a range goes from the smaller to the larger value"),
        ("1,,2 * * * *", "\"\" is no minute"),
        ("@reboot", "\"@reboot\" is not known; write @yearly"),
    ] {
        let error = Cron::parse(text).unwrap_err().to_string();
        assert!(error.contains(says), "{text}: {error}");
    }
}
