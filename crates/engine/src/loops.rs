//! The small loops: lease expiry, fan-out, and the gauges that are sampled.

use std::sync::Arc;

use posthaste_core::{Command, DurationMs, limits};
use posthaste_store::JobCommand;

use crate::Engine;

/// Leases looked at in one step of expiry.
const EXPIRY_BATCH: usize = 500;

/// The longest sleep between two looks at the leases: the shortest lease, so that none is overslept by more.
const EXPIRY_EVERY: DurationMs = DurationMs(500);

/// Time between looks for fan-outs that nobody announced.
const FAN_OUT_EVERY: DurationMs = DurationMs::from_secs(10);

/// Time between samples of the gauges.
const SAMPLE_EVERY: DurationMs = DurationMs::from_secs(5);

/// Held jobs that are worth a millisecond's rest before they are counted again.
const HELD_PER_MS: u64 = 10;

/// After a store error.
const STORE_PAUSE: DurationMs = DurationMs::from_secs(1);

impl Engine {
    pub(crate) async fn run_expiry(self: Arc<Self>) {
        loop {
            let now = self.clock.now();
            let wake_at = match self.expire_due().await {
                Ok(next) => next.map_or(now.after(EXPIRY_EVERY), |next| next.min(now.after(EXPIRY_EVERY))),
                Err(error) => {
                    tracing::warn!(event = "expiry_failed", error = %error);
                    now.after(STORE_PAUSE)
                }
            };
            tokio::select! {
                () = self.clock.sleep_until(wake_at) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Expires what ran out; gives the time of the next one.
    async fn expire_due(&self) -> Result<Option<posthaste_core::Timestamp>, posthaste_store::StoreError> {
        loop {
            let (expired, next) = self.store.expired(EXPIRY_BATCH).await?;
            if expired.is_empty() {
                return Ok(next);
            }
            let full = expired.len() == EXPIRY_BATCH;
            let directory = self.directory.load_full();
            let expire = |(tenant, job): (_, posthaste_core::JobId)| JobCommand {
                tenant,
                job,
                command: Command::Expire,
                policy: directory.policy(tenant, job.lane()),
                hold_lane_until: None,
                actor: None,
            };
            self.apply(expired.into_iter().map(expire).collect()).await?;
            if !full {
                return Ok(next);
            }
        }
    }

    pub(crate) async fn run_fan_out(self: Arc<Self>) {
        loop {
            let more = match self.store.fan_out(limits::FANOUT_CHUNK).await {
                Ok(step) => {
                    for head in &step.heads {
                        self.wake_lane(head.tenant, head.lane, head.due_at);
                    }
                    #[cfg(feature = "faults")]
                    if step.more {
                        posthaste_store::faults::reached(posthaste_store::faults::Point::MidFanOut);
                    }
                    step.more
                }
                Err(error) => {
                    tracing::warn!(event = "fan_out_failed", error = %error);
                    false
                }
            };
            if self.stop.is_cancelled() {
                return;
            }
            if more {
                continue;
            }
            tokio::select! {
                () = self.dispatcher.fan_out_woken() => {}
                () = self.clock.sleep_until(self.clock.now().after(FAN_OUT_EVERY)) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    pub(crate) async fn run_sampler(self: Arc<Self>) {
        let mut count_held_at = self.clock.now();
        loop {
            self.refresh_kept_gauges().await;
            if self.clock.now() >= count_held_at {
                let counted = self.count_held().await;
                // A million is counted in a blink, but not every five seconds.
                count_held_at = self.clock.now().after(DurationMs(counted / HELD_PER_MS));
            }
            tokio::select! {
                () = self.clock.sleep_until(self.clock.now().after(SAMPLE_EVERY)) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Samples all gauges.
    pub async fn refresh_gauges(&self) {
        self.refresh_kept_gauges().await;
        self.count_held().await;
    }

    async fn count_held(&self) -> u64 {
        match self.store.held_jobs().await {
            Ok(held) => {
                self.metrics.set_held_jobs(held);
                held
            }
            Err(_) => 0,
        }
    }

    /// Counters that the store keeps, and the lanes' heads.
    async fn refresh_kept_gauges(&self) {
        if let Ok(counts) = self.store.counts().await {
            self.metrics.set_counts(&counts);
        }
        if let Ok(heads) = self.store.heads().await {
            self.metrics.set_oldest_due(&self.directory.load(), &heads, self.clock.now());
        }
    }
}
