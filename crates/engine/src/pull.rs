//! Pull workers: consume, extend, report. Row B3.

use std::sync::Arc;

use posthaste_core::{
    Answer, Class, Command, DestinationId, Details, DurationMs, Effect, Evidence, Failure, Fence,
    FinishOutcome, JobId, Policy, RetryWish, Start, StateName, TenantId, Timestamp, limits,
};
use posthaste_store::{AppliedOutcome, JobCommand, LeaseRequest, LeasedJob};
use tokio::sync::oneshot;

use crate::{
    Engine, EngineError, config::Queue, config::format_duration, directory::Destination,
    verdicts::HandedLookUp,
};

/// Asks for work.
#[derive(Clone, Debug)]
pub struct Consume {
    /// From which queue.
    pub queue: DestinationId,
    /// At most so many jobs.
    pub max: usize,
    /// How long to wait for the first one.
    pub wait: DurationMs,
    /// How long the leases hold; the queue's own unless told.
    pub lease: Option<DurationMs>,
    /// Who asks.
    pub worker: Box<str>,
}

/// What a worker was given.
#[derive(Clone, Debug, Default)]
pub struct Consumed {
    /// Leased jobs.
    pub jobs: Vec<LeasedJob>,
    /// Look-ups to make.
    pub look_ups: Vec<HandedLookUp>,
}

/// Whether a worker takes look-ups.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum LookUpsToo {
    Yes,
    No,
}

/// How often a worker that waits and takes look-ups looks for some: nobody tells it when the next one is due.
const LOOK_UPS_EVERY: DurationMs = DurationMs::from_secs(1);

/// What a worker says of one job.
#[derive(Clone, Debug)]
pub struct WorkerReport {
    /// Of which job.
    pub job: JobId,
    /// The fence, as given; one that is malformed was never given.
    pub fence: Box<str>,
    /// What.
    pub report: WorkerSays,
}

/// See [`WorkerReport`].
#[derive(Clone, Debug)]
pub enum WorkerSays {
    /// It needs more time.
    Extend {
        /// From now; the queue's own lease unless told.
        lease: Option<DurationMs>,
        /// For a successor, at most [`limits::CHECKPOINT_BYTES_MAX`] bytes of JSON.
        checkpoint: Option<Box<[u8]>>,
    },
    /// It is done.
    Ack {
        /// How.
        outcome: FinishOutcome,
        /// The result, at most [`limits::RESULT_BYTES_MAX`] bytes of JSON.
        result: Option<Box<[u8]>>,
        /// Why it no longer applies.
        reason: Option<Box<str>>,
    },
    /// It failed.
    Reject {
        /// Why.
        class: Class,
        /// What is known about the effect; by the class unless told.
        effect: Option<Effect>,
        /// Whether to try again.
        retry: RetryWish,
        /// How long to wait at least.
        retry_after: Option<DurationMs>,
        /// The worker's own code.
        code: Option<Box<str>>,
        /// The error's text.
        message: Option<Box<str>>,
    },
    /// It was not tried.
    Release,
}

/// The answer to a [`WorkerReport`].
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkerAnswer {
    /// The lease goes on.
    Extended {
        /// Until when.
        lease_expires_at: Timestamp,
        /// The worker is asked to stop.
        cancel_requested: bool,
    },
    /// The job is in this state now.
    Moved {
        /// Which.
        state: StateName,
        /// When the next attempt may start.
        due_at: Option<Timestamp>,
    },
}

impl Engine {
    /// Leases due jobs of a queue, waiting for the first one up to `wait`.
    ///
    /// Durability: the leases are committed. Cancel: safe; jobs that were leased for a caller who has gone are
    /// released.
    pub async fn consume(&self, tenant: TenantId, consume: Consume) -> Result<Vec<LeasedJob>, EngineError> {
        Ok(self.take_work(tenant, consume, LookUpsToo::No).await?.jobs)
    }

    /// As [`Engine::consume`], for a worker that also looks up whether effects happened: due look-ups come first.
    pub async fn consume_with_look_ups(
        &self,
        tenant: TenantId,
        consume: Consume,
    ) -> Result<Consumed, EngineError> {
        self.take_work(tenant, consume, LookUpsToo::Yes).await
    }

