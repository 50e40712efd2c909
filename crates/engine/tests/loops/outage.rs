//! A day's outage of one endpoint in virtual time: what is spent, what is held, and how it comes back. Rows B5, B6, D4.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
};

use crate::support::{AnyUrl, PlainSecrets, endpoint, id, message};
use parking_lot::Mutex;
use posthaste_core::{DurationMs, TenantId, Timestamp};
use posthaste_engine::{
    Engine, EngineParts, Metrics, PublishTo, Settings,
    ports::{BoxFuture, Clock, HttpSender, OutboundRequest, SendOutcome},
};
use posthaste_store::{JobFilter, Lanes, ManagedBy, Reads, Store, memory::MemoryStore};
use posthaste_testkit::{ManualClock, answer};

const JOBS: usize = 10_000;
const OUTAGE: DurationMs = DurationMs::from_hours(24);
/// What the receivers take for an answer.
const LATENCY: DurationMs = DurationMs(100);

/// Two receivers, one of which is down until a certain time.
struct Receivers {
    clock: Arc<ManualClock>,
    down_until: Timestamp,
    sent: Mutex<Vec<(Timestamp, bool)>>,
    running: AtomicUsize,
    most: AtomicUsize,
}

impl HttpSender for Receivers {
    fn send(&self, request: OutboundRequest) -> BoxFuture<'_, SendOutcome> {
        Box::pin(async move {
            let now = posthaste_store::Clock::now(&*self.clock);
            let ill = request.url.contains("//ill.");
            self.sent.lock().push((now, ill));
            if !ill {
                return answer(200, None);
            }
            let running = self.running.fetch_add(1, Ordering::SeqCst) + 1;
            self.most.fetch_max(running, Ordering::SeqCst);
            self.clock.sleep_until(now.after(LATENCY)).await;
            self.running.fetch_sub(1, Ordering::SeqCst);
            let up = posthaste_store::Clock::now(&*self.clock) >= self.down_until;
            answer(if up { 200 } else { 503 }, None)
        })
    }
}

struct World {
    engine: Arc<Engine>,
    store: Arc<MemoryStore>,
    receivers: Arc<Receivers>,
    clock: Arc<ManualClock>,
    tenant: TenantId,
}

impl World {
    async fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let store = Arc::new(MemoryStore::new(clock.clone()));
        let down_until = posthaste_store::Clock::now(&*clock).after(OUTAGE);
        let receivers = Arc::new(Receivers {
            clock: clock.clone(),
            down_until,
            sent: Mutex::default(),
            running: AtomicUsize::new(0),
            most: AtomicUsize::new(0),
        });
        let parts = EngineParts {
            store: store.clone() as Arc<dyn Store>,
            clock: clock.clone(),
            sender: receivers.clone(),
            secrets: Arc::new(PlainSecrets),
            url_judge: Arc::new(AnyUrl),
            metrics: Metrics::new(),
            settings: Settings::standard("node-1"),
        };
        let engine = Engine::start(parts).await.unwrap();
        let tenant = engine.ensure_tenant("default").await.unwrap();
        for name in ["ill", "well"] {
            engine.put_endpoint(tenant, endpoint(name), ManagedBy::Api, false).await.unwrap();
        }
        Self { engine, store, receivers, clock, tenant }
    }

    async fn publish(&self, to: &str, keys: std::ops::Range<usize>) {
        let to = PublishTo::Endpoints(vec![id(to)]);
        let messages = keys.map(|number| message(&format!("{number}"), to.clone())).collect();
        let published = self.engine.publish(self.tenant, messages).await.unwrap();
        assert!(published.iter().all(Result::is_ok));
    }

    /// Moves time on and lets everything go on that can, until nothing more is sent.
    async fn advance(&self, by: DurationMs) {
        self.clock.advance(by);
        self.settle().await;
    }

    async fn settle(&self) {
        let (mut seen, mut quiet) = (0, 0);
        while quiet < 50 {
            tokio::task::yield_now().await;
            let sent = self.receivers.sent.lock().len() + self.receivers.running.load(Ordering::SeqCst);
            quiet = if sent == seen { quiet + 1 } else { 0 };
            seen = sent;
        }
    }

    fn sent_to_the_ill(&self) -> usize {
        self.receivers.sent.lock().iter().filter(|(_, ill)| *ill).count()
    }

    async fn states(&self) -> BTreeMap<&'static str, usize> {
        let mut states = BTreeMap::new();
        let mut after = None;
        loop {
            let filter = JobFilter { oldest_first: true, after, limit: 500, ..JobFilter::default() };
            let page = self.store.jobs(self.tenant, filter).await.unwrap();
            let Some(last) = page.last() else { return states };
            after = Some(last.job.id);
            for view in &page {
                *states.entry(view.job.state.name().as_str()).or_default() += 1;
            }
        }
    }
}

