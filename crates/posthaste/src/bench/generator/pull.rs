//! Workers that pull: each consumes a batch, acknowledges it, and comes again until nothing is left.

use std::{fmt::Write as _, time::Instant};

use super::{
    Tally, Window,
    event_loop::{Driver, Next, Turn},
    tally::Until,
};
use crate::bench::{plan::Outcome, requests::api_request, wire::Answer};

/// Consumes and acknowledges over each connection.
pub(super) struct Pull {
    consume: String,
    queue: String,
    batch: usize,
    api_key: String,
    /// An empty queue is asked again.
    goes_on: bool,
    workers: Vec<Worker>,
    tally: Tally,
}

/// Where a worker stands.
#[derive(Clone)]
enum Worker {
    /// Asks for jobs.
    Consumes,
    /// Reports on `jobs` jobs.
    Acknowledges { jobs: u64, request: Vec<u8> },
    /// There was nothing left.
    Done,
}

impl Pull {
    pub(super) fn new(queue: &str, batch: usize, api_key: &str, workers: usize, window: Window) -> Self {
        Self {
            consume: consume(queue, batch, "", api_key),
            queue: queue.to_owned(),
            batch,
            api_key: api_key.to_owned(),
            goes_on: false,
            workers: vec![Worker::Consumes; workers],
            tally: Tally::begin(window),
        }
    }

    /// Each consume waits so long for a job, and an empty queue is asked again until the time is over.
    pub(super) fn wait(&mut self, wait: Option<&str>) {
        let Some(wait) = wait else { return };
        self.goes_on = true;
        self.consume = consume(&self.queue, self.batch, &format!(",\"wait\":\"{wait}\""), &self.api_key);
    }

    fn after(&mut self, asked: &Worker, body: &[u8], begun: Instant, now: Instant) -> Worker {
        match asked {
            Worker::Consumes => {
                let Ok(text) = std::str::from_utf8(body) else {
                    self.tally.failed("no text", 1);
                    return Worker::Done;
                };
                let (jobs, reports) = reports(text);
                if jobs == 0 {
                    return if self.goes_on { Worker::Consumes } else { Worker::Done };
                }
                let request = api_request("/v1/queue/ack", &self.api_key, None, &reports).into_bytes();
                Worker::Acknowledges { jobs, request }
            }
            Worker::Acknowledges { jobs, .. } => {
                let text = String::from_utf8_lossy(body);
                let committed = count(text.matches("\"state\":\"committed\""));
                self.tally.good(committed, begun, now);
                self.tally.failed("not committed", jobs.saturating_sub(committed));
                Worker::Consumes
            }
            Worker::Done => Worker::Done,
        }
    }
}

impl Driver for Pull {
    fn next(&mut self, connection: usize, turn: Turn, request: &mut Vec<u8>) -> Next {
        let consume = || self.consume.as_bytes();
        let bytes = match &self.workers[connection] {
            Worker::Consumes if turn.now < self.tally.end => consume(),
            Worker::Acknowledges { request, .. } => request,
            Worker::Consumes | Worker::Done => return Next::Done,
        };
        request.clear();
        request.extend_from_slice(bytes);
        Next::Send { begun: turn.now }
    }

    fn answered(&mut self, connection: usize, answer: &Answer<'_>, begun: Instant, now: Instant) {
        let asked = std::mem::replace(&mut self.workers[connection], Worker::Done);
        if answer.is_good() {
            self.workers[connection] = self.after(&asked, answer.body, begun, now);
        } else {
            self.tally.bad(answer);
            // A server that refuses is asked again; one that refuses everything ends it all.
            if self.tally.errors().values().sum::<u64>() < 100 {
                self.workers[connection] = Worker::Consumes;
            }
        }
    }

    fn broken(&mut self, connection: usize) {
        self.tally.failed("connection", 1);
        self.workers[connection] = Worker::Consumes;
    }

    fn patient_until(&self) -> Instant {
        self.tally.patient_until()
    }

    fn finish(&mut self, unanswered: usize) -> Outcome {
        self.tally.failed("no answer", count(0..unanswered));
        self.tally.take(Until::LastAnswer)
    }
}

/// A consume; `more` are further members of its body, each after its comma.
fn consume(queue: &str, batch: usize, more: &str, api_key: &str) -> String {
    let body = format!("{{\"queue\":\"{queue}\",\"max\":{batch},\"worker\":\"bench\"{more}}}");
    api_request("/v1/queue/consume", api_key, None, &body)
}

/// The reports on all jobs of a consume's answer, and how many they are.
///
/// Payloads are the bench's own and hold no member of these names.
fn reports(mut rest: &str) -> (u64, String) {
    let (mut jobs, mut body) = (0_u64, String::from("{\"jobs\":["));
    while let Some((job, after)) = member(rest, "\"id\":\"") {
        let Some((fence, after)) = member(after, "\"fence\":\"") else { break };
        if jobs > 0 {
            body.push(',');
        }
        let written = write!(body, "{{\"job\":\"{job}\",\"fence\":\"{fence}\",\"outcome\":\"committed\"}}");
        written.expect("a String takes all text");
        jobs += 1;
        rest = after;
    }
    body.push_str("]}");
    (jobs, body)
}

fn member<'a>(text: &'a str, name: &str) -> Option<(&'a str, &'a str)> {
    let (_, after) = text.split_once(name)?;
    after.split_once('"')
}

fn count(of: impl Iterator) -> u64 {
    u64::try_from(of.count()).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_name_each_job_with_its_fence() {
        let answer = r#"{"jobs":[{"id":"job_1","event_id":"a:q","message_id":"msg_1","fence":"1.1","payload":{}},
            {"id":"job_2","event_id":"b:q","message_id":"msg_2","fence":"1.2","payload":{}}]}"#;
        let (jobs, body) = reports(answer);
        assert_eq!(2, jobs);
        let body: serde_json::Value = serde_json::from_str(&body).unwrap();
        assert_eq!("job_2", body["jobs"][1]["job"]);
        assert_eq!("1.2", body["jobs"][1]["fence"]);
        assert_eq!(0, reports("{\"jobs\":[]}").0);
    }
}
