//! The form of a line: what is written, name by name.

use serde::{Deserialize, Serialize};

#[derive(Serialize, Deserialize)]
#[serde(tag = "record", rename_all = "snake_case")]
pub(super) enum Line {
    Message(Box<MessageLine>),
    Entry(Box<EntryLine>),
}

/// A text that may be absent.
pub(super) type Text = Option<Box<str>>;

#[derive(Serialize, Deserialize)]
pub(super) struct MessageLine {
    pub(super) version: u32,
    pub(super) tenant: u32,
    pub(super) tenant_name: Box<str>,
    pub(super) id: Box<str>,
    pub(super) key: Box<str>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) aliases: Vec<NameLine>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) r#type: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) source: Text,
    pub(super) accepted_at: i64,
    pub(super) correlation_id: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) traceparent: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) content_type: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) headers: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) metadata: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) payload_ref: Text,
    pub(super) payload_base64: Box<str>,
    pub(super) fingerprint_base64: Box<str>,
    pub(super) duplicates: u64,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) jobs: Vec<JobLine>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) custody: Vec<CustodyLine>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct NameLine {
    pub(super) kind: Box<str>,
    pub(super) key: Box<str>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct JobLine {
    pub(super) id: Box<str>,
    pub(super) event_id: Box<str>,
    pub(super) destination: Box<str>,
    pub(super) kind: Box<str>,
    pub(super) state: Box<str>,
    pub(super) share: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) settled_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) cause: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) evidence: Text,
    pub(super) attempt: u32,
    pub(super) failed_before: bool,
    pub(super) created_at: i64,
    pub(super) scheduled_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) started_at: Option<i64>,
    pub(super) failures: u32,
    pub(super) lost_leases: u32,
    pub(super) uncharged: u32,
    pub(super) budget_since: i64,
    pub(super) budget_held_ms: u64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reason: Text,
    pub(super) cancel_requested: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) abandon: Text,
    pub(super) commit_heard: u32,
    pub(super) evidence_floor: u32,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) checkpoint_base64: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) wire_id: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) owner: Text,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) attempts: Vec<AttemptLine>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct AttemptLine {
    pub(super) attempt: u32,
    pub(super) kind: Box<str>,
    pub(super) path: Box<str>,
    pub(super) worker: Box<str>,
    pub(super) due_at: i64,
    pub(super) leased_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) started_at: Option<i64>,
    pub(super) finished_at: i64,
    pub(super) report: ReportLine,
    pub(super) reported: bool,
    pub(super) state: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next_at: Option<i64>,
    pub(super) policy: Box<str>,
    pub(super) details: DetailsLine,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) commit_heard_at: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) late: Option<LateLine>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ReportLine {
    pub(super) outcome: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) class: Text,
    pub(super) effect: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) wish: Text,
}

#[derive(Serialize, Deserialize)]
pub(super) struct DetailsLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) duration_ms: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) code: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) excerpt_base64: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result_base64: Text,
}

#[derive(Serialize, Deserialize)]
pub(super) struct LateLine {
    pub(super) at: i64,
    pub(super) report: ReportLine,
    pub(super) state: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) next_at: Option<i64>,
    pub(super) accepted: bool,
    pub(super) details: DetailsLine,
}

#[derive(Serialize, Deserialize)]
pub(super) struct CustodyLine {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) job: Text,
    pub(super) at: i64,
    pub(super) stage: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) attempt: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) actor: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) detail: Text,
}

#[derive(Serialize, Deserialize)]
pub(super) struct EntryLine {
    pub(super) version: u32,
    pub(super) tenant: u32,
    pub(super) tenant_name: Box<str>,
    pub(super) key: Box<str>,
    pub(super) status: Box<str>,
    pub(super) fence: u64,
    pub(super) attempts: u32,
    pub(super) locked_until: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) fingerprint_base64: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) claim_id: Text,
    pub(super) path: Box<str>,
    pub(super) previous: Box<str>,
    pub(super) on_expired: Box<str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) outcome: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result_base64: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) content_type: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) result_status: Option<u16>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) class: Text,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) message: Text,
    pub(super) created_at: i64,
    pub(super) updated_at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) reset: Option<ResetLine>,
}

#[derive(Serialize, Deserialize)]
pub(super) struct ResetLine {
    pub(super) at: i64,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub(super) by: Text,
    pub(super) reason: Box<str>,
}
