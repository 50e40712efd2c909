//! Every vector of every implemented scheme, and proof that the judge would notice a wrong verifier.

#![allow(clippy::unwrap_used)]

mod common;

use aws_lc_rs::hmac;
use common::{Expect, Tally, Vector, judge, load, ours, ours_with_tolerance, with_request};
use posthaste_receiver::Scheme;

/// How many `must` vectors each file has: a file that shrank is not a pass.
const MUST_COUNTS: [(&str, usize); 18] = [
    ("aws_sns", 78),
    ("convoy_simple", 22),
    ("discord", 58),
    ("github", 59),
    ("hubspot_v1_v2", 40),
    ("hubspot_v3", 46),
    ("linear", 58),
    ("mailgun", 36),
    ("paddle", 62),
    ("sendgrid", 58),
    ("shopify", 44),
    ("slack", 64),
    ("square", 44),
    ("standard_webhooks", 122),
    ("standard_webhooks_v1a", 58),
    ("stripe", 86),
    ("svix", 28),
    ("twilio", 113),
];

/// `either` vectors where we answer otherwise than the vectors prefer, each with its reason.
///
/// Stripe's SDKs take a tolerance of 0 as "no limit"; here zero means zero seconds (field case B07).
const CHOSEN_DEVIATIONS: [&str; 2] = ["stripe/tolerance_0_disables/a", "stripe/tolerance_0_disables/b"];

#[test]
fn r_a1_every_must_vector_gets_the_sdks_verdict() {
    let mut failures = Vec::new();
    for (scheme, must) in MUST_COUNTS {
        let tally = judge(&load::<Vector>(scheme), ours);
        println!(
            "{scheme}: {} must, {} either as preferred, {} deviating, {} under another reason",
            tally.must_passed,
            tally.either_as_preferred,
            tally.deviations.len(),
            tally.other_reasons.len()
        );
        tally.other_reasons.iter().for_each(|note| println!("  other reason: {note}"));
        failures.extend(tally.must_failed);
        if tally.must_passed != must {
            failures.push(format!("{scheme}: {} of {must} must vectors passed", tally.must_passed));
        }
    }
    assert!(failures.is_empty(), "{failures:#?}");
}

#[test]
fn r_a1_either_vectors_are_answered_as_preferred_but_for_those_listed() {
    let deviations: Vec<String> =
        MUST_COUNTS.iter().flat_map(|(scheme, _)| judge(&load::<Vector>(scheme), ours).deviations).collect();
    let names: Vec<&str> = deviations.iter().filter_map(|line| line.split(':').next()).collect();
    assert_eq!(names, CHOSEN_DEVIATIONS, "{deviations:#?}");
}

#[test]
fn every_scheme_but_the_generic_one_has_a_vector_file() {
    let covered: Vec<&str> = MUST_COUNTS.iter().map(|(scheme, _)| *scheme).collect();
    for scheme in Scheme::ALL.iter().filter(|scheme| **scheme != Scheme::Hmac) {
        assert!(covered.contains(&scheme.as_str()), "{scheme}");
    }
}

#[test]
fn meta_the_judge_catches_a_verifier_that_skips_the_timestamp() {
    for scheme in
        ["standard_webhooks", "svix", "stripe", "slack", "paddle", "mailgun", "linear", "hubspot_v3"]
    {
        let tally = judge(&load::<Vector>(scheme), |vector| ours_with_tolerance(vector, Some(u64::MAX)));
        assert_caught(&tally, "timestamp");
    }
}

#[test]
fn meta_the_judge_catches_a_verifier_that_compares_a_prefix() {
    let tally = judge(&load::<Vector>("github"), |vector| {
        let right = github_signature(vector);
        match vector.headers.iter().find(|(name, _)| name.eq_ignore_ascii_case("x-hub-signature-256")) {
            Some((_, given)) if given.get(..20) == right.get(..20) => Ok(()),
            _ => Err("signature_mismatch".to_owned()),
        }
    });
    assert_caught(&tally, "signature_truncated");
}

#[test]
fn meta_the_judge_catches_a_verifier_that_looks_at_one_secret() {
    let tally = judge(&load::<Vector>("standard_webhooks"), |vector| {
        let mut one = load_one(vector);
        one.secrets.truncate(1);
        ours(&one)
    });
    assert_caught(&tally, "rotation_two_configured");
}

#[test]
fn meta_the_judge_catches_a_verifier_that_looks_at_one_signature() {
    let tally = judge(&load::<Vector>("standard_webhooks"), |vector| {
        let mut one = load_one(vector);
        for (_, value) in
            one.headers.iter_mut().filter(|(name, _)| name.eq_ignore_ascii_case("webhook-signature"))
        {
            *value = value.split(' ').next().unwrap_or_default().to_owned();
        }
        ours(&one)
    });
    assert_caught(&tally, "rotation_header_old_secret");
}

#[test]
fn meta_the_judge_catches_verifiers_that_answer_always_alike() {
    for (scheme, _) in MUST_COUNTS {
        let vectors = load::<Vector>(scheme);
        assert!(!judge(&vectors, |_| Ok(())).must_failed.is_empty(), "{scheme}");
        assert!(!judge(&vectors, |_| Err(String::new())).must_failed.is_empty(), "{scheme}");
    }
}

fn assert_caught(tally: &Tally, kind: &str) {
    assert!(tally.must_failed.iter().any(|name| name.contains(kind)), "{kind}: {tally:#?}");
}

fn load_one(vector: &Vector) -> Vector {
    load::<Vector>(&vector.scheme).into_iter().find(|other| other.name == vector.name).unwrap()
}

fn github_signature(vector: &Vector) -> String {
    let key = hmac::Key::new(hmac::HMAC_SHA256, vector.secrets[0].as_bytes());
    let tag = with_request(vector, |request| hmac::sign(&key, request.body));
    let hex: String = tag.as_ref().iter().flat_map(|byte| [byte >> 4, byte & 15]).map(hex_digit).collect();
    format!("sha256={hex}")
}

fn hex_digit(value: u8) -> char {
    char::from_digit(u32::from(value), 16).unwrap()
}

#[test]
fn r_a1_the_verdict_is_the_same_for_one_secret_and_for_sixteen() {
    let vectors = load::<Vector>("standard_webhooks");
    for vector in vectors.iter().filter(|vector| vector.expect == Expect::Valid && vector.secrets.len() == 1)
    {
        let mut many = load_one(vector);
        let mut secrets = vec![posthaste_receiver::secret_from_bytes(&[7; 32]); 15];
        secrets.append(&mut many.secrets);
        many.secrets = secrets;
        assert_eq!(ours(&many), ours(vector), "{}", vector.name);
    }
}
