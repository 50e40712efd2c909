//! The ends of every scale: both stores take and refuse the same.

use bytes::Bytes;
use posthaste_core::{
    ApiKeyId, Class, Command, Details, DurationMs, Effect, Failure, JobId, LaneId, MessageId, RetryWish,
    TenantId, Timestamp, limits,
};
use posthaste_store::{
    ApiKeyRow, Configure, Configured, CustodyEntry, DestinationKind, Due, JobCommand, JobFilter,
    LeaseRequest, NewDestination, NewMessage, Stage, Store, Target,
};

use super::{Disagreement, Pair};
use crate::store_suite::{Scope, bench};

/// Asks both stores for the largest, the smallest and the emptiest of everything, and compares answers and rows.
pub async fn same_limits(pair: &Pair) -> Result<(), Disagreement> {
    let tenant = TenantId(1);
    let targets = configured(pair, tenant).await?;
    let messages = accepted(pair, tenant, &targets).await?;
    commanded(pair, tenant, &targets).await?;
    asked(pair, tenant).await?;
    let mut scope = Scope::default();
    scope.messages.extend(messages.iter().map(|message| (message.tenant, message.id)));
    scope.names.extend(messages.iter().map(|message| (message.tenant, message.key.clone())));
    pair.compare_all(&scope).await
}

async fn configured(pair: &Pair, tenant: TenantId) -> Result<Vec<Target>, Disagreement> {
    let longest = "d".repeat(limits::DESTINATION_ID_CHARS_MAX);
    let put = |id: &str, config: String| {
        let new = bench::new_destination(tenant, id, DestinationKind::Queue);
        Configure::PutDestination(NewDestination { config: config.into(), owner: Some("".into()), ..new })
    };
    let row = ApiKeyRow {
        tenant,
        id: ApiKeyId(u128::MAX),
        name: "".into(),
        secret_hash: [0; 32],
        scopes: "".into(),
        created_at: Timestamp(i64::MIN),
        revoked_at: Some(Timestamp(i64::MAX)),
    };
    let changes = vec![
        Configure::Tenant { name: "\0".into() },
        put("a", String::new()),
        put(&longest, "\0".repeat(1 << 20)),
        Configure::PutApiKey(row.clone()),
        Configure::PutApiKey(ApiKeyRow { id: ApiKeyId(0), secret_hash: [255; 32], ..row }),
        Configure::RevokeApiKey { tenant: TenantId(u32::MAX), id: ApiKeyId(0) },
        Configure::Tenant { name: "".into() },
    ];
    let answers =
        pair.must("limits of configuration", async |store| store.configure(changes.clone()).await).await?;
    let targets = answers.into_iter().filter_map(|answer| match answer {
        Configured::Destination(row) => Some(Target {
            lane: row.lane,
            destination: row.id,
            kind: posthaste_core::Kind::Push,
            wire_id: Some("".into()),
            owner: Some("".into()),
        }),
        _ => None,
    });
    Ok(targets.collect())
}

async fn accepted(
    pair: &Pair,
    tenant: TenantId,
    targets: &[Target],
) -> Result<Vec<NewMessage>, Disagreement> {
    let now = posthaste_store::Clock::now(&*pair.clock);
    let longest = "~".repeat(limits::KEY_BYTES_MAX);
    let base = |count, name: &str| bench::new_message(tenant, bench::message_id(now, count), name, targets);
    let messages = vec![
        NewMessage {
            payload: Bytes::new(),
            event_type: Some("".into()),
            correlation_id: "".into(),
            ..base(1, "!")
        },
        NewMessage {
            metadata: Some("\0".repeat(1 << 16).into()),
            headers: Some("".into()),
            ..base(2, &longest)
        },
        NewMessage { due: Due::At(Timestamp(i64::MIN)), ..base(3, "past") },
        NewMessage { due: Due::At(Timestamp(i64::MAX)), ..base(4, "future") },
        NewMessage { due: Due::In(DurationMs(u64::MAX)), ..base(5, "for-ever") },
        NewMessage { payload: Bytes::from(vec![0; 1 << 20]), targets: Vec::new(), ..base(6, "zeros") },
        NewMessage { id: MessageId(u128::MAX), ..base(7, "last-id") },
        NewMessage { id: MessageId(0), ..base(8, "first-id") },
    ];
    pair.must("limits of messages", async |store| store.accept(messages.clone()).await).await?;
    Ok(messages)
}

