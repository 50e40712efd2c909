//! Standard Webhooks with ed25519: as `standard_webhooks`, version `v1a`, keys written `whpk_`.

use super::standard_webhooks::{STANDARD_NAMES, Stamp, signatures};
use super::{Verify, require_fit};
use crate::keys::{ED25519_BYTES, PublicKeys};
use crate::timestamp::Window;
use crate::{Reason, Rejection, Request, SecretError, Verified, secret};

/// Asymmetric signatures, version `v1a`. Other versions in the header are skipped, never tried with a public key.
pub(super) struct StandardWebhooksV1a {
    keys: PublicKeys,
    window: Window,
}

impl StandardWebhooksV1a {
    pub(super) fn new(secrets: &[&str], window: Window) -> Result<Self, SecretError> {
        Ok(Self {
            keys: PublicKeys::new(&aws_lc_rs::signature::ED25519, secrets, secret::decode_public_key)?,
            window,
        })
    }
}

impl Verify for StandardWebhooksV1a {
    fn verify<'a>(&self, request: &Request<'a>, now_unix_ms: i64) -> Result<Verified<'a>, Rejection> {
        let stamp = Stamp::read(request, &STANDARD_NAMES, self.window, now_unix_ms)?;
        let signatures = signatures::<ED25519_BYTES>(request, &STANDARD_NAMES, b"v1a")?;
        if signatures.as_slice().is_empty() {
            return Err(Rejection::new(Reason::MalformedHeader, "no signature of 64 bytes in base64"));
        }
        require_fit(self.keys.any_fits(&stamp.signed_parts(request.body), signatures.as_slice()))?;
        Ok(stamp.verified())
    }
}
