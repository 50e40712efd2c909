//! Retention: what expired goes into the archive, and then leaves the store. Row C9.
//!
//! A pass begins with the oldest message and goes through to the last done entry. It is resumed by beginning anew:
//! whatever has left is not found again. The store's own work goes first: a pass writes in small steps, and rests between
//! them; a pass that takes longer than the time between two is late, and hurries.

use std::sync::Arc;

use posthaste_core::{Backoff, DurationMs, Policy};
use posthaste_store::{
    ArchiveFile, ExpiryCursor, ExpiryRequest, LedgerEntry, Place, Retention, Retire, Retired, StoreError,
};

use crate::{
    Engine, EngineError,
    archive::{Archive, ArchiveError, Packed, Packer, Record, line_at, manifest_name, problems_of},
    config::format_duration,
    rests::Rests,
};

/// Records that are read at once.
const PAGE_RECORDS: usize = 200;

/// Bytes of payloads that are read at once.
const PAGE_BYTES: usize = 4 * 1024 * 1024;

/// After the store was busy.
const BUSY_PAUSE: DurationMs = DurationMs(200);

/// Lines of a file's index that are read at once.
const INDEX_PAGE: usize = 1_000;

/// How retention is to be done.
#[derive(Clone)]
pub struct RetentionParts {
    /// How long what is settled stays.
    pub retention: Retention,
    /// Where to; `None`: everything but what tells keys and outcomes again is given up.
    pub archive: Option<Arc<dyn Archive>>,
    /// Before the first pass.
    pub first_after: DurationMs,
    /// Between two passes.
    pub every: DurationMs,
}

impl std::fmt::Debug for RetentionParts {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let archive = self.archive.as_ref().map(|archive| archive.place());
        f.debug_struct("RetentionParts")
            .field("retention", &self.retention)
            .field("archive", &archive)
            .field("every", &self.every)
            .finish_non_exhaustive()
    }
}

/// What keeps retention going.
pub(crate) struct Keeper {
    parts: RetentionParts,
    /// One pass at a time.
    pass: tokio::sync::Mutex<()>,
}

/// What a pass did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ArchiveRun {
    /// Files written.
    pub files: usize,
    /// Messages and entries that left.
    pub gone: usize,
    /// Messages and entries that changed after they were written: they stay, and their lines are superfluous.
    pub changed: usize,
}

/// Why a pass ended early. What has left has left; the rest is found again.
#[derive(Debug, thiserror::Error)]
pub enum RetainError {
    /// No retention is configured: nothing expires.
    #[error("no retention is configured: set `retention.archive`")]
    NotConfigured,
    /// The archive.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// The store.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// Our own fault.
    #[error("the pass panicked; what has left has left, and the rest is found again")]
    Panicked,
    /// A record didn't come back from its line as it was.
    #[error("a record is not read back as it was written; nothing of the file {0} was deleted")]
    NotTheSame(String),
}

/// How long one job may be tried under a policy, with how that comes about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RetrySpan {
    /// All of it.
    pub total: DurationMs,
    /// `4d (horizon) + 3d3h35m5s (delays) + 7h33m30s500ms (10 % jitter) = …`.
    pub arithmetic: String,
}

impl RetrySpan {
    /// Of `policy`: its horizon, and beyond it what a delay that began before may add: all fixed delays with their
    /// jitter, or the longest delay of an exponential backoff.
    pub fn of(policy: &Policy) -> Self {
        let horizon = policy.horizon;
        let sum = |parts: &[DurationMs]| {
            DurationMs(parts.iter().fold(0, |sum: u64, part| sum.saturating_add(part.0)))
        };
        let (total, rest) = match &policy.backoff {
            Backoff::Fixed { delays, jitter } => {
                let delays = sum(delays);
                let random = u64::try_from(u128::from(delays.0) * u128::from(jitter.get()) / 1_000);
                let random = DurationMs(random.unwrap_or(u64::MAX));
                let percent = f64::from(jitter.get()) / 10.0;
                let rest = format!("{} (delays) + {} ({percent} % jitter)", spelled(delays), spelled(random));
                (sum(&[horizon, delays, random]), rest)
            }
            Backoff::Exponential { cap, .. } => {
                (sum(&[horizon, *cap]), format!("{} (longest delay)", spelled(*cap)))
            }
        };
        let arithmetic = format!("{} (horizon) + {rest} = {}", spelled(horizon), spelled(total));
        Self { total, arithmetic }
    }
}

