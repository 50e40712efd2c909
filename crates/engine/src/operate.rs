//! What an operator does with a job that came to its end: replay, resend, reconcile. Rows B8, B9, C8.
//!
//! Whether it may go round again is decided by the core, in the transaction that writes; what is read here beside that
//! only explains the answer.

use posthaste_core::{
    Answer, Attempt, AttemptRecord, Cause, Command, DestinationId, Effect, EffectSpan, EventId, Evidence,
    Job, JobId, MessageId, Nature, Refusal, Remaining, State, StateName, TenantId, Timestamp,
    ledger::{Outcome, Status},
    limits,
};
use posthaste_store::{
    AppliedOutcome, AttemptView, Change, CustodyEntry, JobCommand, JobView, LedgerEntry, MessageName, Stage,
    StoreError,
};

use crate::{CameTo, Engine, EngineError, directory::Destination, quarantine::Unfit, timeline};

/// How often a replay is decided while reports land between its refusal and the reading of the evidence.
const DECISIONS_MAX: u32 = 4;

/// The reason of a reconcile without one, where no custody entry would tell the evidence.
const REPORTED: &str = "an attempt was reported to have acted";

/// Which job to send round again, as who saw it.
#[derive(Clone, Debug)]
pub struct RoundAgain {
    /// Which job.
    pub job: JobId,
    /// The last attempt that the operator saw; `None`: it was never tried.
    pub seen: Option<Attempt>,
    /// Why, for ever shown; 1 to [`limits::REASON_BYTES_MAX`] bytes.
    pub reason: Box<str>,
    /// The API key's name.
    pub actor: Box<str>,
}

/// What the operator vouches for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Assume {
    /// Nothing: the records must show that the effect has not happened.
    Nothing,
    /// It has not happened, though an attempt may have acted.
    NotDone,
}

/// A job after it was operated on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Operated {
    /// What it came to.
    pub result: CameTo,
    /// The job's state.
    pub state: StateName,
    /// When its next attempt may start.
    pub due_at: Option<Timestamp>,
    /// What the commit rests on.
    pub evidence: Option<Evidence>,
    /// Its last attempt.
    pub attempt: Option<Attempt>,
    /// The message that a quarantined one went on as.
    pub went_to: Option<MessageId>,
}

impl Operated {
    pub(crate) fn of(job: &Job, result: CameTo) -> Self {
        let evidence = match &job.state {
            State::Committed { evidence, .. } => Some(*evidence),
            State::Scheduled { .. }
            | State::Leased(_)
            | State::Retryable { .. }
            | State::DeadLettered { .. }
            | State::Cancelled { .. } => None,
        };
        let (state, due_at) = (job.state.name(), job.state.due_at());
        Self { result, state, due_at, evidence, attempt: job.attempt, went_to: None }
    }
}

/// All that is known of a job's effect.
#[derive(Clone, Debug)]
pub struct Known {
    /// The job with its attempts.
    pub view: JobView,
    /// The ledger's own row of its event id.
    pub entry: Option<LedgerEntry>,
    /// How many effects: from both.
    pub span: EffectSpan,
    /// How much of its budgets was used.
    pub remaining: Remaining,
}

impl Known {
    /// The ended attempts that may have acted.
    pub fn suspects(&self) -> impl Iterator<Item = &AttemptView> {
        self.view.attempts.iter().filter(|view| record_of(view).effect() > Effect::None)
    }
}

/// Why nothing was done.
#[derive(Debug, thiserror::Error)]
pub enum OperateError {
    /// Refused, or failed.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// An attempt may have acted, and nobody vouches that none did.
    #[error("the effect may have happened: {} to {} attempts may have acted", .known.span.lo, .known.span.hi)]
    OutcomeUnknown {
        /// Why the job was dead-lettered.
        cause: Cause,
        /// The evidence, as it was right after the refusal.
        known: Box<Known>,
    },
    /// It is quarantined, and still does not fit its source's configuration.
    #[error("it is still quarantined: {}", .0.problem)]
    StillQuarantined(Unfit),
    /// Nothing is known that would settle it.
    #[error("no ledger entry is done, and no attempt is known to have acted")]
    NoEvidence(Box<Known>),
}

