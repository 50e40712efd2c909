//! `queue.extend`, `.ack`, `.reject`, `.release`: what workers say of their jobs, singly or many at once. Row B3.

use std::borrow::Cow;

use axum::{
    extract::{Request, State},
    response::Response,
};
use http::StatusCode;
use posthaste_core::{Class, Effect, FinishOutcome, JobId, RetryWish, limits};
use posthaste_engine::{Destination, Directory, EngineError, WorkerAnswer, WorkerReport, WorkerSays};
use posthaste_store::DestinationKind;
use serde::{Deserialize, Deserializer, Serialize, de::Visitor};
use serde_json::{Map, Value, value::RawValue};
use utoipa::ToSchema;

use super::{
    AppState, Caller, Code, Problem,
    json::{GivenDuration, answer, parse, present},
    problem::ProblemJson,
    publish::too_many,
    time::Time,
};

/// Bytes of a request with reports: results of many jobs.
const BYTES_MAX: usize = limits::CONSUME_BYTES_MAX;

/// A worker needs more time.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtendRequest<'a> {
    /// `job_…`
    job: String,
    /// The fence, as given by consume.
    fence: String,
    /// From now until the lease expires; the queue's own unless told.
    #[schema(value_type = Option<String>, examples("60s"))]
    lease: Option<GivenDuration>,
    /// Any JSON value of at most 4 KiB, for a successor; `null` keeps what is there.
    #[serde(borrow)]
    #[schema(value_type = Value)]
    checkpoint: Option<&'a RawValue>,
}

/// A worker is done.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct AckRequest<'a> {
    /// `job_…`
    job: String,
    /// The fence, as given by consume.
    fence: String,
    /// `committed` (default): done now. `duplicate`: done before. `cancelled`: no longer applies.
    #[schema(examples("committed", "duplicate", "cancelled"))]
    outcome: Option<String>,
    /// Any JSON value of at most 64 KiB, kept with the attempt.
    #[serde(borrow, default, deserialize_with = "present")]
    #[schema(value_type = Value)]
    result: Option<&'a RawValue>,
    /// Why it no longer applies.
    #[schema(max_length = 1024)]
    reason: Option<String>,
}

/// A worker failed.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct RejectRequest {
    /// `job_…`
    job: String,
    /// The fence, as given by consume.
    fence: String,
    /// The class of the failure; `worker` unless told.
    #[schema(examples("timeout", "server_error", "worker"))]
    class: Option<String>,
    /// What is known about the effect: `none`, `possible`, `reported` or `confirmed`; by the class unless told.
    #[schema(examples("none", "possible"))]
    effect: Option<String>,
    /// Whether to try again: `true`, `false`, or `"auto"` (default): by the class.
    #[schema(value_type = Value)]
    retry: Option<GivenRetry>,
    /// How long to wait at least. With class `throttled` the whole queue waits.
    #[schema(value_type = Option<String>, examples("30s"))]
    retry_after: Option<GivenDuration>,
    /// The worker's own error code.
    code: Option<String>,
    /// The error's text.
    #[schema(max_length = 1024)]
    message: Option<String>,
}

/// A worker gives a job back untried.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ReleaseRequest {
    /// `job_…`
    job: String,
    /// The fence, as given by consume.
    fence: String,
}

/// Reports of many jobs at once.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct ManyReports<'a> {
    #[serde(borrow)]
    jobs: Vec<&'a RawValue>,
}

/// The lease goes on.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ExtendAnswer {
    /// Until when.
    #[schema(value_type = String, format = DateTime)]
    lease_expires_at: Time,
    /// The worker is asked to stop.
    cancel_requested: bool,
}

/// Where the job stands after a report.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReportAnswer {
    /// One of the six states.
    state: &'static str,
    /// When the next attempt may start.
    #[schema(value_type = Option<String>, format = DateTime)]
    due_at: Option<Time>,
}

/// The answer to one report.
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum OneAnswer {
    Extended(ExtendAnswer),
    Moved(ReportAnswer),
}

