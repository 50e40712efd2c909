//! Connections: what the URL says, and what a server must be like.

use std::{
    path::{Path, PathBuf},
    str::FromStr as _,
    time::Duration,
};

use tokio::task::JoinHandle;
use tokio_postgres::{
    Client, Config,
    config::{Host, SslMode, TargetSessionAttrs},
};

use super::{
    open_error::OpenError,
    options::PostgresOptions,
    tls::{Tls, Trust},
};

/// The oldest version that has all that is used, as the server counts.
const VERSION_MIN: i64 = 130_000;
/// How long a server that is gone may go unnoticed while nothing is asked.
const KEEPALIVES_IDLE: Duration = Duration::from_secs(30);
const KEEPALIVES_INTERVAL: Duration = Duration::from_secs(10);
const KEEPALIVES_RETRIES: u32 = 3;
/// How long what was sent may go unanswered by the network.
const UNANSWERED_MAX: Duration = Duration::from_secs(30);
/// How long a connection may take to say goodbye.
const GOODBYE: Duration = Duration::from_secs(1);

/// Makes connections.
pub(super) struct Connector {
    config: Config,
    tls: Tls,
    /// Host, port and database, for those who read.
    pub(super) at: Box<str>,
    schema: Box<str>,
    connect_max: Duration,
    statement_max: Duration,
    lock_max: Duration,
    work_max: Duration,
    read_max: Duration,
}

/// A connection, and what begins its transactions.
pub(super) struct Connection {
    pub(super) client: Client,
    driver: Driver,
    /// Begins a transaction that writes.
    pub(super) begin: Box<str>,
    /// Begins one that reads one state of everything.
    pub(super) begin_read: Box<str>,
}

/// The task that speaks with the server. It ends with the connection that has it: then the server rolls back.
struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}

impl Connection {
    /// Waits until the server, or the network, ends the connection. Not to be called again then. Cancel: safe.
    pub(super) async fn ended(&mut self) {
        // What it says about itself was logged there.
        let _ = (&mut self.driver.0).await;
    }

    pub(super) fn is_closed(&self) -> bool {
        self.client.is_closed()
    }

    /// Says goodbye, so that the server needn't wonder.
    pub(super) async fn close(self) {
        let Self { client, mut driver, .. } = self;
        drop(client);
        // Whoever doesn't answer is left alone.
        let _ = tokio::time::timeout(GOODBYE, &mut driver.0).await;
    }
}

impl Connector {
    pub(super) fn new(options: &PostgresOptions) -> Result<Self, OpenError> {
        check_schema_name(&options.schema)?;
        let Url { mut config, sslmode, root } = Url::parse(&options.url)?;
        let root = root.or_else(|| options.ca_file.clone());
        let (mode, trust) = protection(sslmode.as_deref(), root.as_deref())?;
        config.ssl_mode(mode);
        supplement(&mut config, options.connect_timeout);
        Ok(Self {
            tls: Tls::new(trust)?,
            at: name_of(&config),
            connect_max: options.connect_timeout * 2 * u32::try_from(hosts_of(&config)).unwrap_or(1),
            config,
            schema: options.schema.clone(),
            statement_max: options.statement_timeout,
            lock_max: options.lock_timeout,
            work_max: options.work_timeout,
            read_max: options.read_timeout,
        })
    }

    /// Connects to a server that keeps what it says.
    pub(super) async fn connect(&self) -> Result<Connection, OpenError> {
        let refused = |source| OpenError::Unreachable { at: self.at.clone(), source };
        let connecting = self.config.connect(self.tls.clone());
        let connected = tokio::time::timeout(self.connect_max, connecting).await;
        let (client, connection) =
            connected.map_err(|error| refused(error.into()))?.map_err(|error| refused(error.into()))?;
        let driver = Driver(tokio::spawn(async move {
            if let Err(error) = connection.await {
                tracing::debug!(%error, "a connection to the database ended");
            }
        }));
        let checked = tokio::time::timeout(self.connect_max, self.check(&client)).await;
        let synchronous_commit = checked.map_err(|error| refused(error.into()))??;
        Ok(Connection {
            client,
            driver,
            begin: self.begin(synchronous_commit),
            begin_read: self.begin_read(),
        })
    }

