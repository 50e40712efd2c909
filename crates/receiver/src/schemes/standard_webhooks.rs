//! Standard Webhooks: `webhook-id`, `webhook-timestamp` and space-separated `version,base64` signatures over
//! `id.timestamp.body`.
//!
//! Source: <https://github.com/standard-webhooks/standard-webhooks/blob/main/spec/standard-webhooks.md>.

use super::{Verify, require_fit};
use crate::encoding::{self, Candidates};
use crate::keys::{HmacKeys, SHA256_BYTES};
use crate::timestamp::{self, Window};
use crate::{Reason, Rejection, Request, SecretError, Verified};

/// The names of the three headers.
pub(super) struct Names {
    pub(super) id: &'static str,
    pub(super) timestamp: &'static str,
    pub(super) signature: &'static str,
}

/// The unbranded names of the specification.
pub(super) const STANDARD_NAMES: Names =
    Names { id: "webhook-id", timestamp: "webhook-timestamp", signature: "webhook-signature" };

/// Symmetric signatures, version `v1`.
pub(super) struct StandardWebhooks {
    keys: HmacKeys,
    window: Window,
}

impl StandardWebhooks {
    pub(super) fn new(secrets: &[&str], window: Window) -> Result<Self, SecretError> {
        Ok(Self { keys: HmacKeys::from_standard(secrets)?, window })
    }

    /// As [`Verify::verify`], under the given header names.
    pub(super) fn verify_named<'a>(
        &self,
        request: &Request<'a>,
        names: &Names,
        now_unix_ms: i64,
    ) -> Result<Verified<'a>, Rejection> {
        let stamp = Stamp::read(request, names, self.window, now_unix_ms)?;
        let signatures = signatures::<SHA256_BYTES>(request, names, b"v1")?;
        require_fit(self.keys.any_fits(&stamp.signed_parts(request.body), signatures.as_slice()))?;
        Ok(stamp.verified())
    }
}

impl Verify for StandardWebhooks {
    fn verify<'a>(&self, request: &Request<'a>, now_unix_ms: i64) -> Result<Verified<'a>, Rejection> {
        self.verify_named(request, &STANDARD_NAMES, now_unix_ms)
    }
}

/// Id and timestamp of a request, checked but not yet known to be signed.
pub(super) struct Stamp<'a> {
    id: &'a str,
    timestamp: &'a [u8],
    signed_at_unix_ms: i64,
}

impl<'a> Stamp<'a> {
    pub(super) fn read(
        request: &Request<'a>,
        names: &Names,
        window: Window,
        now_unix_ms: i64,
    ) -> Result<Self, Rejection> {
        let id = check_id(request.required(names.id)?)?;
        let timestamp = request.required(names.timestamp)?;
        if !request.has(names.signature) {
            return Err(Rejection::new(Reason::MissingHeader, "header absent or empty"));
        }
        let signed_at_unix_ms = window.check_seconds(timestamp::parse(timestamp)?, now_unix_ms)?;
        Ok(Self { id, timestamp, signed_at_unix_ms })
    }

    /// What is signed: the header's own text, not a number printed again.
    pub(super) fn signed_parts<'b>(&'b self, body: &'b [u8]) -> [&'b [u8]; 5] {
        [self.id.as_bytes(), b".", self.timestamp, b".", body]
    }

    pub(super) fn verified(&self) -> Verified<'a> {
        Verified {
            delivery_id: Some(self.id),
            event_type: None,
            signed_at_unix_ms: Some(self.signed_at_unix_ms),
        }
    }
}

/// Refuses ids that could hide an older timestamp.
///
/// The signed text is `id.timestamp.body`: a message whose body began with `text.<now>.` could be replayed with
/// `id = "<id>.<old timestamp>.text"` under a fresh timestamp and the same signature. So no part of an id after its first
/// dot may look like a Unix time. The specification asks senders to use no dot at all.
fn check_id(id: &[u8]) -> Result<&str, Rejection> {
    const UNIX_TIME_DIGITS_MIN: usize = 9;
    let looks_like_time =
        |part: &[u8]| part.len() >= UNIX_TIME_DIGITS_MIN && part.iter().all(u8::is_ascii_digit);
    if id.split(|&byte| byte == b'.').skip(1).any(looks_like_time) {
        return Err(Rejection::new(Reason::MalformedHeader, "id holds what looks like an older timestamp"));
    }
    std::str::from_utf8(id).map_err(|_| Rejection::new(Reason::MalformedHeader, "id is not text"))
}

/// The signatures of `version` in every line of the signature header, of whatever order; other versions are skipped.
///
/// Two lines, or two joined by `, ` on the way, are one list: rotation may be written so.
pub(super) fn signatures<const N: usize>(
    request: &Request<'_>,
    names: &Names,
    version: &[u8],
) -> Result<Candidates<N>, Rejection> {
    let mut candidates = Candidates::new();
    let mut absent = Rejection::new(Reason::MissingHeader, "header absent or empty");
    let mut known = false;
    for line in request.lines(names.signature) {
        let mut entries = line.split(|&byte| byte == b' ').filter(|entry| !entry.is_empty()).peekable();
        while let Some(entry) = entries.next() {
            candidates.count()?;
            let entry = match entry.strip_suffix(b",") {
                Some(joined) if entries.peek().is_some() && joined.contains(&b',') => joined,
                _ => entry,
            };
            let Some(comma) = entry.iter().position(|&byte| byte == b',') else {
                if absent.reason == Reason::MissingHeader {
                    absent = Rejection::new(Reason::MalformedHeader, "signature without a version");
                }
                continue;
            };
            if &entry[..comma] == version {
                known = true;
                candidates.keep(encoding::base64(&entry[comma + 1..]));
            } else {
                absent = Rejection::new(Reason::UnsupportedVersion, "no signature of a known version");
            }
        }
    }
    if known { Ok(candidates) } else { Err(absent) }
}
