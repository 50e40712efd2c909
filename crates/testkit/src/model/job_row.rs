//! A job and its attempts' rows in a few bytes, with time taken out of them: what a model keeps of the sender's store.
//!
//! Time is chance here. A flag says whether the due time has come or the lease has run out; [`JobRow::to_core`]
//! turns the flags into instants before or after one fixed [`NOW`], and [`JobRow::of_core`] turns them back. So what
//! holds here leans on no duration, and the real function decides.

use posthaste_core::{
    Attempt, AttemptRecord, Budgets, Cause, DurationMs, Effect, EffectSpan, Evidence, Job, JobId, Kind,
    LaneId, Lease, MessageId, NewJob, NextStep, Report, RowWrite, Share, State, StateName, TenantId,
    Timestamp,
};

use super::property::{Properties, Property};

/// The instant of every decision.
pub(crate) const NOW: Timestamp = Timestamp(1_000_000_000);
/// An instant that has come.
pub(crate) const PAST: Timestamp = NOW;
/// An instant that has not come yet.
pub(crate) const LATER: Timestamp = Timestamp(NOW.0 + 1);
/// An instant that is over, and was before anything could settle.
pub(crate) const BEFORE: Timestamp = Timestamp(NOW.0 - 1);
/// Attempts that a model can number.
pub(crate) const ATTEMPTS: usize = 5;

/// [`State`] without instants.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum JobState {
    Scheduled { due: bool },
    Leased { started: bool, expired: bool },
    Retryable { due: bool, next: NextStep },
    Committed,
    DeadLettered(Cause),
    Cancelled,
}

/// [`Job`] without what no decision reads, and without instants.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct JobRow {
    pub(crate) state: JobState,
    pub(crate) attempt: u8,
    pub(crate) failed_before: bool,
    pub(crate) failures: u8,
    pub(crate) lost_leases: u8,
    pub(crate) cancel_requested: bool,
    pub(crate) abandon: Option<Cause>,
    /// 0: none.
    pub(crate) commit_heard: u8,
    pub(crate) evidence_floor: u8,
}

impl JobRow {
    /// Waits for its first attempt.
    pub(crate) const NEW: Self = Self {
        state: JobState::Scheduled { due: false },
        attempt: 0,
        failed_before: false,
        failures: 0,
        lost_leases: 0,
        cancel_requested: false,
        abandon: None,
        commit_heard: 0,
        evidence_floor: 0,
    };

    pub(crate) fn name(&self) -> StateName {
        match self.state {
            JobState::Scheduled { .. } => StateName::Scheduled,
            JobState::Leased { .. } => StateName::Leased,
            JobState::Retryable { .. } => StateName::Retryable,
            JobState::Committed => StateName::Committed,
            JobState::DeadLettered(_) => StateName::DeadLettered,
            JobState::Cancelled => StateName::Cancelled,
        }
    }

    pub(crate) fn is_leased(&self) -> bool {
        matches!(self.state, JobState::Leased { .. })
    }

    pub(crate) fn is_dead(&self) -> bool {
        matches!(self.state, JobState::DeadLettered(_))
    }

    /// Whether `attempt` (from 1) is running, its lease in force.
    pub(crate) fn is_held_by(&self, attempt: u8) -> bool {
        self.attempt == attempt && matches!(self.state, JobState::Leased { expired: false, .. })
    }

    pub(crate) fn to_core(self) -> Job {
        let id = JobId::of(MessageId(1 << 64), LaneId(1));
        let new = NewJob {
            id,
            tenant: TenantId(1),
            kind: Kind::Push,
            due_at: PAST,
            created_at: PAST,
            share: Share::Fresh,
            lane_held_ms: 0,
        };
        Job {
            state: self.state.to_core(),
            attempt: Attempt::new(self.attempt.into()),
            failed_before: self.failed_before,
            budgets: Budgets {
                failures: self.failures.into(),
                lost_leases: self.lost_leases.into(),
                ..Budgets::fresh(NOW, 0)
            },
            cancel_requested: self.cancel_requested,
            abandon: self.abandon,
            commit_heard: Attempt::new(self.commit_heard.into()),
            evidence_floor: self.evidence_floor.into(),
            ..Job::new(new)
        }
    }

    pub(crate) fn of_core(job: &Job) -> Self {
        Self {
            state: JobState::of_core(&job.state),
            attempt: job.attempt.map_or(0, number),
            failed_before: job.failed_before,
            failures: small(job.budgets.failures),
            lost_leases: small(job.budgets.lost_leases),
            cancel_requested: job.cancel_requested,
            abandon: job.abandon,
            commit_heard: job.commit_heard.map_or(0, number),
            evidence_floor: small(job.evidence_floor),
        }
    }
}

