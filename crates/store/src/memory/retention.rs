//! What expired: found, let go of, and what stays known of it.

use posthaste_core::{Attempt, EventId, JobId, LaneId, MessageId, TenantId, Timestamp};

use super::tables::Tables;
use crate::{
    ArchiveFile, ArchivedMessage, EntryRecord, Expiry, ExpiryCursor, ExpiryRequest, Fingerprint, Indexed,
    MessageName, MessageRecord, Place, Retire, Retired,
    retention::{self, CANDIDATES_MAX},
};

/// What stays of a message that left.
#[derive(Clone, PartialEq)]
pub(crate) struct Archived {
    pub(crate) known: ArchivedMessage,
    pub(crate) fingerprint: Fingerprint,
    pub(crate) dead_lanes: Vec<LaneId>,
}

/// What stays of an entry that left.
#[derive(Clone, PartialEq)]
pub(crate) struct ArchivedEntry {
    pub(crate) entry: crate::LedgerEntry,
    pub(crate) place: Option<Place>,
}

impl Tables {
    pub(crate) fn expirable(&self, request: &ExpiryRequest, now: Timestamp) -> Expiry {
        match &request.after {
            ExpiryCursor::Messages(seq) => self.expirable_messages(request, *seq, now),
            ExpiryCursor::Entries { at, tenant, key } => {
                self.expirable_entries(request, (*at, *tenant, key), now)
            }
        }
    }

    fn expirable_messages(&self, request: &ExpiryRequest, mut seq: i64, now: Timestamp) -> Expiry {
        let mut candidates: Vec<_> = self
            .messages
            .iter()
            .map(|((tenant, id), message)| (message.seq, *tenant, *id, message))
            .collect();
        candidates.sort_unstable_by_key(|(seq, ..)| *seq);
        candidates.retain(|(at, ..)| i64::try_from(*at).unwrap_or(i64::MAX) > seq);
        let mut expiry = Expiry::default();
        let mut bytes = 0;
        for (at, tenant, id, message) in candidates {
            if expiry.messages.len() >= request.records_max || bytes >= request.bytes_max {
                expiry.next = Some(ExpiryCursor::Messages(seq));
                return expiry;
            }
            seq = i64::try_from(at).unwrap_or(i64::MAX);
            let (first, last) = id.job_range();
            let jobs = self.jobs.range((tenant, first)..=(tenant, last));
            let settled = jobs.map(|(_, job)| (job.row.state, Timestamp(job.row.settled_at.unwrap_or(0))));
            let expires_at = retention::message_expires_at(
                &request.retention,
                message.accepted_at,
                message.jobs_total,
                settled,
            );
            if expires_at.is_some_and(|at| at <= now)
                && let Some(record) = self.record_of(tenant, id)
            {
                bytes += retention::weight_of(&record);
                expiry.messages.push(record);
            }
        }
        expiry.next = Some(ExpiryCursor::first_entry());
        expiry
    }

    fn record_of(&self, tenant: TenantId, id: MessageId) -> Option<MessageRecord> {
        let message = self.message_view(tenant, &MessageName::Id(id))?;
        let given = &self.messages[&(tenant, id)].given;
        let (fingerprint, payload) = (given.fingerprint, given.payload.clone());
        let jobs = self.message_jobs(tenant, id, usize::MAX);
        let settled = jobs.iter().all(|view| view.job.state.name().is_settled());
        if message.fanout_running || jobs.len() != message.jobs_total || !settled {
            return None;
        }
        let custody = self.custody.get(&(tenant, id)).cloned().unwrap_or_default();
        Some(MessageRecord { tenant, message, fingerprint, payload, jobs, custody })
    }

    fn expirable_entries(
        &self,
        request: &ExpiryRequest,
        after: (Timestamp, TenantId, &str),
        now: Timestamp,
    ) -> Expiry {
        let until = Timestamp(now.0.saturating_sub_unsigned(request.retention.ledger.0));
        let done = self.ledger.iter().filter(|(_, entry)| entry.entry.outcome.is_some());
        let mut done: Vec<_> =
            done.map(|((tenant, key), entry)| (entry.updated_at, *tenant, key.as_str())).collect();
        done.sort_unstable();
        done.retain(|at| *at > after && at.0 <= until);
        let limit = request.records_max.min(CANDIDATES_MAX);
        done.truncate(limit);
        let mut expiry = Expiry::default();
        if let Some((at, tenant, key)) = done.last().filter(|_| done.len() == limit) {
            expiry.next = Some(ExpiryCursor::Entries { at: *at, tenant: *tenant, key: (*key).into() });
        }
        let key_of = |key| EventId::new(key).expect("keys in memory were checked");
        expiry.entries =
            done.into_iter().filter_map(|(_, tenant, key)| self.entry_record(tenant, &key_of(key))).collect();
        expiry
    }

    /// The entry, if it is here, done, and nothing pins it.
    fn entry_record(&self, tenant: TenantId, key: &EventId) -> Option<EntryRecord> {
        let entry = self.ledger.get(&(tenant, key.clone()))?;
        let free = entry.entry.outcome.is_some() && !self.is_pinned(tenant, key);
        free.then(|| EntryRecord { tenant, entry: entry.clone() })
    }

