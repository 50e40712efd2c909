//! Faults that others met in the field, by the ids of the field cases.

#![allow(clippy::unwrap_used)]

use aws_lc_rs::hmac;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use posthaste_receiver::{
    BuildError, HmacAlgorithm, HmacEncoding, HmacOptions, OnceError, Reason, Request, Scheme, SecretError,
    Signer, Verifier, VerifyOptions, check_secret, verify_once,
};

const NOW: i64 = 1_767_225_600;
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";
const NEW_SIGNATURE: &str = "v1,E0segQjKcno0uR8xwtmLtEE/W6mpFAG79Fck7+SbhmQ=";
const SIGNATURE: &str = "v1,ZrlPo/jiT9N2btAG0jXiZPpJi4tRkX0/iJE3AzZUC88=";
const OCTO_DIGEST: &str = "dd66a77ffd68e1e1ceeb11d3e37dfa8effd56c7cb434fae6d72ecd02f5579722";

fn verify(verifier: &Verifier, headers: &[(&str, &[u8])], body: &[u8]) -> Result<(), Reason> {
    let request = Request { method: "POST", url: "https://hooks.example.test/", headers, body };
    verifier.verify(&request, NOW * 1000).map(drop).map_err(|rejection| rejection.reason)
}

fn standard(signature_lines: &[&str]) -> Result<(), Reason> {
    let options = VerifyOptions { tolerance_seconds: Some(300), hmac: None };
    let verifier = Verifier::new(Scheme::StandardWebhooks, &[SECRET], &options).unwrap();
    let mut headers: Vec<(&str, &[u8])> =
        vec![("webhook-id", b"msg_1"), ("webhook-timestamp", b"1767225600")];
    headers.extend(signature_lines.iter().map(|line| ("webhook-signature", line.as_bytes())));
    verify(&verifier, &headers, b"{\"a\":1}")
}

fn octo(prefix: Option<&str>) -> Verifier {
    let settings = HmacOptions {
        header: "X-Hub-Signature-256".to_owned(),
        algorithm: HmacAlgorithm::Sha256,
        encoding: HmacEncoding::Hex,
        prefix: prefix.map(str::to_owned),
    };
    Verifier::new(
        Scheme::Hmac,
        &["octo-key"],
        &VerifyOptions { tolerance_seconds: None, hmac: Some(settings) },
    )
    .unwrap()
}

fn github() -> Verifier {
    Verifier::new(Scheme::GitHub, &["octo-key"], &VerifyOptions { tolerance_seconds: None, hmac: None })
        .unwrap()
}

#[test]
fn case_b01_the_received_bytes_are_hashed_and_no_others() {
    let json = br#"{"n":1.0,"e":1e2,"s":"\u001B[34m \u2665 \/ \\u0041 &"}"#;
    let spaced = br#"{"n": 1.0, "e": 1e2, "s": "\u001B[34m \u2665 \/ \\u0041 &"}"#;
    let json_header: &[u8] = b"sha256=e588b6b168dd966ed2e5aa529100fcb8b3e66e486fb53f2ccb365374f8189336";
    let form_header: &[u8] = b"sha256=d16837ecc88f873e1c2aab9a0156faa42aba57b3fe6d29f38c7a275e65918ded";
    for verifier in [octo(Some("sha256=")), github()] {
        let with = |header, body| verify(&verifier, &[("x-hub-signature-256", header)], body);
        assert_eq!(with(json_header, json), Ok(()));
        assert_eq!(with(form_header, b"payload=%7B%22a%22%3A%22x+y%2Bz%22%7D"), Ok(()));
        assert_eq!(with(json_header, spaced), Err(Reason::SignatureMismatch));
    }
}

