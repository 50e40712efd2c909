//! The verifier: built once for a source, used for every request to it.

use std::fmt;

use crate::schemes::{self, Verify};
use crate::{OptionError, Rejection, Request, Scheme, SecretError, Verified, VerifyOptions};

/// Verifies requests of one source. Its keys are prepared once, at construction.
pub struct Verifier {
    scheme: Scheme,
    secrets: usize,
    rules: Box<dyn Verify>,
}

impl Verifier {
    /// A verifier that accepts a signature by any one of `secrets`, which are given as the provider shows them.
    ///
    /// `secrets`: 1 to [`crate::SECRETS_MAX`].
    ///
    /// Errors: `Secret` if any secret cannot be used, `Option` if the settings make no verifier. Nothing is verified with
    /// a part of the secrets.
    pub fn new(scheme: Scheme, secrets: &[&str], options: &VerifyOptions) -> Result<Self, BuildError> {
        let rules = schemes::build(scheme, secrets, options)?;
        Ok(Self { scheme, secrets: secrets.len(), rules })
    }

    /// Whether the request was signed with one of the secrets, within the tolerance of `now_unix_ms`.
    ///
    /// Works on the exact bytes, compares in constant time, and does not panic whatever the request holds.
    ///
    /// Errors: a [`Rejection`]; answer every one of them alike and enqueue nothing.
    pub fn verify<'a>(&self, request: &Request<'a>, now_unix_ms: i64) -> Result<Verified<'a>, Rejection> {
        self.rules.verify(request, now_unix_ms)
    }

    /// The scheme that this verifier was built for.
    pub fn scheme(&self) -> Scheme {
        self.scheme
    }
}

impl fmt::Debug for Verifier {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Verifier")
            .field("scheme", &self.scheme)
            .field("secrets", &self.secrets)
            .finish_non_exhaustive()
    }
}

/// Why no verifier could be built.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum BuildError {
    /// A secret cannot be used.
    #[error(transparent)]
    Secret(#[from] SecretError),
    /// The settings make no verifier.
    #[error(transparent)]
    Option(#[from] OptionError),
}
