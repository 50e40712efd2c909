//! Endpoints, queues and sources on the wire: as they were configured, without what is secret.

use posthaste_core::Timestamp;
use posthaste_engine::{Destination, Engine, Entry, HIDDEN, Held};
use posthaste_store::DestinationRow;
use serde_json::{Map, Value};

use super::{pauses::HeldJson, time::Time};

/// Fields of a configuration that never leave the process.
const SECRET_FIELDS: &[&str] = &["secrets"];

/// A destination of the directory.
pub(crate) fn of_entry(engine: &Engine, entry: &Entry) -> Map<String, Value> {
    let mut object = of_row(&entry.row, &engine.held(entry), engine.now());
    let problem = match &entry.destination {
        Destination::Broken { problem, .. } => Value::from(problem.as_ref()),
        Destination::Endpoint(_) | Destination::Queue(_) | Destination::Source(_) => Value::Null,
    };
    object.insert("problem".to_owned(), problem);
    object
}

/// A destination as it is stored, and what holds it.
pub(crate) fn of_row(row: &DestinationRow, held: &Held, now: Timestamp) -> Map<String, Value> {
    let mut object: Map<String, Value> = serde_json::from_str(&row.config).unwrap_or_default();
    for field in SECRET_FIELDS {
        if let Some(secrets) = object.remove(*field) {
            let total = secrets.as_array().map_or(0, Vec::len);
            object.insert(format!("{field}_total"), total.into());
        }
    }
    if let Some(token) = object.get_mut("verify_token") {
        *token = HIDDEN.into();
    }
    // Headers may hold credentials of the receiver's.
    if let Some(Value::Object(headers)) = object.get_mut("headers") {
        headers.values_mut().for_each(|value| *value = HIDDEN.into());
    }
    object.insert("id".to_owned(), row.id.as_str().into());
    object.insert("kind".to_owned(), row.kind.as_str().into());
    object.insert("enabled".to_owned(), (row.enabled && held.disabled.is_none()).into());
    object.insert("owner".to_owned(), row.owner.as_deref().into());
    object.insert("managed_by".to_owned(), row.managed_by.as_str().into());
    object.insert("created_at".to_owned(), Time(row.created_at).to_string().into());
    object.insert("updated_at".to_owned(), Time(row.updated_at).to_string().into());
    if let Ok(Value::Object(held)) = serde_json::to_value(HeldJson::of(held, now)) {
        object.extend(held);
    }
    object
}
