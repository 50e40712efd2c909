//! Who may send now: the slots of deliveries, shared so that slow receivers can't take them all. Rows B6, B16.
//!
//! A lane is *proven* while its receiver answers within [`SLOW_AFTER`], *slow* once it has not, and on *trial* before the
//! first verdict. Each kind has slots of its own: half of the configured number is always left for proven lanes, and they
//! may use all that are free; a quarter is for trials, and half for slow lanes. A delivery that takes longer than
//! [`SLOW_AFTER`] counts as slow from then on, whoever's it is: so receivers that hang from the start or begin to hang
//! make room for those that answer. For a while there may be up to twice as many deliveries as configured, never more.
//!
//! While several tenants are at work, one tenant's lanes together have so many slots at once, of whatever kind.
//!
//! A lane begins with one slot, and begins anew after it was held. Each answer gives it one more, up to its endpoint's
//! concurrency; a delivery without an answer takes it back to one.

use std::collections::{HashMap, HashSet, VecDeque};

use parking_lot::Mutex;
use posthaste_core::{DurationMs, TenantId};
use tokio::sync::Notify;

use crate::heap::LaneKey;

/// From then on a delivery is slow.
pub(crate) const SLOW_AFTER: DurationMs = DurationMs::from_secs(1);

/// What kind of slot a delivery holds, and what is known of a lane.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum Kind {
    /// Answers in time.
    Proven,
    /// Has no verdict yet.
    #[default]
    Trial,
    /// Takes too long.
    Slow,
}

/// See the module.
pub(crate) struct Slots {
    state: Mutex<State>,
    /// Deliveries at once, as configured.
    max: usize,
    freed: Notify,
}

#[derive(Default)]
struct State {
    taken: PerKind<usize>,
    lanes: HashMap<LaneKey, Lane>,
    waiting: PerKind<Waiting>,
    tenants: HashMap<TenantId, Tenant>,
}

/// What a tenant's lanes hold together.
#[derive(Default)]
struct Tenant {
    held: usize,
    /// Lanes that had to wait for another lane of their tenant.
    waiting: Waiting,
}

#[derive(Default)]
struct PerKind<T> {
    proven: T,
    trial: T,
    slow: T,
}

impl<T> PerKind<T> {
    fn of(&mut self, kind: Kind) -> &mut T {
        match kind {
            Kind::Proven => &mut self.proven,
            Kind::Trial => &mut self.trial,
            Kind::Slow => &mut self.slow,
        }
    }
}

/// Lanes that had to wait for a slot of a kind, in turn.
#[derive(Default)]
struct Waiting {
    lanes: VecDeque<LaneKey>,
    known: HashSet<LaneKey>,
}

#[derive(Clone, Copy, Debug)]
struct Lane {
    held: usize,
    window: usize,
    kind: Kind,
    /// It had due work and no slot of its own: noted again when one comes free.
    capped: bool,
}

impl Default for Lane {
    fn default() -> Self {
        Self { held: 0, window: 1, kind: Kind::Trial, capped: false }
    }
}

/// Lanes that should be looked at again.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Again {
    /// The lane that gave the slot back, if it had waited for one of its own.
    pub(crate) own: Option<LaneKey>,
    /// One that had waited for a slot of that kind.
    pub(crate) waiting: Option<LaneKey>,
    /// One that had waited for another lane of its tenant.
    pub(crate) of_tenant: Option<LaneKey>,
}

/// What a lane may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Admission {
    /// It has so many slots now; they are taken.
    Slots {
        /// How many.
        count: usize,
        /// Of which kind.
        kind: Kind,
    },
    /// It waits for a slot, and will be named in an [`Again`].
    Waits,
    /// No slot is free for anybody.
    Full,
}

impl Slots {
    pub(crate) fn new(max: usize) -> Self {
        Self { state: Mutex::default(), max: max.max(1), freed: Notify::new() }
    }

    pub(crate) fn max(&self) -> usize {
        self.max
    }

    /// At least one, so that the smallest configuration works.
    fn part(&self, of: usize) -> usize {
        (self.max / of).max(1)
    }

