//! The vector files, and the judge that holds a verifier against them.

#![allow(dead_code, unreachable_pub, missing_docs)]

use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use posthaste_receiver::{OnceError, Request, verify_once};
use serde::Deserialize;
use serde_json::{Map, Value};

/// One inbound vector, as described in the vectors' own README.
#[derive(Deserialize)]
pub struct Vector {
    pub scheme: String,
    pub name: String,
    pub secrets: Vec<String>,
    pub method: String,
    pub url: String,
    pub headers: Vec<(String, String)>,
    pub body_base64: String,
    pub now_unix: i64,
    pub tolerance_seconds: Option<u64>,
    pub expect: Expect,
    pub conformance: Conformance,
    pub prefer: Option<Prefer>,
    pub config: Option<Map<String, Value>>,
}

#[derive(Deserialize, Clone, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Expect {
    Valid,
    Invalid(String),
}

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Conformance {
    Must,
    Either,
}

#[derive(Deserialize, Clone, Copy, PartialEq, Debug)]
#[serde(rename_all = "snake_case")]
pub enum Prefer {
    Accept,
    Reject,
}

/// What a verifier made of a file of vectors.
#[derive(Default, Debug)]
pub struct Tally {
    pub must_passed: usize,
    pub must_failed: Vec<String>,
    pub either_as_preferred: usize,
    pub deviations: Vec<String>,
    pub other_reasons: Vec<String>,
}

/// Reads one file of `tests/vectors`.
pub fn load<T: for<'de> Deserialize<'de>>(scheme: &str) -> Vec<T> {
    let path =
        Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/vectors").join(scheme).with_extension("json");
    serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap()
}

pub fn body(text: &str) -> Vec<u8> {
    STANDARD.decode(text).unwrap()
}

/// Calls `use_it` with the vector's request.
pub fn with_request<R>(vector: &Vector, use_it: impl FnOnce(&Request<'_>) -> R) -> R {
    let body = body(&vector.body_base64);
    let headers: Vec<(&str, &[u8])> =
        vector.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    use_it(&Request { method: &vector.method, url: &vector.url, headers: &headers, body: &body })
}

/// Our own answer: `Err` holds the reason's word.
pub fn ours(vector: &Vector) -> Result<(), String> {
    ours_with_tolerance(vector, vector.tolerance_seconds)
}

/// Our own answer under another tolerance.
pub fn ours_with_tolerance(vector: &Vector, tolerance_seconds: Option<u64>) -> Result<(), String> {
    let secrets: Vec<&str> = vector.secrets.iter().map(String::as_str).collect();
    let config: Vec<(&str, &str)> = vector
        .config
        .iter()
        .flatten()
        .filter_map(|(name, value)| value.as_str().map(|value| (name.as_str(), value)))
        .collect();
    with_request(vector, |request| {
        match verify_once(&vector.scheme, &secrets, request, vector.now_unix, tolerance_seconds, &config) {
            Ok(_) => Ok(()),
            Err(OnceError::Rejected(rejection)) => Err(rejection.reason.as_str().to_owned()),
            Err(fault) => panic!("{}: {fault}", vector.name),
        }
    })
}

/// Holds `verifier` against every vector.
pub fn judge(vectors: &[Vector], verifier: impl Fn(&Vector) -> Result<(), String>) -> Tally {
    let mut tally = Tally::default();
    for vector in vectors {
        let answer = verifier(vector);
        let wanted = match (vector.conformance, vector.prefer) {
            (Conformance::Must, _) => vector.expect == Expect::Valid,
            (Conformance::Either, prefer) => prefer.unwrap() == Prefer::Accept,
        };
        match (vector.conformance, answer.is_ok() == wanted) {
            (Conformance::Must, true) => tally.must_passed += 1,
            (Conformance::Must, false) => tally.must_failed.push(format!("{}: {answer:?}", vector.name)),
            (Conformance::Either, true) => tally.either_as_preferred += 1,
            (Conformance::Either, false) => tally.deviations.push(format!("{}: {answer:?}", vector.name)),
        }
        if let (Conformance::Must, Expect::Invalid(expected), Err(given)) =
            (vector.conformance, &vector.expect, &answer)
            && expected != given
        {
            tally.other_reasons.push(format!("{}: {given} for {expected}", vector.name));
        }
    }
    tally
}
