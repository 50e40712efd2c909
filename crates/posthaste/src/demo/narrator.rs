//! What the demo prints: a story that someone new can follow.

use std::io::Write;

use serde_json::Value;

use super::stage::Stage;
use crate::cli::{BAD, FAINT, GOOD, STRONG, styled, timeline_text};

/// Tells the story on standard output.
pub(super) struct Narrator {
    step: u32,
}

impl Narrator {
    pub(super) fn new() -> Self {
        Self { step: 0 }
    }

    pub(super) fn opening(&self) {
        say(&styled(STRONG, "posthaste: durable webhooks and delayed jobs, shown end to end"));
        say("Delivery is at least once; the effect is once, where the receiver keeps the ledger contract; and every step");
        say("leaves a timestamp under one key. Everything below is a real server and real HTTP on this machine.");
    }

    pub(super) fn place(&self, stage: &Stage) {
        say(&styled(FAINT, &format!("server {}   store {}", stage.url(), stage.store().display())));
    }

    /// Begins a step.
    pub(super) fn step(&mut self, title: &str) {
        self.step += 1;
        say("");
        say(&styled(STRONG, &format!("{}. {title}", self.step)));
    }

    /// Something that was checked and held.
    pub(super) fn held(&self, text: &str) {
        say(&format!("   {} {text}", styled(GOOD, "✓")));
    }

    /// Something worth knowing.
    pub(super) fn aside(&self, text: &str) {
        say(&styled(FAINT, &format!("     {text}")));
    }

    /// The timeline of one key.
    pub(super) fn timeline(&self, timeline: &Value) {
        say("");
        for line in timeline_text(timeline).lines() {
            say(&format!("   {line}"));
        }
    }

    pub(super) fn closing(&self, stage: &Stage) {
        say("");
        say(&format!("{} every step held.", styled(GOOD, "✓")));
        say("");
        say(&styled(STRONG, "Where to look next"));
        say("   posthaste serve               your own server: no configuration needed, one file for the store");
        say("   posthaste states | classes    what each state means and what to do; which failure means what");
        say("   docs/receive.md send.md delay.md operate.md    a page for each task");
        say(&styled(FAINT, &format!("   {}/openapi.json and {}/metrics    while this server runs", stage.url(), stage.url())));
    }

    pub(super) fn broken(&self, error: &anyhow::Error) {
        say(&format!("   {} {error:#}", styled(BAD, "✗")));
    }
}

/// A reader that went away loses nothing but the story.
fn say(line: &str) {
    let _ = writeln!(anstream::stdout().lock(), "{line}");
}
