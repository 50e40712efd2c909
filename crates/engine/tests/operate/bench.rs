//! An engine with two queues on a store, and jobs that are brought to where a test wants them.

use std::{future::Future, sync::Arc};

use bytes::Bytes;
use posthaste_core::{
    Attempt, Cause, Class, Command, DestinationId, Details, DurationMs, Effect, EventId, Evidence, Failure,
    Fence, FinishOutcome, JobId, LaneId, MessageKey, RetryWish, Start, StateName, TenantId,
    ledger::{OnExpired, Outcome, Seen, Status},
};
use posthaste_engine::{
    Engine, EngineParts, Metrics, Publish, PublishDue, PublishTo, RoundAgain, Settings,
    config::QueueSpec,
    ports::{Secrets, UrlJudge},
};
use posthaste_store::{
    AppliedOutcome, CustodyEntry, JobCommand, JobView, LeaseRequest, LedgerAction, LedgerAnswer,
    LedgerCommand, ManagedBy, MessageName, Store, StoredResult,
    memory::MemoryStore,
    sqlite::{SqliteOptions, SqliteStore},
};
use posthaste_testkit::{ManualClock, ScriptedSender};

pub(crate) const ACTOR: &str = "on-call";
pub(crate) const REASON: &str = "the database is back";

/// Secrets as they are, and every URL.
struct Trusting;

impl Secrets for Trusting {
    fn open(&self, stored: &str) -> Result<String, String> {
        Ok(stored.to_owned())
    }

    fn seal(&self, secret: &str) -> Result<String, String> {
        Ok(secret.to_owned())
    }
}

impl UrlJudge for Trusting {
    fn check(&self, _: &str) -> Result<(), String> {
        Ok(())
    }
}

pub(crate) struct Bench {
    pub(crate) engine: Arc<Engine>,
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) tenant: TenantId,
    _folder: Option<tempfile::TempDir>,
}

/// Runs `case` on every store.
pub(crate) async fn on_each_store<F: Future<Output = ()>>(case: impl Fn(Bench) -> F) {
    let clock = Arc::new(ManualClock::default());
    case(Bench::over(Arc::new(MemoryStore::new(clock.clone())), clock, None).await).await;
    let clock = Arc::new(ManualClock::default());
    let folder = tempfile::tempdir().unwrap();
    let options = SqliteOptions::new(folder.path().join("store.db"), clock.clone());
    let store = Arc::new(SqliteStore::open(options).unwrap());
    case(Bench::over(store, clock, Some(folder)).await).await;
}

impl Bench {
    pub(crate) async fn over(
        store: Arc<dyn Store>,
        clock: Arc<ManualClock>,
        folder: Option<tempfile::TempDir>,
    ) -> Self {
        let parts = EngineParts {
            store: Arc::clone(&store),
            clock: Arc::<ManualClock>::clone(&clock),
            sender: Arc::new(ScriptedSender::default()),
            secrets: Arc::new(Trusting),
            url_judge: Arc::new(Trusting),
            metrics: Metrics::new(),
            settings: Settings::standard("node-1"),
        };
        let engine = Engine::start(parts).await.unwrap();
        let tenant = engine.ensure_tenant("default").await.unwrap();
        for idempotent in [false, true] {
            let spec = QueueSpec {
                name: queue(idempotent).to_string(),
                lease: None,
                deadline: None,
                ledger: None,
                idempotent,
                on_unknown: None,
                reconcile: None,
                classify: std::collections::BTreeMap::new(),
                retry: None,
                dead_letter_queue: None,
                owner: None,
                enabled: None,
            };
            engine.put_queue(tenant, spec, ManagedBy::Api, false).await.unwrap();
        }
        Self { engine, store, clock, tenant, _folder: folder }
    }

    /// A job that is due now.
    pub(crate) async fn job(&self, key: &str, idempotent: bool) -> Subject<'_> {
        let key = MessageKey::new(key).unwrap();
        let publish = Publish {
            key: key.clone(),
            event_type: None,
            metadata: None,
            content_type: Some("application/json".into()),
            payload: Bytes::from_static(b"{}"),
            payload_ref: None,
            due: PublishDue::In(DurationMs::ZERO),
            to: PublishTo::Queue(queue(idempotent)),
            traceparent: None,
            correlation_id: "request".into(),
        };
        self.engine.publish(self.tenant, vec![publish]).await.unwrap().remove(0).unwrap();
        let name = MessageName::Key(key.clone());
        let message = self.store.message(self.tenant, name).await.unwrap().unwrap().id;
        let view = self.store.message_jobs(self.tenant, message, 1).await.unwrap().remove(0);
        let event = EventId::of(&key, &queue(idempotent));
        Subject { bench: self, id: view.job.id, lane: view.job.lane, event, message }
    }
}

fn queue(idempotent: bool) -> DestinationId {
    DestinationId::new(if idempotent { "guarded" } else { "bare" }).unwrap()
}

/// One job.
pub(crate) struct Subject<'b> {
    pub(crate) bench: &'b Bench,
    pub(crate) id: JobId,
    pub(crate) event: EventId,
    lane: LaneId,
    message: posthaste_core::MessageId,
}