impl OperateError {
    /// The stable code.
    pub fn code(&self) -> &'static str {
        match self {
            Self::Engine(error) => error.code(),
            Self::OutcomeUnknown { .. } => "outcome_unknown",
            Self::StillQuarantined(_) => "still_quarantined",
            Self::NoEvidence(_) => "no_evidence",
        }
    }
}

impl From<StoreError> for OperateError {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}

impl Engine {
    /// Sends a dead letter round again, unless its effect has, or may have, happened. Row B9.
    ///
    /// Identity, history and payload stay; the budgets begin anew. Where the records show that it happened the job is
    /// settled instead. What a source quarantined is run through its pipeline again, with today's configuration, and
    /// settled once it is accepted as what it is. The very same request again, before the next attempt begins, gets the same answer.
    ///
    /// Durability: what is answered is committed, with its custody entry. Errors: [`OperateError::OutcomeUnknown`];
    /// [`OperateError::StillQuarantined`];
    /// `not_dead_lettered`; `attempt_changed` if another attempt was seen; `not_available` if its destination is gone.
    /// Cancel: safe; ask again, or look at the job.
    pub async fn replay(
        &self,
        tenant: TenantId,
        again: RoundAgain,
        assume: Assume,
    ) -> Result<Operated, OperateError> {
        check_reason(&again.reason)?;
        if self.is_quarantined(tenant, again.job) {
            return self.replay_quarantined(tenant, &again).await;
        }
        self.refuse_without_destination(tenant, again.job).await?;
        let assume_not_done = assume == Assume::NotDone;
        let command = Command::Replay { seen: again.seen, assume_not_done, reason: again.reason.clone() };
        let mut decisions = 1;
        loop {
            let refusal = match self.decide(tenant, again.job, &again.actor, command.clone()).await? {
                Ok(change) => {
                    return Ok(self.done(tenant, "replay", &again.actor, &change, CameTo::Replayed));
                }
                Err(refusal) => refusal,
            };
            let known = self.known_or_missing(tenant, again.job).await?;
            if decisions >= DECISIONS_MAX || !is_outdated(&refusal, &known) {
                return repeated_or_refused(&again, refusal, known, CameTo::Replayed);
            }
            decisions += 1;
        }
    }

    /// Sends a committed job round again: its receiver lost what it had. Row B9.
    ///
    /// The ledger's own entry of a job that was never tried keeps it from being sent: it must be reset first. The very
    /// same request again, before the next attempt begins, gets the same answer.
    ///
    /// Durability: what is answered is committed, with its custody entry. Errors: `not_committed`; `attempt_changed`;
    /// `not_available` if its destination is gone. Cancel: safe; ask again, or look at the job.
    pub async fn resend(&self, tenant: TenantId, again: RoundAgain) -> Result<Operated, OperateError> {
        check_reason(&again.reason)?;
        self.refuse_without_destination(tenant, again.job).await?;
        if again.seen.is_none() {
            let known = self.known_or_missing(tenant, again.job).await?;
            if known.view.job.attempt.is_none() && is_done(known.entry.as_ref()) {
                let problem = "it was never tried: the ledger says that it is done. Reset the entry first";
                return Err(EngineError::invalid("attempt", problem).into());
            }
        }
        let command = Command::Resend { seen: again.seen, reason: again.reason.clone() };
        match self.decide(tenant, again.job, &again.actor, command).await? {
            Ok(change) => Ok(self.done(tenant, "resend", &again.actor, &change, CameTo::Resent)),
            Err(refusal) => {
                let known = self.known_or_missing(tenant, again.job).await?;
                repeated_or_refused(&again, refusal, known, CameTo::Resent)
            }
        }
    }

