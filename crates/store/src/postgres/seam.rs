//! The seam, operation by operation: messages, jobs and what is configured.

use bytes::Bytes;
use posthaste_core::{EventId, JobId, MessageId, TenantId, Timestamp};

use super::{PostgresStore, fault::Fault, reads, session::Session, wants, weight};
use crate::{
    Acceptance, ApiKeyRow, Applied, BoxFuture, Configure, Configured, CustodyEntry, DestinationRow,
    FanOutStep, JobBrief, JobCommand, JobFilter, JobView, LaneHead, LeaseGrant, LeaseRequest, LedgerApplied,
    LedgerCommand, LedgerEntry, MessageName, MessageView, NamedJob, NewMessage, Reads, StateCount, Store,
    StoreError, StoreStatus,
    queue::Rank::{Background, Foreground},
};

impl Store for PostgresStore {
    fn accept(&self, messages: Vec<NewMessage>) -> BoxFuture<'_, Result<Vec<Acceptance>, StoreError>> {
        let tenant = the_one(messages.iter().map(|message| message.tenant));
        self.write(
            (Foreground, tenant, weight::of_messages(&messages)),
            messages,
            |wants, input| wants::wants_of_accept(wants, input),
            |tables, input, now| input.iter().map(|message| tables.accept(message.clone(), now)).collect(),
        )
    }

    fn apply(&self, commands: Vec<JobCommand>) -> BoxFuture<'_, Result<Vec<Applied>, StoreError>> {
        let tenant = the_one(commands.iter().map(|command| command.tenant));
        self.write(
            (Foreground, tenant, weight::of_commands(&commands)),
            commands,
            |wants, input| wants::wants_of_apply(wants, input),
            |tables, input, now| input.iter().map(|command| tables.apply(command, now)).collect(),
        )
    }

    fn lease(&self, requests: Vec<LeaseRequest>) -> BoxFuture<'_, Result<Vec<LeaseGrant>, StoreError>> {
        self.write(
            (Foreground, None, weight::of_requests(&requests)),
            requests,
            |wants, input| wants::wants_of_lease(wants, input),
            |tables, input, now| input.iter().map(|request| tables.lease(request, now)).collect(),
        )
    }

    fn fan_out(&self, jobs_max: usize) -> BoxFuture<'_, Result<FanOutStep, StoreError>> {
        self.write(
            (Background, None, weight::of_fan_out(jobs_max)),
            jobs_max,
            |wants, input| wants::wants_of_fan_out(wants, *input),
            |tables, input, now| tables.fan_out(*input, now),
        )
    }

    fn configure(&self, changes: Vec<Configure>) -> BoxFuture<'_, Result<Vec<Configured>, StoreError>> {
        self.write(
            (Foreground, None, weight::of_changes(&changes)),
            changes,
            |wants, input| wants::wants_of_configure(wants, input),
            |tables, input, now| input.iter().map(|change| tables.configure(change.clone(), now)).collect(),
        )
    }

    fn ledger(&self, commands: Vec<LedgerCommand>) -> BoxFuture<'_, Result<Vec<LedgerApplied>, StoreError>> {
        let tenant = the_one(commands.iter().map(|command| command.tenant));
        self.write(
            (Foreground, tenant, weight::of_ledger(&commands)),
            commands,
            |wants, input| wants::wants_of_ledger(wants, input),
            |tables, input, now| input.iter().map(|command| tables.ledger(command, now)).collect(),
        )
    }

    fn note(&self, entries: Vec<CustodyEntry>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.write(
            (Background, None, weight::of_entries(&entries)),
            entries,
            |wants, input| wants::wants_of_note(wants, input),
            |tables, input, _| input.iter().for_each(|entry| tables.note(entry.clone())),
        )
    }

    fn shared(&self) -> Option<&dyn crate::Shared> {
        Some(self)
    }
}

