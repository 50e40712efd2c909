//! Making, changing, pausing and showing schedules. Rows B10, B14, G2.

use std::collections::HashSet;

use posthaste_core::{DestinationId, MessageId, MessageKey, TenantId, Timestamp};
use posthaste_store::{
    ManagedBy, MessageName, NewSchedule, NextFire, ScheduleChange, ScheduleChanged, ScheduleRow, StoreError,
};

use super::{CatchUp, fire::message, timing::rfc3339};
use crate::{
    Engine, EngineError, PublishDue,
    config::{ConfigError, Schedule, ScheduleSpec, compile_schedule},
    manage::serialised,
    operate::check_reason,
};

/// A schedule as it stands.
#[derive(Clone, Debug)]
pub struct ScheduleView {
    /// As stored.
    pub row: ScheduleRow,
    /// As understood; `None`: it isn't.
    pub schedule: Option<Schedule>,
    /// Why it can't fire, if it can't.
    pub problem: Option<String>,
}

impl ScheduleView {
    /// `paused`, `disabled`, `broken` or `active`.
    pub fn state(&self) -> &'static str {
        match self {
            Self { row, .. } if row.paused.is_some() => "paused",
            Self { row, .. } if !row.enabled => "disabled",
            Self { problem: Some(_), .. } => "broken",
            Self { .. } => "active",
        }
    }

    /// The next `count` firings after `now`, and how the schedule's place has them. A pause isn't considered.
    pub fn next(&self, now: Timestamp, count: usize) -> Vec<(Timestamp, String)> {
        let Some(schedule) = &self.schedule else { return Vec::new() };
        let first = self.row.next_fire_at.filter(|at| *at > now);
        let first = first.or_else(|| schedule.timing.next_after(now));
        let all = std::iter::successors(first, |at| schedule.timing.next_after(*at));
        all.take(count).map(|at| (at, schedule.timing.local(at))).collect()
    }
}

/// A firing out of turn.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FiredNow {
    /// Whether it is new; else the same request came before.
    pub new: bool,
    /// The message's key.
    pub key: MessageKey,
    /// The message.
    pub message: MessageId,
}

/// A row's configuration, understood. Errors: a sentence for the operator.
pub(super) fn understood(row: &ScheduleRow) -> Result<Schedule, String> {
    let spec: ScheduleSpec = serde_json::from_str(&row.config).map_err(|error| error.to_string())?;
    compile_schedule(row.tenant, &spec).map_err(|error| error.to_string())
}

impl Engine {
    /// Makes or changes a schedule. A changed time begins to count now; what was due by the old one is let go of.
    ///
    /// Errors: [`EngineError::Config`] where it isn't understood or a destination isn't there, [`EngineError::Exists`],
    /// [`EngineError::ManagedByFile`], the store's.
    pub async fn put_schedule(
        &self,
        tenant: TenantId,
        spec: &ScheduleSpec,
        managed_by: ManagedBy,
        must_be_new: bool,
    ) -> Result<ScheduleView, EngineError> {
        let _changing = self.changing.lock().await;
        let new = self.new_schedule(tenant, spec, managed_by, must_be_new).await?;
        let row = self.change_schedule(ScheduleChange::Put(new)).await?;
        Ok(self.view_of(row))
    }

    /// What [`Engine::put_schedule`] writes.
    async fn new_schedule(
        &self,
        tenant: TenantId,
        spec: &ScheduleSpec,
        managed_by: ManagedBy,
        must_be_new: bool,
    ) -> Result<NewSchedule, EngineError> {
        let known = match DestinationId::new(&spec.name) {
            Ok(id) => self.store.schedule(tenant, id).await?,
            Err(_) => None,
        };
        refuse_if_managed_by_file(known.as_ref(), managed_by)?;
        let schedule = compile_schedule(tenant, spec)?;
        // What a file defined before and still does is shown as broken, so that the server starts.
        if let Some(problem) = self.why_broken(&schedule)
            && !(managed_by == ManagedBy::File && known.is_some())
        {
            return Err(ConfigError::new("to", problem, "make the destination first").into());
        }
        let same = |row: &ScheduleRow| {
            let before: Option<ScheduleSpec> = serde_json::from_str(&row.config).ok();
            before.is_some_and(|before| before.cron == spec.cron && before.timezone == spec.timezone)
        };
        let goes_on = known
            .as_ref()
            .is_some_and(|row| row.enabled && schedule.enabled && row.next_fire_at.is_some() && same(row));
        let next =
            if goes_on { NextFire::Keep } else { NextFire::At(schedule.timing.next_after(self.clock.now())) };
        Ok(NewSchedule {
            tenant,
            id: schedule.id,
            config: serialised(spec)?,
            managed_by,
            enabled: schedule.enabled,
            owner: schedule.owner,
            next,
            must_be_new,
        })
    }

