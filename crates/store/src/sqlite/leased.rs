//! Leased jobs, remembered by the writer: most commands come for a job that it leased a moment ago.
//!
//! Only the writer's thread writes jobs, and each write goes through [`Session::write_verdict`], so what is remembered
//! is what the rows say; after a rollback nothing is.
//!
//! [`Session::write_verdict`]: super::session::Session

use std::collections::HashMap;

use posthaste_core::{JobId, State, TenantId};

use super::job_rows::Stored;

/// Jobs that are remembered; then all are forgotten, and read again when they are asked for.
const JOBS_MAX: usize = 16_384;

#[derive(Default)]
pub(super) struct Leased {
    jobs: HashMap<(TenantId, JobId), Stored>,
}

impl Leased {
    /// The job, if it is remembered. It is forgotten until [`Leased::keep`].
    pub(super) fn take(&mut self, tenant: TenantId, id: JobId) -> Option<Stored> {
        self.jobs.remove(&(tenant, id))
    }

    /// Remembers the job as it was written, if it is leased, and small.
    pub(super) fn keep(&mut self, stored: Stored) {
        if !matches!(stored.job.state, State::Leased(_)) || stored.job.checkpoint.is_some() {
            return;
        }
        if self.jobs.len() >= JOBS_MAX {
            self.jobs.clear();
        }
        self.jobs.insert((stored.job.tenant, stored.job.id), stored);
    }

    pub(super) fn forget(&mut self) {
        self.jobs.clear();
    }
}
