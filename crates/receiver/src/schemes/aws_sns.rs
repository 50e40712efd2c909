//! AWS SNS over HTTP(S): RSA PKCS#1 v1.5 over named fields of the JSON body, by a certificate that the message names.
//!
//! Source: <https://docs.aws.amazon.com/sns/latest/dg/sns-verify-signature-of-message-verify-message-signature.html>. Version
//! 1 signs with SHA-1, version 2 with SHA-256.
//!
//! In two steps, with the certificate fetched in between: [`SnsVerifier::read`] checks all that needs none, and
//! [`SnsMessage::verify`] the rest. A signature says only that SNS sent the message, which it does for whoever has an AWS
//! account: so the topics that may send are named. What is signed are lines, so no value but `Message` may hold a line's
//! end: else a part of one could pass for another under the same signature.

use std::borrow::Cow;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;

use super::require_fit;
use crate::certificate::SignedHash;
use crate::timestamp::Window;
use crate::{OptionError, Reason, Rejection, Request, Scheme, SigningCertificate, civil};

/// Bytes of a certificate's address.
const CERTIFICATE_URL_BYTES_MAX: usize = 256;
/// Bytes of the address that confirms a subscription.
const SUBSCRIBE_URL_BYTES_MAX: usize = 2_048;
/// Characters of a topic's name. Source: <https://docs.aws.amazon.com/sns/latest/api/API_CreateTopic.html>.
const TOPIC_NAME_CHARS_MAX: usize = 256;

/// Verifies messages of the topics that may send.
#[derive(Debug)]
pub struct SnsVerifier {
    /// Empty: any, for one verification by hand.
    topics: Vec<Box<str>>,
    window: Window,
}

/// A message that was read; not believed yet.
#[derive(Debug)]
pub struct SnsMessage<'a> {
    fields: Fields<'a>,
    shape: Shape,
    hash: SignedHash,
    signed_at_unix_ms: i64,
}

/// A message that SNS signed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SnsVerified<'a> {
    /// What it is.
    pub kind: SnsKind,
    /// The same for every delivery of it.
    pub message_id: &'a str,
    /// Where it is from: one of the topics that may send.
    pub topic_arn: &'a str,
    /// When it was published, in milliseconds since 1970.
    pub signed_at_unix_ms: i64,
}

/// What a message is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SnsKind {
    /// A message that was published.
    Notification,
    /// SNS asks whether the topic is to send here.
    SubscriptionConfirmation {
        /// A GET of it says yes. It is https at SNS; it is a secret until then.
        subscribe_url: String,
    },
    /// The topic sends here no more.
    UnsubscribeConfirmation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shape {
    Notification,
    SubscriptionConfirmation,
    UnsubscribeConfirmation,
}

/// What is read. A field that comes twice is refused: parsers differ on which one counts.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Fields<'a> {
    r#type: &'a str,
    message_id: &'a str,
    topic_arn: &'a str,
    #[serde(borrow)]
    message: Cow<'a, str>,
    timestamp: &'a str,
    signature_version: &'a str,
    signature: &'a str,
    #[serde(rename = "SigningCertURL", borrow)]
    signing_cert_url: Cow<'a, str>,
    subject: Option<String>,
    token: Option<String>,
    #[serde(rename = "SubscribeURL")]
    subscribe_url: Option<String>,
}

const fn malformed(detail: &'static str) -> Rejection {
    Rejection::new(Reason::MalformedBody, detail)
}

impl SnsVerifier {
    /// A verifier of messages of these topics, given by their whole ARNs.
    ///
    /// `tolerance_seconds`: how far the time of publication may be from the clock; two hours if `None`, since SNS may
    /// retry for one.
    ///
    /// Errors: `MissingTopic` if none is given, `NotATopic` if one is no topic's ARN.
    pub fn new(topic_arns: &[&str], tolerance_seconds: Option<u64>) -> Result<Self, OptionError> {
        if topic_arns.is_empty() {
            return Err(OptionError::MissingTopic);
        }
        if topic_arns.iter().any(|arn| !is_topic(arn)) {
            return Err(OptionError::NotATopic);
        }
        let topics = topic_arns.iter().map(|&arn| arn.into()).collect();
        Ok(Self { topics, ..Self::of_any_topic(tolerance_seconds) })
    }

