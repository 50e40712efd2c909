//! `soak`: everything at once for a long time, at a pace that leaves the machine mostly idle. What grows, breaks or gets
//! lost only after a while shows here.

mod accounts;
mod loads;
mod samples;

use std::{
    collections::BTreeMap,
    time::{Duration, Instant},
};

use serde_json::json;

use self::{
    accounts::Accounts,
    loads::{Loads, QUEUE, TYPE},
    samples::Sampler,
};
use crate::bench::{
    figures::{Figure, Measure},
    float,
    requests::{self, To},
    server::Server,
    stage::Stage,
    times::Times,
};

pub(super) const ABOUT: &str = "intake, publishing, delays, a fan-out, endpoints that lag, fail or hang, duplicates, workers and readers \
     at once; p99 of a sample is the acceptance's since the last one, estimated from the server's histogram; exit 1 if \
     anything was refused, logged as an error, lost or left, or if memory grew";

/// Endpoints of the fan-out, unless told.
const ENDPOINTS: usize = 200;

/// Jobs for later, a second.
const DELAYED: f64 = 20.0;

/// Different delays.
const DELAYS: u32 = 4;

/// The times of a soak. They shrink with one that is short.
#[derive(Clone, Copy, Debug)]
struct Pace {
    whole: Duration,
    sample_every: Duration,
    fan_out_every: Duration,
    fill_every: Duration,
    delay_min: Duration,
    delay_max: Duration,
}

impl Pace {
    fn of(whole: Duration) -> Self {
        let part = |share: u32, seconds: u64| (whole / share).min(Duration::from_secs(seconds));
        Self {
            whole,
            sample_every: part(10, 60),
            fan_out_every: part(20, 30),
            fill_every: part(12, 5),
            delay_min: part(20, 30),
            delay_max: part(5, 120),
        }
    }

    /// The delay of the `turn`th batch.
    fn delay(&self, turn: u32) -> Duration {
        self.delay_min + self.delay_max.saturating_sub(self.delay_min) / (DELAYS - 1) * (turn % DELAYS)
    }
}

pub(super) fn measure(stage: &Stage) -> anyhow::Result<Vec<Figure>> {
    let pace = Pace::of(stage.seconds());
    let endpoints = stage.options.endpoint_count.unwrap_or(ENDPOINTS);
    let payload = requests::payload(stage.options.payload_bytes);
    let mut receiver = stage.receiver()?;
    let mut server = stage.server(&loads::setup(&receiver, endpoints))?;
    let loads = Loads::start(stage, &mut server, &payload, pace.whole)?;
    let mut sampler = Sampler::begin(&mut server, pace.whole)?;
    let mut by_hand = ByHand::new(endpoints, &payload);
    by_hand.go_on(stage, &mut server, pace, &mut sampler)?;
    let ended = loads.finish()?;

    let mut accounts = Accounts::new(&ended, u64::try_from(endpoints)?, &by_hand);
    stage.tell(&format!("the load has ended; {} jobs were acknowledged", accounts.promised));
    accounts.settle(stage, &mut server)?;
    let mut whole = Figure::new("all together", "jobs");
    accounts.judge(&mut whole, &mut receiver)?;
    sampler.judge(&mut whole);
    whole.set_memory(server.memory());
    accounts.set_store(&mut whole, &server);
    let log = accounts::log(&mut whole, &server.log()?);
    server.discard();

    let mut figures = sampler.figures();
    figures.extend(ended.iter().map(loads::Ended::figure));
    figures.extend(by_hand.figures());
    figures.push(whole);
    figures.extend(log);
    Ok(figures)
}

/// What the bench sends itself while the load processes run: batches for later, and fan-outs.
struct ByHand {
    endpoints: usize,
    payload: String,
    acknowledged: Times,
    fan_outs: u64,
    fills: u32,
    delayed: u64,
    errors: BTreeMap<String, u64>,
}

/// What is done every now and then.
#[derive(Clone, Copy, Debug)]
enum Deed {
    Fill,
    FanOut,
    Sample,
}

