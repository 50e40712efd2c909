//! `queue.consume`: leases for workers that pull. Rows B3, B11.

use axum::{
    extract::{Request, State},
    response::Response,
};
use bytes::Bytes;
use http::StatusCode;
use posthaste_core::{DestinationId, DurationMs, State as JobState};
use posthaste_engine::Consume;
use posthaste_store::LeasedJob;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{
    AppState, Caller, Problem,
    json::{GivenDuration, answer, parse},
    look_ups::LookUpJson,
    message_view::raw,
    problem::ProblemJson,
    publish_request::destination,
    time::Time,
    wire::{EventIdOf, Shown, is_json},
};

/// Bytes of a request of a worker, apart from reports of many jobs.
const BYTES_MAX: usize = 64 * 1024;

/// Asks for work.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ConsumeRequest {
    /// From which queue.
    queue: String,
    /// At most so many jobs; 1 unless told.
    #[schema(minimum = 1, maximum = 1000)]
    max: Option<usize>,
    /// How long to wait for the first one, at most 30 s; not at all unless told.
    #[schema(value_type = Option<String>, examples("20s"))]
    wait: Option<GivenDuration>,
    /// How long the leases hold; the queue's own unless told.
    #[schema(value_type = Option<String>, examples("60s"))]
    lease: Option<GivenDuration>,
    /// Whether the worker also looks up if effects happened (`on_unknown = "reconcile"`): then due look-ups come first, in
    /// `look_ups`, and count for `max`.
    #[serde(default)]
    #[schema(required = false)]
    reconcile: bool,
    /// Who works, for the timeline; the API key's name unless told.
    #[schema(max_length = 128)]
    worker: Option<String>,
}

/// Leased jobs; empty if none came in time.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ConsumeAnswer<'a> {
    jobs: Vec<LeasedJobJson<'a>>,
    /// Look-ups to make, where they were asked for.
    #[serde(skip_serializing_if = "Option::is_none")]
    look_ups: Option<Vec<LookUpJson>>,
}

/// A leased job with what its attempt needs.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LeasedJob)]
pub(crate) struct LeasedJobJson<'a> {
    /// `job_…`
    #[schema(value_type = String)]
    id: Shown<posthaste_core::JobId>,
    /// `{key}:{destination}`: what the worker guards its effect by.
    #[schema(value_type = String)]
    event_id: Shown<EventIdOf<'a>>,
    /// `msg_…`
    #[schema(value_type = String)]
    message_id: Shown<posthaste_core::MessageId>,
    /// The message's business key.
    key: &'a str,
    /// The number of this attempt, from 1 over the job's whole life.
    attempt: Option<u32>,
    /// Proof of this attempt; opaque. Every report gives it back.
    #[schema(value_type = String)]
    fence: Shown<posthaste_core::Fence>,
    /// `first_run` or `retry_after_failure`.
    path: &'static str,
    /// The event type.
    #[serde(rename = "type")]
    event_type: Option<&'a str>,
    /// The publisher's metadata.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Box<RawValue>>,
    /// The payload, byte for byte, if it is JSON by its media type and in fact.
    #[schema(value_type = Value)]
    payload: Option<&'a RawValue>,
    /// The payload in base64 otherwise.
    payload_base64: Option<String>,
    /// Where the payload is, if it is not kept here.
    payload_ref: Option<&'a str>,
    /// The payload's media type.
    content_type: Option<&'a str>,
    /// For whom: the queue.
    subscriber_id: &'a str,
    /// What an earlier attempt's worker left.
    #[schema(value_type = Value)]
    checkpoint: Option<&'a RawValue>,
    /// The time asked for.
    #[schema(value_type = String, format = DateTime)]
    scheduled_at: Time,
    /// When the job became due for this attempt.
    #[schema(value_type = Option<String>, format = DateTime)]
    due_at: Option<Time>,
    /// Since when the lease runs.
    #[schema(value_type = Option<String>, format = DateTime)]
    leased_at: Option<Time>,
    /// Until when, unless it is extended.
    #[schema(value_type = Option<String>, format = DateTime)]
    lease_expires_at: Option<Time>,
    /// Until when at most, extended or not.
    #[schema(value_type = Option<String>, format = DateTime)]
    deadline_at: Option<Time>,
    /// W3C trace context.
    traceparent: Option<&'a str>,
}

