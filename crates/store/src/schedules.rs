//! Schedules: what fires when, and who has taken a firing. Row B14.
//!
//! A store doesn't know cron. It keeps when a schedule is to fire next, and moves that on only for whoever names what
//! stands there: of several that try, one does.

use posthaste_core::{DestinationId, TenantId, Timestamp};

use crate::{BoxFuture, ManagedBy, StoreError};

/// A schedule, as stored. The store doesn't read `config`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScheduleRow {
    /// Whose.
    pub tenant: TenantId,
    /// Its name: well-formed as destinations' ids are, in a namespace of its own.
    pub id: DestinationId,
    /// The engine's JSON.
    pub config: Box<str>,
    /// Who may change it.
    pub managed_by: ManagedBy,
    /// Whether it fires.
    pub enabled: bool,
    /// Who answers for it.
    pub owner: Option<Box<str>>,
    /// The next instant that is not dealt with; `None`: there is none.
    pub next_fire_at: Option<Timestamp>,
    /// The last instant for which it fired.
    pub last_fired_at: Option<Timestamp>,
    /// Set while it is paused.
    pub paused: Option<SchedulePause>,
    /// When it was made.
    pub created_at: Timestamp,
    /// When its configuration was changed last.
    pub updated_at: Timestamp,
}

/// Why a schedule doesn't fire.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SchedulePause {
    /// Since when.
    pub at: Timestamp,
    /// Who paused it.
    pub by: Box<str>,
    /// Why.
    pub reason: Box<str>,
}

/// A schedule to be made or changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NewSchedule {
    /// Whose.
    pub tenant: TenantId,
    /// Its name.
    pub id: DestinationId,
    /// The engine's JSON.
    pub config: Box<str>,
    /// Who may change it.
    pub managed_by: ManagedBy,
    /// Whether it fires.
    pub enabled: bool,
    /// Who answers for it.
    pub owner: Option<Box<str>>,
    /// When it is to fire next.
    pub next: NextFire,
    /// Refuse if the name is taken, instead of changing what is there.
    pub must_be_new: bool,
}

/// What becomes of the time of the next firing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextFire {
    /// It stays as it is stored; a new schedule has none.
    Keep,
    /// It is this.
    At(Option<Timestamp>),
}

/// One change of a schedule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleChange {
    /// Makes or replaces it. A pause and the last firing stay.
    Put(NewSchedule),
    /// Deletes it.
    Delete {
        /// Whose.
        tenant: TenantId,
        /// Which.
        id: DestinationId,
    },
    /// Pauses it; one that is paused keeps its first pause.
    Pause {
        /// Whose.
        tenant: TenantId,
        /// Which.
        id: DestinationId,
        /// Who.
        by: Box<str>,
        /// Why.
        reason: Box<str>,
    },
    /// Ends a pause; one that isn't paused stays as it is.
    Resume {
        /// Whose.
        tenant: TenantId,
        /// Which.
        id: DestinationId,
        /// When it is to fire next.
        next: NextFire,
    },
    /// Moves the next firing on from `from`, if that is what stands there and the schedule is neither disabled nor paused.
    Advance {
        /// Whose.
        tenant: TenantId,
        /// Which.
        id: DestinationId,
        /// What is expected.
        from: Timestamp,
        /// What follows.
        to: Option<Timestamp>,
        /// The last instant for which it fired, if it did.
        fired_at: Option<Timestamp>,
    },
}

/// What a [`ScheduleChange`] came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ScheduleChanged {
    /// As it is now.
    Schedule(Box<ScheduleRow>),
    /// It was deleted.
    Deleted,
    /// There is none of this name.
    Missing,
    /// The name is taken; nothing was written.
    Taken,
    /// An [`ScheduleChange::Advance`] found something else; nothing was written.
    Moved(Box<ScheduleRow>),
}

