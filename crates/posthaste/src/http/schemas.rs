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
    /// Requests in a time at most; as many as they come unless told.
    #[schema(examples("50/s", "600/m"))]
    rate: Option<String>,
    /// When requests stop for a while because the receiver is ill.
    circuit: Option<CircuitSchema>,
    /// The whole exchange; 15 s unless told.
    #[schema(examples("15s"))]
    timeout: Option<String>,
    /// The receiver guards our `idempotency-key`.
    #[schema(required = false)]
    idempotent: bool,
    /// How long a claim of the receiver's ledger holds, where it does not answer 409 with `Retry-After` meanwhile.
    #[schema(examples("30s"))]
    ledger_lease: Option<String>,
    /// What to do when an attempt may have had its effect: `retry` (default), `reconcile` or `dead_letter`.
    on_unknown: Option<String>,
    /// How to ask whether it happened, if `on_unknown` is `reconcile`.
    reconcile: Option<ReconcileSchema>,
    /// What is said otherwise than the classification: by status (`404`, `5xx`) or class (`timeout`), what follows: `retry`,
    /// `in_progress`, `permanent`, `permanent_destination` or `gone`; or an object with `follows` and `effect`.
    #[schema(required = false, value_type = Object)]
    classify: BTreeMap<String, serde_json::Value>,
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

/// When an endpoint is left alone.
#[derive(ToSchema)]
#[schema(as = Circuit)]
pub(crate) struct CircuitSchema {
    /// Failures in a row that open the circuit; 10 unless told.
    #[schema(minimum = 1)]
    failures: Option<u32>,
    /// How long it stays open the first time; doubles each time a probe fails. 30 s unless told.
    #[schema(examples("30s"))]
    open_for: Option<String>,
    /// How long it stays open at most before the next probe; 15 min unless told.
    #[schema(examples("15m"))]
    open_for_max: Option<String>,
    /// How long there may be failures without one success until the endpoint is disabled; 5 days unless told.
    #[schema(examples("5d"))]
    disable_after: Option<String>,
}

/// How a receiver is asked whether an effect happened. Without `pointer` and lists: 200 is present, 404 absent.
#[derive(ToSchema)]
#[schema(as = Reconcile)]
pub(crate) struct ReconcileSchema {
    /// Where: `{event_id}`, `{key}` and `{message_id}` stand for the job's, percent-encoded.
    #[schema(examples("https://example.com/status?key={event_id}"))]
    url: String,
    /// `GET` (default) or `POST`.
    method: Option<String>,
    /// After the last attempt's end, how long its request may still act: only then is "absent" believed. At least the
    /// endpoint's `timeout`.
    #[schema(examples("2m"))]
    settle: String,
    /// Where in a JSON answer the word stands that tells.
    #[schema(examples("/state"))]
    pointer: Option<String>,
    /// Statuses (numbers), or words at `pointer`, that mean: it happened.
    #[schema(required = false, value_type = Vec<Object>)]
    present: Vec<serde_json::Value>,
    /// Those that mean: it did not happen.
    #[schema(required = false, value_type = Vec<Object>)]
    absent: Vec<serde_json::Value>,
    /// Those that mean: it is happening now.
    #[schema(required = false, value_type = Vec<Object>)]
    in_progress: Vec<serde_json::Value>,
}

/// How a queue's workers are asked whether an effect happened: by consumes with `reconcile: true`.
#[derive(ToSchema)]
#[schema(as = QueueReconcile)]
pub(crate) struct QueueReconcileSchema {
    /// After the last attempt's end, how long it may still act: only then is "absent" believed.
    #[schema(examples("2m"))]
    settle: String,
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
    /// What to do when an attempt may have had its effect: `retry` (default), `reconcile` or `dead_letter`.
    on_unknown: Option<String>,
    /// How workers are asked whether it happened, if `on_unknown` is `reconcile`.
    reconcile: Option<QueueReconcileSchema>,
    /// What is said otherwise than the classification, by class (`timeout`): what follows, as for endpoints.
    #[schema(required = false, value_type = Object)]
    classify: BTreeMap<String, serde_json::Value>,
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
    /// The topics that may send, by their whole ARNs: required if `scheme` is `aws_sns`.
    #[schema(required = false, examples("arn:aws:sns:us-east-1:123456789012:orders"))]
    topic_arns: Vec<String>,
    /// The URL that the provider was given, without its query, if the scheme signs it; the server's own and the path unless
    /// told.
    #[schema(examples("https://hooks.example.com/in/twilio"))]
    public_url: Option<String>,
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
    /// What to do with deliveries while the source is paused: `refuse` (default) or `hold`.
    #[schema(examples("refuse", "hold"))]
    when_paused: Option<String>,
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
    /// Since when it is paused; `null` if it is not.
    #[schema(format = DateTime)]
    paused_at: Option<String>,
    /// Why it is paused.
    paused_reason: Option<String>,
    /// Who paused it.
    paused_by: Option<String>,
    /// Since when it is disabled by a rule or by its receiver; `null` if it is not.
    #[schema(format = DateTime)]
    disabled_at: Option<String>,
    /// Why it is disabled.
    disabled_reason: Option<String>,
    /// Who disabled it.
    disabled_by: Option<String>,
    /// `closed`: requests go to it. `open`: none does, until `circuit_until`. `half_open`: one probes.
    #[schema(examples("closed", "open", "half_open"))]
    circuit: String,
    /// When the next probe may go.
    #[schema(format = DateTime)]
    circuit_until: Option<String>,
    /// A secret that was made for it: only in the answer that makes it.
    secret: Option<String>,
}
