//! Lanes: what holds them, and what befell them.

use posthaste_core::{DestinationId, Lane, LaneId, Share, TenantId, Timestamp, lane::Turn};

use super::{MemoryStore, tables::Tables};
use crate::{
    BoxFuture, Change, JobCommand, LaneCommand, LaneEvent, LaneHead, LaneTurn, LaneView, Lanes, LeaseGrant,
    LeaseRequest, Steered, StoreError, accepting,
    lanes::{self, EVENTS_KEPT},
};

impl Lanes for MemoryStore {
    fn steer(&self, commands: Vec<LaneCommand>) -> BoxFuture<'_, Result<Vec<Steered>, StoreError>> {
        self.at_once(move |tables, now| commands.iter().map(|command| tables.steer(command, now)).collect())
    }

    fn lanes(&self) -> BoxFuture<'_, Result<Vec<LaneView>, StoreError>> {
        self.at_once(|tables, _| {
            let view = |(&(tenant, id), row): (&(TenantId, LaneId), &super::tables::LaneRow)| LaneView {
                tenant,
                id,
                destination: row.destination.clone(),
                lane: row.lane.clone(),
            };
            tables.lanes.iter().map(view).collect()
        })
    }

    fn scheduling(&self) -> BoxFuture<'_, Result<Vec<(TenantId, posthaste_core::Scheduling)>, StoreError>> {
        self.at_once(|tables, _| {
            tables.scheduling.iter().map(|(tenant, scheduling)| (*tenant, scheduling.clone())).collect()
        })
    }

    fn lane_events(
        &self,
        tenant: TenantId,
        lanes: Vec<Option<LaneId>>,
    ) -> BoxFuture<'_, Result<Vec<LaneEvent>, StoreError>> {
        self.at_once(move |tables, _| {
            let of = |lane| tables.lane_events.get(&(tenant, lane)).into_iter().flatten().cloned();
            lanes.into_iter().flat_map(of).collect()
        })
    }

    fn held_jobs(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.at_once(|tables, now| tables.held_jobs(now))
    }
}

impl Tables {
    pub(crate) fn steer(&mut self, command: &LaneCommand, now: Timestamp) -> Steered {
        let tenant = command.tenant;
        let steered = if let Some(lane) = command.lane {
            let Some(row) = self.lanes.get_mut(&(tenant, lane)) else { return Steered::Missing };
            let next = lanes::steered(&row.lane, command, now);
            let changed = next.is_some();
            row.lane = next.unwrap_or_else(|| row.lane.clone());
            Steered::Lane { changed, lane: Box::new(row.lane.clone()) }
        } else {
            let known = self.scheduling.get(&tenant).cloned().unwrap_or_default();
            let Ok(next) = lanes::scheduling_steered(&known, command, now) else {
                return Steered::Missing;
            };
            let changed = next.is_some();
            let scheduling = next.unwrap_or(known);
            if changed {
                self.scheduling.insert(tenant, scheduling.clone());
            }
            Steered::Scheduling { changed, scheduling }
        };
        if let Steered::Lane { changed: true, .. } | Steered::Scheduling { changed: true, .. } = steered {
            self.note_lane(tenant, lanes::event_of(command, now));
        }
        steered
    }

    fn note_lane(&mut self, tenant: TenantId, event: LaneEvent) {
        let events = self.lane_events.entry((tenant, event.lane)).or_default();
        events.push(event);
        if events.len() > EVENTS_KEPT {
            events.remove(0);
        }
    }

    /// Writes what `change` makes of the lane, if that is something else.
    pub(crate) fn change_lane(
        &mut self,
        tenant: TenantId,
        lane: LaneId,
        change: impl FnOnce(&Lane) -> Option<Lane>,
    ) {
        if let Some(row) = self.lanes.get_mut(&(tenant, lane))
            && let Some(next) = change(&row.lane)
        {
            row.lane = next;
        }
    }

    /// What the step of a job meant for its lane.
    pub(crate) fn lane_after_step(
        &mut self,
        command: &JobCommand,
        change: &Change,
        now: Timestamp,
    ) -> Option<Box<LaneTurn>> {
        let (job, sign, rules) = lanes::sign_after(command, change)?;
        let (tenant, id) = (change.job.tenant, change.job.lane);
        let row = self.lanes.get_mut(&(tenant, id))?;
        let (lane, turn) = row.lane.after_attempt(&rules, job, sign, now)?;
        row.lane = lane.clone();
        let turn: Turn = turn?;
        if let Some(event) = lanes::event_of_turn(id, &lane, turn, now) {
            self.note_lane(tenant, event);
        }
        Some(Box::new(LaneTurn { turn, lane }))
    }