    /// Looks what the server is, and says how its commits have to be.
    async fn check(&self, client: &Client) -> Result<&'static str, OpenError> {
        let asked = client.query_typed(include_str!("sql/server_check.sql"), &[]).await;
        let rows = asked.map_err(OpenError::database(&self.at, "asking for its settings"))?;
        let at = || self.at.clone();
        let [row] = &rows[..] else {
            return Err(OpenError::database(&self.at, "asking for its settings")("one row was expected"));
        };
        let text = |index: usize| row.try_get::<_, &str>(index).unwrap_or_default();
        if row.try_get::<_, i64>(0).unwrap_or_default() < VERSION_MIN {
            return Err(OpenError::OldServer { at: at(), found: text(1).into() });
        }
        for (index, setting) in [(2, "fsync"), (3, "full_page_writes")] {
            if text(index) != "on" {
                return Err(OpenError::Setting { at: at(), setting, found: text(index).into() });
            }
        }
        if text(4) != "UTF8" {
            return Err(OpenError::Encoding { at: at(), found: text(4).into() });
        }
        if text(5) != "off" {
            return Err(OpenError::ReadOnly { at: at() });
        }
        // Who waits for more than one disk goes on doing so.
        Ok(if text(6) == "remote_apply" { "remote_apply" } else { "on" })
    }

    /// Settings go with each transaction, since a pooler may give each to another of its connections.
    fn begin(&self, synchronous_commit: &str) -> Box<str> {
        format!(
            "BEGIN ISOLATION LEVEL READ COMMITTED; SET LOCAL search_path = \"{}\", pg_temp; \
             SET LOCAL synchronous_commit = {synchronous_commit}; SET LOCAL jit = off; \
             SET LOCAL statement_timeout = {}; SET LOCAL lock_timeout = {}; \
             SET LOCAL idle_in_transaction_session_timeout = {}",
            self.schema,
            self.statement_max.as_millis(),
            self.lock_max.as_millis(),
            self.work_max.as_millis(),
        )
        .into()
    }

    fn begin_read(&self) -> Box<str> {
        let read_max = self.read_max.as_millis();
        format!(
            "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY; SET LOCAL search_path = \"{}\", pg_temp; \
             SET LOCAL jit = off; SET LOCAL statement_timeout = {read_max}; SET LOCAL lock_timeout = {read_max}; \
             SET LOCAL idle_in_transaction_session_timeout = {read_max}",
            self.schema,
        )
        .into()
    }
}

/// The URL, and what of it the driver doesn't know.
struct Url {
    config: Config,
    sslmode: Option<String>,
    root: Option<PathBuf>,
}

impl Url {
    fn parse(text: &str) -> Result<Self, OpenError> {
        let wrong = |problem: String| OpenError::Url { problem: problem.into() };
        if !text.starts_with("postgres://") && !text.starts_with("postgresql://") {
            return Err(wrong("it must begin with postgres://".to_owned()));
        }
        let (base, query) = text.split_once('?').unwrap_or((text, ""));
        let (mut sslmode, mut root, mut rest) = (None, None, Vec::new());
        for part in query.split('&').filter(|part| !part.is_empty()) {
            match part.split_once('=') {
                Some(("sslmode", value)) => sslmode = Some(decoded(value)),
                Some(("sslrootcert", value)) => root = Some(decoded(value)),
                _ => rest.push(part),
            }
        }
        let known = if rest.is_empty() { base.to_owned() } else { format!("{base}?{}", rest.join("&")) };
        let config = Config::from_str(&known).map_err(|error| {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}"));
            wrong(format!("{error}{}", cause.unwrap_or_default()))
        })?;
        if config.get_hosts().is_empty() && config.get_hostaddrs().is_empty() {
            return Err(wrong("it names no host".to_owned()));
        }
        // How libpq names the authorities of the operating system.
        let root = root.filter(|root| root != "system").map(PathBuf::from);
        Ok(Self { config, sslmode, root })
    }
}

