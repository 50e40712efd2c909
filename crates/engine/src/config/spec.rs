//! Destinations and sources as they are written: in the configuration file, over the API, in the store.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::text::DurationText;

/// One or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several, the first being the chief one.
    Many(Vec<String>),
}

impl OneOrMany {
    /// All of them, in order.
    pub fn as_slice(&self) -> &[String] {
        match self {
            Self::One(one) => std::slice::from_ref(one),
            Self::Many(many) => many,
        }
    }
}

/// What to do when an attempt may have had its effect.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnUnknownSpec {
    /// Try again.
    Retry,
    /// Leave it to a person.
    DeadLetter,
    /// Look first.
    Reconcile,
}

/// What a destination says otherwise than the classification: one rule.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ClassifySpec {
    /// What follows: `retry`, `in_progress`, `permanent`, `permanent_destination` or `gone`.
    Word(String),
    /// What follows, and what is known about the effect.
    Table(ClassifyTable),
}

/// See [`ClassifySpec::Table`].
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ClassifyTable {
    /// What follows.
    pub follows: String,
    /// `none` or `possible`; as the table says unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub effect: Option<String>,
}

/// How a receiver is asked whether an effect happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ReconcileSpec {
    /// Where to ask: `{event_id}`, `{key}` and `{message_id}` stand for the job's, percent-encoded.
    pub url: String,
    /// `GET` (default) or `POST`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub method: Option<String>,
    /// After the last attempt's end, how long its request may still act: only then is "absent" believed.
    pub settle: DurationText,
    /// Where in a JSON answer the word stands that tells.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pointer: Option<String>,
    /// Statuses, or words at `pointer`, that mean: it happened.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub present: Vec<ToldBy>,
    /// Statuses, or words at `pointer`, that mean: it did not happen.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub absent: Vec<ToldBy>,
    /// Statuses, or words at `pointer`, that mean: it is happening now.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub in_progress: Vec<ToldBy>,
}

/// A status, or a word.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum ToldBy {
    /// The answer's status.
    Status(u16),
    /// The word at the pointer.
    Word(String),
}

/// How a queue's workers are asked whether an effect happened.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueReconcileSpec {
    /// After the last attempt's end, how long it may still act: only then is "absent" believed.
    pub settle: DurationText,
}

/// A retry policy. `delays` and `base`/`cap` exclude each other.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct RetrySpec {
    /// A fixed list.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delays: Option<Vec<DurationText>>,
    /// The first delay of an exponential backoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub base: Option<DurationText>,
    /// The longest delay of an exponential backoff.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub cap: Option<DurationText>,
    /// Failures after which the job is dead-lettered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures_max: Option<u32>,
    /// Lost leases after which the job is dead-lettered.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lost_leases_max: Option<u32>,
    /// How long a job may be tried.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub horizon: Option<DurationText>,
    /// The share of a delay that is random, 0 to 1.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<f64>,
}

/// When an endpoint is left alone.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CircuitSpec {
    /// Failures in a row that open the circuit; 10 unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failures: Option<u32>,
    /// How long it stays open the first time; doubles each time a probe fails. 30 s unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_for: Option<DurationText>,
    /// How long it stays open at most before the next probe; 15 min unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub open_for_max: Option<DurationText>,
    /// How long there may be failures without one success until the endpoint is disabled; 5 days unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disable_after: Option<DurationText>,
}

/// What a source does with deliveries while it is paused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WhenPausedSpec {
    /// Answers 503 with `Retry-After`: the provider keeps them.
    Refuse,
    /// Accepts and keeps them; their jobs are made when the source goes on.
    Hold,
}

/// A destination that we push to.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct EndpointSpec {
    /// Its id.
    pub id: String,
    /// Where to send.
    pub url: String,
    /// Which event types it wants; absent or empty: only what is addressed to it by id.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// Signing secrets: the first signs, all overlap. Absent over the API: one is made and shown once.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// Requests at once; 10 unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub concurrency: Option<u32>,
    /// Requests in a time at most: `50/s`, `600/m`, `1000/h`. As many as they come unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub rate: Option<String>,
    /// When requests stop for a while because the receiver is ill.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub circuit: Option<CircuitSpec>,
    /// The whole exchange; 15 s unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout: Option<DurationText>,
    /// The receiver guards our idempotency key.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    /// How long a claim of the receiver's ledger holds, where it does not answer 409 with `Retry-After` meanwhile: a
    /// first retry within it is warned about.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger_lease: Option<DurationText>,
    /// What to do when an attempt may have had its effect; `retry` unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_unknown: Option<OnUnknownSpec>,
    /// How to ask whether it happened, if `on_unknown` is `reconcile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconcile: Option<ReconcileSpec>,
    /// What is said otherwise than the classification: by status (`404`, `5xx`) or class (`timeout`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classify: BTreeMap<String, ClassifySpec>,
    /// When to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetrySpec>,
    /// The endpoint's own headers; they can't replace ours.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub headers: BTreeMap<String, String>,
    /// What `webhook-id` is: `job` (default) or `message`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub webhook_id: Option<WebhookIdSpec>,
    /// A queue that gets a message of type `posthaste.job.dead_lettered` for each of its dead letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter_queue: Option<String>,
    /// Who answers for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Whether it takes part; true unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// What `webhook-id` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WebhookIdSpec {
    /// The job's id: one for each subscriber.
    Job,
    /// The message's id: the same for all subscribers.
    Message,
}

