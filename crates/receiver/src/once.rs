//! One verification from names and strings, for `posthaste verify`.

use crate::{
    BuildError, HmacAlgorithm, HmacEncoding, HmacOptions, OptionError, Reason, Rejection, Request, Scheme,
    SigningCertificate, SnsVerifier, UnknownScheme, Verified, Verifier, VerifyOptions,
};

/// Verifies one request with everything given by name, as the test vectors do.
///
/// `now_unix`: seconds. `config`: the scheme's settings by name: `header`, `algorithm` (or `hash`), `encoding`, `prefix`
/// for `hmac` and `convoy_simple`; `signing_cert_pem` and, if only one topic may send, `topic_arn` for `aws_sns`; other schemes
/// ignore it. A secret that cannot be used is a rejection with the reason
/// `bad_secret`.
///
/// Errors: `UnknownScheme` and `Option` are the caller's fault, `Rejected` is the verdict.
pub fn verify_once<'a>(
    scheme_name: &str,
    secrets: &[&str],
    request: &Request<'a>,
    now_unix: i64,
    tolerance_seconds: Option<u64>,
    config: &[(&str, &str)],
) -> Result<Verified<'a>, OnceError> {
    let scheme: Scheme = scheme_name.parse()?;
    if scheme == Scheme::AwsSns {
        return sns(secrets, request, now_unix.saturating_mul(1000), tolerance_seconds, config);
    }
    let configurable = matches!(scheme, Scheme::Hmac | Scheme::ConvoySimple);
    let hmac = if configurable && !config.is_empty() { Some(hmac_options(config)?) } else { None };
    let verifier =
        Verifier::new(scheme, secrets, &VerifyOptions { tolerance_seconds, hmac }).map_err(|error| {
            match error {
                BuildError::Secret(_) => OnceError::Rejected(Rejection::new(
                    Reason::BadSecret,
                    "a configured secret cannot be used",
                )),
                BuildError::Option(error) => OnceError::Option(error),
            }
        })?;
    Ok(verifier.verify(request, now_unix.saturating_mul(1000))?)
}

fn sns<'a>(
    secrets: &[&str],
    request: &Request<'a>,
    now_unix_ms: i64,
    tolerance_seconds: Option<u64>,
    config: &[(&str, &str)],
) -> Result<Verified<'a>, OnceError> {
    if !secrets.is_empty() {
        return Err(Rejection::new(Reason::BadSecret, "the scheme has no secret").into());
    }
    let of = |wanted| config.iter().find(|(name, _)| *name == wanted).map(|(_, value)| *value);
    let verifier = match of("topic_arn") {
        Some(topic) => SnsVerifier::new(&[topic], tolerance_seconds)?,
        None => SnsVerifier::of_any_topic(tolerance_seconds),
    };
    let message = verifier.read(request, now_unix_ms)?;
    let pem = of("signing_cert_pem").ok_or(OptionError::MissingCertificate)?;
    let verified = message.verify(&SigningCertificate::from_pem(pem.as_bytes())?, now_unix_ms)?;
    Ok(Verified {
        delivery_id: Some(verified.message_id),
        event_type: None,
        signed_at_unix_ms: Some(verified.signed_at_unix_ms),
    })
}

/// Why [`verify_once`] did not accept.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
pub enum OnceError {
    /// The scheme's name is not known.
    #[error(transparent)]
    UnknownScheme(#[from] UnknownScheme),
    /// The settings make no verifier.
    #[error(transparent)]
    Option(#[from] OptionError),
    /// The request was refused.
    #[error(transparent)]
    Rejected(#[from] Rejection),
}

fn hmac_options(config: &[(&str, &str)]) -> Result<HmacOptions, OptionError> {
    let mut options = HmacOptions {
        header: String::new(),
        algorithm: HmacAlgorithm::Sha256,
        encoding: HmacEncoding::Hex,
        prefix: None,
    };
    for &(name, value) in config {
        match name {
            "header" => value.clone_into(&mut options.header),
            "algorithm" | "hash" => options.algorithm = value.parse()?,
            "encoding" => options.encoding = value.parse()?,
            "prefix" => options.prefix = Some(value.to_owned()),
            _ => return Err(OptionError::UnknownSetting),
        }
    }
    Ok(options)
}
