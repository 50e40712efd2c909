//! One step of a run: something is chosen, asked of both stores, and remembered.

use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::{ApiKeyId, Command, DurationMs, JobId, LaneId, MessageId, Policy, StateName, TenantId};
use posthaste_store::{
    ApiKeyRow, Configure, CustodyEntry, DestinationKind, Due, Fingerprint, JobFilter, KeyKind, LaneAct,
    LaneCommand, ManagedBy, MessageName, NewDestination, NewMessage, Stage, Target,
};

use super::{Disagreement, world::World};
use crate::store_suite::bench;

impl World {
    /// Does one thing.
    pub(super) async fn step(&mut self) -> Result<(), Disagreement> {
        match self.rng.below(100) {
            0..37 => self.apply_some().await,
            37..55 => self.lease_some().await,
            55..69 => self.accept_some().await,
            69..77 => {
                self.pass_time();
                Ok(())
            }
            77..85 => self.expire_some().await,
            85..88 => self.fan_out_some().await,
            88..91 => self.configure_some().await,
            91..92 => self.note_some().await,
            92..95 => self.ledger_some().await,
            95..97 => self.steer_some().await,
            _ => self.read_some().await,
        }
    }

    /// Holds or lets go a lane or a tenant's scheduling; lets go more often, so that work goes on.
    async fn steer_some(&mut self) -> Result<(), Disagreement> {
        let acts = [LaneAct::Pause, LaneAct::Disable, LaneAct::Resume, LaneAct::Enable, LaneAct::Resume];
        let tenant = self.tenant();
        let lane = self.rng.percent(80);
        let lane = lane.then(|| LaneId(1 + u32::try_from(self.rng.below(4)).expect("small")));
        let act = *self.rng.pick(&acts);
        let command = LaneCommand { tenant, lane, act, reason: "why".into(), actor: "ops".into() };
        let all = [LaneAct::Resume, LaneAct::Enable].map(|act| LaneCommand { act, ..command.clone() });
        let commands = if self.rng.percent(60) { all.to_vec() } else { vec![command] };
        self.pair.must(&commands, async |store| store.steer(commands.clone()).await).await?;
        let asked = vec![lane, None];
        let events = self.pair.must(&asked, async |store| store.lane_events(tenant, asked.clone()).await);
        events.await.map(drop)
    }

    fn pass_time(&mut self) {
        let ms = *self.rng.pick(&[1, 999, 1_000, 5_000, 30_000, 60_000, 300_000, 600_000, 3_600_000]);
        self.pair.clock.advance(DurationMs(ms));
    }

    pub(super) fn tenant(&mut self) -> TenantId {
        let index = usize::from(self.rng.percent(25));
        self.targets[index].0
    }

    fn some_targets(&mut self, tenant: TenantId) -> Vec<Target> {
        let (_, all) =
            self.targets.iter().find(|(known, _)| *known == tenant).expect("both tenants have queues");
        let all = all.clone();
        if all.len() > 100 && self.rng.percent(4) {
            let first = self.rng.below(7);
            return all[first..].to_vec();
        }
        let mut chosen: Vec<Target> =
            (0..self.rng.below(4)).map(|_| self.rng.pick(&all[..3]).clone()).collect();
        if let Some(first) = chosen.first_mut() {
            first.wire_id = self.rng.percent(20).then(|| "wire-1".into());
            first.owner = self.rng.percent(20).then(|| "team-a".into());
        }
        chosen
    }

    /// A name: new, or used before.
    fn name(&mut self) -> String {
        if self.names > 0 && self.rng.percent(40) {
            let back = self.rng.below(usize::try_from(self.names).expect("few names").min(12)) as u64;
            return format!("name-{}", self.names - back);
        }
        self.names += 1;
        format!("name-{}", self.names)
    }

