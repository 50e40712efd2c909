//! A running server: store, clock, sender, engine and HTTP, wired; and its end. Rows G1, G2, B15.
//!
//! Decides nothing about jobs. The command line, the demo and tests start servers by [`start`].

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::Arc,
    time::Duration,
};

use anyhow::Context;
use posthaste_adapters::{
    clock::SystemClock,
    guard::Guard,
    s3::{S3Archive, S3Place},
    sender::{GuardedSender, Protocols, SenderConfig, Trust},
};
use posthaste_core::DurationMs;
use posthaste_engine::{
    Engine, EngineParts, FileDestinations, Metrics, RetentionParts, Settings,
    archive::{Archive, FolderArchive},
    ports::HttpSender,
};
use secrecy::{ExposeSecret, SecretString};
use tokio::net::TcpListener;
use tokio_util::{sync::CancellationToken, task::TaskTracker};

use crate::{
    config::{
        ArchiveConfig, BOOTSTRAP_VARIABLE, Config, Declared, RetentionConfig, S3Config, Spec, TENANT_DEFAULT,
    },
    http::{AppOptions, AppState, HttpLimits},
    secrets::{GuardJudge, SealedSecrets, is_api_key, new_api_key},
    stores::{OpenStore, master_key},
};

/// How long requests may take to be answered after the drain.
const LAST_ANSWERS: Duration = Duration::from_secs(5);

/// How long after a start retention begins: whoever starts a server waits for other things.
const RETENTION_AFTER: DurationMs = DurationMs::from_secs(30);

/// The name of the first API key.
const ADMIN_KEY_NAME: &str = "admin";

/// A server that runs in this process.
pub struct Running {
    /// Where the API answers.
    pub address: SocketAddr,
    /// Where intake alone answers, if it has a listener of its own.
    pub intake_address: Option<SocketAddr>,
    /// The admin key, if one was made at this start: it can't be had again.
    pub admin_key: Option<SecretString>,
    engine: Arc<Engine>,
    store: OpenStore,
    stop_http: CancellationToken,
    servers: TaskTracker,
}

impl std::fmt::Debug for Running {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Running").field("address", &self.address).finish_non_exhaustive()
    }
}

/// Starts a server.
///
/// Durability: on return the store is open, what the configuration declares is stored, and requests are answered.
/// Errors: a sentence for the operator, with its causes; nothing runs then. Cancel: dropping it may leave the store
/// with what the configuration declares.
pub async fn start(config: &Config) -> anyhow::Result<Running> {
    #[cfg(feature = "faults")]
    posthaste_store::faults::check().map_err(anyhow::Error::msg)?;
    let metrics = Metrics::new();
    let clock = SystemClock::start();
    let store = OpenStore::open(config, clock.clone(), metrics.commits()).await?;
    let shared = store.shared();
    // Nodes that share a store share its time.
    let clock =
        if shared.shared().is_some() { SystemClock::start_at(shared.status().await?.now) } else { clock };
    let secrets = SealedSecrets::new(&master_key(config, &*shared).await?);
    let listener = bind(config.listen).await?;
    let intake_listener = match config.intake_listen {
        Some(address) => Some(bind(address).await?),
        None => None,
    };
    let guard = Arc::new(Guard::new(config.guard.clone()));
    let sender: Arc<dyn HttpSender> = Arc::new(GuardedSender::new(Arc::clone(&guard), &sender_config())?);
    let engine = Engine::start(EngineParts {
        store: shared,
        clock: Arc::new(clock),
        sender: Arc::clone(&sender),
        secrets: Arc::new(secrets),
        url_judge: Arc::new(GuardJudge(guard)),
        metrics,
        settings: settings(config),
    })
    .await?;
    engine.sync_file_destinations(by_tenant(&config.declared)).await?;
    engine.start_schedules();
    start_retention(&engine, config, &sender).await?;
    let admin_key = first_key(&engine, config).await?;
    let mut running = Running {
        address: listener.local_addr()?,
        intake_address: None,
        admin_key,
        engine,
        store,
        stop_http: CancellationToken::new(),
        servers: TaskTracker::new(),
    };
    running.serve(config, listener, intake_listener)?;
    running.forward_outbox();
    Ok(running)
}

impl Running {
    fn forward_outbox(&self) {
        let (engine, stop) = (Arc::clone(&self.engine), self.stop_http.clone());
        self.servers.spawn(crate::outbox::forward(engine, stop));
    }

    /// The engine.
    pub fn engine(&self) -> &Arc<Engine> {
        &self.engine
    }

    /// `http://…` of the API.
    pub fn url(&self) -> String {
        url_of(self.address)
    }

    /// `http://…` of intake.
    pub fn intake_url(&self) -> String {
        url_of(self.intake_address.unwrap_or(self.address))
    }

    fn serve(
        &mut self,
        config: &Config,
        listener: TcpListener,
        intake_listener: Option<TcpListener>,
    ) -> anyhow::Result<()> {
        let limits = HttpLimits {
            connections_max: config.connections_max,
            shutdown_grace: LAST_ANSWERS,
            ..HttpLimits::standard()
        };
        let options = AppOptions {
            limits: limits.clone(),
            default_tenant: TENANT_DEFAULT.into(),
            public_url: config.public_url.as_deref().map(Into::into),
        };
        let state = AppState::new(Arc::clone(&self.engine), options);
        let router = match intake_listener {
            None => crate::http::router(state),
            Some(intake_listener) => {
                self.intake_address = Some(intake_listener.local_addr()?);
                let router = crate::http::intake_router(state.clone());
                let stop = self.stop_http.clone();
                self.servers.spawn(crate::http::serve(intake_listener, router, limits.clone(), stop));
                crate::http::api_router(state)
            }
        };
        self.servers.spawn(crate::http::serve(listener, router, limits, self.stop_http.clone()));
        Ok(())
    }