/// In days, hours, minutes and seconds, as configuration can be written.
fn spelled(duration: DurationMs) -> String {
    let mut rest = duration.0;
    let mut text = String::new();
    for (unit, ms) in [("d", 86_400_000), ("h", 3_600_000), ("m", 60_000), ("s", 1_000), ("ms", 1)] {
        if rest >= ms {
            text.extend([&(rest / ms).to_string(), unit]);
            rest %= ms;
        }
    }
    if text.is_empty() { format_duration(duration) } else { text }
}

impl Engine {
    /// Begins retention. Once; a second call changes nothing.
    pub fn start_retention(&self, parts: RetentionParts) {
        if self.keeper.set(Keeper { parts, pass: tokio::sync::Mutex::default() }).is_ok() {
            self.tasks.spawn(self.arc().run_retention());
        }
    }

    async fn run_retention(self: Arc<Self>) {
        let Some(Keeper { parts, .. }) = self.keeper.get() else { return };
        let (mut wait, every) = (parts.first_after, parts.every);
        loop {
            tokio::select! {
                () = self.clock.sleep_until(self.clock.now().after(wait)) => {}
                () = self.stop.cancelled() => return,
            }
            wait = every;
            if !self.on_duty().await {
                return;
            }
            match self.archive_now().await {
                Ok(run) if run == ArchiveRun::default() => {}
                Ok(run) => {
                    tracing::info!(
                        event = "retention",
                        files = run.files,
                        gone = run.gone,
                        changed = run.changed
                    );
                }
                Err(error) => tracing::error!(event = "retention_failed", error = %error),
            }
        }
    }

    /// One pass over everything that expired; waits for one that runs.
    ///
    /// Durability: what left the store is in the archive, synced and read back. Cancel: safe; what was written and has
    /// not left is written again by the next pass.
    pub async fn archive_now(&self) -> Result<ArchiveRun, RetainError> {
        let keeper = self.keeper.get().ok_or(RetainError::NotConfigured)?;
        let _pass = keeper.pass.lock().await;
        let mut run = ArchiveRun::default();
        let mut packer = Packer::default();
        let begun = self.clock.now();
        let mut rests = Rests::new(begun, keeper.parts.every);
        let mut after = Some(ExpiryCursor::START);
        let configured = keeper.parts.retention;
        if self.retention_in_force(&configured) != configured {
            tracing::warn!(event = "retention_raised", "a destination made over the API is tried for longer");
        }
        while let Some(from) = after {
            if self.stop.is_cancelled() {
                return Ok(run);
            }
            let retention = self.retention_in_force(&keeper.parts.retention);
            let (records_max, bytes_max) = (PAGE_RECORDS, PAGE_BYTES);
            let request = ExpiryRequest { retention, after: from, records_max, bytes_max };
            let found = self.store.expirable(request).await?;
            self.rest(&mut rests).await;
            let messages = found.messages.into_iter().map(|record| Record::Message(Box::new(record)));
            let entries = found.entries.into_iter().map(|record| Record::Entry(Box::new(record)));
            let directory = self.directory.load();
            for record in messages.chain(entries) {
                let tenant = directory.tenant_name(record.tenant()).unwrap_or_default();
                packer.add(record, &tenant);
            }
            after = found.next;
            if packer.is_full() || (after.is_none() && !packer.is_empty()) {
                self.write_out(keeper, std::mem::take(&mut packer), &mut run, &mut rests).await?;
            }
        }
        Ok(run)
    }

