//! Twilio: `X-Twilio-Signature: <base64>`, an HMAC of the URL and of the decoded parameters of a form, sorted; where the URL
//! holds `bodySHA256`, of the URL alone, and that is the hash of the body.
//!
//! Source: <https://www.twilio.com/docs/usage/webhooks/webhooks-security>. With a shared key, the header
//! `X-Twilio-Webhooks-Signature-Settings` names the hash; else it is SHA-1. A body without `bodySHA256` is always read as a
//! form, whatever its content type says, so that none is left unsigned. Nothing separates names from values in what is signed,
//! and there is no time in it: who saw a delivery can send it again, its fields cut differently. The delivery id comes from a
//! header that is not signed.

use std::collections::{BTreeMap, BTreeSet};

use aws_lc_rs::digest::{SHA256, digest};
use aws_lc_rs::hmac::{HMAC_SHA1_FOR_LEGACY_USE_ONLY, HMAC_SHA256};

use super::{Verify, require_fit};
use crate::encoding::{self, HexCase};
use crate::keys::{HmacKeys, SHA256_BYTES};
use crate::{HmacAlgorithm, Reason, Rejection, Request, SecretError, Verified};

/// Twilio's signature.
pub(super) struct Twilio {
    sha1: HmacKeys,
    sha256: HmacKeys,
}

impl Twilio {
    pub(super) fn new(secrets: &[&str]) -> Result<Self, SecretError> {
        Ok(Self {
            sha1: HmacKeys::from_text(HMAC_SHA1_FOR_LEGACY_USE_ONLY, secrets)?,
            sha256: HmacKeys::from_text(HMAC_SHA256, secrets)?,
        })
    }
}

impl Verify for Twilio {
    fn verify<'a>(&self, request: &Request<'a>, _: i64) -> Result<Verified<'a>, Rejection> {
        let header = request.required("x-twilio-signature")?;
        let algorithm = algorithm(request)?;
        let parameters = match body_hash(request.url)? {
            Some(hash) => {
                let hash = encoding::hex::<SHA256_BYTES>(hash, HexCase::Lower);
                if hash.is_none_or(|hash| digest(&SHA256, request.body).as_ref() != hash) {
                    return Err(Rejection::new(Reason::BodyHashMismatch, "body's hash is not the URL's"));
                }
                String::new()
            }
            None => sorted_parameters(request.body),
        };
        let mut tag = [0; SHA256_BYTES];
        let tag = &mut tag[..algorithm.tag_bytes()];
        encoding::base64_into(header, tag).ok_or(Rejection::mismatch())?;
        let keys = if algorithm == HmacAlgorithm::Sha256 { &self.sha256 } else { &self.sha1 };
        let fits = |url: &String| {
            keys.any_fits(&[url.as_bytes(), parameters.as_bytes()], std::slice::from_ref(&tag))
        };
        require_fit(spellings(request.url).iter().any(fits))?;
        Ok(Verified {
            delivery_id: request.text("i-twilio-idempotency-token"),
            event_type: None,
            signed_at_unix_ms: None,
        })
    }
}

/// SHA-1, unless the settings of a shared key say otherwise: `key=…,algorithm=HMAC_SHA256`.
fn algorithm(request: &Request<'_>) -> Result<HmacAlgorithm, Rejection> {
    const SETTINGS: &str = "x-twilio-webhooks-signature-settings";
    if !request.has(SETTINGS) {
        return Ok(HmacAlgorithm::Sha1);
    }
    let settings = request.required(SETTINGS)?;
    let named =
        settings.split(|&byte| byte == b',').find_map(|pair| pair.trim_ascii().strip_prefix(b"algorithm="));
    match named {
        Some(b"HMAC_SHA1") => Ok(HmacAlgorithm::Sha1),
        Some(b"HMAC_SHA256") => Ok(HmacAlgorithm::Sha256),
        Some(_) | None => Err(Rejection::new(Reason::UnsupportedVersion, "no signature of a known hash")),
    }
}

/// The value of `bodySHA256` in the URL; two are ambiguous.
fn body_hash(url: &str) -> Result<Option<&[u8]>, Rejection> {
    let query = url.split('#').next().and_then(|url| url.split_once('?')).map_or("", |(_, query)| query);
    let mut hashes =
        query.split('&').filter_map(|pair| pair.split_once('=')).filter(|(name, _)| *name == "bodySHA256");
    let first = hashes.next().map(|(_, hash)| hash.as_bytes());
    if hashes.next().is_some() {
        return Err(Rejection::new(Reason::BodyHashMismatch, "two hashes of the body in one URL"));
    }
    Ok(first)
}

/// The fields of a form by name; the values of one name sorted, each once; names and values end to end.
fn sorted_parameters(body: &[u8]) -> String {
    let mut fields: BTreeMap<String, BTreeSet<String>> = BTreeMap::new();
    for pair in body.split(|&byte| byte == b'&').filter(|pair| !pair.is_empty()) {
        let equals = pair.iter().position(|&byte| byte == b'=').unwrap_or(pair.len());
        let value = pair.get(equals + 1..).unwrap_or_default();
        fields.entry(form_decoded(&pair[..equals])).or_default().insert(form_decoded(value));
    }
    let mut text = String::with_capacity(body.len());
    for (name, values) in &fields {
        for value in values {
            text.push_str(name);
            text.push_str(value);
        }
    }
    text
}

/// Undoes the form encoding: `+` is a space; an escape that is none stays as it is.
fn form_decoded(text: &[u8]) -> String {
    let mut decoded = Vec::with_capacity(text.len());
    let mut rest = text;
    while let Some((&first, after)) = rest.split_first() {
        let escaped =
            after.get(..2).filter(|_| first == b'%').and_then(|two| encoding::hex::<1>(two, HexCase::Any));
        match (first, escaped) {
            (_, Some([byte])) => {
                decoded.push(byte);
                rest = &after[2..];
                continue;
            }
            (b'+', None) => decoded.push(b' '),
            (_, None) => decoded.push(first),
        }
        rest = after;
    }
    String::from_utf8_lossy(&decoded).into_owned()
}

/// How the URL may have been written when it was signed: as it is, and as the SDKs try it, its host in small letters, with
/// the port and without.
fn spellings(url: &str) -> Vec<String> {
    let mut spellings = vec![url.to_owned()];
    let Some((scheme, rest)) = url.split_once("://") else { return spellings };
    let (authority, rest) = rest.split_at(rest.find(['/', '?', '#']).unwrap_or(rest.len()));
    let (user, host) = authority.rsplit_once('@').map_or(("", authority), |(user, host)| (user, host));
    let user = if user.is_empty() { String::new() } else { format!("{user}@") };
    let port_of = |port: &&str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    let (host, port) = match host.rsplit_once(':').filter(|(_, port)| port_of(port)) {
        Some((host, port)) => (host, port),
        None => (host, if scheme.eq_ignore_ascii_case("https") { "443" } else { "80" }),
    };
    let host = host.to_ascii_lowercase();
    for spelling in
        [format!("{scheme}://{user}{host}{rest}"), format!("{scheme}://{user}{host}:{port}{rest}")]
    {
        if !spellings.contains(&spelling) {
            spellings.push(spelling);
        }
    }
    spellings
}
