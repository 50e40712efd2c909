//! Whether a request is genuine. Row A1: nothing else is looked at before.

use posthaste_receiver::{Reason, Rejection, Request, SnsKind, SnsVerified, SnsVerifier};

use crate::{
    Engine,
    config::{Proof, Source},
    intake::{IntakeError, IntakeRequest},
    reading::SchemeFacts,
    sns::CertificateError,
};

/// What a genuine request tells beside its body.
#[derive(Debug, Default)]
pub(crate) struct Verified {
    pub(crate) facts: SchemeFacts,
    /// It is no delivery: SNS speaks of the subscription itself.
    pub(crate) subscription: Option<Subscription>,
}

/// What SNS says of a subscription. Row A11.
#[derive(Debug)]
pub(crate) struct Subscription {
    pub(crate) topic_arn: Box<str>,
    pub(crate) message_id: Box<str>,
    /// It asks whether it is meant, and a GET of this says yes; `None`: it has ended.
    pub(crate) subscribe_url: Option<String>,
}

impl Engine {
    /// Checks the signature, on the exact bytes; a refusal is counted and logged.
    ///
    /// Errors: `SignatureInvalid`; `CertificateUnavailable` if nothing can be said now.
    pub(crate) async fn verified(
        &self,
        source: &Source,
        request: &IntakeRequest<'_>,
        decoded: Option<&[u8]>,
    ) -> Result<Verified, IntakeError> {
        let url = source.public_url.as_deref().map(|known| with_query(known, request.url));
        let signed = Request {
            method: request.method,
            url: url.as_deref().unwrap_or(request.url),
            headers: request.headers,
            body: decoded.unwrap_or(&request.body),
        };
        let verdict = match &source.proof {
            Proof::Unsigned => return Ok(Verified::default()),
            Proof::Secrets(verifier) => verifier.verify(&signed, self.clock.now().0).map(|verified| {
                let facts = SchemeFacts {
                    delivery_id: verified.delivery_id.map(str::to_owned),
                    event_type: verified.event_type.map(str::to_owned),
                };
                Verified { facts, subscription: None }
            }),
            Proof::Sns(verifier) => self.signed_by_sns(source, verifier, &signed).await?,
        };
        verdict.map_err(|rejection| self.rejected(source, rejection.reason, request.correlation_id))
    }

    fn rejected(&self, source: &Source, reason: Reason, correlation_id: &str) -> IntakeError {
        self.metrics.signature_rejection(source.id.as_str(), reason.as_str());
        tracing::warn!(
            event = "signature_rejected",
            source = source.id.as_str(),
            reason = reason.as_str(),
            correlation_id,
        );
        IntakeError::SignatureInvalid(reason)
    }

    /// The certificate is asked for only once all else fits, so that a stranger's request fetches nothing.
    async fn signed_by_sns(
        &self,
        source: &Source,
        verifier: &SnsVerifier,
        signed: &Request<'_>,
    ) -> Result<Result<Verified, Rejection>, IntakeError> {
        let message = match verifier.read(signed, self.clock.now().0) {
            Ok(message) => message,
            Err(rejection) => return Ok(Err(rejection)),
        };
        let certificate = match self.signing_certificate(message.certificate_url()).await {
            Ok(certificate) => certificate,
            Err(CertificateError::Unusable(rejection)) => return Ok(Err(rejection)),
            Err(CertificateError::Unavailable(problem)) => {
                let source = source.id.as_str();
                tracing::warn!(
                    event = "certificate_unavailable",
                    source,
                    problem,
                    "a delivery was sent back"
                );
                return Err(IntakeError::CertificateUnavailable);
            }
        };
        Ok(message.verify(&certificate, self.clock.now().0).map(told_by_sns))
    }
}

fn told_by_sns(message: SnsVerified<'_>) -> Verified {
    let facts = SchemeFacts { delivery_id: Some(message.message_id.to_owned()), event_type: None };
    let about = |subscribe_url| {
        let (topic_arn, message_id) = (message.topic_arn.into(), message.message_id.into());
        Some(Subscription { topic_arn, message_id, subscribe_url })
    };
    let subscription = match message.kind {
        SnsKind::Notification => None,
        SnsKind::SubscriptionConfirmation { subscribe_url } => about(Some(subscribe_url)),
        SnsKind::UnsubscribeConfirmation => about(None),
    };
    Verified { facts, subscription }
}

/// The URL that the provider knows, with the query that came.
fn with_query(known: &str, came: &str) -> String {
    match came.split_once('?') {
        Some((_, query)) => format!("{known}?{query}"),
        None => known.to_owned(),
    }
}
