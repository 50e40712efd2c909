//! What is still to be found out: look-ups that are due, and jobs whose end evidence shows already. Rows B14, C10.
//!
//! A look-up asks whether an effect happened; it never leases. A sweep goes through what waits after an attempt and through
//! dead letters, and finds those that [`posthaste_core::Command::Settle`] would settle. Both only find: the core decides,
//! in the transaction that writes.

use posthaste_core::{JobId, LaneId, TenantId, Timestamp};

use crate::{Applied, BoxFuture, JobCommand, Reads, StoreError};

/// See the module.
///
/// Errors: as of [`crate::Store`] and [`Reads`]. Cancel: safe; for [`Unsettled::apply_behind`], as for
/// [`crate::Store::apply`].
pub trait Unsettled: Reads {
    /// Look-ups that are due, oldest `due_at` first (then by tenant and id): of each lane the oldest `per_lane`, of all
    /// those the oldest `limit`. So one lane's look-ups, however many, never hide another's.
    ///
    /// A job counts while it waits for a look-up, whatever holds its lane: a look-up acts on nothing.
    fn look_ups(&self, per_lane: usize, limit: usize) -> BoxFuture<'_, Result<LookUps, StoreError>>;

    /// The oldest look-ups of one lane that are due, at most `limit`.
    fn lane_look_ups(
        &self,
        tenant: TenantId,
        lane: LaneId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<JobId>, StoreError>>;

    /// Looks at up to `limit` jobs after `after` (all that wait after an attempt, then all dead letters, by tenant and
    /// id), and gives those that evidence would settle. `after`: where the last step ended; `None` begins anew.
    ///
    /// A job that can't be read is passed over, said once in the log, and counted.
    fn provable(
        &self,
        after: Option<SweepCursor>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Provable, StoreError>>;

    /// As [`crate::Store::apply`], behind everything that somebody waits for.
    fn apply_behind(&self, commands: Vec<JobCommand>) -> BoxFuture<'_, Result<Vec<Applied>, StoreError>>;

    /// The total of held time of a lane, in milliseconds: what a job's horizon is moved by.
    fn lane_held_ms(&self, tenant: TenantId, lane: LaneId) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// A look-up that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct LookUpDue {
    /// Since when.
    pub due_at: Timestamp,
    /// Whose.
    pub tenant: TenantId,
    /// Of which job.
    pub job: JobId,
}

/// The answer of [`Unsettled::look_ups`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LookUps {
    /// Those that are due.
    pub due: Vec<LookUpDue>,
    /// When the next one of those that are not due yet is, as far as was looked; `None` if there is none.
    pub next_due: Option<Timestamp>,
}

/// Where a sweep is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SweepCursor {
    /// Among the dead letters; among the live jobs otherwise.
    pub dead: bool,
    /// The last tenant looked at.
    pub tenant: TenantId,
    /// The last job looked at.
    pub job: JobId,
}

impl SweepCursor {
    /// Before the first live job.
    pub const START: Self = Self { dead: false, tenant: TenantId(0), job: JobId(0) };

    /// Before the first dead letter.
    pub(crate) const DEAD: Self = Self { dead: true, ..Self::START };

    /// Where to go on after a step that looked at `seen` of at most `limit` jobs, the last being `last`; `None` at the end.
    pub(crate) fn following(
        self,
        seen: usize,
        limit: usize,
        last: Option<(TenantId, JobId)>,
    ) -> Option<Self> {
        match (last, self.dead) {
            (Some((tenant, job)), dead) if seen >= limit => Some(Self { dead, tenant, job }),
            (_, false) => Some(Self::DEAD),
            (_, true) => None,
        }
    }
}

/// The answer of [`Unsettled::provable`].
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Provable {
    /// Jobs that evidence would settle.
    pub jobs: Vec<(TenantId, JobId)>,
    /// Jobs that could not be read.
    pub corrupt: usize,
    /// Where to go on; `None` at the end of a pass.
    pub next: Option<SweepCursor>,
}