    /// [`Engine::archive_now`], waited for no longer than `patience`: `None` if it runs on. Whoever asks may go away.
    pub async fn archive_within(&self, patience: DurationMs) -> Option<Result<ArchiveRun, RetainError>> {
        let engine = self.arc();
        let pass = self.tasks.spawn(async move { engine.archive_now().await });
        tokio::select! {
            ended = pass => Some(ended.unwrap_or(Err(RetainError::Panicked))),
            () = self.clock.sleep_until(self.clock.now().after(patience)) => None,
        }
    }

    /// Never shorter than a job may be tried: destinations that came by the API may be tried longer than was thought
    /// of.
    fn retention_in_force(&self, configured: &Retention) -> Retention {
        let directory = self.directory.load();
        let lanes = directory.entries().map(|entry| directory.policy(entry.row.tenant, entry.row.lane));
        let longest = lanes.map(|policy| RetrySpan::of(&policy).total).max().unwrap_or(DurationMs::ZERO);
        Retention {
            committed: configured.committed.max(longest),
            dead_lettered: configured.dead_lettered.max(longest),
            ledger: configured.ledger.max(longest),
        }
    }

    /// Puts a file in place, and then lets go of what is in it.
    async fn write_out(
        &self,
        keeper: &Keeper,
        packer: Packer,
        run: &mut ArchiveRun,
        rests: &mut Rests,
    ) -> Result<(), RetainError> {
        let Some(archive) = &keeper.parts.archive else {
            return self.let_go(None, packer.given_up(), run, rests).await;
        };
        let now = self.clock.now();
        let id = self.message_ids.next(now).to_string();
        let name = format!("archive-{}.jsonl.gz", id.trim_start_matches("msg_"));
        let named = name.clone();
        let packed = tokio::task::spawn_blocking(move || packer.pack(&named, now)).await;
        let Ok(Some(packed)) = packed else { return Err(RetainError::NotTheSame(name)) };
        put_and_read_back(&**archive, &packed).await?;
        run.files += 1;
        #[cfg(feature = "faults")]
        posthaste_store::faults::reached(posthaste_store::faults::Point::ArchiveWritten);
        self.let_go(Some(packed.file), packed.retire, run, rests).await
    }

    async fn let_go(
        &self,
        file: Option<ArchiveFile>,
        mut records: Vec<Retire>,
        run: &mut ArchiveRun,
        rests: &mut Rests,
    ) -> Result<(), RetainError> {
        while !records.is_empty() {
            let at_once = rests.pace(self.clock.now()).step;
            let step: Vec<Retire> = records.drain(..records.len().min(at_once)).collect();
            let retired = loop {
                match self.store.retire(file.clone(), step.clone()).await {
                    Err(StoreError::Overloaded) if !self.stop.is_cancelled() => {
                        self.clock.sleep_until(self.clock.now().after(BUSY_PAUSE)).await;
                    }
                    retired => break retired?,
                }
            };
            let gone = retired.iter().filter(|one| **one == Retired::Gone).count();
            run.gone += gone;
            run.changed += retired.len() - gone;
            #[cfg(feature = "faults")]
            posthaste_store::faults::reached(posthaste_store::faults::Point::MidRetire);
            self.rest(rests).await;
        }
        Ok(())
    }

    /// Makes room for others. A store that is closed waits for no rest.
    async fn rest(&self, rests: &mut Rests) {
        if let Some(until) = rests.due(self.clock.now()) {
            tokio::select! {
                () = self.clock.sleep_until(until) => {}
                () = self.stop.cancelled() => {}
            }
            rests.rested(self.clock.now());
        }
    }

    /// The record at a place of the archive.
    pub(crate) async fn recall(&self, place: &Place) -> Result<Record, ArchiveError> {
        let file = place.file.to_string();
        let keeper = self.keeper.get().and_then(|keeper| keeper.parts.archive.clone());
        let Some(archive) = keeper else { return Err(ArchiveError::NotConfigured { file }) };
        let where_to = archive.place().to_owned();
        let Some(packed) = archive.get(&place.file).await? else {
            return Err(ArchiveError::Missing { place: where_to, file });
        };
        let place = place.clone();
        let read = tokio::task::spawn_blocking(move || line_at(&packed, &place)).await;
        let read = read.unwrap_or_else(|panic| Err(panic.to_string()));
        read.map_err(|problem| ArchiveError::Damaged { place: where_to, file, problem })
    }

