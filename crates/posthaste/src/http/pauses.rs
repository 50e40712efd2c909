//! `control.pause`, `control.resume`, and the same for one destination; `endpoints.enable`. Rows B10, D4.

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderMap, StatusCode};
use posthaste_core::{DestinationId, Timestamp, lane::Hold};
use posthaste_engine::{EngineError, Held, PauseScope, SteerOutcome, Why};
use posthaste_store::DestinationKind;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    AppState, Caller, Code, Problem,
    json::{answer, parse},
    problem::ProblemJson,
    segments::Segments,
    time::Time,
};

/// Bytes of a request.
const BYTES_MAX: usize = 16 * 1024;

/// What a resume says of itself where nobody gave a reason.
const NO_REASON: &str = "no reason given";

/// What is paused or resumed: exactly one of `scope`, `queue`, `endpoint` and `source`.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct PauseRequest {
    /// `scheduling`: schedules don't fire, and work that becomes due is not begun.
    #[schema(examples("scheduling"))]
    scope: Option<String>,
    /// A queue: nothing is handed to workers.
    queue: Option<String>,
    /// An endpoint: nothing is sent to it.
    endpoint: Option<String>,
    /// A source: it answers 503 with `Retry-After`, or accepts and keeps, as its `when_paused` says.
    source: Option<String>,
    /// Why; shown for ever. A pause needs one.
    #[schema(min_length = 1, max_length = 1024)]
    reason: Option<String>,
}

/// Why a destination is paused, resumed or enabled.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReasonRequest {
    /// Why; shown for ever. A pause needs one.
    #[schema(min_length = 1, max_length = 1024)]
    reason: Option<String>,
}

/// What came of it, and what holds it now.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct PauseAnswer {
    /// `paused`, `already_paused`, `resumed`, `not_paused`, `enabled`, `already_enabled`.
    #[schema(examples("paused", "already_paused", "resumed", "not_paused", "enabled", "already_enabled"))]
    result: &'static str,
    /// `scheduling`, `queue`, `endpoint` or `source`.
    #[schema(examples("scheduling", "queue"))]
    scope: &'static str,
    /// Its id; `null` for scheduling.
    id: Option<String>,
    /// What holds it now.
    #[serde(flatten)]
    held: HeldJson,
}

/// What holds a destination or source.
#[derive(Clone, Debug, Serialize, ToSchema)]
pub(crate) struct HeldJson {
    /// Since when it is paused; `null` if it is not.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) paused_at: Option<Time>,
    /// Why it is paused.
    pub(crate) paused_reason: Option<Box<str>>,
    /// Who paused it.
    pub(crate) paused_by: Option<Box<str>>,
    /// Since when it is disabled by a rule or by its receiver; `null` if it is not.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) disabled_at: Option<Time>,
    /// Why it is disabled.
    pub(crate) disabled_reason: Option<Box<str>>,
    /// Who disabled it.
    pub(crate) disabled_by: Option<Box<str>>,
    /// `closed`: requests go to it. `open`: none does, until `circuit_until`. `half_open`: one probes.
    #[schema(examples("closed", "open", "half_open"))]
    pub(crate) circuit: &'static str,
    /// When the next probe may go.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) circuit_until: Option<Time>,
}

impl HeldJson {
    /// As of `now`.
    pub(crate) fn of(held: &Held, now: Timestamp) -> Self {
        let (paused, disabled) = (held.paused.as_ref(), held.disabled.as_ref());
        let at = |hold: &Hold| Time(hold.at);
        let reason = |hold: &Hold| hold.reason.clone();
        let by = |hold: &Hold| hold.by.clone();
        Self {
            paused_at: paused.map(at),
            paused_reason: paused.map(reason),
            paused_by: paused.map(by),
            disabled_at: disabled.map(at),
            disabled_reason: disabled.map(reason),
            disabled_by: disabled.map(by),
            circuit: held.circuit.word(now),
            circuit_until: held.circuit.held().map(|(_, until)| Time(until)),
        }
    }

    /// In one short line; `None` if nothing holds it.
    pub(crate) fn told(&self) -> Option<String> {
        let hold = |word: &str, at: &Time, reason: Option<&str>, by: Option<&str>| {
            format!("{word} since {at} by {}: {}", by.unwrap_or("-"), reason.unwrap_or("-"))
        };
        let paused = self
            .paused_at
            .as_ref()
            .map(|at| hold("paused", at, self.paused_reason.as_deref(), self.paused_by.as_deref()));
        let disabled = self
            .disabled_at
            .as_ref()
            .map(|at| hold("disabled", at, self.disabled_reason.as_deref(), self.disabled_by.as_deref()));
        let circuit =
            self.circuit_until.as_ref().map(|until| format!("circuit {}, probe at {until}", self.circuit));
        let told: Vec<String> = [paused, disabled, circuit].into_iter().flatten().collect();
        (!told.is_empty()).then(|| told.join("; "))
    }
}

