//! What a run knows of its stores: enough to ask for something interesting.

use std::collections::BTreeMap;

use posthaste_core::{CommandName, Job, JobId, Nature, StateName, TenantId, Timestamp};
use posthaste_store::{
    Acceptance, AcceptedMessage, Applied, AppliedOutcome, Change, Clock, Configure, Configured,
    DestinationKind, JobCommand, NewMessage, Target,
};

use super::{Coverage, Disagreement, Pair, rng::Rng};
use crate::store_suite::{Scope, bench};

/// Queues of the first tenant: enough for a fan-out by cursor.
const QUEUES: usize = 108;

/// A run in one round.
pub(super) struct World {
    pub(super) pair: Pair,
    pub(super) rng: Rng,
    pub(super) coverage: Coverage,
    pub(super) scope: Scope,
    pub(super) targets: Vec<(TenantId, Vec<Target>)>,
    pub(super) accepted: Vec<NewMessage>,
    pub(super) fanning_out: Vec<(TenantId, posthaste_core::MessageId)>,
    /// Every known job as it was written last; `order` by first sight.
    pub(super) jobs: BTreeMap<(TenantId, JobId), Job>,
    pub(super) order: Vec<(TenantId, JobId)>,
    /// What a worker said of each job last.
    pub(super) said: BTreeMap<(TenantId, JobId), JobCommand>,
    pub(super) names: u64,
}

impl World {
    pub(super) fn new(pair: Pair, rng: Rng) -> Self {
        Self {
            pair,
            rng,
            coverage: Coverage::default(),
            scope: Scope::default(),
            targets: Vec::new(),
            accepted: Vec::new(),
            fanning_out: Vec::new(),
            jobs: BTreeMap::new(),
            order: Vec::new(),
            said: BTreeMap::new(),
            names: 0,
        }
    }

    pub(super) fn now(&self) -> Timestamp {
        self.pair.clock.now()
    }

    /// Makes two tenants with their queues.
    pub(super) async fn begin(&mut self) -> Result<(), Disagreement> {
        for (name, queues) in [("one", QUEUES), ("two", 3)] {
            let made = self.configure(vec![Configure::Tenant { name: name.into() }]).await?;
            let Configured::Tenant(tenant) = made[0] else { panic!("a tenant is made") };
            let put = |number: usize| {
                let id = format!("queue-{number}");
                Configure::PutDestination(bench::new_destination(tenant, &id, DestinationKind::Queue))
            };
            let rows = self.configure((0..queues).map(put).collect()).await?;
            self.targets.push((tenant, rows.into_iter().map(target_of).collect()));
        }
        Ok(())
    }

    pub(super) async fn compare_all(&self) -> Result<(), Disagreement> {
        self.pair.compare_all(&self.scope).await
    }

    pub(super) async fn configure(&self, changes: Vec<Configure>) -> Result<Vec<Configured>, Disagreement> {
        self.pair.must(&changes, async |store| store.configure(changes.clone()).await).await
    }

    /// Remembers what was accepted.
    pub(super) async fn note_accepted(
        &mut self,
        messages: Vec<NewMessage>,
        answers: &[Acceptance],
    ) -> Result<(), Disagreement> {
        for (message, answer) in messages.into_iter().zip(answers) {
            self.scope.names.extend(
                message
                    .aliases
                    .iter()
                    .map(|(_, key)| key)
                    .chain([&message.key])
                    .map(|key| (message.tenant, key.clone())),
            );
            self.scope.messages.insert((message.tenant, message.id));
            if let Acceptance::New(accepted) = answer {
                self.note_new(message.tenant, accepted).await?;
                self.accepted.push(message);
            }
        }
        Ok(())
    }

    async fn note_new(&mut self, tenant: TenantId, accepted: &AcceptedMessage) -> Result<(), Disagreement> {
        if accepted.fanout_running {
            self.fanning_out.push((tenant, accepted.id));
        }
        self.note_jobs_of(tenant, accepted.id).await
    }

    /// Remembers the jobs that a message has by now.
    pub(super) async fn note_jobs_of(
        &mut self,
        tenant: TenantId,
        message: posthaste_core::MessageId,
    ) -> Result<(), Disagreement> {
        let ask = async |store: &dyn posthaste_store::Store| store.message_jobs(tenant, message, 1_000).await;
        for view in self.pair.must(("message_jobs", tenant, message), ask).await? {
            self.note_job(view.job);
        }
        Ok(())
    }

    pub(super) fn note_job(&mut self, job: Job) {
        let at = (job.tenant, job.id);
        if self.jobs.insert(at, job).is_none() {
            self.order.push(at);
        }
    }

    pub(super) fn note_applied(&mut self, commands: &[JobCommand], answers: Vec<Applied>) {
        for (command, applied) in commands.iter().zip(answers) {
            let AppliedOutcome::Decided { reply, change } = applied.outcome else { continue };
            if let Some(before) = self.jobs.get(&(command.tenant, command.job)) {
                let cell = (before.state.name(), command.command.name(), reply.is_ok());
                self.coverage.cells.insert(cell);
            }
            if let Some(change) = change {
                self.note_change(*change);
            }
        }
    }

    pub(super) fn note_change(&mut self, change: Change) {
        self.coverage.edges.insert((change.from, change.command, change.job.state.name(), change.nature));
        self.note_job(change.job);
    }

    pub(super) fn note_leased(&mut self, job: Job) {
        let before =
            self.jobs.get(&(job.tenant, job.id)).map_or(StateName::Scheduled, |job| job.state.name());
        self.coverage.edges.insert((before, CommandName::Lease, StateName::Leased, Nature::Plain));
        self.note_job(job);
    }
}

fn target_of(configured: Configured) -> Target {
    let Configured::Destination(row) = configured else { panic!("a destination is made") };
    let kind = if row.lane.0 % 2 == 0 { posthaste_core::Kind::Push } else { posthaste_core::Kind::Pull };
    Target { lane: row.lane, destination: row.id, kind, wire_id: None, owner: None }
}
