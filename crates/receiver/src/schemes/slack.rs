//! Slack: `X-Slack-Signature: v0=<hex>` over `v0:timestamp:body`.
//!
//! Source: <https://docs.slack.dev/authentication/verifying-requests-from-slack>. An unsigned `ssl_check` form is refused.

use super::{Verify, require_fit};
use crate::encoding::{self, HexCase};
use crate::keys::{HmacKeys, SHA256_BYTES};
use crate::timestamp::{self, Window};
use crate::{Reason, Rejection, Request, SecretError, Verified};

/// Slack's `v0` signature.
pub(super) struct Slack {
    keys: HmacKeys,
    window: Window,
}

impl Slack {
    pub(super) fn new(secrets: &[&str], window: Window) -> Result<Self, SecretError> {
        Ok(Self { keys: HmacKeys::from_text(aws_lc_rs::hmac::HMAC_SHA256, secrets)?, window })
    }
}

impl Verify for Slack {
    fn verify<'a>(&self, request: &Request<'a>, now_unix_ms: i64) -> Result<Verified<'a>, Rejection> {
        let header = request.required("x-slack-signature")?;
        let stamp = request.required("x-slack-request-timestamp")?;
        let signed_at = self.window.check_seconds(timestamp::parse(stamp)?, now_unix_ms)?;
        let Some(text) = header.strip_prefix(b"v0=") else {
            return Err(if header.contains(&b'=') {
                Rejection::new(Reason::UnsupportedVersion, "no signature of a known version")
            } else {
                Rejection::new(Reason::MalformedHeader, "signature without a version")
            });
        };
        let signature = encoding::hex::<SHA256_BYTES>(text, HexCase::Lower).ok_or(Rejection::mismatch())?;
        require_fit(self.keys.any_fits(&[b"v0:", stamp, b":", request.body], &[signature]))?;
        Ok(Verified { delivery_id: None, event_type: None, signed_at_unix_ms: Some(signed_at) })
    }
}
