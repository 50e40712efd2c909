//! What is still to be found out: read here, decided by the core.

use std::collections::HashSet;

use posthaste_core::{Entry, EventId, JobId, LaneId, TenantId, Timestamp, is_settled_by_evidence};
use rusqlite::{Statement, params};

use super::{
    SqliteStore,
    cells::{Cells, signed},
    fault::{Fault, Reach},
    job_rows,
    lanes::lane_of_row,
    ledger_rows,
    readers::ReadSession,
    weight,
    work::Rank::Background,
};
use crate::{
    Applied, BoxFuture, JobCommand, LookUpDue, LookUps, Provable, StoreError, SweepCursor, Unsettled, ledger,
};

impl Unsettled for SqliteStore {
    fn look_ups(&self, per_lane: usize, limit: usize) -> BoxFuture<'_, Result<LookUps, StoreError>> {
        self.read((per_lane, limit), |session, input| session.look_ups(*input))
    }

    fn lane_look_ups(
        &self,
        tenant: TenantId,
        lane: LaneId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<JobId>, StoreError>> {
        self.read((tenant, lane, limit), |session, input| session.lane_look_ups(*input))
    }

    fn provable(
        &self,
        after: Option<SweepCursor>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Provable, StoreError>> {
        self.read((after.unwrap_or(SweepCursor::START), limit), |session, input| session.provable(*input))
    }

    fn apply_behind(&self, commands: Vec<JobCommand>) -> BoxFuture<'_, Result<Vec<Applied>, StoreError>> {
        self.write(Background, None, weight::of_commands(&commands), commands, |session, input| {
            session.apply(input)
        })
    }

    fn lane_held_ms(&self, tenant: TenantId, lane: LaneId) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.read((tenant, lane), |session, input| session.lane_held_ms(*input))
    }
}

