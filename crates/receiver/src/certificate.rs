//! The certificate of who signs: its RSA key, and the time in which it is in force.
//!
//! Whose it is, is not looked at: the caller fetched it over TLS from the one who signs. The chain above it isn't either:
//! SNS serves none.

use aws_lc_rs::signature::{
    ParsedPublicKey, RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY, RSA_PKCS1_2048_8192_SHA256,
};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rustls_pki_types::CertificateDer;
use webpki::EndEntityCert;

use crate::civil::{Civil, digits};
use crate::{Reason, Rejection};

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

const INTEGER: u8 = 0x02;
const UTC_TIME: u8 = 0x17;
const GENERALIZED_TIME: u8 = 0x18;
const SEQUENCE: u8 = 0x30;
/// Of a certificate's version.
const CONTEXT_0: u8 = 0xa0;

const fn bad(detail: &'static str) -> Rejection {
    Rejection::new(Reason::BadCertificate, detail)
}

/// A certificate with an RSA key of 2,048 to 8,192 bits, read and ready to verify.
pub struct SigningCertificate {
    sha1: ParsedPublicKey,
    sha256: ParsedPublicKey,
    not_before_unix_ms: i64,
    not_after_unix_ms: i64,
}

/// The hash that was signed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum SignedHash {
    Sha1,
    Sha256,
}

impl SigningCertificate {
    /// Reads the first certificate of a PEM text.
    ///
    /// Errors: `bad_certificate` if there is none, or it can't be read, or its key is no RSA key of that size.
    pub fn from_pem(pem: &[u8]) -> Result<Self, Rejection> {
        let text = std::str::from_utf8(pem).map_err(|_| bad("certificate is no PEM text"))?;
        let inner = text.split_once(BEGIN).and_then(|(_, rest)| rest.split_once(END));
        let (base64, _) = inner.ok_or(bad("certificate is no PEM text"))?;
        let base64: String = base64.split_ascii_whitespace().collect();
        let der = STANDARD.decode(base64).map_err(|_| bad("certificate is not base64"))?;
        Self::from_der(&der)
    }

    fn from_der(der: &[u8]) -> Result<Self, Rejection> {
        let unreadable = bad("certificate can't be read");
        let certificate = CertificateDer::from(der);
        let certificate = EndEntityCert::try_from(&certificate).map_err(|_| unreadable)?;
        let key = certificate.subject_public_key_info();
        let (not_before_unix_ms, not_after_unix_ms) = validity(der).ok_or(unreadable)?;
        let key = |algorithm| {
            ParsedPublicKey::new(algorithm, &key)
                .map_err(|_| bad("certificate's key is no RSA key of 2,048 to 8,192 bits"))
        };
        Ok(Self {
            sha1: key(&RSA_PKCS1_2048_8192_SHA1_FOR_LEGACY_USE_ONLY)?,
            sha256: key(&RSA_PKCS1_2048_8192_SHA256)?,
            not_before_unix_ms,
            not_after_unix_ms,
        })
    }

    /// Whether it is in force at that time.
    pub fn is_in_force(&self, now_unix_ms: i64) -> bool {
        // Both ends are whole seconds, and belong to it.
        (self.not_before_unix_ms..self.not_after_unix_ms.saturating_add(1_000)).contains(&now_unix_ms)
    }

    /// Whether `signature` is by its key over `message`.
    pub(crate) fn fits(&self, hash: SignedHash, message: &[u8], signature: &[u8]) -> bool {
        let key = match hash {
            SignedHash::Sha1 => &self.sha1,
            SignedHash::Sha256 => &self.sha256,
        };
        key.verify_sig(message, signature).is_ok()
    }
}

impl std::fmt::Debug for SigningCertificate {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("SigningCertificate")
            .field("not_before_unix_ms", &self.not_before_unix_ms)
            .field("not_after_unix_ms", &self.not_after_unix_ms)
            .finish_non_exhaustive()
    }
}

