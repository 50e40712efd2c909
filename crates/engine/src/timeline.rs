//! The timeline of one key: every arrow of custody, in order. Rows F1, F2.

use posthaste_core::{
    Attempt, AttemptOutcome, AttemptRecord, Class, DestinationId, Effect, EffectSpan, Job, JobId, Kind,
    MessageKey, Path, State, StateName, TenantId, Timestamp, limits,
};
use posthaste_store::{AttemptView, CustodyEntry, JobView, MessageName, MessageView, Stage};
use serde_json::{Map, Value, json};

use crate::{Engine, EngineError, quarantine::quarantine_of};

/// What happened to one key.
#[derive(Clone, Debug)]
pub struct Timeline {
    /// The message.
    pub message: MessageView,
    /// One sentence: deliveries, effects, where it stands.
    pub summary: String,
    /// Its jobs with their attempts.
    pub jobs: Vec<JobView>,
    /// How many effects each of them may have had, in the same order.
    pub effects: Vec<EffectSpan>,
    /// Every step, oldest first.
    pub entries: Vec<TimelineEntry>,
}

/// One step.
#[derive(Clone, Debug)]
pub struct TimelineEntry {
    /// When.
    pub at: Timestamp,
    /// What.
    pub stage: Stage,
    /// Of which event id.
    pub event_id: Option<Box<str>>,
    /// Of which job.
    pub job: Option<JobId>,
    /// Of which attempt.
    pub attempt: Option<Attempt>,
    /// The named path.
    pub path: Option<Path>,
    /// How the attempt ended.
    pub outcome: Option<AttemptOutcome>,
    /// Why it failed.
    pub class: Option<Class>,
    /// What is known about the effect.
    pub effect: Option<Effect>,
    /// Who.
    pub actor: Option<Box<str>>,
    /// Where to.
    pub destination: Option<DestinationId>,
    /// When the next attempt may start.
    pub next_at: Option<Timestamp>,
    /// More.
    pub detail: Map<String, Value>,
}

impl Engine {
    /// The timeline of a key, or of any other name of its message; of one destination, if asked.
    pub async fn timeline(
        &self,
        tenant: TenantId,
        key: &MessageKey,
        destination: Option<&DestinationId>,
    ) -> Result<Option<Timeline>, EngineError> {
        let Some(message) = self.store.message(tenant, MessageName::Key(key.clone())).await? else {
            return self.archived_timeline(tenant, key, destination).await;
        };
        let mut jobs = self.store.message_jobs(tenant, message.id, limits::PAGE_MAX).await?;
        if let Some(destination) = destination {
            jobs.retain(|view| view.destination == *destination);
        }
        let custody = self.store.custody(tenant, message.id).await?;
        let mut effects = Vec::with_capacity(jobs.len());
        for view in &jobs {
            effects.push(self.effects_of(tenant, view).await?);
        }
        let mut entries = entries(&message, &jobs, &custody);
        self.add_lane_entries(tenant, &message, &jobs, &mut entries).await?;
        let summary = summary(&message, &jobs, &effects);
        Ok(Some(Timeline { message, summary, jobs, effects, entries }))
    }
}

/// All steps in order. Steps of one instant keep the order in which custody passes.
pub(crate) fn entries(
    message: &MessageView,
    jobs: &[JobView],
    custody: &[CustodyEntry],
) -> Vec<TimelineEntry> {
    let mut entries = vec![TimelineEntry {
        detail: detail(json!({
            "message_id": message.id.to_string(),
            "source": message.source.as_ref().map(DestinationId::as_str),
            "payload_bytes": message.payload_bytes,
        })),
        path: Some(Path::FirstRun),
        ..blank(message.accepted_at, Stage::Accepted)
    }];
    let quarantine = quarantine_of(message);
    for view in jobs {
        job_entries(view, quarantine.as_ref(), &mut entries);
    }
    let of_listed =
        |entry: &&CustodyEntry| entry.job.is_none_or(|job| jobs.iter().any(|view| view.job.id == job));
    entries.extend(custody.iter().filter(of_listed).map(|entry| custody_entry(entry, jobs)));
    entries.sort_by_key(|entry| entry.at);
    entries
}

