//! Configuration: flags over environment over file over defaults, checked whole before anything starts. Row G2.
//!
//! Nothing here starts anything. Every mistake is found, not only the first, and each says where it stands.

mod destinations;
mod document;
mod environment;
mod fault;
pub mod horizons;
mod references;
mod retention;
mod settings;
mod store_at;

use std::{
    net::{IpAddr, Ipv4Addr, SocketAddr},
    path::{Path, PathBuf},
    time::Duration,
};

use ipnet::IpNet;
use posthaste_adapters::guard::{Guard, GuardConfig, HostPattern, PlainHttp};
use posthaste_core::{DurationMs, limits};
use posthaste_engine::config::parse_duration;
use secrecy::{ExposeSecret, SecretString};

pub(crate) use self::references::follow;
pub use self::store_at::StoreAt;
pub use self::{
    destinations::{Declared, Spec, TENANT_DEFAULT},
    fault::{Fault, Faults, Place},
    retention::{ArchiveConfig, RetentionConfig, S3Config},
};
use self::{
    document::{Document, Origin},
    fault::Wrong,
    settings::{Layers, count, list, switch, text},
};

/// The file that is read if it is there and no other is named.
pub(crate) const FILE_DEFAULT: &str = "posthaste.toml";

/// The port unless told.
pub(crate) const PORT_DEFAULT: u16 = 8484;

/// What a process is started with.
#[derive(Clone, Debug)]
pub struct Config {
    /// The file that was read.
    pub file: Option<PathBuf>,
    /// Where the store is.
    pub store: StoreAt,
    /// API and UI; intake too unless `intake_listen` is given.
    pub listen: SocketAddr,
    /// Intake alone.
    pub intake_listen: Option<SocketAddr>,
    /// The URL by which the outside world reaches us, for providers that sign URLs.
    pub public_url: Option<String>,
    /// How long an acceptance may take.
    pub accept_deadline: Duration,
    /// How long what runs may take to end once a signal asks for the end.
    pub drain_deadline: DurationMs,
    /// The key that seals secrets, or where it is; else a file beside the store.
    pub master_key: Option<SecretString>,
    /// The admin key of a new store; else one is made.
    pub bootstrap_key: Option<SecretString>,
    /// What may be spoken to.
    pub guard: GuardConfig,
    /// Bytes of the largest payload over the API.
    pub payload_bytes_max: usize,
    /// Connections at once, on each listener.
    pub connections_max: usize,
    /// Deliveries on their way at once.
    pub deliveries_max: usize,
    /// How long what is settled stays, and where it goes.
    pub retention: RetentionConfig,
    /// How logs are written.
    pub log: LogConfig,
    /// Sources, endpoints and queues.
    pub declared: Vec<Declared>,
    /// What is allowed and probably not meant.
    pub warnings: Vec<Fault>,
}

impl Config {
    /// Settings that are read at the start only, and are other ones in `new`.
    pub(crate) fn fixed_settings_that_differ(&self, new: &Self) -> Vec<&'static str> {
        let key = |config: &Self| config.master_key.as_ref().map(|key| key.expose_secret().to_owned());
        let guard = |config: &Self| format!("{:?}", config.guard);
        let retention = |config: &Self| format!("{:?}", config.retention);
        let differ = [
            ("store", self.store.to_string() != new.store.to_string()),
            ("listen", self.listen != new.listen),
            ("intake_listen", self.intake_listen != new.intake_listen),
            ("public_url", self.public_url != new.public_url),
            ("accept_deadline", self.accept_deadline != new.accept_deadline),
            ("drain_deadline", self.drain_deadline != new.drain_deadline),
            ("master_key", key(self) != key(new)),
            ("outbound", guard(self) != guard(new)),
            ("limits.payload_bytes_max", self.payload_bytes_max != new.payload_bytes_max),
            ("limits.connections_max", self.connections_max != new.connections_max),
            ("limits.deliveries_max", self.deliveries_max != new.deliveries_max),
            ("retention", retention(self) != retention(new)),
            ("log", self.log != new.log),
        ];
        differ.into_iter().filter_map(|(setting, differs)| differs.then_some(setting)).collect()
    }
}

/// How logs are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LogConfig {
    /// JSON or text; by where they go unless told.
    pub format: Option<LogFormat>,
    /// `info`, or a list such as `info,posthaste_engine=debug`.
    pub level: String,
}

/// The form of a log line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One JSON object a line.
    Json,
    /// For people.
    Text,
}

