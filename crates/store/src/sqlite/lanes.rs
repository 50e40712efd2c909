//! Lanes: what holds them, and what befell them.

use std::sync::Arc;

use posthaste_core::{
    CorruptRow, DestinationId, JobId, Lane, LaneId, Scheduling, Share, TenantId, Timestamp,
    lane::{Circuit, Hold},
};
use rusqlite::{OptionalExtension as _, Row, params};

use super::{
    SqliteStore,
    cells::{Cells, signed},
    fault::Fault,
    job_rows::one,
    readers::ReadSession,
    session::Session,
    work::Rank::Foreground,
};
use crate::{
    BoxFuture, Change, JobCommand, LaneCommand, LaneEvent, LaneEventKind, LaneTurn, LaneView, Lanes,
    LeaseGrant, LeaseRequest, Steered, StoreError, accepting,
    lanes::{self, EVENTS_KEPT},
    rows,
};

/// Stands for a tenant's scheduling among the lanes of events.
const SCHEDULING: u32 = 0;

// A method of a type with a lifetime is no `fn` for every lifetime, but a closure is.
#[allow(clippy::redundant_closure, clippy::redundant_closure_for_method_calls)]
impl Lanes for SqliteStore {
    fn steer(&self, commands: Vec<LaneCommand>) -> BoxFuture<'_, Result<Vec<Steered>, StoreError>> {
        self.write(Foreground, None, lanes::weight_of(&commands), commands, |session, input| {
            input.iter().map(|command| session.steer(command)).collect()
        })
    }

    fn lanes(&self) -> BoxFuture<'_, Result<Vec<LaneView>, StoreError>> {
        self.read((), |session, ()| session.lanes())
    }

    fn scheduling(&self) -> BoxFuture<'_, Result<Vec<(TenantId, Scheduling)>, StoreError>> {
        self.read((), |session, ()| session.scheduling())
    }

    fn lane_events(
        &self,
        tenant: TenantId,
        lanes: Vec<Option<LaneId>>,
    ) -> BoxFuture<'_, Result<Vec<LaneEvent>, StoreError>> {
        self.read((tenant, lanes), |session, input| session.lane_events(input))
    }

    fn held_jobs(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.read((), |session, ()| session.held_jobs())
    }
}

