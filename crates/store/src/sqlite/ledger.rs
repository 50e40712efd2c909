//! The ledger's commands, and what steps of jobs make of entries that stand beside them.

use posthaste_core::{Command, Entry as Fact, EventId, Job, JobId, LaneId, MessageKey, TenantId};
use rusqlite::params;

use super::{
    attempt_rows,
    cells::Cells,
    fault::Fault,
    job_rows::{self, Stored},
    session::Session,
};
use crate::{
    AppliedOutcome, AttemptView, Change, LedgerApplied, LedgerCommand, LedgerEntry, NamedJob, ledger,
    ledger_steps,
};

impl Session<'_> {
    pub(super) fn ledger(&mut self, commands: &[LedgerCommand]) -> Result<Vec<LedgerApplied>, Fault> {
        commands.iter().map(|command| self.ledger_one(command)).collect()
    }

    fn ledger_one(&mut self, command: &LedgerCommand) -> Result<LedgerApplied, Fault> {
        let row = self.entry_of(command.tenant, &command.key)?;
        let job = match &command.job {
            Some(named) => self.job_named(command.tenant, named)?,
            None => None,
        };
        let found = match (row, &command.job, &job) {
            (None, Some(NamedJob { guarded: true, .. }), Some(stored)) => {
                let last = self.last_attempt(&stored.job)?;
                ledger::of_job(&stored.job, &command.key, last.as_ref())
            }
            // Its job left with its message.
            (None, Some(NamedJob { guarded: true, .. }), None) => {
                self.archived_entry(command.tenant, &command.key)?
            }
            (row, ..) => row,
        };
        let first_fence = self.first_fence()?;
        let (answer, write) = ledger::decide(found, command, first_fence, self.now);
        let Some(written) = write else { return Ok(LedgerApplied { answer, settled: None }) };
        self.put_entry(command.tenant, &written)?;
        let settled = match job {
            Some(stored) => self.after_entry(stored, command, &written)?,
            None => None,
        };
        Ok(LedgerApplied { answer, settled })
    }

    /// The job that an event id means.
    fn job_named(&mut self, tenant: TenantId, named: &NamedJob) -> Result<Option<Stored>, Fault> {
        let Some(message) = self.message_named(tenant, &named.key)? else { return Ok(None) };
        let id = JobId::of(message, named.lane);
        if let Some(stored) = self.leased.take(tenant, id) {
            return Ok(Some(stored));
        }
        let loaded = job_rows::load(&mut self.sql.jobs_load, &mut self.sql.jobs_done_load, tenant, id)?;
        match loaded {
            // By another of its message's names it is another event id.
            Some(Ok(stored)) if stored.key == named.key => Ok(Some(stored)),
            Some(Ok(_)) | None => Ok(None),
            Some(Err(corrupt)) => Err(corrupt.into()),
        }
    }

    fn last_attempt(&mut self, job: &Job) -> Result<Option<AttemptView>, Fault> {
        Ok(attempt_rows::all_of(&mut self.sql.attempts_of_job, job.tenant, job.id)??.pop())
    }

    /// What a written entry means for its job: a reset is noted, and what is done settles what waits.
    fn after_entry(
        &mut self,
        stored: Stored,
        command: &LedgerCommand,
        written: &LedgerEntry,
    ) -> Result<Option<Box<Change>>, Fault> {
        if let Some(entry) = ledger::reset_note(&stored.job, stored.message, command, written) {
            self.insert_custody(&entry)?;
        }
        let fact = ledger::fact_of(&written.entry);
        if fact == Fact::NotDone {
            self.leased.keep(stored);
            return Ok(None);
        }
        let settle = ledger::settle(stored.job.id, command);
        match self.apply_to(stored, &settle)? {
            AppliedOutcome::Decided { change, .. } => Ok(change),
            AppliedOutcome::Corrupt(corrupt) => Err(corrupt.into()),
            AppliedOutcome::Missing => Ok(None),
        }
    }

    /// The entry beside a job, if anybody made one.
    pub(super) fn entry_beside(
        &mut self,
        tenant: TenantId,
        lane: LaneId,
        key: &MessageKey,
    ) -> Result<Option<LedgerEntry>, Fault> {
        if !self.ledger_used {
            return Ok(None);
        }
        let mut rows = self.sql.lanes_find.query(params![tenant.0, lane.0])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let destination = Cells::of(row, u128::from(lane.0)).destination()?;
        drop(rows);
        self.entry_of(tenant, &EventId::of(key, &destination))
    }

    /// Writes what a step of a job makes of the entry beside it.
    pub(super) fn entry_after_step(
        &mut self,
        entry: Option<&LedgerEntry>,
        change: Option<&Change>,
        command: &Command,
        guarded: bool,
    ) -> Result<(), Fault> {
        let (Some(entry), Some(change)) = (entry, change) else { return Ok(()) };
        match ledger_steps::after_step(entry, change, command, guarded, self.now) {
            Some(written) => self.put_entry(change.job.tenant, &written),
            None => Ok(()),
        }
    }
}
