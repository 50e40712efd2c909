//! Jobs and attempts on the wire.

use posthaste_core::{
    Attempt, AttemptOutcome, Cause, Class, DurationMs, Effect, EffectSpan, Evidence, Job, LateReport, Lease,
    MessageId, NextStep, Path, Remaining, State,
};
use posthaste_store::{AttemptView, JobView};
use serde::Serialize;
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{dead_letter::DeadLetterJson, time::Time, wire::EventIdOf};

/// A job: one message owed to one destination.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Job)]
pub(crate) struct JobJson {
    /// `job_…`
    pub(crate) id: String,
    /// `{key}:{destination}`: the identity that receivers guard.
    pub(crate) event_id: String,
    /// `msg_…`
    pub(crate) message_id: Option<String>,
    /// The message's business key.
    pub(crate) key: String,
    /// `scheduled`, `leased`, `committed`, `retryable`, `dead_lettered` or `cancelled`.
    pub(crate) state: &'static str,
    /// The endpoint, queue or source.
    pub(crate) destination: String,
    /// `push` or `pull`.
    pub(crate) kind: &'static str,
    /// Who answers for it.
    pub(crate) owner: Option<Box<str>>,
    /// The number of the last attempt begun.
    pub(crate) attempt: Option<u32>,
    /// Failures charged since it was made, replayed or resent.
    pub(crate) failures: u32,
    /// Lost leases charged since then.
    pub(crate) lost_leases: u32,
    /// The budgets in words: `3 of 25 failures, 1 of 5 lost leases, gives up at 2026-12-04T09:00:00.000Z`; later than that by
    /// what its lane is held meanwhile. `null` in lists.
    pub(crate) budgets: Option<String>,
    /// What the commit rests on: `answered`, `ledger`, `worker` or `reconciled`.
    pub(crate) evidence: Option<&'static str>,
    /// What is known about its effect, from all its attempts and its ledger entry: `none`, `possible`, `reported` or `confirmed`. `null` in
    /// lists.
    pub(crate) effect: Option<&'static str>,
    /// How many effects it may have had. `null` in lists.
    pub(crate) effects: Option<EffectsJson>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) created_at: Time,
    /// The time asked for; never changes.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) scheduled_at: Time,
    /// When the next attempt may start; while one runs, when the job had become due for it.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) due_at: Option<Time>,
    /// When the first attempt began.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) started_at: Option<Time>,
    /// When it was settled.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) finished_at: Option<Time>,
    /// Why it was dead-lettered.
    pub(crate) cause: Option<&'static str>,
    /// The operator's or worker's reason.
    pub(crate) reason: Option<Box<str>>,
    /// The running attempt was asked to stop.
    pub(crate) cancel_requested: bool,
    /// What a retryable job waits for: `attempt`, or `look_up`.
    pub(crate) next_step: Option<&'static str>,
    /// The running attempt's lease.
    pub(crate) lease: Option<LeaseJson>,
    /// Why it was given up, and what can be done; of a dead letter alone, and `null` in lists.
    pub(crate) dead_letter: Option<DeadLetterJson>,
    /// Its attempts, oldest first, the running one last. `null` in lists.
    pub(crate) attempts: Option<Vec<AttemptJson>>,
}

/// How many effects: at least `lo`, at most `hi`.
#[derive(Clone, Copy, Debug, Serialize, ToSchema)]
#[schema(as = Effects)]
pub(crate) struct EffectsJson {
    /// At least.
    pub(crate) lo: u32,
    /// At most.
    pub(crate) hi: u32,
}

/// A running attempt's lease.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Lease)]
pub(crate) struct LeaseJson {
    /// Who has it.
    pub(crate) worker: Box<str>,
    /// Since when.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) leased_at: Time,
    /// Until when, unless it is extended.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) expires_at: Time,
    /// Until when at most.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) deadline_at: Time,
}

