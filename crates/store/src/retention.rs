//! What is settled leaves the store after a while: rows go, and what tells a key again stays.
//!
//! A message expires with the last of its jobs, an entry of the ledger once it is done and its job is committed or
//! cancelled, or there is none. Nothing live expires. Names stay where they are, so that a key that came once is known
//! for ever; what an acceptance and a claim must be told stays too, in a few bytes. The reasons are in
//! docs/adr/0004-retention.md.

use bytes::Bytes;
use posthaste_core::{
    DestinationId, DurationMs, EventId, JobId, LaneId, MessageId, MessageKey, StateName, TenantId, Timestamp,
};

use crate::{
    BoxFuture, CustodyEntry, Fingerprint, JobView, KeyKind, LedgerEntry, MessageName, MessageView, StoreError,
};

/// Bytes of an entry's result that stay in the store when it is archived; longer ones are in the archive alone.
pub(crate) const RESULT_BYTES_KEPT: usize = 512;

/// Candidates that one look for expired messages passes over.
pub(crate) const CANDIDATES_MAX: usize = 1_000;

/// How long what is settled stays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// Messages, from the last settlement of a job that committed or was cancelled.
    pub committed: DurationMs,
    /// Messages, from the last settlement of a job that is a dead letter.
    pub dead_lettered: DurationMs,
    /// Entries of the ledger, from when they were done.
    pub ledger: DurationMs,
}

/// A message with everything that its timeline needs.
#[derive(Clone, Debug, PartialEq)]
pub struct MessageRecord {
    /// Whose.
    pub tenant: TenantId,
    /// The message.
    pub message: MessageView,
    /// What its key stands for.
    pub fingerprint: Fingerprint,
    /// The exact bytes.
    pub payload: Bytes,
    /// Its jobs with their attempts, by lane.
    pub jobs: Vec<JobView>,
    /// What stands in no other row, oldest first.
    pub custody: Vec<CustodyEntry>,
}

/// An entry of the ledger that has a row of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct EntryRecord {
    /// Whose.
    pub tenant: TenantId,
    /// The entry.
    pub entry: LedgerEntry,
}

/// Where in the archive something is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The file's name.
    pub file: Box<str>,
    /// Where in its text the line begins.
    pub at_byte: u64,
    /// The line's length with its end.
    pub bytes: u64,
}

/// A file of the archive, as the store knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchiveFile {
    /// Its name.
    pub file: Box<str>,
    /// Lines in it.
    pub records: u64,
    /// Its length as it is kept, packed.
    pub bytes: u64,
    /// SHA-256 of it as it is kept.
    pub sha256: [u8; 32],
    /// The key of its first line.
    pub first_key: Box<str>,
    /// The key of its last line.
    pub last_key: Box<str>,
    /// When it was written.
    pub written_at: Timestamp,
}

/// Where a search for what expired goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExpiryCursor {
    /// With messages after this place in the order of acceptance.
    Messages(i64),
    /// With entries after this one.
    Entries {
        /// When it was done.
        at: Timestamp,
        /// Whose.
        tenant: TenantId,
        /// Its key; empty before the first.
        key: Box<str>,
    },
}

impl ExpiryCursor {
    /// The beginning.
    pub const START: Self = Self::Messages(i64::MIN);

    /// Before the first entry.
    pub(crate) fn first_entry() -> Self {
        Self::Entries { at: Timestamp(i64::MIN), tenant: TenantId(0), key: "".into() }
    }
}

/// What is asked of [`Retain::expirable`].
#[derive(Clone, Debug)]
pub struct ExpiryRequest {
    /// How long things stay.
    pub retention: Retention,
    /// Where to go on.
    pub after: ExpiryCursor,
    /// At most so many records.
    pub records_max: usize,
    /// Payload bytes after which no further record is taken; the first is taken whatever its size.
    pub bytes_max: usize,
}

/// What expired.
#[derive(Clone, Debug, Default)]
pub struct Expiry {
    /// Messages, in the order of acceptance.
    pub messages: Vec<MessageRecord>,
    /// Entries, oldest first.
    pub entries: Vec<EntryRecord>,
    /// Where to go on; `None` at the end.
    pub next: Option<ExpiryCursor>,
}

