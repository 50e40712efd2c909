//! The requests that the bench sends, in bytes.

use std::fmt::Write as _;

use serde_json::json;

use super::{plan::Template, token};
use crate::demo::provider;

/// The secret of the source that the bench signs for.
pub(super) const SOURCE_SECRET: &str = provider::SECRET;

/// The payload of a message: JSON of about `bytes` bytes.
pub(super) fn payload(bytes: usize) -> String {
    let envelope = json!({ "ref": "refs/heads/main", "filling": "" }).to_string().len();
    json!({ "ref": "refs/heads/main", "filling": "x".repeat(bytes.saturating_sub(envelope)) }).to_string()
}

/// A delivery that GitHub signed, to a source. Its key is the delivery's id.
pub(super) fn github(source: &str, payload: &str) -> Template {
    let mut head = format!("POST /in/{source} HTTP/1.1\r\nhost: bench\r\n");
    for (name, value) in provider::headers(provider::SECRET, token::BLANK, payload.as_bytes()) {
        write!(head, "{name}: {value}\r\n").expect("a String takes all text");
    }
    write!(head, "content-length: {}\r\n\r\n{payload}", payload.len()).expect("a String takes all text");
    template(head)
}

/// A publish to `POST /v1/messages`; `to` as in the API's `"to"`, or a type to fan out by.
pub(super) fn publish(to: &To, api_key: &str, payload: &str) -> Template {
    let body = format!("{{\"key\":\"b:{}\",{}\"payload\":{payload}}}", token::BLANK, to.members());
    template(api_request("/v1/messages", api_key, to.tenant.as_deref(), &body))
}

/// A request that is the same each time: its token stands in a header that nobody reads.
pub(super) fn verbatim(request: &str) -> Template {
    template(request.replacen("\r\n", &format!("\r\nx-token: {}\r\n", token::BLANK), 1))
}

/// Where a message goes.
#[derive(Clone, Debug, Default)]
pub(super) struct To {
    /// A tenant other than the default one.
    pub(super) tenant: Option<String>,
    /// This queue, if any.
    pub(super) queue: Option<String>,
    /// This endpoint, if any.
    pub(super) endpoint: Option<String>,
    /// This event type, if any.
    pub(super) event_type: Option<String>,
}

impl To {
    pub(super) fn queue(name: &str) -> Self {
        Self { queue: Some(name.to_owned()), ..Self::default() }
    }

    pub(super) fn endpoint(id: &str) -> Self {
        Self { endpoint: Some(id.to_owned()), ..Self::default() }
    }

    /// The members of a publish that say so, each with its comma.
    pub(super) fn members(&self) -> String {
        let queue = self.queue.as_ref().map(|queue| format!("\"to\":{{\"queue\":\"{queue}\"}},"));
        let endpoint = self.endpoint.as_ref().map(|id| format!("\"to\":{{\"endpoints\":[\"{id}\"]}},"));
        let event_type = self.event_type.as_ref().map(|name| format!("\"type\":\"{name}\","));
        [queue, endpoint, event_type].into_iter().flatten().collect()
    }
}

/// A call of the API with a JSON body, in bytes.
pub(super) fn api_request(path: &str, api_key: &str, tenant: Option<&str>, body: &str) -> String {
    let tenant = tenant.map(|name| format!("posthaste-tenant: {name}\r\n")).unwrap_or_default();
    format!(
        "POST {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {api_key}\r\n{tenant}\
         content-type: application/json\r\ncontent-length: {}\r\n\r\n{body}",
        body.len()
    )
}

/// A request with a place for a token in it.
pub(super) fn templated(text: String) -> Template {
    template(text)
}

fn template(text: String) -> Template {
    let token_at = text.find(token::BLANK).expect("a template has a place for its token");
    Template { text, token_at }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn templates_are_requests_with_a_place_for_the_token() {
        let payload = payload(1_024);
        assert_eq!(1_024, payload.len());
        for template in [github("github", &payload), publish(&To::queue("carts"), "phk_x", &payload)] {
            let whole = super::super::wire::request(template.text.as_bytes()).unwrap().unwrap();
            assert_eq!(template.text.len(), whole.len);
            assert_eq!(token::BLANK, &template.text[template.token_at..template.token_at + token::LEN]);
        }
        let again = verbatim(&publish(&To::queue("carts"), "phk_x", "{}").text.replace(token::BLANK, "key"));
        assert!(again.text[..again.token_at].ends_with("\r\nx-token: "), "{}", again.text);
        let body = publish(&To::endpoint("sink"), "phk_x", "{}").text;
        let body: serde_json::Value = serde_json::from_str(body.split("\r\n\r\n").nth(1).unwrap()).unwrap();
        assert_eq!("sink", body["to"]["endpoints"][0]);
    }
}
