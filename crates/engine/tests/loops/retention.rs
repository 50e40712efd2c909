//! Retention and the archive, over the memory store and a folder. Row C9.

use std::{fs, path::Path, sync::Arc};

use bytes::Bytes;
use posthaste_core::{
    DurationMs, EventId, FinishOutcome, MessageKey, Policy,
    ledger::{OnExpired, Outcome},
};
use posthaste_engine::{
    ArchiveRun, Claimed, Consume, LedgerClaim, LedgerSays, PublishTo, RetainError, RetentionParts, RetrySpan,
    Timeline, TimelineEntry, WorkerReport, WorkerSays,
    archive::{Archive, ArchiveError, FolderArchive, Record},
    ports::BoxFuture,
};
use posthaste_store::{
    ExpiryCursor, ExpiryRequest, MessageName, Reads, Retain, Retention, Stage, StoredResult,
};

use crate::support::{Bench, id, message};

const DAY: DurationMs = DurationMs::from_hours(24);
const DAYS_30: u64 = 30 * 86_400;

fn parts(archive: Option<Arc<dyn Archive>>) -> RetentionParts {
    let retention = Retention { committed: DAY, dead_lettered: DAY, ledger: DAY };
    // Passes are asked for, so that each can be looked at.
    let never = DurationMs::from_hours(24 * 365 * 100);
    RetentionParts { retention, archive, first_after: never, every: never }
}

fn key(text: &str) -> MessageKey {
    MessageKey::new(text).unwrap()
}

/// An engine with a queue, an archive in `folder`, and one committed message.
async fn archived(folder: &Path) -> Bench {
    let bench = Bench::new().await;
    bench.queue("carts").await;
    let archive = FolderArchive::open(folder).unwrap();
    bench.engine.start_retention(parts(Some(Arc::new(archive))));
    commit(&bench, "cart:1").await;
    bench
}

/// A message whose job commits with a result.
async fn commit(bench: &Bench, name: &str) {
    bench.publish(message(name, PublishTo::Queue(id("carts")))).await;
    let consume =
        Consume { queue: id("carts"), max: 1, wait: DurationMs::ZERO, lease: None, worker: "w-1".into() };
    let leased = bench.engine.consume(bench.tenant, consume).await.unwrap().remove(0);
    let outcome = FinishOutcome::Committed;
    let says = WorkerSays::Ack { outcome, result: Some(b"{\"charge\" : 7}"[..].into()), reason: None };
    let report = WorkerReport { job: leased.job.id, fence: leased.fence.to_string().into(), report: says };
    bench.engine.report(bench.tenant, "w-1", vec![report]).await.unwrap().remove(0).unwrap();
}

async fn timeline(bench: &Bench, name: &str) -> Option<Timeline> {
    bench.engine.timeline(bench.tenant, &key(name), None).await.unwrap()
}

fn stages(timeline: &Timeline) -> Vec<Stage> {
    timeline.entries.iter().map(|entry: &TimelineEntry| entry.stage).collect()
}

async fn pass(bench: &Bench) -> ArchiveRun {
    bench.engine.archive_now().await.unwrap()
}

/// The one file of lines in `folder`.
fn only_file(folder: &Path) -> std::path::PathBuf {
    let files = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut files: Vec<_> =
        files.filter(|path| path.extension().is_some_and(|ending| ending == "gz")).collect();
    assert_eq!(1, files.len(), "{files:?}");
    files.remove(0)
}

async fn problems(bench: &Bench) -> Vec<String> {
    let files = bench.engine.archive_files(None, 10).await.unwrap();
    let mut problems = Vec::new();
    for file in files {
        problems.extend(bench.engine.verify_archive_file(file).await.unwrap());
    }
    problems
}

#[tokio::test]
async fn r_c9_a_message_goes_to_the_archive_and_is_found_there() {
    let folder = tempfile::tempdir().unwrap();
    let bench = archived(folder.path()).await;
    assert_eq!(
        ArchiveRun::default(),
        pass(&bench).await,
        "nothing live expires, nor anything before its time"
    );
    let before = timeline(&bench, "cart:1").await.unwrap();
    bench.advance(DAYS_30);
    assert_eq!(ArchiveRun { files: 1, gone: 1, changed: 0 }, pass(&bench).await);
    assert_eq!(ArchiveRun::default(), pass(&bench).await);
    let after = timeline(&bench, "cart:1").await.unwrap();
    assert_eq!((&before.message, &before.jobs), (&after.message, &after.jobs), "all of it is read back");
    assert_eq!([stages(&before), vec![Stage::Archived]].concat(), stages(&after));
    assert!(after.summary.ends_with("; archived"), "{}", after.summary);
    let again = bench.publish(message("cart:1", PublishTo::Queue(id("carts")))).await;
    assert_eq!((false, after.message.id), (again.new, again.message.id));
    assert!(problems(&bench).await.is_empty());
    assert!(timeline(&bench, "cart:2").await.is_none());
}

