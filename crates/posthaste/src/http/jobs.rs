//! `jobs.list`, `jobs.get`, `jobs.cancel`. Rows B7, B8, F2.

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderMap, StatusCode, Uri};
use posthaste_core::{JobId, LaneId, MessageId, MessageKey, StateName, TenantId};
use posthaste_engine::EngineError;
use posthaste_store::{DestinationKind, JobFilter, MessageName};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    AppState, Caller, Problem,
    dead_letter::DeadLetterJson,
    job_view::JobJson,
    json::{answer, parse},
    paging::Page,
    problem::ProblemJson,
    publish_request::destination,
    query::Query,
    segments::Segments,
};

/// Bytes of a request that operates on a job.
pub(super) const BYTES_MAX: usize = 16 * 1024;

/// Why a job is called off.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CancelRequest {
    /// Shown for ever.
    #[schema(min_length = 1, max_length = 1024)]
    reason: String,
}

/// What a cancel came to.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = CancelAnswer)]
pub(crate) struct CancelAnswerJson {
    /// `cancelled`: it will not run again. `requested`: it is running, and the worker is asked to stop. `too_late`: it is
    /// done.
    #[schema(examples("cancelled", "requested", "too_late"))]
    result: &'static str,
}

/// Lists jobs, newest first.
#[utoipa::path(
    get, path = "/v1/jobs", operation_id = "jobs.list", tag = "jobs",
    params(
        ("state" = Option<String>, Query, description = "Only of this state"),
        ("queue" = Option<String>, Query, description = "Only of this queue"),
        ("endpoint" = Option<String>, Query, description = "Only of this endpoint"),
        ("source" = Option<String>, Query, description = "Only of this source: what is quarantined"),
        ("order" = Option<String>, Query, description = "`newest` (default) or `oldest` first, by creation"),
        ("limit" = Option<u32>, Query, description = "1 to 500; 50 unless told"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses(
        (status = 200, description = "One page", body = Page<JobJson>),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_read()?;
    let query = Query::parse(&uri, &["state", "queue", "endpoint", "source", "order", "limit", "cursor"])?;
    let states: Vec<&str> = StateName::ALL.iter().map(|state| state.as_str()).collect();
    let limit = query.limit()?;
    let filter = JobFilter {
        state: query.read("state", &states.join(", "), StateName::parse)?,
        lane: lane(&state, caller.tenant, &query)?,
        oldest_first: query
            .read("order", "newest or oldest", |word| match word {
                "newest" => Some(false),
                "oldest" => Some(true),
                _ => None,
            })?
            .unwrap_or(false),
        after: query.read("cursor", "the next_cursor of a page", JobId::parse)?,
        limit: limit + 1,
    };
    let mut views = state.engine().store().jobs(caller.tenant, filter).await?;
    let more = views.len() > limit;
    views.truncate(limit);
    let next_cursor = views.last().filter(|_| more).map(|view| view.job.id.to_string());
    let mut data = Vec::with_capacity(views.len());
    for view in &views {
        data.push(JobJson::listed(view, message_of(&state, caller.tenant, &view.key).await?));
    }
    Ok(answer(StatusCode::OK, &Page { data, next_cursor }))
}

/// Shows a job with its attempts.
#[utoipa::path(
    get, path = "/v1/jobs/{id}", operation_id = "jobs.get", tag = "jobs",
    params(("id" = String, Path, description = "`job_…`")),
    responses(
        (status = 200, description = "The job", body = JobJson),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn get(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
) -> Result<Response, Problem> {
    caller.require_read()?;
    let id = parse_id(&id)?;
    let known = state.engine().known(caller.tenant, id).await?.ok_or_else(|| unknown(&id.to_string()))?;
    let name = MessageName::Key(known.view.key.clone());
    let message = state.engine().store().message(caller.tenant, name).await?;
    let idempotent = state.engine().directory().policy(caller.tenant, id.lane()).idempotent;
    let dead_letter = message.as_ref().and_then(|message| DeadLetterJson::of(&known, message, idempotent));
    let whole = JobJson::whole(&known.view, known.span, message.map(|message| message.id))
        .with_budgets(&known.view.job, known.remaining);
    Ok(answer(StatusCode::OK, &JobJson { dead_letter, ..whole }))
}

/// Calls a job off.
///
/// A running attempt is asked to stop at its next heartbeat; what its worker then reports is what is recorded.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/cancel", operation_id = "jobs.cancel", tag = "jobs",
    params(("id" = String, Path, description = "`job_…`")),
    request_body = CancelRequest,
    responses(
        (status = 200, description = "What it came to", body = CancelAnswerJson),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn cancel(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let id = parse_id(&id)?;
    let body = state.read(&headers, body, BYTES_MAX).await?;
    let request: CancelRequest = parse(&body)?;
    let came_to = state.engine().cancel(caller.tenant, id, &request.reason, &caller.name).await?;
    Ok(answer(StatusCode::OK, &CancelAnswerJson { result: came_to.as_str() }))
}

/// The lane of the destination that the query names.
fn lane(state: &AppState, tenant: TenantId, query: &Query) -> Result<Option<LaneId>, Problem> {
    let kinds = [
        ("queue", DestinationKind::Queue),
        ("endpoint", DestinationKind::Endpoint),
        ("source", DestinationKind::Source),
    ];
    let mut lane = None;
    for (name, kind) in kinds {
        let Some(text) = query.get(name) else { continue };
        if lane.is_some() {
            let text = "`queue`, `endpoint` and `source` exclude each other";
            return Err(Problem::new(super::Code::InvalidParameter, text));
        }
        let id = destination(name, text)?;
        let directory = state.engine().directory();
        let entry = directory.find(tenant, &id).filter(|entry| entry.row.kind == kind);
        let unknown = || EngineError::NotFound { what: kind.as_str(), id: id.to_string() };
        lane = Some(entry.ok_or_else(unknown)?.row.lane);
    }
    Ok(lane)
}

async fn message_of(
    state: &AppState,
    tenant: TenantId,
    key: &MessageKey,
) -> Result<Option<MessageId>, Problem> {
    let message = state.engine().store().message(tenant, MessageName::Key(key.clone())).await?;
    Ok(message.map(|message| message.id))
}

pub(super) fn parse_id(text: &str) -> Result<JobId, Problem> {
    JobId::parse(text).ok_or_else(|| unknown(text))
}

fn unknown(id: &str) -> Problem {
    EngineError::NotFound { what: "job", id: id.chars().take(64).collect() }.into()
}
