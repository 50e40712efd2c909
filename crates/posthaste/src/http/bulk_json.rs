//! What a bulk run looks like on the wire: asked for, and as it stands. Rows B8, B9.

use std::collections::BTreeMap;

use posthaste_core::{BulkFilter, Cause, Class, DestinationId, LaneId, RunKind, StateName, TenantId, limits};
use posthaste_engine::EngineError;
use posthaste_store::{BulkRequest, BulkRun, DestinationKind};
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    AppState, Code, Problem,
    publish_request::destination,
    time::{self, Time},
};

/// Which jobs: at least one condition, or `all`. Everything given must fit.
#[derive(Debug, Default, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FilterJson {
    /// Every dead letter of the tenant, or, for a cancel, every job that lives. Excludes the rest.
    all: Option<bool>,
    /// Only of this state: `dead_lettered` for a replay; `scheduled`, `retryable`, `leased` or `dead_lettered` for a
    /// cancel, which is about all that lives unless told.
    #[schema(examples("dead_lettered"))]
    state: Option<String>,
    /// Only of this queue.
    queue: Option<String>,
    /// Only of this endpoint.
    endpoint: Option<String>,
    /// Only of this source: what is quarantined.
    source: Option<String>,
    /// Only dead letters of this cause.
    #[schema(examples("exhausted", "outcome_unknown"))]
    cause: Option<String>,
    /// Only jobs whose last attempt failed with this class.
    #[schema(examples("timeout", "server_error"))]
    class: Option<String>,
    /// Only of messages whose key begins so.
    #[schema(max_length = 256, examples("order:"))]
    key_prefix: Option<String>,
    /// Only of messages of this type.
    #[serde(rename = "type")]
    #[schema(max_length = 128)]
    event_type: Option<String>,
    /// Only jobs made then or later; with an offset.
    #[schema(format = DateTime)]
    created_since: Option<String>,
    /// Only jobs made before then; with an offset.
    #[schema(format = DateTime)]
    created_until: Option<String>,
    /// Only dead letters since then; with an offset.
    #[schema(format = DateTime)]
    dead_lettered_since: Option<String>,
    /// Only dead letters from before then; with an offset.
    #[schema(format = DateTime)]
    dead_lettered_until: Option<String>,
}

/// An order for many jobs.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
#[schema(as = RunRequest)]
pub(crate) struct RunRequest {
    /// Which jobs.
    filter: FilterJson,
    /// Why; shown with every job for ever.
    #[schema(min_length = 1, max_length = 1024)]
    reason: String,
    /// For replays. `not_done`: the asker vouches that no effect has happened, though attempts may have acted.
    #[schema(examples("not_done"))]
    assume: Option<String>,
    /// Jobs a second, `"1/s"` to `"10000/s"`; `"500/s"` unless told.
    #[schema(examples("500/s"))]
    rate: Option<String>,
    /// Only count the jobs that fit; nothing is changed.
    pub(super) dry_run: Option<bool>,
}

/// How many jobs a run would be about.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = DryRun)]
pub(crate) struct DryRunJson {
    /// Always.
    pub(super) dry_run: bool,
    /// Jobs that fit.
    pub(super) matched: u64,
    /// Jobs that were looked at.
    pub(super) examined: u64,
    /// Whether those were all; otherwise `matched` is a part: the count ends after two million.
    pub(super) complete: bool,
}

/// What a run did, job by job.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RunCounts {
    /// Jobs that it looked at.
    examined: u64,
    /// Those that fit; each is counted in one of the next four.
    matched: u64,
    /// Replayed, or called off.
    done: u64,
    /// Running ones whose worker was asked to stop.
    requested: u64,
    /// Settled by what the records show; nothing is sent.
    settled: u64,
    /// Left as they are.
    refused: u64,
    /// The same by the code of the refusal.
    refused_by_code: BTreeMap<String, u64>,
    /// Jobs that came to fit since the run began: not touched.
    skipped: u64,
}

/// A job that a run left as it is.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct RefusedJobJson {
    /// `job_…`
    job: String,
    /// Why.
    #[schema(examples("outcome_unknown"))]
    code: String,
}

