//! `[endpoint.reconcile]`: where to ask whether an effect happened, and how the answer is read. Row C10.

use posthaste_core::{DurationMs, LookUpVerdict};
use serde_json::Value;

use super::{ConfigError, EndpointSpec, ReconcileSpec, ToldBy, format_duration};

/// What stands for the job in the URL.
const PLACEHOLDERS: [&str; 3] = ["event_id", "key", "message_id"];

/// How an endpoint is asked whether an effect happened.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LookUpRecipe {
    parts: Vec<Part>,
    /// `GET` or `POST`.
    pub method: &'static str,
    /// After the last attempt's end, how long it may still act.
    pub settle: DurationMs,
    pointer: Option<String>,
    statuses: Vec<(u16, LookUpVerdict)>,
    words: Vec<(String, LookUpVerdict)>,
}

/// A part of the URL.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Part {
    Text(String),
    EventId,
    Key,
    MessageId,
}

/// What the URL's placeholders stand for.
#[derive(Clone, Copy, Debug)]
pub struct LookUpNames<'a> {
    /// `{event_id}`
    pub event_id: &'a str,
    /// `{key}`
    pub key: &'a str,
    /// `{message_id}`
    pub message_id: &'a str,
}

/// Where an endpoint's look-up of some job would be sent, so that it can be judged before there is one.
pub fn look_up_sample(spec: &EndpointSpec) -> Result<Option<String>, ConfigError> {
    let names = LookUpNames { event_id: "order:1:fan_17", key: "order:1", message_id: "msg_0" };
    let Some(reconcile) = &spec.reconcile else { return Ok(None) };
    Ok(Some(url_of(&parts(&reconcile.url)?, names)))
}

impl LookUpRecipe {
    /// Understands what is written. `timeout`: of the endpoint's deliveries.
    pub(super) fn understand(spec: &ReconcileSpec, timeout: DurationMs) -> Result<Self, ConfigError> {
        let method = match spec.method.as_deref() {
            None | Some("GET") => "GET",
            Some("POST") => "POST",
            Some(other) => {
                let problem = format!("{other:?} is no method of a look-up");
                return Err(ConfigError::new("reconcile.method", problem, "write \"GET\" or \"POST\""));
            }
        };
        let parts = parts(&spec.url)?;
        if method == "GET" && parts.iter().all(|part| matches!(part, Part::Text(_))) {
            return Err(ConfigError::new(
                "reconcile.url",
                "nothing in it says which effect is asked for",
                "put {event_id}, {key} or {message_id} into it",
            ));
        }
        if spec.settle.0 < timeout {
            let problem = format!(
                "{} is shorter than the timeout, {}: a request that was cut off may be at work for as long again",
                format_duration(spec.settle.0),
                format_duration(timeout)
            );
            let remedy = "give at least the timeout and the receiver's longest handling";
            return Err(ConfigError::new("reconcile.settle", problem, remedy));
        }
        if let Some(pointer) = spec.pointer.as_deref().filter(|pointer| !pointer.starts_with('/')) {
            let problem = format!("{pointer:?} is no JSON pointer");
            return Err(ConfigError::new("reconcile.pointer", problem, "write for example \"/state\""));
        }
        let (statuses, words) = told(spec)?;
        Ok(Self { parts, method, settle: spec.settle.0, pointer: spec.pointer.clone(), statuses, words })
    }

    /// The URL for one job, its names percent-encoded.
    pub fn url(&self, names: LookUpNames<'_>) -> String {
        url_of(&self.parts, names)
    }

    /// What an answer says. `whole`: the body is all that was sent.
    pub fn read(&self, status: u16, body: &[u8], whole: bool) -> LookUpVerdict {
        if let Some((_, verdict)) = self.statuses.iter().find(|(known, _)| *known == status) {
            return *verdict;
        }
        if !(200..300).contains(&status) || !whole {
            return LookUpVerdict::Unsure;
        }
        let word = self.pointer.as_deref().and_then(|pointer| {
            let body: Value = serde_json::from_slice(body).ok()?;
            match body.pointer(pointer)? {
                Value::String(text) => Some(text.clone()),
                scalar @ (Value::Bool(_) | Value::Number(_) | Value::Null) => Some(scalar.to_string()),
                Value::Array(_) | Value::Object(_) => None,
            }
        });
        let told = word.and_then(|word| self.words.iter().find(|(known, _)| *known == word));
        told.map_or(LookUpVerdict::Unsure, |(_, verdict)| *verdict)
    }
}

