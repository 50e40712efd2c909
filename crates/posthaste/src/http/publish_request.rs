//! Requests to publish: from what is written to what the engine takes. Rows B1, B11.
//!
//! A payload given as JSON is kept byte for byte: it is scanned for its end, and never parsed.

use base64::{
    Engine as _, alphabet,
    engine::{DecodePaddingMode, GeneralPurpose, GeneralPurposeConfig},
};
use bytes::Bytes;
use http::HeaderMap;
use posthaste_core::{DestinationId, DurationMs, MessageKey, Timestamp};
use posthaste_engine::{Publish, PublishDue, PublishTo};
use serde::Deserialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{
    Code, Problem, context,
    json::{self, GivenDuration, present},
    query::message_key,
    time,
};

/// Standard base64, with or without its padding.
const BASE64: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// The header that may hold the key.
/// What keys of the server's own messages begin with.
const RESERVED_KEYS: [&str; 2] = ["schedule:", "posthaste:"];

pub(crate) const IDEMPOTENCY_KEY: &str = "idempotency-key";

/// A message to publish.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishRequest<'a> {
    /// The business identity of the message: 1 to 256 bytes of 0x21 to 0x7E. May be given as `Idempotency-Key`.
    #[schema(min_length = 1, max_length = 256, examples("ship_482:v3"))]
    key: Option<String>,
    /// The event type: 1 to 128 bytes of visible ASCII.
    #[serde(rename = "type")]
    #[schema(max_length = 128, examples("shipment.updated"))]
    event_type: Option<String>,
    /// An object of your own, at most 8 KiB; kept byte for byte.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<&'a RawValue>,
    /// Any JSON value; kept byte for byte. Excludes `payload_base64` and `payload_ref`.
    #[serde(borrow, default, deserialize_with = "present")]
    #[schema(value_type = Value)]
    payload: Option<&'a RawValue>,
    /// The payload's bytes in standard base64.
    payload_base64: Option<String>,
    /// Where the payload is, if it is not to be kept here. Only for queues.
    #[schema(max_length = 2048)]
    payload_ref: Option<String>,
    /// The payload's media type; `application/json` for `payload`, else `application/octet-stream` unless told.
    #[schema(max_length = 256)]
    content_type: Option<String>,
    /// How long the jobs wait first. Excludes `due_at`.
    #[schema(value_type = Option<String>, examples("30s", "24h", "1h30m"))]
    delay: Option<GivenDuration>,
    /// When the jobs may start: RFC 3339 with an offset. A past time is now.
    #[schema(format = DateTime, examples("2026-12-01T09:00:00+01:00"))]
    due_at: Option<String>,
    /// Where to; absent: every endpoint subscribed to the type.
    #[serde(borrow)]
    #[schema(value_type = Option<ToRequest>)]
    to: Option<&'a RawValue>,
}

/// Where a message goes: to one queue, or to some endpoints.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ToRequest {
    /// To this queue.
    queue: Option<String>,
    /// To these endpoints.
    #[schema(min_items = 1)]
    endpoints: Option<Vec<String>>,
}

/// A message to publish to one queue.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct QueuePublishRequest<'a> {
    /// The queue.
    queue: String,
    /// The business identity of the message: 1 to 256 bytes of 0x21 to 0x7E. May be given as `Idempotency-Key`.
    #[schema(min_length = 1, max_length = 256)]
    key: Option<String>,
    /// The event type.
    #[serde(rename = "type")]
    #[schema(max_length = 128)]
    event_type: Option<String>,
    /// An object of your own, at most 8 KiB; kept byte for byte.
    #[serde(borrow)]
    #[schema(value_type = Option<Object>)]
    metadata: Option<&'a RawValue>,
    /// Any JSON value; kept byte for byte. Excludes `payload_base64` and `payload_ref`.
    #[serde(borrow, default, deserialize_with = "present")]
    #[schema(value_type = Value)]
    payload: Option<&'a RawValue>,
    /// The payload's bytes in standard base64.
    payload_base64: Option<String>,
    /// Where the payload is, if it is not to be kept here.
    #[schema(max_length = 2048)]
    payload_ref: Option<String>,
    /// The payload's media type.
    #[schema(max_length = 256)]
    content_type: Option<String>,
    /// How long the job waits first. Excludes `due_at`.
    #[schema(value_type = Option<String>, examples("30s", "24h"))]
    delay: Option<GivenDuration>,
    /// When the job may start: RFC 3339 with an offset. A past time is now.
    #[schema(format = DateTime)]
    due_at: Option<String>,
}

/// What a request's head says to every message in it.
#[derive(Debug)]
pub(crate) struct Head {
    idempotency_key: Option<String>,
    traceparent: Option<Box<str>>,
    correlation_id: Box<str>,
}

