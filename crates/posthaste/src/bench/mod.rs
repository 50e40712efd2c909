//! The load test: measures this very program on this machine, in processes of their own. Row F8.
//!
//! It reports what it saw and what that can be compared with: bare HTTP with the same requests in the same minute, and
//! the time of one durable write. Load and server share the machine; no figure says what either could do alone.

mod api;
mod bare;
mod child;
mod figures;
mod generator;
mod machine;
mod metrics;
mod plan;
mod process;
mod receiver;
mod requests;
mod scenarios;
mod server;
mod spells;
mod stage;
mod times;
mod token;
mod wire;

use std::{path::PathBuf, sync::mpsc::Receiver};

use self::stage::Stage;
pub(crate) use self::{
    child::end_with_parent,
    figures::{Figure, Measure},
    machine::Machine,
    scenarios::Scenario,
};

/// What to measure, and how much.
#[derive(Clone, Debug)]
pub(crate) struct Options {
    /// What to measure, in this order.
    pub(crate) scenarios: Vec<Scenario>,
    /// Where stores are made.
    pub(crate) store_folder: PathBuf,
    /// Connections at once.
    pub(crate) connections: Vec<usize>,
    /// Seconds of each measurement.
    pub(crate) seconds: f64,
    /// How often all is done.
    pub(crate) runs: usize,
    /// Endpoints; each scenario has its own number unless told.
    pub(crate) endpoint_count: Option<usize>,
    /// Bytes of a message's payload.
    pub(crate) payload_bytes: usize,
    /// Jobs that `pull` works through.
    pub(crate) jobs: usize,
    /// Jobs for later that `backlog` lays in.
    pub(crate) scheduled: usize,
    /// Due jobs that `isolation` lays behind a full lane.
    pub(crate) due: usize,
    /// Connections that never end a request, in `slow-clients`.
    pub(crate) slow_connections: usize,
}

/// What was measured.
#[derive(Clone, Debug)]
pub(crate) struct Report {
    /// Where.
    pub(crate) machine: Machine,
    /// By scenario.
    pub(crate) results: Vec<ScenarioResult>,
}

/// What was measured in one scenario.
#[derive(Clone, Debug)]
pub(crate) struct ScenarioResult {
    /// Which.
    pub(crate) scenario: Scenario,
    /// The medians over all runs.
    pub(crate) figures: Vec<Figure>,
    /// Each run by itself.
    pub(crate) runs: Vec<Vec<Figure>>,
}

impl Report {
    /// Whether nothing went wrong.
    pub(crate) fn is_clean(&self) -> bool {
        self.results.iter().flat_map(|result| &result.figures).all(|figure| figure.faults.is_empty())
    }
}

/// A process that the bench starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Part {
    /// Generates load.
    Load,
    /// Answers by bare HTTP.
    Bare,
    /// Receives what is delivered.
    Receive,
}

/// Is one of the bench's processes until its work is done or the bench has ended.
pub(crate) async fn run_part(part: Part) -> anyhow::Result<()> {
    match part {
        Part::Load => generator::run(),
        Part::Bare => bare::run().await,
        Part::Receive => receiver::run(),
    }
}

/// Measures. Blocks for as long as it takes; `progress` is told what is done, `stop` ends it early.
pub(crate) fn run(options: Options, stop: Receiver<()>, progress: fn(&str)) -> anyhow::Result<Report> {
    let stage = Stage::set(options, stop, progress)?;
    let mut results = Vec::new();
    for scenario in &stage.options.scenarios {
        let mut runs = Vec::new();
        for run in 1..=stage.options.runs {
            progress(&format!("{}, run {run} of {}", scenario.name(), stage.options.runs));
            runs.push(scenario.measure(&stage)?);
        }
        results.push(ScenarioResult { scenario: *scenario, figures: figures::medians(&runs), runs });
    }
    Ok(Report { machine: stage.machine.clone(), results })
}

/// A count as a number to calculate with; exact to 2⁵³.
#[allow(clippy::cast_precision_loss, reason = "no count of a bench comes near")]
fn float(count: u64) -> f64 {
    count as f64
}

fn milliseconds(us: u64) -> f64 {
    float(us) / 1e3
}
