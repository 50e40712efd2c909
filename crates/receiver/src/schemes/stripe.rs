//! Stripe: `Stripe-Signature: t=<seconds>,v1=<hex>[,v1=…]` over `t.body`. The key is the whole text of the secret, with its
//! `whsec_`.
//!
//! Source: <https://docs.stripe.com/webhooks#verify-manually>. Stripe's SDKs never refuse a stamp from the future; here it
//! may be ten minutes ahead.

use super::pairs::{self, Format};
use super::{Verify, require_body, require_fit};
use crate::keys::HmacKeys;
use crate::timestamp::{self, Window};
use crate::{Reason, Rejection, Request, SecretError, Verified};

const FORMAT: Format = Format {
    separator: b',',
    timestamp_key: b"t",
    signature_key: b"v1",
    without_signature: Reason::UnsupportedVersion,
};

/// Stripe's `v1` signatures; `v0` is skipped.
pub(super) struct Stripe {
    keys: HmacKeys,
    window: Window,
}

impl Stripe {
    pub(super) fn new(secrets: &[&str], window: Window) -> Result<Self, SecretError> {
        Ok(Self { keys: HmacKeys::from_text(aws_lc_rs::hmac::HMAC_SHA256, secrets)?, window })
    }
}

impl Verify for Stripe {
    fn verify<'a>(&self, request: &Request<'a>, now_unix_ms: i64) -> Result<Verified<'a>, Rejection> {
        let pairs = pairs::read(request.required("stripe-signature")?, &FORMAT)?;
        require_body(request)?;
        let signed_at = self.window.check_seconds(timestamp::parse(pairs.timestamp)?, now_unix_ms)?;
        let parts = [pairs.timestamp, b".", request.body];
        require_fit(self.keys.any_fits(&parts, pairs.signatures.as_slice()))?;
        Ok(Verified { delivery_id: None, event_type: None, signed_at_unix_ms: Some(signed_at) })
    }
}
