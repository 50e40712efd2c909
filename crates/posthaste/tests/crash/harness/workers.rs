//! Those who pull: most work honestly, some lose their lease and report all the same.

use std::sync::Arc;

use base64::{Engine as _, prelude::BASE64_STANDARD};
use posthaste_testkit::history::record::{Consume, Handed, HarnessAt, Record, Report, ReportAnswer, Verb};
use serde::Deserialize;
use serde_json::{Value, json, value::RawValue};

use super::{
    chance::Chance,
    client::{Answer, Call, Client},
    configuration::QUEUES,
    message::{hash, instant, instant_of},
    stage::Stage,
};

/// From which attempt on a job is simply done, so that the end comes.
const ATTEMPTS_UNTIL_DONE: u64 = 5;
/// How often a report without an answer is sent again.
const REPEATS_MAX: u32 = 40;

#[derive(Deserialize)]
struct Leased {
    jobs: Vec<LeasedJob>,
}

#[derive(Deserialize)]
struct LeasedJob {
    id: String,
    event_id: String,
    message_id: String,
    key: String,
    attempt: u64,
    fence: String,
    path: String,
    payload: Option<Box<RawValue>>,
    payload_base64: Option<String>,
    scheduled_at: String,
    due_at: String,
    leased_at: String,
    lease_expires_at: String,
}

impl From<LeasedJob> for Handed {
    fn from(job: LeasedJob) -> Self {
        let body = match (&job.payload, &job.payload_base64) {
            (Some(json), _) => json.get().as_bytes().to_vec(),
            (None, text) => BASE64_STANDARD.decode(text.as_deref().unwrap_or_default()).unwrap(),
        };
        Self {
            job: job.id,
            event_id: job.event_id,
            key: job.key,
            message_id: job.message_id,
            attempt: job.attempt,
            fence: job.fence,
            path: job.path,
            body_hash: hash(&body),
            scheduled_at: instant(&job.scheduled_at),
            due_at: instant(&job.due_at),
            leased_at: instant(&job.leased_at),
            lease_expires_at: instant(&job.lease_expires_at),
        }
    }
}

/// What a worker says, without about what.
#[derive(Clone)]
struct Saying {
    verb: Verb,
    outcome: Option<&'static str>,
    gives_up: bool,
    terms: Value,
}

impl Saying {
    fn ack(outcome: &'static str) -> Self {
        Self { verb: Verb::Ack, outcome: Some(outcome), gives_up: false, terms: json!({"outcome": outcome}) }
    }

    fn reject(terms: Value) -> Self {
        let gives_up = terms["retry"] == json!(false);
        Self { verb: Verb::Reject, outcome: Some("failed"), gives_up, terms }
    }

    fn release() -> Self {
        Self { verb: Verb::Release, outcome: Some("released"), gives_up: false, terms: json!({}) }
    }

    fn extend() -> Self {
        Self { verb: Verb::Extend, outcome: None, gives_up: false, terms: json!({}) }
    }

    fn path(&self) -> &'static str {
        match self.verb {
            Verb::Ack => "/v1/queue/ack",
            Verb::Reject => "/v1/queue/reject",
            Verb::Extend => "/v1/queue/extend",
            Verb::Release => "/v1/queue/release",
        }
    }
}

/// What a worker does with a job.
enum Fate {
    /// Reports at once.
    Report(Saying),
    /// Asks for more time first.
    ExtendAndDo,
    /// Keeps the fence and reports when the lease is long over.
    Late(Saying),
    Vanish,
}

fn fate(chance: &mut Chance, attempt: u64) -> Fate {
    let drawn = if attempt >= ATTEMPTS_UNTIL_DONE { 999 } else { chance.within(0..1_000) };
    match drawn {
        0..60 => Fate::Report(Saying::reject(json!({"class": "timeout"}))),
        60..75 => Fate::Report(Saying::reject(json!({"class": "connect", "retry_after": "300ms"}))),
        75..80 => Fate::Report(Saying::reject(json!({"retry": false, "message": "never"}))),
        80..90 => Fate::Report(Saying::ack("cancelled")),
        90..100 => Fate::Report(Saying::ack("duplicate")),
        100..130 => Fate::Report(Saying::release()),
        130..170 => Fate::ExtendAndDo,
        170..195 => Fate::Late(Saying::ack("committed")),
        195..205 => Fate::Late(Saying::reject(json!({"class": "timeout"}))),
        205..210 => Fate::Late(Saying::release()),
        210..220 => Fate::Late(Saying::extend()),
        220..235 => Fate::Vanish,
        _ => Fate::Report(Saying::ack("committed")),
    }
}

/// Pulls from one of the queues until all is over.
pub(crate) async fn run(stage: Arc<Stage>, number: usize) {
    let name = format!("w-{number}");
    let mut worker = Worker {
        chance: Chance::of(stage.plan.seed, &name),
        client: stage.client(),
        queue: QUEUES[usize::from(number % 3 == 2)].0,
        name,
        late: Vec::new(),
        stage: &stage,
    };
    while !stage.all_is_over() {
        worker.report_late().await;
        let jobs = worker.consume().await;
        if jobs.len() > 1 && worker.chance.permille(300) {
            worker.acknowledge_together(&jobs).await;
            continue;
        }
        for job in jobs {
            worker.work(job).await;
        }
    }
}

struct Worker<'s> {
    stage: &'s Stage,
    name: String,
    queue: &'static str,
    chance: Chance,
    client: Client,
    /// What will be reported, and when.
    late: Vec<(HarnessAt, Handed, Saying)>,
}

