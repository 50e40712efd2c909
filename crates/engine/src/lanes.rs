//! Pausing, resuming, enabling; and what this process knows of lanes that are held. Rows B10, D4.
//!
//! The rows are the truth: a lease asks them. What is known here spares asking for nothing, and is shown.

use std::collections::HashMap;

use parking_lot::RwLock;
use posthaste_core::{
    DestinationId, Lane, Scheduling, TenantId, Timestamp,
    lane::{Circuit, Hold, Turn},
    limits,
};
use posthaste_store::{
    DestinationKind, DestinationRow, LaneAct, LaneCommand, LaneTurn, ManagedBy, NewDestination, Steered,
};

use crate::{Engine, EngineError, directory::Entry, heap::LaneKey, notice::Notice};

/// What is paused or resumed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PauseScope {
    /// The tenant's scheduling: schedules don't fire, and work that becomes due is not begun.
    Scheduling,
    /// A queue, an endpoint or a source.
    Destination {
        /// What it is.
        kind: DestinationKind,
        /// Which.
        id: DestinationId,
    },
}

/// Who asks, and why.
#[derive(Clone, Debug)]
pub struct Why {
    /// Why, for ever shown; 1 to [`limits::REASON_BYTES_MAX`] bytes.
    pub reason: Box<str>,
    /// Who.
    pub actor: Box<str>,
}

/// What became of a pause, a resume, or an enabling.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SteerOutcome {
    /// Whether it changed anything: a second pause doesn't.
    pub changed: bool,
    /// What still holds it.
    pub held: Held,
}

/// What holds a lane, as far as people are told.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Held {
    /// Somebody paused it.
    pub paused: Option<Hold>,
    /// It was disabled by a rule or by its receiver.
    pub disabled: Option<Hold>,
    /// Whether attempts go to the receiver.
    pub circuit: Circuit,
}

impl Held {
    fn of(lane: &Lane) -> Self {
        Self { paused: lane.paused.clone(), disabled: lane.disabled.clone(), circuit: lane.circuit }
    }
}

/// Why a lane need not be asked for work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Blocked {
    /// Somebody must act first.
    UntilActed,
    /// Its circuit is open.
    Until(Timestamp),
}

/// The lanes that are held, and tenants whose scheduling is.
#[derive(Default)]
pub(crate) struct LaneBook {
    lanes: RwLock<HashMap<LaneKey, Held>>,
    scheduling: RwLock<HashMap<TenantId, Hold>>,
    /// Held while somebody steers, or all is read anew: so the last word on a pause is the store's last word.
    steering: tokio::sync::Mutex<()>,
}

impl LaneBook {
    pub(crate) fn held(&self, lane: LaneKey) -> Held {
        self.lanes.read().get(&lane).cloned().unwrap_or_default()
    }

    pub(crate) fn blocked(&self, lane: LaneKey) -> Option<Blocked> {
        let lanes = self.lanes.read();
        let held = lanes.get(&lane)?;
        if held.paused.is_some() || held.disabled.is_some() {
            return Some(Blocked::UntilActed);
        }
        held.circuit.held().map(|(_, until)| Blocked::Until(until))
    }

    /// Changes one aspect of what holds a lane; answers that come out of order don't undo each other's.
    fn note(&self, lane: LaneKey, change: impl FnOnce(&mut Held)) {
        let mut lanes = self.lanes.write();
        let held = lanes.entry(lane).or_default();
        change(held);
        if *held == Held::default() {
            lanes.remove(&lane);
        }
    }

    fn note_scheduling(&self, tenant: TenantId, scheduling: &Scheduling) {
        let mut all = self.scheduling.write();
        match &scheduling.paused {
            Some(hold) => drop(all.insert(tenant, hold.clone())),
            None => drop(all.remove(&tenant)),
        }
    }

    fn knows_nothing(&self) -> bool {
        self.lanes.read().is_empty()
    }
}

impl Engine {
    /// Reads what holds lanes anew.
    pub(crate) async fn read_lanes(&self) -> Result<(), EngineError> {
        let _steering = self.lane_book.steering.lock().await;
        let lanes = self.store.lanes().await?;
        let held = lanes.into_iter().filter_map(|view| {
            let held = Held::of(&view.lane);
            (held != Held::default()).then_some(((view.tenant, view.id), held))
        });
        *self.lane_book.lanes.write() = held.collect();
        for (tenant, scheduling) in self.store.scheduling().await? {
            self.lane_book.note_scheduling(tenant, &scheduling);
        }
        Ok(())
    }

