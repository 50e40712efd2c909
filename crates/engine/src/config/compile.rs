//! From what is written to what is understood, with exact errors.

use std::{sync::Arc, time::Duration};

use posthaste_core::{
    Backoff, DestinationId, DurationMs, LaneId, OnUnknown, Permille, Policy, TenantId, limits,
};
use posthaste_receiver::{Signer, check_signing_secret};

use super::{
    ConfigError, Endpoint, EndpointSpec, LookUpRecipe, OnUnknownSpec, Queue, QueueSpec, RetrySpec, WebhookId,
    WebhookIdSpec,
    classify::{self, Carries},
    format_duration,
    lane::lane_rules,
};

/// Headers that an endpoint's own headers can't be, beside those that start with `webhook-` or `posthaste-`.
const RESERVED_HEADERS: &[&str] = &[
    "host",
    "content-length",
    "content-type",
    "content-encoding",
    "transfer-encoding",
    "connection",
    "keep-alive",
    "upgrade",
    "te",
    "trailer",
    "proxy-connection",
    "idempotency-key",
    "traceparent",
    "user-agent",
    "expect",
];

/// What `on_unknown = "reconcile"` wants of an endpoint.
const ENDPOINT_RECONCILE: &str =
    "add [endpoint.reconcile] with url = \"https://…/status?key={event_id}\" and settle = \"2m\"";

/// What `on_unknown = "reconcile"` wants of a queue.
const QUEUE_RECONCILE: &str = "add [queue.reconcile] with settle = \"2m\"";

const CONCURRENCY_DEFAULT: u32 = 10;
const CONCURRENCY_MAX: u32 = 10_000;
const TIMEOUT_DEFAULT: DurationMs = DurationMs::from_secs(15);
const TIMEOUT_MAX: DurationMs = DurationMs::from_secs(120);

/// Understands an endpoint. `secrets`: the resolved secrets, in the order of `spec.secrets`.
pub fn compile_endpoint(
    tenant: TenantId,
    lane: LaneId,
    spec: &EndpointSpec,
    secrets: &[String],
) -> Result<Endpoint, ConfigError> {
    let id = name("id", &spec.id)?;
    for (index, pattern) in spec.types.iter().enumerate() {
        check_type_pattern(&format!("types[{index}]"), pattern)?;
    }
    let signer = signer(secrets)?;
    let timeout = spec.timeout.map_or(TIMEOUT_DEFAULT, |text| text.0);
    bounded("timeout", timeout, DurationMs(100), TIMEOUT_MAX)?;
    let concurrency = spec.concurrency.unwrap_or(CONCURRENCY_DEFAULT);
    if !(1..=CONCURRENCY_MAX).contains(&concurrency) {
        let remedy = format!("give 1 to {CONCURRENCY_MAX}");
        return Err(ConfigError::new("concurrency", format!("{concurrency} is out of range"), remedy));
    }
    let settle = spec.reconcile.as_ref().map(|reconcile| reconcile.settle.0);
    let policy = Policy {
        idempotent: spec.idempotent,
        lane: lane_rules(spec)?,
        on_unknown: on_unknown(spec.on_unknown, settle, ENDPOINT_RECONCILE)?,
        classes: classify::rules(&format!("endpoint[{id}]"), &spec.classify, Carries::Statuses)?,
        ..retry(Policy::endpoint_default(), spec.retry.as_ref())?
    };
    let look_up = spec.reconcile.as_ref().map(|spec| LookUpRecipe::understand(spec, timeout)).transpose()?;
    Ok(Endpoint {
        tenant,
        lane,
        id,
        url: spec.url.clone(),
        types: spec.types.clone(),
        signer,
        concurrency: usize::try_from(concurrency).unwrap_or(usize::MAX),
        timeout: Duration::from_millis(timeout.0),
        policy: Arc::new(policy),
        look_up,
        headers: own_headers(spec)?,
        webhook_id: match spec.webhook_id {
            None | Some(WebhookIdSpec::Job) => WebhookId::Job,
            Some(WebhookIdSpec::Message) => WebhookId::Message,
        },
        dead_letter_queue: dead_letter_queue(&spec.id, spec.dead_letter_queue.as_deref())?,
        owner: owner(spec.owner.as_deref())?,
        enabled: spec.enabled.unwrap_or(true),
    })
}

fn signer(secrets: &[String]) -> Result<Option<Signer>, ConfigError> {
    for (index, secret) in secrets.iter().enumerate() {
        check_signing_secret(secret).map_err(|error| {
            ConfigError::new(
                format!("secrets[{index}]"),
                error.to_string(),
                "give a whsec_… or whsk_… secret",
            )
        })?;
    }
    let texts: Vec<&str> = secrets.iter().map(String::as_str).collect();
    if texts.is_empty() {
        return Ok(None);
    }
    let refused =
        |error: posthaste_receiver::SecretError| ConfigError::new("secrets", error.to_string(), "see above");
    Signer::new(&texts).map(Some).map_err(refused)
}

