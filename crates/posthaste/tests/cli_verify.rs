//! `verify` against requests that the providers' own SDKs have judged. Row A1.

#![allow(clippy::unwrap_used)]

mod cli_support;

use cli_support::{posthaste, run, run_with_input};
use serde_json::Value;
use std::path::Path;

fn vectors(scheme: &str) -> Vec<Value> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../receiver/tests/vectors");
    serde_json::from_slice(&std::fs::read(folder.join(scheme).with_extension("json")).unwrap()).unwrap()
}

#[test]
fn r_a1_every_must_vector_is_answered_as_the_sdks_do() {
    let folder = tempfile::tempdir().unwrap();
    for (scheme, must) in [("standard_webhooks", 122), ("svix", 28), ("github", 59), ("stripe", 86)] {
        let vectors: Vec<Value> =
            vectors(scheme).into_iter().filter(|vector| vector["conformance"] == "must").collect();
        let input: Vec<String> = vectors.iter().map(Value::to_string).collect();
        let ended = run_with_input(&mut posthaste(folder.path(), &["verify", "--ndjson"]), input.join("\n"));
        assert_eq!((Some(0), ""), (ended.code, ended.err.as_str()), "{scheme}");
        let answers: Vec<Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
        assert_eq!(must, answers.len(), "{scheme}");
        for (vector, answer) in vectors.iter().zip(&answers) {
            let expected = if vector["expect"] == "valid" { "valid" } else { "invalid" };
            assert_eq!(expected, answer["result"], "{}: {answer}", vector["name"]);
            assert_eq!(expected == "invalid", answer["reason"].is_string(), "{}", vector["name"]);
        }
        assert_eq!(must, vectors.len(), "{scheme}");
    }
}

#[test]
fn a_line_that_is_no_request_is_answered_too() {
    let folder = tempfile::tempdir().unwrap();
    let good = &vectors("github")[0];
    let unknown = r#"{"scheme":"x","secrets":[],"headers":[]}"#;
    let input = format!("nonsense\n\n{good}\n{unknown}\n{{\"scheme\":\"github\"}}\n");
    let ended = run_with_input(&mut posthaste(folder.path(), &["verify", "--ndjson"]), input);
    let answers: Vec<Value> = ended.out.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let reasons: Vec<&str> =
        answers.iter().map(|answer| answer["reason"].as_str().unwrap_or_default()).collect();
    assert_eq!(["unreadable_request", "", "unknown_scheme", "unreadable_request"], *reasons);
    assert_eq!("valid", answers[1]["result"]);
    assert_eq!(Some(1), ended.code);
}

const SIGNATURE: &str =
    "X-Hub-Signature-256: sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
const SECRET: &str = "It's a Secret to Everybody";

#[test]
fn r_a1_one_request_is_explained_to_a_person() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("body"), "Hello, World!\n").unwrap();
    let explained = |body: &str, more: &[&str]| {
        let arguments = ["verify", "--scheme", "github", "--secret", "env:HOOK", "--body", body];
        run(posthaste(folder.path(), &[&arguments, more].concat()).env("HOOK", SECRET))
    };
    let ended = explained("Hello, World!", &["-H", SIGNATURE, "-H", "X-GitHub-Delivery: d-1"]);
    assert_eq!((Some(0), "valid: the signature fits\n  delivery  d-1\n"), (ended.code, ended.out.as_str()));
    let ended = explained("@body", &["-H", SIGNATURE]);
    assert_eq!(Some(1), ended.code);
    assert!(ended.out.contains("an editor or `echo` has added one"), "{}", ended.out);
    let ended = explained("other", &["-H", SIGNATURE]);
    assert!(ended.out.starts_with("invalid: signature_mismatch: "), "{}", ended.out);
    let ended = explained("Hello, World!", &[]);
    assert!(ended.out.starts_with("invalid: missing_header: "), "{}", ended.out);
    assert!(!ended.out.contains("Everybody"));
}

#[test]
fn r_a1_a_signature_whose_time_is_out_is_told_from_a_wrong_one() {
    let folder = tempfile::tempdir().unwrap();
    let vector = vectors("stripe").into_iter().find(|vector| vector["expect"] == "valid").unwrap();
    let header = |name: &str| {
        let headers = vector["headers"].as_array().unwrap();
        headers.iter().find(|pair| pair[0] == name).unwrap()[1].as_str().unwrap().to_owned()
    };
    let body = {
        use base64::Engine as _;
        base64::engine::general_purpose::STANDARD.decode(vector["body_base64"].as_str().unwrap()).unwrap()
    };
    std::fs::write(folder.path().join("body"), body).unwrap();
    let (secret, signature) =
        (vector["secrets"][0].as_str().unwrap(), format!("Stripe-Signature: {}", header("Stripe-Signature")));
    let arguments = ["verify", "--scheme", "stripe", "--secret", secret, "--body", "@body", "-H", &signature];
    let ended = run(&mut posthaste(folder.path(), &arguments));
    assert_eq!(Some(1), ended.code);
    assert!(
        ended.out.contains("timestamp_too_old") && ended.out.contains("only its time is out"),
        "{}",
        ended.out
    );
    let now = vector["now_unix"].to_string();
    let ended = run(&mut posthaste(folder.path(), &[&arguments[..], &["--now", &now]].concat()));
    assert_eq!(Some(0), ended.code, "{}", ended.out);
}
