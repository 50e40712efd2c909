//! PostgreSQL of our own, started by the project's script and gone afterwards.

use std::{
    collections::HashMap,
    fs::File,
    net::{TcpListener, TcpStream},
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    sync::{
        LazyLock,
        atomic::{AtomicUsize, Ordering},
    },
    time::SystemTime,
};

use posthaste_receiver::ledger::sql::Dialect;
use tempfile::TempDir;
use tokio::{runtime::Runtime, task::JoinHandle};
use tokio_postgres::{
    Client, NoTls, Statement,
    error::SqlState,
    types::{ToSql, Type},
};

use super::{Answer, Database, Refusal, Row, Session, Value};

/// Connections are driven by it, sessions wait on it.
pub(crate) static RUNTIME: LazyLock<Runtime> = LazyLock::new(|| {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
});

/// A server of one's own, stopped when dropped; or the one that all test programs share.
pub(crate) struct Server {
    folder: PathBuf,
    port: u16,
    own: Option<TempDir>,
}

impl Server {
    /// One that may be killed.
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let server = Self { folder: folder.path().to_owned(), port: free_port(), own: Some(folder) };
        server.up();
        server
    }

    /// The one that all share, each in a schema of its own. Whoever uses it last stops it.
    pub(crate) fn shared() -> &'static Self {
        static SHARED: LazyLock<(Server, Child, File)> = LazyLock::new(|| {
            let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ledger-postgres");
            std::fs::create_dir_all(&folder).unwrap();
            let gate = File::create(folder.join("gate")).unwrap();
            let users = File::create(folder.join("users")).unwrap();
            gate.lock().unwrap();
            users.lock_shared().unwrap();
            let known = std::fs::read_to_string(folder.join("port")).ok().and_then(|text| text.parse().ok());
            let up = known.filter(|port| TcpStream::connect(("127.0.0.1", *port)).is_ok());
            let port = up.unwrap_or_else(free_port);
            std::fs::write(folder.join("port"), port.to_string()).unwrap();
            let server = Server { folder: folder.join("server"), port, own: None };
            server.up();
            let last = format!(
                "cat; sleep 5; flock {0}/gate flock --nonblock --exclusive {0}/users bash {1} stop {0}/server",
                folder.display(),
                script().display()
            );
            // It reads until this process is gone, however it went; the next one may come soon.
            let mut stopper = Command::new("bash");
            stopper.args(["-c", &last]).stdin(Stdio::piped()).stdout(Stdio::null()).stderr(Stdio::null());
            (server, stopper.spawn().unwrap(), users)
        });
        &SHARED.0
    }

    /// Starts it, again if need be.
    pub(crate) fn up(&self) {
        self.script("start");
    }

    pub(crate) fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }

    /// Kills it, first the process that serves a session, so that nothing it hears afterwards is heard.
    pub(crate) fn kill(&self, backend: &str) {
        let pidfile = std::fs::read_to_string(self.folder.join("data/postmaster.pid")).unwrap();
        let pid = pidfile.lines().next().unwrap();
        assert!(Command::new("kill").args(["-9", backend, pid]).status().unwrap().success());
    }

    fn script(&self, verb: &str) {
        let mut command = Command::new("bash");
        command.arg(script()).arg(verb).arg(&self.folder);
        if verb == "start" {
            command.arg(self.port.to_string());
        }
        let output = command.output().unwrap();
        let said = String::from_utf8_lossy(&output.stderr).into_owned();
        assert!(output.status.success(), "postgres.sh {verb}: {said}");
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if self.own.is_some() {
            self.script("stop");
        }
    }
}

fn script() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/services/postgres.sh")
}

/// Free now; a stranger who takes it meanwhile makes a start fail, not a test lie.
fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// A schema of a server, at one isolation level.
pub(crate) struct Postgres {
    url: String,
    options: String,
}

impl Postgres {
    pub(crate) fn new(server: &Server, level: &str) -> Self {
        static COUNT: AtomicUsize = AtomicUsize::new(0);
        let schema = format!("t{}_{}", std::process::id(), COUNT.fetch_add(1, Ordering::Relaxed));
        let (client, task) = connect(&server.url(), "");
        // A server that is shared outlives the processes, whose numbers come again.
        let anew = format!("DROP SCHEMA IF EXISTS {schema} CASCADE; CREATE SCHEMA {schema}");
        RUNTIME.block_on(client.batch_execute(&anew)).unwrap();
        task.abort();
        let options = format!(
            "-c default_transaction_isolation={} -c search_path={schema} -c lock_timeout=2s -c synchronous_commit=off",
            level.replace(' ', "\\ ")
        );
        Self { url: server.url(), options }
    }

    /// One that another process made; `None` if it is no PostgreSQL.
    pub(crate) fn at(place: &str) -> Option<Self> {
        let (url, options) = place.split_once('|')?;
        Some(Self { url: url.to_owned(), options: options.to_owned() })
    }

    /// Where other processes find it.
    pub(crate) fn place(&self) -> String {
        format!("{}|{}", self.url, self.options)
    }

