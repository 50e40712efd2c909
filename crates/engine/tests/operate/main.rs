//! Replay, resend and reconcile through the engine, on every store that needs no service: each combination of what
//! attempts, the ledger, the destination and the operator say. Rows B9, C8.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod bench;
mod bulk;
mod replays;
mod settling;