impl ByHand {
    fn new(endpoints: usize, payload: &str) -> Self {
        Self {
            endpoints,
            payload: payload.to_owned(),
            acknowledged: Times::new(),
            fan_outs: 0,
            fills: 0,
            delayed: 0,
            errors: BTreeMap::new(),
        }
    }

    /// Until the time is over. Errors: the server has ended, or it should end.
    fn go_on(
        &mut self,
        stage: &Stage,
        server: &mut Server,
        pace: Pace,
        sampler: &mut Sampler,
    ) -> anyhow::Result<()> {
        let begun = Instant::now();
        let mut due = [
            (pace.fill_every, pace.fill_every, Deed::Fill),
            (pace.fan_out_every, pace.fan_out_every, Deed::FanOut),
            (pace.sample_every, pace.sample_every, Deed::Sample),
        ];
        stage.tell(&samples::heading());
        while let Some((at, every, deed)) = due.iter_mut().min_by_key(|(at, ..)| *at)
            && *at <= pace.whole
        {
            stage.rest((begun + *at).saturating_duration_since(Instant::now()))?;
            let done = match deed {
                Deed::Fill => self.fill(server, pace),
                Deed::FanOut => self.fan_out(server),
                Deed::Sample => sampler.take(server, begun.elapsed()).map(|line| stage.tell(&line)),
            };
            if let Err(error) = done {
                server.check()?;
                stage.tell(&format!("{deed:?}: {error:#}"));
                *self.errors.entry(format!("{deed:?}: {error:#}")).or_default() += 1;
            }
            *at += *every;
        }
        stage.rest((begun + pace.whole).saturating_duration_since(Instant::now()))
    }

    /// A batch of jobs for later.
    fn fill(&mut self, server: &Server, pace: Pace) -> anyhow::Result<()> {
        let mut count = 0_u32;
        while f64::from(count) < DELAYED * pace.fill_every.as_secs_f64() {
            count += 1;
        }
        let delay = format!("{}ms", pace.delay(self.fills).as_millis());
        self.fills += 1;
        server.fill(&To::queue(QUEUE), usize::try_from(count)?, &self.payload, Some(&delay))?;
        self.delayed += u64::from(count);
        Ok(())
    }

    /// One message for every endpoint that subscribed.
    fn fan_out(&mut self, server: &mut Server) -> anyhow::Result<()> {
        server.connect_again()?;
        let payload: serde_json::Value = serde_json::from_str(&self.payload)?;
        let key = format!("fan-out:{}", self.fan_outs);
        let message = json!({ "key": key, "type": TYPE, "payload": payload }).to_string();
        let begun = Instant::now();
        server.api().post("/v1/messages", &message)?;
        self.acknowledged.record(begun.elapsed());
        self.fan_outs += 1;
        Ok(())
    }

    /// Jobs that were acknowledged.
    fn promised(&self) -> u64 {
        self.delayed + self.fan_outs * u64::try_from(self.endpoints).unwrap_or(u64::MAX)
    }

    fn figures(&self) -> Vec<Figure> {
        let mut delayed = Figure::new("batches for later, to the queue", "jobs");
        delayed.set(Measure::Jobs, float(self.delayed));
        for (error, count) in &self.errors {
            delayed.fault(format!("{error}: {count} times"));
        }
        let mut fan_outs = Figure::new(format!("fan-outs to {}", self.endpoints), "messages");
        fan_outs.set_times(&self.acknowledged.quantiles());
        fan_outs.set(Measure::Jobs, float(self.promised() - self.delayed));
        vec![delayed, fan_outs]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_times_shrink_with_a_short_soak() {
        let long = Pace::of(Duration::from_mins(45));
        assert_eq!(
            [60, 30, 5],
            [long.sample_every, long.fan_out_every, long.fill_every].map(|t| t.as_secs())
        );
        let delays = [0, 1, 2, 3, 4].map(|turn| long.delay(turn).as_secs());
        assert_eq!([30, 60, 90, 120, 30], delays);
        let short = Pace::of(Duration::from_secs(6));
        assert_eq!(Duration::from_millis(600), short.sample_every);
        assert_eq!(Duration::from_millis(1_200), short.delay(3));
    }
}
