//! Compressed bodies, unpacked under a cap. Row A3.

use std::io::Read;

use flate2::read::{MultiGzDecoder, ZlibDecoder};

/// Why a body could not be unpacked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum DecodeError {
    /// The encoding is none of `gzip`, `deflate`, `identity`.
    Unsupported,
    /// The bytes are not what the encoding says.
    Malformed,
    /// It would be longer than allowed. Unpacking stopped there.
    TooLarge,
}

/// Unpacks `body`; at most `bytes_max` bytes come out and are held in memory.
pub(crate) fn decode(encoding: &str, body: &[u8], bytes_max: usize) -> Result<Vec<u8>, DecodeError> {
    match encoding.trim().to_ascii_lowercase().as_str() {
        "gzip" | "x-gzip" => read(MultiGzDecoder::new(body), bytes_max),
        "deflate" => read(ZlibDecoder::new(body), bytes_max),
        _ => Err(DecodeError::Unsupported),
    }
}

/// Whether `encoding` says that the body is as it is.
pub(crate) fn is_identity(encoding: &str) -> bool {
    let encoding = encoding.trim();
    encoding.is_empty() || encoding.eq_ignore_ascii_case("identity")
}

fn read(decoder: impl Read, bytes_max: usize) -> Result<Vec<u8>, DecodeError> {
    let mut unpacked = Vec::new();
    // One byte more than allowed tells "too large" from "just fits".
    let limit = u64::try_from(bytes_max).unwrap_or(u64::MAX).saturating_add(1);
    decoder.take(limit).read_to_end(&mut unpacked).map_err(|_| DecodeError::Malformed)?;
    if unpacked.len() > bytes_max { Err(DecodeError::TooLarge) } else { Ok(unpacked) }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use flate2::{Compression, write::GzEncoder};

    use super::*;

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    #[test]
    fn r_a3_a_body_is_unpacked_under_a_cap() {
        let packed = gzip(b"{\"a\":1}");
        assert_eq!(Ok(b"{\"a\":1}".to_vec()), decode("gzip", &packed, 7));
        assert_eq!(Ok(b"{\"a\":1}".to_vec()), decode(" GZIP ", &packed, 100));
        assert_eq!(Err(DecodeError::TooLarge), decode("gzip", &packed, 6));
        assert_eq!(Err(DecodeError::Malformed), decode("gzip", b"{\"a\":1}", 100));
        assert_eq!(Err(DecodeError::Malformed), decode("gzip", &packed[..12], 100));
        assert_eq!(Err(DecodeError::Unsupported), decode("br", &packed, 100));
        let bomb = gzip(&vec![0; 64 * 1024 * 1024]);
        assert!(bomb.len() < 128 * 1024);
        assert_eq!(Err(DecodeError::TooLarge), decode("gzip", &bomb, 256 * 1024));
    }
}
