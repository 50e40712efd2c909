//! What a request says beside its body: how it is named through all logs, and the trace that it is part of. Row F5.

use http::HeaderMap;
use posthaste_core::Timestamp;
use uuid::{NoContext, Uuid};

/// Bytes of a request id that is taken over from the caller.
const REQUEST_ID_BYTES_MAX: usize = 128;

/// The header by which callers and proxies name requests.
const REQUEST_ID: &str = "x-request-id";

/// The correlation id of a request: the caller's `x-request-id`, or a fresh UUIDv7.
pub(crate) fn correlation_id(headers: &HeaderMap, now: Timestamp) -> Box<str> {
    let given = headers.get(REQUEST_ID).and_then(|id| id.to_str().ok());
    let fits = |id: &&str| {
        (1..=REQUEST_ID_BYTES_MAX).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_graphic())
    };
    given.filter(fits).map_or_else(|| fresh(now), Into::into)
}

fn fresh(now: Timestamp) -> Box<str> {
    let ms = u64::try_from(now.0).unwrap_or(0);
    let nanos = u32::try_from(ms % 1_000).unwrap_or(0) * 1_000_000;
    let stamp = uuid::Timestamp::from_unix(NoContext, ms / 1_000, nanos);
    Uuid::new_v7(stamp).hyphenated().to_string().into()
}

/// The trace context of a request, if it is a well-formed W3C `traceparent`.
///
/// <https://www.w3.org/TR/trace-context/#traceparent-header-field-values>
pub(crate) fn traceparent(headers: &HeaderMap) -> Option<Box<str>> {
    let text = headers.get("traceparent")?.to_str().ok()?;
    let lengths = [2, 32, 16, 2];
    let lower_hex = |byte: u8| byte.is_ascii_digit() || (b'a'..=b'f').contains(&byte);
    let mut parts = text.split('-');
    let well_formed = text.len() == 55
        && lengths.iter().all(|length| {
            parts.next().is_some_and(|part| part.len() == *length && part.bytes().all(lower_hex))
        });
    let zeros = |range: std::ops::Range<usize>| text[range].bytes().all(|byte| byte == b'0');
    (well_formed && !text.starts_with("ff") && !zeros(3..35) && !zeros(36..52)).then(|| text.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn headers(name: &'static str, value: &str) -> HeaderMap {
        HeaderMap::from_iter([(http::HeaderName::from_static(name), value.parse().unwrap())])
    }

    #[test]
    fn r_f5_a_request_id_is_taken_over_if_it_can_be_shown() {
        let now = Timestamp(1_767_225_600_123);
        assert_eq!("a-1", &*correlation_id(&headers(REQUEST_ID, "a-1"), now));
        for bad in ["", "a b", &"x".repeat(129)] {
            let id = correlation_id(&headers(REQUEST_ID, bad), now);
            assert_eq!(36, id.len(), "{bad:?}");
            assert!(id.starts_with("019b76da-a87b-7"), "{id}");
        }
    }

    #[test]
    fn r_f5_only_a_well_formed_trace_context_is_kept() {
        let good = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01";
        assert_eq!(Some(good), traceparent(&headers("traceparent", good)).as_deref());
        for bad in [
            "",
            "00",
            "ff-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01",
            "00-4BF92F3577B34DA6A3CE929D0E0E4736-00f067aa0ba902b7-01",
            "00-00000000000000000000000000000000-00f067aa0ba902b7-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-0000000000000000-01",
            "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01-x",
            "00-4bf92f3577b34da6a3ce929d0e0e47-3600f067aa0ba902b7-0101",
        ] {
            assert_eq!(None, traceparent(&headers("traceparent", bad)), "{bad}");
        }
    }
}
