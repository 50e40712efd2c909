//! Where the scenarios run: a folder that is removed at the end, the options, and the processes that all may share.

use std::{
    cell::{Cell, RefCell},
    fs,
    net::SocketAddr,
    path::PathBuf,
    process::Stdio,
    sync::mpsc::{Receiver, RecvTimeoutError},
    time::{Duration, Instant},
};

use anyhow::{Context, bail};

use super::{
    Options,
    api::Api,
    child::{Listening, Loading},
    figures::{Figure, Measure},
    float,
    machine::Machine,
    plan::{Load, Outcome, Plan, Template},
    receiver::{Group, Stats},
    server::{Reading, Server, Setup},
    times::now_us,
    token,
};

/// The share of the measured time that is spent on warming up before it.
const WARM_UP_SHARE: f64 = 0.1;

/// Between two looks at something that is waited for.
const LOOK_EVERY: Duration = Duration::from_millis(20);

/// How long without progress is too long.
const PROGRESS_TIMEOUT: Duration = Duration::from_secs(20);

/// The place of all scenarios.
pub(super) struct Stage {
    pub(super) options: Options,
    pub(super) machine: Machine,
    folder: PathBuf,
    folders: Cell<u32>,
    /// Says that it should end before its time.
    stop: Receiver<()>,
    /// Is told what is done.
    progress: fn(&str),
    /// Started when it is first needed; idle in between.
    bare: RefCell<Option<Listening>>,
}

impl Stage {
    pub(super) fn set(options: Options, stop: Receiver<()>, progress: fn(&str)) -> anyhow::Result<Self> {
        let name = format!("posthaste-bench-{}", uuid::Uuid::now_v7().simple());
        let folder = options.store_folder.join(name);
        fs::create_dir_all(&folder).with_context(|| format!("can't make the folder {}", folder.display()))?;
        let folder = folder.canonicalize()?;
        let machine = Machine::look(&folder);
        let machine = machine.inspect_err(|_| drop(fs::remove_dir_all(&folder)))?;
        Ok(Self { options, machine, folder, folders: Cell::new(0), stop, progress, bare: RefCell::new(None) })
    }

    /// A server with a new store.
    pub(super) fn server(&self, setup: &Setup) -> anyhow::Result<Server> {
        self.folders.set(self.folders.get() + 1);
        let folder = self.folder.join(self.folders.get().to_string());
        fs::create_dir(&folder)?;
        Server::start(&folder, setup)
    }

    pub(super) fn receiver(&self) -> anyhow::Result<ReceiverProcess> {
        let child = Listening::start(&["bench-child", "receive"], &[], &self.folder, Stdio::null())?;
        let api = Api::connect(child.address, &String::new().into())?;
        Ok(ReceiverProcess { child, api })
    }

    /// Tells whoever waits for the figures.
    pub(super) fn tell(&self, line: &str) {
        (self.progress)(line);
    }

    /// Waits. Errors: it should end.
    pub(super) fn rest(&self, time: Duration) -> anyhow::Result<()> {
        match self.stop.recv_timeout(time) {
            Err(RecvTimeoutError::Timeout) => Ok(()),
            Ok(()) | Err(RecvTimeoutError::Disconnected) => bail!("interrupted"),
        }
    }

    /// The measured time of one figure.
    pub(super) fn seconds(&self) -> Duration {
        Duration::from_secs_f64(self.options.seconds)
    }

    /// Load of the measured time, with its warm-up.
    pub(super) fn plan(&self, address: SocketAddr, connections: usize, load: Load) -> Plan {
        let measured = self.seconds();
        let milliseconds = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let warm_up = measured.mul_f64(WARM_UP_SHARE);
        Plan {
            address,
            connections,
            measured_ms: milliseconds(measured),
            warm_up_ms: milliseconds(warm_up),
            load,
        }
    }

    /// Starts a load process.
    pub(super) fn start(&self, plan: &Plan) -> anyhow::Result<Loading> {
        self.rest(Duration::ZERO)?;
        Loading::start(plan, &self.folder)
    }

    /// Runs a load process to its end.
    pub(super) fn run(&self, plan: &Plan) -> anyhow::Result<Outcome> {
        self.start(plan)?.finish()
    }