    /// Takes slots for a lane: at most `wanted`, no more than `concurrency` in all, and no more than `tenant_max` for all
    /// lanes of its tenant.
    pub(crate) fn take(
        &self,
        lane: LaneKey,
        concurrency: usize,
        wanted: usize,
        tenant_max: usize,
    ) -> Admission {
        let mut state = self.state.lock();
        let known = *state.lanes.entry(lane).or_default();
        let own = known.window.min(concurrency).saturating_sub(known.held);
        if own == 0 {
            state.lane(lane).capped = true;
            return Admission::Waits;
        }
        let tenant = state.tenants.entry(lane.0).or_default();
        let of_tenant = tenant_max.saturating_sub(tenant.held);
        if of_tenant == 0 {
            tenant.waiting.push(lane);
            return Admission::Waits;
        }
        let free = self.free(&state.taken, known.kind);
        if free == 0 {
            if known.kind == Kind::Proven {
                return Admission::Full;
            }
            state.waiting.of(known.kind).push(lane);
            return Admission::Waits;
        }
        let count = own.min(free).min(wanted).min(of_tenant);
        *state.taken.of(known.kind) += count;
        state.tenants.entry(lane.0).or_default().held += count;
        state.lane(lane).held += count;
        Admission::Slots { count, kind: known.kind }
    }

    fn free(&self, taken: &PerKind<usize>, kind: Kind) -> usize {
        let others = taken.trial + taken.slow;
        let reserved = self.part(2);
        // The proven lanes' half is left free by everybody else.
        let ceiling = self.max.saturating_mul(2).saturating_sub(reserved).saturating_sub(others);
        match kind {
            Kind::Proven => {
                let free = self.max.saturating_sub(taken.all());
                let most = self.max.saturating_mul(2).saturating_sub(taken.all());
                free.max(reserved.saturating_sub(taken.proven).min(most))
            }
            Kind::Trial => self.part(4).saturating_sub(taken.trial).min(ceiling),
            Kind::Slow => self.part(2).saturating_sub(taken.slow).min(ceiling),
        }
    }

    /// Gives slots back that were not used.
    pub(crate) fn give_back(&self, lane: LaneKey, count: usize, kind: Kind) -> Again {
        if count == 0 {
            return Again::default();
        }
        let mut state = self.state.lock();
        state.release(lane, count, kind);
        let again = state.again(lane, kind);
        drop(state);
        self.freed.notify_waiters();
        again
    }

    /// A delivery in a slot of this kind ended in time, with or without an answer; or late, if it turned slow before.
    pub(crate) fn ended(&self, lane: LaneKey, slot: Ended) -> Again {
        let mut state = self.state.lock();
        state.release(lane, 1, slot.kind);
        let known = state.lane(lane);
        known.kind = if slot.turned_slow { Kind::Slow } else { Kind::Proven };
        known.window = if slot.answered { (known.window + 1).min(slot.concurrency).max(1) } else { 1 };
        let again = state.again(lane, slot.kind);
        drop(state);
        self.freed.notify_waiters();
        again
    }

    /// A delivery has taken longer than [`SLOW_AFTER`]: its slot is a slow one from now on.
    pub(crate) fn turned_slow(&self, lane: LaneKey, kind: Kind) -> Again {
        let mut state = self.state.lock();
        *state.taken.of(kind) -= 1;
        state.taken.slow += 1;
        state.lane(lane).kind = Kind::Slow;
        Again { waiting: state.waiting.of(kind).pop(), ..Again::default() }
    }

    /// The lane was held: what it had earned is forgotten.
    pub(crate) fn start_over(&self, lane: LaneKey) {
        if let Some(known) = self.state.lock().lanes.get_mut(&lane) {
            known.window = 1;
        }
    }

    /// Whether there is a slot for a lane that is proven.
    pub(crate) fn any_free(&self) -> bool {
        self.free(&self.state.lock().taken, Kind::Proven) > 0
    }

    /// Resolves when no delivery is on its way.
    pub(crate) async fn idle(&self) {
        loop {
            let freed = self.freed.notified();
            tokio::pin!(freed);
            freed.as_mut().enable();
            if self.state.lock().taken.all() == 0 {
                return;
            }
            freed.await;
        }
    }
}

/// How a delivery ended, as its slot saw it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Ended {
    /// The slot's kind in the end.
    pub(crate) kind: Kind,
    /// It took longer than [`SLOW_AFTER`].
    pub(crate) turned_slow: bool,
    /// The receiver answered, whatever it said.
    pub(crate) answered: bool,
    /// The endpoint's.
    pub(crate) concurrency: usize,
}

impl PerKind<usize> {
    fn all(&self) -> usize {
        self.proven + self.trial + self.slow
    }
}

impl State {
    fn lane(&mut self, lane: LaneKey) -> &mut Lane {
        self.lanes.entry(lane).or_default()
    }

    fn release(&mut self, lane: LaneKey, count: usize, kind: Kind) {
        *self.taken.of(kind) -= count;
        self.lane(lane).held -= count;
        self.tenants.entry(lane.0).or_default().held -= count;
    }