/// Undoes percent-encoding, as far as it is one.
fn decoded(text: &str) -> String {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let [first, after @ ..] = rest {
        let code = if *first == b'%' { after.get(..2) } else { None };
        let code = code.and_then(|code| std::str::from_utf8(code).ok());
        let code = code.and_then(|code| u8::from_str_radix(code, 16).ok());
        bytes.push(code.unwrap_or(*first));
        rest = if code.is_some() { &after[2..] } else { after };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// What `sslmode` means.
fn protection<'f>(sslmode: Option<&str>, root: Option<&'f Path>) -> Result<(SslMode, Trust<'f>), OpenError> {
    let wrong = |problem: String| OpenError::Url { problem: problem.into() };
    Ok(match (sslmode.unwrap_or("prefer"), root) {
        ("disable", _) => (SslMode::Disable, Trust::Anyone),
        ("prefer", _) => (SslMode::Prefer, Trust::Anyone),
        ("require", None) => (SslMode::Require, Trust::Anyone),
        ("require" | "verify-ca", Some(file)) => (SslMode::Require, Trust::Chain(file)),
        ("verify-ca", None) => {
            return Err(wrong("`sslmode=verify-ca` needs a file of authorities in `sslrootcert`".to_owned()));
        }
        ("verify-full", file) => (SslMode::Require, Trust::Named(file)),
        (other, _) => {
            let known = "disable, prefer, require, verify-ca and verify-full";
            return Err(wrong(format!("`sslmode={other}` is unknown; known are {known}")));
        }
    })
}

/// What the URL leaves open.
fn supplement(config: &mut Config, connect_timeout: Duration) {
    if config.get_connect_timeout().is_none() {
        config.connect_timeout(connect_timeout);
    }
    if config.get_application_name().is_none() {
        config.application_name("posthaste");
    }
    if config.get_keepalives_interval().is_none() {
        config.keepalives_idle(KEEPALIVES_IDLE);
        config.keepalives_interval(KEEPALIVES_INTERVAL);
        config.keepalives_retries(KEEPALIVES_RETRIES);
    }
    if config.get_tcp_user_timeout().is_none() {
        config.tcp_user_timeout(UNANSWERED_MAX);
    }
    // Of one host alone we say ourselves what is wrong with it.
    if hosts_of(config) > 1 {
        config.target_session_attrs(TargetSessionAttrs::ReadWrite);
    }
}

fn hosts_of(config: &Config) -> usize {
    config.get_hosts().len().max(config.get_hostaddrs().len())
}

fn name_of(config: &Config) -> Box<str> {
    let host = |(index, host): (usize, &Host)| {
        let ports = config.get_ports();
        let port = ports.get(index).or_else(|| ports.first()).copied().unwrap_or(5432);
        match host {
            Host::Tcp(host) => format!("{host}:{port}"),
            Host::Unix(path) => format!("{}:{port}", path.display()),
        }
    };
    let mut hosts: Vec<_> = config.get_hosts().iter().enumerate().map(host).collect();
    if hosts.is_empty() {
        hosts = config.get_hostaddrs().iter().map(ToString::to_string).collect();
    }
    let database = config.get_dbname().or_else(|| config.get_user()).unwrap_or_default();
    format!("{}/{database}", hosts.join(",")).into()
}

/// It goes into SQL between quotes.
fn check_schema_name(schema: &str) -> Result<(), OpenError> {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let fits = schema.len() <= 63
        && schema.bytes().all(plain)
        && !schema.starts_with(|first: char| first.is_ascii_digit())
        && !schema.starts_with("pg_")
        && !schema.is_empty();
    if fits { Ok(()) } else { Err(OpenError::SchemaName { schema: schema.into() }) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn protection_of(query: &str) -> Result<(SslMode, bool), String> {
        let url = Url::parse(&format!("postgres://u:p%3F@db.example/x{query}")).map_err(|e| e.to_string())?;
        let (mode, trust) =
            protection(url.sslmode.as_deref(), url.root.as_deref()).map_err(|e| e.to_string())?;
        Ok((mode, trust != Trust::Anyone))
    }

    #[test]
    fn sslmode_means_what_it_means_elsewhere() {
        assert_eq!(Ok((SslMode::Prefer, false)), protection_of(""));
        assert_eq!(Ok((SslMode::Disable, false)), protection_of("?sslmode=disable"));
        assert_eq!(Ok((SslMode::Require, false)), protection_of("?connect_timeout=3&sslmode=require"));
        assert_eq!(Ok((SslMode::Require, true)), protection_of("?sslmode=require&sslrootcert=%2Fca.pem"));
        assert_eq!(Ok((SslMode::Require, true)), protection_of("?sslmode=verify-full"));
        assert_eq!(Ok((SslMode::Require, true)), protection_of("?sslmode=verify-full&sslrootcert=system"));
        for query in ["?sslmode=verify-ca", "?sslmode=allow", "?sslmode=verify-ca&sslrootcert=system"] {
            assert!(protection_of(query).unwrap_err().contains("sslmode"), "{query}");
        }
    }

    #[test]
    fn a_url_without_sense_is_refused_and_none_tells_a_password() {
        for url in [
            "sqlite:a.db",
            "host=localhost password=secret",
            "postgres://u:secret@/x",
            "postgres://u:secret@h/x?what=1",
        ] {
            let error = Url::parse(url).err().map(|error| error.to_string());
            let error = error.unwrap_or_else(|| panic!("{url} is taken"));
            assert!(!error.contains("secret"), "{error}");
        }
        let url = Url::parse("postgres://u:secret@a:1,b:2/x").unwrap();
        assert_eq!("a:1,b:2/x", &*name_of(&url.config));
    }

    #[test]
    fn a_path_is_decoded() {
        assert_eq!("/a b/%zz%", decoded("%2Fa%20b/%zz%"));
    }

    #[test]
    fn a_schema_has_a_plain_name() {
        for schema in ["posthaste", "_a1"] {
            check_schema_name(schema).unwrap();
        }
        for schema in ["", "pg_x", "1a", "A", "a\"b", "a-b", &"a".repeat(64)] {
            assert!(check_schema_name(schema).is_err(), "{schema}");
        }
    }
}
