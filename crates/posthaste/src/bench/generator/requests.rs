//! Requests from templates: as fast as they are answered, or so many a second.

use std::time::{Duration, Instant};

use anyhow::ensure;

use super::{
    Tally, Window,
    event_loop::{Driver, Next, Turn},
    tally::Until,
};
use crate::bench::{
    plan::{Outcome, Template},
    times::now_us,
    token,
    wire::Answer,
};

/// Sends templates in turn.
pub(super) struct Requests<'p> {
    templates: &'p [Template],
    salt: u64,
    sent: u64,
    limit: u64,
    pace: Option<Pace>,
    tally: Tally,
}

struct Pace {
    interval: Duration,
    next_at: Instant,
}

impl<'p> Requests<'p> {
    pub(super) fn new(templates: &'p [Template], salt: u64, window: Window) -> anyhow::Result<Self> {
        ensure!(!templates.is_empty(), "no template");
        let fits = |template: &Template| template.token_at + token::LEN <= template.text.len();
        ensure!(templates.iter().all(fits), "a template without room for its token");
        Ok(Self { templates, salt, sent: 0, limit: u64::MAX, pace: None, tally: Tally::begin(window) })
    }

    /// So many requests a second, evenly.
    pub(super) fn pace(&mut self, per_second: Option<f64>) {
        self.pace = per_second.map(|per_second| Pace {
            interval: Duration::from_secs_f64(1.0 / per_second.max(0.001)),
            next_at: Instant::now(),
        });
    }

    /// So many requests in all.
    pub(super) fn limit(&mut self, limit: Option<u64>) {
        self.limit = limit.unwrap_or(u64::MAX);
    }

    /// Since when a request that leaves now is waited for, or when one may leave.
    ///
    /// One that is late because all connections were waiting for answers has been waited for since its time. If the
    /// connection was free, it is late only by our own timer.
    fn begin(&mut self, turn: Turn) -> Result<Instant, Instant> {
        let Some(pace) = &mut self.pace else { return Ok(turn.now) };
        if turn.now < pace.next_at {
            return Err(pace.next_at);
        }
        let due_at = pace.next_at;
        pace.next_at += pace.interval;
        Ok(if turn.rested { turn.now } else { due_at })
    }
}

impl Driver for Requests<'_> {
    fn next(&mut self, _connection: usize, turn: Turn, request: &mut Vec<u8>) -> Next {
        if turn.now >= self.tally.end || self.sent >= self.limit {
            return Next::Done;
        }
        let begun = match self.begin(turn) {
            Ok(begun) => begun,
            Err(until) => return Next::Rest { until },
        };
        let count = self.templates.len();
        let turn = usize::try_from(self.sent).unwrap_or(usize::MAX) % count;
        let template = &self.templates[turn];
        // With one template, all but the token is there already.
        if count > 1 || request.is_empty() {
            request.clear();
            request.extend_from_slice(template.text.as_bytes());
        }
        let place = &mut request[template.token_at..template.token_at + token::LEN];
        token::write(place, self.salt, self.sent, now_us());
        self.sent += 1;
        Next::Send { begun }
    }

    fn answered(&mut self, _connection: usize, answer: &Answer<'_>, begun: Instant, now: Instant) {
        if answer.is_good() {
            self.tally.good(1, begun, now);
        } else {
            self.tally.bad(answer);
        }
    }

    fn broken(&mut self, _connection: usize) {
        self.tally.failed("connection", 1);
    }

    fn patient_until(&self) -> Instant {
        self.tally.patient_until()
    }

    fn finish(&mut self, unanswered: usize) -> Outcome {
        self.tally.failed("no answer", u64::try_from(unanswered).unwrap_or(u64::MAX));
        let until = if self.sent >= self.limit { Until::LastAnswer } else { Until::WindowEnds };
        self.tally.take(until)
    }
}
