//! Reports that come after their attempt's end: of a lost lease, of a superseded attempt, of a settled job.

use crate::{
    AttemptOutcome, AttemptRecord, Details, Effect, Failure, Fence, Job, LateReport, Nature, Refusal, Report,
    RowWrite, State, Verdict,
    report::{Follows, dead_letter, due_after_failure, follows, is_commit, retry_or},
    transition::{Context, settled_by_evidence},
};

/// A first report on a job that is settled by other means: written down, state unchanged. A commit on a committed
/// job is told yes; it may be a second effect, which `explain` then shows.
pub(crate) fn after_the_end(
    job: &Job,
    context: &Context<'_>,
    fence: Fence,
    report: Report,
    details: &Details,
) -> Verdict {
    let refusal = Refusal::AlreadySettled { state: job.state.name() };
    let committed = matches!(job.state, State::Committed { .. });
    let worth_writing = match report.outcome {
        AttemptOutcome::Committed | AttemptOutcome::Duplicate | AttemptOutcome::Cancelled => true,
        AttemptOutcome::Failed => !committed,
        AttemptOutcome::Released | AttemptOutcome::LeaseLost => false,
    };
    if !worth_writing {
        return Verdict::Refused(refusal);
    }
    let accepted = committed && is_commit(report);
    let row = row_of_late(context, Late { fence, report, details, next: job, accepted });
    if accepted {
        return context.moved(job, job.clone(), Some(row), Nature::Heard);
    }
    context.write(job, job.clone(), Some(row), Err(refusal), Nature::Heard)
}

/// Refuses a report, but notes its commit, so that no needless attempt follows; any other leaves no trace.
pub(crate) fn heard(
    job: &Job,
    context: &Context<'_>,
    own: Option<AttemptRecord>,
    report: Report,
    refusal: Refusal,
) -> Verdict {
    let Some(own) = own.filter(|own| is_commit(report) && own.commit_heard_at.is_none()) else {
        return Verdict::Refused(refusal);
    };
    let counts = own.attempt.get() > job.evidence_floor;
    let commit_heard = job.commit_heard.or(counts.then_some(own.attempt));
    let row = RowWrite::Heard { attempt: own.attempt, at: context.now };
    context.write(job, Job { commit_heard, ..job.clone() }, Some(row), Err(refusal), Nature::Heard)
}

/// A failure that is reported after Expire ended the attempt: the lost lease is given back and the failure is
/// charged in its place, so that one attempt is charged once.
pub(crate) fn late_failure(
    job: &Job,
    context: &Context<'_>,
    fence: Fence,
    failure: &Failure,
    report: Report,
    details: &Details,
) -> Verdict {
    let mut next = job.clone();
    if matches!(job.state, State::Retryable { .. }) {
        if let Some((state, _)) = settled_by_evidence(job, context) {
            next.state = state;
        } else {
            charge_instead(&mut next, failure, context);
        }
    }
    let row = row_of_late(context, Late { fence, report, details, next: &next, accepted: true });
    context.moved(job, next, Some(row), Nature::Late)
}

fn charge_instead(next: &mut Job, failure: &Failure, context: &Context<'_>) {
    // An attempt that was lost before its start was not charged.
    if context.facts.own.is_some_and(|own| own.report.effect > Effect::None) {
        next.budgets.lost_leases = next.budgets.lost_leases.saturating_sub(1);
    }
    next.abandon = None;
    let waits_until = next.state.due_at().unwrap_or(context.now);
    match follows(next, failure, context) {
        Follows::End(cause, _) => dead_letter(next, cause, context),
        Follows::Step { step, nth, beyond, .. } => {
            // The wait for the lost lease runs already; only the receiver's own word makes it longer.
            let asked = failure.retry_after.map(|_| due_after_failure(next, nth, failure, context));
            retry_or(next, asked.map_or(waits_until, |at| at.max(waits_until)), step, beyond, context);
        }
    }
}

/// A report that came late, for its row.
#[derive(Clone, Copy)]
pub(crate) struct Late<'a> {
    pub(crate) fence: Fence,
    pub(crate) report: Report,
    pub(crate) details: &'a Details,
    /// The job as it is after it.
    pub(crate) next: &'a Job,
    /// Whether its reporter is told yes.
    pub(crate) accepted: bool,
}

pub(crate) fn row_of_late(context: &Context<'_>, late: Late<'_>) -> RowWrite {
    let Late { fence, report, details, next, accepted } = late;
    let fresh = context.facts.own.is_some_and(|own| own.commit_heard_at.is_none());
    let late = LateReport {
        attempt: fence.attempt,
        at: context.now,
        report,
        state: next.state.name(),
        next_at: next.state.due_at(),
        accepted,
        details: details.clone(),
    };
    RowWrite::Late {
        report: Box::new(late),
        commit_heard_at: (is_commit(report) && fresh).then_some(context.now),
    }
}
