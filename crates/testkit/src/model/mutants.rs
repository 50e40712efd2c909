//! Faults on purpose: each wraps the real functions and leaves one rule out. A model that doesn't notice proves nothing.

use posthaste_core::{
    Answer, AttemptRecord, Classified, Command, CommandName, Disposition, Effect, EffectSpan, Facts, Fence,
    FinishOutcome, Job, NextStep, Reading, Refusal, RowWrite, State, StateName, Timestamp,
};

use super::{
    job_row::{BEFORE, NOW, PAST},
    rules::{Asked, Ruling, SenderRules},
    sentences::sentences,
    wire::Said,
};

sentences! {
    /// A fault in the sender.
    SenderMutant {
        NoFence = "a report is believed whatever attempt it names",
        NumbersRestart = "a replay begins at attempt 1 again",
        BlindExpire = "expire does not look whether the lease ran out",
        TwoLeases = "a lease is given while another one runs",
        LeaseOverExpired = "a lease that ran out is leased again without Expire: no policy, no budget",
        ReleasesWhatWasSent = "a worker gives back what it has sent",
        ServerErrorMeansNothing = "a 5xx is read as \"nothing happened\"",
        AbsentBelievedAtOnce = "a look-up's \"absent\" is believed at once",
        LookUpJudgedWhenWritten = "a look-up is judged by when its answer is written, not by when it was asked",
        LookUpUnnamed = "a look-up does not name the attempt it asked about",
        ReplayWithoutGate = "a replay does not ask what the attempts may have done",
        ReplayUnnamed = "a replay does not name the attempt it saw",
        GuardCancelsUnfenced = "a worker's \"no longer applies\" is an operator's cancel: not fenced",
        RowsNotAsked = "the attempt's own row is not looked up before the fence is compared",
        CancelAtOnce = "a cancel ends a running attempt at once",
        StartNotFenced = "a worker sends although its Start was refused",
        LateCommitRefused = "a commit is refused once its lease was taken away",
        HeardCommitForgotten = "a commit that can't be applied leaves no trace",
        LostLeaseFree = "a lost lease is not charged",
        PossibleIsRetried = "a report whose effect is possible is retried under every policy",
        EpochIgnored = "a fence is the attempt number alone",
        BusyIsAccepted = "a receiver answers in_progress with 2xx",
        BusyIsPermanent = "409 is read as permanent",
        OutcomeNotTold = "a 2xx whose ledger entry says \"no longer applies\" is reported as a commit",
        NoSettle = "nobody settles a dead letter whose effect is known",
    }
}

impl SenderRules for SenderMutant {
    fn decide(&self, asked: &Asked<'_>) -> Ruling {
        match (self, asked.command.name()) {
            (Self::NoFence, _) => no_fence(asked),
            (Self::EpochIgnored, _) => epoch_ignored(asked),
            (Self::NumbersRestart, CommandName::Replay) => {
                tampered(Ruling::of_core(asked), |job| job.attempt = None)
            }
            (Self::BlindExpire, CommandName::Expire) => blind_expire(asked),
            (Self::TwoLeases, CommandName::Lease) => lease_over(asked, |_| true),
            (Self::LeaseOverExpired, CommandName::Lease) => lease_over(asked, |expires_at| expires_at <= NOW),
            (Self::AbsentBelievedAtOnce, CommandName::LookUp) => believed_at_once(asked),
            (Self::LookUpUnnamed, CommandName::LookUp) => look_up_unnamed(asked),
            (Self::ReplayWithoutGate, CommandName::Replay) => {
                let facts = Facts { span: EffectSpan::NONE, ..*asked.facts };
                Ruling::of_core(&Asked { facts: &facts, ..*asked })
            }
            (Self::ReplayUnnamed, CommandName::Replay) => replay_unnamed(asked),
            (Self::GuardCancelsUnfenced, CommandName::Finish) => guard_cancels(asked),
            (Self::RowsNotAsked, _) => rows_not_asked(asked),
            (Self::CancelAtOnce, CommandName::Cancel) => cancel_at_once(asked),
            (Self::LateCommitRefused, CommandName::Finish) => late_commit_refused(asked),
            (Self::HeardCommitForgotten, CommandName::Finish) => heard_forgotten(asked),
            (Self::NoSettle, CommandName::Settle) => {
                let refusal = Refusal::StaleFence { current: asked.job.attempt };
                Ruling { next: None, row: None, reply: Err(refusal) }
            }
            (Self::LostLeaseFree, CommandName::Expire) => lost_lease_free(asked),
            (Self::PossibleIsRetried, CommandName::Fail) => possible_is_retried(asked),
            _ => Ruling::of_core(asked),
        }
    }

