//! What operators, evidence and the engine itself ask of a job.

use crate::{
    Answer, Attempt, Budgets, CancelAnswer, Cause, Command, Evidence, Job, Nature, NextStep, Refusal, Share,
    State, StateName, Verdict,
    command::LookUpVerdict,
    report::{dead_letter, retry_or, row_of_cancel},
    transition::{Context, settled_by_evidence},
};

pub(crate) fn cancel(job: &Job, context: &Context<'_>, reason: &str) -> Verdict {
    let cancelled =
        || Job { state: State::Cancelled { at: context.now }, reason: Some(reason.into()), ..job.clone() };
    let write =
        |next: Job, row, answer| context.write(job, next, row, Ok(Answer::Cancel(answer)), Nature::Plain);
    match &job.state {
        State::Scheduled { .. } | State::Retryable { .. } | State::DeadLettered { .. } => {
            write(cancelled(), None, CancelAnswer::Cancelled)
        }
        State::Leased(lease) if lease.started_at.is_none() => {
            let next = cancelled();
            let row = row_of_cancel(job, lease, context, &next);
            write(next, Some(row), CancelAnswer::Cancelled)
        }
        State::Leased(_) if job.cancel_requested => {
            Verdict::Recorded(Answer::Cancel(CancelAnswer::Requested))
        }
        State::Leased(_) => {
            let next = Job { cancel_requested: true, reason: Some(reason.into()), ..job.clone() };
            write(next, None, CancelAnswer::Requested)
        }
        State::Committed { .. } => Verdict::Recorded(Answer::Cancel(CancelAnswer::TooLate)),
        State::Cancelled { .. } => Verdict::Recorded(Answer::Cancel(CancelAnswer::Cancelled)),
    }
}

pub(crate) fn settle(job: &Job, context: &Context<'_>, evidence: Evidence) -> Verdict {
    if !matches!(job.state, State::Retryable { .. } | State::DeadLettered { .. }) {
        return context.wrong_state(job);
    }
    let state = match settled_by_evidence(job, context) {
        Some((state, _)) => state,
        // Evidence from outside: a look-up that found it, or a person who did.
        None if evidence == Evidence::Reconciled => State::Committed { at: context.now, evidence },
        None => return context.wrong_state(job),
    };
    context.moved(job, Job { state, ..job.clone() }, None, Nature::Plain)
}

pub(crate) fn replay(job: &Job, context: &Context<'_>, command: &Command) -> Verdict {
    let (State::DeadLettered { cause, .. }, Command::Replay { seen, assume_not_done, reason }) =
        (&job.state, command)
    else {
        return context.wrong_state(job);
    };
    if *seen != job.attempt {
        return Verdict::Refused(Refusal::AttemptChanged { current: job.attempt });
    }
    if let Some((state, _)) = settled_by_evidence(job, context) {
        let next = Job { state, reason: Some(reason.clone()), ..job.clone() };
        return context.moved(job, next, None, Nature::SettledInstead);
    }
    let span = context.facts.span;
    if span.lo > 0 && job.evidence_floor == 0 {
        let state = State::Committed { at: context.now, evidence: Evidence::Reconciled };
        let next = Job { state, reason: Some(reason.clone()), ..job.clone() };
        return context.moved(job, next, None, Nature::SettledInstead);
    }
    // An entry that is not done is no proof: only a receiver that is declared to guard the key makes a second
    // delivery harmless.
    if span.hi > 0 && !context.policy.idempotent && !assume_not_done {
        return Verdict::Refused(Refusal::OutcomeUnknown { span, cause: *cause });
    }
    context.moved(job, round_again(job, context, reason), None, Nature::Plain)
}

