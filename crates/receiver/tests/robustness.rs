//! No input panics, and no changed byte is accepted.

#![allow(clippy::unwrap_used)]

mod common;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use common::{Vector, load, ours};
use posthaste_receiver::{
    HmacAlgorithm, HmacEncoding, HmacOptions, Request, Scheme, SigningCertificate, SnsVerifier, Verifier,
    VerifyOptions,
};
use proptest::prelude::*;

const HEADERS: [&str; 26] = [
    "webhook-id",
    "webhook-timestamp",
    "webhook-signature",
    "svix-id",
    "svix-timestamp",
    "svix-signature",
    "stripe-signature",
    "x-hub-signature-256",
    "x-sig",
    "x-convoy-signature",
    "x-shopify-hmac-sha256",
    "x-slack-signature",
    "x-slack-request-timestamp",
    "x-square-hmacsha256-signature",
    "x-signature-ed25519",
    "x-signature-timestamp",
    "x-hubspot-signature-v3",
    "x-hubspot-request-timestamp",
    "x-hubspot-signature",
    "x-hubspot-signature-version",
    "linear-signature",
    "paddle-signature",
    "x-twilio-email-event-webhook-signature",
    "x-twilio-email-event-webhook-timestamp",
    "x-twilio-signature",
    "x-twilio-webhooks-signature-settings",
];

fn verifier(scheme: Scheme, encoding: HmacEncoding) -> Verifier {
    let secret = if scheme == Scheme::Discord {
        "37b23e877c09e95e881e603bcb8b8e8d2a29f4f02bbafa9f471c6ee0a1fbd16e"
    } else if scheme == Scheme::SendGrid {
        "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAECjCxP9RvIKHnasWXOd4MJprCnvQAaJ8rbXs4st59SIfGKgqWiBDSjpsjfsY1K4Z+YgxfBWS7VeyKtA9B3VapDA=="
    } else if scheme == Scheme::StandardWebhooksV1a {
        "whpk_/H7ow1StMFlP5fd6UAcu1doSw1W4Yt21nuVjmW2S7mw="
    } else {
        "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8="
    };
    let hmac = HmacOptions {
        header: "x-sig".to_owned(),
        algorithm: HmacAlgorithm::Sha512,
        encoding,
        prefix: Some("p=".into()),
    };
    Verifier::new(scheme, &[secret], &VerifyOptions { tolerance_seconds: None, hmac: Some(hmac) }).unwrap()
}

