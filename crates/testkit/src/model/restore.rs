//! Model A2: a store that goes back in time (restore from a backup, fail-over to a copy that misses the last commits).
//!
//! Attempt numbers are then given a second time; what keeps the two apart is the epoch in the fence, which every
//! restore raises.

use posthaste_core::{Answer, Command, DurationMs, Entry, OnUnknown, Start};

use super::{
    checker::{
        Edge, Model,
        Nature::{self, Fair, Fault},
        Step,
    },
    desk::{Allowance, Desk, Horizon, Receiver, Store},
    job_row::JobState,
    mutants::SenderMutant,
    property::{Properties, Property, Witness, Witnesses},
    rules::{Real, SenderRules},
    wire::Said,
};

/// Leases over all epochs.
const GRANTS: usize = 3;

/// A worker that was given an attempt, whatever became of the store's memory of it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Grant {
    epoch: u8,
    attempt: u8,
    alive: bool,
    acted: bool,
}

/// What a backup holds.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Copy {
    store: Store,
    /// The grant (from 1) that the last attempt was given to; only promises read it.
    holder: u8,
}

/// One state of the world.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RestoreState {
    now: Copy,
    backup: Option<Copy>,
    restored: bool,
    grants: [Option<Grant>; GRANTS],
}

/// The model: see the module.
pub struct RestoreModel {
    desk: Desk,
}

impl RestoreModel {
    /// Over the real function.
    pub fn new() -> Self {
        Self::with(Box::new(Real))
    }

    /// Over a function with one fault.
    pub fn mutated(mutant: SenderMutant) -> Self {
        Self::with(Box::new(mutant))
    }

    fn with(rules: Box<dyn SenderRules>) -> Self {
        let enough = u8::try_from(GRANTS).expect("a handful") + 1;
        let allowance = Allowance { failures: enough, lost_leases: enough };
        Self { desk: Desk::new(rules, allowance, OnUnknown::Retry, Receiver::Bare) }
    }

    fn ask(&self, state: &RestoreState, command: &Command) -> (RestoreState, Result<Answer, ()>, Properties) {
        let done = self.desk.ask(&state.now.store, command, Entry::Unknown, Horizon::Ahead);
        let now = Copy { store: done.store, ..state.now };
        (RestoreState { now, ..state.clone() }, done.reply.map_err(|_| ()), done.broken)
    }

    fn backups(state: &RestoreState, edges: &mut Edges<'_>) {
        match state.backup {
            None => {
                let to = RestoreState { backup: Some(state.now), ..state.clone() };
                edges.add("backup taken", 0, Fault, to, Properties::default());
            }
            Some(backup) if !state.restored => {
                let mut to = RestoreState { now: backup, restored: true, ..state.clone() };
                to.now.store.epoch = state.now.store.epoch + 1;
                edges.add("restored", 0, Fault, to, Properties::default());
            }
            Some(_) => {}
        }
    }

    fn store(&self, state: &RestoreState, edges: &mut Edges<'_>) {
        let mut to = state.clone();
        let job = &mut to.now.store.job;
        let (what, changed) = match job.state {
            JobState::Scheduled { due: false } => ("due", JobState::Scheduled { due: true }),
            JobState::Retryable { due: false, next } => ("due", JobState::Retryable { due: true, next }),
            JobState::Leased { started, .. } => {
                ("lease runs out", JobState::Leased { started, expired: true })
            }
            unchanged @ (JobState::Scheduled { .. }
            | JobState::Retryable { .. }
            | JobState::Committed
            | JobState::DeadLettered(_)
            | JobState::Cancelled) => ("", unchanged),
        };
        job.state = changed;
        edges.add(what, 0, Fair, to, Properties::default());
        let (to, _, broken) = self.ask(state, &Command::Expire);
        edges.add("expire", state.now.store.job.attempt, Fair, to, broken);
        self.lease(state, edges);
    }