#[test]
fn case_b03_the_bytes_given_are_the_bytes_checked_compressed_or_not() {
    let wire = [
        0x1f, 0x8b, 0x08, 0, 0, 0, 0, 0, 0x02, 0x03, 0xab, 0x56, 0x4a, 0x54, 0xb2, 0x32, 0xac, 0x05, 0, 0xaf,
        0xac, 0x1b, 0x56, 0x07, 0, 0, 0,
    ];
    let wire_header: &[u8] = b"28cdfde76661bf9cbc95794e2c42479069e96722dfdb9886e6ad66c36ced4729";
    let verifier = octo(None);
    let with = |header, body| {
        verify(&verifier, &[("content-encoding", b"gzip"), ("x-hub-signature-256", header)], body)
    };
    assert_eq!(with(wire_header, &wire), Ok(()));
    assert_eq!(with(OCTO_DIGEST.as_bytes(), &wire), Err(Reason::SignatureMismatch), "never both silently");
    assert_eq!(with(OCTO_DIGEST.as_bytes(), b"{\"a\":1}"), Ok(()), "a source that signs the decoded bytes");
}

#[test]
fn case_b04_secrets_of_the_wrong_shape_are_refused_with_a_reason() {
    let long = format!("whsec_{}", "A".repeat(87) + "="); // 65 bytes
    let url_safe = format!("whsec_{}", "-".repeat(32));
    let padded = format!(" {SECRET}\n");
    let prefixed = format!("v1,{SECRET}");
    let refused = [
        (prefixed.as_str(), SecretError::NotBase64),
        (url_safe.as_str(), SecretError::NotBase64),
        (padded.as_str(), SecretError::SurroundingWhiteSpace),
        ("whsec_xyz!", SecretError::NotBase64),
        ("whsec_", SecretError::Empty),
        ("", SecretError::Empty),
        ("whsec_AAAA", SecretError::TooShort),
        (long.as_str(), SecretError::TooLong),
        (
            "whpk_/H7ow1StMFlP5fd6UAcu1doSw1W4Yt21nuVjmW2S7mw=",
            SecretError::WrongKind { expected: "a symmetric secret, whsec_" },
        ),
    ];
    for (secret, error) in refused {
        assert_eq!(check_secret(Scheme::StandardWebhooks, secret), Err(error), "{secret}");
    }
    for secret in [SECRET, SECRET.trim_end_matches('='), &SECRET["whsec_".len()..]] {
        assert_eq!(check_secret(Scheme::StandardWebhooks, secret), Ok(()));
    }
    let options = VerifyOptions { tolerance_seconds: None, hmac: None };
    for secret in [prefixed.as_str(), &url_safe, &padded, "whsec_xyz!", "whsec_", "whsec_AAAA"] {
        let error = Verifier::new(Scheme::StandardWebhooks, &[SECRET, secret], &options).unwrap_err();
        assert!(matches!(error, BuildError::Secret(_)));
        let message = format!("{error} {error:?}");
        assert!(secret.len() < 7 || !message.contains(secret.trim_start_matches("whsec_")), "{message}");
    }
}

#[test]
fn case_b05_any_entry_of_a_known_version_is_enough() {
    let unknown = format!("v1a,AAAA {SIGNATURE}");
    let (new_first, old_first) =
        (format!("{NEW_SIGNATURE} {SIGNATURE}"), format!("{SIGNATURE} {NEW_SIGNATURE}"));
    for lines in
        [[SIGNATURE].as_slice(), &[&new_first], &[&old_first], &[&unknown], &[NEW_SIGNATURE, SIGNATURE]]
    {
        assert_eq!(standard(lines), Ok(()), "{lines:?}");
    }
    assert_eq!(standard(&[NEW_SIGNATURE]), Err(Reason::SignatureMismatch));
}

#[test]
fn case_b05_the_number_of_signatures_is_capped() {
    let with_bad_before =
        |count: usize| standard(&[&(format!("{NEW_SIGNATURE} ").repeat(count) + SIGNATURE)]);
    assert_eq!(with_bad_before(31), Ok(()));
    for count in [32, 50, 1000] {
        assert_eq!(with_bad_before(count), Err(Reason::MalformedHeader));
    }
    assert_eq!(standard(&vec![NEW_SIGNATURE; 50]), Err(Reason::MalformedHeader));
    let stripe =
        Verifier::new(Scheme::Stripe, &["s"], &VerifyOptions { tolerance_seconds: None, hmac: None })
            .unwrap();
    let header = format!("t={NOW}{}", ",v1=00".repeat(50));
    assert_eq!(
        verify(&stripe, &[("stripe-signature", header.as_bytes())], b"{}"),
        Err(Reason::MalformedHeader)
    );
}

