//! Leasing: which due jobs of a lane are taken.

use posthaste_core::{Answer, Command, JobId, Share, Timestamp, limits, share_out};

use super::tables::Tables;
use crate::{JobCommand, LeaseGrant, LeaseRequest, LeasedJob, MessageBody, ledger};

impl Tables {
    pub(crate) fn lease(&mut self, request: &LeaseRequest, now: Timestamp) -> LeaseGrant {
        let mut grant = LeaseGrant { jobs: Vec::new(), settled: Vec::new(), next_due: None };
        let mut bytes = 0_usize;
        for id in self.candidates(request, now) {
            let (message, known) = self.message_of(request.tenant, id);
            let more = bytes.saturating_add(known.given.payload.len());
            let is_full = !grant.jobs.is_empty() && more > request.bytes_max;
            if is_full || self.unread.contains(&(request.tenant, message)) {
                break;
            }
            let leased = grant.jobs.len();
            self.lease_one(request, id, &mut grant, now);
            if grant.jobs.len() > leased {
                bytes = more;
            }
        }
        self.leased_from(request, &grant, now);
        grant.next_due = self.next_due(request);
        grant
    }

    /// The jobs to try, in the order of the answer.
    pub(crate) fn candidates(&self, request: &LeaseRequest, now: Timestamp) -> Vec<JobId> {
        let (tenant, lane) = (request.tenant, request.lane);
        let Some(row) = self.lanes.get(&(tenant, lane)) else { return Vec::new() };
        let limit = row.lane.admits(request.policy.lane.rate, request.limit.min(limits::CONSUME_MAX), now);
        let due_of = |share| -> Vec<JobId> {
            let until = if share == Share::Fresh { self.fresh_until(tenant, now) } else { now };
            let due = self.waiting_of(tenant, lane, share).take_while(|(due_at, _)| *due_at <= until);
            due.map(|(_, job)| job).take(limit).collect()
        };
        let due = [Share::Fresh, Share::Retry, Share::Bulk].map(due_of);
        let taken = share_out(limit, [due[0].len(), due[1].len(), due[2].len()], now);
        due.into_iter().zip(taken).flat_map(|(due, taken)| due.into_iter().take(taken)).collect()
    }

    fn lease_one(&mut self, request: &LeaseRequest, id: JobId, grant: &mut LeaseGrant, now: Timestamp) {
        // A corrupt job is left alone: one bad row never stops the others.
        let Ok(job) = self.jobs[&(request.tenant, id)].job() else { return };
        let command = JobCommand {
            tenant: request.tenant,
            job: id,
            command: Command::Lease {
                worker: request.worker.clone(),
                lease_for: request.lease_for,
                deadline_after: request.deadline_after,
                starts: request.starts,
            },
            policy: request.policy.clone(),
            hold_lane_until: None,
            actor: None,
        };
        let entry = self.entry_beside(&job).filter(|_| request.guarded);
        let held = entry.and_then(|entry| ledger::held_from(&entry.entry, now));
        match self.decide(&job, &command, request.guarded && held.is_none(), now) {
            (Ok(Answer::Leased { fence, .. }), Some(change)) if held.is_some() => {
                let told = ledger::in_progress_elsewhere(fence, now, held.unwrap_or(now));
                let command = JobCommand { command: told, ..command };
                grant.settled.extend(self.decide(&change.job, &command, false, now).1);
            }
            (Ok(Answer::Leased { fence, path }), Some(change)) => {
                let wire_id = self.jobs[&(request.tenant, id)].wire_id.clone();
                let message = self.body_of(request.tenant, id);
                grant.jobs.push(LeasedJob { job: change.job, fence, path, wire_id, message });
            }
            (Ok(_), Some(change)) => grant.settled.push(change),
            (Ok(_) | Err(_), _) => {}
        }
    }

    fn body_of(&self, tenant: posthaste_core::TenantId, job: JobId) -> MessageBody {
        let (id, message) = self.message_of(tenant, job);
        let given = &message.given;
        MessageBody {
            id,
            key: given.key.clone(),
            event_type: given.event_type.clone(),
            content_type: given.content_type.clone(),
            metadata: given.metadata.clone(),
            traceparent: given.traceparent.clone(),
            correlation_id: given.correlation_id.clone(),
            headers: given.headers.clone(),
            payload_ref: given.payload_ref.clone(),
            payload: given.payload.clone(),
        }
    }
}
