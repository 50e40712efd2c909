//! Bulk runs: what operators ask of them, and the loop that carries them out. Rows B8, B9.
//!
//! The store moves a run on, a few jobs a commit; what is added here is when. Nothing is kept in memory that a start
//! does not find again in the rows: after a crash every run that was running goes on where it was.

use std::{collections::BTreeMap, sync::Arc};

use posthaste_core::{
    Attempt, BulkFilter, DurationMs, Nature, RunControl, RunId, RunKind, RunState, StateName, TenantId,
    Timestamp, limits,
};
use posthaste_store::{
    Begun, BulkChange, BulkCount, BulkRequest, BulkRun, BulkStep, BulkStepped, Change, Controlled, LaneGate,
    LaneGates, NewBulkRun, StoreError,
};

use crate::{Engine, EngineError, directory::Destination, pace::Pace};

/// Time between looks for runs that nobody announced.
const LIST_EVERY: DurationMs = DurationMs::from_secs(30);

/// The same where another node may have begun one.
const LIST_SHARED_EVERY: DurationMs = DurationMs::from_secs(1);

/// After a look that failed.
const LIST_PAUSE: DurationMs = DurationMs::from_secs(1);

/// Jobs that a count looks at; then it says so and ends.
const COUNT_EXAMINED_MAX: u64 = 2_000_000;

/// Steps in a row that a corrupt row may break; then the run has failed.
const CORRUPT_MAX: u32 = 5;

/// Why a run was not begun, or not changed.
#[derive(Debug, thiserror::Error)]
pub enum BulkError {
    /// Refused, or failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The idempotency key was used for another request.
    #[error("the idempotency key was used for another request: run {0}")]
    KeyReused(RunId),
    /// Too many runs.
    #[error(
        "there are {} runs that run or are paused; stop one, or wait for its end",
        limits::BULK_RUNS_LIVE_MAX
    )]
    TooMany,
    /// Not in this state.
    #[error("a run that is {state} can't be asked to {control}")]
    WrongState {
        /// The run's state.
        state: RunState,
        /// What was asked.
        control: RunControl,
    },
}

impl From<StoreError> for BulkError {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}

/// A run to begin.
#[derive(Clone, Debug)]
pub struct BulkStart {
    /// What it is to do.
    pub request: BulkRequest,
    /// Names the request, so that it begins one run however often it comes.
    pub idempotency_key: Option<Box<str>>,
    /// The API key's name.
    pub actor: Box<str>,
}

/// How many jobs a run would be about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct DryRun {
    /// Jobs that fit, among those that were looked at.
    pub matched: u64,
    /// Jobs that were looked at.
    pub examined: u64,
    /// Whether those were all: `matched` is exact then.
    pub complete: bool,
}

impl Engine {
    /// Counts the jobs that a run would be about if it began now; looks at two million at most. Changes nothing.
    ///
    /// Errors: `invalid_value` for a filter that makes no sense; what the store says. Cancel: safe.
    pub async fn bulk_dry_run(&self, tenant: TenantId, request: &BulkRequest) -> Result<DryRun, EngineError> {
        check_request(request)?;
        let mut dry = DryRun { matched: 0, examined: 0, complete: false };
        let mut after = None;
        while dry.examined < COUNT_EXAMINED_MAX {
            let (kind, filter) = (request.kind, request.filter.clone());
            let counted = self.store.bulk_count(BulkCount { tenant, kind, filter, after }).await?;
            dry.matched += counted.matched;
            dry.examined += counted.examined;
            after = counted.next;
            if after.is_none() {
                dry.complete = true;
                break;
            }
        }
        Ok(dry)
    }

    /// Begins a run; or gives the one that the same request began, and `false`.
    ///
    /// Durability: the run is committed and goes on after a crash. Errors: [`BulkError::KeyReused`],
    /// [`BulkError::TooMany`]; `invalid_value`; what the store says. Cancel: it may have begun; ask again under the same
    /// idempotency key.
    pub async fn bulk_start(&self, tenant: TenantId, start: BulkStart) -> Result<(BulkRun, bool), BulkError> {
        self.refuse_if_draining()?;
        let dry = self.bulk_dry_run(tenant, &start.request).await?;
        let new = NewBulkRun {
            tenant,
            id: RunId(self.message_ids.next(self.clock.now()).0),
            request: start.request,
            idempotency_key: start.idempotency_key,
            actor: start.actor,
            expected: dry.complete.then_some(dry.matched),
        };
        match self.store.bulk_begin(new).await? {
            Begun::New(run) => {
                log_run(&run, "begun", &run.actor);
                self.bulk_wake.notify_one();
                Ok((*run, true))
            }
            Begun::Same(run) => Ok((*run, false)),
            Begun::KeyReused(run) => Err(BulkError::KeyReused(run)),
            Begun::TooMany => Err(BulkError::TooMany),
        }
    }

