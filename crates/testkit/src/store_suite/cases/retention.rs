//! What expires, what leaves, and what stays known of it.

use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::{
    Attempt, Command, DurationMs, Effect, EventId, JobId, Path, StateName, TenantId,
    ledger::{OnExpired, Outcome, Previous, Seen, Status},
};
use posthaste_store::{
    Acceptance, ArchiveFile, EntryRecord, Expiry, ExpiryCursor, ExpiryRequest, FingerprintField, KeyKind,
    LedgerAction, LedgerAnswer, LedgerCommand, LedgerEntry, MessageName, MessageRecord, NamedJob, Place,
    Retention, Retire, Retired, StoredResult, Target,
};

use crate::store_suite::{
    actual_counts,
    bench::{Bench, finish, job_command, key, lease_request},
    case_list,
};

case_list![
    r_c9_nothing_live_expires_and_what_is_settled_does_by_its_last_job,
    r_c9_an_archived_key_is_a_duplicate_for_ever,
    r_c9_what_changed_since_it_was_read_stays,
    r_c9_the_event_id_of_an_archived_job_answers_as_before,
    r_c9_an_entry_is_pinned_while_its_job_is_neither_committed_nor_cancelled,
    r_c9_an_archived_entry_answers_claims_with_its_result,
    r_c9_a_fence_never_restarts_after_entries_left,
    r_c9_a_job_whose_entry_left_is_settled_and_not_handed_out,
    r_c9_a_search_goes_on_where_it_ended,
    r_g6_what_left_of_one_tenant_is_unknown_to_another,
];

const DAY: DurationMs = DurationMs::from_hours(24);
const RETENTION: Retention = Retention {
    committed: DurationMs::from_hours(24),
    dead_lettered: DurationMs::from_hours(72),
    ledger: DurationMs::from_hours(72),
};
const LONG: DurationMs = DurationMs::from_mins(10);

async fn page(bench: &Bench, after: ExpiryCursor, records_max: usize) -> Expiry {
    let request = ExpiryRequest { retention: RETENTION, after, records_max, bytes_max: 1 << 20 };
    bench.store().expirable(request).await.unwrap()
}

/// Everything that expired.
async fn expired(bench: &Bench) -> (Vec<MessageRecord>, Vec<EntryRecord>) {
    let (mut messages, mut entries) = (Vec::new(), Vec::new());
    let mut after = Some(ExpiryCursor::START);
    while let Some(from) = after {
        let found = page(bench, from, 100).await;
        messages.extend(found.messages);
        entries.extend(found.entries);
        after = found.next;
    }
    (messages, entries)
}

fn place(number: usize) -> Place {
    Place { file: "file-1".into(), at_byte: number as u64 * 100, bytes: 100 }
}

fn file() -> ArchiveFile {
    ArchiveFile {
        file: "file-1".into(),
        records: 1,
        bytes: 1,
        sha256: [7; 32],
        first_key: "a".into(),
        last_key: "b".into(),
        written_at: posthaste_core::Timestamp(1),
    }
}

async fn retire(bench: &Bench, records: Vec<Retire>) -> Vec<Retired> {
    bench.store().retire(Some(file()), records).await.unwrap()
}

fn message(record: MessageRecord, number: usize) -> Retire {
    Retire::Message { record: Box::new(record), place: Some(place(number)) }
}

fn entry(record: EntryRecord, number: usize) -> Retire {
    Retire::Entry { record: Box::new(record), place: Some(place(number)) }
}

/// Lets everything go that expired, and says how much.
async fn let_go(bench: &Bench) -> (usize, usize) {
    let (messages, entries) = expired(bench).await;
    let counts = (messages.len(), entries.len());
    let messages = messages.into_iter().enumerate().map(|(number, record)| message(record, number));
    let entries = entries.into_iter().enumerate().map(|(number, record)| entry(record, counts.0 + number));
    let retired = retire(bench, messages.chain(entries).collect()).await;
    assert!(retired.iter().all(|one| *one == Retired::Gone), "{retired:?}");
    counts
}

/// A job that committed with `result`.
async fn committed(bench: &Bench, tenant: TenantId, name: &str, queue: &Target, result: &[u8]) -> JobId {
    let job = bench.job(tenant, name, queue).await;
    let leased = bench.lease(tenant, queue.lane).await;
    assert_eq!(job, leased.job.id);
    let mut done = finish(leased.fence);
    if let Command::Finish { details, .. } = &mut done {
        details.result = Some(result.into());
    }
    bench.apply(tenant, job, done).await;
    job
}

