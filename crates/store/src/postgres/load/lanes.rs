//! Lanes, with what is locked by them, and the tenants' scheduling.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::{JobId, LaneId, TenantId, limits};
use tokio_postgres::Row;

use super::{jobs::JobRows, ledger::LedgerRows, numbers, statements, texts};
use crate::postgres::{
    decode,
    fault::Fault,
    params::Param,
    session::{Session, keep},
    wants::Wants,
};

/// How often what waits is looked at anew because some of it can't be read.
const LOOKS_MAX: usize = 5;

/// Of each lane how many jobs that wait are looked at, of each share.
pub(super) type Depths = BTreeMap<(TenantId, LaneId), usize>;

/// What was locked, and read under that lock.
pub(super) struct Locked {
    lanes: Vec<Row>,
    scheduling: Vec<Row>,
    jobs: JobRows,
    waiting: Vec<Row>,
    ledger: LedgerRows,
}

impl Wants {
    /// How deep leases look. One job more than can leave what waits, so that the next one is here too.
    pub(super) fn waiting(&self) -> Depths {
        let mut depths = Depths::new();
        for (at, requests) in &self.leases {
            let taken: usize = requests.iter().map(|request| request.limit.min(limits::CONSUME_MAX)).sum();
            depths.insert(*at, taken + 1);
        }
        for ((tenant, job), want) in &self.jobs {
            if let Some(depth) = depths.get_mut(&(*tenant, job.lane())) {
                *depth += want.commands;
            }
        }
        for (tenant, _, lane) in &self.named {
            if let Some(depth) = depths.get_mut(&(*tenant, *lane)) {
                *depth += 1;
            }
        }
        depths
    }

    /// Lanes that are read and not written: those of targets.
    fn lanes_read(&self) -> BTreeSet<(TenantId, LaneId)> {
        let all = self.accepts.iter();
        let all = all.flat_map(|accept| accept.lanes.iter().map(|lane| (accept.tenant, *lane)));
        all.filter(|at| !self.lanes.contains(at)).collect()
    }

    fn tenants_read(&self) -> BTreeSet<TenantId> {
        let accepting = self.accepts.iter().map(|accept| accept.tenant);
        accepting.chain(self.lanes.iter().map(|(tenant, _)| *tenant)).collect()
    }

    /// The jobs whose messages are needed with their payloads: a lease may take them after a command.
    fn bodies(&self) -> BTreeSet<(TenantId, JobId)> {
        let jobs = self.jobs.keys().copied();
        jobs.filter(|(tenant, job)| self.leases.contains_key(&(*tenant, job.lane()))).collect()
    }
}

