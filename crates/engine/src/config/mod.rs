//! Configuration of destinations and sources: as written (`spec`), as understood (`compiled`).

mod classify;
mod compile;
mod compiled;
mod error;
mod look_up;
mod rules;
mod spec;
mod text;

pub use compile::{compile_endpoint, compile_queue, compile_source};
pub use compiled::{AnswerStyle, Endpoint, Queue, Source, To, WebhookId};
pub use error::ConfigError;
pub use look_up::{LookUpNames, LookUpRecipe, look_up_sample};
pub(crate) use rules::{Derivation, namespaced};
pub use rules::{KeyRule, TypeRule};
pub use spec::{
    AnswerSpec, ClassifySpec, ClassifyTable, EndpointSpec, HmacSpec, OnUnknownSpec, OneOrMany,
    QueueReconcileSpec, QueueSpec, ReconcileSpec, RetrySpec, SignedSpec, SourceSpec, ToSpec, ToldBy,
    WebhookIdSpec,
};
pub use text::{DurationError, DurationText, format_duration, parse_duration, type_fits};