#[test]
fn case_b06_hexadecimal_is_decoded_before_it_is_compared() {
    let verifier = octo(Some("sha256="));
    let with = |value: &[u8]| verify(&verifier, &[("X-Hub-Signature-256", value)], b"{\"a\":1}");
    let upper = OCTO_DIGEST.to_uppercase();
    for good in [
        format!("sha256={OCTO_DIGEST}"),
        format!("sha256={upper}"),
        format!("sha256= {OCTO_DIGEST}"),
        format!("sha256={OCTO_DIGEST} "),
    ] {
        assert_eq!(with(good.as_bytes()), Ok(()), "{good}");
    }
    let short = &OCTO_DIGEST[..63];
    let bad = ["sha256=abc", "sha256=", "", "sha256=\u{e9}"].map(str::to_owned).into_iter().chain([
        format!("sha256={short}"),
        format!("sha256={OCTO_DIGEST}0"),
        format!("sha1={OCTO_DIGEST}"),
        format!("SHA256={OCTO_DIGEST}"),
        "a".repeat(8192),
    ]);
    for value in bad {
        assert!(with(value.as_bytes()).is_err(), "{value}");
        assert!(
            verify(&github(), &[("X-Hub-Signature-256", value.as_bytes())], b"{\"a\":1}").is_err(),
            "{value}"
        );
    }
}

#[test]
fn case_b06_differing_header_lines_are_ambiguous_and_equal_ones_are_not() {
    let good = format!("sha256={OCTO_DIGEST}");
    let bad = format!("sha256={}", "0".repeat(64));
    for verifier in [octo(Some("sha256=")), github()] {
        let with = |first: &str, second: &str| {
            let lines =
                [("X-Hub-Signature-256", first.as_bytes()), ("x-hub-signature-256", second.as_bytes())];
            verify(&verifier, &lines, b"{\"a\":1}")
        };
        assert_eq!(with(&good, &good), Ok(()));
        assert_eq!(with(&good, &bad), Err(Reason::MalformedHeader));
        assert_eq!(with(&bad, &good), Err(Reason::MalformedHeader));
        assert_eq!(with("", &good), Err(Reason::MalformedHeader));
        assert_eq!(verify(&verifier, &[], b"{\"a\":1}"), Err(Reason::MissingHeader));
    }
}

#[test]
fn case_b07_the_window_holds_for_signed_requests() {
    let options = VerifyOptions { tolerance_seconds: Some(300), hmac: None };
    let verifier = Verifier::new(Scheme::StandardWebhooks, &[SECRET], &options).unwrap();
    let signer = Signer::new(&[SECRET]).unwrap();
    let at = |stamp: i64, text: &str| {
        let signature = signer.sign("msg_1", stamp, b"{}");
        let headers: [(&str, &[u8]); 3] = [
            ("webhook-id", b"msg_1"),
            ("webhook-timestamp", text.as_bytes()),
            ("webhook-signature", signature.as_bytes()),
        ];
        verify(&verifier, &headers, b"{}")
    };
    for (offset, expected) in [
        (-299, Ok(())),
        (-300, Ok(())),
        (-301, Err(Reason::TimestampTooOld)),
        (299, Ok(())),
        (301, Err(Reason::TimestampTooNew)),
        (86_400, Err(Reason::TimestampTooNew)),
    ] {
        assert_eq!(at(NOW + offset, &(NOW + offset).to_string()), expected, "{offset}");
    }
    for odd in ["1767225600.5", " 1767225600", "01767225600", "+1767225600", "9223372036854775808"] {
        assert_eq!(at(NOW, odd), Err(Reason::MalformedTimestamp), "{odd}");
    }
    assert_eq!(at(NOW, ""), Err(Reason::MissingHeader));
}