/// What became of each report, in order: the answer or the problem, with `job` and `status` beside it.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ReportsAnswer<'a> {
    #[schema(value_type = Vec<Object>)]
    results: Vec<ReportResult<'a>>,
}

/// See [`ReportsAnswer`].
#[derive(Debug, Serialize)]
#[serde(untagged)]
enum ReportResult<'a> {
    Recorded {
        job: Option<Cow<'a, str>>,
        status: u16,
        #[serde(flatten)]
        said: OneAnswer,
    },
    Refused {
        job: Option<Cow<'a, str>>,
        #[serde(flatten)]
        problem: Map<String, Value>,
    },
}

/// Reads one report. A fault of one report is that one's alone.
type Read = fn(&[u8]) -> Result<WorkerReport, Problem>;

/// Extends a lease, and leaves a checkpoint.
#[utoipa::path(
    post, path = "/v1/queue/extend", operation_id = "queue.extend", tag = "queue",
    description = "Also takes `{\"jobs\": […]}`, and then answers 200 with `{\"results\": […]}`, in order.",
    request_body = ExtendRequest<'static>,
    responses(
        (status = 200, description = "The lease goes on", body = ExtendAnswer),
        (status = 409, description = "`stale_fence`, `lease_expired`, `already_reported`, `already_settled`", body = ProblemJson, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn extend(
    state: State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    report(&state, &caller, request, read_extend).await
}

/// Reports that a job is done, was done before, or no longer applies.
#[utoipa::path(
    post, path = "/v1/queue/ack", operation_id = "queue.ack", tag = "queue",
    description = "Repeating a report whose answer was lost gets that answer again. Also takes `{\"jobs\": […]}`, and then answers 200 with `{\"results\": […]}`, in order.",
    request_body = AckRequest<'static>,
    responses(
        (status = 200, description = "Recorded", body = ReportAnswer),
        (status = 409, description = "`stale_fence`, `already_reported`, `already_settled`", body = ProblemJson, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn ack(
    state: State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    report(&state, &caller, request, read_ack).await
}

/// Reports that an attempt failed.
#[utoipa::path(
    post, path = "/v1/queue/reject", operation_id = "queue.reject", tag = "queue",
    description = "Charged. Also takes `{\"jobs\": […]}`, and then answers 200 with `{\"results\": […]}`, in order.",
    request_body = RejectRequest,
    responses(
        (status = 200, description = "Recorded", body = ReportAnswer),
        (status = 409, description = "`stale_fence`, `already_reported`, `already_settled`", body = ProblemJson, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn reject(
    state: State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    report(&state, &caller, request, read_reject).await
}

/// Gives a job back untried.
#[utoipa::path(
    post, path = "/v1/queue/release", operation_id = "queue.release", tag = "queue",
    description = "Uncharged. Also takes `{\"jobs\": […]}`, and then answers 200 with `{\"results\": […]}`, in order.",
    request_body = ReleaseRequest,
    responses(
        (status = 200, description = "Recorded", body = ReportAnswer),
        (status = 409, description = "`stale_fence`, `already_reported`, `already_settled`", body = ProblemJson, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn release(
    state: State<AppState>,
    caller: Caller,
    request: Request,
) -> Result<Response, Problem> {
    report(&state, &caller, request, read_release).await
}

async fn report(
    state: &AppState,
    caller: &Caller,
    request: Request,
    read: Read,
) -> Result<Response, Problem> {
    caller.require_work_somewhere()?;
    let (head, body) = request.into_parts();
    let body = state.read(&head.headers, body, BYTES_MAX).await?;
    let checked = |bytes: &[u8]| {
        let report = read(bytes)?;
        require_work_on(caller, &state.engine().directory(), report.job)?;
        Ok(report)
    };
    if has_jobs(&body) {
        return report_many(state, caller, &body, checked).await;
    }
    let one = checked(&body)?;
    let mut answers = state.engine().report(caller.tenant, &caller.name, vec![one]).await?;
    let said = answers.pop().ok_or_else(missing_answer)??;
    Ok(answer(StatusCode::OK, &OneAnswer::of(&said)))
}

async fn report_many(
    state: &AppState,
    caller: &Caller,
    body: &[u8],
    checked: impl Fn(&[u8]) -> Result<WorkerReport, Problem>,
) -> Result<Response, Problem> {
    let many: ManyReports<'_> = parse(body)?;
    if many.jobs.len() > limits::CONSUME_MAX {
        return Err(too_many("jobs", many.jobs.len(), limits::CONSUME_MAX));
    }
    let mut good = Vec::with_capacity(many.jobs.len());
    let read: Vec<Result<(), Problem>> =
        many.jobs.iter().map(|raw| checked(raw.get().as_bytes()).map(|report| good.push(report))).collect();
    let mut answers = state.engine().report(caller.tenant, &caller.name, good).await?.into_iter();
    let results = read.into_iter().zip(&many.jobs).map(|(read, raw)| {
        let said = read.and_then(|()| answers.next().ok_or_else(missing_answer)?.map_err(Problem::from));
        match said {
            Ok(said) => {
                ReportResult::Recorded { said: OneAnswer::of(&said), status: 200, job: job_named(raw) }
            }
            Err(problem) => ReportResult::Refused { problem: problem.to_object(), job: job_named(raw) },
        }
    });
    Ok(answer(StatusCode::OK, &ReportsAnswer { results: results.collect() }))
}

impl OneAnswer {
    fn of(said: &WorkerAnswer) -> Self {
        match *said {
            WorkerAnswer::Extended { lease_expires_at, cancel_requested } => {
                Self::Extended(ExtendAnswer { lease_expires_at: Time(lease_expires_at), cancel_requested })
            }
            WorkerAnswer::Moved { state, due_at } => {
                Self::Moved(ReportAnswer { state: state.as_str(), due_at: due_at.map(Time) })
            }
        }
    }
}

/// Whether the body is of the form for many jobs.
fn has_jobs(body: &[u8]) -> bool {
    #[derive(Deserialize)]
    struct Probe<'a> {
        #[serde(borrow)]
        jobs: Option<&'a RawValue>,
    }
    serde_json::from_slice::<Probe<'_>>(body).is_ok_and(|probe| probe.jobs.is_some())
}

/// The job that a report names, whatever else is wrong with it.
fn job_named(raw: &RawValue) -> Option<Cow<'_, str>> {
    #[derive(Deserialize)]
    struct Probe<'a> {
        #[serde(borrow)]
        job: Option<Cow<'a, str>>,
    }
    serde_json::from_str::<Probe<'_>>(raw.get()).ok().and_then(|probe| probe.job)
}

/// A key may work on the job's queue, and the job is of a queue at all: those of endpoints are ours to report.
pub(super) fn require_work_on(caller: &Caller, directory: &Directory, job: JobId) -> Result<(), Problem> {
    let unknown = || Problem::from(EngineError::NotFound { what: "job", id: job.to_string() });
    match directory.at(caller.tenant, job.lane()) {
        Some(entry) => match &entry.destination {
            Destination::Queue(_) | Destination::Broken { kind: DestinationKind::Queue, .. } => {
                caller.require_work(&entry.row.id)
            }
            Destination::Endpoint(_) | Destination::Source(_) | Destination::Broken { .. } => Err(unknown()),
        },
        // The queue was deleted; what is left of it can still be reported.
        None if caller.works_everywhere() => Ok(()),
        None => Err(unknown()),
    }
}

/// JSON that will stand within our answers.
pub(super) fn embedded(field: &'static str, raw: &RawValue) -> Result<Box<[u8]>, Problem> {
    if super::queue::embeddable(raw.get().as_bytes()).is_some() {
        return Ok(raw.get().as_bytes().into());
    }
    let problem =
        format!("`{field}`: nested deeper than 127, half a surrogate pair, or a number beyond a double");
    Err(Problem::new(Code::InvalidValue, problem).with("path", field))
}

fn read_extend(bytes: &[u8]) -> Result<WorkerReport, Problem> {
    let request: ExtendRequest<'_> = parse(bytes)?;
    let lease = request.lease.map(|lease| lease.read("lease")).transpose()?;
    let checkpoint = request.checkpoint.map(|raw| embedded("checkpoint", raw)).transpose()?;
    named(&request.job, request.fence, WorkerSays::Extend { lease, checkpoint })
}

fn read_ack(bytes: &[u8]) -> Result<WorkerReport, Problem> {
    let request: AckRequest<'_> = parse(bytes)?;
    let outcome = word("outcome", request.outcome.as_deref(), FinishOutcome::ALL, FinishOutcome::as_str)?;
    let says = WorkerSays::Ack {
        outcome: outcome.unwrap_or(FinishOutcome::Committed),
        result: request.result.map(|raw| embedded("result", raw)).transpose()?,
        reason: request.reason.map(Into::into),
    };
    named(&request.job, request.fence, says)
}

fn read_reject(bytes: &[u8]) -> Result<WorkerReport, Problem> {
    let request: RejectRequest = parse(bytes)?;
    let says = WorkerSays::Reject {
        class: word("class", request.class.as_deref(), Class::ALL, Class::as_str)?.unwrap_or(Class::Worker),
        effect: word("effect", request.effect.as_deref(), Effect::ALL, Effect::as_str)?,
        retry: request.retry.map_or(RetryWish::ByTable, |retry| retry.0),
        retry_after: request.retry_after.map(|after| after.read("retry_after")).transpose()?,
        code: request.code.map(Into::into),
        message: request.message.map(Into::into),
    };
    named(&request.job, request.fence, says)
}

fn read_release(bytes: &[u8]) -> Result<WorkerReport, Problem> {
    let request: ReleaseRequest = parse(bytes)?;
    named(&request.job, request.fence, WorkerSays::Release)
}

fn named(job: &str, fence: String, report: WorkerSays) -> Result<WorkerReport, Problem> {
    let unknown = || Problem::from(EngineError::NotFound { what: "job", id: job.chars().take(64).collect() });
    Ok(WorkerReport { job: JobId::parse(job).ok_or_else(unknown)?, fence: fence.into(), report })
}

/// One word of a closed vocabulary.
pub(super) fn word<T: Copy>(
    field: &'static str,
    given: Option<&str>,
    all: &[T],
    spelled: fn(T) -> &'static str,
) -> Result<Option<T>, Problem> {
    let Some(given) = given else { return Ok(None) };
    let found = all.iter().copied().find(|known| spelled(*known) == given);
    let refused = || {
        let known: Vec<&str> = all.iter().copied().map(spelled).collect();
        let detail = format!("`{field}`: {given:?} is not known; give one of {}", known.join(", "));
        Problem::new(Code::InvalidValue, detail).with("path", field)
    };
    found.map(Some).ok_or_else(refused)
}

/// `true`, `false` or `"auto"`.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GivenRetry(RetryWish);

impl<'de> Deserialize<'de> for GivenRetry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(GivenRetryVisitor)
    }
}

struct GivenRetryVisitor;

impl Visitor<'_> for GivenRetryVisitor {
    type Value = GivenRetry;

    fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("true, false or \"auto\"")
    }

    fn visit_bool<E>(self, again: bool) -> Result<GivenRetry, E> {
        Ok(GivenRetry(if again { RetryWish::Yes } else { RetryWish::No }))
    }

    fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<GivenRetry, E> {
        if text == "auto" {
            return Ok(GivenRetry(RetryWish::ByTable));
        }
        Err(E::invalid_value(serde::de::Unexpected::Str(text), &self))
    }
}

fn missing_answer() -> EngineError {
    EngineError::Store(posthaste_store::StoreError::unavailable("an answer is missing"))
}
