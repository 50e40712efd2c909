//! posthaste's pure core: what a job, an attempt and a ledger entry are, and what they may become.
//!
//! Nothing here reads a clock, draws a random number, or does IO. Time comes in as `now`; jitter is a hash of the
//! job; what is to be written comes out as data that only this crate can make.

mod attempt;
mod backoff;
mod bulk;
mod classes;
mod command;
mod failure;
mod ids;
mod job;
mod key;
pub mod lane;
mod late;
pub mod ledger;
pub mod limits;
mod operator;
mod rate;
mod report;
mod retry_after;
mod row;
mod share;
mod time;
mod transition;
mod verdict;
mod words;

pub use attempt::{
    Attempt, AttemptEnd, AttemptOutcome, AttemptRecord, Details, EffectSpan, Epoch, Evidence, Fence, Kind,
    LateReport, Path, Report,
};
pub use backoff::{Backoff, OnUnknown, Permille, Policy, release_delay};
pub use bulk::{BulkFilter, BulkOutcome, BulkRow, RunControl, RunKind, RunState};
pub use classes::{ClassRule, RuleAt, RuleOf, Ruled, Ruling};
pub use command::{Command, CommandName, Failure, FinishOutcome, LookUpVerdict, Start};
pub use failure::{
    CLASS_RULES, Class, Classified, Disposition, Effect, Reading, RetryWish, STATUS_RULES, StatusRule,
    TransportFault, read_class, read_fault, read_status,
};
pub use ids::{ApiKeyId, JobId, LaneId, MessageId, RunId, TenantId};
pub use job::{Budgets, Cause, Job, Lease, NewJob, NextStep, Remaining, Share, State, StateName};
pub use key::{DestinationId, EventId, MessageKey, NameError};
pub use lane::{Lane, LaneRules, Scheduling};
pub use rate::Rate;
pub use retry_after::parse_retry_after;
pub use row::{CorruptRow, JobRow, LeaseRow};
pub use share::share_out;
pub use time::{DurationMs, Timestamp};
pub use transition::{is_settled_by_evidence, transition};
pub use verdict::{Answer, CancelAnswer, Decision, Entry, Facts, Nature, Refusal, RowWrite, Verdict};
