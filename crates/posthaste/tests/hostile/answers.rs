//! Answers of every status, and redirects. Field cases B20, B22.

use crate::stage::{Fault, Stage, again, given_up, taken};

/// Every status of the field case, as its receiver says it.
const STATUSES: [u16; 43] = [
    200, 201, 202, 204, 205, 206, 226, 299, 304, 400, 401, 402, 403, 404, 405, 406, 408, 409, 410, 411, 413,
    414, 415, 416, 417, 418, 421, 422, 423, 425, 426, 428, 429, 431, 451, 499, 500, 501, 502, 503, 504, 520,
    599,
];

#[test]
fn case_b22_what_counts_as_success_retry_or_final() {
    let mut faults: Vec<Fault> =
        STATUSES.iter().map(|status| Fault::answer(format!("s{status}"), *status, "", "")).collect();
    // 200 with an error in its body is 200.
    faults.push(Fault::answer("ok-false", 200, "", "{\"ok\":false,\"error\":\"x\"}"));
    for (id, status) in [("s600", 600), ("s999", 999)] {
        faults.push(Fault::answer(id, status, "", ""));
    }
    let stage = Stage::play(faults);
    stage.check("ok-false", &taken(200));
    for status in STATUSES {
        let code = Some(u64::from(status));
        let expected = match status {
            200..=299 => taken(u64::from(status)),
            300..=399 => again("redirect", "none", code),
            408 => again("timeout", "none", code),
            409 => again("in_progress", "none", code),
            429 => again("throttled", "none", code),
            400 | 401 | 403 | 406 | 410 | 411 | 413..=417 | 422 | 431 => given_up(u64::from(status)),
            402..=499 => again("client_error", "none", code),
            _ => again("server_error", "possible", code),
        };
        stage.check(&format!("s{status}"), &expected);
    }
    stage.check("s600", &again("protocol", "possible", Some(600)));
    stage.check("s999", &again("protocol", "possible", Some(999)));
    assert_eq!("endpoint_gone", stage.job("s410")["cause"]);
    assert_eq!("permanent", stage.job("s400")["cause"]);
}

#[test]
fn case_b20_redirects_are_failures_and_no_hop_is_followed() {
    let locations = [
        ("s301", 301, "location: /final\r\n"),
        ("s302", 302, "location: /final?token=secret\r\n"),
        ("s303", 303, "location: /final\r\n"),
        ("s307", 307, "location: /final\r\n"),
        ("s308", 308, "location: //other.test/\r\n"),
        ("s300", 300, "location: final\r\n"),
        ("s304", 304, ""),
        ("loop", 301, "location: /loop\r\n"),
    ];
    let faults =
        locations.iter().map(|(id, status, location)| Fault::answer(*id, *status, location, "")).collect();
    let stage = Stage::play(faults);
    for (id, status, location) in locations {
        stage.check(id, &again("redirect", "none", Some(status.into())));
        assert_eq!(1, stage.receiver.hits(id), "{id} was asked once");
        let shown = stage.attempt(id)["message"].as_str().unwrap();
        assert!(shown.contains("not followed") && !shown.contains("secret"), "{id}: {shown}");
        assert!(location.is_empty() || shown.starts_with("points to "), "{id}: {shown}");
    }
    assert_eq!(0, stage.receiver.hits("final"), "nobody went there");
}
