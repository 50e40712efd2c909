//! Intake: a signed request is verified, claimed durably, and only then acknowledged. Rows A1, A4, A6 to A9.

use bytes::Bytes;
use posthaste_core::{DestinationId, MessageId, MessageKey, Path, TenantId, limits};
use posthaste_receiver::{Reason, Request, Scheme, Verifier};
use posthaste_store::{
    Acceptance, AcceptedMessage, CustodyEntry, Due, Fingerprint, FingerprintField, KeyKind, NewMessage, Stage,
};
use serde_json::Value;

use crate::{
    Engine, EngineError,
    config::{AnswerStyle, Derivation, KeyRule, Source, To, namespaced as namespaced_key},
    decoding::{DecodeError, decode, is_identity},
    directory::Destination,
    publish::{PublishTo, check_type, hash, is_header_text, resolve, traceparent},
};

/// A request to a source, exactly as received.
#[derive(Clone, Debug)]
pub struct IntakeRequest<'a> {
    /// The method.
    pub method: &'a str,
    /// The URL as the sender sees it.
    pub url: &'a str,
    /// The headers.
    pub headers: &'a [(&'a str, &'a [u8])],
    /// The exact bytes.
    pub body: Bytes,
    /// Names this request through all logs.
    pub correlation_id: &'a str,
}

/// An accepted delivery.
#[derive(Clone, Debug)]
pub struct Received {
    /// `first_run` or `duplicate_done`.
    pub path: Path,
    /// The message's key.
    pub key: MessageKey,
    /// The message.
    pub message: MessageId,
    /// How the source wants it answered.
    pub answer: AnswerStyle,
}

/// Why a delivery was not accepted.
#[derive(Debug, thiserror::Error)]
pub enum IntakeError {
    /// There is no such source, or it is disabled.
    #[error("there is no source {0:?}")]
    UnknownSource(String),
    /// The signature does not fit. The reason is for the operator alone.
    #[error("the signature is not valid")]
    SignatureInvalid(Reason),
    /// The source is paused; the delivery is to come again.
    #[error("the source is paused; send it again later")]
    Paused,
    /// No key can be derived.
    #[error("no key can be derived from the request by the source's rules")]
    MissingKey,
    /// The body is compressed in a way that can't be unpacked here, and it must be.
    #[error("the body's content-encoding is not supported; send gzip, deflate or none")]
    UnsupportedEncoding,
    /// The body is not what its `content-encoding` says.
    #[error("the body is not what its content-encoding says")]
    MalformedEncoding,
    /// Unpacked, the body is too large.
    #[error("unpacked, the body is larger than the {max} bytes that are taken")]
    TooLargeDecoded {
        /// What is taken.
        max: usize,
    },
    /// Anything else.
    #[error(transparent)]
    Engine(#[from] EngineError),
}

impl From<posthaste_store::StoreError> for IntakeError {
    fn from(error: posthaste_store::StoreError) -> Self {
        Self::Engine(error.into())
    }
}

impl Engine {
    /// How many bytes a source takes, for the HTTP layer; `None` if there is no such source.
    pub fn intake_body_limit(&self, tenant: TenantId, source: &str) -> Option<usize> {
        let id = DestinationId::new(source).ok()?;
        let directory = self.directory.load();
        directory.source(tenant, &id).filter(|source| source.enabled).map(|source| source.body_limit)
    }