impl ReadSession<'_> {
    /// From each lane that has look-ups to the next such lane.
    fn look_ups(&mut self, (per_lane, limit): (usize, usize)) -> Result<LookUps, Fault> {
        let now = self.now();
        let mut found = LookUps::default();
        let mut at = (0_u32, 0_u32);
        while let Some((tenant, lane)) = next_lane(&mut self.sql.look_ups_lane, at)? {
            at = (tenant.0, lane.0);
            for (due_at, job) in of_lane(&mut self.sql.look_ups_of_lane, tenant, lane, per_lane)? {
                if due_at <= now {
                    found.due.push(LookUpDue { due_at, tenant, job });
                } else {
                    found.next_due = Some(found.next_due.map_or(due_at, |next| next.min(due_at)));
                    break;
                }
            }
        }
        found.due.sort_unstable();
        found.due.truncate(limit);
        Ok(found)
    }

    fn lane_look_ups(
        &mut self,
        (tenant, lane, limit): (TenantId, LaneId, usize),
    ) -> Result<Vec<JobId>, Fault> {
        let now = self.now();
        let of_lane = of_lane(&mut self.sql.look_ups_of_lane, tenant, lane, limit)?;
        Ok(of_lane.into_iter().take_while(|(due_at, _)| *due_at <= now).map(|(_, job)| job).collect())
    }

    fn provable(&mut self, (after, limit): (SweepCursor, usize)) -> Result<Provable, Fault> {
        let statement = if after.dead { &mut self.sql.sweep_dead } else { &mut self.sql.sweep_live };
        let mut candidates = Vec::new();
        let mut rows = statement.query(params![after.tenant.0, after.job.0.to_be_bytes(), signed(limit)])?;
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, 0);
            candidates.push((TenantId(cells.int()?), JobId(cells.id()?)));
        }
        drop(rows);
        let next = after.following(candidates.len(), limit, candidates.last().copied());
        let ledger_used = self.sql.ledger_any.exists([])?;
        let mut provable = Provable { next, ..Provable::default() };
        for (tenant, job) in candidates {
            match self.is_provable(tenant, job, ledger_used) {
                Ok(true) => provable.jobs.push((tenant, job)),
                Ok(false) => {}
                Err(fault) if fault.reach() == Reach::Operation => {
                    provable.corrupt += 1;
                    self.pass_over(tenant, job, &fault);
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(provable)
    }

    fn is_provable(&mut self, tenant: TenantId, job: JobId, ledger_used: bool) -> Result<bool, Fault> {
        let loaded = job_rows::load(&mut self.sql.jobs_load, &mut self.sql.jobs_done_load, tenant, job)?;
        let Some(stored) = loaded.transpose()? else { return Ok(false) };
        let entry = if ledger_used { self.fact_beside(tenant, &stored)? } else { Entry::Unknown };
        Ok(is_settled_by_evidence(&stored.job, entry))
    }

    /// What the entry beside a job says, if anybody made one.
    fn fact_beside(&mut self, tenant: TenantId, stored: &job_rows::Stored) -> Result<Entry, Fault> {
        let mut rows = self.sql.lanes_find.query(params![tenant.0, stored.job.lane.0])?;
        let Some(row) = rows.next()? else { return Ok(Entry::Unknown) };
        let destination = Cells::of(row, stored.job.id.0).destination()?;
        drop(rows);
        let key = EventId::of(&stored.key, &destination);
        let own = match ledger_rows::find(&mut self.sql.ledger_find, tenant, &key)? {
            Some(entry) => Some(entry),
            None => ledger_rows::find_archived(&mut self.sql.archived_entries_find, tenant, &key)?
                .filter(|entry| entry.of_job.is_none()),
        };
        Ok(own.map_or(Entry::Unknown, |entry| ledger::fact_of(&entry.entry)))
    }

    fn pass_over(&mut self, tenant: TenantId, job: JobId, fault: &Fault) {
        if self.passed_over.len() < PASSED_OVER_MAX && self.passed_over.insert((tenant, job)) {
            tracing::error!(tenant = tenant.0, %job, %fault, "a job can't be read and is left alone");
        }
    }

    fn lane_held_ms(&mut self, (tenant, lane): (TenantId, LaneId)) -> Result<u64, Fault> {
        let now = self.now();
        let mut rows = self.sql.lanes_find.query(params![tenant.0, lane.0])?;
        let of_lane = rows.next()?.map(|row| lane_of_row(row, lane)).transpose()?;
        drop(rows);
        let of_lane = of_lane.map_or(0, |lane| lane.held_total_ms(now));
        let of_tenant = self.scheduling()?.into_iter().find(|(of, _)| *of == tenant);
        let of_tenant = of_tenant.map_or(0, |(_, scheduling)| scheduling.held_total_ms(now));
        Ok(of_lane.saturating_add(of_tenant))
    }
}

/// Rows that one reader remembers having told of.
const PASSED_OVER_MAX: usize = 65_536;

/// Jobs that a reader told of: each once.
pub(super) type PassedOver = HashSet<(TenantId, JobId)>;

fn next_lane(statement: &mut Statement<'_>, after: (u32, u32)) -> Result<Option<(TenantId, LaneId)>, Fault> {
    let mut rows = statement.query(params![after.0, after.1])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    let mut cells = Cells::of(row, 0);
    Ok(Some((TenantId(cells.int()?), LaneId(cells.int()?))))
}

fn of_lane(
    statement: &mut Statement<'_>,
    tenant: TenantId,
    lane: LaneId,
    limit: usize,
) -> Result<Vec<(Timestamp, JobId)>, Fault> {
    let mut rows = statement.query(params![tenant.0, lane.0, signed(limit)])?;
    let mut found = Vec::new();
    while let Some(row) = rows.next()? {
        let mut cells = Cells::of(row, 0);
        found.push((cells.at()?, JobId(cells.id()?)));
    }
    Ok(found)
}