    /// Pauses, resumes or stops a run of this kind. Takes effect within a step; asked again, nothing changes.
    ///
    /// Errors: `not_found`; [`BulkError::WrongState`] for one that has ended; what the store says. Cancel: safe; ask
    /// again.
    pub async fn bulk_control(
        &self,
        tenant: TenantId,
        kind: RunKind,
        run: RunId,
        control: RunControl,
        actor: &str,
    ) -> Result<BulkRun, BulkError> {
        // A run never changes its kind.
        let known = self.bulk_run(tenant, kind, run).await?;
        match self.store.bulk_control(tenant, run, BulkChange::Control(control)).await? {
            Controlled::Missing => Err(EngineError::not_found("run", &run).into()),
            Controlled::Refused(state) => Err(BulkError::WrongState { state, control }),
            Controlled::Stands(now) => {
                if known.state != now.state {
                    log_run(&now, control.as_str(), actor);
                }
                self.bulk_wake.notify_one();
                Ok(*now)
            }
        }
    }

    /// A run of this kind.
    ///
    /// Errors: `not_found`; what the store says. Cancel: safe.
    pub async fn bulk_run(
        &self,
        tenant: TenantId,
        kind: RunKind,
        run: RunId,
    ) -> Result<BulkRun, EngineError> {
        let known = self.store.bulk_run(tenant, run).await?;
        known.filter(|known| known.request.kind == kind).ok_or_else(|| EngineError::not_found("run", &run))
    }

    /// Carries runs out, until the engine stops. One step at a time, over all runs: whichever is due first.
    pub(crate) async fn run_bulk(self: Arc<Self>) {
        let mut live: BTreeMap<(TenantId, RunId), Pace> = BTreeMap::new();
        let mut list_at = Timestamp(i64::MIN);
        loop {
            if self.is_draining() || !self.on_duty().await {
                return;
            }
            if self.clock.now() >= list_at {
                list_at = self.list_runs(&mut live).await;
            }
            let next = live.iter().map(|(run, pace)| (pace.due_at(), *run)).min();
            let wake_at = next.map_or(list_at, |(due_at, _)| due_at.min(list_at));
            tokio::select! {
                // First, so that a run that is always due doesn't keep a new one waiting.
                biased;
                () = self.stop.cancelled() => return,
                () = self.bulk_wake.notified() => {
                    list_at = Timestamp(i64::MIN);
                    continue;
                }
                () = self.clock.sleep_until(wake_at) => {}
            }
            if let Some((_, run)) = next.filter(|(due_at, _)| *due_at <= self.clock.now()) {
                self.step_run(run, &mut live).await;
            }
        }
    }

    /// Finds the runs that go on; gives when to look again.
    async fn list_runs(&self, live: &mut BTreeMap<(TenantId, RunId), Pace>) -> Timestamp {
        let now = self.clock.now();
        match self.store.bulk_running().await {
            Ok(runs) => {
                let known = std::mem::take(live);
                live.extend(runs.into_iter().map(|run| {
                    let at = (run.tenant, run.id);
                    let pace = known.get(&at).copied();
                    (at, pace.unwrap_or_else(|| Pace::new(run.request.per_second, now)))
                }));
                now.after(if self.store.shared().is_some() { LIST_SHARED_EVERY } else { LIST_EVERY })
            }
            Err(error) => {
                tracing::warn!(event = "bulk_runs_unknown", error = %error);
                now.after(LIST_PAUSE)
            }
        }
    }

    async fn step_run(&self, at: (TenantId, RunId), live: &mut BTreeMap<(TenantId, RunId), Pace>) {
        let Some(pace) = live.get_mut(&at) else { return };
        let (tenant, run) = at;
        let step =
            BulkStep { tenant, run, jobs_max: pace.jobs(self.clock.now()), gates: self.gates_of(tenant) };
        match self.store.bulk_step(step).await {
            Ok(Some(stepped)) => {
                pace.took(stepped.taken, self.clock.now());
                self.observe_step(&stepped);
                if stepped.run.state != RunState::Running {
                    live.remove(&at);
                    return;
                }
                #[cfg(feature = "faults")]
                posthaste_store::faults::reached(posthaste_store::faults::Point::MidBulk);
            }
            Ok(None) => {
                live.remove(&at);
            }
            Err(error) => {
                let failures = pace.failed(self.clock.now());
                tracing::warn!(event = "bulk_step_failed", run = %run, failures, error = %error);
                if matches!(error, StoreError::Corrupt(_)) && failures >= CORRUPT_MAX {
                    self.fail_run(at, &error).await;
                }
            }
        }
    }

    /// A row can't be read, and trying again doesn't help: an operator must look. If this fails too, the next step
    /// says so.
    async fn fail_run(&self, (tenant, run): (TenantId, RunId), error: &StoreError) {
        let problem = BulkChange::Fail(error.to_string().into());
        match self.store.bulk_control(tenant, run, problem).await {
            Ok(_) => tracing::error!(event = "bulk_run", run = %run, outcome = "failed", error = %error),
            Err(again) => tracing::warn!(event = "bulk_step_failed", run = %run, error = %again),
        }
    }

