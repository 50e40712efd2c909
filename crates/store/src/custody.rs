//! Custody: what happened to a message beside what its jobs' and attempts' rows say already.

use posthaste_core::{Attempt, JobId, MessageId, TenantId, Timestamp};

/// The stages of a timeline. Contract.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[allow(missing_docs)] // the words are the contract's
pub enum Stage {
    Accepted,
    Duplicate,
    Quarantined,
    Scheduled,
    Published,
    Leased,
    Extended,
    Sent,
    Responded,
    Committed,
    Acknowledged,
    Failed,
    Released,
    RetryScheduled,
    LeaseLost,
    StaleReport,
    LateReport,
    DeadLettered,
    CancelRequested,
    Cancelled,
    Replayed,
    Resent,
    Paused,
    Resumed,
    Reset,
    Reconciled,
    Archived,
}

impl Stage {
    /// Every stage.
    pub const ALL: &'static [Self] = &[
        Self::Accepted,
        Self::Duplicate,
        Self::Quarantined,
        Self::Scheduled,
        Self::Published,
        Self::Leased,
        Self::Extended,
        Self::Sent,
        Self::Responded,
        Self::Committed,
        Self::Acknowledged,
        Self::Failed,
        Self::Released,
        Self::RetryScheduled,
        Self::LeaseLost,
        Self::StaleReport,
        Self::LateReport,
        Self::DeadLettered,
        Self::CancelRequested,
        Self::Cancelled,
        Self::Replayed,
        Self::Resent,
        Self::Paused,
        Self::Resumed,
        Self::Reset,
        Self::Reconciled,
        Self::Archived,
    ];

    /// The word in SQL and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Duplicate => "duplicate",
            Self::Quarantined => "quarantined",
            Self::Scheduled => "scheduled",
            Self::Published => "published",
            Self::Leased => "leased",
            Self::Extended => "extended",
            Self::Sent => "sent",
            Self::Responded => "responded",
            Self::Committed => "committed",
            Self::Acknowledged => "acknowledged",
            Self::Failed => "failed",
            Self::Released => "released",
            Self::RetryScheduled => "retry_scheduled",
            Self::LeaseLost => "lease_lost",
            Self::StaleReport => "stale_report",
            Self::LateReport => "late_report",
            Self::DeadLettered => "dead_lettered",
            Self::CancelRequested => "cancel_requested",
            Self::Cancelled => "cancelled",
            Self::Replayed => "replayed",
            Self::Resent => "resent",
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::Reset => "reset",
            Self::Reconciled => "reconciled",
            Self::Archived => "archived",
        }
    }

    /// The stage that `word` names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.iter().copied().find(|stage| stage.as_str() == word)
    }
}

/// One entry that stands in no other row.
///
/// A store writes one for: each duplicate delivery (the first
/// [`posthaste_core::limits::DUPLICATES_RECORDED_MAX`] of a message), each refused or merely heard report of a
/// worker (`stale_report`, with the refusal's code and what was reported in the detail; at most 100 a job), each
/// late report that was applied, each cancel, replay, resend, settle and abandon.
///
/// The limit of a job counts its `stale_report` entries. What each entry says is decided in one place for all stores:
/// `step::custody_of` for commands, `accepting::duplicate_entry` for duplicates.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CustodyEntry {
    /// Whose.
    pub tenant: TenantId,
    /// Of which message.
    pub message: MessageId,
    /// Of which job.
    pub job: Option<JobId>,
    /// When.
    pub at: Timestamp,
    /// What.
    pub stage: Stage,
    /// Of which attempt.
    pub attempt: Option<Attempt>,
    /// Who.
    pub actor: Option<Box<str>>,
    /// More, a JSON object.
    pub detail: Option<Box<str>>,
}
