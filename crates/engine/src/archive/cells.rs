//! Values of a line, to and from text.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use posthaste_core::{DestinationId, MessageKey};
use posthaste_store::KeyKind;

use super::lines::{LineError, bad};

pub(super) fn encoded(bytes: &[u8]) -> Box<str> {
    STANDARD.encode(bytes).into()
}

pub(super) fn decoded(field: &'static str, text: &str) -> Result<Vec<u8>, LineError> {
    STANDARD.decode(text).map_err(|_| bad(field))
}

pub(super) fn maybe_decoded(field: &'static str, text: Option<&str>) -> Result<Option<Box<[u8]>>, LineError> {
    text.map(|text| decoded(field, text).map(Into::into)).transpose()
}

pub(super) fn word<T>(field: &'static str, text: &str, parse: fn(&str) -> Option<T>) -> Result<T, LineError> {
    parse(text).ok_or(bad(field))
}

pub(super) fn maybe_word<T>(
    field: &'static str,
    text: Option<&str>,
    parse: fn(&str) -> Option<T>,
) -> Result<Option<T>, LineError> {
    text.map(|text| word(field, text, parse)).transpose()
}

pub(super) fn key(field: &'static str, text: &str) -> Result<MessageKey, LineError> {
    MessageKey::new(text).map_err(|_| bad(field))
}

pub(super) fn destination(field: &'static str, text: &str) -> Result<DestinationId, LineError> {
    DestinationId::new(text).map_err(|_| bad(field))
}

pub(super) fn key_kind(text: &str) -> Option<KeyKind> {
    let all = [KeyKind::Key, KeyKind::Provider, KeyKind::Delivery, KeyKind::Alias];
    all.into_iter().find(|kind| kind.as_str() == text)
}
