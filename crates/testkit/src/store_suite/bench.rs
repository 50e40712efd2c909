//! What the cases have in common: a store, a clock, and short ways to say what is done.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use posthaste_core::{
    Answer, Class, Command, DestinationId, Details, DurationMs, Effect, Evidence, Failure, Fence,
    FinishOutcome, JobId, Kind, LaneId, MessageId, MessageKey, Policy, Refusal, RetryWish, Start, StateName,
    TenantId, Timestamp,
};
use posthaste_store::{
    Acceptance, AcceptedMessage, AppliedOutcome, Change, Clock, Configure, Configured, DestinationKind,
    DestinationRow, Due, Fingerprint, JobCommand, JobView, LeaseGrant, LeaseRequest, LeasedJob, ManagedBy,
    MessageName, MessageView, NewDestination, NewMessage, Store, Target,
};

use super::{Harness, Snapshot, snapshot::Scope};
use crate::ManualClock;

/// How long leases last here.
pub(crate) const LEASE: DurationMs = DurationMs::from_secs(30);
/// When attempts must have ended here.
pub(crate) const DEADLINE: DurationMs = DurationMs::from_mins(10);

/// A store under test.
pub struct Bench {
    harness: Harness,
    clock: Arc<ManualClock>,
    ids: AtomicU64,
}

impl Bench {
    /// An empty store on `clock`.
    pub fn new(harness: Harness, clock: Arc<ManualClock>) -> Self {
        Self { harness, clock, ids: AtomicU64::new(1) }
    }

    pub(crate) fn store(&self) -> &dyn Store {
        &*self.harness.store
    }

    pub(crate) fn shared_store(&self) -> Arc<dyn Store> {
        self.harness.store.clone()
    }

    pub(crate) fn now(&self) -> Timestamp {
        self.clock.now()
    }

    pub(crate) fn advance(&self, by: DurationMs) {
        self.clock.advance(by);
    }

    /// A UUIDv7 of the clock's time; later ones are larger.
    pub(crate) fn message_id(&self) -> MessageId {
        let count = self.ids.fetch_add(1, Ordering::SeqCst);
        message_id(self.now(), count)
    }

    pub(crate) async fn configure(&self, change: Configure) -> Configured {
        self.store().configure(vec![change]).await.unwrap().remove(0)
    }

    pub(crate) async fn tenant(&self, name: &str) -> TenantId {
        let Configured::Tenant(tenant) = self.configure(Configure::Tenant { name: name.into() }).await else {
            panic!("a tenant is made or found");
        };
        tenant
    }

    pub(crate) async fn destination(
        &self,
        tenant: TenantId,
        id: &str,
        kind: DestinationKind,
    ) -> DestinationRow {
        let new = new_destination(tenant, id, kind);
        let Configured::Destination(row) = self.configure(Configure::PutDestination(new)).await else {
            panic!("{id} is made");
        };
        *row
    }

    /// A queue, as the target of messages.
    pub(crate) async fn queue(&self, tenant: TenantId, id: &str) -> Target {
        let row = self.destination(tenant, id, DestinationKind::Queue).await;
        Target { lane: row.lane, destination: row.id, kind: Kind::Pull, wire_id: None, owner: row.owner }
    }

    /// As many queues, all made at once.
    pub(crate) async fn queues(&self, tenant: TenantId, count: usize) -> Vec<Target> {
        let change = |number| {
            Configure::PutDestination(new_destination(
                tenant,
                &format!("queue-{number}"),
                DestinationKind::Queue,
            ))
        };
        let rows = self.store().configure((0..count).map(change).collect()).await.unwrap();
        let target = |configured| match configured {
            Configured::Destination(row) => {
                Target { lane: row.lane, destination: row.id, kind: Kind::Pull, wire_id: None, owner: None }
            }
            other => panic!("{other:?}"),
        };
        rows.into_iter().map(target).collect()
    }

    pub(crate) fn message(&self, tenant: TenantId, key: &str, targets: &[Target]) -> NewMessage {
        new_message(tenant, self.message_id(), key, targets)
    }

    pub(crate) async fn accept(&self, message: NewMessage) -> Acceptance {
        self.store().accept(vec![message]).await.unwrap().remove(0)
    }

    pub(crate) async fn accept_new(&self, message: NewMessage) -> AcceptedMessage {
        match self.accept(message).await {
            Acceptance::New(accepted) => accepted,
            other => panic!("it is new: {other:?}"),
        }
    }

    /// A job that is due now.
    pub(crate) async fn job(&self, tenant: TenantId, key: &str, target: &Target) -> JobId {
        let message = self.message(tenant, key, std::slice::from_ref(target));
        self.accept_new(message).await.jobs[0].id
    }

    pub(crate) async fn view(&self, tenant: TenantId, message: MessageId) -> MessageView {
        self.store().message(tenant, MessageName::Id(message)).await.unwrap().expect("the message is there")
    }

    pub(crate) async fn read(&self, tenant: TenantId, job: JobId) -> JobView {
        self.store().job(tenant, job).await.unwrap().expect("the job is there")
    }

