//! The ledger over HTTP: paths as answers, for axum.
//!
//! | what became of it | answer |
//! |---|---|
//! | done, now or earlier | the stored answer, byte for byte |
//! | in progress elsewhere, or superseded | 409 with `Retry-After` |
//! | the effect failed and was rolled back | 503 with `Retry-After` |
//! | the ledger can't be reached | 503 with `Retry-After` |
//! | whether it was committed is not known | 500: the sender's next delivery will know |
//! | the key was used for another payload | 422 `key_reused` |
//! | no key | 422 `missing_key` |
//!
//! Answers that rest on an entry say so to the sender: `posthaste-ledger: path=duplicate_done, outcome=committed,
//! attempt=1`.
//!
//! Either the handler takes an [`EventKey`], runs `two_tx` or `one_tx` and returns what it gives; or the route is wrapped
//! in [`guard`], and the handler takes the [`Grant`] and completes it in its own transaction. Check signatures before
//! either: whoever can claim keys can block them.

use std::{
    error::Error,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use ::axum::{
    body::Body,
    extract::{FromRequestParts, Request, State},
    http::{HeaderMap, HeaderValue, StatusCode, header, request::Parts},
    middleware::Next,
    response::{IntoResponse, Response},
};

use super::{
    Claim, ClaimError, CommitError, Completion, Done, Failure, Grant, Granted, Ledger, OnExpired, Ran,
    RunError, Watch, run::caught,
};

/// Says which entry an answer rests on.
pub const LEDGER_HEADER: &str = "posthaste-ledger";

/// When to come again after a failure.
const FAILED_RETRY_AFTER: Duration = Duration::from_secs(5);

/// When to come again while an entry is held for a person.
const HELD_RETRY_AFTER: Duration = Duration::from_mins(1);

/// The key of a delivery: `webhook-id`, or where there is none `idempotency-key`.
///
/// `webhook-id` is signed (Standard Webhooks) and the same over all retries and replays; `idempotency-key` is not signed:
/// whoever can send a captured request again could choose another.
///
/// A verifier may have read `svix-id` instead, or another line of the same name: what could have been signed has to agree, so
/// that nobody adds a key of their own to a captured request.
///
/// Refused with 422 `missing_key` if there is neither, if they don't agree, or if it is one that no ledger takes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EventKey(pub String);

impl EventKey {
    /// The key in these headers.
    pub fn of(headers: &HeaderMap) -> Option<Self> {
        let all = |names: &'static [&'static str]| names.iter().flat_map(|name| headers.get_all(*name));
        let mut values = all(&["webhook-id", "svix-id"]).peekable();
        if values.peek().is_none() {
            values = all(&["idempotency-key"]).peekable();
        }
        let value = values.next()?;
        if values.any(|other| other != value) {
            return None;
        }
        let text = value.to_str().ok().filter(|text| !text.is_empty())?;
        Some(Self(text.to_owned()))
    }
}

impl<S: Sync> FromRequestParts<S> for EventKey {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        Self::of(&parts.headers).ok_or_else(missing_key)
    }
}

/// What [`guard`] needs.
#[derive(Debug)]
pub struct Guard<L> {
    ledger: Arc<L>,
    lease: Duration,
    on_expired: OnExpired,
}

impl<L> Clone for Guard<L> {
    fn clone(&self) -> Self {
        Self { ledger: Arc::clone(&self.ledger), lease: self.lease, on_expired: self.on_expired }
    }
}

impl<L: Ledger> Guard<L> {
    /// Claims go to `ledger`, each for `lease`; see [`Claim::new`].
    pub fn new(ledger: impl Into<Arc<L>>, lease: Duration) -> Self {
        Self { ledger: ledger.into(), lease, on_expired: OnExpired::Retake }
    }

    /// Says what becomes of a grant that runs out.
    pub fn on_expired(mut self, on_expired: OnExpired) -> Self {
        self.on_expired = on_expired;
        self
    }
}

/// Hands the grant from [`guard`] to the handler.
#[derive(Clone)]
struct Slot(Arc<Mutex<Option<Grant>>>);

