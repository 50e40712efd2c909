//! How fast the SQLite store writes here: `cargo run --release -p posthaste-store --example write_rate [folder]`.
//!
//! Prints the folder's `fdatasync`, acceptances a second (one message a call, 64 and 256 callers) and jobs that are
//! leased and finished a second (100 a call). On Linux also what one costs the writer's thread in CPU, since that is
//! what bounds the rate where the disk doesn't.

#![allow(clippy::print_stdout, clippy::unwrap_used, clippy::wildcard_enum_match_arm)]

use std::{
    fs::File,
    io::Write,
    path::{Path, PathBuf},
    sync::Arc,
    time::{Duration, Instant},
};

use bytes::Bytes;
use posthaste_core::{
    Command, DestinationId, Details, DurationMs, Evidence, FinishOutcome, Kind, LaneId, MessageId,
    MessageKey, Policy, Start, TenantId, Timestamp,
};
use posthaste_store::{
    Clock, Configure, Configured, DestinationKind, Due, Fingerprint, JobCommand, LeaseRequest, ManagedBy,
    NewDestination, NewMessage, Store, Target,
    sqlite::{SqliteOptions, SqliteStore},
};

/// Bytes of each payload.
const PAYLOAD: usize = 1_024;
/// Jobs in one lease and one apply.
const AT_ONCE: usize = 100;
/// Lanes over which the messages are spread.
const LANES: usize = 16;

struct Steady(Instant);

impl Clock for Steady {
    fn now(&self) -> Timestamp {
        Timestamp(1_800_000_000_000).after(DurationMs(u64::try_from(self.0.elapsed().as_millis()).unwrap()))
    }
}

#[tokio::main(flavor = "multi_thread", worker_threads = 2)]
async fn main() {
    let mut arguments = std::env::args().skip(1);
    let folder = arguments.next().map_or_else(std::env::temp_dir, PathBuf::from);
    let total: usize = arguments.next().map_or(60_000, |total| total.parse().unwrap());
    let folder = tempfile::tempdir_in(folder).unwrap();
    println!("fdatasync of 4 KiB, p50: {:?}", fdatasync_p50(folder.path()));

    let clock = Arc::new(Steady(Instant::now()));
    let options = SqliteOptions::new(folder.path().join("store.db"), clock);
    let store = Arc::new(SqliteStore::open(options).unwrap());
    let (tenant, targets) = configure(&store).await;
    let mut first = 0;
    for callers in [64, 256] {
        let started = Started::now();
        let waits = accept(&store, tenant, &targets, first..first + total, callers).await;
        report("acceptances", total, &started, callers);
        report_waits(waits);
        first += total;
    }
    for callers in [1, 4, 16] {
        let started = Started::now();
        let drained = drain(&store, tenant, &targets, callers, total * 2 / 3).await;
        report("jobs leased and finished", drained, &started, callers);
    }
}

struct Started {
    at: Instant,
    writer_cpu: Duration,
}

impl Started {
    fn now() -> Self {
        Self { at: Instant::now(), writer_cpu: writer_cpu() }
    }
}

fn report(what: &str, count: usize, started: &Started, callers: usize) {
    let elapsed = started.at.elapsed();
    let rate = u128::try_from(count).unwrap() * 1_000_000 / elapsed.as_micros().max(1);
    let cpu = writer_cpu().saturating_sub(started.writer_cpu) / u32::try_from(count.max(1)).unwrap();
    println!("{what}: {rate}/s, writer's CPU {cpu:.1?} each ({count} in {elapsed:.2?}, {callers} callers)");
}

fn report_waits(mut waits: Vec<Duration>) {
    waits.sort_unstable();
    let at = |share: usize| waits[waits.len() * share / 1_000];
    println!("  a caller waited {:.1?} p50, {:.1?} p99, {:.1?} p99.9", at(500), at(990), at(999));
}

/// What the writer's thread used so far; nothing where it can't be told.
fn writer_cpu() -> Duration {
    let Ok(tasks) = std::fs::read_dir("/proc/self/task") else { return Duration::ZERO };
    let read = |path: PathBuf| std::fs::read_to_string(path).unwrap_or_default();
    let writer = tasks
        .flatten()
        .map(|task| task.path())
        .find(|task| read(task.join("comm")).trim() == "sqlite-writer");
    let spent = writer.map(|task| read(task.join("schedstat"))).unwrap_or_default();
    Duration::from_nanos(spent.split(' ').next().and_then(|spent| spent.parse().ok()).unwrap_or(0))
}

fn fdatasync_p50(folder: &Path) -> Duration {
    let mut file = File::create(folder.join("sync")).unwrap();
    let mut times: Vec<Duration> = (0..200)
        .map(|_| {
            file.write_all(&[7; 4_096]).unwrap();
            let started = Instant::now();
            file.sync_data().unwrap();
            started.elapsed()
        })
        .collect();
    times.sort_unstable();
    times[times.len() / 2]
}

