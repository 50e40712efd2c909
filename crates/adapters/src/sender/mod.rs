//! The guarded sender: signed requests to receivers that may be slow, broken or hostile.
//!
//! Every end is a value, every wait has a deadline, and every address is judged by the guard when it is dialled.
//! It never follows a redirect, never uses a proxy of the environment and never sends a request a second time.

mod dial;
mod exchange;
mod fault;
mod link;
mod names;
mod payload;
mod tls;

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use bytes::Bytes;
use http::{HeaderName, HeaderValue, Method, Request, header};
use hyper_util::{
    client::legacy::Client,
    rt::{TokioExecutor, TokioTimer},
};
use posthaste_core::TransportFault;
use posthaste_engine::ports::{BoxFuture, HttpSender, OutboundRequest, SendOutcome};
use tokio::time::Instant;

use self::{dial::Dialler, exchange::Deadlines, fault::Handed, link::Link, payload::Payload};
pub use self::{
    names::{NameError, Names, SystemNames},
    tls::{Protocols, Trust},
};
use crate::guard::{CheckedUrl, Guard};

/// Bytes of a response's head beyond which it is given up. Noticed between reads, so up to twice as many may be held.
pub const HEAD_BYTES_MAX: usize = 64 * 1024;

/// Most header lines of a response over HTTP/1.1.
pub const HEADERS_MAX: usize = 200;

/// How often an HTTP/2 connection is asked whether it is alive, and how long it may take to say so.
const PING_INTERVAL: Duration = Duration::from_secs(20);
const PING_TIMEOUT: Duration = Duration::from_secs(10);

/// No limit of a request reaches further: beyond it, instants would overflow.
const TIMEOUT_MAX: Duration = Duration::from_hours(24);

/// Headers that the sender writes itself or that would change how the message is framed.
const OWN_HEADERS: [HeaderName; 6] = [
    header::HOST,
    header::CONTENT_LENGTH,
    header::TRANSFER_ENCODING,
    header::CONNECTION,
    header::UPGRADE,
    header::EXPECT,
];

/// How connections are made and kept.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// Whose certificates are accepted.
    pub trust: Trust,
    /// Versions of HTTP offered over TLS.
    pub protocols: Protocols,
    /// An unused connection is closed after this time. Below the idle time-outs of common servers (60 s), so that
    /// rarely a request is written to a connection the receiver is closing.
    pub idle_timeout: Duration,
    /// Unused connections kept per scheme, host and port.
    pub idle_connections_per_host_max: usize,
    /// No connection is kept after its request while more than this are open in all.
    pub connections_kept_max: usize,
    /// A connection is not used again beyond this age: its address was judged, and its name resolved, when it was
    /// dialled.
    pub connection_age_max: Duration,
}

/// Why a sender cannot be built.
#[derive(Debug, thiserror::Error)]
pub enum SenderError {
    /// The certificate store of the system is missing or unreadable, or a given authority is not a certificate.
    #[error("the trusted certificates cannot be used")]
    Trust(#[from] rustls::Error),
}

/// The sender. Share it behind an `Arc`: its connections are pooled per scheme, host and port.
pub struct GuardedSender {
    guard: Arc<Guard>,
    client: Client<Dialler, Payload>,
    rules: KeepRules,
}

/// Which connections may serve another request.
#[derive(Debug)]
struct KeepRules {
    age_max: Duration,
    open_max: usize,
    open: Arc<AtomicUsize>,
}

impl KeepRules {
    fn keep(&self, link: &Link) -> bool {
        link.opened_at.elapsed() <= self.age_max && self.open.load(Ordering::Acquire) <= self.open_max
    }
}

impl GuardedSender {
    /// A sender that looks names up as the system does.
    ///
    /// Errors: the trusted certificates cannot be loaded; nothing works without them, so the caller ends.
    pub fn new(guard: Arc<Guard>, config: &SenderConfig) -> Result<Self, SenderError> {
        Self::with_names(guard, config, Arc::new(SystemNames::from_system()))
    }

