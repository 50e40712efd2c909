//! One step of one job: gather the facts, ask the core, write what it decided.

use posthaste_core::{
    Answer, AttemptRecord, EffectSpan, Entry, Facts, Job, JobId, LaneId, Refusal, RowWrite, RunId, TenantId,
    Timestamp, Verdict, transition,
};

use super::tables::{EPOCH, Tables};
use crate::{
    Applied, AppliedOutcome, AttemptView, Change, JobCommand, Stage, bulk, ledger,
    step::{self, STALE_REPORTS_RECORDED_MAX},
};

impl Tables {
    pub(crate) fn apply(&mut self, command: &JobCommand, now: Timestamp) -> Applied {
        let outcome = match self.jobs.get(&(command.tenant, command.job)).map(super::tables::JobEntry::job) {
            None => match self.corrupt.get(&(command.tenant, command.job)) {
                Some(corrupt) => AppliedOutcome::Corrupt(corrupt.clone()),
                None => AppliedOutcome::Missing,
            },
            Some(Err(corrupt)) => AppliedOutcome::Corrupt(corrupt),
            Some(Ok(job)) => {
                if let Some(until) = command.hold_lane_until {
                    self.hold(job.tenant, job.lane, until);
                }
                let (reply, mut change) = self.decide(&job, command, false, now);
                if let Some(change) = &mut change {
                    change.turn = self.lane_after_step(command, change, now);
                }
                AppliedOutcome::Decided { reply, change: change.map(Box::new) }
            }
        };
        Applied { job: command.job, outcome }
    }

    fn hold(&mut self, tenant: TenantId, lane: LaneId, until: Timestamp) {
        if let Some(lane) = self.lanes.get_mut(&(tenant, lane)) {
            lane.lane.not_before = lane.lane.not_before.max(until);
        }
    }

    /// Asks the core, and writes what it decided with what that leaves in custody.
    pub(crate) fn decide(
        &mut self,
        job: &Job,
        command: &JobCommand,
        guarded: bool,
        now: Timestamp,
    ) -> (Result<Answer, Refusal>, Option<Change>) {
        self.decide_in(job, command, guarded, None, now)
    }

    /// The same for a job of a bulk run, which custody tells.
    pub(crate) fn decide_in(
        &mut self,
        job: &Job,
        command: &JobCommand,
        guarded: bool,
        run: Option<RunId>,
        now: Timestamp,
    ) -> (Result<Answer, Refusal>, Option<Change>) {
        let entry = self.entry_beside(job);
        let fact = entry.as_ref().map_or(Entry::Unknown, |entry| ledger::fact_of(&entry.entry));
        let facts = self.facts(job, command, fact, now);
        let verdict = transition(job, &facts, &command.command, &command.policy, now);
        let message = self.message_of(job.tenant, job.id).0;
        if let Some(entry) = step::custody_of(job, message, command, &verdict, now)
            && (entry.stage != Stage::StaleReport
                || self.noted(job.tenant, message, Some(job.id), Stage::StaleReport)
                    < STALE_REPORTS_RECORDED_MAX)
        {
            self.note(match run {
                Some(run) => bulk::in_run(entry, run),
                None => entry,
            });
        }
        let (reply, change) = self.write_verdict(job, verdict);
        self.entry_after_step(entry.as_ref(), change.as_ref(), &command.command, guarded, now);
        (reply, change)
    }

    /// Writes what the core decided.
    pub(crate) fn write_verdict(
        &mut self,
        job: &Job,
        verdict: Verdict,
    ) -> (Result<Answer, Refusal>, Option<Change>) {
        let accepted = self.message_of(job.tenant, job.id).1;
        let (key, accepted_at) = (accepted.given.key.clone(), accepted.accepted_at);
        match verdict {
            Verdict::Recorded(answer) => (Ok(answer), None),
            Verdict::Refused(refusal) => (Err(refusal), None),
            Verdict::Write(decision) => {
                let (from, command, nature) = (decision.from(), decision.command(), decision.nature());
                let (after, row, reply) = decision.into_parts();
                self.write_job(job, &after);
                let ended = row.and_then(|row| self.write_attempt(job.tenant, job.id, row));
                (
                    reply,
                    Some(Change { from, command, nature, job: after, ended, key, accepted_at, turn: None }),
                )
            }
        }
    }

    fn facts(&self, job: &Job, command: &JobCommand, entry: Entry, now: Timestamp) -> Facts {
        let needs = step::needs(job, &command.command);
        let own = needs.own.and_then(|attempt| self.attempts.get(&(job.tenant, job.id, attempt)));
        let span = if needs.span {
            EffectSpan::of_attempts(&self.attempts_of(job.tenant, job.id).map(record_of).collect::<Vec<_>>())
        } else {
            EffectSpan::NONE
        };
        Facts {
            epoch: self.epoch.unwrap_or(EPOCH),
            own: own.map(record_of),
            entry,
            span,
            lane_held_ms: self.held_ms(job.tenant, job.lane, now),
        }
    }

    /// Writes the attempt's row, or beside it; gives the row if it is new.
    fn write_attempt(
        &mut self,
        tenant: TenantId,
        job: JobId,
        row: RowWrite,
    ) -> Option<Box<posthaste_core::AttemptEnd>> {
        match row {
            RowWrite::End { row, commit_heard_at } => {
                let view = AttemptView { end: (*row).clone(), late: None, commit_heard_at };
                let taken = self.attempts.insert((tenant, job, row.attempt), view);
                assert!(taken.is_none(), "attempt {} of {job} ended twice", row.attempt.get());
                Some(row)
            }
            RowWrite::Late { report, commit_heard_at } => {
                let view = self
                    .attempts
                    .get_mut(&(tenant, job, report.attempt))
                    .expect("a late report follows an end");
                assert!(view.late.is_none(), "a late report is written once");
                view.commit_heard_at = view.commit_heard_at.or(commit_heard_at);
                view.late = Some(*report);
                None
            }
            RowWrite::Heard { attempt, at } => {
                let view =
                    self.attempts.get_mut(&(tenant, job, attempt)).expect("what is heard follows an end");
                view.commit_heard_at = view.commit_heard_at.or(Some(at));
                None
            }
        }
    }
}

/// What an attempt's row tells a decision.
fn record_of(view: &AttemptView) -> AttemptRecord {
    AttemptRecord::of(&view.end, view.late.as_ref(), view.commit_heard_at)
}
