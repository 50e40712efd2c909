//! Commands on jobs, of every kind and mostly to the point.

use std::sync::Arc;

use posthaste_core::{
    Attempt, Cause, Class, Command, CommandName, Details, DurationMs, Effect, Epoch, Evidence, Failure,
    Fence, FinishOutcome, Job, LaneRules, LookUpVerdict, NextStep, OnUnknown, Policy, Rate, RetryWish, Start,
    State, TenantId,
};
use posthaste_store::{JobCommand, LeaseRequest};

use super::{Disagreement, rng::Rng, world::World};
use crate::store_suite::bench;

pub(super) fn policy(rng: &mut Rng) -> Arc<Policy> {
    let settle = DurationMs::from_secs(60);
    let on_unknown = match rng.below(5) {
        0 => OnUnknown::DeadLetter,
        1 | 2 => OnUnknown::Reconcile { settle },
        _ => OnUnknown::Retry,
    };
    let tight = rng.percent(15);
    let standard = LaneRules::STANDARD;
    let rate = if rng.percent(10) { Rate::new(20, DurationMs::from_secs(1)) } else { None };
    let failures_to_open = if rng.percent(10) { 2 } else { standard.failures_to_open };
    Arc::new(Policy {
        lane: LaneRules { rate, failures_to_open, ..standard },
        on_unknown,
        idempotent: rng.percent(20),
        failures_max: if tight { 1 } else { 25 },
        lost_leases_max: if tight { 1 } else { 25 },
        horizon: if rng.percent(5) { DurationMs::ZERO } else { DurationMs::from_hours(96) },
        ..if rng.percent(20) { Policy::endpoint_default() } else { Policy::queue_default() }
    })
}

impl World {
    pub(super) async fn apply_some(&mut self) -> Result<(), Disagreement> {
        let count = 1 + self.rng.below(4);
        let commands = (0..count).filter_map(|_| self.job_command()).collect();
        self.apply_all(commands).await
    }

    pub(super) async fn apply_all(&mut self, commands: Vec<JobCommand>) -> Result<(), Disagreement> {
        let answers = self.pair.must(&commands, async |store| store.apply(commands.clone()).await).await?;
        self.note_applied(&commands, answers);
        Ok(())
    }

    pub(super) async fn lease_some(&mut self) -> Result<(), Disagreement> {
        let count = 1 + self.rng.below(3);
        let requests: Vec<LeaseRequest> = (0..count).map(|_| self.lease_request()).collect();
        let grants = self.pair.must(&requests, async |store| store.lease(requests.clone()).await).await?;
        for grant in grants {
            for change in grant.settled {
                self.note_change(change);
            }
            for leased in grant.jobs {
                self.note_leased(leased.job);
            }
        }
        Ok(())
    }

    fn lease_request(&mut self) -> LeaseRequest {
        let tenant = self.tenant();
        let lane = posthaste_core::LaneId(1 + u32::try_from(self.rng.below(4)).expect("small"));
        LeaseRequest {
            bytes_max: *self.rng.pick(&[0, 200, 500, 1 << 20]),
            lease_for: DurationMs::from_secs(*self.rng.pick(&[1, 30, 300])),
            starts: *self.rng.pick(&[Start::WithLease, Start::Fenced]),
            policy: policy(&mut self.rng),
            worker: (*self.rng.pick(&["worker-1", "worker-2"])).into(),
            guarded: self.rng.percent(70),
            ..bench::lease_request(tenant, lane, self.rng.below(8))
        }
    }

    fn job_command(&mut self) -> Option<JobCommand> {
        let (tenant, id) = self.some_job()?;
        let job = self.jobs[&(tenant, id)].clone();
        if self.rng.percent(8)
            && let Some(said) = self.said.get(&(tenant, id))
        {
            // The same again, as if the answer had been lost.
            return Some(said.clone());
        }
        let command = self.command(&job);
        let tenant = if self.rng.percent(97) { tenant } else { TenantId(3 - tenant.0) };
        let command = JobCommand {
            policy: policy(&mut self.rng),
            hold_lane_until: self.rng.percent(4).then(|| self.now().after(DurationMs::from_secs(20))),
            actor: self.rng.percent(70).then(|| "ops".into()),
            ..bench::job_command(tenant, id, command)
        };
        if command.command.fence().is_some() {
            self.said.insert((tenant, id), command.clone());
        }
        Some(command)
    }