fn claim() -> LedgerAction {
    LedgerAction::Claim { lease: LONG, fingerprint: None, claim_id: None, on_expired: OnExpired::Retake }
}

fn command(tenant: TenantId, key: &str, action: LedgerAction) -> LedgerCommand {
    LedgerCommand { tenant, key: EventId::new(key).unwrap(), job: None, action, actor: None }
}

fn named(tenant: TenantId, name: &str, queue: &Target, action: LedgerAction) -> LedgerCommand {
    let job = Some(NamedJob { key: key(name), lane: queue.lane, guarded: true });
    LedgerCommand { job, ..command(tenant, &format!("{name}:{}", queue.destination), action) }
}

async fn ask(bench: &Bench, command: LedgerCommand) -> LedgerAnswer {
    let read = bench.store().entry(command.tenant, command.key.clone(), command.job.clone()).await.unwrap();
    let answer = bench.store().ledger(vec![command]).await.unwrap().remove(0).answer;
    if let LedgerAnswer::DuplicateDone(entry) = &answer {
        assert_eq!(read.as_ref(), Some(entry), "reads and claims see the same");
    }
    answer
}

async fn granted(bench: &Bench, command: LedgerCommand) -> LedgerEntry {
    match ask(bench, command).await {
        LedgerAnswer::Granted(entry) => entry,
        other => panic!("it is granted: {other:?}"),
    }
}

async fn complete(bench: &Bench, tenant: TenantId, key: &str, fence: u64, bytes: &'static [u8]) {
    let result = StoredResult {
        bytes: Some(Bytes::from_static(bytes)),
        content_type: Some("text/plain".into()),
        status: Some(201),
    };
    let action = LedgerAction::Complete { fence, outcome: Outcome::Committed, result };
    assert!(matches!(ask(bench, command(tenant, key, action)).await, LedgerAnswer::Written(_)));
}

async fn r_c9_nothing_live_expires_and_what_is_settled_does_by_its_last_job(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let [one, two] = [bench.queue(tenant, "one").await, bench.queue(tenant, "two").await];
    committed(&bench, tenant, "done", &one, b"1").await;
    bench.job(tenant, "dead", &one).await;
    bench.dead_letter(tenant, one.lane, Effect::Possible).await;
    let both = bench.message(tenant, "half", &[one.clone(), two.clone()]);
    bench.accept_new(both).await;
    let leased = bench.lease(tenant, one.lane).await;
    bench.apply(tenant, leased.job.id, finish(leased.fence)).await;
    bench.accept_new(bench.message(tenant, "unrouted", &[])).await;
    let wide = bench.queues(tenant, 101).await;
    bench.accept_new(bench.message(tenant, "wide", &wide)).await;
    let names = async || {
        let (messages, entries) = expired(&bench).await;
        assert!(entries.is_empty());
        messages.into_iter().map(|record| record.message.key.to_string()).collect::<Vec<_>>()
    };
    assert!(names().await.is_empty());
    bench.advance(DAY);
    assert_eq!(["done", "unrouted"], *names().await);
    bench.advance(DurationMs(2 * DAY.0));
    assert_eq!(["done", "dead", "unrouted"], *names().await, "half of it waits, and a fan-out is not done");
    assert_eq!((3, 0), let_go(&bench).await);
    assert!(names().await.is_empty());
    let counts = actual_counts(bench.store()).await;
    let known = bench.store().counts().await.unwrap();
    let known: Vec<_> = known.into_iter().map(|count| (count.tenant, count.state, count.jobs)).collect();
    assert_eq!(counts, known);
    let late = bench.lease(tenant, two.lane).await;
    bench.apply(tenant, late.job.id, finish(late.fence)).await;
    assert!(names().await.is_empty(), "its last job counts");
    bench.advance(DAY);
    assert_eq!(["half"], *names().await);
}

