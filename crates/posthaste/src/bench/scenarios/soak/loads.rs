//! The load processes of a soak, and what each promises.

use std::time::Duration;

use anyhow::Context;

use crate::bench::{
    child::Loading,
    figures::{Figure, Measure},
    float,
    plan::{Load, Outcome, Plan, Template},
    requests::{self, To},
    server::{Endpoint, Server, Setup},
    stage::{self, ReceiverProcess, Stage},
    token,
};

/// The queue that workers drain.
pub(super) const QUEUE: &str = "carts";

/// The event type of fan-outs.
pub(super) const TYPE: &str = "soak.fan-out";

/// Connections of the workers, and jobs of one consume.
const WORKERS: usize = 4;
const BATCH: usize = 100;

/// How long a worker waits for a job.
const WAIT: &str = "2s";

/// Milliseconds that what is left when the load has ended may take to be pulled.
const REST_MS: u64 = 60_000;

/// How long an endpoint that fails or hangs is waited for: long enough to count as slow.
const TIMEOUT: &str = "1200ms";

/// Of so many messages for endpoints that fail, one is for the one that hangs. As nothing is sent to such a one before the
/// delivery before it has timed out, more would pile up.
const FAILING: usize = 10;

/// Requests a second with keys that came before, how often each key comes at least, and different keys at most.
const AGAIN: f64 = 10.0;
const AGAIN_ROUNDS: f64 = 20.0;
const AGAIN_KEYS_MAX: f64 = 1_000.0;

/// What one good answer promises.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Promise {
    /// A job that will be committed; at an endpoint, the receiver's group counts it too.
    Commit(Option<&'static str>),
    /// A job that will be dead-lettered.
    DeadLetter,
    /// A job that will be committed, once for each of so many keys.
    OnceEach(u64),
    /// Nothing.
    Nothing,
}

/// A load process that runs.
struct Running {
    name: &'static str,
    unit: &'static str,
    promise: Promise,
    process: Loading,
}

/// A load process that has ended.
pub(super) struct Ended {
    name: &'static str,
    unit: &'static str,
    pub(super) promise: Promise,
    pub(super) outcome: Outcome,
}

impl Ended {
    /// Jobs that it was promised.
    pub(super) fn promised(&self) -> u64 {
        match self.promise {
            Promise::Commit(_) | Promise::DeadLetter => self.outcome.good,
            Promise::OnceEach(keys) => self.outcome.good.min(keys),
            Promise::Nothing => 0,
        }
    }

    pub(super) fn figure(&self) -> Figure {
        let mut figure = Figure::new(self.name, self.unit);
        figure.set_load(&self.outcome);
        figure.set(Measure::Jobs, float(self.outcome.good));
        figure
    }
}

/// What the server declares.
pub(super) fn setup(receiver: &ReceiverProcess, endpoints: usize) -> Setup {
    let urls = ["healthy", "again", "fan-out"].map(|group| receiver.url("ok", group));
    let (slow, fail, hang) =
        (receiver.url("slow-300", "slow"), receiver.url("fail", "fail"), receiver.url("hang", "hang"));
    // Every failure is to be seen: the circuit stays closed.
    let soon = format!(
        "timeout = \"{TIMEOUT}\"\nretry = {{ delays = [\"1s\"] }}\ncircuit = {{ failures = {} }}",
        u32::MAX
    );
    let setup = Setup::default()
        .queue(QUEUE)
        .source("github", &format!("queue = \"{QUEUE}\""))
        .endpoint(&Endpoint::new("healthy", &urls[0]))
        .endpoint(&Endpoint::new("again", &urls[1]))
        .endpoint(&Endpoint::new("slow", &slow))
        .endpoint(&Endpoint { more: &soon, ..Endpoint::new("fail", &fail) })
        .endpoint(&Endpoint { more: &soon, ..Endpoint::new("hang", &hang) });
    (0..endpoints).fold(setup, |setup, number| {
        let id = format!("e{number}");
        setup.endpoint(&Endpoint { event_type: Some(TYPE), ..Endpoint::new(&id, &urls[2]) })
    })
}

/// All load processes.
pub(super) struct Loads(Vec<Running>);

