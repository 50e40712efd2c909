//! What was promised against what became of it, and what the server logged.

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use super::{
    ByHand,
    loads::{self, Ended, Promise},
};
use crate::bench::{
    figures::{Figure, Measure},
    float,
    plan::Outcome,
    server::Server,
    stage::{ReceiverProcess, Stage},
};

/// How long all may take to settle once the load has ended: the longest delay, and a minute.
const PATIENCE: Duration = Duration::from_mins(3);

/// Between two looks.
const LOOK_EVERY: Duration = Duration::from_millis(500);

/// States in which something is still to come.
const UNSETTLED: [&str; 3] = ["scheduled", "leased", "retryable"];

/// Jobs by state.
#[derive(Clone, Debug, Default)]
pub(super) struct Jobs(BTreeMap<String, u64>);

impl Jobs {
    pub(super) fn read(server: &mut Server) -> anyhow::Result<Self> {
        let overview: serde_json::Value = serde_json::from_str(&server.api().get("/v1/overview")?)?;
        Ok(Self(serde_json::from_value(overview["jobs"].clone())?))
    }

    fn of(&self, state: &str) -> u64 {
        self.0.get(state).copied().unwrap_or(0)
    }

    fn all(&self) -> u64 {
        self.0.values().sum()
    }

    fn unsettled(&self) -> u64 {
        UNSETTLED.iter().map(|state| self.of(state)).sum()
    }

    pub(super) fn set(&self, figure: &mut Figure) {
        for (measure, state) in [
            (Measure::Scheduled, "scheduled"),
            (Measure::Leased, "leased"),
            (Measure::Retryable, "retryable"),
            (Measure::Committed, "committed"),
            (Measure::DeadLettered, "dead_lettered"),
        ] {
            figure.set(measure, float(self.of(state)));
        }
    }
}

/// What was promised, and what became of it.
pub(super) struct Accounts {
    /// Jobs that were acknowledged.
    pub(super) promised: u64,
    /// Of these, those that no endpoint ever takes.
    to_dead_letter: u64,
    /// Different deliveries that must have come, by the receiver's group.
    to_arrive: BTreeMap<&'static str, u64>,
    /// Whether any request was answered otherwise: then more may be known than was acknowledged.
    errors: bool,
    jobs: Jobs,
    settled_after: Duration,
    /// What was pulled in the end.
    rest: Vec<Outcome>,
}

impl Accounts {
    pub(super) fn new(ended: &[Ended], endpoints: u64, by_hand: &ByHand) -> Self {
        let mut to_arrive = BTreeMap::from([("fan-out", by_hand.fan_outs * endpoints)]);
        let mut to_dead_letter = 0;
        for load in ended {
            match load.promise {
                Promise::Commit(Some(group)) => drop(to_arrive.insert(group, load.outcome.good)),
                Promise::DeadLetter => to_dead_letter += load.outcome.good,
                Promise::Commit(None) | Promise::OnceEach(_) | Promise::Nothing => {}
            }
        }
        Self {
            promised: ended.iter().map(Ended::promised).sum::<u64>() + by_hand.promised(),
            to_dead_letter,
            to_arrive,
            errors: !by_hand.errors.is_empty() || ended.iter().any(|load| !load.outcome.errors.is_empty()),
            jobs: Jobs::default(),
            settled_after: Duration::ZERO,
            rest: Vec::new(),
        }
    }

    /// Pulls what is left and becomes due, until every job is settled or patience ends.
    pub(super) fn settle(&mut self, stage: &Stage, server: &mut Server) -> anyhow::Result<()> {
        let begun = Instant::now();
        server.connect_again()?;
        loop {
            self.rest.push(loads::pull_the_rest(stage, server)?);
            self.jobs = Jobs::read(server)?;
            self.settled_after = begun.elapsed();
            let is_settled = self.jobs.unsettled() == 0 && self.jobs.all() >= self.promised;
            if is_settled || self.settled_after > PATIENCE {
                return Ok(());
            }
            stage.rest(LOOK_EVERY)?;
        }
    }