#[tokio::test]
async fn r_c9_the_answer_of_an_archived_job_is_given_again_byte_for_byte() {
    let folder = tempfile::tempdir().unwrap();
    let bench = archived(folder.path()).await;
    let event = EventId::new("cart:1:carts").unwrap();
    let own = EventId::new("mine").unwrap();
    let long: Bytes = (0..=u8::MAX).cycle().take(5_000).collect::<Vec<u8>>().into();
    let claim = |key: &EventId| LedgerClaim {
        key: key.clone(),
        lease: None,
        fingerprint: None,
        claim_id: None,
        on_expired: OnExpired::Retake,
    };
    let claimed = bench.engine.ledger_claim(bench.tenant, "me", claim(&own)).await.unwrap();
    let Claimed::Granted(granted) = claimed else { panic!("it is new: {claimed:?}") };
    let result = StoredResult { bytes: Some(long.clone()), content_type: None, status: Some(200) };
    let says = LedgerSays::Complete { outcome: Outcome::Committed, result };
    bench.engine.ledger_report(bench.tenant, "me", own.clone(), &granted.fence, says).await.unwrap();
    bench.advance(DAYS_30);
    assert_eq!(2, pass(&bench).await.gone);
    let answered = async |key: &EventId| match bench.engine.ledger_claim(bench.tenant, "me", claim(key)).await
    {
        Ok(Claimed::DuplicateDone(shown)) => Ok(shown.entry.result.bytes),
        Ok(other) => panic!("it is done: {other:?}"),
        Err(error) => Err(error.to_string()),
    };
    assert_eq!(Ok(Some(long)), answered(&own).await);
    assert_eq!(Ok(Some(Bytes::from_static(b"{\"charge\" : 7}"))), answered(&event).await);
    fs::remove_file(only_file(folder.path())).unwrap();
    assert!(answered(&own).await.is_err(), "no answer is better than another one");
    assert!(answered(&event).await.is_ok(), "a short one stays in the store");
}

#[tokio::test]
async fn r_c9_verify_finds_a_flipped_byte_a_missing_file_and_a_key_that_is_elsewhere() {
    let folder = tempfile::tempdir().unwrap();
    let bench = archived(folder.path()).await;
    commit(&bench, "cart:2").await;
    bench.advance(DAYS_30);
    assert_eq!(2, pass(&bench).await.gone);
    let path = only_file(folder.path());
    let whole = fs::read(&path).unwrap();
    for at in [0, whole.len() / 2, whole.len() - 1] {
        let mut bent = whole.clone();
        bent[at] ^= 1;
        fs::write(&path, &bent).unwrap();
        let found = problems(&bench).await;
        assert!(found.iter().any(|problem| problem.contains("SHA-256")), "byte {at}: {found:?}");
    }
    fs::write(&path, &whole[..whole.len() - 1]).unwrap();
    assert!(problems(&bench).await.iter().any(|problem| problem.contains("bytes")));
    fs::write(&path, &whole).unwrap();
    assert!(problems(&bench).await.is_empty());
    let manifest = format!("{}.manifest.json", path.display());
    let kept = fs::read(&manifest).unwrap();
    fs::write(
        &manifest,
        String::from_utf8(kept.clone()).unwrap().replace("\"records\": 2", "\"records\": 3"),
    )
    .unwrap();
    assert_eq!(["its manifest says something else than the store"], *problems(&bench).await);
    fs::remove_file(&manifest).unwrap();
    assert_eq!(["its manifest is missing"], *problems(&bench).await);
    fs::write(&manifest, kept).unwrap();
    fs::remove_file(&path).unwrap();
    assert_eq!(["it is missing"], *problems(&bench).await);
    let timeline = timeline(&bench, "cart:1").await.unwrap();
    assert!(timeline.summary.contains("is missing from file:"), "{}", timeline.summary);
    assert_eq!([Stage::Accepted, Stage::Archived], *stages(&timeline));
}

