//! `schedules.*`: what is enqueued when. Rows B10, B14.

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderMap, StatusCode, Uri};
use posthaste_core::DestinationId;
use posthaste_engine::{EngineError, ScheduleView, config::ScheduleSpec};
use posthaste_store::ManagedBy;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    AppState, Caller, Code, Problem,
    json::{answer, parse},
    paging::Page,
    problem::ProblemJson,
    publish_request::{IDEMPOTENCY_KEY, ToRequest},
    query::Query,
    segments::Segments,
    time::Time,
};

/// Bytes of a request.
const BYTES_MAX: usize = 512 * 1024;

/// Firings that are foretold at most.
const FORETOLD_MAX: usize = 100;

/// A schedule: a cron expression that enqueues. Each firing publishes a message under the key
/// `schedule:{name}:{instant}`.
#[derive(ToSchema)]
#[schema(as = Schedule)]
#[allow(dead_code)] // describes what the engine reads
pub(crate) struct ScheduleSchema {
    /// Its name.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples("nightly-report"))]
    name: String,
    /// Minute, hour, day of the month, month and day of the week, `@daily` and the like, or `@every 15m`.
    #[schema(max_length = 256, examples("30 2 * * *", "@every 15m"))]
    cron: String,
    /// The place whose clocks count, by its IANA name; `UTC` unless told. Not with `@every`.
    #[schema(examples("Europe/Berlin"))]
    timezone: Option<String>,
    /// Where the messages go; absent: to every endpoint subscribed to the type.
    to: Option<ToRequest>,
    /// The messages' event type.
    #[schema(max_length = 128)]
    r#type: Option<String>,
    /// The messages' payload; `{{scheduled_at}}` in a text stands for the instant. Absent: `schedule` and `scheduled_at`.
    #[schema(value_type = Value)]
    payload: Option<Value>,
    /// The messages' metadata, beside `schedule` and `scheduled_at`.
    #[schema(required = false, value_type = Object)]
    metadata: Map<String, Value>,
    /// What becomes of firings that were missed while nobody was there, or during a pause: `skip` (default), `once` (the
    /// latest) or `all` (the last 1,000).
    catch_up: Option<String>,
    /// The jobs of each firing wait for up to so long, always equally long for one firing.
    #[schema(examples("30s"))]
    jitter: Option<String>,
    /// Who answers for it.
    #[schema(max_length = 128)]
    owner: Option<String>,
    /// Whether it fires; true unless told.
    enabled: Option<bool>,
}

/// A schedule as it is shown: its configuration, and these.
#[derive(ToSchema)]
#[schema(as = ScheduleShown)]
#[allow(dead_code)] // describes what `shown` writes
pub(crate) struct ScheduleJson {
    /// Its name.
    id: String,
    /// `active`, `paused`, `disabled` or `broken`.
    state: String,
    /// Whether it fires.
    enabled: bool,
    /// Who answers for it.
    owner: Option<String>,
    /// `file`: read-only over the API. `api`.
    managed_by: String,
    /// When it fires next, unless it is paused, disabled or broken till then.
    #[schema(format = DateTime)]
    next_fire_at: Option<String>,
    /// The last instant for which it fired.
    #[schema(format = DateTime)]
    last_fired_at: Option<String>,
    /// The message of the last firing, while the store has it; only where one schedule is shown.
    last_message_id: Option<String>,
    /// Since when it is paused.
    #[schema(format = DateTime)]
    paused_at: Option<String>,
    /// Who paused it.
    paused_by: Option<String>,
    /// Why it is paused.
    paused_reason: Option<String>,
    /// Why it can't fire.
    problem: Option<String>,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// When its configuration was changed last.
    #[schema(format = DateTime)]
    updated_at: String,
}

/// Why.
#[derive(Debug, Deserialize, ToSchema)]
#[schema(as = ScheduleReason)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReasonRequest {
    /// Why; shown as long as it is paused.
    #[schema(min_length = 1, max_length = 1024)]
    reason: String,
}

/// A firing to come.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ForetoldJson {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// As the schedule's place has it, with its offset.
    #[schema(examples("2026-03-29T03:00:00+02:00[Europe/Berlin]"))]
    local: String,
}

