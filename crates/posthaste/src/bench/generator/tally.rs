//! What a load process counts.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::super::{
    plan::Outcome,
    times::{Times, now_us},
    wire::Answer,
};

/// Bytes kept of the first bad answer.
const EXCERPT_BYTES: usize = 400;

/// How long answers may still come after the last request.
const PATIENCE: Duration = Duration::from_secs(30);

/// The time whose answers count.
#[derive(Clone, Copy, Debug)]
pub(super) struct Window {
    warm_up: Duration,
    measured: Duration,
}

impl Window {
    pub(super) fn new(warm_up: Duration, measured: Duration) -> Self {
        Self { warm_up, measured }
    }
}

/// Counts answers and times them.
pub(super) struct Tally {
    pub(super) start: Instant,
    pub(super) end: Instant,
    last_answer: Instant,
    times: Times,
    outcome: Outcome,
}

impl Tally {
    /// Begins now.
    pub(super) fn begin(window: Window) -> Self {
        let now = Instant::now();
        let start = now + window.warm_up;
        Self {
            start,
            end: start + window.measured,
            last_answer: now,
            times: Times::new(),
            outcome: Outcome { begun_us: now_us(), ..Outcome::default() },
        }
    }

    /// When to wait no longer.
    pub(super) fn patient_until(&self) -> Instant {
        self.end + PATIENCE
    }

    /// A good answer that stands for `count`.
    pub(super) fn good(&mut self, count: u64, begun: Instant, now: Instant) {
        self.outcome.good += count;
        if now >= self.start && now <= self.end {
            self.outcome.measured += count;
            self.times.record(now.duration_since(begun));
        }
        self.last_answer = now;
    }

    /// An answer that is an error.
    pub(super) fn bad(&mut self, answer: &Answer<'_>) {
        *self.outcome.errors.entry(answer.status.to_string()).or_default() += 1;
        let kept = &answer.body[..answer.body.len().min(EXCERPT_BYTES)];
        self.outcome.first_error.get_or_insert_with(|| String::from_utf8_lossy(kept).into_owned());
    }

    /// Something else went wrong, `count` times.
    pub(super) fn failed(&mut self, what: &str, count: u64) {
        if count > 0 {
            *self.outcome.errors.entry(what.to_owned()).or_default() += count;
        }
    }

    /// The sum, taken out. `until`: the end of the measured time.
    pub(super) fn take(&mut self, until: Until) -> Outcome {
        let last = match until {
            Until::WindowEnds => self.end,
            Until::LastAnswer => self.last_answer.min(self.end),
        };
        let late = self.last_answer.elapsed();
        let mut outcome = std::mem::take(&mut self.outcome);
        outcome.seconds = last.saturating_duration_since(self.start).as_secs_f64();
        outcome.latency = self.times.quantiles();
        outcome.ended_us = now_us().saturating_sub(u64::try_from(late.as_micros()).unwrap_or(0));
        outcome
    }

    /// How often what went wrong.
    pub(super) fn errors(&self) -> &BTreeMap<String, u64> {
        &self.outcome.errors
    }
}

/// What ends the measured time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Until {
    /// It is over.
    WindowEnds,
    /// There was nothing more to do.
    LastAnswer,
}
