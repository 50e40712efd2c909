//! `queue.reconcile`: a queue's worker says whether an effect happened. Row C10.

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderMap, StatusCode};
use posthaste_engine::{HandedLookUp, WorkerFound};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    AppState, Caller, Problem,
    jobs::{BYTES_MAX, parse_id},
    json::{answer, parse},
    operate::{OperateAnswer, verdict},
    problem::ProblemJson,
    reports::require_work_on,
    time::Time,
    wire::EventIdOf,
};

/// A look-up that a worker is asked to make: did the effect of this event id happen?
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LookUp)]
pub(crate) struct LookUpJson {
    /// `reconcile`: this is no job to run.
    #[schema(examples("reconcile"))]
    kind: &'static str,
    /// `job_…`
    job: String,
    /// `{key}:{destination}`: what the effect was guarded by.
    event_id: String,
    /// `msg_…`
    message_id: String,
    /// The message's business key.
    key: String,
    /// The last attempt.
    attempt: Option<u32>,
    /// Names what is asked about; opaque. The report gives it back.
    look_up: Box<str>,
    /// Until when no other worker is asked.
    #[schema(value_type = String, format = DateTime)]
    expires_at: Time,
}

impl LookUpJson {
    pub(crate) fn of(handed: &HandedLookUp) -> Self {
        let view = &handed.view;
        Self {
            kind: "reconcile",
            job: view.job.id.to_string(),
            event_id: EventIdOf(&view.key, &view.destination).to_string(),
            message_id: handed.message.to_string(),
            key: view.key.to_string(),
            attempt: view.job.attempt.map(posthaste_core::Attempt::get),
            look_up: handed.token.clone(),
            expires_at: Time(handed.expires_at),
        }
    }
}

/// What a worker found out.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FoundRequest {
    /// `job_…`
    job: String,
    /// As the look-up said.
    look_up: String,
    /// `present`: the effect happened. `absent`: it did not. `in_progress`: it is happening. `unsure`: it can't be told.
    #[schema(examples("present", "absent", "in_progress", "unsure"))]
    verdict: String,
    /// How the worker knows; shown in the timeline.
    #[schema(min_length = 1, max_length = 1024)]
    message: Option<String>,
}

/// Takes what a worker found out about an effect that nobody was sure of.
///
/// `absent` is believed only once the last attempt can no longer act (`believed_at`); until then it is asked again.
#[utoipa::path(
    post, path = "/v1/queue/reconcile", operation_id = "queue.reconcile", tag = "queue",
    request_body = FoundRequest,
    responses(
        (status = 200, description = "What it came to", body = OperateAnswer),
        (status = "4XX", description = "Refused; 409 `attempt_changed`: the token is not of the last attempt; 409 `wrong_state`: no look-up is owed", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn reconcile(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.require_work_somewhere()?;
    let body = state.read(&headers, body, BYTES_MAX).await?;
    let request: FoundRequest = parse(&body)?;
    let job = parse_id(&request.job)?;
    require_work_on(&caller, &state.engine().directory(), job)?;
    let found = WorkerFound {
        job,
        token: request.look_up.into(),
        verdict: verdict("verdict", &request.verdict)?,
        message: request.message.map(Into::into),
    };
    let judged = state.engine().report_look_up(caller.tenant, found, &caller.name).await?;
    Ok(answer(StatusCode::OK, &OperateAnswer::from(judged)))
}
