//! The demo is run as a user runs it; it must notice whatever is broken.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

use std::process::{Command, Output};

fn demo(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_posthaste")).arg("demo").arg("--exit").args(arguments).output().unwrap()
}

#[test]
fn r_g1_the_demo_tells_the_whole_story_and_ends_well() {
    let output = demo(&[]);
    let story = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success(), "{story}\n{}", String::from_utf8_lossy(&output.stderr));
    for part in [
        "first_run",
        "duplicate_done",
        "signature_invalid",
        "stale_fence",
        "every step held",
        "Where to look next",
    ] {
        assert!(story.contains(part), "{part} is missing:\n{story}");
    }
}

#[test]
fn breaking_any_one_step_makes_the_demo_fail() {
    for step in ["accept", "duplicate", "tamper", "delay", "retry", "fence"] {
        let output = demo(&["--break", step]);
        assert_eq!(Some(1), output.status.code(), "{step}:\n{}", String::from_utf8_lossy(&output.stdout));
    }
}
