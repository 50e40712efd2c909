//! Model B: the receiver's ledger. One key, three claimers; a handler that dies may be started again by a redelivery.
//! Every decision is the real `admit`, `complete`, `fail`, `extend` or `reset`.

mod claimer;
mod messages;
mod state;

use posthaste_core::ledger::OnExpired;

use super::{
    checker::{Edge, Model, Nature, Step},
    ledger_mutants::LedgerMutant,
    ledger_row::EntryRow,
    property::{Properties, Property, Witness, Witnesses},
    rules::{LedgerRules, Real},
};
pub use state::LedgerState;
use state::{GRANTS, Phase};

/// Where claim, effect and complete stand towards each other.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    /// All three in one transaction: the row is locked from claim to commit.
    InOneTransaction,
    /// The claim commits first; effect and complete commit together.
    InTwoTransactions,
    /// The claim commits, the effect is real at once and elsewhere, complete is a message.
    OverHttp,
}

/// When done entries go.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Retention {
    /// Never.
    Keeps,
    /// When no handler runs and no delivery can come any more.
    AfterTheLast,
    /// While deliveries can still come.
    TooEarly,
    /// The same, but claims read the archive.
    Archive,
}

/// What else a run covers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum LedgerExtra {
    /// A handler that misses the answer to its complete says "failed": against the contract.
    DishonestFail,
    /// An operator resets the entry; the request may arrive twice.
    Resets,
    /// The answer to a claim is lost and the claim is repeated by its name.
    LostClaims,
    /// The effect takes the key along: a second one is a no-op.
    KeyDownstream,
}

/// Bounds and modes of a run.
#[derive(Clone, Debug)]
pub struct LedgerConfig {
    /// Where the transactions are.
    pub mode: Mode,
    /// What becomes of a grant that runs out.
    pub on_expired: OnExpired,
    /// Times that each of the three handlers is started at most: 1 or 2.
    pub runs: u8,
    /// When done entries go.
    pub retention: Retention,
    /// What else is covered.
    pub extras: Vec<LedgerExtra>,
}

/// The model: see the module.
pub struct LedgerModel {
    config: LedgerConfig,
    rules: Box<dyn LedgerRules>,
}

impl LedgerModel {
    /// Over the real functions.
    pub fn new(config: LedgerConfig) -> Self {
        Self { config, rules: Box::new(Real) }
    }

    /// Over functions with one fault.
    pub fn mutated(config: LedgerConfig, mutant: LedgerMutant) -> Self {
        Self { config, rules: Box::new(mutant) }
    }

    fn covers(&self, extra: LedgerExtra) -> bool {
        self.config.extras.contains(&extra)
    }

    fn row(&self, entry: &posthaste_core::ledger::Entry) -> EntryRow {
        EntryRow::of_core(entry, self.rules.settled_entries_expire())
    }

    /// The clock runs on a grant in force; on a settled entry only for a fault that reads it.
    fn lease_runs_out(&self, state: &LedgerState, edges: &mut Edges<'_>) {
        let Some(entry) = state.entry.filter(|entry| !entry.expired) else {
            return;
        };
        let runs = entry.status == posthaste_core::ledger::Status::InProgress;
        if runs || self.rules.settled_entries_expire() {
            let entry = Some(EntryRow { expired: true, ..entry });
            edges.add("lease runs out", 0, Nature::Fair, LedgerState { entry, live: 0, ..state.clone() });
        }
    }
}

/// Collects the edges of one state, without those that change and break nothing.
struct Edges<'a> {
    from: &'a LedgerState,
    list: &'a mut Vec<Edge<LedgerState>>,
}

impl Edges<'_> {
    fn add(&mut self, what: &'static str, number: u8, nature: Nature, to: LedgerState) {
        self.add_checked(what, number, nature, to, Properties::default());
    }

    fn add_checked(
        &mut self,
        what: &'static str,
        number: u8,
        nature: Nature,
        mut to: LedgerState,
        broken: Properties,
    ) {
        to.rename_fences();
        if to != *self.from || !broken.is_empty() {
            self.list.push(Edge { step: Step { what, number }, to, nature, broken });
        }
    }
}

impl Model for LedgerModel {
    type State = LedgerState;

    fn initial(&self) -> LedgerState {
        LedgerState::new()
    }

    fn edges(&self, state: &LedgerState, edges: &mut Vec<Edge<LedgerState>>) {
        let mut edges = Edges { from: state, list: edges };
        self.lease_runs_out(state, &mut edges);
        for place in 0..state.claimers.len() {
            self.claimer(state, place, &mut edges);
        }
        for grant in 1..=state.grants {
            self.messages(state, grant, &mut edges);
        }
        self.retention(state, &mut edges);
        self.reset(state, &mut edges);
    }

    fn broken(&self, state: &LedgerState) -> Properties {
        let mut broken = Properties::default();
        broken.note(Property::EffectOnce, state.effects > 1 + state.resets_of_done);
        let done = state.entry.is_some_and(EntryRow::is_committed);
        let backed = state.result > 0 && state.effect_by & (1 << (state.result - 1)) != 0;
        broken.note(Property::DoneIsTrue, done && !backed);
        broken.note(Property::ResetOnce, state.reset_hits > 1);
        broken
    }

    fn asked(&self) -> Properties {
        Properties::all()
    }

    fn is_good(&self, state: &LedgerState) -> bool {
        let done = state.entry.is_some_and(EntryRow::is_committed);
        // A held entry waits for a person, by design.
        let held = state.entry.is_some_and(|entry| entry.expired && entry.on_expired == OnExpired::Hold);
        let spent = state.claimers.iter().all(|claimer| claimer.runs >= self.config.runs);
        done || held || spent || state.archived || usize::from(state.grants) >= GRANTS
    }

    fn witnessed(&self, state: &LedgerState) -> Witnesses {
        let mut seen = Witnesses::default();
        seen.note(Witness::Duplicate, state.claimers.iter().any(|claimer| claimer.phase == Phase::Duplicate));
        seen.or(state.seen)
    }

    fn expected(&self) -> Witnesses {
        let mut expected = Witnesses::of([Witness::Duplicate, Witness::RetryAfterFail]);
        let retake =
            self.config.mode != Mode::InOneTransaction && self.config.on_expired == OnExpired::Retake;
        expected.note(Witness::Takeover, retake);
        expected.note(Witness::Rollback, retake && self.config.mode == Mode::InTwoTransactions);
        expected
    }

    fn show(&self, state: &LedgerState) -> String {
        state.show()
    }
}
