//! Who is who: tenants, destinations, sources and API keys, in memory, replaced whole at each change.

use std::{collections::HashMap, sync::Arc};

use posthaste_core::{ApiKeyId, DestinationId, LaneId, Policy, TenantId};
use posthaste_store::{ApiKeyRow, DestinationKind, DestinationRow, ManagedBy};

use crate::{
    config::{Endpoint, Queue, Source, type_fits},
    notice::{OPERATIONAL_PREFIX, is_operational},
};

/// A destination or source, understood.
#[derive(Clone, Debug)]
pub enum Destination {
    /// We push to it.
    Endpoint(Arc<Endpoint>),
    /// Workers pull from it.
    Queue(Arc<Queue>),
    /// Signed requests come in by it.
    Source(Arc<Source>),
    /// Its configuration is not understood (a secret's variable is gone): held, not dropped.
    Broken {
        /// What it is.
        kind: DestinationKind,
        /// What is wrong, for the operator.
        problem: Arc<str>,
    },
}

/// An entry of the directory.
#[derive(Clone, Debug)]
pub struct Entry {
    /// As stored.
    pub row: Arc<DestinationRow>,
    /// As understood.
    pub destination: Destination,
}

impl Entry {
    /// Whether its configuration is not understood.
    pub fn is_broken(&self) -> bool {
        matches!(self.destination, Destination::Broken { .. })
    }
}

/// An API key, understood.
#[derive(Clone, Debug)]
pub struct ApiKey {
    /// Its name for machines.
    pub id: ApiKeyId,
    /// Whose.
    pub tenant: TenantId,
    /// Its name for people.
    pub name: Arc<str>,
    /// What it may do.
    pub scopes: Arc<[Scope]>,
}

/// What an API key may do. Row E5.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Everything, for every tenant.
    Admin,
    /// Publish messages, everywhere or to one destination.
    Publish(Option<DestinationId>),
    /// Read everything.
    Read,
    /// Work on every queue, or on one.
    Work(Option<DestinationId>),
    /// Operate: cancel, pause, configure destinations.
    Operate,
}

impl Scope {
    /// Reads `admin`, `publish`, `publish:carts`, `read`, `work`, `work:carts`, `operate`.
    pub fn parse(text: &str) -> Option<Self> {
        let (word, destination) = match text.split_once(':') {
            Some((word, destination)) => (word, Some(DestinationId::new(destination).ok()?)),
            None => (text, None),
        };
        match (word, destination) {
            ("admin", None) => Some(Self::Admin),
            ("read", None) => Some(Self::Read),
            ("operate", None) => Some(Self::Operate),
            ("publish", destination) => Some(Self::Publish(destination)),
            ("work", destination) => Some(Self::Work(destination)),
            _ => None,
        }
    }
}

/// Everything, at one moment.
#[derive(Clone, Debug, Default)]
pub struct Directory {
    tenants: HashMap<Arc<str>, TenantId>,
    names: HashMap<TenantId, Arc<str>>,
    by_id: HashMap<TenantId, HashMap<DestinationId, Entry>>,
    by_lane: HashMap<(TenantId, LaneId), Entry>,
    /// Enabled endpoints with type patterns, by tenant.
    subscribers: HashMap<TenantId, Vec<Arc<Endpoint>>>,
    keys: HashMap<[u8; 32], ApiKey>,
}

impl Directory {
    /// Puts it together.
    pub fn new(tenants: Vec<(TenantId, Box<str>)>, entries: Vec<Entry>, keys: Vec<ApiKeyRow>) -> Self {
        let mut directory = Self::default();
        for (tenant, name) in tenants {
            let name: Arc<str> = name.into();
            directory.tenants.insert(Arc::clone(&name), tenant);
            directory.names.insert(tenant, name);
        }
        for entry in entries {
            directory.insert(entry);
        }
        for key in keys.into_iter().filter(|key| key.revoked_at.is_none()) {
            let scopes = key.scopes.split_ascii_whitespace().filter_map(Scope::parse).collect();
            let known = ApiKey { id: key.id, tenant: key.tenant, name: key.name.into(), scopes };
            directory.keys.insert(key.secret_hash, known);
        }
        directory
    }

    /// Makes or replaces an entry.
    pub fn put(&mut self, entry: Entry) {
        if let Some(subscribers) = self.subscribers.get_mut(&entry.row.tenant) {
            subscribers.retain(|endpoint| endpoint.lane != entry.row.lane);
        }
        self.insert(entry);
    }

