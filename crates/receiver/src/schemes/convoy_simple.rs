//! Convoy's simple signature: an HMAC of the body in `X-Convoy-Signature`, hexadecimal SHA-256 unless configured.

use crate::{HmacAlgorithm, HmacEncoding, HmacOptions};

/// The settings of the generic scheme that make it Convoy's.
pub(super) fn settings(configured: Option<&HmacOptions>) -> HmacOptions {
    HmacOptions {
        header: "x-convoy-signature".to_owned(),
        algorithm: configured.map_or(HmacAlgorithm::Sha256, |settings| settings.algorithm),
        encoding: configured.map_or(HmacEncoding::Hex, |settings| settings.encoding),
        prefix: None,
    }
}
