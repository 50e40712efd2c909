//! JSON bodies: read exactly, refused with the place, written without detours.

use axum::{
    body::Body,
    response::{IntoResponse as _, Response},
};
use http::{HeaderValue, StatusCode, header};
use posthaste_core::DurationMs;
use posthaste_engine::config::parse_duration;
use serde::{
    Deserialize, Deserializer, Serialize,
    de::{MapAccess, SeqAccess, Visitor},
};
use serde_json::{error::Category, value::RawValue};

use super::{Code, Problem};

/// An answer of `status` with `value` as JSON.
pub(crate) fn answer<T: Serialize + ?Sized>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(body) => {
            let mut response = Response::new(Body::from(body));
            *response.status_mut() = status;
            let json = HeaderValue::from_static("application/json");
            response.headers_mut().insert(header::CONTENT_TYPE, json);
            response
        }
        Err(error) => {
            tracing::error!(event = "request_failed", error = %error, "an answer could not be written");
            Problem::new(Code::Internal, Code::Internal.title()).into_response()
        }
    }
}

/// Reads an object.
///
/// The first pass is the fast one; only what it refuses is read again, to say where the fault is.
pub(crate) fn parse<'a, T: Deserialize<'a>>(bytes: &'a [u8]) -> Result<T, Problem> {
    // A sequence would be read as the fields in their order.
    let first = bytes.iter().find(|byte| !byte.is_ascii_whitespace());
    if matches!(first, Some(b'{')) {
        serde_json::from_slice(bytes).map_err(|error| explain::<T>(bytes, &error))
    } else {
        match serde_json::from_slice::<&RawValue>(bytes) {
            Ok(_) => Err(Problem::new(Code::InvalidType, "the body must be a JSON object")),
            Err(error) => Err(problem_of("", &error)),
        }
    }
}

fn explain<'a, T: Deserialize<'a>>(bytes: &'a [u8], error: &serde_json::Error) -> Problem {
    let mut deserializer = serde_json::Deserializer::from_slice(bytes);
    let problem = match serde_path_to_error::deserialize::<_, T>(&mut deserializer) {
        Err(error) => problem_of(&error.path().to_string(), error.inner()),
        Ok(_) => problem_of("", error),
    };
    // A number where a word is expected is called a fault of syntax; it is none.
    if problem.code() == Code::InvalidJson && serde_json::from_slice::<&RawValue>(bytes).is_ok() {
        return problem.of_type();
    }
    problem
}

fn problem_of(path: &str, error: &serde_json::Error) -> Problem {
    let text = error.to_string();
    let code = match error.classify() {
        Category::Io | Category::Syntax | Category::Eof => Code::InvalidJson,
        Category::Data if text.starts_with("unknown field") => Code::UnknownField,
        Category::Data if text.starts_with("missing field") => Code::MissingField,
        Category::Data if text.starts_with("duplicate field") => Code::DuplicateField,
        Category::Data if text.starts_with("invalid type") => Code::InvalidType,
        Category::Data => Code::InvalidValue,
    };
    let path = if path == "." { "" } else { path };
    let detail = if path.is_empty() { text } else { format!("`{path}`: {text}") };
    let problem = Problem::new(code, detail).with("line", error.line()).with("column", error.column());
    if path.is_empty() { problem } else { problem.with("path", path) }
}

/// For `deserialize_with`: a field that may be left out, whose `null` is a value.
pub(crate) fn present<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<&'de RawValue>, D::Error> {
    <&RawValue>::deserialize(deserializer).map(Some)
}

/// A duration as given. A bare number is read too, so that its refusal can say what is missing.
#[derive(Clone, Debug)]
pub(crate) struct GivenDuration(String);

impl GivenDuration {
    /// Errors: `invalid_duration`.
    pub(crate) fn read(&self, field: &'static str) -> Result<DurationMs, Problem> {
        parse_duration(&self.0).map_err(|error| {
            Problem::new(Code::InvalidDuration, format!("`{field}`: {error}")).with("path", field)
        })
    }
}

impl<'de> Deserialize<'de> for GivenDuration {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GivenDurationVisitor)
    }
}

struct GivenDurationVisitor;

impl Visitor<'_> for GivenDurationVisitor {
    type Value = GivenDuration;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("a duration such as \"30s\"")
    }

    fn visit_str<E>(self, text: &str) -> Result<GivenDuration, E> {
        Ok(GivenDuration(text.to_owned()))
    }

    fn visit_u64<E>(self, number: u64) -> Result<GivenDuration, E> {
        Ok(GivenDuration(number.to_string()))
    }

    fn visit_i64<E>(self, number: i64) -> Result<GivenDuration, E> {
        Ok(GivenDuration(number.to_string()))
    }

    fn visit_f64<E>(self, number: f64) -> Result<GivenDuration, E> {
        Ok(GivenDuration(number.to_string()))
    }
}

