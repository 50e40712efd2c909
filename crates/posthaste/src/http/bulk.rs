//! `jobs.replay_many`, and the same for cancels: runs over many jobs, begun, watched, paused and stopped. Rows B8, B9.

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderMap, StatusCode, Uri};
use posthaste_core::{RunControl, RunId, RunKind, limits};
use posthaste_engine::{BulkError, BulkStart, EngineError};

use super::{
    AppState, Caller, Code, Problem,
    bulk_json::{DryRunJson, RunJson, RunRequest},
    jobs::BYTES_MAX,
    json::{answer, parse},
    paging::Page,
    query::Query,
    segments::Segments,
};

fn idempotency_key(headers: &HeaderMap) -> Result<Option<Box<str>>, Problem> {
    let Some(value) = headers.get("idempotency-key") else { return Ok(None) };
    let text = value.to_str().ok().filter(|text| {
        (1..=limits::IDEMPOTENCY_KEY_BYTES_MAX).contains(&text.len())
            && text.bytes().all(|byte| (0x21..=0x7E).contains(&byte))
    });
    let problem = format!(
        "`Idempotency-Key` holds 1 to {} bytes of visible ASCII without spaces",
        limits::IDEMPOTENCY_KEY_BYTES_MAX
    );
    text.map(|text| Some(text.into())).ok_or_else(|| Problem::new(Code::InvalidName, problem))
}

fn run_id(text: &str) -> Result<RunId, Problem> {
    RunId::parse(text)
        .ok_or_else(|| EngineError::NotFound { what: "run", id: text.chars().take(64).collect() }.into())
}

impl From<BulkError> for Problem {
    fn from(error: BulkError) -> Self {
        let text = error.to_string();
        match error {
            BulkError::Engine(error) => error.into(),
            BulkError::KeyReused(run) => Self::new(Code::KeyReused, text).with("run", run.to_string()),
            BulkError::TooMany => Self::new(Code::TooManyRuns, text),
            BulkError::WrongState { state, .. } => {
                Self::new(Code::RunEnded, text).with("state", state.as_str())
            }
        }
    }
}

async fn start(
    state: &AppState,
    caller: &Caller,
    headers: &HeaderMap,
    body: Body,
    kind: RunKind,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let body = state.read(headers, body, BYTES_MAX).await?;
    let request: RunRequest = parse(&body)?;
    let dry_run = request.dry_run.unwrap_or(false);
    let request = request.read(state, caller.tenant, kind)?;
    if dry_run {
        let dry = state.engine().bulk_dry_run(caller.tenant, &request).await?;
        let (matched, examined, complete) = (dry.matched, dry.examined, dry.complete);
        return Ok(answer(StatusCode::OK, &DryRunJson { dry_run, matched, examined, complete }));
    }
    let idempotency_key = idempotency_key(headers)?;
    let start = BulkStart { request, idempotency_key, actor: (&*caller.name).into() };
    let (run, new) = state.engine().bulk_start(caller.tenant, start).await?;
    let status = if new { StatusCode::ACCEPTED } else { StatusCode::OK };
    Ok(answer(status, &RunJson::of(&run)))
}

async fn list(state: &AppState, caller: &Caller, uri: &Uri, kind: RunKind) -> Result<Response, Problem> {
    caller.require_read_or_operate()?;
    let query = Query::parse(uri, &["limit", "cursor"])?;
    let limit = query.limit()?;
    let before = query.read("cursor", "the next_cursor of a page", RunId::parse)?;
    let mut runs = state.engine().store().bulk_runs(caller.tenant, kind, before, limit + 1).await?;
    let more = runs.len() > limit;
    runs.truncate(limit);
    let next_cursor = runs.last().filter(|_| more).map(|run| run.id.to_string());
    let data = runs.iter().map(RunJson::of).collect();
    Ok(answer(StatusCode::OK, &Page { data, next_cursor }))
}

async fn get(state: &AppState, caller: &Caller, id: &str, kind: RunKind) -> Result<Response, Problem> {
    caller.require_read_or_operate()?;
    let run = state.engine().bulk_run(caller.tenant, kind, run_id(id)?).await?;
    Ok(answer(StatusCode::OK, &RunJson::of(&run)))
}

async fn control(
    state: &AppState,
    caller: &Caller,
    id: &str,
    kind: RunKind,
    control: RunControl,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let engine = state.engine();
    let run = engine.bulk_control(caller.tenant, kind, run_id(id)?, control, &caller.name).await?;
    Ok(answer(StatusCode::OK, &RunJson::of(&run)))
}

