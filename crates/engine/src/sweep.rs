//! The reconciliation sweep: settles what evidence shows to have ended. Row B14.
//!
//! Its other half, waking every lane in which a job is due and not leased, is the dispatcher's look at all heads: whatever
//! hint was lost, it finds the rows. Here jobs that wait after an attempt, and dead letters, are gone through a few at a
//! time, behind all other work; the place is kept in memory, since a pass that begins anew does no harm.

use std::sync::Arc;

use posthaste_core::{Command, DurationMs, Evidence, JobId, TenantId};
use posthaste_store::{AppliedOutcome, JobCommand, StoreError, SweepCursor};

use crate::{Engine, rests::Rests};

/// Jobs looked at in one step.
const STEP: usize = 200;

/// Time between the beginnings of two passes.
const EVERY: DurationMs = DurationMs::from_mins(1);

/// After a store error.
const STORE_PAUSE: DurationMs = DurationMs::from_secs(5);

impl Engine {
    pub(crate) async fn run_sweep(self: Arc<Self>) {
        let mut place = None;
        while self.on_duty().await {
            let begun = self.clock.now();
            let wake_at = match self.sweep_pass(&mut place).await {
                Ok(()) => begun.after(EVERY),
                Err(error) => {
                    tracing::warn!(event = "sweep_failed", error = %error);
                    self.clock.now().after(STORE_PAUSE)
                }
            };
            tokio::select! {
                () = self.clock.sleep_until(wake_at) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Goes on from `place` to the end of a pass.
    async fn sweep_pass(&self, place: &mut Option<SweepCursor>) -> Result<(), StoreError> {
        let now = self.clock.now();
        let mut rests = Rests::new(now, EVERY);
        loop {
            let step = self.store.provable(*place, STEP).await?;
            let settled = self.settle_all(step.jobs).await?;
            self.metrics.swept(settled, step.corrupt);
            if settled > 0 {
                tracing::info!(event = "swept", jobs = settled);
            }
            *place = step.next;
            if place.is_none() {
                return Ok(());
            }
            let rest_until = rests.due(self.clock.now());
            tokio::select! {
                () = self.clock.sleep_until(rest_until.unwrap_or(now)) => rests.rested(self.clock.now()),
                () = self.stop.cancelled() => return Ok(()),
            }
        }
    }

    async fn settle_all(&self, jobs: Vec<(TenantId, JobId)>) -> Result<usize, StoreError> {
        if jobs.is_empty() {
            return Ok(0);
        }
        let directory = self.directory.load_full();
        let settle = |(tenant, job): (TenantId, JobId)| JobCommand {
            tenant,
            job,
            command: Command::Settle { evidence: Evidence::Ledger },
            policy: directory.policy(tenant, job.lane()),
            hold_lane_until: None,
            actor: Some("posthaste".into()),
        };
        let applied = self.apply_behind(jobs.into_iter().map(settle).collect()).await?;
        let settled = |outcome: &AppliedOutcome| {
            matches!(outcome, AppliedOutcome::Decided { reply: Ok(_), change: Some(_) })
        };
        Ok(applied.iter().filter(|applied| settled(&applied.outcome)).count())
    }
}