    /// Brings sources, endpoints and queues in line with a configuration read anew. Row G2.
    ///
    /// Everything else takes effect at the next start. Errors: the engine's; what came before the error is in force.
    pub async fn reload(&self, config: &Config) -> anyhow::Result<()> {
        Ok(self.engine.sync_file_destinations(by_tenant(&config.declared)).await?)
    }

    /// Stops: takes no more work, finishes or gives back what runs within `grace`, then ends. Row B15.
    ///
    /// Workers can report until the end. Cancel: what still runs is left to lease expiry, as after a crash.
    pub async fn stop(self, grace: DurationMs) {
        self.engine.drain(grace).await;
        self.stop_http.cancel();
        self.servers.close();
        self.servers.wait().await;
        let Self { engine, store, .. } = self;
        drop(engine);
        store.close().await;
    }
}

fn url_of(address: SocketAddr) -> String {
    let reachable =
        if address.ip().is_unspecified() { (Ipv4Addr::LOCALHOST, address.port()).into() } else { address };
    format!("http://{reachable}")
}

/// Begins to archive, if it is configured. Errors: the archive can't be written to.
async fn start_retention(
    engine: &Arc<Engine>,
    config: &Config,
    sender: &Arc<dyn HttpSender>,
) -> anyhow::Result<()> {
    let RetentionConfig { retention, archive, every } = config.retention.clone();
    let archive: Option<Arc<dyn Archive>> = match archive {
        None => return Ok(()),
        Some(ArchiveConfig::GivenUp) => None,
        Some(ArchiveConfig::Folder(folder)) => {
            let opened = tokio::task::spawn_blocking(move || FolderArchive::open(&folder)).await?;
            Some(Arc::new(opened.context("the archive can't be used")?))
        }
        Some(ArchiveConfig::S3(s3)) => Some(Arc::new(s3_archive(&s3, Arc::clone(sender))?)),
    };
    let first_after = every.min(RETENTION_AFTER);
    engine.start_retention(RetentionParts { retention, archive, first_after, every });
    Ok(())
}

fn s3_archive(config: &S3Config, sender: Arc<dyn HttpSender>) -> anyhow::Result<S3Archive> {
    let place = S3Place {
        endpoint: &config.endpoint,
        region: &config.region,
        bucket: &config.bucket,
        prefix: &config.prefix,
        access_key: &config.access_key,
        secret_key: config.secret_key.expose_secret(),
    };
    Ok(S3Archive::new(&place, sender)?)
}

async fn bind(address: SocketAddr) -> anyhow::Result<TcpListener> {
    TcpListener::bind(address).await.with_context(|| {
        format!("can't listen on {address}; another process may have the port: choose one with --listen")
    })
}

fn sender_config() -> SenderConfig {
    SenderConfig {
        trust: Trust::System { extra: Vec::new() },
        protocols: Protocols::Http1AndHttp2,
        idle_timeout: Duration::from_secs(30),
        idle_connections_per_host_max: 512,
        connections_kept_max: 4_096,
        connection_age_max: Duration::from_mins(5),
    }
}

fn settings(config: &Config) -> Settings {
    // Unique to each start, so that a lease names the process that has it.
    let chance = uuid::Uuid::now_v7().simple().to_string();
    let mut settings = Settings::standard(format!("{}-{}", std::process::id(), &chance[24..]));
    settings.accept_deadline = config.accept_deadline;
    settings.deliveries_max = config.deliveries_max;
    settings.payload_bytes_max = config.payload_bytes_max;
    settings
}

/// What a configuration declares, as the engine takes it.
fn by_tenant(declared: &[Declared]) -> Vec<FileDestinations> {
    let mut tenants: BTreeMap<&str, FileDestinations> = BTreeMap::new();
    for one in declared {
        let of = tenants.entry(&one.tenant).or_default();
        match &one.spec {
            Spec::Source(source) => of.sources.push(source.clone()),
            Spec::Endpoint(endpoint) => of.endpoints.push(endpoint.clone()),
            Spec::Queue(queue) => of.queues.push(queue.clone()),
            Spec::Schedule(schedule) => of.schedules.push(schedule.as_ref().clone()),
        }
    }
    let named = |(tenant, of): (&str, FileDestinations)| FileDestinations { tenant: tenant.to_owned(), ..of };
    tenants.into_iter().map(named).collect()
}

/// Makes the first admin key of a new store, or takes the given one. The key is returned only if it was made here.
///
/// A given key is stored at every start, so that it also opens a store whose key was lost; one that was revoked stays
/// revoked.
async fn first_key(engine: &Engine, config: &Config) -> anyhow::Result<Option<SecretString>> {
    let tenant = engine.ensure_tenant(TENANT_DEFAULT).await?;
    if let Some(given) = &config.bootstrap_key {
        let key = given.expose_secret();
        anyhow::ensure!(
            is_api_key(key),
            "{BOOTSTRAP_VARIABLE} is no API key: give phk_ and 43 characters of base64url; make one with\n  \
             echo \"phk_$(openssl rand -base64 32 | tr '+/' '-_' | tr -d =)\""
        );
        engine.store_api_key(tenant, ADMIN_KEY_NAME, "admin", key).await?;
        return Ok(None);
    }
    if !engine.store().api_keys().await?.is_empty() {
        return Ok(None);
    }
    let key = new_api_key()?;
    engine.store_api_key(tenant, ADMIN_KEY_NAME, "admin", &key).await?;
    Ok(Some(key.into()))
}