    async fn take_work(
        &self,
        tenant: TenantId,
        consume: Consume,
        look_ups_too: LookUpsToo,
    ) -> Result<Consumed, EngineError> {
        let queue = self.find_queue(tenant, &consume.queue)?;
        let request = lease_request(tenant, &queue, &consume)?;
        let wait = consume.wait.min(limits::CONSUME_WAIT_MAX);
        let give_up_at = self.clock.now().after(wait);
        let lane = self.waiters.lane(tenant, queue.lane);
        loop {
            self.refuse_if_draining()?;
            // Registered before the look, so that a job that comes in between is not missed.
            let woken = lane.woken();
            tokio::pin!(woken);
            woken.as_mut().enable();
            let look_ups = match look_ups_too {
                LookUpsToo::Yes => self.hand_out_look_ups(&queue, request.limit, request.lease_for).await?,
                LookUpsToo::No => Vec::new(),
            };
            let limit = request.limit.saturating_sub(look_ups.len());
            let grant = self.lease_guarded(LeaseRequest { limit, ..request.clone() }).await?;
            if !grant.0.is_empty() || !look_ups.is_empty() {
                if grant.1.is_some_and(|next_due| next_due <= self.clock.now()) {
                    lane.wake_one();
                }
                return Ok(Consumed { jobs: grant.0, look_ups });
            }
            let now = self.clock.now();
            if now >= give_up_at {
                return Ok(Consumed::default());
            }
            let mut look_again_at = grant.1.map_or(give_up_at, |next_due| next_due.min(give_up_at));
            if look_ups_too == LookUpsToo::Yes {
                look_again_at = look_again_at.min(now.after(LOOK_UPS_EVERY));
            }
            lane.expects(grant.1);
            tokio::select! {
                () = &mut woken => {}
                () = self.clock.sleep_until(look_again_at) => {}
                () = self.stop.cancelled() => return Err(EngineError::Draining),
            }
        }
    }

    /// Leases in a task of its own: if the caller goes away meanwhile, what was leased is released.
    async fn lease_guarded(
        &self,
        request: LeaseRequest,
    ) -> Result<(Vec<LeasedJob>, Option<Timestamp>), EngineError> {
        let engine = self.arc();
        let (sender, receiver) = oneshot::channel();
        self.tasks.spawn(async move {
            let (tenant, policy) = (request.tenant, Arc::clone(&request.policy));
            let leased = engine.store.lease(vec![request]).await;
            if let Err(Ok(mut grants)) = sender.send(leased) {
                let jobs = grants.pop().map(|grant| grant.jobs).unwrap_or_default();
                let release = |leased: &LeasedJob| JobCommand {
                    tenant,
                    job: leased.job.id,
                    command: Command::Release { fence: leased.fence },
                    policy: Arc::clone(&policy),
                    hold_lane_until: None,
                    actor: Some("posthaste".into()),
                };
                let commands: Vec<JobCommand> = jobs.iter().map(release).collect();
                if !commands.is_empty() && engine.apply(commands).await.is_err() {
                    tracing::info!(event = "release", "leases of a worker that went away are left to expire");
                }
            }
        });
        let gone = || posthaste_store::StoreError::unavailable("the lease was interrupted");
        let mut grants = receiver.await.map_err(|_| EngineError::Store(gone()))??;
        let grant = grants.pop().ok_or_else(|| EngineError::Store(gone()))?;
        self.observe_changes(tenant_of(&grant.settled), &grant.settled);
        for leased in &grant.jobs {
            self.observe_lease(leased);
        }
        Ok((grant.jobs, grant.next_due))
    }

    /// Applies workers' reports in one commit; answers in order.
    pub async fn report(
        &self,
        tenant: TenantId,
        actor: &str,
        reports: Vec<WorkerReport>,
    ) -> Result<Vec<Result<WorkerAnswer, EngineError>>, EngineError> {
        let directory = self.directory.load();
        let mut commands = Vec::with_capacity(reports.len());
        let mut answers = Vec::with_capacity(reports.len());
        for report in reports {
            let lane = report.job.lane();
            let queue = directory.at(tenant, lane).and_then(|entry| match &entry.destination {
                Destination::Queue(queue) => Some(Arc::clone(queue)),
                Destination::Endpoint(_) | Destination::Source(_) | Destination::Broken { .. } => None,
            });
            let policy = directory.policy(tenant, lane);
            match self.command_of(report, queue.as_deref(), &policy) {
                Ok((job, command, hold_lane_until)) => {
                    answers.push(Ok(job));
                    commands.push(JobCommand {
                        tenant,
                        job,
                        command,
                        policy,
                        hold_lane_until,
                        actor: Some(actor.into()),
                    });
                }
                Err(error) => answers.push(Err(error)),
            }
        }
        let mut applied =
            if commands.is_empty() { Vec::new() } else { self.apply(commands).await? }.into_iter();
        let answers = answers.into_iter().map(|answer| {
            let job = answer?;
            match applied.next().map(|applied| applied.outcome) {
                Some(AppliedOutcome::Decided { reply, .. }) => worker_answer(&reply?),
                Some(AppliedOutcome::Corrupt(corrupt)) => {
                    Err(EngineError::Store(posthaste_store::StoreError::Corrupt(Box::new(corrupt))))
                }
                Some(AppliedOutcome::Missing) | None => Err(EngineError::not_found("job", &job)),
            }
        });
        Ok(answers.collect())
    }

