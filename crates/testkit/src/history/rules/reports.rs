//! Rules about what workers report.

use crate::history::{
    checker::Findings,
    index::{Event, Index, Line, is_settled},
    kinds::Rule,
    record::{HarnessAt, Report, ServerAt, ShownJob, Verb},
    rules::attempts::is_heard,
};

/// How far the harness's clock and the server's may be apart, in milliseconds.
pub(super) const CLOCKS_APART_MS: i64 = 20;

/// Row B3: a report on an attempt that had been superseded when it was sent is not answered with success, unless it only
/// repeats one that was sent before.
pub(super) fn stale(index: &Index<'_>, findings: &mut Findings) {
    for (event_id, event) in &index.events {
        for report in event.reports.iter().filter(|report| report.is_accepted()) {
            let Some((newer, line)) = superseded(event, *report) else { continue };
            let repeats = report.verb != Verb::Extend
                && event.reports.iter().any(|first| {
                    first.repeats(report)
                        && first.invoked_at < report.invoked_at
                        && !first.is_refused()
                        && superseded(event, *first).is_none()
                });
            if !repeats {
                let what = format!(
                    "a report on attempt {} of {event_id} counted after attempt {newer} had begun",
                    report.attempt
                );
                findings.add(Rule::Stale, what, &[report.line, line]);
            }
        }
    }
}

/// A newer attempt that was seen, or by the server's record had begun, before `report` was sent; with the line that shows it.
fn superseded(event: &Event<'_>, report: Line<'_, Report>) -> Option<(u64, usize)> {
    let sent_at = report.invoked_at;
    let is_before = |leased_at: ServerAt| leased_at.plus_ms(CLOCKS_APART_MS) < sent_at.to_ms();
    let handed = event.handed.iter().filter(|handed| handed.answered_at < sent_at);
    let handed = handed.map(|handed| (handed.attempt, handed.line));
    let recorded = event.last.iter().flat_map(|job| {
        let line = job.line;
        let begun = job.attempts.iter().filter(|attempt| is_before(attempt.leased_at));
        begun.map(|attempt| (attempt.attempt, line)).collect::<Vec<_>>()
    });
    handed.chain(recorded).find(|(attempt, _)| *attempt > report.attempt)
}

/// Row B3: the same report gets the same answer; an extension is a new wish each time.
pub(super) fn repeat(index: &Index<'_>, findings: &mut Findings) {
    for (event_id, event) in &index.events {
        let told: Vec<_> = event
            .reports
            .iter()
            .filter(|report| report.is_accepted() && report.verb != Verb::Extend)
            .collect();
        for (at, first) in told.iter().enumerate() {
            let said =
                |report: &Report| report.answer.as_ref().map(|answer| (answer.state.clone(), answer.due_at));
            let other =
                told[at + 1..].iter().find(|other| other.repeats(first) && said(other) != said(first));
            if let Some(other) = other {
                let what = format!("the same report on {event_id} was answered in two ways");
                findings.add(Rule::Repeat, what, &[first.line, other.line]);
            }
            let contrary =
                told[at + 1..].iter().find(|other| other.fence == first.fence && !other.repeats(first));
            if let Some(contrary) = contrary {
                let what =
                    format!("two different reports on attempt {} of {event_id} were accepted", first.attempt);
                findings.add(Rule::Repeat, what, &[first.line, contrary.line]);
            }
        }
    }
}

/// Row B3: a worker that is merely late may still finish: while nobody began anew, and it had not reported, its report counts.
///
/// Another worker's commit that was heard settles the job before it. To extend a lease that is over, or to give it back, is not to finish.
pub(super) fn refused(index: &Index<'_>, findings: &mut Findings) {
    for (event_id, event) in &index.events {
        let conflicts = event.reports.iter().filter(|report| {
            matches!(report.verb, Verb::Ack | Verb::Reject)
                && report.answer.as_ref().is_some_and(|answer| answer.status == 409)
        });
        for report in conflicts {
            let Some(answer) = &report.answer else { continue };
            let reported = event.reports_of(report.attempt).any(|other| {
                other.line != report.line
                    && other.verb != Verb::Extend
                    && other.invoked_at < answer.answered_at
            });
            let heard = event.last.iter().any(|job| is_heard(event, job));
            if !reported && !heard && !may_be_superseded(event, report, answer.answered_at) {
                let what = format!(
                    "the report of the holder of attempt {} of {event_id} was refused",
                    report.attempt
                );
                let holder = event.handed.iter().filter(|handed| handed.attempt == report.attempt);
                let lines: Vec<_> = holder.map(|handed| handed.line).chain([report.line]).collect();
                findings.add(Rule::Refused, what, &lines);
            }
        }
    }
}

fn may_be_superseded(event: &Event<'_>, report: &Report, by: HarnessAt) -> bool {
    let by_ms = by.to_ms().plus_ms(CLOCKS_APART_MS);
    event.last.is_empty()
        || event.handed.iter().all(|handed| handed.attempt != report.attempt)
        || event.handed.iter().any(|handed| handed.attempt > report.attempt && handed.leased_at <= by_ms)
        || event.last.iter().any(|job| {
            job.attempts.iter().any(|attempt| attempt.attempt > report.attempt && attempt.leased_at <= by_ms)
        })
}

/// Row B3: what a reporter was told is settled, or the API showed as settled, is never given out again and ends so.
///
/// Row B9: but a dead letter of which a commit was heard is committed; its effect has happened.
pub(super) fn settled(index: &Index<'_>, findings: &mut Findings) {
    for (event_id, event) in &index.events {
        // One that had been superseded is `stale`'s to find.
        let held = event.reports.iter().filter(|report| superseded(event, **report).is_none());
        let told = held.filter(|report| report.is_accepted()).filter_map(|report| {
            let state = report.answer.as_ref()?.state.as_deref()?;
            Some((state, report.attempt, report.line))
        });
        let shown = event.shown.iter().map(|job| {
            (job.state.as_str(), job.attempts.last().map_or(0, |attempt| attempt.attempt), job.line)
        });
        for (state, attempt, line) in told.chain(shown).filter(|(state, ..)| is_settled(state)) {
            if let Some((later, other)) = event.later_attempts(attempt).next() {
                let what =
                    format!("{event_id} was {state} with attempt {attempt}, and attempt {later} followed");
                findings.add(Rule::Settled, what, &[line, other]);
            }
            let owned_up = |job: &ShownJob| state == "dead_lettered" && is_heard(event, job);
            if let Some(job) = event.last.iter().find(|job| job.state != state && !owned_up(job)) {
                let what = format!("{event_id} was {state} and is {}", job.state);
                findings.add(Rule::Settled, what, &[line, job.line]);
            }
        }
    }
}
