//! Entries of the ledger, and the jobs that event ids mean.

use std::collections::BTreeSet;

use posthaste_core::{JobId, LaneId, MessageKey, TenantId};
use tokio_postgres::Row;

use super::{
    jobs::{EntryRows, JobRows, JobWants, add},
    statements, texts,
};
use crate::postgres::{
    decode,
    fault::Fault,
    session::Session,
    wants::{JobWant, Wants},
};

/// What was read of the ledger.
#[derive(Default)]
pub(super) struct LedgerRows {
    entries: EntryRows,
    names: Vec<Row>,
    first_fence: Vec<Row>,
    /// Whether anybody uses it, if that was asked.
    any: Vec<Row>,
}

impl Session<'_> {
    /// Reads entries by their keys, and the names of the messages that they may be of.
    pub(super) async fn read_ledger(&self, wants: &Wants) -> Result<LedgerRows, Fault> {
        let any = async {
            if self.ledger_used || !wants.locks_lanes() {
                return Ok(Vec::new());
            }
            self.ask(statements::LEDGER_ANY, Vec::new()).await
        };
        if wants.entries.is_empty() {
            return Ok(LedgerRows { any: any.await?, ..LedgerRows::default() });
        }
        let keys = || texts(wants.entries.iter().map(|(tenant, key)| (*tenant, key.as_str())));
        let named = wants.named.iter().map(|(tenant, key, _)| (*tenant, key.as_str()));
        let pins = wants.pins.iter().map(|(tenant, key, _)| (*tenant, key.as_str()));
        let names: BTreeSet<_> = named.chain(pins).collect();
        let (entries, archived, names, first_fence, any) = tokio::try_join!(
            self.ask(statements::ENTRIES, keys()),
            self.ask(statements::ARCHIVED_ENTRIES, keys()),
            self.ask(statements::NAMES, texts(names.into_iter())),
            self.ask(statements::FIRST_FENCE, Vec::new()),
            any
        )?;
        Ok(LedgerRows { entries: EntryRows { entries, archived }, names, first_fence, any })
    }

    pub(super) fn keep_ledger(&mut self, wants: &Wants, rows: &LedgerRows) -> Result<(), Fault> {
        for row in &rows.any {
            self.ledger_used |= decode::flag(row, 0)?;
        }
        for row in &rows.first_fence {
            self.tables.first_fence = decode::count(row, 0)?;
            self.base.first_fence = self.tables.first_fence;
        }
        for row in &rows.names {
            let ((tenant, key), ..) = decode::key(row)?;
            let comes = wants.accepts.iter().any(|new| new.tenant == tenant && new.names.contains(&key));
            if comes && !self.tables.names.contains_key(&(tenant, key)) {
                // Somebody took a name of a message that comes, since names were looked up.
                return Err(Fault::Raced);
            }
            self.keep_name(row)?;
        }
        self.keep_entries(&rows.entries)
    }

    /// Reads the jobs that event ids mean.
    pub(super) async fn read_named_jobs(&self, wants: &Wants) -> Result<JobRows, Fault> {
        let mut jobs = JobWants::new();
        for (tenant, key, lane) in &wants.named {
            if let Some(job) = self.job_named(*tenant, key, *lane) {
                add(&mut jobs, (*tenant, job), JobWant::WHOLE);
            }
        }
        let leased = |(tenant, job): &(TenantId, JobId)| wants.leases.contains_key(&(*tenant, job.lane()));
        let bodies = jobs.keys().copied().filter(leased).collect();
        self.read_jobs(&jobs, &bodies).await
    }

    pub(super) fn job_named(&self, tenant: TenantId, key: &MessageKey, lane: LaneId) -> Option<JobId> {
        let message = self.tables.names.get(&(tenant, key.clone()))?;
        Some(JobId::of(*message, lane))
    }
}
