//! The subscriber of the demo: a real HTTP server that fails, asks for patience, and then takes the delivery. It
//! checks every signature.

use std::{
    net::SocketAddr,
    sync::{Arc, Mutex, PoisonError},
};

use axum::{
    Router,
    body::Bytes,
    extract::State,
    http::{HeaderMap, StatusCode},
    response::IntoResponse,
    routing::post,
};
use posthaste_receiver::{Request, Scheme, Verifier, VerifyOptions};

/// What the subscriber saw of one delivery.
#[derive(Clone, Debug)]
pub(super) struct Seen {
    /// `webhook-id`.
    pub(super) webhook_id: String,
    /// `idempotency-key`.
    pub(super) idempotency_key: String,
    /// Whether its signature was good.
    pub(super) genuine: bool,
    /// What it was answered.
    pub(super) answered: u16,
    /// The exact bytes.
    pub(super) body: Bytes,
}

/// A running subscriber.
pub(super) struct Subscriber {
    pub(super) address: SocketAddr,
    seen: Arc<Mutex<Vec<Seen>>>,
}

#[derive(Clone)]
struct Shared {
    verifier: Arc<Verifier>,
    seen: Arc<Mutex<Vec<Seen>>>,
    takes_it: bool,
}

impl Subscriber {
    /// Starts one that shares `secret` with us.
    pub(super) async fn start(secret: &str, takes_it: bool) -> anyhow::Result<Self> {
        let options = VerifyOptions { tolerance_seconds: None, hmac: None };
        let verifier = Arc::new(Verifier::new(Scheme::StandardWebhooks, &[secret], &options)?);
        let seen = Arc::new(Mutex::new(Vec::new()));
        let shared = Shared { verifier, seen: Arc::clone(&seen), takes_it };
        let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await?;
        let address = listener.local_addr()?;
        let router = Router::new().route("/hooks", post(receive)).with_state(shared);
        tokio::spawn(async move { axum::serve(listener, router).await });
        Ok(Self { address, seen })
    }

    /// Every delivery so far.
    pub(super) fn seen(&self) -> Vec<Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

async fn receive(State(shared): State<Shared>, headers: HeaderMap, body: Bytes) -> axum::response::Response {
    let pairs: Vec<(&str, &[u8])> =
        headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let request = Request { method: "POST", url: "/hooks", headers: &pairs, body: &body };
    let now_ms = jiff::Timestamp::now().as_millisecond();
    let genuine = shared.verifier.verify(&request, now_ms).is_ok();
    let text =
        |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default().to_owned();
    let mut seen = shared.seen.lock().unwrap_or_else(PoisonError::into_inner);
    let answered = match (seen.len(), shared.takes_it) {
        (0, _) => 500,
        (1, _) => 429,
        (_, true) => 204,
        (_, false) => 500,
    };
    seen.push(Seen {
        webhook_id: text("webhook-id"),
        idempotency_key: text("idempotency-key"),
        genuine,
        answered,
        body: body.clone(),
    });
    let status = StatusCode::from_u16(answered).unwrap_or_default();
    if answered == 429 { (status, [("retry-after", "1")]).into_response() } else { status.into_response() }
}
