//! The connection that writes, with everything prepared, and what is known beside it.

use std::{
    collections::{HashMap, HashSet},
    sync::Arc,
};

use posthaste_core::{CorruptRow, Epoch, JobId, Lane, LaneId, Scheduling, TenantId, Timestamp};
use rusqlite::{Connection, OptionalExtension, params};

use super::{
    counts::Counts,
    fault::Fault,
    lanes::lane_of_row,
    leased::Leased,
    options::{CommitWatch, SqliteOptions},
    recent_names::{Moves, RecentNames},
    statements::{RecordStatements, WriteStatements},
};
use crate::Clock;

/// Lanes whose rows are remembered; then all are forgotten and read again.
const LANES_MAX: usize = 65_536;

/// Rows that can't be read and are passed over, so that a lease doesn't meet them again and again.
const CORRUPT_MAX: usize = 65_536;

pub(super) struct Session<'c> {
    pub(super) conn: &'c Connection,
    pub(super) sql: WriteStatements<'c>,
    pub(super) records: RecordStatements<'c>,
    pub(super) epoch: Epoch,
    /// The time of the operation that runs.
    pub(super) now: Timestamp,
    pub(super) counts: Counts,
    pub(super) leased: Leased,
    clock: Arc<dyn Clock>,
    /// Who is told of commits.
    pub(super) watch: Option<Arc<dyn CommitWatch>>,
    pub(super) recent: Arc<RecentNames>,
    pub(super) moves: Moves,
    pub(super) new_names_max: usize,
    /// Rows that were written before the batch that runs.
    rows: u64,
    /// Only this thread writes lanes, so what was read stays true until it is written, or rolled back.
    lanes: HashMap<(TenantId, LaneId), Option<Arc<Lane>>>,
    pub(super) known_scheduling: HashMap<TenantId, Arc<Scheduling>>,
    /// Some lane was paused: sources may have been.
    pub(super) any_paused: bool,
    pub(super) corrupt: HashSet<(TenantId, JobId)>,
    /// There may be ledger entries: jobs look for theirs.
    pub(super) ledger_used: bool,
}

impl<'c> Session<'c> {
    pub(super) fn new(
        conn: &'c Connection,
        epoch: Epoch,
        options: &SqliteOptions,
        recent: Arc<RecentNames>,
    ) -> rusqlite::Result<Self> {
        let clock = options.clock.clone();
        let mut sql = WriteStatements::prepare(conn)?;
        let ledger_used = sql.ledger_any.exists([])?;
        let any_paused = sql.lanes_any_paused.exists([])?;
        Ok(Self {
            conn,
            sql,
            records: RecordStatements::prepare(conn)?,
            epoch,
            now: clock.now(),
            counts: Counts::default(),
            leased: Leased::default(),
            clock,
            watch: options.watch.clone(),
            recent,
            moves: Moves::default(),
            new_names_max: options.new_names_max,
            rows: conn.total_changes(),
            lanes: HashMap::new(),
            known_scheduling: HashMap::new(),
            any_paused,
            corrupt: HashSet::new(),
            ledger_used,
        })
    }

    /// How many rows were written since this was asked last.
    pub(super) fn rows_written(&mut self) -> u64 {
        let before = std::mem::replace(&mut self.rows, self.conn.total_changes());
        self.rows.saturating_sub(before)
    }

    /// Reads the clock for the next operation. Never goes back.
    pub(super) fn tick(&mut self) -> Timestamp {
        self.now = self.now.max(self.clock.now());
        self.now
    }

    /// The transaction was rolled back: what was learned in it is not true.
    pub(super) fn forget(&mut self) {
        self.counts.drop_batch();
        self.forget_recent();
        self.lanes.clear();
        self.known_scheduling.clear();
        self.leased.forget();
        self.corrupt.clear();
    }

    /// The operation was rolled back.
    pub(super) fn forget_operation(&mut self) {
        self.counts.drop_operation();
        self.forget_recent();
        self.lanes.clear();
        self.known_scheduling.clear();
        self.leased.forget();
    }

    pub(super) fn lane(&mut self, tenant: TenantId, lane: LaneId) -> Result<Option<Arc<Lane>>, Fault> {
        if let Some(known) = self.lanes.get(&(tenant, lane)) {
            return Ok(known.clone());
        }
        let mut rows = self.sql.lanes_find.query(params![tenant.0, lane.0])?;
        let found = match rows.next()? {
            Some(row) => Some(Arc::new(lane_of_row(row, lane)?)),
            None => None,
        };
        drop(rows);
        self.remember_lane(tenant, lane, found.clone());
        Ok(found)
    }

    /// The lane's row was written.
    pub(super) fn keep_lane(&mut self, tenant: TenantId, lane: LaneId, row: Lane) {
        self.remember_lane(tenant, lane, Some(Arc::new(row)));
    }

    fn remember_lane(&mut self, tenant: TenantId, lane: LaneId, row: Option<Arc<Lane>>) {
        if self.lanes.len() >= LANES_MAX {
            self.lanes.clear();
        }
        self.lanes.insert((tenant, lane), row);
    }

    /// A lane's row is new.
    pub(super) fn lane_changed(&mut self, tenant: TenantId, lane: LaneId) {
        self.lanes.remove(&(tenant, lane));
    }

    /// The job's rows can't be read: says so once, and passes over it from now on.
    pub(super) fn note_corrupt(&mut self, tenant: TenantId, job: JobId, corrupt: &CorruptRow) {
        if self.corrupt.len() < CORRUPT_MAX && self.corrupt.insert((tenant, job)) {
            tracing::error!(tenant = tenant.0, %job, %corrupt, "a job can't be read and is left alone");
        }
    }

    /// A custody count that stops at `max`.
    pub(super) fn custody_count(&mut self, entry: &crate::CustodyEntry, max: usize) -> Result<usize, Fault> {
        let job = entry.job.map(|job| job.0.to_be_bytes());
        let message = entry.message.0.to_be_bytes();
        let max = super::cells::signed(max);
        let at = params![entry.tenant.0, message, job, entry.stage.as_str(), max];
        let count = self.sql.custody_count.query_row(at, |row| row.get::<_, i64>(0)).optional()?;
        Ok(usize::try_from(count.unwrap_or(0)).unwrap_or(0))
    }
}