    pub(crate) fn of_any_topic(tolerance_seconds: Option<u64>) -> Self {
        let seconds = tolerance_seconds.or(Scheme::AwsSns.default_tolerance_seconds()).unwrap_or_default();
        Self { topics: Vec::new(), window: Window::symmetric(seconds) }
    }

    /// Reads a message, and checks all that needs no certificate: shape, version, topic, age, and whether the certificate's
    /// address is SNS's.
    ///
    /// Errors: a [`Rejection`]; answer every one alike, and fetch nothing.
    pub fn read<'a>(&self, request: &Request<'a>, now_unix_ms: i64) -> Result<SnsMessage<'a>, Rejection> {
        let fields: Fields<'a> = serde_json::from_slice(request.body)
            .map_err(|_| malformed("body is no message of SNS (raw message delivery is not signed)"))?;
        let shape = match fields.r#type {
            "Notification" => Shape::Notification,
            "SubscriptionConfirmation" => Shape::SubscriptionConfirmation,
            "UnsubscribeConfirmation" => Shape::UnsubscribeConfirmation,
            _ => return Err(malformed("message is of no known type")),
        };
        let asks = shape != Shape::Notification;
        if asks && (fields.token.is_none() || fields.subscribe_url.is_none()) {
            return Err(malformed("message lacks its token or its address"));
        }
        let single_lines = [
            Some(fields.message_id),
            Some(fields.topic_arn),
            fields.subject.as_deref(),
            fields.subscribe_url.as_deref(),
            fields.token.as_deref(),
        ];
        if single_lines.into_iter().flatten().any(|text| text.contains(['\n', '\r'])) {
            return Err(malformed("a field holds a line's end"));
        }
        let hash = match fields.signature_version {
            "1" => SignedHash::Sha1,
            "2" => SignedHash::Sha256,
            _ => return Err(Rejection::new(Reason::UnsupportedVersion, "no signature of a known version")),
        };
        if !is_certificate_url(&fields.signing_cert_url) {
            return Err(Rejection::new(Reason::BadCertUrl, "certificate's address is not SNS's"));
        }
        if !self.topics.is_empty() && !self.topics.iter().any(|topic| **topic == *fields.topic_arn) {
            return Err(Rejection::new(Reason::TopicNotAllowed, "topic is none of those that may send"));
        }
        let stamp = civil::read_rfc3339(fields.timestamp)
            .ok_or(Rejection::new(Reason::MalformedTimestamp, "timestamp is not of SNS's form"))?;
        let signed_at_unix_ms = self.window.check_ms(stamp, now_unix_ms)?;
        Ok(SnsMessage { fields, shape, hash, signed_at_unix_ms })
    }
}

impl<'a> SnsMessage<'a> {
    /// Where its certificate is: https at SNS, without user, port or query.
    pub fn certificate_url(&self) -> &str {
        &self.fields.signing_cert_url
    }

