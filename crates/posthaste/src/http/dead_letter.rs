//! A dead letter's whole context: why, what went wrong last, where its payload is, and what is safe to do. Row B7.
//!
//! `jobs.get` shows it, and the messages that tell of dead letters carry the same.

use posthaste_core::{Attempt, Cause, Class, Effect, Job, State, Timestamp};
use posthaste_engine::{Known, Notice, Told};
use posthaste_store::{AttemptView, MessageView};
use serde::Serialize;
use serde_json::{Value, json};
use utoipa::ToSchema;

use super::{job_view::JobJson, time::Time};

/// Why a job was given up, and what can be done.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DeadLetter)]
pub(crate) struct DeadLetterJson {
    /// Why: `exhausted`, `permanent`, `invalid_payload`, `missing_key`, `key_reused`, `outcome_unknown`, `endpoint_gone`
    /// or `lease_lost`.
    cause: &'static str,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// What does not fit, if it was quarantined when it came in.
    #[schema(value_type = Option<Value>)]
    quarantine: Option<Value>,
    /// How the last attempt that failed ended.
    last_error: Option<LastErrorJson>,
    /// Where the payload is: a path of this API, or the reference that was published.
    payload_ref: String,
    /// Its length in bytes.
    payload_bytes: usize,
    /// Its media type.
    content_type: Option<Box<str>>,
    /// The message's event type.
    r#type: Option<Box<str>>,
    /// The source that it came in by.
    source: Option<String>,
    /// Names the request that brought it, through all logs.
    correlation_id: Box<str>,
    /// What can be done, the best first.
    next: Vec<NextJson>,
}

/// How an attempt failed.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LastError)]
pub(crate) struct LastErrorJson {
    /// Which attempt.
    attempt: u32,
    /// When it ended.
    #[schema(value_type = String, format = DateTime)]
    at: Time,
    /// Why it failed.
    class: Option<&'static str>,
    /// What is known about its effect.
    effect: &'static str,
    /// The HTTP status of the answer.
    status: Option<u16>,
    /// The reporter's own error code.
    code: Option<Box<str>>,
    /// The error's text.
    message: Option<Box<str>>,
    /// The line of policy that decided what follows.
    policy: String,
}

/// Something that can be done.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = NextAction)]
pub(crate) struct NextJson {
    /// `replay`, `reconcile` or `cancel`: the call of that name.
    #[schema(examples("replay", "reconcile", "cancel"))]
    action: &'static str,
    /// Whether it can't do an effect twice.
    safe: bool,
    /// Why, and what it does.
    why: String,
}

impl DeadLetterJson {
    /// Of a job that is a dead letter.
    pub(crate) fn of(known: &Known, message: &MessageView, idempotent: bool) -> Option<Self> {
        match known.view.job.state {
            State::DeadLettered { at, cause } => Some(Self::since(known, message, (at, cause), idempotent)),
            State::Scheduled { .. }
            | State::Leased(_)
            | State::Retryable { .. }
            | State::Committed { .. }
            | State::Cancelled { .. } => None,
        }
    }

    fn since(
        known: &Known,
        message: &MessageView,
        (at, cause): (Timestamp, Cause),
        idempotent: bool,
    ) -> Self {
        let metadata: Value = message
            .metadata
            .as_deref()
            .filter(|_| message.source.is_some())
            .and_then(|text| serde_json::from_str(text).ok())
            .unwrap_or_default();
        let own = || format!("/v1/messages/{}/payload", message.id);
        Self {
            cause: cause.as_str(),
            at: Time(at),
            quarantine: metadata.get("quarantine").cloned(),
            last_error: known.view.attempts.iter().rev().find_map(LastErrorJson::of),
            payload_ref: message.payload_ref.as_deref().map_or_else(own, str::to_owned),
            payload_bytes: message.payload_bytes,
            content_type: message.content_type.clone(),
            r#type: message.event_type.clone(),
            source: message.source.as_ref().map(ToString::to_string),
            correlation_id: message.correlation_id.clone(),
            next: next(known, cause, idempotent),
        }
    }
}

impl LastErrorJson {
    fn of(view: &AttemptView) -> Option<Self> {
        let end = &view.end;
        end.report.class?;
        Some(Self {
            attempt: end.attempt.get(),
            at: Time(end.finished_at),
            class: end.report.class.map(Class::as_str),
            effect: Effect::as_str(end.report.effect),
            status: end.details.status,
            code: end.details.code.clone(),
            message: end.details.message.clone(),
            policy: end.policy.to_string(),
        })
    }
}

/// What can be done. The same facts decide a replay, in the transaction that writes: this only foretells it.
fn next(known: &Known, cause: Cause, idempotent: bool) -> Vec<NextJson> {
    let span = known.span;
    let action = |action, safe, why: &str| NextJson { action, safe, why: why.to_owned() };
    let attempts = known.view.job.attempt.map_or(0, Attempt::get);
    let mut next = Vec::with_capacity(3);
    if cause.is_quarantine() && attempts == 0 {
        let why =
            "nothing was executed: the kept bytes are held against the source's configuration of today again";
        next.push(action("replay", true, why));
    } else if span.lo > 0 {
        next.push(action(
            "reconcile",
            true,
            "the records show that it was done: it is settled, nothing is sent",
        ));
    } else if span.hi == 0 {
        next.push(action("replay", true, "no attempt can have acted"));
    } else if idempotent {
        next.push(action(
            "replay",
            true,
            "the receiver guards the event id: an effect that was done is not repeated",
        ));
    } else {
        let why = format!(
            "up to {} attempts may have acted: look at the receiver first, then say assume: not_done",
            span.hi
        );
        next.push(action("replay", false, &why));
        next.push(action(
            "reconcile",
            true,
            "settles it if the ledger knows by now that it was done; sends nothing",
        ));
    }
    next.push(action("cancel", true, "discards it, with a reason that is shown for ever"));
    next
}

/// The payload of an operational message.
pub(crate) fn describe(told: Told<'_>, idempotent: impl Fn(&Job) -> bool) -> Vec<u8> {
    let value = match told {
        Told::DeadLetter { row, known, message } => {
            let whole = JobJson::whole(&known.view, known.span, Some(message.id))
                .with_budgets(&known.view.job, known.remaining);
            let mut job = json!(whole);
            let letter =
                DeadLetterJson::since(known, message, (row.at, row.cause), idempotent(&known.view.job));
            job["dead_letter"] = json!(letter);
            job
        }
        Told::Notice(notice) => of_notice(notice),
    };
    value.to_string().into_bytes()
}

fn of_notice(notice: &Notice) -> Value {
    let (_, endpoint, at) = notice.about();
    let mut value = json!({ "endpoint": endpoint.as_str(), "at": Time(at) });
    match notice {
        Notice::EndpointDisabled { reason, .. } => value["reason"] = json!(reason),
        Notice::CircuitOpened { until, .. } => value["until"] = json!(Time(*until)),
        Notice::CircuitClosed { .. } => {}
    }
    value
}
