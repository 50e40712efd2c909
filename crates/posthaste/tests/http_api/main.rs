//! The HTTP API and the pages, over real connections, with the real engine and a clock that stands still until it is told
//! to move; on the store that `POSTHASTE_TEST_STORE` names.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

mod auth;
mod bulk;
mod connections;
mod document;
mod field_cases;
mod handshakes;
mod harness;
mod intake;
mod ledger;
mod ledger_race;
mod manage;
mod operate;
mod pages;
mod pauses;
mod payload;
mod publish;
mod quarantine;
mod schedules;
#[path = "../server/mod.rs"]
mod server;
mod sns;
mod twilio;
mod unknown;
mod workers;