    /// Brings schedules in line with configuration files: makes and changes what they define, disables what they
    /// defined once and no longer do. After the destinations.
    pub(crate) async fn sync_file_schedules(
        &self,
        defined: Vec<(TenantId, ScheduleSpec)>,
    ) -> Result<(), EngineError> {
        let _changing = self.changing.lock().await;
        let mut still = HashSet::new();
        let mut changes = Vec::new();
        for (tenant, spec) in defined {
            let new = self.new_schedule(tenant, &spec, ManagedBy::File, false).await?;
            still.insert((tenant, new.id.clone()));
            changes.push(ScheduleChange::Put(new));
        }
        let rows = self.store.schedules().await?;
        let gone = rows.into_iter().filter(|row| {
            let defined = still.contains(&(row.tenant, row.id.clone()));
            row.managed_by == ManagedBy::File && row.enabled && !defined
        });
        changes.extend(gone.map(disabled));
        if !changes.is_empty() {
            self.store.change_schedules(changes).await?;
        }
        self.scheduling.changed.notify_one();
        Ok(())
    }

    /// Deletes a schedule. What it published stays.
    pub async fn delete_schedule(&self, tenant: TenantId, id: &DestinationId) -> Result<(), EngineError> {
        let _changing = self.changing.lock().await;
        let known = self.store.schedule(tenant, id.clone()).await?;
        refuse_if_managed_by_file(known.as_ref(), ManagedBy::Api)?;
        let change = ScheduleChange::Delete { tenant, id: id.clone() };
        match self.changed(change).await? {
            ScheduleChanged::Deleted => Ok(()),
            ScheduleChanged::Schedule(_)
            | ScheduleChanged::Missing
            | ScheduleChanged::Taken
            | ScheduleChanged::Moved(_) => Err(EngineError::not_found("schedule", id)),
        }
    }

    /// Pauses a schedule until it is resumed; one that is paused stays as it is. Durable on return.
    pub async fn pause_schedule(
        &self,
        tenant: TenantId,
        id: &DestinationId,
        reason: &str,
        actor: &str,
    ) -> Result<ScheduleView, EngineError> {
        check_reason(reason)?;
        let (by, why) = (actor.into(), reason.into());
        let row =
            self.change_schedule(ScheduleChange::Pause { tenant, id: id.clone(), by, reason: why }).await?;
        tracing::info!(event = "pause", schedule = id.as_str(), actor, reason);
        Ok(self.view_of(row))
    }

    /// Ends a pause. What was missed meanwhile is made up for as `catch_up` says.
    pub async fn resume_schedule(
        &self,
        tenant: TenantId,
        id: &DestinationId,
        reason: &str,
        actor: &str,
    ) -> Result<ScheduleView, EngineError> {
        check_reason(reason)?;
        let view = self.schedule(tenant, id).await?;
        let next = match &view.schedule {
            Some(schedule) if schedule.catch_up == CatchUp::Skip => {
                NextFire::At(schedule.timing.next_after(self.clock.now()))
            }
            Some(_) | None => NextFire::Keep,
        };
        let row = self.change_schedule(ScheduleChange::Resume { tenant, id: id.clone(), next }).await?;
        tracing::info!(event = "resume", schedule = id.as_str(), actor, reason);
        Ok(self.view_of(row))
    }

