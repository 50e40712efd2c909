//! The server under load: `serve` as a user runs it, in a process, a folder and a configuration of its own.

use std::{
    fmt::Write as _,
    fs,
    net::SocketAddr,
    path::{Path, PathBuf},
    time::{Duration, Instant},
};

use anyhow::{Context, ensure};
use secrecy::{ExposeSecret, SecretString};

use super::{
    api::Api,
    child::{self, Listening},
    figures::Figure,
    metrics::Metrics,
    process::{self, Memory},
    requests::{SOURCE_SECRET, To},
    token,
};
use crate::{config::BOOTSTRAP_VARIABLE, secrets::new_api_key};

/// How long a server may take from listening to being ready.
const READY_TIMEOUT: Duration = Duration::from_mins(10);

/// Bytes of a batch's payloads and keys: within the 4 MiB that a batch may have.
const BATCH_BYTES_MAX: usize = 3 * 1024 * 1024;

/// Messages of a batch.
const BATCH_MAX: usize = 1_000;

/// Before the lines that [`Server::start_again_with`] adds.
const MORE: &str = "# more\n";

/// What a server's configuration declares.
#[derive(Clone, Debug, Default)]
pub(super) struct Setup(String);

/// An endpoint of the configuration.
#[derive(Clone, Debug)]
pub(super) struct Endpoint<'a> {
    pub(super) id: &'a str,
    pub(super) url: &'a str,
    pub(super) concurrency: u32,
    /// The event type that it subscribes to, if any.
    pub(super) event_type: Option<&'a str>,
    /// Whose, if not the default tenant's.
    pub(super) tenant: Option<&'a str>,
    /// Further lines of its configuration.
    pub(super) more: &'a str,
}

impl<'a> Endpoint<'a> {
    /// One with the settings that endpoints have unless told.
    pub(super) fn new(id: &'a str, url: &'a str) -> Self {
        Self { id, url, concurrency: 10, event_type: None, tenant: None, more: "" }
    }
}

impl Setup {
    /// A queue.
    pub(super) fn queue(self, name: &str) -> Self {
        self.queue_with(name, "")
    }

    /// A queue, with further lines of its configuration.
    pub(super) fn queue_with(mut self, name: &str, more: &str) -> Self {
        self.line(format_args!("[[queue]]\nname = \"{name}\"\nidempotent = true\n{more}"));
        self
    }

    /// A source that GitHub's signature opens; `to` as in the configuration.
    pub(super) fn source(mut self, name: &str, to: &str) -> Self {
        self.line(format_args!(
            "[[source]]\nname = \"{name}\"\nscheme = \"github\"\nsecrets = [\"file:github.secret\"]\nto = {{ {to} }}"
        ));
        self
    }

    /// An endpoint.
    pub(super) fn endpoint(mut self, endpoint: &Endpoint<'_>) -> Self {
        let Endpoint { id, url, concurrency, event_type, tenant, more } = endpoint;
        self.line(format_args!(
            "[[endpoint]]\nid = \"{id}\"\nurl = \"{url}\"\nconcurrency = {concurrency}\nidempotent = true\n\
             secrets = [\"file:endpoint.secret\"]"
        ));
        if let Some(event_type) = event_type {
            self.line(format_args!("types = [\"{event_type}\"]"));
        }
        if let Some(tenant) = tenant {
            self.line(format_args!("tenant = \"{tenant}\""));
        }
        self.line(format_args!("{more}"));
        self
    }

    fn line(&mut self, text: std::fmt::Arguments<'_>) {
        writeln!(self.0, "{text}").expect("a String takes all text");
    }

    /// Writes the configuration and the secrets that it refers to.
    fn write(&self, folder: &Path) -> anyhow::Result<()> {
        fs::write(folder.join("github.secret"), SOURCE_SECRET)?;
        fs::write(folder.join("endpoint.secret"), posthaste_receiver::generate_secret()?)?;
        let text = format!(
            "store = \"sqlite:posthaste.db\"\nlisten = \"127.0.0.1:0\"\n[log]\nlevel = \"warn\"\n[outbound]\n\
             private_networks = [\"127.0.0.0/8\"]  # the bench's receiver is on this machine\n{}",
            self.0
        );
        Ok(fs::write(folder.join("posthaste.toml"), text)?)
    }
}