/// What the command line and the environment say.
#[derive(Clone, Debug)]
pub struct Sources {
    /// The file; else `posthaste.toml` if it is there.
    pub file: Option<PathBuf>,
    /// Flags by the setting that they set.
    pub flags: Vec<(&'static str, String)>,
    /// All environment variables.
    pub variables: Vec<(String, String)>,
}

impl Sources {
    /// The process' environment, without flags.
    pub fn of_process(file: Option<PathBuf>) -> Self {
        let text = |(name, value): (std::ffi::OsString, std::ffi::OsString)| {
            Some((name.into_string().ok()?, value.into_string().ok()?))
        };
        Self { file, flags: Vec::new(), variables: std::env::vars_os().filter_map(text).collect() }
    }
}

/// Reads the configuration.
///
/// Errors: every mistake there is.
pub fn load(sources: &Sources) -> Result<Config, Faults> {
    let mut documents = Vec::new();
    let mut faults = Vec::new();
    let file =
        sources.file.clone().or_else(|| Path::new(FILE_DEFAULT).is_file().then(|| FILE_DEFAULT.into()));
    if let Some(file) = &file {
        match std::fs::read_to_string(file) {
            Ok(text) => documents.push(Document { origin: Origin::File(file.display().to_string()), text }),
            Err(error) => faults.push(unreadable(file, &error)),
        }
    }
    let (variables, unknown) = environment::documents(&sources.variables);
    documents.extend(variables);
    faults.extend(unknown);
    for (setting, value) in &sources.flags {
        let text = match *setting {
            "insecure" => format!("insecure = {value}"),
            setting => format!("{setting} = {}", environment::quoted(value)),
        };
        documents.push(Document { origin: Origin::Flag(flag(setting)), text });
    }
    let mut layers = Layers::default();
    layers.faults.extend(faults);
    for document in &documents {
        layers.lay(document);
    }
    let bootstrap = sources
        .variables
        .iter()
        .find(|(name, _)| name == BOOTSTRAP_VARIABLE)
        .map(|(_, key)| key.as_str().into());
    let config = read(&mut layers, file, bootstrap);
    if layers.faults.is_empty() {
        return Ok(config);
    }
    layers.faults.sort_by(|one, two| one.place.cmp(&two.place));
    Err(Faults(layers.faults))
}

/// Where the first admin key is taken from.
pub(crate) const BOOTSTRAP_VARIABLE: &str = "POSTHASTE_BOOTSTRAP_KEY";

fn flag(setting: &str) -> &'static str {
    match setting {
        "store" => "--store",
        "listen" => "--listen",
        _ => "--insecure",
    }
}

fn unreadable(file: &Path, error: &std::io::Error) -> Fault {
    Fault {
        place: Place::Whole(file.display().to_string()),
        path: String::new(),
        problem: format!("the file can't be read: {error}"),
        remedy: "give the path of a configuration with --config, or leave it out".to_owned(),
        excerpt: None,
    }
}

/// Every setting in turn; what is wrong is noted in `layers`.
fn read(layers: &mut Layers<'_>, file: Option<PathBuf>, bootstrap_key: Option<SecretString>) -> Config {
    let insecure = layers.read("insecure", switch).unwrap_or(false);
    let local = SocketAddr::new(IpAddr::V4(Ipv4Addr::LOCALHOST), PORT_DEFAULT);
    let guard = GuardConfig {
        destinations: layers
            .read("outbound.destinations", |value| list(value, host_pattern))
            .unwrap_or_default(),
        private_networks: layers
            .read("outbound.private_networks", |value| list(value, network))
            .unwrap_or_default(),
        plain_http: match layers.read("outbound.allow_http", switch) {
            Some(true) => PlainHttp::Anywhere,
            Some(false) | None => PlainHttp::PrivateNetworksOnly,
        },
    };
    let judge = Guard::new(guard.clone());
    let declared = destinations::read(layers, &|url| crate::secrets::judge_url(&judge, url));
    let (retention, mut warnings) = retention::read(layers, &declared);
    warnings.extend(destinations::warnings(&declared));
    Config {
        file,
        store: layers
            .read("store", |value| StoreAt::parse(text(value)?))
            .unwrap_or_else(|| StoreAt::Sqlite("posthaste.db".into())),
        listen: layers.read("listen", |value| address(value, insecure)).unwrap_or(local),
        intake_listen: layers.read("intake_listen", |value| address(value, insecure)),
        public_url: layers.read("public_url", public_url),
        accept_deadline: layers.read("accept_deadline", accept_deadline).unwrap_or(Duration::from_secs(2)),
        drain_deadline: layers.read("drain_deadline", drain_deadline).unwrap_or(DRAIN_DEADLINE),
        master_key: master_key(layers),
        bootstrap_key,
        guard,
        payload_bytes_max: layers
            .read("limits.payload_bytes_max", |value| count(value, 1..=limits::PAYLOAD_BYTES_CEILING))
            .unwrap_or(limits::PAYLOAD_BYTES_DEFAULT),
        connections_max: layers
            .read("limits.connections_max", |value| count(value, 1..=1_000_000))
            .unwrap_or(10_000),
        deliveries_max: layers
            .read("limits.deliveries_max", |value| count(value, 1..=100_000))
            .unwrap_or(512),
        log: LogConfig {
            format: layers.read("log.format", log_format),
            level: layers.read("log.level", log_level).unwrap_or_else(|| "info".to_owned()),
        },
        retention,
        warnings,
        declared,
    }
}

