//! What is configured at run time: tenants, destinations, API keys.

use posthaste_core::{ApiKeyId, DestinationId, LaneId, StateName, TenantId, Timestamp};

/// What a destination is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum DestinationKind {
    /// We push to it.
    Endpoint,
    /// Workers pull from it.
    Queue,
    /// Signed requests come in by it.
    Source,
}

impl DestinationKind {
    /// The word in SQL and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Endpoint => "endpoint",
            Self::Queue => "queue",
            Self::Source => "source",
        }
    }

    /// The kind that `word` names.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "endpoint" => Some(Self::Endpoint),
            "queue" => Some(Self::Queue),
            "source" => Some(Self::Source),
            _ => None,
        }
    }
}

/// Who may change a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum ManagedBy {
    /// A configuration file: read-only over the API.
    File,
    /// The API.
    Api,
}

impl ManagedBy {
    /// The word in SQL and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::File => "file",
            Self::Api => "api",
        }
    }
}

/// A destination or source, as stored. The store doesn't read `config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DestinationRow {
    /// Whose.
    pub tenant: TenantId,
    /// Its id.
    pub id: DestinationId,
    /// What it is.
    pub kind: DestinationKind,
    /// Its lane: kept for ever, also over deletion.
    pub lane: LaneId,
    /// The engine's JSON. Secrets in it are sealed.
    pub config: Box<str>,
    /// Who may change it.
    pub managed_by: ManagedBy,
    /// Whether it takes part.
    pub enabled: bool,
    /// Who answers for it.
    pub owner: Option<Box<str>>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was changed last.
    pub updated_at: Timestamp,
}

/// A destination to be made or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewDestination {
    /// Whose.
    pub tenant: TenantId,
    /// Its id.
    pub id: DestinationId,
    /// What it is.
    pub kind: DestinationKind,
    /// The engine's JSON.
    pub config: Box<str>,
    /// Who may change it.
    pub managed_by: ManagedBy,
    /// Whether it takes part.
    pub enabled: bool,
    /// Who answers for it.
    pub owner: Option<Box<str>>,
    /// Refuse if the id is taken, instead of changing what is there.
    pub must_be_new: bool,
}

/// An API key, as stored: never the key itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ApiKeyRow {
    /// Whose.
    pub tenant: TenantId,
    /// Its name for machines.
    pub id: ApiKeyId,
    /// Its name for people.
    pub name: Box<str>,
    /// SHA-256 of the key.
    pub secret_hash: [u8; 32],
    /// Space-separated scopes.
    pub scopes: Box<str>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When it was revoked.
    pub revoked_at: Option<Timestamp>,
}

/// A change of configuration. Durable on return.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Configure {
    /// Makes a tenant, or finds it by name. Numbers are given from 1, in order.
    Tenant {
        /// Its name.
        name: Box<str>,
    },
    /// Makes or changes a destination. Another kind than it had is refused with [`Configured::Taken`].
    ///
    /// A changed one keeps `created_at` and gets `updated_at`, also if nothing differs. A new one gets the lane that its
    /// id had before it was deleted, whatever its kind was then; else the tenant's next number, from 1.
    PutDestination(NewDestination),
    /// Deletes a destination. Its lane and jobs stay; what held the lane ends. One of another kind is
    /// [`Configured::Missing`].
    DeleteDestination {
        /// Whose.
        tenant: TenantId,
        /// Which.
        id: DestinationId,
        /// Which kind it must be.
        kind: DestinationKind,
    },
    /// Stores an API key; its `created_at` and `revoked_at` are the store's to set.
    ///
    /// If the tenant has a key of this id already, or else of this hash, that key is the answer, unchanged. A hash that
    /// another tenant's key has is answered [`Configured::Missing`] and nothing is stored.
    PutApiKey(ApiKeyRow),
    /// Revokes an API key. One that is revoked already keeps its time.
    RevokeApiKey {
        /// Whose.
        tenant: TenantId,
        /// Which.
        id: ApiKeyId,
    },
}

/// What became of a [`Configure`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Configured {
    /// The tenant.
    Tenant(TenantId),
    /// The destination as it is now.
    Destination(Box<DestinationRow>),
    /// The key as it is now.
    ApiKey(Box<ApiKeyRow>),
    /// Done.
    Deleted,
    /// There is none.
    Missing,
    /// The id is taken, by this kind.
    Taken(DestinationKind),
}

/// How many jobs a tenant has in each state. Kept as counters, never counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StateCount {
    /// Whose.
    pub tenant: TenantId,
    /// In which state.
    pub state: StateName,
    /// How many.
    pub jobs: u64,
}
