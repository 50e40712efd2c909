//! The posthaste binary. Everything is in the library, so that tests can start a server in their own process.

use std::process::ExitCode;

/// An eighth of all CPU under load went into the system's allocator.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    posthaste::cli::run()
}
