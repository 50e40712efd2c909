//! Leasing: which due jobs of a lane are taken.

use bytes::Bytes;
use posthaste_core::{
    Answer, Command, CorruptRow, Entry, Fence, Job, JobId, LaneId, MessageId, Rate, Share, TenantId,
    Timestamp, limits, share_out,
};
use rusqlite::params;

use super::{
    cells::{Cells, signed},
    fault::Fault,
    job_rows::{self, Extra, Stored, family},
    session::Session,
};
use crate::{Change, LeaseGrant, LeaseRequest, LeasedJob, MessageBody, ledger, rows::job::job_row};

/// A job that may be taken.
struct Candidate {
    job: Job,
    extra: Extra,
}

/// The message of a candidate.
struct Body {
    message: MessageBody,
    accepted_at: Timestamp,
}

enum Found {
    Body(Box<Body>),
    /// Its payload doesn't fit any more.
    TooLarge,
    /// It can't be read, which was said.
    Corrupt,
}

impl Session<'_> {
    pub(super) fn lease(&mut self, requests: &[LeaseRequest]) -> Result<Vec<LeaseGrant>, Fault> {
        requests.iter().map(|request| self.lease_lane(request)).collect()
    }

    fn lease_lane(&mut self, request: &LeaseRequest) -> Result<LeaseGrant, Fault> {
        let mut grant = LeaseGrant { jobs: Vec::new(), settled: Vec::new(), next_due: None };
        let command = Command::Lease {
            worker: request.worker.clone(),
            lease_for: request.lease_for,
            deadline_after: request.deadline_after,
            starts: request.starts,
        };
        let mut bytes = 0_usize;
        for candidate in self.candidates(request)? {
            // A first job that is too large leaves no room, not even for an empty payload.
            let left = request.bytes_max.checked_sub(bytes);
            let Some(room) = (if grant.jobs.is_empty() { Some(usize::MAX) } else { left }) else { break };
            let body = match self.body_of(&candidate.job, room)? {
                Found::Body(body) => *body,
                Found::TooLarge => break,
                Found::Corrupt => continue,
            };
            let payload = body.message.payload.len();
            let leased = grant.jobs.len();
            self.lease_one(request, &command, candidate, body, &mut grant)?;
            if grant.jobs.len() > leased {
                bytes += payload;
            }
        }
        self.leased_from(request, &grant)?;
        grant.next_due = self.lane_next_due(request.tenant, request.lane, request.policy.lane.rate)?;
        Ok(grant)
    }

    /// The jobs to try, in the order of the answer.
    fn candidates(&mut self, request: &LeaseRequest) -> Result<Vec<Candidate>, Fault> {
        let (tenant, lane) = (request.tenant, request.lane);
        let Some(row) = self.lane(tenant, lane)? else { return Ok(Vec::new()) };
        let wanted = request.limit.min(limits::CONSUME_MAX);
        let limit = row.admits(request.policy.lane.rate, wanted, self.now);
        if limit == 0 {
            return Ok(Vec::new());
        }
        let mut due = [0; 3];
        for (due, share) in due.iter_mut().zip(Share::ALL) {
            let until = self.due_until(tenant, *share)?;
            let at = params![tenant.0, lane.0, share.as_str(), until.0, signed(limit)];
            let count: i64 = self.sql.jobs_due_count.query_row(at, |row| row.get(0))?;
            *due = usize::try_from(count).unwrap_or(0);
        }
        let taken = share_out(limit, due, self.now);
        let mut candidates = Vec::with_capacity(taken.iter().sum());
        for (taken, share) in taken.into_iter().zip(Share::ALL) {
            if taken > 0 {
                self.candidates_of(tenant, lane, *share, taken, &mut candidates)?;
            }
        }
        Ok(candidates)
    }

    /// The last due time of a share whose work may begin now.
    fn due_until(&mut self, tenant: TenantId, share: Share) -> Result<Timestamp, Fault> {
        if share != Share::Fresh {
            return Ok(self.now);
        }
        let now = self.now;
        Ok(self.scheduling(tenant)?.fresh_until(now))
    }

    /// The oldest `wanted` jobs of a share that can be read.
    fn candidates_of(
        &mut self,
        tenant: TenantId,
        lane: LaneId,
        share: Share,
        wanted: usize,
        candidates: &mut Vec<Candidate>,
    ) -> Result<(), Fault> {
        let mut corrupt = Vec::new();
        let mut left = wanted;
        let until = self.due_until(tenant, share)?;
        let mut rows = self.sql.jobs_due.query(params![tenant.0, lane.0, share.as_str(), until.0])?;
        while left > 0
            && let Some(row) = rows.next()?
        {
            let id = job_rows::id_after_job(row)?;
            if self.corrupt.contains(&(tenant, id)) {
                continue;
            }
            let read = job_row(&mut Cells::of(row, id.0), tenant, id)
                .and_then(|(row, extra)| Ok(Candidate { job: Job::from_rows(row, None)?, extra }));
            match read {
                Ok(candidate) => {
                    candidates.push(candidate);
                    left -= 1;
                }
                Err(found) => corrupt.push((id, found)),
            }
        }
        drop(rows);
        for (id, found) in corrupt {
            self.note_corrupt(tenant, id, &found);
        }
        Ok(())
    }

    /// The candidate's message.
    fn body_of(&mut self, job: &Job, room: usize) -> Result<Found, Fault> {
        let (first, last) = family(job.id.0);
        let mut rows = self.sql.messages_body.query(params![job.tenant.0, first, last])?;
        let read = match rows.next()? {
            Some(row) => body(row, job.id, room),
            None => Err(CorruptRow { id: job.id.0, what: "its message is missing" }),
        };
        drop(rows);
        match read {
            Ok(found) => Ok(found),
            Err(corrupt) => {
                self.note_corrupt(job.tenant, job.id, &corrupt);
                Ok(Found::Corrupt)
            }
        }
    }

    fn lease_one(
        &mut self,
        request: &LeaseRequest,
        command: &Command,
        candidate: Candidate,
        body: Body,
        grant: &mut LeaseGrant,
    ) -> Result<(), Fault> {
        let Body { message, accepted_at } = body;
        let entry = self.entry_beside(request.tenant, request.lane, &message.key)?;
        let fact = entry.as_ref().map_or(Entry::Unknown, |entry| ledger::fact_of(&entry.entry));
        let verdict = self.decide_bare(&candidate.job, command, &request.policy, fact)?;
        let wire_id = candidate.extra.wire_id.clone();
        let (id, key) = (message.id, message.key.clone());
        let stored = Stored { job: candidate.job, extra: candidate.extra, message: id, key, accepted_at };
        let held = entry
            .as_ref()
            .filter(|_| request.guarded)
            .and_then(|entry| ledger::held_from(&entry.entry, self.now));
        match self.write_verdict(stored, verdict)? {
            (Ok(Answer::Leased { fence, .. }), Some(change)) if held.is_some() => {
                let until = held.unwrap_or(self.now);
                grant.settled.extend(self.wait_for_other(request, change.job.id, fence, until)?);
            }
            (Ok(Answer::Leased { fence, path }), Some(change)) => {
                self.entry_after_step(entry.as_ref(), Some(&change), command, request.guarded)?;
                grant.jobs.push(LeasedJob { job: change.job, fence, path, wire_id, message });
            }
            (_, change) => {
                self.entry_after_step(entry.as_ref(), change.as_ref(), command, request.guarded)?;
                grant.settled.extend(change);
            }
        }
        Ok(())
    }

    /// Somebody else has the key: the attempt ends as it would if the worker had been told so.
    fn wait_for_other(
        &mut self,
        request: &LeaseRequest,
        job: JobId,
        fence: Fence,
        until: Timestamp,
    ) -> Result<Option<Change>, Fault> {
        let Some(Ok(stored)) = self.stored(request.tenant, job)? else { return Ok(None) };
        let command = ledger::in_progress_elsewhere(fence, self.now, until);
        let verdict = self.decide_bare(&stored.job, &command, &request.policy, Entry::NotDone)?;
        Ok(self.write_verdict(stored, verdict)?.1)
    }

    /// When the lane's next attempt may begin, held times included; `None` if no job waits, or somebody must act first.
    pub(super) fn lane_next_due(
        &mut self,
        tenant: TenantId,
        lane: LaneId,
        rate: Option<Rate>,
    ) -> Result<Option<Timestamp>, Fault> {
        let Some(next_at) = self.lane(tenant, lane)?.and_then(|lane| lane.next_at(rate)) else {
            return Ok(None);
        };
        let fresh_until = self.scheduling(tenant)?.fresh_until(Timestamp(i64::MAX));
        let mut next: Option<Timestamp> = None;
        for share in Share::ALL {
            let mut rows = self.sql.jobs_next_due.query(params![tenant.0, lane.0, share.as_str()])?;
            while let Some(found) = rows.next()? {
                let mut cells = Cells::of(found, 0);
                let (due_at, id) = (cells.at()?, JobId(cells.id()?));
                if *share == Share::Fresh && due_at > fresh_until {
                    break;
                }
                if !self.corrupt.contains(&(tenant, id)) {
                    next = Some(next.map_or(due_at, |next| next.min(due_at)));
                    break;
                }
            }
        }
        Ok(next.map(|next| next.max(next_at)))
    }
}

fn body(row: &rusqlite::Row<'_>, job: JobId, room: usize) -> Result<Found, CorruptRow> {
    let mut cells = Cells::of(row, job.0);
    let (id, key, event_type): (MessageId, _, _) = (cells.message_id()?, cells.key()?, cells.maybe_text()?);
    let (content_type, metadata) = (cells.maybe_text()?, cells.maybe_text()?);
    let (traceparent, correlation_id) = (cells.maybe_text()?, cells.text()?);
    let (headers, payload_ref, accepted_at) = (cells.maybe_text()?, cells.maybe_text()?, cells.at()?);
    let payload = cells.bytes()?;
    if payload.len() > room {
        return Ok(Found::TooLarge);
    }
    let message = MessageBody {
        id,
        key,
        event_type,
        content_type,
        metadata,
        traceparent,
        correlation_id,
        headers,
        payload_ref,
        payload: Bytes::copy_from_slice(payload),
    };
    Ok(Found::Body(Box::new(Body { message, accepted_at })))
}