    /// The same, except that its commits rest on the disk.
    pub(crate) fn durable(mut self) -> Self {
        self.options = self.options.replace("synchronous_commit=off", "synchronous_commit=on");
        self
    }

    pub(crate) fn client(&self) -> (Client, JoinHandle<()>) {
        connect(&self.url, &self.options)
    }
}

impl Database for Postgres {
    fn dialect(&self) -> Dialect {
        Dialect::Postgres
    }

    fn session(&self) -> Box<dyn Session> {
        let (client, task) = self.client();
        Box::new(PostgresSession { client, prepared: HashMap::new(), task })
    }

    fn name(&self) -> String {
        let level = self.options.split(" -c ").next().unwrap_or_default();
        format!("postgres {level}")
    }
}

fn connect(url: &str, options: &str) -> (Client, JoinHandle<()>) {
    let mut config: tokio_postgres::Config = url.parse().unwrap();
    config.options(options);
    RUNTIME.block_on(async {
        let (client, connection) = config.connect(NoTls).await.unwrap();
        (client, tokio::spawn(async move { drop(connection.await) }))
    })
}

struct PostgresSession {
    client: Client,
    /// By their text: planned once a session, as a service would have them.
    prepared: HashMap<String, Statement>,
    task: JoinHandle<()>,
}

impl Drop for PostgresSession {
    fn drop(&mut self) {
        // The socket goes with it: nothing more is said, not even goodbye.
        self.task.abort();
    }
}

/// The types of the parameters, which are named alike everywhere.
fn type_of(name: &str) -> Type {
    match name {
        "fence" | "lease_ms" | "keep_ms" | "limit" | "shift" => Type::INT8,
        "result_bytes" => Type::BYTEA,
        "result_status" => Type::INT4,
        _ => Type::TEXT,
    }
}

fn parameter(name: &str, value: &Value) -> Box<dyn ToSql + Sync + Send> {
    match (type_of(name), value) {
        (Type::INT8, Value::Int(value)) => Box::new(*value),
        (Type::INT4, Value::Int(value)) => Box::new(i32::try_from(*value).unwrap()),
        (Type::INT8, _) => Box::new(None::<i64>),
        (Type::INT4, _) => Box::new(None::<i32>),
        (_, Value::Text(text)) => Box::new(text.clone()),
        (_, Value::Bytes(bytes)) => Box::new(bytes.clone()),
        (Type::BYTEA, _) => Box::new(None::<Vec<u8>>),
        (_, _) => Box::new(None::<String>),
    }
}

impl Session for PostgresSession {
    fn query(&mut self, sql: &str, parameters: &[(&str, Value)]) -> Answer<Vec<Row>> {
        let used = parameters.iter().take_while(|_| sql.contains('$'));
        let (values, types): (Vec<_>, Vec<_>) =
            used.map(|(name, value)| (parameter(name, value), type_of(name))).unzip();
        let values: Vec<_> = values.iter().map(|value| &**value as &(dyn ToSql + Sync)).collect();
        let rows = RUNTIME.block_on(async {
            if !self.prepared.contains_key(sql) {
                let statement = self.client.prepare_typed(sql, &types).await?;
                self.prepared.insert(sql.to_owned(), statement);
            }
            self.client.query(&self.prepared[sql], &values).await
        });
        Ok(rows.map_err(refusal)?.iter().map(read).collect())
    }

    fn batch(&mut self, sql: &str) -> Answer<()> {
        RUNTIME.block_on(self.client.batch_execute(sql)).map_err(refusal)
    }

    fn begin(&mut self) -> Answer<()> {
        self.batch("BEGIN")
    }
}

fn read(row: &tokio_postgres::Row) -> Row {
    let values = row.columns().iter().enumerate().map(|(at, column)| {
        let value = match *column.type_() {
            Type::INT4 => Value::from(row.get::<_, Option<i32>>(at).map(i64::from)),
            Type::INT8 => Value::from(row.get::<_, Option<i64>>(at)),
            Type::BYTEA => Value::from(row.get::<_, Option<&[u8]>>(at)),
            Type::TIMESTAMPTZ => Value::from(row.get::<_, Option<SystemTime>>(at).map(micros)),
            Type::JSONB | Type::BOOL => Value::Null,
            _ => Value::from(row.get::<_, Option<&str>>(at)),
        };
        (column.name().to_owned(), value)
    });
    Row(values.collect())
}

fn micros(at: SystemTime) -> i64 {
    i64::try_from(at.duration_since(SystemTime::UNIX_EPOCH).unwrap().as_micros()).unwrap()
}

#[allow(clippy::needless_pass_by_value, reason = "is mapped over results")]
fn refusal(error: tokio_postgres::Error) -> Refusal {
    let code = error.code().cloned();
    let text = error.as_db_error().map_or_else(|| error.to_string(), ToString::to_string);
    match code {
        Some(SqlState::T_R_SERIALIZATION_FAILURE | SqlState::T_R_DEADLOCK_DETECTED) => Refusal::Conflict,
        Some(SqlState::LOCK_NOT_AVAILABLE) => Refusal::Locked,
        Some(code) if code.code().starts_with("23") => Refusal::Constraint(text),
        _ => Refusal::Other(text),
    }
}