fn url_of(parts: &[Part], names: LookUpNames<'_>) -> String {
    parts.iter().fold(String::new(), |mut url, part| {
        match part {
            Part::Text(text) => url.push_str(text),
            Part::EventId => push_encoded(&mut url, names.event_id),
            Part::Key => push_encoded(&mut url, names.key),
            Part::MessageId => push_encoded(&mut url, names.message_id),
        }
        url
    })
}

/// Which statuses and words tell what.
#[allow(clippy::type_complexity)] // two plain lists
fn told(
    spec: &ReconcileSpec,
) -> Result<(Vec<(u16, LookUpVerdict)>, Vec<(String, LookUpVerdict)>), ConfigError> {
    use LookUpVerdict::{Absent, InProgress, Present};
    let lists = [
        ("present", &spec.present, Present),
        ("absent", &spec.absent, Absent),
        ("in_progress", &spec.in_progress, InProgress),
    ];
    if spec.pointer.is_none() && lists.iter().all(|(_, list, _)| list.is_empty()) {
        return Ok((vec![(200, Present), (404, Absent)], Vec::new()));
    }
    let (mut statuses, mut words) = (Vec::new(), Vec::new());
    for (name, list, verdict) in lists {
        let path = format!("reconcile.{name}");
        for told in list {
            let taken = match told {
                ToldBy::Status(status) if !(100..600).contains(status) => {
                    return Err(ConfigError::new(path, format!("{status} is no status"), "give 100 to 599"));
                }
                ToldBy::Status(status) => {
                    let taken = statuses.iter().any(|(known, _)| known == status);
                    statuses.push((*status, verdict));
                    taken
                }
                ToldBy::Word(_) if spec.pointer.is_none() => {
                    let remedy = "add pointer = \"/state\", or give statuses as numbers";
                    return Err(ConfigError::new(path, "nothing says where the word stands", remedy));
                }
                ToldBy::Word(word) => {
                    let taken = words.iter().any(|(known, _)| known == word);
                    words.push((word.clone(), verdict));
                    taken
                }
            };
            if taken {
                let remedy = "let each status and word mean one thing";
                return Err(ConfigError::new(path, format!("{told:?} is given twice"), remedy));
            }
        }
        if verdict != InProgress && list.is_empty() {
            let problem = "no answer would ever mean it, so that no job could be settled by it";
            return Err(ConfigError::new(path, problem, "give a status, or a word at `pointer`"));
        }
    }
    Ok((statuses, words))
}

/// Takes a URL apart. Placeholders stand behind the host, so that no key can choose who is asked.
fn parts(url: &str) -> Result<Vec<Part>, ConfigError> {
    let wrong = |problem: String| {
        let remedy = "write for example \"https://example.com/status?key={event_id}\"";
        Err(ConfigError::new("reconcile.url", problem, remedy))
    };
    let behind_scheme = url.find("://").map_or(0, |at| at + 3);
    let host_ends = url[behind_scheme..].find(['/', '?', '#']).map_or(url.len(), |at| behind_scheme + at);
    if url[..host_ends].contains('{') {
        return wrong("a placeholder stands before the path".to_owned());
    }
    let (mut parts, mut rest) = (Vec::new(), url);
    while let Some(at) = rest.find(['{', '}']) {
        let Some((name, after)) = rest[at..].strip_prefix('{').and_then(|rest| rest.split_once('}')) else {
            return wrong("its braces don't match".to_owned());
        };
        parts.push(Part::Text(rest[..at].to_owned()));
        parts.push(match name {
            "event_id" => Part::EventId,
            "key" => Part::Key,
            "message_id" => Part::MessageId,
            other => {
                let known = PLACEHOLDERS.join("}, {");
                let shown: String = other.chars().take(32).collect();
                return wrong(format!("{{{shown}}} is not known; there are {{{known}}}"));
            }
        });
        rest = after;
    }
    parts.push(Part::Text(rest.to_owned()));
    Ok(parts)
}

