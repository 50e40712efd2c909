//! The store in PostgreSQL: against servers of our own, which scripts/services/postgres.sh starts.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod conformance;
mod differential;
mod support;