/// Pauses scheduling, a queue, an endpoint or a source.
///
/// Nothing new begins, what runs may finish, nothing is lost, and the time does not count against any horizon. It holds over
/// restarts. A second pause changes nothing and says so (`already_paused`): the first one's reason stays. So no
/// `Idempotency-Key` is needed.
#[utoipa::path(
    post, path = "/v1/pause", operation_id = "control.pause", tag = "control",
    request_body = PauseRequest,
    responses(
        (status = 200, description = "What came of it", body = PauseAnswer),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn pause(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let request: PauseRequest = parse(&state.read(&headers, body, BYTES_MAX).await?)?;
    let scope = scope_of(&request)?;
    steer(&state, &caller, scope, Verb::Pause, request.reason).await
}

/// Resumes what was paused.
///
/// One resume ends the pause, however often it was paused (`not_paused` if it was not). What became due meanwhile begins in
/// order, within the lane's concurrency and rate. Queues and endpoints that were paused by themselves stay so.
#[utoipa::path(
    post, path = "/v1/resume", operation_id = "control.resume", tag = "control",
    request_body = PauseRequest,
    responses(
        (status = 200, description = "What came of it", body = PauseAnswer),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn resume(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let request: PauseRequest = parse(&state.read(&headers, body, BYTES_MAX).await?)?;
    let scope = scope_of(&request)?;
    steer(&state, &caller, scope, Verb::Resume, request.reason).await
}

/// Enables an endpoint that was disabled: after 410, after days without a success, because its receiver asked for it, or by
/// its configuration over the API.
///
/// Its circuit is closed and its failures are forgotten; what was held goes on, in order. What a file disables is the file's
/// to change (`managed_by_file`).
#[utoipa::path(
    post, path = "/v1/endpoints/{id}/enable", operation_id = "endpoints.enable", tag = "endpoints",
    params(("id" = String, Path, description = "Its id")),
    request_body = ReasonRequest,
    responses(
        (status = 200, description = "What came of it", body = PauseAnswer),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn enable(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    named(&state, &caller, (DestinationKind::Endpoint, &id), Verb::Enable, &headers, body).await
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Verb {
    Pause,
    Resume,
    Enable,
}

/// One destination, named in the path.
async fn named(
    state: &AppState,
    caller: &Caller,
    (kind, id): (DestinationKind, &str),
    verb: Verb,
    headers: &HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let body = state.read(headers, body, BYTES_MAX).await?;
    let request: ReasonRequest = if body.is_empty() { ReasonRequest::default() } else { parse(&body)? };
    let id = DestinationId::new(id).map_err(|_| unknown(kind, id))?;
    steer(state, caller, PauseScope::Destination { kind, id }, verb, request.reason).await
}

async fn steer(
    state: &AppState,
    caller: &Caller,
    scope: PauseScope,
    verb: Verb,
    reason: Option<String>,
) -> Result<Response, Problem> {
    let reason = match (reason, verb) {
        (Some(reason), _) => reason,
        (None, Verb::Pause) => {
            let text = "a pause needs a `reason`: it is what the next person on call sees";
            return Err(Problem::new(Code::MissingField, text).with("path", "reason"));
        }
        (None, Verb::Resume | Verb::Enable) => NO_REASON.to_owned(),
    };
    let why = Why { reason: reason.into(), actor: (&*caller.name).into() };
    let (engine, tenant) = (state.engine(), caller.tenant);
    let outcome = match (verb, &scope) {
        (Verb::Pause, scope) => engine.pause(tenant, scope, why).await?,
        (Verb::Enable, PauseScope::Destination { id, .. }) => engine.enable_endpoint(tenant, id, why).await?,
        (Verb::Resume | Verb::Enable, scope) => engine.resume(tenant, scope, why).await?,
    };
    let (scope, id) = match scope {
        PauseScope::Scheduling => ("scheduling", None),
        PauseScope::Destination { kind, id } => (kind.as_str(), Some(id.to_string())),
    };
    let held = HeldJson::of(&outcome.held, engine.now());
    Ok(answer(StatusCode::OK, &PauseAnswer { result: result(verb, &outcome), scope, id, held }))
}

fn result(verb: Verb, outcome: &SteerOutcome) -> &'static str {
    match (verb, outcome.changed) {
        (Verb::Pause, true) => "paused",
        (Verb::Pause, false) => "already_paused",
        (Verb::Resume, true) => "resumed",
        (Verb::Resume, false) => "not_paused",
        (Verb::Enable, true) => "enabled",
        (Verb::Enable, false) => "already_enabled",
    }
}

fn scope_of(request: &PauseRequest) -> Result<PauseScope, Problem> {
    let named = [
        (DestinationKind::Queue, &request.queue),
        (DestinationKind::Endpoint, &request.endpoint),
        (DestinationKind::Source, &request.source),
    ];
    let mut named = named.into_iter().filter_map(|(kind, id)| Some((kind, id.as_deref()?)));
    match (request.scope.as_deref(), named.next(), named.next()) {
        (Some("scheduling"), None, None) => Ok(PauseScope::Scheduling),
        (None, Some((kind, id)), None) => {
            let id = DestinationId::new(id).map_err(|_| unknown(kind, id))?;
            Ok(PauseScope::Destination { kind, id })
        }
        (Some(other), None, None) => {
            let shown: String = other.chars().take(64).collect();
            let text = format!(
                "`scope`: {shown:?} is not known; say \"scheduling\", or name a queue, endpoint or source"
            );
            Err(Problem::new(Code::InvalidValue, text).with("path", "scope"))
        }
        (_, _, _) => {
            let text = "say exactly one of `scope`, `queue`, `endpoint` and `source`";
            Err(Problem::new(Code::InvalidValue, text).with("path", "scope"))
        }
    }
}

fn unknown(kind: DestinationKind, id: &str) -> Problem {
    EngineError::NotFound { what: kind.as_str(), id: id.chars().take(64).collect() }.into()
}

/// The two routes of one kind, with their documentation.
macro_rules! routes {
    ($module:ident, $kind:ident, $pause:literal, $resume:literal, $tag:literal, $prefix:literal, $what:literal) => {
        #[doc = concat!("`", $tag, ".pause`, `", $tag, ".resume`.")]
        pub(crate) mod $module {
            use super::*;

            #[doc = concat!("Pauses ", $what, ".")]
            #[utoipa::path(
                post, path = $pause, summary = concat!("Pauses ", $what, "."), operation_id = concat!($prefix, "pause"), tag = $tag,
                params(("id" = String, Path, description = "Its id")),
                request_body = ReasonRequest,
                responses(
                    (status = 200, description = "What came of it", body = PauseAnswer),
                    (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
                    (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn pause(
                State(state): State<AppState>,
                caller: Caller,
                Segments(id): Segments<String>,
                headers: HeaderMap,
                body: Body,
            ) -> Result<Response, Problem> {
                named(&state, &caller, (DestinationKind::$kind, &id), Verb::Pause, &headers, body).await
            }

            #[doc = concat!("Resumes ", $what, ".")]
            #[utoipa::path(
                post, path = $resume, summary = concat!("Resumes ", $what, "."), operation_id = concat!($prefix, "resume"), tag = $tag,
                params(("id" = String, Path, description = "Its id")),
                request_body = ReasonRequest,
                responses(
                    (status = 200, description = "What came of it", body = PauseAnswer),
                    (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
                    (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn resume(
                State(state): State<AppState>,
                caller: Caller,
                Segments(id): Segments<String>,
                headers: HeaderMap,
                body: Body,
            ) -> Result<Response, Problem> {
                named(&state, &caller, (DestinationKind::$kind, &id), Verb::Resume, &headers, body).await
            }
        }
    };
}

routes!(
    endpoints,
    Endpoint,
    "/v1/endpoints/{id}/pause",
    "/v1/endpoints/{id}/resume",
    "endpoints",
    "endpoints.",
    "an endpoint"
);
routes!(queues, Queue, "/v1/queues/{id}/pause", "/v1/queues/{id}/resume", "queues", "queues.", "a queue");
routes!(
    sources,
    Source,
    "/v1/sources/{id}/pause",
    "/v1/sources/{id}/resume",
    "sources",
    "sources.",
    "a source"
);

/// Where they are.
pub(super) fn router() -> axum::Router<AppState> {
    use axum::routing::post;
    axum::Router::new()
        .route("/v1/pause", post(pause))
        .route("/v1/resume", post(resume))
        .route("/v1/endpoints/{id}/enable", post(enable))
        .route("/v1/endpoints/{id}/pause", post(endpoints::pause))
        .route("/v1/endpoints/{id}/resume", post(endpoints::resume))
        .route("/v1/queues/{id}/pause", post(queues::pause))
        .route("/v1/queues/{id}/resume", post(queues::resume))
        .route("/v1/sources/{id}/pause", post(sources::pause))
        .route("/v1/sources/{id}/resume", post(sources::resume))
}
