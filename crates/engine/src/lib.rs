//! The engine: the loops between the rows and the world.
//!
//! Knows no HTTP library, no SQL driver and no web framework: it asks the [`posthaste_store::Store`] seam and its
//! own [`ports`]. Rules about jobs are the core's; what the engine adds is when to ask, and what to do with the
//! answer.

pub mod archive;
mod archived;
mod bulk;
mod came_to;
mod company;
pub mod config;
mod decoding;
mod delivery;
mod directory;
mod dispatch;
mod engine;
mod error;
mod handshake;
mod heap;
mod intake;
mod jobs;
mod lane_timeline;
mod lanes;
mod ledger;
mod look_up;
mod loops;
mod manage;
mod message_ids;
mod metrics;
mod nodes;
mod notice;
mod observe;
mod operate;
mod pace;
pub mod ports;
mod publish;
mod pull;
mod quarantine;
mod reading;
mod reload;
mod rests;
mod retain;
pub mod schedules;
mod slots;
mod sns;
mod sweep;
mod timeline;
mod verdicts;
mod verifying;
mod waiters;

pub use bulk::{BulkError, BulkStart, DryRun};
pub use came_to::CameTo;
pub use directory::{ApiKey, Destination, Directory, Entry, Scope};
pub use engine::{Engine, EngineParts, Settings};
pub use error::EngineError;
pub use handshake::{AllowedOrigin, MetaQuestion, Shaken};
pub use intake::{IntakeError, IntakeRequest, Received, Taken};
pub use lanes::{Held, PauseScope, SteerOutcome, Why};
pub use ledger::{Claimed, LedgerClaim, LedgerError, LedgerSays, Shown};
pub use manage::{HIDDEN, PutOutcome, hash_api_key, parse_schema};
pub use metrics::{CommitMetrics, Metrics};
pub use notice::{Describe, Notice, OPERATIONAL_PREFIX, Told};
pub use operate::{Assume, Known, OperateError, Operated, RoundAgain};
pub use posthaste_store::Clock as StoreClock;
pub use publish::{Publish, PublishDue, PublishTo, Published};
pub use pull::{Consume, Consumed, WorkerAnswer, WorkerReport, WorkerSays};
pub use quarantine::Unfit;
pub use reload::FileDestinations;
pub use retain::{ArchiveRun, RetainError, RetentionParts, RetrySpan};
pub use schedules::{FiredNow, ScheduleView};
pub use timeline::{Timeline, TimelineEntry};
pub use verdicts::{HandedLookUp, Judged, Judgement, WorkerFound};
