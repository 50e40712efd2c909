//! Metrics: names fixed by the contract, labels bounded. Row F4.

use std::{sync::atomic::AtomicU64, time::Duration};

use posthaste_core::{AttemptOutcome, Cause, Class, DurationMs, LookUpVerdict, Path, StateName, Timestamp};
use posthaste_store::{LaneHead, StateCount};
use prometheus_client::{
    encoding::{EncodeLabelSet, text::encode},
    metrics::{counter::Counter, family::Family, gauge::Gauge, histogram::Histogram},
    registry::Registry,
};

use crate::{Directory, directory::Destination};

/// Seconds, from a millisecond to a week.
const LAG_BUCKETS: [f64; 12] =
    [0.001, 0.005, 0.02, 0.1, 0.5, 2.0, 10.0, 60.0, 600.0, 3_600.0, 86_400.0, 604_800.0];

/// Seconds, for the acceptance of a request.
const ACCEPT_BUCKETS: [f64; 12] = [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1.0, 2.0];

/// Seconds, for a commit.
const COMMIT_BUCKETS: [f64; 12] =
    [0.0002, 0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 1.0, 5.0];

/// Rows in a commit.
const ROW_BUCKETS: [f64; 10] = [1.0, 4.0, 16.0, 64.0, 128.0, 256.0, 512.0, 1_024.0, 4_096.0, 16_384.0];