/// What fires when. Errors, durability and cancel safety as for [`crate::Store`] and [`crate::Reads`].
pub trait Schedules: Send + Sync {
    /// Changes schedules. One commit; answers in order; a later change sees the earlier ones.
    fn change_schedules(
        &self,
        changes: Vec<ScheduleChange>,
    ) -> BoxFuture<'_, Result<Vec<ScheduleChanged>, StoreError>>;

    /// One schedule.
    fn schedule(
        &self,
        tenant: TenantId,
        id: DestinationId,
    ) -> BoxFuture<'_, Result<Option<ScheduleRow>, StoreError>>;

    /// Every schedule of every tenant, by tenant and name (by bytes).
    fn schedules(&self) -> BoxFuture<'_, Result<Vec<ScheduleRow>, StoreError>>;
}

/// What a change does to what is known, the same for every store.
pub(crate) enum Step {
    /// Write this.
    Write(ScheduleRow),
    /// Delete it.
    Delete,
    /// Write nothing, and answer this.
    Answer(ScheduleChanged),
}

/// Whose, and which.
pub(crate) fn named(change: &ScheduleChange) -> (TenantId, &DestinationId) {
    match change {
        ScheduleChange::Put(new) => (new.tenant, &new.id),
        ScheduleChange::Delete { tenant, id }
        | ScheduleChange::Pause { tenant, id, .. }
        | ScheduleChange::Resume { tenant, id, .. }
        | ScheduleChange::Advance { tenant, id, .. } => (*tenant, id),
    }
}

/// Decides over `known`, the row that [`named`] names.
pub(crate) fn step(change: &ScheduleChange, known: Option<ScheduleRow>, now: Timestamp) -> Step {
    match (change, known) {
        (ScheduleChange::Put(new), known) => put(new, known, now),
        (_, None) => Step::Answer(ScheduleChanged::Missing),
        (change, Some(row)) => step_known(change, row, now),
    }
}

fn step_known(change: &ScheduleChange, mut row: ScheduleRow, now: Timestamp) -> Step {
    match change {
        ScheduleChange::Put(new) => return put(new, Some(row), now),
        ScheduleChange::Delete { .. } => return Step::Delete,
        ScheduleChange::Pause { by, reason, .. } => {
            if row.paused.is_some() {
                return Step::Answer(ScheduleChanged::Schedule(Box::new(row)));
            }
            row.paused = Some(SchedulePause { at: now, by: by.clone(), reason: reason.clone() });
        }
        ScheduleChange::Resume { next, .. } => {
            if row.paused.take().is_none() {
                return Step::Answer(ScheduleChanged::Schedule(Box::new(row)));
            }
            row.next_fire_at = next_of(*next, row.next_fire_at);
        }
        ScheduleChange::Advance { from, to, fired_at, .. } => {
            if row.next_fire_at != Some(*from) || !row.enabled || row.paused.is_some() {
                return Step::Answer(ScheduleChanged::Moved(Box::new(row)));
            }
            row.next_fire_at = *to;
            row.last_fired_at = fired_at.or(row.last_fired_at);
        }
    }
    Step::Write(row)
}

fn put(new: &NewSchedule, known: Option<ScheduleRow>, now: Timestamp) -> Step {
    if known.is_some() && new.must_be_new {
        return Step::Answer(ScheduleChanged::Taken);
    }
    let stored = known.as_ref().and_then(|row| row.next_fire_at);
    Step::Write(ScheduleRow {
        tenant: new.tenant,
        id: new.id.clone(),
        config: new.config.clone(),
        managed_by: new.managed_by,
        enabled: new.enabled,
        owner: new.owner.clone(),
        next_fire_at: next_of(new.next, stored),
        last_fired_at: known.as_ref().and_then(|row| row.last_fired_at),
        created_at: known.as_ref().map_or(now, |row| row.created_at),
        updated_at: now,
        paused: known.and_then(|row| row.paused),
    })
}

fn next_of(next: NextFire, stored: Option<Timestamp>) -> Option<Timestamp> {
    match next {
        NextFire::Keep => stored,
        NextFire::At(at) => at,
    }
}

const _: fn(&dyn Schedules) = |_| ();
