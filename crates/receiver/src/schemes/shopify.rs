//! Shopify: `X-Shopify-Hmac-Sha256: <base64>` over the body, or the newer names without `X-`.
//!
//! Source: <https://shopify.dev/docs/apps/build/webhooks/subscribe/https>. No other header is signed: a replay, or another
//! shop's domain, still verifies.

use super::{Verify, require_body, require_fit};
use crate::encoding;
use crate::keys::{HmacKeys, SHA256_BYTES};
use crate::{Rejection, Request, SecretError, Verified};

const NAME: &str = "x-shopify-hmac-sha256";
const NEWER_NAME: &str = "shopify-hmac-sha256";

/// Shopify's signature.
pub(super) struct Shopify(HmacKeys);

impl Shopify {
    pub(super) fn new(secrets: &[&str]) -> Result<Self, SecretError> {
        HmacKeys::from_text(aws_lc_rs::hmac::HMAC_SHA256, secrets).map(Self)
    }
}

impl Verify for Shopify {
    fn verify<'a>(&self, request: &Request<'a>, _: i64) -> Result<Verified<'a>, Rejection> {
        let name = if request.has(NAME) { NAME } else { NEWER_NAME };
        let header = request.required(name)?;
        require_body(request)?;
        let signature = encoding::base64::<SHA256_BYTES>(header).ok_or(Rejection::mismatch())?;
        require_fit(self.0.any_fits(&[request.body], &[signature]))?;
        Ok(Verified {
            delivery_id: request.text("x-shopify-webhook-id").or_else(|| request.text("shopify-webhook-id")),
            event_type: request.text("x-shopify-topic").or_else(|| request.text("shopify-topic")),
            signed_at_unix_ms: None,
        })
    }
}
