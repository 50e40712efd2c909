//! How an attempt ends: by its worker's report, in time or late, or because its lease ran out.

use std::borrow::Cow;

use crate::{
    AttemptEnd, AttemptOutcome, Cause, Class, Command, Details, Disposition, Effect, Evidence, Failure,
    Fence, FinishOutcome, Job, Lease, Nature, NextStep, OnUnknown, Policy, Refusal, Report, RetryWish,
    RowWrite, Share, State, Timestamp, Verdict,
    backoff::release_delay,
    late::{Late, after_the_end, heard, late_failure, row_of_late},
    transition::{Context, path, settled_by_evidence},
};

/// Where a report stands towards the job.
enum Standing<'a> {
    /// Its attempt is running.
    Running(&'a Lease),
    /// Its attempt is the last, our Expire ended it, and no report of it is recorded.
    Late,
    /// It is answered already, or refused.
    Settled(Verdict),
}

pub(crate) fn finish(job: &Job, context: &Context<'_>, command: &Command) -> Verdict {
    let Command::Finish { fence, outcome, evidence, reason, details } = command else {
        return context.wrong_state(job);
    };
    let report = Report {
        outcome: outcome.attempt_outcome(),
        class: None,
        effect: match (outcome, evidence) {
            (FinishOutcome::Cancelled, _) => Effect::None,
            (_, Evidence::Ledger) => Effect::Confirmed,
            (_, Evidence::Answered | Evidence::Worker | Evidence::Reconciled) => Effect::Reported,
        },
        wish: None,
    };
    let state = match outcome {
        FinishOutcome::Committed | FinishOutcome::Duplicate => {
            State::Committed { at: context.now, evidence: *evidence }
        }
        FinishOutcome::Cancelled => State::Cancelled { at: context.now },
    };
    // "It no longer applies" may be so because an older attempt did it: then the job is committed.
    let evidence = match outcome {
        FinishOutcome::Committed | FinishOutcome::Duplicate => None,
        FinishOutcome::Cancelled => settled_by_evidence(job, context),
    };
    let (state, line) = evidence.unwrap_or((state, "reported"));
    // Why an operator called it off is shown for ever; the worker only confirms it.
    let reason = if job.cancel_requested { &None } else { reason };
    let next = Job { state, reason: reason.clone().or_else(|| job.reason.clone()), ..job.clone() };
    match standing(job, context, *fence, report, details) {
        Standing::Settled(verdict) => verdict,
        Standing::Running(lease) => {
            let end = End { report, reported: true, details, line: Cow::Borrowed(line) };
            let row = row_of_end(job, lease, context, end, &next);
            context.moved(job, next, Some(row), Nature::Plain)
        }
        Standing::Late => {
            let row =
                row_of_late(context, Late { fence: *fence, report, details, next: &next, accepted: true });
            context.moved(job, next, Some(row), Nature::Late)
        }
    }
}

pub(crate) fn fail(
    job: &Job,
    context: &Context<'_>,
    fence: Fence,
    failure: &Failure,
    details: &Details,
) -> Verdict {
    let report = Report {
        outcome: AttemptOutcome::Failed,
        class: Some(failure.class),
        effect: failure.effect,
        wish: Some(failure.wish),
    };
    match standing(job, context, fence, report, details) {
        Standing::Settled(verdict) => verdict,
        Standing::Running(lease) => {
            let otherwise = |next: &mut Job| match follows(next, failure, context) {
                Follows::End(cause, line) => {
                    dead_letter(next, cause, context);
                    with_rule(line, failure, context)
                }
                Follows::Step { step, nth, beyond, line } => {
                    let due_at = due_after_failure(next, nth, failure, context);
                    retry_or(next, due_at, step, beyond, context);
                    with_rule(line, failure, context)
                }
            };
            end_without_success(
                job,
                lease,
                context,
                &End { report, reported: true, details, line: Cow::Borrowed("") },
                otherwise,
            )
        }
        Standing::Late => late_failure(job, context, fence, failure, report, details),
    }
}

