//! The HTTP API and the pages: what a request asks becomes a call of the engine, and its answer a response.
//!
//! Nothing here decides about jobs, and nothing here waits for more than the engine and the request's own body.

mod archive;
mod auth;
mod body;
mod bulk;
mod bulk_json;
mod classes;
mod code;
mod context;
mod dead_letter;
mod destination_view;
mod destinations;
mod handshake;
mod health;
mod intake;
mod job_view;
mod jobs;
mod json;
mod keys;
mod ledger;
mod ledger_json;
mod listen;
mod look_ups;
mod message_view;
mod messages;
mod openapi;
mod operate;
mod overview;
mod paging;
mod pauses;
mod problem;
mod publish;
mod publish_request;
mod query;
mod queue;
mod refusal;
mod reports;
mod routes;
mod schedules;
mod schemas;
mod segments;
mod state;
mod time;
mod timeline;
mod ui;
mod wire;

pub use code::Code;
pub use listen::{HttpLimits, serve};
pub use openapi::document as openapi_document;
pub use routes::{api_router, intake_router, router};
pub use state::{AppOptions, AppState};

pub(crate) use auth::Caller;
pub(crate) use problem::Problem;
pub(crate) use publish_request::{Head, read_publish};
