//! Handshakes: how a provider asks, before it sends, whether a source is meant. Row A11.

use axum::{
    body::Body,
    extract::{Request, State},
    response::Response,
};
use http::{HeaderValue, Method, StatusCode, header};
use posthaste_core::TenantId;
use posthaste_engine::{AllowedOrigin, MetaQuestion, Shaken};

use super::{AppState, Code, Problem, problem::ProblemJson, query::Query, segments::Segments};

/// Answers the challenge of a provider that asks by GET, as Meta does.
///
/// Only where the source has `handshake = "meta"`. Answers the challenge as plain text if the token fits.
#[utoipa::path(
    get, path = "/in/{source}", operation_id = "intake.handshake", tag = "intake", security(()),
    params(
        ("source" = String, Path, description = "The source's name"),
        ("hub.mode" = String, Query, description = "`subscribe`"),
        ("hub.verify_token" = String, Query, description = "The token that the source was configured with"),
        ("hub.challenge" = String, Query, description = "What is given back"),
    ),
    responses(
        (status = 200, description = "The challenge", body = String, content_type = "text/plain"),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn to_default_tenant(
    State(state): State<AppState>,
    Segments(source): Segments<String>,
    request: Request,
) -> Result<Response, Problem> {
    shake(&state, &state.options().default_tenant, &source, &request)
}

/// As [`to_default_tenant`], of any tenant.
pub(super) async fn to_tenant(
    State(state): State<AppState>,
    Segments((tenant, source)): Segments<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    shake(&state, &tenant, &source, &request)
}

/// Whatever is no POST: a handshake, or not allowed. A source that is not known is told as one without a handshake.
fn shake(state: &AppState, tenant: &str, source: &str, request: &Request) -> Result<Response, Problem> {
    let not_allowed = || {
        let method = request.method();
        Problem::new(
            Code::MethodNotAllowed,
            format!("{method} is not allowed here; the `Allow` header names what is"),
        )
    };
    let tenant = state.engine().directory().tenant(tenant).ok_or_else(not_allowed)?;
    match *request.method() {
        Method::GET => meta(state, tenant, source, request)?.ok_or_else(not_allowed),
        Method::OPTIONS => cloudevents(state, tenant, source, request).ok_or_else(not_allowed),
        _ => Err(not_allowed()),
    }
}

fn meta(
    state: &AppState,
    tenant: TenantId,
    source: &str,
    request: &Request,
) -> Result<Option<Response>, Problem> {
    let Ok(query) = Query::parse(request.uri(), &["hub.mode", "hub.verify_token", "hub.challenge"]) else {
        return Ok(None);
    };
    let of = |name| query.get(name).unwrap_or("");
    let question = MetaQuestion {
        mode: of("hub.mode"),
        verify_token: of("hub.verify_token"),
        challenge: of("hub.challenge"),
    };
    match state.engine().meta_handshake(tenant, source, question) {
        Shaken::Yes(challenge) => Ok(Some(plain(&challenge))),
        Shaken::No => {
            Err(Problem::new(Code::SignatureInvalid, "the handshake's token or question is not valid"))
        }
        Shaken::NotHere => Ok(None),
    }
}

fn cloudevents(state: &AppState, tenant: TenantId, source: &str, request: &Request) -> Option<Response> {
    let origin = request.headers().get("webhook-request-origin").and_then(|value| value.to_str().ok());
    match state.engine().cloudevents_handshake(tenant, source, origin) {
        Shaken::Yes(AllowedOrigin { origin, rate }) => {
            let mut response = Response::new(Body::empty());
            let headers = response.headers_mut();
            headers.insert("webhook-allowed-origin", HeaderValue::from_str(&origin).ok()?);
            let rate = rate.map_or_else(|| "*".to_owned(), |rate| rate.to_string());
            headers.insert("webhook-allowed-rate", HeaderValue::from_str(&rate).ok()?);
            headers.insert(header::ALLOW, HeaderValue::from_static("POST"));
            Some(response)
        }
        Shaken::No | Shaken::NotHere => None,
    }
}

/// A challenge as plain text: nothing that a browser would take for a page.
pub(super) fn plain(challenge: &str) -> Response {
    let mut response = Response::new(Body::from(challenge.to_owned()));
    *response.status_mut() = StatusCode::OK;
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/plain; charset=utf-8"));
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    response
}