pub(crate) fn release(job: &Job, context: &Context<'_>, fence: Fence) -> Verdict {
    let report = Report { outcome: AttemptOutcome::Released, class: None, effect: Effect::None, wish: None };
    match standing(job, context, fence, report, &Details::default()) {
        Standing::Settled(verdict) => verdict,
        // A lost lease was charged, or ended as the destination's policy said: giving it back changes nothing.
        Standing::Late => Verdict::Refused(Refusal::LeaseExpired),
        Standing::Running(lease) => {
            let details = Details::default();
            let end = End { report, reported: true, details: &details, line: Cow::Borrowed("") };
            end_without_success(job, lease, context, &end, |next| {
                let due_at = context.now.after(release_delay(next.budgets.uncharged));
                next.budgets.uncharged = next.budgets.uncharged.saturating_add(1);
                next.state = if next.failed_before {
                    State::Retryable { due_at, next: NextStep::Attempt }
                } else {
                    State::Scheduled { due_at }
                };
                "released untried: not charged".into()
            })
        }
    }
}

pub(crate) fn expire(job: &Job, context: &Context<'_>) -> Verdict {
    let State::Leased(lease) = &job.state else {
        return context.wrong_state(job);
    };
    if context.now < lease.expires_at {
        return Verdict::Refused(Refusal::NotExpired { expires_at: lease.expires_at });
    }
    let started = lease.started_at.is_some();
    let report = Report {
        outcome: AttemptOutcome::LeaseLost,
        class: Some(Class::LeaseLost),
        effect: if started { Effect::Possible } else { Effect::None },
        wish: None,
    };
    let details = Details::default();
    end_without_success(
        job,
        lease,
        context,
        &End { report, reported: false, details: &details, line: Cow::Borrowed("") },
        |next| {
            next.failed_before = true;
            if !started {
                retryable(next, context.now, NextStep::Attempt);
                return "lease lost before the start: retried, not charged".into();
            }
            after_lost_lease(next, context).into()
        },
    )
}

fn after_lost_lease(next: &mut Job, context: &Context<'_>) -> &'static str {
    next.budgets.uncharged = 0;
    if context.policy.on_unknown == OnUnknown::DeadLetter {
        dead_letter(next, Cause::OutcomeUnknown, context);
        return "lease lost, on_unknown = dead_letter";
    }
    next.budgets.lost_leases = next.budgets.lost_leases.saturating_add(1);
    let spent = next.budgets.lost_leases >= context.policy.lost_leases_max;
    let due_at = context.policy.next_due(next.id, next.attempt, charged(next), None, context.now);
    if matches!(context.policy.on_unknown, OnUnknown::Reconcile { .. }) {
        // Even then: whether it happened can still be found out.
        next.abandon = spent.then_some(Cause::LeaseLost);
        retry_or(next, due_at, NextStep::LookUp, Cause::OutcomeUnknown, context);
        return "lease lost, on_unknown = reconcile";
    }
    if spent {
        dead_letter(next, Cause::LeaseLost, context);
        return "the budget of lost leases is spent";
    }
    retry_or(next, due_at, NextStep::Attempt, Cause::Exhausted, context);
    "lease lost, on_unknown = retry"
}

/// Looks the attempt's own row up before it compares the fence, as the architecture asks.
fn standing<'a>(
    job: &'a Job,
    context: &Context<'_>,
    fence: Fence,
    report: Report,
    details: &Details,
) -> Standing<'a> {
    let stale = || Refusal::StaleFence { current: job.attempt };
    let given = job.attempt.is_some_and(|last| fence.attempt <= last);
    if fence.epoch != context.facts.epoch || !given {
        return Standing::Settled(Verdict::Refused(stale()));
    }
    let own = context.facts.own.filter(|own| own.attempt == fence.attempt);
    if let Some((recorded, answer)) = own.and_then(|own| own.recorded_answer()) {
        if recorded == report {
            return Standing::Settled(answer.map_or_else(Verdict::Refused, Verdict::Recorded));
        }
        let refusal = Refusal::AlreadyReported { report: recorded };
        return Standing::Settled(heard(job, context, own, report, refusal));
    }
    if Some(fence.attempt) != job.attempt {
        return Standing::Settled(heard(job, context, own, report, stale()));
    }
    match (&job.state, own) {
        (State::Leased(lease), _) => Standing::Running(lease),
        (State::Scheduled { .. } | State::Retryable { .. } | State::DeadLettered { .. }, Some(_))
            if fence.attempt.get() > job.evidence_floor =>
        {
            Standing::Late
        }
        (State::Committed { .. } | State::Cancelled { .. }, Some(_)) => {
            Standing::Settled(after_the_end(job, context, fence, report, details))
        }
        (_, own) => Standing::Settled(heard(job, context, own, report, stale())),
    }
}