    /// Settles a job by evidence that is known already: a ledger entry that is done, a commit that was heard, or, for a
    /// dead letter, an attempt that was reported to have acted. Sends nothing. Row C8.
    ///
    /// A job that is settled already is answered as it is. `reason` gets a custody entry of its own, after the
    /// settlement: a crash between them loses the reason.
    ///
    /// Durability: what is answered is committed. Errors: [`OperateError::NoEvidence`]; `wrong_state` while an attempt
    /// runs or is yet to come, which evidence settles by itself. Cancel: safe; ask again.
    pub async fn reconcile(
        &self,
        tenant: TenantId,
        job: JobId,
        reason: Option<&str>,
        actor: &str,
    ) -> Result<Operated, OperateError> {
        reason.map_or(Ok(()), check_reason)?;
        let settle = Command::Settle { evidence: Evidence::Ledger };
        let refusal = match self.decide(tenant, job, actor, settle).await? {
            Ok(change) => {
                if let Some(reason) = reason {
                    self.note_reason(tenant, &change, reason, actor).await?;
                }
                return Ok(self.done(tenant, "reconcile", actor, &change, CameTo::Settled));
            }
            Err(refusal) => refusal,
        };
        let known = self.known_or_missing(tenant, job).await?;
        let at = &known.view.job;
        match &at.state {
            State::Committed { .. } | State::Cancelled { .. } => Ok(Operated::of(at, CameTo::Settled)),
            State::Scheduled { .. } | State::Leased(_) => Err(refused("reconcile", actor, refusal, known)),
            State::DeadLettered { .. } if reported(&known) => {
                // The gate of a replay takes this evidence, in the transaction that writes; it sends nothing, since
                // what an attempt reported is never unsaid.
                let reason = reason.unwrap_or(REPORTED).into();
                let gate = Command::Replay { seen: at.attempt, assume_not_done: false, reason };
                match self.decide(tenant, job, actor, gate).await? {
                    Ok(change) => Ok(self.done(tenant, "reconcile", actor, &change, CameTo::Replayed)),
                    Err(refusal) => Err(refused("reconcile", actor, refusal, known)),
                }
            }
            State::Retryable { .. } | State::DeadLettered { .. } => {
                log_refused("reconcile", actor, &known, "no_evidence");
                Err(OperateError::NoEvidence(Box::new(known)))
            }
        }
    }

    /// All that is known of a job's effect: its attempts, and the ledger's own row of its event id.
    ///
    /// Errors: what the store says. Cancel: safe.
    pub async fn known(&self, tenant: TenantId, job: JobId) -> Result<Option<Known>, EngineError> {
        let Some(view) = self.store.job(tenant, job).await? else { return Ok(None) };
        let entry = self.entry_of(tenant, &view).await?;
        let span = with_entry(timeline::effects(&view), entry.as_ref());
        let remaining = self.remaining(tenant, &view).await?;
        Ok(Some(Known { view, entry, span, remaining }))
    }

    /// How many effects a job may have had, by its attempts and the ledger's own row of its event id.
    pub(crate) async fn effects_of(
        &self,
        tenant: TenantId,
        view: &JobView,
    ) -> Result<EffectSpan, EngineError> {
        let entry = self.entry_of(tenant, view).await?;
        Ok(with_entry(timeline::effects(view), entry.as_ref()))
    }

    /// A row of the ledger's own: what would be read from the job itself is no second witness.
    async fn entry_of(&self, tenant: TenantId, view: &JobView) -> Result<Option<LedgerEntry>, StoreError> {
        self.store.entry(tenant, EventId::of(&view.key, &view.destination), None).await
    }

    pub(crate) async fn known_or_missing(&self, tenant: TenantId, job: JobId) -> Result<Known, EngineError> {
        self.known(tenant, job).await?.ok_or_else(|| EngineError::not_found("job", &job))
    }