#[tokio::test]
async fn r_b6_a_days_outage_burns_nothing_and_ends_in_a_ramp() {
    let world = World::new().await;
    for from in (0..JOBS).step_by(1_000) {
        world.publish("ill", from..from + 1_000).await;
    }
    world.settle().await;
    // Until the circuit opens.
    for _ in 0..20 {
        world.advance(LATENCY).await;
    }
    let before_open = world.sent_to_the_ill();
    assert!((10..=20).contains(&before_open), "{before_open}: ten failures, and what was on its way");

    let mut hours = 0;
    while posthaste_store::Clock::now(&*world.clock).after(DurationMs::from_mins(6))
        < world.receivers.down_until
    {
        world.advance(DurationMs::from_mins(5)).await;
        world.advance(LATENCY).await;
        hours += 1;
        if hours % 12 == 0 {
            // The other endpoint is not affected.
            let number = JOBS + hours;
            world.publish("well", number..number + 1).await;
            world.settle().await;
            let last = *world.receivers.sent.lock().last().unwrap();
            assert_eq!((posthaste_store::Clock::now(&*world.clock), false), last, "at once");
        }
    }
    let probes = world.sent_to_the_ill() - before_open;
    assert!((70..=110).contains(&probes), "{probes} probes in a day, one each quarter of an hour");
    let most = world.receivers.most.swap(0, Ordering::SeqCst);
    let states = world.states().await;
    assert_eq!(None, states.get("dead_lettered"), "{states:?}");

    // It comes back: one probe, then one more with each answer, up to the endpoint's concurrency.
    let mut ramp = Vec::new();
    let mut spent_ms = 0;
    while world.states().await.get("committed").is_none_or(|done| *done < 60) {
        world.advance(LATENCY).await;
        spent_ms += LATENCY.0;
        assert!(spent_ms < 3_600_000, "it does not come back");
        let running = world.receivers.running.load(Ordering::SeqCst);
        if running > 0 {
            ramp.push(running);
        }
        if running == 0 {
            // Nothing runs before the next probe.
            world.advance(DurationMs::from_mins(1)).await;
        }
    }
    let first_ramp: Vec<usize> = ramp.iter().copied().skip_while(|running| *running == 1).take(6).collect();
    assert!(first_ramp[0] <= 3, "{ramp:?}");
    assert!(first_ramp.windows(2).all(|pair| pair[0] <= pair[1] && pair[1] <= pair[0] * 2), "{ramp:?}");
    assert_eq!(Some(&10), ramp.last(), "and as much as it may at last: {ramp:?}");

    // All of it, and nothing twice.
    let mut steps = 0;
    while world.states().await.get("committed").is_none_or(|done| *done < JOBS) {
        for _ in 0..100 {
            world.advance(LATENCY).await;
        }
        steps += 1;
        if steps > 15 {
            // What had failed waits for its backoff.
            world.advance(DurationMs::from_mins(20)).await;
        }
        assert!(steps < 40, "{:?}", world.states().await);
    }
    let lanes = world.store.lanes().await.unwrap();
    let lane = &lanes.iter().find(|view| view.destination == id("ill")).unwrap().lane;
    let held_hours = lane.held_ms / 3_600_000;
    assert!((23..=24).contains(&held_hours), "{} ms", lane.held_ms);
    let attempts = world.sent_to_the_ill();
    println!(
        "{JOBS} jobs, 24 h outage: {before_open} attempts before the circuit opened ({most} at once), {probes} probes, \
         {attempts} attempts in all, held for {} s, ramp {ramp:?}, end {:?}",
        lane.held_ms / 1_000,
        world.states().await
    );
    assert!(attempts <= JOBS + before_open + probes + 20, "{attempts}: each job once, and the probes");
}
