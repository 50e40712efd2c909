//! `intake`: a provider's signed request, taken on its exact bytes. Rows A1, A3, A4, A6, A9.

use axum::{
    body::Body,
    extract::{Request, State},
    response::Response,
};
use http::{StatusCode, header, request::Parts};
use posthaste_core::{Path, TenantId};
use posthaste_engine::{IntakeRequest, Received, Taken, config::AnswerStyle};
use serde::Serialize;
use utoipa::ToSchema;

use super::{
    AppState, Code, Problem,
    body::{self, BodyLimit},
    context, json,
    problem::ProblemJson,
    segments::Segments,
    wire::Shown,
};

/// An accepted delivery.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct IntakeAnswer<'a> {
    /// `first_run`: it is new. `duplicate_done`: it was known.
    #[schema(examples("first_run", "duplicate_done"))]
    path: &'static str,
    /// The message's key: `{source}:{provider key}`.
    key: &'a str,
    /// `msg_…`
    #[schema(value_type = String)]
    message_id: Shown<posthaste_core::MessageId>,
    /// Why it was quarantined, if it was: it is kept, and not executed.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(examples("missing_key", "invalid_payload", "key_reused"))]
    quarantined: Option<&'static str>,
}

/// Takes a signed delivery for a source of the default tenant.
///
/// The signature stands for the API key. The answer leaves when the delivery is durable; a delivery that is known is
/// answered 200. What is genuine and does not fit the source's configuration is quarantined: kept, not executed, its owner
/// told, and answered 202. A source may be configured to answer with an empty body or a fixed status.
#[utoipa::path(
    post, path = "/in/{source}", operation_id = "intake", tag = "intake", security(()),
    params(("source" = String, Path, description = "The source's name")),
    request_body(content = Vec<u8>, content_type = "*/*", description = "What the provider sends"),
    responses(
        (status = 202, description = "New, or new and quarantined: genuine, but of a shape that the source does not expect", body = IntakeAnswer<'static>),
        (status = 200, description = "Known already", body = IntakeAnswer<'static>),
        (status = 401, description = "`signature_invalid`, whatever the reason", body = ProblemJson, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused; nothing is stored", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Not stored, or not known to be: send it again", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn to_default_tenant(
    State(state): State<AppState>,
    Segments(source): Segments<String>,
    request: Request,
) -> Result<Response, Problem> {
    take(&state, &state.options().default_tenant, &source, request).await
}

/// Takes a signed delivery for a source of any tenant.
///
/// As `intake`.
#[utoipa::path(
    post, path = "/in/{tenant}/{source}", operation_id = "intake.tenant", tag = "intake", security(()),
    params(
        ("tenant" = String, Path, description = "The tenant's name"),
        ("source" = String, Path, description = "The source's name"),
    ),
    request_body(content = Vec<u8>, content_type = "*/*", description = "What the provider sends"),
    responses(
        (status = 202, description = "New, or new and quarantined: genuine, but of a shape that the source does not expect", body = IntakeAnswer<'static>),
        (status = 200, description = "Known already", body = IntakeAnswer<'static>),
        (status = 401, description = "`signature_invalid`, whatever the reason", body = ProblemJson, content_type = "application/problem+json"),
        (status = "4XX", description = "Refused; nothing is stored", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Not stored, or not known to be: send it again", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn to_tenant(
    State(state): State<AppState>,
    Segments((tenant, source)): Segments<(String, String)>,
    request: Request,
) -> Result<Response, Problem> {
    take(&state, &tenant, &source, request).await
}

async fn take(state: &AppState, tenant: &str, source: &str, request: Request) -> Result<Response, Problem> {
    let engine = state.engine();
    // Taken apart, not extracted: an extractor would copy the headers.
    let (head, body) = request.into_parts();
    // A tenant that is not known must look like a source that is not.
    let unknown = || Problem::new(Code::UnknownSource, format!("there is no source {source:?}"));
    let tenant: TenantId = engine.directory().tenant(tenant).ok_or_else(unknown)?;
    let limit = BodyLimit {
        // A source whose configuration is broken has no limit of its own; the engine then says what is wrong.
        bytes_max: engine
            .intake_body_limit(tenant, source)
            .unwrap_or(posthaste_core::limits::PAYLOAD_BYTES_DEFAULT),
        read_timeout: state.options().limits.body_read_timeout,
        code: Code::PayloadTooLarge,
    };
    let body = body::read(&head.headers, body, limit, state.bodies()).await?;
    let url = url(state, &head);
    let headers: Vec<(&str, &[u8])> =
        head.headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
    let correlation_id = context::correlation_id(&head.headers, engine.now());
    let request = IntakeRequest {
        method: head.method.as_str(),
        url: &url,
        headers: &headers,
        body,
        correlation_id: &correlation_id,
    };
    match engine.intake(tenant, source, request).await? {
        Taken::Received(received) => Ok(answered(&received)),
        Taken::Noted => Ok(empty(StatusCode::OK)),
        Taken::Challenge(challenge) => Ok(super::handshake::plain(&challenge)),
    }
}

/// The URL as the provider sees it.
fn url(state: &AppState, head: &Parts) -> String {
    let path = head.uri.path_and_query().map_or("/", http::uri::PathAndQuery::as_str);
    if let Some(public) = &state.options().public_url {
        return format!("{}{path}", public.trim_end_matches('/'));
    }
    let host = head.headers.get(header::HOST).and_then(|host| host.to_str().ok());
    let authority = host.or_else(|| head.uri.authority().map(http::uri::Authority::as_str));
    format!("http://{}{path}", authority.unwrap_or("localhost"))
}

fn answered(received: &Received) -> Response {
    let status = if received.path == Path::FirstRun { StatusCode::ACCEPTED } else { StatusCode::OK };
    match received.answer {
        AnswerStyle::Json => {
            let answer = IntakeAnswer {
                path: received.path.as_str(),
                key: received.key.as_str(),
                message_id: Shown(received.message),
                quarantined: received.quarantined.map(posthaste_core::Cause::as_str),
            };
            json::answer(status, &answer)
        }
        AnswerStyle::Empty => empty(status),
        AnswerStyle::Status(status) => empty(StatusCode::from_u16(status).unwrap_or(StatusCode::OK)),
    }
}

fn empty(status: StatusCode) -> Response {
    let mut response = Response::new(Body::empty());
    *response.status_mut() = status;
    response
}
