//! How providers ask whether a source is meant, before they send to it. Row A11. A handshake never makes a message.

use aws_lc_rs::constant_time;
use posthaste_core::{DestinationId, TenantId};
use serde_json::Value;

use crate::{
    Engine,
    config::{Handshake, Source},
    reading::Genuine,
};

/// Bytes of a challenge that is given back.
const CHALLENGE_BYTES_MAX: usize = 1_024;

/// Meta's question: the query of its GET.
#[derive(Clone, Copy, Debug)]
pub struct MetaQuestion<'a> {
    /// `hub.mode`
    pub mode: &'a str,
    /// `hub.verify_token`
    pub verify_token: &'a str,
    /// `hub.challenge`
    pub challenge: &'a str,
}

/// What a source that takes CloudEvents allows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AllowedOrigin {
    /// `WebHook-Allowed-Origin`
    pub origin: String,
    /// `WebHook-Allowed-Rate`: requests a minute; `None`: no limit.
    pub rate: Option<u32>,
}

/// What a handshake came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Shaken<T> {
    /// The answer.
    Yes(T),
    /// The source knows this handshake, and the question is not the right one.
    No,
    /// There is no such source, or it has no such handshake.
    NotHere,
}

impl Engine {
    /// Answers Meta's question; the token is compared in constant time. A wrong one counts as a rejected signature.
    ///
    /// Source: <https://developers.facebook.com/docs/graph-api/webhooks/getting-started#verification-requests>.
    pub fn meta_handshake(
        &self,
        tenant: TenantId,
        source: &str,
        question: MetaQuestion<'_>,
    ) -> Shaken<Box<str>> {
        let Some(source) = self.source_with_handshake(tenant, source) else { return Shaken::NotHere };
        let Some(Handshake::Meta { verify_token }) = &source.handshake else { return Shaken::NotHere };
        let given = question.verify_token.as_bytes();
        let fits = constant_time::verify_slices_are_equal(given, verify_token.as_bytes()).is_ok();
        if !fits || question.mode != "subscribe" || !is_plain(question.challenge) {
            self.metrics.signature_rejection(source.id.as_str(), "handshake");
            self.metrics.handshake(source.id.as_str(), "refused");
            tracing::warn!(event = "signature_rejected", source = source.id.as_str(), reason = "handshake");
            return Shaken::No;
        }
        self.metrics.handshake(source.id.as_str(), "answered");
        tracing::info!(event = "handshake", source = source.id.as_str());
        Shaken::Yes(question.challenge.into())
    }

    /// Answers the question of a sender of CloudEvents.
    ///
    /// Source: <https://github.com/cloudevents/spec/blob/v1.0.2/cloudevents/http-webhook.md#4-abuse-protection>.
    pub fn cloudevents_handshake(
        &self,
        tenant: TenantId,
        source: &str,
        origin: Option<&str>,
    ) -> Shaken<AllowedOrigin> {
        let Some(source) = self.source_with_handshake(tenant, source) else { return Shaken::NotHere };
        let Some(Handshake::CloudEvents { origins, rate }) = &source.handshake else {
            return Shaken::NotHere;
        };
        let known = |origin: &&str| {
            is_plain(origin)
                && (origins.is_empty() || origins.iter().any(|known| known.eq_ignore_ascii_case(origin)))
        };
        let Some(origin) = origin.filter(known) else {
            self.metrics.handshake(source.id.as_str(), "refused");
            tracing::warn!(event = "handshake_refused", source = source.id.as_str());
            return Shaken::No;
        };
        self.metrics.handshake(source.id.as_str(), "answered");
        tracing::info!(event = "handshake", source = source.id.as_str(), origin);
        Shaken::Yes(AllowedOrigin { origin: origin.to_owned(), rate: *rate })
    }

    fn source_with_handshake(&self, tenant: TenantId, source: &str) -> Option<std::sync::Arc<Source>> {
        let id = DestinationId::new(source).ok()?;
        let directory = self.directory.load();
        directory.source(tenant, &id).filter(|source| source.enabled).cloned()
    }
}

/// Slack's challenge in a request whose signature fits, if it is one.
///
/// Source: <https://docs.slack.dev/reference/events/url_verification>.
pub(crate) fn slack(source: &Source, genuine: Genuine<'_>) -> Option<Box<str>> {
    if source.handshake != Some(Handshake::Slack) {
        return None;
    }
    let body = genuine.decoded.unwrap_or(&genuine.request.body);
    // A challenge is short; what is longer is an event.
    let body: Value =
        (body.len() <= 4 * CHALLENGE_BYTES_MAX).then(|| serde_json::from_slice(body).ok())??;
    if body["type"] != "url_verification" {
        return None;
    }
    body["challenge"].as_str().filter(|challenge| is_plain(challenge)).map(Into::into)
}

/// What can be given back as plain text or in a header, whatever reads it.
fn is_plain(text: &str) -> bool {
    !text.is_empty()
        && text.len() <= CHALLENGE_BYTES_MAX
        && text.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'<' | b'>' | b'"' | b'\''))
}