impl Session<'_> {
    /// Locks lanes and scheduling, and reads what is locked by them, in one round trip.
    pub(super) async fn lock_lanes(&self, wants: &Wants) -> Result<Locked, Fault> {
        let bodies = wants.bodies();
        let (lanes, scheduling, jobs, waiting, ledger) = tokio::try_join!(
            self.lock_lane_rows(wants),
            self.lock_scheduling(wants.steered.iter().copied(), wants.tenants_read()),
            self.read_jobs(&wants.jobs, &bodies),
            self.ask(statements::WAITING, waiting(&wants.waiting())),
            self.read_ledger(wants)
        )?;
        Ok(Locked { lanes, scheduling, jobs, waiting, ledger })
    }

    /// Locked lanes first, then those that are only read.
    pub(super) async fn lock_lane_rows(&self, wants: &Wants) -> Result<Vec<Row>, Fault> {
        let mut locks = numbers(wants.lanes.iter().map(|(tenant, lane)| (*tenant, lane.0)));
        locks.extend(texts(wants.lanes_of.iter().map(|(tenant, id)| (*tenant, id.as_str()))));
        let (mut lanes, read, sources, last) = tokio::try_join!(
            self.ask(statements::LANES_LOCK, locks),
            self.ask(
                statements::LANES,
                numbers(wants.lanes_read().into_iter().map(|(tenant, lane)| (tenant, lane.0)))
            ),
            self.ask(
                statements::LANES_OF_DESTINATIONS,
                texts(wants.sources.iter().map(|(tenant, id)| (*tenant, id.as_str())))
            ),
            self.ask(
                statements::LAST_LANES,
                vec![Param::ints(wants.last_lanes.iter().map(|tenant| tenant.0))]
            )
        )?;
        lanes.extend(read.into_iter().chain(sources).chain(last));
        Ok(lanes)
    }

    /// Locks the scheduling of some tenants and reads that of others.
    pub(super) async fn lock_scheduling(
        &self,
        locked: impl Iterator<Item = TenantId>,
        read: BTreeSet<TenantId>,
    ) -> Result<Vec<Row>, Fault> {
        let locked = vec![Param::ints(locked.map(|tenant| tenant.0))];
        let read = vec![Param::ints(read.into_iter().map(|tenant| tenant.0))];
        let (mut scheduling, read) = tokio::try_join!(
            self.ask(statements::SCHEDULING_LOCK, locked),
            self.ask(statements::SCHEDULING, read)
        )?;
        scheduling.extend(read);
        Ok(scheduling)
    }

    pub(super) fn keep_locked(&mut self, wants: &Wants, rows: &Locked) -> Result<(), Fault> {
        self.keep_lanes(&rows.lanes)?;
        self.keep_scheduling(&rows.scheduling)?;
        self.keep_ledger(wants, &rows.ledger)?;
        self.keep_jobs(&rows.jobs)?;
        self.keep_waiting(&rows.waiting)?;
        Ok(())
    }

    pub(super) fn keep_lanes(&mut self, rows: &[Row]) -> Result<(), Fault> {
        for row in rows {
            let (at, lane) = decode::lane(row)?;
            keep(&mut self.base.lanes, &mut self.tables.lanes, at, lane);
        }
        Ok(())
    }

    pub(super) fn keep_scheduling(&mut self, rows: &[Row]) -> Result<(), Fault> {
        for row in rows {
            let (tenant, scheduling) = decode::scheduling(row)?;
            keep(&mut self.base.scheduling, &mut self.tables.scheduling, tenant, scheduling);
        }
        Ok(())
    }

    /// Keeps jobs that wait.
    pub(super) fn keep_waiting(&mut self, rows: &[Row]) -> Result<(), Fault> {
        for row in rows {
            let (tenant, id, entry) = decode::job(row)?;
            if let Err(corrupt) = &entry {
                tracing::error!(%corrupt, "a job can't be read and is left alone");
            }
            self.keep_job(tenant, id, entry);
        }
        Ok(())
    }

    /// Looks deeper where jobs that can't be read took the places of others.
    pub(super) async fn look_deeper(&mut self, depths: Depths) -> Result<(), Fault> {
        let mut seen = BTreeMap::new();
        for _ in 0..LOOKS_MAX {
            let mut deeper = Depths::new();
            for (at, depth) in &depths {
                let unreadable = self.unreadable_in(*at);
                if seen.insert(*at, unreadable).unwrap_or(0) < unreadable {
                    deeper.insert(*at, depth + unreadable);
                }
            }
            if deeper.is_empty() {
                break;
            }
            let rows = self.ask(statements::WAITING, waiting(&deeper)).await?;
            self.keep_waiting(&rows)?;
        }
        Ok(())
    }

    fn unreadable_in(&self, (tenant, lane): (TenantId, LaneId)) -> usize {
        let corrupt = self.tables.corrupt.keys();
        corrupt.filter(|(of, job)| (*of, job.lane()) == (tenant, lane)).count()
    }
}

/// Depths as parameters.
pub(super) fn waiting(depths: &Depths) -> Vec<Param> {
    let mut params = numbers(depths.keys().map(|(tenant, lane)| (*tenant, lane.0)));
    params.push(Param::ints(depths.values().copied()));
    params
}
