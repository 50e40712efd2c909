//! The loops over the memory store, with a clock by hand and a scripted sender. One program, so that it links once.
#![allow(clippy::unwrap_used, reason = "a test that can't go on says so")]

mod delivery;
mod lanes;
mod look_ups;
mod outage;
mod pull;
mod retention;
mod schedules;
mod starts;
mod support;
mod sweep;
