//! What an operator, or a queue's worker, says of an effect that nobody was sure of; and a look-up on demand. Row C10.

use std::sync::Arc;

use posthaste_core::{
    Attempt, Command, DurationMs, Evidence, JobId, LookUpVerdict, MessageId, OnUnknown, Refusal, Remaining,
    State, StateName, TenantId, Timestamp,
};
use posthaste_store::{JobView, MessageName};

use crate::{
    CameTo, Engine, EngineError, OperateError, Operated,
    config::Queue,
    directory::Destination,
    look_up::{Found, is_owed, settled_at},
    operate::check_reason,
};

/// What somebody found out about a job's effect.
#[derive(Clone, Debug)]
pub struct Judgement {
    /// Of which job.
    pub job: JobId,
    /// The last attempt that they saw; `None`: it was never tried.
    pub seen: Option<Attempt>,
    /// What they found.
    pub verdict: LookUpVerdict,
    /// How they know; 1 to [`posthaste_core::limits::REASON_BYTES_MAX`] bytes.
    pub reason: Box<str>,
    /// The API key's name.
    pub actor: Box<str>,
}

/// What it came to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Judged {
    /// What the look-up, or whoever looked, found.
    pub verdict: LookUpVerdict,
    /// The job after it.
    pub operated: Operated,
    /// When "absent" will be believed, if that is still to come.
    pub believed_at: Option<Timestamp>,
}

impl Engine {
    /// Takes an operator's word on whether the effect happened: of a job that waits for a look-up any verdict, of a dead
    /// letter or a job that waits "present" alone. Sends nothing.
    ///
    /// Durability: what is answered is committed, with its custody entry. Errors: `attempt_changed` if another attempt was
    /// seen; `wrong_state` where the verdict can't settle it: a dead letter whose effect is absent is replayed
    /// with `assume: not_done`. Cancel: safe; ask again, or look at the job.
    pub async fn judge(&self, tenant: TenantId, judgement: Judgement) -> Result<Judged, OperateError> {
        check_reason(&judgement.reason)?;
        let Judgement { job, seen, verdict, reason, actor } = judgement;
        let view = self.known_or_missing(tenant, job).await?.view;
        if view.job.attempt != seen {
            return Err(EngineError::from(Refusal::AttemptChanged { current: view.job.attempt }).into());
        }
        if is_owed(&view) {
            let settle = self.settle_of(tenant, job);
            let found = Found { verdict, said: reason };
            return self.write_found(&view, self.clock.now(), settle, found, &actor).await;
        }
        let settles = matches!(view.job.state, State::DeadLettered { .. } | State::Retryable { .. });
        if !settles || verdict != LookUpVerdict::Present {
            let command = posthaste_core::CommandName::LookUp;
            let refusal = Refusal::WrongState { state: view.job.state.name(), command };
            return Err(EngineError::from(refusal).into());
        }
        let settle = Command::Settle { evidence: Evidence::Reconciled };
        match self.decide(tenant, job, &actor, settle).await? {
            Ok(change) => {
                self.note_reason(tenant, &change, &reason, &actor).await?;
                Ok(Judged {
                    verdict,
                    operated: Operated::of(&change.job, CameTo::Settled),
                    believed_at: None,
                })
            }
            Err(refusal) => Err(EngineError::from(refusal).into()),
        }
    }

    /// Writes what was found about the attempts that `view` shows. Whether it counts the core decides.
    pub(crate) async fn write_found(
        &self,
        view: &JobView,
        asked_at: Timestamp,
        settle: DurationMs,
        found: Found,
        actor: &str,
    ) -> Result<Judged, OperateError> {
        let Found { verdict, said } = found;
        self.metrics.look_up(verdict);
        tracing::info!(
            event = "look_up",
            event_key = %format_args!("{}:{}", view.key, view.destination),
            attempts = view.job.attempt.map_or(0, Attempt::get),
            verdict = verdict.as_str(),
        );
        let settled_at = settled_at(view, settle);
        let (seen, said) = (view.job.attempt, Some(said));
        let command = Command::LookUp { seen, asked_at, verdict, settled_at, said };
        match self.decide(view.job.tenant, view.job.id, actor, command).await? {
            Ok(change) => {
                let too_soon = verdict == LookUpVerdict::Absent && asked_at < settled_at;
                let operated = Operated::of(&change.job, came_to(&change.job.state));
                Ok(Judged { verdict, operated, believed_at: too_soon.then_some(settled_at) })
            }
            Err(refusal) => Err(EngineError::from(refusal).into()),
        }
    }