/// Understands a queue.
pub fn compile_queue(tenant: TenantId, lane: LaneId, spec: &QueueSpec) -> Result<Queue, ConfigError> {
    let lease = spec.lease.map_or(DurationMs::from_secs(60), |text| text.0);
    bounded("lease", lease, limits::LEASE_MIN, limits::LEASE_MAX)?;
    let deadline = spec.deadline.map_or(DurationMs::from_mins(15).max(lease), |text| text.0);
    bounded("deadline", deadline, lease, limits::LEASE_MAX)?;
    let settle = spec.reconcile.as_ref().map(|reconcile| reconcile.settle.0);
    let policy = Policy {
        idempotent: spec.idempotent,
        on_unknown: on_unknown(spec.on_unknown, settle, QUEUE_RECONCILE)?,
        classes: classify::rules(&format!("queue[{}]", spec.name), &spec.classify, Carries::Classes)?,
        ..retry(Policy::queue_default(), spec.retry.as_ref())?
    };
    Ok(Queue {
        tenant,
        lane,
        id: name("name", &spec.name)?,
        ledger: spec.ledger.unwrap_or(true),
        lease,
        deadline,
        policy: Arc::new(policy),
        look_up_settle: settle,
        dead_letter_queue: dead_letter_queue(&spec.name, spec.dead_letter_queue.as_deref())?,
        owner: owner(spec.owner.as_deref())?,
        enabled: spec.enabled.unwrap_or(true),
    })
}

fn retry(default: Policy, spec: Option<&RetrySpec>) -> Result<Policy, ConfigError> {
    let Some(spec) = spec else { return Ok(default) };
    let jitter = spec.jitter.map(permille).transpose()?;
    let backoff = match (&spec.delays, spec.base, spec.cap) {
        (Some(_), Some(_), _) | (Some(_), _, Some(_)) => {
            return Err(ConfigError::new(
                "retry",
                "delays and base/cap exclude each other",
                "give one of them",
            ));
        }
        (Some(delays), None, None) => {
            if delays.is_empty() || delays.len() > limits::RETRY_DELAYS_MAX {
                let remedy = format!("give 1 to {} delays", limits::RETRY_DELAYS_MAX);
                return Err(ConfigError::new("retry.delays", format!("{} are given", delays.len()), remedy));
            }
            Backoff::Fixed {
                delays: delays.iter().map(|text| text.0).collect(),
                jitter: jitter.or(Permille::new(100)).expect("100 is a share"),
            }
        }
        (None, None, None) => with_jitter(default.backoff.clone(), jitter),
        (None, base, cap) => {
            let base = base.map_or(DurationMs::from_secs(5), |text| text.0);
            let cap = cap.map_or(DurationMs::from_mins(15).max(base), |text| text.0);
            bounded("retry.base", base, DurationMs(1), cap)?;
            Backoff::Exponential { base, cap, jitter: jitter.or(Permille::new(500)).expect("500 is a share") }
        }
    };
    let failures_default = match &backoff {
        Backoff::Fixed { delays, .. } => u32::try_from(delays.len()).unwrap_or(u32::MAX).saturating_add(1),
        Backoff::Exponential { .. } => default.failures_max,
    };
    Ok(Policy {
        backoff,
        failures_max: from_one("retry.failures_max", spec.failures_max.unwrap_or(failures_default))?,
        lost_leases_max: from_one(
            "retry.lost_leases_max",
            spec.lost_leases_max.unwrap_or(default.lost_leases_max),
        )?,
        horizon: spec.horizon.map_or(default.horizon, |text| text.0),
        ..default
    })
}

fn with_jitter(backoff: Backoff, jitter: Option<Permille>) -> Backoff {
    match (backoff, jitter) {
        (backoff, None) => backoff,
        (Backoff::Exponential { base, cap, .. }, Some(jitter)) => Backoff::Exponential { base, cap, jitter },
        (Backoff::Fixed { delays, .. }, Some(jitter)) => Backoff::Fixed { delays, jitter },
    }
}

#[allow(clippy::cast_possible_truncation, clippy::cast_sign_loss)] // checked to be between 0 and 1,000
fn permille(share: f64) -> Result<Permille, ConfigError> {
    let valid = (0.0..=1.0).contains(&share).then(|| (share * 1_000.0).round() as u16);
    valid.and_then(Permille::new).ok_or_else(|| {
        ConfigError::new("retry.jitter", format!("{share} is no share"), "give 0 to 1, for example 0.5")
    })
}

