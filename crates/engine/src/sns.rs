//! AWS SNS: the certificates that it signs with, and the subscriptions that are confirmed. Rows A1, A11.
//!
//! Both addresses were judged by [`posthaste_receiver::SnsVerifier`], and are judged again by the sender's guard, which
//! follows no redirect.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
    time::Duration,
};

use bytes::Bytes;
use parking_lot::Mutex;
use posthaste_core::{DurationMs, Timestamp};
use posthaste_receiver::{Reason, Rejection, SigningCertificate};
use posthaste_store::StoreError;
use tokio::sync::Semaphore;

use crate::{
    Engine,
    config::Source,
    delivery::send_limits,
    intake::IntakeError,
    ports::{OutboundRequest, SendLimits, SendOutcome},
    verifying::Subscription,
};

/// Bytes of a certificate as text. One of SNS has about 2,500.
const CERTIFICATE_BYTES_MAX: usize = 16 * 1024;

/// Certificates that are kept. A region has one at a time.
const CERTIFICATES_MAX: usize = 64;

/// Certificates that are fetched at once.
const FETCHES_MAX: usize = 4;

/// Of one request to SNS, and of the wait for its turn: together within the 15 s that SNS waits for an answer.
///
/// Source: <https://docs.aws.amazon.com/sns/latest/dg/SendMessageToHttp.prepare.html>.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(5);

/// Subscriptions that are being confirmed at once.
const CONFIRMATIONS_MAX: usize = 64;

/// The pauses between tries to confirm. In memory: after a restart a person asks SNS to send its question again.
const CONFIRM_PAUSES: [DurationMs; 5] = [
    DurationMs::from_secs(5),
    DurationMs::from_secs(30),
    DurationMs::from_mins(2),
    DurationMs::from_mins(10),
    DurationMs::from_mins(30),
];

/// What is known of SNS.
pub(crate) struct SnsDesk {
    /// By address; each until its end.
    certificates: Mutex<HashMap<Box<str>, Arc<SigningCertificate>>>,
    fetches: Semaphore,
    /// The questions, by message id, that are being answered.
    confirming: Mutex<HashSet<Box<str>>>,
}

impl Default for SnsDesk {
    fn default() -> Self {
        Self {
            certificates: Mutex::default(),
            fetches: Semaphore::new(FETCHES_MAX),
            confirming: Mutex::default(),
        }
    }
}

impl SnsDesk {
    fn known(&self, url: &str, now: Timestamp) -> Option<Arc<SigningCertificate>> {
        let mut certificates = self.certificates.lock();
        let known = certificates.get(url)?;
        if known.is_in_force(now.0) {
            return Some(Arc::clone(known));
        }
        certificates.remove(url);
        None
    }

    fn keep(&self, url: &str, certificate: &Arc<SigningCertificate>, now: Timestamp) {
        let mut certificates = self.certificates.lock();
        if certificates.len() >= CERTIFICATES_MAX {
            certificates.retain(|_, known| known.is_in_force(now.0));
        }
        if certificates.len() >= CERTIFICATES_MAX
            && let Some(any) = certificates.keys().next().cloned()
        {
            certificates.remove(&any);
        }
        certificates.insert(url.into(), Arc::clone(certificate));
    }

    /// Whether this question is to be answered now: not if somebody is at it.
    fn begin(&self, message_id: &str) -> Result<bool, StoreError> {
        let mut confirming = self.confirming.lock();
        if confirming.contains(message_id) {
            return Ok(false);
        }
        if confirming.len() >= CONFIRMATIONS_MAX {
            return Err(StoreError::Overloaded);
        }
        Ok(confirming.insert(message_id.into()))
    }
}

/// Why there is no certificate to verify with.
#[derive(Debug)]
pub(crate) enum CertificateError {
    /// It can't be had now: why, for the operator.
    Unavailable(String),
    /// It was had, and is none to verify with.
    Unusable(Rejection),
}

/// What a try to confirm came to.
enum Confirmation {
    Done,
    /// Perhaps later: why not.
    NotYet(String),
    /// No try will help: why.
    Refused(String),
}

impl Engine {
    /// The certificate at `url`, which is one of SNS's: known, or fetched.
    ///
    /// Errors: see [`CertificateError`]; neither is kept. Cancel: safe.
    pub(crate) async fn signing_certificate(
        &self,
        url: &str,
    ) -> Result<Arc<SigningCertificate>, CertificateError> {
        if let Some(known) = self.sns.known(url, self.clock.now()) {
            return Ok(known);
        }
        let turn = tokio::time::timeout(REQUEST_TIMEOUT, self.sns.fetches.acquire()).await;
        let Ok(Ok(_turn)) = turn else {
            return Err(CertificateError::Unavailable("too many certificates are being fetched".to_owned()));
        };
        // Somebody may have fetched it while we waited.
        if let Some(known) = self.sns.known(url, self.clock.now()) {
            return Ok(known);
        }
        let pem = self.fetch_certificate(url).await?;
        let certificate = SigningCertificate::from_pem(&pem).map_err(CertificateError::Unusable)?;
        let (certificate, now) = (Arc::new(certificate), self.clock.now());
        if certificate.is_in_force(now.0) {
            self.sns.keep(url, &certificate, now);
        }
        Ok(certificate)
    }