pub(crate) fn resend(job: &Job, context: &Context<'_>, seen: Option<Attempt>, reason: &str) -> Verdict {
    if !matches!(job.state, State::Committed { .. }) {
        return context.wrong_state(job);
    }
    if seen != job.attempt {
        return Verdict::Refused(Refusal::AttemptChanged { current: job.attempt });
    }
    let next = Job {
        commit_heard: None,
        evidence_floor: job.attempt.map_or(0, Attempt::get),
        // Left for a successor on the way to an effect that is now wanted anew, from its beginning.
        checkpoint: None,
        ..round_again(job, context, reason)
    };
    context.moved(job, next, None, Nature::Plain)
}

/// The same job again, due now, with fresh budgets. Attempt numbers go on.
fn round_again(job: &Job, context: &Context<'_>, reason: &str) -> Job {
    Job {
        state: State::Scheduled { due_at: context.now },
        share: Share::Bulk,
        budgets: Budgets::fresh(context.now, context.facts.lane_held_ms),
        cancel_requested: false,
        abandon: None,
        reason: Some(reason.into()),
        ..job.clone()
    }
}

pub(crate) fn abandon(job: &Job, context: &Context<'_>, cause: Cause) -> Verdict {
    match job.state.name() {
        StateName::Scheduled | StateName::Retryable => {
            let mut next = job.clone();
            dead_letter(&mut next, cause, context);
            context.moved(job, next, None, Nature::Plain)
        }
        StateName::Leased if job.abandon.is_some() => {
            Verdict::Recorded(Answer::Moved { state: StateName::Leased, due_at: None })
        }
        StateName::Leased => {
            let next = Job { abandon: Some(cause), ..job.clone() };
            context.moved(job, next, None, Nature::Plain)
        }
        StateName::DeadLettered => quarantined_again(job, context, cause),
        StateName::Committed | StateName::Cancelled => context.wrong_state(job),
    }
}

/// What is quarantined was looked at again and is refused for another reason than before: shown so. Row A2.
fn quarantined_again(job: &Job, context: &Context<'_>, cause: Cause) -> Verdict {
    let State::DeadLettered { at, cause: before } = job.state else { return context.wrong_state(job) };
    if job.attempt.is_some() || !before.is_quarantine() || !cause.is_quarantine() {
        return context.wrong_state(job);
    }
    if before == cause {
        return Verdict::Recorded(Answer::Moved { state: StateName::DeadLettered, due_at: None });
    }
    let next = Job { state: State::DeadLettered { at, cause }, ..job.clone() };
    context.moved(job, next, None, Nature::Plain)
}

pub(crate) fn look_up(job: &Job, context: &Context<'_>, command: &Command) -> Verdict {
    let (
        State::Retryable { next: NextStep::LookUp, .. },
        &Command::LookUp { seen, asked_at, verdict, settled_at, .. },
    ) = (&job.state, command)
    else {
        return context.wrong_state(job);
    };
    if seen != job.attempt {
        return Verdict::Refused(Refusal::AttemptChanged { current: job.attempt });
    }
    let mut next = job.clone();
    if let Some((state, _)) = settled_by_evidence(job, context) {
        next.state = state;
        return context.moved(job, next, None, Nature::SettledInstead);
    }
    match verdict {
        LookUpVerdict::Present => {
            next.state = State::Committed { at: context.now, evidence: Evidence::Reconciled };
        }
        LookUpVerdict::Absent if asked_at >= settled_at => {
            next.budgets.uncharged = 0;
            match next.abandon {
                Some(cause) => dead_letter(&mut next, cause, context),
                None => next.state = State::Retryable { due_at: context.now, next: NextStep::Attempt },
            }
        }
        LookUpVerdict::Absent | LookUpVerdict::InProgress | LookUpVerdict::Unsure => {
            next.budgets.uncharged = next.budgets.uncharged.saturating_add(1);
            let again =
                context.policy.next_due(job.id, job.attempt, next.budgets.uncharged, None, context.now);
            let due_at = if verdict == LookUpVerdict::Absent { again.max(settled_at) } else { again };
            retry_or(&mut next, due_at, NextStep::LookUp, Cause::OutcomeUnknown, context);
        }
    }
    context.moved(job, next, None, Nature::Plain)
}