    /// Verifies, claims and stores one delivery.
    ///
    /// Nothing is parsed before the signature fits. Durability: on `Ok` the delivery is stored, or was before.
    /// Errors: nothing was stored, except that [`EngineError::DeadlinePassed`] and `InDoubt` may have; the
    /// provider's next delivery then finds it.
    pub async fn intake(
        &self,
        tenant: TenantId,
        source: &str,
        request: IntakeRequest<'_>,
    ) -> Result<Received, IntakeError> {
        self.refuse_if_draining()?;
        let unknown = || IntakeError::UnknownSource(source.to_owned());
        let id = DestinationId::new(source).map_err(|_| unknown())?;
        let directory = self.directory.load();
        let source = match directory.find(tenant, &id).map(|entry| &entry.destination) {
            Some(Destination::Source(source)) if source.enabled => source,
            Some(Destination::Broken { problem, .. }) => {
                let (id, problem) = (id.to_string(), problem.to_string());
                return Err(EngineError::NotAvailable { what: "source", id, problem }.into());
            }
            Some(Destination::Source(_) | Destination::Endpoint(_) | Destination::Queue(_)) | None => {
                return Err(unknown());
            }
        };
        let decoded = if source.signs_decoded { unpacked(source, &request)? } else { None };
        let facts = self.verified(source, &request, decoded.as_deref())?;
        // Said to whom the signature shows to be the provider.
        self.refuse_if_paused(&directory, source)?;
        // What was signed as sent is unpacked only once it is known to be genuine, and only to be looked into.
        let decoded = match decoded {
            None if looks_into_body(source) => unpacked(source, &request)?,
            decoded => decoded,
        };
        let message = self.delivery(&directory, source, &request, (&facts, decoded.as_deref()))?;
        let key = message.key.clone();
        // Where a provider may send an event again with another body, it is known, and said so.
        let again = (!payload_is_stable(source)).then(|| message.clone());
        let mut acceptance = self.accept(vec![message]).await?.pop();
        if let Some(Acceptance::KeyReused { field, message: known }) = acceptance {
            self.report_reuse(source, &key, field, request.correlation_id);
            let Some(message) = again else {
                return Err(EngineError::KeyReused { field, message: known }.into());
            };
            let fingerprint = Fingerprint([Fingerprint::NOT_COMPARED; 5]);
            acceptance = self.accept(vec![NewMessage { fingerprint, ..message }]).await?.pop();
            self.note_other_body(source.tenant, known, request.correlation_id).await;
        }
        let (path, message) = self.claimed(source, acceptance)?;
        tracing::info!(
            event = if path == Path::FirstRun { "claim" } else { "duplicate" },
            event_key = key.as_str(),
            path = path.as_str(),
            source = source.id.as_str(),
            message_id = %message.id,
            correlation_id = request.correlation_id,
        );
        Ok(Received { path, key: message.key, message: message.id, answer: source.answer })
    }

    /// A source that is paused sends deliveries back, unless it keeps them.
    fn refuse_if_paused(&self, directory: &crate::Directory, source: &Source) -> Result<(), IntakeError> {
        let paused = || {
            let entry = directory.find(source.tenant, &source.id)?;
            self.held(entry).paused
        };
        match paused().filter(|_| !source.holds_when_paused) {
            Some(hold) => {
                tracing::info!(event = "source_paused", source = source.id.as_str(), reason = %hold.reason);
                Err(IntakeError::Paused)
            }
            None => Ok(()),
        }
    }

    /// An authentic delivery that is refused must not vanish without a word.
    fn report_missing_key(&self, source: &Source, request: &IntakeRequest<'_>) {
        self.metrics.duplicate("missing_key");
        tracing::warn!(
            event = "missing_key",
            source = source.id.as_str(),
            owner = source.owner.as_deref(),
            correlation_id = request.correlation_id,
            body_bytes = request.body.len(),
            "an authentic delivery was refused: none of the source's rules finds a key in it"
        );
    }

    /// A key that comes with another payload is never a duplicate in silence. Row A10.
    fn report_reuse(&self, source: &Source, key: &MessageKey, field: FingerprintField, correlation_id: &str) {
        self.metrics.duplicate("key_reused");
        tracing::warn!(
            event = "key_reused",
            event_key = key.as_str(),
            source = source.id.as_str(),
            owner = source.owner.as_deref(),
            field = field.as_str(),
            correlation_id,
            "a key came with another payload"
        );
    }

    async fn note_other_body(&self, tenant: TenantId, message: MessageId, correlation_id: &str) {
        let detail = serde_json::json!({
            "code": "key_reused",
            "message": "this delivery's body differs from the one that was accepted",
            "correlation_id": correlation_id,
        });
        let entry = CustodyEntry {
            tenant,
            message,
            job: None,
            at: self.clock.now(),
            stage: Stage::Duplicate,
            attempt: None,
            actor: None,
            detail: Some(detail.to_string().into()),
        };
        if let Err(error) = self.store.note(vec![entry]).await {
            tracing::warn!(event = "note_failed", error = %error);
        }
    }

    /// The named path of a delivery, counted.
    fn claimed(
        &self,
        source: &Source,
        acceptance: Option<Acceptance>,
    ) -> Result<(Path, AcceptedMessage), IntakeError> {
        let (path, message) = match acceptance {
            Some(Acceptance::New(message)) => (Path::FirstRun, message),
            Some(Acceptance::Duplicate(message)) => {
                self.metrics.duplicate("intake");
                (Path::DuplicateDone, message)
            }
            Some(Acceptance::KeyReused { field, message }) => {
                return Err(EngineError::KeyReused { field, message }.into());
            }
            None => {
                let missing = posthaste_store::StoreError::unavailable("an answer is missing");
                return Err(missing.into());
            }
        };
        self.metrics.claim(source.id.as_str(), path);
        Ok((path, message))
    }