#[test]
fn r_a1_an_old_message_cannot_be_replayed_by_moving_the_dots() {
    let old = NOW - 7200;
    let signature =
        Signer::new(&[SECRET]).unwrap().sign("msg_1", old, format!("{{\"a\":\"x.{NOW}.\"}}").as_bytes());
    let options = VerifyOptions { tolerance_seconds: Some(300), hmac: None };
    let verifier = Verifier::new(Scheme::StandardWebhooks, &[SECRET], &options).unwrap();
    let id = format!("msg_1.{old}.{{\"a\":\"x");
    let now = NOW.to_string();
    let headers: [(&str, &[u8]); 3] = [
        ("webhook-id", id.as_bytes()),
        ("webhook-timestamp", now.as_bytes()),
        ("webhook-signature", signature.as_bytes()),
    ];
    assert_eq!(verify(&verifier, &headers, b"\"}"), Err(Reason::MalformedHeader));
}

#[test]
fn r_a1_the_generic_scheme_knows_every_hash_and_encoding() {
    let hashes = [
        ("sha1", hmac::HMAC_SHA1_FOR_LEGACY_USE_ONLY),
        ("sha256", hmac::HMAC_SHA256),
        ("sha384", hmac::HMAC_SHA384),
        ("sha512", hmac::HMAC_SHA512),
    ];
    for ((name, algorithm), encoding) in hashes.into_iter().flat_map(|hash| [(hash, "hex"), (hash, "base64")])
    {
        let tag = hmac::sign(&hmac::Key::new(algorithm, b"octo-key"), b"{\"a\":1}");
        let mut text = match encoding {
            "hex" => tag.as_ref().iter().fold(String::new(), |text, byte| format!("{text}{byte:02x}")),
            _ => STANDARD.encode(tag),
        };
        let config = [("header", "X-Sig"), ("algorithm", name), ("encoding", encoding)];
        let once = |text: &str| {
            let headers = [("x-sig", text.as_bytes())];
            let request = Request { method: "POST", url: "", headers: &headers, body: b"{\"a\":1}" };
            verify_once("hmac", &["octo-key"], &request, NOW, None, &config).is_ok()
        };
        assert!(once(&text), "{name} {encoding}");
        text.replace_range(..1, if text.starts_with('0') { "1" } else { "0" });
        assert!(!once(&text), "{name} {encoding}");
    }
}

#[test]
fn faults_of_the_caller_are_told_from_verdicts() {
    let request = Request { method: "POST", url: "", headers: &[], body: b"" };
    let once = |scheme, config: &[(&str, &str)]| {
        verify_once(scheme, &["s"], &request, NOW, None, config).unwrap_err()
    };
    let unknown = once("githib", &[]);
    assert!(matches!(unknown, OnceError::UnknownScheme(_)));
    assert!(unknown.to_string().contains("github, hmac"), "{unknown}");
    for config in [
        [("header", "bad name")].as_slice(),
        &[("algorithm", "md5")],
        &[("encoding", "x")],
        &[("x", "y")],
        &[],
    ] {
        assert!(matches!(once("hmac", config), OnceError::Option(_)), "{config:?}");
    }
    let OnceError::Rejected(rejection) = once("standard_webhooks", &[]) else { panic!("not a verdict") };
    assert_eq!(rejection.reason, Reason::BadSecret);
}

#[test]
fn r_a1_debug_and_errors_show_no_secret() {
    let shown = format!("{:?}", octo(None));
    assert_eq!(shown, "Verifier { scheme: Hmac, secrets: 1, .. }");
    let request =
        Request { method: "POST", url: "/?token=t", headers: &[("a", b"secret-ish")], body: b"private" };
    assert_eq!(format!("{request:?}"), "Request { method: \"POST\", headers: 1, body_bytes: 7, .. }");
}

#[test]
fn r_a1_a_verifier_can_be_shared_between_threads() {
    fn shared<T: Send + Sync>() {}
    shared::<Verifier>();
    shared::<Signer>();
}

#[test]
fn r_a1_unsigned_headers_still_tell_id_and_event() {
    let header = format!("sha256={OCTO_DIGEST}");
    let headers: [(&str, &[u8]); 3] = [
        ("x-hub-signature-256", header.as_bytes()),
        ("X-GitHub-Delivery", b"ab167c3b"),
        ("X-GitHub-Event", b"push"),
    ];
    let request = Request { method: "POST", url: "", headers: &headers, body: b"{\"a\":1}" };
    let verified = github().verify(&request, 0).unwrap();
    assert_eq!((verified.delivery_id, verified.event_type), (Some("ab167c3b"), Some("push")));
}
