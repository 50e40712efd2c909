//! What must hold in every state of model A.

use posthaste_core::{AttemptOutcome, Effect};

use super::{
    super::{
        job_row::JobState,
        property::{Properties, Property, Witness, Witnesses},
    },
    SenderModel, State,
    state::{Request, Told, Worker, bit, place},
};

impl SenderModel {
    pub(super) fn broken_in(&self, state: &State) -> Properties {
        let mut broken = Properties::default();
        let job = &state.store.job;
        let effects = state.effects_count();
        broken.note(Property::CommittedIsTrue, job.state == JobState::Committed && effects == 0);
        broken.note(Property::AtMostOnce, effects > 1);
        let told_none = state.told == Told::CancelledWithoutEffect && job.state == JobState::Cancelled;
        broken.note(Property::CancelIsTrue, told_none && effects > 0);
        broken.note(Property::ReplayOnce, state.replays_of_request > 1);
        let old = state.effects & ((1 << state.replayed_at) - 1);
        broken.note(
            Property::ReplaySafe,
            state.replays > 0 && state.resends == 0 && old != 0 && old != state.effects,
        );
        let heard_last = job.attempt > 0 && state.heard & bit(job.attempt) != 0;
        broken.note(Property::DeadLetterTrue, job.is_dead() && heard_last && job.commit_heard == 0);
        broken.or(self.broken_rows(state))
    }

    fn broken_rows(&self, state: &State) -> Properties {
        let mut broken = Properties::default();
        let (job, records) = (&state.store.job, &state.store.records);
        let span = records.span_with(job);
        let shown = state.effects_count();
        let lo = span.lo.max(u32::from(state.found));
        broken.note(Property::ExplainInterval, shown < lo || shown > span.hi.max(lo));
        for attempt in 1..=state.attempts_given() {
            let heard = state.heard & bit(attempt) != 0;
            let record = records.of(attempt);
            let reported = record.is_some_and(|record| record.effect() >= Effect::Reported);
            broken.note(Property::HeardIsShown, heard && !reported);
            let running = job.is_leased() && job.attempt == attempt;
            broken.note(Property::OneLiveLease, record.is_none() != running);
        }
        let lost = records
            .iter()
            .filter(|(attempt, record)| {
                *attempt > state.replayed_at
                    && record.report.outcome == AttemptOutcome::LeaseLost
                    && record.report.effect == Effect::Possible
                    && record.late.is_none()
            })
            .count();
        let budget = usize::from(self.config.allowance.lost_leases);
        broken.note(Property::LostBudget, lost > budget && state.resends == 0);
        broken
    }

    /// Whether nothing more is owed: the job is settled and no heard commit is left out.
    pub(super) fn is_settled(&self, state: &State) -> bool {
        let job = &state.store.job;
        match job.state {
            JobState::Committed | JobState::Cancelled => true,
            JobState::DeadLettered(_) => job.commit_heard == 0,
            JobState::Scheduled { .. } | JobState::Leased { .. } | JobState::Retryable { .. } => {
                job.attempt >= self.config.attempts
            }
        }
    }

    pub(super) fn seen_in(state: &State) -> Witnesses {
        let mut seen = Witnesses::default();
        let job = &state.store.job;
        let committed = job.state == JobState::Committed;
        let last = (job.attempt > 0).then(|| state.store.records.of(job.attempt)).flatten();
        let late = last.is_some_and(|record| record.late.is_some() && record.commit_heard);
        seen.note(Witness::Committed, committed);
        seen.note(Witness::LateCommit, committed && late);
        seen.note(Witness::TwoEffects, state.effects_count() > 1);
        seen.note(Witness::DeadLettered, job.is_dead());
        seen.note(Witness::DeadWithEffect, job.is_dead() && state.effects != 0);
        seen.note(Witness::Cancelled, job.state == JobState::Cancelled);
        seen.note(Witness::Replayed, committed && state.replays > 0);
        seen.note(Witness::Resent, committed && state.resends > 0 && job.attempt > job.evidence_floor);
        seen.note(Witness::LookedUp, committed && state.found);
        let zombie = (1..job.attempt).any(|attempt| {
            state.workers[place(attempt)] == Worker::Waiting
                && state.requests[place(attempt)] == Request::Flying
        });
        seen.note(Witness::ZombieSends, zombie);
        seen
    }
}
