//! posthaste: durable webhooks and delayed jobs in one binary.

mod bench;
pub mod cli;
pub mod config;
mod demo;
pub mod http;
mod outbox;
mod secrets;
pub mod serve;
mod stores;
mod telemetry;
