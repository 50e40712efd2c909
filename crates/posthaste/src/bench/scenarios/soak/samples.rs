//! What the server uses, looked at now and then, and how that develops.

use std::time::Duration;

use super::accounts::Jobs;
use crate::bench::{
    figures::{Figure, Measure},
    float,
    server::{Reading, Server},
};

/// A shorter soak says nothing about memory: caches still fill.
const JUDGED_FROM: Duration = Duration::from_mins(10);

/// What the last quarter's memory may be of the second quarter's.
const RSS_GROWTH_MAX: f64 = 1.1;

/// What is told while it runs.
const TOLD: [Measure; 14] = [
    Measure::P99,
    Measure::Cpu,
    Measure::Cores,
    Measure::Rss,
    Measure::RssPeak,
    Measure::OpenFiles,
    Measure::Threads,
    Measure::Database,
    Measure::Wal,
    Measure::Scheduled,
    Measure::Leased,
    Measure::Retryable,
    Measure::Committed,
    Measure::DeadLettered,
];

/// Looks, and keeps what it saw.
pub(super) struct Sampler {
    whole: Duration,
    last: Reading,
    accepted: Vec<Bucket>,
    samples: Vec<(Duration, Figure)>,
}

impl Sampler {
    pub(super) fn begin(server: &mut Server, whole: Duration) -> anyhow::Result<Self> {
        server.connect_again()?;
        let (last, accepted) = (server.read()?, accepted(server)?);
        Ok(Self { whole, last, accepted, samples: Vec::new() })
    }

    /// Looks now, `after` the begin. Gives a line for who waits.
    pub(super) fn take(&mut self, server: &mut Server, after: Duration) -> anyhow::Result<String> {
        server.connect_again()?;
        let (reading, accepted, jobs) = (server.read()?, accepted(server)?, Jobs::read(server)?);
        let mut figure = Figure::new(format!("after {:.1} s", after.as_secs_f64()), "samples");
        figure.set(Measure::P99, quantile(&self.accepted, &accepted, 0.99).map(|seconds| seconds * 1e3));
        let used = reading.cpu_seconds.zip(self.last.cpu_seconds).map(|(now, before)| now - before);
        let passed = reading.at.duration_since(self.last.at).as_secs_f64();
        figure.set(Measure::Cpu, reading.cpu_seconds);
        figure.set(Measure::Cores, used.map(|used| used / passed));
        figure.set_memory(server.memory());
        figure.set(Measure::OpenFiles, server.open_files().map(float));
        figure.set(Measure::Threads, server.threads().map(float));
        figure.set(Measure::Database, server.file_mib("posthaste.db"));
        figure.set(Measure::Wal, server.file_mib("posthaste.db-wal"));
        jobs.set(&mut figure);
        let line = line(&figure);
        (self.last, self.accepted) = (reading, accepted);
        self.samples.push((after, figure));
        Ok(line)
    }

    /// How memory developed.
    pub(super) fn judge(&self, figure: &mut Figure) {
        let resident: Vec<(Duration, f64)> = self
            .samples
            .iter()
            .filter_map(|(at, sample)| Some((*at, sample.measure(Measure::Rss)?)))
            .collect();
        let quarter = |number: u32| {
            let ends = self.whole / 4 * number;
            let within =
                |at: Duration| at > ends.saturating_sub(self.whole / 4) && (at <= ends || number == 4);
            median(resident.iter().filter(|(at, _)| within(*at)).map(|(_, mib)| *mib).collect())
        };
        let ratio = |before: Option<f64>| Some(quarter(4)? / before?);
        let to_second = ratio(quarter(2));
        figure.set(Measure::RssToFirst, ratio(quarter(1)));
        figure.set(Measure::RssToSecond, to_second);
        let second_half: Vec<(f64, f64)> = resident
            .iter()
            .filter(|(at, _)| *at > self.whole / 2)
            .map(|(at, mib)| (at.as_secs_f64() / 3_600.0, *mib))
            .collect();
        figure.set(Measure::RssGrowth, slope(&second_half));
        if let Some(ratio) = to_second.filter(|ratio| self.whole >= JUDGED_FROM && *ratio > RSS_GROWTH_MAX) {
            figure.fault(format!("resident memory of the last quarter is {ratio:.3} times the second's"));
        }
    }

    pub(super) fn figures(self) -> Vec<Figure> {
        self.samples.into_iter().map(|(_, figure)| figure).collect()
    }
}

/// The headings of the lines of samples.
pub(super) fn heading() -> String {
    let cells = TOLD.iter().map(|measure| format!("{:>1$}", measure.heading(), width(*measure)));
    format!("{:16}{}", "", cells.collect::<String>())
}

