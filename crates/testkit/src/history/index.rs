//! A history by key and by event id, so that a rule reads only what it is about.

use std::{collections::BTreeMap, ops::Deref};

use super::record::{
    Consume, Delivery, FinalMessage, Handed, HarnessAt, Publish, Record, Report, ServerAt, ServerChange,
    ShownAttempt, ShownJob,
};

/// An observation and the line that it stands on.
#[derive(Debug)]
pub(super) struct Line<'h, T> {
    pub(super) line: usize,
    it: &'h T,
}

impl<T> Clone for Line<'_, T> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<T> Copy for Line<'_, T> {}

impl<T> Deref for Line<'_, T> {
    type Target = T;

    fn deref(&self) -> &T {
        self.it
    }
}

/// A job that one answer handed out.
#[derive(Clone, Copy, Debug)]
pub(super) struct HandedOut<'h> {
    pub(super) line: usize,
    pub(super) queue: &'h str,
    pub(super) invoked_at: HarnessAt,
    pub(super) answered_at: HarnessAt,
    it: &'h Handed,
}

impl Deref for HandedOut<'_> {
    type Target = Handed;

    fn deref(&self) -> &Handed {
        self.it
    }
}

/// What is known of one key.
#[derive(Debug, Default)]
pub(super) struct Key<'h> {
    pub(super) publishes: Vec<Line<'h, Publish>>,
    pub(super) last: Vec<Line<'h, FinalMessage>>,
}

impl<'h> Key<'h> {
    /// Offers that were answered with success.
    pub(super) fn acknowledged(&self) -> impl Iterator<Item = Line<'h, Publish>> + '_ {
        self.publishes.iter().copied().filter(|publish| publish.is_acknowledged())
    }

    /// Offers that may have been taken: those not refused.
    pub(super) fn possible(&self) -> impl Iterator<Item = Line<'h, Publish>> + '_ {
        self.publishes.iter().copied().filter(|publish| !publish.is_refused())
    }

    /// Before which no job of it may start: what the most hasty of its publishers asked for.
    pub(super) fn not_before(&self) -> Option<ServerAt> {
        self.possible().map(|publish| publish.not_before()).min()
    }
}

/// What is known of one event id.
#[derive(Debug, Default)]
pub(super) struct Event<'h> {
    pub(super) handed: Vec<HandedOut<'h>>,
    pub(super) reports: Vec<Line<'h, Report>>,
    pub(super) deliveries: Vec<Line<'h, Delivery>>,
    pub(super) shown: Vec<Line<'h, ShownJob>>,
    pub(super) last: Vec<Line<'h, ShownJob>>,
}

impl<'h> Event<'h> {
    /// Its attempt `number` at the end.
    pub(super) fn attempt(&self, number: u64) -> Option<&'h ShownAttempt> {
        self.last.first()?.it.attempts.iter().find(|attempt| attempt.attempt == number)
    }

    /// Attempts after `number`, as (number, line) pairs, wherever they were seen.
    pub(super) fn later_attempts(&self, number: u64) -> impl Iterator<Item = (u64, usize)> + '_ {
        let handed = self.handed.iter().map(|handed| (handed.attempt, handed.line));
        let sent = self.deliveries.iter().map(|sent| (sent.attempt, sent.line));
        let shown = self.shown.iter().chain(&self.last);
        let shown = shown.flat_map(|job| job.it.attempts.iter().map(|one| (one.attempt, job.line)));
        handed.chain(sent).chain(shown).filter(move |(attempt, _)| *attempt > number)
    }

    /// Reports about the attempt `number`.
    pub(super) fn reports_of(&self, number: u64) -> impl Iterator<Item = Line<'h, Report>> + '_ {
        self.reports.iter().copied().filter(move |report| report.attempt == number)
    }
}

/// A whole history.
#[derive(Debug, Default)]
pub(super) struct Index<'h> {
    pub(super) keys: BTreeMap<&'h str, Key<'h>>,
    pub(super) events: BTreeMap<&'h str, Event<'h>>,
    pub(super) server: Vec<Line<'h, ServerChange>>,
    /// The harness waited until nothing was left to do.
    pub(super) quiescence: bool,
}

impl<'h> Index<'h> {
    pub(super) fn of(history: &'h [Record]) -> Self {
        let mut index = Self::default();
        for (line, record) in history.iter().enumerate() {
            index.add(line, record);
        }
        index
    }

    fn add(&mut self, line: usize, record: &'h Record) {
        match record {
            Record::Publish(it) => self.keys.entry(&it.key).or_default().publishes.push(Line { line, it }),
            Record::FinalMessage(it) => self.keys.entry(&it.key).or_default().last.push(Line { line, it }),
            Record::Consume(it) => self.add_consume(line, it),
            Record::Report(it) => self.event(&it.event_id).reports.push(Line { line, it }),
            Record::Delivery(it) => self.event(&it.event_id).deliveries.push(Line { line, it }),
            Record::Shown(it) => self.event(&it.event_id).shown.push(Line { line, it }),
            Record::FinalJob(it) => self.event(&it.event_id).last.push(Line { line, it }),
            Record::Server(it) => self.server.push(Line { line, it }),
            Record::End(end) => self.quiescence = end.quiescence,
        }
    }

    fn add_consume(&mut self, line: usize, consume: &'h Consume) {
        let Some(answered_at) = consume.answered_at else { return };
        for it in &consume.jobs {
            let (queue, invoked_at) = (consume.queue.as_str(), consume.invoked_at);
            self.event(&it.event_id).handed.push(HandedOut { line, queue, invoked_at, answered_at, it });
        }
    }

    fn event(&mut self, event_id: &'h str) -> &mut Event<'h> {
        self.events.entry(event_id).or_default()
    }

    /// The key and destination that an event id is made of, as far as anybody published it.
    pub(super) fn parts_of(&self, event_id: &'h str) -> Option<(&Key<'h>, &'h str)> {
        let (key, destination) = event_id.rsplit_once(':')?;
        Some((self.keys.get(key)?, destination))
    }
}

impl Publish {
    /// It was answered with success.
    pub(super) fn is_acknowledged(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| (200..300).contains(&answer.status))
    }

    /// It was answered that it is not taken. A 5xx leaves it open.
    pub(super) fn is_refused(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| (400..500).contains(&answer.status))
    }

    fn not_before(&self) -> ServerAt {
        self.due_at.unwrap_or_else(|| self.invoked_at.to_ms().plus_ms(self.delay_ms.unwrap_or_default()))
    }
}

impl Report {
    /// It was answered with success.
    pub(super) fn is_accepted(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| (200..300).contains(&answer.status))
    }

    /// It was answered that it does not count. A 5xx leaves it open.
    pub(super) fn is_refused(&self) -> bool {
        self.answer.as_ref().is_some_and(|answer| (400..500).contains(&answer.status))
    }

    /// It says the same as `other`, with the same fence.
    pub(super) fn repeats(&self, other: &Self) -> bool {
        (self.verb, &self.fence, &self.terms) == (other.verb, &other.fence, &other.terms)
    }
}

/// A state in which a job stays.
pub(super) fn is_settled(state: &str) -> bool {
    matches!(state, "committed" | "cancelled" | "dead_lettered")
}
