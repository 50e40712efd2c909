//! Paddle Billing: `Paddle-Signature: ts=<seconds>;h1=<hex>[;h1=…]` over `ts:body`.
//!
//! Source: <https://developer.paddle.com/webhooks/signature-verification>. Any of several `h1` counts, as Paddle documents
//! for a rotation (its Node SDK looks only at the last).

use super::pairs::{self, Format};
use super::{Verify, require_fit};
use crate::keys::HmacKeys;
use crate::timestamp::{self, Window};
use crate::{Reason, Rejection, Request, SecretError, Verified};

const FORMAT: Format = Format {
    separator: b';',
    timestamp_key: b"ts",
    signature_key: b"h1",
    without_signature: Reason::MalformedHeader,
};

/// Paddle's `h1` signatures.
pub(super) struct Paddle {
    keys: HmacKeys,
    window: Window,
}

impl Paddle {
    pub(super) fn new(secrets: &[&str], window: Window) -> Result<Self, SecretError> {
        Ok(Self { keys: HmacKeys::from_text(aws_lc_rs::hmac::HMAC_SHA256, secrets)?, window })
    }
}

impl Verify for Paddle {
    fn verify<'a>(&self, request: &Request<'a>, now_unix_ms: i64) -> Result<Verified<'a>, Rejection> {
        let pairs = pairs::read(request.required("paddle-signature")?, &FORMAT)?;
        let signed_at = self.window.check_seconds(timestamp::parse(pairs.timestamp)?, now_unix_ms)?;
        let parts = [pairs.timestamp, b":", request.body];
        require_fit(self.keys.any_fits(&parts, pairs.signatures.as_slice()))?;
        Ok(Verified { delivery_id: None, event_type: None, signed_at_unix_ms: Some(signed_at) })
    }
}