    /// Checks the signature with the certificate of [`Self::certificate_url`].
    ///
    /// Errors: `bad_certificate` if it is not in force, `signature_mismatch`, or `bad_subscribe_url` if a subscription
    /// would not be confirmed at SNS.
    pub fn verify(
        self,
        certificate: &SigningCertificate,
        now_unix_ms: i64,
    ) -> Result<SnsVerified<'a>, Rejection> {
        if !certificate.is_in_force(now_unix_ms) {
            return Err(Rejection::new(Reason::BadCertificate, "certificate is not in force"));
        }
        let signature = STANDARD.decode(self.fields.signature).map_err(|_| Rejection::mismatch())?;
        require_fit(certificate.fits(self.hash, self.signed_text().as_bytes(), &signature))?;
        let kind = match self.shape {
            Shape::Notification => SnsKind::Notification,
            Shape::UnsubscribeConfirmation => SnsKind::UnsubscribeConfirmation,
            Shape::SubscriptionConfirmation => {
                let url = self.fields.subscribe_url.filter(|url| is_subscribe_url(url));
                let refused = Rejection::new(Reason::BadSubscribeUrl, "subscription's address is not SNS's");
                SnsKind::SubscriptionConfirmation { subscribe_url: url.ok_or(refused)? }
            }
        };
        Ok(SnsVerified {
            kind,
            message_id: self.fields.message_id,
            topic_arn: self.fields.topic_arn,
            signed_at_unix_ms: self.signed_at_unix_ms,
        })
    }

    /// The fields in the order of their names, name and value a line each.
    fn signed_text(&self) -> String {
        let fields = &self.fields;
        let asks = self.shape != Shape::Notification;
        let lines = [
            ("Message", Some(&*fields.message)),
            ("MessageId", Some(fields.message_id)),
            ("Subject", fields.subject.as_deref().filter(|_| !asks)),
            ("SubscribeURL", fields.subscribe_url.as_deref().filter(|_| asks)),
            ("Timestamp", Some(fields.timestamp)),
            ("Token", fields.token.as_deref().filter(|_| asks)),
            ("TopicArn", Some(fields.topic_arn)),
            ("Type", Some(fields.r#type)),
        ];
        let mut text = String::with_capacity(fields.message.len() + 512);
        for (name, value) in lines {
            if let Some(value) = value {
                text.extend([name, "\n", value, "\n"]);
            }
        }
        text
    }
}

/// What follows the host, if `url` is https at SNS: `sns.<region>.amazonaws.com`, or `.amazonaws.com.cn`.
///
/// A region has its own form, so that no bucket or machine of somebody else's, which AWS names under the same domain,
/// passes for one.
fn at_sns(url: &str) -> Option<&str> {
    if !url.bytes().all(|byte| byte.is_ascii_graphic() && byte != b'\\' && byte != b'#') {
        return None;
    }
    let rest = url.strip_prefix("https://")?;
    let (host, path) = rest.split_at(rest.find(['/', '?']).unwrap_or(rest.len()));
    let region = host.strip_prefix("sns.")?;
    let region =
        region.strip_suffix(".amazonaws.com.cn").or_else(|| region.strip_suffix(".amazonaws.com"))?;
    is_region(region).then_some(path)
}

/// `us-east-1`, `ap-southeast-2`, `us-gov-west-1`: words of small letters, and a number of one or two digits.
fn is_region(text: &str) -> bool {
    let Some((words, number)) = text.rsplit_once('-') else { return false };
    let word = |word: &str| !word.is_empty() && word.bytes().all(|byte| byte.is_ascii_lowercase());
    matches!(number.len(), 1..=2)
        && number.bytes().all(|byte| byte.is_ascii_digit())
        && words.contains('-')
        && words.len() <= 32
        && words.split('-').all(word)
}

fn is_certificate_url(url: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-".contains(&byte);
    url.len() <= CERTIFICATE_URL_BYTES_MAX
        && at_sns(url).is_some_and(|path| {
            path.starts_with('/') && path.strip_suffix(".pem").is_some_and(|path| path.bytes().all(plain))
        })
}

fn is_subscribe_url(url: &str) -> bool {
    url.len() <= SUBSCRIBE_URL_BYTES_MAX && at_sns(url).is_some_and(|path| path.starts_with(['/', '?']))
}

/// `arn:aws:sns:us-east-1:123456789012:orders`, of any partition.
fn is_topic(arn: &str) -> bool {
    let parts: Vec<&str> = arn.split(':').collect();
    let [arn, partition, service, region, account, name] = parts.as_slice() else { return false };
    let all = |text: &str, fits: fn(u8) -> bool| !text.is_empty() && text.bytes().all(fits);
    *arn == "arn"
        && partition.starts_with("aws")
        && all(partition, |byte| byte.is_ascii_lowercase() || byte == b'-')
        && *service == "sns"
        && is_region(region)
        && account.len() == 12
        && all(account, |byte| byte.is_ascii_digit())
        && name.len() <= TOPIC_NAME_CHARS_MAX
        && all(name, |byte| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.'))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_a1_only_addresses_at_sns_are_taken() {
        for url in [
            "https://sns.us-east-1.amazonaws.com/SimpleNotificationService-c89aea61.pem",
            "https://sns.us-gov-west-1.amazonaws.com/a.pem",
            "https://sns.cn-north-1.amazonaws.com.cn/a.pem",
        ] {
            assert!(is_certificate_url(url), "{url}");
        }
        for url in [
            "http://sns.us-east-1.amazonaws.com/a.pem",
            "HTTPS://sns.us-east-1.amazonaws.com/a.pem",
            "https://user@sns.us-east-1.amazonaws.com/a.pem",
            "https://sns.us-east-1.amazonaws.com@example.com/a.pem",
            "https://sns.us-east-1.amazonaws.com:443/a.pem",
            "https://sns.evil.amazonaws.com.example.com/a.pem",
            "https://sns.us-east-1.amazonaws.com.example.com/a.pem",
            "https://example.com/sns.us-east-1.amazonaws.com/a.pem",
            "https://example.com\\.sns.us-east-1.amazonaws.com/a.pem",
            "https://example.com#sns.us-east-1.amazonaws.com/a.pem",
            "https://sns.s3.amazonaws.com/a.pem",
            "https://sns.s3-us-west-2.amazonaws.com/a.pem",
            "https://sns.us-east-1.s3.amazonaws.com/a.pem",
            "https://sns.amazonaws.com/a.pem",
            "https://sns..amazonaws.com/a.pem",
            "https://xsns.us-east-1.amazonaws.com/a.pem",
            "https://sns.us-east-1.amazonaws.com./a.pem",
            "https://SNS.us-east-1.amazonaws.com/a.pem",
            "https://sns.us-east-1.amazonaws.com/a.pem?x=1",
            "https://sns.us-east-1.amazonaws.com/?a.pem",
            "https://sns.us-east-1.amazonaws.com/a",
            "https://sns.us-east-1.amazonaws.com/%2e.pem",
            "https://sns.us-east-1.amazonaws.com.pem",
            "",
        ] {
            assert!(!is_certificate_url(url), "{url}");
        }
        assert!(is_subscribe_url("https://sns.us-east-1.amazonaws.com/?Action=ConfirmSubscription&Token=x"));
        assert!(!is_subscribe_url(
            "https://sns.us-east-1.amazonaws.com.evil.test/?Action=ConfirmSubscription"
        ));
        assert!(!is_subscribe_url("https://sns.us-east-1.amazonaws.com"));
    }

    #[test]
    fn r_a1_topics_are_named_whole() {
        for arn in
            ["arn:aws:sns:us-east-1:123456789012:orders", "arn:aws-cn:sns:cn-north-1:123456789012:a_B-9"]
        {
            assert!(is_topic(arn), "{arn}");
        }
        for arn in [
            "",
            "*",
            "arn:aws:sns:us-east-1:123456789012:*",
            "arn:aws:sns:*:123456789012:orders",
            "arn:aws:sns:us-east-1:12345678901:orders",
            "arn:aws:sqs:us-east-1:123456789012:orders",
            "arn:aws:sns:us-east-1:123456789012:orders:2bcfbf39-05c3-41de-beaa-fcfcc21c8f55",
            "arn:aws:sns:us-east-1:123456789012:",
        ] {
            assert!(!is_topic(arn), "{arn}");
            assert_eq!(SnsVerifier::new(&[arn], None).err(), Some(OptionError::NotATopic), "{arn}");
        }
        assert_eq!(SnsVerifier::new(&[], None).err(), Some(OptionError::MissingTopic));
    }
}