/// `notBefore` and `notAfter`, which webpki keeps to itself.
///
/// Source: <https://www.rfc-editor.org/rfc/rfc5280#section-4.1>.
fn validity(der: &[u8]) -> Option<(i64, i64)> {
    let (certificate, _) = element(der, SEQUENCE)?;
    let (mut rest, _) = element(certificate, SEQUENCE)?;
    if let Some((_, after_version)) = element(rest, CONTEXT_0) {
        rest = after_version;
    }
    // The serial number, the algorithm and the issuer stand before it.
    for tag in [INTEGER, SEQUENCE, SEQUENCE] {
        (_, rest) = element(rest, tag)?;
    }
    let (validity, _) = element(rest, SEQUENCE)?;
    let (not_before, rest) = time(validity)?;
    let (not_after, _) = time(rest)?;
    Some((not_before, not_after))
}

/// The content of the element of this tag that begins `der`, and what follows it.
fn element(der: &[u8], tag: u8) -> Option<(&[u8], &[u8])> {
    let (&[given, first], rest) = der.split_first_chunk::<2>()?;
    let (length, rest) = match first {
        0..=0x7f => (usize::from(first), rest),
        0x81 => rest.split_first().map(|(&length, rest)| (usize::from(length), rest))?,
        0x82 => rest.split_first_chunk().map(|(&two, rest)| (usize::from(u16::from_be_bytes(two)), rest))?,
        _ => return None,
    };
    (given == tag).then(|| rest.split_at_checked(length)).flatten()
}

/// A time, in one of the two forms that certificates have, and what follows it.
fn time(der: &[u8]) -> Option<(i64, &[u8])> {
    let (text, rest, year, after_year) = if let Some((text, rest)) = element(der, UTC_TIME) {
        let year = digits(text.get(..2)?)?;
        (text, rest, year + if year < 50 { 2_000 } else { 1_900 }, 2)
    } else {
        let (text, rest) = element(der, GENERALIZED_TIME)?;
        (text, rest, digits(text.get(..4)?)?, 4)
    };
    let (parts, [b'Z']) = text.get(after_year..)?.split_first_chunk::<10>()? else { return None };
    let civil = Civil {
        year,
        month: digits(&parts[..2])?,
        day: digits(&parts[2..4])?,
        hour: digits(&parts[4..6])?,
        minute: digits(&parts[6..8])?,
        second: digits(&parts[8..])?,
        ms: 0,
    };
    Some((civil.unix_ms()?, rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_a1_times_of_certificates_are_read_in_their_two_forms() {
        let utc = [&[UTC_TIME, 13], b"240101000000Z".as_slice()].concat();
        assert_eq!(time(&utc), Some((1_704_067_200_000, [].as_slice())));
        let last_century = [&[UTC_TIME, 13], b"500101000000Z".as_slice()].concat();
        assert_eq!(time(&last_century).map(|(at, _)| at), Some(-631_152_000_000));
        let general = [&[GENERALIZED_TIME, 15], b"20500101000000Z".as_slice(), b"rest"].concat();
        assert_eq!(time(&general), Some((2_524_608_000_000, b"rest".as_slice())));
        for odd in ["240101000000", "2401010000Z", "240101000000+", "24010100000xZ", ""] {
            let length = u8::try_from(odd.len()).unwrap_or(0);
            assert_eq!(time(&[&[UTC_TIME, length], odd.as_bytes()].concat()), None, "{odd}");
        }
    }

    #[test]
    fn r_a1_elements_that_are_cut_off_are_none() {
        assert_eq!(element(&[SEQUENCE, 2, 1, 2, 3], SEQUENCE), Some(([1, 2].as_slice(), [3].as_slice())));
        assert_eq!(element(&[SEQUENCE, 0x81, 1, 9], SEQUENCE), Some(([9].as_slice(), [].as_slice())));
        for cut in
            [&[][..], &[SEQUENCE], &[SEQUENCE, 3, 1], &[SEQUENCE, 0x82, 1], &[SEQUENCE, 0x80], &[INTEGER, 0]]
        {
            assert_eq!(element(cut, SEQUENCE), None, "{cut:?}");
        }
    }
}
