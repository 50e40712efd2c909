//! `bench`: the load test's arguments, and its report as tables or JSON.

use std::{path::PathBuf, sync::mpsc::channel};

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use tokio::signal::unix::{SignalKind, signal};

use super::{
    exit::{Failure, Outcome},
    output::{self, FAINT, STRONG, note, styled},
    serve,
};
use crate::bench::{self, Figure, Measure, Options, Part, Report, Scenario, ScenarioResult};

#[derive(Debug, Args)]
pub(super) struct BenchArgs {
    /// What to measure; everything but `archive` and `soak` unless told
    #[arg(value_name = "SCENARIO")]
    scenarios: Vec<Scenario>,
    /// Where stores are made, in a folder that is removed at the end; the disk under it is what is measured
    #[arg(long, value_name = "DIR", default_value = ".")]
    store_folder: PathBuf,
    /// Connections at once, one measurement for each number
    #[arg(long, value_name = "N,…", value_delimiter = ',', default_value = "64,256", value_parser = count)]
    connections: Vec<usize>,
    /// Length of each measurement; of a soak, 2700 says something
    #[arg(long, value_name = "S", default_value = "5", value_parser = seconds)]
    seconds: f64,
    /// How often all is done; the medians are shown
    #[arg(long, value_name = "N", default_value = "1", value_parser = count)]
    runs: usize,
    /// Endpoints; each scenario has its own number unless told
    #[arg(long, value_name = "N", value_parser = count)]
    endpoint_count: Option<usize>,
    /// Size of a message's payload
    #[arg(long, value_name = "BYTES", default_value = "1024", value_parser = count)]
    payload_bytes: usize,
    /// Jobs that `pull` works through
    #[arg(long, value_name = "N", default_value = "100000", value_parser = count)]
    jobs: usize,
    /// Jobs scheduled for later in the store of `backlog`, entries of `ledger`, jobs of `archive`
    #[arg(long, value_name = "N", default_value = "1000000", value_parser = count)]
    scheduled: usize,
    /// Due jobs behind the full lane of `isolation`
    #[arg(long, value_name = "N", default_value = "500000", value_parser = count)]
    due: usize,
    /// Connections that never end a request, in `slow-clients`
    #[arg(long, value_name = "N", default_value = "500", value_parser = count)]
    slow_connections: usize,
    #[command(flatten)]
    output: super::OutputArgs,
}

/// The processes that `bench` starts.
#[derive(Debug, Subcommand)]
pub(super) enum BenchChild {
    /// The server under load: ends when standard input does
    Serve(serve::ServeArgs),
    /// Generates the load that standard input describes
    Load,
    /// Answers by bare HTTP
    Bare,
    /// Receives what is delivered
    Receive,
}

fn count(text: &str) -> Result<usize, String> {
    match text.parse() {
        Ok(number) if number > 0 => Ok(number),
        Ok(_) | Err(_) => Err("give a number from 1 on".to_owned()),
    }
}

fn seconds(text: &str) -> Result<f64, String> {
    match text.parse() {
        Ok(seconds) if (0.1..=3_600.0).contains(&seconds) => Ok(seconds),
        Ok(_) | Err(_) => Err("give 0.1 to 3600".to_owned()),
    }
}

impl BenchArgs {
    fn options(self) -> Options {
        Options {
            scenarios: if self.scenarios.is_empty() { Scenario::ALL.to_vec() } else { self.scenarios },
            store_folder: self.store_folder,
            connections: self.connections,
            seconds: self.seconds,
            runs: self.runs,
            endpoint_count: self.endpoint_count,
            payload_bytes: self.payload_bytes,
            jobs: self.jobs,
            scheduled: self.scheduled,
            due: self.due,
            slow_connections: self.slow_connections,
        }
    }
}

/// Exit 1 if anything was answered with an error, or got lost.
pub(super) async fn run(args: BenchArgs) -> Result<Outcome, Failure> {
    let as_json = args.output.json;
    let options = args.options();
    let (stop, stopped) = channel();
    let runs = options.runs;
    let measuring = tokio::task::spawn_blocking(move || bench::run(options, stopped, note));
    tokio::spawn(async move {
        until_signal().await;
        // Nobody listens any more: it has ended by itself.
        let _ = stop.send(());
    });
    let measured =
        measuring.await.map_err(|error| Failure::refused(format!("the bench broke off: {error}")))?;
    let report = measured.map_err(|error| Failure::refused(format!("{error:#}")))?;
    if as_json {
        output::json(&to_json(&report, runs))?;
    } else {
        show(&report)?;
    }
    Ok(if report.is_clean() { Outcome::Done } else { Outcome::Refused })
}

async fn until_signal() {
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        return std::future::pending().await;
    };
    tokio::select! {
        _ = terminate.recv() => {}
        _ = interrupt.recv() => {}
    }
}

pub(super) async fn run_child(child: BenchChild) -> Result<Outcome, Failure> {
    let part = match child {
        BenchChild::Serve(args) => {
            bench::end_with_parent();
            return serve::run(args).await;
        }
        BenchChild::Load => Part::Load,
        BenchChild::Bare => Part::Bare,
        BenchChild::Receive => Part::Receive,
    };
    let done = bench::run_part(part).await;
    done.map(|()| Outcome::Done).map_err(|error| Failure::refused(format!("{error:#}")))
}

