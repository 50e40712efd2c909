//! Model C: the whole. One job of the sender, zombies included, its requests, a receiver that keeps a ledger, replay,
//! retention, reset, cancel and explain. A proxy may repeat one request. Every decision is the real `transition` or
//! the real ledger function.

mod operator;
mod promises;
mod receiver;
mod sender;
mod state;

use posthaste_core::{
    Command, Entry, OnUnknown,
    ledger::{OnExpired, Outcome, Status},
};

use super::{
    checker::{Edge, Model, Nature, Step},
    desk::{Allowance, Desk, Done, Horizon, Receiver},
    ledger_mutants::LedgerMutant,
    mutants::SenderMutant,
    property::{Properties, Witness, Witnesses},
    rules::{LedgerRules, Real, SenderRules},
};
pub use state::State as WholeState;
use state::State;

/// Where the receiver's effect stands towards its ledger.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effects {
    /// Effect and complete commit together.
    WithComplete,
    /// The effect is real at once, complete follows; a grant that ran out is held for a person.
    BeforeCompleteHeld,
    /// The same, but a grant that ran out is taken over: known to double.
    BeforeCompleteRetaken,
}

/// Whose the ledger is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Ledger {
    /// Ours: the sender's decisions see the entry.
    Ours,
    /// The receiver's own: all that is known is that it guards the key.
    Theirs,
}

/// When a done entry goes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Pin {
    /// When the job is committed or cancelled and no request is on its way.
    UntilSettled,
    /// When the job is not live and no request is on its way: a dead letter does not pin its entry.
    UntilNotLive,
}

/// What else a run covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum WholeExtra {
    /// A proxy repeats one request.
    Proxy,
    /// Handlers refuse for good.
    Rejects,
    /// Handlers find that the effect no longer applies.
    Guards,
}

/// Bounds of a run.
#[derive(Clone, Debug)]
pub struct WholeConfig {
    /// Where the effect stands.
    pub effects: Effects,
    /// Whose the ledger is.
    pub ledger: Ledger,
    /// When done entries go.
    pub pin: Pin,
    /// Attempts at most: 1 to 4.
    pub attempts: u8,
    /// Budgets.
    pub allowance: Allowance,
    /// Replays at most.
    pub replays: u8,
    /// Cancels at most.
    pub cancels: u8,
    /// Resets of a done entry at most.
    pub resets: u8,
    /// What else is covered.
    pub extras: Vec<WholeExtra>,
}

/// The model: see the module.
pub struct WholeModel {
    config: WholeConfig,
    desk: Desk,
    ledger: Box<dyn LedgerRules>,
}

impl WholeModel {
    /// Over the real functions.
    pub fn new(config: WholeConfig) -> Self {
        Self::with(config, Box::new(Real), Box::new(Real))
    }

    /// Over functions with one fault in the sender.
    pub fn mutated(config: WholeConfig, mutant: SenderMutant) -> Self {
        Self::with(config, Box::new(mutant), Box::new(Real))
    }

    /// Over functions with one fault in the ledger.
    pub fn mutated_ledger(config: WholeConfig, mutant: LedgerMutant) -> Self {
        Self::with(config, Box::new(Real), Box::new(mutant))
    }

    fn with(config: WholeConfig, sender: Box<dyn SenderRules>, ledger: Box<dyn LedgerRules>) -> Self {
        let desk = Desk::new(sender, config.allowance, OnUnknown::Retry, Receiver::GuardsTheKey);
        Self { config, desk, ledger }
    }

    fn covers(&self, extra: WholeExtra) -> bool {
        self.config.extras.contains(&extra)
    }

    fn on_expired(&self) -> OnExpired {
        match self.config.effects {
            Effects::WithComplete | Effects::BeforeCompleteRetaken => OnExpired::Retake,
            Effects::BeforeCompleteHeld => OnExpired::Hold,
        }
    }

    /// What the sender knows of the entry.
    fn entry_known(&self, state: &State) -> Entry {
        match (self.config.ledger, state.entry) {
            (Ledger::Theirs, _) => Entry::Unknown,
            (Ledger::Ours, Some(entry)) if entry.status == Status::Done => {
                if entry.outcome == Some(Outcome::Cancelled) { Entry::DoneCancelled } else { Entry::Done }
            }
            (Ledger::Ours, _) => Entry::NotDone,
        }
    }

    fn ask(&self, state: &State, command: &Command) -> (State, Done) {
        let done = self.desk.ask(&state.store, command, self.entry_known(state), Horizon::Ahead);
        (State { store: done.store, ..state.clone() }, done)
    }
}

/// Collects the edges of one state, without those that change and break nothing.
struct Edges<'a> {
    from: &'a State,
    list: &'a mut Vec<Edge<State>>,
}

impl Edges<'_> {
    fn add(&mut self, what: &'static str, number: u8, nature: Nature, to: State) {
        self.add_checked(what, number, nature, to, Properties::default());
    }

    fn add_checked(
        &mut self,
        what: &'static str,
        number: u8,
        nature: Nature,
        mut to: State,
        broken: Properties,
    ) {
        to.tidy();
        if to != *self.from || !broken.is_empty() {
            self.list.push(Edge { step: Step { what, number }, to, nature, broken });
        }
    }
}

impl Model for WholeModel {
    type State = State;

    fn initial(&self) -> State {
        State::new()
    }

    fn edges(&self, state: &State, edges: &mut Vec<Edge<State>>) {
        let mut edges = Edges { from: state, list: edges };
        self.time_and_reaper(state, &mut edges);
        self.lease(state, &mut edges);
        for attempt in 1..=state.store.job.attempt {
            self.sender(state, attempt, &mut edges);
            self.reports(state, attempt, &mut edges);
        }
        for place in 0..state.requests.len() {
            self.receiver(state, place, &mut edges);
        }
        self.entry_lease_runs_out(state, &mut edges);
        self.retention(state, &mut edges);
        self.operator(state, &mut edges);
    }

    fn broken(&self, state: &State) -> Properties {
        self.broken_in(state)
    }

    fn asked(&self) -> Properties {
        Properties::all()
    }

    fn is_good(&self, state: &State) -> bool {
        self.is_settled(state)
    }

    fn witnessed(&self, state: &State) -> Witnesses {
        Self::seen_in(state)
    }

    fn expected(&self) -> Witnesses {
        Witnesses::of([
            Witness::Committed,
            Witness::Duplicate,
            Witness::Busy,
            Witness::DeadLettered,
            Witness::DeadWithEffect,
            Witness::Replayed,
        ])
    }

    fn show(&self, state: &State) -> String {
        state.show()
    }
}
