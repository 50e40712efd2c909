//! A server in this process, and a client that sends exactly the bytes it is given.

use std::{fmt::Write as _, net::SocketAddr, sync::Arc, time::Duration};

use aws_lc_rs::hmac;
use posthaste::http::{AppOptions, AppState, HttpLimits, router, serve};
use posthaste_core::TenantId;
use posthaste_engine::{
    Engine, EngineParts, Settings, StoreClock,
    config::{EndpointSpec, QueueSpec, SourceSpec},
    ports::{Clock, HttpSender, Secrets, UrlJudge},
};
use posthaste_store::{ManagedBy, Store};
use posthaste_testkit::{ManualClock, ScriptedSender, store_suite::Harness, stores};
use serde_json::{Value, json};
use tokio::{
    io::{AsyncReadExt as _, AsyncWriteExt as _},
    net::{TcpListener, TcpStream},
};
use tokio_util::sync::{CancellationToken, DropGuard};

/// The secret of every source here.
pub(crate) const SECRET: &str = "it's a secret to everybody";

/// How long an answer may take before the test says so: a machine under load, not a wait.
const PATIENCE: Duration = Duration::from_mins(1);

/// Keeps secrets as they are.
struct PlainSecrets;

impl Secrets for PlainSecrets {
    fn open(&self, stored: &str) -> Result<String, String> {
        Ok(stored.to_owned())
    }

    fn seal(&self, secret: &str) -> Result<String, String> {
        Ok(secret.to_owned())
    }
}

struct AnyUrl;

impl UrlJudge for AnyUrl {
    fn check(&self, url: &str) -> Result<(), String> {
        if url.starts_with("https://") { Ok(()) } else { Err("it is not https".to_owned()) }
    }
}

/// A server of the tenant `default`, with an admin key.
pub(crate) struct Server {
    pub(crate) engine: Arc<Engine>,
    pub(crate) clock: Arc<ManualClock>,
    pub(crate) sender: Arc<ScriptedSender>,
    pub(crate) address: SocketAddr,
    pub(crate) tenant: TenantId,
    pub(crate) admin: String,
    pub(crate) shutdown: CancellationToken,
    pub(crate) served: Option<tokio::task::JoinHandle<()>>,
    _stop: DropGuard,
    /// What the store must not outlive.
    _keep: Option<Box<dyn std::any::Any + Send + Sync>>,
}

impl Server {
    pub(crate) async fn start() -> Self {
        Self::with_limits(HttpLimits::standard()).await
    }

    pub(crate) async fn with_limits(limits: HttpLimits) -> Self {
        let clock = Arc::new(ManualClock::default());
        Self::of(limits, Arc::clone(&clock), stores::chosen(clock).await).await
    }

    pub(crate) async fn with_store(store: impl FnOnce(Arc<dyn StoreClock>) -> Arc<dyn Store>) -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = store(Arc::<ManualClock>::clone(&clock));
        Self::of(HttpLimits::standard(), clock, Harness { store, keep: None }).await
    }

    async fn of(limits: HttpLimits, clock: Arc<ManualClock>, harness: Harness) -> Self {
        let Harness { store, keep } = harness;
        let engine_clock: Arc<dyn Clock> = Arc::<ManualClock>::clone(&clock);
        let sent = Arc::new(ScriptedSender::default());
        let sender: Arc<dyn HttpSender> = Arc::<ScriptedSender>::clone(&sent);
        let engine = Engine::start(EngineParts {
            store,
            clock: engine_clock,
            sender,
            secrets: Arc::new(PlainSecrets),
            url_judge: Arc::new(AnyUrl),
            metrics: posthaste_engine::Metrics::new(),
            settings: Settings::standard("test"),
        })
        .await
        .unwrap();
        engine.start_schedules();
        let tenant = engine.ensure_tenant("default").await.unwrap();
        let (_, admin) = engine.create_api_key(tenant, "tester", "admin").await.unwrap();
        let options = AppOptions { limits: limits.clone(), ..AppOptions::standard() };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let shutdown = CancellationToken::new();
        let router = router(AppState::new(Arc::clone(&engine), options));
        let served = tokio::spawn(serve(listener, router, limits, shutdown.clone()));
        let stop = shutdown.clone().drop_guard();
        Self {
            engine,
            clock,
            sender: sent,
            address,
            tenant,
            admin,
            shutdown,
            served: Some(served),
            _stop: stop,
            _keep: keep,
        }
    }

    /// A server with the queue `carts`.
    pub(crate) async fn with_queue() -> Self {
        let server = Self::start().await;
        server.queue(server.tenant, json!({"name": "carts", "lease": "60s"})).await;
        server
    }

    pub(crate) async fn queue(&self, tenant: TenantId, spec: Value) {
        let spec: QueueSpec = serde_json::from_value(spec).unwrap();
        self.engine.put_queue(tenant, spec, ManagedBy::Api, false).await.unwrap();
    }

    pub(crate) async fn endpoint(&self, tenant: TenantId, spec: Value) {
        let spec: EndpointSpec = serde_json::from_value(spec).unwrap();
        self.engine.put_endpoint(tenant, spec, ManagedBy::Api, false).await.unwrap();
    }

    pub(crate) async fn source(&self, tenant: TenantId, spec: Value) {
        let spec: SourceSpec = serde_json::from_value(spec).unwrap();
        self.engine.put_source(tenant, spec, ManagedBy::Api, false).await.unwrap();
    }

    /// A key of `tenant` with `scopes`.
    pub(crate) async fn key(&self, tenant: TenantId, scopes: &str) -> String {
        self.engine.create_api_key(tenant, "somebody", scopes).await.unwrap().1
    }

    pub(crate) async fn get(&self, path: &str) -> Reply {
        self.call("GET", path, &self.admin, b"").await
    }

    pub(crate) async fn post(&self, path: &str, body: &Value) -> Reply {
        self.call("POST", path, &self.admin, body.to_string().as_bytes()).await
    }

    /// A request with an API key.
    pub(crate) async fn call(&self, method: &str, path: &str, key: &str, body: &[u8]) -> Reply {
        let authorization = format!("Bearer {key}");
        self.send(method, path, &[("authorization", &authorization)], body).await
    }

    /// A request with exactly these headers, and those that frame it.
    pub(crate) async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: &[u8],
    ) -> Reply {
        let mut head = format!("{method} {path} HTTP/1.1\r\nhost: posthaste.test\r\nconnection: close\r\n");
        if !body.is_empty() || method == "POST" || method == "PUT" {
            write!(head, "content-length: {}\r\n", body.len()).unwrap();
        }
        for (name, value) in headers {
            write!(head, "{name}: {value}\r\n").unwrap();
        }
        head.push_str("\r\n");
        self.exchange(&[head.as_bytes(), body].concat()).await
    }

    /// Sends bytes and reads what comes back until the server closes.
    pub(crate) async fn exchange(&self, bytes: &[u8]) -> Reply {
        let mut stream = TcpStream::connect(self.address).await.unwrap();
        // A server that refuses a body need not read all of it.
        let _ = stream.write_all(bytes).await;
        read_reply(&mut stream).await
    }

    /// The job that a publish to `carts` under `key` makes.
    pub(crate) async fn publish(&self, key: &str) -> Value {
        let reply =
            self.post("/v1/queue/publish", &json!({"queue": "carts", "key": key, "payload": {"n": 1}})).await;
        reply.expect(202)["jobs"][0].clone()
    }

    /// Leases one job of `carts`.
    pub(crate) async fn consume(&self) -> Value {
        let reply = self.post("/v1/queue/consume", &json!({"queue": "carts", "worker": "w-1"})).await;
        let jobs = reply.expect(200)["jobs"].clone();
        assert_eq!(1, jobs.as_array().unwrap().len(), "{jobs}");
        jobs[0].clone()
    }

    /// How many jobs there are, in whatever state.
    pub(crate) async fn jobs_total(&self) -> usize {
        self.get("/v1/jobs?limit=500").await.expect(200)["data"].as_array().unwrap().len()
    }
}

