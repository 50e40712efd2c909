//! What a run found.

use std::fmt;

use super::{
    checker::Step,
    property::{Property, Witness},
};

/// A promise that was broken.
#[derive(Clone, Debug)]
pub struct Violation {
    /// Which.
    pub property: Property,
    /// A shortest way there.
    pub steps: Vec<Step>,
    /// The state at its end.
    pub end: String,
    /// How many states or steps break it.
    pub hits: u64,
}

/// What a run found.
#[derive(Clone, Debug)]
pub struct Report {
    /// States that can be reached.
    pub states: usize,
    /// Steps between them.
    pub edges: u64,
    /// Broken promises.
    pub violations: Vec<Violation>,
    /// What should have been seen and was not: the run proves less than it claims.
    pub unseen: Vec<Witness>,
}

impl Report {
    /// Whether every promise was kept, and everything was seen that makes that worth knowing.
    pub fn holds(&self) -> bool {
        self.violations.is_empty() && self.unseen.is_empty()
    }

    /// The violation of `property`, if there is one.
    pub fn violation(&self, property: Property) -> Option<&Violation> {
        self.violations.iter().find(|violation| violation.property == property)
    }

    /// Size and verdict, without traces.
    pub fn summary(&self) -> String {
        let broken: Vec<String> = self
            .violations
            .iter()
            .map(|violation| format!("{:?} in {} steps", violation.property, violation.steps.len()))
            .collect();
        let verdict = if broken.is_empty() { "holds".to_owned() } else { broken.join(", ") };
        format!("{} states, {} edges: {verdict}", self.states, self.edges)
    }
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "broken: {} ({} hits), {} steps", self.property, self.hits, self.steps.len())?;
        for (number, step) in (1..).zip(&self.steps) {
            writeln!(f, "  {number:2}. {step}")?;
        }
        writeln!(f, "  end: {}", self.end)
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.summary())?;
        for violation in &self.violations {
            write!(f, "{violation}")?;
        }
        for witness in &self.unseen {
            writeln!(f, "never seen: {witness}")?;
        }
        Ok(())
    }
}
