//! Commands on ledger entries: of any key, and of keys that are jobs' event ids.

use bytes::Bytes;
use posthaste_core::{
    Class, DurationMs, EventId, Job, JobId, State,
    ledger::{OnExpired, Outcome, Seen, Status},
};
use posthaste_store::{LedgerAction, LedgerAnswer, LedgerApplied, LedgerCommand, NamedJob, StoredResult};

use super::{Disagreement, rng::Rng, world::World};

fn result(rng: &mut Rng) -> StoredResult {
    StoredResult {
        bytes: rng.percent(60).then(|| Bytes::from_static(b"\0\xff{}")),
        content_type: rng.percent(50).then(|| "text/plain".into()),
        status: rng.percent(50).then_some(201),
    }
}

impl World {
    pub(super) async fn ledger_some(&mut self) -> Result<(), Disagreement> {
        if self.rng.percent(50) {
            return self.done_elsewhere().await;
        }
        let mut commands = Vec::new();
        for _ in 0..=self.rng.below(3) {
            commands.push(self.ledger_command().await?);
        }
        self.ask_ledger(commands).await.map(drop)
    }

    async fn ask_ledger(&mut self, commands: Vec<LedgerCommand>) -> Result<Vec<LedgerAnswer>, Disagreement> {
        let applied = self.pair.must(&commands, async |store| store.ledger(commands.clone()).await).await?;
        let mut answers = Vec::new();
        for LedgerApplied { answer, settled } in applied {
            if let Some(settled) = settled {
                self.note_change(*settled);
            }
            answers.push(answer);
        }
        Ok(answers)
    }

    /// A key is claimed and completed by somebody else; half of the time the store is not told which job it is.
    async fn done_elsewhere(&mut self) -> Result<(), Disagreement> {
        let (tenant, key, job) = self.ledger_key();
        let told = job.clone().filter(|_| self.rng.percent(40));
        self.scope.entries.insert((tenant, key.clone(), job.map(|job| (job.key, job.lane.0))));
        let claim = LedgerAction::Claim {
            lease: DurationMs::from_secs(30),
            fingerprint: None,
            claim_id: None,
            on_expired: OnExpired::Retake,
        };
        let of = |action| LedgerCommand { tenant, key: key.clone(), job: told.clone(), action, actor: None };
        let answers = self.ask_ledger(vec![of(claim)]).await?;
        let Some(LedgerAnswer::Granted(entry)) = answers.into_iter().next() else { return Ok(()) };
        let outcome = *self.rng.pick(Outcome::ALL);
        let fence = entry.entry.fence;
        let complete = LedgerAction::Complete { fence, outcome, result: result(&mut self.rng) };
        self.ask_ledger(vec![of(complete)]).await.map(drop)
    }

    async fn ledger_command(&mut self) -> Result<LedgerCommand, Disagreement> {
        let (tenant, key, job) = self.ledger_key();
        let named = job.clone();
        self.scope.entries.insert((
            tenant,
            key.clone(),
            job.as_ref().map(|job| (job.key.clone(), job.lane.0)),
        ));
        let ask =
            async |store: &dyn posthaste_store::Store| store.entry(tenant, key.clone(), named.clone()).await;
        let found = self.pair.must(("entry", tenant, &key), ask).await?;
        let rng = &mut self.rng;
        let near = |rng: &mut Rng| {
            let known = found.as_ref().map_or(1, |found| found.entry.fence);
            if rng.percent(80) { known } else { known.saturating_sub(1) }
        };
        let lease = DurationMs::from_secs(*rng.pick(&[0, 1, 30, 3_600]));
        let result = result(rng);
        let action = match rng.below(10) {
            0..5 => LedgerAction::Claim {
                lease,
                fingerprint: rng.percent(40).then(|| vec![*rng.pick(&[1, 2])].into()),
                claim_id: rng.percent(50).then(|| (*rng.pick(&["claim-1", "claim-2"])).into()),
                on_expired: *rng.pick(&[OnExpired::Retake, OnExpired::Retake, OnExpired::Hold]),
            },
            5..7 => LedgerAction::Complete { fence: near(rng), outcome: *rng.pick(Outcome::ALL), result },
            7 => LedgerAction::Fail {
                fence: near(rng),
                class: rng.percent(50).then_some(Class::Timeout),
                message: rng.percent(50).then(|| "no".into()),
            },
            8 => LedgerAction::Extend { fence: near(rng), lease },
            _ => {
                let status = found.as_ref().map_or(Status::Done, |found| found.entry.status);
                let status = if rng.percent(80) { status } else { *rng.pick(Status::ALL) };
                LedgerAction::Reset { seen: Seen { fence: near(rng), status }, reason: "again".into() }
            }
        };
        let actor = self.rng.percent(50).then(|| "ops".into());
        Ok(LedgerCommand { tenant, key, job, action, actor })
    }

    /// A key: of a job mostly, so that both ledgers meet.
    fn ledger_key(&mut self) -> (posthaste_core::TenantId, EventId, Option<NamedJob>) {
        // Those that wait after a failure, and dead letters, are where it matters.
        let tried = |job: &Job| matches!(job.state, State::Retryable { .. } | State::DeadLettered { .. });
        let job = (0..8).find_map(|_| self.some_job().filter(|at| tried(&self.jobs[at])));
        let job = job.or_else(|| self.some_job()).filter(|_| self.rng.percent(80));
        if let Some((tenant, job)) = job {
            let message = self
                .accepted
                .iter()
                .rev()
                .find(|message| message.tenant == tenant && JobId::of(message.id, job.lane()) == job);
            if let Some((message, target)) = message.and_then(|message| {
                Some((message, message.targets.iter().find(|target| target.lane == job.lane())?))
            }) {
                let event_id = EventId::of(&message.key, &target.destination);
                let job = NamedJob {
                    key: message.key.clone(),
                    lane: JobId::of(message.id, target.lane).lane(),
                    guarded: true,
                };
                return (message.tenant, event_id, Some(job));
            }
        }
        let key = EventId::new(&format!("free-{}", self.rng.below(4))).expect("a key");
        (self.tenant(), key, None)
    }
}
