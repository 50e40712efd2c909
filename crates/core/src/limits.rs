//! Every limit in one place, with its unit and its source.

use crate::DurationMs;

/// Bytes of a message key, at least 1. Contract.
pub const KEY_BYTES_MAX: usize = 256;

/// Characters of a destination's or source's id. Contract: `[A-Za-z0-9][A-Za-z0-9._-]{0,63}`.
pub const DESTINATION_ID_CHARS_MAX: usize = 64;

/// Bytes of an event id or ledger key: key, `:`, destination. Contract.
pub const EVENT_ID_BYTES_MAX: usize = KEY_BYTES_MAX + 1 + DESTINATION_ID_CHARS_MAX;

/// Bytes of a payload unless a source or the configuration says otherwise: 256 KiB. Row A3, B11.
pub const PAYLOAD_BYTES_DEFAULT: usize = 256 * 1024;

/// Bytes of the largest payload that configuration may allow: 16 MiB. One payload is held in memory whole.
pub const PAYLOAD_BYTES_CEILING: usize = 16 * 1024 * 1024;

/// Bytes of an event type.
pub const TYPE_BYTES_MAX: usize = 128;

/// Bytes of a message's metadata as JSON: 8 KiB.
pub const METADATA_BYTES_MAX: usize = 8 * 1024;

/// Bytes of a content type.
pub const CONTENT_TYPE_BYTES_MAX: usize = 256;

/// Messages in one batch. Contract.
pub const PUBLISH_BATCH_MAX: usize = 1_000;

/// Bytes of one batch request: 4 MiB. Contract.
pub const PUBLISH_BATCH_BYTES_MAX: usize = 4 * 1024 * 1024;

/// Names that mean one message: its key, the provider's ids, older derivation rules.
pub const ALIASES_MAX: usize = 8;

/// Jobs that are made in the transaction that accepts their message; more are made by a cursor.
pub const FANOUT_INLINE_MAX: usize = 100;

/// Jobs that one step of a fan-out makes.
pub const FANOUT_CHUNK: usize = 100;

/// Jobs listed in the answer to a publish. Contract.
pub const JOBS_LISTED_MAX: usize = 100;

/// Jobs in one consume. Contract.
pub const CONSUME_MAX: usize = 1_000;

/// Bytes of one consume's answer: 4 MiB. Contract.
pub const CONSUME_BYTES_MAX: usize = 4 * 1024 * 1024;

/// How long a consume may wait for work: 30 s, below the idle time-outs of common proxies (60 s).
pub const CONSUME_WAIT_MAX: DurationMs = DurationMs::from_secs(30);

/// The shortest lease: a second.
pub const LEASE_MIN: DurationMs = DurationMs::from_secs(1);

/// The longest lease: 12 h, what SQS allows as visibility.
pub const LEASE_MAX: DurationMs = DurationMs::from_hours(12);

/// Bytes of a checkpoint that a worker leaves: 4 KiB. Contract.
pub const CHECKPOINT_BYTES_MAX: usize = 4 * 1024;

/// Bytes of a worker's name.
pub const WORKER_BYTES_MAX: usize = 128;

/// Bytes of a reason that an operator or worker gives.
pub const REASON_BYTES_MAX: usize = 1_024;

/// Bytes of an error's text kept with an attempt.
pub const ERROR_TEXT_BYTES_MAX: usize = 1_024;

/// Bytes of a receiver's answer kept with an attempt.
pub const EXCERPT_BYTES_MAX: usize = 4 * 1024;

/// Bytes of the answer to a look-up that are read: 64 KiB.
pub const LOOK_UP_BYTES_MAX: usize = 64 * 1024;

/// Rules that a destination may have of its own beside the classification.
pub const CLASS_RULES_MAX: usize = 64;

/// Bytes of a worker's result kept with an attempt: 64 KiB.
pub const RESULT_BYTES_MAX: usize = 64 * 1024;

/// Bytes of what a claim of the ledger says of its payload.
pub const FINGERPRINT_BYTES_MAX: usize = 256;

/// Bytes of the name of a claim's request.
pub const CLAIM_ID_BYTES_MAX: usize = 128;

/// The longest `Retry-After` that is believed: 24 h. Row B5.
pub const RETRY_AFTER_MAX: DurationMs = DurationMs::from_hours(24);

/// The longest random addition to a `Retry-After`: 10 s, so that a lane's jobs don't return in one instant.
pub const RETRY_AFTER_JITTER_MAX: DurationMs = DurationMs::from_secs(10);

/// The first wait after a release. Architecture: 1 s · 2ⁿ.
pub const RELEASE_DELAY_BASE: DurationMs = DurationMs::from_secs(1);

/// The longest wait after a release. Architecture.
pub const RELEASE_DELAY_MAX: DurationMs = DurationMs::from_secs(60);

/// Fixed delays in one retry policy.
pub const RETRY_DELAYS_MAX: usize = 64;

/// Characters of a fence on the wire. Contract: at most 128 bytes; ours needs 21.
pub const FENCE_BYTES_MAX: usize = 128;

/// The last instant that can be given: the end of the year 9999, the last that RFC 3339 can spell.
pub const TIMESTAMP_MAX: crate::Timestamp = crate::Timestamp(253_402_300_799_999);

/// Bytes of request bodies that are being read at once, over all connections: 256 MiB. Beyond, requests are answered 503
/// early, so that many large bodies are no way to fill the memory.
pub const BODIES_BYTES_MAX: usize = 256 * 1024 * 1024;

/// Rows of a list's page unless asked otherwise, and at most.
pub const PAGE_DEFAULT: usize = 50;
/// Rows of a list's page at most.
pub const PAGE_MAX: usize = 500;

/// Duplicate deliveries written down for one message; later ones are answered and counted only.
pub const DUPLICATES_RECORDED_MAX: u32 = 100;

/// Jobs a second of a bulk run, unless told: beside it, fresh traffic was measured to keep its latency.
pub const BULK_RATE_DEFAULT: u32 = 500;

/// Jobs a second of a bulk run, at most.
pub const BULK_RATE_MAX: u32 = 10_000;

/// Bulk runs of one tenant that run or are paused at once.
pub const BULK_RUNS_LIVE_MAX: usize = 16;

/// Refused jobs that a bulk run names; more are counted only.
pub const BULK_REFUSED_LISTED_MAX: usize = 20;

/// Bytes of an `Idempotency-Key` of a request that starts something.
pub const IDEMPOTENCY_KEY_BYTES_MAX: usize = 256;
