//! `Retry-After` in every shape, and how it meets our own backoff. Field cases B17, B19.

use crate::stage::{Fault, OWN_DELAY_MS, Stage, again};

const DAY_MS: i64 = 86_400_000;

/// Our own delay, with at most a tenth of jitter, added.
fn is_own(wait_ms: i64) -> bool {
    (OWN_DELAY_MS..=OWN_DELAY_MS + OWN_DELAY_MS / 10).contains(&wait_ms)
}

/// What was asked for, with jitter that only adds.
fn is_asked(wait_ms: i64, asked_ms: i64) -> bool {
    (asked_ms..=asked_ms + 10_000).contains(&wait_ms)
}

#[test]
fn case_b17_retry_after_numbers_of_every_shape() {
    let own = [
        "0",
        "120",
        "00120",
        "-5",
        "+3",
        "1.5",
        "299.997",
        "inf",
        "Infinity",
        "nan",
        "1e3",
        "1e400",
        "0x10",
        "12abc",
        "1,5",
        "7",
        "",
        "\u{661}\u{662}",
        "soon",
        "-99999999999999999999",
        "1e30",
    ];
    let capped = [
        "2147483648",
        "9999999999",
        "18446744073709551616",
        "99999999999999999999",
        "1000000000000000000000000000000",
    ];
    let asked = [("7200", 7_200_000), (" 3600 ", 3_600_000)];
    let header = |value: &str| format!("retry-after: {value}\r\n");
    let mut faults = Vec::new();
    for (index, value) in own.iter().enumerate() {
        faults.push(Fault::answer(format!("own-{index}"), 503, &header(value), ""));
    }
    for (index, value) in capped.iter().enumerate() {
        faults.push(Fault::answer(format!("capped-{index}"), 503, &header(value), ""));
    }
    for (index, (value, _)) in asked.iter().enumerate() {
        faults.push(Fault::answer(format!("asked-{index}"), 503, &header(value), ""));
    }
    let (past, future) = ("Sun, 06 Nov 1994 08:49:37 GMT", "Fri, 31 Dec 9999 23:59:59 GMT");
    faults.push(Fault::answer("past", 503, &header(past), ""));
    faults.push(Fault::answer("future", 503, &header(future), ""));
    faults.push(Fault::answer("two-lines", 503, &format!("{}{}", header("5"), header("60")), ""));
    let stage = Stage::play(faults);
    for (index, value) in own.iter().enumerate() {
        let wait = stage.wait_ms(&format!("own-{index}"));
        assert!(is_own(wait), "{value:?} never shortens our own backoff: {wait} ms");
    }
    for (index, value) in capped.iter().enumerate() {
        let id = format!("capped-{index}");
        assert!(is_asked(stage.wait_ms(&id), DAY_MS), "{value} is the ceiling: {} ms", stage.wait_ms(&id));
        stage.check(&id, &again("throttled", "none", Some(503)));
    }
    for (index, (value, asked)) in asked.iter().enumerate() {
        let wait = stage.wait_ms(&format!("asked-{index}"));
        assert!(is_asked(wait, *asked), "{value:?}: {wait} ms");
    }
    assert!(is_own(stage.wait_ms("past")));
    assert!(is_asked(stage.wait_ms("future"), DAY_MS));
    assert!(is_own(stage.wait_ms("two-lines")));
    // What is no Retry-After leaves 503 what it is without one: perhaps done.
    stage.check("own-3", &again("server_error", "possible", Some(503)));
    stage.check("own-0", &again("throttled", "none", Some(503)));
}

#[test]
fn case_b19_when_the_header_counts_and_how_it_meets_our_backoff() {
    let retried = [("s429", 429), ("s503", 503), ("s500", 500), ("s301", 301), ("s404", 404)];
    let mut faults: Vec<Fault> =
        retried.iter().map(|(id, status)| Fault::answer(*id, *status, "retry-after: 7200\r\n", "")).collect();
    faults.push(Fault::answer("short", 503, "retry-after: 2\r\n", ""));
    faults.push(Fault::answer("day", 503, "retry-after: 86400\r\n", ""));
    faults.push(Fault::answer("s413", 413, "retry-after: 60\r\n", ""));
    faults.push(Fault::answer("s200", 200, "retry-after: 60\r\n", ""));
    faults.push(Fault::answer("s202", 202, "retry-after: 60\r\n", ""));
    let stage = Stage::play(faults);
    for (id, _) in retried {
        let wait = stage.wait_ms(id);
        assert!(is_asked(wait, 7_200_000), "{id}: {wait} ms");
    }
    assert!(is_own(stage.wait_ms("short")), "the longer of both");
    assert!(is_asked(stage.wait_ms("day"), DAY_MS));
    assert_eq!(
        "dead_lettered",
        stage.job("s413")["state"],
        "a permanent refusal is not retried for a header"
    );
    for taken in ["s200", "s202"] {
        assert_eq!("committed", stage.job(taken)["state"], "ignored on 2xx");
    }
    // A throttled endpoint's whole lane waits: what comes after is not thrown at it.
    stage.server.cli(&["publish", "--key", "hostile:2", "--endpoint", "s429"]);
    let job = &stage.server.json(&["timeline", "hostile:2"])["jobs"][0];
    assert_eq!(("scheduled", 0), (job["state"].as_str().unwrap(), job["attempts"].as_array().unwrap().len()));
    assert_eq!(1, stage.receiver.hits("s429"));
}
