//! The posthaste binary. Everything is in the library, so that tests can start a server in their own process.

use std::process::ExitCode;

/// A third of what an accept costs outside the store was the system's allocator, and its memory grows under mixed load.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    posthaste::cli::run()
}
