//! Accepting messages: claiming names, storing payload and jobs, or finding who has the names.

use posthaste_core::{Kind, LaneId, MessageId, MessageKey, Share, TenantId, Timestamp, limits};
use rusqlite::{OptionalExtension as _, params};

use super::{
    cells::{Cells, signed},
    fault::Fault,
    job_rows::{Extra, one},
    session::Session,
    targets,
};
use crate::{
    Acceptance, AcceptedMessage, Fingerprint, JobBrief, KeyKind, NewMessage,
    accepting::{self, Birth},
    rows::words::fingerprint,
};

/// A message as far as acceptances ask.
struct Known {
    key: MessageKey,
    accepted_at: Timestamp,
    jobs_total: usize,
    fingerprint: Fingerprint,
    fanout_running: bool,
}

impl Session<'_> {
    pub(super) fn accept(&mut self, messages: &[NewMessage]) -> Result<Vec<Acceptance>, Fault> {
        messages.iter().map(|message| self.accept_one(message)).collect()
    }

    fn accept_one(&mut self, new: &NewMessage) -> Result<Acceptance, Fault> {
        // Most are new and have one name: claiming it first finds that out with one look at the tree.
        if new.aliases.is_empty() && self.claim(new.tenant, &new.key, KeyKind::Key, new.id)? {
            return self.accept_new(new);
        }
        let names = accepting::names(new);
        for (kind, key) in &names {
            if let Some(found) = self.message_named(new.tenant, key)? {
                return self.accept_known(new, &names, found, (*kind, key));
            }
        }
        for (kind, key) in &names {
            self.claim(new.tenant, key, *kind, new.id)?;
        }
        self.accept_new(new)
    }

    /// Claims a name; false if somebody has it.
    fn claim(
        &mut self,
        tenant: TenantId,
        key: &MessageKey,
        kind: KeyKind,
        id: MessageId,
    ) -> Result<bool, Fault> {
        if self.recent_row(tenant, key)?.is_some() {
            return Ok(false);
        }
        let message = id.0.to_be_bytes();
        if kind != KeyKind::Key {
            let at = params![tenant.0, key.as_str(), kind.as_str(), message];
            return Ok(self.sql.keys_claim.execute(at)? == 1);
        }
        if self.sql.keys_find.exists(params![tenant.0, key.as_str()])? {
            return Ok(false);
        }
        self.add_recent(tenant, key, message)?;
        Ok(true)
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
        let Some(row) = self.recent_row(tenant, key)? else { return Ok(None) };
        let mut rows = self.sql.keys_new_find.query(params![row, tenant.0, key.as_str()])?;
        match rows.next()? {
            Some(row) => Ok(Some(Cells::of(row, 0).message_id()?)),
            None => Err(Fault::Invariant("a new name is missing")),
        }
    }

    fn accept_known(
        &mut self,
        new: &NewMessage,
        names: &[(KeyKind, &MessageKey)],
        found: MessageId,
        by: (KeyKind, &MessageKey),
    ) -> Result<Acceptance, Fault> {
        let known = self.known(new.tenant, found)?;
        if found == new.id {
            // Our own operation, sent again.
            return Ok(Acceptance::New(self.accepted(new.tenant, found, known)?));
        }
        if known.key == new.key
            && let Some(field) = known.fingerprint.difference(&new.fingerprint)
        {
            return Ok(Acceptance::KeyReused { field, message: found });
        }
        self.count_duplicate(new, found, &known, by)?;
        self.add_names(new.tenant, names, found)?;
        Ok(Acceptance::Duplicate(self.accepted(new.tenant, found, known)?))
    }

    fn known(&mut self, tenant: TenantId, id: MessageId) -> Result<Known, Fault> {
        let at = params![tenant.0, id.0.to_be_bytes()];
        let mut rows = self.sql.messages_accepted.query(at)?;
        let mut archived = self.sql.archived_accepted.query(at)?;
        let row = match rows.next()? {
            Some(row) => row,
            None => archived.next()?.ok_or(Fault::Invariant("a name means a message that is missing"))?,
        };
        let mut cells = Cells::of(row, id.0);
        let (key, accepted_at, jobs_total) = (cells.key()?, cells.at()?, cells.int()?);
        let fingerprint = fingerprint(&cells.array()?);
        Ok(Known { key, accepted_at, jobs_total, fingerprint, fanout_running: cells.flag()? })
    }

    fn count_duplicate(
        &mut self,
        new: &NewMessage,
        found: MessageId,
        known: &Known,
        by: (KeyKind, &MessageKey),
    ) -> Result<(), Fault> {
        let at = params![new.tenant.0, known.key.as_str()];
        let counted = self.sql.keys_count_duplicate.query_row(at, |row| row.get(0)).optional()?;
        let duplicates: u32 = match (counted, self.recent_row(new.tenant, &known.key)?) {
            (Some(duplicates), _) => duplicates,
            (None, Some(row)) => {
                let at = params![row, new.tenant.0, known.key.as_str()];
                self.sql.keys_new_count_duplicate.query_row(at, |row| row.get(0))?
            }
            (None, None) => return Err(Fault::Invariant("a message's key is missing")),
        };
        if duplicates <= limits::DUPLICATES_RECORDED_MAX {
            self.insert_custody(&accepting::duplicate_entry(new, found, by, self.now))?;
        }
        Ok(())
    }

    /// Claims the names that nobody has for the message that is known by another.
    fn add_names(
        &mut self,
        tenant: TenantId,
        names: &[(KeyKind, &MessageKey)],
        found: MessageId,
    ) -> Result<(), Fault> {
        let mut free = Vec::new();
        for (kind, key) in names {
            if self.message_named(tenant, key)?.is_none() {
                free.push((*kind, *key));
            }
        }
        if free.is_empty() {
            return Ok(());
        }
        let others = self.other_names(tenant, found)?;
        for (kind, key) in accepting::names_to_add(free, others) {
            self.claim(tenant, key, kind, found)?;
        }
        Ok(())
    }

    fn other_names(&mut self, tenant: TenantId, message: MessageId) -> Result<usize, Fault> {
        let mut rows = self.sql.keys_of_message.query(params![tenant.0, message.0.to_be_bytes()])?;
        let mut others = 0;
        while rows.next()?.is_some() {
            others += 1;
        }
        Ok(others)
    }

    /// Stores a message whose names are claimed.
    fn accept_new(&mut self, new: &NewMessage) -> Result<Acceptance, Fault> {
        let targets = targets::distinct(&new.targets);
        let due_at = accepting::due_at(new.due, self.now);
        let seq = self.insert_message(new, targets.len())?;
        let held_by = self.paused_source(new.tenant, new.source.as_ref())?.filter(|_| !targets.is_empty());
        let mut accepted = AcceptedMessage {
            id: new.id,
            key: new.key.clone(),
            accepted_at: self.now,
            jobs_total: targets.len(),
            fanout_running: targets.len() > limits::FANOUT_INLINE_MAX || held_by.is_some(),
            jobs: Vec::new(),
        };
        if accepted.fanout_running {
            self.insert_fan_out(new, (seq, held_by), due_at, &targets)?;
            return Ok(Acceptance::New(accepted));
        }
        let (tenant, message) = (new.tenant, new.id);
        let quarantine = accepting::quarantine(new.due);
        let birth = Birth { tenant, message, due_at, now: self.now, share: Share::Fresh, quarantine };
        for target in targets {
            let extra = Extra { wire_id: target.wire_id.clone(), owner: target.owner.clone() };
            let job = self.make_job(birth, target.lane, target.kind, &extra)?;
            accepted.jobs.push(accepting::brief(&job, target.destination.clone()));
        }
        accepted.jobs.sort_unstable_by_key(|brief| brief.id);
        accepted.jobs.truncate(limits::JOBS_LISTED_MAX);
        Ok(Acceptance::New(accepted))
    }

    /// Makes the job that `birth` owes to a lane.
    pub(super) fn make_job(
        &mut self,
        birth: Birth,
        lane: LaneId,
        kind: Kind,
        extra: &Extra,
    ) -> Result<posthaste_core::Job, Fault> {
        if self.lane(birth.tenant, lane)?.is_none() {
            return Err(Fault::Invariant("a target's lane is missing"));
        }
        let held_ms = self.lane_held_ms(birth.tenant, lane)?;
        let job = accepting::job_of(birth, lane, kind, held_ms);
        self.insert_job(&job, extra)?;
        Ok(job)
    }

    /// Gives the message's place in the order of acceptance.
    fn insert_message(&mut self, new: &NewMessage, jobs_total: usize) -> Result<i64, Fault> {
        let inserted = self.sql.messages_insert.execute(params![
            new.tenant.0,
            new.id.0.to_be_bytes(),
            new.key.as_str(),
            new.event_type,
            new.source.as_ref().map(posthaste_core::DestinationId::as_str),
            self.now.0,
            signed(jobs_total),
            new.fingerprint.0.as_flattened(),
            new.correlation_id,
            new.traceparent,
            new.content_type,
            new.headers,
            new.metadata,
            new.payload_ref,
            &new.payload[..],
        ])?;
        one(inserted)?;
        Ok(self.conn.last_insert_rowid())
    }

    fn accepted(&mut self, tenant: TenantId, id: MessageId, known: Known) -> Result<AcceptedMessage, Fault> {
        Ok(AcceptedMessage {
            id,
            key: known.key,
            accepted_at: known.accepted_at,
            jobs_total: known.jobs_total,
            fanout_running: known.fanout_running,
            jobs: self.briefs(tenant, id)?,
        })
    }

    fn briefs(&mut self, tenant: TenantId, message: MessageId) -> Result<Vec<JobBrief>, Fault> {
        super::read_jobs::briefs(&mut self.sql.jobs_of_message, &mut self.sql.lanes_find, tenant, message)
    }
}
