//! The pages: read-only, rendered here, without scripts. Row F2.

mod answer;
mod login;
mod overview;
mod timeline;
mod words;

use axum::{
    Router,
    response::Response,
    routing::{get, post},
};

use super::AppState;

/// The pages' routes.
pub(super) fn routes() -> Router<AppState> {
    Router::new()
        .route("/", get(overview::page))
        .route("/timeline", get(timeline::page))
        .route("/login", get(login::form).post(login::log_in))
        .route("/logout", post(login::log_out))
        .route("/ui/style.css", get(style))
}

async fn style() -> Response {
    answer::style(include_str!("../../../templates/style.css"))
}