/// A run as it stands.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Run)]
pub(crate) struct RunJson {
    /// `run_…`
    id: String,
    /// `replay` or `cancel`.
    kind: &'static str,
    /// `running`, `paused`, `stopped`, `done` or `failed`.
    state: &'static str,
    /// Which jobs.
    filter: FilterShown,
    /// Why.
    reason: String,
    /// `not_done`, if somebody vouched.
    assume: Option<&'static str>,
    /// Jobs a second.
    rate: String,
    /// Who asked.
    actor: String,
    /// How many jobs fit shortly before it began; `null` if there were too many to count.
    expected: Option<u64>,
    /// What it did so far.
    counts: RunCounts,
    /// The first jobs that were left as they are, at most 20.
    refused_jobs: Vec<RefusedJobJson>,
    /// Why it failed.
    problem: Option<String>,
    /// When it began: jobs that came to fit later are not touched.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// Its last step.
    #[schema(value_type = String, format = DateTime)]
    updated_at: Time,
    /// When it ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    finished_at: Option<Time>,
}

/// A filter as it is kept.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct FilterShown {
    #[serde(skip_serializing_if = "Option::is_none")]
    state: Option<&'static str>,
    /// The queue, endpoint or source.
    #[serde(skip_serializing_if = "Option::is_none")]
    destination: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    cause: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    class: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key_prefix: Option<String>,
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    event_type: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    created_since: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    created_until: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    dead_lettered_since: Option<Time>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    dead_lettered_until: Option<Time>,
}

impl RunJson {
    pub(super) fn of(run: &BulkRun) -> Self {
        let (request, counts) = (&run.request, &run.counts);
        let refused_by_code =
            counts.refused.iter().map(|(code, count)| (code.to_string(), *count)).collect::<BTreeMap<_, _>>();
        Self {
            id: run.id.to_string(),
            kind: request.kind.as_str(),
            state: run.state.as_str(),
            filter: FilterShown::of(request),
            reason: request.reason.to_string(),
            assume: request.assume_not_done.then_some("not_done"),
            rate: format!("{}/s", request.per_second),
            actor: run.actor.to_string(),
            expected: run.expected,
            counts: RunCounts {
                examined: counts.examined,
                matched: counts.matched,
                done: counts.done,
                requested: counts.requested,
                settled: counts.settled,
                refused: refused_by_code.values().sum(),
                refused_by_code,
                skipped: counts.skipped,
            },
            refused_jobs: run
                .refused
                .iter()
                .map(|one| RefusedJobJson { job: one.job.to_string(), code: one.code.to_string() })
                .collect(),
            problem: run.problem.as_deref().map(str::to_owned),
            created_at: Time(run.began_at),
            updated_at: Time(run.updated_at),
            finished_at: run.finished_at.map(Time),
        }
    }
}

impl FilterShown {
    fn of(request: &BulkRequest) -> Self {
        let filter = &request.filter;
        Self {
            state: filter.state.map(StateName::as_str),
            destination: request.destination.as_ref().map(ToString::to_string),
            cause: filter.cause.map(Cause::as_str),
            class: filter.class.map(Class::as_str),
            key_prefix: filter.key_prefix.as_deref().map(str::to_owned),
            event_type: filter.event_type.as_deref().map(str::to_owned),
            created_since: filter.created_since.map(Time),
            created_until: filter.created_until.map(Time),
            dead_lettered_since: filter.dead_lettered_since.map(Time),
            dead_lettered_until: filter.dead_lettered_until.map(Time),
        }
    }
}

impl RunRequest {
    pub(super) fn read(
        self,
        state: &AppState,
        tenant: TenantId,
        kind: RunKind,
    ) -> Result<BulkRequest, Problem> {
        let assume_not_done = match self.assume.as_deref() {
            None => false,
            Some("not_done") => true,
            Some(other) => return Err(unknown_word("assume", other, "\"not_done\", or leave it out")),
        };
        let per_second = self.rate.as_deref().map_or(Ok(limits::BULK_RATE_DEFAULT), read_rate)?;
        if kind == RunKind::Replay && self.filter.source.is_some() {
            let text = "`filter.source`: what is quarantined is read anew, message by message: replay each of \
                        GET /v1/jobs?source=…&state=dead_lettered by POST /v1/jobs/{id}/replay";
            return Err(Problem::new(Code::InvalidValue, text).with("path", "filter.source"));
        }
        let (filter, destination) = self.filter.read(state, tenant)?;
        let reason = self.reason.into();
        Ok(BulkRequest { kind, filter, destination, reason, assume_not_done, per_second })
    }
}

