//! Outbound signing against the vectors and against the official crate.

#![allow(clippy::unwrap_used)]

mod common;

use std::time::{SystemTime, UNIX_EPOCH};

use common::{body, load};
use posthaste_receiver::{
    Reason, Request, Scheme, SecretError, Signer, Verifier, VerifyOptions, check_signing_secret,
    generate_secret, generate_signing_key, public_key, secret_from_bytes,
};
use serde::Deserialize;

const NOW: i64 = 1_767_225_600;
const SECRET: &str = "whsec_AAECAwQFBgcICQoLDA0ODxAREhMUFRYXGBkaGxwdHh8=";

#[derive(Deserialize)]
struct Outbound {
    name: String,
    secrets: Vec<String>,
    id: String,
    timestamp: i64,
    body_base64: String,
    expect_headers: Vec<(String, String)>,
    #[serde(default)]
    public_keys: Vec<String>,
}

fn outbound() -> Vec<Outbound> {
    load("standard_webhooks_outbound")
}

fn texts(secrets: &[String]) -> Vec<&str> {
    secrets.iter().map(String::as_str).collect()
}

#[test]
fn r_d1_every_outbound_vector_gives_the_exact_headers() {
    let vectors = outbound();
    assert_eq!(vectors.len(), 34);
    for vector in &vectors {
        let signer = Signer::new(&texts(&vector.secrets)).unwrap();
        let headers = vec![
            ("webhook-id".to_owned(), vector.id.clone()),
            ("webhook-timestamp".to_owned(), vector.timestamp.to_string()),
            (
                "webhook-signature".to_owned(),
                signer.sign(&vector.id, vector.timestamp, &body(&vector.body_base64)),
            ),
        ];
        assert_eq!(headers, vector.expect_headers, "{}", vector.name);
    }
    println!("standard_webhooks_outbound: {} exact", vectors.len());
}

#[test]
fn r_d1_every_signing_key_tells_its_public_key() {
    let mut checked = 0;
    for vector in outbound() {
        let signing_keys = vector.secrets.iter().filter(|secret| secret.starts_with("whsk_"));
        let public_keys: Vec<String> = signing_keys.map(|secret| public_key(secret).unwrap()).collect();
        checked += public_keys.len();
        assert_eq!(public_keys, vector.public_keys, "{}", vector.name);
    }
    assert!(checked > 0);
}

#[test]
fn r_d1_what_is_signed_with_old_and_new_secrets_verifies_with_any_one() {
    let symmetric = [generate_secret().unwrap(), generate_secret().unwrap()];
    let signing = [generate_signing_key().unwrap(), generate_signing_key().unwrap()];
    let all = [&symmetric[0], &symmetric[1], &signing[0], &signing[1]].map(String::as_str);
    let value = Signer::new(&all).unwrap().sign("msg_1", NOW, b"{}");
    assert_eq!(value.split(' ').count(), 4);
    for secret in &symmetric {
        assert_eq!(verify(Scheme::StandardWebhooks, secret, "msg_1", &value), Ok(()));
    }
    for key in &signing {
        assert_eq!(verify(Scheme::StandardWebhooksV1a, &public_key(key).unwrap(), "msg_1", &value), Ok(()));
    }
    let stranger = generate_secret().unwrap();
    assert_eq!(verify(Scheme::StandardWebhooks, &stranger, "msg_1", &value), Err(Reason::SignatureMismatch));
}

fn verify(scheme: Scheme, secret: &str, id: &str, signature: &str) -> Result<(), Reason> {
    let options = VerifyOptions { tolerance_seconds: Some(300), hmac: None };
    let timestamp = NOW.to_string();
    let headers = [
        ("webhook-id", id.as_bytes()),
        ("webhook-timestamp", timestamp.as_bytes()),
        ("webhook-signature", signature.as_bytes()),
    ];
    let request = Request { method: "POST", url: "", headers: &headers, body: b"{}" };
    let verified = Verifier::new(scheme, &[secret], &options).unwrap().verify(&request, NOW * 1000);
    verified.map(|found| assert_eq!(found.delivery_id, Some(id))).map_err(|rejection| rejection.reason)
}

