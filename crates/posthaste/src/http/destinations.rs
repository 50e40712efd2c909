//! `endpoints.*`, `queues.*`, `sources.*`: what is configured at run time. Rows G2, E5.

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderMap, StatusCode, Uri};
use posthaste_core::DestinationId;
use posthaste_engine::{
    Engine, EngineError, PutOutcome,
    config::{EndpointSpec, QueueSpec, SourceSpec},
};
use posthaste_store::{DestinationKind, ManagedBy};
use serde_json::{Map, Value};

use super::{
    AppState, Caller, Code, Problem, destination_view,
    json::{answer, parse},
    paging::Page,
    query::Query,
    segments::Segments,
};

/// Bytes of a configuration.
const BYTES_MAX: usize = 256 * 1024;

/// A page of one kind.
pub(super) fn list(
    state: &AppState,
    caller: &Caller,
    uri: &Uri,
    kind: DestinationKind,
) -> Result<Response, Problem> {
    caller.require_read_or_operate()?;
    let query = Query::parse(uri, &["limit", "cursor"])?;
    let directory = state.engine().directory();
    let entries = directory.list(caller.tenant, kind);
    let page =
        Page::of_sorted(entries, |entry| entry.row.id.to_string(), query.get("cursor"), query.limit()?);
    let data = page.data.into_iter().map(|entry| destination_view::of_entry(state.engine(), entry)).collect();
    Ok(answer(StatusCode::OK, &Page { data, next_cursor: page.next_cursor }))
}

/// One destination.
pub(super) fn get(
    state: &AppState,
    caller: &Caller,
    id: &str,
    kind: DestinationKind,
) -> Result<Response, Problem> {
    caller.require_read_or_operate()?;
    let directory = state.engine().directory();
    let entry = DestinationId::new(id).ok().and_then(|id| directory.find(caller.tenant, &id));
    let entry = entry.filter(|entry| entry.row.kind == kind).ok_or_else(|| unknown(kind, id))?;
    Ok(answer(StatusCode::OK, &destination_view::of_entry(state.engine(), entry)))
}

/// Deletes a destination.
pub(super) async fn delete(
    state: &AppState,
    caller: &Caller,
    id: &str,
    kind: DestinationKind,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let known = DestinationId::new(id).map_err(|_| unknown(kind, id))?;
    // Of a file's destination the engine says so; of another kind's it would say nothing.
    state.engine().delete_destination(caller.tenant, kind, &known).await?;
    let mut response = Response::new(Body::empty());
    *response.status_mut() = StatusCode::NO_CONTENT;
    Ok(response)
}

/// Makes a destination, or changes the one that `named` says.
pub(super) async fn put(
    state: &AppState,
    caller: &Caller,
    headers: &HeaderMap,
    body: Body,
    put: Put<'_>,
) -> Result<Response, Problem> {
    caller.require_operate()?;
    let body = state.read(headers, body, BYTES_MAX).await?;
    let engine = state.engine();
    let (tenant, api, must_be_new) = (caller.tenant, ManagedBy::Api, put.named.is_none());
    let outcome = match put.kind {
        DestinationKind::Endpoint => {
            let spec: EndpointSpec = parse(&body)?;
            check_name(put.named, "id", &spec.id)?;
            engine.put_endpoint(tenant, spec, api, must_be_new).await?
        }
        DestinationKind::Queue => {
            let spec: QueueSpec = parse(&body)?;
            check_name(put.named, "name", &spec.name)?;
            engine.put_queue(tenant, spec, api, must_be_new).await?
        }
        DestinationKind::Source => {
            let spec: SourceSpec = parse(&body)?;
            check_name(put.named, "name", &spec.name)?;
            engine.put_source(tenant, spec, api, must_be_new).await?
        }
    };
    let status = if must_be_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok(answer(status, &made(engine, &outcome)))
}

/// What to make or change.
#[derive(Clone, Copy, Debug)]
pub(super) struct Put<'a> {
    /// What it is.
    pub(super) kind: DestinationKind,
    /// The id in the path, if it has one.
    pub(super) named: Option<&'a str>,
}

/// The destination, with the secret that was made for it: shown this once.
fn made(engine: &Engine, outcome: &PutOutcome) -> Map<String, Value> {
    let held = engine.held_at(&outcome.row);
    let mut object = destination_view::of_row(&outcome.row, &held, engine.now());
    if let Some(secret) = &outcome.new_secret {
        object.insert("secret".to_owned(), secret.as_str().into());
    }
    object
}

fn check_name(named: Option<&str>, field: &'static str, given: &str) -> Result<(), Problem> {
    match named {
        Some(named) if named != given => {
            let problem = format!("`{field}` is {given:?}, but the path says {named:?}");
            Err(Problem::new(Code::InvalidValue, problem).with("path", field))
        }
        _ => Ok(()),
    }
}

