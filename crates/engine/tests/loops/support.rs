//! An engine over the memory store, with a clock by hand and a scripted sender.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use posthaste_core::{DestinationId, DurationMs, MessageKey, StateName, TenantId};
use posthaste_engine::{
    Engine, EngineParts, Publish, PublishDue, PublishTo, Published, Settings,
    config::{EndpointSpec, QueueSpec, RetrySpec},
    ports::{Secrets, UrlJudge},
};
use posthaste_store::{JobView, ManagedBy, MessageName, Reads, Store, memory::MemoryStore};
use posthaste_testkit::{ManualClock, ScriptedSender};

pub(crate) struct Bench {
    pub(crate) engine: Arc<Engine>,
    pub(crate) store: Arc<MemoryStore>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) sender: Arc<ScriptedSender>,
    pub(crate) tenant: TenantId,
}

/// Secrets as they are.
pub(crate) struct PlainSecrets;

impl Secrets for PlainSecrets {
    fn open(&self, stored: &str) -> Result<String, String> {
        Ok(stored.to_owned())
    }

    fn seal(&self, secret: &str) -> Result<String, String> {
        Ok(secret.to_owned())
    }
}

pub(crate) struct AnyUrl;

impl UrlJudge for AnyUrl {
    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

impl Bench {
    pub(crate) async fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = Arc::new(MemoryStore::new(clock.clone()));
        Self::over(store, clock).await
    }

    /// A new process over the rows of an old one.
    pub(crate) async fn over(store: Arc<MemoryStore>, clock: Arc<ManualClock>) -> Self {
        let sender = Arc::new(ScriptedSender::default());
        let parts = EngineParts {
            store: store.clone() as Arc<dyn Store>,
            clock: clock.clone(),
            sender: sender.clone(),
            secrets: Arc::new(PlainSecrets),
            url_judge: Arc::new(AnyUrl),
            metrics: posthaste_engine::Metrics::new(),
            settings: Settings::standard("node-1"),
        };
        let engine = Engine::start(parts).await.unwrap();
        let tenant = engine.ensure_tenant("default").await.unwrap();
        Self { engine, store, clock, sender, tenant }
    }

    pub(crate) async fn endpoint(&self, spec: EndpointSpec) {
        self.engine.put_endpoint(self.tenant, spec, ManagedBy::Api, false).await.unwrap();
    }

    pub(crate) async fn queue(&self, name: &str) {
        let spec = QueueSpec {
            name: name.to_owned(),
            lease: None,
            deadline: None,
            ledger: None,
            idempotent: false,
            on_unknown: None,
            reconcile: None,
            classify: BTreeMap::new(),
            retry: None,
            dead_letter_queue: None,
            owner: None,
            enabled: None,
        };
        self.engine.put_queue(self.tenant, spec, ManagedBy::Api, false).await.unwrap();
    }

    pub(crate) async fn publish(&self, publish: Publish) -> Published {
        let mut published = self.engine.publish(self.tenant, vec![publish]).await.unwrap();
        published.pop().unwrap().unwrap()
    }

    /// The message's jobs, by lane.
    pub(crate) async fn jobs(&self, key: &str) -> Vec<JobView> {
        let name = MessageName::Key(MessageKey::new(key).unwrap());
        let message = self.store.message(self.tenant, name).await.unwrap().unwrap();
        self.store.message_jobs(self.tenant, message.id, 100).await.unwrap()
    }

    /// Waits until the message's only job is in `state`. Bounded: a test that hangs says where.
    pub(crate) async fn job_in(&self, key: &str, state: StateName) -> JobView {
        let waiting = async {
            loop {
                let jobs = self.jobs(key).await;
                if let Some(job) = jobs.into_iter().next().filter(|view| view.job.state.name() == state) {
                    return job;
                }
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(20), waiting).await;
        let Ok(view) = waited else { panic!("{key} is not {state}: {:#?}", self.jobs(key).await) };
        view
    }

    /// Waits until the message's only job has `count` ended attempts and no running one.
    pub(crate) async fn ended(&self, key: &str, count: usize) -> JobView {
        let waiting = async {
            loop {
                let view = self.jobs(key).await.remove(0);
                if view.attempts.len() == count && view.job.state.name() != StateName::Leased {
                    return view;
                }
                tokio::task::yield_now().await;
            }
        };
        let waited = tokio::time::timeout(Duration::from_secs(20), waiting).await;
        let Ok(view) = waited else {
            panic!("{key} has not ended {count} attempts: {:#?}", self.jobs(key).await)
        };
        view
    }

    pub(crate) fn advance(&self, seconds: u64) {
        self.clock.advance(DurationMs::from_secs(seconds));
    }
}

pub(crate) fn endpoint(id: &str) -> EndpointSpec {
    EndpointSpec {
        id: id.to_owned(),
        url: format!("https://{id}.example.com/hooks"),
        types: Vec::new(),
        secrets: vec!["whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=".to_owned()],
        concurrency: None,
        rate: None,
        circuit: None,
        timeout: None,
        idempotent: false,
        ledger_lease: None,
        on_unknown: None,
        reconcile: None,
        classify: BTreeMap::new(),
        retry: None,
        headers: BTreeMap::new(),
        webhook_id: None,
        dead_letter_queue: None,
        owner: None,
        enabled: None,
    }
}

pub(crate) fn retry(failures_max: u32) -> RetrySpec {
    RetrySpec { failures_max: Some(failures_max), ..RetrySpec::default() }
}

pub(crate) fn id(text: &str) -> DestinationId {
    DestinationId::new(text).unwrap()
}

pub(crate) fn message(key: &str, to: PublishTo) -> Publish {
    Publish {
        key: MessageKey::new(key).unwrap(),
        event_type: Some("ship.updated".into()),
        metadata: None,
        content_type: Some("application/json".into()),
        payload: Bytes::from_static(b"{\"a\":1}"),
        payload_ref: None,
        due: PublishDue::In(DurationMs::ZERO),
        to,
        traceparent: None,
        correlation_id: "req-1".into(),
    }
}