fn line(sample: &Figure) -> String {
    let cells = TOLD.iter().map(|measure| {
        let value = sample.measure(*measure).map(|value| format!("{value:.*}", measure.digits()));
        format!("{:>1$}", value.as_deref().unwrap_or("-"), width(*measure))
    });
    format!("{:16}{}", sample.name, cells.collect::<String>())
}

fn width(measure: Measure) -> usize {
    measure.heading().chars().count().max(6) + 2
}

/// How many were accepted within so many seconds, since the server's start.
type Bucket = (f64, f64);

fn accepted(server: &mut Server) -> anyhow::Result<Vec<Bucket>> {
    Ok(buckets(&server.api().get("/metrics")?))
}

fn buckets(metrics: &str) -> Vec<Bucket> {
    let bucket = |line: &str| {
        let line = line.strip_prefix("posthaste_accept_duration_seconds_bucket{le=\"")?;
        let (bound, count) = line.split_once("\"} ")?;
        Some((bound.parse().ok()?, count.split(' ').next()?.parse().ok()?))
    };
    metrics.lines().filter_map(bucket).collect()
}

/// The quantile in seconds of what came between two looks, as if the times within one bucket were spread evenly. What is
/// beyond the last bound counts as that bound.
fn quantile(before: &[Bucket], now: &[Bucket], share: f64) -> Option<f64> {
    let came: Vec<Bucket> =
        now.iter().zip(before).map(|((bound, now), (_, before))| (*bound, now - before)).collect();
    let wanted = came.last().map(|(_, all)| all * share).filter(|wanted| *wanted > 0.0)?;
    let (mut from, mut below) = (0.0, 0.0);
    for (bound, within) in came {
        if within >= wanted && bound.is_finite() {
            return Some(from + (bound - from) * (wanted - below) / (within - below));
        }
        if bound.is_finite() {
            (from, below) = (bound, within);
        }
    }
    Some(from)
}

fn median(mut values: Vec<f64>) -> Option<f64> {
    values.sort_by(f64::total_cmp);
    values.get(values.len() / 2).copied()
}

/// The slope of the line with the least squares.
fn slope(points: &[(f64, f64)]) -> Option<f64> {
    let count = float(u64::try_from(points.len()).ok()?);
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / count;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let along: f64 = points.iter().map(|point| (point.0 - x).powi(2)).sum();
    let up: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    (along > 0.0).then(|| up / along)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_quantile_lies_within_the_bucket_of_what_came_since() {
        let text = |counts: [u32; 3]| {
            let [one, two, all] = counts;
            let name = "posthaste_accept_duration_seconds_bucket";
            format!(
                "{name}{{le=\"0.001\"}} {one}\n{name}{{le=\"0.01\"}} {two}\n{name}{{le=\"+Inf\"}} {all}\nother 3\n"
            )
        };
        let (before, now) = (buckets(&text([100, 100, 100])), buckets(&text([150, 200, 200])));
        let found = quantile(&before, &now, 0.99).unwrap();
        assert!((0.0095..0.01).contains(&found), "{found}");
        assert_eq!(Some(0.01), quantile(&before, &buckets(&text([100, 100, 200])), 0.99));
        assert_eq!(None, quantile(&now, &now, 0.99));
    }

    #[test]
    fn growth_is_seen_in_the_second_half_and_judged_by_quarters() {
        let minute = Duration::from_mins(1);
        let develop = |whole: u32, mib: &dyn Fn(u32) -> f64| {
            let sample = |number: u32| {
                let mut figure = Figure::new("", "samples");
                figure.set(Measure::Rss, mib(number));
                (minute * number, figure)
            };
            let samples = (1..=whole).map(sample).collect();
            let at = std::time::Instant::now();
            let last = Reading { at, cpu_seconds: None, metrics: crate::bench::metrics::Metrics::default() };
            let mut figure = Figure::new("", "jobs");
            Sampler { whole: minute * whole, last, accepted: Vec::new(), samples }.judge(&mut figure);
            figure
        };
        let filling = develop(40, &|minute| f64::from(minute.min(10)));
        assert_eq!(Some(0.0), filling.measure(Measure::RssGrowth));
        assert_eq!(Some(1.0), filling.measure(Measure::RssToSecond));
        assert!(filling.faults.is_empty() && filling.measure(Measure::RssToFirst) > Some(1.0));
        let leaking = develop(40, &|minute| 100.0 + f64::from(minute));
        assert!((leaking.measure(Measure::RssGrowth).unwrap() - 60.0).abs() < 1e-6);
        assert_eq!(1, leaking.faults.len());
        assert!(develop(8, &|minute| f64::from(minute)).faults.is_empty(), "too short to tell");
    }
}
