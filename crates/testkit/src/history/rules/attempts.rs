//! Rules about attempts: each given out once, in order, to one owner, and written down as it was.

use std::collections::BTreeMap;

use crate::history::{
    checker::Findings,
    index::{Event, HandedOut, Index, Line},
    kinds::Rule,
    record::{Delivery, Report, ServerAt, ShownAttempt, ShownJob, Verb},
};

/// Row B3: no two workers, and no two requests, have the same attempt.
pub(super) fn given_out_twice(index: &Index<'_>, findings: &mut Findings) {
    for (event_id, event) in &index.events {
        let mut owners: BTreeMap<u64, usize> = BTreeMap::new();
        let handed = event.handed.iter().map(|handed| (handed.attempt, handed.line));
        let sent = event.deliveries.iter().map(|sent| (sent.attempt, sent.line));
        for (attempt, line) in handed.chain(sent) {
            if let Some(first) = owners.insert(attempt, line) {
                let what = format!("attempt {attempt} of {event_id} was given out twice");
                findings.add(Rule::AttemptTwice, what, &[first, line]);
            }
        }
    }
}

/// Row B3: a later attempt is not followed by an earlier one.
pub(super) fn order(index: &Index<'_>, findings: &mut Findings) {
    for (event_id, event) in &index.events {
        let mut wrong = |later: u64, earlier: u64, lines: [usize; 2]| {
            let what = format!("attempt {earlier} of {event_id} came after attempt {later}");
            findings.add(Rule::AttemptOrder, what, &lines);
        };
        for later in &event.handed {
            let earlier = event.handed.iter().filter(|one| one.attempt < later.attempt);
            for earlier in
                earlier.filter(|one| one.invoked_at > later.answered_at || one.leased_at > later.leased_at)
            {
                wrong(later.attempt, earlier.attempt, [later.line, earlier.line]);
            }
        }
        for later in &event.deliveries {
            let after = event.deliveries.iter().filter(|one| one.arrived_at > later.arrived_at);
            for earlier in after.filter(|one| one.attempt < later.attempt) {
                wrong(later.attempt, earlier.attempt, [later.line, earlier.line]);
            }
        }
    }
}

/// Row B3: a fence belongs to one attempt of a job, and an attempt has one fence.
pub(super) fn fence(index: &Index<'_>, findings: &mut Findings) {
    for (event_id, event) in &index.events {
        for (at, first) in event.handed.iter().enumerate() {
            let others = event.handed[at + 1..].iter();
            for other in others.filter(|other| other.fence == first.fence && other.attempt != first.attempt) {
                let what =
                    format!("attempts {} and {} of {event_id} share a fence", first.attempt, other.attempt);
                findings.add(Rule::Fence, what, &[first.line, other.line]);
            }
        }
    }
}

/// Row B3: the next owner's lease begins when the one before has ended: expired, or reported.
pub(super) fn two_leases(index: &Index<'_>, findings: &mut Findings) {
    for (event_id, event) in &index.events {
        for first in &event.handed {
            let next = event.handed.iter().filter(|next| next.attempt > first.attempt);
            let Some(next) = next.min_by_key(|next| next.attempt) else { continue };
            let gave_it_back = event.reports_of(first.attempt).any(|report| {
                report.verb != Verb::Extend && !report.is_refused() && report.invoked_at < next.answered_at
            });
            if !gave_it_back && next.leased_at < expiry(event, *first) {
                let what = format!(
                    "attempt {} of {event_id} began in the lease of attempt {}",
                    next.attempt, first.attempt
                );
                findings.add(Rule::TwoLeases, what, &[first.line, next.line]);
            }
        }
    }
}

/// Until when the server gave the lease of `handed`, with every extension that it answered.
fn expiry(event: &Event<'_>, handed: HandedOut<'_>) -> ServerAt {
    let extended = event.reports_of(handed.attempt).filter(|report| report.verb == Verb::Extend);
    let extended = extended.filter_map(|report| report.answer.as_ref()?.lease_expires_at);
    extended.fold(handed.lease_expires_at, ServerAt::max)
}

