//! One step of one job, the same for every store: which facts it needs, and what it leaves in custody.

use posthaste_core::{
    Answer, Attempt, CancelAnswer, Command, CommandName, Job, JobId, MessageId, Nature, Refusal, State,
    Timestamp, Verdict,
};

use crate::{CustodyEntry, JobCommand, Stage};

/// Reports written down for one job beside those in its attempts' rows; later ones are answered and counted only.
pub(crate) const STALE_REPORTS_RECORDED_MAX: usize = 100;

/// Which rows beside the job's own a decision needs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Needs {
    /// This ended attempt's row.
    pub(crate) own: Option<Attempt>,
    /// The effects of all ended attempts.
    pub(crate) span: bool,
}

/// Which rows `command` needs. The attempt that is running has no row yet, so the common report needs none.
pub(crate) fn needs(job: &Job, command: &Command) -> Needs {
    let running = matches!(job.state, State::Leased(_)).then_some(job.attempt).flatten();
    let named = command.fence().map(|fence| fence.attempt);
    Needs { own: named.filter(|named| running != Some(*named)), span: command.name() == CommandName::Replay }
}

/// The message that a job belongs to, as far as its id tells: the store looks the rest up by range.
pub(crate) fn is_job_of(message: MessageId, job: JobId) -> bool {
    let (first, last) = message.job_range();
    first <= job && job <= last
}

/// What a verdict leaves in custody, if anything: what no other row tells.
pub(crate) fn custody_of(
    job: &Job,
    message: MessageId,
    command: &JobCommand,
    verdict: &Verdict,
    now: Timestamp,
) -> Option<CustodyEntry> {
    let (stage, detail) = stage_of(&command.command, verdict)?;
    Some(CustodyEntry {
        tenant: command.tenant,
        message,
        job: Some(job.id),
        at: now,
        stage,
        attempt: command.command.fence().map(|fence| fence.attempt).or(job.attempt),
        actor: command.actor.clone(),
        detail: Some(detail.to_string().into()),
    })
}

fn stage_of(command: &Command, verdict: &Verdict) -> Option<(Stage, serde_json::Value)> {
    let (reply, nature) = match verdict {
        Verdict::Write(decision) => (decision.reply().clone(), Some(decision.nature())),
        Verdict::Recorded(_) => return None,
        Verdict::Refused(refusal) => (Err(refusal.clone()), None),
    };
    match command {
        Command::Finish { .. } | Command::Fail { .. } | Command::Release { .. } => {
            let reported = report_word(command);
            match (reply, nature) {
                (Ok(_), Some(Nature::Late)) => {
                    Some((Stage::LateReport, serde_json::json!({ "reported": reported })))
                }
                (Ok(_), Some(Nature::Heard)) => {
                    Some((Stage::LateReport, serde_json::json!({ "reported": reported, "heard": true })))
                }
                (Err(refusal), nature) => {
                    Some((Stage::StaleReport, stale_detail(reported, &refusal, nature)))
                }
                (Ok(_), _) => None,
            }
        }
        Command::Cancel { reason } => {
            let stage = match reply {
                Ok(Answer::Cancel(CancelAnswer::Cancelled)) => Stage::Cancelled,
                Ok(Answer::Cancel(CancelAnswer::Requested)) => Stage::CancelRequested,
                Ok(_) | Err(_) => return None,
            };
            Some((stage, serde_json::json!({ "reason": reason })))
        }
        Command::Replay { reason, assume_not_done, .. } => {
            let stage = match (reply, nature) {
                (Ok(_), Some(Nature::SettledInstead)) => Stage::Reconciled,
                (Ok(_), _) => Stage::Replayed,
                (Err(_), _) => return None,
            };
            Some((stage, serde_json::json!({ "reason": reason, "assume_not_done": assume_not_done })))
        }
        Command::Resend { reason, .. } => {
            reply.is_ok().then(|| (Stage::Resent, serde_json::json!({ "reason": reason })))
        }
        Command::Settle { evidence } => {
            reply.is_ok().then(|| (Stage::Reconciled, serde_json::json!({ "evidence": evidence.as_str() })))
        }
        Command::LookUp { verdict, said, .. } => reply.is_ok().then(|| {
            let mut detail = serde_json::json!({ "verdict": verdict.as_str() });
            if let Some(said) = said {
                detail["said"] = serde_json::Value::from(&**said);
            }
            (Stage::Reconciled, detail)
        }),
        Command::Abandon { cause } => {
            reply.is_ok().then(|| (Stage::DeadLettered, serde_json::json!({ "cause": cause.as_str() })))
        }
        Command::Lease { .. } | Command::Start { .. } | Command::Extend { .. } | Command::Expire => None,
    }
}

fn report_word(command: &Command) -> &'static str {
    match command {
        Command::Finish { outcome, .. } => outcome.as_str(),
        Command::Release { .. } => "released",
        Command::Fail { .. }
        | Command::Lease { .. }
        | Command::Start { .. }
        | Command::Extend { .. }
        | Command::Expire
        | Command::Cancel { .. }
        | Command::Settle { .. }
        | Command::Replay { .. }
        | Command::Resend { .. }
        | Command::Abandon { .. }
        | Command::LookUp { .. } => "failed",
    }
}

fn stale_detail(reported: &str, refusal: &Refusal, nature: Option<Nature>) -> serde_json::Value {
    serde_json::json!({ "reported": reported, "code": refusal.code(), "heard": nature == Some(Nature::Heard) })
}