    fn command(&mut self, job: &Job) -> Command {
        let reason = |rng: &mut Rng| -> Box<str> { format!("reason {}", rng.below(3)).into() };
        if let Some(commit) = self.commit_of_old(job) {
            return commit;
        }
        let name = self.command_name(job);
        let fence = self.fence(job);
        let rng = &mut self.rng;
        let lease_for = DurationMs::from_secs(*rng.pick(&[1, 1, 30, 3_600]));
        match name {
            CommandName::Lease => Command::Lease {
                worker: "worker-3".into(),
                lease_for,
                deadline_after: bench::DEADLINE,
                starts: *rng.pick(&[Start::WithLease, Start::Fenced]),
            },
            CommandName::Start => Command::Start { fence },
            CommandName::Extend => {
                let checkpoint = rng.percent(50).then(|| rng.next().to_le_bytes()[..3].into());
                Command::Extend { fence, lease_for, checkpoint }
            }
            CommandName::Finish => finish(rng, fence),
            CommandName::Fail => fail(rng, fence),
            CommandName::Release => Command::Release { fence },
            CommandName::Expire => Command::Expire,
            CommandName::Cancel => Command::Cancel { reason: reason(rng) },
            CommandName::Settle => Command::Settle { evidence: *rng.pick(Evidence::ALL) },
            CommandName::Replay => Command::Replay {
                seen: seen(rng, job),
                assume_not_done: rng.percent(60),
                reason: reason(rng),
            },
            CommandName::Resend => Command::Resend { seen: seen(rng, job), reason: reason(rng) },
            CommandName::Abandon => Command::Abandon { cause: *rng.pick(Cause::ALL) },
            CommandName::LookUp => {
                let verdict = *rng.pick(LookUpVerdict::ALL);
                let ahead = DurationMs::from_secs(*rng.pick(&[0, 90]));
                let (seen, asked_at) = (seen(rng, job), self.now());
                Command::LookUp { seen, asked_at, verdict, settled_at: self.now().after(ahead), said: None }
            }
        }
    }

    /// Any command, but more often one that leads somewhere rare.
    fn command_name(&mut self, job: &Job) -> CommandName {
        use CommandName::*;
        let likely: &[CommandName] = match &job.state {
            State::Leased(_) if job.commit_heard.is_some() => &[Release, Fail, Expire],
            State::Leased(lease) if lease.expires_at <= self.now() => &[Expire],
            State::Leased(_) => &[Extend, Extend, Fail, Release],
            State::Scheduled { .. } if job.attempt.is_some() => &[Finish, Fail, Lease],
            State::Retryable { next: NextStep::LookUp, .. } => &[LookUp],
            State::Retryable { .. } if job.commit_heard.is_some() => &[Fail, Fail, Lease],
            State::Scheduled { .. } | State::Retryable { .. } => &[Lease],
            State::DeadLettered { .. } => &[Replay],
            State::Committed { .. } => &[Resend],
            State::Cancelled { .. } => &[Finish, Release],
        };
        let from = if self.rng.percent(50) { likely } else { CommandName::ALL };
        *self.rng.pick(from)
    }

    /// A commit of an attempt before the last one, now and then where it would be news.
    fn commit_of_old(&mut self, job: &Job) -> Option<Command> {
        let last = job.attempt.filter(|last| last.get() > 1 && job.commit_heard.is_none())?;
        let live = matches!(job.state, State::Leased(_) | State::Retryable { .. });
        if !live || !self.rng.percent(50) {
            return None;
        }
        let back = 1 + u32::try_from(self.rng.below(2)).expect("small");
        let attempt = Attempt::new(last.get().saturating_sub(back))?;
        Some(finish(&mut self.rng, Fence { epoch: Epoch(1), attempt }))
    }

    /// Mostly the last attempt's fence; else an older one's, one never given, or another epoch's.
    fn fence(&mut self, job: &Job) -> Fence {
        let last = job.attempt.map_or(1, Attempt::get);
        let number = match self.rng.below(20) {
            0..14 => last,
            14..18 => 1 + u32::try_from(self.rng.below(last as usize)).expect("an attempt's number"),
            _ => last + 1,
        };
        let epoch = Epoch(if self.rng.percent(98) { 1 } else { 2 });
        Fence { epoch, attempt: Attempt::new(number).expect("from 1") }
    }
}

fn seen(rng: &mut Rng, job: &Job) -> Option<Attempt> {
    if rng.percent(85) { job.attempt } else { Attempt::new(u32::from(rng.percent(50))) }
}

fn details(rng: &mut Rng) -> Details {
    if rng.percent(60) {
        return Details::default();
    }
    Details {
        status: rng.percent(50).then_some(503),
        duration: rng.percent(50).then(|| DurationMs(rng.next() >> 1)),
        code: rng.percent(50).then(|| "E\0".into()),
        message: rng.percent(50).then(|| "\u{1F525}".into()),
        excerpt: rng.percent(50).then(|| rng.next().to_le_bytes()[..].into()),
        result: rng.percent(50).then(|| b""[..].into()),
    }
}

fn finish(rng: &mut Rng, fence: Fence) -> Command {
    Command::Finish {
        fence,
        outcome: *rng.pick(FinishOutcome::ALL),
        evidence: *rng.pick(Evidence::ALL),
        reason: rng.percent(20).then(|| "no longer applies".into()),
        details: details(rng),
    }
}

fn fail(rng: &mut Rng, fence: Fence) -> Command {
    let effect = rng.percent(70).then(|| *rng.pick(&[Effect::None, Effect::Possible]));
    let retry_after = rng.percent(20).then(|| DurationMs::from_secs(rng.below(100_000) as u64));
    let classes = [Class::Worker, Class::Timeout, Class::InProgress, Class::ServerError, Class::ClientError];
    let wish = *rng.pick(&[RetryWish::Yes, RetryWish::Yes, RetryWish::No, RetryWish::ByTable]);
    let failure = Failure::of_worker(*rng.pick(&classes), effect, wish, retry_after);
    Command::Fail { fence, failure, details: details(rng) }
}