    async fn fetch_certificate(&self, url: &str) -> Result<Bytes, CertificateError> {
        let unavailable = |problem: String| Err(CertificateError::Unavailable(problem));
        match self.sender.send(self.sns_request(url, CERTIFICATE_BYTES_MAX)).await {
            SendOutcome::Answered(answered) if answered.status != 200 => {
                unavailable(format!("the address of the certificate answered {}", answered.status))
            }
            SendOutcome::Answered(answered) if !answered.excerpt_truncated => Ok(answered.excerpt),
            SendOutcome::Answered(answered) if answered.excerpt.len() >= CERTIFICATE_BYTES_MAX => {
                let detail = "certificate is larger than one of SNS";
                Err(CertificateError::Unusable(Rejection { reason: Reason::BadCertificate, detail }))
            }
            SendOutcome::Answered(_) => unavailable("the certificate broke off".to_owned()),
            SendOutcome::Blocked { reason } => unavailable(format!("blocked: {reason}")),
            SendOutcome::Unanswered { detail, .. } => unavailable(format!("no answer: {detail}")),
        }
    }

    fn sns_request(&self, url: &str, excerpt_bytes_max: usize) -> OutboundRequest {
        OutboundRequest {
            url: url.to_owned(),
            method: "GET",
            headers: vec![("user-agent".to_owned(), self.settings.user_agent.as_bytes().to_vec())],
            body: Bytes::new(),
            limits: SendLimits { excerpt_bytes_max, ..send_limits(REQUEST_TIMEOUT) },
        }
    }

    /// Notes what SNS says of a subscription of an allowed topic. A question is answered by a task of its own. Row A11.
    ///
    /// Errors: `overloaded` if too many are being answered; SNS asks again.
    pub(crate) fn note_subscription(
        &self,
        source: &Source,
        subscription: Subscription,
    ) -> Result<(), IntakeError> {
        let (source, topic) = (source.id.as_str(), &*subscription.topic_arn);
        let Some(url) = subscription.subscribe_url else {
            self.metrics.handshake(source, "ended");
            tracing::warn!(event = "subscription_ended", source, topic, "SNS sends nothing here any more");
            return Ok(());
        };
        tracing::info!(event = "handshake", source, topic);
        self.metrics.handshake(source, "answered");
        if self.sns.begin(&subscription.message_id)? {
            let engine = self.arc();
            let (source, topic, id) = (source.to_owned(), subscription.topic_arn, subscription.message_id);
            self.tasks.spawn(async move {
                engine.confirm_subscription(&source, &topic, &url).await;
                engine.sns.confirming.lock().remove(&id);
            });
        }
        Ok(())
    }

    /// Confirms, or says that it could not. The address is a secret, and in no line.
    async fn confirm_subscription(&self, source: &str, topic: &str, url: &str) {
        let mut pauses = CONFIRM_PAUSES.into_iter();
        let problem = loop {
            let tried = tokio::select! {
                tried = self.try_to_confirm(url) => tried,
                () = self.stop.cancelled() => break "the server stopped".to_owned(),
            };
            let (problem, pause) = match (tried, pauses.next()) {
                (Confirmation::Done, _) => {
                    self.metrics.handshake(source, "confirmed");
                    tracing::info!(event = "subscription_confirmed", source, topic);
                    return;
                }
                (Confirmation::Refused(problem), _) | (Confirmation::NotYet(problem), None) => break problem,
                (Confirmation::NotYet(problem), Some(pause)) => (problem, pause),
            };
            tracing::warn!(event = "subscription_not_yet_confirmed", source, topic, problem);
            tokio::select! {
                () = self.clock.sleep_until(self.clock.now().after(pause)) => {}
                () = self.stop.cancelled() => break "the server stopped".to_owned(),
            }
        };
        self.metrics.handshake(source, "unconfirmed");
        tracing::error!(
            event = "subscription_unconfirmed",
            source,
            topic,
            problem,
            "have SNS ask again: request the confirmation anew"
        );
    }

    async fn try_to_confirm(&self, url: &str) -> Confirmation {
        match self.sender.send(self.sns_request(url, 0)).await {
            SendOutcome::Answered(answered) => match answered.status {
                200..=299 => Confirmation::Done,
                408 | 429 | 500.. => Confirmation::NotYet(format!("SNS answered {}", answered.status)),
                status => Confirmation::Refused(format!("SNS answered {status}")),
            },
            SendOutcome::Blocked { reason } => Confirmation::Refused(format!("blocked: {reason}")),
            SendOutcome::Unanswered { detail, .. } => Confirmation::NotYet(format!("no answer: {detail}")),
        }
    }
}