/// How long a start took.
#[derive(Clone, Copy, Debug)]
pub(super) struct StartUp {
    /// From the process' begin to the line that says where it listens.
    pub(super) listening: Duration,
    /// From the process' begin to the first good answer of `/readyz`.
    pub(super) ready: Duration,
}

/// A server that runs. Killed when dropped; its folder is the stage's.
pub(super) struct Server {
    child: Listening,
    folder: PathBuf,
    pub(super) api_key: SecretString,
    api: Api,
    pub(super) start_up: StartUp,
}

/// What a server had used and done at some moment.
#[derive(Clone, Copy, Debug)]
pub(super) struct Reading {
    pub(super) at: Instant,
    pub(super) cpu_seconds: Option<f64>,
    pub(super) metrics: Metrics,
}

impl Server {
    /// Starts one in `folder`, which is new.
    pub(super) fn start(folder: &Path, setup: &Setup) -> anyhow::Result<Self> {
        setup.write(folder)?;
        Self::launch(folder, new_api_key()?.into())
    }

    fn launch(folder: &Path, api_key: SecretString) -> anyhow::Result<Self> {
        let begun = Instant::now();
        let log = child::log_file(&folder.join("log"))?;
        let variables = [(BOOTSTRAP_VARIABLE, api_key.expose_secret())];
        let child = Listening::start(&["bench-child", "serve"], &variables, folder, log)?;
        let listening = begun.elapsed();
        let api = until_ready(child.address, &api_key)?;
        let start_up = StartUp { listening, ready: begun.elapsed() };
        Ok(Self { child, folder: folder.to_owned(), api_key, api, start_up })
    }

    /// Kills it and starts it anew on the same store.
    pub(super) fn start_again(self) -> anyhow::Result<Self> {
        let Self { child, folder, api_key, .. } = self;
        drop(child);
        Self::launch(&folder, api_key)
    }

    /// Kills it and starts it anew on the same store, with these lines after those of its setup.
    pub(super) fn start_again_with(self, more: &str) -> anyhow::Result<Self> {
        let path = self.folder.join("posthaste.toml");
        let configuration = fs::read_to_string(&path)?;
        let of_setup = configuration.split(MORE).next().unwrap_or_default();
        fs::write(&path, format!("{of_setup}{MORE}{more}\n"))?;
        self.start_again()
    }

    pub(super) fn address(&self) -> SocketAddr {
        self.child.address
    }

    /// The key, for requests that are sent to this server.
    pub(super) fn key(&self) -> &str {
        self.api_key.expose_secret()
    }

    /// Another connection to it.
    pub(super) fn connect(&self) -> anyhow::Result<Api> {
        Api::connect(self.address(), &self.api_key)
    }

    pub(super) fn api(&mut self) -> &mut Api {
        &mut self.api
    }

    /// Takes another connection for what is asked from here on: one that was idle may have been closed.
    pub(super) fn connect_again(&mut self) -> anyhow::Result<()> {
        self.api = self.connect()?;
        Ok(())
    }

    /// Errors: it has ended.
    pub(super) fn check(&mut self) -> anyhow::Result<()> {
        self.child.check()
    }

    /// What it says and has used by now. Errors: it has ended.
    pub(super) fn read(&mut self) -> anyhow::Result<Reading> {
        self.child.check()?;
        let metrics = Metrics::parse(&self.api.get("/metrics")?);
        let cpu_seconds = process::cpu_seconds(self.child.pid());
        Ok(Reading { at: Instant::now(), cpu_seconds, metrics })
    }

    pub(super) fn memory(&self) -> Option<Memory> {
        process::memory(self.child.pid())
    }