    /// Asks the receiver now, whenever the look-up is due, and writes what it says. Only of jobs that wait for a look-up at
    /// an endpoint that says how to ask.
    ///
    /// Durability: what is answered is committed. Errors: `wrong_state` if no look-up is owed; `not_available` if nobody can
    /// be asked. Cancel: safe; ask again.
    pub async fn look_up_now(
        &self,
        tenant: TenantId,
        job: JobId,
        actor: &str,
    ) -> Result<Judged, OperateError> {
        let view = self.known_or_missing(tenant, job).await?.view;
        if !is_owed(&view) {
            let command = posthaste_core::CommandName::LookUp;
            let refusal = Refusal::WrongState { state: view.job.state.name(), command };
            return Err(EngineError::from(refusal).into());
        }
        let directory = self.directory.load_full();
        let endpoint = match directory.at(tenant, job.lane()).map(|entry| &entry.destination) {
            Some(Destination::Endpoint(endpoint)) => Some(Arc::clone(endpoint)),
            Some(Destination::Queue(_) | Destination::Source(_) | Destination::Broken { .. }) | None => None,
        };
        let Some((endpoint, recipe)) =
            endpoint.as_deref().and_then(|endpoint| Some((endpoint, endpoint.look_up.as_ref()?)))
        else {
            let problem = "it does not say how to ask: give a verdict yourself";
            let id = view.destination.to_string();
            let what = "the look-up of";
            return Err(EngineError::NotAvailable { what, id, problem: problem.to_owned() }.into());
        };
        let asked_at = self.clock.now();
        let found = self.ask_receiver(tenant, endpoint, recipe, &view).await?;
        self.write_found(&view, asked_at, recipe.settle, found, actor).await
    }

    /// How much of a job's budgets was used, of how much its destination allows now.
    ///
    /// Errors: what the store says. Cancel: safe.
    pub async fn remaining(&self, tenant: TenantId, view: &JobView) -> Result<Remaining, EngineError> {
        let held_ms = self.store.lane_held_ms(tenant, view.job.lane).await?;
        let policy = self.directory.load().policy(tenant, view.job.lane);
        Ok(view.job.budgets.remaining(&policy, held_ms))
    }

    /// How long after an attempt's end it may still act, as its destination says.
    pub(crate) fn settle_of(&self, tenant: TenantId, job: JobId) -> DurationMs {
        match self.directory.load().policy(tenant, job.lane()).on_unknown {
            OnUnknown::Reconcile { settle } => settle,
            OnUnknown::Retry | OnUnknown::DeadLetter => DurationMs::ZERO,
        }
    }
}

/// A look-up that a queue's worker is asked to make.
#[derive(Clone, Debug)]
pub struct HandedLookUp {
    /// The job, as it waits.
    pub view: JobView,
    /// Its message.
    pub message: MessageId,
    /// Names the attempt and the instant that is asked about; opaque. The report gives it back.
    pub token: Box<str>,
    /// Until when nobody else is asked.
    pub expires_at: Timestamp,
}

/// What a worker found out.
#[derive(Clone, Debug)]
pub struct WorkerFound {
    /// Of which job.
    pub job: JobId,
    /// As it was handed out.
    pub token: Box<str>,
    /// What.
    pub verdict: LookUpVerdict,
    /// How it knows, for people; at most [`posthaste_core::limits::REASON_BYTES_MAX`] bytes.
    pub message: Option<Box<str>>,
}

