//! Headers of `key=value` fields with a timestamp and any number of hexadecimal signatures (Stripe, Paddle).

use crate::encoding::{self, Candidates, HexCase};
use crate::keys::SHA256_BYTES;
use crate::{Reason, Rejection};

/// How such a header is written. Keys are matched exactly: white space and letter case count.
pub(super) struct Format {
    pub(super) separator: u8,
    pub(super) timestamp_key: &'static [u8],
    pub(super) signature_key: &'static [u8],
    /// The reason when there is no field of `signature_key`.
    pub(super) without_signature: Reason,
}

/// A header that was read.
pub(super) struct Pairs<'a> {
    /// The timestamp as it is written, which is what is signed.
    pub(super) timestamp: &'a [u8],
    /// The signatures that are 64 lower-case digits.
    pub(super) signatures: Candidates<SHA256_BYTES>,
}

/// Reads the header. Unknown and empty fields are skipped; a second timestamp is ambiguous, since SDKs differ on which
/// one counts.
pub(super) fn read<'a>(header: &'a [u8], format: &Format) -> Result<Pairs<'a>, Rejection> {
    let mut timestamp = None;
    let mut signatures = Candidates::new();
    let mut signed = false;
    for field in header.split(|&byte| byte == format.separator) {
        let Some(equals) = field.iter().position(|&byte| byte == b'=') else { continue };
        let (key, value) = (&field[..equals], &field[equals + 1..]);
        if key == format.timestamp_key {
            if timestamp.replace(value).is_some() {
                return Err(Rejection::new(Reason::MalformedHeader, "two timestamps in one header"));
            }
        } else if key == format.signature_key {
            signatures.count()?;
            signed = true;
            signatures.keep(encoding::hex(value, HexCase::Lower));
        }
    }
    let Some(timestamp) = timestamp else {
        return Err(Rejection::new(Reason::MalformedHeader, "no timestamp in the signature header"));
    };
    if !signed {
        return Err(Rejection::new(format.without_signature, "no signature of a known version"));
    }
    Ok(Pairs { timestamp, signatures })
}