fn unknown(kind: DestinationKind, id: &str) -> Problem {
    EngineError::NotFound { what: kind.as_str(), id: id.chars().take(64).collect() }.into()
}

/// The five routes of one kind, with their documentation.
macro_rules! routes {
    ($module:ident, $kind:ident, $schema:ident, $path:literal, $one:literal, $tag:literal, $prefix:literal, $what:literal) => {
        #[doc = concat!("`", $tag, ".*`.")]
        pub(crate) mod $module {
            use super::*;
            use crate::http::{
                problem::ProblemJson,
                schemas::{DestinationJson, $schema},
            };

            #[doc = concat!("Lists ", $tag, ", by id.")]
            #[utoipa::path(
                get, path = $path, summary = concat!("Lists ", $tag, ", by id."), operation_id = concat!($prefix, "list"), tag = $tag,
                params(
                    ("limit" = Option<u32>, Query, description = "1 to 500; 50 unless told"),
                    ("cursor" = Option<String>, Query, description = "`next_cursor` of the page before"),
                ),
                responses(
                    (status = 200, description = "One page", body = Page<DestinationJson>),
                    (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn list(
                State(state): State<AppState>,
                caller: Caller,
                uri: Uri,
            ) -> Result<Response, Problem> {
                super::list(&state, &caller, &uri, DestinationKind::$kind)
            }

            #[doc = concat!("Makes ", $what, ".")]
            ///
            /// An id that is taken is refused with `already_exists`, so that a repeat makes nothing twice.
            #[utoipa::path(
                post, path = $path, summary = concat!("Makes ", $what, "."),
                description = "An id that is taken is refused with `already_exists`, so that a repeat makes nothing twice.",
                operation_id = concat!($prefix, "create"), tag = $tag,
                request_body = $schema,
                responses(
                    (status = 201, description = "Made; a secret made for it is shown this once", body = DestinationJson),
                    (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
                    (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn create(
                State(state): State<AppState>,
                caller: Caller,
                headers: HeaderMap,
                body: Body,
            ) -> Result<Response, Problem> {
                let put = Put { kind: DestinationKind::$kind, named: None };
                super::put(&state, &caller, &headers, body, put).await
            }

            #[doc = concat!("Shows ", $what, ".")]
            #[utoipa::path(
                get, path = $one, summary = concat!("Shows ", $what, "."),
                operation_id = concat!($prefix, "get"), tag = $tag,
                params(("id" = String, Path, description = "Its id")),
                responses(
                    (status = 200, description = "As configured, without secrets", body = DestinationJson),
                    (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn get(
                State(state): State<AppState>,
                caller: Caller,
                Segments(id): Segments<String>,
            ) -> Result<Response, Problem> {
                super::get(&state, &caller, &id, DestinationKind::$kind)
            }

            #[doc = concat!("Makes ", $what, ", or replaces its configuration.")]
            ///
            /// Secrets that are left out stay as they are.
            #[utoipa::path(
                put, path = $one, summary = concat!("Makes ", $what, ", or replaces its configuration."),
                description = "Secrets that are left out stay as they are.",
                operation_id = concat!($prefix, "put"), tag = $tag,
                params(("id" = String, Path, description = "Its id")),
                request_body = $schema,
                responses(
                    (status = 200, description = "As configured, without secrets", body = DestinationJson),
                    (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
                    (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn put(
                State(state): State<AppState>,
                caller: Caller,
                Segments(id): Segments<String>,
                headers: HeaderMap,
                body: Body,
            ) -> Result<Response, Problem> {
                let put = Put { kind: DestinationKind::$kind, named: Some(&id) };
                super::put(&state, &caller, &headers, body, put).await
            }

            #[doc = concat!("Deletes ", $what, ".")]
            #[utoipa::path(
                delete, path = $one, summary = concat!("Deletes ", $what, "."),
                operation_id = concat!($prefix, "delete"), tag = $tag,
                params(("id" = String, Path, description = "Its id")),
                responses(
                    (status = 204, description = "Deleted"),
                    (status = "4XX", description = "Refused", body = ProblemJson, content_type = "application/problem+json"),
                    (status = "5XX", description = "Failed", body = ProblemJson, content_type = "application/problem+json"),
                )
            )]
            pub(crate) async fn delete(
                State(state): State<AppState>,
                caller: Caller,
                Segments(id): Segments<String>,
            ) -> Result<Response, Problem> {
                super::delete(&state, &caller, &id, DestinationKind::$kind).await
            }
        }
    };
}

routes!(
    endpoints,
    Endpoint,
    EndpointSchema,
    "/v1/endpoints",
    "/v1/endpoints/{id}",
    "endpoints",
    "endpoints.",
    "an endpoint"
);
routes!(queues, Queue, QueueSchema, "/v1/queues", "/v1/queues/{id}", "queues", "queues.", "a queue");
routes!(sources, Source, SourceSchema, "/v1/sources", "/v1/sources/{id}", "sources", "sources.", "a source");
