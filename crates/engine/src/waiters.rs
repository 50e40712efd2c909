//! Workers that wait for a queue's next job.

use std::{collections::HashMap, sync::Arc};

use parking_lot::Mutex;
use posthaste_core::{LaneId, TenantId, Timestamp};
use tokio::sync::{Notify, futures::Notified};

/// The lanes that somebody waits at, or did.
#[derive(Default)]
pub(crate) struct Waiters(Mutex<HashMap<(TenantId, LaneId), Arc<LaneWaiters>>>);

/// Those who wait at one lane.
#[derive(Default)]
pub(crate) struct LaneWaiters {
    notify: Notify,
    /// When the waiters will look again by themselves; a job that is due sooner wakes them.
    expected: Mutex<Option<Timestamp>>,
}

impl Waiters {
    /// The waiters of a lane. There are as many entries as queues that were ever consumed from.
    pub(crate) fn lane(&self, tenant: TenantId, lane: LaneId) -> Arc<LaneWaiters> {
        Arc::clone(self.0.lock().entry((tenant, lane)).or_default())
    }

    /// Says that a job of this lane is due at `due_at`.
    pub(crate) fn announce(&self, tenant: TenantId, lane: LaneId, due_at: Timestamp, now: Timestamp) {
        let waiters = self.0.lock().get(&(tenant, lane)).map(Arc::clone);
        let Some(waiters) = waiters else { return };
        if due_at <= now {
            waiters.notify.notify_one();
            return;
        }
        let mut expected = waiters.expected.lock();
        if expected.is_none_or(|expected| due_at < expected) {
            *expected = Some(due_at);
            drop(expected);
            waiters.notify.notify_waiters();
        }
    }

    /// Wakes everybody: we are stopping.
    pub(crate) fn wake_all(&self) {
        for waiters in self.0.lock().values() {
            waiters.notify.notify_waiters();
        }
    }
}

impl LaneWaiters {
    /// Resolves when there may be work. Enable it before looking, so that nothing is missed.
    pub(crate) fn woken(&self) -> Notified<'_> {
        self.notify.notified()
    }

    /// Wakes one more.
    pub(crate) fn wake_one(&self) {
        self.notify.notify_one();
    }

    /// Notes when the waiters will look again.
    pub(crate) fn expects(&self, at: Option<Timestamp>) {
        *self.expected.lock() = at;
    }
}