    pub(crate) async fn state(&self, tenant: TenantId, job: JobId) -> StateName {
        self.read(tenant, job).await.job.state.name()
    }

    pub(crate) async fn grant(&self, request: LeaseRequest) -> LeaseGrant {
        self.store().lease(vec![request]).await.unwrap().remove(0)
    }

    /// Leases the one job that is due in the lane.
    pub(crate) async fn lease(&self, tenant: TenantId, lane: LaneId) -> LeasedJob {
        let mut grant = self.grant(lease_request(tenant, lane, 1)).await;
        assert_eq!(1, grant.jobs.len(), "one job is due: {grant:?}");
        grant.jobs.remove(0)
    }

    pub(crate) async fn outcome(&self, command: JobCommand) -> AppliedOutcome {
        let job = command.job;
        let mut applied = self.store().apply(vec![command]).await.unwrap();
        assert_eq!((1, job), (applied.len(), applied[0].job));
        applied.remove(0).outcome
    }

    pub(crate) async fn try_apply(&self, command: JobCommand) -> (Result<Answer, Refusal>, Option<Change>) {
        match self.outcome(command).await {
            AppliedOutcome::Decided { reply, change } => (reply, change.map(|change| *change)),
            other => panic!("the core decides: {other:?}"),
        }
    }

    /// Applies `command` under the default policy; it must be answered yes and write something.
    pub(crate) async fn apply(&self, tenant: TenantId, job: JobId, command: Command) -> Change {
        let (reply, change) = self.try_apply(job_command(tenant, job, command)).await;
        reply.expect("the command is carried out");
        change.expect("something is written")
    }

    /// Leases the lane's one due job and fails it so that it is dead-lettered; the effect is `effect`.
    pub(crate) async fn dead_letter(&self, tenant: TenantId, lane: LaneId, effect: Effect) -> JobId {
        let leased = self.lease(tenant, lane).await;
        let change = self.apply(tenant, leased.job.id, fail(leased.fence, effect, RetryWish::No)).await;
        assert_eq!(StateName::DeadLettered, change.job.state.name());
        leased.job.id
    }

    pub(crate) async fn snapshot(&self, messages: &[(TenantId, MessageId)]) -> Snapshot {
        let scope = Scope { messages: messages.iter().copied().collect(), ..Scope::default() };
        super::snapshot(self.store(), &scope).await
    }
}

/// A UUIDv7 whose first 96 bits are the time and `count`.
pub(crate) fn message_id(now: Timestamp, count: u64) -> MessageId {
    let time = u128::from(now.0.unsigned_abs()) << 80;
    MessageId(
        time | (7 << 76)
            | (u128::from(count >> 12 & 0xFFF) << 64)
            | (2 << 62)
            | (u128::from(count) << 32)
            | 9,
    )
}

pub(crate) fn key(text: &str) -> MessageKey {
    MessageKey::new(text).unwrap()
}

pub(crate) fn new_destination(tenant: TenantId, id: &str, kind: DestinationKind) -> NewDestination {
    NewDestination {
        tenant,
        id: DestinationId::new(id).unwrap(),
        kind,
        config: "{}".into(),
        managed_by: ManagedBy::Api,
        enabled: true,
        owner: None,
        must_be_new: false,
    }
}

pub(crate) fn new_message(tenant: TenantId, id: MessageId, name: &str, targets: &[Target]) -> NewMessage {
    NewMessage {
        tenant,
        id,
        key: key(name),
        aliases: Vec::new(),
        event_type: None,
        source: None,
        fingerprint: Fingerprint([[1; 16]; 5]),
        correlation_id: "request-1".into(),
        traceparent: None,
        content_type: None,
        headers: None,
        metadata: None,
        payload_ref: None,
        payload: Bytes::from_static(b"{}"),
        due: Due::In(DurationMs::ZERO),
        targets: targets.to_vec(),
    }
}

pub(crate) fn lease_request(tenant: TenantId, lane: LaneId, limit: usize) -> LeaseRequest {
    LeaseRequest {
        tenant,
        lane,
        limit,
        bytes_max: 1 << 20,
        worker: "worker-1".into(),
        lease_for: LEASE,
        deadline_after: DEADLINE,
        starts: Start::WithLease,
        policy: Arc::new(Policy::queue_default()),
        guarded: false,
    }
}

pub(crate) fn job_command(tenant: TenantId, job: JobId, command: Command) -> JobCommand {
    let policy = Arc::new(Policy::queue_default());
    JobCommand { tenant, job, command, policy, hold_lane_until: None, actor: Some("tester".into()) }
}

pub(crate) fn finish(fence: Fence) -> Command {
    Command::Finish {
        fence,
        outcome: FinishOutcome::Committed,
        evidence: Evidence::Worker,
        reason: None,
        details: Details::default(),
    }
}

pub(crate) fn fail(fence: Fence, effect: Effect, wish: RetryWish) -> Command {
    let failure = Failure::of_worker(Class::Worker, Some(effect), wish, None);
    Command::Fail { fence, failure, details: Details::default() }
}

/// A failure without effect that is tried again.
pub(crate) fn fail_softly(fence: Fence) -> Command {
    fail(fence, Effect::None, RetryWish::Yes)
}
