//! Secrets: their notation, the strict rules for configuring one, and making new ones.

use aws_lc_rs::rand;
use aws_lc_rs::signature::{Ed25519KeyPair, KeyPair as _};
use base64::Engine as _;
use base64::alphabet;
use base64::engine::general_purpose::{GeneralPurpose, STANDARD};
use base64::engine::{DecodePaddingMode, GeneralPurposeConfig};

use crate::Scheme;
use crate::encoding::{self, HexCase};
use crate::keys::ED25519_KEY_BYTES;

/// Marks a symmetric Standard Webhooks secret.
pub(crate) const SYMMETRIC_PREFIX: &str = "whsec_";
/// Marks an ed25519 signing key.
pub(crate) const SIGNING_PREFIX: &str = "whsk_";
/// Marks an ed25519 public key.
const PUBLIC_PREFIX: &str = "whpk_";

/// The shortest symmetric key that the specification allows.
/// Source: <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>.
const KEY_BYTES_MIN: usize = 24;
/// The longest symmetric key that the specification allows.
const KEY_BYTES_MAX: usize = 64;
const SEED_BYTES: usize = 32;
/// What stands before the uncompressed point of every P-256 key. Source: <https://www.rfc-editor.org/rfc/rfc5480#section-2>.
const P256_SPKI_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const P256_POINT_BYTES: usize = 65;

/// Base64 whose final `=` may be left out, as people paste it; otherwise strict.
const BASE64_PADDING_OPTIONAL: GeneralPurpose = GeneralPurpose::new(
    &alphabet::STANDARD,
    GeneralPurposeConfig::new().with_decode_padding_mode(DecodePaddingMode::Indifferent),
);

/// Why a secret cannot be used. Never holds the secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum SecretError {
    /// No secret was given.
    #[error("no secret given")]
    None,
    /// More secrets than one verifier or signer holds.
    #[error("more secrets than can be held at once: at most 16")]
    TooMany,
    /// The secret holds no key.
    #[error("secret is empty")]
    Empty,
    /// The secret begins or ends with white space, most likely from pasting.
    #[error("secret has white space around it")]
    SurroundingWhiteSpace,
    /// The key is not standard base64; the URL-safe alphabet is not taken either.
    #[error("secret is not standard base64 after its prefix")]
    NotBase64,
    /// The key has fewer bytes than the specification asks for.
    #[error("secret is too short: the key must have at least 24 bytes")]
    TooShort,
    /// The key has more bytes than the specification allows.
    #[error("secret is too long: the key must have at most 64 bytes")]
    TooLong,
    /// A secret of another kind: the prefix names the kind that is needed.
    #[error("secret is of the wrong kind: expected {expected}")]
    WrongKind {
        /// What is needed here.
        expected: &'static str,
    },
    /// The text is no public key of the scheme's kind, or not written as the provider shows it.
    #[error("not a public key of the kind that the scheme uses")]
    NotAPublicKey,
    /// The scheme verifies by a certificate, and has no secret.
    #[error("this scheme has no secret")]
    NotUsed,
    /// The text is no ed25519 signing key: 32 bytes of seed, then the 32 bytes of its public key.
    #[error("not an ed25519 signing key of 64 bytes")]
    NotASigningKey,
}

/// The operating system gave no random bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[error("the operating system gave no random bytes")]
pub struct RandomUnavailable;

/// The strict rules for a secret that a person configures for an inbound source.
///
/// Stricter than [`crate::Verifier::new`], which takes what providers' SDKs take: here white space is refused in every
/// scheme, and a Standard Webhooks key must have 24 to 64 bytes.
pub fn check_secret(scheme: Scheme, secret: &str) -> Result<(), SecretError> {
    check_white_space(secret)?;
    match scheme {
        Scheme::AwsSns => Err(SecretError::NotUsed),
        Scheme::StandardWebhooks | Scheme::Svix => check_symmetric_length(&decode_symmetric(secret)?),
        Scheme::StandardWebhooksV1a => decode_public_key(secret).map(drop),
        Scheme::SendGrid => decode_p256_public_key(secret).map(drop),
        Scheme::Discord => decode_hex_public_key(secret).map(drop),
        Scheme::ConvoySimple
        | Scheme::GitHub
        | Scheme::Hmac
        | Scheme::HubSpotV1V2
        | Scheme::HubSpotV3
        | Scheme::Linear
        | Scheme::Mailgun
        | Scheme::Paddle
        | Scheme::Shopify
        | Scheme::Slack
        | Scheme::Square
        | Scheme::Stripe
        | Scheme::Twilio => check_not_empty(secret),
    }
}

/// The strict rules for a secret that signs outbound deliveries: `whsec_` with 24 to 64 bytes, or a `whsk_` key.
pub fn check_signing_secret(secret: &str) -> Result<(), SecretError> {
    check_white_space(secret)?;
    match secret.strip_prefix(SIGNING_PREFIX) {
        Some(_) => decode_signing_key(secret).map(drop),
        None => check_symmetric_length(&decode_symmetric(secret)?),
    }
}

