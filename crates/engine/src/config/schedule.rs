//! Schedules: as written, and as understood.

use posthaste_core::{DestinationId, DurationMs, TenantId, limits};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::{
    ConfigError, To, ToSpec,
    compile::{bounded, name, owner},
    source::to,
    text::DurationText,
};
use crate::schedules::{CatchUp, Timing};

/// What stands for the instant of a firing in a payload.
const SCHEDULED_AT: &str = "{{scheduled_at}}";

/// Metadata that a firing adds.
pub(crate) const METADATA_ADDED: [&str; 2] = ["schedule", "scheduled_at"];

/// The longest jitter.
const JITTER_MAX: DurationMs = DurationMs::from_mins(24 * 60);

/// What becomes of firings that were missed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CatchUpSpec {
    /// They are not made up for.
    Skip,
    /// The latest of them is.
    Once,
    /// All are, up to the last 1,000.
    All,
}

/// A schedule: a cron expression that enqueues.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScheduleSpec {
    /// Its name.
    pub name: String,
    /// Five fields, or `@every 15m`.
    pub cron: String,
    /// The place whose clocks count, by its IANA name; `UTC` unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timezone: Option<String>,
    /// Where the messages go; absent: to every endpoint subscribed to the type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<ToSpec>,
    /// The messages' event type.
    #[serde(rename = "type", skip_serializing_if = "Option::is_none")]
    pub event_type: Option<String>,
    /// The messages' payload; `{{scheduled_at}}` in a text stands for the instant. Absent: the name and the instant.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub payload: Option<Value>,
    /// The messages' metadata, beside `schedule` and `scheduled_at`.
    #[serde(default, skip_serializing_if = "Map::is_empty")]
    pub metadata: Map<String, Value>,
    /// What becomes of firings that were missed; `skip` unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub catch_up: Option<CatchUpSpec>,
    /// The jobs of each firing wait for up to so long, always equally long for one firing; nothing unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub jitter: Option<DurationText>,
    /// Who answers for it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub owner: Option<String>,
    /// Whether it fires; true unless told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub enabled: Option<bool>,
}

/// A schedule, understood.
#[derive(Clone, Debug)]
pub struct Schedule {
    /// Whose.
    pub tenant: TenantId,
    /// Its name.
    pub id: DestinationId,
    /// When it fires.
    pub timing: Timing,
    /// Where its messages go.
    pub to: To,
    /// Their event type.
    pub event_type: Option<Box<str>>,
    /// JSON in which [`Schedule::payload`] puts the instant.
    payload: Box<str>,
    /// The user's metadata.
    metadata: Map<String, Value>,
    /// What becomes of firings that were missed.
    pub catch_up: CatchUp,
    /// The longest wait of a firing's jobs.
    pub jitter: DurationMs,
    /// Who answers for it.
    pub owner: Option<Box<str>>,
    /// Whether it fires.
    pub enabled: bool,
}

impl Schedule {
    /// The payload of the firing at `scheduled_at`, an RFC 3339 time.
    pub(crate) fn payload(&self, scheduled_at: &str) -> String {
        self.payload.replace(SCHEDULED_AT, scheduled_at)
    }

    /// The metadata of the firing at `scheduled_at`, a JSON object.
    pub(crate) fn metadata(&self, scheduled_at: &str) -> String {
        let mut metadata = self.metadata.clone();
        let added = [self.id.as_str(), scheduled_at];
        metadata
            .extend(METADATA_ADDED.iter().zip(added).map(|(name, value)| ((*name).to_owned(), value.into())));
        Value::Object(metadata).to_string()
    }
}

/// Understands a schedule. Whether its destinations exist is not asked here.
pub fn compile_schedule(tenant: TenantId, spec: &ScheduleSpec) -> Result<Schedule, ConfigError> {
    let id = name("name", &spec.name)?;
    let to = to(spec.to.as_ref())?;
    if to == To::Subscribers && spec.event_type.is_none() {
        return Err(ConfigError::new(
            "to",
            "without a destination or a type the messages would reach nobody",
            "give to = { queue = \"…\" } or to = { endpoints = [\"…\"] }, or a type to which endpoints subscribe",
        ));
    }
    check_type(spec.event_type.as_deref())?;
    let jitter = spec.jitter.map_or(DurationMs::ZERO, |text| text.0);
    bounded("jitter", jitter, DurationMs::ZERO, JITTER_MAX)?;
    check_metadata(&spec.metadata)?;
    Ok(Schedule {
        tenant,
        timing: Timing::parse(&spec.cron, spec.timezone.as_deref())?,
        to,
        event_type: spec.event_type.as_deref().map(Into::into),
        payload: payload(spec)?.into(),
        id,
        metadata: spec.metadata.clone(),
        catch_up: match spec.catch_up {
            None | Some(CatchUpSpec::Skip) => CatchUp::Skip,
            Some(CatchUpSpec::Once) => CatchUp::Once,
            Some(CatchUpSpec::All) => CatchUp::All,
        },
        jitter,
        owner: owner(spec.owner.as_deref())?,
        enabled: spec.enabled.unwrap_or(true),
    })
}

