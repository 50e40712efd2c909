//! What operators ask of one job.

use posthaste_core::{Answer, CancelAnswer, Command, JobId, TenantId, limits};
use posthaste_store::{AppliedOutcome, JobCommand};

use crate::{Engine, EngineError};

impl Engine {
    /// Cancels a job, or asks the worker that runs it to stop. Row B8.
    ///
    /// `reason` is kept for ever; 1 to [`limits::REASON_BYTES_MAX`] bytes.
    pub async fn cancel(
        &self,
        tenant: TenantId,
        job: JobId,
        reason: &str,
        actor: &str,
    ) -> Result<CancelAnswer, EngineError> {
        if reason.trim().is_empty() || reason.len() > limits::REASON_BYTES_MAX {
            let problem = format!("say why, in 1 to {} bytes", limits::REASON_BYTES_MAX);
            return Err(EngineError::invalid("reason", problem));
        }
        let command = JobCommand {
            tenant,
            job,
            command: Command::Cancel { reason: reason.into() },
            policy: self.directory.load().policy(tenant, job.lane()),
            hold_lane_until: None,
            actor: Some(actor.into()),
        };
        let applied = self.apply(vec![command]).await?.pop();
        match applied.map(|applied| applied.outcome) {
            Some(AppliedOutcome::Decided { reply: Ok(Answer::Cancel(answer)), .. }) => Ok(answer),
            Some(AppliedOutcome::Decided { reply: Err(refusal), .. }) => Err(refusal.into()),
            Some(AppliedOutcome::Corrupt(corrupt)) => {
                Err(EngineError::Store(posthaste_store::StoreError::Corrupt(Box::new(corrupt))))
            }
            Some(AppliedOutcome::Decided { .. } | AppliedOutcome::Missing) | None => {
                Err(EngineError::not_found("job", &job))
            }
        }
    }
}