    fn verified(
        &self,
        source: &Source,
        request: &IntakeRequest<'_>,
        decoded: Option<&[u8]>,
    ) -> Result<SchemeFacts, IntakeError> {
        let Some(verifier) = &source.verifier else {
            return Ok(SchemeFacts::default());
        };
        let signed = Request {
            method: request.method,
            url: request.url,
            headers: request.headers,
            body: decoded.unwrap_or(&request.body),
        };
        match verifier.verify(&signed, self.clock.now().0) {
            Ok(verified) => Ok(SchemeFacts {
                delivery_id: verified.delivery_id.map(str::to_owned),
                event_type: verified.event_type.map(str::to_owned),
            }),
            Err(rejection) => {
                self.metrics.signature_rejection(source.id.as_str(), rejection.reason.as_str());
                tracing::warn!(
                    event = "signature_rejected",
                    source = source.id.as_str(),
                    reason = rejection.reason.as_str(),
                    correlation_id = request.correlation_id,
                );
                Err(IntakeError::SignatureInvalid(rejection.reason))
            }
        }
    }

    /// The message that a verified request stands for.
    fn delivery(
        &self,
        directory: &crate::Directory,
        source: &Source,
        request: &IntakeRequest<'_>,
        (facts, decoded): (&SchemeFacts, Option<&[u8]>),
    ) -> Result<NewMessage, IntakeError> {
        let scheme = source.verifier.as_ref().map(Verifier::scheme);
        let body = looks_into_body(source)
            .then(|| serde_json::from_slice(decoded.unwrap_or(&request.body)).ok())
            .flatten();
        let names = names(source, scheme, request, facts, body.as_ref());
        let Some((key, aliases)) = names else {
            self.report_missing_key(source, request);
            return Err(IntakeError::MissingKey);
        };
        let event_type = event_type(source, scheme, request, facts, body.as_ref());
        let id = self.new_message_id();
        let to = match &source.to {
            To::Queue(queue) => PublishTo::Queue(queue.clone()),
            To::Endpoints(endpoints) => PublishTo::Endpoints(endpoints.clone()),
            To::Subscribers => PublishTo::Subscribers,
        };
        let targets = resolve(directory, source.tenant, &to, event_type.as_deref(), id)?;
        let fingerprint = Fingerprint(FingerprintField::ALL.map(|field| match field {
            FingerprintField::Payload if scheme != Some(Scheme::Stripe) => hash(&[&request.body]),
            // What the source's configuration decides, or a provider may send differently, is not compared.
            FingerprintField::Payload
            | FingerprintField::Type
            | FingerprintField::ContentType
            | FingerprintField::To
            | FingerprintField::Delay => Fingerprint::NOT_COMPARED,
        }));
        Ok(NewMessage {
            tenant: source.tenant,
            id,
            key,
            aliases,
            event_type,
            source: Some(source.id.clone()),
            fingerprint,
            correlation_id: request.correlation_id.into(),
            traceparent: header(request, "traceparent").and_then(traceparent).map(Into::into),
            content_type: header(request, "content-type")
                .filter(|text| text.len() <= limits::CONTENT_TYPE_BYTES_MAX && is_header_text(text))
                .map(Into::into),
            headers: kept_headers(request),
            metadata: None,
            payload_ref: None,
            payload: request.body.clone(),
            due: Due::In(source.delay),
            targets,
        })
    }
}

#[derive(Default)]
struct SchemeFacts {
    delivery_id: Option<String>,
    event_type: Option<String>,
}

/// Whether redeliveries of this source's events are known to carry the same bytes. Where the key is the delivery's
/// own id they are; an event's body may differ between its deliveries (Stripe counts `pending_webhooks`).
fn payload_is_stable(source: &Source) -> bool {
    let scheme = source.verifier.as_ref().map(Verifier::scheme);
    source.key == KeyRule::Scheme && !matches!(scheme, Some(Scheme::Stripe) | None)
}

/// Whether key or type are in the body.
fn looks_into_body(source: &Source) -> bool {
    let by_scheme = source.verifier.as_ref().map(Verifier::scheme) == Some(Scheme::Stripe);
    by_scheme
        || source.key.needs_body()
        || source.event_type.needs_body()
        || source.aliases.iter().any(KeyRule::needs_body)
}

/// The unpacked body, if it is compressed.
fn unpacked(source: &Source, request: &IntakeRequest<'_>) -> Result<Option<Vec<u8>>, IntakeError> {
    let Some(encoding) = header(request, "content-encoding").filter(|text| !is_identity(text)) else {
        return Ok(None);
    };
    match decode(encoding, &request.body, source.body_limit) {
        Ok(decoded) => Ok(Some(decoded)),
        Err(DecodeError::Unsupported) => Err(IntakeError::UnsupportedEncoding),
        Err(DecodeError::Malformed) => Err(IntakeError::MalformedEncoding),
        Err(DecodeError::TooLarge) => Err(IntakeError::TooLargeDecoded { max: source.body_limit }),
    }
}

/// Ids and types that a provider's documentation puts into the body: Stripe's event `id` and `type`.
fn from_body<'a>(scheme: Option<Scheme>, body: Option<&'a Value>, field: &str) -> Option<&'a str> {
    (scheme == Some(Scheme::Stripe)).then(|| body?.get(field)?.as_str()).flatten()
}

