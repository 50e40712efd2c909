//! HubSpot version 3: `X-HubSpot-Signature-v3: <base64>` over method, URL, body and a timestamp in milliseconds.
//!
//! Source: <https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests>. The URL is taken letter
//! for letter, as HubSpot's SDKs do.

use super::{Verify, require_fit};
use crate::encoding;
use crate::keys::{HmacKeys, SHA256_BYTES};
use crate::timestamp::{self, Window};
use crate::{Rejection, Request, SecretError, Verified};

/// HubSpot's version 3 signature.
pub(super) struct HubSpotV3 {
    keys: HmacKeys,
    window: Window,
}

impl HubSpotV3 {
    pub(super) fn new(secrets: &[&str], window: Window) -> Result<Self, SecretError> {
        Ok(Self { keys: HmacKeys::from_text(aws_lc_rs::hmac::HMAC_SHA256, secrets)?, window })
    }
}

impl Verify for HubSpotV3 {
    fn verify<'a>(&self, request: &Request<'a>, now_unix_ms: i64) -> Result<Verified<'a>, Rejection> {
        let header = request.required("x-hubspot-signature-v3")?;
        let stamp = request.required("x-hubspot-request-timestamp")?;
        let signed_at = self.window.check_ms(timestamp::parse(stamp)?, now_unix_ms)?;
        let signature = encoding::base64::<SHA256_BYTES>(header).ok_or(Rejection::mismatch())?;
        let parts = [request.method.as_bytes(), request.url.as_bytes(), request.body, stamp];
        require_fit(self.keys.any_fits(&parts, &[signature]))?;
        Ok(Verified { delivery_id: None, event_type: None, signed_at_unix_ms: Some(signed_at) })
    }
}
