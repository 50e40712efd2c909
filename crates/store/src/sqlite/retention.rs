//! What expired: found by those who read, let go of by the writer.

use posthaste_core::{EventId, TenantId, Timestamp};
use rusqlite::params;

use super::{
    cells::{Cells, signed},
    fault::{Fault, Reach},
    job_rows::{family, one},
    readers::ReadSession,
    record_rows::{Candidate, Records},
    session::Session,
};
use crate::{
    ArchiveFile, ArchivedMessage, EntryRecord, Expiry, ExpiryCursor, ExpiryRequest, Indexed, MessageName,
    MessageRecord, Place, Retire, Retired,
    retention::{self, CANDIDATES_MAX},
    rows::{self, words},
};

impl<'c> ReadSession<'c> {
    fn records(&mut self) -> Records<'_, 'c> {
        Records { sql: &mut self.records, recent: &self.recent }
    }

    pub(super) fn expirable(&mut self, request: &ExpiryRequest) -> Result<Expiry, Fault> {
        match &request.after {
            ExpiryCursor::Messages(seq) => self.expirable_messages(request, *seq),
            ExpiryCursor::Entries { at, tenant, key } => self.expirable_entries(request, (*at, *tenant, key)),
        }
    }

    fn expirable_messages(&mut self, request: &ExpiryRequest, mut seq: i64) -> Result<Expiry, Fault> {
        let now = self.now();
        let mut expiry = Expiry::default();
        let mut bytes = 0;
        let candidates = self.records().candidates(seq, CANDIDATES_MAX)?;
        let mut ended = candidates.len() < CANDIDATES_MAX;
        let shortest = request.retention.committed.min(request.retention.dead_lettered);
        for candidate in candidates {
            // Whoever came later can't have expired either.
            if candidate.accepted_at.after(shortest) > now {
                ended = true;
                break;
            }
            if expiry.messages.len() >= request.records_max || bytes >= request.bytes_max {
                ended = false;
                break;
            }
            seq = candidate.seq;
            match self.expired_message(request, &candidate, now) {
                Ok(Some(record)) => {
                    bytes += retention::weight_of(&record);
                    expiry.messages.push(record);
                }
                Ok(None) => {}
                Err(fault) if fault.reach() == Reach::Operation => leave_out(&candidate.id, &fault),
                Err(fault) => return Err(fault),
            }
        }
        let next = if ended { ExpiryCursor::first_entry() } else { ExpiryCursor::Messages(seq) };
        expiry.next = Some(next);
        Ok(expiry)
    }

    fn expired_message(
        &mut self,
        request: &ExpiryRequest,
        candidate: &Candidate,
        now: Timestamp,
    ) -> Result<Option<MessageRecord>, Fault> {
        match self.records().expires_at(candidate, &request.retention)? {
            Some(at) if at <= now => self.records().message(candidate.tenant, candidate.id),
            Some(_) | None => Ok(None),
        }
    }

    fn expirable_entries(
        &mut self,
        request: &ExpiryRequest,
        after: (Timestamp, TenantId, &str),
    ) -> Result<Expiry, Fault> {
        let until = self.now().0.saturating_sub_unsigned(request.retention.ledger.0);
        let limit = request.records_max.min(CANDIDATES_MAX);
        let candidates = self.records().entry_candidates(Timestamp(until), after, limit)?;
        let mut expiry = Expiry::default();
        if candidates.len() == limit {
            let (at, tenant, key) = &candidates[limit - 1];
            expiry.next = Some(ExpiryCursor::Entries { at: *at, tenant: *tenant, key: key.as_str().into() });
        }
        for (_, tenant, key) in candidates {
            match self.records().entry(tenant, &key) {
                Ok(found) => expiry.entries.extend(found),
                Err(fault) if fault.reach() == Reach::Operation => leave_out(&key, &fault),
                Err(fault) => return Err(fault),
            }
        }
        Ok(expiry)
    }

    pub(super) fn archived(
        &mut self,
        (tenant, name, recent): &(TenantId, MessageName, Option<i64>),
    ) -> Result<Option<ArchivedMessage>, Fault> {
        let id = match name {
            MessageName::Id(id) => Some(*id),
            MessageName::Key(key) => self.message_named(*tenant, key, *recent)?,
        };
        match id {
            Some(id) => self.records().archived(*tenant, id),
            None => Ok(None),
        }
    }

    pub(super) fn archive_files(
        &mut self,
        (after, limit): &(Option<Box<str>>, usize),
    ) -> Result<Vec<ArchiveFile>, Fault> {
        let at = params![after.as_deref().unwrap_or_default(), signed(*limit)];
        let mut rows = self.sql.archive_files_list.query(at)?;
        let mut files = Vec::new();
        while let Some(row) = rows.next()? {
            files.push(rows::configured::archive_file(&mut Cells::of(row, 0))?);
        }
        Ok(files)
    }