async fn r_c9_an_archived_key_is_a_duplicate_for_ever(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let mut first = bench.message(tenant, "order-1", std::slice::from_ref(&queue));
    first.aliases = vec![(KeyKind::Provider, key("evt_1"))];
    let accepted = bench.accept_new(first.clone()).await;
    let leased = bench.lease(tenant, queue.lane).await;
    bench.apply(tenant, leased.job.id, finish(leased.fence)).await;
    bench.advance(DAY);
    let (records, _) = expired(&bench).await;
    let record = &records[0];
    assert_eq!((first.payload.clone(), first.fingerprint), (record.payload.clone(), record.fingerprint));
    assert_eq!(1, record.jobs[0].attempts.len());
    assert_eq!((1, 0), let_go(&bench).await);
    let store = bench.store();
    assert!(store.message(tenant, MessageName::Id(accepted.id)).await.unwrap().is_none());
    assert!(store.job(tenant, leased.job.id).await.unwrap().is_none());
    for name in [MessageName::Key(key("evt_1")), MessageName::Id(accepted.id)] {
        let known = store.archived(tenant, name).await.unwrap().expect("it is known");
        assert_eq!((accepted.id, Some(place(0))), (known.id, known.place.clone()));
        assert_eq!(("request-1", accepted.accepted_at), (&*known.correlation_id, known.accepted_at));
    }
    let again = bench.message(tenant, "order-1", std::slice::from_ref(&queue));
    let Acceptance::Duplicate(found) = bench.accept(again.clone()).await else { panic!("it is known") };
    assert_eq!((accepted.id, 1, accepted.accepted_at), (found.id, found.jobs_total, found.accepted_at));
    assert!(found.jobs.is_empty());
    let mut by_alias = bench.message(tenant, "evt_1", std::slice::from_ref(&queue));
    by_alias.aliases = vec![(KeyKind::Delivery, key("delivery-2"))];
    assert!(matches!(bench.accept(by_alias).await, Acceptance::Duplicate(_)));
    let mut other = again;
    other.fingerprint.0[2] = [9; 16];
    let reused = bench.accept(other).await;
    let Acceptance::KeyReused { field: FingerprintField::Payload, message } = reused else {
        panic!("{reused:?}")
    };
    assert_eq!(accepted.id, message);
    // The very acceptance, sent again.
    assert!(matches!(bench.accept(first).await, Acceptance::New(_)));
    let known = store.archived(tenant, MessageName::Key(key("delivery-2"))).await.unwrap().expect("known");
    assert_eq!((2, 2), (known.duplicates, known.aliases.len()));
    assert_eq!(2, store.custody(tenant, accepted.id).await.unwrap().len(), "what came later is noted");
    assert_eq!(None, bench.grant(lease_request(tenant, queue.lane, 1)).await.next_due);
}

async fn r_c9_what_changed_since_it_was_read_stays(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    bench.job(tenant, "order-1", &queue).await;
    let job = bench.dead_letter(tenant, queue.lane, Effect::None).await;
    bench.advance(DurationMs(3 * DAY.0));
    let (records, _) = expired(&bench).await;
    let replay = Command::Replay { seen: Attempt::new(1), assume_not_done: false, reason: "fixed".into() };
    bench.try_apply(job_command(tenant, job, replay)).await.0.expect("no attempt can have acted");
    assert_eq!([Retired::Changed], *retire(&bench, vec![message(records[0].clone(), 0)]).await);
    assert_eq!(StateName::Scheduled, bench.state(tenant, job).await);
    let leased = bench.lease(tenant, queue.lane).await;
    bench.apply(tenant, job, finish(leased.fence)).await;
    bench.advance(DAY);
    let (records, _) = expired(&bench).await;
    let again = bench.message(tenant, "order-1", std::slice::from_ref(&queue));
    assert!(matches!(bench.accept(again).await, Acceptance::Duplicate(_)));
    let old = message(records[0].clone(), 0);
    assert_eq!([Retired::Changed], *retire(&bench, vec![old.clone()]).await, "a duplicate came");
    assert!(bench.store().archive_files(None, 9).await.unwrap().is_empty(), "nothing is in that file");
    let (records, _) = expired(&bench).await;
    let new = message(records[0].clone(), 1);
    assert_eq!([Retired::Gone, Retired::Changed], *retire(&bench, vec![new.clone(), new]).await, "once");
    assert_eq!([Retired::Changed], *retire(&bench, vec![old]).await);
    assert_eq!(vec![file()], bench.store().archive_files(None, 9).await.unwrap());
    let indexed = bench.store().archived_in("file-1".into(), None, 9).await.unwrap();
    assert_eq!([(100, "order-1")], *indexed.iter().map(|one| (one.at_byte, &*one.key)).collect::<Vec<_>>());
}

