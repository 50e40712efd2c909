//! What the demo prints: a story that someone new can follow.

use std::io::Write;

use serde_json::Value;

use super::stage::Stage;
use crate::cli::{BAD, FAINT, GOOD, STRONG, styled, timeline_text};

/// Tells the story on standard output.
pub(super) struct Narrator {
    step: u32,
    out: anstream::Stdout,
}

impl Narrator {
    pub(super) fn new() -> Self {
        Self { step: 0, out: anstream::stdout() }
    }

    pub(super) fn opening(&mut self) {
        self.say(&styled(STRONG, "posthaste: durable webhooks and delayed jobs, shown end to end"));
        self.say(
            "Delivery is at least once; the effect is once, where the receiver keeps the ledger contract; and every step",
        );
        self.say(
            "leaves a timestamp under one key. Everything below is a real server and real HTTP on this machine.",
        );
    }

    pub(super) fn place(&mut self, stage: &Stage) {
        self.say(&styled(FAINT, &format!("server {}   store {}", stage.url(), stage.store().display())));
    }

    /// A reader that went away loses nothing but the story.
    fn say(&mut self, line: &str) {
        let _ = writeln!(self.out, "{line}");
    }

    /// Begins a step.
    pub(super) fn step(&mut self, title: &str) {
        self.step += 1;
        self.say("");
        self.say(&styled(STRONG, &format!("{}. {title}", self.step)));
    }

    /// Something that was checked and held.
    pub(super) fn held(&mut self, text: &str) {
        self.say(&format!("   {} {text}", styled(GOOD, "✓")));
    }

    /// Something worth knowing.
    pub(super) fn aside(&mut self, text: &str) {
        self.say(&styled(FAINT, &format!("     {text}")));
    }

    /// The timeline of one key.
    pub(super) fn timeline(&mut self, timeline: &Value) {
        self.say("");
        for line in timeline_text(timeline).lines() {
            self.say(&format!("   {line}"));
        }
    }

    pub(super) fn closing(&mut self, stage: &Stage) {
        self.say("");
        self.say(&format!("{} every step held.", styled(GOOD, "✓")));
        self.say("");
        self.say(&styled(STRONG, "Where to look next"));
        self.say(
            "   posthaste serve               your own server: no configuration needed, one file for the store",
        );
        self.say(
            "   posthaste states | classes    what each state means and what to do; which failure means what",
        );
        self.say("   docs/receive.md send.md delay.md operate.md    a page for each task");
        self.say(&styled(
            FAINT,
            &format!("   {}/openapi.json and {}/metrics    while this server runs", stage.url(), stage.url()),
        ));
    }

    pub(super) fn broken(&mut self, error: &anyhow::Error) {
        self.say(&format!("   {} {error:#}", styled(BAD, "✗")));
    }
}