/// An attempt: one lease of a job.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = Attempt)]
pub(crate) struct AttemptJson {
    /// Its number, from 1.
    pub(crate) attempt: Option<u32>,
    /// `push` or `pull`.
    pub(crate) kind: &'static str,
    /// The time asked for: the job's.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) scheduled_at: Time,
    /// When the job became due for this attempt.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) due_at: Time,
    /// When it was leased.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) leased_at: Time,
    /// When the work began; `null` if it never did.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) started_at: Option<Time>,
    /// When it ended; `null` while it runs.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) finished_at: Option<Time>,
    /// `first_run` or `retry_after_failure`.
    pub(crate) path: &'static str,
    /// `committed`, `duplicate`, `cancelled`, `failed`, `released` or `lease_lost`; `null` while it runs.
    pub(crate) outcome: Option<&'static str>,
    /// Why it failed.
    pub(crate) class: Option<&'static str>,
    /// What is known about the effect of this attempt.
    pub(crate) effect: Option<&'static str>,
    /// The HTTP status of the answer.
    pub(crate) status: Option<u16>,
    /// How long the exchange or the work took, in milliseconds.
    pub(crate) duration_ms: Option<u64>,
    /// The head of the receiver's answer, as text.
    pub(crate) excerpt: Option<String>,
    /// The reporter's own error code.
    pub(crate) code: Option<Box<str>>,
    /// The error's text.
    pub(crate) message: Option<Box<str>>,
    /// The worker's result.
    #[schema(value_type = Value)]
    pub(crate) result: Option<Box<RawValue>>,
    /// Who had the lease.
    pub(crate) worker: Box<str>,
    /// When the next attempt may start.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) next_at: Option<Time>,
    /// The line of policy that decided what follows.
    pub(crate) policy: Option<String>,
    /// A report that came after the lease had run out.
    pub(crate) late: Option<LateJson>,
    /// When its worker said that it is done, accepted or refused: evidence of the effect, so the job is not run again
    /// once the attempt that runs has ended.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(crate) commit_heard_at: Option<Time>,
}

/// A report that came after its attempt's end.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LateReport)]
pub(crate) struct LateJson {
    /// When it came.
    #[schema(value_type = String, format = DateTime)]
    pub(crate) at: Time,
    /// What it said.
    pub(crate) outcome: &'static str,
    /// Why it failed.
    pub(crate) class: Option<&'static str>,
    /// What is known about the effect.
    pub(crate) effect: &'static str,
    /// The state that the job had after it.
    pub(crate) state: &'static str,
    /// Whether the reporter was told yes.
    pub(crate) accepted: bool,
}

impl JobJson {
    /// A job in a list: without what only its attempts tell.
    pub(crate) fn listed(view: &JobView, message: Option<MessageId>) -> Self {
        let job = &view.job;
        let lease = lease(job);
        let (evidence, cause, next_step) = match &job.state {
            State::Committed { evidence, .. } => (Some(*evidence), None, None),
            State::DeadLettered { cause, .. } => (None, Some(*cause), None),
            State::Retryable { next, .. } => (None, None, Some(*next)),
            State::Scheduled { .. } | State::Leased(_) | State::Cancelled { .. } => (None, None, None),
        };
        Self {
            id: job.id.to_string(),
            event_id: EventIdOf(&view.key, &view.destination).to_string(),
            message_id: message.map(|message| message.to_string()),
            key: view.key.to_string(),
            state: job.state.name().as_str(),
            destination: view.destination.to_string(),
            kind: job.kind.as_str(),
            owner: view.owner.clone(),
            attempt: job.attempt.map(Attempt::get),
            failures: job.budgets.failures,
            lost_leases: job.budgets.lost_leases,
            budgets: None,
            evidence: evidence.map(Evidence::as_str),
            effect: None,
            effects: None,
            created_at: Time(job.created_at),
            scheduled_at: Time(job.scheduled_at),
            due_at: job.state.due_at().or(lease.map(|lease| lease.due_at)).map(Time),
            started_at: job.started_at.map(Time),
            finished_at: job.state.settled_at().map(Time),
            cause: cause.map(Cause::as_str),
            reason: job.reason.clone(),
            cancel_requested: job.cancel_requested,
            next_step: next_step.map(NextStep::as_str),
            lease: lease.map(LeaseJson::of),
            dead_letter: None,
            attempts: None,
        }
    }

    /// The same, with the budgets in words.
    pub(crate) fn with_budgets(self, job: &Job, remaining: Remaining) -> Self {
        Self { budgets: Some(budget_words(job, remaining)), ..self }
    }

