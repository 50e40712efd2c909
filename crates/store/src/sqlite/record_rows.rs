//! What leaves the store, read whole: for those who look for it, and for the writer, who looks again.

use bytes::Bytes;
use posthaste_core::{
    Attempt, EventId, Job, JobId, LaneId, MessageId, MessageKey, StateName, TenantId, Timestamp,
};
use rusqlite::params;

use super::{
    attempt_rows,
    cells::{Cells, signed},
    fault::Fault,
    job_rows::{self, family, id_after_job},
    ledger_rows,
    read_rest::one_number,
    recent_names::RecentNames,
    statements::RecordStatements,
};
use crate::{
    ArchivedMessage, CustodyEntry, EntryRecord, JobView, KeyKind, MessageRecord, MessageView, Retention,
    Stage, retention,
    rows::{
        job::job_row,
        words::{fingerprint, key_kind, lanes_of, place},
    },
};

/// Statements, and where new names are.
pub(super) struct Records<'s, 'c> {
    pub(super) sql: &'s mut RecordStatements<'c>,
    pub(super) recent: &'s RecentNames,
}

/// A message that may have expired.
pub(super) struct Candidate {
    pub(super) seq: i64,
    pub(super) tenant: TenantId,
    pub(super) id: MessageId,
    pub(super) accepted_at: Timestamp,
    pub(super) jobs_total: usize,
}