impl Reads for PostgresStore {
    /// Asks the database each time, and waits for a batch that is in hand.
    fn status(&self) -> BoxFuture<'_, Result<StoreStatus, StoreError>> {
        Box::pin(async move {
            let waiting = self.room.queue.waiting().await?;
            let (now, read_only) = self.read((), |session, ()| Box::pin(status(session))).await?;
            if read_only {
                return Err(StoreError::unavailable("the database takes no writes"));
            }
            Ok(StoreStatus { epoch: self.room.epoch, now, waiting })
        })
    }

    fn message(
        &self,
        tenant: TenantId,
        name: MessageName,
    ) -> BoxFuture<'_, Result<Option<MessageView>, StoreError>> {
        self.read((tenant, name), |session, input| Box::pin(reads::message(session, input.0, &input.1)))
    }

    fn payload(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Option<(Bytes, Option<Box<str>>)>, StoreError>> {
        self.read((tenant, message), |session, input| Box::pin(reads::payload(session, input.0, input.1)))
    }

    fn job(&self, tenant: TenantId, job: JobId) -> BoxFuture<'_, Result<Option<JobView>, StoreError>> {
        self.read((tenant, job), |session, input| Box::pin(reads::job(session, input.0, input.1)))
    }

    fn jobs(&self, tenant: TenantId, filter: JobFilter) -> BoxFuture<'_, Result<Vec<JobView>, StoreError>> {
        self.read((tenant, filter), |session, input| Box::pin(reads::jobs(session, input.0, &input.1)))
    }

    fn message_jobs(
        &self,
        tenant: TenantId,
        message: MessageId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<JobView>, StoreError>> {
        self.read((tenant, message, limit), |session, input| {
            Box::pin(reads::message_jobs(session, input.0, input.1, input.2))
        })
    }

    fn custody(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Vec<CustodyEntry>, StoreError>> {
        self.read((tenant, message), |session, input| Box::pin(reads::custody(session, input.0, input.1)))
    }

    fn tenants(&self) -> BoxFuture<'_, Result<Vec<(TenantId, Box<str>)>, StoreError>> {
        self.read((), |session, ()| Box::pin(reads::tenants(session)))
    }

    fn destinations(&self) -> BoxFuture<'_, Result<Vec<DestinationRow>, StoreError>> {
        self.read((), |session, ()| Box::pin(reads::destinations(session)))
    }

    fn api_keys(&self) -> BoxFuture<'_, Result<Vec<ApiKeyRow>, StoreError>> {
        self.read((), |session, ()| Box::pin(reads::api_keys(session)))
    }

    fn heads(&self) -> BoxFuture<'_, Result<Vec<LaneHead>, StoreError>> {
        self.read((), |session, ()| Box::pin(reads::heads(session)))
    }

    fn expired(
        &self,
        limit: usize,
    ) -> BoxFuture<'_, Result<(Vec<(TenantId, JobId)>, Option<Timestamp>), StoreError>> {
        self.read(limit, |session, input| Box::pin(reads::expired(session, *input)))
    }

    fn counts(&self) -> BoxFuture<'_, Result<Vec<StateCount>, StoreError>> {
        self.read((), |session, ()| Box::pin(reads::counts(session)))
    }

    fn entry(
        &self,
        tenant: TenantId,
        key: EventId,
        job: Option<NamedJob>,
    ) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        self.read((tenant, key, job), |session, (tenant, key, job)| {
            Box::pin(reads::entry(session, *tenant, key, job.as_ref()))
        })
    }

    fn briefs(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Vec<JobBrief>, StoreError>> {
        self.read((tenant, message), |session, input| Box::pin(reads::briefs(session, input.0, input.1)))
    }
}

/// The time, and whether the server takes no writes.
async fn status(session: &mut Session<'_>) -> Result<(Timestamp, bool), Fault> {
    let rows = session.rows(include_str!("sql/status.sql"), &[]).await?;
    let row = rows.first().ok_or(Fault::Invariant("the server told no status"))?;
    Ok((session.now, row.try_get(0)?))
}

/// The tenant of all; `None` if there are several, or none.
fn the_one(mut tenants: impl Iterator<Item = TenantId>) -> Option<TenantId> {
    let first = tenants.next()?;
    tenants.all(|tenant| tenant == first).then_some(first)
}