    /// Writes what a lease means for its lane.
    pub(crate) fn leased_from(&mut self, request: &LeaseRequest, grant: &LeaseGrant, now: Timestamp) {
        let jobs: Vec<_> = grant.jobs.iter().map(|leased| leased.job.id).collect();
        let until = now.after(request.lease_for.min(request.deadline_after));
        let rate = request.policy.lane.rate;
        self.change_lane(request.tenant, request.lane, |lane| lane.after_lease(rate, &jobs, until, now));
    }

    /// The total of held time of a lane and its tenant's scheduling, in milliseconds.
    pub(crate) fn held_ms(&self, tenant: TenantId, lane: LaneId, now: Timestamp) -> u64 {
        let lane = self.lanes.get(&(tenant, lane)).map_or(0, |row| row.lane.held_total_ms(now));
        let all = self.scheduling.get(&tenant).map_or(0, |scheduling| scheduling.held_total_ms(now));
        lane.saturating_add(all)
    }

    /// The last due time whose fresh work may begin.
    pub(crate) fn fresh_until(&self, tenant: TenantId, now: Timestamp) -> Timestamp {
        self.scheduling.get(&tenant).map_or(now, |scheduling| scheduling.fresh_until(now))
    }

    /// When the lane's next job is due, held times included.
    pub(crate) fn head(&self, tenant: TenantId, lane: LaneId) -> Option<LaneHead> {
        let due_at = self.first_due(tenant, lane)?;
        let opens_at = match self.lanes.get(&(tenant, lane)) {
            Some(row) => row.lane.opens_at()?,
            None => due_at,
        };
        Some(LaneHead { tenant, lane, due_at: due_at.max(opens_at) })
    }

    /// What a grant says of when to ask again.
    pub(crate) fn next_due(&self, request: &LeaseRequest) -> Option<Timestamp> {
        let row = self.lanes.get(&(request.tenant, request.lane))?;
        let next_at = row.lane.next_at(request.policy.lane.rate)?;
        Some(self.first_due(request.tenant, request.lane)?.max(next_at))
    }

    /// When the first job of those that may begin is due.
    fn first_due(&self, tenant: TenantId, lane: LaneId) -> Option<Timestamp> {
        let fresh_until = self.fresh_until(tenant, Timestamp(i64::MAX));
        // The first of each share is the oldest of it.
        let first = |share: &Share| {
            let (due_at, _) = self.waiting_of(tenant, lane, *share).next()?;
            (*share != Share::Fresh || due_at <= fresh_until).then_some(due_at)
        };
        Share::ALL.iter().filter_map(first).min()
    }

    pub(crate) fn held_jobs(&self, now: Timestamp) -> u64 {
        let held = |(tenant, lane, share, due_at, _): &&(TenantId, LaneId, Share, Timestamp, _)| {
            let lane_held = self.lanes.get(&(*tenant, *lane)).is_some_and(|row| row.lane.is_held());
            let waits = *share == Share::Fresh && *due_at > self.fresh_until(*tenant, now);
            *due_at <= now && (lane_held || waits)
        };
        u64::try_from(self.waiting.iter().filter(held).count()).unwrap_or(u64::MAX)
    }

    /// The lane of the source, if it is paused: its messages are kept, and their jobs made later.
    pub(crate) fn paused_source(&self, tenant: TenantId, source: Option<&DestinationId>) -> Option<LaneId> {
        let source = source?;
        let mut lanes = self.lanes.range((tenant, LaneId(0))..=(tenant, LaneId(u32::MAX)));
        let ((_, lane), row) = lanes.find(|(_, row)| row.destination == *source)?;
        row.lane.paused.is_some().then_some(*lane)
    }

    /// The next fan-out that may go on: those that no source held first, then those whose source goes on; oldest first.
    pub(crate) fn next_fan_out(&self) -> Option<u64> {
        let goes_on = |tenant, held_by: LaneId| {
            self.lanes.get(&(tenant, held_by)).is_none_or(|row| row.lane.paused.is_none())
        };
        let free = self.fanouts.iter().find(|(_, fan_out)| fan_out.held_by.is_none());
        let held =
            self.fanouts.iter().filter_map(|(seq, fan_out)| Some((fan_out.tenant, fan_out.held_by?, *seq)));
        let held = held.filter(|(tenant, lane, _)| goes_on(*tenant, *lane)).min();
        free.map(|(seq, _)| *seq).or(held.map(|(.., seq)| seq))
    }

    /// The share of a job that a fan-out makes: while new work waits, it is new however old it is.
    pub(crate) fn fan_out_share(
        &self,
        tenant: TenantId,
        accepted_at: Timestamp,
        due_at: Timestamp,
        now: Timestamp,
    ) -> Share {
        let waits = due_at > self.fresh_until(tenant, Timestamp(i64::MAX));
        if waits { Share::Fresh } else { accepting::fan_out_share(accepted_at, now) }
    }
}
