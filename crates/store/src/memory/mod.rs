//! In memory: the reference for tests and simulation. Simple, obviously right, and gone with the process.
//!
//! Everything stands in ordered maps behind one lock, which no future holds while it waits. The rules are the core's
//! and those shared by all stores; nothing here decides.

mod accept;
mod apply;
mod bulk;
mod configure;
mod lanes;
mod lease;
mod ledger;
pub(crate) mod read;
pub(crate) mod retention;
mod schedules;
pub(crate) mod tables;
mod unsettled;

use std::sync::Arc;

use bytes::Bytes;
use parking_lot::Mutex;
use posthaste_core::{EventId, JobId, MessageId, RunId, RunKind, TenantId, Timestamp};

use self::tables::{EPOCH, Tables};
use crate::{
    Acceptance, ApiKeyRow, Applied, ArchiveFile, ArchivedMessage, Begun, BoxFuture, Bulk, BulkChange,
    BulkCount, BulkCounted, BulkRun, BulkStep, BulkStepped, Clock, Configure, Configured, Controlled,
    CustodyEntry, DestinationRow, Expiry, ExpiryRequest, FanOutStep, Indexed, JobBrief, JobCommand,
    JobFilter, JobView, LaneHead, LeaseGrant, LeaseRequest, LedgerApplied, LedgerCommand, LedgerEntry,
    MessageName, MessageView, NamedJob, NewBulkRun, NewMessage, Reads, Retain, Retire, Retired, StateCount,
    Store, StoreError, StoreStatus, Tell, Untold,
};

/// A store that forgets everything with the process.
pub struct MemoryStore {
    clock: Arc<dyn Clock>,
    tables: Mutex<Tables>,
}

impl MemoryStore {
    /// An empty store that takes its time from `clock`.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, tables: Mutex::new(Tables::default()) }
    }

    /// A future that does `work` in one go when it is polled first: dropped before, it has done nothing.
    fn at_once<'a, T>(
        &'a self,
        work: impl FnOnce(&mut Tables, Timestamp) -> T + Send + 'a,
    ) -> BoxFuture<'a, Result<T, StoreError>> {
        Box::pin(async move {
            let mut tables = self.tables.lock();
            // Read under the lock, so that time and order agree.
            let now = self.clock.now();
            Ok(work(&mut tables, now))
        })
    }
}

impl Store for MemoryStore {
    fn accept(&self, messages: Vec<NewMessage>) -> BoxFuture<'_, Result<Vec<Acceptance>, StoreError>> {
        self.at_once(move |tables, now| {
            messages.into_iter().map(|message| tables.accept(message, now)).collect()
        })
    }

    fn apply(&self, commands: Vec<JobCommand>) -> BoxFuture<'_, Result<Vec<Applied>, StoreError>> {
        self.at_once(move |tables, now| commands.iter().map(|command| tables.apply(command, now)).collect())
    }

    fn lease(&self, requests: Vec<LeaseRequest>) -> BoxFuture<'_, Result<Vec<LeaseGrant>, StoreError>> {
        self.at_once(move |tables, now| requests.iter().map(|request| tables.lease(request, now)).collect())
    }

    fn fan_out(&self, jobs_max: usize) -> BoxFuture<'_, Result<FanOutStep, StoreError>> {
        self.at_once(move |tables, now| tables.fan_out(jobs_max, now))
    }

    fn configure(&self, changes: Vec<Configure>) -> BoxFuture<'_, Result<Vec<Configured>, StoreError>> {
        self.at_once(move |tables, now| {
            changes.into_iter().map(|change| tables.configure(change, now)).collect()
        })
    }

    fn ledger(&self, commands: Vec<LedgerCommand>) -> BoxFuture<'_, Result<Vec<LedgerApplied>, StoreError>> {
        self.at_once(move |tables, now| commands.iter().map(|command| tables.ledger(command, now)).collect())
    }

    fn note(&self, entries: Vec<CustodyEntry>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.at_once(move |tables, _| entries.into_iter().for_each(|entry| tables.note(entry)))
    }
}

