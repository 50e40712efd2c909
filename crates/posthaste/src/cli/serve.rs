//! `serve`: runs the server until a signal ends it.

use std::path::PathBuf;

use clap::Args;
use posthaste_core::DurationMs;
use secrecy::ExposeSecret;
use tokio::signal::unix::{Signal, SignalKind, signal};

use super::{
    exit::{Failure, Outcome},
    output::{STRONG, note, styled},
};
use crate::{
    config::{self, Config, Sources, Spec},
    serve::{Running, start},
    telemetry,
};

#[derive(Debug, Args)]
pub(super) struct ServeArgs {
    /// The configuration; posthaste.toml is read if it is there
    #[arg(long, env = "POSTHASTE_CONFIG", value_name = "FILE")]
    config: Option<PathBuf>,
    /// Where everything is kept: sqlite:FILE
    #[arg(long, value_name = "STORE")]
    store: Option<String>,
    /// Where the API, the UI and intake answer; port 0 takes a free one
    #[arg(long, value_name = "ADDRESS")]
    listen: Option<String>,
    /// Listen beyond this machine without TLS
    #[arg(long)]
    insecure: bool,
}

impl ServeArgs {
    fn sources(&self) -> Sources {
        let mut sources = Sources::of_process(self.config.clone());
        sources.flags.extend(self.store.clone().map(|store| ("store", store)));
        sources.flags.extend(self.listen.clone().map(|listen| ("listen", listen)));
        sources.flags.extend(self.insecure.then(|| ("insecure", "true".to_owned())));
        sources
    }
}

pub(super) async fn run(args: ServeArgs) -> Result<Outcome, Failure> {
    let sources = args.sources();
    let config = config::load(&sources).map_err(|faults| Failure::refused(faults.to_string()))?;
    telemetry::start(&config.log).map_err(failed)?;
    // Before the store is opened: a signal that comes while it is brought up to date must not tear it.
    let mut signals = Signals::new().map_err(|error| failed(error.into()))?;
    raise_open_files();
    for warning in &config.warnings {
        tracing::warn!(event = "config_warning", place = %warning.place, path = warning.path, "{}; {}", warning.problem, warning.remedy);
    }
    let running = start(&config).await.map_err(failed)?;
    greet(&config, &running);
    tracing::info!(event = "started", address = %running.address, store = %config.store);
    loop {
        match signals.next().await {
            Asked::Reload => reload(&sources, &config, &running).await,
            Asked::Stop(name) => return stop(running, config.drain_deadline, &mut signals, name).await,
        }
    }
}

#[allow(clippy::needless_pass_by_value)] // the shape that `map_err` takes
fn failed(error: anyhow::Error) -> Failure {
    Failure::refused(format!("{error:#}"))
}

/// Every connection and every delivery needs a file; the usual soft limit of 1,024 is soon reached.
fn raise_open_files() {
    match rlimit::increase_nofile_limit(u64::MAX) {
        Ok(files) => tracing::debug!(event = "open_files", limit = files),
        Err(error) => tracing::warn!(event = "open_files", %error, "the limit of open files can't be raised"),
    }
}

/// For the person who started it, on standard error. The line `listening on …` is relied on by scripts.
fn greet(config: &Config, running: &Running) {
    let count = |what: fn(&Spec) -> bool| config.declared.iter().filter(|one| what(&one.spec)).count();
    note(&format!("posthaste {}", env!("CARGO_PKG_VERSION")));
    note(&format!("  store   {}", config.store));
    if let Some(file) = &config.file {
        let sources = count(|spec| matches!(spec, Spec::Source(_)));
        let endpoints = count(|spec| matches!(spec, Spec::Endpoint(_)));
        let queues = count(|spec| matches!(spec, Spec::Queue(_)));
        note(&format!(
            "  config  {} (sources: {sources}, endpoints: {endpoints}, queues: {queues})",
            file.display()
        ));
    }
    if !config.warnings.is_empty() {
        note(&format!("  {} warnings: see `posthaste check-config`", config.warnings.len()));
    }
    if running.intake_address.is_some() {
        note(&format!("intake on {}/in/{{source}}", running.intake_url()));
    }
    note(&format!("listening on {}", running.url()));
    if let Some(key) = &running.admin_key {
        note(&format!("\n{}", styled(STRONG, "This store is new. Its admin key, shown this once:")));
        note(&format!("\n  export POSTHASTE_API_KEY={}", key.expose_secret()));
        if running.address.port() != config::PORT_DEFAULT {
            note(&format!("  export POSTHASTE_URL={}", running.url()));
        }
        note("\nThen, for example:\n");
        note("  posthaste queues add carts");
        note("  posthaste publish --key cart:1:expire --queue carts --delay 10s --data '{\"cart\": 1}'");
        note("  posthaste timeline cart:1:expire\n");
    }
}

/// Row G2: what the file declares takes effect without a restart.
async fn reload(sources: &Sources, old: &Config, running: &Running) {
    let config = match config::load(sources) {
        Ok(config) => config,
        Err(faults) => {
            for fault in &faults.0 {
                let text = format!("{}; {}", fault.problem, fault.remedy);
                tracing::error!(event = "reload_refused", place = %fault.place, path = fault.path, "{text}");
            }
            return;
        }
    };
    for setting in old.fixed_settings_that_differ(&config) {
        tracing::warn!(
            event = "reload_needs_restart",
            setting,
            "this setting takes effect at the next start"
        );
    }
    match running.reload(&config).await {
        Ok(()) => tracing::info!(event = "reloaded", destinations = config.declared.len()),
        Err(error) => tracing::error!(event = "reload_failed", error = format!("{error:#}")),
    }
}

/// Row B15. The second signal ends the process at once; what ran then is found again by its expired lease.
async fn stop(
    running: Running,
    deadline: DurationMs,
    signals: &mut Signals,
    name: &'static str,
) -> Result<Outcome, Failure> {
    tracing::info!(event = "draining", signal = name, deadline_ms = deadline.0);
    note("draining; a second signal ends at once");
    tokio::select! {
        () = running.stop(deadline) => {
            tracing::info!(event = "stopped");
            Ok(Outcome::Done)
        }
        () = signals.second_stop() => {
            tracing::warn!(event = "stopped_at_once");
            Err(Failure::refused("stopped before all was finished; what ran is taken up when its leases expire"))
        }
    }
}

/// What a signal asks for.
enum Asked {
    Stop(&'static str),
    Reload,
}

struct Signals {
    terminate: Signal,
    interrupt: Signal,
    hang_up: Signal,
}

impl Signals {
    fn new() -> std::io::Result<Self> {
        Ok(Self {
            terminate: signal(SignalKind::terminate())?,
            interrupt: signal(SignalKind::interrupt())?,
            hang_up: signal(SignalKind::hangup())?,
        })
    }

    async fn next(&mut self) -> Asked {
        tokio::select! {
            _ = self.terminate.recv() => Asked::Stop("SIGTERM"),
            _ = self.interrupt.recv() => Asked::Stop("SIGINT"),
            _ = self.hang_up.recv() => Asked::Reload,
        }
    }

    async fn second_stop(&mut self) {
        while matches!(self.next().await, Asked::Reload) {}
    }
}
