//! `messages.get`: messages and their payloads. Row A7.

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderValue, StatusCode, Uri, header};
use posthaste_core::MessageId;
use posthaste_store::MessageName;

use super::{
    AppState, Caller, Code, Problem, json::answer, message_view::MessageJson, problem::ProblemJson,
    query::Query, segments::Segments,
};

/// Shows the message that has a key, or any other name.
#[utoipa::path(
    get, path = "/v1/messages", operation_id = "messages.find", tag = "messages",
    params(("key" = String, Query, description = "The key, percent-encoded")),
    responses(
        (status = 200, description = "The message", body = MessageJson),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn find(
    State(state): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_read()?;
    let key = Query::parse(&uri, &["key"])?.key()?;
    show(&state, &caller, MessageName::Key(key)).await
}

/// Shows a message.
#[utoipa::path(
    get, path = "/v1/messages/{id}", operation_id = "messages.get", tag = "messages",
    params(("id" = String, Path, description = "`msg_…`")),
    responses(
        (status = 200, description = "The message", body = MessageJson),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn get(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
) -> Result<Response, Problem> {
    caller.require_read()?;
    show(&state, &caller, MessageName::Id(parse_id(&id)?)).await
}

async fn show(state: &AppState, caller: &Caller, name: MessageName) -> Result<Response, Problem> {
    let store = state.engine().store();
    let shown = match &name {
        MessageName::Id(id) => id.to_string(),
        MessageName::Key(key) => key.to_string(),
    };
    let message = store.message(caller.tenant, name).await?.ok_or_else(|| unknown(&shown))?;
    let jobs = store.briefs(caller.tenant, message.id).await?;
    Ok(answer(StatusCode::OK, &MessageJson::of(message, &jobs)))
}

/// Gives a message's payload: the exact bytes as they were received.
#[utoipa::path(
    get, path = "/v1/messages/{id}/payload", operation_id = "messages.payload", tag = "messages",
    params(("id" = String, Path, description = "`msg_…`")),
    responses(
        (status = 200, description = "The bytes, with their media type", body = Vec<u8>, content_type = "application/octet-stream"),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn payload(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
) -> Result<Response, Problem> {
    caller.require_read()?;
    let id = parse_id(&id)?;
    let store = state.engine().store();
    let payload = store.payload(caller.tenant, id).await?;
    let (bytes, content_type) = payload.ok_or_else(|| unknown(&id.to_string()))?;
    if bytes.is_empty() {
        let message = store.message(caller.tenant, MessageName::Id(id)).await?;
        if let Some(reference) = message.and_then(|message| message.payload_ref) {
            let problem = Problem::new(Code::NotFound, "the payload is not kept here; see `payload_ref`");
            return Err(problem.with("payload_ref", reference.as_ref()));
        }
    }
    let content_type = content_type.and_then(|text| HeaderValue::from_str(&text).ok());
    let mut response = Response::new(Body::from(bytes));
    let headers = response.headers_mut();
    let unknown_type = HeaderValue::from_static("application/octet-stream");
    headers.insert(header::CONTENT_TYPE, content_type.unwrap_or(unknown_type));
    // Somebody else wrote it: no browser may take it for a page of ours.
    headers.insert(header::X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(header::CONTENT_DISPOSITION, HeaderValue::from_static("attachment"));
    headers.insert(header::CONTENT_SECURITY_POLICY, HeaderValue::from_static("sandbox"));
    Ok(response)
}

fn parse_id(text: &str) -> Result<MessageId, Problem> {
    MessageId::parse(text).ok_or_else(|| unknown(text))
}

fn unknown(name: &str) -> Problem {
    Problem::new(Code::NotFound, format!("there is no message {name:?}"))
}
