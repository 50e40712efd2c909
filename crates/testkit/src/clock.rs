//! A clock that a test advances by hand.

use std::sync::atomic::{AtomicI64, Ordering};

use posthaste_core::{DurationMs, Timestamp};
use posthaste_engine::ports::{self, BoxFuture};
use posthaste_store::Clock;
use tokio::sync::Notify;

/// Stands still until it is told to move.
#[derive(Debug)]
pub struct ManualClock {
    now: AtomicI64,
    moved: Notify,
}

impl ManualClock {
    /// Where a clock starts that nobody set: 2026-01-01, 00:00 UTC.
    pub const START: Timestamp = Timestamp(1_767_225_600_000);

    /// A clock that stands at `now`.
    pub fn at(now: Timestamp) -> Self {
        Self { now: AtomicI64::new(now.0), moved: Notify::new() }
    }

    /// Moves it on.
    pub fn advance(&self, by: DurationMs) {
        let by = i64::try_from(by.0).expect("tests don't last 292 million years");
        self.now.fetch_add(by, Ordering::SeqCst);
        self.moved.notify_waiters();
    }

    /// Sets it. Stores expect time not to go back.
    pub fn set(&self, now: Timestamp) {
        self.now.store(now.0, Ordering::SeqCst);
        self.moved.notify_waiters();
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::at(Self::START)
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Timestamp {
        Timestamp(self.now.load(Ordering::SeqCst))
    }
}

impl ports::Clock for ManualClock {
    fn sleep_until(&self, at: Timestamp) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            loop {
                let moved = self.moved.notified();
                tokio::pin!(moved);
                moved.as_mut().enable();
                if self.now() >= at {
                    return;
                }
                moved.await;
            }
        })
    }
}
