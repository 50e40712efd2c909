//! Svix: Standard Webhooks under `svix-*` names; the unbranded names count only when no `svix-*` header is there.

use super::Verify;
use super::standard_webhooks::{Names, STANDARD_NAMES, StandardWebhooks};
use crate::timestamp::Window;
use crate::{Rejection, Request, SecretError, Verified};

const SVIX_NAMES: Names = Names { id: "svix-id", timestamp: "svix-timestamp", signature: "svix-signature" };

/// Svix signatures. The two sets of names are never mixed.
pub(super) struct Svix(StandardWebhooks);

impl Svix {
    pub(super) fn new(secrets: &[&str], window: Window) -> Result<Self, SecretError> {
        StandardWebhooks::new(secrets, window).map(Self)
    }
}

impl Verify for Svix {
    fn verify<'a>(&self, request: &Request<'a>, now_unix_ms: i64) -> Result<Verified<'a>, Rejection> {
        let branded = [SVIX_NAMES.id, SVIX_NAMES.timestamp, SVIX_NAMES.signature];
        let names = if branded.iter().any(|name| request.has(name)) { &SVIX_NAMES } else { &STANDARD_NAMES };
        self.0.verify_named(request, names, now_unix_ms)
    }
}
