//! The seam, operation by operation.

// A method of a type with a lifetime is no `fn` for every lifetime, but a closure is.
#![allow(clippy::redundant_closure, clippy::redundant_closure_for_method_calls)]

use bytes::Bytes;
use posthaste_core::{EventId, JobId, MessageId, TenantId, Timestamp};

use super::{
    SqliteStore, weight,
    work::Rank::{Background, Foreground},
};
use crate::{
    Acceptance, ApiKeyRow, Applied, ArchiveFile, ArchivedMessage, BoxFuture, Configure, Configured,
    CustodyEntry, DestinationRow, Expiry, ExpiryRequest, FanOutStep, Indexed, JobBrief, JobCommand,
    JobFilter, JobView, LaneHead, LeaseGrant, LeaseRequest, LedgerApplied, LedgerCommand, LedgerEntry,
    MessageName, MessageView, NamedJob, NewMessage, Reads, Retain, Retire, Retired, StateCount, Store,
    StoreError, StoreStatus, Tell, Untold,
};

impl Store for SqliteStore {
    fn accept(&self, messages: Vec<NewMessage>) -> BoxFuture<'_, Result<Vec<Acceptance>, StoreError>> {
        let tenant = the_one(messages.iter().map(|message| message.tenant));
        self.write(Foreground, tenant, weight::of_messages(&messages), messages, |session, input| {
            session.accept(input)
        })
    }

    fn apply(&self, commands: Vec<JobCommand>) -> BoxFuture<'_, Result<Vec<Applied>, StoreError>> {
        let tenant = the_one(commands.iter().map(|command| command.tenant));
        self.write(Foreground, tenant, weight::of_commands(&commands), commands, |session, input| {
            session.apply(input)
        })
    }

    fn lease(&self, requests: Vec<LeaseRequest>) -> BoxFuture<'_, Result<Vec<LeaseGrant>, StoreError>> {
        self.write(Foreground, None, weight::of_requests(&requests), requests, |session, input| {
            session.lease(input)
        })
    }

    fn fan_out(&self, jobs_max: usize) -> BoxFuture<'_, Result<FanOutStep, StoreError>> {
        self.write(Background, None, weight::of_fan_out(jobs_max), jobs_max, |session, input| {
            session.fan_out(*input)
        })
    }

    fn configure(&self, changes: Vec<Configure>) -> BoxFuture<'_, Result<Vec<Configured>, StoreError>> {
        self.write(Foreground, None, weight::of_changes(&changes), changes, |session, input| {
            session.configure(input)
        })
    }

    fn ledger(&self, commands: Vec<LedgerCommand>) -> BoxFuture<'_, Result<Vec<LedgerApplied>, StoreError>> {
        let tenant = the_one(commands.iter().map(|command| command.tenant));
        self.write(Foreground, tenant, weight::of_ledger(&commands), commands, |session, input| {
            session.ledger(input)
        })
    }

    fn note(&self, entries: Vec<CustodyEntry>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.write(Background, None, weight::of_entries(&entries), entries, |session, input| {
            session.note(input)
        })
    }
}

