//! The sender's store as the models see it: load the rows, ask the rules, write what they say, in one step.

use posthaste_core::{
    Answer, AttemptOutcome, Backoff, Command, CommandName, DurationMs, Entry, Epoch, Facts, FinishOutcome,
    OnUnknown, Permille, Policy, Refusal,
};

use super::{
    job_row::{JobRow, JobState, Record, Records},
    property::{Properties, Property},
    rules::{Asked, SenderRules},
};

/// The three budgets' sizes, small ones.
#[derive(Clone, Copy, Debug)]
pub struct Allowance {
    /// Failures after which a job is dead-lettered.
    pub failures: u8,
    /// Lost leases after which a job is dead-lettered.
    pub lost_leases: u8,
}

/// Whether the horizon has passed: chance, as all time.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Horizon {
    Ahead,
    Passed,
}

/// Whether a repeated delivery has a second effect.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Receiver {
    /// Every request is an effect.
    Bare,
    /// It is declared to guard the key.
    GuardsTheKey,
}

/// What a destination's policy and a store's epoch come to.
pub(crate) struct Desk {
    pub(crate) rules: Box<dyn SenderRules>,
    ahead: Policy,
    passed: Policy,
}

/// A job and its attempts' rows.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) struct Store {
    pub(crate) job: JobRow,
    pub(crate) records: Records,
    pub(crate) epoch: u8,
}

/// What came of a command.
pub(crate) struct Done {
    pub(crate) store: Store,
    pub(crate) reply: Result<Answer, Refusal>,
    pub(crate) broken: Properties,
}

impl Store {
    pub(crate) const NEW: Self = Self { job: JobRow::NEW, records: Records::NONE, epoch: 1 };
}

impl Desk {
    pub(crate) fn new(
        rules: Box<dyn SenderRules>,
        allowance: Allowance,
        on_unknown: OnUnknown,
        receiver: Receiver,
    ) -> Self {
        let delay = DurationMs::from_secs(1);
        let ahead = Policy {
            backoff: Backoff::Exponential { base: delay, cap: delay, jitter: NO_JITTER },
            failures_max: allowance.failures.into(),
            lost_leases_max: allowance.lost_leases.into(),
            on_unknown,
            idempotent: receiver == Receiver::GuardsTheKey,
            ..Policy::queue_default()
        };
        let passed = Policy { horizon: DurationMs::ZERO, ..ahead.clone() };
        Self { rules, ahead, passed }
    }

    /// Carries out `command`. `entry`: what the ledger says of the job's event id at this moment.
    pub(crate) fn ask(&self, store: &Store, command: &Command, entry: Entry, horizon: Horizon) -> Done {
        let named = command.fence().map(|fence| u8::try_from(fence.attempt.get()).expect("a handful"));
        let own = named.and_then(|attempt| Some(store.records.of(attempt)?.to_core(attempt)));
        let epoch = Epoch(store.epoch.into());
        let facts = Facts { own, entry, span: store.records.span(), ..Facts::bare(epoch) };
        let policy = match horizon {
            Horizon::Ahead => &self.ahead,
            Horizon::Passed => &self.passed,
        };
        let job = store.job.to_core();
        let ruling = self.rules.decide(&Asked { job: &job, facts: &facts, command, policy });
        let mut after = *store;
        let mut broken = Properties::default();
        if let Some(next) = &ruling.next {
            after.job = JobRow::of_core(next);
        }
        if let Some(row) = &ruling.row {
            broken = after.records.write(row);
        }
        broken = broken.or(edge_promises(store, &after, command));
        let done = Done { store: after, reply: ruling.reply, broken };
        Done { broken: done.broken.or(answer_promises(&done, command, named)), ..done }
    }
}

const NO_JITTER: Permille = match Permille::new(0) {
    Some(none) => none,
    None => unreachable!(),
};

/// Promises about what a command may change.
fn edge_promises(before: &Store, after: &Store, command: &Command) -> Properties {
    let mut broken = Properties::default();
    let (was, is) = (before.job, after.job);
    let settled = matches!(was.state, JobState::Committed | JobState::Cancelled);
    let resend = command.name() == CommandName::Resend && was.state == JobState::Committed;
    broken.note(Property::TerminalFinal, settled && is.state != was.state && !resend);
    if let Some(fence) = command.fence() {
        let current =
            fence.epoch.0 == u32::from(before.epoch) && fence.attempt.get() == u32::from(was.attempt);
        let but_for_evidence = JobRow { commit_heard: was.commit_heard, ..is };
        broken.note(Property::StaleChangesNothing, !current && but_for_evidence != was);
    }
    let taken = matches!(command.name(), CommandName::Expire | CommandName::Lease) && is != was;
    let in_force = matches!(was.state, JobState::Leased { expired: false, .. });
    broken.note(Property::LeaseRespected, taken && in_force);
    broken
}

/// Promises about what an answer claims.
fn answer_promises(done: &Done, command: &Command, named: Option<u8>) -> Properties {
    let mut broken = Properties::default();
    let records = &done.store.records;
    match (&done.reply, command, named) {
        (Ok(Answer::Leased { fence, .. }), ..) => {
            let attempt = u8::try_from(fence.attempt.get()).expect("a handful");
            broken.note(Property::NumberUnique, records.of(attempt).is_some());
        }
        (Ok(_), Command::Finish { outcome, .. }, Some(attempt)) => {
            let record = records.of(attempt);
            let kept = record.and_then(Record::heard_report).map(|report| report.outcome);
            let heard =
                record.is_some_and(|record| record.commit_heard) && *outcome != FinishOutcome::Cancelled;
            broken.note(Property::YesIsRecorded, kept != Some(outcome.attempt_outcome()) && !heard);
        }
        (Ok(_), Command::Fail { failure, .. }, Some(attempt)) => {
            let kept = records.of(attempt).and_then(Record::heard_report);
            let same = kept
                .is_some_and(|report| report.class == Some(failure.class) && report.effect == failure.effect);
            broken.note(Property::YesIsRecorded, !same);
        }
        (Ok(_), Command::Release { .. }, Some(attempt)) => {
            let kept = records.of(attempt).and_then(Record::heard_report);
            let released = kept.map(|report| report.outcome) == Some(AttemptOutcome::Released);
            broken.note(Property::YesIsRecorded, !released);
        }
        _ => {}
    }
    broken
}