    pub(crate) async fn decide(
        &self,
        tenant: TenantId,
        job: JobId,
        actor: &str,
        command: Command,
    ) -> Result<Result<Box<Change>, Refusal>, EngineError> {
        let command = JobCommand {
            tenant,
            job,
            command,
            policy: self.directory.load().policy(tenant, job.lane()),
            hold_lane_until: None,
            actor: Some(actor.into()),
        };
        match self.apply(vec![command]).await?.pop().map(|applied| applied.outcome) {
            Some(AppliedOutcome::Decided { reply: Err(refusal), .. }) => Ok(Err(refusal)),
            Some(AppliedOutcome::Decided { reply: Ok(Answer::Moved { .. }), change: Some(change) }) => {
                Ok(Ok(change))
            }
            Some(AppliedOutcome::Corrupt(corrupt)) => {
                Err(EngineError::Store(StoreError::Corrupt(Box::new(corrupt))))
            }
            Some(AppliedOutcome::Decided { .. }) => Err(EngineError::Store(StoreError::unavailable(
                "the store's answer fits no operator's command",
            ))),
            Some(AppliedOutcome::Missing) | None => Err(EngineError::not_found("job", &job)),
        }
    }

    /// What can't be sent anywhere would only be dead-lettered again.
    async fn refuse_without_destination(&self, tenant: TenantId, job: JobId) -> Result<(), EngineError> {
        let directory = self.directory.load_full();
        let problem = match directory.at(tenant, job.lane()).map(|entry| &entry.destination) {
            Some(Destination::Endpoint(_) | Destination::Queue(_) | Destination::Broken { .. }) => {
                return Ok(());
            }
            Some(Destination::Source(_)) => {
                "what it quarantined went on as another message: resend that one's job"
            }
            None => "it was deleted; make it again first",
        };
        let view = self.store.job(tenant, job).await?.ok_or_else(|| EngineError::not_found("job", &job))?;
        let id = view.destination.to_string();
        Err(EngineError::NotAvailable { what: "the destination", id, problem: problem.to_owned() })
    }

    pub(crate) async fn note_reason(
        &self,
        tenant: TenantId,
        change: &Change,
        reason: &str,
        actor: &str,
    ) -> Result<(), StoreError> {
        let name = MessageName::Key(change.key.clone());
        let Some(message) = self.store.message(tenant, name).await? else { return Ok(()) };
        let note = CustodyEntry {
            tenant,
            message: message.id,
            job: Some(change.job.id),
            at: self.clock.now(),
            stage: Stage::Reconciled,
            attempt: change.job.attempt,
            actor: Some(actor.into()),
            detail: Some(serde_json::json!({ "reason": reason }).to_string().into()),
        };
        self.store.note(vec![note]).await
    }

    pub(crate) fn done(
        &self,
        tenant: TenantId,
        event: &'static str,
        actor: &str,
        change: &Change,
        asked: CameTo,
    ) -> Operated {
        let settled = change.nature == Nature::SettledInstead;
        let operated = Operated::of(&change.job, if settled { CameTo::Settled } else { asked });
        let destination = self.destination_of(tenant, change.job.lane);
        tracing::info!(
            event,
            event_key =
                format_args!("{}:{}", change.key, destination.as_ref().map_or("?", DestinationId::as_str)),
            attempts = operated.attempt.map_or(0, Attempt::get),
            outcome = operated.result.as_str(),
            state = operated.state.as_str(),
            actor,
        );
        operated
    }
}

/// Whether a report landed between the refusal and the reading of its evidence: they must not contradict each other.
fn is_outdated(refusal: &Refusal, known: &Known) -> bool {
    let Refusal::OutcomeUnknown { span, .. } = refusal else { return false };
    known.view.job.state.name() != StateName::DeadLettered || timeline::effects(&known.view) != *span
}

