//! `[endpoint.classify]`, `[queue.classify]`: what a destination says otherwise than the classification. Row B4.

use std::collections::BTreeMap;

use posthaste_core::{Class, ClassRule, Disposition, Effect, RuleOf, limits};

use super::{ClassifySpec, ConfigError};

/// What the destination's failures carry.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Carries {
    /// An HTTP status, where there was an answer.
    Statuses,
    /// A class alone: a worker's report.
    Classes,
}

/// The words of what follows, as they are written.
const FOLLOWS: [(&str, Disposition); 5] = [
    ("retry", Disposition::Retry),
    ("in_progress", Disposition::InProgress),
    ("permanent", Disposition::PermanentMessage),
    ("permanent_destination", Disposition::PermanentDestination),
    ("gone", Disposition::Gone),
];

/// Understands the rules of `place`, for example `endpoint[fan_17]`.
pub(super) fn rules(
    place: &str,
    spec: &BTreeMap<String, ClassifySpec>,
    carries: Carries,
) -> Result<Vec<ClassRule>, ConfigError> {
    if spec.len() > limits::CLASS_RULES_MAX {
        let remedy = format!("give at most {}", limits::CLASS_RULES_MAX);
        return Err(ConfigError::new("classify", format!("{} rules are given", spec.len()), remedy));
    }
    spec.iter().map(|(of, says)| rule(place, of, says, carries)).collect()
}

fn rule(place: &str, of: &str, says: &ClassifySpec, carries: Carries) -> Result<ClassRule, ConfigError> {
    let path = format!("classify.{of}");
    let (word, effect) = match says {
        ClassifySpec::Word(word) => (word, None),
        ClassifySpec::Table(table) => (&table.follows, table.effect.as_deref()),
    };
    let follows = FOLLOWS.iter().find(|(known, _)| known == word).map(|(_, follows)| *follows);
    let follows = follows.ok_or_else(|| {
        let known: Vec<&str> = FOLLOWS.iter().map(|(word, _)| *word).collect();
        let remedy = format!("write one of {}", known.join(", "));
        ConfigError::new(path.as_str(), format!("{word:?} is nothing that could follow"), remedy)
    })?;
    let effect = match effect {
        None => None,
        Some("none") => Some(Effect::None),
        Some("possible") => Some(Effect::Possible),
        Some(other) => {
            let problem = format!("{other:?} is no effect that a failure can have");
            return Err(ConfigError::new(path, problem, "write effect = \"none\" or \"possible\""));
        }
    };
    let shown = match effect {
        Some(effect) => format!("{place}.classify {of} = {word}, effect {effect}"),
        None => format!("{place}.classify {of} = {word}"),
    };
    Ok(ClassRule { of: rule_of(&path, of, carries)?, follows, effect, line: shown.into() })
}

/// `404`, `5xx` or a class.
fn rule_of(path: &str, of: &str, carries: Carries) -> Result<RuleOf, ConfigError> {
    let wrong = |problem: &str| {
        let remedy = match carries {
            Carries::Statuses => "write a status (\"404\"), a range (\"5xx\") or a class (\"timeout\")",
            Carries::Classes => "write a class, for example \"timeout\": see `posthaste classes`",
        };
        Err(ConfigError::new(path, problem, remedy))
    };
    let digits = of.len() == 3 && of.bytes().all(|byte| byte.is_ascii_digit());
    let range = of.strip_suffix("xx").filter(|first| first.len() == 1).and_then(|first| first.parse().ok());
    let statuses = match (digits, range) {
        (true, _) => of.parse().ok().map(|status: u16| (status, status)),
        (false, Some(hundred @ 0..=9_u16)) => Some((hundred * 100, hundred * 100 + 99)),
        (false, _) => None,
    };
    match (statuses, Class::parse(of)) {
        (Some(_), _) if carries == Carries::Classes => wrong("workers report classes, not statuses"),
        (Some((200..=299, _)), _) => wrong("a 2xx is taken, whatever its body says"),
        (Some((from, to)), _) => Ok(RuleOf::Statuses(from, to)),
        (None, Some(Class::LeaseLost)) => wrong("lost leases have a budget and `on_unknown` of their own"),
        (None, Some(class)) => Ok(RuleOf::Class(class)),
        (None, None) => wrong("this is no status and no class"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn understand(of: &str, says: &str, carries: Carries) -> Result<String, String> {
        let spec: ClassifySpec = serde_json::from_str(says).unwrap();
        let spec = BTreeMap::from([(of.to_owned(), spec)]);
        let rules = rules("endpoint[fan_17]", &spec, carries).map_err(|error| error.to_string())?;
        let rule = &rules[0];
        Ok(format!("{:?} {} {:?}: {}", rule.of, rule.follows, rule.effect, rule.line))
    }

    #[test]
    fn r_b4_rules_are_written_by_status_range_or_class() {
        let statuses = Carries::Statuses;
        for (of, says, carries, expected) in [
            (
                "404",
                "\"permanent\"",
                statuses,
                "Statuses(404, 404) permanent_message None: endpoint[fan_17].classify 404 = permanent",
            ),
            (
                "5xx",
                "{\"follows\":\"retry\",\"effect\":\"none\"}",
                statuses,
                "Statuses(500, 599) retry Some(None): endpoint[fan_17].classify 5xx = retry, effect none",
            ),
            ("dns", "\"gone\"", statuses, "Class(Dns) gone None: endpoint[fan_17].classify dns = gone"),
            (
                "client_error",
                "\"retry\"",
                Carries::Classes,
                "Class(ClientError) retry None: endpoint[fan_17].classify client_error = retry",
            ),
        ] {
            assert_eq!(expected, understand(of, says, carries).unwrap());
        }
    }

    #[test]
    fn r_b4_rules_that_can_not_be_meant_are_refused_by_name() {
        for (of, says, carries) in [
            ("200", "\"retry\"", Carries::Statuses),
            ("2xx", "\"permanent\"", Carries::Statuses),
            ("lease_lost", "\"retry\"", Carries::Statuses),
            ("40x", "\"retry\"", Carries::Statuses),
            ("04", "\"retry\"", Carries::Statuses),
            ("", "\"retry\"", Carries::Statuses),
            ("404", "\"dead\"", Carries::Statuses),
            ("404", "{\"follows\":\"retry\",\"effect\":\"confirmed\"}", Carries::Statuses),
            ("404", "\"retry\"", Carries::Classes),
        ] {
            let error = understand(of, says, carries).unwrap_err();
            assert!(error.starts_with(&format!("classify.{of}: ")), "{error}");
        }
        assert!(serde_json::from_str::<ClassifySpec>("{\"folows\":\"retry\"}").is_err());
    }
}
