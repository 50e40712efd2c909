//! Look-ups: asks receivers whether an effect happened, before anything is sent again. Row C10.
//!
//! A look-up acts on nothing, so it holds no lease: one that is lost is asked again, and one that is asked twice is judged
//! by the attempt and the instant that it asked about. Each lane has a few on their way at most, and each ends at its
//! deadline, so that no receiver's silence keeps others waiting.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use bytes::Bytes;
use parking_lot::Mutex;
use posthaste_core::{
    Attempt, Cause, Command, DurationMs, JobId, LaneId, LookUpVerdict, NextStep, State, TenantId, Timestamp,
    limits,
};
use posthaste_store::{JobCommand, JobView, LookUpDue, MessageName, StoreError};
use serde_json::json;
use tokio::sync::Notify;

use crate::{
    Engine, EngineError, OperateError,
    config::{Endpoint, LookUpNames, LookUpRecipe},
    delivery::{kept, send_limits},
    directory::Destination,
    ports::{OutboundRequest, SendLimits, SendOutcome},
};

/// Look-ups on their way at once.
const AT_ONCE: usize = 64;

/// Look-ups of one lane on their way at once.
const PER_LANE: usize = 4;

/// Look-ups that workers have; beyond, those whose time is over are forgotten first.
const HANDED_MAX: usize = 4_096;

/// The longest time between two looks at what is due: the safety net under the wake-ups.
const LOOK_EVERY: DurationMs = DurationMs::from_secs(30);

/// Look-ups of one queue whose horizon is looked at in one go.
const HORIZONS_AT_ONCE: usize = 500;

/// How long a job that can't be read is left alone.
const CORRUPT_PAUSE: DurationMs = DurationMs::from_mins(10);

/// After a store error.
const STORE_PAUSE: DurationMs = DurationMs::from_secs(1);

/// What look-ups that run and those who wake them share.
#[derive(Default)]
pub(crate) struct LookUpDesk {
    wake: Notify,
    /// Those that are on their way.
    asked: Mutex<HashSet<(TenantId, JobId)>>,
    /// Those that a queue's worker has, and until when nobody else is asked. A worker that is lost costs that time.
    handed: Mutex<HashMap<(TenantId, JobId), Timestamp>>,
}

impl LookUpDesk {
    /// Says that a look-up is owed, or that one ended.
    pub(crate) fn wake(&self) {
        self.wake.notify_one();
    }

    /// Takes a look-up for a worker, if nobody has it.
    pub(crate) fn hand_out(&self, tenant: TenantId, job: JobId, now: Timestamp, until: Timestamp) -> bool {
        let mut handed = self.handed.lock();
        if handed.len() >= HANDED_MAX {
            handed.retain(|_, until| *until > now);
        }
        if handed.get(&(tenant, job)).is_some_and(|until| *until > now) {
            return false;
        }
        handed.insert((tenant, job), until);
        true
    }

    /// A worker reported.
    pub(crate) fn hand_back(&self, tenant: TenantId, job: JobId) {
        self.handed.lock().remove(&(tenant, job));
    }
}

/// What was found, and how it was read.
pub(crate) struct Found {
    pub(crate) verdict: LookUpVerdict,
    pub(crate) said: Box<str>,
}

impl Found {
    fn unsure(said: &str) -> Self {
        Self { verdict: LookUpVerdict::Unsure, said: kept(said) }
    }
}

