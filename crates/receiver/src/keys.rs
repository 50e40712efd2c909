//! Prepared keys. The `Debug` of every type here tells how many keys there are and nothing of them.

use aws_lc_rs::constant_time::verify_slices_are_equal;
use aws_lc_rs::hmac;
use aws_lc_rs::signature::{ParsedPublicKey, VerificationAlgorithm};

use crate::{SECRETS_MAX, SecretError};

/// Length of an HMAC-SHA256 tag.
pub(crate) const SHA256_BYTES: usize = 32;
/// Length of an ed25519 signature.
pub(crate) const ED25519_BYTES: usize = 64;
/// Length of an ed25519 public key.
pub(crate) const ED25519_KEY_BYTES: usize = 32;

/// HMAC keys, hashed once at construction.
pub(crate) struct HmacKeys(Vec<hmac::Key>);

impl HmacKeys {
    /// Keys that are the secrets' own text.
    pub(crate) fn from_text(algorithm: hmac::Algorithm, secrets: &[&str]) -> Result<Self, SecretError> {
        build(secrets, |secret| match secret.as_bytes() {
            [] => Err(SecretError::Empty),
            bytes => Ok(hmac::Key::new(algorithm, bytes)),
        })
        .map(Self)
    }

    /// HMAC-SHA256 keys in the Standard Webhooks notation.
    pub(crate) fn from_standard(secrets: &[&str]) -> Result<Self, SecretError> {
        build(secrets, |secret| {
            crate::secret::decode_symmetric(secret).map(|bytes| hmac::Key::new(hmac::HMAC_SHA256, &bytes))
        })
        .map(Self)
    }

    /// Whether any key gives any of `signatures` for the concatenation of `parts`.
    ///
    /// The tag is computed once for each key, and each comparison takes the same time wherever it differs.
    pub(crate) fn any_fits<S: AsRef<[u8]>>(&self, parts: &[&[u8]], signatures: &[S]) -> bool {
        if signatures.is_empty() {
            return false;
        }
        self.0.iter().any(|key| {
            let mut context = hmac::Context::with_key(key);
            for part in parts {
                context.update(part);
            }
            let tag = context.sign();
            signatures
                .iter()
                .any(|signature| verify_slices_are_equal(tag.as_ref(), signature.as_ref()).is_ok())
        })
    }
}

/// Public keys, parsed once at construction.
pub(crate) struct PublicKeys(Vec<ParsedPublicKey>);

impl PublicKeys {
    /// Parses each secret with `decode`, which gives the key's bytes as `algorithm` takes them.
    pub(crate) fn new<K: AsRef<[u8]>>(
        algorithm: &'static dyn VerificationAlgorithm,
        secrets: &[&str],
        decode: impl Fn(&str) -> Result<K, SecretError>,
    ) -> Result<Self, SecretError> {
        build(secrets, |secret| {
            ParsedPublicKey::new(algorithm, decode(secret)?).map_err(|_| SecretError::NotAPublicKey)
        })
        .map(Self)
    }

    /// Whether any of `signatures` is by any key over the concatenation of `parts`.
    ///
    /// The library wants the message in one piece, so this copies it once.
    pub(crate) fn any_fits<S: AsRef<[u8]>>(&self, parts: &[&[u8]], signatures: &[S]) -> bool {
        if signatures.is_empty() {
            return false;
        }
        let message = parts.concat();
        signatures
            .iter()
            .any(|signature| self.0.iter().any(|key| key.verify_sig(&message, signature.as_ref()).is_ok()))
    }
}

/// One key for each secret, between one and [`SECRETS_MAX`] of them.
pub(crate) fn build<K>(
    secrets: &[&str],
    make: impl Fn(&str) -> Result<K, SecretError>,
) -> Result<Vec<K>, SecretError> {
    match secrets.len() {
        0 => Err(SecretError::None),
        1..=SECRETS_MAX => secrets.iter().map(|secret| make(secret)).collect(),
        _ => Err(SecretError::TooMany),
    }
}