    /// The same, if there is something to be wrong about.
    pub(crate) async fn check_lanes(&self) {
        if self.lane_book.knows_nothing() {
            return;
        }
        if let Err(error) = self.read_lanes().await {
            tracing::warn!(event = "lanes_unread", error = %error);
        }
    }

    /// What holds a destination or source.
    pub fn held(&self, entry: &Entry) -> Held {
        self.held_at(&entry.row)
    }

    /// The same, of a row.
    pub fn held_at(&self, row: &DestinationRow) -> Held {
        self.lane_book.held((row.tenant, row.lane))
    }

    /// Who paused the tenant's scheduling, if somebody did: then no schedule fires.
    pub fn scheduling_pause(&self, tenant: TenantId) -> Option<Hold> {
        self.lane_book.scheduling.read().get(&tenant).cloned()
    }

    /// Pauses: nothing new begins, what runs may finish, and nothing is lost. A second pause changes nothing.
    ///
    /// Durability: on return it is stored. Cancel: dropping it may leave it paused.
    pub async fn pause(
        &self,
        tenant: TenantId,
        scope: &PauseScope,
        why: Why,
    ) -> Result<SteerOutcome, EngineError> {
        self.steer(tenant, scope, LaneAct::Pause, why).await
    }

    /// Resumes: what became due meanwhile begins in order, within the lane's limits. One resume ends the pause, however
    /// often it was paused. Queues and endpoints that were paused by themselves stay so.
    ///
    /// Durability: on return it is stored. Cancel: dropping it may leave it resumed.
    pub async fn resume(
        &self,
        tenant: TenantId,
        scope: &PauseScope,
        why: Why,
    ) -> Result<SteerOutcome, EngineError> {
        self.steer(tenant, scope, LaneAct::Resume, why).await
    }

    /// Enables an endpoint that was disabled by a rule, by its receiver or over the API; its circuit is closed, and its
    /// failures are forgotten. A file's own `enabled = false` is the file's to change.
    pub async fn enable_endpoint(
        &self,
        tenant: TenantId,
        id: &DestinationId,
        why: Why,
    ) -> Result<SteerOutcome, EngineError> {
        let scope = PauseScope::Destination { kind: DestinationKind::Endpoint, id: id.clone() };
        let row = self.destination_entry(tenant, DestinationKind::Endpoint, id)?.row;
        if !row.enabled && row.managed_by == ManagedBy::File {
            return Err(EngineError::ManagedByFile { id: id.to_string() });
        }
        let mut outcome = self.steer(tenant, &scope, LaneAct::Enable, why).await?;
        if !row.enabled {
            let mut config: serde_json::Map<String, serde_json::Value> = crate::manage::parsed(&row)?;
            config.remove("enabled");
            let config = serde_json::Value::Object(config).to_string();
            self.put(NewDestination {
                tenant,
                id: id.clone(),
                kind: row.kind,
                config: config.into(),
                managed_by: row.managed_by,
                enabled: true,
                owner: row.owner.clone(),
                must_be_new: false,
            })
            .await?;
            outcome.changed = true;
        }
        Ok(outcome)
    }

    /// The receiver asked for it: nothing more is sent until a person enables the endpoint.
    pub(crate) async fn disable_endpoint(&self, tenant: TenantId, id: &DestinationId, reason: &str) {
        let scope = PauseScope::Destination { kind: DestinationKind::Endpoint, id: id.clone() };
        let why = Why { reason: reason.into(), actor: "posthaste".into() };
        match self.steer(tenant, &scope, LaneAct::Disable, why).await {
            Ok(SteerOutcome { changed: true, .. }) => {
                let at = self.clock.now();
                self.notice(&Notice::EndpointDisabled {
                    tenant,
                    endpoint: id.clone(),
                    reason: reason.into(),
                    at,
                });
            }
            Ok(_) => {}
            Err(error) => tracing::error!(event = "disable_failed", endpoint = %id, error = %error),
        }
    }