fn header_value() -> impl Strategy<Value = Vec<u8>> {
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..200),
        "[v0-9a,= ;t:h+/.-]{0,120}".prop_map(String::into_bytes),
        "(v1a?,[A-Za-z0-9+/]{43}=? ?){0,40}".prop_map(String::into_bytes),
        "(t|ts)=-?[0-9]{0,22}([,;](v1|h1)=[0-9a-f]{64}){0,40}".prop_map(String::into_bytes),
        "(sha256=|v0=|p=)?[0-9a-f]{64}".prop_map(String::into_bytes),
        "-?[0-9]{1,22}".prop_map(String::into_bytes),
        "v[12]".prop_map(String::into_bytes),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(600) })]

    #[test]
    fn r_a1_no_request_panics_or_is_accepted_by_chance(
        headers in proptest::collection::vec((0..HEADERS.len(), header_value()), 0..24),
        every_header in any::<bool>(),
        body in proptest::collection::vec(any::<u8>(), 0..200),
        method in "\\PC{0,8}",
        url in "\\PC{0,40}",
        now in any::<i64>(),
    ) {
        let mut lines: Vec<(&str, &[u8])> =
            headers.iter().map(|(name, value)| (HEADERS[*name], value.as_slice())).collect();
        if every_header {
            let missing = HEADERS.iter().filter(|name| lines.iter().all(|(given, _)| given != *name));
            let filled: Vec<(&str, &[u8])> = missing.map(|name| (*name, b"v1,AAAA=".as_slice())).collect();
            lines.extend(filled);
        }
        let request = Request { method: &method, url: &url, headers: &lines, body: &body };
        for scheme in Scheme::ALL.iter().filter(|scheme| **scheme != Scheme::AwsSns) {
            for encoding in [HmacEncoding::Hex, HmacEncoding::Base64] {
                prop_assert!(verifier(*scheme, encoding).verify(&request, now).is_err(), "{}", scheme);
            }
        }
    }

    #[test]
    fn r_a1_no_message_of_sns_and_no_certificate_panics(
        fields in proptest::collection::vec(("\\PC{0,12}", "\\PC{0,40}"), 8),
        bytes in proptest::collection::vec(any::<u8>(), 0..200),
        now in any::<i64>(),
    ) {
        const NAMES: [&str; 8] = ["Type", "MessageId", "TopicArn", "Message", "Timestamp", "SignatureVersion", "Signature", "SigningCertURL"];
        let sns = SnsVerifier::new(&["arn:aws:sns:us-east-1:123456789012:a"], None).unwrap();
        let named: serde_json::Map<String, serde_json::Value> =
            NAMES.iter().zip(&fields).map(|(name, (_, value))| ((*name).to_owned(), value.as_str().into())).collect();
        for body in [serde_json::to_vec(&named).unwrap(), bytes.clone()] {
            let request = Request { method: "POST", url: "", headers: &[], body: &body };
            prop_assert!(sns.read(&request, now).is_err());
        }
        let pem = format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----", STANDARD.encode(&bytes));
        prop_assert!(SigningCertificate::from_pem(pem.as_bytes()).is_err());
        prop_assert!(SigningCertificate::from_pem(&bytes).is_err());
    }

    #[test]
    fn r_a1_no_secret_panics(text in "(whsec_|whpk_|whsk_|v1,)?\\PC{0,80}") {
        for scheme in Scheme::ALL {
            let options = VerifyOptions { tolerance_seconds: None, hmac: None };
            let _ = Verifier::new(*scheme, &[&text], &options);
            let _ = posthaste_receiver::check_secret(*scheme, &text);
        }
        let _ = posthaste_receiver::Signer::new(&[&text]);
        let _ = posthaste_receiver::check_signing_secret(&text);
    }

    #[test]
    fn r_a1_what_is_signed_verifies_whatever_the_bytes(
        id in "[A-Za-z0-9_-]{1,40}",
        body in proptest::collection::vec(any::<u8>(), 0..2000),
        stamp in 0..4_000_000_000_i64,
    ) {
        let secret = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
        let value = posthaste_receiver::Signer::new(&[secret]).unwrap().sign(&id, stamp, &body);
        let timestamp = stamp.to_string();
        let headers = [
            ("Webhook-Id", id.as_bytes()),
            ("Webhook-Timestamp", timestamp.as_bytes()),
            ("Webhook-Signature", value.as_bytes()),
        ];
        let request = Request { method: "POST", url: "", headers: &headers, body: &body };
        let verifier = verifier(Scheme::StandardWebhooks, HmacEncoding::Hex);
        prop_assert!(verifier.verify(&request, stamp * 1000).is_ok());
    }
}

#[test]
fn r_a1_a_damaged_certificate_panics_nowhere() {
    let vectors = load::<Vector>("aws_sns");
    let vector = vectors.into_iter().find(|vector| vector.name.ends_with("/notification_v2/a")).unwrap();
    let pem = vector.config.as_ref().unwrap()["signing_cert_pem"].as_str().unwrap().to_owned();
    for position in (0..pem.len()).filter(|at| pem.as_bytes()[*at].is_ascii_alphanumeric()) {
        let mut bytes = pem.clone().into_bytes();
        bytes[position] = if bytes[position] == b'A' { b'B' } else { b'A' };
        // What is changed is read or refused; nothing panics.
        let _ = SigningCertificate::from_pem(&bytes);
        let _ = SigningCertificate::from_pem(&bytes[..position]);
    }
}

#[test]
fn r_a1_no_change_of_one_byte_of_a_signature_is_accepted() {
    for scheme in
        ["standard_webhooks", "stripe", "github", "slack", "discord", "sendgrid", "shopify", "twilio"]
    {
        let vectors = load::<Vector>(scheme);
        let mut vector = vectors.into_iter().find(|vector| vector.name.ends_with("/plain_valid/a")).unwrap();
        assert_eq!(ours(&vector), Ok(()));
        let index = vector
            .headers
            .iter()
            .position(|(name, _)| ["signature", "hmac"].iter().any(|word| name.to_lowercase().contains(word)))
            .unwrap();
        let good = vector.headers[index].1.clone();
        for position in 0..good.len() {
            let mut bytes = good.clone().into_bytes();
            bytes[position] = if bytes[position] == b'0' { b'1' } else { b'0' };
            vector.headers[index].1 = String::from_utf8(bytes).unwrap();
            assert!(ours(&vector).is_err(), "{scheme} {position}");
        }
    }
}