impl Records<'_, '_> {
    /// Messages after `seq`, in the order of acceptance.
    pub(super) fn candidates(&mut self, seq: i64, limit: usize) -> Result<Vec<Candidate>, Fault> {
        let mut rows = self.sql.records_candidates.query(params![seq, signed(limit)])?;
        let mut candidates = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, 0);
            candidates.push(Candidate {
                seq: cells.int()?,
                tenant: TenantId(cells.int()?),
                id: cells.message_id()?,
                accepted_at: cells.at()?,
                jobs_total: cells.int()?,
            });
        }
        Ok(candidates)
    }

    /// When it expires; `None` while it lives.
    pub(super) fn expires_at(
        &mut self,
        candidate: &Candidate,
        retention: &Retention,
    ) -> Result<Option<Timestamp>, Fault> {
        let (first, last) = family(candidate.id.0);
        let mut rows = self.sql.records_settled.query(params![candidate.tenant.0, first, last])?;
        let mut settled = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, candidate.id.0);
            settled.push((cells.word(StateName::parse)?, cells.at()?));
        }
        let Candidate { accepted_at, jobs_total, .. } = candidate;
        Ok(retention::message_expires_at(retention, *accepted_at, *jobs_total, settled))
    }

    /// The message with everything of it; `None` if it is not here, or not all of its jobs are settled.
    pub(super) fn message(
        &mut self,
        tenant: TenantId,
        id: MessageId,
    ) -> Result<Option<MessageRecord>, Fault> {
        let mut rows = self.sql.records_message.query(params![tenant.0, id.0.to_be_bytes()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let mut cells = Cells::of(row, id.0);
        let mut message = MessageView {
            id,
            key: cells.key()?,
            aliases: Vec::new(),
            event_type: cells.maybe_text()?,
            source: cells.maybe_destination()?,
            accepted_at: cells.at()?,
            jobs_total: cells.int()?,
            fanout_running: false,
            duplicates: 0,
            correlation_id: cells.text()?,
            traceparent: cells.maybe_text()?,
            content_type: cells.maybe_text()?,
            headers: cells.maybe_text()?,
            metadata: cells.maybe_text()?,
            payload_ref: cells.maybe_text()?,
            payload_bytes: 0,
        };
        let fingerprint = fingerprint(&cells.array()?);
        let payload = Bytes::copy_from_slice(cells.bytes()?);
        message.fanout_running = cells.flag()?;
        message.payload_bytes = payload.len();
        drop(rows);
        message.duplicates = self.duplicates(tenant, &message.key)?;
        message.aliases = self.other_names(tenant, id)?;
        let jobs = self.jobs(tenant, id, &message.key)?;
        if message.fanout_running || jobs.len() != message.jobs_total {
            return Ok(None);
        }
        let custody = self.custody(tenant, id)?;
        Ok(Some(MessageRecord { tenant, message, fingerprint, payload, jobs, custody }))
    }

    fn duplicates(&mut self, tenant: TenantId, key: &MessageKey) -> Result<u64, Fault> {
        let name = params![tenant.0, key.as_str()];
        if let Some(duplicates) = one_number(&mut self.sql.keys_duplicates, name)? {
            return Ok(duplicates);
        }
        if let Some(row) = self.recent.row_of(tenant, key) {
            let at = params![row, tenant.0, key.as_str()];
            if let Some(duplicates) = one_number(&mut self.sql.keys_new_duplicates, at)? {
                return Ok(duplicates);
            }
        }
        let found = one_number(&mut self.sql.keys_new_duplicates_anywhere, name)?;
        found.ok_or(Fault::Invariant("a message's key is missing"))
    }

    fn other_names(&mut self, tenant: TenantId, id: MessageId) -> Result<Vec<(KeyKind, MessageKey)>, Fault> {
        let mut rows = self.sql.keys_of_message.query(params![tenant.0, id.0.to_be_bytes()])?;
        let mut names = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, id.0);
            names.push((cells.word(key_kind)?, cells.key()?));
        }
        Ok(names)
    }

    /// The settled jobs of a message, with their attempts.
    fn jobs(&mut self, tenant: TenantId, id: MessageId, key: &MessageKey) -> Result<Vec<JobView>, Fault> {
        let (first, last) = family(id.0);
        let RecordStatements { records_jobs, attempts_of_job, lanes_find, .. } = &mut *self.sql;
        let mut rows = records_jobs.query(params![tenant.0, first, last])?;
        let mut views = Vec::new();
        while let Some(row) = rows.next()? {
            let job = id_after_job(row)?;
            let (row, extra) = job_row(&mut Cells::of(row, job.0), tenant, job)?;
            let job = Job::from_rows(row, None)?;
            let mut lanes = lanes_find.query(params![tenant.0, job.lane.0])?;
            let Some(lane) = lanes.next()? else { return Err(Fault::Invariant("a job's lane is missing")) };
            let destination = Cells::of(lane, job.id.0).destination()?;
            let attempts = attempt_rows::all_of(attempts_of_job, tenant, job.id)??;
            let (wire_id, owner) = (extra.wire_id, extra.owner);
            views.push(JobView { job, key: key.clone(), destination, wire_id, owner, attempts });
        }
        Ok(views)
    }

    fn custody(&mut self, tenant: TenantId, message: MessageId) -> Result<Vec<CustodyEntry>, Fault> {
        let mut rows = self.sql.custody_of_message.query(params![tenant.0, message.0.to_be_bytes(), -1])?;
        let mut entries = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, message.0);
            entries.push(CustodyEntry {
                tenant,
                message,
                job: cells.maybe_id()?.map(JobId),
                at: cells.at()?,
                stage: cells.word(Stage::parse)?,
                attempt: cells.maybe_int()?.and_then(Attempt::new),
                actor: cells.maybe_text()?,
                detail: cells.maybe_text()?,
            });
        }
        Ok(entries)
    }

    /// Done entries after `after` that were done by `until`.
    pub(super) fn entry_candidates(
        &mut self,
        until: Timestamp,
        after: (Timestamp, TenantId, &str),
        limit: usize,
    ) -> Result<Vec<(Timestamp, TenantId, EventId)>, Fault> {
        let at = params![until.0, after.0.0, after.1.0, after.2, signed(limit)];
        let mut rows = self.sql.records_entry_candidates.query(at)?;
        let mut candidates = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, 0);
            let (at, tenant) = (cells.at()?, TenantId(cells.int()?));
            let key = cells.event_id()?;
            candidates.push((at, tenant, key));
        }
        Ok(candidates)
    }

    /// The entry, if it is here and nothing pins it.
    pub(super) fn entry(&mut self, tenant: TenantId, key: &EventId) -> Result<Option<EntryRecord>, Fault> {
        let Some(entry) = ledger_rows::find(&mut self.sql.ledger_find, tenant, key)? else { return Ok(None) };
        if entry.entry.outcome.is_none() || self.is_pinned(tenant, key)? {
            return Ok(None);
        }
        Ok(Some(EntryRecord { tenant, entry }))
    }

    /// Whether the job of an event id is neither committed nor cancelled, or not made yet.
    fn is_pinned(&mut self, tenant: TenantId, key: &EventId) -> Result<bool, Fault> {
        let Some((message_key, destination)) = retention::parts_of(key) else { return Ok(false) };
        let lane = one_number(&mut self.sql.lanes_of_destination, params![tenant.0, destination.as_str()])?;
        let Some(lane) = lane.and_then(|lane| u32::try_from(lane).ok()).map(LaneId) else { return Ok(false) };
        let Some(message) = self.message_named(tenant, &message_key)? else { return Ok(false) };
        let id = JobId::of(message, lane);
        match job_rows::load(&mut self.sql.jobs_load, &mut self.sql.jobs_done_load, tenant, id)? {
            // By another of its message's names it is another event id.
            Some(Ok(stored)) => {
                return Ok(stored.key == message_key && retention::pins(stored.job.state.name()));
            }
            Some(Err(_)) => return Ok(true),
            None => {}
        }
        if let Some((archived, dead)) = self.archived_row(tenant, message)? {
            return Ok(archived.key == message_key && dead.contains(&lane));
        }
        // Of a fan-out that runs, the job may be made yet.
        let mut rows = self.sql.messages_accepted.query(params![tenant.0, message.0.to_be_bytes()])?;
        let Some(row) = rows.next()? else { return Ok(false) };
        Ok(Cells::from(row, message.0, 4).flag()?)
    }

    pub(super) fn message_named(
        &mut self,
        tenant: TenantId,
        key: &MessageKey,
    ) -> Result<Option<MessageId>, Fault> {
        let mut rows = self.sql.keys_find.query(params![tenant.0, key.as_str()])?;
        if let Some(row) = rows.next()? {
            return Ok(Some(Cells::of(row, 0).message_id()?));
        }
        drop(rows);
        let Some(row) = self.recent.row_of(tenant, key) else { return Ok(None) };
        let mut rows = self.sql.keys_new_find.query(params![row, tenant.0, key.as_str()])?;
        match rows.next()? {
            Some(row) => Ok(Some(Cells::of(row, 0).message_id()?)),
            None => Ok(None),
        }
    }

    /// What is known of a message that left, without its names; and the lanes of its dead letters.
    fn archived_row(
        &mut self,
        tenant: TenantId,
        id: MessageId,
    ) -> Result<Option<(ArchivedMessage, Vec<LaneId>)>, Fault> {
        let mut rows = self.sql.archived_find.query(params![tenant.0, id.0.to_be_bytes()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let mut cells = Cells::of(row, id.0);
        let archived = ArchivedMessage {
            tenant,
            id,
            key: cells.key()?,
            aliases: Vec::new(),
            duplicates: 0,
            accepted_at: cells.at()?,
            jobs_total: cells.int()?,
            correlation_id: cells.text()?,
            archived_at: cells.at()?,
            place: place(&mut cells)?,
        };
        Ok(Some((archived, lanes_of(cells.maybe_bytes()?.unwrap_or_default()))))
    }

    /// What is known of a message that left.
    pub(super) fn archived(
        &mut self,
        tenant: TenantId,
        id: MessageId,
    ) -> Result<Option<ArchivedMessage>, Fault> {
        let Some((mut archived, _)) = self.archived_row(tenant, id)? else { return Ok(None) };
        archived.duplicates = self.duplicates(tenant, &archived.key)?;
        archived.aliases = self.other_names(tenant, id)?;
        Ok(Some(archived))
    }
}