async fn r_c9_the_event_id_of_an_archived_job_answers_as_before(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let long = vec![b'7'; 2_000];
    committed(&bench, tenant, "short", &queue, b"{\"charge\":7}").await;
    committed(&bench, tenant, "long", &queue, &long).await;
    bench.job(tenant, "lost", &queue).await;
    bench.dead_letter(tenant, queue.lane, Effect::Possible).await;
    let before = async |name| {
        let LedgerCommand { key, job, .. } = named(tenant, name, &queue, claim());
        bench.store().entry(tenant, key, job).await.unwrap().expect("the job is the entry")
    };
    let entries = [before("short").await, before("long").await, before("lost").await];
    bench.advance(DurationMs(3 * DAY.0));
    assert_eq!((3, 0), let_go(&bench).await);
    assert_eq!(entries[0], before("short").await);
    let known = before("long").await;
    assert_eq!(
        (None, Some(place(1))),
        (known.result.bytes.clone(), known.result_at.clone()),
        "read it there"
    );
    assert_eq!(entries[1].entry, known.entry);
    let LedgerAnswer::DuplicateDone(_) = ask(&bench, named(tenant, "short", &queue, claim())).await else {
        panic!("it is done")
    };
    // What may have happened is still in doubt, and told so.
    let taken = granted(&bench, named(tenant, "lost", &queue, claim())).await;
    assert_eq!((Previous::Expired, Path::RetryAfterFailure), (taken.entry.previous, taken.entry.path));
    assert_eq!(entries[2].entry.fence + 1, taken.entry.fence);
    let unguarded = command(tenant, "short:orders", claim());
    assert!(granted(&bench, unguarded).await.entry.fence > entries[0].entry.fence, "another's entry is new");
}

async fn r_c9_an_entry_is_pinned_while_its_job_is_neither_committed_nor_cancelled(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    // Done by a receiver that the store doesn't connect with the job: both jobs stay as they are.
    let done = async |name| {
        let fence = granted(&bench, command(tenant, name, claim())).await.entry.fence;
        complete(&bench, tenant, name, fence, b"done").await;
    };
    let dead = bench.job(tenant, "order-1", &queue).await;
    bench.dead_letter(tenant, queue.lane, Effect::Possible).await;
    done("order-1:orders").await;
    bench.job(tenant, "order-2", &queue).await;
    done("order-2:orders").await;
    bench.advance(DurationMs(30 * DAY.0));
    let (messages, entries) = expired(&bench).await;
    assert_eq!((1, 0), (messages.len(), entries.len()), "both are pinned");
    assert_eq!((1, 0), let_go(&bench).await);
    assert!(bench.store().job(tenant, dead).await.unwrap().is_none());
    assert_eq!((0, 0), let_go(&bench).await, "an archived dead letter pins its entry too");
    // One without a job, and one that is not done.
    granted(&bench, command(tenant, "running", claim())).await;
    let failed = granted(&bench, command(tenant, "failed", claim())).await.entry.fence;
    let fail = LedgerAction::Fail { fence: failed, class: None, message: None };
    ask(&bench, command(tenant, "failed", fail)).await;
    bench.advance(DurationMs(30 * DAY.0));
    assert_eq!((0, 0), let_go(&bench).await, "nothing live expires");
    let lease = bench.grant(lease_request(tenant, queue.lane, 1)).await;
    assert_eq!((0, 1), (lease.jobs.len(), lease.settled.len()), "its entry says that it is done");
    assert_eq!((0, 1), let_go(&bench).await, "it is free now");
}

async fn r_c9_an_archived_entry_answers_claims_with_its_result(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let print = |print: &[u8]| LedgerAction::Claim {
        lease: LONG,
        fingerprint: Some(print.into()),
        claim_id: None,
        on_expired: OnExpired::Retake,
    };
    let fence = granted(&bench, command(tenant, "cart:1", print(b"one"))).await.entry.fence;
    complete(&bench, tenant, "cart:1", fence, b"{\"a\" : 1}\0\xff\n").await;
    bench.advance(DurationMs(3 * DAY.0));
    let before = bench.store().entry(tenant, EventId::new("cart:1").unwrap(), None).await.unwrap();
    assert_eq!((0, 1), let_go(&bench).await);
    let answer = ask(&bench, command(tenant, "cart:1", print(b"one"))).await;
    let LedgerAnswer::DuplicateDone(entry) = answer else { panic!("{answer:?}") };
    assert_eq!(before, Some(entry.clone()), "byte for byte");
    assert_eq!(LedgerAnswer::KeyReused, ask(&bench, command(tenant, "cart:1", print(b"two"))).await);
    complete(&bench, tenant, "cart:1", fence, b"another").await;
    assert_eq!(before, bench.store().entry(tenant, entry.key.clone(), None).await.unwrap(), "final");
    let seen = Seen { fence, status: Status::Done };
    let reset = command(tenant, "cart:1", LedgerAction::Reset { seen, reason: "lost".into() });
    let LedgerAnswer::Written(reset) = ask(&bench, reset).await else { panic!("it can be reset") };
    assert_eq!((Status::Failed, fence + 1), (reset.entry.status, reset.entry.fence));
    let again = granted(&bench, command(tenant, "cart:1", print(b"one"))).await.entry.fence;
    complete(&bench, tenant, "cart:1", again, b"anew").await;
    bench.advance(DurationMs(3 * DAY.0));
    assert_eq!((0, 1), let_go(&bench).await, "it leaves again");
    let known = bench.store().entry(tenant, entry.key, None).await.unwrap().expect("known");
    assert_eq!((again, Some(&b"anew"[..])), (known.entry.fence, known.result.bytes.as_deref()));
}