    /// Fires a schedule out of turn, under a key of its own; what is due next stays as it is.
    ///
    /// `request`: names the request, so that it is done once. Errors: [`EngineError::NotAvailable`] where it can't fire.
    pub async fn run_schedule(
        &self,
        tenant: TenantId,
        id: &DestinationId,
        request: Option<&str>,
    ) -> Result<FiredNow, EngineError> {
        let view = self.schedule(tenant, id).await?;
        let Some(schedule) = view.schedule.filter(|_| view.problem.is_none()) else {
            let problem = view.problem.unwrap_or_else(|| "its configuration is not understood".to_owned());
            return Err(EngineError::NotAvailable { what: "schedule", id: id.to_string(), problem });
        };
        let now = rfc3339(self.clock.now());
        let key = format!("schedule:{id}:run:{}", request.unwrap_or(&now));
        let due = PublishDue::In(posthaste_core::DurationMs::ZERO);
        let publish = message(&schedule, &key, &now, due)?;
        let key = publish.key.clone();
        let published = self.publish(tenant, vec![publish]).await?.pop();
        match published {
            Some(Ok(published)) => Ok(FiredNow { new: published.new, key, message: published.message.id }),
            // The request came before, at another instant.
            Some(Err(EngineError::KeyReused { message, .. })) if request.is_some() => {
                Ok(FiredNow { new: false, key, message })
            }
            Some(Err(error)) => Err(error),
            None => Err(EngineError::Store(StoreError::unavailable("an answer is missing"))),
        }
    }

    /// One schedule. Errors: [`EngineError::NotFound`], the store's.
    pub async fn schedule(&self, tenant: TenantId, id: &DestinationId) -> Result<ScheduleView, EngineError> {
        let row = self.store.schedule(tenant, id.clone()).await?;
        row.map(|row| self.view_of(row)).ok_or_else(|| EngineError::not_found("schedule", id))
    }

    /// A tenant's schedules, by name.
    pub async fn schedules(&self, tenant: TenantId) -> Result<Vec<ScheduleView>, EngineError> {
        let rows = self.store.schedules().await?;
        Ok(rows.into_iter().filter(|row| row.tenant == tenant).map(|row| self.view_of(row)).collect())
    }

    /// The message of the last firing, while the store has it.
    pub async fn last_fired(&self, row: &ScheduleRow) -> Result<Option<MessageId>, EngineError> {
        let Some(at) = row.last_fired_at else { return Ok(None) };
        let Ok(key) = MessageKey::new(&format!("schedule:{}:{}", row.id, rfc3339(at))) else {
            return Ok(None);
        };
        let message = self.store.message(row.tenant, MessageName::Key(key)).await?;
        Ok(message.map(|message| message.id))
    }

    fn view_of(&self, row: ScheduleRow) -> ScheduleView {
        match understood(&row) {
            Ok(schedule) => {
                let problem = self.why_broken(&schedule);
                ScheduleView { row, schedule: Some(schedule), problem }
            }
            Err(problem) => ScheduleView { row, schedule: None, problem: Some(problem) },
        }
    }

    async fn change_schedule(&self, change: ScheduleChange) -> Result<ScheduleRow, EngineError> {
        let id = match &change {
            ScheduleChange::Put(new) => new.id.clone(),
            ScheduleChange::Delete { id, .. }
            | ScheduleChange::Pause { id, .. }
            | ScheduleChange::Resume { id, .. }
            | ScheduleChange::Advance { id, .. } => id.clone(),
        };
        match self.changed(change).await? {
            ScheduleChanged::Schedule(row) => Ok(*row),
            ScheduleChanged::Taken => Err(EngineError::Exists { what: "schedule", id: id.to_string() }),
            ScheduleChanged::Deleted | ScheduleChanged::Missing | ScheduleChanged::Moved(_) => {
                Err(EngineError::not_found("schedule", &id))
            }
        }
    }

    async fn changed(&self, change: ScheduleChange) -> Result<ScheduleChanged, EngineError> {
        let mut changed = self.store.change_schedules(vec![change]).await?;
        self.scheduling.changed.notify_one();
        changed.pop().ok_or_else(|| EngineError::Store(StoreError::unavailable("an answer is missing")))
    }
}

/// Asked before anything else is looked at: what a file defines is changed there, whatever was asked.
fn refuse_if_managed_by_file(known: Option<&ScheduleRow>, managed_by: ManagedBy) -> Result<(), EngineError> {
    match known {
        Some(row) if row.managed_by == ManagedBy::File && managed_by == ManagedBy::Api => {
            Err(EngineError::ManagedByFile { id: row.id.to_string() })
        }
        Some(_) | None => Ok(()),
    }
}

/// What a file no longer defines is disabled, never deleted.
fn disabled(row: ScheduleRow) -> ScheduleChange {
    ScheduleChange::Put(NewSchedule {
        tenant: row.tenant,
        id: row.id,
        config: row.config,
        managed_by: ManagedBy::File,
        enabled: false,
        owner: row.owner,
        next: NextFire::Keep,
        must_be_new: false,
    })
}