#[test]
fn r_d1_the_official_crate_signs_alike_and_accepts_ours() {
    let now = i64::try_from(SystemTime::now().duration_since(UNIX_EPOCH).unwrap().as_secs()).unwrap();
    for _ in 0..20 {
        let secret = generate_secret().unwrap();
        let official = standardwebhooks::Webhook::new(&secret).unwrap();
        let ours = Signer::new(&[&secret]).unwrap().sign("msg_1", now, b"{\"a\":1}");
        assert_eq!(ours, official.sign("msg_1", now, b"{\"a\":1}").unwrap());
        let headers = [
            ("webhook-id", "msg_1".to_owned()),
            ("webhook-timestamp", now.to_string()),
            ("webhook-signature", ours),
        ]
        .into_iter()
        .map(|(name, value)| (name.parse().unwrap(), value.parse().unwrap()))
        .collect();
        official.verify(b"{\"a\":1}", &headers).unwrap();
    }
}

#[test]
fn case_b04_the_three_spellings_of_one_secret_sign_alike() {
    let spellings = [SECRET, SECRET.trim_end_matches('='), &SECRET["whsec_".len()..]];
    for secret in spellings {
        let value = Signer::new(&[secret]).unwrap().sign("msg_1", NOW, b"{\"a\":1}");
        assert_eq!(value, "v1,ZrlPo/jiT9N2btAG0jXiZPpJi4tRkX0/iJE3AzZUC88=");
    }
}

#[test]
fn case_b05_the_new_key_signs_first_and_the_old_one_only_while_it_is_given() {
    let new = "whsec_ICEiIyQlJicoKSorLC0uLzAxMjM0NTY3ODk6Ozw9Pj8=";
    let in_overlap = Signer::new(&[new, SECRET]).unwrap().sign("msg_1", NOW, b"{\"a\":1}");
    assert_eq!(
        in_overlap,
        "v1,E0segQjKcno0uR8xwtmLtEE/W6mpFAG79Fck7+SbhmQ= v1,ZrlPo/jiT9N2btAG0jXiZPpJi4tRkX0/iJE3AzZUC88="
    );
    let after = Signer::new(&[new]).unwrap().sign("msg_1", NOW, b"{\"a\":1}");
    assert_eq!(after, "v1,E0segQjKcno0uR8xwtmLtEE/W6mpFAG79Fck7+SbhmQ=");
    assert_eq!(Signer::new(&[SECRET; 17]).unwrap_err(), SecretError::TooMany);
}

#[test]
fn case_b10_each_attempt_is_signed_with_its_own_time() {
    let signer = Signer::new(&[SECRET]).unwrap();
    let (first, retry) = (signer.sign("msg_1", NOW, b"{}"), signer.sign("msg_1", NOW + 600, b"{}"));
    assert_ne!(first, retry);
    assert_eq!(verify(Scheme::StandardWebhooks, SECRET, "msg_1", &first), Ok(()));
}

#[test]
fn r_d1_a_signing_key_whose_halves_do_not_belong_together_is_refused() {
    let vector =
        outbound().into_iter().find(|vector| vector.name == "standard_webhooks_outbound/v1a/a").unwrap();
    let key = &vector.secrets[0];
    assert_eq!(check_signing_secret(key), Ok(()));
    let swapped = key.replacen('5', "6", 1);
    for bad in [swapped.as_str(), "whsk_", "whsk_AAAA", SECRET] {
        assert!(public_key(bad).is_err());
    }
    assert_eq!(check_signing_secret(&swapped), Err(SecretError::NotASigningKey));
}

#[test]
fn r_d1_a_new_secret_is_strictly_right_and_never_shown() {
    let secret = generate_secret().unwrap();
    assert_eq!(check_signing_secret(&secret), Ok(()));
    assert_ne!(secret, generate_secret().unwrap());
    assert_eq!(secret_from_bytes(&std::array::from_fn(|index| u8::try_from(index).unwrap())), SECRET);
    assert_eq!(format!("{:?}", Signer::new(&[SECRET]).unwrap()), "Signer { secrets: 1, .. }");
}