    /// What is not as it was promised is a fault.
    pub(super) fn judge(&self, figure: &mut Figure, receiver: &mut ReceiverProcess) -> anyhow::Result<()> {
        let known = self.jobs.all();
        figure.set(Measure::Promised, float(self.promised));
        figure.set(Measure::Known, float(known));
        figure.set(Measure::Seconds, self.settled_after.as_secs_f64());
        self.jobs.set(figure);
        figure.set(Measure::Errors, 0.0);
        for outcome in &self.rest {
            figure.add_errors(outcome);
        }
        if self.jobs.unsettled() > 0 {
            let seconds = self.settled_after.as_secs();
            figure.fault(format!("{seconds} s after the load's end, not all is settled: {:?}", self.jobs.0));
        }
        if known < self.promised || (known > self.promised && !self.errors) {
            figure.fault(format!("{} jobs were acknowledged, {known} are known", self.promised));
        }
        let dead = self.jobs.of("dead_lettered");
        if dead != self.to_dead_letter && !self.errors {
            figure.fault(format!("{dead} jobs are dead-lettered, {} should be", self.to_dead_letter));
        }
        let arrived = receiver.stats()?.groups;
        for (group, expected) in &self.to_arrive {
            let distinct = arrived.get(*group).map_or(0, |group| group.distinct);
            if distinct < *expected {
                figure.fault(format!("{group}: {distinct} of {expected} deliveries arrived"));
            }
        }
        Ok(())
    }

    pub(super) fn set_store(&self, figure: &mut Figure, server: &Server) {
        let settled = self.jobs.all() - self.jobs.unsettled();
        let mib = server.store_mib();
        figure.set(Measure::Store, mib);
        figure.set(Measure::StoreEach, mib * 1024.0 * 1024.0 / float(settled));
    }
}

/// Lines of the server's log by level and event; errors are faults of `figure`.
pub(super) fn log(figure: &mut Figure, text: &str) -> Vec<Figure> {
    let mut lines: BTreeMap<String, u64> = BTreeMap::new();
    for line in text.lines() {
        *lines.entry(kind(line)).or_default() += 1;
    }
    let is_error = |line: &&str| line.contains("\"level\":\"ERROR\"");
    if let Some(first) = text.lines().find(is_error) {
        let count = text.lines().filter(is_error).count();
        figure.fault(format!("{count} lines at level ERROR; first: {first}"));
    }
    let counted = lines.into_iter().map(|(kind, count)| {
        let mut figure = Figure::new(kind, "lines");
        figure.set(Measure::Lines, float(count));
        figure
    });
    counted.collect()
}

/// Level, and event or else message.
fn kind(line: &str) -> String {
    let line: serde_json::Value = serde_json::from_str(line).unwrap_or_default();
    let text = |name: &str| line[name].as_str();
    let level = text("level").unwrap_or("no JSON");
    format!("log: {level} {}", text("event").or(text("message")).unwrap_or("-"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_of_the_log_are_counted_by_event() {
        let text = "{\"level\":\"WARN\",\"event\":\"dead_letter\"}\n{\"level\":\"WARN\",\"event\":\"dead_letter\"}\n\
                    {\"level\":\"ERROR\",\"message\":\"a read panicked\"}\nno line\n";
        let mut figure = Figure::new("all", "jobs");
        let counted = log(&mut figure, text);
        let counted: Vec<_> =
            counted.iter().map(|line| (line.name.as_str(), line.measure(Measure::Lines))).collect();
        let expected = [
            ("log: ERROR a read panicked", Some(1.0)),
            ("log: WARN dead_letter", Some(2.0)),
            ("log: no JSON -", Some(1.0)),
        ];
        assert_eq!(expected.as_slice(), counted);
        assert_eq!(1, figure.faults.len());
    }
}
