//! The API's description: OpenAPI 3.1, made from the types that are on the wire.

use std::sync::LazyLock;

use axum::{body::Body, response::Response};
use http::{HeaderValue, header};
use utoipa::{
    Modify, OpenApi,
    openapi::{
        InfoBuilder, LicenseBuilder,
        security::{HttpAuthScheme, HttpBuilder, SecurityScheme},
    },
};

use super::{
    archive,
    bulk::{cancels, replays},
    classes,
    destinations::{endpoints, queues, sources},
    handshake, health, intake, jobs, keys, ledger, look_ups, messages, operate, overview, pauses, publish,
    queue, reports, schedules, timeline,
};

#[derive(OpenApi)]
#[openapi(
    paths(
        intake::to_default_tenant,
        intake::to_tenant,
        publish::publish,
        publish::publish_batch,
        messages::find,
        messages::get,
        messages::payload,
        publish::queue_publish,
        queue::consume,
        reports::extend,
        reports::ack,
        reports::reject,
        reports::release,
        look_ups::reconcile,
        ledger::claim,
        ledger::complete,
        ledger::fail,
        ledger::extend,
        ledger::get,
        ledger::reset,
        jobs::list,
        jobs::get,
        jobs::cancel,
        operate::replay,
        operate::resend,
        operate::reconcile,
        replays::start,
        replays::list,
        replays::get,
        replays::pause,
        replays::resume,
        replays::stop,
        cancels::start,
        cancels::list,
        cancels::get,
        cancels::pause,
        cancels::resume,
        cancels::stop,
        timeline::get,
        archive::run,
        archive::list,
        archive::verify,
        classes::get,
        overview::get,
        endpoints::list,
        endpoints::create,
        endpoints::get,
        endpoints::put,
        endpoints::delete,
        queues::list,
        queues::create,
        queues::get,
        queues::put,
        queues::delete,
        sources::list,
        sources::create,
        sources::get,
        sources::put,
        sources::delete,
    schedules::list, schedules::create, schedules::get, schedules::put, schedules::delete, schedules::pause, schedules::resume, schedules::run, schedules::next, pauses::pause, pauses::resume, pauses::enable, pauses::endpoints::pause, pauses::endpoints::resume, pauses::queues::pause, pauses::queues::resume, pauses::sources::pause, pauses::sources::resume,
        keys::create,
        keys::list,
        keys::revoke,
        handshake::to_default_tenant,
        health::healthz,
        health::readyz,
        health::metrics,
    ),
    security(("api_key" = [])),
    modifiers(&Finish)
)]
struct Description;

/// What the derive can't say.
struct Finish;

impl Modify for Finish {
    fn modify(&self, openapi: &mut utoipa::openapi::OpenApi) {
        openapi.info = InfoBuilder::new()
            .title("posthaste")
            .version(env!("CARGO_PKG_VERSION"))
            .description(Some(
                "Durable webhooks and delayed jobs. Delivery is at least once; the effect is once, where the \
                 receiver keeps the ledger contract. Errors are `application/problem+json` with a stable `code`.",
            ))
            .license(Some(LicenseBuilder::new().name("MIT OR Apache-2.0").build()))
            .build();
        let key = HttpBuilder::new()
            .scheme(HttpAuthScheme::Bearer)
            .description(Some("An API key, `phk_…`. It carries its tenant and scopes; an admin key may name a tenant by the `posthaste-tenant` header."))
            .build();
        let components = openapi.components.get_or_insert_default();
        components.add_security_scheme("api_key", SecurityScheme::Http(key));
    }
}

static TEXT: LazyLock<String> = LazyLock::new(|| {
    let mut text = Description::openapi().to_pretty_json().expect("the description is plain data");
    text.push('\n');
    text
});

/// The description as JSON text: what `/openapi.json` answers, and `docs/openapi.json` holds.
pub fn document() -> &'static str {
    &TEXT
}

/// Answers the description.
pub(super) async fn get() -> Response {
    let mut response = Response::new(Body::from(document()));
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("application/json"));
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("public, max-age=300"));
    response
}

#[cfg(test)]
mod tests {
    use posthaste_engine::config::{EndpointSpec, QueueSpec, ScheduleSpec, SourceSpec};
    use serde_json::{Value, json};