/// Row F2: the attempts at the end are numbered from 1, and each says what those saw who took part in it.
pub(super) fn recorded(index: &Index<'_>, findings: &mut Findings) {
    for (event_id, event) in &index.events {
        let Some(job) = event.last.first() else { continue };
        if let Some(what) = malformed(job) {
            findings.add(Rule::Attempts, format!("{event_id}: {what}"), &[job.line]);
        }
        let mut check = |number: u64, line: usize, fits: &dyn Fn(&ShownAttempt) -> bool| {
            let what = match event.attempt(number) {
                None => format!("attempt {number} of {event_id} is not recorded"),
                Some(attempt) if !fits(attempt) => {
                    format!("attempt {number} of {event_id} is recorded as {:?}", attempt.outcome)
                }
                Some(_) => return,
            };
            let reports = event.reports_of(number).map(|report| report.line);
            let lines: Vec<_> = [line, job.line].into_iter().chain(reports).collect();
            findings.add(Rule::Attempts, what, &lines);
        };
        for handed in &event.handed {
            check(handed.attempt, handed.line, &|attempt| fits_reports(attempt, event, *job));
        }
        for sent in &event.deliveries {
            check(sent.attempt, sent.line, &|attempt| fits_response(attempt, *sent, *job));
        }
        let unseen = job.attempts.iter().filter(|one| {
            event.handed.iter().all(|handed| handed.attempt != one.attempt)
                && event.deliveries.iter().all(|sent| sent.attempt != one.attempt)
        });
        for attempt in unseen {
            check(attempt.attempt, job.line, &|attempt| fits_silence(attempt, *job));
        }
    }
}

/// What is wrong with the list of attempts by itself.
fn malformed(job: &ShownJob) -> Option<String> {
    let numbers: Vec<_> = job.attempts.iter().map(|attempt| attempt.attempt).collect();
    if !numbers.iter().copied().eq(1..=numbers.len() as u64) {
        return Some(format!("the recorded attempts are {numbers:?}"));
    }
    let overlap = job.attempts.windows(2).find(|pair| {
        pair[1].leased_at < pair[0].leased_at
            || pair[0].finished_at.is_some_and(|finished| pair[1].leased_at < finished)
            || pair[0].outcome.is_none()
    });
    overlap
        .map(|pair| format!("attempt {} began before attempt {} had ended", pair[1].attempt, pair[0].attempt))
}

/// It still runs, by the job's own state.
fn runs(attempt: &ShownAttempt, job: Line<'_, ShownJob>) -> bool {
    attempt.outcome.is_none()
        && job.state == "leased"
        && job.attempts.last().is_some_and(|last| last.attempt == attempt.attempt)
}

fn is_lost(attempt: &ShownAttempt) -> bool {
    attempt.outcome.as_deref() == Some("lease_lost") && attempt.late_outcome.is_none()
}

/// The first report that was accepted is what is recorded; else what an unanswered one asked for, or a lost lease.
fn fits_reports(attempt: &ShownAttempt, event: &Event<'_>, job: Line<'_, ShownJob>) -> bool {
    let says = |report: &Report| {
        let asked = report.outcome.as_deref();
        asked.is_some() && (attempt.outcome.as_deref() == asked || attempt.late_outcome.as_deref() == asked)
    };
    let reports: Vec<_> =
        event.reports_of(attempt.attempt).filter(|report| report.verb != Verb::Extend).collect();
    match reports.iter().find(|report| report.is_accepted()) {
        Some(accepted) => says(accepted),
        None => {
            is_lost(attempt)
                || runs(attempt, job)
                || reports.iter().any(|report| !report.is_refused() && says(report))
        }
    }
}

/// A receiver that took it may not have been heard; one that did not take it was not heard to.
fn fits_response(attempt: &ShownAttempt, sent: Line<'_, Delivery>, job: Line<'_, ShownJob>) -> bool {
    let outcome = attempt.outcome.as_deref();
    let taken = sent.response.status.is_some_and(|status| (200..300).contains(&status));
    let same_status = attempt.status.is_none() || attempt.status == sent.response.status;
    match outcome {
        Some("committed") => taken && same_status,
        Some("failed") => same_status,
        Some("released") => sent.response.status == Some(409) && same_status,
        Some("lease_lost") => attempt.late_outcome.as_deref().is_none_or(|late| late != "committed" || taken),
        _ => runs(attempt, job),
    }
}

