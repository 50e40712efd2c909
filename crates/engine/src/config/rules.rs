//! How a source derives keys and types from a request. Row A8.

use posthaste_core::MessageKey;
use serde_json::Value;

use super::ConfigError;

const KEY_REMEDY: &str = "write \"scheme\", \"header:NAME\", \"json:/POINTER\" or \"hash:json:/a,json:/b\"";
const TYPE_REMEDY: &str = "write \"scheme\", \"header:NAME\" or \"json:/POINTER\"";

/// Keys of what a source quarantined begin so, after the source's name.
pub(crate) const QUARANTINE_PREFIX: &str = "quarantine:";

/// How a key is derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KeyRule {
    /// The scheme's own delivery id.
    Scheme,
    /// A header, by its name in lower case.
    Header(String),
    /// A string or number in the body, by JSON pointer (RFC 6901).
    Json(String),
    /// A hash of named fields, length-delimited, so that no two lists of values run together.
    Hash(Vec<String>),
}

/// How an event type is derived.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TypeRule {
    /// The scheme's own event type.
    Scheme,
    /// A header, by its name in lower case.
    Header(String),
    /// A string in the body, by JSON pointer.
    Json(String),
}

/// What a rule looks at.
#[derive(Clone, Copy)]
pub(crate) struct Derivation<'a> {
    /// What the scheme's headers tell.
    pub(crate) scheme: Option<&'a str>,
    /// The request's headers.
    pub(crate) headers: &'a [(&'a str, &'a [u8])],
    /// The body as JSON, if it is.
    pub(crate) body: Option<&'a Value>,
}

impl KeyRule {
    /// Reads a rule.
    pub fn parse(path: &str, text: &str) -> Result<Self, ConfigError> {
        if text == "scheme" {
            return Ok(Self::Scheme);
        }
        if let Some(name) = text.strip_prefix("header:") {
            return header(path, name).map(Self::Header);
        }
        if let Some(pointer) = text.strip_prefix("json:") {
            return self::pointer(path, pointer).map(Self::Json);
        }
        if let Some(list) = text.strip_prefix("hash:") {
            let fields = list.split(',').map(|field| match field.trim().strip_prefix("json:") {
                Some(pointer) => self::pointer(path, pointer),
                None => Err(ConfigError::new(path, format!("{field:?} is no field of a hash"), KEY_REMEDY)),
            });
            return fields.collect::<Result<_, _>>().map(Self::Hash);
        }
        Err(ConfigError::new(path, format!("{text:?} is no rule for a key"), KEY_REMEDY))
    }

    /// Whether the rule reads the body.
    pub fn needs_body(&self) -> bool {
        matches!(self, Self::Json(_) | Self::Hash(_))
    }

    /// The key's part that the provider gives, if the request has it.
    pub(crate) fn derive(&self, from: Derivation<'_>) -> Option<String> {
        match self {
            Self::Scheme => from.scheme.map(str::to_owned),
            Self::Header(name) => find_header(from.headers, name).map(str::to_owned),
            Self::Json(pointer) => scalar(from.body?.pointer(pointer)?),
            Self::Hash(pointers) => {
                let body = from.body?;
                let mut context = aws_lc_rs::digest::Context::new(&aws_lc_rs::digest::SHA256);
                for pointer in pointers {
                    let value = scalar(body.pointer(pointer)?)?;
                    let length = u64::try_from(value.len()).unwrap_or(u64::MAX);
                    context.update(&length.to_be_bytes());
                    context.update(value.as_bytes());
                }
                Some(hex(context.finish().as_ref()))
            }
        }
    }
}

impl TypeRule {
    /// Reads a rule.
    pub fn parse(path: &str, text: &str) -> Result<Self, ConfigError> {
        if text == "scheme" {
            return Ok(Self::Scheme);
        }
        if let Some(name) = text.strip_prefix("header:") {
            return header(path, name).map(Self::Header);
        }
        if let Some(pointer) = text.strip_prefix("json:") {
            return self::pointer(path, pointer).map(Self::Json);
        }
        Err(ConfigError::new(path, format!("{text:?} is no rule for a type"), TYPE_REMEDY))
    }

    /// Whether the rule reads the body.
    pub fn needs_body(&self) -> bool {
        matches!(self, Self::Json(_))
    }

    pub(crate) fn derive(&self, from: Derivation<'_>) -> Option<String> {
        match self {
            Self::Scheme => from.scheme.map(str::to_owned),
            Self::Header(name) => find_header(from.headers, name).map(str::to_owned),
            Self::Json(pointer) => from.body?.pointer(pointer)?.as_str().map(str::to_owned),
        }
    }
}

/// A key of `source`, namespaced. What can't stand in a key is percent-encoded; what is too long is hashed.
pub(crate) fn namespaced(source: &str, provider_key: &str) -> Option<MessageKey> {
    if provider_key.is_empty() {
        return None;
    }
    let mut key = format!("{source}:");
    // What looks like the name of something quarantined must not be one.
    let looks_quarantined = provider_key.starts_with(QUARANTINE_PREFIX);
    for (at, byte) in provider_key.bytes().enumerate() {
        if byte.is_ascii_graphic() && byte != b'%' && !(looks_quarantined && at == 0) {
            key.push(char::from(byte));
        } else {
            key.push('%');
            key.push_str(&hex(&[byte]).to_uppercase());
        }
    }
    MessageKey::new(&key).ok().or_else(|| {
        let digest = aws_lc_rs::digest::digest(&aws_lc_rs::digest::SHA256, provider_key.as_bytes());
        MessageKey::new(&format!("{source}:sha256:{}", hex(digest.as_ref()))).ok()
    })
}

pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::with_capacity(bytes.len() * 2), |mut text, byte| {
        for digit in [byte >> 4, byte & 15] {
            text.push(char::from_digit(u32::from(digit), 16).expect("four bits are a digit"));
        }
        text
    })
}

fn header(path: &str, name: &str) -> Result<String, ConfigError> {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte);
    if name.is_empty() || !name.bytes().all(fits) {
        return Err(ConfigError::new(path, format!("{name:?} is no header's name"), KEY_REMEDY));
    }
    Ok(name.to_ascii_lowercase())
}

fn pointer(path: &str, pointer: &str) -> Result<String, ConfigError> {
    if !pointer.starts_with('/') {
        let problem = format!("{pointer:?} is no JSON pointer");
        return Err(ConfigError::new(
            path,
            problem,
            "a pointer starts with `/`, for example \"json:/data/id\"",
        ));
    }
    Ok(pointer.to_owned())
}

fn find_header<'a>(headers: &[(&str, &'a [u8])], name: &str) -> Option<&'a str> {
    let (_, value) = headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    let text = std::str::from_utf8(value).ok()?.trim();
    (!text.is_empty()).then_some(text)
}

/// A text, or a whole number of at most 64 bits. Any other number has been rounded by now: two ids could be one.
fn scalar(value: &Value) -> Option<String> {
    match value {
        Value::String(text) if !text.is_empty() => Some(text.clone()),
        Value::Number(number) if number.is_i64() || number.is_u64() => Some(number.to_string()),
        Value::String(_)
        | Value::Number(_)
        | Value::Null
        | Value::Bool(_)
        | Value::Array(_)
        | Value::Object(_) => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn derive(rule: &str, body: &str) -> Option<String> {
        let body: Value = serde_json::from_str(body).unwrap();
        let headers: [(&str, &[u8]); 2] = [("X-Id", b" 17 "), ("X-Empty", b" ")];
        let from = Derivation { scheme: Some("d-1"), headers: &headers, body: Some(&body) };
        KeyRule::parse("key", rule).unwrap().derive(from)
    }

    #[test]
    fn r_a8_a_key_comes_from_where_the_rule_says() {
        assert_eq!(Some("d-1".to_owned()), derive("scheme", "{}"));
        assert_eq!(Some("17".to_owned()), derive("header:x-id", "{}"));
        assert_eq!(None, derive("header:x-empty", "{}"));
        assert_eq!(None, derive("header:x-other", "{}"));
        assert_eq!(Some("e1".to_owned()), derive("json:/id", r#"{"id":"e1"}"#));
        assert_eq!(Some("7".to_owned()), derive("json:/a/b", r#"{"a":{"b":7}}"#));
        assert_eq!(
            Some("18446744073709551615".to_owned()),
            derive("json:/id", r#"{"id":18446744073709551615}"#)
        );
        for rounded in ["18446744073709551616", "12345678901234567890123", "1.0", "-0", "1e3"] {
            assert_eq!(None, derive("json:/id", &format!("{{\"id\":{rounded}}}")), "{rounded}");
        }
        for body in [r#"{"id":""}"#, r#"{"id":null}"#, r#"{"id":{}}"#, "{}", "[]", "7"] {
            assert_eq!(None, derive("json:/id", body), "{body}");
        }
    }

    #[test]
    fn r_a8_hashed_fields_do_not_run_together() {
        let rule = "hash:json:/a,json:/b";
        let one = derive(rule, r#"{"a":"ab","b":"c"}"#).unwrap();
        assert_eq!(64, one.len());
        assert_ne!(one, derive(rule, r#"{"a":"a","b":"bc"}"#).unwrap());
        assert_eq!(one, derive(rule, r#"{"b":"c","z":1,"a":"ab"}"#).unwrap());
        assert_eq!(None, derive(rule, r#"{"a":"ab"}"#));
    }

    #[test]
    fn r_a8_keys_are_namespaced_by_their_source() {
        assert_eq!("gh:17", namespaced("gh", "17").unwrap().as_str());
        assert_eq!("gh:a%20b%25%C3%A9", namespaced("gh", "a b%é").unwrap().as_str());
        assert_eq!(None, namespaced("gh", ""));
        assert_eq!("gh:%71uarantine:17", namespaced("gh", "quarantine:17").unwrap().as_str());
        let long = namespaced("gh", &"x".repeat(300)).unwrap();
        assert!(long.as_str().starts_with("gh:sha256:"), "{long}");
        assert_ne!(long, namespaced("gh", &"x".repeat(301)).unwrap());
    }

    #[test]
    fn malformed_rules_say_what_would_be_right() {
        for text in ["", "id", "json:id", "header:", "header:a b", "hash:/a", "hash:", "body:/a"] {
            let error = KeyRule::parse("key", text).unwrap_err().to_string();
            assert!(error.starts_with("key: "), "{error}");
        }
        assert!(TypeRule::parse("type", "hash:json:/a").is_err());
    }
}
