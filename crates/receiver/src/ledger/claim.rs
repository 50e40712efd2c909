//! What is asked: a claim, and the limits of its parts.

use std::time::Duration;

use aws_lc_rs::rand;

use super::OnExpired;

/// Bytes of a key, at least 1: a message's key of 256, `:`, a destination of 64.
pub const EVENT_KEY_BYTES_MAX: usize = 321;

/// Bytes of a fingerprint, at least 1.
pub const FINGERPRINT_BYTES_MAX: usize = 256;

/// Bytes of a claim's token, at least 1.
pub const CLAIM_ID_BYTES_MAX: usize = 128;

/// The longest lease: 12 hours.
pub const LEASE_MAX: Duration = Duration::from_hours(12);

/// A claim of one key: asked before its effect.
///
/// Made new for each delivery: its token tells the claimers apart. Clone it only to ask again when the answer was lost.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Claim {
    pub(crate) key: Box<str>,
    pub(crate) claim_id: Box<str>,
    pub(crate) lease: Duration,
    pub(crate) fingerprint: Option<Box<str>>,
    pub(crate) on_expired: OnExpired,
}

/// Why no claim can be made of these parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum ClaimError {
    /// The key can't be used, now or later.
    #[error("a key has 1 to {EVENT_KEY_BYTES_MAX} bytes and no NUL")]
    Key,
    /// The lease can't be used.
    #[error("a lease lasts a millisecond to 12 hours")]
    Lease,
    /// The fingerprint can't be used.
    #[error("a fingerprint has 1 to {FINGERPRINT_BYTES_MAX} bytes and no NUL")]
    Fingerprint,
    /// The token can't be used.
    #[error("a claim's token has 1 to {CLAIM_ID_BYTES_MAX} bytes and no NUL")]
    ClaimId,
    /// The operating system gave no random bytes for the token.
    #[error("the operating system gave no random bytes")]
    Random,
}

impl Claim {
    /// A claim of `key`, with a random token. A grant that runs out is taken over by the next claim.
    ///
    /// `lease`: a millisecond to [`LEASE_MAX`]; longer than the effect takes. It is a matter of how soon a successor may
    /// begin after a crash, not of safety: a late effect rolls back if somebody else was granted the key meanwhile.
    ///
    /// Errors: `Key` and `Lease`, which won't get better; `Random`.
    pub fn new(key: &str, lease: Duration) -> Result<Self, ClaimError> {
        check(key, EVENT_KEY_BYTES_MAX, ClaimError::Key)?;
        if lease < Duration::from_millis(1) || lease > LEASE_MAX {
            return Err(ClaimError::Lease);
        }
        let claim_id = random_token()?;
        Ok(Self { key: key.into(), claim_id, lease, fingerprint: None, on_expired: OnExpired::Retake })
    }

    /// Says what the payload is, such as its SHA-256 in hexadecimal: the same key with another one is refused.
    ///
    /// Errors: `Fingerprint`.
    pub fn fingerprint(mut self, fingerprint: &str) -> Result<Self, ClaimError> {
        check(fingerprint, FINGERPRINT_BYTES_MAX, ClaimError::Fingerprint)?;
        self.fingerprint = Some(fingerprint.into());
        Ok(self)
    }

    /// Names the request instead of by a random token. Whoever says the same token gets the same grant, so it must name
    /// one worker's one try: never a delivery's id, which its redelivery has too.
    ///
    /// Errors: `ClaimId`.
    pub fn claim_id(mut self, claim_id: &str) -> Result<Self, ClaimError> {
        check(claim_id, CLAIM_ID_BYTES_MAX, ClaimError::ClaimId)?;
        self.claim_id = claim_id.into();
        Ok(self)
    }

    /// Says what becomes of the grant if it runs out.
    pub fn on_expired(mut self, on_expired: OnExpired) -> Self {
        self.on_expired = on_expired;
        self
    }

    /// The key.
    pub fn key(&self) -> &str {
        &self.key
    }

    #[allow(dead_code, reason = "used by the drivers")]
    pub(crate) fn lease_ms(&self) -> i64 {
        millis(self.lease)
    }
}

/// Whole milliseconds; durations of leases fit.
#[allow(dead_code, reason = "used by the drivers")]
pub(crate) fn millis(duration: Duration) -> i64 {
    i64::try_from(duration.as_millis()).unwrap_or(i64::MAX)
}

fn check(text: &str, bytes_max: usize, error: ClaimError) -> Result<(), ClaimError> {
    if text.is_empty() || text.len() > bytes_max || text.contains('\0') { Err(error) } else { Ok(()) }
}

fn random_token() -> Result<Box<str>, ClaimError> {
    let mut bytes = [0; 16];
    rand::fill(&mut bytes).map_err(|_| ClaimError::Random)?;
    Ok(format!("{:032x}", u128::from_be_bytes(bytes)).into())
}