    fn again(&mut self, lane: LaneKey, kind: Kind) -> Again {
        Again {
            own: std::mem::take(&mut self.lane(lane).capped).then_some(lane),
            waiting: self.waiting.of(kind).pop(),
            of_tenant: self.tenants.entry(lane.0).or_default().waiting.pop(),
        }
    }
}

impl Waiting {
    fn push(&mut self, lane: LaneKey) {
        if self.known.insert(lane) {
            self.lanes.push_back(lane);
        }
    }

    fn pop(&mut self) -> Option<LaneKey> {
        let next = self.lanes.pop_front()?;
        self.known.remove(&next);
        Some(next)
    }
}

#[cfg(test)]
mod tests {
    use posthaste_core::{LaneId, TenantId};

    use super::*;

    const CONCURRENCY: usize = 10;

    fn lane(number: u32) -> LaneKey {
        (TenantId(1), LaneId(number))
    }

    fn in_time(kind: Kind) -> Ended {
        Ended { kind, turned_slow: false, answered: true, concurrency: CONCURRENCY }
    }

    fn hung() -> Ended {
        Ended { kind: Kind::Slow, turned_slow: true, answered: false, concurrency: CONCURRENCY }
    }

    fn granted(slots: &Slots, number: u32) -> usize {
        match slots.take(lane(number), CONCURRENCY, usize::MAX, usize::MAX) {
            Admission::Slots { count, .. } => count,
            Admission::Waits | Admission::Full => 0,
        }
    }

    /// The lane's receiver answers at once until it is trusted with all its slots.
    fn prove(slots: &Slots, number: u32) {
        for _ in 0..CONCURRENCY {
            let taken = slots.take(lane(number), CONCURRENCY, 1, usize::MAX);
            let Admission::Slots { kind, .. } = taken else { panic!("{taken:?}") };
            slots.ended(lane(number), in_time(kind));
        }
    }

    #[test]
    fn r_b16_a_lane_grows_with_answers_up_to_its_concurrency_and_starts_over_without() {
        let slots = Slots::new(100);
        assert_eq!(1, granted(&slots, 1));
        slots.ended(lane(1), in_time(Kind::Trial));
        assert_eq!(2, granted(&slots, 1));
        assert_eq!(Admission::Waits, slots.take(lane(1), CONCURRENCY, 5, usize::MAX));
        assert_eq!(Some(lane(1)), slots.ended(lane(1), in_time(Kind::Proven)).own);
        prove(&slots, 2);
        assert_eq!(CONCURRENCY, granted(&slots, 2));
        slots.ended(lane(2), Ended { answered: false, ..in_time(Kind::Proven) });
        assert_eq!(0, granted(&slots, 2), "nine are held, and one is allowed");
    }

    #[test]
    fn r_b6_hundreds_of_hanging_endpoints_do_not_take_every_slot() {
        let slots = Slots::new(40);
        prove(&slots, 1_000);
        let mut hanging: Vec<u32> = Vec::new();
        let mut waiting: VecDeque<u32> = (0..500).collect();
        // In rounds of a second: who has a slot hangs, and those that are named next take their turn.
        for _ in 0..10 {
            let mut new = Vec::new();
            while let Some(number) = waiting.pop_front() {
                if granted(&slots, number) == 1 {
                    new.push(number);
                }
            }
            for number in &new {
                let again = slots.turned_slow(lane(*number), Kind::Trial);
                waiting.extend(again.waiting.map(|(_, lane)| lane.0));
            }
            hanging.extend(new);
        }
        assert_eq!(60, hanging.len(), "twice the slots, but for the half that is the proven lanes'");
        assert_eq!(CONCURRENCY, granted(&slots, 1_000), "the healthy one has all of its own");
        // One times out. It is known to be slow now, and slow lanes have more than their slots; the next trial goes on.
        let again = slots.ended(lane(hanging[0]), hung());
        assert_eq!(Again::default(), again, "nobody waits for a slow slot");
        assert_eq!(Admission::Waits, slots.take(lane(hanging[0]), CONCURRENCY, 1, usize::MAX));
    }

    #[test]
    fn r_b6_an_endpoint_that_is_new_gets_its_trial_beside_those_that_hang() {
        let slots = Slots::new(40);
        (0..10).for_each(|number| assert_eq!(1, granted(&slots, number)));
        assert_eq!(Admission::Waits, slots.take(lane(99), CONCURRENCY, 1, usize::MAX));
        let again = slots.turned_slow(lane(0), Kind::Trial);
        assert_eq!(Some(lane(99)), again.waiting);
        assert_eq!(1, granted(&slots, 99));
        slots.ended(lane(99), in_time(Kind::Trial));
        assert_eq!(2, granted(&slots, 99));
    }

