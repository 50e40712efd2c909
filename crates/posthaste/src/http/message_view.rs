//! Messages and their jobs in one line, on the wire.

use posthaste_core::{DestinationId, MessageKey, StateName};
use posthaste_engine::Published;
use posthaste_store::{AcceptedMessage, JobBrief, KeyKind, MessageView};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{time::Time, wire::EventIdOf};

/// What became of a message that was published.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PublishAnswer {
    /// `first_run`: it is new. `duplicate_done`: it was known.
    #[schema(examples("first_run", "duplicate_done"))]
    path: &'static str,
    /// The message: on a duplicate the first one.
    message: MessageBrief,
    /// How many jobs it has or will have.
    jobs_total: usize,
    /// `done`, or `running` while jobs are still being made.
    #[schema(examples("done", "running"))]
    fanout: &'static str,
    /// Its first jobs, at most 100.
    jobs: Vec<JobLine>,
}

/// A message in one line.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct MessageBrief {
    /// `msg_…`
    id: String,
    /// Its business key.
    key: String,
    /// When it was accepted.
    #[schema(value_type = String, format = DateTime)]
    accepted_at: Time,
}

/// A job in one line.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct JobLine {
    /// `job_…`
    id: String,
    /// `{key}:{destination}`: the identity that receivers guard.
    event_id: String,
    /// One of the six states.
    state: &'static str,
    /// The time asked for.
    #[schema(value_type = String, format = DateTime)]
    scheduled_at: Time,
    /// When the next attempt may start; `null` while one runs, and when the job is settled.
    #[schema(value_type = Option<String>, format = DateTime)]
    due_at: Option<Time>,
    /// The endpoint or queue.
    destination: String,
}

impl PublishAnswer {
    pub(crate) fn of(published: &Published) -> Self {
        let message = &published.message;
        Self {
            path: if published.new { "first_run" } else { "duplicate_done" },
            message: MessageBrief::of(message),
            jobs_total: message.jobs_total,
            fanout: fanout(message.fanout_running),
            jobs: job_lines(&message.key, &message.jobs),
        }
    }
}

impl MessageBrief {
    fn of(message: &AcceptedMessage) -> Self {
        Self {
            id: message.id.to_string(),
            key: message.key.to_string(),
            accepted_at: Time(message.accepted_at),
        }
    }
}

fn fanout(running: bool) -> &'static str {
    if running { "running" } else { "done" }
}

fn job_lines(key: &MessageKey, jobs: &[JobBrief]) -> Vec<JobLine> {
    let line = |job: &JobBrief| JobLine {
        id: job.id.to_string(),
        event_id: EventIdOf(key, &job.destination).to_string(),
        state: StateName::as_str(job.state),
        scheduled_at: Time(job.scheduled_at),
        due_at: job.due_at.map(Time),
        destination: job.destination.to_string(),
    };
    jobs.iter().map(line).collect()
}

/// A message, without its payload.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Message)]
pub(crate) struct MessageJson {
    /// `msg_…`
    id: String,
    /// Its business key.
    key: String,
    /// Its other names: the provider's ids, keys of other rules.
    aliases: Vec<AliasJson>,
    /// Its event type.
    #[serde(rename = "type")]
    event_type: Option<Box<str>>,
    /// The source it came in by.
    source: Option<String>,
    /// When it was accepted.
    #[schema(value_type = String, format = DateTime)]
    accepted_at: Time,
    /// Duplicate deliveries that came by any of its names.
    duplicates: u64,
    /// Names the request that brought it, through all logs.
    correlation_id: Box<str>,
    /// W3C trace context.
    traceparent: Option<Box<str>>,
    /// The payload's media type.
    content_type: Option<Box<str>>,
    /// Kept request headers.
    #[schema(value_type = Option<Object>)]
    headers: Option<Box<RawValue>>,
    /// The publisher's metadata.
    #[schema(value_type = Option<Object>)]
    metadata: Option<Box<RawValue>>,
    /// Where the payload is, if it is not here.
    payload_ref: Option<Box<str>>,
    /// The payload's length. The payload itself: `GET /v1/messages/{id}/payload`.
    payload_bytes: usize,
    /// How many jobs it has or will have.
    jobs_total: usize,
    /// `done`, or `running` while jobs are still being made.
    fanout: &'static str,
    /// Its first jobs, at most 100.
    jobs: Vec<JobLine>,
}

/// Another name of a message.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Alias)]
pub(crate) struct AliasJson {
    /// `provider`, `delivery` or `alias`.
    kind: &'static str,
    /// The name.
    key: String,
}

impl MessageJson {
    pub(crate) fn of(view: MessageView, jobs: &[JobBrief]) -> Self {
        let aliases = view.aliases.iter();
        let alias =
            |(kind, key): &(KeyKind, MessageKey)| AliasJson { kind: kind.as_str(), key: key.to_string() };
        Self {
            id: view.id.to_string(),
            key: view.key.to_string(),
            aliases: aliases.map(alias).collect(),
            jobs: job_lines(&view.key, jobs),
            event_type: view.event_type,
            source: view.source.as_ref().map(DestinationId::to_string),
            accepted_at: Time(view.accepted_at),
            duplicates: view.duplicates,
            correlation_id: view.correlation_id,
            traceparent: view.traceparent,
            content_type: view.content_type,
            headers: view.headers.and_then(raw),
            metadata: view.metadata.and_then(raw),
            payload_ref: view.payload_ref,
            payload_bytes: view.payload_bytes,
            jobs_total: view.jobs_total,
            fanout: fanout(view.fanout_running),
        }
    }
}

/// What is stored as JSON text, as it is.
pub(crate) fn raw(text: Box<str>) -> Option<Box<RawValue>> {
    RawValue::from_string(text.into()).ok()
}
