//! One step of one job: gather the facts, ask the core, write what it decided.

use posthaste_core::{
    Answer, AttemptRecord, Command, CorruptRow, EffectSpan, Entry, Facts, Job, JobId, Policy, Refusal, RunId,
    State, TenantId, Verdict, transition,
};
use rusqlite::params;

use super::{
    attempt_rows,
    cells::Cells,
    fault::Fault,
    job_rows::{self, Stored},
    session::Session,
};
use crate::{
    Applied, AppliedOutcome, AttemptView, Change, CustodyEntry, JobCommand, Stage, bulk, ledger,
    rows::attempt::view,
    step::{self, STALE_REPORTS_RECORDED_MAX},
};

impl Session<'_> {
    pub(super) fn apply(&mut self, commands: &[JobCommand]) -> Result<Vec<Applied>, Fault> {
        commands.iter().map(|command| self.apply_one(command)).collect()
    }

    fn apply_one(&mut self, command: &JobCommand) -> Result<Applied, Fault> {
        let outcome = match self.stored(command.tenant, command.job)? {
            None => AppliedOutcome::Missing,
            Some(Err(corrupt)) => AppliedOutcome::Corrupt(corrupt),
            Some(Ok(stored)) => self.apply_to(stored, command)?,
        };
        Ok(Applied { job: command.job, outcome })
    }

    pub(super) fn stored(
        &mut self,
        tenant: TenantId,
        job: JobId,
    ) -> Result<Option<Result<Stored, CorruptRow>>, Fault> {
        if let Some(stored) = self.leased.take(tenant, job) {
            return Ok(Some(Ok(stored)));
        }
        job_rows::load(&mut self.sql.jobs_load, &mut self.sql.jobs_done_load, tenant, job)
    }

    pub(super) fn apply_to(&mut self, stored: Stored, command: &JobCommand) -> Result<AppliedOutcome, Fault> {
        self.apply_in(stored, command, None)
    }

    /// The same for a job of a bulk run, which custody tells.
    pub(super) fn apply_in(
        &mut self,
        stored: Stored,
        command: &JobCommand,
        run: Option<RunId>,
    ) -> Result<AppliedOutcome, Fault> {
        let entry = self.entry_beside(stored.job.tenant, stored.job.lane, &stored.key)?;
        let fact = entry.as_ref().map_or(Entry::Unknown, |entry| ledger::fact_of(&entry.entry));
        let facts = match self.facts(&stored.job, &command.command, fact)? {
            Ok(facts) => facts,
            Err(corrupt) => return Ok(AppliedOutcome::Corrupt(corrupt)),
        };
        if let Some(until) = command.hold_lane_until {
            self.hold_lane(stored.job.tenant, stored.job.lane, until)?;
        }
        let verdict = transition(&stored.job, &facts, &command.command, &command.policy, self.now);
        if let Some(entry) = step::custody_of(&stored.job, stored.message, command, &verdict, self.now) {
            self.note_step(&match run {
                Some(run) => bulk::in_run(entry, run),
                None => entry,
            })?;
        }
        let (reply, mut change) = self.write_verdict(stored, verdict)?;
        if let Some(change) = &mut change {
            change.turn = self.lane_after_step(command, change)?;
        }
        self.entry_after_step(entry.as_ref(), change.as_ref(), &command.command, false)?;
        Ok(AppliedOutcome::Decided { reply, change: change.map(Box::new) })
    }

    /// Asks the core without facts of older attempts.
    pub(super) fn decide_bare(
        &mut self,
        job: &Job,
        command: &Command,
        policy: &Policy,
        entry: Entry,
    ) -> Result<Verdict, Fault> {
        let lane_held_ms = self.lane_held_ms(job.tenant, job.lane)?;
        let facts = Facts { lane_held_ms, entry, ..Facts::bare(self.epoch) };
        Ok(transition(job, &facts, command, policy, self.now))
    }

    /// Writes what the core decided.
    pub(super) fn write_verdict(
        &mut self,
        stored: Stored,
        verdict: Verdict,
    ) -> Result<(Result<Answer, Refusal>, Option<Change>), Fault> {
        let decision = match verdict {
            Verdict::Write(decision) => decision,
            Verdict::Recorded(answer) => {
                self.leased.keep(stored);
                return Ok((Ok(answer), None));
            }
            Verdict::Refused(refusal) => {
                self.leased.keep(stored);
                return Ok((Err(refusal), None));
            }
        };
        let (from, command, nature) = (decision.from(), decision.command(), decision.nature());
        let (job, row, reply) = decision.into_parts();
        self.write_job(&stored.job, &job, &stored.extra)?;
        let ended = match row {
            Some(row) => self.write_attempt(job.tenant, job.id, row)?,
            None => None,
        };
        let (key, accepted_at) = (stored.key.clone(), stored.accepted_at);
        if matches!(job.state, State::Leased(_)) {
            self.leased.keep(Stored { job: job.clone(), ..stored });
        }
        Ok((reply, Some(Change { from, command, nature, job, ended, key, accepted_at, turn: None })))
    }

    fn facts(
        &mut self,
        job: &Job,
        command: &Command,
        entry: Entry,
    ) -> Result<Result<Facts, CorruptRow>, Fault> {
        let needs = step::needs(job, command);
        let own = match needs.own {
            Some(attempt) => match self.attempt_record(job, attempt)? {
                Ok(own) => own,
                Err(corrupt) => return Ok(Err(corrupt)),
            },
            None => None,
        };
        let span = if needs.span {
            match attempt_rows::all_of(&mut self.sql.attempts_of_job, job.tenant, job.id)? {
                Ok(views) => EffectSpan::of_attempts(&views.iter().map(record_of).collect::<Vec<_>>()),
                Err(corrupt) => return Ok(Err(corrupt)),
            }
        } else {
            EffectSpan::NONE
        };
        let lane_held_ms = self.lane_held_ms(job.tenant, job.lane)?;
        Ok(Ok(Facts { epoch: self.epoch, own, entry, span, lane_held_ms }))
    }

    fn attempt_record(
        &mut self,
        job: &Job,
        attempt: posthaste_core::Attempt,
    ) -> Result<Result<Option<AttemptRecord>, CorruptRow>, Fault> {
        let at = params![job.tenant.0, job.id.0.to_be_bytes(), attempt.get()];
        let mut rows = self.sql.attempts_find.query(at)?;
        let Some(row) = rows.next()? else { return Ok(Ok(None)) };
        Ok(view(&mut Cells::of(row, job.id.0), job.id).map(|view| Some(record_of(&view))))
    }

    fn note_step(&mut self, entry: &CustodyEntry) -> Result<(), Fault> {
        if entry.stage == Stage::StaleReport
            && self.custody_count(entry, STALE_REPORTS_RECORDED_MAX)? >= STALE_REPORTS_RECORDED_MAX
        {
            return Ok(());
        }
        self.insert_custody(entry)
    }
}

fn record_of(view: &AttemptView) -> AttemptRecord {
    AttemptRecord::of(&view.end, view.late.as_ref(), view.commit_heard_at)
}
