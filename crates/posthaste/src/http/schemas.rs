//! How destinations and sources look on the wire, for the API's description.
//!
//! The engine reads them ([`posthaste_engine::config`]) and knows nothing of OpenAPI. A test holds these against what the
//! engine reads.
#![allow(dead_code)] // types that describe, and are never made

use std::collections::BTreeMap;

use utoipa::ToSchema;

/// An endpoint: a destination that we push to.
#[derive(ToSchema)]
#[schema(as = Endpoint)]
pub(crate) struct EndpointSchema {
    /// Its id.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples("fan_17"))]
    id: String,
    /// Where to send.
    #[schema(format = "uri", examples("https://example.com/hooks"))]
    url: String,
    /// Which event types it wants; none: only what is addressed to it by id. `shipment.*` means all below, `*` all.
    #[schema(required = false)]
    types: Vec<String>,
    /// Signing secrets: the first signs, all overlap. One is made if there is none, and shown once.
    #[schema(required = false, write_only)]
    secrets: Vec<String>,
    /// Requests at once; 10 unless told.
    #[schema(minimum = 1, maximum = 10_000)]
    concurrency: Option<u32>,
    /// The whole exchange; 15 s unless told.
    #[schema(examples("15s"))]
    timeout: Option<String>,
    /// The receiver guards our `idempotency-key`.
    #[schema(required = false)]
    idempotent: bool,
    /// How long a claim of the receiver's ledger holds, where it does not answer 409 with `Retry-After` meanwhile.
    #[schema(examples("30s"))]
    ledger_lease: Option<String>,
    /// What to do when an attempt may have had its effect: `retry` (default) or `dead_letter`.
    on_unknown: Option<String>,
    /// When to try again.
    retry: Option<RetrySchema>,
    /// The endpoint's own headers; they can't replace ours. Values are never shown again.
    #[schema(required = false)]
    headers: BTreeMap<String, String>,
    /// What `webhook-id` is: `job` (default) or `message`.
    webhook_id: Option<String>,
    /// A queue that gets a message of type `posthaste.job.dead_lettered` for each of its dead letters.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples("dlq"))]
    dead_letter_queue: Option<String>,
    /// Who answers for it.
    #[schema(max_length = 128, examples("team-payments"))]
    owner: Option<String>,
    /// Whether it takes part; true unless told.
    enabled: Option<bool>,
}

/// A retry policy. `delays` and `base`/`cap` exclude each other.
#[derive(ToSchema)]
#[schema(as = Retry)]
pub(crate) struct RetrySchema {
    /// A fixed list.
    #[schema(max_items = 64)]
    delays: Option<Vec<String>>,
    /// The first delay of an exponential backoff.
    base: Option<String>,
    /// The longest delay of an exponential backoff.
    cap: Option<String>,
    /// Failures after which the job is dead-lettered.
    #[schema(minimum = 1)]
    failures_max: Option<u32>,
    /// Lost leases after which the job is dead-lettered.
    #[schema(minimum = 1)]
    lost_leases_max: Option<u32>,
    /// How long a job may be tried.
    horizon: Option<String>,
    /// The share of a delay that is random.
    #[schema(minimum = 0, maximum = 1)]
    jitter: Option<f64>,
}

/// A queue: a destination that workers pull from.
#[derive(ToSchema)]
#[schema(as = Queue)]
pub(crate) struct QueueSchema {
    /// Its name.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples("carts"))]
    name: String,
    /// How long a lease holds unless the worker asks otherwise; 60 s unless told.
    lease: Option<String>,
    /// How long an attempt may take, extended or not; 15 min unless told.
    deadline: Option<String>,
    /// Whether the queue keeps the ledger for its jobs' event ids; true unless told.
    ledger: Option<bool>,
    /// The workers guard the event id themselves.
    #[schema(required = false)]
    idempotent: bool,
    /// What to do when an attempt may have had its effect: `retry` (default) or `dead_letter`.
    on_unknown: Option<String>,
    /// When to try again.
    retry: Option<RetrySchema>,
    /// A queue that gets a message of type `posthaste.job.dead_lettered` for each of its dead letters.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples("dlq"))]
    dead_letter_queue: Option<String>,
    /// Who answers for it.
    #[schema(max_length = 128)]
    owner: Option<String>,
    /// Whether it takes part; true unless told.
    enabled: Option<bool>,
}