    #[test]
    fn r_b6_receivers_that_begin_to_hang_leave_room_for_those_that_answer() {
        let slots = Slots::new(20);
        (1..=5).for_each(|number| prove(&slots, number));
        assert_eq!((10, 10), (granted(&slots, 1), granted(&slots, 2)));
        assert_eq!(Admission::Full, slots.take(lane(3), CONCURRENCY, 1, usize::MAX));
        assert!(!slots.any_free());
        let hangs = |number| (0..10).for_each(|_| _ = slots.turned_slow(lane(number), Kind::Proven));
        (1..=2).for_each(hangs);
        assert_eq!(10, granted(&slots, 3), "ten slots more than configured");
        hangs(3);
        assert_eq!(10, granted(&slots, 4), "twice what is configured");
        hangs(4);
        assert_eq!(Admission::Full, slots.take(lane(5), CONCURRENCY, 1, usize::MAX), "bounded all the same");
    }

    #[test]
    fn r_b6_a_slow_receiver_that_answers_in_time_again_is_proven() {
        let slots = Slots::new(20);
        assert_eq!(1, granted(&slots, 1));
        slots.turned_slow(lane(1), Kind::Trial);
        slots.ended(lane(1), Ended { answered: true, ..hung() });
        let taken = slots.take(lane(1), CONCURRENCY, 9, usize::MAX);
        assert_eq!(Admission::Slots { count: 2, kind: Kind::Slow }, taken);
        slots.ended(lane(1), in_time(Kind::Slow));
        slots.ended(lane(1), in_time(Kind::Slow));
        let taken = slots.take(lane(1), CONCURRENCY, 9, usize::MAX);
        assert_eq!(Admission::Slots { count: 4, kind: Kind::Proven }, taken);
    }

    #[test]
    fn r_b6_a_lane_that_was_held_earns_its_slots_anew() {
        let slots = Slots::new(100);
        slots.start_over(lane(1));
        prove(&slots, 1);
        slots.start_over(lane(1));
        assert_eq!(1, granted(&slots, 1));
        slots.ended(lane(1), in_time(Kind::Proven));
        assert_eq!(2, granted(&slots, 1));
    }

    #[test]
    fn r_g6_beside_others_a_tenants_lanes_share_its_slots() {
        let slots = Slots::new(100);
        (1..=3).for_each(|number| prove(&slots, number));
        let taken = slots.take(lane(1), CONCURRENCY, 9, 8);
        assert_eq!(Admission::Slots { count: 8, kind: Kind::Proven }, taken);
        assert_eq!(Admission::Waits, slots.take(lane(2), CONCURRENCY, 9, 8));
        let other = (TenantId(2), LaneId(1));
        assert_eq!(
            Admission::Slots { count: 1, kind: Kind::Trial },
            slots.take(other, CONCURRENCY, 9, 8),
            "another tenant's lane has slots of its own"
        );
        let again = slots.ended(lane(1), in_time(Kind::Proven));
        assert_eq!(Some(lane(2)), again.of_tenant, "in turn");
        let taken = slots.take(lane(2), CONCURRENCY, 9, 8);
        assert_eq!(Admission::Slots { count: 1, kind: Kind::Proven }, taken);
        assert_eq!(9, granted(&slots, 2), "alone again, all of its own");
    }

    #[test]
    fn one_slot_is_enough_to_work_with() {
        let slots = Slots::new(1);
        for round in 0..3 {
            for number in 1..=2 {
                let taken = slots.take(lane(number), CONCURRENCY, 9, usize::MAX);
                let Admission::Slots { count: 1, kind } = taken else { panic!("{round}: {taken:?}") };
                slots.ended(lane(number), Ended { turned_slow: round == 1, ..in_time(kind) });
            }
        }
    }

    #[test]
    fn slots_given_back_unused_wake_who_waits_for_them() {
        let slots = Slots::new(4);
        let taken = slots.take(lane(1), CONCURRENCY, 9, usize::MAX);
        assert_eq!(Admission::Slots { count: 1, kind: Kind::Trial }, taken);
        assert_eq!(Admission::Waits, slots.take(lane(2), CONCURRENCY, 9, usize::MAX));
        assert_eq!(Admission::Waits, slots.take(lane(2), CONCURRENCY, 9, usize::MAX), "it waits once");
        let again = slots.give_back(lane(1), 1, Kind::Trial);
        assert_eq!(Again { waiting: Some(lane(2)), ..Again::default() }, again);
        assert_eq!(Again::default(), slots.give_back(lane(1), 0, Kind::Trial));
    }
}