/// Leases due jobs of a queue, waiting for the first one.
///
/// The leases are durable when they are answered. Jobs that were leased for a caller who has gone are released.
#[utoipa::path(
    post, path = "/v1/queue/consume", operation_id = "queue.consume", tag = "queue",
    request_body = ConsumeRequest,
    responses(
        (status = 200, description = "Leased jobs, perhaps none", body = ConsumeAnswer<'static>),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn consume(
    State(state): State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    caller.require_work_somewhere()?;
    let (head, body) = request.into_parts();
    let body = state.read(&head.headers, body, BYTES_MAX).await?;
    let request: ConsumeRequest = parse(&body)?;
    let queue = destination("queue", &request.queue)?;
    caller.require_work(&queue)?;
    let duration =
        |given: &Option<GivenDuration>, field| given.as_ref().map(|given| given.read(field)).transpose();
    let consume = Consume {
        queue: queue.clone(),
        max: request.max.unwrap_or(1),
        wait: duration(&request.wait, "wait")?.unwrap_or(DurationMs::ZERO),
        lease: duration(&request.lease, "lease")?,
        worker: request.worker.map_or_else(|| caller.name.as_ref().into(), Into::into),
    };
    if request.reconcile {
        let taken = state.engine().consume_with_look_ups(caller.tenant, consume).await?;
        let jobs = taken.jobs.iter().map(|leased| leased_job(leased, &queue)).collect();
        let look_ups = Some(taken.look_ups.iter().map(LookUpJson::of).collect());
        return Ok(answer(StatusCode::OK, &ConsumeAnswer { jobs, look_ups }));
    }
    let jobs = state.engine().consume(caller.tenant, consume).await?;
    let jobs = jobs.iter().map(|leased| leased_job(leased, &queue)).collect();
    Ok(answer(StatusCode::OK, &ConsumeAnswer { jobs, look_ups: None }))
}

fn leased_job<'a>(leased: &'a LeasedJob, queue: &'a DestinationId) -> LeasedJobJson<'a> {
    let (job, message) = (&leased.job, &leased.message);
    let lease = match &job.state {
        JobState::Leased(lease) => Some(lease),
        JobState::Scheduled { .. }
        | JobState::Retryable { .. }
        | JobState::Committed { .. }
        | JobState::DeadLettered { .. }
        | JobState::Cancelled { .. } => None,
    };
    let (payload, payload_base64) = match &message.payload_ref {
        Some(_) => (None, None),
        None => shown_payload(&message.payload, message.content_type.as_deref()),
    };
    LeasedJobJson {
        id: Shown(job.id),
        event_id: Shown(EventIdOf(&message.key, queue)),
        message_id: Shown(message.id),
        key: message.key.as_str(),
        attempt: job.attempt.map(posthaste_core::Attempt::get),
        fence: Shown(leased.fence),
        path: leased.path.as_str(),
        event_type: message.event_type.as_deref(),
        metadata: message.metadata.clone().and_then(raw),
        payload,
        payload_base64,
        payload_ref: message.payload_ref.as_deref(),
        content_type: message.content_type.as_deref(),
        subscriber_id: queue.as_str(),
        checkpoint: job.checkpoint.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok()),
        scheduled_at: Time(job.scheduled_at),
        due_at: lease.map(|lease| Time(lease.due_at)),
        leased_at: lease.map(|lease| Time(lease.leased_at)),
        lease_expires_at: lease.map(|lease| Time(lease.expires_at)),
        deadline_at: lease.map(|lease| Time(lease.deadline_at)),
        traceparent: message.traceparent.as_deref(),
    }
}

/// The payload as JSON if any parser will read it, else in base64: always one of the two.
///
/// Text that is JSON by its grammar and that common parsers refuse (nested a thousand deep, half a surrogate pair, a
/// number beyond a double) would break the whole answer for a worker, and with it the other jobs' fences.
fn shown_payload<'a>(
    payload: &'a Bytes,
    content_type: Option<&str>,
) -> (Option<&'a RawValue>, Option<String>) {
    use base64::{Engine as _, engine::general_purpose::STANDARD};
    let json = content_type.is_some_and(is_json).then(|| embeddable(payload)).flatten();
    match json {
        Some(json) => (Some(json), None),
        None => (None, Some(STANDARD.encode(payload))),
    }
}

/// `text` as JSON that can stand within an answer, if it can.
pub(crate) fn embeddable(text: &[u8]) -> Option<&RawValue> {
    // The first pass knows depth, surrogates and ranges; the second only finds the end.
    serde_json::from_slice::<super::json::Readable>(text).ok()?;
    serde_json::from_slice(text).ok()
}