    /// A job with its attempts.
    pub(crate) fn whole(view: &JobView, span: EffectSpan, message: Option<MessageId>) -> Self {
        let EffectSpan { effect, lo, hi } = span;
        let ended = view.attempts.iter().map(|attempt| AttemptJson::ended(&view.job, attempt));
        let running = lease(&view.job).map(|lease| AttemptJson::running(&view.job, lease));
        Self {
            effect: Some(effect.as_str()),
            effects: Some(EffectsJson { lo, hi }),
            attempts: Some(ended.chain(running).collect()),
            ..Self::listed(view, message)
        }
    }
}

/// What was used, of how much, and until when at most.
pub(crate) fn budget_words(job: &Job, remaining: Remaining) -> String {
    let Remaining { failures, failures_max, lost_leases, lost_leases_max, gives_up_at } = remaining;
    let used =
        format!("{failures} of {failures_max} failures, {lost_leases} of {lost_leases_max} lost leases");
    if job.state.name().is_settled() { used } else { format!("{used}, gives up at {}", Time(gives_up_at)) }
}

fn lease(job: &Job) -> Option<&Lease> {
    match &job.state {
        State::Leased(lease) => Some(lease),
        State::Scheduled { .. }
        | State::Retryable { .. }
        | State::Committed { .. }
        | State::DeadLettered { .. }
        | State::Cancelled { .. } => None,
    }
}

impl LeaseJson {
    fn of(lease: &Lease) -> Self {
        Self {
            worker: lease.worker.clone(),
            leased_at: Time(lease.leased_at),
            expires_at: Time(lease.expires_at),
            deadline_at: Time(lease.deadline_at),
        }
    }
}

impl AttemptJson {
    pub(crate) fn ended(job: &Job, view: &AttemptView) -> Self {
        let end = &view.end;
        let details = &end.details;
        let measured = end.started_at.map(|started_at| end.finished_at.since(started_at));
        Self {
            attempt: Some(end.attempt.get()),
            kind: end.kind.as_str(),
            scheduled_at: Time(job.scheduled_at),
            due_at: Time(end.due_at),
            leased_at: Time(end.leased_at),
            started_at: end.started_at.map(Time),
            finished_at: Some(Time(end.finished_at)),
            path: end.path.as_str(),
            outcome: Some(AttemptOutcome::as_str(end.report.outcome)),
            class: end.report.class.map(Class::as_str),
            effect: Some(end.report.effect.as_str()),
            status: details.status,
            duration_ms: details.duration.or(measured).map(|DurationMs(ms)| ms),
            excerpt: details.excerpt.as_deref().map(|bytes| String::from_utf8_lossy(bytes).into_owned()),
            code: details.code.clone(),
            message: details.message.clone(),
            result: details.result.as_deref().and_then(|bytes| serde_json::from_slice(bytes).ok()),
            worker: end.worker.clone(),
            next_at: end.next_at.map(Time),
            policy: Some(end.policy.to_string()).filter(|policy| !policy.is_empty()),
            late: view.late.as_ref().map(LateJson::of),
            commit_heard_at: view.commit_heard_at.map(Time),
        }
    }

    fn running(job: &Job, lease: &Lease) -> Self {
        let path = if job.failed_before { Path::RetryAfterFailure } else { Path::FirstRun };
        Self {
            attempt: job.attempt.map(Attempt::get),
            kind: job.kind.as_str(),
            scheduled_at: Time(job.scheduled_at),
            due_at: Time(lease.due_at),
            leased_at: Time(lease.leased_at),
            started_at: lease.started_at.map(Time),
            finished_at: None,
            path: path.as_str(),
            outcome: None,
            class: None,
            effect: None,
            status: None,
            duration_ms: None,
            excerpt: None,
            code: None,
            message: None,
            result: None,
            worker: lease.worker.clone(),
            next_at: None,
            policy: None,
            late: None,
            commit_heard_at: None,
        }
    }
}

impl LateJson {
    fn of(late: &LateReport) -> Self {
        Self {
            at: Time(late.at),
            outcome: late.report.outcome.as_str(),
            class: late.report.class.map(Class::as_str),
            effect: Effect::as_str(late.report.effect),
            state: late.state.as_str(),
            accepted: late.accepted,
        }
    }
}
