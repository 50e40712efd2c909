//! Messages as they are accepted and read back.

use bytes::Bytes;
use posthaste_core::{
    Cause, DestinationId, DurationMs, JobId, Kind, LaneId, MessageId, MessageKey, StateName, TenantId,
    Timestamp,
};

/// What a name of a message is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum KeyKind {
    /// The business key.
    Key,
    /// The provider's own event id.
    Provider,
    /// The provider's delivery id.
    Delivery,
    /// A key by another derivation rule.
    Alias,
}

impl KeyKind {
    /// The word in SQL and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Key => "key",
            Self::Provider => "provider",
            Self::Delivery => "delivery",
            Self::Alias => "alias",
        }
    }
}

/// The fields of a fingerprint, in the order in which they are compared and stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum FingerprintField {
    /// The event type.
    Type,
    /// The content type.
    ContentType,
    /// The payload's bytes, or its named fields.
    Payload,
    /// The destinations.
    To,
    /// The delay or due time.
    Delay,
}

impl FingerprintField {
    /// Every field, in order.
    pub const ALL: [Self; 5] = [Self::Type, Self::ContentType, Self::Payload, Self::To, Self::Delay];

    /// The word on the wire.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Type => "type",
            Self::ContentType => "content_type",
            Self::Payload => "payload",
            Self::To => "to",
            Self::Delay => "delay",
        }
    }
}

/// What a key was used for: one hash a field, 16 bytes each, in the order of [`FingerprintField::ALL`].
///
/// All zeros means "not compared": intake leaves out what its source's configuration decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fingerprint(pub [[u8; 16]; 5]);

impl Fingerprint {
    /// A field that is not compared.
    pub const NOT_COMPARED: [u8; 16] = [0; 16];

    /// The first field that both compare and that differs.
    pub fn difference(&self, other: &Self) -> Option<FingerprintField> {
        let pairs = self.0.iter().zip(&other.0);
        FingerprintField::ALL.into_iter().zip(pairs).find_map(|(field, (one, two))| {
            let compared = *one != Self::NOT_COMPARED && *two != Self::NOT_COMPARED;
            (compared && one != two).then_some(field)
        })
    }
}

/// When a job may start first.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Due {
    /// So long after it was accepted, by the store's clock.
    In(DurationMs),
    /// At this time, or at once if it is past.
    At(Timestamp),
    /// Not at all: the message is quarantined. Its one job, which is owed to the source that it came in by, is a dead
    /// letter from the start, for this reason. At most [`posthaste_core::limits::FANOUT_INLINE_MAX`] targets.
    Never(Cause),
}

/// One destination of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Target {
    /// Its lane.
    pub lane: LaneId,
    /// Its id.
    pub destination: DestinationId,
    /// Pushed or pulled.
    pub kind: Kind,
    /// What `webhook-id` will be, if not the job's id.
    pub wire_id: Option<Box<str>>,
    /// Who answers for it.
    pub owner: Option<Box<str>>,
}

/// A message to be accepted.
#[derive(Clone, Debug)]
pub struct NewMessage {
    /// Whose.
    pub tenant: TenantId,
    /// Its name if it is new. Sent again after [`crate::StoreError::InDoubt`], it makes the answer the same.
    pub id: MessageId,
    /// Its business key.
    pub key: MessageKey,
    /// Its other names; at most [`posthaste_core::limits::ALIASES_MAX`].
    pub aliases: Vec<(KeyKind, MessageKey)>,
    /// Its event type.
    pub event_type: Option<Box<str>>,
    /// The source it came in by, if it did.
    pub source: Option<DestinationId>,
    /// What the key stands for.
    pub fingerprint: Fingerprint,
    /// Names the request that brought it, through all logs.
    pub correlation_id: Box<str>,
    /// W3C trace context.
    pub traceparent: Option<Box<str>>,
    /// The payload's media type.
    pub content_type: Option<Box<str>>,
    /// Kept request headers, a JSON object.
    pub headers: Option<Box<str>>,
    /// The user's metadata, a JSON object.
    pub metadata: Option<Box<str>>,
    /// Where the payload is, if it is not here.
    pub payload_ref: Option<Box<str>>,
    /// The exact bytes.
    pub payload: Bytes,
    /// When its jobs may start.
    pub due: Due,
    /// Its destinations. More than [`posthaste_core::limits::FANOUT_INLINE_MAX`] are made by a cursor.
    pub targets: Vec<Target>,
}

