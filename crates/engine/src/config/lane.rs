//! What an endpoint says of its rate and circuit.

use posthaste_core::{DurationMs, LaneRules, Rate};

use super::{
    ConfigError, EndpointSpec,
    compile::{bounded, from_one},
};

/// The units of a rate.
const UNITS: [(&str, DurationMs); 3] =
    [("s", DurationMs::from_secs(1)), ("m", DurationMs::from_mins(1)), ("h", DurationMs::from_hours(1))];

const SECOND: DurationMs = DurationMs::from_secs(1);
const DAY: DurationMs = DurationMs::from_hours(24);
const YEAR: DurationMs = DurationMs::from_hours(365 * 24);

/// How the endpoint's receiver is treated.
pub(super) fn lane_rules(spec: &EndpointSpec) -> Result<LaneRules, ConfigError> {
    let standard = LaneRules::STANDARD;
    let rate = spec.rate.as_deref().map(rate).transpose()?;
    let Some(circuit) = &spec.circuit else { return Ok(LaneRules { rate, ..standard }) };
    let open_for = circuit.open_for.map_or(standard.open_for, |text| text.0);
    bounded("circuit.open_for", open_for, SECOND, DAY)?;
    let open_for_max = circuit.open_for_max.map_or(standard.open_for_max.max(open_for), |text| text.0);
    bounded("circuit.open_for_max", open_for_max, open_for, DAY)?;
    let disable_after = circuit.disable_after.map_or(standard.disable_after, |text| text.0);
    bounded("circuit.disable_after", disable_after, SECOND, YEAR)?;
    let failures = circuit.failures.unwrap_or(standard.failures_to_open);
    Ok(LaneRules {
        rate,
        failures_to_open: from_one("circuit.failures", failures)?,
        open_for,
        open_for_max,
        disable_after,
        ..standard
    })
}

/// Reads `50/s`, `600/m` or `1000/h`.
fn rate(text: &str) -> Result<Rate, ConfigError> {
    let wrong = || {
        let remedy =
            "write a number from 1 to 1,000,000 and a unit, for example \"50/s\", \"600/m\" or \"1000/h\"";
        ConfigError::new("rate", format!("{text:?} is no rate"), remedy)
    };
    let (number, unit) = text.split_once('/').ok_or_else(wrong)?;
    let digits = !number.is_empty() && number.bytes().all(|byte| byte.is_ascii_digit());
    let attempts: u32 = number.parse().ok().filter(|_| digits).ok_or_else(wrong)?;
    let (_, per) = UNITS.into_iter().find(|(known, _)| *known == unit).ok_or_else(wrong)?;
    Rate::new(attempts, per).filter(|_| attempts <= 1_000_000).ok_or_else(wrong)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_d4_a_rate_is_a_number_and_a_unit() {
        for (text, attempts, per) in [
            ("50/s", 50, 1_000),
            ("1/h", 1, 3_600_000),
            ("600/m", 600, 60_000),
            ("1000000/s", 1_000_000, 1_000),
        ] {
            let rate = rate(text).unwrap();
            assert_eq!((attempts, DurationMs(per)), (rate.attempts(), rate.per()), "{text}");
        }
        for text in
            ["", "50", "/s", "0/s", "-1/s", "+5/s", "1.5/s", "50/d", "50/S", "50 /s", "1000001/s", "5/s/s"]
        {
            let error = rate(text).unwrap_err();
            assert!(error.to_string().contains("50/s"), "{text}: {error}");
        }
    }
}
