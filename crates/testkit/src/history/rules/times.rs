//! Nothing starts before it is due.

use super::reports::CLOCKS_APART_MS;
use crate::history::{
    checker::Findings,
    index::{Event, Index},
    kinds::Rule,
    record::ServerAt,
};

/// Row B1, and B5 for what follows a failure.
pub(super) fn early(index: &Index<'_>, findings: &mut Findings) {
    for (event_id, event) in &index.events {
        let mut note = |found: Option<(String, Vec<usize>)>| {
            if let Some((what, lines)) = found {
                findings.add(Rule::Early, format!("{event_id}: {what}"), &lines);
            }
        };
        let asked = index.parts_of(event_id).and_then(|(key, _)| key.not_before());
        note(asked.and_then(|asked| before_asked(event, asked)));
        note(before_due(event));
        note(before_retry(event));
        note(before_retry_after(event));
    }
}

/// Before the time that the publisher asked for, by the harness's clock.
fn before_asked(event: &Event<'_>, asked: ServerAt) -> Option<(String, Vec<usize>)> {
    let handed = event.handed.iter().map(|handed| (handed.answered_at.to_ms(), handed.line));
    let sent = event.deliveries.iter().map(|sent| (sent.arrived_at.to_ms(), sent.line));
    let (at, line) = handed.chain(sent).find(|(at, _)| at.plus_ms(CLOCKS_APART_MS) < asked)?;
    Some((format!("started {} ms before the time asked for", asked.0 - at.0), vec![line]))
}

/// Before its own due time, all by the server's clock.
fn before_due(event: &Event<'_>) -> Option<(String, Vec<usize>)> {
    let handed = event.handed.iter().map(|one| (one.scheduled_at, one.due_at, one.leased_at, one.line));
    let recorded = event.last.iter().flat_map(|job| {
        let line = job.line;
        let scheduled_at = job.scheduled_at;
        let attempts = job.attempts.iter();
        attempts.map(|one| (scheduled_at, one.due_at, one.leased_at, line)).collect::<Vec<_>>()
    });
    let is_early = |(scheduled_at, due_at, leased_at, _): &(ServerAt, ServerAt, ServerAt, usize)| {
        leased_at < due_at || due_at < scheduled_at
    };
    let (.., line) = handed.chain(recorded).find(is_early)?;
    Some(("leased before it was due".to_owned(), vec![line]))
}

/// Before the time that followed from the attempt before: as its reporter was told, and as it is recorded.
fn before_retry(event: &Event<'_>) -> Option<(String, Vec<usize>)> {
    let told = event
        .reports
        .iter()
        .filter_map(|report| Some((report.attempt, report.answer.as_ref()?.due_at?, report.line)));
    for (attempt, due_at, line) in told {
        let next = event.handed.iter().find(|next| next.attempt == attempt + 1 && next.leased_at < due_at);
        if let Some(next) = next {
            return Some((
                format!("attempt {} began before the time told", next.attempt),
                vec![line, next.line],
            ));
        }
    }
    for job in &event.last {
        let early =
            job.attempts.windows(2).find(|pair| pair[0].next_at.is_some_and(|next| pair[1].leased_at < next));
        if let Some(pair) = early {
            return Some((
                format!("attempt {} began before the time recorded", pair[1].attempt),
                vec![job.line],
            ));
        }
    }
    None
}

/// Before a receiver's `Retry-After`, where the server is known to have read the answer.
fn before_retry_after(event: &Event<'_>) -> Option<(String, Vec<usize>)> {
    for sent in &event.deliveries {
        let Some(wait_ms) = sent.response.retry_after_ms else { continue };
        if event.attempt(sent.attempt).is_none_or(|attempt| attempt.status != sent.response.status) {
            continue;
        }
        // The server counts from when it read the answer, which is not before its first byte left.
        let earliest = sent.arrived_at.to_ms().plus_ms(wait_ms);
        let next = event.deliveries.iter().find(|next| {
            next.attempt > sent.attempt && next.arrived_at.to_ms().plus_ms(CLOCKS_APART_MS) < earliest
        });
        if let Some(next) = next {
            return Some((
                format!("attempt {} came before the receiver's Retry-After", next.attempt),
                vec![sent.line, next.line],
            ));
        }
    }
    None
}