/// Everything but what RFC 3986 leaves as it is.
fn push_encoded(url: &mut String, text: &str) {
    for byte in text.bytes() {
        if byte.is_ascii_alphanumeric() || b"-._~".contains(&byte) {
            url.push(char::from(byte));
        } else {
            url.push('%');
            for digit in [byte >> 4, byte & 15] {
                let digit = char::from_digit(u32::from(digit), 16).expect("four bits are a digit");
                url.push(digit.to_ascii_uppercase());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recipe(spec: &str) -> Result<LookUpRecipe, String> {
        let spec: ReconcileSpec = serde_json::from_str(spec).unwrap();
        LookUpRecipe::understand(&spec, DurationMs::from_secs(15)).map_err(|error| error.to_string())
    }

    #[test]
    fn r_c10_names_are_encoded_and_can_not_choose_the_host() {
        let plain =
            recipe(r#"{"url":"https://x.example/s/{event_id}?k={key}&m={message_id}","settle":"2m"}"#)
                .unwrap();
        let names = LookUpNames { event_id: "a/b:c d", key: "100%&x", message_id: "msg_1" };
        assert_eq!("https://x.example/s/a%2Fb%3Ac%20d?k=100%25%26x&m=msg_1", plain.url(names));
        for url in [
            "https://{key}.example/",
            "https://{key}",
            "https://x/{id}",
            "https://x/{key",
            "https://x/key}",
            "https://x/",
        ] {
            let error = recipe(&format!(r#"{{"url":"{url}","settle":"2m"}}"#)).unwrap_err();
            assert!(error.starts_with("reconcile.url: "), "{url}: {error}");
        }
        assert!(
            recipe(r#"{"url":"https://x/","method":"POST","settle":"2m"}"#).is_ok(),
            "its body says which"
        );
    }

    #[test]
    fn r_c10_statuses_tell_and_everything_else_is_unsure() {
        use LookUpVerdict::*;
        let plain = recipe(r#"{"url":"https://x/{key}","settle":"2m"}"#).unwrap();
        for (status, verdict) in [
            (200, Present),
            (404, Absent),
            (202, Unsure),
            (204, Unsure),
            (302, Unsure),
            (401, Unsure),
            (500, Unsure),
        ] {
            assert_eq!(verdict, plain.read(status, b"", true), "{status}");
        }
        let own = recipe(
            r#"{"url":"https://x/{key}","settle":"2m","present":[200],"absent":[404,410],"in_progress":[202]}"#,
        )
        .unwrap();
        for (status, verdict) in [(200, Present), (410, Absent), (202, InProgress), (503, Unsure)] {
            assert_eq!(verdict, own.read(status, b"", true), "{status}");
        }
    }

    #[test]
    fn r_c10_a_word_in_the_answer_tells() {
        use LookUpVerdict::*;
        let own = recipe(
            r#"{"url":"https://x/{key}","settle":"2m","pointer":"/state","present":["done","true"],"absent":["none",404],"in_progress":["pending"]}"#,
        )
        .unwrap();
        for (status, body, verdict) in [
            (200, r#"{"state":"done"}"#, Present),
            (200, r#"{"state":true}"#, Present),
            (200, r#"{"state":"none"}"#, Absent),
            (200, r#"{"state":"pending"}"#, InProgress),
            (200, r#"{"state":"Done"}"#, Unsure),
            (200, r#"{"state":["done"]}"#, Unsure),
            (200, r#"{"other":"done"}"#, Unsure),
            (200, "done", Unsure),
            (200, "", Unsure),
            (500, r#"{"state":"done"}"#, Unsure),
            (404, "", Absent),
        ] {
            assert_eq!(verdict, own.read(status, body.as_bytes(), true), "{status} {body}");
        }
        assert_eq!(Unsure, own.read(200, br#"{"state":"done"}"#, false), "a body that was cut tells nothing");
    }

    #[test]
    fn r_c10_what_would_settle_nothing_or_too_soon_is_refused() {
        for (rest, path) in [
            (r#""settle":"5s""#, "reconcile.settle"),
            (r#""settle":"2m","present":[200]"#, "reconcile.absent"),
            (r#""settle":"2m","absent":[404]"#, "reconcile.present"),
            (r#""settle":"2m","pointer":"/s""#, "reconcile.present"),
            (r#""settle":"2m","pointer":"s","present":["a"],"absent":["b"]"#, "reconcile.pointer"),
            (r#""settle":"2m","present":["done"],"absent":[404]"#, "reconcile.present"),
            (r#""settle":"2m","present":[200],"absent":[200]"#, "reconcile.absent"),
            (r#""settle":"2m","present":[99],"absent":[404]"#, "reconcile.present"),
            (r#""settle":"2m","method":"PUT""#, "reconcile.method"),
        ] {
            let error = recipe(&format!(r#"{{"url":"https://x/{{key}}",{rest}}}"#)).unwrap_err();
            assert!(error.starts_with(&format!("{path}: ")), "{rest}: {error}");
        }
        assert!(serde_json::from_str::<ReconcileSpec>(r#"{"url":"https://x/{key}"}"#).is_err(), "no default");
    }
}
