//! For machines that watch: `/healthz`, `/readyz`, `/metrics`.

use std::time::Duration;

use axum::{body::Body, extract::State, response::Response};
use http::{HeaderValue, StatusCode, header};
use serde_json::json;

use super::{AppState, Code, Problem, json::answer, problem::ProblemJson};

/// How long the store may take to say that it works.
const READY_TIMEOUT: Duration = Duration::from_secs(1);

/// Says that the process lives.
#[utoipa::path(
    get, path = "/healthz", operation_id = "healthz", tag = "health", security(()),
    responses((status = 200, description = "It does"))
)]
pub(super) async fn healthz() -> Response {
    answer(StatusCode::OK, &json!({ "status": "ok" }))
}

/// Says whether requests should be sent here: the store works, and no drain has begun.
#[utoipa::path(
    get, path = "/readyz", operation_id = "readyz", tag = "health", security(()),
    responses(
        (status = 200, description = "They should"),
        (status = 503, description = "They should not", body = ProblemJson, content_type = "application/problem+json"),
    )
)]
pub(super) async fn readyz(State(state): State<AppState>) -> Result<Response, Problem> {
    let engine = state.engine();
    if engine.is_draining() {
        return Err(Problem::new(Code::Draining, "the server is shutting down"));
    }
    let late = || Problem::new(Code::StoreUnavailable, "the store does not answer");
    tokio::time::timeout(READY_TIMEOUT, engine.store().status()).await.map_err(|_| late())??;
    Ok(answer(StatusCode::OK, &json!({ "status": "ready" })))
}

/// Gives the metrics in the OpenMetrics text format.
#[utoipa::path(
    get, path = "/metrics", operation_id = "metrics", tag = "health", security(()),
    responses((status = 200, description = "OpenMetrics", body = String, content_type = "application/openmetrics-text"))
)]
pub(super) async fn metrics(State(state): State<AppState>) -> Response {
    let engine = state.engine();
    engine.refresh_gauges().await;
    let mut response = Response::new(Body::from(engine.metrics().encode()));
    let text = HeaderValue::from_static("application/openmetrics-text; version=1.0.0; charset=utf-8");
    response.headers_mut().insert(header::CONTENT_TYPE, text);
    response
}
