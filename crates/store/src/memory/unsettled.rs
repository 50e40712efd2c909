//! What is still to be found out: found here, decided by the core.

use std::collections::HashMap;

use posthaste_core::{Entry, JobId, LaneId, StateName, TenantId, Timestamp, is_settled_by_evidence};

use super::{MemoryStore, tables::Tables};
use crate::{
    Applied, BoxFuture, JobCommand, LookUpDue, LookUps, Provable, StoreError, SweepCursor, Unsettled, ledger,
};

impl Unsettled for MemoryStore {
    fn look_ups(&self, per_lane: usize, limit: usize) -> BoxFuture<'_, Result<LookUps, StoreError>> {
        self.at_once(move |tables, now| tables.look_ups(per_lane, limit, now))
    }

    fn lane_look_ups(
        &self,
        tenant: TenantId,
        lane: LaneId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<JobId>, StoreError>> {
        self.at_once(move |tables, now| {
            let of_lane = tables.owed.iter().filter(|(of, at, ..)| (*of, *at) == (tenant, lane));
            let due = of_lane.take_while(|(.., due_at, _)| *due_at <= now);
            due.map(|(.., job)| *job).take(limit).collect()
        })
    }

    fn provable(
        &self,
        after: Option<SweepCursor>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Provable, StoreError>> {
        self.at_once(move |tables, _| tables.provable(after.unwrap_or(SweepCursor::START), limit))
    }

    fn apply_behind(&self, commands: Vec<JobCommand>) -> BoxFuture<'_, Result<Vec<Applied>, StoreError>> {
        self.at_once(move |tables, now| commands.iter().map(|command| tables.apply(command, now)).collect())
    }

    fn lane_held_ms(&self, tenant: TenantId, lane: LaneId) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.at_once(move |tables, now| tables.held_ms(tenant, lane, now))
    }
}

impl Tables {
    pub(crate) fn look_ups(&self, per_lane: usize, limit: usize, now: Timestamp) -> LookUps {
        let mut found = LookUps::default();
        let mut of_lane: HashMap<(TenantId, LaneId), usize> = HashMap::new();
        for (tenant, lane, due_at, job) in &self.owed {
            let seen = of_lane.entry((*tenant, *lane)).or_default();
            *seen += 1;
            if *seen > per_lane {
                continue;
            }
            if *due_at <= now {
                found.due.push(LookUpDue { due_at: *due_at, tenant: *tenant, job: *job });
            } else {
                found.next_due = Some(found.next_due.map_or(*due_at, |next| next.min(*due_at)));
            }
        }
        found.due.sort_unstable();
        found.due.truncate(limit);
        found
    }

    pub(crate) fn provable(&self, after: SweepCursor, limit: usize) -> Provable {
        let wanted = if after.dead { StateName::DeadLettered } else { StateName::Retryable };
        let later = self.jobs.range((after.tenant, after.job)..);
        let candidates: Vec<(TenantId, JobId)> = later
            .filter(|(at, entry)| **at != (after.tenant, after.job) && entry.row.state == wanted)
            .map(|(at, _)| *at)
            .take(limit)
            .collect();
        let next = after.following(candidates.len(), limit, candidates.last().copied());
        let mut provable = Provable { next, ..Provable::default() };
        for at in candidates {
            let Ok(job) = self.jobs[&at].job() else {
                provable.corrupt += 1;
                continue;
            };
            let fact = self.entry_beside(&job).map_or(Entry::Unknown, |entry| ledger::fact_of(&entry.entry));
            if is_settled_by_evidence(&job, fact) {
                provable.jobs.push(at);
            }
        }
        provable
    }
}
