//! The same load in several spells, so that two circumstances can be measured by turns.

use super::{
    figures::{self, Figure, Measure},
    milliseconds,
    plan::{Outcome, Template},
    server::Server,
    stage::{self, Stage},
};

/// What is asked of a server in a spell.
pub(super) struct Load {
    pub(super) template: Template,
    pub(super) per_second: f64,
    pub(super) connections: usize,
    /// Spells of a turn.
    pub(super) spells: usize,
}

/// What came of the spells under one circumstance.
#[derive(Default)]
pub(super) struct Spells(Vec<Outcome>);

impl Spells {
    /// One turn.
    pub(super) fn measure(&mut self, stage: &Stage, server: &Server, load: &Load) -> anyhow::Result<()> {
        for _ in 0..load.spells {
            let paced = stage::paced(vec![load.template.clone()], load.per_second);
            self.0.push(stage.run(&stage.plan(server.address(), load.connections, paced))?);
        }
        Ok(())
    }

    /// The median of each measure.
    pub(super) fn figure(&self, name: &str, unit: &'static str) -> Figure {
        let mut figure = Figure::new(format!("{name}, {} spells", self.0.len()), unit);
        let median = |of: fn(&Outcome) -> f64| figures::median(self.0.iter().map(of).collect());
        figure.set(Measure::Rate, median(Outcome::rate));
        figure.set(Measure::P50, median(|outcome| milliseconds(outcome.latency.p50)));
        figure.set(Measure::P99, median(|outcome| milliseconds(outcome.latency.p99)));
        for outcome in &self.0 {
            figure.add_errors(outcome);
        }
        figure
    }
}