    async fn steer(
        &self,
        tenant: TenantId,
        scope: &PauseScope,
        act: LaneAct,
        why: Why,
    ) -> Result<SteerOutcome, EngineError> {
        let reason = why.reason.trim();
        if reason.is_empty() || why.reason.len() > limits::REASON_BYTES_MAX {
            let problem = format!("1 to {} bytes; it is shown for ever", limits::REASON_BYTES_MAX);
            return Err(EngineError::invalid("reason", problem));
        }
        let lane = match scope {
            PauseScope::Scheduling => None,
            PauseScope::Destination { kind, id } => Some(self.destination_entry(tenant, *kind, id)?.row.lane),
        };
        let _steering = self.lane_book.steering.lock().await;
        let (reason, actor) = (Box::from(reason), why.actor.clone());
        let command = LaneCommand { tenant, lane, act, reason, actor };
        let steered = self.store.steer(vec![command]).await?.pop();
        let outcome = match (steered, lane) {
            (Some(Steered::Lane { changed, lane: now }), Some(lane)) => {
                let now = Held::of(&now);
                self.lane_book.note((tenant, lane), |held| match act {
                    LaneAct::Pause | LaneAct::Resume => held.paused.clone_from(&now.paused),
                    LaneAct::Disable => held.disabled.clone_from(&now.disabled),
                    LaneAct::Enable => {
                        held.disabled.clone_from(&now.disabled);
                        held.circuit = now.circuit;
                    }
                });
                SteerOutcome { changed, held: now }
            }
            (Some(Steered::Scheduling { changed, scheduling }), None) => {
                self.lane_book.note_scheduling(tenant, &scheduling);
                let held = Held { paused: scheduling.paused, ..Held::default() };
                SteerOutcome { changed, held }
            }
            (Some(_) | None, _) => return Err(EngineError::not_found("lane", &scope.name())),
        };
        tracing::info!(
            event = match act {
                LaneAct::Pause => "pause",
                LaneAct::Resume => "resume",
                LaneAct::Disable => "disable",
                LaneAct::Enable => "enable",
            },
            scope = scope.name(),
            changed = outcome.changed,
            actor = %why.actor,
        );
        if outcome.changed {
            self.after_steering(tenant, scope, lane.map(|lane| (tenant, lane))).await;
        }
        Ok(outcome)
    }

    /// Wakes whoever waits for what goes on. A lane that was held begins with one slot again.
    async fn after_steering(&self, tenant: TenantId, scope: &PauseScope, lane: Option<LaneKey>) {
        let Some(lane) = lane else {
            if self.scheduling_pause(tenant).is_none() {
                self.scheduling.look_again();
                self.wake_due(Some(tenant)).await;
            }
            return;
        };
        self.dispatcher.start_over(lane);
        if self.lane_book.blocked(lane).is_some() {
            return;
        }
        match scope {
            PauseScope::Destination { kind: DestinationKind::Source, .. } => self.dispatcher.wake_fan_out(),
            PauseScope::Destination { .. } | PauseScope::Scheduling => {
                self.wake_lane(lane.0, lane.1, Timestamp(i64::MIN));
            }
        }
    }

    /// What the end of an attempt meant for its lane.
    pub(crate) fn observe_turn(&self, lane: LaneKey, turned: &LaneTurn) {
        let now = Held::of(&turned.lane);
        self.lane_book.note(lane, |held| match turned.turn {
            Turn::CircuitOpened { .. } | Turn::CircuitClosed | Turn::ProbeLost => held.circuit = now.circuit,
            Turn::Disabled => held.disabled.clone_from(&now.disabled),
        });
        if turned.turn != Turn::ProbeLost {
            self.dispatcher.start_over(lane);
        }
        if let Some(opens_at) = turned.lane.opens_at() {
            self.dispatcher.note(lane, opens_at);
        }
        let Some(endpoint) = self.destination_of(lane.0, lane.1) else { return };
        let tenant = lane.0;
        match turned.turn {
            Turn::CircuitOpened { until, trips: 1 } => {
                let at = turned.lane.circuit.held().map_or(until, |(since, _)| since);
                self.notice(&Notice::CircuitOpened { tenant, endpoint, until, at });
            }
            Turn::CircuitClosed => {
                let at = self.clock.now();
                self.notice(&Notice::CircuitClosed { tenant, endpoint, at });
            }
            Turn::Disabled => {
                let Some(hold) = now.disabled else { return };
                self.notice(&Notice::EndpointDisabled { tenant, endpoint, reason: hold.reason, at: hold.at });
            }
            Turn::CircuitOpened { .. } | Turn::ProbeLost => {}
        }
    }

    /// The destination is gone, and with it what held it.
    pub(crate) fn forget_lane(&self, lane: LaneKey) {
        self.lane_book.note(lane, |held| *held = Held::default());
    }

    fn destination_entry(
        &self,
        tenant: TenantId,
        kind: DestinationKind,
        id: &DestinationId,
    ) -> Result<Entry, EngineError> {
        let directory = self.directory.load();
        let found = directory.find(tenant, id).filter(|entry| entry.row.kind == kind);
        found.cloned().ok_or_else(|| EngineError::not_found(kind.as_str(), id))
    }
}

impl PauseScope {
    fn name(&self) -> String {
        match self {
            Self::Scheduling => "scheduling".to_owned(),
            Self::Destination { kind, id } => format!("{} {id}", kind.as_str()),
        }
    }
}