/// Any JSON that common parsers take: read as they would, and thrown away as it comes.
pub(crate) struct Readable;

impl<'de> Deserialize<'de> for Readable {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(ReadableVisitor)
    }
}

struct ReadableVisitor;

impl<'de> Visitor<'de> for ReadableVisitor {
    type Value = Readable;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("JSON")
    }

    fn visit_unit<E>(self) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_bool<E>(self, _: bool) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_u64<E>(self, _: u64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_i64<E>(self, _: i64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_f64<E>(self, _: f64) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_str<E>(self, _: &str) -> Result<Readable, E> {
        Ok(Readable)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut items: A) -> Result<Readable, A::Error> {
        while items.next_element::<Readable>()?.is_some() {}
        Ok(Readable)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Readable, A::Error> {
        while members.next_entry::<Readable, Readable>()?.is_some() {}
        Ok(Readable)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_readable_is_what_becomes_a_value() {
        let deep = |depth: usize| format!("{}{}", "[".repeat(depth), "]".repeat(depth));
        for text in [
            "null",
            "[1,-2,3.5e3,true,\"\\u00e9\"]",
            r#"{"a":{"b":[]},"a":1}"#,
            "1e308",
            "1e400",
            "-1e400",
            "18446744073709551616",
            "-0",
            r#""\ud800""#,
            r#""\ud83d\ude00""#,
            "\"\u{0}\"",
            r#"{"a"}"#,
            "[1,]",
            "01",
            "\"\u{7f}é\"",
            "nul",
            "[1] 2",
            &deep(127),
            &deep(128),
        ] {
            let value = serde_json::from_str::<serde_json::Value>(text).is_ok();
            assert_eq!(value, serde_json::from_str::<Readable>(text).is_ok(), "{text}");
        }
        let bytes = b"\"\xff\"";
        assert!(serde_json::from_slice::<Readable>(bytes).is_err(), "a string is UTF-8");
    }

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Sample<'a> {
        name: String,
        count: Option<u8>,
        #[serde(borrow, default, deserialize_with = "present")]
        value: Option<&'a RawValue>,
        delay: Option<GivenDuration>,
    }

    fn refused(text: &str) -> (Code, String) {
        let problem = parse::<Sample<'_>>(text.as_bytes()).unwrap_err();
        (problem.code(), problem.detail().to_owned())
    }

    #[test]
    fn a_value_is_kept_as_it_is_written() {
        for value in ["null", "1e400", "[1, 2 ]", r#"{"a":1,"a":2}"#, r#""\ud800\u0000""#] {
            let text = format!(r#"{{"name":"n","value": {value} }}"#);
            assert_eq!(value, parse::<Sample<'_>>(text.as_bytes()).unwrap().value.unwrap().get());
        }
        assert!(parse::<Sample<'_>>(br#"{"name":"n"}"#).unwrap().value.is_none());
    }

    #[test]
    fn refusals_name_the_place_and_the_fault() {
        for (text, code, part) in [
            ("", Code::InvalidJson, "line 1 column 0"),
            ("{", Code::InvalidJson, "line 1 column 1"),
            ("{\n\"name\":tru}", Code::InvalidJson, "line 2"),
            (r#"{"name":"n"} x"#, Code::InvalidJson, "trailing"),
            (r#"["n",1]"#, Code::InvalidType, "object"),
            ("7", Code::InvalidType, "object"),
            (r#"{"name":"n","nam":1}"#, Code::UnknownField, "`nam`"),
            (r#"{"count":1}"#, Code::MissingField, "`name`"),
            (r#"{"name":"n","name":"m"}"#, Code::DuplicateField, "`name`"),
            (r#"{"name":"n","count":"1"}"#, Code::InvalidType, "`count`"),
            (r#"{"name":"n","count":256}"#, Code::InvalidValue, "`count`"),
            (r#"{"name":"n","delay":[]}"#, Code::InvalidType, "duration"),
        ] {
            let (found, detail) = refused(text);
            assert_eq!(code, found, "{text}: {detail}");
            assert!(detail.contains(part), "{text}: {detail}");
        }
    }

    #[test]
    fn a_bare_number_is_a_duration_without_a_unit() {
        for (text, part) in [("30", "has no unit"), ("-5", "is negative"), ("\"1e9s\"", "is no duration")] {
            let text = format!(r#"{{"name":"n","delay":{text}}}"#);
            let given = parse::<Sample<'_>>(text.as_bytes()).unwrap().delay.unwrap();
            let problem = given.read("delay").unwrap_err();
            assert_eq!(Code::InvalidDuration, problem.code());
            assert!(problem.detail().contains(part), "{}", problem.detail());
        }
    }
}
