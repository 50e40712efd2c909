//! A tenant, a queue, messages and jobs, for tests of stores.

#![allow(dead_code, clippy::unwrap_used)] // each test file uses its part; helpers of tests are tests

use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::{
    Command, DestinationId, Details, DurationMs, Evidence, Fence, FinishOutcome, JobId, Kind, MessageId,
    MessageKey, Policy, Start, TenantId, Timestamp,
};
use posthaste_store::{
    Acceptance, AcceptedMessage, Configure, Configured, DestinationKind, Due, Fingerprint, JobCommand,
    LeaseRequest, LeasedJob, ManagedBy, NewDestination, NewMessage, Store, StoreError, Target,
};

/// The default tenant and a queue.
pub(crate) async fn configure(store: &(impl Store + ?Sized)) -> (TenantId, Target) {
    let made = store.configure(vec![Configure::Tenant { name: "default".into() }]).await.unwrap();
    let [Configured::Tenant(tenant)] = made[..] else { panic!("a tenant is made: {made:?}") };
    let queue = NewDestination {
        tenant,
        id: DestinationId::new("mails").unwrap(),
        kind: DestinationKind::Queue,
        config: "{}".into(),
        managed_by: ManagedBy::Api,
        enabled: true,
        owner: None,
        must_be_new: false,
    };
    let made = store.configure(vec![Configure::PutDestination(queue)]).await.unwrap().remove(0);
    let Configured::Destination(row) = made else { panic!("a queue is made: {made:?}") };
    (tenant, Target { lane: row.lane, destination: row.id, kind: Kind::Pull, wire_id: None, owner: None })
}

pub(crate) fn id(number: u32) -> MessageId {
    MessageId(0x0190_0000_0000_7000_8000_0000_0000_0000 | u128::from(number) << 32)
}

pub(crate) fn message(tenant: TenantId, number: u32, key: &str, target: &Target) -> NewMessage {
    NewMessage {
        tenant,
        id: id(number),
        key: MessageKey::new(key).unwrap(),
        aliases: Vec::new(),
        event_type: None,
        source: None,
        fingerprint: Fingerprint([[1; 16]; 5]),
        correlation_id: format!("request-{number}").into(),
        traceparent: None,
        content_type: Some("application/json".into()),
        headers: None,
        metadata: None,
        payload_ref: None,
        payload: Bytes::from(format!("{{\"number\":{number}}}")),
        due: Due::In(DurationMs::ZERO),
        targets: vec![target.clone()],
    }
}

pub(crate) async fn accept(
    store: &(impl Store + ?Sized),
    message: NewMessage,
) -> Result<Acceptance, StoreError> {
    Ok(store.accept(vec![message]).await?.remove(0))
}

pub(crate) async fn accept_new(store: &(impl Store + ?Sized), message: NewMessage) -> AcceptedMessage {
    match accept(store, message).await.unwrap() {
        Acceptance::New(accepted) => accepted,
        other @ (Acceptance::Duplicate(_) | Acceptance::KeyReused { .. }) => panic!("it is new: {other:?}"),
    }
}

pub(crate) async fn lease(
    store: &(impl Store + ?Sized),
    tenant: TenantId,
    target: &Target,
    limit: usize,
) -> Vec<LeasedJob> {
    let request = LeaseRequest {
        tenant,
        lane: target.lane,
        limit,
        bytes_max: 1 << 20,
        worker: "worker-1".into(),
        lease_for: DurationMs::from_secs(30),
        deadline_after: DurationMs::from_mins(10),
        starts: Start::WithLease,
        guarded: false,
        policy: Arc::new(Policy::queue_default()),
    };
    store.lease(vec![request]).await.unwrap().remove(0).jobs
}

pub(crate) fn finish(tenant: TenantId, job: JobId, fence: Fence) -> JobCommand {
    let details = Details { result: Some((*b"{\"sent\":true}").into()), ..Details::default() };
    JobCommand {
        tenant,
        job,
        command: Command::Finish {
            fence,
            outcome: FinishOutcome::Committed,
            evidence: Evidence::Worker,
            reason: None,
            details,
        },
        policy: Arc::new(Policy::queue_default()),
        hold_lane_until: Some(Timestamp(17)),
        actor: None,
    }
}