    pub(super) fn archived_in(
        &mut self,
        (file, after, limit): &(Box<str>, Option<u64>, usize),
    ) -> Result<Vec<Indexed>, Fault> {
        let at = params![file, after.map_or(-1, signed), signed(*limit)];
        let mut indexed = Vec::new();
        let mut rows = self.sql.archived_in.query(at)?;
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, 0);
            let (tenant, message) = (TenantId(cells.int()?), Some(cells.message_id()?));
            let (key, at_byte, bytes) = (cells.text()?, cells.int()?, cells.int()?);
            indexed.push(Indexed { tenant, message, key, at_byte, bytes });
        }
        drop(rows);
        let mut rows = self.sql.archived_entries_in.query(at)?;
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, 0);
            let (tenant, key) = (TenantId(cells.int()?), cells.text()?);
            indexed.push(Indexed { tenant, message: None, key, at_byte: cells.int()?, bytes: cells.int()? });
        }
        indexed.sort_by_key(|indexed| indexed.at_byte);
        indexed.truncate(*limit);
        Ok(indexed)
    }
}

fn leave_out(what: &dyn std::fmt::Display, fault: &Fault) {
    tracing::error!(%what, %fault, "it can't be read and is not archived");
}

impl Session<'_> {
    pub(super) fn retire(
        &mut self,
        (file, records): &(Option<ArchiveFile>, Vec<Retire>),
    ) -> Result<Vec<Retired>, Fault> {
        self.know_recent_names()?;
        let retired = records.iter().map(|record| match record {
            Retire::Message { record, place } => self.retire_message(record, place.as_ref()),
            Retire::Entry { record, place } => self.retire_entry(record, place.as_ref()),
        });
        let retired = retired.collect::<Result<Vec<_>, _>>()?;
        if let Some(file) = file.as_ref().filter(|_| retired.contains(&Retired::Gone)) {
            self.sql.archive_files_insert.execute(params![
                file.file,
                signed(file.records),
                signed(file.bytes),
                file.sha256,
                file.first_key,
                file.last_key,
                file.written_at.0,
            ])?;
        }
        Ok(retired)
    }

    fn retire_message(&mut self, record: &MessageRecord, place: Option<&Place>) -> Result<Retired, Fault> {
        let (tenant, id) = (record.tenant, record.message.id);
        let found = Records { sql: &mut self.records, recent: &self.recent }.message(tenant, id)?;
        if found.as_ref() != Some(record) {
            return Ok(Retired::Changed);
        }
        self.keep_entries_of(record, place)?;
        let (first, last) = family(id.0);
        let message = id.0.to_be_bytes();
        self.sql.attempts_delete_all.execute(params![tenant.0, first, last])?;
        let jobs = self.sql.jobs_done_delete_all.execute(params![tenant.0, first, last])?;
        if jobs != record.jobs.len() {
            return Err(Fault::Invariant("other jobs were deleted than those that were read"));
        }
        for view in &record.jobs {
            self.counts.left(tenant, view.job.state.name());
        }
        self.sql.custody_delete.execute(params![tenant.0, message])?;
        one(self.sql.messages_delete.execute(params![tenant.0, message])?)?;
        self.insert_archived(record, place)?;
        Ok(Retired::Gone)
    }

    fn insert_archived(&mut self, record: &MessageRecord, place: Option<&Place>) -> Result<(), Fault> {
        let view = &record.message;
        let dead = words::bytes_of(&retention::dead_lanes(record));
        let inserted = self.sql.archived_insert.execute(params![
            record.tenant.0,
            view.id.0.to_be_bytes(),
            view.key.as_str(),
            view.accepted_at.0,
            signed(view.jobs_total),
            record.fingerprint.0.as_flattened(),
            view.correlation_id,
            dead,
            self.now.0,
            place.map(|place| &place.file),
            place.map(|place| signed(place.at_byte)),
            place.map(|place| signed(place.bytes)),
        ])?;
        one(inserted)
    }

    /// What claims of the event ids of the message's jobs are told from now on.
    fn keep_entries_of(&mut self, record: &MessageRecord, place: Option<&Place>) -> Result<(), Fault> {
        for (_, entry) in retention::entries_of(record) {
            self.raise_fences(entry.entry.fence)?;
            let has_own = self.entry_of(record.tenant, &entry.key)?.is_some();
            if !has_own {
                self.put_archived_entry(record.tenant, &retention::kept(entry, place), place)?;
            }
        }
        Ok(())
    }

    fn retire_entry(&mut self, record: &EntryRecord, place: Option<&Place>) -> Result<Retired, Fault> {
        let EntryRecord { tenant, entry } = record;
        let key: &EventId = &entry.key;
        let found = Records { sql: &mut self.records, recent: &self.recent }.entry(*tenant, key)?;
        if found.as_ref() != Some(record) {
            return Ok(Retired::Changed);
        }
        self.raise_fences(entry.entry.fence)?;
        one(self.sql.ledger_delete.execute(params![tenant.0, key.as_str()])?)?;
        self.put_archived_entry(*tenant, &retention::kept(entry.clone(), place), place)?;
        self.ledger_used = true;
        Ok(Retired::Gone)
    }

    /// No key without a row gets `fence` or a smaller one.
    fn raise_fences(&mut self, fence: u64) -> Result<(), Fault> {
        self.sql.ledger_fences_raise.execute([signed(fence.saturating_add(1))])?;
        Ok(())
    }
}
