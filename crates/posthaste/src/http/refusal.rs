//! From the engine's refusals to problems.

use posthaste_core::{Attempt, Refusal, Report};
use posthaste_engine::{EngineError, IntakeError};
use posthaste_store::StoreError;
use serde_json::{Value, json};

use super::{Code, Problem};

impl From<EngineError> for Problem {
    fn from(error: EngineError) -> Self {
        let code = Code::parse(error.code()).unwrap_or(Code::Internal);
        log(code, &error);
        let detail = if code == Code::Internal { code.title().to_owned() } else { error.to_string() };
        let problem = Self::new(code, detail);
        match error {
            EngineError::KeyReused { field, message } => {
                problem.with("field", field.as_str()).with("message_id", message.to_string())
            }
            EngineError::Name { field, .. } | EngineError::Invalid { field, .. } => {
                problem.with("path", field)
            }
            EngineError::Config(fault) => problem.with("path", fault.path),
            EngineError::Refused(refusal) => with_refusal(problem, &refusal),
            EngineError::Store(_)
            | EngineError::DeadlinePassed
            | EngineError::Draining
            | EngineError::MissingKey
            | EngineError::TooLarge { .. }
            | EngineError::NotFound { .. }
            | EngineError::NotAvailable { .. }
            | EngineError::Taken { .. }
            | EngineError::Exists { .. }
            | EngineError::ManagedByFile { .. }
            | EngineError::Secret(_) => problem,
        }
    }
}

impl From<StoreError> for Problem {
    fn from(error: StoreError) -> Self {
        EngineError::from(error).into()
    }
}

/// At intake the caller is a provider: what only the operator can mend is "come back later", so that nothing is lost.
impl From<IntakeError> for Problem {
    fn from(error: IntakeError) -> Self {
        match error {
            IntakeError::UnknownSource(_) => Self::new(Code::UnknownSource, error.to_string()),
            IntakeError::SignatureInvalid(_) => Self::new(Code::SignatureInvalid, error.to_string()),
            IntakeError::CertificateUnavailable => Self::new(Code::CertificateUnavailable, error.to_string()),
            IntakeError::Paused => Self::new(Code::SourcePaused, error.to_string()),
            IntakeError::UnsupportedEncoding => Self::new(Code::UnsupportedEncoding, error.to_string()),
            IntakeError::MalformedEncoding => Self::new(Code::InvalidBody, error.to_string()),
            IntakeError::TooLargeDecoded { .. } => Self::new(Code::PayloadTooLarge, error.to_string()),
            IntakeError::Engine(
                error @ (EngineError::NotFound { .. } | EngineError::NotAvailable { .. }),
            ) => {
                tracing::error!(event = "source_unavailable", error = %error, "a delivery was sent back");
                Self::new(Code::SourceUnavailable, "the source can't take deliveries at the moment")
            }
            IntakeError::Engine(error) => error.into(),
        }
    }
}

fn with_refusal(problem: Problem, refusal: &Refusal) -> Problem {
    match refusal {
        Refusal::StaleFence { current } | Refusal::AttemptChanged { current } => {
            problem.with("current_attempt", current.map(Attempt::get))
        }
        Refusal::AlreadyReported { report } => problem.with("reported", reported(*report)),
        Refusal::AlreadySettled { state } | Refusal::WrongState { state, .. } => {
            problem.with("state", state.as_str())
        }
        Refusal::OutcomeUnknown { span, cause } => problem
            .with("cause", cause.as_str())
            .with("effect", span.effect.as_str())
            .with("effects", json!({ "lo": span.lo, "hi": span.hi })),
        Refusal::LeaseExpired | Refusal::NotDue { .. } | Refusal::NotExpired { .. } | Refusal::LookUpOwed => {
            problem
        }
    }
}

/// What is recorded of an attempt, for the worker that now says something else.
fn reported(report: Report) -> Value {
    json!({
        "outcome": report.outcome.as_str(),
        "class": report.class.map(posthaste_core::Class::as_str),
        "effect": report.effect.as_str(),
        "retry": report.wish.map(posthaste_core::RetryWish::as_str),
    })
}

/// Logs what a person must know; the caller's own mistakes are not worth a line.
fn log(code: Code, error: &EngineError) {
    let cause = std::error::Error::source(error).map(ToString::to_string);
    match code.status() {
        500 => tracing::error!(event = "request_failed", code = code.as_str(), error = %error, cause),
        503 => tracing::warn!(event = "request_refused", code = code.as_str(), error = %error, cause),
        _ => {}
    }
}
