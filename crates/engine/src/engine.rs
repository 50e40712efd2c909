//! The engine: what holds the loops, the directory and the ports together.

use std::{
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use arc_swap::ArcSwap;
use posthaste_core::{DurationMs, Timestamp, limits};
use posthaste_store::Store;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    Directory, EngineError,
    dispatch::Dispatcher,
    lanes::LaneBook,
    look_up::LookUpDesk,
    message_ids::MessageIds,
    metrics::Metrics,
    ports::{Clock, HttpSender, Secrets, UrlJudge},
    sns::SnsDesk,
    waiters::Waiters,
};

/// What an engine is made of.
pub struct EngineParts {
    /// The durable truth.
    pub store: Arc<dyn Store>,
    /// Time: the same that the store has.
    pub clock: Arc<dyn Clock>,
    /// Sends deliveries.
    pub sender: Arc<dyn HttpSender>,
    /// Opens and seals secrets.
    pub secrets: Arc<dyn Secrets>,
    /// Judges endpoints' URLs.
    pub url_judge: Arc<dyn UrlJudge>,
    /// The metrics, so that the store could be given its part of them.
    pub metrics: Metrics,
    /// Numbers.
    pub settings: Settings,
}

/// Numbers that configuration may change.
#[derive(Clone, Debug)]
pub struct Settings {
    /// How long an acceptance may take before it is answered with 503.
    pub accept_deadline: Duration,
    /// Deliveries on their way at once, over all endpoints.
    pub deliveries_max: usize,
    /// Bytes of the largest payload over the API.
    pub payload_bytes_max: usize,
    /// This process's name in leases: unique to each start.
    pub node: Box<str>,
    /// What `user-agent` says.
    pub user_agent: Box<str>,
}

impl Settings {
    /// The numbers in force unless configured.
    pub fn standard(node: impl Into<Box<str>>) -> Self {
        Self {
            accept_deadline: Duration::from_secs(2),
            deliveries_max: 512,
            payload_bytes_max: limits::PAYLOAD_BYTES_DEFAULT,
            node: node.into(),
            user_agent: concat!("posthaste/", env!("CARGO_PKG_VERSION")).into(),
        }
    }
}

/// The engine. Its methods are what the HTTP API and the CLI can ask.
pub struct Engine {
    pub(crate) store: Arc<dyn Store>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) sender: Arc<dyn HttpSender>,
    pub(crate) secrets: Arc<dyn Secrets>,
    pub(crate) url_judge: Arc<dyn UrlJudge>,
    pub(crate) settings: Settings,
    pub(crate) directory: ArcSwap<Directory>,
    /// Held while the directory and the rows behind it change, so that both change in one order.
    pub(crate) changing: tokio::sync::Mutex<()>,
    pub(crate) lane_book: LaneBook,
    pub(crate) metrics: Metrics,
    pub(crate) waiters: Waiters,
    pub(crate) message_ids: MessageIds,
    /// Of the store, once it is known.
    pub(crate) epoch: OnceLock<posthaste_core::Epoch>,
    /// Set once retention is on.
    pub(crate) keeper: OnceLock<crate::retain::Keeper>,
    pub(crate) company: crate::company::Company,
    pub(crate) dispatcher: Dispatcher,
    pub(crate) scheduling: crate::schedules::Scheduling,
    /// A bulk run begins, or goes on.
    pub(crate) bulk_wake: tokio::sync::Notify,
    pub(crate) look_ups: LookUpDesk,
    pub(crate) sns: SnsDesk,
    pub(crate) teller: crate::notice::Teller,
    pub(crate) nodes: crate::nodes::Nodes,
    /// Cancelled when loops must end.
    pub(crate) stop: CancellationToken,
    pub(crate) tasks: TaskTracker,
    draining: AtomicBool,
    pub(crate) myself: OnceLock<std::sync::Weak<Engine>>,
}

impl std::fmt::Debug for Engine {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Engine").field("settings", &self.settings).finish_non_exhaustive()
    }
}

