//! The real server against receivers that do everything wrong: one endpoint a fault, one message to all of them, and what
//! the API shows of each. No slot outlives its deadline, and every attempt is stored with class and effect.
//! Rows B4, B5, D3; field cases B17, B19, B20, B22, B23, B24.

#![allow(clippy::unwrap_used, reason = "a test that can't go on says where")]

#[path = "../cli_support/mod.rs"]
mod cli_support;
mod receiver;
mod stage;

mod answers;
mod retry_after;
mod transport;