fn payload(spec: &ScheduleSpec) -> Result<String, ConfigError> {
    let standard = || serde_json::json!({ "schedule": spec.name, "scheduled_at": SCHEDULED_AT });
    let text = spec.payload.as_ref().map_or_else(standard, Value::clone).to_string();
    if text.len() > limits::PAYLOAD_BYTES_DEFAULT {
        let remedy = format!("give at most {}", limits::PAYLOAD_BYTES_DEFAULT);
        return Err(ConfigError::new("payload", format!("it has {} bytes", text.len()), remedy));
    }
    // `{{` is no JSON outside of a text.
    let rest = text.replace(SCHEDULED_AT, "");
    if let Some(at) = rest.find("{{") {
        let rest: String = rest[at..].chars().take(24).collect();
        let problem = format!("{rest:?} stands for nothing that is known");
        return Err(ConfigError::new("payload", problem, format!("{SCHEDULED_AT} is all there is")));
    }
    Ok(text)
}

fn check_metadata(metadata: &Map<String, Value>) -> Result<(), ConfigError> {
    if let Some(name) = METADATA_ADDED.iter().find(|name| metadata.contains_key(**name)) {
        let problem = format!("{name:?} is set by each firing");
        return Err(ConfigError::new(format!("metadata.{name}"), problem, "choose another name"));
    }
    // Room for what a firing adds.
    let (bytes, max) = (Value::Object(metadata.clone()).to_string().len(), limits::METADATA_BYTES_MAX - 256);
    if bytes > max {
        let problem = format!("it has {bytes} bytes");
        return Err(ConfigError::new("metadata", problem, format!("give at most {max}")));
    }
    Ok(())
}

fn check_type(event_type: Option<&str>) -> Result<(), ConfigError> {
    if event_type.is_some_and(crate::notice::is_operational) {
        let problem = "types that begin with \"posthaste.\" are ours";
        return Err(ConfigError::new("type", problem, "choose another one, for example \"report.nightly\""));
    }
    let Err(error) = crate::publish::check_type(event_type) else { return Ok(()) };
    Err(ConfigError::new("type", error.to_string(), "write for example \"report.nightly\""))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn spec(json: Value) -> ScheduleSpec {
        serde_json::from_value(json).unwrap()
    }

    fn refused(mut changed: Value) -> String {
        let object = changed.as_object_mut().unwrap();
        for (name, value) in [("name", "a"), ("cron", "0 0 * * *"), ("type", "t")] {
            object.entry(name).or_insert(value.into());
        }
        compile_schedule(TenantId(1), &spec(changed)).unwrap_err().to_string()
    }

    #[test]
    fn r_b14_a_firing_says_when_and_from_which_schedule_it_is() {
        let spec = spec(serde_json::json!({
            "name": "nightly", "cron": "0 0 * * *", "type": "t", "metadata": {"a": 1},
            "payload": {"day": "{{scheduled_at}}", "id": 3_544_790_567_247_868_102_u64},
        }));
        let schedule = compile_schedule(TenantId(1), &spec).unwrap();
        assert_eq!(
            "{\"day\":\"2026-01-01T00:00:00.000Z\",\"id\":3544790567247868102}",
            schedule.payload("2026-01-01T00:00:00.000Z")
        );
        assert_eq!(
            "{\"a\":1,\"schedule\":\"nightly\",\"scheduled_at\":\"2026-01-01T00:00:00.000Z\"}",
            schedule.metadata("2026-01-01T00:00:00.000Z")
        );
        let plain = ScheduleSpec { payload: None, ..spec };
        let plain = compile_schedule(TenantId(1), &plain).unwrap();
        assert_eq!("{\"schedule\":\"nightly\",\"scheduled_at\":\"x\"}", plain.payload("x"));
    }

    #[test]
    fn r_b14_what_is_wrong_is_named_with_what_would_be_right() {
        use serde_json::json;
        for (changed, says) in [
            (json!({"name": "a b"}), "name: "),
            (json!({"type": null}), "to: without a destination or a type"),
            (json!({"type": "a b"}), "type: "),
            (json!({"type": "posthaste.job.dead_lettered"}), "type: types that begin"),
            (json!({"to": {"queue": "q", "endpoints": ["e"]}}), "to: queue and endpoints exclude each other"),
            (json!({"payload": {"a": "{{now}}"}}), "payload: \"{{now}}"),
            (json!({"payload": "x".repeat(300_000)}), "payload: it has 300002 bytes"),
            (json!({"metadata": {"schedule": 1}}), "metadata.schedule: \"schedule\" is set by each firing"),
            (json!({"jitter": "25h"}), "jitter: "),
            (json!({"owner": ""}), "owner: "),
            (json!({"cron": "61 * * * *"}), "cron: \"61\" is no minute"),
        ] {
            let error = refused(changed.clone());
            assert!(error.starts_with(says), "{changed}: {error}");
        }
    }
}
