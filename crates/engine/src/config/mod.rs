//! Configuration of destinations and sources: as written (`spec`), as understood (`compiled`).

mod classify;
mod compile;
mod compiled;
mod error;
mod lane;
mod look_up;
mod rules;
mod schedule;
mod schema;
mod source;
mod spec;
mod text;

pub use compile::{compile_endpoint, compile_queue};
pub use compiled::{AnswerStyle, Endpoint, Handshake, OnKeyReused, Proof, Queue, Source, To, WebhookId};
pub use error::ConfigError;
pub use look_up::{LookUpNames, LookUpRecipe, look_up_sample};
pub(crate) use rules::{Derivation, QUARANTINE_PREFIX, hex, namespaced};
pub use rules::{KeyRule, TypeRule};
pub use schedule::{CatchUpSpec, Schedule, ScheduleSpec, compile_schedule};
pub use schema::Schema;
pub use source::compile_source;
pub use spec::{
    AnswerSpec, CircuitSpec, ClassifySpec, ClassifyTable, EndpointSpec, HandshakeSpec, HmacSpec,
    OnKeyReusedSpec, OnUnknownSpec, OneOrMany, QueueReconcileSpec, QueueSpec, ReconcileSpec, RetrySpec,
    SignedSpec, SourceSpec, ToSpec, ToldBy, WebhookIdSpec, WhenPausedSpec,
};
pub use text::{DurationError, DurationText, format_duration, parse_duration, type_fits};
