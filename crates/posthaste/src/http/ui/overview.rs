//! The start page: how the tenant stands.

use askama::Template;
use axum::{extract::State, response::Response};
use http::StatusCode;
use posthaste_core::{Cause, State as JobState, StateName};
use posthaste_store::{JobFilter, JobView};

use super::{answer, login::Reader, words};
use crate::http::{AppState, Problem, overview::Overview, time::Time};

/// Dead letters that are shown.
const DEAD_LETTERS_MAX: usize = 10;

#[derive(Template)]
#[template(path = "overview.html")]
struct OverviewPage {
    logged_in: bool,
    overview: Overview,
    states: Vec<StateLine>,
    oldest_due: Option<String>,
    dead_letters: Vec<DeadLetter>,
}

struct StateLine {
    name: &'static str,
    jobs: u64,
    meaning: &'static str,
    action: &'static str,
}

struct DeadLetter {
    key: String,
    destination: String,
    cause: &'static str,
    owner: String,
    at: String,
}

/// Shows how the tenant stands.
pub(super) async fn page(State(state): State<AppState>, reader: Reader) -> Response {
    match read(&state, &reader).await {
        Ok(page) => answer::page(StatusCode::OK, &page),
        Err(problem) => answer::problem(&problem),
    }
}

async fn read(state: &AppState, Reader(caller): &Reader) -> Result<OverviewPage, Problem> {
    let overview = Overview::read(state, caller.tenant).await?;
    let filter =
        JobFilter { state: Some(StateName::DeadLettered), limit: DEAD_LETTERS_MAX, ..JobFilter::default() };
    let dead = state.engine().store().jobs(caller.tenant, filter).await?;
    let line = |state: StateName| StateLine {
        name: state.as_str(),
        jobs: overview.jobs.get(state.as_str()).copied().unwrap_or(0),
        meaning: words::meaning(state),
        action: words::action(state),
    };
    Ok(OverviewPage {
        logged_in: true,
        states: StateName::ALL.iter().copied().map(line).collect(),
        oldest_due: overview.oldest_due_at.map(|at| words::age(at.0, overview.now.0)),
        dead_letters: dead.iter().filter_map(dead_letter).collect(),
        overview,
    })
}

fn dead_letter(view: &JobView) -> Option<DeadLetter> {
    let (at, cause) = match &view.job.state {
        JobState::DeadLettered { at, cause } => (*at, *cause),
        JobState::Scheduled { .. }
        | JobState::Leased(_)
        | JobState::Retryable { .. }
        | JobState::Committed { .. }
        | JobState::Cancelled { .. } => return None,
    };
    Some(DeadLetter {
        key: view.key.to_string(),
        destination: view.destination.to_string(),
        cause: Cause::as_str(cause),
        owner: view.owner.as_deref().unwrap_or("–").to_owned(),
        at: Time(at).to_string(),
    })
}
