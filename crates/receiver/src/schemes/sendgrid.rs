//! SendGrid event webhook: ECDSA P-256 with SHA-256 over timestamp and body, DER in base64. The secret is the public key as
//! SendGrid shows it, base64 of its SPKI.
//!
//! Source: <https://www.twilio.com/docs/sendgrid/for-developers/tracking-events/getting-started-event-webhook-security-features>.
//! SendGrid's SDKs do not look at the timestamp. Nothing separates it from the body, so a strict number within the tolerance
//! is asked for here. A high `s` is as good as a low one.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::{Verify, require_fit};
use crate::keys::PublicKeys;
use crate::timestamp::{self, Window};
use crate::{Reason, Rejection, Request, SecretError, Verified, secret};

/// Room for the longest DER signature of P-256 (72 bytes), by the decoder's own cautious estimate.
const SIGNATURE_SCRATCH_BYTES: usize = 80;

/// SendGrid's signature.
pub(super) struct SendGrid {
    keys: PublicKeys,
    window: Window,
}

impl SendGrid {
    pub(super) fn new(secrets: &[&str], window: Window) -> Result<Self, SecretError> {
        let algorithm = &aws_lc_rs::signature::ECDSA_P256_SHA256_ASN1;
        Ok(Self { keys: PublicKeys::new(algorithm, secrets, secret::decode_p256_public_key)?, window })
    }
}

impl Verify for SendGrid {
    fn verify<'a>(&self, request: &Request<'a>, now_unix_ms: i64) -> Result<Verified<'a>, Rejection> {
        let header = request.required("x-twilio-email-event-webhook-signature")?;
        let stamp = request.required("x-twilio-email-event-webhook-timestamp")?;
        let signed_at = self.window.check_seconds(timestamp::parse(stamp)?, now_unix_ms)?;
        let mut scratch = [0; SIGNATURE_SCRATCH_BYTES];
        let Ok(length) = STANDARD.decode_slice(header, &mut scratch) else {
            return Err(Rejection::new(Reason::MalformedHeader, "signature is not DER in base64"));
        };
        require_fit(self.keys.any_fits(&[stamp, request.body], &[&scratch[..length]]))?;
        Ok(Verified { delivery_id: None, event_type: None, signed_at_unix_ms: Some(signed_at) })
    }
}