/// One control of one kind.
macro_rules! control {
    ($name:ident, $control:ident, $kind:ident, $path:literal, $id:expr, $tag:literal, $summary:literal, $what:literal) => {
        #[doc = $summary]
        #[utoipa::path(
            post, path = $path, operation_id = $id, tag = $tag, summary = $summary, description = $what,
            params(("id" = String, Path, description = "`run_…`")),
            responses(
                (status = 200, description = "As it stands now", body = RunJson),
                (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
                (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
            )
        )]
        pub(crate) async fn $name(
            State(state): State<AppState>,
            caller: Caller,
            Segments(id): Segments<String>,
        ) -> Result<Response, Problem> {
            super::control(&state, &caller, &id, RunKind::$kind, RunControl::$control).await
        }
    };
}

/// The routes of one kind, with their documentation.
macro_rules! routes {
    (
        $module:ident, $kind:ident, $tag:literal, $start_id:literal, $prefix:literal, $path:literal, $one:literal,
        $pause:literal, $resume:literal, $stop:literal, $summary:literal, $about:literal
    ) => {
        #[doc = $summary]
        pub(crate) mod $module {
            use super::*;
            use crate::http::problem::ProblemJson;

            #[doc = $summary]
            #[utoipa::path(
                post, path = $path, operation_id = $start_id, tag = $tag, summary = $summary, description = $about,
                params(("Idempotency-Key" = Option<String>, Header, description = "Names the request: it begins one run, however often it comes")),
                request_body = RunRequest,
                responses(
                    (status = 202, description = "It runs", body = RunJson),
                    (status = 200, description = "The run that the same `Idempotency-Key` began; or, of a dry run, the count", body = RunJson),
                    (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
                    (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn start(
                State(state): State<AppState>,
                caller: Caller,
                headers: HeaderMap,
                body: Body,
            ) -> Result<Response, Problem> {
                super::start(&state, &caller, &headers, body, RunKind::$kind).await
            }

            #[doc = "Lists runs, newest first."]
            #[utoipa::path(
                get, path = $path, operation_id = concat!($prefix, "list"), tag = $tag,
                summary = "Lists runs, newest first.",
                params(
                    ("limit" = Option<u32>, Query, description = "1 to 500; 50 unless told"),
                    ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
                ),
                responses(
                    (status = 200, description = "One page", body = Page<RunJson>),
                    (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn list(
                State(state): State<AppState>,
                caller: Caller,
                uri: Uri,
            ) -> Result<Response, Problem> {
                super::list(&state, &caller, &uri, RunKind::$kind).await
            }

            #[doc = "Shows a run with its progress."]
            #[utoipa::path(
                get, path = $one, operation_id = concat!($prefix, "get"), tag = $tag,
                summary = "Shows a run with its progress.",
                params(("id" = String, Path, description = "`run_…`")),
                responses(
                    (status = 200, description = "The run", body = RunJson),
                    (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn get(
                State(state): State<AppState>,
                caller: Caller,
                Segments(id): Segments<String>,
            ) -> Result<Response, Problem> {
                super::get(&state, &caller, &id, RunKind::$kind).await
            }

            control!(pause, Pause, $kind, $pause, concat!($prefix, "pause"), $tag, "Lets a run wait.", "Takes effect within a step; asked again, nothing changes.");
            control!(resume, Resume, $kind, $resume, concat!($prefix, "resume"), $tag, "Lets a run go on.", "One that was paused, or that failed. It goes on where it was.");
            control!(stop, Stop, $kind, $stop, concat!($prefix, "stop"), $tag, "Ends a run for good.", "Jobs that it took stay as they are; the others are not touched.");
        }
    };
}

routes!(
    replays,
    Replay,
    "jobs",
    "jobs.replay_many",
    "replays.",
    "/v1/replays",
    "/v1/replays/{id}",
    "/v1/replays/{id}/pause",
    "/v1/replays/{id}/resume",
    "/v1/replays/{id}/stop",
    "Replays many dead letters, by a run in the background.",
    "Each job goes through the gate of a single replay: what may have happened stays as it is and is counted by code. A job is \
     taken once, and only if it was a dead letter when the run began; the run survives restarts. With `dry_run` the jobs that fit \
     are only counted."
);
routes!(
    cancels,
    Cancel,
    "jobs",
    "jobs.cancel_many",
    "cancels.",
    "/v1/cancels",
    "/v1/cancels/{id}",
    "/v1/cancels/{id}/pause",
    "/v1/cancels/{id}/resume",
    "/v1/cancels/{id}/stop",
    "Calls many jobs off, by a run in the background.",
    "Running jobs are asked to stop. Dead letters are discarded only if the filter says `state: dead_lettered`. A job is taken \
     once, and only if it was there when the run began; the run survives restarts. With `dry_run` the jobs that fit are only \
     counted."
);