fn job_entries(view: &JobView, quarantine: Option<&Map<String, Value>>, entries: &mut Vec<TimelineEntry>) {
    let job = &view.job;
    let step = |at, stage| TimelineEntry {
        event_id: Some(format!("{}:{}", view.key, view.destination).into()),
        job: Some(job.id),
        destination: Some(view.destination.clone()),
        ..blank(at, stage)
    };
    entries.extend(birth_entries(job, quarantine, &step));
    for attempt in &view.attempts {
        attempt_entries(attempt, &step, entries);
        let end = &attempt.end;
        // The state tells of the last time alone; replays came between.
        if end.state == StateName::DeadLettered && job.state.settled_at() != Some(end.finished_at) {
            entries.push(TimelineEntry {
                attempt: Some(end.attempt),
                detail: detail(json!({ "policy": end.policy })),
                ..step(end.finished_at, Stage::DeadLettered)
            });
        }
    }
    match &job.state {
        State::Leased(lease) => {
            let leased = |at, stage| TimelineEntry {
                attempt: job.attempt,
                path: Some(if job.failed_before { Path::RetryAfterFailure } else { Path::FirstRun }),
                actor: Some(lease.worker.clone()),
                ..step(at, stage)
            };
            entries.push(TimelineEntry {
                detail: detail(json!({ "lease_expires_at_ms": lease.expires_at.0 })),
                ..leased(lease.leased_at, Stage::Leased)
            });
            if let Some(started_at) = lease.started_at.filter(|_| job.kind == Kind::Push) {
                entries.push(leased(started_at, Stage::Sent));
            }
        }
        State::DeadLettered { at, cause } => entries.push(TimelineEntry {
            attempt: job.attempt,
            detail: detail(json!({ "cause": cause.as_str(), "owner": view.owner, "reason": job.reason })),
            ..step(*at, Stage::DeadLettered)
        }),
        State::Scheduled { .. }
        | State::Retryable { .. }
        | State::Committed { .. }
        | State::Cancelled { .. } => {}
    }
}

/// How a job came to be: scheduled and published, or quarantined.
fn birth_entries(
    job: &Job,
    quarantine: Option<&Map<String, Value>>,
    step: &impl Fn(Timestamp, Stage) -> TimelineEntry,
) -> Vec<TimelineEntry> {
    if let Some(found) = quarantine {
        return vec![TimelineEntry { detail: found.clone(), ..step(job.created_at, Stage::Quarantined) }];
    }
    vec![
        TimelineEntry {
            next_at: Some(job.scheduled_at),
            detail: detail(json!({ "job_id": job.id.to_string() })),
            ..step(job.created_at, Stage::Scheduled)
        },
        // The built-in queue publishes in the transaction that schedules.
        TimelineEntry {
            detail: detail(json!({ "queue": "built-in" })),
            ..step(job.created_at, Stage::Published)
        },
    ]
}

fn attempt_entries(
    view: &AttemptView,
    step: &impl Fn(Timestamp, Stage) -> TimelineEntry,
    entries: &mut Vec<TimelineEntry>,
) {
    let end = &view.end;
    let part = |at, stage| TimelineEntry {
        attempt: Some(end.attempt),
        path: Some(end.path),
        actor: Some(end.worker.clone()),
        ..step(at, stage)
    };
    entries.push(part(end.leased_at, Stage::Leased));
    if let Some(started_at) = end.started_at.filter(|_| end.kind == Kind::Push) {
        entries.push(part(started_at, Stage::Sent));
    }
    if end.kind == Kind::Push && end.details.status.is_some() {
        entries.push(TimelineEntry {
            detail: detail(
                json!({ "status": end.details.status, "duration_ms": end.details.duration.map(|d| d.0) }),
            ),
            ..part(end.finished_at, Stage::Responded)
        });
    }
    let ended = |stage| TimelineEntry {
        outcome: Some(end.report.outcome),
        class: end.report.class,
        effect: Some(end.report.effect),
        next_at: end.next_at,
        detail: detail(json!({
            "policy": end.policy,
            "status": end.details.status,
            "code": end.details.code,
            "message": end.details.message,
            "duration_ms": end.details.duration.map(|d| d.0),
        })),
        ..part(end.finished_at, stage)
    };
    match end.report.outcome {
        AttemptOutcome::Committed | AttemptOutcome::Duplicate => {
            entries.push(ended(Stage::Committed));
            entries.push(part(end.finished_at, Stage::Acknowledged));
        }
        AttemptOutcome::Cancelled => entries.push(ended(Stage::Cancelled)),
        AttemptOutcome::Failed => entries.push(ended(Stage::Failed)),
        AttemptOutcome::Released => entries.push(ended(Stage::Released)),
        AttemptOutcome::LeaseLost => entries.push(ended(Stage::LeaseLost)),
    }
    if end.state == StateName::Retryable {
        entries.push(TimelineEntry { next_at: end.next_at, ..part(end.finished_at, Stage::RetryScheduled) });
    }
}

