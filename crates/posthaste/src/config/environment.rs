//! Environment variables as a layer: `POSTHASTE_SECTION__KEY`.

use super::{
    document::{Document, Origin},
    fault::{Fault, Place, suggestion},
    settings::{Kind, SETTINGS},
};

const PREFIX: &str = "POSTHASTE_";

/// Variables that are read elsewhere.
const ELSEWHERE: &[&str] = &["CONFIG", "URL", "API_KEY", "TENANT", "BOOTSTRAP_KEY"];

/// What the variables hold, one document each, in the order of the settings; and those that nobody knows.
///
/// A name with `__` or close to a setting's is taken for a mistake; any other is somebody else's (a secret that a
/// reference names, what Kubernetes sets for a service called `posthaste`) and is left alone.
pub(super) fn documents(variables: &[(String, String)]) -> (Vec<Document>, Vec<Fault>) {
    let ours = variables.iter().filter_map(|(name, value)| Some((name, name.strip_prefix(PREFIX)?, value)));
    let mut documents = Vec::new();
    let mut faults = Vec::new();
    for (name, rest, value) in ours {
        match SETTINGS.iter().find(|(path, _)| variable(path) == rest) {
            Some((path, kind)) => {
                documents.push(Document {
                    origin: Origin::Variable(name.clone()),
                    text: toml(path, *kind, value),
                });
            }
            None if ELSEWHERE.contains(&rest) => {}
            None => faults.extend(mistake(name, rest)),
        }
    }
    (documents, faults)
}

/// `outbound.private_networks` → `OUTBOUND__PRIVATE_NETWORKS`.
fn variable(path: &str) -> String {
    path.replace('.', "__").to_ascii_uppercase()
}

fn mistake(name: &str, rest: &str) -> Option<Fault> {
    let known: Vec<String> = SETTINGS.iter().map(|(path, _)| variable(path)).collect();
    let known: Vec<&str> = known.iter().map(String::as_str).chain(ELSEWHERE.iter().copied()).collect();
    let near = known.iter().any(|known| strsim::damerau_levenshtein(rest, known) <= 2.min(rest.len() / 4));
    (near || rest.contains("__")).then(|| Fault {
        place: Place::Variable(name.to_owned()),
        path: String::new(),
        problem: "there is no such setting".to_owned(),
        remedy: suggestion(rest, &known).replace("did you mean `", "did you mean `POSTHASTE_"),
        excerpt: None,
    })
}

/// The variable as a line of TOML, so that both are read alike.
fn toml(path: &str, kind: Kind, value: &str) -> String {
    let value = match kind {
        Kind::Text => quoted(value),
        Kind::Plain | Kind::Tables => value.to_owned(),
        Kind::List if value.trim_start().starts_with('[') => value.to_owned(),
        Kind::List => {
            let items = value.split(',').map(str::trim).filter(|item| !item.is_empty()).map(quoted);
            format!("[{}]", items.collect::<Vec<_>>().join(", "))
        }
    };
    format!("{path} = {value}")
}

/// `text` as a basic string of TOML.
pub(super) fn quoted(text: &str) -> String {
    let mut quoted = String::from("\"");
    for character in text.chars() {
        match character {
            '"' | '\\' => quoted.extend(['\\', character]),
            character if character.is_control() => {
                let escape = format!("\\u{:04X}", u32::from(character));
                quoted.push_str(&escape);
            }
            character => quoted.push(character),
        }
    }
    quoted.push('"');
    quoted
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(pairs: &[(&str, &str)]) -> (Vec<String>, Vec<String>) {
        let pairs: Vec<_> =
            pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let (documents, faults) = documents(&pairs);
        (
            documents.into_iter().map(|document| document.text).collect(),
            faults.iter().map(Fault::to_string).collect(),
        )
    }

    #[test]
    fn r_g2_every_setting_has_a_variable() {
        let (texts, faults) = of(&[
            ("POSTHASTE_LISTEN", "127.0.0.1:0"),
            ("POSTHASTE_OUTBOUND__PRIVATE_NETWORKS", "127.0.0.0/8, ::1/128"),
            ("POSTHASTE_LIMITS__DELIVERIES_MAX", "7"),
            ("POSTHASTE_MASTER_KEY", "a\"b\\c\n"),
            ("POSTHASTE_URL", "x"),
            ("OTHER", "x"),
        ]);
        assert_eq!(
            [
                "listen = \"127.0.0.1:0\"",
                "outbound.private_networks = [\"127.0.0.0/8\", \"::1/128\"]",
                "limits.deliveries_max = 7",
                "master_key = \"a\\\"b\\\\c\\u000A\"",
            ],
            *texts
        );
        assert!(faults.is_empty(), "{faults:?}");
    }

    #[test]
    fn r_g2_a_misspelled_variable_is_a_fault_and_somebody_elses_is_not() {
        let (_, faults) = of(&[
            ("POSTHASTE_LISTN", "x"),
            ("POSTHASTE_OUTBOUND__PRIVAT_NETWORKS", "x"),
            ("POSTHASTE_PORT_8484_TCP", "tcp://10.0.0.1:8484"),
            ("POSTHASTE_SERVICE_HOST", "10.0.0.1"),
            ("POSTHASTE_STRIPE_SECRET", "whsec_x"),
        ]);
        assert_eq!(
            [
                "environment variable POSTHASTE_LISTN: there is no such setting; did you mean `POSTHASTE_LISTEN`?",
                "environment variable POSTHASTE_OUTBOUND__PRIVAT_NETWORKS: there is no such setting; did you mean \
                 `POSTHASTE_OUTBOUND__PRIVATE_NETWORKS`?",
            ],
            *faults
        );
    }
}
