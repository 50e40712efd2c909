//! What every step leaves behind in logs and metrics, and whom it wakes. Row F5.

use std::{fmt, sync::Arc};

use posthaste_core::{
    Attempt, AttemptEnd, AttemptOutcome, CommandName, DestinationId, Job, LaneId, MessageKey, Nature,
    NextStep, Refusal, State, StateName, TenantId,
};
use posthaste_store::{Applied, AppliedOutcome, Change, JobCommand, LeasedJob, StoreError};

use crate::{Directory, Engine};

impl Engine {
    /// Applies commands, wakes lanes, counts and logs.
    pub(crate) async fn apply(&self, commands: Vec<JobCommand>) -> Result<Vec<Applied>, StoreError> {
        let asked = asked(&commands);
        let applied = self.store.apply(commands).await?;
        self.observe_applied(asked, &applied);
        Ok(applied)
    }

    /// As [`Engine::apply`], behind everything that somebody waits for.
    pub(crate) async fn apply_behind(&self, commands: Vec<JobCommand>) -> Result<Vec<Applied>, StoreError> {
        let asked = asked(&commands);
        let applied = self.store.apply_behind(commands).await?;
        self.observe_applied(asked, &applied);
        Ok(applied)
    }

    fn observe_applied(&self, asked: Vec<(TenantId, CommandName)>, applied: &[Applied]) {
        for ((tenant, command), applied) in asked.into_iter().zip(applied) {
            match &applied.outcome {
                AppliedOutcome::Decided { reply, change } => {
                    if let Some(change) = change {
                        self.observe_change(tenant, change);
                    }
                    if let Err(refusal) = reply {
                        self.observe_refusal(tenant, applied, command, refusal);
                    }
                }
                AppliedOutcome::Corrupt(corrupt) => {
                    tracing::error!(event = "corrupt", job = %applied.job, error = %corrupt);
                }
                AppliedOutcome::Missing => {}
            }
        }
    }

    pub(crate) fn observe_changes(&self, tenant: Option<TenantId>, changes: &[Change]) {
        for change in changes {
            self.observe_change(tenant.unwrap_or(change.job.tenant), change);
        }
    }

    /// Wakes whoever takes the job's next step.
    fn wake_next_step(&self, tenant: TenantId, job: &Job) {
        if let Some(due_at) = job.state.due_at() {
            self.wake_lane(tenant, job.lane, due_at);
        }
        if matches!(job.state, State::Retryable { next: NextStep::LookUp, .. }) {
            self.look_ups.wake();
        }
    }

    fn observe_change(&self, tenant: TenantId, change: &Change) {
        let job = &change.job;
        if let Some(turned) = &change.turn {
            self.observe_turn((tenant, job.lane), turned);
        }
        self.wake_next_step(tenant, job);
        let event_id = self.event_id(tenant, change);
        let event_id = &event_id;
        if let Some(ended) = &change.ended {
            self.metrics.attempt(ended.report.outcome, ended.report.class);
            log_attempt(event_id, ended);
        }
        if change.nature == Nature::Late {
            tracing::info!(event = "late_report", event_key = %event_id, state = job.state.name().as_str());
        }
        if job.state.name() == change.from && change.nature != Nature::Late {
            return;
        }
        match &job.state {
            State::Committed { at, evidence } => {
                self.metrics.finished(StateName::Committed, at.since(change.accepted_at));
                let attempt = job.attempt.map_or(0, Attempt::get);
                tracing::info!(
                    event = "done",
                    event_key = %event_id,
                    attempts = attempt,
                    outcome = "committed",
                    evidence = evidence.as_str(),
                );
            }
            State::DeadLettered { at, cause } => {
                self.metrics.finished(StateName::DeadLettered, at.since(change.accepted_at));
                self.metrics.dead_lettered(*cause);
                self.tell_soon();
                tracing::warn!(
                    event = "dead_letter",
                    event_key = %event_id,
                    attempts = job.attempt.map_or(0, Attempt::get),
                    cause = cause.as_str(),
                );
            }
            State::Cancelled { at } => {
                self.metrics.finished(StateName::Cancelled, at.since(change.accepted_at));
                tracing::info!(event = "cancel", event_key = %event_id, outcome = "cancelled");
            }
            State::Retryable { due_at, .. } => {
                tracing::info!(
                    event = "retry",
                    event_key = %event_id,
                    attempts = job.attempt.map_or(0, Attempt::get),
                    next_in_ms = due_at.since(self.clock.now()).0,
                );
            }
            State::Scheduled { .. } | State::Leased(_) => {}
        }
    }