fn custody_entry(entry: &CustodyEntry, jobs: &[JobView]) -> TimelineEntry {
    let view = entry.job.and_then(|job| jobs.iter().find(|view| view.job.id == job));
    let path = (entry.stage == Stage::Duplicate).then_some(Path::DuplicateDone);
    let parsed = entry.detail.as_deref().and_then(|text| serde_json::from_str(text).ok());
    TimelineEntry {
        event_id: view.map(|view| format!("{}:{}", view.key, view.destination).into()),
        job: entry.job,
        attempt: entry.attempt,
        path,
        actor: entry.actor.clone(),
        destination: view.map(|view| view.destination.clone()),
        detail: parsed.unwrap_or_default(),
        ..blank(entry.at, entry.stage)
    }
}

pub(crate) fn blank(at: Timestamp, stage: Stage) -> TimelineEntry {
    TimelineEntry {
        at,
        stage,
        event_id: None,
        job: None,
        attempt: None,
        path: None,
        outcome: None,
        class: None,
        effect: None,
        actor: None,
        destination: None,
        next_at: None,
        detail: Map::new(),
    }
}

/// An object without its nulls.
pub(crate) fn detail(value: Value) -> Map<String, Value> {
    match value {
        Value::Object(fields) => fields.into_iter().filter(|(_, value)| !value.is_null()).collect(),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) | Value::Array(_) => Map::new(),
    }
}

/// How many effects a job may have had, from its attempts.
pub(crate) fn effects(view: &JobView) -> EffectSpan {
    let record = |attempt: &AttemptView| {
        AttemptRecord::of(&attempt.end, attempt.late.as_ref(), attempt.commit_heard_at)
    };
    let records: Vec<AttemptRecord> = view.attempts.iter().map(record).collect();
    let ended = EffectSpan::of_attempts(&records);
    // A started attempt that is still running may have acted.
    let runs = matches!(&view.job.state, State::Leased(lease) if lease.started_at.is_some());
    EffectSpan {
        effect: if runs { ended.effect.max(Effect::Possible) } else { ended.effect },
        lo: ended.lo,
        hi: ended.hi + u32::from(runs),
    }
}

/// One sentence. It claims no more than the rows say: without a ledger's word an answer is "accepted", not an
/// effect.
pub(crate) fn summary(message: &MessageView, jobs: &[JobView], effects: &[EffectSpan]) -> String {
    let deliveries = message.duplicates + 1;
    let came = match deliveries {
        1 => "came once".to_owned(),
        2 => "came twice, claimed once".to_owned(),
        many => format!("came {many} times, claimed once"),
    };
    if message.jobs_total == 0 {
        return format!("{came}; no destination wanted it (unrouted)");
    }
    if let (Some(found), Some(view)) = (quarantine_of(message), jobs.first()) {
        let became = match view.job.state.name() {
            StateName::Committed => "quarantined, then replayed: it went on as another message",
            StateName::Cancelled => "quarantined, then discarded",
            StateName::DeadLettered | StateName::Scheduled | StateName::Leased | StateName::Retryable => {
                "quarantined, not executed"
            }
        };
        let problem = found.get("problem").and_then(Value::as_str).unwrap_or_default();
        return format!("{came}; {}: {became}; {problem}", view.destination);
    }
    let said: Vec<String> = jobs.iter().zip(effects).take(5).map(job_sentence).collect();
    let more = message.jobs_total.saturating_sub(said.len());
    let rest = if more > 0 { format!("; and {more} more") } else { String::new() };
    format!("{came}; {}{rest}", said.join("; "))
}

fn job_sentence((view, span): (&JobView, &EffectSpan)) -> String {
    let attempts = view.job.attempt.map_or(0, Attempt::get);
    let tried = match attempts {
        0 => "not tried yet".to_owned(),
        1 => "1 attempt".to_owned(),
        many => format!("{many} attempts"),
    };
    let acted = match (span.effect, span.lo, span.hi) {
        (Effect::None, ..) => "no attempt can have acted".to_owned(),
        (Effect::Confirmed, _, 1) => "1 effect by the receiver's ledger".to_owned(),
        (Effect::Confirmed, lo, hi) => {
            format!("{lo} effect by the receiver's ledger, {hi} attempts may have acted")
        }
        (_, lo, hi) if lo == hi => format!("{lo} attempt reported done"),
        (_, lo, hi) => format!("{lo} to {hi} attempts may have acted"),
    };
    format!("{}: {}, {tried}, {acted}", view.destination, view.job.state.name())
}
