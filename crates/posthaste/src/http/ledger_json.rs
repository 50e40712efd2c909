//! What the ledger's calls take and answer, on the wire.

use base64::{Engine as _, engine::general_purpose::STANDARD};
use posthaste_core::{
    Class,
    ledger::{Outcome, Previous},
};
use posthaste_engine::Shown;
use posthaste_store::StoredResult;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use utoipa::ToSchema;

use super::{
    json::{GivenDuration, present},
    queue::embeddable,
    time::Time,
};

/// May the effect begin?
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ClaimRequest {
    /// Which effect: an event id, or any key of 1 to 321 bytes.
    #[schema(examples("cart:8f31:expire:carts"), max_length = 321)]
    pub(super) key: String,
    /// How long the grant holds; 60 s unless told.
    #[schema(value_type = Option<String>, examples("30s"))]
    pub(super) lease: Option<GivenDuration>,
    /// What the payload is: a hash, say. Another one for the same key is refused with `key_reused`.
    #[schema(max_length = 256)]
    pub(super) fingerprint: Option<String>,
    /// Names this request, so that repeating it after a lost answer gets the same grant.
    #[schema(max_length = 128)]
    pub(super) claim_id: Option<String>,
    /// What becomes of a grant that runs out: the next claim takes it over (`retake`, default), or a person decides
    /// (`hold`).
    #[schema(examples("retake", "hold"))]
    pub(super) on_expired: Option<String>,
    /// `job_…`, if the key is the event id of one: a check.
    pub(super) job: Option<String>,
}

/// The effect happened, or surely never will.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct CompleteRequest<'a> {
    /// Which effect.
    pub(super) key: String,
    /// The fence, as the claim gave it.
    pub(super) fence: String,
    /// `committed` (default): it happened. `cancelled`: it no longer applies.
    #[schema(examples("committed", "cancelled"))]
    pub(super) outcome: Option<String>,
    /// What duplicates are answered, as JSON: kept byte for byte, at most 64 KiB.
    #[serde(borrow, default, deserialize_with = "present")]
    #[schema(value_type = Value)]
    pub(super) result: Option<&'a RawValue>,
    /// What duplicates are answered, as bytes in base64; excludes `result`.
    pub(super) result_base64: Option<String>,
    /// The media type of the bytes.
    pub(super) content_type: Option<String>,
    /// The HTTP status that the receiver answered with.
    pub(super) status: Option<u16>,
}

/// The effect surely did not happen. If that is not sure, say nothing and let the grant run out.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct FailRequest {
    /// Which effect.
    pub(super) key: String,
    /// The fence, as the claim gave it.
    pub(super) fence: String,
    /// The class of the failure.
    #[schema(examples("timeout", "worker"))]
    pub(super) class: Option<String>,
    /// The error's text.
    #[schema(max_length = 1024)]
    pub(super) message: Option<String>,
}

/// The effect takes longer.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ExtendGrantRequest {
    /// Which effect.
    pub(super) key: String,
    /// The fence, as the claim gave it.
    pub(super) fence: String,
    /// From now; 60 s unless told.
    #[schema(value_type = Option<String>, examples("30s"))]
    pub(super) lease: Option<GivenDuration>,
}

/// An operator wants the effect anew.
#[derive(Debug, Deserialize, ToSchema)]
#[serde(deny_unknown_fields)]
pub(crate) struct ResetRequest {
    /// Which effect.
    pub(super) key: String,
    /// The fence that the operator saw.
    pub(super) fence: String,
    /// The status that the operator saw.
    #[schema(examples("done", "in_progress", "failed"))]
    pub(super) status: String,
    /// Why; shown for ever.
    #[schema(max_length = 1024)]
    pub(super) reason: String,
}

/// What a claim came to: one of four paths.
#[derive(Debug, Default, Serialize, ToSchema)]
pub(crate) struct ClaimAnswer {
    /// `first_run`, `retry_after_failure`, `duplicate_done` or `in_progress_elsewhere`.
    pub(super) path: &'static str,
    /// Proof of the grant; opaque. Of the first two paths.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) fence: Option<Box<str>>,
    /// Grants so far, this one included.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) attempts: Option<u32>,
    /// Until when the grant holds, this one or somebody else's; `null` while it is held for a person.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<String>, format = DateTime)]
    #[allow(clippy::option_option, reason = "left out, null, or a time")]
    pub(super) locked_until: Option<Option<Time>>,
    /// What the grant follows: `none`, `failed` (surely without effect, or reset), or `expired` (perhaps with).
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) previous: Option<&'static str>,
    /// Of `duplicate_done`.
    #[serde(flatten)]
    pub(super) done: Option<DoneJson>,
}