    /// What bare HTTP does with these requests now: half the measured time.
    fn bare_rate(&self, template: &Template, connections: usize) -> anyhow::Result<f64> {
        let mut bare = self.bare.borrow_mut();
        if bare.is_none() {
            *bare = Some(Listening::start(&["bench-child", "bare"], &[], &self.folder, Stdio::null())?);
        }
        let address = bare.as_ref().context("it was just started")?.address;
        let mut plan = self.plan(address, connections, requests(vec![template.clone()]));
        plan.measured_ms /= 2;
        let outcome = self.run(&plan)?;
        anyhow::ensure!(outcome.errors.is_empty(), "the bare server answered with errors");
        Ok(outcome.rate())
    }

    /// Measures between two looks at what bare HTTP does with these requests at these connections.
    pub(super) fn beside_bare(
        &self,
        template: &Template,
        connections: usize,
        measure: impl FnOnce() -> anyhow::Result<Figure>,
    ) -> anyhow::Result<Figure> {
        let before = self.bare_rate(template, connections)?;
        let mut figure = measure()?;
        let after = self.bare_rate(template, connections)?;
        let bare = f64::midpoint(before, after);
        figure.set(Measure::BareRate, bare);
        let ratio = figure.measure(Measure::Rate).map(|rate| rate / bare);
        figure.set(Measure::RateToBare, ratio);
        figure.set_sync(self.machine.sync_p50_ms);
        Ok(figure)
    }

    /// Waits until so many different deliveries came in all, or none comes any more. Gives what came.
    pub(super) fn until_received(
        &self,
        receiver: &mut ReceiverProcess,
        group: &str,
        count: u64,
    ) -> anyhow::Result<Group> {
        let (mut seen, mut progress) = (0, Instant::now());
        loop {
            let received = receiver.group(group)?;
            if received.distinct >= count || progress.elapsed() > PROGRESS_TIMEOUT {
                return Ok(received);
            }
            if received.distinct > seen {
                (seen, progress) = (received.distinct, Instant::now());
            }
            self.rest(LOOK_EVERY)?;
        }
    }

    /// Waits until the server has committed `jobs` jobs more than it had `before`, or makes no progress any more. Wait
    /// for the deliveries first: looking costs the server something.
    pub(super) fn until_committed(
        &self,
        server: &mut Server,
        before: &Reading,
        jobs: u64,
    ) -> anyhow::Result<Settled> {
        let (mut seen, mut progress) = (-1.0, Instant::now());
        loop {
            let reading = server.read()?;
            let committed = reading.metrics.since(&before.metrics).committed;
            if committed >= float(jobs) || progress.elapsed() > PROGRESS_TIMEOUT {
                return Ok(Settled { committed, reading, at_us: now_us() });
            }
            if committed > seen {
                (seen, progress) = (committed, Instant::now());
            }
            self.rest(LOOK_EVERY)?;
        }
    }
}

/// What had been committed when the waiting ended.
pub(super) struct Settled {
    pub(super) committed: f64,
    pub(super) reading: Reading,
    at_us: u64,
}

impl Settled {
    /// Seconds since `us`, in microseconds of the Unix epoch.
    pub(super) fn seconds_since(&self, us: u64) -> f64 {
        float(self.at_us.saturating_sub(us)) / 1e6
    }
}

impl Drop for Stage {
    fn drop(&mut self) {
        self.bare.replace(None);
        if let Err(error) = fs::remove_dir_all(&self.folder) {
            tracing::warn!(event = "bench_folder_left", folder = %self.folder.display(), %error);
        }
    }
}

/// The receiver's process.
pub(super) struct ReceiverProcess {
    child: Listening,
    api: Api,
}

impl ReceiverProcess {
    /// The URL of what it does with requests, as `ok`, `slow-300`, `hang` or `fail`, counted as `group`.
    pub(super) fn url(&self, how: &str, group: &str) -> String {
        format!("http://{}/{how}/{group}", self.child.address)
    }

    pub(super) fn stats(&mut self) -> anyhow::Result<Stats> {
        Ok(serde_json::from_str(&self.api.get("/stats")?)?)
    }

    /// What came to one group so far.
    pub(super) fn group(&mut self, name: &str) -> anyhow::Result<Group> {
        Ok(self.stats()?.groups.remove(name).unwrap_or_default())
    }
}

/// As many requests as are answered.
pub(super) fn requests(templates: Vec<Template>) -> Load {
    Load::Requests { templates, salt: token::new_salt(), per_second: None, limit: None }
}

/// So many requests a second.
pub(super) fn paced(templates: Vec<Template>, per_second: f64) -> Load {
    Load::Requests { templates, salt: token::new_salt(), per_second: Some(per_second), limit: None }
}
