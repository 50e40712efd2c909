//! Reading jobs.

use posthaste_core::{CorruptRow, EventId, JobId, LaneId, MessageId, StateName, TenantId, Timestamp, limits};
use rusqlite::{Statement, params};

use super::{
    attempt_rows,
    cells::{Cells, signed},
    fault::Fault,
    job_rows::{self, Stored, family},
    ledger_rows,
    readers::ReadSession,
};
use crate::{JobBrief, JobFilter, JobView, LaneHead, LedgerEntry, NamedJob, ledger};

impl ReadSession<'_> {
    pub(super) fn job(&mut self, (tenant, id): &(TenantId, JobId)) -> Result<Option<JobView>, Fault> {
        match self.stored(*tenant, *id)? {
            None => Ok(None),
            Some(stored) => self.full_view(stored?).map(Some),
        }
    }

    pub(super) fn jobs(&mut self, (tenant, filter): &(TenantId, JobFilter)) -> Result<Vec<JobView>, Fault> {
        let mut views = Vec::new();
        for id in self.listed(*tenant, filter)? {
            match self.stored(*tenant, id)? {
                Some(Ok(stored)) => views.push(self.bare_view(stored)?),
                Some(Err(corrupt)) => leave_out(*tenant, &corrupt),
                None => return Err(Fault::Invariant("a job was listed that is not there")),
            }
        }
        Ok(views)
    }

    pub(super) fn message_jobs(
        &mut self,
        (tenant, message, limit): &(TenantId, MessageId, usize),
    ) -> Result<Vec<JobView>, Fault> {
        let mut views = Vec::new();
        for id in ids_of_message(&mut self.sql.jobs_of_message, *tenant, *message, *limit)? {
            match self.stored(*tenant, id)? {
                Some(Ok(stored)) if stored.message == *message => views.push(self.full_view(stored)?),
                Some(Ok(_)) | None => {}
                Some(Err(corrupt)) => leave_out(*tenant, &corrupt),
            }
        }
        Ok(views)
    }

    pub(super) fn briefs(
        &mut self,
        (tenant, message): &(TenantId, MessageId),
    ) -> Result<Vec<JobBrief>, Fault> {
        if !self.sql.messages_exists.exists(params![tenant.0, message.0.to_be_bytes()])? {
            return Ok(Vec::new());
        }
        briefs(&mut self.sql.jobs_of_message, &mut self.sql.lanes_find, *tenant, *message)
    }

    pub(super) fn heads(&mut self) -> Result<Vec<LaneHead>, Fault> {
        let mut rows = self.sql.lanes_heads.query([])?;
        let mut heads = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, 0);
            let (tenant, lane) = (TenantId(cells.int()?), LaneId(cells.int()?));
            let opens_at = cells.at()?;
            let [fresh, retry, bulk] = [cells.maybe_at()?, cells.maybe_at()?, cells.maybe_at()?];
            let paused_at = cells.maybe_at()?;
            let fresh = fresh.filter(|due_at| paused_at.is_none_or(|paused_at| *due_at < paused_at));
            if let Some(due_at) = [fresh, retry, bulk].into_iter().flatten().min() {
                heads.push(LaneHead { tenant, lane, due_at: due_at.max(opens_at) });
            }
        }
        Ok(heads)
    }

    #[allow(clippy::type_complexity)] // as in the seam
    pub(super) fn expired(
        &mut self,
        limit: usize,
    ) -> Result<(Vec<(TenantId, JobId)>, Option<Timestamp>), Fault> {
        let now = self.now();
        let mut rows = self.sql.leases_by_expiry.query([signed(limit.saturating_add(1))])?;
        let mut over = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, 0);
            let (tenant, job, expires_at) = (TenantId(cells.int()?), JobId(cells.id()?), cells.at()?);
            if over.len() >= limit || expires_at > now {
                return Ok((over, Some(expires_at)));
            }
            over.push((tenant, job));
        }
        Ok((over, None))
    }

    fn stored(&mut self, tenant: TenantId, id: JobId) -> Result<Option<Result<Stored, CorruptRow>>, Fault> {
        job_rows::load(&mut self.sql.jobs_load, &mut self.sql.jobs_done_load, tenant, id)
    }

    pub(super) fn entry(
        &mut self,
        (tenant, key, named, row): &(TenantId, EventId, Option<NamedJob>, Option<i64>),
    ) -> Result<Option<LedgerEntry>, Fault> {
        if let Some(entry) = ledger_rows::find(&mut self.sql.ledger_find, *tenant, key)? {
            return Ok(Some(entry));
        }
        let archived = ledger_rows::find_archived(&mut self.sql.archived_entries_find, *tenant, key)?;
        if archived.as_ref().is_some_and(|entry| entry.of_job.is_none()) {
            return Ok(archived);
        }
        let Some(named) = named.as_ref().filter(|named| named.guarded) else { return Ok(None) };
        let Some(message) = self.message_named(*tenant, &named.key, *row)? else { return Ok(None) };
        let stored = match self.stored(*tenant, JobId::of(message, named.lane))? {
            Some(stored) => stored?,
            None => return Ok(archived),
        };
        if stored.key != named.key {
            // By another of its message's names it is another event id.
            return Ok(None);
        }
        let attempts = attempt_rows::all_of(&mut self.sql.attempts_of_job, *tenant, stored.job.id)??;
        Ok(ledger::of_job(&stored.job, key, attempts.last()))
    }

    fn bare_view(&mut self, stored: Stored) -> Result<JobView, Fault> {
        let Stored { job, extra, key, .. } = stored;
        let mut rows = self.sql.lanes_find.query(params![job.tenant.0, job.lane.0])?;
        let Some(row) = rows.next()? else { return Err(Fault::Invariant("a job's lane is missing")) };
        let destination = Cells::of(row, job.id.0).destination()?;
        drop(rows);
        Ok(JobView {
            job,
            key,
            destination,
            wire_id: extra.wire_id,
            owner: extra.owner,
            attempts: Vec::new(),
        })
    }

    fn full_view(&mut self, stored: Stored) -> Result<JobView, Fault> {
        let (tenant, id) = (stored.job.tenant, stored.job.id);
        let attempts = attempt_rows::all_of(&mut self.sql.attempts_of_job, tenant, id)??;
        Ok(JobView { attempts, ..self.bare_view(stored)? })
    }

    /// The ids of a list, from the live and the settled jobs as the filter needs.
    fn listed(&mut self, tenant: TenantId, filter: &JobFilter) -> Result<Vec<JobId>, Fault> {
        let sql = &mut self.sql;
        let (live, done, dead) = if filter.oldest_first {
            (&mut sql.jobs_list_live_oldest, &mut sql.jobs_list_done_oldest, &mut sql.jobs_list_dead_oldest)
        } else {
            (&mut sql.jobs_list_live_newest, &mut sql.jobs_list_done_newest, &mut sql.jobs_list_dead_newest)
        };
        let list = |statement: &mut Statement<'_>| list_ids(statement, tenant, filter);
        let mut ids = match filter.state {
            Some(StateName::DeadLettered) => return list_dead(dead, tenant, filter),
            Some(state) if state.is_settled() => return list(done),
            Some(_) => return list(live),
            None => list(live)?,
        };
        ids.extend(list(done)?);
        ids.sort_unstable();
        if !filter.oldest_first {
            ids.reverse();
        }
        ids.truncate(filter.limit);
        Ok(ids)
    }
}

