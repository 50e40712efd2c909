//! `timeline.get`: one glance at one key. Rows F1, F2.

use axum::{extract::State, response::Response};
use http::{StatusCode, Uri};
use posthaste_core::{Attempt, AttemptOutcome, Class, Effect, EventId, Path, Remaining, limits};
use posthaste_engine::{Timeline, TimelineEntry};
use serde::Serialize;
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::{
    AppState, Caller, Code, Problem, job_view::JobJson, json::answer, ledger_json, problem::ProblemJson,
    publish_request::destination, query::Query, time::Time,
};

/// What happened to one key.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Timeline)]
pub(crate) struct TimelineJson {
    /// The message's business key.
    key: String,
    /// `msg_…`
    message_id: String,
    /// One sentence: deliveries, effects, where it stands.
    summary: String,
    /// Its jobs with their attempts.
    jobs: Vec<JobJson>,
    /// What the receivers' ledger says of the jobs' event ids, where it says something: the guard of the effect, a
    /// truth of its own beside that of the jobs. Of the first 100 jobs.
    ledger: Vec<ledger_json::EntryJson>,
    /// Every step, oldest first.
    entries: Vec<EntryJson>,
}

/// One step.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = TimelineEntry)]
pub(crate) struct EntryJson {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// What: one of the contract's stages.
    #[schema(examples("accepted", "scheduled", "leased", "committed"))]
    stage: &'static str,
    /// Names the request that brought the message, through all logs.
    correlation_id: Box<str>,
    /// `{key}:{destination}`.
    event_id: Option<Box<str>>,
    /// `job_…`
    job: Option<String>,
    /// The attempt's number.
    attempt: Option<u32>,
    /// The named path.
    path: Option<&'static str>,
    /// How the attempt ended.
    outcome: Option<&'static str>,
    /// Why it failed.
    class: Option<&'static str>,
    /// What is known about the effect.
    effect: Option<&'static str>,
    /// Who.
    actor: Option<Box<str>>,
    /// Where to.
    destination: Option<String>,
    /// When the next attempt may start.
    #[schema(value_type = Option<String>, format = DateTime)]
    next_at: Option<Time>,
    /// More.
    #[schema(value_type = Object)]
    detail: Map<String, Value>,
}

/// Shows every custody step of one key.
#[utoipa::path(
    get, path = "/v1/timeline", operation_id = "timeline.get", tag = "timeline",
    params(
        ("key" = String, Query, description = "The key, or any other name of the message, percent-encoded"),
        ("destination" = Option<String>, Query, description = "Only of this endpoint or queue"),
    ),
    responses(
        (status = 200, description = "The timeline", body = TimelineJson),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn get(
    State(state): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_read()?;
    let query = Query::parse(&uri, &["key", "destination"])?;
    let key = query.key()?;
    let destination = query.get("destination").map(|id| destination("destination", id)).transpose()?;
    let engine = state.engine();
    let timeline = engine.timeline(caller.tenant, &key, destination.as_ref()).await?;
    let unknown =
        || Problem::new(Code::NotFound, format!("there is no message of the key {:?}", key.as_str()));
    let timeline = timeline.ok_or_else(unknown)?;
    let mut ledger = Vec::new();
    for view in timeline.jobs.iter().take(limits::JOBS_LISTED_MAX) {
        let event_id = EventId::of(&view.key, &view.destination);
        ledger.extend(engine.ledger_entry(caller.tenant, event_id).await?.map(ledger_json::EntryJson::of));
    }
    let mut budgets = Vec::new();
    for view in &timeline.jobs {
        budgets.push(engine.remaining(caller.tenant, view).await?);
    }
    Ok(answer(StatusCode::OK, &TimelineJson::of(timeline, ledger, &budgets)))
}

impl TimelineJson {
    fn of(timeline: Timeline, ledger: Vec<ledger_json::EntryJson>, budgets: &[Remaining]) -> Self {
        let message = &timeline.message;
        let jobs = timeline.jobs.iter().zip(&timeline.effects).zip(budgets);
        let jobs = jobs.map(|((view, span), remaining)| {
            JobJson::whole(view, *span, Some(message.id)).with_budgets(&view.job, *remaining)
        });
        let jobs = jobs.collect();
        let entries = timeline.entries.into_iter().map(|entry| EntryJson::of(entry, &message.correlation_id));
        Self {
            key: message.key.to_string(),
            message_id: message.id.to_string(),
            jobs,
            ledger,
            entries: entries.collect(),
            summary: timeline.summary,
        }
    }
}

impl EntryJson {
    fn of(entry: TimelineEntry, correlation_id: &str) -> Self {
        Self {
            at: Time(entry.at),
            stage: entry.stage.as_str(),
            correlation_id: correlation_id.into(),
            event_id: entry.event_id,
            job: entry.job.map(|job| job.to_string()),
            attempt: entry.attempt.map(Attempt::get),
            path: entry.path.map(Path::as_str),
            outcome: entry.outcome.map(AttemptOutcome::as_str),
            class: entry.class.map(Class::as_str),
            effect: entry.effect.map(Effect::as_str),
            actor: entry.actor,
            destination: entry.destination.map(|destination| destination.to_string()),
            next_at: entry.next_at.map(Time),
            detail: entry.detail,
        }
    }
}
