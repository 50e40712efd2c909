//! What must hold in every state of model C.

use posthaste_core::{Cause, Class};

use super::{
    super::{
        job_row::JobState,
        ledger_row::EntryRow,
        property::{Properties, Property, Witness, Witnesses},
        wire::Said,
    },
    Ledger, State, WholeModel,
    state::{Request, Told},
};

impl WholeModel {
    /// What `explain` says: at least, at most. The ledger's contract makes many attempts one effect.
    pub(super) fn explained(&self, state: &State) -> (u32, u32) {
        let span = state.store.records.span_with(&state.store.job);
        let ours = self.config.ledger == Ledger::Ours;
        let done = ours && state.entry.is_some_and(EntryRow::is_committed);
        // Committed by evidence: the entry that said so may be purged, and no attempt's row says it.
        let settled = state.store.job.state == JobState::Committed;
        let lo = span.lo.max(u32::from(done || settled));
        let once = u32::from(span.hi > 0 || lo > 0);
        (lo, once + u32::from(state.resets))
    }

    pub(super) fn broken_in(&self, state: &State) -> Properties {
        let mut broken = Properties::default();
        let job = &state.store.job;
        broken.note(Property::EffectOnce, state.effects > 1 + state.resets);
        broken.note(Property::CommittedIsTrue, job.state == JobState::Committed && state.effects == 0);
        let (lo, hi) = self.explained(state);
        broken.note(Property::ExplainInterval, !(lo..=hi).contains(&u32::from(state.effects)));
        let told_none = state.told == Told::CancelledWithoutEffect && job.state == JobState::Cancelled;
        broken.note(Property::CancelIsTrue, told_none && state.effects > 0);
        let done = state.entry.is_some_and(EntryRow::is_committed);
        broken.note(Property::DoneIsTrue, done && state.effects == 0);
        let failed = matches!(job.state, JobState::DeadLettered(Cause::Exhausted | Cause::Permanent));
        let last = (job.attempt > 0).then(|| state.store.records.of(job.attempt)).flatten();
        let busy = last.is_some_and(|record| record.report.class == Some(Class::InProgress));
        broken.note(Property::BusyIsNoFailure, failed && busy);
        broken
    }

    /// Whether nothing more is owed. A dead letter whose effect our own ledger knows is no good end.
    pub(super) fn is_settled(&self, state: &State) -> bool {
        let job = &state.store.job;
        let ours = self.config.ledger == Ledger::Ours;
        match job.state {
            JobState::Committed | JobState::Cancelled => true,
            JobState::DeadLettered(_) => {
                let known = ours && state.entry.is_some_and(EntryRow::is_committed);
                job.commit_heard == 0 && !known
            }
            JobState::Scheduled { .. } | JobState::Leased { .. } | JobState::Retryable { .. } => {
                job.attempt >= self.config.attempts
            }
        }
    }

    pub(super) fn seen_in(state: &State) -> Witnesses {
        let mut seen = Witnesses::default();
        let job = &state.store.job;
        let committed = job.state == JobState::Committed;
        seen.note(Witness::Committed, committed);
        seen.note(Witness::Duplicate, state.requests.contains(&Request::AnsweredDuplicate));
        seen.note(Witness::Busy, state.requests.contains(&Request::Answered(Said::Busy)));
        seen.note(Witness::DeadLettered, job.is_dead());
        seen.note(Witness::DeadWithEffect, job.is_dead() && state.effects > 0);
        seen.note(Witness::Replayed, committed && state.replays > 0);
        seen.note(Witness::Cancelled, job.state == JobState::Cancelled);
        seen
    }
}
