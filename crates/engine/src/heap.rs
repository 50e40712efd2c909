//! Which lane is due next: a heap of heads, and rings of tenants and their lanes that are due now.
//!
//! A lane stands at most once in the rings. The heap may hold stale heads; they cost one empty look.

use std::{
    cmp::Reverse,
    collections::{BinaryHeap, HashMap, HashSet, VecDeque},
};

use posthaste_core::{LaneId, TenantId, Timestamp};

/// A lane of a tenant.
pub(crate) type LaneKey = (TenantId, LaneId);

/// See the module.
#[derive(Default)]
pub(crate) struct Lanes {
    heads: BinaryHeap<Reverse<(Timestamp, LaneKey)>>,
    /// The earliest head in the heap of each lane, so that later ones needn't be pushed.
    earliest: HashMap<LaneKey, Timestamp>,
    tenants: VecDeque<TenantId>,
    rings: HashMap<TenantId, VecDeque<LaneId>>,
    ready: HashSet<LaneKey>,
}

impl Lanes {
    /// Notes that a job of this lane is due at `due_at`.
    pub(crate) fn note(&mut self, lane: LaneKey, due_at: Timestamp) {
        if self.ready.contains(&lane) || self.earliest.get(&lane).is_some_and(|known| *known <= due_at) {
            return;
        }
        self.earliest.insert(lane, due_at);
        self.heads.push(Reverse((due_at, lane)));
    }

    /// Moves every lane that is due into the rings; gives the time of the next head after that.
    pub(crate) fn advance(&mut self, now: Timestamp) -> Option<Timestamp> {
        while let Some(Reverse((due_at, lane))) = self.heads.peek().copied() {
            let current = self.earliest.get(&lane) == Some(&due_at);
            if current && due_at > now {
                return Some(due_at);
            }
            self.heads.pop();
            if current {
                self.earliest.remove(&lane);
                self.make_ready(lane);
            }
        }
        None
    }

    /// Puts a lane at the end of its tenant's ring.
    pub(crate) fn make_ready(&mut self, lane: LaneKey) {
        if !self.ready.insert(lane) {
            return;
        }
        let (tenant, lane) = lane;
        let ring = self.rings.entry(tenant).or_default();
        if ring.is_empty() {
            self.tenants.push_back(tenant);
        }
        ring.push_back(lane);
    }

    /// Takes the next ready lane: tenants in turn, then each tenant's lanes in turn.
    pub(crate) fn next_ready(&mut self) -> Option<LaneKey> {
        let tenant = self.tenants.pop_front()?;
        let ring = self.rings.get_mut(&tenant)?;
        let lane = ring.pop_front()?;
        if ring.is_empty() {
            self.rings.remove(&tenant);
        } else {
            self.tenants.push_back(tenant);
        }
        self.ready.remove(&(tenant, lane));
        Some((tenant, lane))
    }

    /// How many lanes are ready.
    pub(crate) fn ready_count(&self) -> usize {
        self.ready.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Timestamp = Timestamp(1_000);

    fn lane(tenant: u32, lane: u32) -> LaneKey {
        (TenantId(tenant), LaneId(lane))
    }

    fn drain(lanes: &mut Lanes) -> Vec<LaneKey> {
        std::iter::from_fn(|| lanes.next_ready()).collect()
    }

    #[test]
    fn r_b6_tenants_take_turns_and_then_their_lanes() {
        let mut lanes = Lanes::default();
        for number in 1..=3 {
            lanes.make_ready(lane(1, number));
        }
        lanes.make_ready(lane(2, 9));
        assert_eq!(vec![lane(1, 1), lane(2, 9), lane(1, 2), lane(1, 3)], drain(&mut lanes));
        assert_eq!(0, lanes.ready_count());
    }

    #[test]
    fn a_lane_becomes_ready_at_its_earliest_head_and_once() {
        let mut lanes = Lanes::default();
        lanes.note(lane(1, 1), Timestamp(1_500));
        lanes.note(lane(1, 1), Timestamp(1_200));
        lanes.note(lane(1, 1), Timestamp(1_300));
        lanes.note(lane(1, 2), Timestamp(900));
        assert_eq!(Some(Timestamp(1_200)), lanes.advance(NOW));
        assert_eq!(vec![lane(1, 2)], drain(&mut lanes));
        assert_eq!(None, lanes.advance(Timestamp(1_200)));
        assert_eq!(vec![lane(1, 1)], drain(&mut lanes));
        lanes.note(lane(1, 1), Timestamp(1_300));
        assert_eq!(None, lanes.advance(Timestamp(1_300)));
        lanes.note(lane(1, 1), Timestamp(1_250));
        assert_eq!(vec![lane(1, 1)], drain(&mut lanes), "a ready lane is not noted again");
        assert_eq!(None, lanes.advance(Timestamp(9_999)));
        assert!(drain(&mut lanes).is_empty());
    }
}
