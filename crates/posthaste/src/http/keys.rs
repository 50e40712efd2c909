//! `keys.*`: API keys. Rows E5, G6.

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderMap, StatusCode, Uri};
use posthaste_core::ApiKeyId;
use posthaste_engine::EngineError;
use posthaste_store::ApiKeyRow;
use serde::{Deserialize, Serialize};
use utoipa::ToSchema;

use super::{
    AppState, Caller, Problem,
    json::{answer, parse},
    paging::Page,
    problem::ProblemJson,
    query::Query,
    segments::Segments,
    time::Time,
};

/// Bytes of a request for a key.
const BYTES_MAX: usize = 16 * 1024;

/// Asks for an API key.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct KeyRequest {
    /// Its name for people, in timelines.
    #[schema(min_length = 1, max_length = 128, examples("cart-service"))]
    name: String,
    /// What it may do: `admin`, `read`, `operate`, `publish`, `work`, or `publish:NAME` and `work:NAME`.
    #[schema(min_items = 1, examples(json!(["publish", "work:carts"])))]
    scopes: Vec<String>,
    /// For which tenant, which is made if there is none of this name; the caller's unless told.
    tenant: Option<String>,
}

/// An API key, without the key itself.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = ApiKey)]
pub(crate) struct KeyJson {
    /// `key_…`
    id: String,
    /// Its name for people.
    name: Box<str>,
    /// What it may do.
    scopes: Vec<String>,
    /// When it was made.
    #[schema(value_type = String, format = DateTime)]
    created_at: Time,
    /// When it was revoked.
    #[schema(value_type = Option<String>, format = DateTime)]
    revoked_at: Option<Time>,
    /// The key itself: only in the answer that makes it, and nowhere else.
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<String>,
}

/// Makes an API key. The key is in the answer, and nowhere else.
///
/// A repeat makes another key; revoke what is not needed.
#[utoipa::path(
    post, path = "/v1/keys", operation_id = "keys.create", tag = "keys",
    request_body = KeyRequest,
    responses(
        (status = 201, description = "Made", body = KeyJson),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn create(
    State(state): State<AppState>,
    caller: Caller,
    headers: HeaderMap,
    body: Body,
) -> Result<Response, Problem> {
    caller.require_admin()?;
    let body = state.read(&headers, body, BYTES_MAX).await?;
    let request: KeyRequest = parse(&body)?;
    let engine = state.engine();
    let tenant = match &request.tenant {
        Some(name) => engine.ensure_tenant(name).await?,
        None => caller.tenant,
    };
    let (row, key) = engine.create_api_key(tenant, &request.name, &request.scopes.join(" ")).await?;
    Ok(answer(StatusCode::CREATED, &KeyJson { key: Some(key), ..KeyJson::of(&row) }))
}

/// Lists API keys, revoked ones too.
#[utoipa::path(
    get, path = "/v1/keys", operation_id = "keys.list", tag = "keys",
    params(
        ("limit" = Option<u32>, Query, description = "1 to 500; 50 unless told"),
        ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
    ),
    responses(
        (status = 200, description = "One page", body = Page<KeyJson>),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn list(
    State(state): State<AppState>,
    caller: Caller,
    uri: Uri,
) -> Result<Response, Problem> {
    caller.require_admin()?;
    let query = Query::parse(&uri, &["limit", "cursor"])?;
    let keys = state.engine().store().api_keys().await?;
    let keys = keys.iter().filter(|row| row.tenant == caller.tenant).map(KeyJson::of);
    let page = Page::of_sorted(keys, |key| key.id.clone(), query.get("cursor"), query.limit()?);
    Ok(answer(StatusCode::OK, &page))
}

/// Revokes an API key: it is refused from the next request on.
#[utoipa::path(
    delete, path = "/v1/keys/{id}", operation_id = "keys.revoke", tag = "keys",
    params(("id" = String, Path, description = "`key_…`")),
    responses(
        (status = 204, description = "Revoked, now or before"),
        (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
        (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn revoke(
    State(state): State<AppState>,
    caller: Caller,
    Segments(id): Segments<String>,
) -> Result<Response, Problem> {
    caller.require_admin()?;
    let unknown = || EngineError::NotFound { what: "key", id: id.chars().take(64).collect() };
    let id = ApiKeyId::parse(&id).ok_or_else(unknown)?;
    state.engine().revoke_api_key(caller.tenant, id).await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

impl KeyJson {
    fn of(row: &ApiKeyRow) -> Self {
        Self {
            id: row.id.to_string(),
            name: row.name.clone(),
            scopes: row.scopes.split_ascii_whitespace().map(str::to_owned).collect(),
            created_at: Time(row.created_at),
            revoked_at: row.revoked_at.map(Time),
            key: None,
        }
    }
}
