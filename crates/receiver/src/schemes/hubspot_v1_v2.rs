//! HubSpot versions 1 and 2: `X-HubSpot-Signature: <hex>`, a plain SHA-256 that begins with the secret; version 2 covers
//! method and URL as well. `X-HubSpot-Signature-Version` says which.
//!
//! Source: <https://developers.hubspot.com/docs/apps/legacy-apps/authentication/validating-requests>.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::digest;

use super::{Verify, require_fit};
use crate::encoding::{self, HexCase};
use crate::keys::{self, SHA256_BYTES};
use crate::{Reason, Rejection, Request, SecretError, Verified};

/// HubSpot's older signatures: hashes that have already taken in their secret.
pub(super) struct HubSpotV1V2(Vec<digest::Context>);

impl HubSpotV1V2 {
    pub(super) fn new(secrets: &[&str]) -> Result<Self, SecretError> {
        keys::build(secrets, |secret| {
            if secret.is_empty() {
                return Err(SecretError::Empty);
            }
            let mut context = digest::Context::new(&digest::SHA256);
            context.update(secret.as_bytes());
            Ok(context)
        })
        .map(Self)
    }
}

impl Verify for HubSpotV1V2 {
    fn verify<'a>(&self, request: &Request<'a>, _: i64) -> Result<Verified<'a>, Rejection> {
        let header = request.required("x-hubspot-signature")?;
        let parts = match request.required("x-hubspot-signature-version")? {
            b"v1" => [&[], &[], request.body],
            b"v2" => [request.method.as_bytes(), request.url.as_bytes(), request.body],
            _ => return Err(Rejection::new(Reason::UnsupportedVersion, "no signature of a known version")),
        };
        let signature = encoding::hex::<SHA256_BYTES>(header, HexCase::Lower).ok_or(Rejection::mismatch())?;
        require_fit(self.0.iter().any(|seeded| {
            let mut context = seeded.clone();
            for part in parts {
                context.update(part);
            }
            verify_slices_are_equal(context.finish().as_ref(), &signature).is_ok()
        }))?;
        Ok(Verified { delivery_id: None, event_type: None, signed_at_unix_ms: None })
    }
}
