//! The rules of the core, each as a test named after its row in REQUIREMENTS.md. One binary, so that it links once.
#![allow(clippy::unwrap_used, clippy::print_stderr)] // helpers of tests fail as tests do
#![allow(clippy::wildcard_enum_match_arm)] // "anything else fails" is what a test means
#![allow(clippy::needless_raw_string_hashes)] // expect-test writes them

mod backoff;
mod budgets;
mod classification;
mod common;
mod field_cases;
mod lane;
mod ledger;
mod limits;
mod operator;
mod reports;
mod rows;
mod table;
mod walk;