async fn commanded(pair: &Pair, tenant: TenantId, targets: &[Target]) -> Result<(), Disagreement> {
    let largest = LeaseRequest {
        bytes_max: usize::MAX,
        lease_for: DurationMs(u64::MAX),
        deadline_after: DurationMs(u64::MAX),
        worker: "".into(),
        ..bench::lease_request(tenant, targets[0].lane, usize::MAX)
    };
    let nowhere = LeaseRequest { lane: LaneId(0), ..largest.clone() };
    let other = LeaseRequest { lane: targets[1].lane, ..largest.clone() };
    let requests = vec![largest, nowhere, other];
    let grants = pair.must("limits of leases", async |store| store.lease(requests.clone()).await).await?;
    let leased = &grants[0].jobs;
    let huge: Box<str> = "x\0".repeat(1 << 18).into();
    let details = Details {
        status: Some(u16::MAX),
        duration: Some(DurationMs(i64::MAX.unsigned_abs())),
        code: Some("".into()),
        message: Some(huge.clone()),
        excerpt: Some(vec![0; 1 << 16].into()),
        result: Some(vec![255; 1 << 16].into()),
    };
    let longest = Some(DurationMs(u64::MAX));
    let failure = Failure::of_worker(Class::Worker, Some(Effect::Possible), RetryWish::Yes, longest);
    let fail = Command::Fail { fence: leased[0].fence, failure, details };
    let checkpoint = Some(vec![0; 1 << 16].into());
    let extend = Command::Extend { fence: leased[1].fence, lease_for: DurationMs(u64::MAX), checkpoint };
    let command = |job, command| bench::job_command(tenant, job, command);
    let last = JobId(u128::MAX);
    let commands = vec![
        command(leased[0].job.id, fail),
        command(leased[1].job.id, extend),
        JobCommand {
            hold_lane_until: Some(Timestamp(i64::MAX)),
            ..command(leased[1].job.id, Command::Expire)
        },
        JobCommand {
            hold_lane_until: Some(Timestamp(i64::MIN)),
            ..command(leased[0].job.id, Command::Expire)
        },
        command(leased[2].job.id, Command::Cancel { reason: huge }),
        command(leased[2].job.id, Command::Cancel { reason: "".into() }),
        command(last, Command::Expire),
        JobCommand { tenant: TenantId(0), actor: Some("".into()), ..command(last, Command::Expire) },
    ];
    pair.must("limits of commands", async |store| store.apply(commands.clone()).await).await.map(drop)
}

async fn asked(pair: &Pair, tenant: TenantId) -> Result<(), Disagreement> {
    let entry = CustodyEntry {
        tenant,
        message: MessageId(u128::MAX),
        job: Some(JobId(u128::MAX)),
        at: Timestamp(i64::MIN),
        stage: Stage::Archived,
        attempt: posthaste_core::Attempt::new(u32::MAX),
        actor: Some("".into()),
        detail: Some("".into()),
    };
    pair.must("a note", async |store| store.note(vec![entry.clone(); 3]).await).await?;
    pair.must("all of a fan-out", async |store| store.fan_out(usize::MAX).await).await?;
    for limit in [0, 1, usize::MAX] {
        let filter = JobFilter { limit, after: Some(JobId(u128::MAX)), ..JobFilter::default() };
        let whole = JobFilter { oldest_first: true, after: Some(JobId(0)), ..filter.clone() };
        for filter in [filter, whole] {
            pair.must(&filter, async |store| store.jobs(tenant, filter.clone()).await).await?;
        }
        pair.must(limit, async |store| store.expired(limit).await).await?;
        let last = MessageId(u128::MAX);
        pair.must(limit, async |store| store.message_jobs(tenant, last, limit).await).await?;
    }
    let nobody = TenantId(u32::MAX);
    pair.must("a job of nobody", async |store: &dyn Store| store.job(nobody, JobId(0)).await).await?;
    pair.must("a brief of nobody", async |store| store.briefs(nobody, MessageId(0)).await).await.map(drop)
}