    use super::*;

    fn fields_of(schema: &str) -> Vec<String> {
        let document: Value = serde_json::from_str(document()).unwrap();
        let properties = &document["components"]["schemas"][schema]["properties"];
        let mut fields: Vec<_> = properties.as_object().unwrap().keys().cloned().collect();
        fields.sort();
        fields
    }

    fn read_by_the_engine<T: serde::de::DeserializeOwned + serde::Serialize>(full: &Value) -> Vec<String> {
        let spec: T = serde_json::from_value(full.clone()).unwrap();
        let Value::Object(object) = serde_json::to_value(spec).unwrap() else { panic!("an object") };
        let mut fields: Vec<_> = object.keys().cloned().collect();
        fields.sort();
        fields
    }

    #[test]
    fn what_is_described_is_what_the_engine_reads() {
        let retry = json!({
            "delays": ["1s"], "base": "1s", "cap": "1s", "failures_max": 1, "lost_leases_max": 1, "horizon": "1s",
            "jitter": 0.5,
        });
        let reconcile = json!({
            "url": "u", "method": "GET", "settle": "1m", "pointer": "/a", "present": ["a"], "absent": [404],
            "in_progress": ["b"],
        });
        let endpoint = json!({
            "id": "a", "url": "u", "types": ["*"], "secrets": ["s"], "concurrency": 1, "rate": "1/s", "circuit": {"failures": 1}, "timeout": "1s",
            "idempotent": true, "ledger_lease": "30s", "on_unknown": "retry", "reconcile": reconcile, "classify": {"404": "retry"}, "retry": retry, "headers": {"a": "b"}, "webhook_id": "job",
            "dead_letter_queue": "q", "owner": "o", "enabled": true,
        });
        let queue = json!({
            "name": "a", "lease": "1s", "deadline": "1s", "ledger": true, "idempotent": true, "on_unknown": "retry",
            "reconcile": {"settle": "1m"}, "classify": {"timeout": "retry"}, "retry": retry, "dead_letter_queue": "q",
            "owner": "o", "enabled": true,
        });
        let source = json!({
            "name": "a", "scheme": "hmac", "secrets": ["s"], "hmac": {"header": "h"}, "topic_arns": ["t"],
            "public_url": "https://a.example.com", "key": "scheme", "type": "scheme",
            "to": {"queue": "q"}, "delay": "1s", "body_limit": 1, "tolerance": "1s", "signed": "wire", "allow_unsigned": true,
            "answer": "json", "when_paused": "hold", "schema": {}, "types": ["a"], "content_types": ["a/b"],
            "on_key_reused": "reject", "handshake": "meta", "verify_token": "t", "allowed_origins": ["o"], "allowed_rate": 1,
            "dead_letter_queue": "q", "owner": "o", "enabled": true,
        });
        assert_eq!(fields_of("Endpoint"), read_by_the_engine::<EndpointSpec>(&endpoint));
        assert_eq!(fields_of("Queue"), read_by_the_engine::<QueueSpec>(&queue));
        assert_eq!(fields_of("Source"), read_by_the_engine::<SourceSpec>(&source));
        let schedule = json!({
            "name": "a", "cron": "@daily", "timezone": "UTC", "to": {"queue": "q"}, "type": "t", "payload": {}, "metadata": {"a": 1},
            "catch_up": "skip", "jitter": "1s", "owner": "o", "enabled": true,
        });
        assert_eq!(fields_of("Schedule"), read_by_the_engine::<ScheduleSpec>(&schedule));
        let retry_fields = read_by_the_engine::<posthaste_engine::config::RetrySpec>(&retry);
        assert_eq!(fields_of("Retry"), retry_fields);
        let circuit = json!({"failures": 1, "open_for": "1s", "open_for_max": "1s", "disable_after": "1s"});
        let circuit_fields = read_by_the_engine::<posthaste_engine::config::CircuitSpec>(&circuit);
        assert_eq!(fields_of("Circuit"), circuit_fields);
        let reconcile_fields = read_by_the_engine::<posthaste_engine::config::ReconcileSpec>(&reconcile);
        assert_eq!(fields_of("Reconcile"), reconcile_fields);
    }
}
