//! The receiver's ledger over HTTP: `ledger.claim`, `.complete`, `.fail`, `.extend`, `.get`, `.reset`. Rows C1 to C9.

use axum::{
    extract::{Request, State},
    response::Response,
};
use base64::{Engine as _, engine::general_purpose::STANDARD};
use bytes::Bytes;
use http::{HeaderValue, StatusCode, Uri, header};
use posthaste_core::{
    Class, EventId, Timestamp,
    ledger::{OnExpired, Outcome, Status},
    limits,
};
use posthaste_engine::{Claimed, LedgerClaim, LedgerError, LedgerSays, Shown};
use posthaste_store::StoredResult;

use super::{
    AppState, Caller, Code, Problem,
    json::{answer, parse},
    ledger_json::{
        ClaimAnswer, ClaimRequest, CompleteRequest, DoneJson, EntryAnswer, EntryJson, ExtendGrantRequest,
        FailRequest, ResetRequest,
    },
    problem::ProblemJson,
    query::Query,
    reports::word,
    time::Time,
};

/// Bytes of a request: a result in base64, and what stands beside it.
const BYTES_MAX: usize = 2 * limits::RESULT_BYTES_MAX;

/// Claims an effect before it begins.
///
/// All four paths answer 200. A grant ends by complete or fail, or runs out. Committed when it is answered.
#[utoipa::path(
    post, path = "/v1/ledger/claim", operation_id = "ledger.claim", tag = "ledger",
    request_body = ClaimRequest,
    responses(
        (status = 200, description = "One of the four paths; `Retry-After` with `in_progress_elsewhere`", body = ClaimAnswer),
        (status = 422, description = "`key_reused`: another fingerprint", body = ProblemJson, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn claim(
    State(state): State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let body = read(&state, request).await?;
    let request: ClaimRequest = parse(&body)?;
    let key = worker_key(&caller, &request.key)?;
    if let Some(job) = &request.job {
        check_job(&state, &caller, &key, job).await?;
    }
    let on_expired = word("on_expired", request.on_expired.as_deref(), OnExpired::ALL, OnExpired::as_str)?;
    let claim = LedgerClaim {
        key,
        lease: request.lease.map(|lease| lease.read("lease")).transpose()?,
        fingerprint: request.fingerprint.map(Into::into),
        claim_id: request.claim_id.map(Into::into),
        on_expired: on_expired.unwrap_or(OnExpired::Retake),
    };
    let claimed = state.engine().ledger_claim(caller.tenant, &caller.name, claim).await?;
    Ok(claim_answer(claimed, state.engine().now()))
}

/// Ends a grant: the effect happened, or surely never will.
///
/// Counts while the grant is in force, run out or not, as long as nobody else claimed since. Repeating it answers yes
/// again. On 409 roll the effect back.
#[utoipa::path(
    post, path = "/v1/ledger/complete", operation_id = "ledger.complete", tag = "ledger",
    request_body = CompleteRequest,
    responses(
        (status = 200, description = "Recorded", body = EntryAnswer),
        (status = 409, description = "`stale_fence`: roll back", body = ProblemJson, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn complete(
    State(state): State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let body = read(&state, request).await?;
    let request: CompleteRequest<'_> = parse(&body)?;
    let key = worker_key(&caller, &request.key)?;
    let outcome = word("outcome", request.outcome.as_deref(), Outcome::ALL, Outcome::as_str)?;
    let result = stored_result(&request)?;
    let says = LedgerSays::Complete { outcome: outcome.unwrap_or(Outcome::Committed), result };
    reported(&state, &caller, key, &request.fence, says).await
}

/// Ends a grant: the effect surely did not happen, and the next claim may try.
#[utoipa::path(
    post, path = "/v1/ledger/fail", operation_id = "ledger.fail", tag = "ledger",
    request_body = FailRequest,
    responses(
        (status = 200, description = "Recorded", body = EntryAnswer),
        (status = 409, description = "`stale_fence`", body = ProblemJson, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn fail(
    State(state): State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let body = read(&state, request).await?;
    let request: FailRequest = parse(&body)?;
    let key = worker_key(&caller, &request.key)?;
    let class = word("class", request.class.as_deref(), Class::ALL, Class::as_str)?;
    let says = LedgerSays::Fail { class, message: request.message.map(Into::into) };
    reported(&state, &caller, key, &request.fence, says).await
}

/// Prolongs a grant that has not run out.
#[utoipa::path(
    post, path = "/v1/ledger/extend", operation_id = "ledger.extend", tag = "ledger",
    request_body = ExtendGrantRequest,
    responses(
        (status = 200, description = "Prolonged", body = EntryAnswer),
        (status = 409, description = "`stale_fence`, `lease_expired`", body = ProblemJson, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn extend(
    State(state): State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    let body = read(&state, request).await?;
    let request: ExtendGrantRequest = parse(&body)?;
    let key = worker_key(&caller, &request.key)?;
    let lease = request.lease.map(|lease| lease.read("lease")).transpose()?;
    reported(&state, &caller, key, &request.fence, LedgerSays::Extend { lease }).await
}

/// Makes an entry claimable again, on an operator's word: the effect is wanted anew.
///
/// The row stays, failed and one fence on, so that an old worker stays fenced. Audited.
#[utoipa::path(
    post, path = "/v1/ledger/reset", operation_id = "ledger.reset", tag = "ledger",
    request_body = ResetRequest,
    responses(
        (status = 200, description = "Reset", body = EntryAnswer),
        (status = 409, description = "`entry_changed`: look again", body = ProblemJson, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn reset(
    State(state): State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let body = read(&state, request).await?;
    let request: ResetRequest = parse(&body)?;
    let key = ledger_key(&request.key)?;
    let status = word("status", Some(&request.status), Status::ALL, Status::as_str)?;
    let status = status.ok_or_else(|| Problem::new(Code::MissingField, "`status` is missing"))?;
    let says = LedgerSays::Reset { status, reason: request.reason.into() };
    reported(&state, &caller, key, &request.fence, says).await
}

/// Reads an entry.
#[utoipa::path(
    get, path = "/v1/ledger", operation_id = "ledger.get", tag = "ledger",
    params(("key" = String, Query, description = "Which effect")),
    responses(
        (status = 200, description = "The entry", body = EntryJson),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn get(
    State(state): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    let query = Query::parse(&uri, &["key"])?;
    let text = query
        .get("key")
        .ok_or_else(|| Problem::new(Code::MissingKey, "give the key as ?key=, percent-encoded"))?;
    let key = ledger_key(text)?;
    caller.require_read().or_else(|_| caller.require_ledger(&key))?;
    match state.engine().ledger_entry(caller.tenant, key).await? {
        Some(shown) => Ok(answer(StatusCode::OK, &EntryJson::of(shown))),
        None => Err(LedgerError::Missing.into()),
    }
}

async fn read(state: &AppState, request: Request) -> Result<Bytes, Problem> {
    let (head, body) = request.into_parts();
    state.read(&head.headers, body, BYTES_MAX).await
}

fn ledger_key(text: &str) -> Result<EventId, Problem> {
    EventId::new(text)
        .map_err(|error| Problem::new(Code::InvalidName, format!("`key`: {error}")).with("path", "key"))
}

fn worker_key(caller: &Caller, text: &str) -> Result<EventId, Problem> {
    let key = ledger_key(text)?;
    caller.require_ledger(&key)?;
    Ok(key)
}

/// The job that a claim names must have the key as its event id: anything else is a mistake.
async fn check_job(state: &AppState, caller: &Caller, key: &EventId, job: &str) -> Result<(), Problem> {
    let unknown = || Problem::new(Code::NotFound, format!("there is no job {job:?}")).with("path", "job");
    let id = posthaste_core::JobId::parse(job).ok_or_else(unknown)?;
    let view = state.engine().store().job(caller.tenant, id).await?.ok_or_else(unknown)?;
    let event_id = EventId::of(&view.key, &view.destination);
    if event_id == *key {
        return Ok(());
    }
    let detail = format!("`job`: its event id is {:?}, not the key", event_id.as_str());
    Err(Problem::new(Code::InvalidValue, detail).with("path", "job"))
}

fn stored_result(request: &CompleteRequest<'_>) -> Result<StoredResult, Problem> {
    let conflict = "`result` and `result_base64` exclude each other";
    let (bytes, content_type) = match (request.result, &request.result_base64) {
        (Some(_), Some(_)) => return Err(Problem::new(Code::PayloadConflict, conflict)),
        (Some(raw), None) => {
            let bytes = super::reports::embedded("result", raw)?;
            (Some(Bytes::from(bytes.into_vec())), Some("application/json"))
        }
        (None, Some(text)) => {
            let refused = |error| {
                let detail = format!("`result_base64`: {error}");
                Problem::new(Code::InvalidValue, detail).with("path", "result_base64")
            };
            (Some(Bytes::from(STANDARD.decode(text).map_err(refused)?)), None)
        }
        (None, None) => (None, None),
    };
    if request.status.is_some_and(|status| !(100..=599).contains(&status)) {
        return Err(Problem::new(Code::InvalidValue, "`status`: 100 to 599").with("path", "status"));
    }
    let content_type = request.content_type.as_deref().or(content_type);
    if content_type.is_some_and(|text| HeaderValue::from_str(text).is_err()) {
        let detail = "`content_type`: it must fit into a header";
        return Err(Problem::new(Code::InvalidValue, detail).with("path", "content_type"));
    }
    Ok(StoredResult { bytes, content_type: content_type.map(Into::into), status: request.status })
}

async fn reported(
    state: &AppState,
    caller: &Caller,
    key: EventId,
    fence: &str,
    says: LedgerSays,
) -> Result<Response, Problem> {
    let shown = state.engine().ledger_report(caller.tenant, &caller.name, key, fence, says).await?;
    let entry = &shown.entry.entry;
    let in_progress = entry.status == Status::InProgress;
    let said = EntryAnswer {
        status: entry.status.as_str(),
        outcome: entry.outcome.map(Outcome::as_str),
        locked_until: in_progress.then_some(Time(entry.locked_until)),
        fence: shown.fence,
    };
    Ok(answer(StatusCode::OK, &said))
}

fn claim_answer(claimed: Claimed, now: Timestamp) -> Response {
    match claimed {
        Claimed::Granted(Shown { entry, fence }) => {
            let entry = entry.entry;
            let granted = ClaimAnswer {
                path: entry.path.as_str(),
                fence: Some(fence),
                attempts: Some(entry.attempts),
                locked_until: Some(Some(Time(entry.locked_until))),
                previous: Some(entry.previous.as_str()),
                done: None,
            };
            answer(StatusCode::OK, &granted)
        }
        Claimed::DuplicateDone(Shown { entry, .. }) => {
            let outcome = entry.entry.outcome.unwrap_or(Outcome::Committed);
            let path = posthaste_core::Path::DuplicateDone.as_str();
            let done = Some(DoneJson::of(outcome, entry.result));
            answer(StatusCode::OK, &ClaimAnswer { path, done, ..ClaimAnswer::default() })
        }
        Claimed::InProgressElsewhere { locked_until } => {
            let path = posthaste_core::Path::InProgressElsewhere.as_str();
            let until = Some(locked_until.map(Time));
            let said = ClaimAnswer { path, locked_until: until, ..ClaimAnswer::default() };
            let mut response = answer(StatusCode::OK, &said);
            let wait = locked_until.map_or(60_000, |until| until.since(now).0);
            let seconds = HeaderValue::from(wait.div_ceil(1_000).max(1));
            response.headers_mut().insert(header::RETRY_AFTER, seconds);
            response
        }
    }
}

impl From<LedgerError> for Problem {
    fn from(error: LedgerError) -> Self {
        let detail = error.to_string();
        let with = |code, shown: Box<Shown>| {
            let problem = Self::new(code, detail.clone()).with("fence", &*shown.fence);
            problem.with("entry_status", shown.entry.entry.status.as_str())
        };
        match error {
            LedgerError::Engine(error) => error.into(),
            LedgerError::KeyReused => Self::new(Code::KeyReused, detail).with("field", "fingerprint"),
            LedgerError::Missing => Self::new(Code::NotFound, detail),
            LedgerError::StaleFence(shown) => with(Code::StaleFence, shown),
            LedgerError::Expired(shown) => with(Code::LeaseExpired, shown),
            LedgerError::HeldByJob(shown) => with(Code::HeldByJob, shown),
            LedgerError::Changed(shown) => with(Code::EntryChanged, shown),
        }
    }
}
