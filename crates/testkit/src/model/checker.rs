//! A small explicit-state checker: breadth first, so that every counterexample is a shortest one.
//!
//! Liveness: from every state that can be reached, a good one must be reachable by steps that are not faults. On a
//! finite graph that is the same as: every run with finitely many faults that is strongly fair to the remaining
//! steps ends in a good state.

use std::{collections::BTreeMap, fmt, hash::Hash};

use super::{
    property::{Properties, Property, Witnesses},
    report::{Report, Violation},
    table::Table,
};

/// What a step is called in a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// What happens.
    pub what: &'static str,
    /// To which attempt, grant or claimer; 0 if that says nothing.
    pub number: u8,
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.number {
            0 => f.write_str(self.what),
            number => write!(f, "{}({number})", self.what),
        }
    }
}

/// Whether a step may be counted on to happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Nature {
    /// Happens sooner or later where it stays possible.
    Fair,
    /// May happen, or never: a crash, a lost message, an operator's wish.
    Fault,
}

/// One step and where it leads.
pub struct Edge<S> {
    /// Its name.
    pub step: Step,
    /// The state after it.
    pub to: S,
    /// Whether it can be counted on.
    pub nature: Nature,
    /// Promises that the step itself breaks.
    pub broken: Properties,
}

/// What the checker explores.
pub trait Model {
    /// A state; small, since all of them are kept.
    type State: Clone + Eq + Hash;

    /// Where it begins.
    fn initial(&self) -> Self::State;
    /// Every step that is possible in `state`.
    fn edges(&self, state: &Self::State, edges: &mut Vec<Edge<Self::State>>);
    /// Promises that `state` breaks.
    fn broken(&self, state: &Self::State) -> Properties;
    /// Promises that are asked of this configuration.
    fn asked(&self) -> Properties;
    /// Whether nothing more is owed in `state`.
    fn is_good(&self, state: &Self::State) -> bool;
    /// What is to be seen in `state`.
    fn witnessed(&self, state: &Self::State) -> Witnesses;
    /// What must be seen in some state.
    fn expected(&self) -> Witnesses;
    /// `state` for a reader of traces.
    fn show(&self, state: &Self::State) -> String;
}

/// States beyond which a run is broken off: a slip in a bound would otherwise fill the memory.
const STATES_MAX: usize = 30_000_000;

/// Explores every state that `model` can reach.
pub fn explore<M: Model>(model: &M) -> Report {
    let mut search = Search::new(model);
    search.run(|_| false);
    search.report()
}

/// Explores until `property` is broken: for faults that must be found. A broken [`Property::GoodEndReachable`] shows
/// only when all states are known.
pub fn find<M: Model>(model: &M, property: Property) -> Report {
    let mut search = Search::new(model);
    search.run(|first| first.contains_key(&property));
    search.report()
}

/// Where a promise was first broken, and how often.
struct First<S> {
    at: u32,
    edge: Option<(Step, S)>,
    hits: u64,
}

struct Search<'a, M: Model> {
    model: &'a M,
    table: Table<M::State>,
    parents: Vec<u32>,
    /// Ends of the fair edges, one state's after another's.
    fair: Vec<u32>,
    /// Where in `fair` each state's begin.
    fair_from: Vec<usize>,
    first: BTreeMap<Property, First<M::State>>,
    seen: Witnesses,
    edges: u64,
    /// Whether every state was explored.
    complete: bool,
}

const ROOT: u32 = u32::MAX;

impl<'a, M: Model> Search<'a, M> {
    fn new(model: &'a M) -> Self {
        let mut table = Table::new();
        table.number(model.initial());
        Self {
            model,
            table,
            parents: vec![ROOT],
            fair: Vec::new(),
            fair_from: Vec::new(),
            first: BTreeMap::new(),
            seen: Witnesses::default(),
            edges: 0,
            complete: false,
        }
    }