macro_rules! labels {
    ($($(#[$meta:meta])* $name:ident { $($field:ident: $kind:ty),+ })+) => { $(
        $(#[$meta])*
        #[derive(Clone, Debug, Hash, PartialEq, Eq, EncodeLabelSet)]
        struct $name { $($field: $kind),+ }
    )+ };
}

labels! {
    ClaimLabels { source: String, path: &'static str }
    AttemptLabels { outcome: &'static str, class: &'static str }
    StateLabels { state: &'static str }
    CauseLabels { cause: &'static str }
    VerdictLabels { verdict: &'static str }
    WhereLabels { r#where: &'static str }
    RejectionLabels { source: String, reason: &'static str }
    HandshakeLabels { source: String, outcome: &'static str }
    OldestLabels { destination_kind: &'static str, outcome: &'static str }
}

/// Every metric. Handles are cheap; counting is one atomic.
#[derive(Debug)]
pub struct Metrics {
    registry: Registry,
    claims: Family<ClaimLabels, Counter>,
    attempts: Family<AttemptLabels, Counter>,
    jobs: Family<StateLabels, Gauge>,
    active_leases: Gauge,
    schedule_lag: Histogram,
    retry_lag: Histogram,
    accept_duration: Histogram,
    completion_age: Histogram,
    finished: Family<StateLabels, Counter>,
    dead_lettered: Family<CauseLabels, Counter>,
    duplicates: Family<WhereLabels, Counter>,
    rejections: Family<RejectionLabels, Counter>,
    handshakes: Family<HandshakeLabels, Counter>,
    unrouted: Counter,
    stale_reports: Counter,
    look_ups: Family<VerdictLabels, Counter>,
    swept: Counter,
    unreadable: Counter,
    oldest_due: Family<OldestLabels, Gauge<f64, AtomicU64>>,
    held_jobs: Gauge,
    commits: CommitMetrics,
}

/// What a store that groups its commits reports. A cheap handle.
#[derive(Clone, Debug)]
pub struct CommitMetrics {
    seconds: Histogram,
    rows: Histogram,
}

impl CommitMetrics {
    /// One commit took so long, its sync included, and made so many rows durable.
    pub fn observe(&self, took: Duration, rows: u64) {
        self.seconds.observe(took.as_secs_f64());
        self.rows.observe(f64::from(u32::try_from(rows).unwrap_or(u32::MAX)));
    }
}

impl Default for Metrics {
    fn default() -> Self {
        Self::new()
    }
}

impl Metrics {
    /// All zero.
    pub fn new() -> Self {
        let mut metrics = Self {
            registry: Registry::with_prefix("posthaste"),
            claims: Family::default(),
            attempts: Family::default(),
            jobs: Family::default(),
            active_leases: Gauge::default(),
            schedule_lag: Histogram::new(LAG_BUCKETS),
            retry_lag: Histogram::new(LAG_BUCKETS),
            accept_duration: Histogram::new(ACCEPT_BUCKETS),
            completion_age: Histogram::new(LAG_BUCKETS),
            finished: Family::default(),
            dead_lettered: Family::default(),
            duplicates: Family::default(),
            rejections: Family::default(),
            handshakes: Family::default(),
            unrouted: Counter::default(),
            stale_reports: Counter::default(),
            look_ups: Family::default(),
            swept: Counter::default(),
            unreadable: Counter::default(),
            oldest_due: Family::default(),
            held_jobs: Gauge::default(),
            commits: CommitMetrics {
                seconds: Histogram::new(COMMIT_BUCKETS),
                rows: Histogram::new(ROW_BUCKETS),
            },
        };
        metrics.register();
        metrics
    }

    fn register(&mut self) {
        let registry = &mut self.registry;
        registry.register("claims", "Deliveries claimed at intake, by named path", self.claims.clone());
        registry.register("attempts", "Attempts that ended", self.attempts.clone());
        registry.register("jobs", "Jobs in each state", self.jobs.clone());
        registry.register("active_leases", "Attempts that are running", self.active_leases.clone());
        registry.register(
            "schedule_lag_seconds",
            "From the scheduled time to the first start",
            self.schedule_lag.clone(),
        );
        registry.register(
            "retry_lag_seconds",
            "From the due time of a retry to its start",
            self.retry_lag.clone(),
        );
        registry.register(
            "accept_duration_seconds",
            "From the verified request to the durable commit",
            self.accept_duration.clone(),
        );
        registry.register(
            "completion_age_seconds",
            "From the acceptance to the settled state",
            self.completion_age.clone(),
        );
        self.register_counters();
        let registry = &mut self.registry;
        registry.register(
            "store_commit_seconds",
            "What a commit of the store took, its sync included",
            self.commits.seconds.clone(),
        );
        registry.register("store_batch_rows", "Rows that one commit made durable", self.commits.rows.clone());
        registry.register(
            "oldest_due_job_age_seconds",
            "How long the oldest due job of a kind has been waiting, lanes that are held left out",
            self.oldest_due.clone(),
        );
        registry.register(
            "held_jobs",
            "Due jobs that wait for a pause, an open circuit or a disabled destination to end",
            self.held_jobs.clone(),
        );
    }

    fn register_counters(&mut self) {
        let registry = &mut self.registry;
        registry.register("finished", "Jobs that settled", self.finished.clone());
        registry.register("dead_lettered", "Jobs dead-lettered, by cause", self.dead_lettered.clone());
        registry.register("duplicates", "Duplicates that were answered", self.duplicates.clone());
        registry.register(
            "signature_rejections",
            "Requests whose signature did not fit",
            self.rejections.clone(),
        );
        registry.register(
            "handshakes",
            "Providers' questions whether a source is meant, and what became of them",
            self.handshakes.clone(),
        );
        registry.register("unrouted", "Messages that matched no destination", self.unrouted.clone());
        registry.register("look_ups", "Look-ups that were answered, by verdict", self.look_ups.clone());
        registry.register("swept", "Jobs that a sweep settled by evidence", self.swept.clone());
        registry.register(
            "unreadable_jobs",
            "Jobs that a sweep passed over since they can't be read",
            self.unreadable.clone(),
        );
        registry.register("stale_reports", "Reports that a fence refused", self.stale_reports.clone());
    }

    /// Where the store reports its commits.
    pub fn commits(&self) -> CommitMetrics {
        self.commits.clone()
    }

    /// The text that a scrape gets, in the OpenMetrics format.
    pub fn encode(&self) -> String {
        let mut text = String::with_capacity(8 * 1024);
        encode(&mut text, &self.registry).expect("a String takes all text");
        text
    }

    pub(crate) fn claim(&self, source: &str, path: Path) {
        let labels = ClaimLabels { source: source.to_owned(), path: path.as_str() };
        self.claims.get_or_create(&labels).inc();
    }

    pub(crate) fn attempt(&self, outcome: AttemptOutcome, class: Option<Class>) {
        let class = class.map_or("none", Class::as_str);
        self.attempts.get_or_create(&AttemptLabels { outcome: outcome.as_str(), class }).inc();
    }

    pub(crate) fn look_up(&self, verdict: LookUpVerdict) {
        self.look_ups.get_or_create(&VerdictLabels { verdict: verdict.as_str() }).inc();
    }

    pub(crate) fn swept(&self, jobs: usize, unreadable: usize) {
        self.swept.inc_by(u64::try_from(jobs).unwrap_or(u64::MAX));
        self.unreadable.inc_by(u64::try_from(unreadable).unwrap_or(u64::MAX));
    }

    pub(crate) fn finished(&self, state: StateName, age: DurationMs) {
        self.finished.get_or_create(&StateLabels { state: state.as_str() }).inc();
        self.completion_age.observe(seconds(age));
    }

    pub(crate) fn dead_lettered(&self, cause: Cause) {
        self.dead_lettered.get_or_create(&CauseLabels { cause: cause.as_str() }).inc();
    }

    pub(crate) fn duplicate(&self, r#where: &'static str) {
        self.duplicates.get_or_create(&WhereLabels { r#where }).inc();
    }

    pub(crate) fn signature_rejection(&self, source: &str, reason: &'static str) {
        let labels = RejectionLabels { source: source.to_owned(), reason };
        self.rejections.get_or_create(&labels).inc();
    }

    pub(crate) fn handshake(&self, source: &str, outcome: &'static str) {
        let labels = HandshakeLabels { source: source.to_owned(), outcome };
        self.handshakes.get_or_create(&labels).inc();
    }

    pub(crate) fn unrouted(&self) {
        self.unrouted.inc();
    }

    pub(crate) fn stale_report(&self) {
        self.stale_reports.inc();
    }

    pub(crate) fn schedule_lag(&self, lag: DurationMs) {
        self.schedule_lag.observe(seconds(lag));
    }

    pub(crate) fn retry_lag(&self, lag: DurationMs) {
        self.retry_lag.observe(seconds(lag));
    }

    pub(crate) fn accept_duration(&self, duration: DurationMs) {
        self.accept_duration.observe(seconds(duration));
    }

    pub(crate) fn set_counts(&self, counts: &[StateCount]) {
        for state in StateName::ALL {
            let of_state = counts.iter().filter(|count| count.state == *state);
            let jobs = of_state.fold(0_u64, |sum, count| sum.saturating_add(count.jobs));
            let jobs = i64::try_from(jobs).unwrap_or(i64::MAX);
            self.jobs.get_or_create(&StateLabels { state: state.as_str() }).set(jobs);
            if *state == StateName::Leased {
                self.active_leases.set(jobs);
            }
        }
    }

    pub(crate) fn set_held_jobs(&self, jobs: u64) {
        self.held_jobs.set(i64::try_from(jobs).unwrap_or(i64::MAX));
    }

    pub(crate) fn set_oldest_due(&self, directory: &Directory, heads: &[LaneHead], now: Timestamp) {
        for kind in ["endpoint", "queue"] {
            let of_kind = heads.iter().filter(|head| {
                matches!(
                    (kind, directory.at(head.tenant, head.lane).map(|entry| &entry.destination)),
                    ("endpoint", Some(Destination::Endpoint(_))) | ("queue", Some(Destination::Queue(_)))
                )
            });
            let oldest = of_kind.map(|head| now.since(head.due_at)).max().unwrap_or(DurationMs::ZERO);
            let labels = OldestLabels { destination_kind: kind, outcome: "none" };
            self.oldest_due.get_or_create(&labels).set(seconds(oldest));
        }
    }
}

fn seconds(duration: DurationMs) -> f64 {
    Duration::from_millis(duration.0).as_secs_f64()
}
