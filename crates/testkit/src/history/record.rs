//! What a harness sees, one observation a line.
//!
//! A call is one record: when it was invoked, and when and how it was answered, if it was. A call that could not have reached
//! the server (nobody accepted the connection) is no record.

use serde::{Deserialize, Serialize};

/// An instant of the harness: microseconds of its one monotonic clock, which was set to Unix time when it started.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct HarnessAt(pub i64);

impl HarnessAt {
    /// The same instant in milliseconds, rounded down, to be held against what the server said.
    pub fn to_ms(self) -> ServerAt {
        ServerAt(self.0.div_euclid(1_000))
    }
}

/// An instant that the server named: milliseconds since the Unix epoch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct ServerAt(pub i64);

impl ServerAt {
    /// So many milliseconds later.
    #[must_use]
    pub fn plus_ms(self, ms: i64) -> Self {
        Self(self.0 + ms)
    }
}

/// One observation.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "observation", rename_all = "snake_case")]
pub enum Record {
    /// A message was published, or delivered to intake.
    Publish(Publish),
    /// A worker asked for jobs.
    Consume(Consume),
    /// A worker reported about an attempt.
    Report(Report),
    /// A receiver got a request.
    Delivery(Delivery),
    /// The server started or ended.
    Server(ServerChange),
    /// The API showed a job while the load ran.
    Shown(ShownJob),
    /// The API showed a job at the end.
    FinalJob(ShownJob),
    /// The API was asked for a message at the end.
    FinalMessage(FinalMessage),
    /// The last line.
    End(End),
}

impl Record {
    /// The publish, if it is one.
    pub fn publish(&self) -> Option<&Publish> {
        if let Self::Publish(publish) = self { Some(publish) } else { None }
    }
}

/// By which call a message came.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Way {
    /// `POST /v1/messages`.
    Publish,
    /// One item of `POST /v1/messages/batch`.
    Batch,
    /// `POST /in/{source}`, signed.
    Intake,
}

/// One message, offered once.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Publish {
    /// By which call.
    pub way: Way,
    /// The message's key, with the source's name before it for intake.
    pub key: String,
    /// Where its jobs must go: each endpoint and queue that the publisher addressed or that subscribed to the type.
    pub destinations: Vec<String>,
    /// A hash of the payload.
    pub body_hash: String,
    /// Everything else that the key stands for, as text: type, addressees, delay.
    pub terms: String,
    /// The delay asked for.
    pub delay_ms: Option<i64>,
    /// The due time asked for.
    pub due_at: Option<ServerAt>,
    /// When the call began.
    pub invoked_at: HarnessAt,
    /// What came back; nothing if no whole answer did.
    pub answer: Option<PublishAnswer>,
}

/// What a publisher was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PublishAnswer {
    /// When the answer was whole.
    pub answered_at: HarnessAt,
    /// Its status; for an item of a batch, the item's.
    pub status: u16,
    /// The code of a refusal.
    pub code: Option<String>,
    /// The named path.
    pub path: Option<String>,
    /// `msg_…`
    pub message_id: Option<String>,
    /// How many jobs there are or will be.
    pub jobs_total: Option<u64>,
    /// The jobs that the answer lists.
    pub jobs: Vec<JobLine>,
}

/// A job as an answer to a publisher lists it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct JobLine {
    /// `job_…`
    pub job: String,
    /// `{key}:{destination}`
    pub event_id: String,
    /// One of the six states.
    pub state: String,
}

/// A worker's call for jobs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Consume {
    /// Who asked.
    pub worker: String,
    /// Of which queue.
    pub queue: String,
    /// When the call began.
    pub invoked_at: HarnessAt,
    /// When the answer was whole; nothing if it never was.
    pub answered_at: Option<HarnessAt>,
    /// The jobs of the answer.
    pub jobs: Vec<Handed>,
}

/// A job that was handed to a worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Handed {
    /// `job_…`
    pub job: String,
    /// `{key}:{destination}`
    pub event_id: String,
    /// The message's key.
    pub key: String,
    /// `msg_…`
    pub message_id: String,
    /// The attempt's number.
    pub attempt: u64,
    /// The proof of the attempt.
    pub fence: String,
    /// The named path.
    pub path: String,
    /// A hash of the payload.
    pub body_hash: String,
    /// The time asked for.
    pub scheduled_at: ServerAt,
    /// When the job became due for this attempt.
    pub due_at: ServerAt,
    /// Since when the lease runs.
    pub leased_at: ServerAt,
    /// Until when.
    pub lease_expires_at: ServerAt,
}

/// What a worker can say.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Verb {
    /// Done, or done with.
    Ack,
    /// Failed.
    Reject,
    /// More time is needed.
    Extend,
    /// Given back untried.
    Release,
}

