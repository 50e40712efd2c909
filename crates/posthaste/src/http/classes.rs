//! `classes`: how failures of a destination are classified, its own rules included. Row B4.

use axum::{extract::State, response::Response};
use http::{StatusCode, Uri};
use posthaste_core::{Class, Policy, Ruled, Ruling};
use posthaste_engine::{Destination, EngineError};
use posthaste_store::DestinationKind;
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    AppState, Caller, Code, Problem, json::answer, problem::ProblemJson, publish_request::destination,
    query::Query,
};

/// What decides where no rule of the destination's own does.
const TABLE: &str = "the classification";

/// How failures are classified, as it is in force.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Classes {
    /// Whose; `null`: of whoever has no rules of its own.
    destination: Option<String>,
    /// Answers of endpoints, by status. Left out for queues.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    answers: Vec<AnswerLine>,
    /// Failures without a status: of requests that got no answer, and of workers.
    classes: Vec<ClassLine>,
}

/// Statuses that mean the same.
#[derive(Debug, PartialEq, Serialize, ToSchema)]
pub(crate) struct AnswerLine {
    /// `404`, `500-599`, `503 with Retry-After`.
    answer: String,
    /// The class; `null` if it is taken.
    class: Option<&'static str>,
    /// What is known about the effect.
    effect: &'static str,
    /// What follows: `committed`, `retry`, `in_progress`, `permanent_message`, `permanent_destination` or `gone`.
    follows: &'static str,
    /// What says so.
    by: String,
}

/// A class.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ClassLine {
    /// Its word.
    class: &'static str,
    /// What is known about the effect, unless the reporter says otherwise. A request of which no byte left has none.
    effect: &'static str,
    /// What follows.
    follows: &'static str,
    /// What says so.
    by: String,
}

/// How failures of an endpoint or queue are classified, its own rules included.
#[utoipa::path(
    get, path = "/v1/classes", operation_id = "classes.get", tag = "jobs",
    params(
        ("endpoint" = Option<String>, Query, description = "Of this endpoint"),
        ("queue" = Option<String>, Query, description = "Of this queue"),
    ),
    responses(
        (status = 200, description = "The classification in force", body = Classes),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn get(
    State(state): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_read_or_operate()?;
    let query = Query::parse(&uri, &["endpoint", "queue"])?;
    let (kind, name) = match (query.get("endpoint"), query.get("queue")) {
        (Some(_), Some(_)) => {
            return Err(Problem::new(Code::InvalidParameter, "`endpoint` and `queue` exclude each other"));
        }
        (Some(name), None) => (DestinationKind::Endpoint, name),
        (None, Some(name)) => (DestinationKind::Queue, name),
        (None, None) => {
            return Ok(answer(StatusCode::OK, &Classes::of(None, true, &Policy::endpoint_default())));
        }
    };
    let id = destination(kind.as_str(), name)?;
    let directory = state.engine().directory();
    let policy = match directory.find(caller.tenant, &id).map(|entry| &entry.destination) {
        Some(Destination::Endpoint(endpoint)) if kind == DestinationKind::Endpoint => &endpoint.policy,
        Some(Destination::Queue(queue)) if kind == DestinationKind::Queue => &queue.policy,
        Some(Destination::Broken { kind: broken, problem }) if *broken == kind => {
            let (what, id, problem) = (kind.as_str(), id.to_string(), problem.to_string());
            return Err(EngineError::NotAvailable { what, id, problem }.into());
        }
        Some(
            Destination::Endpoint(_)
            | Destination::Queue(_)
            | Destination::Source(_)
            | Destination::Broken { .. },
        )
        | None => {
            return Err(EngineError::NotFound { what: kind.as_str(), id: id.to_string() }.into());
        }
    };
    let classes = Classes::of(Some(id.to_string()), kind == DestinationKind::Endpoint, policy);
    Ok(answer(StatusCode::OK, &classes))
}

impl Classes {
    fn of(destination: Option<String>, answers: bool, policy: &Policy) -> Self {
        let class_line = |class: &Class| {
            let ruling = policy.rule_class(*class);
            ClassLine {
                class: class.as_str(),
                effect: ruling.classified.effect.as_str(),
                follows: ruling.classified.disposition.as_str(),
                by: by(policy, ruling),
            }
        };
        Self {
            destination,
            answers: if answers { answer_lines(policy) } else { Vec::new() },
            classes: Class::ALL.iter().map(class_line).collect(),
        }
    }
}

/// Every status of HTTP, neighbours of one meaning together.
fn answer_lines(policy: &Policy) -> Vec<AnswerLine> {
    let mut lines: Vec<AnswerLine> = Vec::new();
    let mut from = 100;
    for status in 100..600_u16 {
        let here = answer_line(policy, status, false);
        let next = (status < 599).then(|| answer_line(policy, status + 1, false));
        if next.as_ref() != Some(&here) {
            let range = if from == status { status.to_string() } else { format!("{from}-{status}") };
            lines.push(AnswerLine { answer: range, ..here });
            from = status + 1;
        }
        let asked = answer_line(policy, status, true);
        if asked != answer_line(policy, status, false) {
            lines.push(AnswerLine { answer: format!("{status} with Retry-After"), ..asked });
        }
    }
    lines.push(AnswerLine { answer: "any other".to_owned(), ..answer_line(policy, 999, false) });
    lines
}

fn answer_line(policy: &Policy, status: u16, retry_after: bool) -> AnswerLine {
    let answer = String::new();
    match policy.rule_status(status, retry_after) {
        Ruled::Accepted => {
            AnswerLine { answer, class: None, effect: "reported", follows: "committed", by: TABLE.to_owned() }
        }
        Ruled::Failed(ruling) => AnswerLine {
            answer,
            class: Some(ruling.classified.class.as_str()),
            effect: ruling.classified.effect.as_str(),
            follows: ruling.classified.disposition.as_str(),
            by: by(policy, ruling),
        },
    }
}

fn by(policy: &Policy, ruling: Ruling) -> String {
    let own = ruling.by.and_then(|at| policy.class_rule(at));
    own.map_or_else(|| TABLE.to_owned(), |rule| rule.line.to_string())
}