impl Engine {
    pub(crate) async fn run_look_ups(self: Arc<Self>) {
        let mut horizons_at = self.clock.now();
        loop {
            let now = self.clock.now();
            let latest = now.after(LOOK_EVERY);
            if now >= horizons_at {
                horizons_at = latest;
                self.give_up_unanswered().await;
            }
            let wake_at = match self.begin_look_ups().await {
                Ok(next_due) => next_due.map_or(latest, |next| next.min(latest)),
                Err(error) => {
                    tracing::warn!(event = "look_ups_failed", error = %error);
                    now.after(STORE_PAUSE)
                }
            };
            tokio::select! {
                () = self.look_ups.wake.notified() => {}
                () = self.clock.sleep_until(wake_at) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Begins those that are due, as far as there is room; gives the time of the next.
    async fn begin_look_ups(self: &Arc<Self>) -> Result<Option<Timestamp>, StoreError> {
        if self.is_draining() {
            return Ok(None);
        }
        let found = self.store.look_ups(PER_LANE, AT_ONCE * PER_LANE).await?;
        for LookUpDue { tenant, job, .. } in found.due {
            // A queue's workers come for theirs.
            if self.asks_workers(tenant, job.lane()) {
                continue;
            }
            let mut asked = self.look_ups.asked.lock();
            if asked.len() >= AT_ONCE {
                break;
            }
            if asked.insert((tenant, job)) {
                drop(asked);
                let engine = Arc::clone(self);
                self.tasks.spawn(async move {
                    if let Err(error) = engine.look_up(tenant, job).await {
                        engine.rest_after(job, &error).await;
                    }
                    engine.look_ups.asked.lock().remove(&(tenant, job));
                    engine.look_ups.wake();
                });
            }
        }
        Ok(found.next_due)
    }

    /// One that fails is left alone for a while: a row that can't be read for longer.
    async fn rest_after(&self, job: JobId, error: &StoreError) {
        let pause = if matches!(error, StoreError::Corrupt(_)) {
            tracing::error!(event = "corrupt", job = %job, error = %error);
            CORRUPT_PAUSE
        } else {
            tracing::warn!(event = "look_up_failed", job = %job, error = %error);
            STORE_PAUSE
        };
        tokio::select! {
            () = self.clock.sleep_until(self.clock.now().after(pause)) => {}
            () = self.stop.cancelled() => {}
        }
    }

    fn asks_workers(&self, tenant: TenantId, lane: LaneId) -> bool {
        let directory = self.directory.load();
        matches!(
            directory.at(tenant, lane).map(|entry| &entry.destination),
            Some(Destination::Queue(queue)) if queue.look_up_settle.is_some()
        )
    }

    /// Dead-letters what waits for a worker's look-up beyond its horizon: nobody came.
    async fn give_up_unanswered(&self) {
        let directory = self.directory.load_full();
        for entry in directory.entries().filter(|entry| self.asks_workers(entry.row.tenant, entry.row.lane)) {
            if let Err(error) = self.give_up_in(entry.row.tenant, entry.row.lane).await {
                tracing::warn!(event = "look_ups_failed", error = %error);
            }
        }
    }

    async fn give_up_in(&self, tenant: TenantId, lane: LaneId) -> Result<(), StoreError> {
        let policy = self.directory.load().policy(tenant, lane);
        let due = self.store.lane_look_ups(tenant, lane, HORIZONS_AT_ONCE).await?;
        if due.is_empty() {
            return Ok(());
        }
        let held_ms = self.store.lane_held_ms(tenant, lane).await?;
        let mut beyond = Vec::new();
        for job in due {
            let view = match self.store.job(tenant, job).await {
                Ok(view) => view,
                // The sweep tells of it.
                Err(StoreError::Corrupt(_)) => continue,
                Err(error) => return Err(error),
            };
            let over = |view: &JobView| self.clock.now() > view.job.budgets.horizon_at(&policy, held_ms);
            if view.filter(is_owed).is_some_and(|view| over(&view)) {
                beyond.push(JobCommand {
                    tenant,
                    job,
                    command: Command::Abandon { cause: Cause::OutcomeUnknown },
                    policy: Arc::clone(&policy),
                    hold_lane_until: None,
                    actor: Some("posthaste".into()),
                });
            }
        }
        if beyond.is_empty() { Ok(()) } else { self.apply_behind(beyond).await.map(drop) }
    }

    /// Asks about one job, and writes what was found.
    async fn look_up(&self, tenant: TenantId, job: JobId) -> Result<(), StoreError> {
        let Some(view) = self.store.job(tenant, job).await? else { return Ok(()) };
        if !is_owed(&view) {
            return Ok(());
        }
        let directory = self.directory.load_full();
        let endpoint = match directory.at(tenant, job.lane()).map(|entry| &entry.destination) {
            Some(Destination::Endpoint(endpoint)) => Some(Arc::clone(endpoint)),
            Some(Destination::Queue(_) | Destination::Source(_) | Destination::Broken { .. }) => None,
            None => return self.abandon_unasked(tenant, job).await,
        };
        let asked_at = self.clock.now();
        let recipe = endpoint.as_deref().and_then(|endpoint| Some((endpoint, endpoint.look_up.as_ref()?)));
        let found = match recipe {
            Some((endpoint, recipe)) => {
                tokio::select! {
                    found = self.ask_receiver(tenant, endpoint, recipe, &view) => found?,
                    // Nothing is lost: it is asked again.
                    () = self.stop.cancelled() => return Ok(()),
                }
            }
            None => Found::unsure("the destination has no [reconcile] any more: nobody can be asked"),
        };
        let settle = recipe.map_or(DurationMs::ZERO, |(_, recipe)| recipe.settle);
        match self.write_found(&view, asked_at, settle, found, "posthaste").await {
            // The job has moved on meanwhile: what was found says nothing of it any more.
            Ok(_) | Err(OperateError::Engine(EngineError::Refused(_) | EngineError::NotFound { .. })) => {
                Ok(())
            }
            Err(OperateError::Engine(EngineError::Store(error))) => Err(error),
            Err(error) => {
                tracing::warn!(event = "look_up_refused", job = %job, error = %error);
                Ok(())
            }
        }
    }

    /// Its destination is gone: nobody can be asked, and nothing will be sent.
    async fn abandon_unasked(&self, tenant: TenantId, job: JobId) -> Result<(), StoreError> {
        let command = JobCommand {
            tenant,
            job,
            command: Command::Abandon { cause: Cause::EndpointGone },
            policy: self.directory.load().policy(tenant, job.lane()),
            hold_lane_until: None,
            actor: Some("posthaste".into()),
        };
        self.apply(vec![command]).await.map(drop)
    }

    /// One request, read.
    pub(crate) async fn ask_receiver(
        &self,
        tenant: TenantId,
        endpoint: &Endpoint,
        recipe: &LookUpRecipe,
        view: &JobView,
    ) -> Result<Found, StoreError> {
        let name = MessageName::Key(view.key.clone());
        let Some(message) = self.store.message(tenant, name).await? else {
            return Ok(Found::unsure("its message is gone"));
        };
        let request = self.look_up_request(endpoint, recipe, view, &message.id.to_string());
        Ok(match self.sender.send(request).await {
            SendOutcome::Answered(answered) => {
                let whole = !answered.excerpt_truncated;
                let verdict = recipe.read(answered.status, &answered.excerpt, whole);
                Found { verdict, said: format!("the receiver answered {}", answered.status).into() }
            }
            SendOutcome::Blocked { reason } => Found::unsure(&format!("blocked: {reason}")),
            SendOutcome::Unanswered { detail, .. } => Found::unsure(&format!("no answer: {detail}")),
        })
    }

    fn look_up_request(
        &self,
        endpoint: &Endpoint,
        recipe: &LookUpRecipe,
        view: &JobView,
        message_id: &str,
    ) -> OutboundRequest {
        let event_id = format!("{}:{}", view.key, view.destination);
        let names = LookUpNames { event_id: &event_id, key: view.key.as_str(), message_id };
        let body = if recipe.method == "POST" {
            let body = json!({ "event_id": event_id, "key": view.key.as_str(), "message_id": message_id });
            Bytes::from(body.to_string())
        } else {
            Bytes::new()
        };
        let webhook_id = view.wire_id.as_deref().map_or_else(|| view.job.id.to_string(), ToOwned::to_owned);
        let timestamp = self.clock.now().0.div_euclid(1_000);
        let mut headers: Vec<(String, Vec<u8>)> = Vec::with_capacity(8 + endpoint.headers.len());
        let mut add = |name: &str, value: String| headers.push((name.to_owned(), value.into_bytes()));
        add("accept", "application/json".to_owned());
        if recipe.method == "POST" {
            add("content-type", "application/json".to_owned());
        }
        add("user-agent", self.settings.user_agent.to_string());
        add("webhook-timestamp", timestamp.to_string());
        if let Some(signer) = &endpoint.signer {
            add("webhook-signature", signer.sign(&webhook_id, timestamp, &body));
        }
        add("webhook-id", webhook_id);
        // No `idempotency-key`: a look-up must never pass for the delivery that it asks about.
        add("posthaste-look-up", view.job.attempt.map_or(0, Attempt::get).to_string());
        for (name, value) in &endpoint.headers {
            add(name, value.clone());
        }
        let limits =
            SendLimits { excerpt_bytes_max: limits::LOOK_UP_BYTES_MAX, ..send_limits(endpoint.timeout) };
        OutboundRequest { url: recipe.url(names), method: recipe.method, headers, body, limits }
    }
}

/// Whether the job waits for a look-up.
pub(crate) fn is_owed(view: &JobView) -> bool {
    matches!(view.job.state, State::Retryable { next: NextStep::LookUp, .. })
}

/// When the last send can no longer act.
pub(crate) fn settled_at(view: &JobView, settle: DurationMs) -> Timestamp {
    let ended = view.attempts.iter().map(|attempt| {
        attempt.late.as_ref().map_or(attempt.end.finished_at, |late| late.at.max(attempt.end.finished_at))
    });
    ended.max().unwrap_or(view.job.created_at).after(settle)
}