/// One thing that is to leave, as [`Retain::expirable`] gave it.
#[derive(Clone, Debug)]
pub enum Retire {
    /// A message.
    Message {
        /// As it was read.
        record: Box<MessageRecord>,
        /// Where the archive has it; `None`: nowhere.
        place: Option<Place>,
    },
    /// An entry.
    Entry {
        /// As it was read.
        record: Box<EntryRecord>,
        /// Where the archive has it; `None`: nowhere.
        place: Option<Place>,
    },
}

/// What became of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Retired {
    /// It left.
    Gone,
    /// It isn't as it was read any more, or is pinned: nothing was written.
    Changed,
}

/// What is still known of a message that left.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ArchivedMessage {
    /// Whose.
    pub tenant: TenantId,
    /// Its name.
    pub id: MessageId,
    /// Its business key.
    pub key: MessageKey,
    /// Its other names, in the order of their bytes.
    pub aliases: Vec<(KeyKind, MessageKey)>,
    /// Duplicate deliveries, later ones too.
    pub duplicates: u64,
    /// When it was accepted.
    pub accepted_at: Timestamp,
    /// How many jobs it had.
    pub jobs_total: usize,
    /// The request that brought it.
    pub correlation_id: Box<str>,
    /// When it left.
    pub archived_at: Timestamp,
    /// Where it is; `None`: it was given up.
    pub place: Option<Place>,
}

/// One line of a file that the store refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Indexed {
    /// Whose.
    pub tenant: TenantId,
    /// The message that it is; `None`: an entry of the ledger.
    pub message: Option<MessageId>,
    /// The key of the message or entry.
    pub key: Box<str>,
    /// Where it begins.
    pub at_byte: u64,
    /// The line's length with its end.
    pub bytes: u64,
}

/// Letting go of what expired, and knowing where it went. Errors and durability as for [`crate::Store`] and
/// [`crate::Reads`].
pub trait Retain: Send + Sync {
    /// What expired by now: messages first, in the order of acceptance, then entries. Passes over what can't be read.
    ///
    /// Looks at so many rows at most; an empty answer with a `next` is no end.
    fn expirable(&self, request: ExpiryRequest) -> BoxFuture<'_, Result<Expiry, StoreError>>;

    /// Lets go of `records`, if they are still as they were read: one commit; answers in order. Background.
    ///
    /// Of a message, payload, jobs, attempts and custody go; its names, its fingerprint and what claims of its event
    /// ids are told stay. Of an entry, what a claim is told stays. No fence that is given later for any key is one that
    /// was given before.
    fn retire(
        &self,
        file: Option<ArchiveFile>,
        records: Vec<Retire>,
    ) -> BoxFuture<'_, Result<Vec<Retired>, StoreError>>;

    /// What is still known of a message that left, by id or by any of its names.
    fn archived(
        &self,
        tenant: TenantId,
        name: MessageName,
    ) -> BoxFuture<'_, Result<Option<ArchivedMessage>, StoreError>>;