/// `settle`: of the table that says how to look. `example`: such a table.
fn on_unknown(
    spec: Option<OnUnknownSpec>,
    settle: Option<DurationMs>,
    example: &str,
) -> Result<OnUnknown, ConfigError> {
    match (spec, settle) {
        (Some(OnUnknownSpec::Reconcile), Some(settle)) => Ok(OnUnknown::Reconcile { settle }),
        (Some(OnUnknownSpec::Reconcile), None) => {
            Err(ConfigError::new("on_unknown", "nothing says how to look", example))
        }
        (_, Some(_)) => Err(ConfigError::new(
            "reconcile",
            "nobody would look, since on_unknown is not \"reconcile\"",
            "write on_unknown = \"reconcile\", or leave the table out",
        )),
        (None | Some(OnUnknownSpec::Retry), None) => Ok(OnUnknown::Retry),
        (Some(OnUnknownSpec::DeadLetter), None) => Ok(OnUnknown::DeadLetter),
    }
}

fn own_headers(spec: &EndpointSpec) -> Result<Vec<(String, String)>, ConfigError> {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.!#$%&'*+^`|~".contains(&byte);
    spec.headers
        .iter()
        .map(|(name, value)| {
            let path = format!("headers.{name}");
            let lower = name.to_ascii_lowercase();
            if lower.is_empty() || !lower.bytes().all(token) {
                return Err(ConfigError::new(
                    path,
                    "this is no header's name",
                    "use letters, digits and `-`",
                ));
            }
            if RESERVED_HEADERS.contains(&lower.as_str())
                || ["webhook-", "posthaste-"].iter().any(|prefix| lower.starts_with(prefix))
            {
                return Err(ConfigError::new(
                    path,
                    "this header is ours",
                    "leave it out, or use another name",
                ));
            }
            if value.len() > 4_096 || !value.bytes().all(|byte| (0x20..0x7F).contains(&byte)) {
                let remedy = "use at most 4,096 characters of visible ASCII and spaces";
                return Err(ConfigError::new(path, "the value can't be sent", remedy));
            }
            Ok((lower, value.clone()))
        })
        .collect()
}

pub(super) fn check_type_pattern(path: &str, pattern: &str) -> Result<(), ConfigError> {
    let stars = pattern.matches('*').count();
    let fits = pattern == "*" || stars == 0 || (stars == 1 && pattern.ends_with(".*") && pattern.len() > 2);
    if pattern.is_empty() || !fits || pattern.len() > limits::TYPE_BYTES_MAX {
        let remedy = "write a type, `*`, or `shipment.*` for all below";
        return Err(ConfigError::new(path, format!("{pattern:?} is no pattern"), remedy));
    }
    Ok(())
}

pub(super) fn name(path: &str, text: &str) -> Result<DestinationId, ConfigError> {
    DestinationId::new(text)
        .map_err(|error| ConfigError::new(path, error.to_string(), "use for example \"fan_17\""))
}

pub(super) fn owner(text: Option<&str>) -> Result<Option<Box<str>>, ConfigError> {
    match text {
        Some(text) if text.is_empty() || text.len() > 128 || text.chars().any(char::is_control) => {
            Err(ConfigError::new(
                "owner",
                "this can't be shown",
                "use 1 to 128 characters, for example \"team-payments\"",
            ))
        }
        text => Ok(text.map(Into::into)),
    }
}

/// A dead letter of the dead-letter queue itself would go round for ever.
pub(super) fn dead_letter_queue(
    own: &str,
    queue: Option<&str>,
) -> Result<Option<DestinationId>, ConfigError> {
    if queue == Some(own) {
        let problem = "a queue can't be the dead-letter queue of itself";
        return Err(ConfigError::new("dead_letter_queue", problem, "name another queue"));
    }
    queue.map(|queue| name("dead_letter_queue", queue)).transpose()
}

pub(super) fn from_one(path: &str, value: u32) -> Result<u32, ConfigError> {
    if value == 0 {
        return Err(ConfigError::new(path, "0 would try nothing", "give 1 or more"));
    }
    Ok(value)
}

pub(super) fn bounded(
    path: &str,
    value: DurationMs,
    min: DurationMs,
    max: DurationMs,
) -> Result<(), ConfigError> {
    if value < min || value > max {
        let problem = format!("{} is out of range", format_duration(value));
        let remedy = format!("give {} to {}", format_duration(min), format_duration(max));
        return Err(ConfigError::new(path, problem, remedy));
    }
    Ok(())
}