impl FilterJson {
    pub(super) fn read(
        self,
        state: &AppState,
        tenant: TenantId,
    ) -> Result<(BulkFilter, Option<DestinationId>), Problem> {
        let all = self.all;
        let place = self.place(state, tenant)?;
        let causes = Cause::ALL.iter().map(|cause| cause.as_str()).collect::<Vec<_>>().join(", ");
        let classes = Class::ALL.iter().map(|class| class.as_str()).collect::<Vec<_>>().join(", ");
        let states = "scheduled, retryable, leased or dead_lettered";
        let at = |field, text: Option<String>| text.map(|text| time::parse(field, &text)).transpose();
        let filter = BulkFilter {
            state: word("filter.state", self.state, states, StateName::parse)?,
            lane: place.as_ref().map(|(lane, _)| *lane),
            cause: word("filter.cause", self.cause, &causes, Cause::parse)?,
            class: word("filter.class", self.class, &classes, Class::parse)?,
            key_prefix: self.key_prefix.map(Into::into),
            event_type: self.event_type.map(Into::into),
            created_since: at("filter.created_since", self.created_since)?,
            created_until: at("filter.created_until", self.created_until)?,
            dead_lettered_since: at("filter.dead_lettered_since", self.dead_lettered_since)?,
            dead_lettered_until: at("filter.dead_lettered_until", self.dead_lettered_until)?,
        };
        let invalid = |text: &'static str| Err(Problem::new(Code::InvalidValue, text).with("path", "filter"));
        match (all.unwrap_or(false), filter == BulkFilter::default()) {
            (false, true) => {
                invalid("`filter`: it has no condition; give one, or say \"all\": true if you mean all")
            }
            (true, false) => invalid("`filter`: `all` excludes every condition"),
            (true, true) | (false, false) => Ok((filter, place.map(|(_, id)| id))),
        }
    }

    /// The lane of the destination that the filter names.
    fn place(&self, state: &AppState, tenant: TenantId) -> Result<Option<(LaneId, DestinationId)>, Problem> {
        let kinds = [
            ("filter.queue", &self.queue, DestinationKind::Queue),
            ("filter.endpoint", &self.endpoint, DestinationKind::Endpoint),
            ("filter.source", &self.source, DestinationKind::Source),
        ];
        let mut place = None;
        for (field, text, kind) in kinds {
            let Some(text) = text else { continue };
            if place.is_some() {
                let text = "`filter`: `queue`, `endpoint` and `source` exclude each other";
                return Err(Problem::new(Code::InvalidValue, text).with("path", "filter"));
            }
            let id = destination(field, text)?;
            let directory = state.engine().directory();
            let entry = directory.find(tenant, &id).filter(|entry| entry.row.kind == kind);
            let unknown = || EngineError::NotFound { what: kind.as_str(), id: id.to_string() };
            place = Some((entry.ok_or_else(unknown)?.row.lane, id.clone()));
        }
        Ok(place)
    }
}

fn word<T>(
    field: &'static str,
    text: Option<String>,
    expected: &str,
    read: impl FnOnce(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let Some(text) = text else { return Ok(None) };
    read(&text).map(Some).ok_or_else(|| unknown_word(field, &text, expected))
}

fn unknown_word(field: &'static str, word: &str, expected: &str) -> Problem {
    let shown: String = word.chars().take(64).collect();
    let text = format!("`{field}`: {shown:?} is not known; give {expected}");
    Problem::new(Code::InvalidValue, text).with("path", field)
}

/// Reads `"500/s"`. Its bounds are the engine's to check.
fn read_rate(text: &str) -> Result<u32, Problem> {
    let number = text.strip_suffix("/s").filter(|number| number.bytes().all(|byte| byte.is_ascii_digit()));
    number
        .and_then(|number| number.parse().ok())
        .ok_or_else(|| unknown_word("rate", text, "jobs a second, for example \"500/s\""))
}
