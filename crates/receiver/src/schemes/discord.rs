//! Discord interactions: ed25519 over timestamp and body, in hexadecimal.
//!
//! Source: <https://docs.discord.com/developers/interactions/overview#setting-up-an-endpoint>. Discord's SDKs do not look at
//! the timestamp. Nothing separates it from the body, so a strict number within the tolerance is asked for here.

use super::{Verify, require_fit};
use crate::encoding::{self, HexCase};
use crate::keys::{ED25519_BYTES, PublicKeys};
use crate::timestamp::{self, Window};
use crate::{Reason, Rejection, Request, SecretError, Verified, secret};

/// Discord's signature by an application's key.
pub(super) struct Discord {
    keys: PublicKeys,
    window: Window,
}

impl Discord {
    pub(super) fn new(secrets: &[&str], window: Window) -> Result<Self, SecretError> {
        Ok(Self {
            keys: PublicKeys::new(&aws_lc_rs::signature::ED25519, secrets, secret::decode_hex_public_key)?,
            window,
        })
    }
}

impl Verify for Discord {
    fn verify<'a>(&self, request: &Request<'a>, now_unix_ms: i64) -> Result<Verified<'a>, Rejection> {
        let header = request.required("x-signature-ed25519")?;
        let stamp = request.required("x-signature-timestamp")?;
        let Some(signature) = encoding::hex::<ED25519_BYTES>(header, HexCase::Any) else {
            return Err(Rejection::new(Reason::MalformedHeader, "signature is not 64 bytes in hexadecimal"));
        };
        let signed_at = self.window.check_seconds(timestamp::parse(stamp)?, now_unix_ms)?;
        require_fit(self.keys.any_fits(&[stamp, request.body], &[signature]))?;
        Ok(Verified { delivery_id: None, event_type: None, signed_at_unix_ms: Some(signed_at) })
    }
}
