//! Which path leads where.

use axum::{
    Router,
    response::{IntoResponse as _, Response},
    routing::{get, post},
};
use http::{Method, Uri};

use super::{
    AppState, Code, Problem, archive,
    bulk::{cancels, replays},
    classes,
    destinations::{endpoints, queues, sources},
    handshake, health, intake, jobs, keys, ledger, look_ups, messages, openapi, operate, overview, pauses,
    publish, queue, reports, schedules, timeline, ui,
};

/// Everything on one listener: API, intake, pages, health.
pub fn router(state: AppState) -> Router {
    finished(api().merge(intake()).merge(health()), state)
}

/// Without intake, for a listener beside which intake has its own.
pub fn api_router(state: AppState) -> Router {
    finished(api().merge(health()), state)
}

/// Intake and health alone.
pub fn intake_router(state: AppState) -> Router {
    let health = Router::new().route("/healthz", get(health::healthz)).route("/readyz", get(health::readyz));
    finished(intake().merge(health), state)
}

fn finished(router: Router<AppState>, state: AppState) -> Router {
    router.method_not_allowed_fallback(not_allowed).fallback(nothing_here).with_state(state)
}

fn intake() -> Router<AppState> {
    Router::new()
        .route("/in/{source}", post(intake::to_default_tenant).fallback(handshake::to_default_tenant))
        .route("/in/{tenant}/{source}", post(intake::to_tenant).fallback(handshake::to_tenant))
}

fn health() -> Router<AppState> {
    Router::new()
        .route("/healthz", get(health::healthz))
        .route("/readyz", get(health::readyz))
        .route("/metrics", get(health::metrics))
        .route("/openapi.json", get(openapi::get))
}

fn api() -> Router<AppState> {
    Router::new()
        .route("/v1/messages", post(publish::publish).get(messages::find))
        .route("/v1/messages/batch", post(publish::publish_batch))
        .route("/v1/messages/{id}", get(messages::get))
        .route("/v1/messages/{id}/payload", get(messages::payload))
        .route("/v1/queue/publish", post(publish::queue_publish))
        .route("/v1/queue/consume", post(queue::consume))
        .route("/v1/queue/extend", post(reports::extend))
        .route("/v1/queue/ack", post(reports::ack))
        .route("/v1/queue/reject", post(reports::reject))
        .route("/v1/queue/release", post(reports::release))
        .route("/v1/queue/reconcile", post(look_ups::reconcile))
        .route("/v1/ledger", get(ledger::get))
        .route("/v1/ledger/claim", post(ledger::claim))
        .route("/v1/ledger/complete", post(ledger::complete))
        .route("/v1/ledger/fail", post(ledger::fail))
        .route("/v1/ledger/extend", post(ledger::extend))
        .route("/v1/ledger/reset", post(ledger::reset))
        .route("/v1/jobs", get(jobs::list))
        .route("/v1/jobs/{id}", get(jobs::get))
        .route("/v1/jobs/{id}/cancel", post(jobs::cancel))
        .route("/v1/jobs/{id}/replay", post(operate::replay))
        .route("/v1/jobs/{id}/resend", post(operate::resend))
        .route("/v1/jobs/{id}/reconcile", post(operate::reconcile))
        .route("/v1/timeline", get(timeline::get))
        .route("/v1/archive/run", post(archive::run))
        .route("/v1/archive/files", get(archive::list))
        .route("/v1/archive/verify", get(archive::verify))
        .route("/v1/classes", get(classes::get))
        .route("/v1/overview", get(overview::get))
        .route("/v1/keys", post(keys::create).get(keys::list))
        .route("/v1/keys/{id}", axum::routing::delete(keys::revoke))
        .merge(runs())
        .merge(configuration())
        .merge(pauses::router())
        .merge(ui::routes())
}

fn runs() -> Router<AppState> {
    Router::new()
        .route("/v1/replays", post(replays::start).get(replays::list))
        .route("/v1/replays/{id}", get(replays::get))
        .route("/v1/replays/{id}/pause", post(replays::pause))
        .route("/v1/replays/{id}/resume", post(replays::resume))
        .route("/v1/replays/{id}/stop", post(replays::stop))
        .route("/v1/cancels", post(cancels::start).get(cancels::list))
        .route("/v1/cancels/{id}", get(cancels::get))
        .route("/v1/cancels/{id}/pause", post(cancels::pause))
        .route("/v1/cancels/{id}/resume", post(cancels::resume))
        .route("/v1/cancels/{id}/stop", post(cancels::stop))
}

fn configuration() -> Router<AppState> {
    Router::new()
        .route("/v1/endpoints", post(endpoints::create).get(endpoints::list))
        .route("/v1/endpoints/{id}", get(endpoints::get).put(endpoints::put).delete(endpoints::delete))
        .route("/v1/queues", post(queues::create).get(queues::list))
        .route("/v1/queues/{id}", get(queues::get).put(queues::put).delete(queues::delete))
        .route("/v1/sources", post(sources::create).get(sources::list))
        .route("/v1/sources/{id}", get(sources::get).put(sources::put).delete(sources::delete))
        .route("/v1/schedules", post(schedules::create).get(schedules::list))
        .route("/v1/schedules/{id}", get(schedules::get).put(schedules::put).delete(schedules::delete))
        .route("/v1/schedules/{id}/pause", post(schedules::pause))
        .route("/v1/schedules/{id}/resume", post(schedules::resume))
        .route("/v1/schedules/{id}/run", post(schedules::run))
        .route("/v1/schedules/{id}/next", get(schedules::next))
}

async fn nothing_here(uri: Uri) -> Response {
    let path: String = uri.path().chars().take(200).collect();
    Problem::new(Code::NotFound, format!("there is nothing at {path}")).into_response()
}

/// The router adds `Allow`.
async fn not_allowed(method: Method) -> Response {
    let problem = format!("{method} is not allowed here; the `Allow` header names what is");
    Problem::new(Code::MethodNotAllowed, problem).into_response()
}
