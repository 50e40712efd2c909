//! The dispatcher: leases due jobs of push lanes for free slots, and hands them to deliveries.
//!
//! It never leases more than can be sent at once, so a lane that is capped, held or slow costs nothing and holds
//! at most its own slots.

use std::{
    collections::HashMap,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use parking_lot::Mutex;
use posthaste_core::{Cause, Command, DurationMs, LaneId, OnUnknown, Start, TenantId, Timestamp, limits};
use posthaste_store::{JobCommand, JobFilter, LeaseGrant, LeaseRequest};
use tokio::sync::Notify;
use tokio_util::sync::CancellationToken;

use crate::{
    Engine,
    config::Endpoint,
    directory::Destination,
    heap::{LaneKey, Lanes},
    lanes::Blocked,
    slots::{Admission, Again, Ended, Kind, Slots},
};

/// Lanes leased from in one commit.
const LANES_PER_LEASE: usize = 64;

/// Time between looks at all lanes' heads: the safety net under the heap.
const SCAN_EVERY: DurationMs = DurationMs::from_secs(30);

/// After a store error, the wait before the next lease.
const STORE_PAUSE: DurationMs = DurationMs(250);

/// How much longer than its endpoint's time-out a delivery's lease holds: scheduling, and reporting at a busy store.
const LEASE_MARGIN: DurationMs = DurationMs::from_secs(15);

/// What the dispatcher and those who wake it share.
pub(crate) struct Dispatcher {
    noted: Mutex<Vec<(LaneKey, Timestamp)>>,
    wake: Notify,
    fan_out: Notify,
    slots: Slots,
    stopped: AtomicBool,
    pub(crate) abort: CancellationToken,
}

impl Dispatcher {
    pub(crate) fn new(slots_max: usize) -> Self {
        Self {
            noted: Mutex::default(),
            wake: Notify::new(),
            fan_out: Notify::new(),
            slots: Slots::new(slots_max),
            stopped: AtomicBool::new(false),
            abort: CancellationToken::new(),
        }
    }

    /// Notes that a lane has a job due at `due_at`.
    pub(crate) fn note(&self, lane: LaneKey, due_at: Timestamp) {
        let mut noted = self.noted.lock();
        noted.push((lane, due_at));
        if noted.len() > 65_536 {
            // More notes than lanes: keep each lane's earliest.
            let mut earliest: HashMap<LaneKey, Timestamp> = HashMap::new();
            for (lane, due_at) in noted.drain(..) {
                let known = earliest.entry(lane).or_insert(due_at);
                *known = (*known).min(due_at);
            }
            noted.extend(earliest);
        }
        drop(noted);
        self.wake.notify_one();
    }

    pub(crate) fn wake_fan_out(&self) {
        self.fan_out.notify_one();
    }

    pub(crate) async fn fan_out_woken(&self) {
        self.fan_out.notified().await;
    }

    /// No new leases from now on.
    pub(crate) fn stop_leasing(&self) {
        self.stopped.store(true, Ordering::Relaxed);
        self.wake.notify_one();
    }

    /// Deliveries that are on their way are cut off; each reports what it knows.
    pub(crate) fn abort_all(&self) {
        self.abort.cancel();
    }

    /// Resolves when no delivery is on its way.
    pub(crate) async fn idle(&self) {
        self.slots.idle().await;
    }

    /// A lane that was held begins with one slot again, so that its receiver is not run over.
    pub(crate) fn start_over(&self, lane: LaneKey) {
        self.slots.start_over(lane);
    }

    fn look_again(&self, again: Again) {
        for lane in [again.own, again.waiting, again.of_tenant].into_iter().flatten() {
            self.note(lane, Timestamp(i64::MIN));
        }
        self.wake.notify_one();
    }
}

/// A lane with the slots that it was given.
struct Taken {
    lane: LaneKey,
    endpoint: Arc<Endpoint>,
    count: usize,
    kind: Kind,
}

/// One slot, given back when dropped.
pub(crate) struct Slot {
    engine: Arc<Engine>,
    lane: LaneKey,
    ended: Ended,
}

impl Slot {
    /// The delivery has taken long.
    pub(crate) fn turned_slow(&mut self) {
        self.ended.turned_slow = true;
        let kind = std::mem::replace(&mut self.ended.kind, Kind::Slow);
        if kind != Kind::Slow {
            // What is slow makes room for what is not.
            let dispatcher = &self.engine.dispatcher;
            dispatcher.look_again(dispatcher.slots.turned_slow(self.lane, kind));
        }
    }

    /// The receiver answered, whatever it said.
    pub(crate) fn answered(&mut self) {
        self.ended.answered = true;
    }
}

impl Drop for Slot {
    fn drop(&mut self) {
        let dispatcher = &self.engine.dispatcher;
        dispatcher.look_again(dispatcher.slots.ended(self.lane, self.ended));
    }
}

impl Engine {
    /// Says that a job of this lane is due at `due_at`: to the dispatcher if we push, to workers if they pull.
    pub(crate) fn wake_lane(&self, tenant: TenantId, lane: LaneId, due_at: Timestamp) {
        let due_at = match self.lane_book.blocked((tenant, lane)) {
            None => due_at,
            Some(Blocked::Until(until)) => due_at.max(until),
            Some(Blocked::UntilActed) => return,
        };
        match self.directory.load().at(tenant, lane).map(|entry| &entry.destination) {
            Some(Destination::Queue(_)) => self.waiters.announce(tenant, lane, due_at, self.clock.now()),
            Some(Destination::Endpoint(_)) | None => self.dispatcher.note((tenant, lane), due_at),
            Some(Destination::Source(_) | Destination::Broken { .. }) => {}
        }
    }

    pub(crate) async fn run_dispatcher(self: Arc<Self>) {
        let mut lanes = Lanes::default();
        let mut scan_at = self.clock.now();
        loop {
            if self.stop.is_cancelled() || self.dispatcher.stopped.load(Ordering::Relaxed) {
                return;
            }
            let now = self.clock.now();
            if now >= scan_at {
                scan_at = now.after(SCAN_EVERY);
                self.check_lanes().await;
                self.wake_due(None).await;
            }
            for (lane, due_at) in std::mem::take(&mut *self.dispatcher.noted.lock()) {
                lanes.note(lane, due_at);
            }
            let next_head = lanes.advance(now);
            if lanes.ready_count() > 0
                && self.dispatcher.slots.any_free()
                && self.dispatch_round(&mut lanes).await
            {
                continue;
            }
            let wake_at = next_head.map_or(scan_at, |head| head.min(scan_at));
            tokio::select! {
                () = self.dispatcher.wake.notified() => {}
                () = self.clock.sleep_until(wake_at) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Wakes every lane that has work, from the rows; of one tenant, if asked.
    pub(crate) async fn wake_due(&self, tenant: Option<TenantId>) {
        match self.store.heads().await {
            Ok(heads) => {
                for head in heads.into_iter().filter(|head| tenant.is_none_or(|tenant| tenant == head.tenant))
                {
                    self.wake_lane(head.tenant, head.lane, head.due_at);
                }
            }
            Err(error) => tracing::warn!(event = "scan_failed", error = %error),
        }
    }

    /// Leases from ready lanes once. True if something was leased or dropped, so that another round is worthwhile.
    async fn dispatch_round(self: &Arc<Self>, lanes: &mut Lanes) -> bool {
        let mut requests = Vec::new();
        let mut endpoints = Vec::new();
        let share = (self.dispatcher.slots.max() / lanes.ready_count().clamp(1, LANES_PER_LEASE)).max(1);
        let tenant_max = self.company.deliveries_max(self.dispatcher.slots.max(), self.clock.now());
        while requests.len() < LANES_PER_LEASE {
            let Some(lane) = lanes.next_ready() else { break };
            let Some(endpoint) = self.endpoint_at(lane).await else { continue };
            match self.lane_book.blocked(lane) {
                Some(Blocked::UntilActed) => continue,
                Some(Blocked::Until(until)) if until > self.clock.now() => {
                    lanes.note(lane, until);
                    continue;
                }
                Some(Blocked::Until(_)) | None => {}
            }
            let wanted = share.min(limits::CONSUME_MAX);
            match self.dispatcher.slots.take(lane, endpoint.concurrency, wanted, tenant_max) {
                Admission::Slots { count, kind } => {
                    requests.push(push_request(&endpoint, count, &self.settings.node));
                    endpoints.push(Taken { lane, endpoint, count, kind });
                }
                Admission::Waits => {}
                Admission::Full => {
                    lanes.make_ready(lane);
                    break;
                }
            }
        }
        if requests.is_empty() {
            return false;
        }
        match self.store.lease(requests).await {
            Ok(grants) => {
                for (taken, grant) in endpoints.into_iter().zip(grants) {
                    self.deliver_all(lanes, &taken, grant);
                }
                true
            }
            Err(error) => {
                tracing::warn!(event = "lease_failed", error = %error);
                let again_at = self.clock.now().after(STORE_PAUSE);
                for Taken { lane, count, kind, .. } in endpoints {
                    self.dispatcher.look_again(self.dispatcher.slots.give_back(lane, count, kind));
                    lanes.note(lane, again_at);
                }
                false
            }
        }
    }

    fn deliver_all(self: &Arc<Self>, lanes: &mut Lanes, taken: &Taken, grant: LeaseGrant) {
        let Taken { lane, ref endpoint, count, kind } = *taken;
        self.observe_changes(Some(lane.0), &grant.settled);
        let leased = grant.jobs.len();
        if leased < count {
            let unused = count.saturating_sub(leased);
            self.dispatcher.look_again(self.dispatcher.slots.give_back(lane, unused, kind));
        }
        if let Some(next_due) = grant.next_due {
            if next_due <= self.clock.now() && leased > 0 {
                lanes.make_ready(lane);
            } else {
                lanes.note(lane, next_due);
            }
        }
        let concurrency = endpoint.concurrency;
        let ended = Ended { kind, turned_slow: false, answered: false, concurrency };
        for job in grant.jobs {
            self.observe_lease(&job);
            let (engine, endpoint) = (Arc::clone(self), Arc::clone(endpoint));
            let slot = Slot { engine: Arc::clone(self), lane, ended };
            self.tasks.spawn(async move { engine.deliver(&endpoint, job, slot).await });
        }
    }

    /// The endpoint of a lane, if it takes part. A lane whose endpoint is deleted is emptied: its jobs are
    /// dead-lettered with the cause. One that is disabled, or not understood, keeps its jobs.
    async fn endpoint_at(&self, lane: LaneKey) -> Option<Arc<Endpoint>> {
        let directory = self.directory.load();
        match directory.at(lane.0, lane.1).map(|entry| &entry.destination) {
            Some(Destination::Endpoint(endpoint)) => endpoint.enabled.then(|| Arc::clone(endpoint)),
            Some(Destination::Queue(_) | Destination::Source(_) | Destination::Broken { .. }) => None,
            None => {
                self.abandon_lane(lane).await;
                None
            }
        }
    }

    async fn abandon_lane(&self, (tenant, lane): LaneKey) {
        let policy = self.directory.load().policy(tenant, lane);
        for state in [posthaste_core::StateName::Scheduled, posthaste_core::StateName::Retryable] {
            let filter = JobFilter {
                state: Some(state),
                lane: Some(lane),
                oldest_first: true,
                after: None,
                limit: limits::PAGE_MAX,
            };
            let Ok(jobs) = self.store.jobs(tenant, filter).await else { return };
            let commands: Vec<JobCommand> = jobs
                .into_iter()
                .map(|view| JobCommand {
                    tenant,
                    job: view.job.id,
                    command: Command::Abandon { cause: Cause::EndpointGone },
                    policy: Arc::clone(&policy),
                    hold_lane_until: None,
                    actor: Some("posthaste".into()),
                })
                .collect();
            let full = commands.len() == limits::PAGE_MAX;
            if !commands.is_empty() && self.apply(commands).await.is_err() {
                return;
            }
            if full {
                self.dispatcher.note((tenant, lane), self.clock.now());
            }
        }
    }
}

fn push_request(endpoint: &Endpoint, limit: usize, node: &str) -> LeaseRequest {
    let timeout = DurationMs(u64::try_from(endpoint.timeout.as_millis()).unwrap_or(u64::MAX));
    let lease_for = timeout.plus(LEASE_MARGIN);
    LeaseRequest {
        tenant: endpoint.tenant,
        lane: endpoint.lane,
        limit,
        bytes_max: limits::PUBLISH_BATCH_BYTES_MAX,
        worker: node.into(),
        lease_for,
        deadline_after: lease_for,
        starts: if endpoint.policy.on_unknown == OnUnknown::Retry { Start::WithLease } else { Start::Fenced },
        policy: Arc::clone(&endpoint.policy),
        guarded: false,
    }
}