async fn r_c9_a_fence_never_restarts_after_entries_left(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let mut highest = 0;
    for _ in 0..5 {
        highest = granted(&bench, command(tenant, "cart:1", claim())).await.entry.fence;
        bench.advance(LONG);
    }
    highest = granted(&bench, command(tenant, "cart:1", claim())).await.entry.fence.max(highest);
    complete(&bench, tenant, "cart:1", highest, b"").await;
    bench.advance(DurationMs(3 * DAY.0));
    assert_eq!((0, 1), let_go(&bench).await);
    let new = granted(&bench, command(tenant, "cart:2", claim())).await.entry;
    assert_eq!(Previous::None, new.previous);
    assert!(highest < new.fence, "above every fence that left: {highest} {}", new.fence);
}

async fn r_c9_a_job_whose_entry_left_is_settled_and_not_handed_out(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let fence = granted(&bench, command(tenant, "order-1:orders", claim())).await.entry.fence;
    complete(&bench, tenant, "order-1:orders", fence, b"done").await;
    bench.advance(DurationMs(3 * DAY.0));
    assert_eq!((0, 1), let_go(&bench).await);
    let job = bench.job(tenant, "order-1", &queue).await;
    let grant = bench.grant(lease_request(tenant, queue.lane, 1)).await;
    assert_eq!((0, 1), (grant.jobs.len(), grant.settled.len()), "the archive says that it happened");
    assert_eq!(StateName::Committed, bench.state(tenant, job).await);
}

async fn r_c9_a_search_goes_on_where_it_ended(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    for number in 0..5 {
        committed(&bench, tenant, &format!("order-{number}"), &queue, b"1").await;
        let name = format!("entry-{number}");
        let fence = granted(&bench, command(tenant, &name, claim())).await.entry.fence;
        complete(&bench, tenant, &name, fence, b"").await;
    }
    bench.advance(DurationMs(3 * DAY.0));
    let (mut messages, mut entries) = (Vec::new(), Vec::new());
    let mut after = Some(ExpiryCursor::START);
    let mut pages = 0;
    while let Some(from) = after {
        let found = page(&bench, from, 2).await;
        assert!(found.messages.len() <= 2 && found.entries.len() <= 2);
        messages.extend(found.messages.into_iter().map(|record| record.message.key.to_string()));
        entries.extend(found.entries.into_iter().map(|record| record.entry.key.to_string()));
        after = found.next;
        pages += 1;
    }
    let named = |name: &str| (0..5).map(|number| format!("{name}-{number}")).collect::<Vec<_>>();
    assert_eq!((named("order"), named("entry")), (messages, entries));
    assert!(pages >= 6, "{pages}");
}

async fn r_g6_what_left_of_one_tenant_is_unknown_to_another(bench: Arc<Bench>) {
    let [one, two] = [bench.tenant("one").await, bench.tenant("two").await];
    let queue = bench.queue(one, "orders").await;
    committed(&bench, one, "order-1", &queue, b"1").await;
    let fence = granted(&bench, command(one, "cart:1", claim())).await.entry.fence;
    complete(&bench, one, "cart:1", fence, b"").await;
    bench.advance(DurationMs(3 * DAY.0));
    assert_eq!((1, 1), let_go(&bench).await);
    let name = MessageName::Key(key("order-1"));
    assert!(bench.store().archived(one, name.clone()).await.unwrap().is_some());
    assert_eq!(None, bench.store().archived(two, name).await.unwrap());
    assert_eq!(Path::FirstRun, granted(&bench, command(two, "cart:1", claim())).await.entry.path);
    let same = bench.message(two, "order-1", &[]);
    assert!(matches!(bench.accept(same).await, Acceptance::New(_)));
}