/// A source: a named intake for signed requests.
#[derive(ToSchema)]
#[schema(as = Source)]
pub(crate) struct SourceSchema {
    /// Its name: `POST /in/{name}`.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples("stripe"))]
    name: String,
    /// Who signs, and how: `github`, `stripe`, `hmac`, …; `none` only with `allow_unsigned`.
    #[schema(examples("stripe"))]
    scheme: String,
    /// The secrets; any one that fits will do.
    #[schema(required = false, write_only)]
    secrets: Vec<String>,
    /// The recipe, if `scheme` is `hmac`.
    hmac: Option<HmacSchema>,
    /// How the key is derived: `json:POINTER`, `header:NAME`, `hash:json:/a,json:/b` or `scheme`; of a list the first is
    /// the key and the rest are aliases.
    #[schema(value_type = Value)]
    key: Option<serde_json::Value>,
    /// How the event type is derived: `json:POINTER`, `header:NAME` or `scheme`.
    r#type: Option<String>,
    /// Where the messages go; absent: to every endpoint subscribed to the type.
    to: Option<super::publish_request::ToRequest>,
    /// How long the jobs wait first.
    delay: Option<String>,
    /// Bytes of the largest body; 262,144 unless told.
    #[schema(minimum = 1)]
    body_limit: Option<u64>,
    /// How old a signed timestamp may be; the scheme's own unless told.
    tolerance: Option<String>,
    /// What the provider signs where it sends compressed bodies: `wire`, the bytes as sent (default), or `decoded`.
    #[schema(examples("wire", "decoded"))]
    signed: Option<String>,
    /// What a body must look like, as JSON Schema without references to anywhere else. What doesn't is quarantined.
    #[schema(value_type = Option<Value>)]
    schema: Option<serde_json::Value>,
    /// The event types that are expected, as an endpoint's `types`; none: any. What is of another type is quarantined.
    #[schema(required = false)]
    types: Vec<String>,
    /// The media types that are expected, without parameters; none: any. What is of another one is quarantined.
    #[schema(required = false, examples("application/json"))]
    content_types: Vec<String>,
    /// What to do with a known key that comes with another payload: `quarantine` (default), `reject` or `accept`.
    #[schema(examples("quarantine", "reject", "accept"))]
    on_key_reused: Option<String>,
    /// How the provider asks whether this source is meant: `slack`, `cloudevents` or `meta`.
    #[schema(examples("slack", "cloudevents", "meta"))]
    handshake: Option<String>,
    /// What `hub.verify_token` must be, if `handshake` is `meta`.
    #[schema(write_only)]
    verify_token: Option<String>,
    /// The origins that may send, if `handshake` is `cloudevents`; none: whichever asks.
    #[schema(required = false)]
    allowed_origins: Vec<String>,
    /// Requests a minute that such an origin may send.
    #[schema(minimum = 1)]
    allowed_rate: Option<u32>,
    /// Takes requests without a signature.
    #[schema(required = false)]
    allow_unsigned: bool,
    /// What to answer: `"json"` (default), `"empty"`, or a status from 200 to 299.
    #[schema(value_type = Option<Value>)]
    answer: Option<serde_json::Value>,
    /// A queue that gets a message of type `posthaste.job.dead_lettered` for each of its dead letters.
    #[schema(pattern = "^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$", examples("dlq"))]
    dead_letter_queue: Option<String>,
    /// Who answers for it.
    #[schema(max_length = 128)]
    owner: Option<String>,
    /// Whether it takes part; true unless told.
    enabled: Option<bool>,
}

/// The recipe of the generic `hmac` scheme.
#[derive(ToSchema)]
#[schema(as = Hmac)]
pub(crate) struct HmacSchema {
    /// The header that holds the signature.
    header: String,
    /// `sha1`, `sha256` (default), `sha384` or `sha512`.
    algorithm: Option<String>,
    /// `hex` (default) or `base64`.
    encoding: Option<String>,
    /// What stands before the signature, for example `sha256=`.
    prefix: Option<String>,
}

/// A destination or source as it is shown: its configuration without secrets, and these.
#[derive(ToSchema)]
#[schema(as = Destination)]
pub(crate) struct DestinationJson {
    /// Its id.
    id: String,
    /// `endpoint`, `queue` or `source`.
    kind: String,
    /// Whether it takes part.
    enabled: bool,
    /// Who answers for it.
    owner: Option<String>,
    /// `file`: read-only over the API. `api`.
    managed_by: String,
    /// When it was made.
    #[schema(format = DateTime)]
    created_at: String,
    /// When it was changed last.
    #[schema(format = DateTime)]
    updated_at: String,
    /// How many secrets it has.
    secrets_total: Option<u32>,
    /// What is wrong with its configuration.
    problem: Option<String>,
    /// A secret that was made for it: only in the answer that makes it.
    secret: Option<String>,
}