    fn insert(&mut self, entry: Entry) {
        let row = Arc::clone(&entry.row);
        if let Destination::Endpoint(endpoint) = &entry.destination
            && endpoint.enabled
            && !endpoint.types.is_empty()
        {
            self.subscribers.entry(row.tenant).or_default().push(Arc::clone(endpoint));
        }
        self.by_lane.insert((row.tenant, row.lane), entry.clone());
        self.by_id.entry(row.tenant).or_default().insert(row.id.clone(), entry);
    }

    /// The tenant of this name.
    pub fn tenant(&self, name: &str) -> Option<TenantId> {
        self.tenants.get(name).copied()
    }

    /// A tenant's name.
    pub fn tenant_name(&self, tenant: TenantId) -> Option<Arc<str>> {
        self.names.get(&tenant).cloned()
    }

    /// Every tenant.
    pub fn tenants(&self) -> impl Iterator<Item = (TenantId, &Arc<str>)> {
        self.names.iter().map(|(tenant, name)| (*tenant, name))
    }

    /// A destination or source by id.
    pub fn find(&self, tenant: TenantId, id: &DestinationId) -> Option<&Entry> {
        self.by_id.get(&tenant)?.get(id)
    }

    /// A destination by lane.
    pub fn at(&self, tenant: TenantId, lane: LaneId) -> Option<&Entry> {
        self.by_lane.get(&(tenant, lane))
    }

    /// A tenant's destinations and sources of one kind, by id.
    pub fn list(&self, tenant: TenantId, kind: DestinationKind) -> Vec<&Entry> {
        let all = self.by_id.get(&tenant).into_iter().flat_map(HashMap::values);
        let mut entries: Vec<_> = all.filter(|entry| entry.row.kind == kind).collect();
        entries.sort_by(|one, two| one.row.id.cmp(&two.row.id));
        entries
    }

    /// Every entry.
    pub fn entries(&self) -> impl Iterator<Item = &Entry> {
        self.by_lane.values()
    }

    /// The queue of this name, if it is one.
    pub fn queue(&self, tenant: TenantId, id: &DestinationId) -> Option<&Arc<Queue>> {
        match &self.find(tenant, id)?.destination {
            Destination::Queue(queue) => Some(queue),
            Destination::Endpoint(_) | Destination::Source(_) | Destination::Broken { .. } => None,
        }
    }

    /// The source of this name, if it is one.
    pub fn source(&self, tenant: TenantId, id: &DestinationId) -> Option<&Arc<Source>> {
        match &self.find(tenant, id)?.destination {
            Destination::Source(source) => Some(source),
            Destination::Endpoint(_) | Destination::Queue(_) | Destination::Broken { .. } => None,
        }
    }

    /// The enabled endpoints that want `event_type`.
    pub fn subscribers(&self, tenant: TenantId, event_type: Option<&str>) -> Vec<&Arc<Endpoint>> {
        let all = self.subscribers.get(&tenant).into_iter().flatten();
        // What went wrong here is not for every receiver: only who names our types hears of them.
        let operational = event_type.is_some_and(is_operational);
        let fits = |pattern: &String| {
            type_fits(pattern, event_type) && (!operational || pattern.starts_with(OPERATIONAL_PREFIX))
        };
        let wants = |endpoint: &&Arc<Endpoint>| endpoint.types.iter().any(fits);
        all.filter(wants).collect()
    }

    /// The policy of a lane; the default of its kind where the destination is gone or not understood.
    pub fn policy(&self, tenant: TenantId, lane: LaneId) -> Arc<Policy> {
        match self.at(tenant, lane).map(|entry| &entry.destination) {
            Some(Destination::Endpoint(endpoint)) => Arc::clone(&endpoint.policy),
            Some(Destination::Queue(queue)) => Arc::clone(&queue.policy),
            Some(Destination::Source(_) | Destination::Broken { .. }) | None => {
                Arc::new(Policy::queue_default())
            }
        }
    }

    /// The API key whose SHA-256 this is.
    pub fn key(&self, hash: &[u8; 32]) -> Option<&ApiKey> {
        self.keys.get(hash)
    }

    /// Whether a destination may only be changed in its file.
    pub fn managed_by_file(&self, tenant: TenantId, id: &DestinationId) -> bool {
        self.find(tenant, id).is_some_and(|entry| entry.row.managed_by == ManagedBy::File)
    }
}