    /// Files that something was moved to, by name, at most `limit`.
    fn archive_files(
        &self,
        after: Option<Box<str>>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<ArchiveFile>, StoreError>>;

    /// What the store refers to in a file, in its order, at most `limit`, after the line at `after`.
    fn archived_in(
        &self,
        file: Box<str>,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Indexed>, StoreError>>;
}

/// When a message expires; `None` while it lives: not all of its jobs are made, or one isn't settled.
pub(crate) fn message_expires_at(
    retention: &Retention,
    accepted_at: Timestamp,
    jobs_total: usize,
    settled: impl IntoIterator<Item = (StateName, Timestamp)>,
) -> Option<Timestamp> {
    let mut jobs = 0;
    let mut last = accepted_at.after(retention.committed);
    for (state, at) in settled {
        jobs += 1;
        let stays = match state {
            StateName::Committed | StateName::Cancelled => retention.committed,
            StateName::DeadLettered => retention.dead_lettered,
            StateName::Scheduled | StateName::Leased | StateName::Retryable => return None,
        };
        last = last.max(at.after(stays));
    }
    (jobs == jobs_total).then_some(last)
}

/// Whether an entry whose job is in `state` must stay.
pub(crate) fn pins(state: StateName) -> bool {
    !matches!(state, StateName::Committed | StateName::Cancelled)
}

/// The message's key and the destination that a ledger's key would be the event id of.
pub(crate) fn parts_of(key: &EventId) -> Option<(MessageKey, DestinationId)> {
    let (message, destination) = key.as_str().rsplit_once(':')?;
    Some((MessageKey::new(message).ok()?, DestinationId::new(destination).ok()?))
}

/// The lanes of a record's dead letters: their entries stay pinned.
pub(crate) fn dead_lanes(record: &MessageRecord) -> Vec<LaneId> {
    let dead = record.jobs.iter().filter(|view| pins(view.job.state.name()));
    dead.map(|view| view.job.lane).collect()
}

/// What claims of the event ids of a record's jobs are told: the entries that its jobs of queues are.
pub(crate) fn entries_of(record: &MessageRecord) -> impl Iterator<Item = (JobId, LedgerEntry)> {
    let pulled = record.jobs.iter().filter(|view| view.job.kind == posthaste_core::Kind::Pull);
    pulled.filter_map(|view| {
        let key = EventId::of(&view.key, &view.destination);
        let entry = crate::ledger::of_job(&view.job, &key, view.attempts.last())?;
        Some((view.job.id, entry))
    })
}

/// An entry as it stays in the store: a long result is only in the archive, at `place`.
pub(crate) fn kept(mut entry: LedgerEntry, place: Option<&Place>) -> LedgerEntry {
    let long = entry.result.bytes.as_ref().is_some_and(|bytes| bytes.len() > RESULT_BYTES_KEPT);
    if let Some(place) = place.filter(|_| long) {
        entry.result.bytes = None;
        entry.result_at = Some(place.clone());
    }
    entry
}

/// A payload's share of a step's bytes.
pub(crate) fn weight_of(record: &MessageRecord) -> usize {
    let result = |view: &crate::AttemptView| {
        let details = &view.end.details;
        [&details.result, &details.excerpt].into_iter().flatten().map(|bytes| bytes.len()).sum::<usize>()
    };
    let attempts = record.jobs.iter().flat_map(|view| &view.attempts);
    record.payload.len()
        + attempts.map(|view| 512 + result(view)).sum::<usize>()
        + 512 * (1 + record.jobs.len() + record.custody.len())
}

#[cfg(test)]
mod tests {
    use super::*;

    const DAY: DurationMs = DurationMs::from_hours(24);
    const RETENTION: Retention =
        Retention { committed: DAY, dead_lettered: DurationMs(3 * DAY.0), ledger: DurationMs(9 * DAY.0) };

    fn days(count: i64) -> Timestamp {
        Timestamp(count * 86_400_000)
    }

    #[test]
    fn r_c9_a_message_expires_with_its_last_job_and_not_while_one_lives() {
        use StateName::*;
        let at = |total, jobs: &[(StateName, i64)]| {
            let settled = jobs.iter().map(|(state, day)| (*state, days(*day)));
            message_expires_at(&RETENTION, days(10), total, settled).map(|at| at.0 / 86_400_000)
        };
        assert_eq!(Some(11), at(0, &[]), "what nobody wanted");
        assert_eq!(Some(21), at(1, &[(Committed, 20)]));
        assert_eq!(Some(21), at(2, &[(Cancelled, 12), (Committed, 20)]));
        assert_eq!(Some(23), at(1, &[(DeadLettered, 20)]));
        assert_eq!(Some(24), at(2, &[(DeadLettered, 20), (Committed, 23)]));
        assert_eq!(Some(23), at(2, &[(DeadLettered, 20), (Committed, 20)]), "the longer one of both");
        assert_eq!(None, at(3, &[(Committed, 20), (Committed, 20)]), "one is live, or not made yet");
        for state in [Scheduled, Leased, Retryable] {
            assert_eq!(None, at(1, &[(state, 1)]));
        }
    }

    #[test]
    fn an_event_id_is_a_key_and_a_destination() {
        let parts = |text: &str| {
            let (key, destination) = parts_of(&EventId::new(text).unwrap())?;
            Some((key.to_string(), destination.to_string()))
        };
        assert_eq!(Some(("a:b".to_owned(), "q".to_owned())), parts("a:b:q"));
        for text in ["a", ":q", "a:", "a:/"] {
            assert_eq!(None, parts(text), "{text}");
        }
    }
}
