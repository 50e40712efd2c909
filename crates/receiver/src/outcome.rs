//! What verification answers.

/// Why a request was refused, in the words used by metrics, logs and the test vectors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reason {
    /// No signature fits any secret.
    SignatureMismatch,
    /// The timestamp lies further back than the tolerance.
    TimestampTooOld,
    /// The timestamp lies further ahead than the tolerance.
    TimestampTooNew,
    /// The timestamp is no plain decimal number, or out of range.
    MalformedTimestamp,
    /// The scheme's timestamp is not where it belongs.
    MissingTimestamp,
    /// A required header is absent or empty.
    MissingHeader,
    /// A header is not of the scheme's shape, is ambiguous, or holds too many signatures.
    MalformedHeader,
    /// There is no signature of a known version.
    UnsupportedVersion,
    /// A configured secret cannot be used.
    BadSecret,
    /// The body is empty where the provider never sends an empty one.
    MissingBody,
    /// The body is not of the shape that holds the signed fields.
    MalformedBody,
    /// The hash of the body is not the signed one.
    BodyHashMismatch,
    /// The certificate's address is not the provider's.
    BadCertUrl,
    /// The certificate is none, is not in force, or holds no key of the scheme's kind.
    BadCertificate,
    /// The address that confirms the subscription is not the provider's.
    BadSubscribeUrl,
    /// The topic is none of those that may send.
    TopicNotAllowed,
    /// The method is not one the provider uses.
    BadMethod,
}

impl Reason {
    /// The stable snake_case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::SignatureMismatch => "signature_mismatch",
            Self::TimestampTooOld => "timestamp_too_old",
            Self::TimestampTooNew => "timestamp_too_new",
            Self::MalformedTimestamp => "malformed_timestamp",
            Self::MissingTimestamp => "missing_timestamp",
            Self::MissingHeader => "missing_header",
            Self::MalformedHeader => "malformed_header",
            Self::UnsupportedVersion => "unsupported_version",
            Self::BadSecret => "bad_secret",
            Self::MissingBody => "missing_body",
            Self::MalformedBody => "malformed_body",
            Self::BodyHashMismatch => "body_hash_mismatch",
            Self::BadCertUrl => "bad_cert_url",
            Self::BadCertificate => "bad_certificate",
            Self::BadSubscribeUrl => "bad_subscribe_url",
            Self::TopicNotAllowed => "topic_not_allowed",
            Self::BadMethod => "bad_method",
        }
    }
}

impl std::fmt::Display for Reason {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(self.as_str())
    }
}

/// A refusal. Every one is the same 401 to the sender; the reason is for the operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("{reason}: {detail}")]
pub struct Rejection {
    /// The stable reason.
    pub reason: Reason,
    /// A fixed sentence for the operator; holds nothing of the request.
    pub detail: &'static str,
}

impl Rejection {
    pub(crate) const fn new(reason: Reason, detail: &'static str) -> Self {
        Self { reason, detail }
    }

    pub(crate) const fn mismatch() -> Self {
        Self::new(Reason::SignatureMismatch, "no signature fits a configured secret")
    }

    pub(crate) const fn too_many_signatures() -> Self {
        Self::new(Reason::MalformedHeader, "more signatures than are tried")
    }
}

/// A request whose signature fits, with what the scheme's headers tell about it.
///
/// Standard Webhooks and Svix sign the id. Elsewhere (GitHub, Shopify, Linear) id and event type come from headers that
/// are *not* signed: good for deduplication of honest senders, no proof against a replay.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Verified<'a> {
    /// The provider's id of this delivery, where the scheme has one.
    pub delivery_id: Option<&'a str>,
    /// The provider's event type, where a header tells it.
    pub event_type: Option<&'a str>,
    /// The signed time in milliseconds since 1970, where the scheme has one.
    pub signed_at_unix_ms: Option<i64>,
}
