//! The store: keeps it durably, and asks the core before each write.
//!
//! A store locks rows in its own transaction, calls [`posthaste_core::transition`], writes what that decides, and
//! commits. SQL narrows candidates; it holds no rules. Nothing here knows HTTP, providers or retries.

mod accepting;
mod bulk;
mod configure;
mod custody;
mod error;
#[cfg(feature = "faults")]
pub mod faults;
mod job;
mod lanes;
mod ledger;
mod ledger_steps;
pub mod memory;
mod message;
mod nodes;
mod outbox;
mod panic_text;
pub mod postgres;
mod queue;
mod retention;
mod rows;
mod schedules;
mod seam;
pub mod sqlite;
mod step;
mod targets;
mod unsettled;
mod untold;
mod watch;
mod weight;

pub use bulk::{
    Begun, Bulk, BulkChange, BulkCount, BulkCounted, BulkCounts, BulkRequest, BulkRun, BulkStep, BulkStepped,
    Controlled, LaneGate, LaneGates, NewBulkRun, RefusedJob,
};
pub use configure::{
    ApiKeyRow, Configure, Configured, DestinationKind, DestinationRow, ManagedBy, NewDestination, StateCount,
};
pub use custody::{CustodyEntry, Stage};
pub use error::{BoxError, StoreError};
pub use job::{
    Applied, AppliedOutcome, AttemptView, Change, JobCommand, JobFilter, JobView, LaneHead, LeaseGrant,
    LeaseRequest, LeasedJob, policy_line,
};
pub use lanes::{LaneAct, LaneCommand, LaneEvent, LaneEventKind, LaneTurn, LaneView, Lanes, Steered};
pub use ledger::{
    LedgerAction, LedgerAnswer, LedgerApplied, LedgerCommand, LedgerEntry, NamedJob, ResetNote, StoredResult,
};
pub use message::{
    Acceptance, AcceptedMessage, Due, Fingerprint, FingerprintField, JobBrief, KeyKind, MessageBody,
    MessageView, NewMessage, Target,
};
pub use nodes::{Met, Node, Shared};
pub use outbox::{Outbox, OutboxOutcome, OutboxRow};
pub use retention::{
    ArchiveFile, ArchivedMessage, EntryRecord, Expiry, ExpiryCursor, ExpiryRequest, Indexed, MessageRecord,
    Place, Retain, Retention, Retire, Retired,
};
pub use schedules::{
    NewSchedule, NextFire, ScheduleChange, ScheduleChanged, SchedulePause, ScheduleRow, Schedules,
};
pub use seam::{BoxFuture, Clock, FanOutStep, MessageName, Reads, Store, StoreStatus};
pub use unsettled::{LookUpDue, LookUps, Provable, SweepCursor, Unsettled};
pub use untold::{Tell, Untold};
pub use watch::CommitWatch;
