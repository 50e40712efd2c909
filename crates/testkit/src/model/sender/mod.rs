//! Model A: one job of the sender, its attempts, their requests, one bare subscriber (every request that is processed
//! is one effect: no ledger), an operator, and the engine's sweeps. Every decision is the real `transition`.
//!
//! Each attempt has its own worker process and request, so zombies (a process that lost its lease and goes on) are
//! covered; at most two processes are alive at once. Time is chance. Reports stay in the net for ever once sent:
//! they arrive late, repeated and in any order.

mod operator;
mod promises;
mod state;
mod store;
mod worker;

use posthaste_core::{Command, DurationMs, Entry, OnUnknown, Start};

use super::{
    checker::{Edge, Model, Nature, Step},
    desk::{Allowance, Desk, Done, Horizon, Receiver},
    mutants::SenderMutant,
    property::{Properties, Property, Witness, Witnesses},
    rules::{Real, SenderRules},
};
pub use state::State;

/// What a run covers beside the bare course of a job.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Extra {
    /// Receivers answer 4xx and 5xx, connections are refused.
    Errors,
    /// Workers find that the work no longer applies.
    Guards,
    /// Workers say "in progress, effect possible".
    BusyUnknown,
    /// A client whose ack timed out sends "failed" as well: its word is no evidence.
    ConfusedClient,
    /// Answers to reports are remembered, and must not turn from yes to no.
    Answers,
    /// An operator's request for a replay may arrive twice.
    RepeatedReplay,
    /// The horizon may have passed at any decision.
    Horizon,
    /// A second reaper writes what it selected some time before.
    SlowReaper,
    /// An operator reads the receiver's data and settles what it finds.
    SettledByHand,
}

/// What becomes of a look-up's answer. It may always be written down late.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LookUps {
    /// It is written down once.
    WrittenOnce,
    /// It may be written down again later, after other attempts.
    WrittenAgain,
}

/// Bounds and policies of a run.
#[derive(Clone, Debug)]
pub struct SenderConfig {
    /// What to do when an attempt may have had its effect.
    pub on_unknown: Unknown,
    /// Whether a fenced Start precedes the first byte.
    pub start: Start,
    /// Attempts at most: 1 to 5.
    pub attempts: u8,
    /// Budgets.
    pub allowance: Allowance,
    /// Replays at most.
    pub replays: u8,
    /// Resends at most.
    pub resends: u8,
    /// Releases at most.
    pub releases: u8,
    /// Cancels at most.
    pub cancels: u8,
    /// Times that the engine gives up at most.
    pub abandons: u8,
    /// How look-ups are made.
    pub look_ups: LookUps,
    /// What else is covered.
    pub extras: Vec<Extra>,
}

/// A policy's name.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unknown {
    /// Try again.
    Retry,
    /// Look first.
    Reconcile,
    /// Leave it to a person.
    DeadLetter,
}

/// The model: see the module.
pub struct SenderModel {
    config: SenderConfig,
    desk: Desk,
}

impl SenderModel {
    /// Over the real functions.
    pub fn new(config: SenderConfig) -> Self {
        Self::with(config, Box::new(Real))
    }

    /// Over functions with one fault.
    pub fn mutated(config: SenderConfig, mutant: SenderMutant) -> Self {
        Self::with(config, Box::new(mutant))
    }

    fn with(config: SenderConfig, rules: Box<dyn SenderRules>) -> Self {
        let on_unknown = match config.on_unknown {
            Unknown::Retry => OnUnknown::Retry,
            Unknown::Reconcile => OnUnknown::Reconcile { settle: DurationMs::from_secs(1) },
            Unknown::DeadLetter => OnUnknown::DeadLetter,
        };
        let desk = Desk::new(rules, config.allowance, on_unknown, Receiver::Bare);
        Self { config, desk }
    }

    fn covers(&self, extra: Extra) -> bool {
        self.config.extras.contains(&extra)
    }

    fn fenced(&self) -> bool {
        self.config.start == Start::Fenced
    }

    /// Carries out `command` on a bare subscriber's job: there is no ledger to ask.
    fn ask(&self, state: &State, command: &Command) -> (State, Done) {
        self.ask_at(state, command, Horizon::Ahead)
    }

    fn ask_at(&self, state: &State, command: &Command, horizon: Horizon) -> (State, Done) {
        let done = self.desk.ask(&state.store, command, Entry::Unknown, horizon);
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

impl Model for SenderModel {
    type State = State;

    fn initial(&self) -> State {
        State::new()
    }

    fn edges(&self, state: &State, edges: &mut Vec<Edge<State>>) {
        let mut edges = Edges { from: state, list: edges };
        self.time_and_reaper(state, &mut edges);
        self.lease(state, &mut edges);
        for attempt in 1..=state.attempts_given() {
            self.worker(state, attempt, &mut edges);
            self.receiver(state, attempt, &mut edges);
            self.reports(state, attempt, &mut edges);
        }
        self.look_up(state, &mut edges);
        self.settle(state, &mut edges);
        self.operator(state, &mut edges);
    }

    fn broken(&self, state: &State) -> Properties {
        self.broken_in(state)
    }

    fn asked(&self) -> Properties {
        let confused = self.covers(Extra::ConfusedClient);
        let once = self.config.on_unknown != Unknown::Retry && self.config.resends == 0 && !confused;
        let mut waived = Properties::default();
        waived.note(Property::AtMostOnce, !once);
        waived.note(Property::PolicyHolds, !once);
        // A client that says "failed" of what it did makes liars of all who believe it.
        waived.note(Property::ExplainInterval, confused);
        waived.note(Property::CancelIsTrue, confused);
        waived.note(Property::ReplaySafe, confused);
        Properties::all().without(waived)
    }

    fn is_good(&self, state: &State) -> bool {
        self.is_settled(state)
    }

    fn witnessed(&self, state: &State) -> Witnesses {
        Self::seen_in(state)
    }

    fn expected(&self) -> Witnesses {
        let retry = self.config.on_unknown == Unknown::Retry && self.config.allowance.lost_leases > 1;
        let mut expected = Witnesses::of([Witness::Committed, Witness::LateCommit, Witness::DeadLettered]);
        expected.note(Witness::TwoEffects, retry);
        expected.note(Witness::ZombieSends, retry);
        expected.note(Witness::Cancelled, self.config.cancels > 0);
        expected.note(Witness::Resent, self.config.resends > 0);
        expected.note(Witness::LookedUp, self.config.on_unknown == Unknown::Reconcile);
        expected
    }

    fn show(&self, state: &State) -> String {
        state.show()
    }
}