impl Head {
    /// Errors: `invalid_name` for an `Idempotency-Key` that is no text.
    pub(crate) fn of(headers: &HeaderMap, now: Timestamp) -> Result<Self, Problem> {
        let idempotency_key = headers.get(IDEMPOTENCY_KEY).map(|value| {
            let not_text =
                || Problem::new(Code::InvalidName, "`Idempotency-Key` may hold visible ASCII only");
            value.to_str().map(str::to_owned).map_err(|_| not_text())
        });
        Ok(Self {
            idempotency_key: idempotency_key.transpose()?,
            traceparent: context::traceparent(headers),
            correlation_id: context::correlation_id(headers, now),
        })
    }

    /// The same for the messages of a batch: one header can't be the key of many.
    ///
    /// Errors: `key_conflict`.
    pub(crate) fn without_key(self) -> Result<Self, Problem> {
        if self.idempotency_key.is_some() {
            return Err(Problem::new(Code::KeyConflict, "in a batch each message holds its own `key`"));
        }
        Ok(self)
    }

    /// The key of body and header, which may not differ.
    fn key(&self, in_body: Option<&str>) -> Result<MessageKey, Problem> {
        match (in_body, self.idempotency_key.as_deref()) {
            (Some(body), Some(header)) if body != header => Err(Problem::new(
                Code::KeyConflict,
                "`key` and the `Idempotency-Key` header differ; give one of them",
            )),
            (Some(key), _) | (None, Some(key)) => own_key(key),
            (None, None) => Err(Problem::new(Code::MissingKey, "give `key`, or an `Idempotency-Key` header")
                .with("path", "key")),
        }
    }
}

/// A key that a publisher may use: those of firings and of operational messages are the server's, and whoever took one
/// would keep the real one from being published.
fn own_key(text: &str) -> Result<MessageKey, Problem> {
    match RESERVED_KEYS.iter().find(|prefix| text.starts_with(**prefix)) {
        None => message_key(text),
        Some(prefix) => {
            let problem = format!("`key`: those that begin with {prefix:?} are ours: choose another one");
            Err(Problem::new(Code::InvalidName, problem).with("path", "key"))
        }
    }
}

/// Reads a message to publish. `bytes` is a part of `body`, or all of it.
pub(crate) fn read_publish(bytes: &[u8], body: &Bytes, head: &Head) -> Result<Publish, Problem> {
    let request: PublishRequest<'_> = json::parse(bytes)?;
    let to = request.to.map_or(Ok(PublishTo::Subscribers), read_to)?;
    request.into_publish(to, body, head)
}

/// Reads a message to publish to a queue.
pub(crate) fn read_queue_publish(body: &Bytes, head: &Head) -> Result<Publish, Problem> {
    let request: QueuePublishRequest<'_> = json::parse(body)?;
    let to = PublishTo::Queue(destination("queue", &request.queue)?);
    let request = PublishRequest {
        key: request.key,
        event_type: request.event_type,
        metadata: request.metadata,
        payload: request.payload,
        payload_base64: request.payload_base64,
        payload_ref: request.payload_ref,
        content_type: request.content_type,
        delay: request.delay,
        due_at: request.due_at,
        to: None,
    };
    request.into_publish(to, body, head)
}

/// Checks a destination's id.
pub(crate) fn destination(field: &'static str, text: &str) -> Result<DestinationId, Problem> {
    DestinationId::new(text)
        .map_err(|error| Problem::new(Code::InvalidName, format!("`{field}`: {error}")).with("path", field))
}