/// An archive that can't be trusted in one way.
struct Broken {
    inner: FolderArchive,
    how: How,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum How {
    Full,
    Forgets,
    Bends,
}

impl Archive for Broken {
    fn put(&self, name: &str, bytes: Bytes) -> BoxFuture<'_, Result<(), ArchiveError>> {
        match self.how {
            How::Full => {
                let problem = "no space left on device".to_owned();
                let full = ArchiveError::Unavailable { place: "file:full".into(), problem };
                Box::pin(async { Err(full) })
            }
            How::Forgets => Box::pin(async { Ok(()) }),
            How::Bends => self.inner.put(name, bytes.slice(1..)),
        }
    }

    fn get(&self, name: &str) -> BoxFuture<'_, Result<Option<Bytes>, ArchiveError>> {
        self.inner.get(name)
    }

    fn place(&self) -> &str {
        self.inner.place()
    }
}

#[tokio::test]
async fn r_c9_nothing_is_deleted_that_is_not_read_back_from_the_archive() {
    for how in [How::Full, How::Forgets, How::Bends] {
        let folder = tempfile::tempdir().unwrap();
        let bench = Bench::new().await;
        bench.queue("carts").await;
        let inner = FolderArchive::open(folder.path()).unwrap();
        bench.engine.start_retention(parts(Some(Arc::new(Broken { inner, how }))));
        commit(&bench, "cart:1").await;
        bench.advance(DAYS_30);
        let refused = bench.engine.archive_now().await.unwrap_err();
        assert!(matches!(refused, RetainError::Archive(_)), "{how:?}: {refused}");
        let name = MessageName::Key(key("cart:1"));
        assert!(bench.store.message(bench.tenant, name).await.unwrap().is_some(), "{how:?}");
    }
}

#[tokio::test]
async fn r_c9_without_an_archive_only_history_is_given_up() {
    let bench = Bench::new().await;
    bench.queue("carts").await;
    assert!(matches!(bench.engine.archive_now().await, Err(RetainError::NotConfigured)));
    bench.engine.start_retention(parts(None));
    commit(&bench, "cart:1").await;
    bench.advance(DAYS_30);
    assert_eq!(ArchiveRun { files: 0, gone: 1, changed: 0 }, pass(&bench).await);
    let timeline = timeline(&bench, "cart:1").await.unwrap();
    assert!(timeline.summary.contains("given up"), "{}", timeline.summary);
    let event = EventId::new("cart:1:carts").unwrap();
    let shown = bench.engine.ledger_entry(bench.tenant, event).await.unwrap().expect("the outcome stays");
    assert_eq!(Some(&b"{\"charge\" : 7}"[..]), shown.entry.result.bytes.as_deref());
}

#[tokio::test]
async fn r_c9_no_message_leaves_while_a_job_might_be_tried() {
    let folder = tempfile::tempdir().unwrap();
    let bench = archived(folder.path()).await;
    // Retention says a day; a job of the queue may be tried for four.
    bench.advance(2 * 86_400);
    assert_eq!(0, pass(&bench).await.gone);
    let span = RetrySpan::of(&Policy::endpoint_default());
    assert_eq!(
        "4d (horizon) + 3d3h35m5s (delays) + 7h33m30s500ms (10 % jitter) = 7d11h8m35s500ms",
        span.arithmetic
    );
    assert_eq!(
        "4d (horizon) + 15m (longest delay) = 4d15m",
        RetrySpan::of(&Policy::queue_default()).arithmetic
    );
}

#[tokio::test]
async fn r_c9_a_line_is_read_back_as_it_was_written() {
    let folder = tempfile::tempdir().unwrap();
    let bench = archived(folder.path()).await;
    bench.advance(DAYS_30);
    let retention = parts(None).retention;
    let request =
        ExpiryRequest { retention, after: ExpiryCursor::START, records_max: 10, bytes_max: 1 << 20 };
    let record = bench.store.expirable(request).await.unwrap().messages.remove(0);
    let line = Record::Message(Box::new(record.clone())).to_line("default");
    assert_eq!(Record::Message(Box::new(record)), Record::from_line(&line).unwrap());
    let text = String::from_utf8(line).unwrap();
    for part in ["\"record\":\"message\"", "\"tenant_name\":\"default\"", "\"event_id\":\"cart:1:carts\""] {
        assert!(text.contains(part), "{part} in {text}");
    }
    for (from, to, problem) in [
        ("\"version\":1", "\"version\":2", "version 2"),
        ("\"committed\"", "\"comitted\"", "not understood"),
        ("{", "", "not of this form"),
    ] {
        let bent = text.replacen(from, to, 1);
        let error = Record::from_line(bent.as_bytes()).unwrap_err().to_string();
        assert!(error.contains(problem), "{error}");
    }
}
