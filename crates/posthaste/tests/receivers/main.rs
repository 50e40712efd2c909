//! Receivers in other languages, as their teams would run them: the ones of `examples/receivers`, and the ledger's
//! statements in the databases' own command line tools. Rows C1 to C4 and C7.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]
#![allow(clippy::print_stderr, reason = "a run names its seed and what it met")]

#[path = "../crash/harness/chance.rs"]
#[allow(dead_code, reason = "shared with the crash test")]
mod chance;
#[path = "../cli_support/mod.rs"]
mod cli_support;
mod command_line;
mod database;
mod delivery;
mod process;
mod proxy;
#[path = "../server/mod.rs"]
mod server;
mod tools;
mod wire;

use process::Language;

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_c7_a_node_receiver_on_postgresql_has_one_effect_for_each_event() {
    delivery::one_effect_each(Language::Node).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_c7_a_python_receiver_on_postgresql_has_one_effect_for_each_event() {
    delivery::one_effect_each(Language::PythonPostgres).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_c7_a_python_receiver_on_sqlite_has_one_effect_for_each_event() {
    delivery::one_effect_each(Language::PythonSqlite).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn r_c7_a_go_receiver_on_postgresql_has_one_effect_for_each_event() {
    delivery::one_effect_each(Language::Go).await;
}
