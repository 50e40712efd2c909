//! The fenced start: it is durable before the first byte leaves, so that a node's death is told apart from an effect. C10.

use std::sync::Arc;

use parking_lot::Mutex;
use posthaste_core::{Cause, DurationMs, JobId, Start, State, StateName};
use posthaste_engine::{
    Engine, EngineParts, Publish, PublishDue, PublishTo, Settings,
    config::{EndpointSpec, OnUnknownSpec},
    ports::{BoxFuture, HttpSender, OutboundRequest, SendOutcome},
};
use posthaste_store::{LeaseRequest, ManagedBy, Reads, Store, memory::MemoryStore};
use posthaste_testkit::{ManualClock, answer, header};

use crate::support::{AnyUrl, Bench, PlainSecrets, endpoint, id, message};

const NODE_WITH: usize = 100;

fn left_to_a_person(name: &str) -> EndpointSpec {
    EndpointSpec { on_unknown: Some(OnUnknownSpec::DeadLetter), ..endpoint(name) }
}

/// Leases everything that is due, as a node that is killed right after it. The endpoint takes no part any more, so that the
/// engine under test leases none.
async fn lease_and_die(bench: &Bench, starts: Start) {
    let directory = bench.engine.directory();
    let entry = directory.find(bench.tenant, &id("fan_17")).unwrap();
    let lane = entry.row.lane;
    let request = LeaseRequest {
        tenant: bench.tenant,
        lane,
        limit: NODE_WITH,
        bytes_max: 1_000_000,
        worker: "node-that-dies".into(),
        lease_for: DurationMs::from_secs(30),
        deadline_after: DurationMs::from_secs(30),
        starts,
        policy: directory.policy(bench.tenant, lane),
        guarded: false,
    };
    let grant = bench.store.lease(vec![request]).await.unwrap().remove(0);
    assert_eq!(NODE_WITH, grant.jobs.len());
    bench.endpoint(EndpointSpec { enabled: Some(false), ..left_to_a_person("fan_17") }).await;
}

/// A hundred jobs that become due now.
async fn hundred(bench: &Bench) {
    bench.endpoint(left_to_a_person("fan_17")).await;
    for number in 0..NODE_WITH {
        let due = PublishDue::In(DurationMs::from_secs(1));
        let to = PublishTo::Endpoints(vec![id("fan_17")]);
        bench.publish(Publish { due, ..message(&format!("k-{number}"), to) }).await;
    }
    bench.advance(1);
}

#[tokio::test]
async fn r_c10_a_killed_node_with_a_hundred_leases_is_a_hundred_retries() {
    let bench = Bench::new().await;
    hundred(&bench).await;
    lease_and_die(&bench, Start::Fenced).await;
    bench.advance(60);
    for number in 0..NODE_WITH {
        let view = bench.job_in(&format!("k-{number}"), StateName::Retryable).await;
        assert_eq!("lease lost before the start: retried, not charged", view.attempts[0].end.policy);
        assert_eq!(0, view.job.budgets.lost_leases);
    }
}

#[tokio::test]
async fn r_c10_without_the_fence_it_would_be_a_hundred_dead_letters() {
    let bench = Bench::new().await;
    hundred(&bench).await;
    lease_and_die(&bench, Start::WithLease).await;
    bench.advance(60);
    for number in 0..NODE_WITH {
        let view = bench.job_in(&format!("k-{number}"), StateName::DeadLettered).await;
        assert!(matches!(view.job.state, State::DeadLettered { cause: Cause::OutcomeUnknown, .. }));
    }
}

/// Looks at the job's row at the moment when its first byte would leave.
struct Watching {
    store: Arc<MemoryStore>,
    started: Mutex<Vec<bool>>,
}

impl HttpSender for Watching {
    fn send(&self, request: OutboundRequest) -> BoxFuture<'_, SendOutcome> {
        Box::pin(async move {
            let job = JobId::parse(&header(&request, "webhook-id").unwrap()).unwrap();
            let view = self.store.job(posthaste_core::TenantId(1), job).await.unwrap().unwrap();
            let started = matches!(view.job.state, State::Leased(lease) if lease.started_at.is_some());
            self.started.lock().push(started);
            answer(200, None)
        })
    }
}

#[tokio::test]
async fn r_c10_the_start_is_committed_before_the_first_byte_leaves() {
    let clock = Arc::new(ManualClock::default());
    let store = Arc::new(MemoryStore::new(clock.clone()));
    let sender = Arc::new(Watching { store: Arc::clone(&store), started: Mutex::default() });
    let engine = Engine::start(EngineParts {
        store: store.clone() as Arc<dyn Store>,
        clock,
        sender: sender.clone(),
        secrets: Arc::new(PlainSecrets),
        url_judge: Arc::new(AnyUrl),
        metrics: posthaste_engine::Metrics::new(),
        settings: Settings::standard("node-1"),
    })
    .await
    .unwrap();
    let tenant = engine.ensure_tenant("default").await.unwrap();
    engine.put_endpoint(tenant, left_to_a_person("fan_17"), ManagedBy::Api, false).await.unwrap();
    for number in 0..20 {
        let publish = message(&format!("k-{number}"), PublishTo::Endpoints(vec![id("fan_17")]));
        engine.publish(tenant, vec![publish]).await.unwrap().remove(0).unwrap();
    }
    while sender.started.lock().len() < 20 {
        tokio::task::yield_now().await;
    }
    assert_eq!(vec![true; 20], *sender.started.lock());
}