    /// A sender with a name look-up of the caller's.
    ///
    /// Errors: as [`GuardedSender::new`].
    pub fn with_names(
        guard: Arc<Guard>,
        config: &SenderConfig,
        names: Arc<dyn Names>,
    ) -> Result<Self, SenderError> {
        let open = Arc::new(AtomicUsize::new(0));
        let tls = tls::client_config(config.trust.clone(), config.protocols)?;
        let dialler = Dialler::new(Arc::clone(&guard), names, tls, Arc::clone(&open));
        let rules =
            KeepRules { age_max: config.connection_age_max, open_max: config.connections_kept_max, open };
        Ok(Self { guard, client: client(dialler, config), rules })
    }

    /// Connections open now, in use or kept.
    pub fn open_connections(&self) -> usize {
        self.rules.open.load(Ordering::Acquire)
    }

    async fn exchange(&self, request: OutboundRequest) -> SendOutcome {
        let deadlines = Deadlines::starting_now(request.limits);
        let url = match self.guard.check_url(&request.url) {
            Ok(url) => url,
            Err(refusal) => return SendOutcome::Blocked { reason: fault::shortened(&refusal.to_string()) },
        };
        match assemble(&url, request) {
            Ok(request) => exchange::run(&self.client, &self.rules, deadlines, request).await,
            Err(detail) => fault::unanswered(TransportFault::Protocol, Handed::Never, &detail),
        }
    }
}

impl HttpSender for GuardedSender {
    fn send(&self, request: OutboundRequest) -> BoxFuture<'_, SendOutcome> {
        Box::pin(self.exchange(request))
    }
}

/// `duration` after `instant`, for any duration.
fn later(instant: Instant, duration: Duration) -> Instant {
    instant + duration.min(TIMEOUT_MAX)
}

fn client(dialler: Dialler, config: &SenderConfig) -> Client<Dialler, Payload> {
    let mut builder = Client::builder(TokioExecutor::new());
    builder
        .timer(TokioTimer::new())
        .pool_timer(TokioTimer::new())
        .pool_idle_timeout(config.idle_timeout)
        .pool_max_idle_per_host(config.idle_connections_per_host_max)
        .retry_canceled_requests(false)
        .http1_max_buf_size(HEAD_BYTES_MAX)
        .http1_max_headers(HEADERS_MAX)
        // A stray header line is no reason to send a webhook again that its receiver has accepted.
        .http1_ignore_invalid_headers_in_responses(true)
        .http2_max_header_list_size(u32::try_from(HEAD_BYTES_MAX).unwrap_or(u32::MAX))
        .http2_keep_alive_interval(PING_INTERVAL)
        .http2_keep_alive_timeout(PING_TIMEOUT)
        .http2_keep_alive_while_idle(true);
    builder.build(dialler)
}

/// The request as the client takes it. Errors: a header that cannot or must not be sent, by name.
fn assemble(url: &CheckedUrl, request: OutboundRequest) -> Result<Request<Bytes>, String> {
    let method = Method::from_bytes(request.method.as_bytes());
    let method = method.map_err(|_| format!("not an http method: {}", request.method))?;
    let length = HeaderValue::from(request.body.len());
    let mut assembled = Request::new(request.body);
    *assembled.method_mut() = method;
    *assembled.uri_mut() = url.uri().clone();
    let headers = assembled.headers_mut();
    for (name, value) in request.headers {
        let refused = |why: &str| format!("header {why}: {name}");
        let parsed = HeaderName::from_bytes(name.as_bytes()).map_err(|_| refused("name is malformed"))?;
        if OWN_HEADERS.contains(&parsed) {
            return Err(refused("is the sender's own"));
        }
        let value = HeaderValue::from_bytes(&value).map_err(|_| refused("value is malformed"))?;
        headers.append(parsed, value);
    }
    headers.insert(header::CONTENT_LENGTH, length);
    Ok(assembled)
}
