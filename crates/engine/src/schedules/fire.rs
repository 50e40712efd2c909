//! The loop that fires schedules. Row B14.

use std::{
    collections::HashMap,
    sync::{Arc, atomic::Ordering},
};

use posthaste_core::{DestinationId, DurationMs, MessageKey, TenantId, Timestamp};
use posthaste_store::{ScheduleChange, ScheduleChanged, ScheduleRow, StoreError};

use super::{
    CatchUp,
    plan::{Plan, pass_over, plan},
    timing::rfc3339,
};
use crate::{
    Engine, EngineError, Publish, PublishDue, PublishTo,
    config::{Schedule, To},
    directory::Destination,
    publish::hash,
};

/// The longest sleep: other nodes change schedules too, and what couldn't fire may be able to.
const LOOK_EVERY: DurationMs = DurationMs::from_secs(30);

/// After a store error, at first and at most.
const STORE_PAUSE: (DurationMs, DurationMs) = (DurationMs::from_secs(1), DurationMs::from_secs(30));

/// Firings that are published in one commit.
const FIRINGS_AT_ONCE: usize = 100;

/// The due time of each schedule that could not fire, so that each firing is told of once.
type Told = HashMap<(TenantId, DestinationId), Timestamp>;

impl Engine {
    /// Begins to fire schedules. Once; a second call changes nothing.
    ///
    /// To be called when the configuration is in force: before, what it no longer defines would still fire.
    pub fn start_schedules(&self) {
        if !self.scheduling.started.swap(true, Ordering::Relaxed) {
            self.tasks.spawn(self.arc().supervise_schedules());
        }
    }

    /// Whether new scheduling is paused for a tenant: its schedules then don't fire, as if each of them was paused.
    pub fn scheduling_paused(&self, tenant: TenantId) -> bool {
        self.scheduling_pause(tenant).is_some()
    }

