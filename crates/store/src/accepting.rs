//! Accepting a message, the same for every store: what is kept of its names and targets, and what a duplicate leaves.

use posthaste_core::{
    Cause, DestinationId, DurationMs, Job, JobId, Kind, LaneId, MessageId, MessageKey, NewJob, Share,
    TenantId, Timestamp, limits,
};

use crate::{CustodyEntry, Due, JobBrief, KeyKind, NewMessage, Stage, Target};

/// How long after its acceptance a message's fan-out counts as fresh work.
pub(crate) const FANOUT_FRESH_FOR: DurationMs = DurationMs::from_mins(10);

/// Every name of `message` once, the business key first.
pub(crate) fn names(message: &NewMessage) -> Vec<(KeyKind, &MessageKey)> {
    let business = std::iter::once((KeyKind::Key, &message.key));
    let all = business.chain(message.aliases.iter().map(|(kind, key)| (*kind, key)));
    let mut names: Vec<(KeyKind, &MessageKey)> = Vec::with_capacity(1 + message.aliases.len());
    for (kind, key) in all {
        if !names.iter().any(|(_, known)| *known == key) {
            names.push((kind, key));
        }
    }
    names
}

/// The names that a duplicate adds to a message that has `others` names beside its business key: `free` are those
/// of the duplicate's [`names`] that nobody has.
pub(crate) fn names_to_add<'a>(
    free: impl IntoIterator<Item = (KeyKind, &'a MessageKey)>,
    others: usize,
) -> Vec<(KeyKind, &'a MessageKey)> {
    let room = limits::ALIASES_MAX.saturating_sub(others);
    let kind_of = |kind| if kind == KeyKind::Key { KeyKind::Alias } else { kind };
    free.into_iter().take(room).map(|(kind, key)| (kind_of(kind), key)).collect()
}

/// The targets that are owed a job: one a lane, the first.
pub(crate) fn distinct(targets: Vec<Target>) -> Vec<Target> {
    let mut lanes = std::collections::HashSet::with_capacity(targets.len());
    targets.into_iter().filter(|target| lanes.insert(target.lane)).collect()
}

/// When jobs that are accepted at `now` are due; never before.
pub(crate) fn due_at(due: Due, now: Timestamp) -> Timestamp {
    match due {
        Due::In(delay) => now.after(delay),
        Due::At(at) => at.max(now),
        Due::Never(_) => now,
    }
}

/// Why the jobs of a message are dead letters from the start, if they are.
pub(crate) fn quarantine(due: Due) -> Option<Cause> {
    match due {
        Due::Never(cause) => Some(cause),
        Due::In(_) | Due::At(_) => None,
    }
}

/// The share of a job that a fan-out makes at `now`.
pub(crate) fn fan_out_share(accepted_at: Timestamp, now: Timestamp) -> Share {
    if now.since(accepted_at) < FANOUT_FRESH_FOR { Share::Fresh } else { Share::Bulk }
}

/// What a new job of `message` is made of, beside its target.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Birth {
    pub(crate) tenant: TenantId,
    pub(crate) message: MessageId,
    pub(crate) due_at: Timestamp,
    pub(crate) now: Timestamp,
    pub(crate) share: Share,
    /// Dead-lettered from the start, for this reason.
    pub(crate) quarantine: Option<Cause>,
}

/// The job that `birth` owes to the target `(lane, kind)`.
pub(crate) fn job_of(birth: Birth, lane: LaneId, kind: Kind, lane_held_ms: u64) -> Job {
    let new = NewJob {
        id: JobId::of(birth.message, lane),
        tenant: birth.tenant,
        kind,
        due_at: birth.due_at,
        created_at: birth.now,
        share: birth.share,
        lane_held_ms,
    };
    match birth.quarantine {
        Some(cause) => Job::quarantined(new, cause),
        None => Job::new(new),
    }
}

/// What a duplicate leaves in custody: by which name it came, and which request brought it.
pub(crate) fn duplicate_entry(
    duplicate: &NewMessage,
    found: MessageId,
    by: (KeyKind, &MessageKey),
    now: Timestamp,
) -> CustodyEntry {
    let (kind, key) = by;
    let detail = serde_json::json!({
        "correlation_id": duplicate.correlation_id,
        "source": duplicate.source.as_ref().map(DestinationId::as_str),
        "name": key.as_str(),
        "kind": kind.as_str(),
    });
    CustodyEntry {
        tenant: duplicate.tenant,
        message: found,
        job: None,
        at: now,
        stage: Stage::Duplicate,
        attempt: None,
        actor: None,
        detail: Some(detail.to_string().into()),
    }
}

/// `job` in one line.
pub(crate) fn brief(job: &Job, destination: DestinationId) -> JobBrief {
    JobBrief {
        id: job.id,
        destination,
        state: job.state.name(),
        scheduled_at: job.scheduled_at,
        due_at: job.state.due_at(),
    }
}
