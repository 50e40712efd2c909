//! The only place that decides what a job becomes.
//!
//! Facts are kept on attempts and ledger entries; the state is decided from them. Nothing here reads a clock,
//! draws a random number or does IO.

use crate::{
    Answer, Attempt, Command, CommandName, Decision, Entry, Evidence, Facts, Fence, Job, Lease, Nature,
    NextStep, Path, Policy, Refusal, RowWrite, Start, State, StateName, Timestamp, Verdict, operator, report,
};

/// What every rule needs beside the job.
#[derive(Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) facts: &'a Facts,
    pub(crate) policy: &'a Policy,
    pub(crate) command: CommandName,
    pub(crate) now: Timestamp,
}

/// Decides one command on one job, as of `now`.
pub fn transition(job: &Job, facts: &Facts, command: &Command, policy: &Policy, now: Timestamp) -> Verdict {
    let context = Context { facts, policy, command: command.name(), now };
    match command {
        Command::Lease { .. } => lease(job, &context, command),
        Command::Start { fence } => start(job, &context, *fence),
        Command::Extend { fence, .. } => extend(job, &context, *fence, command),
        Command::Finish { .. } => report::finish(job, &context, command),
        Command::Fail { fence, failure, details } => report::fail(job, &context, *fence, failure, details),
        Command::Release { fence } => report::release(job, &context, *fence),
        Command::Expire => report::expire(job, &context),
        Command::Cancel { reason } => operator::cancel(job, &context, reason),
        Command::Settle { evidence } => operator::settle(job, &context, *evidence),
        Command::Replay { .. } => operator::replay(job, &context, command),
        Command::Resend { seen, reason } => operator::resend(job, &context, *seen, reason),
        Command::Abandon { cause } => operator::abandon(job, &context, *cause),
        Command::LookUp { .. } => operator::look_up(job, &context, command),
    }
}

impl Context<'_> {
    pub(crate) fn wrong_state(&self, job: &Job) -> Verdict {
        Verdict::Refused(Refusal::WrongState { state: job.state.name(), command: self.command })
    }

    pub(crate) fn write(
        &self,
        job: &Job,
        next: Job,
        row: Option<RowWrite>,
        reply: Result<Answer, Refusal>,
        nature: Nature,
    ) -> Verdict {
        let decision = Decision { from: job.state.name(), command: self.command, next, row, reply, nature };
        Verdict::Write(Box::new(decision))
    }

    /// Writes `next` and answers with its state.
    pub(crate) fn moved(&self, job: &Job, next: Job, row: Option<RowWrite>, nature: Nature) -> Verdict {
        let answer = Answer::Moved { state: next.state.name(), due_at: next.state.due_at() };
        self.write(job, next, row, Ok(answer), nature)
    }
}

/// Whether what is known beside the job's attempts says how it ended: a ledger entry that is done, or a commit that was
/// heard. [`Command::Settle`] then settles it, if it waits after an attempt or is a dead letter.
pub fn is_settled_by_evidence(job: &Job, entry: Entry) -> bool {
    matches!(job.state, State::Retryable { .. } | State::DeadLettered { .. })
        && evidence_of(job, entry, Timestamp(0)).is_some()
}

/// The state that evidence beside the running attempt calls for, and the line of policy that says so.
pub(crate) fn settled_by_evidence(job: &Job, context: &Context<'_>) -> Option<(State, &'static str)> {
    evidence_of(job, context.facts.entry, context.now)
}

fn evidence_of(job: &Job, entry: Entry, at: Timestamp) -> Option<(State, &'static str)> {
    // A resend asks for the effect again: what the entry said of the first one doesn't answer that.
    let entry = if job.evidence_floor == 0 { entry } else { Entry::Unknown };
    match entry {
        Entry::Done => {
            return Some((
                State::Committed { at, evidence: Evidence::Ledger },
                "ledger entry is done: committed",
            ));
        }
        Entry::DoneCancelled => {
            return Some((State::Cancelled { at }, "ledger entry is done as cancelled: cancelled"));
        }
        Entry::Unknown | Entry::NotDone => {}
    }
    job.commit_heard.map(|_| {
        let state = State::Committed { at, evidence: Evidence::Reconciled };
        (state, "an earlier attempt's commit was heard: committed")
    })
}