/// A firing out of turn.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FiredJson {
    /// `first_run`, or `duplicate_done` where the same request came before.
    path: &'static str,
    /// The message's key.
    key: String,
    /// The message.
    message_id: String,
}

/// Lists schedules, by name.
#[utoipa::path(
    get, path = "/v1/schedules", operation_id = "schedules.list", tag = "schedules",
    params(
        ("limit" = Option<u32>, Query, description = "1 to 500; 50 unless told"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses(
        (status = 200, description = "One page", body = Page<ScheduleJson>),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_read_or_operate()?;
    let query = Query::parse(&uri, &["limit", "cursor"])?;
    let views = state.engine().schedules(caller.tenant).await?;
    let page = Page::of_sorted(views, |view| view.row.id.to_string(), query.get("cursor"), query.limit()?);
    let data = page.data.iter().map(shown).collect();
    Ok(answer(StatusCode::OK, &Page::<Map<String, Value>> { data, next_cursor: page.next_cursor }))
}

/// Makes a schedule.
///
/// A name that is taken is refused with `already_exists`, so that a repeat makes nothing twice.
#[utoipa::path(
    post, path = "/v1/schedules", operation_id = "schedules.create", tag = "schedules",
    request_body = ScheduleSchema,
    responses(
        (status = 201, description = "Made", body = ScheduleJson),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn create(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let body = state.read(&headers, body, BYTES_MAX).await?;
    let spec: ScheduleSpec = parse(&body)?;
    let view = state.engine().put_schedule(caller.tenant, &spec, ManagedBy::Api, true).await?;
    Ok(answer(StatusCode::CREATED, &shown(&view)))
}

/// Shows a schedule.
#[utoipa::path(
    get, path = "/v1/schedules/{id}", operation_id = "schedules.get", tag = "schedules",
    params(("id" = String, Path, description = "Its name")),
    responses(
        (status = 200, description = "The schedule", body = ScheduleJson),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn get(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
) -> Result<Response, Problem> {
    caller.require_read_or_operate()?;
    let view = state.engine().schedule(caller.tenant, &named(&id)?).await?;
    let last = state.engine().last_fired(&view.row).await?;
    let mut object = shown(&view);
    object.insert("last_message_id".to_owned(), last.map(|id| id.to_string()).into());
    Ok(answer(StatusCode::OK, &object))
}

/// Makes a schedule, or replaces its configuration.
///
/// A pause stays. Where `cron` or `timezone` is another one, it fires next by the new one, counted from now.
#[utoipa::path(
    put, path = "/v1/schedules/{id}", operation_id = "schedules.put", tag = "schedules",
    params(("id" = String, Path, description = "Its name")),
    request_body = ScheduleSchema,
    responses(
        (status = 200, description = "As configured", body = ScheduleJson),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn put(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let body = state.read(&headers, body, BYTES_MAX).await?;
    let spec: ScheduleSpec = parse(&body)?;
    if spec.name != id {
        let problem = format!("`name` is {:?}, but the path says {id:?}", spec.name);
        return Err(Problem::new(Code::InvalidValue, problem).with("path", "name"));
    }
    let view = state.engine().put_schedule(caller.tenant, &spec, ManagedBy::Api, false).await?;
    Ok(answer(StatusCode::OK, &shown(&view)))
}

/// Deletes a schedule. What it published stays.
#[utoipa::path(
    delete, path = "/v1/schedules/{id}", operation_id = "schedules.delete", tag = "schedules",
    params(("id" = String, Path, description = "Its name")),
    responses(
        (status = 204, description = "Deleted"),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn delete(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    state.engine().delete_schedule(caller.tenant, &named(&id)?).await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// Pauses a schedule until it is resumed.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/pause", operation_id = "schedules.pause", tag = "schedules",
    params(("id" = String, Path, description = "Its name")),
    request_body = ReasonRequest,
    responses(
        (status = 200, description = "Paused; one that was paused before keeps that pause", body = ScheduleJson),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pause(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let id = named(&id)?;
    let body = state.read(&headers, body, BYTES_MAX).await?;
    let ReasonRequest { reason } = parse(&body)?;
    let view = state.engine().pause_schedule(caller.tenant, &id, &reason, &caller.name).await?;
    Ok(answer(StatusCode::OK, &shown(&view)))
}

/// Ends a pause. What was missed meanwhile is made up for as `catch_up` says.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/resume", operation_id = "schedules.resume", tag = "schedules",
    params(("id" = String, Path, description = "Its name")),
    request_body = ReasonRequest,
    responses(
        (status = 200, description = "Not paused", body = ScheduleJson),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn resume(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let id = named(&id)?;
    let body = state.read(&headers, body, BYTES_MAX).await?;
    let ReasonRequest { reason } = parse(&body)?;
    let view = state.engine().resume_schedule(caller.tenant, &id, &reason, &caller.name).await?;
    Ok(answer(StatusCode::OK, &shown(&view)))
}

/// Fires a schedule now, out of turn; also one that is paused or disabled.
///
/// The message's key is `schedule:{name}:run:{Idempotency-Key}`, or with the instant in place of the header.
#[utoipa::path(
    post, path = "/v1/schedules/{id}/run", operation_id = "schedules.run", tag = "schedules",
    params(
        ("id" = String, Path, description = "Its name"),
        ("Idempotency-Key" = Option<String>, Header, description = "Names the request, so that it is done once"),
    ),
    responses(
        (status = 202, description = "Published", body = FiredJson),
        (status = 200, description = "The same request came before", body = FiredJson),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn run(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let request = headers.get(IDEMPOTENCY_KEY).map(|value| {
        let text = "`Idempotency-Key` is no text; give visible ASCII";
        value.to_str().map_err(|_| Problem::new(Code::InvalidName, text))
    });
    let request = request.transpose()?;
    let fired = state.engine().run_schedule(caller.tenant, &named(&id)?, request).await?;
    let (status, path) = if fired.new {
        (StatusCode::ACCEPTED, posthaste_core::Path::FirstRun)
    } else {
        (StatusCode::OK, posthaste_core::Path::DuplicateDone)
    };
    let (key, message_id) = (fired.key.to_string(), fired.message.to_string());
    Ok(answer(status, &FiredJson { path: path.as_str(), key, message_id }))
}

/// Foretells the next firings, as if the schedule was not paused.
#[utoipa::path(
    get, path = "/v1/schedules/{id}/next", operation_id = "schedules.next", tag = "schedules",
    params(
        ("id" = String, Path, description = "Its name"),
        ("limit" = Option<u32>, Query, description = "1 to 100; 50 unless told"),
    ),
    responses(
        (status = 200, description = "The next firings, soonest first", body = Page<ForetoldJson>),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn next(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_read_or_operate()?;
    let limit = Query::parse(&uri, &["limit"])?.limit()?.min(FORETOLD_MAX);
    let view = state.engine().schedule(caller.tenant, &named(&id)?).await?;
    let foretold = view.next(state.engine().now(), limit).into_iter();
    let data = foretold.map(|(at, local)| ForetoldJson { at: Time(at), local }).collect();
    Ok(answer(StatusCode::OK, &Page { data, next_cursor: None }))
}

/// A schedule on the wire: its configuration, and how it stands.
pub(super) fn shown(view: &ScheduleView) -> Map<String, Value> {
    let row = &view.row;
    let mut object: Map<String, Value> = serde_json::from_str(&row.config).unwrap_or_default();
    let time = |at| Time(at).to_string();
    let paused = row.paused.as_ref();
    let standing: [(&str, Value); 13] = [
        ("id", row.id.as_str().into()),
        ("state", view.state().into()),
        ("enabled", row.enabled.into()),
        ("owner", row.owner.as_deref().into()),
        ("managed_by", row.managed_by.as_str().into()),
        ("next_fire_at", row.next_fire_at.map(time).into()),
        ("last_fired_at", row.last_fired_at.map(time).into()),
        ("paused_at", paused.map(|paused| time(paused.at)).into()),
        ("paused_by", paused.map(|paused| &*paused.by).into()),
        ("paused_reason", paused.map(|paused| &*paused.reason).into()),
        ("problem", view.problem.as_deref().into()),
        ("created_at", time(row.created_at).into()),
        ("updated_at", time(row.updated_at).into()),
    ];
    object.extend(standing.map(|(name, value)| (name.to_owned(), value)));
    object
}

fn named(id: &str) -> Result<DestinationId, Problem> {
    DestinationId::new(id)
        .map_err(|_| EngineError::NotFound { what: "schedule", id: id.chars().take(64).collect() }.into())
}