impl Slot {
    fn take(&self) -> Option<Grant> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).take()
    }
}

/// The grant that [`guard`] won, once for each request. Refused with 500 where the route has no guard.
impl<S: Sync> FromRequestParts<S> for Grant {
    type Rejection = Response;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Response> {
        let grant = parts.extensions.get::<Slot>().and_then(Slot::take);
        grant.ok_or_else(|| {
            problem(StatusCode::INTERNAL_SERVER_ERROR, "no_grant", "no grant for this handler")
        })
    }
}

/// Middleware that claims the request's key, and lets the handler run only with a grant:
/// `axum::middleware::from_fn_with_state(Guard::new(pool, lease), guard)`.
///
/// The handler takes the [`Grant`], writes its effect and ends with the driver's `commit`. Then the stored answer is sent
/// in place of the handler's, so that the first delivery and its duplicates are told the same. If the handler panics, or
/// answers anything but 2xx without having completed, the entry is failed; a 4xx goes out as it is, all else as 503.
///
/// A 2xx of a handler that did not complete is not believed (500).
///
/// Cancel safety: if the connection is closed the handler is dropped with its transaction; the lease ends by itself.
pub async fn guard<L: Ledger + 'static>(
    State(guard): State<Guard<L>>,
    mut request: Request,
    next: Next,
) -> Response {
    let Some(EventKey(key)) = EventKey::of(request.headers()) else {
        return missing_key();
    };
    let claim = match Claim::new(&key, guard.lease) {
        Ok(claim) => claim.on_expired(guard.on_expired),
        Err(error) => return unclaimable(error),
    };
    let grant = match guard.ledger.claim(&claim).await.map(super::Admission::grant) {
        Ok(Ok(grant)) => grant,
        Ok(Err(ran)) => return ran.into_response(),
        Err(_) => return unavailable("ledger_unavailable", "the ledger can't be reached"),
    };
    let watch = grant.watch();
    let slot = Slot(Arc::new(Mutex::new(Some(grant))));
    request.extensions_mut().insert(slot.clone());
    let response = caught(next.run(request)).await;
    drop(slot.take());
    let class = if response.is_ok() { "effect" } else { "panic" };
    settle(&*guard.ledger, &watch, response.ok(), class).await
}

/// Turns the handler's answer into what may be told. `response`: `None` if it panicked.
async fn settle<L: Ledger>(ledger: &L, watch: &Watch, response: Option<Response>, class: &str) -> Response {
    let status = response.as_ref().map(Response::status);
    if let Some(completion) = watch.sent() {
        return match response {
            Some(response) if tells_done(&response, completion) => {
                first_answer(watch.granted(), completion, response)
            }
            _ => unknown(),
        };
    }
    if status.is_some_and(|status| status.is_success()) {
        return match watch.unreported() {
            Some(_) => problem(
                StatusCode::INTERNAL_SERVER_ERROR,
                "not_completed",
                "the handler answered without completing its grant",
            ),
            // Its grant lives on elsewhere: nothing is done yet.
            None => in_progress(None),
        };
    }
    if let Some(grant) = watch.unreported() {
        let message = status.map(|status| format!("answered {}", status.as_u16()));
        // Best effort: unheard, the lease ends by itself.
        let _ = ledger.fail(&grant, &Failure { class: Some(class.to_owned()), message }).await;
    }
    match response {
        Some(response) if response.status().is_client_error() => response,
        _ => unavailable("effect_failed", "the effect failed and was rolled back"),
    }
}

fn tells_done(response: &Response, completion: &Completion) -> bool {
    response.status().is_success() || completion.answer.status == Some(response.status().as_u16())
}

fn first_answer(granted: &Granted, completion: &Completion, response: Response) -> Response {
    let Completion { outcome, answer } = completion.clone();
    let done = Done { path: granted.path(), attempts: granted.attempts, outcome, answer };
    if done.answer.bytes.is_some() || done.answer.status.is_some() {
        return done.into_response();
    }
    let mut response = response;
    say(&mut response, &done);
    response
}