impl Subject<'_> {
    pub(crate) async fn view(&self) -> JobView {
        self.bench.store.job(self.bench.tenant, self.id).await.unwrap().unwrap()
    }

    pub(crate) async fn state(&self) -> StateName {
        self.view().await.job.state.name()
    }

    pub(crate) async fn custody(&self) -> Vec<CustodyEntry> {
        self.bench.store.custody(self.bench.tenant, self.message).await.unwrap()
    }

    /// All that is stored of it.
    pub(crate) async fn snapshot(&self) -> String {
        let entry = self.bench.store.entry(self.bench.tenant, self.event.clone(), None).await.unwrap();
        format!("{:#?}\n{entry:#?}\n{:#?}", self.view().await, self.custody().await)
    }

    /// Says something to the job, and hears yes or no.
    pub(crate) async fn say(&self, command: Command) -> bool {
        let policy = self.bench.engine.directory().policy(self.bench.tenant, self.lane);
        let command = JobCommand {
            tenant: self.bench.tenant,
            job: self.id,
            command,
            policy,
            hold_lane_until: None,
            actor: Some("w-1".into()),
        };
        let applied = self.bench.store.apply(vec![command]).await.unwrap().remove(0);
        let AppliedOutcome::Decided { reply, .. } = applied.outcome else { panic!("{applied:?}") };
        reply.is_ok()
    }

    /// Leases it, when it is due.
    pub(crate) async fn lease(&self, starts: Start) -> Fence {
        if let Some(due_at) = self.view().await.job.state.due_at() {
            self.bench.clock.advance(due_at.since(self.bench.engine.now()));
        }
        let request = LeaseRequest {
            tenant: self.bench.tenant,
            lane: self.lane,
            limit: 1,
            bytes_max: 1_000_000,
            worker: "w-1".into(),
            lease_for: DurationMs::from_secs(60),
            deadline_after: DurationMs::from_secs(600),
            starts,
            policy: self.bench.engine.directory().policy(self.bench.tenant, self.lane),
            guarded: false,
        };
        let mut grant = self.bench.store.lease(vec![request]).await.unwrap().remove(0);
        let leased = grant.jobs.pop().expect("the job is leased");
        assert_eq!(self.id, leased.job.id, "no other job is due");
        leased.fence
    }

    /// Leases it, and lets the lease run out.
    pub(crate) async fn lose(&self, starts: Start) -> Fence {
        let fence = self.lease(starts).await;
        self.bench.clock.advance(DurationMs::from_secs(60));
        // The engine may have been quicker.
        self.say(Command::Expire).await;
        assert_eq!(StateName::Retryable, self.state().await);
        fence
    }

    pub(crate) async fn dead_letter(&self) {
        assert!(self.say(Command::Abandon { cause: Cause::Exhausted }).await);
        assert_eq!(StateName::DeadLettered, self.state().await);
    }

    /// Claims the job's event id over the ledger, as somebody who does not say which job it is, and goes on by `then`.
    pub(crate) async fn entry(&self, then: Ledger) {
        let claim = LedgerAction::Claim {
            lease: DurationMs::from_secs(30),
            fingerprint: None,
            claim_id: None,
            on_expired: OnExpired::Retake,
        };
        let done =
            |fence, outcome| LedgerAction::Complete { fence, outcome, result: StoredResult::default() };
        if then == Ledger::None {
            return;
        }
        let fence = self.ledger(claim).await;
        match then {
            Ledger::None | Ledger::InProgress => {}
            Ledger::Failed => {
                self.ledger(LedgerAction::Fail { fence, class: None, message: None }).await;
            }
            Ledger::Done => {
                self.ledger(done(fence, Outcome::Committed)).await;
            }
            Ledger::DoneCancelled => {
                self.ledger(done(fence, Outcome::Cancelled)).await;
            }
            Ledger::ResetAfterDone => {
                self.ledger(done(fence, Outcome::Committed)).await;
                let seen = Seen { fence, status: Status::Done };
                self.ledger(LedgerAction::Reset { seen, reason: "lost".into() }).await;
            }
        }
    }

    async fn ledger(&self, action: LedgerAction) -> u64 {
        let command = LedgerCommand {
            tenant: self.bench.tenant,
            key: self.event.clone(),
            job: None,
            action,
            actor: Some("receiver".into()),
        };
        let answer = self.bench.store.ledger(vec![command]).await.unwrap().remove(0).answer;
        let (LedgerAnswer::Granted(entry) | LedgerAnswer::Written(entry)) = answer else {
            panic!("{answer:?}")
        };
        entry.entry.fence
    }

    /// The request of an operator who looked at the job just now.
    pub(crate) async fn again(&self) -> RoundAgain {
        self.again_after(self.view().await.job.attempt)
    }

    pub(crate) fn again_after(&self, seen: Option<Attempt>) -> RoundAgain {
        RoundAgain { job: self.id, seen, reason: REASON.into(), actor: ACTOR.into() }
    }

    /// So that it is not leased for another one.
    pub(crate) async fn put_away(&self) {
        self.say(Command::Cancel { reason: "the test is over".into() }).await;
        self.bench.clock.advance(DurationMs::from_secs(600));
        self.say(Command::Expire).await;
    }
}

/// What the ledger says of a job's event id.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Ledger {
    None,
    InProgress,
    Failed,
    ResetAfterDone,
    Done,
    DoneCancelled,
}

impl Ledger {
    pub(crate) const ALL: [Self; 6] =
        [Self::None, Self::InProgress, Self::Failed, Self::ResetAfterDone, Self::Done, Self::DoneCancelled];
}

pub(crate) fn failed(fence: Fence, effect: Effect) -> Command {
    let failure = Failure::of_worker(Class::Worker, Some(effect), RetryWish::Yes, None);
    Command::Fail { fence, failure, details: Details::default() }
}

pub(crate) fn finished(fence: Fence, outcome: FinishOutcome) -> Command {
    let (evidence, details) = (Evidence::Worker, Details::default());
    Command::Finish { fence, outcome, evidence, reason: None, details }
}
