//! What goes wrong, as `application/problem+json` (RFC 9457).

use std::borrow::Cow;

use axum::{
    body::Body,
    response::{IntoResponse, Response},
};
use http::{HeaderValue, StatusCode, header};
use serde_json::{Map, Value};
use utoipa::ToSchema;

use super::Code;

/// Where the codes are explained; the code follows as the fragment.
const CODES_PAGE: &str = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/docs/errors.md#");

/// What a caller is told to wait after 503, in seconds: longer than a restart's first try, shorter than a person's
/// patience.
const RETRY_AFTER: HeaderValue = HeaderValue::from_static("2");

const CONTENT_TYPE: HeaderValue = HeaderValue::from_static("application/problem+json");

/// A refusal or failure on its way to the caller.
#[derive(Clone, Debug)]
pub(crate) struct Problem {
    code: Code,
    detail: Cow<'static, str>,
    members: Map<String, Value>,
}

/// How a problem looks on the wire. More members may follow, by code: `field`, `message_id`, `path`, `line`,
/// `column`, `scope`, `reported`, `state`.
#[derive(ToSchema)]
#[schema(as = Problem)]
#[allow(dead_code)] // describes what `Problem::to_object` writes
pub(crate) struct ProblemJson {
    /// Where the code is explained.
    #[schema(format = "uri")]
    r#type: String,
    /// One line, the same for every problem of this code.
    title: String,
    /// The HTTP status.
    status: u16,
    /// What is wrong with this request, and what would be right.
    detail: String,
    /// Stable, in snake_case: what programs look at.
    code: String,
}

impl Problem {
    pub(crate) fn new(code: Code, detail: impl Into<Cow<'static, str>>) -> Self {
        Self { code, detail: detail.into(), members: Map::new() }
    }

    /// Adds a member.
    pub(crate) fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.members.insert(name.to_owned(), value.into());
        self
    }

    /// The same about a value of the wrong type, where the text said that it is no JSON.
    pub(crate) fn of_type(mut self) -> Self {
        let place = self.members.get("path").and_then(Value::as_str).map(str::to_owned);
        self.detail = match place {
            Some(path) => format!("`{path}`: invalid type: a word in quotes is expected here").into(),
            None => "invalid type: a word in quotes is expected here".into(),
        };
        Self { code: Code::InvalidType, ..self }
    }

    pub(crate) fn code(&self) -> Code {
        self.code
    }

    pub(crate) fn detail(&self) -> &str {
        &self.detail
    }

    /// The members on the wire.
    pub(crate) fn to_object(&self) -> Map<String, Value> {
        let code = self.code;
        let mut object = Map::new();
        object.insert("type".to_owned(), format!("{CODES_PAGE}{}", code.as_str()).into());
        object.insert("title".to_owned(), code.title().into());
        object.insert("status".to_owned(), code.status().into());
        object.insert("detail".to_owned(), self.detail.as_ref().into());
        object.insert("code".to_owned(), code.as_str().into());
        object.extend(self.members.clone());
        object
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let body = Value::Object(self.to_object()).to_string();
        let mut response = Response::new(Body::from(body));
        *response.status_mut() = StatusCode::from_u16(self.code.status()).expect("the table holds statuses");
        let headers = response.headers_mut();
        headers.insert(header::CONTENT_TYPE, CONTENT_TYPE);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.code.status() == 503 {
            headers.insert(header::RETRY_AFTER, RETRY_AFTER);
        }
        if self.code == Code::Unauthenticated {
            let challenge = HeaderValue::from_static("Bearer realm=\"posthaste\"");
            headers.insert(header::WWW_AUTHENTICATE, challenge);
        }
        response
    }
}