    fn command_of(
        &self,
        report: WorkerReport,
        queue: Option<&Queue>,
        policy: &Policy,
    ) -> Result<(JobId, Command, Option<Timestamp>), EngineError> {
        // A fence that can't be read was never given: epoch 0 is no store's.
        let never = Fence { epoch: posthaste_core::Epoch(0), attempt: posthaste_core::Attempt::FIRST };
        let fence = Fence::parse(&report.fence).unwrap_or(never);
        let mut hold = None;
        let command = match report.report {
            WorkerSays::Extend { lease, checkpoint } => {
                let own = queue.map_or(DurationMs::from_secs(60), |queue| queue.lease);
                let lease_for = check_lease(lease.unwrap_or(own))?;
                at_most("checkpoint", checkpoint.as_deref(), limits::CHECKPOINT_BYTES_MAX)?;
                Command::Extend { fence, lease_for, checkpoint }
            }
            WorkerSays::Ack { outcome, result, reason } => {
                at_most("result", result.as_deref(), limits::RESULT_BYTES_MAX)?;
                at_most("reason", reason.as_deref().map(str::as_bytes), limits::REASON_BYTES_MAX)?;
                let details = Details { result, ..Details::default() };
                Command::Finish { fence, outcome, evidence: Evidence::Worker, reason, details }
            }
            WorkerSays::Reject { class, effect, retry, retry_after, code, message } => {
                at_most("code", code.as_deref().map(str::as_bytes), limits::ERROR_TEXT_BYTES_MAX)?;
                at_most("message", message.as_deref().map(str::as_bytes), limits::ERROR_TEXT_BYTES_MAX)?;
                // Only a throttled worker speaks for its whole lane; others speak of this job.
                if class == Class::Throttled {
                    hold =
                        retry_after.map(|after| self.clock.now().after(after.min(limits::RETRY_AFTER_MAX)));
                }
                let failure = Failure::of_worker_under(policy, class, effect, retry, retry_after);
                Command::Fail { fence, failure, details: Details { code, message, ..Details::default() } }
            }
            WorkerSays::Release => Command::Release { fence },
        };
        Ok((report.job, command, hold))
    }

    fn find_queue(&self, tenant: TenantId, id: &DestinationId) -> Result<Arc<Queue>, EngineError> {
        let directory = self.directory.load();
        match directory.find(tenant, id).map(|entry| &entry.destination) {
            Some(Destination::Queue(queue)) if queue.enabled => Ok(Arc::clone(queue)),
            Some(Destination::Queue(_)) => Err(EngineError::NotAvailable {
                what: "queue",
                id: id.to_string(),
                problem: "it is disabled".to_owned(),
            }),
            Some(Destination::Broken { problem, .. }) => Err(EngineError::NotAvailable {
                what: "queue",
                id: id.to_string(),
                problem: problem.to_string(),
            }),
            Some(Destination::Endpoint(_) | Destination::Source(_)) | None => {
                Err(EngineError::not_found("queue", &id))
            }
        }
    }
}

fn lease_request(tenant: TenantId, queue: &Queue, consume: &Consume) -> Result<LeaseRequest, EngineError> {
    if !(1..=limits::CONSUME_MAX).contains(&consume.max) {
        return Err(EngineError::invalid("max", format!("1 to {}", limits::CONSUME_MAX)));
    }
    at_most("worker", Some(consume.worker.as_bytes()), limits::WORKER_BYTES_MAX)?;
    Ok(LeaseRequest {
        tenant,
        lane: queue.lane,
        limit: consume.max,
        bytes_max: limits::CONSUME_BYTES_MAX / 2,
        worker: consume.worker.clone(),
        lease_for: check_lease(consume.lease.unwrap_or(queue.lease))?,
        deadline_after: queue.deadline,
        starts: Start::WithLease,
        policy: Arc::clone(&queue.policy),
        guarded: queue.ledger,
    })
}

fn check_lease(lease: DurationMs) -> Result<DurationMs, EngineError> {
    if lease < limits::LEASE_MIN || lease > limits::LEASE_MAX {
        let (min, max) = (format_duration(limits::LEASE_MIN), format_duration(limits::LEASE_MAX));
        return Err(EngineError::invalid("lease", format!("{min} to {max}, not {}", format_duration(lease))));
    }
    Ok(lease)
}

fn at_most(field: &'static str, value: Option<&[u8]>, max: usize) -> Result<(), EngineError> {
    match value {
        Some(value) if value.len() > max => {
            Err(EngineError::invalid(field, format!("at most {max} bytes, this one has {}", value.len())))
        }
        _ => Ok(()),
    }
}

fn worker_answer(answer: &Answer) -> Result<WorkerAnswer, EngineError> {
    match answer {
        Answer::Extended { expires_at, cancel_requested } => {
            Ok(WorkerAnswer::Extended { lease_expires_at: *expires_at, cancel_requested: *cancel_requested })
        }
        Answer::Moved { state, due_at } => Ok(WorkerAnswer::Moved { state: *state, due_at: *due_at }),
        Answer::Leased { .. } | Answer::Cancel(_) => {
            Err(EngineError::Store(posthaste_store::StoreError::unavailable("the answer fits no report")))
        }
    }
}

fn tenant_of(changes: &[posthaste_store::Change]) -> Option<TenantId> {
    changes.first().map(|change| change.job.tenant)
}
