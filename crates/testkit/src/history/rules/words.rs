//! Rules about names: identities that never change, and words that are the contract's.

use std::collections::BTreeMap;

use crate::history::{checker::Findings, index::Index, kinds::Rule};

/// Row D1: one job id and one `webhook-id` for each event id, for ever, and none of them shared; an event id is its key and
/// destination.
pub(super) fn identity(index: &Index<'_>, findings: &mut Findings) {
    let mut jobs: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    let mut webhooks: BTreeMap<&str, (&str, usize)> = BTreeMap::new();
    for (event_id, event) in &index.events {
        let handed = event.handed.iter().map(|handed| (handed.job.as_str(), handed.line));
        let shown = event.last.iter().chain(&event.shown).map(|job| (job.job.as_str(), job.line));
        // Two jobs of one event id are `one_message`'s to find: here only whether somebody else has them.
        for (job, line) in handed.chain(shown) {
            share(&mut jobs, job, event_id, line, findings);
        }
        let mut first: Option<(&str, usize)> = None;
        for sent in &event.deliveries {
            let (known, line) = *first.get_or_insert((&sent.webhook_id, sent.line));
            if known != sent.webhook_id {
                let what = format!("{event_id} came as {known} and as {}", sent.webhook_id);
                findings.add(Rule::Identity, what, &[line, sent.line]);
            }
            share(&mut webhooks, &sent.webhook_id, event_id, sent.line, findings);
        }
        misnamed(event_id, event, findings);
    }
}

fn share<'h>(
    owners: &mut BTreeMap<&'h str, (&'h str, usize)>,
    id: &'h str,
    event_id: &'h str,
    line: usize,
    findings: &mut Findings,
) {
    let (owner, first) = *owners.entry(id).or_insert((event_id, line));
    if owner != event_id {
        findings.add(Rule::Identity, format!("{owner} and {event_id} share {id}"), &[first, line]);
    }
}

fn misnamed(event_id: &str, event: &crate::history::index::Event<'_>, findings: &mut Findings) {
    let handed = event.handed.iter().map(|one| (one.key.as_str(), one.queue, one.line));
    let shown = event.last.iter().chain(&event.shown);
    let shown = shown.map(|job| (job.key.as_str(), job.destination.as_str(), job.line));
    for (key, destination, line) in handed.chain(shown) {
        if *event_id != format!("{key}:{destination}") {
            findings.add(Rule::Identity, format!("{event_id} is {key} for {destination}"), &[line]);
        }
    }
    for sent in &event.deliveries {
        if event_id.rsplit_once(':').is_none_or(|(_, destination)| destination != sent.endpoint) {
            findings.add(Rule::Identity, format!("{event_id} came to {}", sent.endpoint), &[sent.line]);
        }
    }
}

const STATES: [&str; 6] = ["scheduled", "leased", "committed", "retryable", "dead_lettered", "cancelled"];
const OUTCOMES: [&str; 6] = ["committed", "duplicate", "cancelled", "failed", "released", "lease_lost"];
const EFFECTS: [&str; 4] = ["none", "possible", "reported", "confirmed"];
const PATHS: [&str; 2] = ["first_run", "retry_after_failure"];

/// Row B2: six states and no others; and the contract's other words.
pub(super) fn states(index: &Index<'_>, findings: &mut Findings) {
    let mut check = |word: &str, known: &[&str], line: usize| {
        if !known.contains(&word) {
            findings.add(Rule::States, format!("`{word}` is none of {}", known.join(", ")), &[line]);
        }
    };
    for publish in index.keys.values().flat_map(|key| &key.publishes) {
        let jobs = publish.answer.iter().flat_map(|answer| &answer.jobs);
        jobs.for_each(|job| check(&job.state, &STATES, publish.line));
    }
    for event in index.events.values() {
        for report in &event.reports {
            let state = report.answer.as_ref().and_then(|answer| answer.state.as_deref());
            if let Some(state) = state {
                check(state, &STATES, report.line);
            }
        }
        event.handed.iter().for_each(|handed| check(&handed.path, &PATHS, handed.line));
        for job in event.last.iter().chain(&event.shown) {
            check(&job.state, &STATES, job.line);
            for attempt in &job.attempts {
                let outcomes = attempt.outcome.iter().chain(&attempt.late_outcome);
                outcomes.for_each(|outcome| check(outcome, &OUTCOMES, job.line));
                attempt.effect.iter().for_each(|effect| check(effect, &EFFECTS, job.line));
            }
        }
    }
}
