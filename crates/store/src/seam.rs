//! The seam: what the engine asks of a store. Two production implementations, and `memory`.

use std::{future::Future, pin::Pin};

use bytes::Bytes;
use posthaste_core::{Epoch, EventId, JobId, MessageId, MessageKey, TenantId, Timestamp};

use crate::{
    Acceptance, ApiKeyRow, Applied, Configure, Configured, CustodyEntry, DestinationRow, JobBrief,
    JobCommand, JobFilter, JobView, LaneHead, LeaseGrant, LeaseRequest, LedgerApplied, LedgerCommand,
    LedgerEntry, MessageView, NamedJob, NewMessage, StateCount, StoreError,
};

/// A boxed future, so that the seam stays object-safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Time, for stores without a database server's clock.
///
/// Wall time at start plus monotonic time, so that a step of the wall clock never expires a lease.
pub trait Clock: Send + Sync {
    /// Now.
    fn now(&self) -> Timestamp;
}

/// The durable truth: what changes it.
///
/// Every write goes through one bounded queue and is committed together with whatever else waited (group commit).
/// An answer, also a refusal or "duplicate", is given only after the commit that it rests on.
///
/// Durability: on `Ok` everything that the answer says survives a crash and a loss of power. Errors:
/// [`StoreError::Unavailable`], [`StoreError::Overloaded`] and [`StoreError::Conflict`] changed nothing;
/// [`StoreError::InDoubt`] may have. Cancel safety: dropping a future has the effect of `InDoubt`.
///
/// One call sees one instant: the clock is read once for it. A new store has epoch 1, no tenant, no lane and no row.
///
/// What the caller owes, and no store checks: the tenant of every row is one that the store gave; the lane of every
/// [`crate::Target`] is the one that the store gave to its destination; message ids differ within their first 96
/// bits, since a job's id holds no more of them; sizes are within [`posthaste_core::limits`]. A store keeps whatever
/// text and bytes it is given as they are, NUL bytes too, and keeps numbers up to `i64::MAX`.
pub trait Store:
    Reads + crate::Retain + crate::Schedules + crate::Lanes + crate::Bulk + crate::Unsettled + crate::Tell
{
    /// Accepts messages: claims all their names and stores payload and jobs, or finds who has the names.
    ///
    /// One commit; answers in order. A message fails alone, and sees those before it in the same call.
    ///
    /// The message that is known is looked for by the business key first, then by the other names as given.
    ///
    /// - Found, and its id is the proposed one: this very message, sent again. [`Acceptance::New`] with its jobs as they
    ///   are now; nothing is compared, counted or written.
    /// - Found by the business key, which is the business key of the found one too, and the fingerprints differ:
    ///   [`Acceptance::KeyReused`]. Nothing is written or counted. By any other name nothing is compared.
    /// - Found otherwise: [`Acceptance::Duplicate`]. Counted, and noted in custody up to
    ///   [`posthaste_core::limits::DUPLICATES_RECORDED_MAX`] times. Names that nobody has are added to the found
    ///   message while it has fewer than [`posthaste_core::limits::ALIASES_MAX`] other names: the given business key
    ///   first, as [`crate::KeyKind::Alias`], then the others as given. Names of other messages stay theirs.
    /// - Not found: [`Acceptance::New`]. A name that is given twice is kept once, under its first kind. A lane that is
    ///   given twice is owed one job, by its first target. A message without targets is stored.
    ///
    /// Jobs made here are of [`posthaste_core::Share::Fresh`]. With more than
    /// [`posthaste_core::limits::FANOUT_INLINE_MAX`] distinct lanes none is made here and [`Store::fan_out`] makes
    /// all. A delay counts from the acceptance.
    fn accept(&self, messages: Vec<NewMessage>) -> BoxFuture<'_, Result<Vec<Acceptance>, StoreError>>;

    /// Applies commands to jobs, in order: a later one sees what an earlier one did. One commit; answers in order.
    ///
    /// The facts say what the ledger's row of the job's event id says, if there is one; and what a step means for a
    /// grant that the queue gave through the job is written to that row. A corrupt or missing
    /// job's command writes nothing, no hold either, and leaves the others alone.
    fn apply(&self, commands: Vec<JobCommand>) -> BoxFuture<'_, Result<Vec<Applied>, StoreError>>;

    /// Leases due jobs, by share, oldest `due_at` first; a lane gives as many as [`posthaste_core::Lane::admits`], none
    /// while it is held. While the tenant's scheduling is paused, fresh work that became due since then waits. One commit;
    /// answers in order.
    ///
    /// Candidates are due at or before now, and wait for an attempt: a job that waits for a look-up is none, whatever
    /// else is known of it, and doesn't count as waiting. [`posthaste_core::share_out`] says how many of each share to
    /// take; within a share by `due_at`, then by id. A job that evidence settles uses up a slot but no bytes. The first
    /// job whose payload would take the sum of the leased payloads above `bytes_max` ends the grant, unless none was
    /// leased before it. A lane that the store doesn't know gives nothing.
    fn lease(&self, requests: Vec<LeaseRequest>) -> BoxFuture<'_, Result<Vec<LeaseGrant>, StoreError>>;

    /// Makes up to `jobs_max` jobs of messages whose fan-out is running, oldest message first.
    ///
    /// Messages in the order of their acceptance, over all tenants; of each the targets in the order given. A job made
    /// here is created now and due when its message's jobs are; it is of [`posthaste_core::Share::Fresh`] while its
    /// message is younger than 10 minutes, else of [`posthaste_core::Share::Bulk`].
    fn fan_out(&self, jobs_max: usize) -> BoxFuture<'_, Result<FanOutStep, StoreError>>;

    /// Changes configuration. One commit; answers in order; a later change sees the earlier ones.
    fn configure(&self, changes: Vec<Configure>) -> BoxFuture<'_, Result<Vec<Configured>, StoreError>>;

    /// Applies commands to ledger entries, in order: a later one sees what an earlier one did. One commit; answers in
    /// order. The rules are those of [`posthaste_core::ledger`].
    ///
    /// A key without an entry that names a job of a queue that keeps the ledger is read from that job, while it was
    /// tried: what is written then is a row. An entry that becomes done settles its job, if that waits or is a dead
    /// letter.
    fn ledger(&self, commands: Vec<LedgerCommand>) -> BoxFuture<'_, Result<Vec<LedgerApplied>, StoreError>>;

    /// Notes what stands in no other row. The entries are kept as given, each time they are given.
    fn note(&self, entries: Vec<CustodyEntry>) -> BoxFuture<'_, Result<(), StoreError>>;

    /// What the processes that share this store know of each other; `None`: it is one process's alone.
    fn shared(&self) -> Option<&dyn crate::Shared> {
        None
    }
}