impl Reads for MemoryStore {
    fn status(&self) -> BoxFuture<'_, Result<StoreStatus, StoreError>> {
        self.at_once(|_, now| StoreStatus { epoch: EPOCH, now, waiting: 0 })
    }

    fn message(
        &self,
        tenant: TenantId,
        name: MessageName,
    ) -> BoxFuture<'_, Result<Option<MessageView>, StoreError>> {
        self.at_once(move |tables, _| tables.message_view(tenant, &name))
    }

    fn payload(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Option<(Bytes, Option<Box<str>>)>, StoreError>> {
        self.at_once(move |tables, _| tables.payload(tenant, message))
    }

    fn job(&self, tenant: TenantId, job: JobId) -> BoxFuture<'_, Result<Option<JobView>, StoreError>> {
        self.at_once(move |tables, _| tables.job_view(tenant, job))
    }

    fn jobs(&self, tenant: TenantId, filter: JobFilter) -> BoxFuture<'_, Result<Vec<JobView>, StoreError>> {
        self.at_once(move |tables, _| tables.job_list(tenant, &filter))
    }

    fn message_jobs(
        &self,
        tenant: TenantId,
        message: MessageId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<JobView>, StoreError>> {
        self.at_once(move |tables, _| tables.message_jobs(tenant, message, limit))
    }

    fn custody(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Vec<CustodyEntry>, StoreError>> {
        self.at_once(move |tables, _| tables.custody_of_message(tenant, message))
    }

    fn tenants(&self) -> BoxFuture<'_, Result<Vec<(TenantId, Box<str>)>, StoreError>> {
        self.at_once(|tables, _| tables.tenants())
    }

    fn destinations(&self) -> BoxFuture<'_, Result<Vec<DestinationRow>, StoreError>> {
        self.at_once(|tables, _| tables.destinations())
    }

    fn api_keys(&self) -> BoxFuture<'_, Result<Vec<ApiKeyRow>, StoreError>> {
        self.at_once(|tables, _| tables.api_keys())
    }

    fn heads(&self) -> BoxFuture<'_, Result<Vec<LaneHead>, StoreError>> {
        self.at_once(|tables, _| tables.heads())
    }

    fn expired(
        &self,
        limit: usize,
    ) -> BoxFuture<'_, Result<(Vec<(TenantId, JobId)>, Option<Timestamp>), StoreError>> {
        self.at_once(move |tables, now| tables.expired(limit, now))
    }

    fn counts(&self) -> BoxFuture<'_, Result<Vec<StateCount>, StoreError>> {
        self.at_once(|tables, _| tables.counts())
    }

    fn entry(
        &self,
        tenant: TenantId,
        key: EventId,
        job: Option<NamedJob>,
    ) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        self.at_once(move |tables, _| tables.entry(tenant, &key, job.as_ref()))
    }

    fn briefs(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Vec<JobBrief>, StoreError>> {
        self.at_once(move |tables, _| tables.briefs(tenant, message))
    }
}

impl Bulk for MemoryStore {
    fn bulk_begin(&self, new: NewBulkRun) -> BoxFuture<'_, Result<Begun, StoreError>> {
        self.at_once(move |tables, now| tables.bulk_begin(&new, now))
    }

    fn bulk_step(&self, step: BulkStep) -> BoxFuture<'_, Result<Option<BulkStepped>, StoreError>> {
        self.at_once(move |tables, now| tables.bulk_step(&step, now))
    }

    fn bulk_control(
        &self,
        tenant: TenantId,
        run: RunId,
        change: BulkChange,
    ) -> BoxFuture<'_, Result<Controlled, StoreError>> {
        self.at_once(move |tables, now| tables.bulk_control(tenant, run, &change, now))
    }

    fn bulk_count(&self, count: BulkCount) -> BoxFuture<'_, Result<BulkCounted, StoreError>> {
        self.at_once(move |tables, _| tables.bulk_count(&count))
    }

    fn bulk_run(&self, tenant: TenantId, run: RunId) -> BoxFuture<'_, Result<Option<BulkRun>, StoreError>> {
        self.at_once(move |tables, _| tables.bulk_run(tenant, run))
    }

    fn bulk_runs(
        &self,
        tenant: TenantId,
        kind: RunKind,
        before: Option<RunId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<BulkRun>, StoreError>> {
        self.at_once(move |tables, _| tables.bulk_list(tenant, kind, before, limit))
    }

    fn bulk_running(&self) -> BoxFuture<'_, Result<Vec<BulkRun>, StoreError>> {
        self.at_once(|tables, _| tables.bulk_running())
    }
}

impl Retain for MemoryStore {
    fn expirable(&self, request: ExpiryRequest) -> BoxFuture<'_, Result<Expiry, StoreError>> {
        self.at_once(move |tables, now| tables.expirable(&request, now))
    }

    fn retire(
        &self,
        file: Option<ArchiveFile>,
        records: Vec<Retire>,
    ) -> BoxFuture<'_, Result<Vec<Retired>, StoreError>> {
        self.at_once(move |tables, now| tables.retire(file, &records, now))
    }

    fn archived(
        &self,
        tenant: TenantId,
        name: MessageName,
    ) -> BoxFuture<'_, Result<Option<ArchivedMessage>, StoreError>> {
        self.at_once(move |tables, _| tables.archived(tenant, &name))
    }

    fn archive_files(
        &self,
        after: Option<Box<str>>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<ArchiveFile>, StoreError>> {
        self.at_once(move |tables, _| tables.list_archive_files(after.as_deref(), limit))
    }

    fn archived_in(
        &self,
        file: Box<str>,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Indexed>, StoreError>> {
        self.at_once(move |tables, _| tables.archived_in(&file, after, limit))
    }
}

impl Tell for MemoryStore {
    fn untold(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Untold>, StoreError>> {
        self.at_once(move |tables, _| tables.untold.values().take(limit).copied().collect())
    }

    fn told(&self, rows: Vec<Untold>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.at_once(move |tables, _| {
            for row in rows {
                tables.untold.remove(&(row.tenant, row.job, row.at));
            }
        })
    }
}
