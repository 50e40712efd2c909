//! Judges a whole history.

use std::fmt;

use super::{
    index::Index,
    kinds::{Rule, Seen},
    record::{Change, Handed, Record, Verb, Way},
    rules,
};

/// How many observations a violation shows at most.
const OBSERVATIONS_MAX: usize = 6;

/// A promise that was broken, with what shows it.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which promise.
    pub rule: Rule,
    /// What is wrong, in a sentence.
    pub what: String,
    /// The observations that show it, the first few.
    pub observations: Vec<Record>,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}: {}", self.rule, self.what)?;
        for record in &self.observations {
            let line = serde_json::to_string(record).map_err(|_| fmt::Error)?;
            writeln!(f, "    {line}")?;
        }
        Ok(())
    }
}

/// What a history shows.
#[derive(Clone, Debug)]
pub struct Verdict {
    /// Every broken promise.
    pub violations: Vec<Violation>,
    /// How much was seen.
    pub seen: Seen,
}

impl Verdict {
    /// The rules that were broken, each once.
    pub fn broken(&self) -> Vec<Rule> {
        let mut rules: Vec<_> = self.violations.iter().map(|violation| violation.rule).collect();
        rules.sort_unstable();
        rules.dedup();
        rules
    }
}

/// What the rules found, before the observations are looked up.
pub(super) struct Findings(Vec<(Rule, String, Vec<usize>)>);

impl Findings {
    /// Notes that `rule` is broken; `lines` show it.
    pub(super) fn add(&mut self, rule: Rule, what: String, lines: &[usize]) {
        self.0.push((rule, what, lines.to_vec()));
    }
}

/// Judges `history`, which must be whole: from the first call to the facts at the end.
pub fn judge(history: &[Record]) -> Verdict {
    let index = Index::of(history);
    let mut findings = Findings(Vec::new());
    for rule in rules::ALL {
        rule(&index, &mut findings);
    }
    let violation = |(rule, what, mut lines): (Rule, String, Vec<usize>)| {
        lines.sort_unstable();
        lines.dedup();
        let lines = lines.iter().take(OBSERVATIONS_MAX);
        let observations = lines.map(|line| part_about(&what, &history[*line])).collect();
        Violation { rule, what, observations }
    };
    Verdict { violations: findings.0.into_iter().map(violation).collect(), seen: count(history, &index) }
}

/// The observation, without the jobs of an answer that `what` doesn't name.
fn part_about(what: &str, record: &Record) -> Record {
    let mut record = record.clone();
    if let Record::Consume(consume) = &mut record {
        let is_named = |job: &Handed| what.contains(&job.event_id);
        if consume.jobs.iter().any(is_named) {
            consume.jobs.retain(is_named);
        }
    }
    record
}

fn count(history: &[Record], index: &Index<'_>) -> Seen {
    let mut seen = Seen::default();
    for record in history {
        count_record(record, &mut seen);
    }
    for key in index.keys.values() {
        if key.acknowledged().next().is_some() {
            seen.count("keys.acknowledged");
        }
        if key.publishes.first().is_some_and(|publish| publish.destinations.len() > 100) {
            seen.count("keys.fanned_out");
        }
    }
    for event in index.events.values() {
        let resent = event.deliveries.iter().filter(|sent| {
            sent.response.written && sent.response.status.is_some_and(|status| (200..300).contains(&status))
        });
        if resent.count() > 1 {
            seen.count("deliveries.taken_again");
        }
    }
    seen
}

fn count_record(record: &Record, seen: &mut Seen) {
    match record {
        Record::Publish(publish) => {
            seen.count(match publish.way {
                Way::Publish => "publishes.single",
                Way::Batch => "publishes.batch",
                Way::Intake => "publishes.intake",
            });
            seen.count(match publish.answer.as_ref().map(|answer| answer.status) {
                None => "publishes.unanswered",
                Some(202) => "publishes.new",
                Some(200) => "publishes.known",
                Some(400..500) => "publishes.refused",
                Some(_) => "publishes.not_taken",
            });
        }
        Record::Consume(consume) => {
            let kind =
                if consume.answered_at.is_some() { "consumes.answered" } else { "consumes.unanswered" };
            seen.count(kind);
            consume.jobs.iter().for_each(|_| seen.count("jobs.handed_out"));
        }
        Record::Report(report) => {
            seen.count(match report.verb {
                Verb::Ack => "reports.ack",
                Verb::Reject => "reports.reject",
                Verb::Extend => "reports.extend",
                Verb::Release => "reports.release",
            });
            seen.count(match report.answer.as_ref().map(|answer| (answer.status, answer.code.as_deref())) {
                None => "reports.unanswered",
                Some((200..300, _)) => "reports.accepted",
                Some((409, Some("stale_fence"))) => "reports.stale",
                Some((409, _)) => "reports.refused",
                Some(_) => "reports.failed",
            });
        }
        Record::Delivery(delivery) => seen.count(match delivery.response.status {
            Some(200..300) if delivery.response.written => "deliveries.taken",
            Some(_) => "deliveries.answered_otherwise",
            None => "deliveries.unanswered",
        }),
        Record::Server(server) => seen.count(match server.change {
            Change::Started => "server.started",
            Change::Killed => "server.killed",
            Change::Died(_) => "server.died",
        }),
        Record::Shown(_) => seen.count("jobs.shown"),
        Record::FinalJob(job) => {
            seen.count("jobs.final");
            job.attempts.iter().for_each(|_| seen.count("attempts.final"));
            if job.attempts.iter().any(|attempt| attempt.outcome.as_deref() == Some("lease_lost")) {
                seen.count("jobs.lost_a_lease");
            }
        }
        Record::FinalMessage(_) => seen.count("messages.final"),
        Record::End(_) => seen.count("ends"),
    }
}
