//! Sources: from what is written to what is understood, with exact errors.

use posthaste_core::{DurationMs, TenantId, limits};
use posthaste_receiver::{HmacOptions, Scheme, SnsVerifier, Verifier, VerifyOptions, check_secret};

use super::{
    AnswerSpec, AnswerStyle, ConfigError, Handshake, HandshakeSpec, HmacSpec, KeyRule, OnKeyReused,
    OnKeyReusedSpec, Proof, Schema, SignedSpec, Source, SourceSpec, To, ToSpec, TypeRule, WhenPausedSpec,
    compile::{check_type_pattern, dead_letter_queue, name, owner},
};

/// Bytes of a token that a provider sends back.
const VERIFY_TOKEN_BYTES_MAX: usize = 256;

/// Bytes of the URL that a provider knows: as of those that we send to.
const PUBLIC_URL_BYTES_MAX: usize = 2_048;

/// Understands a source. `secrets`: the resolved secrets, in the order of `spec.secrets`.
pub fn compile_source(
    tenant: TenantId,
    spec: &SourceSpec,
    secrets: &[String],
) -> Result<Source, ConfigError> {
    let id = name("name", &spec.name)?;
    let chief = "scheme".to_owned();
    let rules = spec.key.as_ref().map_or(std::slice::from_ref(&chief), |key| key.as_slice());
    if rules.is_empty() || rules.len() > limits::ALIASES_MAX {
        let remedy = format!("give 1 to {} rules", limits::ALIASES_MAX);
        return Err(ConfigError::new("key", format!("{} rules are given", rules.len()), remedy));
    }
    let mut rules = rules.iter().map(|rule| KeyRule::parse("key", rule)).collect::<Result<Vec<_>, _>>()?;
    let key = rules.remove(0);
    let proof = proof(spec, secrets)?;
    let body_limit = spec.body_limit.unwrap_or(limits::PAYLOAD_BYTES_DEFAULT);
    if !(1..=limits::PAYLOAD_BYTES_CEILING).contains(&body_limit) {
        let remedy = format!("give 1 to {} bytes", limits::PAYLOAD_BYTES_CEILING);
        return Err(ConfigError::new("body_limit", format!("{body_limit} is out of range"), remedy));
    }
    for (index, pattern) in spec.types.iter().enumerate() {
        check_type_pattern(&format!("types[{index}]"), pattern)?;
    }
    let source = Source {
        tenant,
        id,
        proof,
        public_url: spec.public_url.as_deref().map(public_url).transpose()?,
        signs_decoded: spec.signed == Some(SignedSpec::Decoded),
        key,
        aliases: rules,
        event_type: TypeRule::parse("type", spec.event_type.as_deref().unwrap_or("scheme"))?,
        to: to(spec.to.as_ref())?,
        delay: spec.delay.map_or(DurationMs::ZERO, |text| text.0),
        schema: spec.schema.as_ref().map(Schema::compile).transpose()?,
        types: spec.types.clone(),
        content_types: content_types(spec)?,
        on_key_reused: match spec.on_key_reused {
            None | Some(OnKeyReusedSpec::Quarantine) => OnKeyReused::Quarantine,
            Some(OnKeyReusedSpec::Reject) => OnKeyReused::Reject,
            Some(OnKeyReusedSpec::Accept) => OnKeyReused::Accept,
        },
        handshake: handshake(spec)?,
        body_limit,
        answer: answer(spec.answer.as_ref())?,
        holds_when_paused: spec.when_paused == Some(WhenPausedSpec::Hold),
        dead_letter_queue: dead_letter_queue(&spec.name, spec.dead_letter_queue.as_deref())?,
        owner: owner(spec.owner.as_deref())?,
        enabled: spec.enabled.unwrap_or(true),
    };
    check_key_source(source.scheme(), &source.key)?;
    check_goes_with_scheme(spec, source.scheme())?;
    Ok(source)
}

