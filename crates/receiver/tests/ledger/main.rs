//! The receiver's ledger on real databases: SQLite, and with `services-tests` PostgreSQL at each isolation level.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]
#![allow(clippy::print_stdout, reason = "shown when a test fails")]

mod api;
mod faults;
mod http;
mod kill;
mod kill_calls;
mod model;
#[cfg(feature = "services-tests")]
mod postgres_api;
mod race;
mod rows;
mod support;