impl Session<'_> {
    fn steer(&mut self, command: &LaneCommand) -> Result<Steered, Fault> {
        let (tenant, now) = (command.tenant, self.now);
        let steered = if let Some(id) = command.lane {
            let Some(known) = self.lane(tenant, id)? else { return Ok(Steered::Missing) };
            let next = lanes::steered(&known, command, now);
            let changed = next.is_some();
            let lane = next.unwrap_or_else(|| Lane::clone(&known));
            if changed {
                self.put_lane(tenant, id, &lane)?;
            }
            Steered::Lane { changed, lane: Box::new(lane) }
        } else {
            let known = self.scheduling(tenant)?;
            let Ok(next) = lanes::scheduling_steered(&known, command, now) else {
                return Ok(Steered::Missing);
            };
            let changed = next.is_some();
            let scheduling = next.unwrap_or_else(|| Scheduling::clone(&known));
            if changed {
                self.put_scheduling(tenant, &scheduling)?;
            }
            Steered::Scheduling { changed, scheduling }
        };
        if let Steered::Lane { changed: true, .. } | Steered::Scheduling { changed: true, .. } = steered {
            self.note_lane(tenant, &lanes::event_of(command, now))?;
        }
        Ok(steered)
    }

    pub(super) fn put_lane(&mut self, tenant: TenantId, id: LaneId, lane: &Lane) -> Result<(), Fault> {
        let (circuit, probe) = match lane.circuit {
            Circuit::Closed => (None, None),
            Circuit::Open { since, until } => (Some((since, until)), None),
            Circuit::HalfOpen { since, until, probe } => (Some((since, until)), Some(probe.0.to_be_bytes())),
        };
        let paused = cells_of(lane.paused.as_ref());
        let disabled = cells_of(lane.disabled.as_ref());
        one(self.sql.lanes_put.execute(params![
            tenant.0,
            id.0,
            lane.not_before.0,
            paused.0,
            paused.1,
            paused.2,
            disabled.0,
            disabled.1,
            disabled.2,
            lane.switched_off,
            circuit.map(|(since, _)| since.0),
            circuit.map(|(_, until)| until.0),
            probe,
            lane.health.failures,
            lane.health.refusals,
            lane.health.failing_since.map(|at| at.0),
            lane.health.trips,
            signed(lane.held_ms),
            lane.held_since.map(|at| at.0),
            lane.rate_used_us,
        ])?)?;
        self.any_paused |= lane.paused.is_some();
        self.keep_lane(tenant, id, lane.clone());
        Ok(())
    }

    /// Writes what `change` makes of the lane, if that is something else.
    pub(super) fn change_lane(
        &mut self,
        tenant: TenantId,
        id: LaneId,
        change: impl FnOnce(&Lane) -> Option<Lane>,
    ) -> Result<(), Fault> {
        match self.lane(tenant, id)?.and_then(|lane| change(&lane)) {
            Some(next) => self.put_lane(tenant, id, &next),
            None => Ok(()),
        }
    }

    /// Nothing is leased from the lane before `until`.
    pub(super) fn hold_lane(&mut self, tenant: TenantId, id: LaneId, until: Timestamp) -> Result<(), Fault> {
        self.change_lane(tenant, id, |lane| {
            (lane.not_before < until).then(|| Lane { not_before: until, ..lane.clone() })
        })
    }

    pub(super) fn scheduling(&mut self, tenant: TenantId) -> Result<Arc<Scheduling>, Fault> {
        if let Some(known) = self.known_scheduling.get(&tenant) {
            return Ok(Arc::clone(known));
        }
        let mut rows = self.sql.scheduling_find.query([tenant.0])?;
        let found = match rows.next()? {
            Some(row) => rows::lane::scheduling(&mut Cells::of(row, u128::from(tenant.0)))?,
            None => Scheduling::default(),
        };
        drop(rows);
        let found = Arc::new(found);
        self.known_scheduling.insert(tenant, Arc::clone(&found));
        Ok(found)
    }

    fn put_scheduling(&mut self, tenant: TenantId, scheduling: &Scheduling) -> Result<(), Fault> {
        let (at, reason, by) = cells_of(scheduling.paused.as_ref());
        let at = params![tenant.0, at, reason, by, signed(scheduling.held_ms)];
        one(self.sql.scheduling_put.execute(at)?)?;
        self.known_scheduling.insert(tenant, Arc::new(scheduling.clone()));
        Ok(())
    }

    fn note_lane(&mut self, tenant: TenantId, event: &LaneEvent) -> Result<(), Fault> {
        let lane = event.lane.map_or(SCHEDULING, |lane| lane.0);
        let at = params![tenant.0, lane, event.at.0, event.what.as_str(), event.actor, event.reason];
        one(self.sql.lane_events_insert.execute(at)?)?;
        self.sql.lane_events_trim.execute(params![tenant.0, lane, signed(EVENTS_KEPT)])?;
        Ok(())
    }

    /// What the step of a job meant for its lane.
    pub(super) fn lane_after_step(
        &mut self,
        command: &JobCommand,
        change: &Change,
    ) -> Result<Option<Box<LaneTurn>>, Fault> {
        let Some((job, sign, rules)) = lanes::sign_after(command, change) else { return Ok(None) };
        let (tenant, id) = (change.job.tenant, change.job.lane);
        let Some(known) = self.lane(tenant, id)? else { return Ok(None) };
        let Some((lane, turn)) = known.after_attempt(&rules, job, sign, self.now) else { return Ok(None) };
        self.put_lane(tenant, id, &lane)?;
        let Some(turn) = turn else { return Ok(None) };
        if let Some(event) = lanes::event_of_turn(id, &lane, turn, self.now) {
            self.note_lane(tenant, &event)?;
        }
        Ok(Some(Box::new(LaneTurn { turn, lane })))
    }

    /// Writes what a lease means for its lane.
    pub(super) fn leased_from(&mut self, request: &LeaseRequest, grant: &LeaseGrant) -> Result<(), Fault> {
        let now = self.now;
        let until = now.after(request.lease_for.min(request.deadline_after));
        let rate = request.policy.lane.rate;
        let jobs: Vec<JobId> = grant.jobs.iter().map(|leased| leased.job.id).collect();
        self.change_lane(request.tenant, request.lane, |lane| lane.after_lease(rate, &jobs, until, now))
    }

    /// The total of held time of a lane and its tenant's scheduling, in milliseconds.
    pub(super) fn lane_held_ms(&mut self, tenant: TenantId, lane: LaneId) -> Result<u64, Fault> {
        let lane = self.lane(tenant, lane)?.map_or(0, |lane| lane.held_total_ms(self.now));
        let all = self.scheduling(tenant)?.held_total_ms(self.now);
        Ok(lane.saturating_add(all))
    }

    /// The lane of the source, if it is paused: its messages are kept, and their jobs made later.
    pub(super) fn paused_source(
        &mut self,
        tenant: TenantId,
        source: Option<&DestinationId>,
    ) -> Result<Option<LaneId>, Fault> {
        let Some(source) = source.filter(|_| self.any_paused) else { return Ok(None) };
        let at = params![tenant.0, source.as_str()];
        let found = self.sql.lanes_of_destination.query_row(at, |row| row.get(0)).optional()?;
        let Some(lane) = found.map(LaneId) else { return Ok(None) };
        Ok(self.lane(tenant, lane)?.filter(|known| known.paused.is_some()).map(|_| lane))
    }

    /// The next source that goes on and still has fan-outs that waited for it.
    pub(super) fn resumed_source(&mut self) -> Result<Option<(TenantId, LaneId)>, Fault> {
        let mut after = (TenantId(0), LaneId(0));
        loop {
            let at = params![after.0.0, after.1.0];
            let next = self
                .sql
                .fanouts_next_held
                .query_row(at, |row| Ok((TenantId(row.get(0)?), LaneId(row.get(1)?))));
            let Some(found) = next.optional()? else { return Ok(None) };
            if self.lane(found.0, found.1)?.is_none_or(|lane| lane.paused.is_none()) {
                return Ok(Some(found));
            }
            after = found;
        }
    }

    /// The share of a job that a fan-out makes: while new work waits, it is new however old it is.
    pub(super) fn fan_out_share(
        &mut self,
        tenant: TenantId,
        accepted_at: Timestamp,
        due_at: Timestamp,
    ) -> Result<Share, Fault> {
        let waits = due_at > self.scheduling(tenant)?.fresh_until(Timestamp(i64::MAX));
        Ok(if waits { Share::Fresh } else { accepting::fan_out_share(accepted_at, self.now) })
    }
}