fn address(value: &toml::de::DeValue<'_>, insecure: bool) -> Result<SocketAddr, Wrong> {
    let text = text(value)?;
    let numeric = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let parsed: Result<SocketAddr, _> = numeric.as_deref().unwrap_or(text).parse();
    let Ok(address) = parsed else {
        return Err(Wrong::new(
            format!("{text:?} is no address to listen on"),
            "write an IP address and a port, for example \"127.0.0.1:8484\"",
        ));
    };
    if address.ip().is_loopback() || insecure {
        return Ok(address);
    }
    Err(Wrong::new(
        format!("{address} can be reached from other machines, and this build has no TLS of its own"),
        "listen on 127.0.0.1 behind a TLS proxy; if the network in between is yours alone, pass --insecure",
    ))
}

fn public_url(value: &toml::de::DeValue<'_>) -> Result<String, Wrong> {
    let text = text(value)?;
    let parsed = url::Url::parse(text).ok().filter(|url| {
        matches!(url.scheme(), "http" | "https")
            && url.path() == "/"
            && url.query().is_none()
            && url.username().is_empty()
    });
    let wrong =
        || Wrong::new("this is no URL without a path", "write for example \"https://hooks.example.com\"");
    parsed.map(|_| text.trim_end_matches('/').to_owned()).ok_or_else(wrong)
}

/// Row B15. Below what process managers wait before they kill (systemd 90 s, Kubernetes 30 s, which it just meets).
const DRAIN_DEADLINE: DurationMs = DurationMs::from_secs(30);

fn drain_deadline(value: &toml::de::DeValue<'_>) -> Result<DurationMs, Wrong> {
    let deadline = parse_duration(text(value)?).map_err(|error| Wrong::new(error.to_string(), ""))?;
    if deadline > DurationMs::from_hours(1) {
        return Err(Wrong::new("it is longer than an hour", "give 0s to 1h, for example \"30s\""));
    }
    Ok(deadline)
}

fn accept_deadline(value: &toml::de::DeValue<'_>) -> Result<Duration, Wrong> {
    let duration = parse_duration(text(value)?).map_err(|error| Wrong::new(error.to_string(), ""))?;
    let duration = Duration::from_millis(duration.0);
    if (Duration::from_millis(10)..=Duration::from_mins(1)).contains(&duration) {
        return Ok(duration);
    }
    Err(Wrong::new("the deadline is out of range", "give 10ms to 1m; providers give up after 5s to 30s"))
}

/// In a file or a flag the key itself would be a secret in the open; a variable may hold it.
fn master_key(layers: &mut Layers<'_>) -> Option<SecretString> {
    let found = layers.take("master_key")?;
    let in_file = matches!(found.document.origin, Origin::File(_));
    let read = text(found.value.get_ref()).and_then(|value| match follow(value) {
        Some(Ok(key)) => Ok(key),
        Some(Err(problem)) => Err(Wrong::new(problem, "")),
        None if in_file => Err(Wrong::new(
            "the key itself has no place in a configuration",
            "write \"env:NAME\" or \"file:PATH\"",
        )),
        None => Ok(value.to_owned()),
    });
    let checked = read.and_then(|key| match crate::secrets::parse_master_key(&key) {
        Ok(_) => Ok(SecretString::from(key)),
        Err(problem) => Err(Wrong::new(problem, "make one with `openssl rand -base64 32`")),
    });
    checked.map_err(|wrong| layers.faults.push(found.fault("master_key", wrong))).ok()
}

fn host_pattern(text: &str) -> Result<HostPattern, Wrong> {
    text.parse().map_err(|error: posthaste_adapters::guard::BadHostPattern| {
        Wrong::new(error.to_string(), "write for example \"*.example.com\"")
    })
}

/// A network, or an address alone.
fn network(text: &str) -> Result<IpNet, Wrong> {
    let alone = || text.parse().ok().map(|address: IpAddr| IpNet::from(address));
    text.parse().ok().or_else(alone).ok_or_else(|| {
        Wrong::new(format!("{text:?} is no network"), "write for example \"10.0.0.0/8\" or \"::1/128\"")
    })
}

fn log_format(value: &toml::de::DeValue<'_>) -> Result<LogFormat, Wrong> {
    match text(value)? {
        "json" => Ok(LogFormat::Json),
        "text" => Ok(LogFormat::Text),
        other => Err(Wrong::new(format!("{other:?} is no format"), "write \"json\" or \"text\"")),
    }
}

fn log_level(value: &toml::de::DeValue<'_>) -> Result<String, Wrong> {
    let text = text(value)?;
    // A bare word that is no level would be taken for a module's name, and silence everything.
    let bare = |part: &str| part.contains('=') || LEVELS.contains(&part.trim());
    let known = text.split(',').all(bare) && tracing_subscriber::EnvFilter::builder().parse(text).is_ok();
    let remedy = "write error, warn, info, debug or trace, or for example \"info,posthaste_engine=debug\"";
    if known { Ok(text.to_owned()) } else { Err(Wrong::new(format!("{text:?} is no level"), remedy)) }
}

const LEVELS: &[&str] = &["off", "error", "warn", "info", "debug", "trace"];
