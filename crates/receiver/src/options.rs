//! The settings of a verifier beside its secrets.

use std::str::FromStr;

use aws_lc_rs::hmac;

/// The settings of a verifier beside its secrets.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct VerifyOptions {
    /// How far a signed time may be from the clock, in seconds, inclusive. `None`: the scheme's own default. Zero means
    /// zero seconds, never "unlimited". Without effect where the scheme signs no time.
    pub tolerance_seconds: Option<u64>,
    /// Required by [`crate::Scheme::Hmac`]; [`crate::Scheme::ConvoySimple`] takes algorithm and encoding from it if it is
    /// given; without effect elsewhere.
    pub hmac: Option<HmacOptions>,
}

/// Where and how an HMAC of the body is sent. The key is the secret's own text.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HmacOptions {
    /// The header that holds the signature.
    pub header: String,
    /// The hash.
    pub algorithm: HmacAlgorithm,
    /// How the tag is written.
    pub encoding: HmacEncoding,
    /// Text before the tag, such as `sha256=`: required if set, and compared with its case.
    pub prefix: Option<String>,
}

/// The hash inside an HMAC.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HmacAlgorithm {
    /// SHA-1: only for old providers.
    Sha1,
    /// SHA-256.
    Sha256,
    /// SHA-384.
    Sha384,
    /// SHA-512.
    Sha512,
}

impl HmacAlgorithm {
    pub(crate) fn algorithm(self) -> hmac::Algorithm {
        match self {
            Self::Sha1 => hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY,
            Self::Sha256 => hmac::HMAC_SHA256,
            Self::Sha384 => hmac::HMAC_SHA384,
            Self::Sha512 => hmac::HMAC_SHA512,
        }
    }

    pub(crate) fn tag_bytes(self) -> usize {
        match self {
            Self::Sha1 => 20,
            Self::Sha256 => 32,
            Self::Sha384 => 48,
            Self::Sha512 => 64,
        }
    }
}

impl FromStr for HmacAlgorithm {
    type Err = OptionError;

    fn from_str(name: &str) -> Result<Self, OptionError> {
        match name {
            "sha1" => Ok(Self::Sha1),
            "sha256" => Ok(Self::Sha256),
            "sha384" => Ok(Self::Sha384),
            "sha512" => Ok(Self::Sha512),
            _ => Err(OptionError::UnknownAlgorithm),
        }
    }
}

/// How an HMAC tag is written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HmacEncoding {
    /// Hexadecimal, of either case.
    Hex,
    /// Base64 of the standard alphabet, padded.
    Base64,
}

impl FromStr for HmacEncoding {
    type Err = OptionError;

    fn from_str(name: &str) -> Result<Self, OptionError> {
        match name {
            "hex" => Ok(Self::Hex),
            "base64" => Ok(Self::Base64),
            _ => Err(OptionError::UnknownEncoding),
        }
    }
}

/// Settings that make no verifier.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OptionError {
    /// The `hmac` scheme was asked for without its settings.
    #[error("scheme hmac needs the name of its header")]
    MissingHmacOptions,
    /// The header's name is empty or holds characters that no header name has.
    #[error("signature header name is not a valid header name")]
    InvalidHeaderName,
    /// No such hash.
    #[error("unknown hmac algorithm; known are sha1, sha256, sha384, sha512")]
    UnknownAlgorithm,
    /// No such encoding.
    #[error("unknown signature encoding; known are hex, base64")]
    UnknownEncoding,
    /// No such setting.
    #[error("unknown scheme setting; known are header, algorithm (or hash), encoding, prefix")]
    UnknownSetting,
    /// The scheme verifies by a certificate, not by secrets: use [`crate::SnsVerifier`].
    #[error("scheme aws_sns verifies by a certificate, not by secrets")]
    NeedsCertificate,
    /// One verification was asked for, and no certificate given.
    #[error("scheme aws_sns needs the certificate: setting signing_cert_pem")]
    MissingCertificate,
    /// No topic was given: whoever has an AWS account could send.
    #[error("no topic is named that may send")]
    MissingTopic,
    /// The text names no topic.
    #[error("not the ARN of a topic, such as arn:aws:sns:us-east-1:123456789012:orders")]
    NotATopic,
}
