//! Destinations and sources as understood: checked, resolved, ready for the hot path.

use std::{sync::Arc, time::Duration};

use posthaste_core::{DestinationId, DurationMs, LaneId, Policy, TenantId};
use posthaste_receiver::{Scheme, Signer, SnsVerifier, Verifier};

use super::{KeyRule, LookUpRecipe, Schema, TypeRule};

/// An endpoint.
#[derive(Debug)]
pub struct Endpoint {
    /// Whose.
    pub tenant: TenantId,
    /// Its lane.
    pub lane: LaneId,
    /// Its id.
    pub id: DestinationId,
    /// Where to send.
    pub url: String,
    /// Which event types it wants.
    pub types: Vec<String>,
    /// Signs; `None` if it has no secret.
    pub signer: Option<Signer>,
    /// Requests at once.
    pub concurrency: usize,
    /// The whole exchange.
    pub timeout: Duration,
    /// When to try again.
    pub policy: Arc<Policy>,
    /// How it is asked whether an effect happened.
    pub look_up: Option<LookUpRecipe>,
    /// Its own headers, names in lower case.
    pub headers: Vec<(String, String)>,
    /// What `webhook-id` is.
    pub webhook_id: WebhookId,
    /// The queue that hears of its dead letters.
    pub dead_letter_queue: Option<DestinationId>,
    /// Who answers for it.
    pub owner: Option<Box<str>>,
    /// Whether it takes part.
    pub enabled: bool,
}

/// What `webhook-id` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookId {
    /// The job's id.
    Job,
    /// The message's id.
    Message,
}

/// A queue.
#[derive(Debug)]
pub struct Queue {
    /// Whose.
    pub tenant: TenantId,
    /// Its lane.
    pub lane: LaneId,
    /// Its name.
    pub id: DestinationId,
    /// Whether it keeps the ledger for its jobs' event ids.
    pub ledger: bool,
    /// How long a lease holds unless asked otherwise.
    pub lease: DurationMs,
    /// How long an attempt may take.
    pub deadline: DurationMs,
    /// When to try again.
    pub policy: Arc<Policy>,
    /// Its workers are asked whether an effect happened; after an attempt's end it may still act for so long.
    pub look_up_settle: Option<DurationMs>,
    /// The queue that hears of its dead letters.
    pub dead_letter_queue: Option<DestinationId>,
    /// Who answers for it.
    pub owner: Option<Box<str>>,
    /// Whether it takes part.
    pub enabled: bool,
}

/// Where a source's messages go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum To {
    /// To a queue.
    Queue(DestinationId),
    /// To these endpoints.
    Endpoints(Vec<DestinationId>),
    /// To every endpoint subscribed to the type.
    Subscribers,
}

/// A source.
#[derive(Debug)]
pub struct Source {
    /// Whose.
    pub tenant: TenantId,
    /// Its name.
    pub id: DestinationId,
    /// How its requests are known to be genuine.
    pub proof: Proof,
    /// The URL that the provider knows, without its query; `None`: as the request says.
    pub public_url: Option<Box<str>>,
    /// Whether the provider signs what it compresses, instead of what it sends.
    pub signs_decoded: bool,
    /// How the key is derived.
    pub key: KeyRule,
    /// Other names that are claimed together with it.
    pub aliases: Vec<KeyRule>,
    /// How the type is derived.
    pub event_type: TypeRule,
    /// Where the messages go.
    pub to: To,
    /// How long the jobs wait first.
    pub delay: DurationMs,
    /// What a body must look like.
    pub schema: Option<Schema>,
    /// The event types that are expected; empty: any, or none.
    pub types: Vec<String>,
    /// The media types that are expected, in lower case; empty: any.
    pub content_types: Vec<String>,
    /// What to do with a known key that comes with another payload.
    pub on_key_reused: OnKeyReused,
    /// How the provider asks whether this source is meant.
    pub handshake: Option<Handshake>,
    /// Bytes of the largest body.
    pub body_limit: usize,
    /// What to answer.
    pub answer: AnswerStyle,
    /// Whether deliveries are accepted and kept while it is paused, instead of sent back.
    pub holds_when_paused: bool,
    /// The queue that hears of its dead letters.
    pub dead_letter_queue: Option<DestinationId>,
    /// Who answers for it.
    pub owner: Option<Box<str>>,
    /// Whether it takes part.
    pub enabled: bool,
}

impl Source {
    /// The scheme of its signatures, if they are signed.
    pub fn scheme(&self) -> Option<Scheme> {
        match &self.proof {
            Proof::Unsigned => None,
            Proof::Secrets(verifier) => Some(verifier.scheme()),
            Proof::Sns(_) => Some(Scheme::AwsSns),
        }
    }
}

/// How a source's requests are known to be genuine. Row A1.
#[derive(Debug)]
pub enum Proof {
    /// Not at all: the configuration allows it in so many words.
    Unsigned,
    /// By a signature that fits a secret.
    Secrets(Verifier),
    /// By a signature of SNS, whose certificate is fetched.
    Sns(SnsVerifier),
}

/// What to do with a known key that comes with another payload. Row A10.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnKeyReused {
    /// Keep it apart, and say so.
    Quarantine,
    /// Refuse it.
    Reject,
    /// Take it for a duplicate.
    Accept,
}

/// How a provider asks whether a source is meant. Row A11.
#[derive(PartialEq, Eq)]
pub enum Handshake {
    /// Slack's `url_verification`, signed as everything else.
    Slack,
    /// CloudEvents' protection against abuse.
    CloudEvents {
        /// The origins that may send; empty: whichever asks.
        origins: Vec<String>,
        /// Requests a minute; `None`: no limit.
        rate: Option<u32>,
    },
    /// Meta's challenge.
    Meta {
        /// What `hub.verify_token` must be.
        verify_token: String,
    },
}

impl std::fmt::Debug for Handshake {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::Slack => "Slack",
            Self::CloudEvents { .. } => "CloudEvents",
            Self::Meta { .. } => "Meta",
        })
    }
}

/// What a source answers to an accepted delivery.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnswerStyle {
    /// The path, key and message id as JSON.
    Json,
    /// The usual status without a body.
    Empty,
    /// This status without a body.
    Status(u16),
}
