//! Linear: `Linear-Signature: <hex>` over the body, whose `webhookTimestamp` (milliseconds) is the time.
//!
//! Source: <https://linear.app/developers/webhooks>. The signature is checked before the body is looked into. The
//! `Linear-Timestamp` header is not signed and does not count.

use super::{Verify, json, require_fit};
use crate::encoding::{self, HexCase};
use crate::keys::{HmacKeys, SHA256_BYTES};
use crate::timestamp::{self, Window};
use crate::{Reason, Rejection, Request, SecretError, Verified};

/// Linear's signature.
pub(super) struct Linear {
    keys: HmacKeys,
    window: Window,
}

impl Linear {
    pub(super) fn new(secrets: &[&str], window: Window) -> Result<Self, SecretError> {
        Ok(Self { keys: HmacKeys::from_text(aws_lc_rs::hmac::HMAC_SHA256, secrets)?, window })
    }
}

impl Verify for Linear {
    fn verify<'a>(&self, request: &Request<'a>, now_unix_ms: i64) -> Result<Verified<'a>, Rejection> {
        if request.method != "POST" {
            return Err(Rejection::new(Reason::BadMethod, "method is not POST"));
        }
        let header = request.required("linear-signature")?;
        let signature = encoding::hex::<SHA256_BYTES>(header, HexCase::Lower).ok_or(Rejection::mismatch())?;
        require_fit(self.keys.any_fits(&[request.body], &[signature]))?;
        let Ok(member) = json::top_level_member(request.body, b"webhookTimestamp") else {
            return Err(Rejection::new(Reason::MalformedBody, "body is not a JSON object"));
        };
        let Some(stamp) = member else {
            return Err(Rejection::new(Reason::MissingTimestamp, "body has no webhookTimestamp"));
        };
        let signed_at = self.window.check_ms(timestamp::parse(stamp)?, now_unix_ms)?;
        Ok(Verified {
            delivery_id: request.text("linear-delivery"),
            event_type: request.text("linear-event"),
            signed_at_unix_ms: Some(signed_at),
        })
    }
}
