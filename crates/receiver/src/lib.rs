//! Signs outbound webhooks and verifies inbound ones, without any web framework.
//!
//! Inbound: build a [`Verifier`] once from a [`Scheme`], the secrets and [`VerifyOptions`], then call
//! [`Verifier::verify`] with the exact bytes received. Outbound: build a [`Signer`] once and call [`Signer::sign`] just
//! before each attempt is sent.
//!
//! And once a delivery is believed, [`ledger`] sees to it that its effect happens once.
//!
//! AWS SNS is verified by a certificate that its message names, and that the caller fetches: see [`SnsVerifier`].
//!
//! The crate reads no clock, opens no socket and parses no body before its signature fits, but where the signature is in
//! the body (AWS SNS, Mailgun). Errors never hold a secret,
//! a body or a signature.
//!
//! ```
//! use posthaste_receiver::{Request, Scheme, Verifier, VerifyOptions};
//!
//! let options = VerifyOptions { tolerance_seconds: None, hmac: None };
//! let verifier = Verifier::new(Scheme::GitHub, &["It's a Secret to Everybody"], &options)?;
//! let headers: [(&str, &[u8]); 1] = [(
//!     "X-Hub-Signature-256",
//!     b"sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17",
//! )];
//! let request = Request { method: "POST", url: "/hook", headers: &headers, body: b"Hello, World!" };
//! assert!(verifier.verify(&request, 1_754_034_123_000).is_ok());
//! # Ok::<(), posthaste_receiver::BuildError>(())
//! ```

mod certificate;
mod civil;
mod encoding;
mod keys;
pub mod ledger;
mod once;
mod options;
mod outcome;
mod request;
mod scheme;
mod schemes;
mod secret;
mod signer;
mod timestamp;
mod verifier;

pub use certificate::SigningCertificate;
pub use once::{OnceError, verify_once};
pub use options::{HmacAlgorithm, HmacEncoding, HmacOptions, OptionError, VerifyOptions};
pub use outcome::{Reason, Rejection, Verified};
pub use request::Request;
pub use scheme::{Scheme, UnknownScheme};
pub use schemes::{SnsKind, SnsMessage, SnsVerified, SnsVerifier};
pub use secret::{
    RandomUnavailable, SecretError, check_secret, check_signing_secret, generate_secret,
    generate_signing_key, public_key, secret_from_bytes,
};
pub use signer::Signer;
pub use verifier::{BuildError, Verifier};

/// The most signatures of one request that are tried; a request with more is refused as `malformed_header`.
pub const SIGNATURES_MAX: usize = 32;

/// The most secrets that one verifier or signer holds.
pub const SECRETS_MAX: usize = 16;
