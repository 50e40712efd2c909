//! The posthaste binary. Everything is in the library, so that tests can start a server in their own process.

use std::process::ExitCode;

fn main() -> ExitCode {
    posthaste::cli::run()
}