fn proof(spec: &SourceSpec, secrets: &[String]) -> Result<Proof, ConfigError> {
    if spec.scheme == "none" {
        if !spec.allow_unsigned {
            return Err(ConfigError::new(
                "scheme",
                "\"none\" takes requests from anybody",
                "add allow_unsigned = true if that is meant, or name the scheme",
            ));
        }
        return Ok(Proof::Unsigned);
    }
    let scheme: Scheme = spec.scheme.parse().map_err(|error: posthaste_receiver::UnknownScheme| {
        ConfigError::new("scheme", format!("{:?} is not known", spec.scheme), error.to_string())
    })?;
    if scheme == Scheme::AwsSns {
        return sns(spec, secrets).map(Proof::Sns);
    }
    if secrets.is_empty() {
        return Err(ConfigError::new(
            "secrets",
            "a signed source needs a secret",
            "give secrets = [\"env:NAME\"] or [\"file:PATH\"]",
        ));
    }
    for (index, secret) in secrets.iter().enumerate() {
        check_secret(scheme, secret).map_err(|error| {
            ConfigError::new(
                format!("secrets[{index}]"),
                error.to_string(),
                "copy the secret as the provider shows it",
            )
        })?;
    }
    let options = VerifyOptions {
        tolerance_seconds: spec.tolerance.map(|text| text.0.0 / 1_000),
        hmac: spec.hmac.as_ref().map(hmac_options).transpose()?,
    };
    let texts: Vec<&str> = secrets.iter().map(String::as_str).collect();
    Verifier::new(scheme, &texts, &options)
        .map(Proof::Secrets)
        .map_err(|error| ConfigError::new("scheme", error.to_string(), "see docs/receive.md"))
}

fn sns(spec: &SourceSpec, secrets: &[String]) -> Result<SnsVerifier, ConfigError> {
    if !secrets.is_empty() {
        let problem = "AWS SNS signs by its certificate: there is no secret";
        return Err(ConfigError::new("secrets", problem, "leave this out"));
    }
    let topics: Vec<&str> = spec.topic_arns.iter().map(String::as_str).collect();
    let remedy = "give topic_arns = [\"arn:aws:sns:us-east-1:123456789012:orders\"]";
    let tolerance_seconds = spec.tolerance.map(|text| text.0.0 / 1_000);
    if topics.is_empty() {
        let problem = "AWS SNS signs for whoever has an AWS account: the topics that may send must be named";
        return Err(ConfigError::new("topic_arns", problem, remedy));
    }
    SnsVerifier::new(&topics, tolerance_seconds)
        .map_err(|error| ConfigError::new("topic_arns", error.to_string(), remedy))
}

/// Settings that only some schemes have.
fn check_goes_with_scheme(spec: &SourceSpec, scheme: Option<Scheme>) -> Result<(), ConfigError> {
    if !spec.topic_arns.is_empty() && scheme != Some(Scheme::AwsSns) {
        let problem = "this goes with scheme = \"aws_sns\"";
        return Err(ConfigError::new("topic_arns", problem, "name that scheme, or leave this out"));
    }
    if spec.public_url.is_some() && !scheme.is_some_and(Scheme::signs_url) {
        let problem = "the scheme signs no URL";
        return Err(ConfigError::new("public_url", problem, "leave this out"));
    }
    Ok(())
}

/// Kept letter for letter, since that is how it was signed.
fn public_url(text: &str) -> Result<Box<str>, ConfigError> {
    let rest = text.strip_prefix("https://").or_else(|| text.strip_prefix("http://"));
    let plain = |byte: u8| byte.is_ascii_graphic() && !matches!(byte, b'?' | b'#' | b'\\');
    if text.len() > PUBLIC_URL_BYTES_MAX
        || rest.is_none_or(|rest| rest.is_empty() || rest.starts_with('/'))
        || !text.bytes().all(plain)
    {
        return Err(ConfigError::new(
            "public_url",
            format!("{text:?} is no http(s) URL without query and fragment"),
            "write it as the provider was given it, for example \"https://hooks.example.com/in/twilio\"",
        ));
    }
    Ok(text.into())
}

fn hmac_options(spec: &HmacSpec) -> Result<HmacOptions, ConfigError> {
    let refused = |path: &str, error: posthaste_receiver::OptionError| {
        ConfigError::new(path, error.to_string(), "see docs/receive.md")
    };
    Ok(HmacOptions {
        header: spec.header.clone(),
        algorithm: spec
            .algorithm
            .as_deref()
            .unwrap_or("sha256")
            .parse()
            .map_err(|error| refused("hmac.algorithm", error))?,
        encoding: spec
            .encoding
            .as_deref()
            .unwrap_or("hex")
            .parse()
            .map_err(|error| refused("hmac.encoding", error))?,
        prefix: spec.prefix.clone(),
    })
}

/// Schemes without a delivery id of their own need a rule.
fn check_key_source(scheme: Option<Scheme>, key: &KeyRule) -> Result<(), ConfigError> {
    let has_id = matches!(
        scheme,
        Some(
            Scheme::GitHub
                | Scheme::Svix
                | Scheme::StandardWebhooks
                | Scheme::StandardWebhooksV1a
                | Scheme::Shopify
                | Scheme::Linear
                | Scheme::Mailgun
                | Scheme::AwsSns
                | Scheme::Twilio
                // Ids in the body, where the provider's documentation puts them.
                | Scheme::Stripe
        )
    );
    if *key == KeyRule::Scheme && !has_id {
        return Err(ConfigError::new(
            "key",
            "this scheme has no delivery id of its own",
            "say where the id is, for example key = \"json:/id\"",
        ));
    }
    Ok(())
}

