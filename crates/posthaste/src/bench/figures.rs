//! Figures: named measures with their units, what went wrong, and the median of several runs.

use std::collections::BTreeMap;

use serde_json::{Map, Value, json};

use super::{
    plan::{Outcome, Quantiles},
    process::Memory,
    server::Reading,
};

macro_rules! measures {
    ($($(#[$meta:meta])* $name:ident $key:literal $heading:literal $digits:literal,)+) => {
        /// What is measured. In the order of the columns.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
        pub(crate) enum Measure { $($(#[$meta])* $name,)+ }

        impl Measure {
            /// Every one.
            pub(crate) const ALL: &[Self] = &[$(Self::$name,)+];

            /// Its name in JSON; ends in its unit.
            pub(crate) fn key(self) -> &'static str {
                match self { $(Self::$name => $key,)+ }
            }

            /// The heading of its column.
            pub(crate) fn heading(self) -> &'static str {
                match self { $(Self::$name => $heading,)+ }
            }

            /// Digits after the point.
            pub(crate) fn digits(self) -> usize {
                match self { $(Self::$name => $digits,)+ }
            }
        }
    };
}

measures! {
    /// What the figure counts, a second.
    Rate "rate_per_s" "RATE/S" 0,
    /// From the request to its answer, unless the figure says otherwise.
    P50 "p50_ms" "P50 MS" 2,
    /// The same.
    P99 "p99_ms" "P99 MS" 2,
    /// The rate divided by what bare HTTP does with the same requests and connections.
    RateToBare "rate_to_bare" "÷BARE" 3,
    /// What bare HTTP does: the mean of right before and right after.
    BareRate "bare_rate_per_s" "BARE/S" 0,
    /// The 99th percentile divided by the median time of one durable write.
    P99ToSync "p99_to_sync" "P99÷SYNC" 1,
    /// The rate divided by the rate without what disturbs.
    RateToAlone "rate_to_alone" "÷ALONE" 3,
    /// The 99th percentile divided by that without what disturbs.
    P99ToAlone "p99_to_alone" "P99÷ALONE" 2,
    /// Processor microseconds of the server for each.
    CpuEach "server_cpu_us_each" "CPU µS EACH" 1,
    /// Processor seconds of the server.
    Cpu "server_cpu_s" "CPU S" 2,
    /// Cores that the load process kept busy: near 1, it is the bottleneck.
    LoadCores "load_cores" "LOAD CORES" 2,
    /// Resident memory of the server at the end.
    Rss "rss_mib" "RSS MIB" 0,
    /// Resident memory of the server at most.
    RssPeak "rss_peak_mib" "PEAK MIB" 0,
    /// Rows in one commit of the store.
    RowsPerCommit "rows_per_commit" "ROWS/COMMIT" 1,
    /// Commits of the store a second.
    Commits "commits_per_s" "COMMITS/S" 0,
    /// How many jobs.
    Jobs "jobs" "JOBS" 0,
    /// From first to last.
    Seconds "seconds" "SECONDS" 2,
    /// Jobs that waited when the figure was taken.
    Waiting "waiting_jobs" "WAITING" 0,
    /// From the process' begin to listening.
    StartUp "start_up_ms" "START MS" 0,
    /// From the process' begin to ready.
    Ready "ready_ms" "READY MS" 0,
    /// Size of the store's files.
    Store "store_mib" "STORE MIB" 0,
    /// Bytes of the store for each job that settled.
    StoreEach "store_bytes_each" "STORE B EACH" 0,
    /// Size of the store's main file.
    Database "database_mib" "DB MIB" 1,
    /// Size of the store's write-ahead log.
    Wal "wal_mib" "WAL MIB" 1,
    /// Files and connections that the server has open.
    OpenFiles "open_files" "FILES" 0,
    /// The server's threads.
    Threads "threads" "THREADS" 0,
    /// Cores that the server kept busy.
    Cores "server_cores" "CORES" 2,
    /// Jobs that wait for their first attempt.
    Scheduled "scheduled_jobs" "SCHEDULED" 0,
    /// Jobs whose attempt runs.
    Leased "leased_jobs" "LEASED" 0,
    /// Jobs that wait for another attempt.
    Retryable "retryable_jobs" "RETRYABLE" 0,
    /// Jobs that were committed.
    Committed "committed_jobs" "COMMITTED" 0,
    /// Jobs that were given up.
    DeadLettered "dead_lettered_jobs" "DEAD" 0,
    /// Jobs that were promised by an acknowledgement.
    Promised "acknowledged_jobs" "ACKNOWLEDGED" 0,
    /// Jobs that the server knows.
    Known "known_jobs" "KNOWN" 0,
    /// The median of resident memory in the last quarter, divided by that of the first.
    RssToFirst "rss_last_to_first_quarter" "RSS Q4÷Q1" 3,
    /// The same, divided by that of the second.
    RssToSecond "rss_last_to_second_quarter" "RSS Q4÷Q2" 3,
    /// What the best line through resident memory gains in the second half.
    RssGrowth "rss_growth_mib_per_h" "RSS MIB/H" 2,
    /// Lines of the server's log.
    Lines "log_lines" "LINES" 0,
    /// From the request to its acknowledgement, of one message.
    Acknowledged "acknowledged_ms" "ACK MS" 1,
    /// From the acknowledgement until all was committed.
    AllCommitted "all_committed_s" "ALL COMMITTED S" 2,
    /// Connections that were opened.
    Connections "connections" "CONNECTIONS" 0,
    /// What should have arrived and had not when the waiting ended.
    Undelivered "undelivered" "UNDELIVERED" 0,
    /// Answers that were no 2xx, connections that broke, answers that did not come.
    Errors "errors" "ERRORS" 0,
}

/// One line of a scenario's table.
#[derive(Clone, Debug)]
pub(crate) struct Figure {
    /// What was done.
    pub(crate) name: String,
    /// What is counted.
    pub(crate) unit: &'static str,
    /// What was measured; what is missing is not known, or makes no sense here.
    pub(crate) measures: BTreeMap<Measure, f64>,
    /// What went wrong, each with its count.
    pub(crate) faults: Vec<String>,
}

impl Figure {
    pub(super) fn new(name: impl Into<String>, unit: &'static str) -> Self {
        Self { name: name.into(), unit, measures: BTreeMap::new(), faults: Vec::new() }
    }

    pub(super) fn set(&mut self, measure: Measure, value: impl Into<Option<f64>>) -> &mut Self {
        if let Some(value) = value.into().filter(|value| value.is_finite()) {
            self.measures.insert(measure, value);
        }
        self
    }

    pub(super) fn measure(&self, measure: Measure) -> Option<f64> {
        self.measures.get(&measure).copied()
    }

    /// Rate and times of a load process, and what went wrong with it.
    pub(super) fn set_load(&mut self, outcome: &Outcome) -> &mut Self {
        self.set(Measure::Rate, outcome.rate());
        self.set_times(&outcome.latency);
        let elapsed = outcome.elapsed_seconds();
        let cores = outcome.cpu_seconds.filter(|_| elapsed > 0.0).map(|cpu| cpu / elapsed);
        self.set(Measure::LoadCores, cores);
        self.add_errors(outcome)
    }

    pub(super) fn set_times(&mut self, times: &Quantiles) -> &mut Self {
        if times.count > 0 {
            self.set(Measure::P50, super::milliseconds(times.p50));
            self.set(Measure::P99, super::milliseconds(times.p99));
        }
        self
    }

    /// What went wrong with a load process.
    pub(super) fn add_errors(&mut self, outcome: &Outcome) -> &mut Self {
        let errors: u64 = outcome.errors.values().sum();
        let before = self.measure(Measure::Errors).unwrap_or(0.0);
        self.set(Measure::Errors, before + super::float(errors));
        self.faults.extend(outcome.errors.iter().map(|(what, count)| format!("{what}: {count} times")));
        self.faults.extend(outcome.first_error.iter().map(|body| format!("the first answer: {body}")));
        self
    }

    /// Something that should not be.
    pub(super) fn fault(&mut self, text: String) -> &mut Self {
        let before = self.measure(Measure::Errors).unwrap_or(0.0);
        self.set(Measure::Errors, before + 1.0);
        self.faults.push(text);
        self
    }

    /// What the server used and did between two readings, for `count` of what the figure counts.
    pub(super) fn set_server(&mut self, before: &Reading, after: &Reading, count: u64) -> &mut Self {
        let cpu = after.cpu_seconds.zip(before.cpu_seconds).map(|(after, before)| after - before);
        self.set(Measure::Cpu, cpu);
        self.set(Measure::CpuEach, cpu.filter(|_| count > 0).map(|cpu| cpu * 1e6 / super::float(count)));
        let done = after.metrics.since(&before.metrics);
        self.set(Measure::RowsPerCommit, done.rows_per_commit());
        let seconds = after.at.duration_since(before.at).as_secs_f64();
        self.set(Measure::Commits, done.commits.map(|commits| commits / seconds))
    }

    pub(super) fn set_memory(&mut self, memory: Option<Memory>) -> &mut Self {
        let mib = |kib: u64| super::float(kib) / 1024.0;
        self.set(Measure::Rss, memory.map(|memory| mib(memory.resident)));
        self.set(Measure::RssPeak, memory.map(|memory| mib(memory.peak)))
    }

    /// The ratios to what happened without a disturbance.
    pub(super) fn set_alone(&mut self, alone: &Self) -> &mut Self {
        let ratio = |measure| Some(self.measure(measure)? / alone.measure(measure)?);
        let (rate, p99) = (ratio(Measure::Rate), ratio(Measure::P99));
        self.set(Measure::RateToAlone, rate).set(Measure::P99ToAlone, p99)
    }

    pub(super) fn set_sync(&mut self, sync_p50_ms: f64) -> &mut Self {
        let ratio = self.measure(Measure::P99).map(|p99| p99 / sync_p50_ms);
        self.set(Measure::P99ToSync, ratio)
    }

    /// Name, unit, measures and faults as JSON.
    pub(crate) fn to_json(&self) -> Value {
        let measures: Map<String, Value> =
            self.measures.iter().map(|(measure, value)| (measure.key().to_owned(), json!(value))).collect();
        json!({ "name": self.name, "unit": self.unit, "measures": measures, "faults": self.faults })
    }
}

/// The median of each measure over runs, line by line; faults of all.
pub(super) fn medians(runs: &[Vec<Figure>]) -> Vec<Figure> {
    let Some(first) = runs.first() else { return Vec::new() };
    let line = |at: usize| {
        let lines: Vec<&Figure> = runs.iter().filter_map(|run| run.get(at)).collect();
        let mut figure = Figure::new(first[at].name.clone(), first[at].unit);
        for measure in Measure::ALL {
            let values: Vec<f64> = lines.iter().filter_map(|line| line.measure(*measure)).collect();
            figure.set(*measure, median(values));
        }
        figure.faults = lines.iter().flat_map(|line| line.faults.clone()).collect();
        figure
    };
    (0..first.len()).map(line).collect()
}

/// The middle one, or the mean of the middle two.
pub(super) fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    let (low, high) = (values.get(values.len().checked_sub(1)? / 2)?, values.get(values.len() / 2)?);
    Some(f64::midpoint(*low, *high))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_measure_has_its_own_median() {
        let run = |rate: f64, p99: Option<f64>| {
            let mut figure = Figure::new("64 connections", "requests");
            figure.set(Measure::Rate, rate).set(Measure::P99, p99);
            vec![figure]
        };
        let median = medians(&[run(3.0, Some(1.0)), run(1.0, None), run(2.0, Some(2.0))]);
        assert_eq!(Some(2.0), median[0].measure(Measure::Rate));
        assert_eq!(Some(1.5), median[0].measure(Measure::P99));
        assert!(medians(&[]).is_empty());
    }

    #[test]
    fn measures_have_names_of_their_own() {
        let keys: std::collections::BTreeSet<_> = Measure::ALL.iter().map(|measure| measure.key()).collect();
        assert_eq!(Measure::ALL.len(), keys.len());
    }
}