    fn new_message(&mut self) -> NewMessage {
        if !self.accepted.is_empty() && self.rng.percent(8) {
            return self.rng.pick(&self.accepted).clone();
        }
        let tenant = self.tenant();
        let targets = self.some_targets(tenant);
        self.names += 1;
        let id = bench::message_id(self.now(), self.names);
        let name = self.name();
        let mut fingerprint = Fingerprint([[1; 16]; 5]);
        if self.rng.percent(20) {
            let field = self.rng.below(5);
            fingerprint.0[field] = *self.rng.pick(&[Fingerprint::NOT_COMPARED, [2; 16]]);
        }
        let kinds = [KeyKind::Provider, KeyKind::Delivery, KeyKind::Alias];
        let aliases = (0..self.rng.below(6).saturating_sub(2)).map(|_| {
            let name = self.name();
            (*self.rng.pick(&kinds), bench::key(&name))
        });
        let aliases = aliases.collect();
        // Sizes whose sums meet the limits of leases, and miss them by one.
        let payload_bytes = *self.rng.pick(&[0, 1, 99, 100, 101, 199, 200, 201]);
        let due = match self.rng.below(10) {
            0 => Due::At(posthaste_core::Timestamp(self.now().0 - 5)),
            1 => Due::At(self.now().after(DurationMs::from_secs(40))),
            2 => Due::In(DurationMs::from_secs(3)),
            3 => Due::In(DurationMs::from_hours(2)),
            4 if targets.len() == 1 => Due::Never(posthaste_core::Cause::MissingKey),
            _ => Due::In(DurationMs::ZERO),
        };
        NewMessage {
            fingerprint,
            aliases,
            due,
            payload: Bytes::from(
                (0..payload_bytes).map(|_| self.rng.next().to_le_bytes()[0]).collect::<Vec<u8>>(),
            ),
            event_type: self.rng.percent(50).then(|| "order.paid".into()),
            content_type: self.rng.percent(50).then(|| "application/json".into()),
            metadata: self.rng.percent(20).then(|| "{\"a\":\"\u{e9}\0\"}".into()),
            headers: self.rng.percent(20).then(|| "{}".into()),
            traceparent: self.rng.percent(20).then(|| "00-1-2-01".into()),
            payload_ref: self.rng.percent(5).then(|| "s3://x".into()),
            ..bench::new_message(tenant, id, &name, &targets)
        }
    }

    async fn accept_some(&mut self) -> Result<(), Disagreement> {
        let count = 1 + self.rng.below(3);
        let messages: Vec<NewMessage> = (0..count).map(|_| self.new_message()).collect();
        let answers = self.pair.must(&messages, async |store| store.accept(messages.clone()).await).await?;
        self.note_accepted(messages, &answers).await
    }

    async fn expire_some(&mut self) -> Result<(), Disagreement> {
        if self.rng.percent(40) {
            self.pair.clock.advance(DurationMs::from_secs(31));
        }
        let limit = self.rng.below(6);
        let (over, _) = self.pair.must(("expired", limit), async |store| store.expired(limit).await).await?;
        let mut commands = Vec::new();
        for (tenant, job) in over {
            let policy = self.policy();
            commands.push(posthaste_store::JobCommand {
                policy,
                ..bench::job_command(tenant, job, Command::Expire)
            });
        }
        self.apply_all(commands).await
    }

    async fn fan_out_some(&mut self) -> Result<(), Disagreement> {
        let jobs_max = *self.rng.pick(&[0, 1, 5, 40, 500]);
        self.pair.must(("fan_out", jobs_max), async |store| store.fan_out(jobs_max).await).await?;
        for (tenant, message) in self.fanning_out.clone() {
            self.note_jobs_of(tenant, message).await?;
        }
        Ok(())
    }