pub(super) fn to(spec: Option<&ToSpec>) -> Result<To, ConfigError> {
    match spec.map(|spec| (&spec.queue, &spec.endpoints)) {
        None | Some((None, None)) => Ok(To::Subscribers),
        Some((Some(queue), None)) => name("to.queue", queue).map(To::Queue),
        Some((None, Some(endpoints))) if !endpoints.is_empty() => {
            let ids = endpoints.iter().map(|id| name("to.endpoints", id));
            ids.collect::<Result<_, _>>().map(To::Endpoints)
        }
        Some((None, Some(_))) => {
            Err(ConfigError::new("to.endpoints", "the list is empty", "name endpoints, or leave `to` out"))
        }
        Some((Some(_), Some(_))) => {
            Err(ConfigError::new("to", "queue and endpoints exclude each other", "give one of them"))
        }
    }
}

fn answer(spec: Option<&AnswerSpec>) -> Result<AnswerStyle, ConfigError> {
    match spec {
        None => Ok(AnswerStyle::Json),
        Some(AnswerSpec::Word(word)) if word == "json" => Ok(AnswerStyle::Json),
        Some(AnswerSpec::Word(word)) if word == "empty" => Ok(AnswerStyle::Empty),
        Some(AnswerSpec::Status(status)) if (200..300).contains(status) => Ok(AnswerStyle::Status(*status)),
        Some(AnswerSpec::Word(_) | AnswerSpec::Status(_)) => Err(ConfigError::new(
            "answer",
            "this is no answer to an accepted delivery",
            "write \"json\", \"empty\" or a status from 200 to 299",
        )),
    }
}

fn content_types(spec: &SourceSpec) -> Result<Vec<String>, ConfigError> {
    let checked = spec.content_types.iter().enumerate().map(|(index, text)| {
        let token = |part: &str| {
            !part.is_empty() && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"!#$&-^_.+".contains(&b))
        };
        match text.split_once('/') {
            Some((kind, subtype)) if token(kind) && token(subtype) => Ok(text.to_ascii_lowercase()),
            Some(_) | None => Err(ConfigError::new(
                format!("content_types[{index}]"),
                format!("{text:?} is no media type"),
                "write for example \"application/json\", without parameters",
            )),
        }
    });
    checked.collect()
}

fn handshake(spec: &SourceSpec) -> Result<Option<Handshake>, ConfigError> {
    let only = |path: &str, given: bool, of: HandshakeSpec, word: &str| {
        if given && spec.handshake != Some(of) {
            let problem = format!("this goes with handshake = \"{word}\"");
            return Err(ConfigError::new(path, problem, "add that, or leave this out"));
        }
        Ok(())
    };
    only("verify_token", spec.verify_token.is_some(), HandshakeSpec::Meta, "meta")?;
    only("allowed_origins", !spec.allowed_origins.is_empty(), HandshakeSpec::Cloudevents, "cloudevents")?;
    only("allowed_rate", spec.allowed_rate.is_some(), HandshakeSpec::Cloudevents, "cloudevents")?;
    match spec.handshake {
        None => Ok(None),
        Some(HandshakeSpec::Slack) => Ok(Some(Handshake::Slack)),
        Some(HandshakeSpec::Cloudevents) => {
            if spec.allowed_rate == Some(0) {
                return Err(ConfigError::new("allowed_rate", "0 would allow nothing", "give 1 or more"));
            }
            let bad = |origin: &&String| origin.is_empty() || !origin.bytes().all(|b| b.is_ascii_graphic());
            if let Some(origin) = spec.allowed_origins.iter().find(bad) {
                let problem = format!("{origin:?} is no origin");
                return Err(ConfigError::new(
                    "allowed_origins",
                    problem,
                    "write for example \"eventemitter.example.com\"",
                ));
            }
            Ok(Some(Handshake::CloudEvents {
                origins: spec.allowed_origins.clone(),
                rate: spec.allowed_rate,
            }))
        }
        Some(HandshakeSpec::Meta) => match &spec.verify_token {
            Some(token) if !token.is_empty() && token.len() <= VERIFY_TOKEN_BYTES_MAX => {
                Ok(Some(Handshake::Meta { verify_token: token.clone() }))
            }
            Some(_) => Err(ConfigError::new(
                "verify_token",
                format!("a token has 1 to {VERIFY_TOKEN_BYTES_MAX} bytes"),
                "copy the token as it was given to the provider",
            )),
            None => Err(ConfigError::new(
                "verify_token",
                "handshake = \"meta\" needs the token that the provider will send",
                "give verify_token = \"env:NAME\" or \"file:PATH\"",
            )),
        },
    }
}
