//! Lanes: what holds them, who said so, and what befell them. Rows B10, D4.
//!
//! The rules are those of [`posthaste_core::lane`]. A store applies them in three places: when it leases, when an attempt
//! ends, and here.

use posthaste_core::{
    DestinationId, Job, JobId, Lane, LaneId, LaneRules, Nature, Scheduling, TenantId, Timestamp,
    lane::{Hold, Sign, Turn, sign_of},
};

use crate::{BoxFuture, Change, JobCommand, StoreError};

/// Events that are kept of one lane; older ones leave.
pub(crate) const EVENTS_KEPT: usize = 1_000;

/// What can be asked of lanes. Part of [`crate::Store`].
///
/// Durability, errors and cancel safety are those of [`crate::Store`] and [`crate::Reads`].
pub trait Lanes: Send + Sync {
    /// Applies commands to lanes, in order: a later one sees what an earlier one did. One commit; answers in order.
    ///
    /// A command that changes something leaves an event. One that finds things as it wants them changes nothing: who was
    /// first stays on record.
    fn steer(&self, commands: Vec<LaneCommand>) -> BoxFuture<'_, Result<Vec<Steered>, StoreError>>;

    /// Every lane of every tenant, by tenant and lane.
    fn lanes(&self) -> BoxFuture<'_, Result<Vec<LaneView>, StoreError>>;

    /// The scheduling of tenants where it was ever paused, by tenant.
    #[allow(clippy::type_complexity)] // a list of pairs
    fn scheduling(&self) -> BoxFuture<'_, Result<Vec<(TenantId, Scheduling)>, StoreError>>;

    /// What befell these lanes of a tenant, and with `None` its scheduling: in the order asked for, each oldest first; of
    /// each at most the last 1,000.
    fn lane_events(
        &self,
        tenant: TenantId,
        lanes: Vec<Option<LaneId>>,
    ) -> BoxFuture<'_, Result<Vec<LaneEvent>, StoreError>>;

    /// How many due jobs wait behind lanes that are held, or for their tenant's scheduling to go on. Counts them: not for
    /// each scrape.
    fn held_jobs(&self) -> BoxFuture<'_, Result<u64, StoreError>>;
}

/// One command on one lane.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneCommand {
    /// Whose.
    pub tenant: TenantId,
    /// Which lane; `None` is the tenant's scheduling, which can be paused and resumed only.
    pub lane: Option<LaneId>,
    /// What.
    pub act: LaneAct,
    /// Why, for ever shown.
    pub reason: Box<str>,
    /// Who.
    pub actor: Box<str>,
}

/// What is done to a lane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LaneAct {
    /// Nothing begins until resumed.
    Pause,
    /// The pause ends.
    Resume,
    /// Nothing begins until a person enables it.
    Disable,
    /// It goes on, its circuit closed and its failures forgotten.
    Enable,
}

/// What became of a [`LaneCommand`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Steered {
    /// There is no such lane, or scheduling can't do that.
    Missing,
    /// The lane as it is now.
    Lane {
        /// Whether the command changed it.
        changed: bool,
        /// As it is now.
        lane: Box<Lane>,
    },
    /// The tenant's scheduling as it is now.
    Scheduling {
        /// Whether the command changed it.
        changed: bool,
        /// As it is now.
        scheduling: Scheduling,
    },
}

/// A lane as it is read back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneView {
    /// Whose.
    pub tenant: TenantId,
    /// Which.
    pub id: LaneId,
    /// Of which destination.
    pub destination: DestinationId,
    /// What is kept of it.
    pub lane: Lane,
}

/// A turn of a lane that the end of an attempt brought about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneTurn {
    /// What.
    pub turn: Turn,
    /// The lane after it.
    pub lane: Lane,
}

/// The words of [`LaneEvent::what`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(missing_docs)] // the words say it
pub enum LaneEventKind {
    Paused,
    Resumed,
    Disabled,
    Enabled,
    /// The circuit opened.
    Opened,
    /// The circuit closed.
    Closed,
}

impl LaneEventKind {
    const ALL: [Self; 6] =
        [Self::Paused, Self::Resumed, Self::Disabled, Self::Enabled, Self::Opened, Self::Closed];