impl JobState {
    fn to_core(self) -> State {
        match self {
            Self::Scheduled { due } => State::Scheduled { due_at: instant(due) },
            Self::Leased { started, expired } => State::Leased(Lease {
                worker: "w".into(),
                due_at: PAST,
                leased_at: PAST,
                started_at: started.then_some(PAST),
                expires_at: instant(expired),
                deadline_at: NOW.after(DurationMs::from_hours(1)),
            }),
            Self::Retryable { due, next } => State::Retryable { due_at: instant(due), next },
            Self::Committed => State::Committed { at: PAST, evidence: Evidence::Answered },
            Self::DeadLettered(cause) => State::DeadLettered { at: PAST, cause },
            Self::Cancelled => State::Cancelled { at: PAST },
        }
    }

    fn of_core(state: &State) -> Self {
        match state {
            State::Scheduled { due_at } => Self::Scheduled { due: *due_at <= NOW },
            State::Leased(lease) => {
                Self::Leased { started: lease.started_at.is_some(), expired: lease.expires_at <= NOW }
            }
            State::Retryable { due_at, next } => Self::Retryable { due: *due_at <= NOW, next: *next },
            State::Committed { .. } => Self::Committed,
            State::DeadLettered { cause, .. } => Self::DeadLettered(*cause),
            State::Cancelled { .. } => Self::Cancelled,
        }
    }
}

/// [`AttemptRecord`] without instants.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Record {
    pub(crate) report: Report,
    pub(crate) reported: bool,
    pub(crate) state: StateName,
    /// A late report, the state it led to, and whether it was answered yes.
    pub(crate) late: Option<(Report, StateName, bool)>,
    pub(crate) commit_heard: bool,
}

impl Record {
    pub(crate) fn to_core(self, attempt: u8) -> AttemptRecord {
        AttemptRecord {
            attempt: attempt_of(attempt),
            report: self.report,
            reported: self.reported,
            state: self.state,
            next_at: None,
            late: self.late.map(|(report, state, _)| (report, state, None)),
            late_accepted: self.late.is_some_and(|(.., accepted)| accepted),
            commit_heard_at: self.commit_heard.then_some(PAST),
        }
    }

    /// What is known about the attempt's effect, in core's words.
    pub(crate) fn effect(self) -> Effect {
        self.to_core(1).effect()
    }

    /// What a reporter said of this attempt, if one did.
    pub(crate) fn heard_report(self) -> Option<Report> {
        self.to_core(1).heard_report().map(|(report, ..)| report)
    }
}

/// The rows of all ended attempts, the first attempt's first.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Records([Option<Record>; ATTEMPTS]);

impl Records {
    pub(crate) const NONE: Self = Self([None; ATTEMPTS]);

    /// The row of `attempt`, from 1.
    pub(crate) fn of(&self, attempt: u8) -> Option<Record> {
        self.0[usize::from(attempt) - 1]
    }

    /// Each attempt that has a row.
    pub(crate) fn iter(&self) -> impl Iterator<Item = (u8, Record)> {
        (1..).zip(&self.0).filter_map(|(attempt, record)| Some((attempt, (*record)?)))
    }

    /// All ended attempts together, as core sums them up.
    pub(crate) fn span(&self) -> EffectSpan {
        EffectSpan::over(self.iter().map(|(_, record)| record.effect()))
    }

    /// The same with the running attempt: a started one may have acted.
    pub(crate) fn span_with(&self, job: &JobRow) -> EffectSpan {
        let running = matches!(job.state, JobState::Leased { started: true, .. });
        let effects = self.iter().map(|(_, record)| record.effect());
        EffectSpan::over(effects.chain(running.then_some(Effect::Possible)))
    }

    /// Writes what core decided, as a store with a unique key would, and says what such a store would object to.
    pub(crate) fn write(&mut self, row: &RowWrite) -> Properties {
        let mut broken = Properties::default();
        match row {
            RowWrite::End { row, commit_heard_at } => {
                let slot = &mut self.0[usize::from(number(row.attempt)) - 1];
                broken.note(Property::NumberUnique, slot.is_some());
                *slot = Some(Record {
                    report: row.report,
                    reported: row.reported,
                    state: row.state,
                    late: None,
                    commit_heard: commit_heard_at.is_some(),
                });
            }
            RowWrite::Late { report, commit_heard_at } => {
                let record = self.0[usize::from(number(report.attempt)) - 1].as_mut();
                let written = record.map(|record| {
                    let first = record.late.is_none();
                    record.late = Some((report.report, report.state, report.accepted));
                    record.commit_heard |= commit_heard_at.is_some();
                    first
                });
                broken.note(Property::RowsWrittenOnce, written != Some(true));
            }
            RowWrite::Heard { attempt, .. } => {
                let record = self.0[usize::from(number(*attempt)) - 1].as_mut();
                let written = record.map(|record| !std::mem::replace(&mut record.commit_heard, true));
                broken.note(Property::RowsWrittenOnce, written != Some(true));
            }
        }
        broken
    }
}

/// Attempt `number`, from 1.
pub(crate) fn attempt_of(number: u8) -> Attempt {
    Attempt::new(number.into()).expect("models number attempts from 1")
}

fn number(attempt: Attempt) -> u8 {
    small(attempt.get())
}

fn small(value: u32) -> u8 {
    u8::try_from(value).expect("models count to a handful")
}

fn instant(come: bool) -> Timestamp {
    if come { PAST } else { LATER }
}
