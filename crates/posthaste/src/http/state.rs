//! What every handler has at hand.

use std::sync::Arc;

use axum::body::Body;
use bytes::Bytes;
use http::HeaderMap;
use posthaste_engine::Engine;

use super::{
    Code, HttpLimits, Problem,
    body::{self, BodyLimit, Budget},
};

/// Choices of the HTTP layer.
#[derive(Clone, Debug)]
pub struct AppOptions {
    /// Limits of connections and requests.
    pub limits: HttpLimits,
    /// The tenant of `/in/{source}`.
    pub default_tenant: Box<str>,
    /// The URL by which the outside world reaches us, without a path: for providers that sign URLs, and for cookies.
    /// `http://{host}` of each request unless told.
    pub public_url: Option<Box<str>>,
}

impl AppOptions {
    /// The choices in force unless configured.
    pub fn standard() -> Self {
        Self { limits: HttpLimits::standard(), default_tenant: "default".into(), public_url: None }
    }
}

/// What every handler has at hand. Cheap to clone.
#[derive(Clone, Debug)]
pub struct AppState(Arc<Inner>);

#[derive(Debug)]
struct Inner {
    engine: Arc<Engine>,
    options: AppOptions,
    bodies: Budget,
}

impl AppState {
    /// The state of a server of `engine`, which tells of dead letters from now on. Within a runtime.
    pub fn new(engine: Arc<Engine>, options: AppOptions) -> Self {
        let weak = Arc::downgrade(&engine);
        engine.tell_by(Box::new(move |told| {
            let idempotent = |job: &posthaste_core::Job| {
                weak.upgrade()
                    .is_some_and(|engine| engine.directory().policy(job.tenant, job.lane).idempotent)
            };
            super::dead_letter::describe(told, idempotent)
        }));
        let bodies = Budget::new(options.limits.bodies_bytes_max);
        Self(Arc::new(Inner { engine, options, bodies }))
    }

    pub(crate) fn engine(&self) -> &Engine {
        &self.0.engine
    }

    pub(crate) fn options(&self) -> &AppOptions {
        &self.0.options
    }

    /// Reads the body of an API request, of at most `bytes_max` bytes.
    pub(crate) async fn read(
        &self,
        headers: &HeaderMap,
        body: Body,
        bytes_max: usize,
    ) -> Result<Bytes, Problem> {
        body::refuse_encoding(headers)?;
        let read_timeout = self.0.options.limits.body_read_timeout;
        let limit = BodyLimit { bytes_max, read_timeout, code: Code::BodyTooLarge };
        body::read(headers, body, limit, self.bodies()).await
    }

    /// What all bodies that are being read share.
    pub(crate) fn bodies(&self) -> &Budget {
        &self.0.bodies
    }
}