/// An attempt that nobody outside saw has no outcome that somebody outside must have named.
fn fits_silence(attempt: &ShownAttempt, job: Line<'_, ShownJob>) -> bool {
    let never_connected =
        job.kind == "push" && attempt.outcome.as_deref() == Some("failed") && attempt.status.is_none();
    is_lost(attempt) || never_connected || runs(attempt, job)
}

/// Row B4: the state at the end follows from the recorded attempts, and no job is given up without cause.
///
/// Row B3: a state that follows from nothing but a report that was refused is that report's doing; unless the report said
/// that the effect has happened, and the record says that it was heard.
pub(super) fn unearned(index: &Index<'_>, findings: &mut Findings) {
    for (event_id, event) in &index.events {
        for job in event.last.iter().filter(|job| !is_earned(event, job)) {
            let refused = event.reports.iter().find(|report| report.is_refused() && says(report, &job.state));
            match refused {
                Some(report) => {
                    let what = format!("a report on {event_id} was refused and made it {}", job.state);
                    let about = event.handed.iter().map(|handed| handed.line);
                    let about = about.chain(event.reports.iter().map(|report| report.line));
                    findings.add(
                        Rule::Stale,
                        what,
                        &about.chain([report.line, job.line]).collect::<Vec<_>>(),
                    );
                }
                None => findings.add(
                    Rule::Unearned,
                    format!("nothing made {event_id} {}", job.state),
                    &event.reports.iter().map(|report| report.line).chain([job.line]).collect::<Vec<_>>(),
                ),
            }
        }
    }
}

/// The report's wish, if it counted, would settle the job so.
fn says(report: &Report, state: &str) -> bool {
    match state {
        "committed" => matches!(report.outcome.as_deref(), Some("committed" | "duplicate")),
        "dead_lettered" => report.gives_up,
        _ => report.outcome.as_deref() == Some(state),
    }
}

fn is_earned(event: &Event<'_>, job: &ShownJob) -> bool {
    let named = |outcome: &str| {
        job.attempts.iter().any(|attempt| {
            attempt.outcome.as_deref() == Some(outcome) || attempt.late_outcome.as_deref() == Some(outcome)
        })
    };
    let last = job.attempts.last().map(|attempt| attempt.outcome.as_deref());
    match job.state.as_str() {
        "committed" => named("committed") || named("duplicate") || is_heard(event, job),
        "cancelled" => named("cancelled"),
        "dead_lettered" => named("failed") && is_given_up(event),
        "leased" => last == Some(None),
        "retryable" => matches!(last, Some(Some("failed" | "lease_lost" | "released"))),
        _ => matches!(last, None | Some(Some("released"))),
    }
}

/// A worker said that it had done it, was refused because the job had gone on, and the API shows that it was heard:
/// evidence that the effect has happened, after which another attempt would double it.
pub(super) fn is_heard(event: &Event<'_>, job: &ShownJob) -> bool {
    let said =
        |attempt: &ShownAttempt| event.reports_of(attempt.attempt).any(|report| says(&report, "committed"));
    job.state == "committed" && job.attempts.iter().any(|attempt| attempt.commit_heard && said(attempt))
}

/// Somebody said that no other attempt may follow: a worker, or a receiver by its status.
fn is_given_up(event: &Event<'_>) -> bool {
    let by_worker = event.reports.iter().any(|report| report.gives_up && !report.is_refused());
    let by_receiver = event.deliveries.iter().any(|sent| sent.response.status.is_some_and(is_permanent));
    by_worker || by_receiver
}

/// Row B4's table: permanent for the message or for the destination.
fn is_permanent(status: u16) -> bool {
    matches!(status, 400 | 401 | 403 | 406 | 410 | 411 | 413..=417 | 422 | 431)
}
