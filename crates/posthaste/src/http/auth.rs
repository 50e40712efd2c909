//! Who asks, for which tenant, and what the key may do. Rows E5, G6.

use std::sync::Arc;

use axum::extract::FromRequestParts;
use http::{HeaderMap, header, request::Parts};
use posthaste_core::{DestinationId, TenantId};
use posthaste_engine::{Directory, PublishTo, Scope, hash_api_key};

use super::{AppState, Code, Problem};

/// The header by which an admin key names a tenant.
const TENANT: &str = "posthaste-tenant";

/// The holder of a valid API key.
#[derive(Clone, Debug)]
pub(crate) struct Caller {
    /// For whom.
    pub(crate) tenant: TenantId,
    /// The key's name, for the timeline.
    pub(crate) name: Arc<str>,
    scopes: Arc<[Scope]>,
}

impl FromRequestParts<AppState> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &AppState) -> Result<Self, Problem> {
        Self::of(&parts.headers, &state.engine().directory())
    }
}

impl Caller {
    fn of(headers: &HeaderMap, directory: &Directory) -> Result<Self, Problem> {
        let key = bearer(headers).ok_or_else(|| {
            Problem::new(Code::Unauthenticated, "give an API key: `Authorization: Bearer phk_…`")
        })?;
        let mut caller = Self::with_key(key, directory)
            .ok_or_else(|| Problem::new(Code::Unauthenticated, "the API key is not known, or was revoked"))?;
        if let Some(name) = headers.get(TENANT) {
            let name = name.to_str().unwrap_or_default();
            let own = directory.tenant_name(caller.tenant);
            if own.as_deref() != Some(name) {
                caller.require_admin()?;
                caller.tenant = directory.tenant(name).ok_or_else(|| {
                    Problem::new(Code::UnknownTenant, format!("there is no tenant {name:?}"))
                })?;
            }
        }
        Ok(caller)
    }

    /// The holder of `key`, if it is valid.
    pub(crate) fn with_key(key: &str, directory: &Directory) -> Option<Self> {
        let known = directory.key(&hash_api_key(key))?;
        let (name, scopes) = (Arc::clone(&known.name), Arc::clone(&known.scopes));
        Some(Self { tenant: known.tenant, name, scopes })
    }

    pub(crate) fn require_admin(&self) -> Result<(), Problem> {
        self.require("admin", |_| false)
    }

    pub(crate) fn require_read(&self) -> Result<(), Problem> {
        self.require("read", |scope| *scope == Scope::Read)
    }

    pub(crate) fn require_operate(&self) -> Result<(), Problem> {
        self.require("operate", |scope| *scope == Scope::Operate)
    }

    /// For what an operator changes and a reader may look at.
    pub(crate) fn require_read_or_operate(&self) -> Result<(), Problem> {
        self.require("read", |scope| matches!(scope, Scope::Read | Scope::Operate))
    }

    /// A key that is bound to destinations may publish to these, and not to whoever subscribes.
    pub(crate) fn require_publish(&self, to: &PublishTo) -> Result<(), Problem> {
        match to {
            PublishTo::Queue(queue) => self.require_for("publish", queue),
            PublishTo::Endpoints(endpoints) => {
                endpoints.iter().try_for_each(|endpoint| self.require_for("publish", endpoint))
            }
            PublishTo::Subscribers => self.require("publish", |scope| *scope == Scope::Publish(None)),
        }
    }

    pub(crate) fn require_work(&self, queue: &DestinationId) -> Result<(), Problem> {
        self.require_for("work", queue)
    }

    /// For a ledger entry: a key that is bound to a destination may ask of its event ids.
    pub(crate) fn require_ledger(&self, key: &posthaste_core::EventId) -> Result<(), Problem> {
        let of = key.as_str().rsplit_once(':').and_then(|(_, id)| DestinationId::new(id).ok());
        match of {
            Some(destination) => self.require_for("work", &destination),
            None => self.require("work", |scope| *scope == Scope::Work(None)),
        }
    }

    /// Whether the key may work on every queue.
    pub(crate) fn works_everywhere(&self) -> bool {
        self.scopes.iter().any(|scope| matches!(scope, Scope::Admin | Scope::Work(None)))
    }

    /// For requests that may name many queues: the key must be a worker's at all.
    pub(crate) fn require_work_somewhere(&self) -> Result<(), Problem> {
        self.require("work", |scope| matches!(scope, Scope::Work(_)))
    }

    /// The same for publishers.
    pub(crate) fn require_publish_somewhere(&self) -> Result<(), Problem> {
        self.require("publish", |scope| matches!(scope, Scope::Publish(_)))
    }

    fn require_for(&self, verb: &'static str, destination: &DestinationId) -> Result<(), Problem> {
        let fits = |scope: &Scope| match scope {
            Scope::Publish(bound) => verb == "publish" && bound.as_ref().is_none_or(|id| id == destination),
            Scope::Work(bound) => verb == "work" && bound.as_ref().is_none_or(|id| id == destination),
            Scope::Admin | Scope::Read | Scope::Operate => false,
        };
        if self.scopes.iter().any(|scope| *scope == Scope::Admin || fits(scope)) {
            return Ok(());
        }
        Err(lacks(&format!("{verb}:{destination}")))
    }

    fn require(&self, scope: &'static str, fits: impl Fn(&Scope) -> bool) -> Result<(), Problem> {
        if self.scopes.iter().any(|scope| *scope == Scope::Admin || fits(scope)) {
            return Ok(());
        }
        Err(lacks(scope))
    }
}

fn lacks(scope: &str) -> Problem {
    Problem::new(Code::Forbidden, format!("the API key lacks the scope `{scope}`")).with("scope", scope)
}

/// The key in `Authorization: Bearer …`.
fn bearer(headers: &HeaderMap) -> Option<&str> {
    let (scheme, key) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    scheme.eq_ignore_ascii_case("bearer").then_some(key.trim())
}
