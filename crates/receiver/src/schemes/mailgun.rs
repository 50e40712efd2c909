//! Mailgun: `signature: {timestamp, token, signature}` inside the JSON body; a hexadecimal HMAC over timestamp and token.
//!
//! Source: <https://documentation.mailgun.com/docs/mailgun/user-manual/webhooks/securing-webhooks>. The event itself is *not*
//! signed, so whoever saw one delivery can send another event under its token: deduplicate on the token, which is given
//! as the delivery id. Nothing separates timestamp and token, so a timestamp must be a strict number in the window.

use super::{Verify, json, require_fit};
use crate::encoding::{self, HexCase};
use crate::keys::{HmacKeys, SHA256_BYTES};
use crate::timestamp::{self, Window};
use crate::{Reason, Rejection, Request, SecretError, Verified};

const MALFORMED: Rejection =
    Rejection::new(Reason::MalformedBody, "body has no signature object of the right shape");

/// Mailgun's signature.
pub(super) struct Mailgun {
    keys: HmacKeys,
    window: Window,
}

impl Mailgun {
    pub(super) fn new(secrets: &[&str], window: Window) -> Result<Self, SecretError> {
        Ok(Self { keys: HmacKeys::from_text(aws_lc_rs::hmac::HMAC_SHA256, secrets)?, window })
    }
}

impl Verify for Mailgun {
    fn verify<'a>(&self, request: &Request<'a>, now_unix_ms: i64) -> Result<Verified<'a>, Rejection> {
        let object = member(request.body, b"signature")?;
        let stamp = member(object, b"timestamp")?;
        let stamp = json::plain_string(stamp).unwrap_or(stamp);
        let token = json::plain_string(member(object, b"token")?).ok_or(MALFORMED)?;
        let signature = json::plain_string(member(object, b"signature")?).ok_or(MALFORMED)?;
        let signed_at = self.window.check_seconds(timestamp::parse(stamp)?, now_unix_ms)?;
        let signature =
            encoding::hex::<SHA256_BYTES>(signature, HexCase::Lower).ok_or(Rejection::mismatch())?;
        require_fit(self.keys.any_fits(&[stamp, token], &[signature]))?;
        Ok(Verified {
            delivery_id: std::str::from_utf8(token).ok(),
            event_type: None,
            signed_at_unix_ms: Some(signed_at),
        })
    }
}

fn member<'a>(object: &'a [u8], name: &[u8]) -> Result<&'a [u8], Rejection> {
    json::top_level_member(object, name).ok().flatten().ok_or(MALFORMED)
}