async fn configure(store: &SqliteStore) -> (TenantId, Vec<Target>) {
    let made = store.configure(vec![Configure::Tenant { name: "default".into() }]).await.unwrap();
    let [Configured::Tenant(tenant)] = made[..] else { panic!("a tenant is made") };
    let new = |number: usize| {
        Configure::PutDestination(NewDestination {
            tenant,
            id: DestinationId::new(&format!("queue-{number}")).unwrap(),
            kind: DestinationKind::Queue,
            config: "{}".into(),
            managed_by: ManagedBy::Api,
            enabled: true,
            owner: None,
            must_be_new: true,
        })
    };
    let made = store.configure((0..LANES).map(new).collect()).await.unwrap();
    let target = |made| match made {
        Configured::Destination(row) => {
            Target { lane: row.lane, destination: row.id, kind: Kind::Pull, wire_id: None, owner: None }
        }
        other => panic!("{other:?}"),
    };
    (tenant, made.into_iter().map(target).collect())
}

async fn accept(
    store: &Arc<SqliteStore>,
    tenant: TenantId,
    targets: &[Target],
    numbers: std::ops::Range<usize>,
    callers: usize,
) -> Vec<Duration> {
    let payload = Bytes::from(vec![b'x'; PAYLOAD]);
    let callers: Vec<_> = (0..callers)
        .map(|caller| {
            let (store, targets, payload) = (store.clone(), targets.to_vec(), payload.clone());
            let numbers = numbers.clone().skip(caller).step_by(callers);
            tokio::spawn(async move {
                let mut waits = Vec::new();
                for number in numbers {
                    let target = targets[number % targets.len()].clone();
                    let message = message(tenant, number, payload.clone(), target);
                    let started = Instant::now();
                    store.accept(vec![message]).await.unwrap();
                    waits.push(started.elapsed());
                }
                waits
            })
        })
        .collect();
    let mut waits = Vec::new();
    for caller in callers {
        waits.extend(caller.await.unwrap());
    }
    waits
}

fn message(tenant: TenantId, number: usize, payload: Bytes, target: Target) -> NewMessage {
    // Time-ordered like a UUIDv7, with keys that are not.
    let scattered = (number as u64).wrapping_mul(0x9E37_79B9_7F4A_7C15);
    NewMessage {
        tenant,
        id: MessageId(u128::from(number as u64) << 32 | 1 << 120),
        key: MessageKey::new(&format!("order:{scattered:016x}:paid")).unwrap(),
        aliases: Vec::new(),
        event_type: Some("order.paid".into()),
        source: None,
        fingerprint: Fingerprint([[1; 16]; 5]),
        correlation_id: "0198c1d2-77aa-7bbb-8ccc-0123456789ab".into(),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        content_type: Some("application/json".into()),
        headers: None,
        metadata: None,
        payload_ref: None,
        payload,
        due: Due::In(DurationMs::ZERO),
        targets: vec![target],
    }
}

async fn drain(
    store: &Arc<SqliteStore>,
    tenant: TenantId,
    targets: &[Target],
    callers: usize,
    total: usize,
) -> usize {
    let callers: Vec<_> = (0..callers)
        .map(|caller| {
            let store = store.clone();
            let lanes: Vec<LaneId> =
                targets.iter().map(|target| target.lane).skip(caller).step_by(callers).collect();
            tokio::spawn(async move { drain_lanes(&store, tenant, &lanes, total / callers).await })
        })
        .collect();
    let mut drained = 0;
    for caller in callers {
        drained += caller.await.unwrap();
    }
    drained
}

async fn drain_lanes(store: &SqliteStore, tenant: TenantId, lanes: &[LaneId], total: usize) -> usize {
    let policy = Arc::new(Policy::queue_default());
    let mut drained = 0;
    for lane in lanes.iter().cycle() {
        let request = LeaseRequest {
            tenant,
            lane: *lane,
            limit: AT_ONCE,
            bytes_max: 4 << 20,
            worker: "worker-17".into(),
            lease_for: DurationMs::from_secs(30),
            deadline_after: DurationMs::from_mins(10),
            starts: Start::WithLease,
            guarded: false,
            policy: policy.clone(),
        };
        let leased = store.lease(vec![request]).await.unwrap().remove(0).jobs;
        let finish = |leased: &posthaste_store::LeasedJob| JobCommand {
            tenant,
            job: leased.job.id,
            command: Command::Finish {
                fence: leased.fence,
                outcome: FinishOutcome::Committed,
                evidence: Evidence::Worker,
                reason: None,
                details: Details::default(),
            },
            policy: policy.clone(),
            hold_lane_until: None,
            actor: None,
        };
        let applied = store.apply(leased.iter().map(finish).collect()).await.unwrap();
        drained += applied.len();
        if drained >= total || applied.is_empty() {
            break;
        }
    }
    drained
}