fn names(
    source: &Source,
    scheme: Option<Scheme>,
    request: &IntakeRequest<'_>,
    facts: &SchemeFacts,
    body: Option<&Value>,
) -> Option<(MessageKey, Vec<(KeyKind, MessageKey)>)> {
    let own = facts.delivery_id.as_deref();
    let by_scheme = own.or_else(|| from_body(scheme, body, "id"));
    let from = Derivation { scheme: by_scheme, headers: request.headers, body };
    let namespaced = |text: &str| namespaced_key(source.id.as_str(), text);
    let rules = std::iter::once(&source.key).chain(&source.aliases);
    // The first rule that finds something gives the key; what the others find are its other names.
    let key = rules.clone().find_map(|rule| namespaced(&rule.derive(from)?))?;
    let mut aliases: Vec<(KeyKind, MessageKey)> = Vec::new();
    let mut claim = |kind, name: Option<MessageKey>| {
        if let Some(name) = name
            && name != key
            && !aliases.iter().any(|(_, known)| *known == name)
            && aliases.len() < limits::ALIASES_MAX
        {
            aliases.push((kind, name));
        }
    };
    claim(KeyKind::Delivery, own.and_then(namespaced));
    claim(KeyKind::Provider, from_body(scheme, body, "id").and_then(namespaced));
    for rule in rules {
        claim(KeyKind::Alias, rule.derive(from).as_deref().and_then(namespaced));
    }
    Some((key, aliases))
}

fn event_type(
    source: &Source,
    scheme: Option<Scheme>,
    request: &IntakeRequest<'_>,
    facts: &SchemeFacts,
    body: Option<&Value>,
) -> Option<Box<str>> {
    let by_scheme = facts.event_type.as_deref().or_else(|| from_body(scheme, body, "type"));
    let from = Derivation { scheme: by_scheme, headers: request.headers, body };
    source.event_type.derive(from).filter(|text| check_type(Some(text)).is_ok()).map(Into::into)
}

/// Request headers that are kept with the message: what describes the body and the event, nothing secret.
fn kept_headers(request: &IntakeRequest<'_>) -> Option<Box<str>> {
    const KEPT: &[&str] = &["content-type", "content-encoding", "user-agent", "webhook-id", "svix-id"];
    const KEPT_PREFIXES: &[&str] = &["x-github-", "x-shopify-", "linear-", "ce-"];
    let kept = request.headers.iter().filter_map(|(name, value)| {
        let name = name.to_ascii_lowercase();
        let keep =
            KEPT.contains(&name.as_str()) || KEPT_PREFIXES.iter().any(|prefix| name.starts_with(prefix));
        let secret = name.contains("signature") || name.contains("hmac") || name.contains("token");
        let text = std::str::from_utf8(value).ok().filter(|text| text.len() <= 512)?;
        (keep && !secret).then(|| (name, Value::from(text)))
    });
    let object: serde_json::Map<String, Value> = kept.take(32).collect();
    (!object.is_empty()).then(|| Value::Object(object).to_string().into())
}

fn header<'a>(request: &IntakeRequest<'a>, name: &str) -> Option<&'a str> {
    let (_, value) = request.headers.iter().find(|(known, _)| known.eq_ignore_ascii_case(name))?;
    std::str::from_utf8(value).ok()
}