/// The stored answer, byte for byte; 200 where no status is stored.
impl IntoResponse for Done {
    fn into_response(self) -> Response {
        let mut response = Response::new(match &self.answer.bytes {
            Some(bytes) => Body::from(bytes.clone()),
            None => Body::empty(),
        });
        let status = self.answer.status.and_then(|status| StatusCode::from_u16(status).ok());
        *response.status_mut() = status.unwrap_or(StatusCode::OK);
        let content_type = self.answer.content_type.as_deref().map(HeaderValue::from_str);
        if let Some(Ok(value)) = content_type {
            response.headers_mut().insert(header::CONTENT_TYPE, value);
        }
        say(&mut response, &self);
        response
    }
}

impl IntoResponse for Ran {
    fn into_response(self) -> Response {
        match self {
            Self::Done(done) => done.into_response(),
            Self::InProgressElsewhere { retry_after } => {
                in_progress(Some(retry_after.unwrap_or(HELD_RETRY_AFTER)))
            }
            Self::KeyReused => problem(
                StatusCode::UNPROCESSABLE_ENTITY,
                "key_reused",
                "the key was used for another payload",
            ),
        }
    }
}

impl<D: Error + 'static> IntoResponse for RunError<D> {
    fn into_response(self) -> Response {
        match self {
            Self::Claim(_) => unavailable("ledger_unavailable", "the ledger can't be reached"),
            Self::Effect(_) | Self::Commit(CommitError::NotCommitted(_)) => {
                unavailable("effect_failed", "the effect failed and was rolled back")
            }
            Self::Commit(CommitError::Superseded) => in_progress(None),
            Self::Commit(CommitError::Unknown(_)) => unknown(),
        }
    }
}

/// Answers a claim that can't be made.
impl IntoResponse for ClaimError {
    fn into_response(self) -> Response {
        unclaimable(self)
    }
}

fn say(response: &mut Response, done: &Done) {
    let text = format!("path={}, outcome={}, attempt={}", done.path, done.outcome, done.attempts);
    if let Ok(value) = HeaderValue::from_str(&text) {
        response.headers_mut().insert(LEDGER_HEADER, value);
    }
}

fn missing_key() -> Response {
    problem(
        StatusCode::UNPROCESSABLE_ENTITY,
        "missing_key",
        "webhook-id or idempotency-key must name the event",
    )
}

fn unclaimable(error: ClaimError) -> Response {
    match error {
        ClaimError::Key | ClaimError::ClaimId | ClaimError::Fingerprint => {
            problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid_key", "the event's key can't be used")
        }
        ClaimError::Lease | ClaimError::Random => unavailable("ledger_unavailable", "no claim can be made"),
    }
}

fn in_progress(retry_after: Option<Duration>) -> Response {
    let mut response =
        problem(StatusCode::CONFLICT, "in_progress_elsewhere", "another delivery is being worked on");
    come_again(&mut response, retry_after.unwrap_or(FAILED_RETRY_AFTER));
    response.headers_mut().insert(LEDGER_HEADER, HeaderValue::from_static("path=in_progress_elsewhere"));
    response
}

/// No Retry-After: with it a 503 says that nothing happened.
fn unknown() -> Response {
    problem(
        StatusCode::INTERNAL_SERVER_ERROR,
        "outcome_unknown",
        "whether the effect was committed is not known",
    )
}

fn unavailable(code: &'static str, title: &'static str) -> Response {
    let mut response = problem(StatusCode::SERVICE_UNAVAILABLE, code, title);
    come_again(&mut response, FAILED_RETRY_AFTER);
    response
}

/// Whole seconds, rounded up, at least one.
fn come_again(response: &mut Response, after: Duration) {
    let seconds = after.as_millis().div_ceil(1000).clamp(1, 86_400);
    if let Ok(value) = HeaderValue::from_str(&seconds.to_string()) {
        response.headers_mut().insert(header::RETRY_AFTER, value);
    }
}

fn problem(status: StatusCode, code: &'static str, title: &'static str) -> Response {
    let body = format!(r#"{{"title":"{title}","status":{},"code":"{code}"}}"#, status.as_u16());
    (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response()
}