    /// Begins the loop anew if it panics.
    async fn supervise_schedules(self: Arc<Self>) {
        loop {
            let Err(error) = self.tasks.spawn(Arc::clone(&self).run_schedules()).await else { return };
            tracing::error!(event = "schedules_failed", error = %error, "the loop begins anew");
            tokio::select! {
                () = self.clock.sleep_until(self.clock.now().after(STORE_PAUSE.1)) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    async fn run_schedules(self: Arc<Self>) {
        let mut told = Told::new();
        let mut pause = STORE_PAUSE.0;
        loop {
            let changed = self.scheduling.changed.notified();
            let now = self.clock.now();
            let wake_at = match self.fire_due(now, &mut told).await {
                Ok(next) => {
                    pause = STORE_PAUSE.0;
                    let latest = now.after(LOOK_EVERY);
                    next.map_or(latest, |next| next.min(latest))
                }
                Err(EngineError::Draining) => return,
                Err(error) => {
                    tracing::warn!(event = "schedules_unavailable", error = %error);
                    let wake_at = self.clock.now().after(pause);
                    pause = DurationMs(pause.0.saturating_mul(2)).min(STORE_PAUSE.1);
                    wake_at
                }
            };
            tokio::select! {
                () = self.clock.sleep_until(wake_at) => {}
                () = changed => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Fires what is due at `now`; gives the time of the next firing of all.
    ///
    /// Errors: the store's, and [`EngineError::Draining`]; what is due stays due.
    async fn fire_due(&self, now: Timestamp, told: &mut Told) -> Result<Option<Timestamp>, EngineError> {
        self.refuse_if_draining()?;
        let rows = self.store.schedules().await?;
        told.retain(|at, _| rows.iter().any(|row| (row.tenant, &row.id) == (at.0, &at.1)));
        let mut next: Option<Timestamp> = None;
        for row in rows {
            if let Some(at) = self.fire_if_due(&row, now, told).await? {
                next = Some(next.map_or(at, |next| next.min(at)));
            }
        }
        Ok(next)
    }

    /// When to look at the schedule again, unless with all others.
    async fn fire_if_due(
        &self,
        row: &ScheduleRow,
        now: Timestamp,
        told: &mut Told,
    ) -> Result<Option<Timestamp>, EngineError> {
        let fires = row.enabled && row.paused.is_none();
        let Some(due) = row.next_fire_at.filter(|_| fires) else { return Ok(None) };
        if due > now {
            return Ok(Some(due));
        }
        let schedule = match super::manage::understood(row) {
            Ok(schedule) => schedule,
            Err(problem) => {
                tell(told, row, due, &problem);
                return Ok(None);
            }
        };
        if self.scheduling_paused(row.tenant) {
            return self.not_fired(row, &schedule, due, now).await;
        }
        let plan = plan(&schedule.timing, due, now, schedule.catch_up);
        if let Some(problem) = self.publish_firings(&schedule, &plan).await? {
            tell(told, row, due, &problem);
            return self.not_fired(row, &schedule, due, now).await;
        }
        #[cfg(feature = "faults")]
        posthaste_store::faults::reached(posthaste_store::faults::Point::MidFiring);
        if let Some(from) = plan.skipped_from {
            tracing::warn!(
                event = "schedule_missed",
                schedule = row.id.as_str(),
                owner = row.owner.as_deref(),
                from = rfc3339(from),
                made_up = plan.fire.len(),
                "firings were missed and are not all made up for; see catch_up"
            );
        }
        self.advance(row, due, plan.next, plan.fire.last().copied()).await
    }

    /// What can't fire: missed if missed firings are skipped, else it stays due.
    async fn not_fired(
        &self,
        row: &ScheduleRow,
        schedule: &Schedule,
        due: Timestamp,
        now: Timestamp,
    ) -> Result<Option<Timestamp>, EngineError> {
        match schedule.catch_up {
            CatchUp::Skip => {
                tracing::warn!(
                    event = "schedule_missed",
                    schedule = row.id.as_str(),
                    owner = row.owner.as_deref(),
                    from = rfc3339(due),
                    made_up = 0,
                    "a firing was due while the schedule could not fire; see catch_up"
                );
                self.advance(row, due, pass_over(&schedule.timing, due, now), None).await
            }
            CatchUp::Once | CatchUp::All => Ok(None),
        }
    }

    async fn advance(
        &self,
        row: &ScheduleRow,
        from: Timestamp,
        to: Option<Timestamp>,
        fired_at: Option<Timestamp>,
    ) -> Result<Option<Timestamp>, EngineError> {
        let change = ScheduleChange::Advance { tenant: row.tenant, id: row.id.clone(), from, to, fired_at };
        let mut changed = self.store.change_schedules(vec![change]).await?;
        match changed.pop() {
            Some(ScheduleChanged::Schedule(row) | ScheduleChanged::Moved(row)) => {
                Ok(row.next_fire_at.filter(|_| row.enabled && row.paused.is_none()))
            }
            Some(ScheduleChanged::Deleted | ScheduleChanged::Missing | ScheduleChanged::Taken) => Ok(None),
            None => Err(EngineError::Store(StoreError::unavailable("an answer is missing"))),
        }
    }

    /// Publishes the firings of `plan`; gives what keeps the schedule from firing, if something does.
    async fn publish_firings(&self, schedule: &Schedule, plan: &Plan) -> Result<Option<String>, EngineError> {
        if let Some(problem) = self.why_broken(schedule) {
            return Ok(Some(problem));
        }
        for instants in plan.fire.chunks(FIRINGS_AT_ONCE) {
            let messages = instants.iter().map(|at| firing(schedule, *at)).collect::<Result<_, _>>()?;
            let published = self.publish(schedule.tenant, messages).await?;
            for (at, published) in instants.iter().zip(published) {
                let lag_ms = self.clock.now().since(*at).0;
                let (id, at) = (schedule.id.as_str(), rfc3339(*at));
                match published {
                    Ok(published) => tracing::info!(
                        event = "schedule_fired",
                        schedule = id,
                        scheduled_at = at,
                        message_id = %published.message.id,
                        new = published.new,
                        lag_ms,
                    ),
                    Err(EngineError::KeyReused { message, .. }) => tracing::warn!(
                        event = "schedule_fired_before",
                        schedule = id,
                        scheduled_at = at,
                        message_id = %message,
                        "the schedule was changed since, or somebody else used its key",
                    ),
                    Err(error) => return Ok(Some(error.to_string())),
                }
            }
        }
        Ok(None)
    }

    /// Why a schedule can't fire: a destination is gone, or not understood.
    pub(crate) fn why_broken(&self, schedule: &Schedule) -> Option<String> {
        let directory = self.directory.load();
        let gone = |what: &str, id: &DestinationId| {
            let missing = format!("there is no {what} \"{id}\"");
            match (what, directory.find(schedule.tenant, id).map(|entry| &entry.destination)) {
                ("queue", Some(Destination::Queue(_))) | ("endpoint", Some(Destination::Endpoint(_))) => None,
                (_, Some(Destination::Broken { problem, .. })) => {
                    Some(format!("{what} \"{id}\" is not available: {problem}"))
                }
                (_, Some(_) | None) => Some(missing),
            }
        };
        match &schedule.to {
            To::Queue(id) => gone("queue", id),
            To::Endpoints(ids) => ids.iter().find_map(|id| gone("endpoint", id)),
            To::Subscribers => None,
        }
    }
}

/// Says once for each firing that it can't be.
fn tell(told: &mut Told, row: &ScheduleRow, due: Timestamp, problem: &str) {
    if told.insert((row.tenant, row.id.clone()), due) != Some(due) {
        tracing::error!(
            event = "schedule_broken",
            schedule = row.id.as_str(),
            owner = row.owner.as_deref(),
            scheduled_at = rfc3339(due),
            problem,
        );
    }
}

/// The message of the firing at `at`.
fn firing(schedule: &Schedule, at: Timestamp) -> Result<Publish, EngineError> {
    let scheduled_at = rfc3339(at);
    let key = format!("schedule:{}:{scheduled_at}", schedule.id);
    message(schedule, &key, &scheduled_at, PublishDue::At(at.after(wait(schedule, at))))
}

/// A message of `schedule` under `key`.
pub(super) fn message(
    schedule: &Schedule,
    key: &str,
    scheduled_at: &str,
    due: PublishDue,
) -> Result<Publish, EngineError> {
    Ok(Publish {
        key: MessageKey::new(key).map_err(|error| EngineError::Name { field: "key", error })?,
        event_type: schedule.event_type.clone(),
        metadata: Some(schedule.metadata(scheduled_at).into()),
        content_type: Some("application/json".into()),
        payload: schedule.payload(scheduled_at).into(),
        payload_ref: None,
        due,
        to: match &schedule.to {
            To::Queue(id) => PublishTo::Queue(id.clone()),
            To::Endpoints(ids) => PublishTo::Endpoints(ids.clone()),
            To::Subscribers => PublishTo::Subscribers,
        },
        traceparent: None,
        correlation_id: key.into(),
    })
}

/// How long the jobs of a firing wait: the same on every node, and after every restart.
fn wait(schedule: &Schedule, at: Timestamp) -> DurationMs {
    let chance = hash(&[b"jitter", schedule.id.as_str().as_bytes(), &at.0.to_be_bytes()]);
    DurationMs((u128::from_be_bytes(chance) % (u128::from(schedule.jitter.0) + 1)).try_into().unwrap_or(0))
}