    pub(super) fn threads(&self) -> Option<u64> {
        process::threads(self.child.pid())
    }

    pub(super) fn open_files(&self) -> Option<u64> {
        process::open_files(self.child.pid())
    }

    /// MiB of one of the files in its folder; 0 if there is none.
    pub(super) fn file_mib(&self, name: &str) -> f64 {
        let bytes = fs::metadata(self.folder.join(name)).map_or(0, |file| file.len());
        super::float(bytes) / (1024.0 * 1024.0)
    }

    /// What it logged so far.
    pub(super) fn log(&self) -> anyhow::Result<String> {
        fs::read_to_string(self.folder.join("log")).context("the server's log can't be read")
    }

    /// MiB of the store's files.
    pub(super) fn store_mib(&self) -> f64 {
        let files = ["posthaste.db", "posthaste.db-wal"].map(|name| fs::metadata(self.folder.join(name)));
        let bytes: u64 = files.into_iter().flatten().map(|file| file.len()).sum();
        super::float(bytes) / (1024.0 * 1024.0)
    }

    /// Ends it and removes its store. What it logged is a fault of the figure.
    pub(super) fn end(self, figure: &mut Figure) {
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        if let Some(first) = log.lines().next() {
            figure.fault(format!("the server warned {} times; first: {first}", log.lines().count()));
        }
        self.discard();
    }

    /// Ends it and removes its store, whatever it logged.
    pub(super) fn discard(self) {
        drop(self.child);
        // What can't be removed now is removed with the stage.
        let _ = fs::remove_dir_all(self.folder);
    }

    /// Publishes `count` messages in batches over two connections; `delay` as in the API.
    pub(super) fn fill(
        &self,
        to: &To,
        count: usize,
        payload: &str,
        delay: Option<&str>,
    ) -> anyhow::Result<()> {
        let batch = (BATCH_BYTES_MAX / (payload.len() + 256)).clamp(1, BATCH_MAX);
        let delay = delay.map(|delay| format!("\"delay\":\"{delay}\",")).unwrap_or_default();
        let members = format!("{}{delay}", to.members());
        let halves = [count / 2, count - count / 2];
        std::thread::scope(|scope| {
            let threads = halves.map(|count| {
                let members = &members;
                scope.spawn(move || self.fill_alone(members, count, payload, batch))
            });
            threads
                .into_iter()
                .try_for_each(|thread| thread.join().map_err(|_| anyhow::anyhow!("a thread panicked"))?)
        })
    }

    fn fill_alone(&self, members: &str, count: usize, payload: &str, batch: usize) -> anyhow::Result<()> {
        let mut api = self.connect()?;
        let salt = token::new_salt();
        let mut sent = 0;
        while sent < count {
            let many = batch.min(count - sent);
            let mut body = String::with_capacity(many * (payload.len() + 128));
            body.push_str("{\"messages\":[");
            for number in sent..sent + many {
                let mut key = token::BLANK.as_bytes().to_vec();
                token::write(&mut key, salt, u64::try_from(number)?, super::times::now_us());
                let key = String::from_utf8(key)?;
                let comma = if number == sent { "" } else { "," };
                write!(body, "{comma}{{\"key\":\"f:{key}\",{members}\"payload\":{payload}}}")?;
            }
            body.push_str("]}");
            let answer = api.post_for_text("/v1/messages/batch", &body)?;
            let good = answer.matches("\"status\":202").count();
            ensure!(good == many, "of a batch of {many}, {good} were accepted: {answer:.300}");
            sent += many;
        }
        Ok(())
    }
}

fn until_ready(address: SocketAddr, api_key: &SecretString) -> anyhow::Result<Api> {
    let give_up_at = Instant::now() + READY_TIMEOUT;
    loop {
        let mut api = Api::connect(address, api_key)?;
        match api.get("/readyz") {
            Ok(_) => return Ok(api),
            Err(error) if Instant::now() > give_up_at => {
                return Err(error).context("the server was not ready in time");
            }
            Err(_) => {}
        }
    }
}