impl PublishRequest<'_> {
    fn into_publish(self, to: PublishTo, body: &Bytes, head: &Head) -> Result<Publish, Problem> {
        let key = head.key(self.key.as_deref())?;
        let due = due(self.delay.as_ref(), self.due_at.as_deref())?;
        let metadata = self.metadata.map(object).transpose()?;
        if self.payload_ref.is_some() && !matches!(to, PublishTo::Queue(_)) {
            let problem = "only workers of a queue can follow a reference; endpoints are sent the payload";
            return Err(Problem::new(Code::InvalidValue, problem).with("path", "payload_ref"));
        }
        let (payload, content_type) = self.payload(body)?;
        Ok(Publish {
            key,
            event_type: self.event_type.map(Into::into),
            metadata,
            content_type,
            payload,
            payload_ref: payload_ref(self.payload_ref)?,
            due,
            to,
            traceparent: head.traceparent.clone(),
            correlation_id: head.correlation_id.clone(),
        })
    }

    /// The exact bytes, and their media type.
    fn payload(&self, body: &Bytes) -> Result<(Bytes, Option<Box<str>>), Problem> {
        let conflict =
            |text: &'static str| Err(Problem::new(Code::PayloadConflict, text).with("path", "payload"));
        // `null` beside another way is how programs spell "not this way".
        let elsewhere = self.payload_base64.is_some() || self.payload_ref.is_some();
        let payload = self.payload.filter(|payload| !(elsewhere && payload.get() == "null"));
        let given = self.content_type.as_deref().map(content_type).transpose()?;
        match (payload, &self.payload_base64, &self.payload_ref) {
            (Some(_), Some(_), _) => conflict("`payload` and `payload_base64` exclude each other"),
            (Some(_), _, Some(_)) | (None, Some(_), Some(_)) => {
                conflict("`payload_ref` excludes `payload` and `payload_base64`")
            }
            (Some(payload), None, None) => {
                let json = || "application/json".into();
                Ok((body.slice_ref(payload.get().as_bytes()), Some(given.unwrap_or_else(json))))
            }
            (None, Some(text), None) => {
                let bytes = BASE64.decode(text).map_err(|error| {
                    let problem = format!("`payload_base64`: {error}");
                    Problem::new(Code::InvalidValue, problem).with("path", "payload_base64")
                })?;
                Ok((bytes.into(), Some(given.unwrap_or_else(|| "application/octet-stream".into()))))
            }
            (None, None, _) => Ok((Bytes::new(), given)),
        }
    }
}

fn due(delay: Option<&GivenDuration>, due_at: Option<&str>) -> Result<PublishDue, Problem> {
    match (delay, due_at) {
        (Some(_), Some(_)) => {
            Err(Problem::new(Code::DueConflict, "`delay` and `due_at` exclude each other; give one of them"))
        }
        (Some(delay), None) => delay.read("delay").map(PublishDue::In),
        (None, Some(text)) => time::parse("due_at", text).map(PublishDue::At),
        (None, None) => Ok(PublishDue::In(DurationMs::ZERO)),
    }
}

fn read_to(raw: &RawValue) -> Result<PublishTo, Problem> {
    let to: ToRequest = json::parse(raw.get().as_bytes()).map_err(|problem| {
        let detail = format!("`to`: {}", problem.detail());
        Problem::new(problem.code(), detail).with("path", "to")
    })?;
    let refused = |text: &'static str| Err(Problem::new(Code::InvalidValue, text).with("path", "to"));
    match (to.queue, to.endpoints) {
        (Some(_), Some(_)) => refused("`to`: queue and endpoints exclude each other; give one of them"),
        (Some(queue), None) => destination("to.queue", &queue).map(PublishTo::Queue),
        (None, Some(endpoints)) if endpoints.is_empty() => {
            refused("`to.endpoints`: the list is empty; name endpoints, or leave `to` out")
        }
        (None, Some(endpoints)) => {
            let ids = endpoints.iter().map(|id| destination("to.endpoints", id));
            ids.collect::<Result<_, _>>().map(PublishTo::Endpoints)
        }
        (None, None) => refused("`to`: name a queue or endpoints, or leave `to` out"),
    }
}

fn object(raw: &RawValue) -> Result<Box<str>, Problem> {
    if raw.get().starts_with('{') {
        if super::queue::embeddable(raw.get().as_bytes()).is_some() {
            return Ok(raw.get().into());
        }
        let problem =
            "`metadata`: nested deeper than 127, half a surrogate pair, or a number beyond a double";
        return Err(Problem::new(Code::InvalidValue, problem).with("path", "metadata"));
    }
    Err(Problem::new(Code::InvalidType, "`metadata` must be a JSON object").with("path", "metadata"))
}

/// A media type is sent on as a header, so it must be able to stand in one.
fn content_type(text: &str) -> Result<Box<str>, Problem> {
    if text.is_empty() || !text.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
        let problem =
            "`content_type`: give a media type of visible ASCII, for example text/csv; charset=utf-8";
        return Err(Problem::new(Code::InvalidValue, problem).with("path", "content_type"));
    }
    Ok(text.into())
}

/// Bytes of a reference: what browsers and proxies take as a URL.
const PAYLOAD_REF_BYTES_MAX: usize = 2_048;

fn payload_ref(text: Option<String>) -> Result<Option<Box<str>>, Problem> {
    match text {
        Some(text)
            if text.is_empty()
                || text.len() > PAYLOAD_REF_BYTES_MAX
                || text.chars().any(char::is_control) =>
        {
            let problem =
                format!("`payload_ref`: 1 to {PAYLOAD_REF_BYTES_MAX} bytes without control characters");
            Err(Problem::new(Code::InvalidValue, problem).with("path", "payload_ref"))
        }
        text => Ok(text.map(Into::into)),
    }
}