/// A new random `whsec_` secret of 32 bytes.
///
/// Errors: only if the operating system gives no random bytes.
pub fn generate_secret() -> Result<String, RandomUnavailable> {
    let mut bytes = [0; 32];
    rand::fill(&mut bytes).map_err(|_| RandomUnavailable)?;
    Ok(secret_from_bytes(&bytes))
}

/// The `whsec_` notation of a key, for callers that bring their own random bytes.
pub fn secret_from_bytes(bytes: &[u8; 32]) -> String {
    format!("{SYMMETRIC_PREFIX}{}", STANDARD.encode(bytes))
}

/// A new random `whsk_` ed25519 signing key. Its public half is told by [`public_key`].
///
/// Errors: only if the operating system gives no random bytes.
pub fn generate_signing_key() -> Result<String, RandomUnavailable> {
    let mut key = [0; SEED_BYTES + ED25519_KEY_BYTES];
    let (seed, public) = key.split_at_mut(SEED_BYTES);
    rand::fill(seed).map_err(|_| RandomUnavailable)?;
    let pair = Ed25519KeyPair::from_seed_unchecked(seed).map_err(|_| RandomUnavailable)?;
    public.copy_from_slice(pair.public_key().as_ref());
    Ok(format!("{SIGNING_PREFIX}{}", STANDARD.encode(key)))
}

/// The `whpk_` public key of a `whsk_` signing key: what receivers are given.
///
/// Errors: `NotASigningKey` if the text is none, or if its two halves do not belong together.
pub fn public_key(signing_key: &str) -> Result<String, SecretError> {
    let pair = decode_signing_key(signing_key)?;
    Ok(format!("{PUBLIC_PREFIX}{}", STANDARD.encode(pair.public_key().as_ref())))
}

/// The key bytes of a symmetric Standard Webhooks secret; the prefix is only a label.
///
/// Keys under 24 bytes are refused even here: a truncated paste must never verify. Longer ones than the specification
/// allows are taken, as every SDK does; [`check_secret`] refuses them where a person chooses.
pub(crate) fn decode_symmetric(secret: &str) -> Result<Vec<u8>, SecretError> {
    if secret.starts_with(SIGNING_PREFIX) || secret.starts_with(PUBLIC_PREFIX) {
        return Err(SecretError::WrongKind { expected: "a symmetric secret, whsec_" });
    }
    let text = secret.strip_prefix(SYMMETRIC_PREFIX).unwrap_or(secret);
    check_not_empty(text)?;
    let key = BASE64_PADDING_OPTIONAL.decode(text).map_err(|_| SecretError::NotBase64)?;
    if key.len() < KEY_BYTES_MIN { Err(SecretError::TooShort) } else { Ok(key) }
}

/// The 32 bytes of a `whpk_` key. Without the prefix nothing tells it from a symmetric secret, so it is refused.
pub(crate) fn decode_public_key(secret: &str) -> Result<[u8; ED25519_KEY_BYTES], SecretError> {
    let text = secret
        .strip_prefix(PUBLIC_PREFIX)
        .ok_or(SecretError::WrongKind { expected: "a public key, whpk_" })?;
    encoding::base64(text.as_bytes()).ok_or(SecretError::NotAPublicKey)
}

/// The 32 bytes of a public key in hexadecimal, of either case.
pub(crate) fn decode_hex_public_key(secret: &str) -> Result<[u8; ED25519_KEY_BYTES], SecretError> {
    encoding::hex(secret.as_bytes(), HexCase::Any).ok_or(SecretError::NotAPublicKey)
}

/// The curve point of a P-256 public key given as base64 of its SPKI.
pub(crate) fn decode_p256_public_key(secret: &str) -> Result<Vec<u8>, SecretError> {
    let spki = STANDARD.decode(secret).map_err(|_| SecretError::NotAPublicKey)?;
    match spki.strip_prefix(&P256_SPKI_PREFIX) {
        Some(point) if point.len() == P256_POINT_BYTES => Ok(point.to_vec()),
        _ => Err(SecretError::NotAPublicKey),
    }
}

/// The key pair of a `whsk_` key, which holds seed and public key, checked against each other.
pub(crate) fn decode_signing_key(secret: &str) -> Result<Ed25519KeyPair, SecretError> {
    let text = secret
        .strip_prefix(SIGNING_PREFIX)
        .ok_or(SecretError::WrongKind { expected: "a signing key, whsk_" })?;
    let bytes: [u8; SEED_BYTES + ED25519_KEY_BYTES] =
        encoding::base64(text.as_bytes()).ok_or(SecretError::NotASigningKey)?;
    let (seed, public) = bytes.split_at(SEED_BYTES);
    Ed25519KeyPair::from_seed_and_public_key(seed, public).map_err(|_| SecretError::NotASigningKey)
}

fn check_white_space(secret: &str) -> Result<(), SecretError> {
    if secret.trim().len() == secret.len() { Ok(()) } else { Err(SecretError::SurroundingWhiteSpace) }
}

fn check_not_empty(secret: &str) -> Result<(), SecretError> {
    if secret.is_empty() { Err(SecretError::Empty) } else { Ok(()) }
}

fn check_symmetric_length(key: &[u8]) -> Result<(), SecretError> {
    if key.len() > KEY_BYTES_MAX { Err(SecretError::TooLong) } else { Ok(()) }
}
