//! The long form of the soak: everything at once for three quarters of an hour, or for `POSTHASTE_SOAK_SECONDS`.
#![cfg(feature = "long-tests")]
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod cli_support;

use std::process::Stdio;

use cli_support::posthaste;

/// Seconds, unless told.
const SECONDS: &str = "2700";

#[test]
fn r_f8_a_long_soak_loses_nothing_and_grows_no_more() {
    let seconds = std::env::var("POSTHASTE_SOAK_SECONDS").unwrap_or_else(|_| SECONDS.to_owned());
    let folder = tempfile::tempdir().unwrap();
    let mut command = posthaste(folder.path(), &["bench", "soak", "--json", "--seconds", &seconds]);
    // What it tells on the way is for who watches.
    let ended = command.stdin(Stdio::null()).stderr(Stdio::inherit()).output().unwrap();
    let report = String::from_utf8(ended.stdout).unwrap();
    println!("{report}");
    assert_eq!(Some(0), ended.status.code());
}