impl Engine {
    /// Reads the directory and starts the loops. Work that an earlier process left is found from the rows alone.
    ///
    /// Errors: what the store says.
    pub async fn start(parts: EngineParts) -> Result<Arc<Self>, EngineError> {
        let engine = Arc::new(Self {
            nodes: crate::nodes::Nodes::new(parts.store.shared().is_some()),
            store: parts.store,
            clock: parts.clock,
            sender: parts.sender,
            secrets: parts.secrets,
            url_judge: parts.url_judge,
            company: crate::company::Company::default(),
            dispatcher: Dispatcher::new(parts.settings.deliveries_max),
            scheduling: crate::schedules::Scheduling::default(),
            settings: parts.settings,
            bulk_wake: tokio::sync::Notify::new(),
            look_ups: LookUpDesk::default(),
            sns: SnsDesk::default(),
            teller: crate::notice::Teller::default(),
            directory: ArcSwap::default(),
            changing: tokio::sync::Mutex::default(),
            lane_book: LaneBook::default(),
            metrics: parts.metrics,
            waiters: Waiters::default(),
            message_ids: MessageIds::new(),
            epoch: OnceLock::new(),
            keeper: OnceLock::new(),
            stop: CancellationToken::new(),
            tasks: TaskTracker::new(),
            draining: AtomicBool::new(false),
            myself: OnceLock::new(),
        });
        engine.myself.set(Arc::downgrade(&engine)).expect("set once");
        // Known before the store can fail: reads go on while it does.
        let _ = engine.epoch.set(engine.store.status().await?.epoch);
        engine.reload_directory().await?;
        engine.read_lanes().await?;
        engine.tasks.spawn(Arc::clone(&engine).run_dispatcher());
        engine.tasks.spawn(Arc::clone(&engine).run_expiry());
        engine.tasks.spawn(Arc::clone(&engine).run_fan_out());
        engine.tasks.spawn(Arc::clone(&engine).run_sampler());
        engine.tasks.spawn(Arc::clone(&engine).run_bulk());
        engine.tasks.spawn(Arc::clone(&engine).run_look_ups());
        engine.tasks.spawn(Arc::clone(&engine).run_sweep());
        engine.tasks.spawn(Arc::clone(&engine).run_nodes());
        Ok(engine)
    }

    /// The store, for reads.
    pub fn store(&self) -> &dyn Store {
        &*self.store
    }

    /// The directory as it is now.
    pub fn directory(&self) -> Arc<Directory> {
        self.directory.load_full()
    }

    /// The metrics.
    pub fn metrics(&self) -> &Metrics {
        &self.metrics
    }

    /// The numbers in force.
    pub fn settings(&self) -> &Settings {
        &self.settings
    }

    /// Now, by the store's clock.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Whether a drain has begun.
    pub fn is_draining(&self) -> bool {
        self.draining.load(Ordering::Relaxed)
    }

    /// Stops taking work, finishes or gives back what runs, and ends the loops. Row B15.
    ///
    /// Deliveries that are still on their way after `grace` are reported as failed with a possible effect. Cancel:
    /// dropping it leaves the rest to lease expiry, as a crash would.
    pub async fn drain(&self, grace: DurationMs) {
        self.draining.store(true, Ordering::Relaxed);
        self.waiters.wake_all();
        self.dispatcher.stop_leasing();
        let deadline = self.clock.now().after(grace);
        tokio::select! {
            () = self.dispatcher.idle() => {}
            () = self.clock.sleep_until(deadline) => self.dispatcher.abort_all(),
        }
        self.dispatcher.idle().await;
        self.stop.cancel();
        self.tasks.close();
        self.tasks.wait().await;
    }

    /// This engine, for a task that outlives the call.
    pub(crate) fn arc(&self) -> Arc<Self> {
        self.myself.get().and_then(std::sync::Weak::upgrade).expect("a method runs while the engine lives")
    }

    pub(crate) fn refuse_if_draining(&self) -> Result<(), EngineError> {
        if self.is_draining() { Err(EngineError::Draining) } else { Ok(()) }
    }
}
