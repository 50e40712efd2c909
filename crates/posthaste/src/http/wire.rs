//! Small parts of many answers.

use std::fmt;

use posthaste_core::{DestinationId, MessageKey};
use serde::{Serialize, Serializer};

/// Serialises by `Display`, without a string in between.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Shown<T>(pub(crate) T);

impl<T: fmt::Display> Serialize for Shown<T> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&self.0)
    }
}

/// Shows as `{message key}:{destination}`: a job's identity towards receivers.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EventIdOf<'a>(pub(crate) &'a MessageKey, pub(crate) &'a DestinationId);

impl fmt::Display for EventIdOf<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}:{}", self.0, self.1)
    }
}

/// Whether a media type says JSON: `application/json`, `text/json`, or a subtype that ends in `+json` (RFC 6839).
pub(crate) fn is_json(content_type: &str) -> bool {
    let essence = content_type.split(';').next().unwrap_or("").trim();
    let ends_in_json =
        essence.len() > 5 && essence.as_bytes()[essence.len() - 5..].eq_ignore_ascii_case(b"+json");
    essence.eq_ignore_ascii_case("application/json")
        || essence.eq_ignore_ascii_case("text/json")
        || ends_in_json
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_is_told_by_its_media_type() {
        for (content_type, json) in [
            ("application/json", true),
            ("Application/JSON; charset=utf-8", true),
            ("text/json", true),
            ("application/cloudevents+json", true),
            ("application/jsonl", false),
            ("application/x-www-form-urlencoded", false),
            ("text/plain; a=application/json", false),
            ("+json", false),
            ("", false),
            ("é+json", true),
        ] {
            assert_eq!(json, is_json(content_type), "{content_type}");
        }
    }
}