/// What one step of fan-out did.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FanOutStep {
    /// How many jobs were made.
    pub jobs: usize,
    /// The lanes that got some, each once, by tenant and lane: with the time of the lane's next job of all, as
    /// [`Reads::heads`] would say.
    pub heads: Vec<LaneHead>,
    /// Whether more is left.
    pub more: bool,
}

/// The durable truth: what can be read. Reads see every commit whose answer was given before they began.
///
/// Errors: [`StoreError::Unavailable`] and, for one row, [`StoreError::Corrupt`]. Cancel: safe.
pub trait Reads: Send + Sync {
    /// Whether the store works, and what it is.
    fn status(&self) -> BoxFuture<'_, Result<StoreStatus, StoreError>>;

    /// A message by id or by any of its names.
    fn message(
        &self,
        tenant: TenantId,
        name: MessageName,
    ) -> BoxFuture<'_, Result<Option<MessageView>, StoreError>>;

    /// A message's payload: the exact bytes, and their media type. No bytes if the payload is elsewhere.
    #[allow(clippy::type_complexity)] // a pair, if there is one
    fn payload(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Option<(Bytes, Option<Box<str>>)>, StoreError>>;

    /// A job with its attempts.
    fn job(&self, tenant: TenantId, job: JobId) -> BoxFuture<'_, Result<Option<JobView>, StoreError>>;

    /// A list of jobs without their attempts; at most `filter.limit`, live and settled ones alike.
    ///
    /// By creation is by id: the first bits of an id are the time of its message. `after` need not exist any more.
    fn jobs(&self, tenant: TenantId, filter: JobFilter) -> BoxFuture<'_, Result<Vec<JobView>, StoreError>>;

    /// A message's first jobs, at most `limit`, with their attempts, by lane.
    fn message_jobs(
        &self,
        tenant: TenantId,
        message: MessageId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<JobView>, StoreError>>;

    /// A message's custody entries, oldest first (in the order in which they were written), at most 1,000.
    fn custody(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Vec<CustodyEntry>, StoreError>>;

    /// Every tenant, by number.
    #[allow(clippy::type_complexity)] // a list of pairs
    fn tenants(&self) -> BoxFuture<'_, Result<Vec<(TenantId, Box<str>)>, StoreError>>;

    /// Every destination and source of every tenant, by tenant and id (by bytes).
    fn destinations(&self) -> BoxFuture<'_, Result<Vec<DestinationRow>, StoreError>>;

    /// Every API key of every tenant, revoked ones too, by tenant and id.
    fn api_keys(&self) -> BoxFuture<'_, Result<Vec<ApiKeyRow>, StoreError>>;

    /// Every lane's next due time: the safety net under the dispatcher's heap, and its start. By tenant and lane; a
    /// lane in which no job waits for an attempt is left out, and jobs that wait for a look-up don't count.
    fn heads(&self) -> BoxFuture<'_, Result<Vec<LaneHead>, StoreError>>;

    /// Leases that ran out by `now`, oldest first, at most `limit`; and when the next one after them runs out.
    ///
    /// By the end of the lease (a lease ends at `expires_at`, that instant included), then tenant, then id. The next
    /// one is past if `limit` cut the list.
    #[allow(clippy::type_complexity)] // two plain lists
    fn expired(
        &self,
        limit: usize,
    ) -> BoxFuture<'_, Result<(Vec<(TenantId, JobId)>, Option<Timestamp>), StoreError>>;

    /// How many jobs are in each state: by tenant, then in the order of the states; without those that have none.
    fn counts(&self) -> BoxFuture<'_, Result<Vec<StateCount>, StoreError>>;

    /// A ledger entry: a row, or read from the job that `job` names as [`Store::ledger`] reads it.
    fn entry(
        &self,
        tenant: TenantId,
        key: EventId,
        job: Option<NamedJob>,
    ) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>>;

    /// A brief of the jobs that `accept` would list for this message: by lane, at most
    /// [`posthaste_core::limits::JOBS_LISTED_MAX`].
    fn briefs(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Vec<JobBrief>, StoreError>>;
}

/// How a message is asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MessageName {
    /// By id.
    Id(MessageId),
    /// By any of its names.
    Key(MessageKey),
}

/// What a store is, and whether it works.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StoreStatus {
    /// Its epoch.
    pub epoch: Epoch,
    /// Its time.
    pub now: Timestamp,
    /// Writes that wait.
    pub waiting: usize,
}

// The seam must stay object-safe.
const _: fn(&dyn Store, &dyn Clock) = |_, _| ();
