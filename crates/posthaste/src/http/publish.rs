//! `messages.publish`, `messages.publish_batch`, `queue.publish`. Rows A10, B1, B11.

use axum::{
    extract::{Request, State},
    response::Response,
};
use bytes::Bytes;
use http::StatusCode;
use posthaste_core::limits;
use posthaste_engine::{EngineError, Publish, Published};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value, value::RawValue};
use utoipa::ToSchema;

use super::{
    AppState, Caller, Code, Problem,
    json::{answer, parse},
    message_view::PublishAnswer,
    problem::ProblemJson,
    publish_request::{Head, PublishRequest, QueuePublishRequest, read_publish, read_queue_publish},
};

/// What a request may hold beside its payload: key, type, metadata, names of endpoints.
const ENVELOPE_BYTES_MAX: usize = 64 * 1024;

/// Many messages in one commit.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct BatchRequest<'a> {
    /// At most 1,000, and at most 4 MiB in all.
    #[serde(borrow)]
    #[schema(value_type = Vec<PublishRequest<'static>>, max_items = 1000)]
    messages: Vec<&'a RawValue>,
}

/// What became of each message of a batch, in order.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct BatchAnswer {
    results: Vec<BatchResult>,
}

/// What became of one message of a batch: the answer that it would have got alone, or its problem.
#[derive(Debug, Serialize, ToSchema)]
#[serde(untagged)]
pub(crate) enum BatchResult {
    /// It is stored, now or before.
    Done {
        /// 202 or 200.
        status: u16,
        #[serde(flatten)]
        answer: PublishAnswer,
    },
    /// It is not; the others are not affected.
    #[schema(value_type = ProblemJson)]
    Failed(Map<String, Value>),
}

/// Publishes a message.
///
/// Durable when it is answered. Publishing the same again under the same key answers 200 with the first message;
/// something else under the same key is refused with `key_reused`.
#[utoipa::path(
    post, path = "/v1/messages", operation_id = "messages.publish", tag = "messages",
    request_body = PublishRequest<'static>,
    params(("Idempotency-Key" = Option<String>, Header, description = "The key, if the body has none")),
    responses(
        (status = 202, description = "New", body = PublishAnswer),
        (status = 200, description = "Known already", body = PublishAnswer),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn publish(
    State(state): State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    publish_one(&state, &caller, request, |body, head| read_publish(body, body, head)).await
}

/// Publishes a message to a queue.
///
/// The same as `messages.publish` with `"to": {"queue": …}`.
#[utoipa::path(
    post, path = "/v1/queue/publish", operation_id = "queue.publish", tag = "queue",
    request_body = QueuePublishRequest<'static>,
    params(("Idempotency-Key" = Option<String>, Header, description = "The key, if the body has none")),
    responses(
        (status = 202, description = "New", body = PublishAnswer),
        (status = 200, description = "Known already", body = PublishAnswer),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn queue_publish(
    State(state): State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    publish_one(&state, &caller, request, read_queue_publish).await
}

async fn publish_one(
    state: &AppState,
    caller: &Caller,
    request: Request,
    read: impl FnOnce(&Bytes, &Head) -> Result<Publish, Problem>,
) -> Result<Response, Problem> {
    caller.require_publish_somewhere()?;
    let engine = state.engine();
    // Taken apart, not extracted: an extractor would copy the headers.
    let (head, body) = request.into_parts();
    let body = state.read(&head.headers, body, one_bytes_max(engine.settings().payload_bytes_max)).await?;
    let publish = read(&body, &Head::of(&head.headers, engine.now())?)?;
    caller.require_publish(&publish.to)?;
    let mut published = engine.publish(caller.tenant, vec![publish]).await?;
    let published = published.pop().ok_or_else(missing_answer)??;
    Ok(answer(status_of(&published), &PublishAnswer::of(&published)))
}

/// Publishes up to 1,000 messages in one commit.
///
/// Results in order; a bad message fails alone. Each message holds its own `key`.
#[utoipa::path(
    post, path = "/v1/messages/batch", operation_id = "messages.publish_batch", tag = "messages",
    request_body = BatchRequest<'static>,
    responses(
        (status = 200, description = "A result for each message, in order", body = BatchAnswer),
        (status = "4XX", description = "Refused as a whole", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed as a whole", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn publish_batch(
    State(state): State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    caller.require_publish_somewhere()?;
    let engine = state.engine();
    let (parts, body) = request.into_parts();
    let head = Head::of(&parts.headers, engine.now())?.without_key()?;
    let body = state.read(&parts.headers, body, limits::PUBLISH_BATCH_BYTES_MAX).await?;
    let batch: BatchRequest<'_> = parse(&body)?;
    if batch.messages.len() > limits::PUBLISH_BATCH_MAX {
        return Err(too_many("messages", batch.messages.len(), limits::PUBLISH_BATCH_MAX));
    }
    let read = |raw: &&RawValue| {
        let publish = read_publish(raw.get().as_bytes(), &body, &head)?;
        caller.require_publish(&publish.to)?;
        Ok(publish)
    };
    let read: Vec<Result<Publish, Problem>> = batch.messages.iter().map(read).collect();
    let mut good = Vec::with_capacity(read.len());
    let read: Vec<Result<(), Problem>> =
        read.into_iter().map(|read| read.map(|read| good.push(read))).collect();
    let mut published = engine.publish(caller.tenant, good).await?.into_iter();
    let results = read.into_iter().map(|read| {
        let published =
            read.and_then(|()| published.next().ok_or_else(missing_answer)?.map_err(Problem::from));
        match published {
            Ok(published) => BatchResult::Done {
                status: status_of(&published).as_u16(),
                answer: PublishAnswer::of(&published),
            },
            Err(problem) => BatchResult::Failed(problem.to_object()),
        }
    });
    Ok(answer(StatusCode::OK, &BatchAnswer { results: results.collect() }))
}

/// A list is too long.
pub(super) fn too_many(field: &'static str, count: usize, max: usize) -> Problem {
    Problem::new(Code::TooManyItems, format!("`{field}`: at most {max}, these are {count}"))
        .with("path", field)
}

/// Bytes of a request with one message: its payload may be in base64.
fn one_bytes_max(payload_bytes_max: usize) -> usize {
    payload_bytes_max.div_ceil(3) * 4 + ENVELOPE_BYTES_MAX
}

fn status_of(published: &Published) -> StatusCode {
    if published.new { StatusCode::ACCEPTED } else { StatusCode::OK }
}

fn missing_answer() -> EngineError {
    EngineError::Store(posthaste_store::StoreError::unavailable("an answer is missing"))
}
