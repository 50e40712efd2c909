//! Intake: a signed request is verified, claimed durably, and only then acknowledged. Rows A1, A2, A4, A6, A9, A10.

use bytes::Bytes;
use posthaste_core::{Cause, DestinationId, MessageId, MessageKey, Path, TenantId, limits};
use posthaste_receiver::{Reason, Scheme};
use posthaste_store::{
    Acceptance, AcceptedMessage, CustodyEntry, Due, Fingerprint, FingerprintField, NewMessage, Stage,
};
use serde_json::Value;

use crate::{
    Directory, Engine, EngineError,
    config::{AnswerStyle, OnKeyReused, Source, To, type_fits},
    directory::Destination,
    publish::{PublishTo, hash, is_header_text, resolve, traceparent},
    quarantine::Unfit,
    reading::{Genuine, event_type, header, kept_headers, looks_into_body, names, unpacked},
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
    /// Why it was quarantined, if it was: it is stored, and not executed.
    pub quarantined: Option<Cause>,
}

/// What a verified request came to.
#[derive(Clone, Debug)]
pub enum Taken {
    /// A delivery, accepted.
    Received(Received),
    /// The provider asked whether this source is meant; this text is the answer. Nothing is stored.
    Challenge(Box<str>),
    /// The provider spoke of its subscription itself, and needs no text. Nothing is stored.
    Noted,
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
    /// The certificate that it is signed with can't be fetched; the delivery is to come again.
    #[error("the signature can't be checked at the moment; send it again later")]
    CertificateUnavailable,
    /// The source is paused; the delivery is to come again.
    #[error("the source is paused; send it again later")]
    Paused,
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
    ) -> Result<Taken, IntakeError> {
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
        let verified = self.verified(source, &request, decoded.as_deref()).await?;
        // Said to whom the signature shows to be the provider.
        self.refuse_if_paused(&directory, source)?;
        if let Some(subscription) = verified.subscription {
            return self.note_subscription(source, subscription).map(|()| Taken::Noted);
        }
        let genuine = Genuine { request: &request, facts: &verified.facts, decoded: decoded.as_deref() };
        if let Some(challenge) = crate::handshake::slack(source, genuine) {
            self.metrics.handshake(source.id.as_str(), "answered");
            tracing::info!(
                event = "handshake",
                source = source.id.as_str(),
                correlation_id = request.correlation_id
            );
            return Ok(Taken::Challenge(challenge));
        }
        match self.pipeline(&directory, source, genuine).await? {
            Ok((path, message)) => {
                self.metrics.claim(source.id.as_str(), path);
                tracing::info!(
                    event = if path == Path::FirstRun { "claim" } else { "duplicate" },
                    event_key = message.key.as_str(),
                    path = path.as_str(),
                    source = source.id.as_str(),
                    message_id = %message.id,
                    correlation_id = request.correlation_id,
                );
                let (key, message, answer) = (message.key, message.id, source.answer);
                Ok(Taken::Received(Received { path, key, message, answer, quarantined: None }))
            }
            Err(unfit) => self.quarantine(&directory, source, genuine, unfit).await.map(Taken::Received),
        }
    }

    /// A source that is paused sends deliveries back, unless it keeps them.
    fn refuse_if_paused(&self, directory: &Directory, source: &Source) -> Result<(), IntakeError> {
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

    /// Holds a request that is known to be genuine against the source's configuration, and accepts what it stands for.
    ///
    /// The inner error is what doesn't fit: nothing was stored. Run again it comes to the same, or to a duplicate.
    pub(crate) async fn pipeline(
        &self,
        directory: &Directory,
        source: &Source,
        genuine: Genuine<'_>,
    ) -> Result<Result<(Path, AcceptedMessage), Unfit>, IntakeError> {
        let unpacked_now = match genuine.decoded {
            // What was signed as sent is unpacked only once it is known to be genuine, and only to be looked into.
            None if looks_into_body(source) => match unpacked(source, genuine.request) {
                Ok(decoded) => decoded,
                Err(error @ (IntakeError::UnsupportedEncoding | IntakeError::MalformedEncoding)) => {
                    return Ok(Err(Unfit::new(Cause::InvalidPayload, error.to_string())));
                }
                Err(error) => return Err(error),
            },
            Some(_) | None => None,
        };
        let genuine = Genuine { decoded: genuine.decoded.or(unpacked_now.as_deref()), ..genuine };
        let message = match self.delivery(directory, source, genuine)? {
            Ok(message) => message,
            Err(unfit) => return Ok(Err(unfit)),
        };
        let again = (source.on_key_reused == OnKeyReused::Accept).then(|| message.clone());
        let (key, correlation_id) = (message.key.clone(), genuine.request.correlation_id);
        let mut acceptance = self.accept(vec![message]).await?.pop();
        if let Some(Acceptance::KeyReused { field, message: known }) = acceptance {
            self.report_reuse(source, &key, field, correlation_id);
            match (source.on_key_reused, again) {
                (OnKeyReused::Accept, Some(message)) => {
                    let fingerprint = Fingerprint([Fingerprint::NOT_COMPARED; 5]);
                    acceptance = self.accept(vec![NewMessage { fingerprint, ..message }]).await?.pop();
                    self.note_other_body(source.tenant, known, correlation_id).await;
                }
                (OnKeyReused::Quarantine, _) => return Ok(Err(Unfit::key_reused(&key, field, known))),
                (OnKeyReused::Reject | OnKeyReused::Accept, _) => {
                    return Err(EngineError::KeyReused { field, message: known }.into());
                }
            }
        }
        self.claimed(acceptance).map(Ok)
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

    /// The named path of a delivery.
    pub(crate) fn claimed(
        &self,
        acceptance: Option<Acceptance>,
    ) -> Result<(Path, AcceptedMessage), IntakeError> {
        match acceptance {
            Some(Acceptance::New(message)) => Ok((Path::FirstRun, message)),
            Some(Acceptance::Duplicate(message)) => {
                self.metrics.duplicate("intake");
                Ok((Path::DuplicateDone, message))
            }
            Some(Acceptance::KeyReused { field, message }) => {
                Err(EngineError::KeyReused { field, message }.into())
            }
            None => Err(posthaste_store::StoreError::unavailable("an answer is missing").into()),
        }
    }

    /// The message that a genuine request stands for, or what doesn't fit.
    fn delivery(
        &self,
        directory: &Directory,
        source: &Source,
        genuine: Genuine<'_>,
    ) -> Result<Result<NewMessage, Unfit>, IntakeError> {
        let request = genuine.request;
        let scheme = source.scheme();
        let body: Option<Value> = looks_into_body(source)
            .then(|| serde_json::from_slice(genuine.decoded.unwrap_or(&request.body)).ok())
            .flatten();
        let event_type = event_type(source, genuine, body.as_ref());
        if let Err(unfit) = check_shape(source, request, event_type.as_deref(), body.as_ref()) {
            return Ok(Err(unfit));
        }
        let Some((key, aliases)) = names(source, genuine, body.as_ref()) else {
            let problem = "none of the source's rules finds a key in it";
            return Ok(Err(Unfit::new(Cause::MissingKey, problem)));
        };
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
        Ok(Ok(NewMessage {
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
        }))
    }
}

/// Content type, event type and schema, in this order. Row A2.
fn check_shape(
    source: &Source,
    request: &IntakeRequest<'_>,
    event_type: Option<&str>,
    body: Option<&Value>,
) -> Result<(), Unfit> {
    let unfit = |problem: String| Err(Unfit::new(Cause::InvalidPayload, problem));
    if !source.content_types.is_empty() {
        let given = header(request, "content-type").unwrap_or("");
        let essence = given.split(';').next().unwrap_or("").trim().to_ascii_lowercase();
        if !source.content_types.contains(&essence) {
            return unfit("its content type is none of those that the source expects".to_owned());
        }
    }
    if event_type.is_some_and(crate::notice::is_operational) {
        return unfit("its type begins with \"posthaste.\", as only our own do".to_owned());
    }
    let fits = |pattern: &String| type_fits(pattern, event_type) && event_type.is_some();
    if !source.types.is_empty() && !source.types.iter().any(fits) {
        return unfit("its type is none of those that the source expects".to_owned());
    }
    match (&source.schema, body) {
        (None, _) => Ok(()),
        (Some(_), None) => unfit("it is no JSON, and the source has a schema".to_owned()),
        (Some(schema), Some(body)) => schema.check(body).or_else(unfit),
    }
}