pub(crate) fn is_commit(report: Report) -> bool {
    matches!(report.outcome, AttemptOutcome::Committed | AttemptOutcome::Duplicate)
}

/// How an attempt ended, for its row.
struct End<'a> {
    report: Report,
    reported: bool,
    details: &'a Details,
    line: Cow<'static, str>,
}

/// Ends the running attempt: evidence first, then what was asked for meanwhile, then `otherwise`, which sets the
/// state and names the line of policy that decided.
fn end_without_success(
    job: &Job,
    lease: &Lease,
    context: &Context<'_>,
    end: &End<'_>,
    otherwise: impl FnOnce(&mut Job) -> Cow<'static, str>,
) -> Verdict {
    let mut next = job.clone();
    let line = if let Some((state, line)) = settled_by_evidence(job, context) {
        next.state = state;
        line.into()
    } else if job.cancel_requested {
        next.state = State::Cancelled { at: context.now };
        "a cancel was requested".into()
    } else if let Some(cause) = job.abandon {
        dead_letter(&mut next, cause, context);
        "the job was abandoned while it ran".into()
    } else {
        otherwise(&mut next)
    };
    let row = row_of_end(
        job,
        lease,
        context,
        End { line, report: end.report, reported: end.reported, details: end.details },
        &next,
    );
    context.moved(job, next, Some(row), Nature::Plain)
}

/// The line, with the destination's own rule where that decided.
fn with_rule(line: &'static str, failure: &Failure, context: &Context<'_>) -> Cow<'static, str> {
    let own = failure.by.filter(|_| failure.wish == RetryWish::ByTable);
    match own.and_then(|at| context.policy.class_rule(at)) {
        Some(rule) => format!("{line}, by {}", rule.line).into(),
        None => line.into(),
    }
}