    /// An entry with its result, which may be in the archive.
    ///
    /// Errors: [`StoreError::Unavailable`] if the archive can't be read: an answer without the result would be another
    /// one than before.
    pub(crate) async fn with_result(&self, mut entry: LedgerEntry) -> Result<LedgerEntry, EngineError> {
        let Some(place) = entry.result_at.take() else { return Ok(entry) };
        let failed = |error| StoreError::unavailable_because("the entry's result is in the archive", error);
        entry.result.bytes = match self.recall(&place).await.map_err(failed)? {
            Record::Entry(record) => record.entry.result.bytes,
            Record::Message(record) => {
                let job = record.jobs.iter().find(|view| Some(view.job.id) == entry.of_job);
                let last = job.and_then(|view| view.attempts.last());
                let late = last.and_then(|last| last.late.as_ref()?.details.result.as_deref());
                late.or(last.and_then(|last| last.end.details.result.as_deref()))
                    .map(bytes::Bytes::copy_from_slice)
            }
        };
        Ok(entry)
    }

    /// Files of the archive that the store refers to, by name.
    pub async fn archive_files(
        &self,
        after: Option<&str>,
        limit: usize,
    ) -> Result<Vec<ArchiveFile>, EngineError> {
        Ok(self.store.archive_files(after.map(Into::into), limit).await?)
    }

    /// A file of the archive that the store refers to.
    pub async fn archive_file(&self, name: &str) -> Result<Option<ArchiveFile>, EngineError> {
        // The last name before it, so that the next one is it.
        let mut before = name.to_owned();
        before.pop();
        let after = Some(before.as_str()).filter(|before| !before.is_empty());
        let files = self.store.archive_files(after.map(Into::into), INDEX_PAGE).await?;
        Ok(files.into_iter().find(|file| *file.file == *name))
    }

    /// What is wrong with a file of the archive: nothing if it is as it was written, and every key is where the store
    /// has it.
    pub async fn verify_archive_file(&self, known: ArchiveFile) -> Result<Vec<String>, EngineError> {
        let archive = self.keeper.get().and_then(|keeper| keeper.parts.archive.clone());
        let Some(archive) = archive else {
            let file = known.file.to_string();
            return Ok(vec![ArchiveError::NotConfigured { file }.to_string()]);
        };
        let mut indexed = Vec::new();
        loop {
            let after = indexed.last().map(|last: &posthaste_store::Indexed| last.at_byte);
            let page = self.store.archived_in(known.file.clone(), after, INDEX_PAGE).await?;
            let full = page.len() == INDEX_PAGE;
            indexed.extend(page);
            if !full {
                break;
            }
        }
        let read =
            async { Ok((archive.get(&known.file).await?, archive.get(&manifest_name(&known.file)).await?)) };
        let read: Result<_, ArchiveError> = read.await;
        Ok(match read {
            Ok((Some(packed), manifest)) => {
                let checked = tokio::task::spawn_blocking(move || {
                    problems_of(&known, &packed, manifest.as_deref(), &indexed)
                });
                checked.await.unwrap_or_else(|panic| vec![panic.to_string()])
            }
            Ok((None, _)) => vec!["it is missing".to_owned()],
            Err(error) => vec![error.to_string()],
        })
    }
}

/// Both files, and the chief one as it was meant.
async fn put_and_read_back(archive: &dyn Archive, packed: &Packed) -> Result<(), ArchiveError> {
    let name = &*packed.file.file;
    archive.put(name, packed.packed.clone()).await?;
    archive.put(&manifest_name(name), packed.manifest.clone()).await?;
    let (place, file) = (archive.place().to_owned(), name.to_owned());
    match archive.get(name).await? {
        Some(read) if read == packed.packed => Ok(()),
        Some(_) => {
            let problem = "it is not read back as it was written".to_owned();
            Err(ArchiveError::Damaged { place, file, problem })
        }
        None => Err(ArchiveError::Missing { place, file }),
    }
}
