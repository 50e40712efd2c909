//! Configuration of destinations and sources: as written (`spec`), as understood (`compiled`).

mod compile;
mod compiled;
mod error;
mod lane;
mod rules;
mod schedule;
mod spec;
mod text;

pub use compile::{compile_endpoint, compile_queue, compile_source};
pub use compiled::{AnswerStyle, Endpoint, Queue, Source, To, WebhookId};
pub use error::ConfigError;
pub(crate) use rules::{Derivation, namespaced};
pub use rules::{KeyRule, TypeRule};
pub use schedule::{CatchUpSpec, Schedule, ScheduleSpec, compile_schedule};
pub use spec::{
    AnswerSpec, CircuitSpec, EndpointSpec, HmacSpec, OnUnknownSpec, OneOrMany, QueueSpec, RetrySpec,
    SignedSpec, SourceSpec, ToSpec, WebhookIdSpec, WhenPausedSpec,
};
pub use text::{DurationError, DurationText, format_duration, parse_duration, type_fits};
