//! What can be read.

use std::collections::BTreeMap;

use bytes::Bytes;
use posthaste_core::{Attempt, JobId, LaneId, MessageId, Share, StateName, TenantId, Timestamp, limits};

use super::tables::{JobEntry, Message, Tables};
use crate::{
    ApiKeyRow, AttemptView, CustodyEntry, DestinationRow, JobBrief, JobFilter, JobView, LaneHead,
    MessageName, MessageView, StateCount, accepting,
};

/// Custody entries in one answer.
pub(crate) const CUSTODY_MAX: usize = 1_000;

impl Message {
    pub(crate) fn view(&self, id: MessageId, fanout_running: bool) -> MessageView {
        let given = &self.given;
        MessageView {
            id,
            key: given.key.clone(),
            aliases: self.others.iter().map(|(key, kind)| (*kind, key.clone())).collect(),
            event_type: given.event_type.clone(),
            source: given.source.clone(),
            accepted_at: self.accepted_at,
            jobs_total: self.jobs_total,
            fanout_running,
            duplicates: self.duplicates,
            correlation_id: given.correlation_id.clone(),
            traceparent: given.traceparent.clone(),
            content_type: given.content_type.clone(),
            headers: given.headers.clone(),
            metadata: given.metadata.clone(),
            payload_ref: given.payload_ref.clone(),
            payload_bytes: given.payload.len(),
        }
    }
}

impl Tables {
    pub(crate) fn message_view(&self, tenant: TenantId, name: &MessageName) -> Option<MessageView> {
        let id = match name {
            MessageName::Id(id) => *id,
            MessageName::Key(key) => *self.names.get(&(tenant, key.clone()))?,
        };
        let message = self.messages.get(&(tenant, id))?;
        Some(message.view(id, self.fanouts.contains_key(&message.seq)))
    }

    pub(crate) fn payload(&self, tenant: TenantId, message: MessageId) -> Option<(Bytes, Option<Box<str>>)> {
        let given = &self.messages.get(&(tenant, message))?.given;
        Some((given.payload.clone(), given.content_type.clone()))
    }

    pub(crate) fn job_view(&self, tenant: TenantId, job: JobId) -> Option<JobView> {
        let entry = self.jobs.get(&(tenant, job))?;
        Some(JobView { attempts: self.attempts_of(tenant, job).cloned().collect(), ..self.bare_view(entry) })
    }

    /// A job without its attempts.
    fn bare_view(&self, entry: &JobEntry) -> JobView {
        let job = entry.job().expect("rows in memory are the core's own");
        JobView {
            key: self.message_of(job.tenant, job.id).1.given.key.clone(),
            destination: self.lanes[&(job.tenant, job.lane)].destination.clone(),
            wire_id: entry.wire_id.clone(),
            owner: entry.owner.clone(),
            attempts: Vec::new(),
            job,
        }
    }

    pub(crate) fn attempts_of(&self, tenant: TenantId, job: JobId) -> impl Iterator<Item = &AttemptView> {
        let last = Attempt::new(u32::MAX).expect("not zero");
        self.attempts.range((tenant, job, Attempt::FIRST)..=(tenant, job, last)).map(|(_, view)| view)
    }

    pub(crate) fn job_list(&self, tenant: TenantId, filter: &JobFilter) -> Vec<JobView> {
        let fits = |(id, entry): &(JobId, &JobEntry)| {
            filter.after != Some(*id)
                && filter.lane.is_none_or(|lane| id.lane() == lane)
                && filter.state.is_none_or(|state| entry.row.state == state)
        };
        let view = |(_, entry)| self.bare_view(entry);
        if filter.oldest_first {
            let after = self.jobs_between(tenant, filter.after.unwrap_or(JobId(u128::MIN)), JobId(u128::MAX));
            after.filter(fits).take(filter.limit).map(view).collect()
        } else {
            let before =
                self.jobs_between(tenant, JobId(u128::MIN), filter.after.unwrap_or(JobId(u128::MAX)));
            before.rev().filter(fits).take(filter.limit).map(view).collect()
        }
    }

    fn jobs_between(
        &self,
        tenant: TenantId,
        first: JobId,
        last: JobId,
    ) -> impl DoubleEndedIterator<Item = (JobId, &JobEntry)> {
        self.jobs.range((tenant, first)..=(tenant, last)).map(|((_, id), entry)| (*id, entry))
    }

    pub(crate) fn message_jobs(&self, tenant: TenantId, message: MessageId, limit: usize) -> Vec<JobView> {
        if !self.messages.contains_key(&(tenant, message)) {
            return Vec::new();
        }
        let (first, last) = message.job_range();
        let jobs = self.jobs_between(tenant, first, last).take(limit);
        jobs.filter_map(|(id, _)| self.job_view(tenant, id)).collect()
    }

    pub(crate) fn briefs(&self, tenant: TenantId, message: MessageId) -> Vec<JobBrief> {
        let jobs = self.message_jobs(tenant, message, limits::JOBS_LISTED_MAX);
        jobs.into_iter().map(|view| accepting::brief(&view.job, view.destination)).collect()
    }

    pub(crate) fn custody_of_message(&self, tenant: TenantId, message: MessageId) -> Vec<CustodyEntry> {
        let entries = self.custody.get(&(tenant, message)).into_iter().flatten();
        entries.take(CUSTODY_MAX).cloned().collect()
    }

    pub(crate) fn tenants(&self) -> Vec<(TenantId, Box<str>)> {
        self.tenants.iter().map(|(tenant, name)| (*tenant, name.clone())).collect()
    }

    pub(crate) fn destinations(&self) -> Vec<DestinationRow> {
        self.destinations.values().cloned().collect()
    }

    pub(crate) fn api_keys(&self) -> Vec<ApiKeyRow> {
        self.api_keys.values().cloned().collect()
    }

    pub(crate) fn heads(&self) -> Vec<LaneHead> {
        let mut heads = Vec::new();
        let mut from = (TenantId(0), LaneId(0));
        let least = |(tenant, lane)| (tenant, lane, Share::Fresh, Timestamp(i64::MIN), JobId(u128::MIN));
        // From each lane that has work to the next such lane.
        while let Some(&(tenant, lane, ..)) = self.waiting.range(least(from)..).next() {
            heads.extend(self.head(tenant, lane));
            from = match lane.0.checked_add(1) {
                Some(next) => (tenant, LaneId(next)),
                None => (TenantId(tenant.0 + 1), LaneId(0)),
            };
        }
        heads
    }

    pub(crate) fn expired(
        &self,
        limit: usize,
        now: Timestamp,
    ) -> (Vec<(TenantId, JobId)>, Option<Timestamp>) {
        let over = self.leased.iter().take_while(|(expires_at, ..)| *expires_at <= now).take(limit);
        let over: Vec<(TenantId, JobId)> = over.map(|(_, tenant, job)| (*tenant, *job)).collect();
        let next = self.leased.iter().nth(over.len()).map(|(expires_at, ..)| *expires_at);
        (over, next)
    }

    pub(crate) fn counts(&self) -> Vec<StateCount> {
        let mut counts: BTreeMap<(TenantId, StateName), u64> = BTreeMap::new();
        for ((tenant, _), entry) in &self.jobs {
            *counts.entry((*tenant, entry.row.state)).or_default() += 1;
        }
        counts.into_iter().map(|((tenant, state), jobs)| StateCount { tenant, state, jobs }).collect()
    }
}