fn repeated_or_refused(
    again: &RoundAgain,
    refusal: Refusal,
    known: Known,
    asked: CameTo,
) -> Result<Operated, OperateError> {
    if matches!(refusal, Refusal::WrongState { .. })
        && let Some(result) = repeated(&known, again, asked)
    {
        return Ok(Operated::of(&known.view.job, result));
    }
    let event = if asked == CameTo::Resent { "resend" } else { "replay" };
    Err(refused(event, &again.actor, refusal, known))
}

/// What this very request came to before, if it did and no attempt has begun since.
fn repeated(known: &Known, again: &RoundAgain, asked: CameTo) -> Option<CameTo> {
    let job = &known.view.job;
    if job.attempt != again.seen || job.reason.as_deref() != Some(&*again.reason) {
        return None;
    }
    let last = job.attempt.map_or(0, Attempt::get);
    let fits = match asked {
        CameTo::Resent => job.evidence_floor == last,
        CameTo::Replayed | CameTo::Settled | CameTo::Waits => job.evidence_floor < last || last == 0,
    };
    let cancelled = |entry: &LedgerEntry| entry.entry.outcome == Some(Outcome::Cancelled);
    match (&job.state, asked) {
        (State::Scheduled { .. }, _) if fits => Some(asked),
        (State::Committed { .. }, CameTo::Replayed) => Some(CameTo::Settled),
        (State::Cancelled { .. }, CameTo::Replayed) if known.entry.as_ref().is_some_and(cancelled) => {
            Some(CameTo::Settled)
        }
        (
            State::Scheduled { .. }
            | State::Leased(_)
            | State::Retryable { .. }
            | State::Committed { .. }
            | State::DeadLettered { .. }
            | State::Cancelled { .. },
            _,
        ) => None,
    }
}

fn refused(event: &'static str, actor: &str, refusal: Refusal, known: Known) -> OperateError {
    log_refused(event, actor, &known, refusal.code());
    if let Refusal::OutcomeUnknown { cause, .. } = refusal {
        return OperateError::OutcomeUnknown { cause, known: Box::new(known) };
    }
    EngineError::from(refusal).into()
}

fn log_refused(event: &'static str, actor: &str, known: &Known, code: &'static str) {
    let view = &known.view;
    tracing::info!(
        event,
        event_key = format_args!("{}:{}", view.key, view.destination),
        attempts = view.job.attempt.map_or(0, Attempt::get),
        outcome = "refused",
        code,
        actor,
    );
}

/// Whether an attempt is known to have acted, for what is wanted now: a resend asks for the effect anew.
fn reported(known: &Known) -> bool {
    known.view.job.evidence_floor == 0 && timeline::effects(&known.view).lo > 0
}

/// A done entry counts as one effect, confirmed; that it was called off says nothing of what attempts did.
fn with_entry(span: EffectSpan, entry: Option<&LedgerEntry>) -> EffectSpan {
    if !is_done(entry) {
        return span;
    }
    EffectSpan { effect: Effect::Confirmed, lo: span.lo.max(1), hi: span.hi.max(1) }
}

fn is_done(entry: Option<&LedgerEntry>) -> bool {
    entry.is_some_and(|found| {
        found.entry.status == Status::Done && found.entry.outcome != Some(Outcome::Cancelled)
    })
}

fn record_of(view: &AttemptView) -> AttemptRecord {
    AttemptRecord::of(&view.end, view.late.as_ref(), view.commit_heard_at)
}

pub(crate) fn check_reason(reason: &str) -> Result<(), EngineError> {
    if reason.trim().is_empty() || reason.len() > limits::REASON_BYTES_MAX {
        let problem = format!("say why, in 1 to {} bytes", limits::REASON_BYTES_MAX);
        return Err(EngineError::invalid("reason", problem));
    }
    Ok(())
}
