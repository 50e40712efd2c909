//! Strict decoders for signature text, and the list of signatures a header offers.
//!
//! They decode instead of comparing text, so that the comparison is over equal lengths; each accepts exactly one spelling
//! of a value unless its name says otherwise.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::{Rejection, SIGNATURES_MAX};

/// Enough for 64 decoded bytes, by the decoder's own cautious estimate.
const SCRATCH_BYTES: usize = 72;

/// Which hexadecimal digits are taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HexCase {
    /// `0-9a-f`, as the SDKs that compare text.
    Lower,
    /// Upper case as well.
    Any,
}

/// Decodes hexadecimal text of exactly `N` bytes.
pub(crate) fn hex<const N: usize>(text: &[u8], case: HexCase) -> Option<[u8; N]> {
    let mut out = [0; N];
    hex_into(text, case, &mut out)?;
    Some(out)
}

/// Decodes hexadecimal text that fills `out` exactly.
pub(crate) fn hex_into(text: &[u8], case: HexCase, out: &mut [u8]) -> Option<()> {
    if text.len() != out.len() * 2 {
        return None;
    }
    for (pair, byte) in text.chunks_exact(2).zip(out) {
        *byte = hex_digit(pair[0], case)? << 4 | hex_digit(pair[1], case)?;
    }
    Some(())
}

fn hex_digit(digit: u8, case: HexCase) -> Option<u8> {
    match digit {
        b'0'..=b'9' => Some(digit - b'0'),
        b'a'..=b'f' => Some(digit - b'a' + 10),
        b'A'..=b'F' if case == HexCase::Any => Some(digit - b'A' + 10),
        _ => None,
    }
}

/// Decodes padded base64 of the standard alphabet, of exactly `N` bytes.
pub(crate) fn base64<const N: usize>(text: &[u8]) -> Option<[u8; N]> {
    let mut out = [0; N];
    base64_into(text, &mut out)?;
    Some(out)
}

/// Decodes padded base64 of the standard alphabet that fills `out` (at most 64 bytes) exactly.
pub(crate) fn base64_into(text: &[u8], out: &mut [u8]) -> Option<()> {
    let mut scratch = [0; SCRATCH_BYTES];
    if text.len() != out.len().div_ceil(3) * 4 {
        return None;
    }
    let decoded = STANDARD.decode_slice(text, &mut scratch).ok()?;
    (decoded == out.len()).then(|| out.copy_from_slice(&scratch[..decoded]))
}

/// The signatures of one request that have the right shape, on the stack and limited in number.
pub(crate) struct Candidates<const N: usize> {
    items: [[u8; N]; SIGNATURES_MAX],
    kept: usize,
    seen: usize,
}

impl<const N: usize> Candidates<N> {
    pub(crate) fn new() -> Self {
        Self { items: [[0; N]; SIGNATURES_MAX], kept: 0, seen: 0 }
    }

    /// Counts an entry of any version, so that a header of thousands costs nothing.
    pub(crate) fn count(&mut self) -> Result<(), Rejection> {
        self.seen += 1;
        if self.seen > SIGNATURES_MAX { Err(Rejection::too_many_signatures()) } else { Ok(()) }
    }

    /// Keeps a signature; one that did not decode cannot fit and is left out.
    pub(crate) fn keep(&mut self, signature: Option<[u8; N]>) {
        if let (Some(signature), Some(slot)) = (signature, self.items.get_mut(self.kept)) {
            *slot = signature;
            self.kept += 1;
        }
    }

    pub(crate) fn as_slice(&self) -> &[[u8; N]] {
        &self.items[..self.kept]
    }
}