    fn run(&mut self, enough: impl Fn(&BTreeMap<Property, First<M::State>>) -> bool) {
        let asked = self.model.asked();
        let mut edges = Vec::new();
        let mut number = 0;
        while (number as usize) < self.table.len() && !enough(&self.first) {
            assert!(self.table.len() < STATES_MAX, "more than {STATES_MAX} states: narrow the bounds");
            let state = self.table.state(number);
            let broken = self.model.broken(state).and(asked);
            self.seen = self.seen.or(self.model.witnessed(state));
            self.model.edges(state, &mut edges);
            for property in broken.iter() {
                self.first.entry(property).or_insert(First { at: number, edge: None, hits: 0 }).hits += 1;
            }
            self.fair_from.push(self.fair.len());
            for edge in edges.drain(..) {
                self.follow(number, edge, asked);
            }
            number += 1;
        }
        self.fair_from.push(self.fair.len());
        self.complete = number as usize == self.table.len();
    }

    fn follow(&mut self, from: u32, edge: Edge<M::State>, asked: Properties) {
        self.edges += 1;
        for property in edge.broken.and(asked).iter() {
            let first = self.first.entry(property).or_insert_with(|| First {
                at: from,
                edge: Some((edge.step, edge.to.clone())),
                hits: 0,
            });
            first.hits += 1;
        }
        let (number, new) = self.table.number(edge.to);
        if new {
            self.parents.push(from);
        }
        if edge.nature == Nature::Fair {
            self.fair.push(number);
        }
    }

    /// The states from which no good one can be reached by fair steps.
    fn stuck(&self) -> Vec<u32> {
        let states = self.table.len();
        let mut from = vec![0_usize; states + 1];
        for &to in &self.fair {
            from[to as usize + 1] += 1;
        }
        for number in 0..states {
            from[number + 1] += from[number];
        }
        let mut sources = vec![0_u32; self.fair.len()];
        let mut fill = from.clone();
        for (source, ends) in (0_u32..).zip(self.fair_from.windows(2)) {
            for &to in &self.fair[ends[0]..ends[1]] {
                sources[fill[to as usize]] = source;
                fill[to as usize] += 1;
            }
        }
        let mut fine: Vec<bool> = self.table.states().iter().map(|state| self.model.is_good(state)).collect();
        let mut todo: Vec<u32> =
            (0_u32..).zip(&fine).filter_map(|(number, fine)| fine.then_some(number)).collect();
        while let Some(number) = todo.pop() {
            for &source in &sources[from[number as usize]..from[number as usize + 1]] {
                if !std::mem::replace(&mut fine[source as usize], true) {
                    todo.push(source);
                }
            }
        }
        (0_u32..).zip(fine).filter_map(|(number, fine)| (!fine).then_some(number)).collect()
    }

    /// The steps of a shortest way to state `number`.
    fn path(&self, number: u32) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut at = number;
        while self.parents[at as usize] != ROOT {
            let parent = self.parents[at as usize];
            let mut edges = Vec::new();
            self.model.edges(self.table.state(parent), &mut edges);
            let taken = edges.iter().find(|edge| edge.to == *self.table.state(at));
            steps.push(taken.expect("an edge led here").step);
            at = parent;
        }
        steps.reverse();
        steps
    }

    fn violation(&self, property: Property, first: &First<M::State>) -> Violation {
        let mut steps = self.path(first.at);
        let end = match &first.edge {
            Some((step, state)) => {
                steps.push(*step);
                self.model.show(state)
            }
            None => self.model.show(self.table.state(first.at)),
        };
        Violation { property, steps, end, hits: first.hits }
    }

    fn report(self) -> Report {
        let mut violations: Vec<Violation> =
            self.first.iter().map(|(property, first)| self.violation(*property, first)).collect();
        let live = Property::GoodEndReachable;
        if self.complete && !self.model.asked().and(Properties::of([live])).is_empty() {
            let stuck = self.stuck();
            if let Some(&at) = stuck.first() {
                violations.push(self.violation(live, &First { at, edge: None, hits: stuck.len() as u64 }));
            }
        }
        Report {
            states: self.table.len(),
            edges: self.edges,
            violations,
            unseen: self.model.expected().missing_in(self.seen),
        }
    }
}