/// A message's first jobs in one line each.
pub(super) fn briefs(
    jobs_of_message: &mut Statement<'_>,
    lanes_find: &mut Statement<'_>,
    tenant: TenantId,
    message: MessageId,
) -> Result<Vec<JobBrief>, Fault> {
    let (first, last) = family(message.0);
    let at = params![tenant.0, first, last, signed(limits::JOBS_LISTED_MAX)];
    let mut rows = jobs_of_message.query(at)?;
    let mut briefs = Vec::new();
    while let Some(row) = rows.next()? {
        let mut cells = Cells::of(row, message.0);
        let (id, lane): (_, u32) = (JobId(cells.id()?), cells.int()?);
        let state = cells.word(StateName::parse)?;
        let (scheduled_at, due_at) = (cells.at()?, cells.maybe_at()?);
        let mut lanes = lanes_find.query(params![tenant.0, lane])?;
        let Some(found) = lanes.next()? else { return Err(Fault::Invariant("a job's lane is missing")) };
        let destination = Cells::of(found, id.0).destination()?;
        briefs.push(JobBrief { id, destination, state, scheduled_at, due_at });
    }
    Ok(briefs)
}

fn ids_of_message(
    jobs_of_message: &mut Statement<'_>,
    tenant: TenantId,
    message: MessageId,
    limit: usize,
) -> Result<Vec<JobId>, Fault> {
    let (first, last) = family(message.0);
    ids(jobs_of_message.query(params![tenant.0, first, last, signed(limit)])?)
}

fn list_ids(
    statement: &mut Statement<'_>,
    tenant: TenantId,
    filter: &JobFilter,
) -> Result<Vec<JobId>, Fault> {
    let lane = filter.lane.map(|lane| lane.0);
    let state = filter.state.map(StateName::as_str);
    ids(statement.query(params![tenant.0, start(filter), lane, state, signed(filter.limit)])?)
}

fn list_dead(
    statement: &mut Statement<'_>,
    tenant: TenantId,
    filter: &JobFilter,
) -> Result<Vec<JobId>, Fault> {
    let lane = filter.lane.map(|lane| lane.0);
    ids(statement.query(params![tenant.0, start(filter), lane, signed(filter.limit)])?)
}

/// Where a list begins. Without a place to begin, a blob before or after all ids.
fn start(filter: &JobFilter) -> Vec<u8> {
    match filter.after {
        Some(after) => after.0.to_be_bytes().to_vec(),
        None if filter.oldest_first => Vec::new(),
        None => vec![0xff; 17],
    }
}

fn ids(mut rows: rusqlite::Rows<'_>) -> Result<Vec<JobId>, Fault> {
    let mut ids = Vec::new();
    while let Some(row) = rows.next()? {
        ids.push(JobId(Cells::of(row, 0).id()?));
    }
    Ok(ids)
}

fn leave_out(tenant: TenantId, corrupt: &CorruptRow) {
    tracing::error!(tenant = tenant.0, %corrupt, "a job can't be read and is left out of a list");
}
