//! What a load process is told on standard input, and what it answers on standard output: JSON, one value each.
//!
//! On standard input rather than as arguments, so that no API key shows in a list of processes.

use std::{collections::BTreeMap, net::SocketAddr};

use serde::{Deserialize, Serialize};

/// What to send, where, how long.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Plan {
    /// The server.
    pub(super) address: SocketAddr,
    /// Connections at once; each has at most one request on its way.
    pub(super) connections: usize,
    /// Milliseconds whose answers count.
    pub(super) measured_ms: u64,
    /// Milliseconds before these, at the same load.
    pub(super) warm_up_ms: u64,
    /// What each connection does.
    pub(super) load: Load,
}

/// What each connection does.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum Load {
    /// Sends requests.
    Requests {
        /// Taken in turn.
        templates: Vec<Template>,
        /// Makes the keys differ from those of other load processes.
        salt: u64,
        /// Requests a second over all connections; `None`: the next as soon as one is answered.
        per_second: Option<f64>,
        /// Requests in all; `None`: until the time is over.
        limit: Option<u64>,
    },
    /// Consumes and acknowledges until the queue is empty, or for as long as the time says.
    Pull {
        /// The queue.
        queue: String,
        /// Jobs of one consume.
        batch: usize,
        /// The API key.
        api_key: String,
        /// How long each consume waits for a job, as in the API; then an empty queue does not end it. `None`: it does.
        wait: Option<String>,
    },
    /// Never ends a request: a byte a second.
    Drip {
        /// Which bytes come slowly.
        part: Part,
        /// The whole request.
        request: String,
    },
}

/// The part of a request that comes slowly.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) enum Part {
    /// From the first byte on.
    Head,
    /// The head at once, then the body.
    Body,
}

/// A request in bytes, with a place for a token that makes it distinct.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Template {
    /// The whole request.
    pub(super) text: String,
    /// Where the token begins; it is [`super::token::LEN`] bytes long.
    pub(super) token_at: usize,
}

/// What came of it.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(super) struct Outcome {
    /// Length of the measured time.
    pub(super) seconds: f64,
    /// Good answers within it; jobs for [`Load::Pull`].
    pub(super) measured: u64,
    /// Good answers in all; jobs for [`Load::Pull`].
    pub(super) good: u64,
    /// Connections that were opened, cut ones again.
    pub(super) connections: u64,
    /// What else came, by status or kind.
    pub(super) errors: BTreeMap<String, u64>,
    /// The body of the first bad answer.
    pub(super) first_error: Option<String>,
    /// From the request to its answer.
    pub(super) latency: Quantiles,
    /// Processor seconds of the load process.
    pub(super) cpu_seconds: Option<f64>,
    /// Microseconds of the Unix epoch when the first request left.
    pub(super) begun_us: u64,
    /// Microseconds of the Unix epoch when the last answer came.
    pub(super) ended_us: u64,
}

impl Outcome {
    /// Good answers a second in the measured time.
    pub(super) fn rate(&self) -> f64 {
        if self.seconds > 0.0 { super::float(self.measured) / self.seconds } else { 0.0 }
    }

    /// From the first request to the last answer, in seconds.
    pub(super) fn elapsed_seconds(&self) -> f64 {
        super::float(self.ended_us.saturating_sub(self.begun_us)) / 1e6
    }
}

/// Quantiles of times, in microseconds.
#[derive(Clone, Copy, Debug, Default, Serialize, Deserialize)]
pub(super) struct Quantiles {
    /// How many were recorded.
    pub(super) count: u64,
    pub(super) p50: u64,
    pub(super) p99: u64,
    pub(super) max: u64,
}