    fn lease(&self, state: &RestoreState, edges: &mut Edges<'_>) {
        let Some(free) = state.grants.iter().position(Option::is_none) else {
            return;
        };
        let command = Command::Lease {
            worker: "w".into(),
            lease_for: DurationMs::from_secs(30),
            deadline_after: DurationMs::from_secs(60),
            starts: Start::WithLease,
        };
        let (mut to, reply, mut broken) = self.ask(state, &command);
        if let Ok(Answer::Leased { fence, .. }) = reply {
            let epoch = u8::try_from(fence.epoch.0).expect("a handful");
            let attempt = u8::try_from(fence.attempt.get()).expect("a handful");
            let given = |grant: &Grant| (grant.epoch, grant.attempt) == (epoch, attempt);
            broken.note(Property::NumberUnique, state.grants.iter().flatten().any(given));
            to.grants[free] = Some(Grant { epoch, attempt, alive: true, acted: false });
            to.now.holder = u8::try_from(free + 1).expect("a handful");
        }
        edges.add("lease", to.now.store.job.attempt, Fair, to, broken);
    }

    fn worker(&self, state: &RestoreState, place: usize, edges: &mut Edges<'_>) {
        let Some(grant) = state.grants[place].filter(|grant| grant.alive) else {
            return;
        };
        let number = u8::try_from(place + 1).expect("a handful");
        let changed = |changed: Grant| {
            let mut to = state.clone();
            to.grants[place] = Some(changed);
            to
        };
        let none = Properties::default();
        edges.add("worker of grant dies", number, Fault, changed(Grant { alive: false, ..grant }), none);
        edges.add("EFFECT by grant", number, Fair, changed(Grant { acted: true, ..grant }), none);
        let (said, what) = if grant.acted {
            (Said::Committed, "commit of grant arrives")
        } else {
            (Said::Nothing, "fail of grant arrives")
        };
        let command = said.command(&*self.desk.rules, grant.epoch, grant.attempt);
        let (to, _, mut broken) = self.ask(state, &command);
        let (was, is) = (state.now.store.job, to.now.store.job);
        let others = state.now.holder != number && is.state != was.state;
        broken.note(Property::StaleChangesNothing, others);
        broken.note(Property::HolderCommits, others && is.state == JobState::Committed);
        edges.add(what, number, Fair, to, broken);
    }
}

impl Default for RestoreModel {
    fn default() -> Self {
        Self::new()
    }
}

struct Edges<'a> {
    from: &'a RestoreState,
    list: &'a mut Vec<Edge<RestoreState>>,
}

impl Edges<'_> {
    fn add(&mut self, what: &'static str, number: u8, nature: Nature, to: RestoreState, broken: Properties) {
        if to != *self.from || !broken.is_empty() {
            self.list.push(Edge { step: Step { what, number }, to, nature, broken });
        }
    }
}

impl Model for RestoreModel {
    type State = RestoreState;

    fn initial(&self) -> RestoreState {
        let now = Copy { store: Store::NEW, holder: 0 };
        RestoreState { now, backup: None, restored: false, grants: [None; GRANTS] }
    }

    fn edges(&self, state: &RestoreState, edges: &mut Vec<Edge<RestoreState>>) {
        let mut edges = Edges { from: state, list: edges };
        Self::backups(state, &mut edges);
        self.store(state, &mut edges);
        for place in 0..GRANTS {
            self.worker(state, place, &mut edges);
        }
    }

    fn broken(&self, state: &RestoreState) -> Properties {
        let acted = state.grants.iter().flatten().any(|grant| grant.acted);
        let committed = state.now.store.job.state == JobState::Committed;
        Properties::of((committed && !acted).then_some(Property::CommittedIsTrue))
    }

    fn asked(&self) -> Properties {
        Properties::all()
    }

    fn is_good(&self, state: &RestoreState) -> bool {
        state.now.store.job.state == JobState::Committed || state.grants.iter().all(Option::is_some)
    }

    fn witnessed(&self, state: &RestoreState) -> Witnesses {
        let committed = state.now.store.job.state == JobState::Committed;
        let mut seen = Witnesses::default();
        seen.note(Witness::Committed, committed);
        seen.note(Witness::Restored, committed && state.restored);
        seen
    }

    fn expected(&self) -> Witnesses {
        Witnesses::of([Witness::Committed, Witness::Restored])
    }

    fn show(&self, state: &RestoreState) -> String {
        let job = &state.now.store.job;
        format!(
            "epoch {}, {:?}, attempt {}, grants {:?}",
            state.now.store.epoch, job.state, job.attempt, state.grants
        )
    }
}
