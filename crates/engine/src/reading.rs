//! What a request says by its source's rules: names, type, headers that are kept. Rows A7, A8.

use posthaste_core::{MessageKey, limits};
use posthaste_receiver::Scheme;
use posthaste_store::KeyKind;
use serde_json::Value;

use crate::{
    config::{Derivation, KeyRule, Source, namespaced as namespaced_key},
    decoding::{DecodeError, decode, is_identity},
    intake::{IntakeError, IntakeRequest},
    publish::check_type,
};

/// What the scheme's headers tell, once they are believed.
#[derive(Clone, Debug, Default)]
pub(crate) struct SchemeFacts {
    pub(crate) delivery_id: Option<String>,
    pub(crate) event_type: Option<String>,
}

/// A request that is known to be genuine.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Genuine<'a> {
    /// As it came; one that is replayed has the headers that were kept.
    pub(crate) request: &'a IntakeRequest<'a>,
    /// What its scheme tells.
    pub(crate) facts: &'a SchemeFacts,
    /// The unpacked body, if it is compressed and was unpacked.
    pub(crate) decoded: Option<&'a [u8]>,
}

/// Whether the body is read: for its key or type, or to hold it against a schema.
pub(crate) fn looks_into_body(source: &Source) -> bool {
    let by_scheme = source.scheme() == Some(Scheme::Stripe);
    by_scheme
        || source.schema.is_some()
        || source.key.needs_body()
        || source.event_type.needs_body()
        || source.aliases.iter().any(KeyRule::needs_body)
}

/// The unpacked body, if it is compressed.
pub(crate) fn unpacked(source: &Source, request: &IntakeRequest<'_>) -> Result<Option<Vec<u8>>, IntakeError> {
    let Some(encoding) = header(request, "content-encoding").filter(|text| !is_identity(text)) else {
        return Ok(None);
    };
    match decode(encoding, &request.body, source.body_limit) {
        Ok(decoded) => Ok(Some(decoded)),
        Err(DecodeError::Unsupported) => Err(IntakeError::UnsupportedEncoding),
        Err(DecodeError::Malformed) => Err(IntakeError::MalformedEncoding),
        Err(DecodeError::TooLarge) => Err(IntakeError::TooLargeDecoded { max: source.body_limit }),
    }
}

/// Ids and types that a provider's documentation puts into the body: Stripe's event `id` and `type`.
fn from_body<'a>(scheme: Option<Scheme>, body: Option<&'a Value>, field: &str) -> Option<&'a str> {
    (scheme == Some(Scheme::Stripe)).then(|| body?.get(field)?.as_str()).flatten()
}

/// The message's key by the source's rules, and its other names.
pub(crate) fn names(
    source: &Source,
    genuine: Genuine<'_>,
    body: Option<&Value>,
) -> Option<(MessageKey, Vec<(KeyKind, MessageKey)>)> {
    let (scheme, request) = (source.scheme(), genuine.request);
    let own = genuine.facts.delivery_id.as_deref();
    let by_scheme = own.or_else(|| from_body(scheme, body, "id"));
    let from = Derivation { scheme: by_scheme, headers: request.headers, body };
    let namespaced = |text: &str| namespaced_key(source.id.as_str(), text);
    let rules = std::iter::once(&source.key).chain(&source.aliases);
    // The first rule that finds something gives the key; what the others find are its other names.
    let key = rules.clone().find_map(|rule| namespaced(&rule.derive(from)?))?;
    let mut aliases: Vec<(KeyKind, MessageKey)> = Vec::new();
    let mut claim = |kind, name: Option<MessageKey>| {
        if let Some(name) = name
            && name != key
            && !aliases.iter().any(|(_, known)| *known == name)
            && aliases.len() < limits::ALIASES_MAX
        {
            aliases.push((kind, name));
        }
    };
    claim(KeyKind::Delivery, own.and_then(namespaced));
    claim(KeyKind::Provider, from_body(scheme, body, "id").and_then(namespaced));
    for rule in rules {
        claim(KeyKind::Alias, rule.derive(from).as_deref().and_then(namespaced));
    }
    Some((key, aliases))
}

/// The event type by the source's rule.
pub(crate) fn event_type(source: &Source, genuine: Genuine<'_>, body: Option<&Value>) -> Option<Box<str>> {
    let (scheme, request) = (source.scheme(), genuine.request);
    let by_scheme = genuine.facts.event_type.as_deref().or_else(|| from_body(scheme, body, "type"));
    let from = Derivation { scheme: by_scheme, headers: request.headers, body };
    source.event_type.derive(from).filter(|text| check_type(Some(text)).is_ok()).map(Into::into)
}

/// Request headers that are kept with the message: what describes the body and the event, nothing secret.
pub(crate) fn kept_headers(request: &IntakeRequest<'_>) -> Option<Box<str>> {
    const KEPT: &[&str] = &["content-type", "content-encoding", "user-agent", "webhook-id", "svix-id"];
    const KEPT_PREFIXES: &[&str] = &["x-github-", "x-shopify-", "x-amz-sns-", "linear-", "ce-"];
    let kept =
        |name: &str| KEPT.contains(&name) || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
    headers_that(request, kept, 32)
}

/// Request headers that are kept with what is quarantined: tomorrow's rules may look at any of them. Nothing secret.
pub(crate) fn all_headers(request: &IntakeRequest<'_>) -> Option<Box<str>> {
    const LEFT_OUT: &[&str] = &["cookie", "connection", "host", "content-length", "transfer-encoding"];
    headers_that(request, |name| !LEFT_OUT.contains(&name), 64)
}

fn headers_that(
    request: &IntakeRequest<'_>,
    kept: impl Fn(&str) -> bool,
    count_max: usize,
) -> Option<Box<str>> {
    const SECRET: &[&str] =
        &["signature", "hmac", "token", "authorization", "secret", "password", "api-key", "apikey"];
    let headers = request.headers.iter().filter_map(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let secret = SECRET.iter().any(|word| name.contains(word));
        let text = std::str::from_utf8(value).ok().filter(|text| text.len() <= 512)?;
        (kept(&name) && !secret).then(|| (name, Value::from(text)))
    });
    let object: serde_json::Map<String, Value> = headers.take(count_max).collect();
    (!object.is_empty()).then(|| Value::Object(object).to_string().into())
}

pub(crate) fn header<'a>(request: &IntakeRequest<'a>, name: &str) -> Option<&'a str> {
    let (_, value) = request.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    std::str::from_utf8(value).ok()
}