/// Reads one answer to the end of its connection.
pub(crate) async fn read_reply(stream: &mut TcpStream) -> Reply {
    let mut bytes = Vec::new();
    let read = tokio::time::timeout(PATIENCE, stream.read_to_end(&mut bytes)).await;
    // A reset after the answer is the server's right where it did not read all.
    let _ = read.expect("the server neither answered nor closed");
    Reply::parse(&bytes)
}

/// An answer.
#[derive(Clone, Debug)]
pub(crate) struct Reply {
    pub(crate) status: u16,
    pub(crate) headers: Vec<(String, String)>,
    pub(crate) body: Vec<u8>,
}

impl Reply {
    fn parse(bytes: &[u8]) -> Self {
        let end = bytes.windows(4).position(|four| four == b"\r\n\r\n");
        let end = end.unwrap_or_else(|| panic!("no answer: {:?}", String::from_utf8_lossy(bytes)));
        let head = std::str::from_utf8(&bytes[..end]).unwrap();
        let mut lines = head.split("\r\n");
        let status = lines.next().unwrap().split(' ').nth(1).unwrap().parse().unwrap();
        let header = |line: &str| {
            let (name, value) = line.split_once(':').unwrap();
            (name.to_ascii_lowercase(), value.trim().to_owned())
        };
        Self { status, headers: lines.map(header).collect(), body: bytes[end + 4..].to_vec() }
    }

    pub(crate) fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.body).into_owned()
    }

    pub(crate) fn json(&self) -> Value {
        serde_json::from_slice(&self.body)
            .unwrap_or_else(|_| panic!("no JSON: {} {}", self.status, self.text()))
    }

    /// The JSON of an answer of this status.
    #[track_caller]
    pub(crate) fn expect(&self, status: u16) -> Value {
        assert_eq!(status, self.status, "{}", self.text());
        self.json()
    }

    /// The problem of this status and code; checks its form.
    #[track_caller]
    pub(crate) fn problem(&self, status: u16, code: &str) -> Value {
        assert_eq!(status, self.status, "{}", self.text());
        assert_eq!(Some("application/problem+json"), self.header("content-type"));
        let problem = self.json();
        assert_eq!(code, problem["code"], "{problem}");
        assert_eq!(u64::from(status), problem["status"]);
        assert!(problem["type"].as_str().unwrap().ends_with(&format!("#{code}")), "{problem}");
        for member in ["title", "detail"] {
            assert!(problem[member].as_str().is_some_and(|text| !text.is_empty()), "{problem}");
        }
        problem
    }
}

/// What GitHub would send as `x-hub-signature-256`.
pub(crate) fn signature(secret: &str, body: &[u8]) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let tag = hmac::sign(&key, body);
    tag.as_ref().iter().fold("sha256=".to_owned(), |mut text, byte| {
        write!(text, "{byte:02x}").unwrap();
        text
    })
}

/// `base` with the fields of `more` in it.
pub(crate) fn with(mut base: Value, more: Value) -> Value {
    let Value::Object(more) = more else { panic!("an object") };
    base.as_object_mut().unwrap().extend(more);
    base
}

/// Every byte as a percent escape.
pub(crate) fn escaped(text: &str) -> String {
    text.bytes().fold(String::new(), |mut escaped, byte| {
        write!(escaped, "%{byte:02X}").unwrap();
        escaped
    })
}