impl Loads {
    pub(super) fn start(
        stage: &Stage,
        server: &mut Server,
        payload: &str,
        whole: Duration,
    ) -> anyhow::Result<Self> {
        let to = |id: &str| requests::publish(&To::endpoint(id), server.key(), payload);
        let again = again(server.key(), payload, whole);
        let keys = u64::try_from(again.len())?;
        let failing = (1..FAILING).map(|_| to("fail")).chain([to("hang")]).collect();
        let commit = |group| Promise::Commit(Some(group));
        let sending = [
            (
                "signed intake, to the queue",
                vec![requests::github("github", payload)],
                150.0,
                Promise::Commit(None),
            ),
            ("publish to a healthy endpoint", vec![to("healthy")], 150.0, commit("healthy")),
            ("publish to one that takes 300 ms", vec![to("slow")], 20.0, commit("slow")),
            ("publish to one that fails, one that hangs", failing, 2.0, Promise::DeadLetter),
            ("the same messages again", again, AGAIN, Promise::OnceEach(keys)),
            ("lists, timeline, overview", reads(server, payload)?, 4.0, Promise::Nothing),
        ];
        let mut running = Vec::new();
        for (name, templates, per_second, promise) in sending {
            let plan = steady(stage, server, connections(per_second), stage::paced(templates, per_second));
            running.push(Running { name, unit: "requests", promise, process: stage.start(&plan)? });
        }
        let plan = steady(stage, server, WORKERS, pull(server, Some(WAIT)));
        let (name, unit) = ("workers that pull", "jobs");
        running.push(Running { name, unit, promise: Promise::Nothing, process: stage.start(&plan)? });
        Ok(Self(running))
    }

    /// Waits until all have ended.
    pub(super) fn finish(self) -> anyhow::Result<Vec<Ended>> {
        let end = |running: Running| {
            let Running { name, unit, promise, process } = running;
            let outcome = process.finish().with_context(|| name.to_owned())?;
            Ok(Ended { name, unit, promise, outcome })
        };
        self.0.into_iter().map(end).collect()
    }
}

/// Pulls what is there now, to its end.
pub(super) fn pull_the_rest(stage: &Stage, server: &Server) -> anyhow::Result<Outcome> {
    let mut plan = steady(stage, server, WORKERS, pull(server, None));
    plan.measured_ms = REST_MS;
    stage.run(&plan)
}

fn pull(server: &Server, wait: Option<&str>) -> Load {
    let (queue, api_key) = (QUEUE.to_owned(), server.key().to_owned());
    Load::Pull { queue, batch: BATCH, api_key, wait: wait.map(str::to_owned) }
}

/// Load of the whole time, every answer of which counts.
fn steady(stage: &Stage, server: &Server, connections: usize, load: Load) -> Plan {
    Plan { warm_up_ms: 0, ..stage.plan(server.address(), connections, load) }
}

fn connections(per_second: f64) -> usize {
    if per_second > 50.0 { 8 } else { 2 }
}

/// Messages that come round and round, published and as signed intake in turn.
fn again(api_key: &str, payload: &str, whole: Duration) -> Vec<Template> {
    let most = (AGAIN * whole.as_secs_f64() / AGAIN_ROUNDS).clamp(2.0, AGAIN_KEYS_MAX);
    let kinds =
        [requests::publish(&To::endpoint("again"), api_key, payload), requests::github("github", payload)];
    let numbers = (0_u32..).take_while(|number| f64::from(*number) < most);
    let one =
        |(number, kind): (u32, &Template)| requests::verbatim(&kind.text.replace(token::BLANK, &key(number)));
    numbers.zip(kinds.iter().cycle()).map(one).collect()
}

/// In place of a token; a receiver finds no time in it.
fn key(number: u32) -> String {
    format!("{number:016}-{}", "x".repeat(16))
}

/// What people and their tools look at. Publishes what they look at first.
fn reads(server: &mut Server, payload: &str) -> anyhow::Result<Vec<Template>> {
    let key = format!("b:{}", key(0));
    let message = format!("{{\"key\":\"{key}\",{}\"payload\":{payload}}}", To::endpoint("again").members());
    server.api().post("/v1/messages", &message)?;
    let paths = [
        "/v1/jobs?limit=20",
        &format!("/v1/timeline?key={key}"),
        "/v1/jobs?state=dead_lettered&limit=20",
        "/v1/overview",
    ];
    let api_key = server.key();
    let get = |path| {
        let head = format!("GET {path} HTTP/1.1\r\nhost: bench\r\nauthorization: Bearer {api_key}\r\n\r\n");
        requests::verbatim(&head)
    };
    Ok(paths.map(get).to_vec())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_that_come_again_are_the_same_in_all_but_the_token() {
        let templates = again("phk_x", "{}", Duration::from_mins(45));
        assert_eq!(1_000, templates.len());
        assert_eq!(3, again("phk_x", "{}", Duration::from_secs(6)).len());
        assert_eq!(token::LEN, key(7).len());
        assert!(templates[0].text.contains(&format!("\"b:{}\"", key(0))), "{}", templates[0].text);
        assert!(templates[1].text.contains(&key(1)), "{}", templates[1].text);
        assert_eq!(None, token::sent_us(format!("b:{}:again", key(0)).as_bytes()));
    }
}
