//! Rules about messages: kept, whole, once.

use std::collections::BTreeSet;

use crate::history::{
    checker::Findings,
    index::{Index, Key, is_settled},
    kinds::Rule,
};

/// Row A4: what was acknowledged is there, with each of its jobs.
pub(super) fn lost(index: &Index<'_>, findings: &mut Findings) {
    for (name, key) in &index.keys {
        let Some(first) = key.acknowledged().next() else { continue };
        let mut lose = |what: String, line: usize| findings.add(Rule::Lost, what, &[first.line, line]);
        for message in key.last.iter().filter(|message| message.message_id.is_none()) {
            lose(format!("{name} was acknowledged and is gone"), message.line);
        }
        if key.last.is_empty() {
            lose(format!("{name} was acknowledged and nobody looked for it at the end"), first.line);
        }
        let wanted: BTreeSet<_> = first.destinations.iter().collect();
        for destination in &wanted {
            let event_id = format!("{name}:{destination}");
            if index.events.get(event_id.as_str()).is_none_or(|event| event.last.is_empty()) {
                lose(format!("the job {event_id} was acknowledged and is gone"), first.line);
            }
        }
        for message in key.last.iter().filter(|message| message.message_id.is_some()) {
            if message.jobs_total != wanted.len() as u64 {
                lose(
                    format!("{name} has {} jobs and owes {}", message.jobs_total, wanted.len()),
                    message.line,
                );
            }
        }
    }
    for event in index.events.values().filter(|event| !event.last.is_empty()) {
        let unknown = event.reports.iter().filter(|report| {
            report.answer.as_ref().is_some_and(|answer| answer.status == 404)
                && event.handed.iter().any(|handed| handed.job == report.job)
        });
        for report in unknown {
            findings.add(
                Rule::Lost,
                format!("the job {} was handed out and then not known", report.job),
                &[report.line],
            );
        }
    }
}

/// Row B15: what was acknowledged is done when nothing more happens.
pub(super) fn unfinished(index: &Index<'_>, findings: &mut Findings) {
    if !index.quiescence {
        return;
    }
    for (name, key) in &index.keys {
        let running =
            key.last.iter().filter(|message| message.message_id.is_some() && message.fanout != "done");
        for message in running {
            findings.add(Rule::Unfinished, format!("the fan-out of {name} never ended"), &[message.line]);
        }
    }
    for (event_id, event) in &index.events {
        for job in event.last.iter().filter(|job| !is_settled(&job.state)) {
            findings.add(Rule::Unfinished, format!("{event_id} stayed {}", job.state), &[job.line]);
        }
    }
}

/// Row B13: there is nothing that nobody published for this destination.
pub(super) fn ghost(index: &Index<'_>, findings: &mut Findings) {
    let wanted = |key: &Key<'_>, destination: &str| {
        key.possible().any(|publish| publish.destinations.iter().any(|known| known == destination))
    };
    for (event_id, event) in &index.events {
        let parts = index.parts_of(event_id);
        if parts.is_some_and(|(key, destination)| wanted(key, destination)) {
            continue;
        }
        let lines: Vec<_> = event
            .handed
            .iter()
            .map(|handed| handed.line)
            .chain(event.deliveries.iter().map(|delivery| delivery.line))
            .chain(event.last.iter().chain(&event.shown).map(|job| job.line))
            .collect();
        findings.add(Rule::Ghost, format!("nobody published {event_id}"), &lines);
    }
}

/// Row B11: the bytes that arrive are the bytes that were published.
pub(super) fn payload(index: &Index<'_>, findings: &mut Findings) {
    for (event_id, event) in &index.events {
        let Some((key, _)) = index.parts_of(event_id) else { continue };
        let handed = event.handed.iter().map(|handed| (&handed.body_hash, handed.line));
        let sent = event.deliveries.iter().map(|sent| (&sent.body_hash, sent.line));
        for (hash, line) in handed.chain(sent) {
            if !key.publishes.is_empty() && !key.possible().any(|publish| publish.body_hash == *hash) {
                let lines: Vec<_> = key.publishes.iter().map(|publish| publish.line).chain([line]).collect();
                findings.add(Rule::Payload, format!("{event_id} came with other bytes"), &lines);
            }
        }
    }
}

