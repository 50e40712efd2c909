//! The page of one key: what happened, and what is safe to do next. Rows F1, F2.

use askama::Template;
use axum::{extract::State, response::Response};
use http::{StatusCode, Uri};
use posthaste_core::{AttemptOutcome, Class, Effect, EffectSpan, Timestamp};
use posthaste_engine::{Timeline, TimelineEntry};
use posthaste_store::JobView;
use serde_json::Value;

use super::{answer, login::Reader, words};
use crate::http::{
    AppState, Code, Problem,
    job_view::{AttemptJson, JobJson},
    query::Query,
    time::Time,
};

/// What stands in a cell that has nothing to say.
const NOTHING: &str = "–";

#[derive(Template)]
#[template(path = "timeline.html")]
struct TimelinePage {
    logged_in: bool,
    key: String,
    summary: String,
    message_id: String,
    event_type: String,
    accepted_at: String,
    correlation_id: String,
    jobs: Vec<JobPart>,
    entries: Vec<Step>,
}

struct JobPart {
    id: String,
    event_id: String,
    destination: String,
    owner: String,
    state: &'static str,
    meaning: &'static str,
    action: &'static str,
    more: Option<&'static str>,
    reason: Option<String>,
    effects: String,
    scheduled_at: String,
    due_at: String,
    finished_at: String,
    attempts: Vec<AttemptRow>,
}

struct AttemptRow {
    number: String,
    style: &'static str,
    verdict: &'static str,
    due_at: String,
    started_at: String,
    finished_at: String,
    duration: String,
    path: &'static str,
    outcome: &'static str,
    class: &'static str,
    effect: &'static str,
    status: String,
    worker: String,
    next_at: String,
    policy: String,
    message: Option<String>,
    excerpt: Option<String>,
}

struct Step {
    at: String,
    stage: &'static str,
    attempt: String,
    destination: String,
    actor: String,
    says: String,
}

/// Shows what happened to one key.
pub(super) async fn page(State(state): State<AppState>, reader: Reader, uri: Uri) -> Response {
    match read(&state, &reader, &uri).await {
        Ok(page) => answer::page(StatusCode::OK, &page),
        Err(problem) => answer::problem(&problem),
    }
}

async fn read(state: &AppState, Reader(caller): &Reader, uri: &Uri) -> Result<TimelinePage, Problem> {
    let key = Query::parse(uri, &["key"])?.key()?;
    let timeline = state.engine().timeline(caller.tenant, &key, None).await?;
    let unknown =
        || Problem::new(Code::NotFound, format!("there is no message of the key {:?}", key.as_str()));
    Ok(told(timeline.ok_or_else(unknown)?))
}

fn told(timeline: Timeline) -> TimelinePage {
    let message = timeline.message;
    TimelinePage {
        logged_in: true,
        key: message.key.to_string(),
        summary: timeline.summary,
        message_id: message.id.to_string(),
        event_type: or_nothing(message.event_type.as_deref()),
        accepted_at: Time(message.accepted_at).to_string(),
        correlation_id: message.correlation_id.into(),
        jobs: timeline.jobs.iter().zip(&timeline.effects).map(job_part).collect(),
        entries: timeline.entries.iter().map(step).collect(),
    }
}

fn job_part((view, span): (&JobView, &EffectSpan)) -> JobPart {
    let job = JobJson::whole(view, *span, None);
    let state = view.job.state.name();
    let shown = |time: Option<Time>| time.map_or_else(|| NOTHING.to_owned(), |time| time.to_string());
    let effects = match (span.effect, span.lo, span.hi) {
        (Effect::None, ..) => "no attempt can have acted".to_owned(),
        (effect, lo, hi) if lo == hi => format!("{lo} effect, {effect}"),
        (effect, lo, hi) => format!("{lo} to {hi} effects, {effect}"),
    };
    let attempts = job.attempts.unwrap_or_default();
    let verdicts = view.attempts.iter().map(words::verdict).chain(std::iter::repeat(("calm", "running")));
    JobPart {
        id: job.id,
        event_id: job.event_id,
        destination: job.destination,
        owner: or_nothing(job.owner.as_deref()),
        state: job.state,
        meaning: words::meaning(state),
        action: words::action(state),
        more: words::more(&view.job.state),
        reason: job.reason.map(Into::into),
        effects,
        scheduled_at: job.scheduled_at.to_string(),
        due_at: shown(job.due_at),
        finished_at: shown(job.finished_at),
        attempts: attempts
            .into_iter()
            .zip(verdicts)
            .map(|(row, verdict)| attempt_row(row, verdict))
            .collect(),
    }
}

fn attempt_row(row: AttemptJson, (style, verdict): (&'static str, &'static str)) -> AttemptRow {
    let shown = |time: Option<Time>| time.map_or_else(|| NOTHING.to_owned(), |time| time.to_string());
    AttemptRow {
        number: row.attempt.map_or_else(|| NOTHING.to_owned(), |number| number.to_string()),
        style,
        verdict,
        due_at: row.due_at.to_string(),
        started_at: shown(row.started_at),
        finished_at: shown(row.finished_at),
        duration: row.duration_ms.map_or_else(|| NOTHING.to_owned(), |ms| format!("{ms} ms")),
        path: row.path,
        outcome: row.outcome.unwrap_or("running"),
        class: row.class.unwrap_or(NOTHING),
        effect: row.effect.unwrap_or(NOTHING),
        status: row.status.map_or_else(|| NOTHING.to_owned(), |status| status.to_string()),
        worker: row.worker.into(),
        next_at: shown(row.next_at),
        policy: row.policy.unwrap_or_else(|| NOTHING.to_owned()),
        message: row.message.map(Into::into),
        excerpt: row.excerpt.filter(|excerpt| !excerpt.is_empty()),
    }
}

fn step(entry: &TimelineEntry) -> Step {
    Step {
        at: Time(entry.at).to_string(),
        stage: entry.stage.as_str(),
        attempt: entry.attempt.map_or_else(String::new, |attempt| attempt.get().to_string()),
        destination: entry.destination.as_ref().map_or_else(String::new, ToString::to_string),
        actor: entry.actor.as_deref().unwrap_or_default().to_owned(),
        says: says(entry),
    }
}

/// What a step says beside its stage, in one line.
fn says(entry: &TimelineEntry) -> String {
    let mut parts: Vec<String> = Vec::new();
    let mut say = |name: &str, word: Option<&str>| {
        if let Some(word) = word {
            parts.push(format!("{name} {word}"));
        }
    };
    say("path", entry.path.map(posthaste_core::Path::as_str));
    say("outcome", entry.outcome.map(AttemptOutcome::as_str));
    say("class", entry.class.map(Class::as_str));
    say("effect", entry.effect.map(Effect::as_str));
    say("next", entry.next_at.map(|at: Timestamp| Time(at).to_string()).as_deref());
    for (name, value) in &entry.detail {
        match value {
            Value::Null => {}
            Value::String(text) => parts.push(format!("{name} {text}")),
            Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => {
                parts.push(format!("{name} {value}"));
            }
        }
    }
    parts.join(" · ")
}

fn or_nothing(text: Option<&str>) -> String {
    text.unwrap_or(NOTHING).to_owned()
}
