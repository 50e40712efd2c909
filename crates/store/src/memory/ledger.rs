//! The ledger's commands, and what steps of jobs make of entries that stand beside them.

use posthaste_core::{Command, Entry as Fact, EventId, Job, JobId, LaneId, TenantId, Timestamp};

use super::tables::Tables;
use crate::{Change, LedgerApplied, LedgerCommand, LedgerEntry, NamedJob, ledger, ledger_steps};

impl Tables {
    pub(crate) fn ledger(&mut self, command: &LedgerCommand, now: Timestamp) -> LedgerApplied {
        let found = self.entry(command.tenant, &command.key, command.job.as_ref());
        let (answer, write) = ledger::decide(found, command, self.first_fence.max(1), now);
        let Some(written) = write else { return LedgerApplied { answer, settled: None } };
        self.ledger.insert((command.tenant, command.key.clone()), written.clone());
        let job = command.job.as_ref().and_then(|named| self.job_named(command.tenant, named));
        let settled = job.and_then(|job| self.after_entry(&job, command, &written, now));
        LedgerApplied { answer, settled: settled.map(Box::new) }
    }

    /// The entry: a row, or read from the job.
    pub(crate) fn entry(
        &self,
        tenant: TenantId,
        key: &EventId,
        job: Option<&NamedJob>,
    ) -> Option<LedgerEntry> {
        if let Some(entry) = self.ledger.get(&(tenant, key.clone())) {
            return Some(entry.clone());
        }
        let archived = self.archived_entries.get(&(tenant, key.clone())).map(|known| &known.entry);
        if let Some(own) = archived.filter(|entry| entry.of_job.is_none()) {
            return Some(own.clone());
        }
        let Some(job) = self.job_named(tenant, job.filter(|named| named.guarded)?) else {
            // Its job left with its message.
            return archived.cloned();
        };
        let last = self.attempts_of(tenant, job.id).last();
        ledger::of_job(&job, key, last)
    }

    /// The job that an event id means.
    fn job_named(&self, tenant: TenantId, named: &NamedJob) -> Option<Job> {
        let message = self.names.get(&(tenant, named.key.clone()))?;
        // By another of its message's names it is another event id.
        if self.messages.get(&(tenant, *message))?.given.key != named.key {
            return None;
        }
        self.jobs.get(&(tenant, JobId::of(*message, named.lane)))?.job().ok()
    }

    /// What a written entry means for its job: a reset is noted, and what is done settles what waits.
    fn after_entry(
        &mut self,
        job: &Job,
        command: &LedgerCommand,
        written: &LedgerEntry,
        now: Timestamp,
    ) -> Option<Change> {
        let message = self.message_of(job.tenant, job.id).0;
        if let Some(entry) = ledger::reset_note(job, message, command, written) {
            self.note(entry);
        }
        let fact = ledger::fact_of(&written.entry);
        if fact == Fact::NotDone {
            return None;
        }
        self.decide(job, &ledger::settle(job.id, command), false, now).1
    }

    /// The entry beside a job, if anybody made one.
    pub(crate) fn entry_beside(&self, job: &Job) -> Option<LedgerEntry> {
        let key = self.event_id(job.tenant, job.lane, job.id)?;
        let archived = || Some(&self.archived_entries.get(&(job.tenant, key.clone()))?.entry);
        let own = self.ledger.get(&(job.tenant, key.clone())).or_else(archived);
        own.filter(|entry| entry.of_job.is_none()).cloned()
    }

    fn event_id(&self, tenant: TenantId, lane: LaneId, job: JobId) -> Option<EventId> {
        let destination = &self.lanes.get(&(tenant, lane))?.destination;
        Some(EventId::of(&self.message_of(tenant, job).1.given.key, destination))
    }

    /// Writes what a step of a job makes of the entry beside it.
    pub(crate) fn entry_after_step(
        &mut self,
        entry: Option<&LedgerEntry>,
        change: Option<&Change>,
        command: &Command,
        guarded: bool,
        now: Timestamp,
    ) {
        let (Some(entry), Some(change)) = (entry, change) else { return };
        if let Some(written) = ledger_steps::after_step(entry, change, command, guarded, now) {
            self.ledger.insert((change.job.tenant, entry.key.clone()), written);
        }
    }
}