    /// The word in SQL and JSON.
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Paused => "paused",
            Self::Resumed => "resumed",
            Self::Disabled => "disabled",
            Self::Enabled => "enabled",
            Self::Opened => "opened",
            Self::Closed => "closed",
        }
    }

    /// The kind that `word` names.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }

    /// The kind that this one ends.
    pub const fn ends(self) -> Option<Self> {
        match self {
            Self::Resumed => Some(Self::Paused),
            Self::Enabled => Some(Self::Disabled),
            Self::Closed => Some(Self::Opened),
            Self::Paused | Self::Disabled | Self::Opened => None,
        }
    }
}

/// What befell a lane, or a tenant's scheduling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaneEvent {
    /// Which lane; `None` is the tenant's scheduling.
    pub lane: Option<LaneId>,
    /// When.
    pub at: Timestamp,
    /// What.
    pub what: LaneEventKind,
    /// Who.
    pub actor: Box<str>,
    /// Why.
    pub reason: Box<str>,
}

/// What a command makes of a lane, if that changes it.
pub(crate) fn steered(lane: &Lane, command: &LaneCommand, now: Timestamp) -> Option<Lane> {
    let hold = || Hold { at: now, reason: command.reason.clone(), by: command.actor.clone() };
    match command.act {
        LaneAct::Pause => lane.paused(hold(), now),
        LaneAct::Resume => lane.resumed(now),
        LaneAct::Disable => lane.disabled(hold(), now),
        LaneAct::Enable => lane.enabled(now),
    }
}

/// What a command makes of a tenant's scheduling: `None` if that changes nothing. Errors: it can't do that.
pub(crate) fn scheduling_steered(
    scheduling: &Scheduling,
    command: &LaneCommand,
    now: Timestamp,
) -> Result<Option<Scheduling>, ()> {
    match command.act {
        LaneAct::Pause => {
            let hold = Hold { at: now, reason: command.reason.clone(), by: command.actor.clone() };
            Ok(scheduling.paused(hold))
        }
        LaneAct::Resume => Ok(scheduling.resumed(now)),
        LaneAct::Disable | LaneAct::Enable => Err(()),
    }
}

/// The event that a command leaves.
pub(crate) fn event_of(command: &LaneCommand, now: Timestamp) -> LaneEvent {
    let what = match command.act {
        LaneAct::Pause => LaneEventKind::Paused,
        LaneAct::Resume => LaneEventKind::Resumed,
        LaneAct::Disable => LaneEventKind::Disabled,
        LaneAct::Enable => LaneEventKind::Enabled,
    };
    let (actor, reason) = (command.actor.clone(), command.reason.clone());
    LaneEvent { lane: command.lane, at: now, what, actor, reason }
}

/// The event that a turn leaves, if it does: a circuit that stays open after a probe is no news.
pub(crate) fn event_of_turn(id: LaneId, lane: &Lane, turn: Turn, now: Timestamp) -> Option<LaneEvent> {
    let event = |what, reason: &str| LaneEvent {
        lane: Some(id),
        at: now,
        what,
        actor: "posthaste".into(),
        reason: reason.into(),
    };
    match turn {
        Turn::CircuitOpened { trips: 1, .. } => {
            let reason = match lane.health.refusals {
                0 => format!("{} failures in a row", lane.health.failures),
                refusals => format!("{refusals} answers of 401 or 403 in a row"),
            };
            Some(event(LaneEventKind::Opened, &reason))
        }
        Turn::CircuitOpened { .. } | Turn::ProbeLost => None,
        Turn::CircuitClosed => Some(event(LaneEventKind::Closed, "the receiver answers again")),
        Turn::Disabled => {
            let reason = lane.disabled.as_ref().map_or("", |hold| &hold.reason);
            Some(event(LaneEventKind::Disabled, reason))
        }
    }
}

/// What a step of a job says of its lane's receiver, if it ended an attempt.
pub(crate) fn sign_after(command: &JobCommand, change: &Change) -> Option<(JobId, Sign, LaneRules)> {
    if change.ended.is_none() && change.nature != Nature::Late {
        return None;
    }
    let Job { id, kind, .. } = &change.job;
    Some((*id, sign_of(&command.command, *kind)?, command.policy.lane))
}

/// How many bytes commands hold.
pub(crate) fn weight_of(commands: &[LaneCommand]) -> usize {
    commands.iter().map(|command| 512 + command.reason.len() + command.actor.len()).sum()
}