    async fn configure_some(&mut self) -> Result<(), Disagreement> {
        let tenant = self.tenant();
        let kinds = [DestinationKind::Endpoint, DestinationKind::Queue, DestinationKind::Source];
        let kind = *self.rng.pick(&kinds);
        let id = format!("extra-{}", self.rng.below(4));
        let key = u128::try_from(self.rng.below(5)).expect("small");
        let new = NewDestination {
            owner: self.rng.percent(50).then(|| "team-b".into()),
            enabled: self.rng.percent(50),
            must_be_new: self.rng.percent(30),
            managed_by: *self.rng.pick(&[ManagedBy::File, ManagedBy::Api]),
            ..bench::new_destination(tenant, &id, kind)
        };
        let row = ApiKeyRow {
            tenant,
            id: ApiKeyId(key),
            name: "n".into(),
            secret_hash: [self.rng.below(6).to_le_bytes()[0]; 32],
            scopes: "read".into(),
            created_at: posthaste_core::Timestamp(0),
            revoked_at: None,
        };
        let all = [
            Configure::Tenant { name: (*self.rng.pick(&["one", "two"])).into() },
            Configure::DeleteDestination { tenant, id: new.id.clone(), kind },
            Configure::PutDestination(new),
            Configure::PutApiKey(row),
            Configure::RevokeApiKey { tenant, id: ApiKeyId(key) },
        ];
        let changes = (0..=self.rng.below(3)).map(|_| self.rng.pick(&all).clone()).collect();
        self.configure(changes).await.map(drop)
    }

    async fn note_some(&mut self) -> Result<(), Disagreement> {
        let Some((tenant, message)) = self.some_message() else { return Ok(()) };
        let entry = CustodyEntry {
            tenant,
            message,
            job: self.rng.percent(50).then_some(JobId::of(message, LaneId(1))),
            at: self.now(),
            stage: *self.rng.pick(Stage::ALL),
            attempt: self.rng.percent(50).then_some(posthaste_core::Attempt::FIRST),
            actor: self.rng.percent(50).then(|| "ops".into()),
            detail: self.rng.percent(50).then(|| "{}".into()),
        };
        let entries = vec![entry; self.rng.below(3)];
        self.pair.must(&entries, async |store| store.note(entries.clone()).await).await
    }

    fn some_message(&mut self) -> Option<(TenantId, MessageId)> {
        let message = (!self.accepted.is_empty()).then(|| self.rng.pick(&self.accepted).clone())?;
        Some((if self.rng.percent(90) { message.tenant } else { self.tenant() }, message.id))
    }

    async fn read_some(&mut self) -> Result<(), Disagreement> {
        let tenant = self.tenant();
        let filter = JobFilter {
            state: self.rng.percent(50).then(|| *self.rng.pick(StateName::ALL)),
            lane: self.rng.percent(50).then_some(LaneId(1 + u32::from(self.rng.percent(50)))),
            oldest_first: self.rng.percent(50),
            after: self.some_job().filter(|_| self.rng.percent(50)).map(|(_, job)| job),
            limit: self.rng.below(20),
        };
        self.pair.must(&filter, async |store| store.jobs(tenant, filter.clone()).await).await?;
        self.pair.must("heads", async |store| store.heads().await).await?;
        self.pair.must("counts", async |store| store.counts().await).await?;
        if let Some((tenant, id)) = self.some_message() {
            let limit = self.rng.below(5);
            let named = MessageName::Id(id);
            self.pair.must(&named, async |store| store.message(tenant, named.clone()).await).await?;
            self.pair.must("message_jobs", async |store| store.message_jobs(tenant, id, limit).await).await?;
            self.pair.must("briefs", async |store| store.briefs(tenant, id).await).await?;
            self.pair.must("custody", async |store| store.custody(tenant, id).await).await?;
        }
        let named = MessageName::Key(bench::key(&self.name()));
        self.pair.must(&named, async |store| store.message(tenant, named.clone()).await).await.map(drop)
    }

    pub(super) fn some_job(&mut self) -> Option<(TenantId, JobId)> {
        if self.order.is_empty() {
            return None;
        }
        // Mostly one of the last few, so that some jobs see many commands.
        let span = if self.rng.percent(85) { self.order.len().min(8) } else { self.order.len() };
        let back = self.rng.below(span);
        Some(self.order[self.order.len() - 1 - back])
    }

    pub(super) fn policy(&mut self) -> Arc<Policy> {
        super::commands::policy(&mut self.rng)
    }
}
