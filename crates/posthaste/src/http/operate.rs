//! `jobs.replay`, `jobs.resend`, `jobs.reconcile`: what an operator does with a job that came to its end. Rows B9, C8.

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderMap, StatusCode};
use posthaste_core::{Attempt, Evidence, LookUpVerdict, ledger::Outcome};
use posthaste_engine::{Assume, Judged, Judgement, Known, OperateError, Operated, RoundAgain};
use posthaste_store::LedgerEntry;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{
    AppState, Caller, Code, Problem,
    job_view::{AttemptJson, EffectsJson},
    jobs::{BYTES_MAX, parse_id},
    json::{answer, parse},
    problem::ProblemJson,
    segments::Segments,
    time::Time,
};

/// Sends a dead letter round again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReplayRequest {
    /// The job's `attempt` as it was seen; `null` if it was never tried.
    #[serde(deserialize_with = "seen")]
    #[schema(value_type = Option<u32>, required, minimum = 1)]
    attempt: Option<Attempt>,
    /// Why; shown for ever.
    #[schema(min_length = 1, max_length = 1024)]
    reason: String,
    /// `not_done`: the asker vouches that the effect has not happened, though an attempt may have acted.
    #[schema(examples("not_done"))]
    assume: Option<String>,
}

/// Sends a committed job round again.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResendRequest {
    /// The job's `attempt` as it was seen; `null` if it was never tried.
    #[serde(deserialize_with = "seen")]
    #[schema(value_type = Option<u32>, required, minimum = 1)]
    attempt: Option<Attempt>,
    /// Why; shown for ever.
    #[schema(min_length = 1, max_length = 1024)]
    reason: String,
}

/// Settles a job by what is known already.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReconcileRequest {
    /// Why, or how you know; shown for ever. Required with a verdict.
    #[schema(min_length = 1, max_length = 1024)]
    reason: Option<String>,
    /// What you found out about the effect of the last attempt: `present`, `absent`, `in_progress` or `unsure`.
    #[schema(examples("present", "absent"))]
    verdict: Option<String>,
    /// With a verdict: the job's `attempt` as it was seen.
    #[serde(default, deserialize_with = "maybe_seen")]
    #[schema(value_type = Option<u32>, minimum = 1)]
    #[allow(clippy::option_option)] // left out, never tried, or a number
    attempt: Option<Option<Attempt>>,
    /// `true`: ask the receiver now, as the destination's `reconcile` says, instead of when it is due.
    #[serde(default)]
    #[schema(required = false)]
    look_up: bool,
}

/// What became of a job that was replayed, resent or reconciled.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct OperateAnswer {
    /// `replayed`, `resent`: it goes round again. `settled`: nothing is sent, since the records show how it ended. `waits`:
    /// the verdict was taken, and the job goes on by itself.
    #[schema(examples("replayed", "resent", "settled", "waits"))]
    result: &'static str,
    /// The job's state.
    #[schema(examples("scheduled", "committed", "cancelled"))]
    state: &'static str,
    /// The job's last attempt; the next one has the number after it.
    attempt: Option<u32>,
    /// When the next attempt may start.
    #[schema(value_type = Option<String>, format = DateTime)]
    due_at: Option<Time>,
    /// What a commit rests on: `answered`, `ledger`, `worker` or `reconciled`.
    evidence: Option<&'static str>,
    /// What a look-up, or whoever looked, found.
    #[serde(skip_serializing_if = "Option::is_none")]
    verdict: Option<&'static str>,
    /// When `absent` will be believed: the last request may act until then. It is asked again.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    believed_at: Option<Time>,
    /// The message that a quarantined one went on as.
    #[serde(skip_serializing_if = "Option::is_none")]
    message_id: Option<String>,
}

impl From<Judged> for OperateAnswer {
    fn from(judged: Judged) -> Self {
        Self {
            verdict: Some(judged.verdict.as_str()),
            believed_at: judged.believed_at.map(Time),
            ..Self::from(judged.operated)
        }
    }
}

impl From<Operated> for OperateAnswer {
    fn from(operated: Operated) -> Self {
        Self {
            result: operated.result.as_str(),
            state: operated.state.as_str(),
            attempt: operated.attempt.map(Attempt::get),
            due_at: operated.due_at.map(Time),
            evidence: operated.evidence.map(Evidence::as_str),
            verdict: None,
            believed_at: None,
            message_id: operated.went_to.map(|message| message.to_string()),
        }
    }
}