/// What a failure calls for.
pub(crate) enum Follows {
    /// No other attempt.
    End(Cause, &'static str),
    /// Another step.
    Step {
        /// Which.
        step: NextStep,
        /// The how-maniest in a row, for the backoff.
        nth: u32,
        /// The cause if the horizon ends first.
        beyond: Cause,
        /// The line of policy.
        line: &'static str,
    },
}

/// Charges a failure, and says what it calls for. Where the effect is possible the destination's policy comes
/// before the failure's class.
pub(crate) fn follows(next: &mut Job, failure: &Failure, context: &Context<'_>) -> Follows {
    next.failed_before = true;
    let unknown = failure.effect >= Effect::Possible;
    if unknown && context.policy.on_unknown == OnUnknown::DeadLetter {
        return Follows::End(Cause::OutcomeUnknown, "the effect is possible, on_unknown = dead_letter");
    }
    let look_up = unknown && matches!(context.policy.on_unknown, OnUnknown::Reconcile { .. });
    let disposition = failure.follows();
    let end = match disposition {
        Disposition::Gone => Some((Cause::EndpointGone, "the endpoint is gone")),
        Disposition::PermanentMessage | Disposition::PermanentDestination => {
            Some((Cause::Permanent, "the failure is permanent"))
        }
        Disposition::InProgress => {
            next.budgets.uncharged = next.budgets.uncharged.saturating_add(1);
            None
        }
        Disposition::Retry => {
            next.budgets.uncharged = 0;
            next.budgets.failures = next.budgets.failures.saturating_add(1);
            let spent = next.budgets.failures >= context.policy.failures_allowed();
            spent.then_some((Cause::Exhausted, "the budget of failures is spent"))
        }
    };
    let in_progress = disposition == Disposition::InProgress;
    let nth = if in_progress { next.budgets.uncharged } else { charged(next) };
    match (end, look_up) {
        (Some((cause, line)), false) => Follows::End(cause, line),
        (end, true) => {
            next.abandon = end.map(|(cause, _)| cause);
            let line = "the effect is possible, on_unknown = reconcile";
            Follows::Step { step: NextStep::LookUp, nth, beyond: Cause::OutcomeUnknown, line }
        }
        (None, false) => {
            let (beyond, line) = if in_progress {
                (Cause::OutcomeUnknown, "in progress elsewhere: not charged")
            } else {
                (Cause::Exhausted, "retried after backoff")
            };
            Follows::Step { step: NextStep::Attempt, nth, beyond, line }
        }
    }
}

pub(crate) fn charged(job: &Job) -> u32 {
    job.budgets.failures.saturating_add(job.budgets.lost_leases)
}

/// When the next step may begin after a failure that is the `nth` of its kind.
pub(crate) fn due_after_failure(job: &Job, nth: u32, failure: &Failure, context: &Context<'_>) -> Timestamp {
    let next =
        if failure.follows() == Disposition::InProgress { Policy::next_asked } else { Policy::next_due };
    next(context.policy, job.id, job.attempt, nth, failure.retry_after, context.now)
}

/// Makes the job retryable at `due_at`, or dead-letters it with `cause` if that is beyond its horizon.
pub(crate) fn retry_or(
    next: &mut Job,
    due_at: Timestamp,
    step: NextStep,
    cause: Cause,
    context: &Context<'_>,
) {
    if due_at > next.budgets.horizon_at(context.policy, context.facts.lane_held_ms) {
        dead_letter(next, cause, context);
        return;
    }
    retryable(next, due_at, step);
}

/// Makes the job retryable at `due_at`; what failed or was lost is fresh work no more.
fn retryable(next: &mut Job, due_at: Timestamp, step: NextStep) {
    next.share = if next.share == Share::Bulk { Share::Bulk } else { Share::Retry };
    next.state = State::Retryable { due_at, next: step };
}

pub(crate) fn dead_letter(next: &mut Job, cause: Cause, context: &Context<'_>) {
    next.state = State::DeadLettered { at: context.now, cause };
    next.abandon = None;
}

fn row_of_end(job: &Job, lease: &Lease, context: &Context<'_>, end: End<'_>, next: &Job) -> RowWrite {
    let attempt = job.attempt.expect("a leased job has an attempt: the row codec checks it");
    let row = AttemptEnd {
        attempt,
        kind: job.kind,
        path: path(job),
        worker: lease.worker.clone(),
        due_at: lease.due_at,
        leased_at: lease.leased_at,
        started_at: lease.started_at,
        finished_at: context.now,
        report: end.report,
        reported: end.reported,
        state: next.state.name(),
        next_at: next.state.due_at(),
        policy: end.line,
        details: end.details.clone(),
    };
    RowWrite::End { row: Box::new(row), commit_heard_at: is_commit(end.report).then_some(context.now) }
}

/// The row of an attempt that is called off before it began.
pub(crate) fn row_of_cancel(job: &Job, lease: &Lease, context: &Context<'_>, next: &Job) -> RowWrite {
    let report = Report { outcome: AttemptOutcome::Cancelled, class: None, effect: Effect::None, wish: None };
    let details = Details::default();
    let line = Cow::Borrowed("cancelled before it began");
    let end = End { report, reported: false, details: &details, line };
    row_of_end(job, lease, context, end, next)
}