impl ReadSession<'_> {
    fn lanes(&mut self) -> Result<Vec<LaneView>, Fault> {
        let mut rows = self.sql.lanes_list.query([])?;
        let mut views = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, 0);
            let destination = cells.destination()?;
            let lane = rows::lane::lane(&mut cells)?;
            let (tenant, id) = (TenantId(cells.int()?), LaneId(cells.int()?));
            views.push(LaneView { tenant, id, destination, lane });
        }
        Ok(views)
    }

    pub(super) fn scheduling(&mut self) -> Result<Vec<(TenantId, Scheduling)>, Fault> {
        let mut rows = self.sql.scheduling_list.query([])?;
        let mut all = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, 0);
            let tenant = TenantId(cells.int()?);
            all.push((tenant, rows::lane::scheduling(&mut cells)?));
        }
        Ok(all)
    }

    fn lane_events(
        &mut self,
        (tenant, lanes): &(TenantId, Vec<Option<LaneId>>),
    ) -> Result<Vec<LaneEvent>, Fault> {
        let mut events = Vec::new();
        for lane in lanes {
            let of = lane.map_or(SCHEDULING, |lane| lane.0);
            let mut rows = self.sql.lane_events_of.query(params![tenant.0, of])?;
            while let Some(row) = rows.next()? {
                let mut cells = Cells::of(row, u128::from(of));
                let (at, what) = (cells.at()?, cells.word(LaneEventKind::parse)?);
                let (actor, reason) = (cells.text()?, cells.text()?);
                events.push(LaneEvent { lane: *lane, at, what, actor, reason });
            }
        }
        Ok(events)
    }

    fn held_jobs(&mut self) -> Result<u64, Fault> {
        let now = self.now();
        let mut sum = 0_u64;
        for statement in [&mut self.sql.lanes_held_jobs, &mut self.sql.scheduling_held_jobs] {
            let mut rows = statement.query([now.0])?;
            while let Some(row) = rows.next()? {
                sum = sum.saturating_add(Cells::of(row, 0).int()?);
            }
        }
        Ok(sum)
    }
}

fn cells_of(hold: Option<&Hold>) -> (Option<i64>, Option<&str>, Option<&str>) {
    match hold {
        Some(hold) => (Some(hold.at.0), Some(&hold.reason), Some(&hold.by)),
        None => (None, None, None),
    }
}

/// One row of the writer's, by tenant and lane.
pub(super) fn lane_of_row(row: &Row<'_>, lane: LaneId) -> Result<Lane, CorruptRow> {
    rows::lane::lane(&mut Cells::from(row, u128::from(lane.0), 1))
}
