//! The ports: what the engine asks of the outside world, and nothing more.
//!
//! Each is a trait because it has two production implementations, or one and a simulator. No transport type
//! crosses them: an adapter that speaks hyper is swapped for a scripted one in a test without the engine noticing.

use std::{future::Future, net::SocketAddr, pin::Pin, time::Duration};

use bytes::Bytes;
use posthaste_core::TransportFault;

/// A boxed future, so that the ports stay object-safe.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;

/// Sends one signed request. Every end is a value, so there is no `Result`.
///
/// One call is at most one request on the wire: an implementation never sends again by itself, follows no
/// redirect and uses no proxy of the environment. The address that is dialled was judged by the guard.
///
/// Cancel safety: dropping the future may leave a request on the wire; treat it as [`SendOutcome::Unanswered`]
/// with `sent: true`.
pub trait HttpSender: Send + Sync {
    /// Sends `request` and resolves within `request.limits.total_timeout`, plus scheduling delay.
    fn send(&self, request: OutboundRequest) -> BoxFuture<'_, SendOutcome>;
}

/// One request, complete: the sender adds `host`, `content-length` and nothing else.
#[derive(Clone, Debug)]
pub struct OutboundRequest {
    /// Absolute `http://` or `https://` URL without userinfo or fragment.
    pub url: String,
    /// Upper-case method; `POST` for deliveries.
    pub method: &'static str,
    /// Names in lower case. Values were checked for control characters when they were configured.
    pub headers: Vec<(String, Vec<u8>)>,
    /// The exact bytes to send.
    pub body: Bytes,
    /// Time and size limits of this one request.
    pub limits: SendLimits,
}

/// Time and size limits of one request. All times count from the call of [`HttpSender::send`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SendLimits {
    /// Name look-up and TCP connect.
    pub connect_timeout: Duration,
    /// TLS handshake, counted from the TCP connect.
    pub tls_timeout: Duration,
    /// From the request's last byte to the response's head.
    pub first_byte_timeout: Duration,
    /// The whole exchange, body of the answer included. Nothing outlives it.
    pub total_timeout: Duration,
    /// How many bytes of the answer's body are kept; reading stops there.
    pub excerpt_bytes_max: usize,
}

/// How one request ended.
#[derive(Clone, Debug)]
pub enum SendOutcome {
    /// A status line and headers arrived. The body may have been cut at the byte or time limit.
    Answered(Answered),
    /// Our own guard refused the destination; no byte left for it.
    Blocked {
        /// Why, for the operator; names the rule, never a secret.
        reason: String,
    },
    /// No answer. `sent` tells whether any byte of the request may have reached the receiver.
    Unanswered {
        /// What broke.
        fault: TransportFault,
        /// True if the request, or a part of it, may have left: its effect is then possible.
        sent: bool,
        /// For the operator: the error's text, without secrets, at most 300 bytes.
        detail: String,
    },
}

/// An answer, as far as deliveries care.
#[derive(Clone, Debug)]
pub struct Answered {
    /// The final status code.
    pub status: u16,
    /// `Retry-After` as received; parsed by the core.
    pub retry_after: Option<Vec<u8>>,
    /// `Location` as received, at most 2,048 bytes: shown, never followed.
    pub location: Option<Vec<u8>>,
    /// `posthaste-ledger` as received, at most 256 bytes.
    pub ledger: Option<Vec<u8>>,
    /// `webhook-delivery` as received, at most 64 bytes.
    pub delivery_control: Option<Vec<u8>>,
    /// The head of the body, at most `excerpt_bytes_max` bytes.
    pub excerpt: Bytes,
    /// The body was longer, slower or broken: the excerpt is not all of it.
    pub excerpt_truncated: bool,
    /// The address that answered.
    pub peer: Option<SocketAddr>,
}

// The ports must stay object-safe.
const _: fn(&dyn HttpSender) = |_| ();

/// Time for the loops: the store's clock, and a way to wait for it.
pub trait Clock: posthaste_store::Clock {
    /// Resolves at `at` or a little later. Cancel: safe.
    fn sleep_until(&self, at: posthaste_core::Timestamp) -> BoxFuture<'_, ()>;

    /// What the machine's clock says, for comparison only.
    fn wall(&self) -> posthaste_core::Timestamp {
        self.now()
    }
}

/// Opens and seals secrets: what is written in configuration, and what is kept in the store.
pub trait Secrets: Send + Sync {
    /// The secret that `stored` refers to: `env:NAME`, `file:PATH`, `sealed:…`, or the text itself.
    ///
    /// Errors: a sentence for the operator that holds no secret.
    fn open(&self, stored: &str) -> Result<String, String>;

    /// What to keep in the store for a secret that came over the API: sealed, or the reference unchanged.
    fn seal(&self, secret: &str) -> Result<String, String>;
}

/// Judges an endpoint's URL when it is registered. The connector judges the address again when it dials.
pub trait UrlJudge: Send + Sync {
    /// Errors: a sentence that says what is wrong and what would be right.
    fn check(&self, url: &str) -> Result<(), String>;
}

const _: fn(&dyn Clock, &dyn Secrets, &dyn UrlJudge) = |_, _, _| ();
