//! Outbound signatures: Standard Webhooks, symmetric and ed25519.

use std::fmt;

use aws_lc_rs::hmac;
use aws_lc_rs::signature::Ed25519KeyPair;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::SecretError;
use crate::keys;
use crate::secret::{self, SIGNING_PREFIX};

/// Signs deliveries of one destination. Its keys are prepared once, at construction.
///
/// Source: <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>.
pub struct Signer(Vec<SigningKey>);

enum SigningKey {
    Symmetric(Box<hmac::Key>),
    Asymmetric(Box<Ed25519KeyPair>),
}

impl Signer {
    /// A signer that gives one signature for each secret, in their order: the current one first, then those still in
    /// their overlap. `whsec_` gives `v1`, `whsk_` gives `v1a`.
    ///
    /// `secrets`: 1 to [`crate::SECRETS_MAX`].
    ///
    /// Errors: which rule a secret breaks. Check what a person enters with [`crate::check_signing_secret`].
    pub fn new(secrets: &[&str]) -> Result<Self, SecretError> {
        keys::build(secrets, |text| {
            if text.starts_with(SIGNING_PREFIX) {
                return secret::decode_signing_key(text).map(|pair| SigningKey::Asymmetric(Box::new(pair)));
            }
            let key = secret::decode_symmetric(text)?;
            Ok(SigningKey::Symmetric(Box::new(hmac::Key::new(hmac::HMAC_SHA256, &key))))
        })
        .map(Self)
    }

    /// The value of `webhook-signature` for these exact bytes, sent with `webhook-id: id` and
    /// `webhook-timestamp: timestamp_unix_s`.
    ///
    /// Call it just before each attempt is sent: a stamp from the time of enqueueing is too old after a long back-off. `id`
    /// should hold no `.`, which separates the signed parts.
    pub fn sign(&self, id: &str, timestamp_unix_s: i64, body: &[u8]) -> String {
        let timestamp = timestamp_unix_s.to_string();
        let parts = [id.as_bytes(), b".", timestamp.as_bytes(), b".", body];
        let mut value = String::new();
        for key in &self.0 {
            if !value.is_empty() {
                value.push(' ');
            }
            key.sign_into(&parts, &mut value);
        }
        value
    }
}

impl SigningKey {
    fn sign_into(&self, parts: &[&[u8]], value: &mut String) {
        match self {
            Self::Symmetric(key) => {
                let mut context = hmac::Context::with_key(key);
                for part in parts {
                    context.update(part);
                }
                value.push_str("v1,");
                STANDARD.encode_string(context.sign(), value);
            }
            Self::Asymmetric(pair) => {
                value.push_str("v1a,");
                STANDARD.encode_string(pair.sign(&parts.concat()), value);
            }
        }
    }
}

impl fmt::Debug for Signer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.debug_struct("Signer").field("secrets", &self.0.len()).finish_non_exhaustive()
    }
}