    /// The lanes of a tenant as they are configured now: what can't be sent anywhere would only be dead-lettered again.
    fn gates_of(&self, tenant: TenantId) -> LaneGates {
        let directory = self.directory.load_full();
        Arc::new(move |lane| match directory.at(tenant, lane).map(|entry| &entry.destination) {
            Some(Destination::Endpoint(_) | Destination::Queue(_) | Destination::Broken { .. }) => {
                LaneGate::Open(directory.policy(tenant, lane))
            }
            Some(Destination::Source(_)) | None => LaneGate::Closed("not_available"),
        })
    }

    fn observe_step(&self, stepped: &BulkStepped) {
        let run = &stepped.run;
        self.observe_changes(Some(run.tenant), &stepped.changes);
        if run.request.kind == RunKind::Replay {
            stepped.changes.iter().for_each(|change| self.log_replayed(run, change));
        }
        if run.state == RunState::Done {
            log_run(run, "done", &run.actor);
        }
    }

    fn log_replayed(&self, run: &BulkRun, change: &Change) {
        let destination = self.destination_of(run.tenant, change.job.lane);
        let destination = destination.as_ref().map_or("?", posthaste_core::DestinationId::as_str);
        tracing::info!(
            event = "replay",
            event_key = format_args!("{}:{destination}", change.key),
            attempts = change.job.attempt.map_or(0, Attempt::get),
            outcome = if change.nature == Nature::SettledInstead { "settled" } else { "replayed" },
            state = change.job.state.name().as_str(),
            run = %run.id,
            actor = &*run.actor,
        );
    }
}

fn log_run(run: &BulkRun, outcome: &'static str, actor: &str) {
    let counts = &run.counts;
    tracing::info!(
        event = "bulk_run",
        run = %run.id,
        kind = run.request.kind.as_str(),
        outcome,
        matched = counts.matched,
        done = counts.done,
        requested = counts.requested,
        settled = counts.settled,
        skipped = counts.skipped,
        refused = counts.refused.values().sum::<u64>(),
        actor,
    );
}

/// Refuses what could fit no job, so that a slip isn't mistaken for "there are none".
fn check_request(request: &BulkRequest) -> Result<(), EngineError> {
    crate::operate::check_reason(&request.reason)?;
    let BulkRequest { kind, filter, per_second, .. } = request;
    if !(1..=limits::BULK_RATE_MAX).contains(per_second) {
        let problem = format!("give \"1/s\" to \"{}/s\"", limits::BULK_RATE_MAX);
        return Err(EngineError::invalid("rate", problem));
    }
    match (kind, filter.state) {
        (RunKind::Replay, Some(state)) if state != StateName::DeadLettered => {
            return Err(EngineError::invalid("filter.state", "only dead_lettered jobs are replayed"));
        }
        (RunKind::Cancel, Some(StateName::Committed | StateName::Cancelled)) => {
            let problem =
                "what is done is not called off; give scheduled, retryable, leased or dead_lettered";
            return Err(EngineError::invalid("filter.state", problem));
        }
        (RunKind::Replay | RunKind::Cancel, _) => {}
    }
    if request.assume_not_done && *kind == RunKind::Cancel {
        return Err(EngineError::invalid("assume", "it is for replays; a cancel assumes nothing"));
    }
    check_filter(*kind, filter)
}

fn check_filter(kind: RunKind, filter: &BulkFilter) -> Result<(), EngineError> {
    let about_dead = filter.cause.is_some()
        || filter.dead_lettered_since.is_some()
        || filter.dead_lettered_until.is_some();
    if about_dead && !filter.about_dead_letters(kind) {
        let problem = "`cause` and `dead_lettered_…` are of dead letters; add \"state\": \"dead_lettered\"";
        return Err(EngineError::invalid("filter", problem));
    }
    for (field, since, until) in [
        ("filter.created_until", filter.created_since, filter.created_until),
        ("filter.dead_lettered_until", filter.dead_lettered_since, filter.dead_lettered_until),
    ] {
        if let (Some(since), Some(until)) = (since, until)
            && since >= until
        {
            return Err(EngineError::invalid(field, "it is not after the time since when"));
        }
    }
    let texts = [
        ("filter.key_prefix", &filter.key_prefix, limits::KEY_BYTES_MAX),
        ("filter.type", &filter.event_type, limits::TYPE_BYTES_MAX),
    ];
    for (field, text, bytes_max) in texts {
        if text.as_ref().is_some_and(|text| text.is_empty() || text.len() > bytes_max) {
            return Err(EngineError::invalid(field, format!("give 1 to {bytes_max} bytes, or leave it out")));
        }
    }
    Ok(())
}