/// What every reader of the figures should know.
fn remarks(report: &Report) -> Vec<&'static str> {
    let mut remarks = vec![
        "load, receiver and server share these cores: no figure says what the server could do alone",
        "the server logs at level warn; at info, one line a decision costs more",
        "only answers with 2xx count; ÷BARE is the rate divided by that of a bare axum server, measured right before \
         and after with the same requests",
    ];
    if cfg!(debug_assertions) {
        remarks.push("THIS IS NO RELEASE BUILD: the figures say nothing about one");
    }
    if report.machine.is_busy() {
        remarks.push("THIS MACHINE WAS BUSY BEFORE THE BENCH BEGAN: other work is in every figure");
    }
    if report.machine.is_in_memory() {
        remarks.push(
            "THE STORE IS IN MEMORY: a durable write costs nothing there; give --store-folder on a disk",
        );
    }
    remarks
}

fn to_json(report: &Report, runs: usize) -> Value {
    let machine = &report.machine;
    let figures = |figures: &[Figure]| -> Value { figures.iter().map(Figure::to_json).collect() };
    let results = report.results.iter().map(|result| {
        let each: Vec<Value> = result.runs.iter().map(|run| figures(run)).collect();
        json!({
            "scenario": result.scenario.name(),
            "about": result.scenario.about(),
            "figures": figures(&result.figures),
            "runs": if runs > 1 { Value::from(each) } else { Value::Null },
        })
    });
    json!({
        "version": env!("CARGO_PKG_VERSION"),
        "release_build": !cfg!(debug_assertions),
        "machine": {
            "cores": machine.cores,
            "processor": machine.processor,
            "kernel": machine.kernel,
            "file_system": machine.file_system,
            "load_average": machine.load_average,
            "sync_p50_ms": machine.sync_p50_ms,
            "sync_p99_ms": machine.sync_p99_ms,
        },
        "remarks": remarks(report),
        "clean": report.is_clean(),
        "results": results.collect::<Vec<Value>>(),
    })
}

fn show(report: &Report) -> Result<(), Failure> {
    let machine = &report.machine;
    let known = |fact: &Option<String>| fact.clone().unwrap_or_else(|| "-".to_owned());
    output::text(&format!(
        "{}\n  {} cores ({}), Linux {}, {}, load average {}\n  4 KiB and fdatasync: p50 {:.3} ms, p99 {:.3} ms",
        styled(STRONG, &format!("posthaste {} on this machine", env!("CARGO_PKG_VERSION"))),
        machine.cores,
        known(&machine.processor),
        known(&machine.kernel),
        known(&machine.file_system),
        known(&machine.load_average.map(|average| average.to_string())),
        machine.sync_p50_ms,
        machine.sync_p99_ms,
    ))?;
    for remark in remarks(report) {
        output::text(&styled(FAINT, &format!("  {remark}")))?;
    }
    report.results.iter().try_for_each(show_result)
}

fn show_result(result: &ScenarioResult) -> Result<(), Failure> {
    output::text(&format!("\n{}\n  {}", styled(STRONG, result.scenario.name()), result.scenario.about()))?;
    for group in alike(&result.figures) {
        show_figures(&group)?;
    }
    for figure in &result.figures {
        for fault in &figure.faults {
            output::text(&format!("  {}: {}", figure.name, output::printable(fault)))?;
        }
    }
    Ok(())
}

/// Measures that not all figures of one kind have, or that are for programs alone.
const BESIDES: [Measure; 4] = [Measure::RateToAlone, Measure::P99ToAlone, Measure::Errors, Measure::Cpu];

/// Figures of one kind together: those of which the same is known.
fn alike(figures: &[Figure]) -> Vec<Vec<&Figure>> {
    let kind = |figure: &Figure| -> Vec<Measure> {
        figure.measures.keys().copied().filter(|measure| !BESIDES.contains(measure)).collect()
    };
    let mut groups: Vec<Vec<&Figure>> = Vec::new();
    for figure in figures {
        match groups.iter_mut().find(|group| kind(group[0]) == kind(figure)) {
            Some(group) => group.push(figure),
            None => groups.push(vec![figure]),
        }
    }
    groups
}

fn show_figures(figures: &[&Figure]) -> Result<Outcome, Failure> {
    let is_shown = |measure: &Measure| {
        *measure != Measure::Cpu && figures.iter().any(|figure| figure.measures.contains_key(measure))
    };
    let columns: Vec<Measure> = Measure::ALL.iter().copied().filter(is_shown).collect();
    let headings: Vec<&str> =
        ["", "OF"].into_iter().chain(columns.iter().map(|measure| measure.heading())).collect();
    let rows = figures.iter().map(|figure| {
        let cells = columns.iter().map(|measure| shown(figure, *measure));
        [figure.name.clone(), figure.unit.to_owned()].into_iter().chain(cells).collect()
    });
    output::table(&headings, rows.collect())
}

fn shown(figure: &Figure, measure: Measure) -> String {
    match figure.measures.get(&measure) {
        Some(value) if measure.digits() == 0 => grouped(&format!("{value:.0}")),
        Some(value) => format!("{value:.*}", measure.digits()),
        None => "-".to_owned(),
    }
}

/// `1234567` as `1,234,567`.
fn grouped(digits: &str) -> String {
    let (sign, digits) = digits.strip_prefix('-').map_or(("", digits), |digits| ("-", digits));
    let mut text = sign.to_owned();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn large_numbers_are_grouped() {
        for (digits, expected) in [("7", "7"), ("123", "123"), ("1234", "1,234"), ("-1234567", "-1,234,567")]
        {
            assert_eq!(expected, grouped(digits));
        }
    }
}
