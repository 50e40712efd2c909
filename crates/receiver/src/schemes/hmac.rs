//! HMAC of the body in a header of the operator's choice.
//!
//! Takes hexadecimal of either case and white space around the tag, since senders of this kind vary; the prefix is compared
//! with its case.

use super::{Verify, require_fit};
use crate::encoding::{self, HexCase};
use crate::keys::HmacKeys;
use crate::{BuildError, HmacEncoding, HmacOptions, OptionError, Reason, Rejection, Request, Verified};

/// The longest tag, of SHA-512.
const TAG_BYTES_MAX: usize = 64;

/// A configured HMAC scheme.
pub(super) struct BodyHmac {
    keys: HmacKeys,
    header: Box<str>,
    prefix: Box<str>,
    tag_bytes: usize,
    encoding: HmacEncoding,
}

impl BodyHmac {
    pub(super) fn new(secrets: &[&str], settings: &HmacOptions) -> Result<Self, BuildError> {
        check_header_name(&settings.header)?;
        Ok(Self {
            keys: HmacKeys::from_text(settings.algorithm.algorithm(), secrets)?,
            header: settings.header.as_str().into(),
            prefix: settings.prefix.as_deref().unwrap_or_default().into(),
            tag_bytes: settings.algorithm.tag_bytes(),
            encoding: settings.encoding,
        })
    }
}

impl Verify for BodyHmac {
    fn verify<'a>(&self, request: &Request<'a>, _: i64) -> Result<Verified<'a>, Rejection> {
        let header = request.required(&self.header)?.trim_ascii();
        let Some(text) = header.strip_prefix(self.prefix.as_bytes()) else {
            return Err(Rejection::new(Reason::MalformedHeader, "signature lacks its prefix"));
        };
        let mut tag = [0; TAG_BYTES_MAX];
        let tag = &mut tag[..self.tag_bytes];
        match self.encoding {
            HmacEncoding::Hex => encoding::hex_into(text.trim_ascii(), HexCase::Any, tag),
            HmacEncoding::Base64 => encoding::base64_into(text.trim_ascii(), tag),
        }
        .ok_or(Rejection::mismatch())?;
        require_fit(self.keys.any_fits(&[request.body], &[&*tag]))?;
        Ok(Verified { delivery_id: None, event_type: None, signed_at_unix_ms: None })
    }
}

/// A header name is a token. Source: <https://www.rfc-editor.org/rfc/rfc9110#section-5.6.2>.
fn check_header_name(name: &str) -> Result<(), OptionError> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    if !name.is_empty() && name.bytes().all(token) { Ok(()) } else { Err(OptionError::InvalidHeaderName) }
}