/// A worker's report.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Report {
    /// What it says.
    pub verb: Verb,
    /// About which job.
    pub job: String,
    /// The job's event id.
    pub event_id: String,
    /// The attempt to which the fence belongs.
    pub attempt: u64,
    /// The fence given.
    pub fence: String,
    /// The outcome that the report asks for: an ack's, `failed` for a reject, `released` for a release, nothing for an extend.
    pub outcome: Option<String>,
    /// The reject says that no other attempt may follow.
    pub gives_up: bool,
    /// Everything else in the request, as text: two reports of one fence with equal verb and terms are the same report.
    pub terms: String,
    /// When the call began.
    pub invoked_at: HarnessAt,
    /// What came back; nothing if no whole answer did.
    pub answer: Option<ReportAnswer>,
}

/// What a worker was answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ReportAnswer {
    /// When the answer was whole.
    pub answered_at: HarnessAt,
    /// Its status; for an item of many, the item's.
    pub status: u16,
    /// The code of a refusal.
    pub code: Option<String>,
    /// The job's state after the report.
    pub state: Option<String>,
    /// When the next attempt may start.
    pub due_at: Option<ServerAt>,
    /// Until when the lease was extended.
    pub lease_expires_at: Option<ServerAt>,
}

/// A request that a receiver got, whole.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Delivery {
    /// The endpoint whose address was called.
    pub endpoint: String,
    /// The header `webhook-id`.
    pub webhook_id: String,
    /// The header `idempotency-key`: the event id.
    pub event_id: String,
    /// The header `posthaste-attempt`.
    pub attempt: u64,
    /// A hash of the body.
    pub body_hash: String,
    /// When the request was whole.
    pub arrived_at: HarnessAt,
    /// How it was answered.
    pub response: Response,
}

/// How a receiver answered.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Response {
    /// The status; nothing if the connection was closed without one.
    pub status: Option<u16>,
    /// The whole answer was given to the kernel.
    pub written: bool,
    /// The header `Retry-After`, in milliseconds.
    pub retry_after_ms: Option<i64>,
    /// When the answer was written or the connection closed.
    pub at: HarnessAt,
}

/// The server started or ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ServerChange {
    /// What happened.
    pub change: Change,
    /// Since when it is certain: it answers, or the process is gone.
    pub at: HarnessAt,
}

/// What happened to the server.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Change {
    /// It answers.
    Started,
    /// It was killed from outside.
    Killed,
    /// It ended by itself at this point.
    Died(String),
}

/// A job as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownJob {
    /// When the call began.
    pub invoked_at: HarnessAt,
    /// When the answer was whole.
    pub answered_at: HarnessAt,
    /// `job_…`
    pub job: String,
    /// `{key}:{destination}`
    pub event_id: String,
    /// The message's key.
    pub key: String,
    /// `msg_…`
    pub message_id: String,
    /// The endpoint or queue.
    pub destination: String,
    /// `push` or `pull`.
    pub kind: String,
    /// One of the six states.
    pub state: String,
    /// The time asked for.
    pub scheduled_at: ServerAt,
    /// Its attempts, oldest first.
    pub attempts: Vec<ShownAttempt>,
}

/// An attempt as the API shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ShownAttempt {
    /// Its number.
    pub attempt: u64,
    /// How it ended; nothing while it runs.
    pub outcome: Option<String>,
    /// The HTTP status of the answer.
    pub status: Option<u16>,
    /// What is known about the effect.
    pub effect: Option<String>,
    /// When the job became due for it.
    pub due_at: ServerAt,
    /// When it was leased.
    pub leased_at: ServerAt,
    /// When it ended.
    pub finished_at: Option<ServerAt>,
    /// When the next one may start.
    pub next_at: Option<ServerAt>,
    /// The outcome of a report that came after its end and was accepted.
    pub late_outcome: Option<String>,
    /// A commit of it was heard, whether its report was accepted or refused.
    #[serde(default)]
    pub commit_heard: bool,
}

/// What the API knows of a message at the end.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FinalMessage {
    /// The key that was asked for.
    pub key: String,
    /// `msg_…`; nothing if there is no such message.
    pub message_id: Option<String>,
    /// How many jobs it has or will have.
    pub jobs_total: u64,
    /// `done`, or `running`.
    pub fanout: String,
}

/// How the harness ended.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct End {
    /// The load was over and the server stayed up until nothing was left to do, or until the harness's patience was.
    pub quiescence: bool,
}

/// Writes one line.
///
/// Errors: those of the writer.
pub fn write_line(record: &Record, to: &mut dyn std::io::Write) -> std::io::Result<()> {
    serde_json::to_writer(&mut *to, record)?;
    to.write_all(b"\n")
}

/// Reads a whole history.
///
/// Errors: a line that is no observation, by its number.
pub fn read(text: &str) -> Result<Vec<Record>, String> {
    let lines = text.lines().enumerate();
    lines
        .map(|(at, line)| serde_json::from_str(line).map_err(|error| format!("line {}: {error}", at + 1)))
        .collect()
}