/// How an effect ended, and what duplicates are answered.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct DoneJson {
    /// `committed` or `cancelled`.
    pub(super) outcome: &'static str,
    /// The result, byte for byte, if it is JSON.
    #[schema(value_type = Value)]
    pub(super) result: Option<Box<RawValue>>,
    /// The result in base64 otherwise.
    pub(super) result_base64: Option<String>,
    /// Its media type.
    pub(super) content_type: Option<Box<str>>,
    /// The HTTP status it was sent with.
    pub(super) status: Option<u16>,
}

/// Where the entry stands after a report.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct EntryAnswer {
    /// `in_progress`, `failed` or `done`.
    pub(super) status: &'static str,
    /// Of a done entry: `committed` or `cancelled`.
    pub(super) outcome: Option<&'static str>,
    /// The fence in force.
    pub(super) fence: Box<str>,
    /// Until when the grant holds, while it is in progress.
    #[schema(value_type = Option<String>, format = DateTime)]
    pub(super) locked_until: Option<Time>,
}

/// An entry.
#[derive(Debug, Serialize, ToSchema)]
#[schema(as = LedgerEntry)]
pub(crate) struct EntryJson {
    /// Which effect.
    pub(super) key: String,
    /// `in_progress`, `failed` or `done`.
    pub(super) status: &'static str,
    /// The fence of the last grant or reset.
    pub(super) fence: Box<str>,
    /// Grants so far.
    pub(super) attempts: u32,
    /// The path that the last grant was told.
    pub(super) path: &'static str,
    /// What the last grant followed.
    pub(super) previous: &'static str,
    /// Until when the last grant holds.
    #[schema(value_type = String, format = DateTime)]
    pub(super) locked_until: Time,
    /// What becomes of it then.
    pub(super) on_expired: &'static str,
    /// What the payload is, as claimers said.
    pub(super) fingerprint: Option<String>,
    /// How it ended.
    pub(super) done: Option<DoneJson>,
    /// Why the last grant failed.
    pub(super) class: Option<&'static str>,
    /// Why the last grant failed, for people.
    pub(super) message: Option<Box<str>>,
    /// When the first claim came.
    #[schema(value_type = String, format = DateTime)]
    pub(super) created_at: Time,
    /// When it changed last.
    #[schema(value_type = String, format = DateTime)]
    pub(super) updated_at: Time,
    /// The last reset.
    pub(super) reset: Option<ResetJson>,
    /// `job_…`: the entry is that job's own, in a queue that keeps the ledger; only reports on the job change it.
    pub(super) of_job: Option<String>,
}

/// A reset, for ever shown.
#[derive(Debug, Serialize, ToSchema)]
pub(crate) struct ResetJson {
    /// When.
    #[schema(value_type = String, format = DateTime)]
    pub(super) at: Time,
    /// Who.
    pub(super) by: Option<Box<str>>,
    /// Why.
    pub(super) reason: Box<str>,
}

impl DoneJson {
    pub(super) fn of(outcome: Outcome, result: StoredResult) -> Self {
        let is_json = result.content_type.as_deref().is_some_and(super::wire::is_json);
        let bytes = result.bytes.as_deref();
        let json = bytes.filter(|_| is_json).and_then(embeddable).map(ToOwned::to_owned);
        Self {
            outcome: outcome.as_str(),
            result_base64: bytes.filter(|_| json.is_none()).map(|bytes| STANDARD.encode(bytes)),
            result: json,
            content_type: result.content_type,
            status: result.status,
        }
    }
}

impl EntryJson {
    pub(super) fn of(Shown { entry: shown, fence }: Shown) -> Self {
        let entry = shown.entry;
        let text = |bytes: Box<[u8]>| String::from_utf8_lossy(&bytes).into_owned();
        Self {
            key: shown.key.to_string(),
            status: entry.status.as_str(),
            fence,
            attempts: entry.attempts,
            path: entry.path.as_str(),
            previous: Previous::as_str(entry.previous),
            locked_until: Time(entry.locked_until),
            on_expired: entry.on_expired.as_str(),
            fingerprint: entry.fingerprint.map(text),
            done: entry.outcome.map(|outcome| DoneJson::of(outcome, shown.result)),
            class: shown.class.map(Class::as_str),
            message: shown.message,
            created_at: Time(shown.created_at),
            updated_at: Time(shown.updated_at),
            reset: shown.reset.map(|reset| ResetJson {
                at: Time(reset.at),
                by: reset.by,
                reason: reset.reason,
            }),
            of_job: shown.of_job.map(|job| job.to_string()),
        }
    }
}