/// A destination that workers pull from.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct QueueSpec {
    /// Its name.
    pub name: String,
    /// How long a lease holds unless the worker asks otherwise; 60 s unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lease: Option<DurationText>,
    /// How long an attempt may take, extended or not; 15 min unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub deadline: Option<DurationText>,
    /// Whether the queue keeps the ledger: a lease claims the event id's entry, and the end of the attempt ends the
    /// grant; `true` unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ledger: Option<bool>,
    /// The workers guard the event id themselves.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub idempotent: bool,
    /// What to do when an attempt may have had its effect; `retry` unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_unknown: Option<OnUnknownSpec>,
    /// How workers are asked whether it happened, if `on_unknown` is `reconcile`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reconcile: Option<QueueReconcileSpec>,
    /// What is said otherwise than the classification, by class (`timeout`).
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub classify: BTreeMap<String, ClassifySpec>,
    /// When to try again.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub retry: Option<RetrySpec>,
    /// A queue that gets a message of type `posthaste.job.dead_lettered` for each of its dead letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter_queue: Option<String>,
    /// Who answers for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Whether it takes part; true unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// Where a source's messages go.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ToSpec {
    /// To a queue.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue: Option<String>,
    /// To these endpoints.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub endpoints: Option<Vec<String>>,
}

/// The recipe of the generic `hmac` scheme.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct HmacSpec {
    /// The header that holds the signature.
    pub header: String,
    /// `sha1`, `sha256` (default), `sha384` or `sha512`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub algorithm: Option<String>,
    /// `hex` (default) or `base64`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub encoding: Option<String>,
    /// What stands before the signature, for example `sha256=`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub prefix: Option<String>,
}

/// What a source answers to an accepted delivery.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum AnswerSpec {
    /// `"json"` (default) or `"empty"`.
    Word(String),
    /// A fixed status from 200 to 299, with an empty body.
    Status(u16),
}

/// Which bytes a provider signs where it sends compressed bodies.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SignedSpec {
    /// The bytes as sent.
    Wire,
    /// The bytes before compression.
    Decoded,
}

/// What to do with a known key that comes with another payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum OnKeyReusedSpec {
    /// Keep it apart for a person to look at, and say so.
    Quarantine,
    /// Answer 422: nothing is stored.
    Reject,
    /// Take it for a duplicate of the first one, and note that it differed.
    Accept,
}

/// How a provider asks whether a source is meant.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum HandshakeSpec {
    /// A signed POST of `{"type":"url_verification","challenge":…}`.
    Slack,
    /// OPTIONS with `WebHook-Request-Origin`.
    Cloudevents,
    /// GET with `hub.mode=subscribe`, `hub.verify_token` and `hub.challenge`.
    Meta,
}

/// A named intake for signed requests.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SourceSpec {
    /// Its name: `POST /in/{name}`.
    pub name: String,
    /// Who signs, and how: `github`, `stripe`, `hmac`, …; `none` only with `allow_unsigned = true`.
    pub scheme: String,
    /// The secrets; any one that fits will do.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub secrets: Vec<String>,
    /// The recipe, if `scheme = "hmac"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub hmac: Option<HmacSpec>,
    /// The topics that may send, by their whole ARNs: required if `scheme = "aws_sns"`.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub topic_arns: Vec<String>,
    /// The URL that the provider was given, without its query, if the scheme signs it; the server's `public_url` and the
    /// path unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub public_url: Option<String>,
    /// How the key is derived: `json:POINTER`, `header:NAME`, `hash:json:/a,json:/b` or `scheme`; of a list the
    /// first is the key and the rest are aliases. `scheme` unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub key: Option<OneOrMany>,
    /// How the event type is derived: `json:POINTER`, `header:NAME` or `scheme`. `scheme` unless told.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// Where the messages go; absent: to every endpoint subscribed to the type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<ToSpec>,
    /// How long the jobs wait first.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub delay: Option<DurationText>,
    /// Bytes of the largest body; 262,144 unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub body_limit: Option<usize>,
    /// How old a signed timestamp may be, in seconds; the scheme's own unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tolerance: Option<DurationText>,
    /// What the provider signs where it sends compressed bodies: `wire`, the bytes as sent (default), or `decoded`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub signed: Option<SignedSpec>,
    /// What a body must look like, as JSON Schema: the schema itself, or in a file `"file:PATH"`. What doesn't is
    /// quarantined.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub schema: Option<serde_json::Value>,
    /// The event types that are expected, as an endpoint's `types`; absent: any, or none. What is of another type is
    /// quarantined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub types: Vec<String>,
    /// The media types that are expected, without parameters; absent: any. What is of another one is quarantined.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub content_types: Vec<String>,
    /// What to do with a known key that comes with another payload; `quarantine` unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub on_key_reused: Option<OnKeyReusedSpec>,
    /// The handshake by which the provider asks whether this source is meant: `slack`, `cloudevents` or `meta`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub handshake: Option<HandshakeSpec>,
    /// What `hub.verify_token` must be, if `handshake = "meta"`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub verify_token: Option<String>,
    /// The origins that may send, if `handshake = "cloudevents"`; absent: whichever asks.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub allowed_origins: Vec<String>,
    /// Requests a minute that such an origin may send; without one it is told that there is no limit.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub allowed_rate: Option<u32>,
    /// Takes requests without a signature.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub allow_unsigned: bool,
    /// What to answer.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub answer: Option<AnswerSpec>,
    /// What to do with deliveries while the source is paused: `refuse` (default) or `hold`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub when_paused: Option<WhenPausedSpec>,
    /// A queue that gets a message of type `posthaste.job.dead_lettered` for each of its dead letters.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub dead_letter_queue: Option<String>,
    /// Who answers for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Whether it takes part; true unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}
