//! Query strings. A parameter that is not known is refused, so that a typo can't widen a list.

use http::Uri;
use posthaste_core::{MessageKey, limits};

use super::{Code, Problem};

/// The parameters of one request.
#[derive(Debug)]
pub(crate) struct Query(Vec<(String, String)>);

impl Query {
    /// Reads the query of `uri`; only `allowed` names may stand in it, each once.
    ///
    /// A `+` is a plus sign: nothing that travels here holds a space, and keys may hold a plus.
    pub(crate) fn parse(uri: &Uri, allowed: &[&str]) -> Result<Self, Problem> {
        let mut parameters: Vec<(String, String)> = Vec::new();
        let text = uri.query().unwrap_or("");
        for part in text.split('&').filter(|part| !part.is_empty()) {
            let (name, value) = part.split_once('=').unwrap_or((part, ""));
            let (name, value) = (decode("the query", name)?, decode(name, value)?);
            if !allowed.contains(&name.as_str()) {
                let known = allowed.join("`, `");
                let problem = format!("{name:?} is not known here; known are `{known}`");
                return Err(Problem::new(Code::UnknownParameter, problem).with("path", name));
            }
            if parameters.iter().any(|(known, _)| *known == name) {
                let problem = format!("`{name}` is given twice");
                return Err(Problem::new(Code::InvalidParameter, problem).with("path", name));
            }
            parameters.push((name, value));
        }
        Ok(Self(parameters))
    }

    /// The value of `name`, if it is given and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.given(name).filter(|value| !value.is_empty())
    }

    fn given(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    /// The value of `name`, read by `read`.
    pub(crate) fn read<T>(
        &self,
        name: &'static str,
        expected: &str,
        read: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, Problem> {
        let Some(value) = self.get(name) else { return Ok(None) };
        let problem = || {
            let text = format!("`{name}`: {value:?} is not valid; give {expected}");
            Problem::new(Code::InvalidParameter, text).with("path", name)
        };
        read(value).map(Some).ok_or_else(problem)
    }

    /// The rows of a page: `limit`, or the default.
    pub(crate) fn limit(&self) -> Result<usize, Problem> {
        let expected = format!("1 to {}", limits::PAGE_MAX);
        let read = |text: &str| text.parse().ok().filter(|limit| (1..=limits::PAGE_MAX).contains(limit));
        Ok(self.read("limit", &expected, read)?.unwrap_or(limits::PAGE_DEFAULT))
    }

    /// The message key in `key`.
    pub(crate) fn key(&self) -> Result<MessageKey, Problem> {
        let text = self
            .given("key")
            .ok_or_else(|| Problem::new(Code::MissingKey, "give the key as ?key=, percent-encoded"))?;
        message_key(text)
    }
}

/// Checks a message key.
pub(crate) fn message_key(text: &str) -> Result<MessageKey, Problem> {
    MessageKey::new(text)
        .map_err(|error| Problem::new(Code::InvalidName, format!("`key`: {error}")).with("path", "key"))
}

/// Percent-decodes; a `%` that starts no escape stands for itself, as browsers have it.
fn decode(name: &str, text: &str) -> Result<String, Problem> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        match (first, after) {
            (b'%', [high, low, after @ ..]) if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                bytes.push(hex_digit(*high) << 4 | hex_digit(*low));
                rest = after;
            }
            _ => {
                bytes.push(*first);
                rest = after;
            }
        }
    }
    String::from_utf8(bytes)
        .map_err(|_| Problem::new(Code::InvalidParameter, format!("`{name}`: the value is not UTF-8")))
}

fn hex_digit(digit: u8) -> u8 {
    char::from(digit).to_digit(16).and_then(|value| u8::try_from(value).ok()).expect("it was checked")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn parse(query: &str) -> Result<Query, Problem> {
        Query::parse(&format!("/x?{query}").parse().unwrap(), &["key", "limit"])
    }

    #[test]
    fn keys_travel_percent_encoded() {
        for (query, key) in [
            ("key=a%2Fb%3Fc%23d%2520", "a/b?c#d%20"),
            ("key=a/b?c", "a/b?c"),
            ("key=a%26b%3Dc%2B", "a&b=c+"),
            ("key=a+b", "a+b"),
            ("key=a=b", "a=b"),
            ("key=100%", "100%"),
            ("key=%zz", "%zz"),
        ] {
            assert_eq!(key, parse(query).unwrap().key().unwrap().as_str());
        }
    }

    #[test]
    fn unknown_repeated_and_malformed_parameters_are_refused() {
        let code = |query: &str| parse(query).and_then(|query| query.limit().map(|_| ()));
        for (query, expected) in [
            ("kye=a", Code::UnknownParameter),
            ("key=a&key=b", Code::InvalidParameter),
            ("key=%ff", Code::InvalidParameter),
            ("limit=0", Code::InvalidParameter),
            ("limit=501", Code::InvalidParameter),
            ("limit=-1", Code::InvalidParameter),
        ] {
            assert_eq!(expected, code(query).unwrap_err().code(), "{query}");
        }
        assert_eq!(Code::MissingKey, parse("limit=5").unwrap().key().unwrap_err().code());
        assert_eq!(Code::InvalidName, parse("key=").unwrap().key().unwrap_err().code());
        assert_eq!(50, parse("key=a&").unwrap().limit().unwrap());
    }
}
