//! What a step of a bulk run looks at: the next jobs by id.

use std::collections::BTreeSet;

use posthaste_core::{BulkRow, JobId, LaneId, RunId, RunState, TenantId, Timestamp};
use tokio_postgres::Row;

use super::{jobs::JobWants, numbers, statements};
use crate::{
    BulkRun,
    bulk::STEP_EXAMINED_MAX,
    memory::tables::JobEntry,
    postgres::{
        decode,
        fault::Fault,
        params::Param,
        session::Session,
        wants::{JobWant, Wants},
    },
};

/// Jobs that are read beside those that a step examines, for those that turn out to be unreadable.
const SPARE: usize = 32;

/// The next jobs of a run: those that can be read, and whether there are more.
struct Window {
    rows: Vec<Row>,
    /// Those that fit, as far as their own rows tell.
    fitting: BTreeSet<(TenantId, JobId)>,
    readable: usize,
    more: bool,
}

impl Window {
    fn lanes(&self) -> BTreeSet<(TenantId, LaneId)> {
        self.fitting.iter().map(|(tenant, job)| (*tenant, job.lane())).collect()
    }
}

impl Session<'_> {
    pub(super) async fn load_bulk_step(&mut self, wants: &Wants, at: (TenantId, RunId)) -> Result<(), Fault> {
        let runs = self.lock_runs(wants).await?;
        self.keep_runs(&runs)?;
        let Some(run) = self.tables.bulk_runs.get(&at).filter(|run| run.state == RunState::Running) else {
            return Ok(());
        };
        let run = run.clone();
        // Which lanes to lock is seen first; under their locks the same is read again.
        let lanes = self.bulk_window(&run).await?.lanes();
        let locks = numbers(lanes.iter().map(|(tenant, lane)| (*tenant, lane.0)));
        let locks = locks.into_iter().chain([Param::Ints(Vec::new()), Param::Texts(Vec::new())]).collect();
        let (lane_rows, scheduling, window, any) = tokio::try_join!(
            self.ask(statements::LANES_LOCK, locks),
            self.lock_scheduling(std::iter::empty(), BTreeSet::from([run.tenant])),
            self.bulk_window(&run),
            self.rows(statements::LEDGER_ANY, &[])
        )?;
        if !window.lanes().is_subset(&lanes) {
            // Other jobs came to fit meanwhile.
            return Err(Fault::Raced);
        }
        for row in &any {
            self.ledger_used |= decode::flag(row, 0)?;
        }
        self.keep_lanes(&lane_rows)?;
        self.keep_scheduling(&scheduling)?;
        self.keep_window(&run, window).await
    }

    async fn bulk_window(&self, run: &BulkRun) -> Result<Window, Fault> {
        let dead = run.request.filter.about_dead_letters(run.request.kind);
        let statement = if dead { statements::BULK_DEAD } else { statements::BULK_LIVE };
        let limit = STEP_EXAMINED_MAX + SPARE;
        let after = run.cursor.map_or(0, |job| job.0);
        let params = [Param::int(run.tenant.0), Param::id(after), Param::int(limit)];
        let rows = self.rows(statement, &params).await?;
        let mut window =
            Window { fitting: BTreeSet::new(), readable: 0, more: rows.len() == limit, rows: Vec::new() };
        for row in &rows {
            let (tenant, id, entry) = decode::job(row)?;
            match entry.and_then(|entry| entry.job().map(|_| entry)) {
                Ok(entry) => {
                    window.readable += 1;
                    if run.request.filter.fits_row(run.request.kind, &bulk_row(id, &entry)) {
                        window.fitting.insert((tenant, id));
                    }
                }
                Err(corrupt) => tracing::error!(%corrupt, "a job can't be read and is left alone"),
            }
        }
        window.rows = rows;
        Ok(window)
    }

    async fn keep_window(&mut self, run: &BulkRun, window: Window) -> Result<(), Fault> {
        let wants: JobWants = window.fitting.iter().map(|at| (*at, JobWant::WHOLE)).collect();
        let beside = self.read_jobs(&wants, &BTreeSet::new()).await?;
        self.keep_jobs(&beside)?;
        self.keep_waiting(&window.rows)?;
        let readable = self.tables.jobs.range((run.tenant, JobId(0))..).count();
        if window.more && readable < STEP_EXAMINED_MAX {
            return Err(Fault::Invariant("too many jobs of a bulk run can't be read"));
        }
        Ok(())
    }
}

/// What a filter looks at.
fn bulk_row(id: JobId, entry: &JobEntry) -> BulkRow {
    let row = &entry.row;
    BulkRow {
        state: row.state,
        lane: id.lane(),
        cause: row.cause,
        created_at: Timestamp(row.created_at),
        settled_at: row.settled_at.map(Timestamp),
    }
}
