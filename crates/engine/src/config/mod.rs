//! Configuration of destinations and sources: as written (`spec`), as understood (`compiled`).

mod compile;
mod compiled;
mod error;
mod rules;
mod schema;
mod source;
mod spec;
mod text;

pub use compile::{compile_endpoint, compile_queue};
pub use compiled::{AnswerStyle, Endpoint, Handshake, OnKeyReused, Queue, Source, To, WebhookId};
pub use error::ConfigError;
pub(crate) use rules::{Derivation, QUARANTINE_PREFIX, hex, namespaced};
pub use rules::{KeyRule, TypeRule};
pub use schema::Schema;
pub use source::compile_source;
pub use spec::{
    AnswerSpec, EndpointSpec, HandshakeSpec, HmacSpec, OnKeyReusedSpec, OnUnknownSpec, OneOrMany, QueueSpec,
    RetrySpec, SignedSpec, SourceSpec, ToSpec, WebhookIdSpec,
};
pub use text::{DurationError, DurationText, format_duration, parse_duration, type_fits};