impl Reads for SqliteStore {
    fn status(&self) -> BoxFuture<'_, Result<StoreStatus, StoreError>> {
        Box::pin(async move {
            let waiting = self.queue.waiting().await?;
            Ok(StoreStatus { epoch: self.epoch, now: self.options.clock.now(), waiting })
        })
    }

    fn message(
        &self,
        tenant: TenantId,
        name: MessageName,
    ) -> BoxFuture<'_, Result<Option<MessageView>, StoreError>> {
        // Before the read's snapshot is taken.
        let row = match &name {
            MessageName::Key(key) => self.recent.row_of(tenant, key),
            MessageName::Id(_) => None,
        };
        self.read((tenant, name, row), |session, input| session.message(input))
    }

    fn payload(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Option<(Bytes, Option<Box<str>>)>, StoreError>> {
        self.read((tenant, message), |session, input| session.payload(input))
    }

    fn job(&self, tenant: TenantId, job: JobId) -> BoxFuture<'_, Result<Option<JobView>, StoreError>> {
        self.read((tenant, job), |session, input| session.job(input))
    }

    fn jobs(&self, tenant: TenantId, filter: JobFilter) -> BoxFuture<'_, Result<Vec<JobView>, StoreError>> {
        self.read((tenant, filter), |session, input| session.jobs(input))
    }

    fn message_jobs(
        &self,
        tenant: TenantId,
        message: MessageId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<JobView>, StoreError>> {
        self.read((tenant, message, limit), |session, input| session.message_jobs(input))
    }

    fn custody(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Vec<CustodyEntry>, StoreError>> {
        self.read((tenant, message), |session, input| session.custody(input))
    }

    fn tenants(&self) -> BoxFuture<'_, Result<Vec<(TenantId, Box<str>)>, StoreError>> {
        self.read((), |session, ()| session.tenants())
    }

    fn destinations(&self) -> BoxFuture<'_, Result<Vec<DestinationRow>, StoreError>> {
        self.read((), |session, ()| session.destinations())
    }

    fn api_keys(&self) -> BoxFuture<'_, Result<Vec<ApiKeyRow>, StoreError>> {
        self.read((), |session, ()| session.api_keys())
    }

    fn heads(&self) -> BoxFuture<'_, Result<Vec<LaneHead>, StoreError>> {
        self.read((), |session, ()| session.heads())
    }

    fn expired(
        &self,
        limit: usize,
    ) -> BoxFuture<'_, Result<(Vec<(TenantId, JobId)>, Option<Timestamp>), StoreError>> {
        self.read(limit, |session, input| session.expired(*input))
    }

    fn counts(&self) -> BoxFuture<'_, Result<Vec<StateCount>, StoreError>> {
        self.read((), |session, ()| session.counts())
    }

    fn entry(
        &self,
        tenant: TenantId,
        key: EventId,
        job: Option<NamedJob>,
    ) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        let row = job.as_ref().and_then(|job| self.recent.row_of(tenant, &job.key));
        self.read((tenant, key, job, row), |session, input| session.entry(input))
    }

    fn briefs(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Vec<JobBrief>, StoreError>> {
        self.read((tenant, message), |session, input| session.briefs(input))
    }
}

impl Retain for SqliteStore {
    fn expirable(&self, request: ExpiryRequest) -> BoxFuture<'_, Result<Expiry, StoreError>> {
        self.read(request, |session, input| session.expirable(input))
    }

    fn retire(
        &self,
        file: Option<ArchiveFile>,
        records: Vec<Retire>,
    ) -> BoxFuture<'_, Result<Vec<Retired>, StoreError>> {
        self.write(Background, None, weight::of_retired(&records), (file, records), |session, input| {
            session.retire(input)
        })
    }

    fn archived(
        &self,
        tenant: TenantId,
        name: MessageName,
    ) -> BoxFuture<'_, Result<Option<ArchivedMessage>, StoreError>> {
        // Before the read's snapshot is taken.
        let row = match &name {
            MessageName::Key(key) => self.recent.row_of(tenant, key),
            MessageName::Id(_) => None,
        };
        self.read((tenant, name, row), |session, input| session.archived(input))
    }

    fn archive_files(
        &self,
        after: Option<Box<str>>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<ArchiveFile>, StoreError>> {
        self.read((after, limit), |session, input| session.archive_files(input))
    }

    fn archived_in(
        &self,
        file: Box<str>,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Indexed>, StoreError>> {
        self.read((file, after, limit), |session, input| session.archived_in(input))
    }
}

impl Tell for SqliteStore {
    fn untold(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Untold>, StoreError>> {
        self.read(limit, |session, input| session.untold(*input))
    }

    fn told(&self, rows: Vec<Untold>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.write(Background, None, weight::of_untold(&rows), rows, |session, input| session.told(input))
    }
}

/// The tenant of all; `None` if there are several, or none.
fn the_one(mut tenants: impl Iterator<Item = TenantId>) -> Option<TenantId> {
    let first = tenants.next()?;
    tenants.all(|tenant| tenant == first).then_some(first)
}