/// What became of a [`NewMessage`]. Each answer rests on committed rows.
#[derive(Clone, Debug)]
pub enum Acceptance {
    /// It is new.
    New(AcceptedMessage),
    /// It is known: the first acceptance.
    Duplicate(AcceptedMessage),
    /// The key is known for something else; nothing was stored.
    KeyReused {
        /// What differs.
        field: FingerprintField,
        /// The message that has the key.
        message: MessageId,
    },
}

/// An accepted message, as far as its acceptance is concerned.
#[derive(Clone, Debug)]
pub struct AcceptedMessage {
    /// Its name.
    pub id: MessageId,
    /// Its business key: on a duplicate by another name, the first one's.
    pub key: MessageKey,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// How many jobs it has or will have: one for each distinct lane.
    pub jobs_total: usize,
    /// Whether jobs are still being made.
    pub fanout_running: bool,
    /// The first jobs, by lane, at most [`posthaste_core::limits::JOBS_LISTED_MAX`].
    pub jobs: Vec<JobBrief>,
}

/// A job in one line.
#[derive(Clone, Debug)]
pub struct JobBrief {
    /// Its name.
    pub id: JobId,
    /// Its destination.
    pub destination: DestinationId,
    /// Its state.
    pub state: StateName,
    /// The time asked for.
    pub scheduled_at: Timestamp,
    /// When the next attempt may start.
    pub due_at: Option<Timestamp>,
}

/// A message as it is read back, without its payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MessageView {
    /// Its name.
    pub id: MessageId,
    /// Its business key.
    pub key: MessageKey,
    /// Its other names, in the order of their bytes.
    pub aliases: Vec<(KeyKind, MessageKey)>,
    /// Its event type.
    pub event_type: Option<Box<str>>,
    /// The source it came in by.
    pub source: Option<DestinationId>,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// How many jobs it has or will have.
    pub jobs_total: usize,
    /// Whether jobs are still being made.
    pub fanout_running: bool,
    /// Duplicate deliveries that came by any of its names: one for each [`Acceptance::Duplicate`].
    pub duplicates: u64,
    /// The request that brought it.
    pub correlation_id: Box<str>,
    /// W3C trace context.
    pub traceparent: Option<Box<str>>,
    /// The payload's media type.
    pub content_type: Option<Box<str>>,
    /// Kept request headers, a JSON object.
    pub headers: Option<Box<str>>,
    /// The user's metadata, a JSON object.
    pub metadata: Option<Box<str>>,
    /// Where the payload is, if it is not here.
    pub payload_ref: Option<Box<str>>,
    /// The payload's length in bytes.
    pub payload_bytes: usize,
}

/// What an attempt needs of its message.
#[derive(Clone, Debug)]
pub struct MessageBody {
    /// Its name.
    pub id: MessageId,
    /// Its business key.
    pub key: MessageKey,
    /// Its event type.
    pub event_type: Option<Box<str>>,
    /// The payload's media type.
    pub content_type: Option<Box<str>>,
    /// The user's metadata, a JSON object.
    pub metadata: Option<Box<str>>,
    /// W3C trace context.
    pub traceparent: Option<Box<str>>,
    /// The request that brought it.
    pub correlation_id: Box<str>,
    /// Kept request headers, a JSON object: what describes the bytes, such as `content-encoding`.
    pub headers: Option<Box<str>>,
    /// Where the payload is, if it is not here.
    pub payload_ref: Option<Box<str>>,
    /// The exact bytes.
    pub payload: Bytes,
}