fn lease(job: &Job, context: &Context<'_>, command: &Command) -> Verdict {
    let (State::Scheduled { due_at } | State::Retryable { due_at, .. }) = job.state else {
        return context.wrong_state(job);
    };
    if context.now < due_at {
        return Verdict::Refused(Refusal::NotDue { due_at });
    }
    if let Some((state, _)) = settled_by_evidence(job, context) {
        let next = Job { state, ..job.clone() };
        return context.moved(job, next, None, Nature::SettledInstead);
    }
    if matches!(job.state, State::Retryable { next: NextStep::LookUp, .. }) {
        return Verdict::Refused(Refusal::LookUpOwed);
    }
    let Command::Lease { worker, lease_for, deadline_after, starts } = command else {
        return context.wrong_state(job);
    };
    let Some(attempt) = Attempt::following(job.attempt) else {
        return context.wrong_state(job);
    };
    let started_at = (*starts == Start::WithLease).then_some(context.now);
    let deadline_at = context.now.after(*deadline_after);
    let taken = Lease {
        worker: worker.clone(),
        due_at,
        leased_at: context.now,
        started_at,
        expires_at: context.now.after(*lease_for).min(deadline_at),
        deadline_at,
    };
    let next = Job {
        state: State::Leased(taken),
        attempt: Some(attempt),
        started_at: job.started_at.or(started_at),
        ..job.clone()
    };
    let fence = Fence { epoch: context.facts.epoch, attempt };
    let answer = Answer::Leased { fence, path: path(job) };
    context.write(job, next, None, Ok(answer), Nature::Plain)
}

/// The named path of the attempt that is running, or would begin now.
pub(crate) fn path(job: &Job) -> Path {
    if job.failed_before { Path::RetryAfterFailure } else { Path::FirstRun }
}

/// Checks that `fence` names the attempt that is running, and gives its lease.
fn running<'a>(job: &'a Job, context: &Context<'_>, fence: Fence) -> Result<&'a Lease, Refusal> {
    if fence.epoch != context.facts.epoch || Some(fence.attempt) != job.attempt {
        return Err(Refusal::StaleFence { current: job.attempt });
    }
    match &job.state {
        State::Leased(lease) if context.now < lease.expires_at => Ok(lease),
        State::Leased(_) => Err(Refusal::LeaseExpired),
        State::Scheduled { .. } | State::Retryable { .. } | State::DeadLettered { .. } => {
            let own = context.facts.own.filter(|own| own.attempt == fence.attempt);
            match own.and_then(|own| own.heard_report()) {
                Some((report, ..)) => Err(Refusal::AlreadyReported { report }),
                None => Err(Refusal::LeaseExpired),
            }
        }
        State::Committed { .. } | State::Cancelled { .. } => {
            Err(Refusal::AlreadySettled { state: job.state.name() })
        }
    }
}

fn start(job: &Job, context: &Context<'_>, fence: Fence) -> Verdict {
    let lease = match running(job, context, fence) {
        Ok(lease) => lease,
        Err(refusal) => return Verdict::Refused(refusal),
    };
    if lease.started_at.is_some() {
        return Verdict::Recorded(Answer::Moved { state: StateName::Leased, due_at: None });
    }
    let started_at = Some(context.now);
    let next = Job {
        state: State::Leased(Lease { started_at, ..lease.clone() }),
        started_at: job.started_at.or(started_at),
        ..job.clone()
    };
    context.moved(job, next, None, Nature::Plain)
}

fn extend(job: &Job, context: &Context<'_>, fence: Fence, command: &Command) -> Verdict {
    let lease = match running(job, context, fence) {
        Ok(lease) => lease,
        Err(refusal) => return Verdict::Refused(refusal),
    };
    let Command::Extend { lease_for, checkpoint, .. } = command else {
        return context.wrong_state(job);
    };
    let expires_at = context.now.after(*lease_for).min(lease.deadline_at);
    let next = Job {
        state: State::Leased(Lease { expires_at, ..lease.clone() }),
        checkpoint: checkpoint.clone().or_else(|| job.checkpoint.clone()),
        ..job.clone()
    };
    let answer = Answer::Extended { expires_at, cancel_requested: job.cancel_requested };
    context.write(job, next, None, Ok(answer), Nature::Plain)
}
