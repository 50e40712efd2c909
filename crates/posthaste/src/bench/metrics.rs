//! What the server says of itself at `/metrics`, as far as the bench asks.

/// One reading.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Metrics {
    /// Jobs that were committed since the server's start.
    pub(super) committed: f64,
    /// Jobs that were given up since the server's start.
    pub(super) dead_lettered: f64,
    /// Commits of the store; `None` if the server doesn't count them.
    pub(super) commits: Option<f64>,
    /// Rows in these commits.
    pub(super) rows: Option<f64>,
}

impl Metrics {
    /// Reads the OpenMetrics text format.
    pub(super) fn parse(text: &str) -> Self {
        let value = |series: &str| {
            text.lines().find_map(|line| line.strip_prefix(series)?.strip_prefix(' ')?.parse::<f64>().ok())
        };
        Self {
            committed: value("posthaste_finished_total{state=\"committed\"}").unwrap_or(0.0),
            dead_lettered: value("posthaste_finished_total{state=\"dead_lettered\"}").unwrap_or(0.0),
            commits: value("posthaste_store_commit_seconds_count"),
            rows: value("posthaste_store_batch_rows_sum"),
        }
    }

    /// What was counted since `before`.
    pub(super) fn since(&self, before: &Self) -> Self {
        let less = |now: Option<f64>, before: Option<f64>| Some(now? - before?);
        Self {
            committed: self.committed - before.committed,
            dead_lettered: self.dead_lettered - before.dead_lettered,
            commits: less(self.commits, before.commits),
            rows: less(self.rows, before.rows),
        }
    }

    /// Rows of a commit, on average.
    pub(super) fn rows_per_commit(&self) -> Option<f64> {
        let (rows, commits) = (self.rows?, self.commits?);
        (commits > 0.0).then(|| rows / commits)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_whole_series_are_read() {
        let text = "posthaste_finished_total{state=\"committed\"} 12\nposthaste_store_commit_seconds_count 4\n\
                    posthaste_store_batch_rows_sum 40.0\n# EOF\n";
        let read = Metrics::parse(text);
        assert_eq!((12.0, 0.0), (read.committed, read.dead_lettered));
        assert_eq!(Some(10.0), read.rows_per_commit());
        assert_eq!(None, Metrics::parse("").since(&read).commits);
    }
}
