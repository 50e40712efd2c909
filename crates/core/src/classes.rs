//! What a destination says otherwise than the classification of every destination: its own rules, as data.
//!
//! The order in which a failure is judged: a rule of its very status, a rule of a range of statuses, a rule of its class,
//! and then the table. A rule never makes a success of a failure, nor a failure of an answer that was taken.

use crate::{Class, Classified, Disposition, Effect, Policy, Reading, TransportFault, failure};

/// One rule of a destination's own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClassRule {
    /// What it is about.
    pub of: RuleOf,
    /// What follows for the job.
    pub follows: Disposition,
    /// What is known about the effect, if the destination knows better than the table.
    pub effect: Option<Effect>,
    /// How it is written, and where: shown with every attempt that it decided.
    pub line: Box<str>,
}

/// What a rule is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RuleOf {
    /// Answers with a status from the first to the last.
    Statuses(u16, u16),
    /// Failures of a class.
    Class(Class),
}

/// A rule's place in [`Policy::classes`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct RuleAt(pub u16);

/// A failure, classified, and by which rule; none: by the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ruling {
    /// What it means.
    pub classified: Classified,
    /// The destination's own rule that decided.
    pub by: Option<RuleAt>,
}

/// What an answer means to a destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ruled {
    /// 2xx: taken.
    Accepted,
    /// Anything else.
    Failed(Ruling),
}

impl Policy {
    /// Reads an HTTP answer, by the destination's own rules first. `retry_after`: whether the header was there.
    pub fn rule_status(&self, status: u16, retry_after: bool) -> Ruled {
        match failure::read_status(status, retry_after) {
            Reading::Accepted => Ruled::Accepted,
            Reading::Failed(classified) => Ruled::Failed(self.rule(Some(status), classified)),
        }
    }

    /// Classifies a request without an answer, by the destination's own rules first. A request of which no byte left has
    /// no effect, whatever a rule says.
    pub fn rule_fault(&self, fault: TransportFault, sent: bool) -> Ruling {
        let mut ruling = self.rule(None, failure::read_fault(fault, sent));
        if !sent {
            ruling.classified.effect = Effect::None;
        }
        ruling
    }

    /// Classifies a failure by its class alone, by the destination's own rules first.
    pub fn rule_class(&self, class: Class) -> Ruling {
        self.rule(None, failure::read_class(class))
    }

    /// The rule at `at`, while the destination has it.
    pub fn class_rule(&self, at: RuleAt) -> Option<&ClassRule> {
        self.classes.get(usize::from(at.0))
    }

    fn rule(&self, status: Option<u16>, table: Classified) -> Ruling {
        let found = self
            .classes
            .iter()
            .enumerate()
            .filter_map(|(at, rule)| Some((rule.of.precision(status, table.class)?, at, rule)))
            .min_by_key(|(precision, at, _)| (*precision, *at));
        let Some((_, at, rule)) = found else { return Ruling { classified: table, by: None } };
        let effect = rule.effect.unwrap_or(table.effect);
        let classified = Classified { effect, disposition: rule.follows, ..table };
        Ruling { classified, by: u16::try_from(at).ok().map(RuleAt) }
    }
}

impl RuleOf {
    /// How exactly the rule fits, the best being the least; `None`: not at all.
    fn precision(self, status: Option<u16>, class: Class) -> Option<u32> {
        match self {
            Self::Statuses(from, to) => {
                let fits = status.is_some_and(|status| (from..=to).contains(&status));
                fits.then(|| u32::from(to.saturating_sub(from)))
            }
            Self::Class(of) => (of == class).then_some(u32::MAX),
        }
    }
}
