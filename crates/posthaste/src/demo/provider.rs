//! The provider of the demo: signs requests as GitHub does.

use aws_lc_rs::hmac;
use bytes::Bytes;

/// The secret that provider and server share.
pub(crate) const SECRET: &str = "it's a secret to everybody";

/// A push as GitHub sends it.
pub(super) fn push() -> Bytes {
    let push = serde_json::json!({
        "ref": "refs/heads/main",
        "repository": { "full_name": "octo/carts" },
        "head_commit": { "id": "7fd1a60b01f91b314f59955a4e4d4e80d8edf11d", "message": "Expire carts after a day" },
    });
    Bytes::from(push.to_string())
}

/// The headers of a delivery, signed over exactly `body`.
pub(crate) fn headers(secret: &str, delivery: &str, body: &[u8]) -> Vec<(&'static str, String)> {
    let key = hmac::Key::new(hmac::HMAC_SHA256, secret.as_bytes());
    let digits = hmac::sign(&key, body).as_ref().iter().fold(String::new(), |mut text, byte| {
        text.extend(
            [byte >> 4, byte & 15].map(|four| char::from_digit(u32::from(four), 16).expect("four bits")),
        );
        text
    });
    vec![
        ("content-type", "application/json".to_owned()),
        ("user-agent", "GitHub-Hookshot/demo".to_owned()),
        ("x-github-event", "push".to_owned()),
        ("x-github-delivery", delivery.to_owned()),
        ("x-hub-signature-256", format!("sha256={digits}")),
    ]
}