    fn read_status(&self, status: u16, retry_after: bool) -> Reading {
        match (self, posthaste_core::read_status(status, retry_after)) {
            (Self::ServerErrorMeansNothing, Reading::Failed(failed)) => {
                Reading::Failed(Classified { effect: Effect::None, ..failed })
            }
            (Self::BusyIsPermanent, Reading::Failed(failed)) if status == 409 => {
                Reading::Failed(Classified { disposition: Disposition::PermanentMessage, ..failed })
            }
            (_, reading) => reading,
        }
    }

    fn answer_to_busy(&self) -> Said {
        if *self == Self::BusyIsAccepted { Said::Committed } else { Said::Busy }
    }

    fn report_of_cancelled(&self) -> Said {
        if *self == Self::OutcomeNotTold { Said::Committed } else { Said::Cancelled }
    }

    fn releases_what_was_sent(&self) -> bool {
        *self == Self::ReleasesWhatWasSent
    }

    fn judges_look_ups_when_written(&self) -> bool {
        *self == Self::LookUpJudgedWhenWritten
    }

    fn sends_without_start(&self) -> bool {
        *self == Self::StartNotFenced
    }
}

fn tampered(ruling: Ruling, tamper: impl FnOnce(&mut Job)) -> Ruling {
    let next = ruling.next.map(|mut job| {
        tamper(&mut job);
        job
    });
    Ruling { next, ..ruling }
}

fn with_fence(command: &Command, fence: Fence) -> Command {
    let mut command = command.clone();
    match &mut command {
        Command::Start { fence: named }
        | Command::Extend { fence: named, .. }
        | Command::Finish { fence: named, .. }
        | Command::Fail { fence: named, .. }
        | Command::Release { fence: named } => *named = fence,
        Command::Lease { .. }
        | Command::Expire
        | Command::Cancel { .. }
        | Command::Settle { .. }
        | Command::Replay { .. }
        | Command::Resend { .. }
        | Command::Abandon { .. }
        | Command::LookUp { .. } => {}
    }
    command
}

fn no_fence(asked: &Asked<'_>) -> Ruling {
    let Some(attempt) = asked.job.attempt.filter(|_| matches!(asked.job.state, State::Leased(_))) else {
        return Ruling::of_core(asked);
    };
    if asked.facts.own.is_some_and(|own| own.heard_report().is_some()) {
        return Ruling::of_core(asked);
    }
    let command = with_fence(asked.command, Fence { epoch: asked.facts.epoch, attempt });
    Ruling::of_core(&Asked { command: &command, ..*asked })
}

fn epoch_ignored(asked: &Asked<'_>) -> Ruling {
    let Some(fence) = asked.command.fence() else {
        return Ruling::of_core(asked);
    };
    let command = with_fence(asked.command, Fence { epoch: asked.facts.epoch, ..fence });
    Ruling::of_core(&Asked { command: &command, ..*asked })
}

fn blind_expire(asked: &Asked<'_>) -> Ruling {
    let mut job = asked.job.clone();
    match &mut job.state {
        State::Leased(lease) => lease.expires_at = PAST,
        State::Scheduled { .. }
        | State::Retryable { .. }
        | State::Committed { .. }
        | State::DeadLettered { .. }
        | State::Cancelled { .. } => {
            let state = State::Retryable { due_at: PAST, next: NextStep::Attempt };
            let reply = Ok(Answer::Moved { state: StateName::Retryable, due_at: None });
            return Ruling { next: Some(Job { state, ..job }), row: None, reply };
        }
    }
    Ruling::of_core(&Asked { job: &job, ..*asked })
}

