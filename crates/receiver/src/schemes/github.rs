//! GitHub: `X-Hub-Signature-256: sha256=<hex>` over the body. The SHA-1 header is not looked at.
//!
//! Source: <https://docs.github.com/en/webhooks/using-webhooks/validating-webhook-deliveries>. There is no timestamp:
//! deduplicate on the delivery id.

use super::{Verify, require_body, require_fit};
use crate::encoding::{self, HexCase};
use crate::keys::{HmacKeys, SHA256_BYTES};
use crate::{Reason, Rejection, Request, SecretError, Verified};

/// GitHub's SHA-256 signature.
pub(super) struct GitHub(HmacKeys);

impl GitHub {
    pub(super) fn new(secrets: &[&str]) -> Result<Self, SecretError> {
        HmacKeys::from_text(aws_lc_rs::hmac::HMAC_SHA256, secrets).map(Self)
    }
}

impl Verify for GitHub {
    fn verify<'a>(&self, request: &Request<'a>, _: i64) -> Result<Verified<'a>, Rejection> {
        let header = request.required("x-hub-signature-256")?;
        require_body(request)?;
        let Some(text) = header.strip_prefix(b"sha256=") else {
            return Err(Rejection::new(Reason::MalformedHeader, "signature does not begin with sha256="));
        };
        let signature = encoding::hex::<SHA256_BYTES>(text, HexCase::Lower).ok_or(Rejection::mismatch())?;
        require_fit(self.0.any_fits(&[request.body], &[signature]))?;
        Ok(Verified {
            delivery_id: request.text("x-github-delivery"),
            event_type: request.text("x-github-event"),
            signed_at_unix_ms: None,
        })
    }
}
