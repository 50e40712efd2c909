//! `overview`: how much of what, and where.

use std::collections::BTreeMap;

use axum::{extract::State, response::Response};
use http::StatusCode;
use posthaste_core::{LaneId, StateName, TenantId, Timestamp};
use posthaste_engine::{Destination, Directory, Engine, Entry, ScheduleView};
use posthaste_store::{DestinationKind, Node};
use serde::Serialize;
use utoipa::ToSchema;

use super::{AppState, Caller, Problem, json::answer, pauses::HeldJson, problem::ProblemJson, time::Time};

/// How a tenant stands.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct Overview {
    /// The tenant's name.
    pub(crate) tenant: Option<String>,
    /// Now, by the server's clock.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) now: Time,
    /// Jobs in each of the six states.
    pub(crate) jobs: BTreeMap<&'static str, u64>,
    /// When the job that waits longest became due; `null` if none is due.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) oldest_due_at: Option<Time>,
    /// Whether new work is held: since when, why, by whom; `null` if it is not.
    pub(crate) scheduling_paused: Option<SchedulingPause>,
    /// Endpoints, queues and sources.
    pub(crate) destinations: Vec<DestinationLine>,
    /// Schedules.
    pub(crate) schedules: Vec<ScheduleLine>,
    /// The processes that share the store; none if it is one process's alone.
    pub(crate) nodes: Vec<NodeLine>,
}

/// A process on a store that several share.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct NodeLine {
    /// Unique to each start.
    pub(crate) name: Box<str>,
    /// Its version.
    pub(crate) version: Box<str>,
    /// When it was seen first.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) started_at: Time,
    /// When it was seen last.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) seen_at: Time,
    /// How far its machine's clock is ahead of the store's, in milliseconds. Times that count are the store's.
    pub(crate) skew_ms: i64,
}

/// A pause of scheduling.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct SchedulingPause {
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) paused_at: Time,
    /// Why.
    pub(crate) reason: Box<str>,
    /// Who.
    pub(crate) by: Box<str>,
}

/// A destination or source in one line.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DestinationLine {
    /// Its id.
    pub(crate) id: String,
    /// `endpoint`, `queue` or `source`.
    pub(crate) kind: &'static str,
    /// Whether it takes part.
    pub(crate) enabled: bool,
    /// Who answers for it.
    pub(crate) owner: Option<Box<str>>,
    /// `file` or `api`.
    pub(crate) managed_by: &'static str,
    /// When its next job may start, or could have started.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) next_due_at: Option<Time>,
    /// What is wrong with its configuration.
    pub(crate) problem: Option<String>,
    /// What holds it.
    #[serde(flatten)]
    pub(crate) held: HeldJson,
}

/// A schedule in one line.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ScheduleLine {
    /// Its name.
    pub(crate) id: String,
    /// `active`, `paused`, `disabled` or `broken`.
    pub(crate) state: &'static str,
    /// Who answers for it.
    pub(crate) owner: Option<Box<str>>,
    /// When it fires next, unless it is paused, disabled or broken till then.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) next_fire_at: Option<Time>,
    /// Why it can't fire.
    pub(crate) problem: Option<String>,
}

/// Shows how the tenant stands: jobs in each state, what waits longest, destinations.
#[utoipa::path(
    get, path = "/v1/overview", operation_id = "overview", tag = "overview",
    responses(
        (status = 200, description = "The overview", body = Overview),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn get(State(state): State<AppState>, caller: Caller) -> Result<Response, Problem> {
    caller.require_read()?;
    Ok(answer(StatusCode::OK, &Overview::read(&state, caller.tenant).await?))
}

impl Overview {
    /// The overview of one tenant.
    pub(crate) async fn read(state: &AppState, tenant: TenantId) -> Result<Self, Problem> {
        let engine = state.engine();
        let (counts, heads) = (engine.store().counts().await?, engine.store().heads().await?);
        let now = engine.now();
        let mut jobs: BTreeMap<&'static str, u64> =
            StateName::ALL.iter().map(|state| (state.as_str(), 0)).collect();
        for count in counts.iter().filter(|count| count.tenant == tenant) {
            *jobs.entry(count.state.as_str()).or_default() += count.jobs;
        }
        let heads = heads.into_iter().filter(|head| head.tenant == tenant);
        let due: BTreeMap<LaneId, Timestamp> = heads.map(|head| (head.lane, head.due_at)).collect();
        let directory = engine.directory();
        Ok(Self {
            tenant: directory.tenant_name(tenant).map(|name| name.to_string()),
            now: Time(now),
            jobs,
            oldest_due_at: due.values().copied().min().filter(|due_at| *due_at <= now).map(Time),
            nodes: engine.nodes().into_iter().map(node_line).collect(),
            schedules: engine.schedules(tenant).await?.into_iter().map(schedule_line).collect(),
            scheduling_paused: engine.scheduling_pause(tenant).map(|hold| SchedulingPause {
                paused_at: Time(hold.at),
                reason: hold.reason,
                by: hold.by,
            }),
            destinations: lines(engine, &directory, tenant, &due),
        })
    }
}

fn schedule_line(view: ScheduleView) -> ScheduleLine {
    ScheduleLine {
        id: view.row.id.to_string(),
        state: view.state(),
        owner: view.row.owner,
        next_fire_at: view.row.next_fire_at.map(Time),
        problem: view.problem,
    }
}

fn lines(
    engine: &Engine,
    directory: &Directory,
    tenant: TenantId,
    due: &BTreeMap<LaneId, Timestamp>,
) -> Vec<DestinationLine> {
    let kinds = [DestinationKind::Queue, DestinationKind::Endpoint, DestinationKind::Source];
    let entries = kinds.into_iter().flat_map(|kind| directory.list(tenant, kind));
    entries.map(|entry| line(engine, entry, due.get(&entry.row.lane).copied())).collect()
}

fn line(engine: &Engine, entry: &Entry, next_due_at: Option<Timestamp>) -> DestinationLine {
    let row = &entry.row;
    let held = engine.held(entry);
    DestinationLine {
        id: row.id.to_string(),
        kind: row.kind.as_str(),
        enabled: row.enabled && held.disabled.is_none(),
        owner: row.owner.clone(),
        managed_by: row.managed_by.as_str(),
        next_due_at: next_due_at.map(Time),
        problem: match &entry.destination {
            Destination::Broken { problem, .. } => Some(problem.to_string()),
            Destination::Endpoint(_) | Destination::Queue(_) | Destination::Source(_) => None,
        },
        held: HeldJson::of(&held, engine.now()),
    }
}

fn node_line(node: Node) -> NodeLine {
    let Node { name, version, skew_ms, started_at, seen_at } = node;
    NodeLine { name, version, started_at: Time(started_at), seen_at: Time(seen_at), skew_ms }
}