fn lease_over(asked: &Asked<'_>, taken: impl FnOnce(Timestamp) -> bool) -> Ruling {
    let expires_at = match &asked.job.state {
        State::Leased(lease) => lease.expires_at,
        State::Scheduled { .. }
        | State::Retryable { .. }
        | State::Committed { .. }
        | State::DeadLettered { .. }
        | State::Cancelled { .. } => return Ruling::of_core(asked),
    };
    if !taken(expires_at) {
        return Ruling::of_core(asked);
    }
    let job = Job { state: State::Scheduled { due_at: PAST }, ..asked.job.clone() };
    Ruling::of_core(&Asked { job: &job, ..*asked })
}

fn believed_at_once(asked: &Asked<'_>) -> Ruling {
    let mut command = asked.command.clone();
    if let Command::LookUp { settled_at, .. } = &mut command {
        *settled_at = BEFORE;
    }
    Ruling::of_core(&Asked { command: &command, ..*asked })
}

fn look_up_unnamed(asked: &Asked<'_>) -> Ruling {
    let mut command = asked.command.clone();
    if let Command::LookUp { seen, .. } = &mut command {
        *seen = asked.job.attempt;
    }
    Ruling::of_core(&Asked { command: &command, ..*asked })
}

fn replay_unnamed(asked: &Asked<'_>) -> Ruling {
    let mut command = asked.command.clone();
    if let Command::Replay { seen, .. } = &mut command {
        *seen = asked.job.attempt;
    }
    Ruling::of_core(&Asked { command: &command, ..*asked })
}

fn guard_cancels(asked: &Asked<'_>) -> Ruling {
    if !matches!(asked.command, Command::Finish { outcome: FinishOutcome::Cancelled, .. }) {
        return Ruling::of_core(asked);
    }
    let mut job = asked.job.clone();
    if let State::Leased(lease) = &mut job.state {
        lease.started_at = None;
    }
    let command = Command::Cancel { reason: "no longer applies".into() };
    Ruling::of_core(&Asked { job: &job, command: &command, ..*asked })
}

fn rows_not_asked(asked: &Asked<'_>) -> Ruling {
    // Only evidence is left of the row: who reported what is not looked at.
    let own = asked.facts.own.map(|own| AttemptRecord { reported: false, late: None, ..own });
    let facts = Facts { own, ..*asked.facts };
    Ruling::of_core(&Asked { facts: &facts, ..*asked })
}

fn cancel_at_once(asked: &Asked<'_>) -> Ruling {
    let mut job = asked.job.clone();
    if let State::Leased(lease) = &mut job.state {
        lease.started_at = None;
    }
    Ruling::of_core(&Asked { job: &job, ..*asked })
}

fn late_commit_refused(asked: &Asked<'_>) -> Ruling {
    if matches!(asked.job.state, State::Leased(_) | State::Committed { .. }) {
        return Ruling::of_core(asked);
    }
    Ruling { next: None, row: None, reply: Err(Refusal::StaleFence { current: asked.job.attempt }) }
}

fn heard_forgotten(asked: &Asked<'_>) -> Ruling {
    let ruling = Ruling::of_core(asked);
    match ruling.row {
        Some(RowWrite::Heard { .. }) => Ruling { next: None, row: None, ..ruling },
        Some(RowWrite::End { .. } | RowWrite::Late { .. }) | None => ruling,
    }
}

fn lost_lease_free(asked: &Asked<'_>) -> Ruling {
    let mut job = asked.job.clone();
    job.budgets.lost_leases = 0;
    Ruling::of_core(&Asked { job: &job, ..*asked })
}

fn possible_is_retried(asked: &Asked<'_>) -> Ruling {
    let ruling = Ruling::of_core(asked);
    let Command::Fail { failure, .. } = asked.command else {
        return ruling;
    };
    if failure.effect == Effect::None || failure.disposition != Disposition::Retry {
        return ruling;
    }
    tampered(ruling, |job| {
        if !matches!(job.state, State::Leased(_)) {
            job.state = State::Retryable { due_at: PAST, next: NextStep::Attempt };
        }
    })
}