/// Row A5: one key is one message, new once, with one job for each destination.
pub(super) fn one_message(index: &Index<'_>, findings: &mut Findings) {
    for (name, key) in &index.keys {
        one_id(name, key, findings);
        new_once(name, key, findings);
    }
    for (event_id, event) in &index.events {
        let listed = index.parts_of(event_id).map(|(key, _)| key).into_iter().flat_map(|key| {
            key.acknowledged().flat_map(|publish| {
                let answer = publish.answer.as_ref();
                let jobs = answer.into_iter().flat_map(|answer| &answer.jobs);
                let mine = jobs.filter(|job| job.event_id == *event_id);
                mine.map(|job| (job.job.clone(), publish.line)).collect::<Vec<_>>()
            })
        });
        let handed = event.handed.iter().map(|handed| (handed.job.clone(), handed.line));
        let shown = event.last.iter().chain(&event.shown).map(|job| (job.job.clone(), job.line));
        let all: Vec<_> = listed.chain(handed).chain(shown).collect();
        if let Some((first, line)) = all.first()
            && let Some((_, other)) = all.iter().find(|(job, _)| job != first)
        {
            findings.add(Rule::OneMessage, format!("{event_id} has two jobs"), &[*line, *other]);
        }
    }
}

fn one_id(name: &str, key: &Key<'_>, findings: &mut Findings) {
    let answered = key.acknowledged().filter_map(|publish| {
        let id = publish.answer.as_ref()?.message_id.clone()?;
        Some((id, publish.line))
    });
    let last = key.last.iter().filter_map(|message| Some((message.message_id.clone()?, message.line)));
    let all: Vec<_> = answered.chain(last).collect();
    let Some((first, line)) = all.first() else { return };
    if let Some((_, other)) = all.iter().find(|(id, _)| id != first) {
        findings.add(Rule::OneMessage, format!("{name} is two messages"), &[*line, *other]);
    }
}

fn new_once(name: &str, key: &Key<'_>, findings: &mut Findings) {
    let answers: Vec<_> = key
        .acknowledged()
        .filter_map(|publish| {
            let answer = publish.answer.as_ref()?;
            Some((
                answer.path.as_deref() == Some("first_run"),
                publish.invoked_at,
                answer.answered_at,
                publish.line,
            ))
        })
        .collect();
    for (at, (is_new, invoked_at, _, line)) in answers.iter().enumerate() {
        let others = answers.iter().enumerate().filter(|(other, _)| *other != at);
        let known = others.map(|(_, other)| other).find(|(other_new, _, answered_at, other_line)| {
            (*other_new && other_line > line) || answered_at < invoked_at
        });
        if let Some((.., other)) = known
            && *is_new
        {
            let what = format!("{name} was new although it had been answered before");
            findings.add(Rule::OneMessage, what, &[*line, *other]);
        }
    }
}

/// Row A10: a key stands for one content; what differs is refused, and what is equal is not.
pub(super) fn key_reused(index: &Index<'_>, findings: &mut Findings) {
    for (name, key) in &index.keys {
        let mut taken = key.acknowledged();
        if let Some(first) = taken.next()
            && let Some(other) =
                taken.find(|other| (&other.body_hash, &other.terms) != (&first.body_hash, &first.terms))
        {
            let what = format!("{name} was taken with two contents");
            findings.add(Rule::KeyReused, what, &[first.line, other.line]);
        }
        let Some(first) = key.publishes.first() else { continue };
        let refused = key.publishes.iter().find(|publish| {
            publish.answer.as_ref().is_some_and(|answer| answer.code.as_deref() == Some("key_reused"))
        });
        let differs = |publish: &&_| {
            let publish: &crate::history::record::Publish = publish;
            (&publish.body_hash, &publish.terms) != (&first.body_hash, &first.terms)
        };
        if let Some(refused) = refused
            && !key.publishes.iter().any(|publish| differs(&&**publish))
        {
            let what = format!("{name} was refused as reused, and nobody used it for anything else");
            findings.add(Rule::KeyReused, what, &[first.line, refused.line]);
        }
    }
}

/// Row A9: 202 says that it is new, 200 that it is known.
pub(super) fn path(index: &Index<'_>, findings: &mut Findings) {
    for key in index.keys.values() {
        for publish in key.acknowledged() {
            let Some(answer) = &publish.answer else { continue };
            if !matches!(
                (answer.status, answer.path.as_deref()),
                (202, Some("first_run")) | (200, Some("duplicate_done"))
            ) {
                let what = format!("{} was answered {} with {:?}", publish.key, answer.status, answer.path);
                findings.add(Rule::Path, what, &[publish.line]);
            }
        }
    }
}