    fn is_pinned(&self, tenant: TenantId, key: &EventId) -> bool {
        let Some((message_key, destination)) = retention::parts_of(key) else { return false };
        let mut lanes = self.lanes.range((tenant, LaneId(0))..=(tenant, LaneId(u32::MAX)));
        let Some(((_, lane), _)) = lanes.find(|(_, lane)| lane.destination == destination) else {
            return false;
        };
        let Some(message) = self.names.get(&(tenant, message_key.clone())) else { return false };
        if let Some(archived) = self.archived.get(&(tenant, *message)) {
            return archived.known.key == message_key && archived.dead_lanes.contains(lane);
        }
        let known = &self.messages[&(tenant, *message)];
        match self.jobs.get(&(tenant, JobId::of(*message, *lane))) {
            Some(job) => known.given.key == message_key && retention::pins(job.row.state),
            None => self.fanouts.contains_key(&known.seq),
        }
    }

    pub(crate) fn retire(
        &mut self,
        file: Option<ArchiveFile>,
        records: &[Retire],
        now: Timestamp,
    ) -> Vec<Retired> {
        let retired: Vec<Retired> = records
            .iter()
            .map(|record| match record {
                Retire::Message { record, place } => self.retire_message(record, place.as_ref(), now),
                Retire::Entry { record, place } => self.retire_entry(record, place.as_ref()),
            })
            .collect();
        if let Some(file) = file.filter(|_| retired.contains(&Retired::Gone)) {
            self.archive_files.entry(file.file.clone()).or_insert(file);
        }
        retired
    }

    fn retire_message(&mut self, record: &MessageRecord, place: Option<&Place>, now: Timestamp) -> Retired {
        let (tenant, id) = (record.tenant, record.message.id);
        if self.record_of(tenant, id).as_ref() != Some(record) {
            return Retired::Changed;
        }
        for (_, entry) in retention::entries_of(record) {
            self.raise_fences(entry.entry.fence);
            let at = (tenant, entry.key.clone());
            let own = self.archived_entries.get(&at).is_some_and(|known| known.entry.of_job.is_none());
            if !own && !self.ledger.contains_key(&at) {
                let entry = retention::kept(entry, place);
                self.archived_entries.insert(at, ArchivedEntry { entry, place: place.cloned() });
            }
        }
        for view in &record.jobs {
            let last = Attempt::new(u32::MAX).expect("not zero");
            let job = view.job.id;
            self.attempts.retain(|at, _| !((tenant, job, Attempt::FIRST)..=(tenant, job, last)).contains(at));
            self.jobs.remove(&(tenant, job));
        }
        self.custody.remove(&(tenant, id));
        self.messages.remove(&(tenant, id));
        let view = &record.message;
        let known = ArchivedMessage {
            tenant,
            id,
            key: view.key.clone(),
            aliases: view.aliases.clone(),
            duplicates: view.duplicates,
            accepted_at: view.accepted_at,
            jobs_total: view.jobs_total,
            correlation_id: view.correlation_id.clone(),
            archived_at: now,
            place: place.cloned(),
        };
        let dead_lanes = retention::dead_lanes(record);
        let archived = Archived { known, fingerprint: record.fingerprint, dead_lanes };
        self.archived.insert((tenant, id), archived);
        Retired::Gone
    }

    fn retire_entry(&mut self, record: &EntryRecord, place: Option<&Place>) -> Retired {
        let at = (record.tenant, record.entry.key.clone());
        if self.entry_record(record.tenant, &record.entry.key).as_ref() != Some(record) {
            return Retired::Changed;
        }
        self.raise_fences(record.entry.entry.fence);
        self.ledger.remove(&at);
        let entry = retention::kept(record.entry.clone(), place);
        self.archived_entries.insert(at, ArchivedEntry { entry, place: place.cloned() });
        Retired::Gone
    }

    fn raise_fences(&mut self, fence: u64) {
        self.first_fence = self.first_fence.max(fence.saturating_add(1));
    }

    pub(crate) fn archived(&self, tenant: TenantId, name: &MessageName) -> Option<ArchivedMessage> {
        let id = match name {
            MessageName::Id(id) => *id,
            MessageName::Key(key) => *self.names.get(&(tenant, key.clone()))?,
        };
        Some(self.archived.get(&(tenant, id))?.known.clone())
    }

    pub(crate) fn list_archive_files(&self, after: Option<&str>, limit: usize) -> Vec<ArchiveFile> {
        let files = self.archive_files.values();
        files.filter(|file| after.is_none_or(|after| *file.file > *after)).take(limit).cloned().collect()
    }

    pub(crate) fn archived_in(&self, file: &str, after: Option<u64>, limit: usize) -> Vec<Indexed> {
        let here = |place: &&Place| *place.file == *file && after.is_none_or(|after| place.at_byte > after);
        let messages = self.archived.values().filter_map(|archived| {
            let (known, place) = (&archived.known, archived.known.place.as_ref().filter(here)?);
            let (at_byte, bytes) = (place.at_byte, place.bytes);
            let key = known.key.as_str().into();
            Some(Indexed { tenant: known.tenant, message: Some(known.id), key, at_byte, bytes })
        });
        let own = self.archived_entries.iter().filter(|(_, known)| known.entry.of_job.is_none());
        let entries = own.filter_map(|((tenant, key), known)| {
            let place = known.place.as_ref().filter(here)?;
            let (at_byte, bytes) = (place.at_byte, place.bytes);
            Some(Indexed { tenant: *tenant, message: None, key: key.as_str().into(), at_byte, bytes })
        });
        let mut indexed: Vec<Indexed> = messages.chain(entries).collect();
        indexed.sort_by_key(|indexed| indexed.at_byte);
        indexed.truncate(limit);
        indexed
    }
}