/// Sends a dead letter round again, unless its effect has, or may have, happened.
///
/// Identity, history and payload stay, and the budgets begin anew. Where the records show that the effect has happened the
/// job is settled instead (`result: settled`). Where an attempt may have acted it is refused with `outcome_unknown` and the
/// evidence, unless the destination is declared `idempotent` or the asker says `assume: not_done`. No `Idempotency-Key` is
/// needed: the very same request again, before the next attempt begins, gets the same answer; later it is refused with
/// `attempt_changed` or `not_dead_lettered`. What a source quarantined is held against its configuration of today again: it
/// goes on as the message `message_id` and is settled, or stays, with 409 `still_quarantined` and today's `cause`.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/replay", operation_id = "jobs.replay", tag = "jobs",
    params(("id" = String, Path, description = "`job_…`")),
    request_body = ReplayRequest,
    responses(
        (status = 200, description = "What it came to", body = OperateAnswer),
        (status = "4XX", description = "Refused; 409 `outcome_unknown` has `cause`, `effect`, `effects`, the `attempts` that may have acted, and the `ledger` entry", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn replay(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let job = parse_id(&id)?;
    let body = state.read(&headers, body, BYTES_MAX).await?;
    let request: ReplayRequest = parse(&body)?;
    let assume = match request.assume.as_deref() {
        None => Assume::Nothing,
        Some("not_done") => Assume::NotDone,
        Some(other) => {
            let shown: String = other.chars().take(64).collect();
            let text = format!("`assume`: {shown:?} is not known; say \"not_done\", or leave it out");
            return Err(Problem::new(Code::InvalidValue, text).with("path", "assume"));
        }
    };
    let again = again(job, request.attempt, request.reason, &caller);
    let operated = state.engine().replay(caller.tenant, again, assume).await?;
    Ok(answer(StatusCode::OK, &OperateAnswer::from(operated)))
}

/// Sends a committed job round again: its receiver lost what it had.
///
/// The same identity, so a receiver whose ledger still says that it is done answers "duplicate": reset its entry first. No
/// `Idempotency-Key` is needed: the very same request again, before the next attempt begins, gets the same answer; later it
/// is refused with `attempt_changed` or `not_committed`.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/resend", operation_id = "jobs.resend", tag = "jobs",
    params(("id" = String, Path, description = "`job_…`")),
    request_body = ResendRequest,
    responses(
        (status = 200, description = "What it came to", body = OperateAnswer),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn resend(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let job = parse_id(&id)?;
    let body = state.read(&headers, body, BYTES_MAX).await?;
    let request: ResendRequest = parse(&body)?;
    let again = again(job, request.attempt, request.reason, &caller);
    let operated = state.engine().resend(caller.tenant, again).await?;
    Ok(answer(StatusCode::OK, &OperateAnswer::from(operated)))
}

/// Settles a job by evidence that is known already, by what you found out, or by asking the receiver now.
///
/// With `verdict`, your word is taken on whether the last attempt acted: of a job that waits for a look-up any verdict
/// (`absent` only once the last request can no longer act), of a dead letter `present` alone: one whose effect is absent is
/// replayed with `assume: not_done`. With `look_up`, the receiver is asked now. With neither, evidence is looked for: that is a ledger entry that is done, a commit that was heard after its attempt had ended, or, for a dead letter, an
/// attempt that was reported to have acted. A job that is settled already is answered as it is. Where nothing is known:
/// 409 `no_evidence`.
#[utoipa::path(
    post, path = "/v1/jobs/{id}/reconcile", operation_id = "jobs.reconcile", tag = "jobs",
    params(("id" = String, Path, description = "`job_…`")),
    request_body = ReconcileRequest,
    responses(
        (status = 200, description = "What it came to", body = OperateAnswer),
        (status = "4XX", description = "Refused; 409 `no_evidence` has what `outcome_unknown` has", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn reconcile(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let job = parse_id(&id)?;
    let body = state.read(&headers, body, BYTES_MAX).await?;
    let request: ReconcileRequest = parse(&body)?;
    let reason = request.reason.as_deref();
    if let Some(word) = request.verdict.as_deref() {
        let judgement = judgement(job, word, &request, &caller)?;
        let judged = state.engine().judge(caller.tenant, judgement).await?;
        return Ok(answer(StatusCode::OK, &OperateAnswer::from(judged)));
    }
    if request.attempt.is_some() {
        let text = "`attempt` goes with `verdict`: without one there is nothing to compare";
        return Err(Problem::new(Code::InvalidValue, text).with("path", "attempt"));
    }
    if request.look_up {
        let judged = state.engine().look_up_now(caller.tenant, job, &caller.name).await?;
        return Ok(answer(StatusCode::OK, &OperateAnswer::from(judged)));
    }
    let operated = state.engine().reconcile(caller.tenant, job, reason, &caller.name).await?;
    Ok(answer(StatusCode::OK, &OperateAnswer::from(operated)))
}

fn judgement(
    job: posthaste_core::JobId,
    word: &str,
    request: &ReconcileRequest,
    caller: &Caller,
) -> Result<Judgement, Problem> {
    let invalid = |path: &str, text: &'static str| Problem::new(Code::InvalidValue, text).with("path", path);
    if request.look_up {
        return Err(invalid("look_up", "`verdict` and `look_up` exclude each other: give one of them"));
    }
    let verdict = verdict("verdict", word)?;
    let Some(seen) = request.attempt else {
        return Err(invalid(
            "attempt",
            "`attempt`: name the attempt that you looked at, as the job shows it",
        ));
    };
    let Some(reason) = request.reason.as_deref() else {
        return Err(invalid("reason", "`reason`: say how you know; it is shown for ever"));
    };
    Ok(Judgement { job, seen, verdict, reason: reason.into(), actor: (&*caller.name).into() })
}

/// Reads a verdict.
pub(super) fn verdict(path: &str, word: &str) -> Result<LookUpVerdict, Problem> {
    LookUpVerdict::parse(word).ok_or_else(|| {
        let shown: String = word.chars().take(64).collect();
        let text = format!("`{path}`: {shown:?} is no verdict; say present, absent, in_progress or unsure");
        Problem::new(Code::InvalidValue, text).with("path", path)
    })
}

fn again(job: posthaste_core::JobId, seen: Option<Attempt>, reason: String, caller: &Caller) -> RoundAgain {
    RoundAgain { job, seen, reason: reason.into(), actor: (&*caller.name).into() }
}

/// A number from 1, or `null`; not to be left out.
fn seen<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Attempt>, D::Error> {
    let Some(number) = Option::<u32>::deserialize(deserializer)? else { return Ok(None) };
    let attempt = Attempt::new(number).ok_or_else(|| {
        serde::de::Error::custom("invalid value: attempts count from 1; give null if it was never tried")
    })?;
    Ok(Some(attempt))
}

/// The same, and it may be left out.
#[allow(clippy::option_option)] // left out, never tried, or a number
fn maybe_seen<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Option<Attempt>>, D::Error> {
    seen(deserializer).map(Some)
}

impl From<OperateError> for Problem {
    fn from(error: OperateError) -> Self {
        let text = error.to_string();
        match error {
            OperateError::Engine(error) => error.into(),
            OperateError::OutcomeUnknown { cause, known } => {
                let problem = Self::new(Code::OutcomeUnknown, text).with("cause", cause.as_str());
                with_evidence(problem, &known)
            }
            OperateError::StillQuarantined(unfit) => {
                let problem = Self::new(Code::StillQuarantined, text).with("cause", unfit.cause.as_str());
                match unfit.reuse {
                    Some((field, message)) => {
                        problem.with("field", field.as_str()).with("known_message_id", message.to_string())
                    }
                    None => problem,
                }
            }
            OperateError::NoEvidence(known) => with_evidence(Self::new(Code::NoEvidence, text), &known),
        }
    }
}

/// What a person decides by: how many effects, by which attempts, and what the ledger says.
fn with_evidence(problem: Problem, known: &Known) -> Problem {
    let span = known.span;
    let effects = json!(EffectsJson { lo: span.lo, hi: span.hi });
    let attempts: Vec<Value> =
        known.suspects().map(|view| json!(AttemptJson::ended(&known.view.job, view))).collect();
    problem
        .with("state", known.view.job.state.name().as_str())
        .with("current_attempt", known.view.job.attempt.map(Attempt::get))
        .with("effect", span.effect.as_str())
        .with("effects", effects)
        .with("attempts", attempts)
        .with("ledger", known.entry.as_ref().map_or(Value::Null, entry_json))
}

fn entry_json(found: &LedgerEntry) -> Value {
    json!({
        "key": found.key.as_str(),
        "status": found.entry.status.as_str(),
        "outcome": found.entry.outcome.map(Outcome::as_str),
        "attempts": found.entry.attempts,
        "locked_until": Time(found.entry.locked_until),
        "updated_at": Time(found.updated_at),
    })
}