impl Engine {
    /// Hands out due look-ups of a queue that asks its workers, at most `limit`, for as long as `lease`.
    ///
    /// Nothing is written: a worker that is lost costs the time of `lease`, and two answers to one question are judged each
    /// by itself. Cancel: safe.
    pub(crate) async fn hand_out_look_ups(
        &self,
        queue: &Queue,
        limit: usize,
        lease: DurationMs,
    ) -> Result<Vec<HandedLookUp>, EngineError> {
        if queue.look_up_settle.is_none() || limit == 0 {
            return Ok(Vec::new());
        }
        let tenant = queue.tenant;
        // Those that others have stand in front.
        let looked_at = limit.saturating_add(HANDED_IN_FRONT);
        let due = self.store.lane_look_ups(tenant, queue.lane, looked_at).await?;
        let mut handed = Vec::new();
        for job in due {
            let now = self.clock.now();
            let expires_at = now.after(lease);
            if handed.len() >= limit {
                break;
            }
            if !self.look_ups.hand_out(tenant, job, now, expires_at) {
                continue;
            }
            let Some(view) = self.store.job(tenant, job).await?.filter(is_owed) else { continue };
            let name = MessageName::Key(view.key.clone());
            let Some(message) = self.store.message(tenant, name).await? else { continue };
            let token = format!("{}.{}", view.job.attempt.map_or(0, Attempt::get), now.0).into();
            handed.push(HandedLookUp { view, message: message.id, token, expires_at });
        }
        Ok(handed)
    }

    /// Takes what a worker found out. Row C10.
    ///
    /// Durability: what is answered is committed, with its custody entry. Errors: `attempt_changed` if the token is of
    /// another attempt, or none that was handed out; `wrong_state` if no look-up is owed any more. Cancel: safe;
    /// ask again.
    pub async fn report_look_up(
        &self,
        tenant: TenantId,
        found: WorkerFound,
        actor: &str,
    ) -> Result<Judged, OperateError> {
        let WorkerFound { job, token, verdict, message } = found;
        if let Some(message) = message.as_deref() {
            check_reason(message)?;
        }
        let view = self.known_or_missing(tenant, job).await?.view;
        if !is_owed(&view) {
            let command = posthaste_core::CommandName::LookUp;
            let refusal = Refusal::WrongState { state: view.job.state.name(), command };
            return Err(EngineError::from(refusal).into());
        }
        let asked = parse_token(&token)
            .filter(|(seen, asked_at)| Some(*seen) == view.job.attempt && *asked_at <= self.clock.now());
        let Some((_, asked_at)) = asked else {
            return Err(EngineError::from(Refusal::AttemptChanged { current: view.job.attempt }).into());
        };
        let said = message.unwrap_or_else(|| "a worker looked".into());
        let settle = self.settle_of(tenant, job);
        let judged = self.write_found(&view, asked_at, settle, Found { verdict, said }, actor).await?;
        self.look_ups.hand_back(tenant, job);
        Ok(judged)
    }
}

/// Look-ups of a lane that others may have.
const HANDED_IN_FRONT: usize = 1_000;

/// `{attempt}.{milliseconds}`, as it was handed out.
fn parse_token(token: &str) -> Option<(Attempt, Timestamp)> {
    let (attempt, at) = token.split_once('.')?;
    let (attempt, at) = (Attempt::new(attempt.parse().ok()?)?, Timestamp(at.parse().ok()?));
    (format!("{}.{}", attempt.get(), at.0) == token).then_some((attempt, at))
}

/// A job that goes on by itself was judged, and is not settled.
fn came_to(state: &State) -> CameTo {
    match state.name() {
        StateName::Scheduled | StateName::Leased | StateName::Retryable => CameTo::Waits,
        StateName::Committed | StateName::DeadLettered | StateName::Cancelled => CameTo::Settled,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_c10_only_what_was_handed_out_is_a_token() {
        assert_eq!(Some((Attempt::FIRST, Timestamp(17))), parse_token("1.17"));
        for never in ["", "1", "1.", ".17", "0.17", "01.17", "1.+17", "1.17.2", "x.17", "1.x"] {
            assert_eq!(None, parse_token(never), "{never}");
        }
    }
}
