//! What befell the lanes of a key's jobs, where it concerns those jobs. Rows B10, F1.
//!
//! Pauses stand with their lane, once, however many jobs they hold; a timeline puts them where its jobs met them.

use posthaste_core::{DestinationId, LaneId, TenantId, Timestamp};
use posthaste_store::{JobView, LaneEvent, LaneEventKind, MessageView, Stage};
use serde_json::json;

use crate::{
    Engine, EngineError, TimelineEntry,
    timeline::{blank, detail},
};

/// Jobs of one timeline whose lanes are looked at.
const JOBS_MAX: usize = 50;

impl Engine {
    /// Adds what held the jobs, in order.
    pub(crate) async fn add_lane_entries(
        &self,
        tenant: TenantId,
        message: &MessageView,
        jobs: &[JobView],
        entries: &mut Vec<TimelineEntry>,
    ) -> Result<(), EngineError> {
        let jobs = &jobs[..jobs.len().min(JOBS_MAX)];
        let source = message.source.as_ref().and_then(|id| {
            let directory = self.directory.load();
            Some((directory.find(tenant, id)?.row.lane, id.clone()))
        });
        let mut lanes: Vec<Option<LaneId>> = jobs.iter().map(|view| Some(view.job.lane)).collect();
        lanes.extend([None]);
        lanes.extend(source.as_ref().map(|(lane, _)| Some(*lane)));
        let events = self.store.lane_events(tenant, lanes).await?;
        if events.is_empty() {
            return Ok(());
        }
        for view in jobs {
            of_job(view, &events, entries);
        }
        if let Some((lane, id)) = source {
            of_source(message, lane, &id, &events, entries);
        }
        entries.sort_by_key(|entry| entry.at);
        Ok(())
    }
}

/// From when to when a lane's events concern something.
#[derive(Clone, Copy)]
struct Span {
    from: Timestamp,
    to: Timestamp,
}

/// What held a job: its lane while it lived, its tenant's scheduling until it began.
fn of_job(view: &JobView, events: &[LaneEvent], entries: &mut Vec<TimelineEntry>) {
    let job = &view.job;
    let from = job.created_at;
    let end = job.state.settled_at().unwrap_or(Timestamp(i64::MAX));
    let entry = |event: &LaneEvent, at: Timestamp, scope: &str| TimelineEntry {
        event_id: Some(format!("{}:{}", view.key, view.destination).into()),
        job: Some(job.id),
        destination: Some(view.destination.clone()),
        ..entry_of(event, at, scope)
    };
    let scope = if job.kind == posthaste_core::Kind::Pull { "queue" } else { "endpoint" };
    let of_lane = concerning(events, Some(job.lane), Span { from, to: end });
    entries.extend(of_lane.into_iter().map(|(event, at)| entry(event, at, scope)));
    let begun = job.started_at.unwrap_or(end);
    let of_scheduling = concerning(events, None, Span { from, to: begun });
    entries.extend(of_scheduling.into_iter().map(|(event, at)| entry(event, at, "scheduling")));
}

/// What kept a message from having jobs: its source was paused when it came, and went on.
fn of_source(
    message: &MessageView,
    lane: LaneId,
    source: &DestinationId,
    events: &[LaneEvent],
    entries: &mut Vec<TimelineEntry>,
) {
    let at = message.accepted_at;
    let span = Span { from: at, to: Timestamp(i64::MAX) };
    let met = concerning(events, Some(lane), span);
    // Pauses that came later don't concern it.
    if met.first().is_none_or(|(event, met_at)| event.what.ends().is_some() || *met_at > at) {
        return;
    }
    let first_two = met.into_iter().take(2);
    entries.extend(first_two.map(|(event, at)| TimelineEntry {
        destination: Some(source.clone()),
        ..entry_of(event, at, "source")
    }));
}

/// The events of a lane within `span`, and before them what was in force when it began, as of then.
fn concerning(events: &[LaneEvent], lane: Option<LaneId>, span: Span) -> Vec<(&LaneEvent, Timestamp)> {
    let mut in_force: Vec<&LaneEvent> = Vec::new();
    let mut within = Vec::new();
    for event in events.iter().filter(|event| event.lane == lane) {
        if event.at > span.to {
            break;
        }
        if event.at >= span.from {
            within.push((event, event.at));
            continue;
        }
        match event.what.ends() {
            Some(ended) => in_force.retain(|held| held.what != ended),
            None => in_force.push(event),
        }
    }
    in_force.into_iter().map(|event| (event, span.from)).chain(within).collect()
}

fn entry_of(event: &LaneEvent, at: Timestamp, scope: &str) -> TimelineEntry {
    let stage = if event.what.ends().is_some() { Stage::Resumed } else { Stage::Paused };
    let what = match event.what {
        LaneEventKind::Paused | LaneEventKind::Resumed => None,
        LaneEventKind::Disabled | LaneEventKind::Enabled => Some("disabled"),
        LaneEventKind::Opened | LaneEventKind::Closed => Some("circuit"),
    };
    TimelineEntry {
        actor: Some(event.actor.clone()),
        detail: detail(json!({
            "scope": scope,
            "what": what,
            "reason": event.reason,
            "since_ms": (at != event.at).then_some(event.at.0),
        })),
        ..blank(at, stage)
    }
}
