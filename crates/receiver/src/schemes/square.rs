//! Square: `x-square-hmacsha256-signature: <base64>` over URL and body; the URL letter for letter as registered.
//!
//! Source: <https://developer.squareup.com/docs/webhooks/step3validate>.

use super::{Verify, require_body, require_fit};
use crate::encoding;
use crate::keys::{HmacKeys, SHA256_BYTES};
use crate::{Rejection, Request, SecretError, Verified};

/// Square's SHA-256 signature.
pub(super) struct Square(HmacKeys);

impl Square {
    pub(super) fn new(secrets: &[&str]) -> Result<Self, SecretError> {
        HmacKeys::from_text(aws_lc_rs::hmac::HMAC_SHA256, secrets).map(Self)
    }
}

impl Verify for Square {
    fn verify<'a>(&self, request: &Request<'a>, _: i64) -> Result<Verified<'a>, Rejection> {
        let header = request.required("x-square-hmacsha256-signature")?;
        require_body(request)?;
        let signature = encoding::base64::<SHA256_BYTES>(header).ok_or(Rejection::mismatch())?;
        require_fit(self.0.any_fits(&[request.url.as_bytes(), request.body], &[signature]))?;
        Ok(Verified { delivery_id: None, event_type: None, signed_at_unix_ms: None })
    }
}