    fn observe_refusal(&self, tenant: TenantId, applied: &Applied, command: CommandName, refusal: &Refusal) {
        let report = matches!(command, CommandName::Finish | CommandName::Fail | CommandName::Release);
        let stale = matches!(
            refusal,
            Refusal::StaleFence { .. } | Refusal::AlreadyReported { .. } | Refusal::AlreadySettled { .. }
        );
        if !(report && stale) {
            return;
        }
        self.metrics.stale_report();
        let destination = self.destination_of(tenant, applied.job.lane());
        tracing::warn!(
            event = "stale_report",
            job = %applied.job,
            destination = destination.as_ref().map_or("", DestinationId::as_str),
            code = refusal.code(),
        );
    }

    pub(crate) fn observe_lease(&self, leased: &LeasedJob) {
        let State::Leased(lease) = &leased.job.state else { return };
        if leased.job.attempt == Some(Attempt::FIRST) {
            self.metrics.schedule_lag(lease.leased_at.since(leased.job.scheduled_at));
        } else {
            self.metrics.retry_lag(lease.leased_at.since(lease.due_at));
        }
    }

    pub(crate) fn destination_of(&self, tenant: TenantId, lane: LaneId) -> Option<DestinationId> {
        self.directory.load().at(tenant, lane).map(|entry| entry.row.id.clone())
    }

    fn event_id<'c>(&self, tenant: TenantId, change: &'c Change) -> EventId<'c> {
        EventId { key: &change.key, directory: self.directory.load_full(), tenant, lane: change.job.lane }
    }
}

fn asked(commands: &[JobCommand]) -> Vec<(TenantId, CommandName)> {
    commands.iter().map(|command| (command.tenant, command.command.name())).collect()
}

/// Spelled only if somebody logs it.
struct EventId<'c> {
    key: &'c MessageKey,
    directory: Arc<Directory>,
    tenant: TenantId,
    lane: LaneId,
}

impl fmt::Display for EventId<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let entry = self.directory.at(self.tenant, self.lane);
        write!(f, "{}:{}", self.key, entry.map_or("?", |entry| entry.row.id.as_str()))
    }
}

fn log_attempt(event_id: &EventId<'_>, ended: &AttemptEnd) {
    let class = ended.report.class.map_or("", posthaste_core::Class::as_str);
    match ended.report.outcome {
        AttemptOutcome::Failed | AttemptOutcome::LeaseLost => tracing::info!(
            event = if ended.report.outcome == AttemptOutcome::Failed { "failed" } else { "lease_lost" },
            event_key = %event_id,
            path = ended.path.as_str(),
            attempts = ended.attempt.get(),
            outcome = ended.report.outcome.as_str(),
            class,
            effect = ended.report.effect.as_str(),
            status = ended.details.status,
            policy = &*ended.policy,
        ),
        AttemptOutcome::Committed
        | AttemptOutcome::Duplicate
        | AttemptOutcome::Cancelled
        | AttemptOutcome::Released => tracing::debug!(
            event = "attempt_ended",
            event_key = %event_id,
            path = ended.path.as_str(),
            attempts = ended.attempt.get(),
            outcome = ended.report.outcome.as_str(),
        ),
    }
}