impl Worker<'_> {
    async fn consume(&mut self) -> Vec<Handed> {
        let max = self.chance.within(1..40);
        let body = json!({"queue": self.queue, "max": max, "wait": "200ms", "worker": self.name});
        let Some(Call { invoked_at, answer }) =
            self.client.api("POST", "/v1/queue/consume", &body.to_string()).await
        else {
            self.chance.pause(5..25).await;
            return Vec::new();
        };
        let answer = answer.filter(|answer| answer.status == 200);
        let jobs: Vec<Handed> = answer.as_ref().map_or(Vec::new(), |answer| {
            let leased: Leased = serde_json::from_slice(&answer.body).unwrap();
            leased.jobs.into_iter().map(Handed::from).collect()
        });
        let answered_at = answer.map(|answer| answer.answered_at);
        if answered_at.is_none() {
            self.chance.pause(5..25).await;
        }
        let (worker, queue) = (self.name.clone(), self.queue.to_owned());
        self.stage.log.add(Record::Consume(Consume {
            worker,
            queue,
            invoked_at,
            answered_at,
            jobs: jobs.clone(),
        }));
        jobs
    }

    async fn work(&mut self, job: Handed) {
        match fate(&mut self.chance, job.attempt) {
            Fate::Report(saying) => self.say(&job, &saying).await,
            Fate::ExtendAndDo => {
                self.say(&job, &Saying::extend()).await;
                self.say(&job, &Saying::ack("committed")).await;
            }
            Fate::Late(saying) => {
                let wait_ms = i64::try_from(self.chance.within(900..4_000)).unwrap();
                let at = HarnessAt(self.stage.log.now().0 + wait_ms * 1_000);
                self.late.push((at, job, saying));
            }
            Fate::Vanish => {}
        }
    }

    /// Sends the reports whose time has come.
    async fn report_late(&mut self) {
        let now = self.stage.log.now();
        let (due, later) = std::mem::take(&mut self.late).into_iter().partition(|(at, ..)| *at <= now);
        self.late = later;
        let due: Vec<(HarnessAt, Handed, Saying)> = due;
        for (_, job, saying) in due {
            self.say(&job, &saying).await;
        }
    }

    /// Reports until there is an answer; sometimes once more, and sometimes something else afterwards.
    async fn say(&mut self, job: &Handed, saying: &Saying) {
        for _ in 0..REPEATS_MAX {
            match self.report(job, saying).await {
                Some(Some(200..500)) => break,
                // Nobody knows whether it counted, and nobody asks again.
                Some(None) if self.chance.permille(200) => return,
                _ => self.chance.pause(5..25).await,
            }
        }
        if self.chance.permille(40) {
            self.report(job, saying).await;
        }
        if saying.verb != Verb::Extend && self.chance.permille(20) {
            let contrary =
                if saying.verb == Verb::Ack { Saying::release() } else { Saying::ack("committed") };
            self.report(job, &contrary).await;
        }
    }

    /// Reports on all at once until there is an answer.
    async fn acknowledge_together(&mut self, jobs: &[Handed]) {
        let saying = Saying::ack("committed");
        let items: Vec<_> = jobs.iter().map(|job| request(job, &saying)).collect();
        let body = json!({"jobs": items}).to_string();
        for _ in 0..REPEATS_MAX {
            let Some(call) = self.client.api("POST", saying.path(), &body).await else {
                self.chance.pause(5..25).await;
                continue;
            };
            let whole = call.answer.as_ref().map(|answer| (answer, answer.json()));
            for (at, job) in jobs.iter().enumerate() {
                let answer = whole.as_ref().map(|(answer, whole)| {
                    let item = &whole["results"][at];
                    match item["status"].as_u64() {
                        Some(status) => said_of(answer, item, u16::try_from(status).unwrap()),
                        None => said_of(answer, whole, answer.status),
                    }
                });
                self.note(job, &saying, call.invoked_at, answer);
            }
            if call.answer.is_some_and(|answer| answer.status == 200) {
                return;
            }
        }
    }

    /// One report. Nothing if it could not be sent; else the status, if there was an answer.
    async fn report(&mut self, job: &Handed, saying: &Saying) -> Option<Option<u16>> {
        let call = self.client.api("POST", saying.path(), &request(job, saying).to_string()).await?;
        let answer = call.answer.as_ref().map(|answer| said_of(answer, &answer.json(), answer.status));
        let status = answer.as_ref().map(|answer| answer.status);
        self.note(job, saying, call.invoked_at, answer);
        Some(status)
    }

    fn note(&self, job: &Handed, saying: &Saying, invoked_at: HarnessAt, answer: Option<ReportAnswer>) {
        self.stage.log.add(Record::Report(Report {
            verb: saying.verb,
            job: job.job.clone(),
            event_id: job.event_id.clone(),
            attempt: job.attempt,
            fence: job.fence.clone(),
            outcome: saying.outcome.map(str::to_owned),
            gives_up: saying.gives_up,
            terms: saying.terms.to_string(),
            invoked_at,
            answer,
        }));
    }
}

fn request(job: &Handed, saying: &Saying) -> Value {
    let mut body = saying.terms.clone();
    (body["job"], body["fence"]) = (json!(job.job), json!(job.fence));
    body
}

fn said_of(answer: &Answer, said: &Value, status: u16) -> ReportAnswer {
    let text = |field: &str| said[field].as_str().map(str::to_owned);
    ReportAnswer {
        answered_at: answer.answered_at,
        status,
        code: text("code"),
        state: if status == 200 { text("state") } else { None },
        due_at: instant_of(&said["due_at"]),
        lease_expires_at: instant_of(&said["lease_expires_at"]),
    }
}
