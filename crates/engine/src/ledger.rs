//! The receiver's ledger as a service: claim, complete, fail, extend, read, reset. Rows C1 to C9.

use bytes::Bytes;
use posthaste_core::{
    Class, DestinationId, DurationMs, Epoch, EventId, MessageKey, Path, TenantId, Timestamp,
    ledger::{Entry, OnExpired, Outcome, Seen, Status},
    limits,
};
use posthaste_store::{
    LedgerAction, LedgerAnswer, LedgerApplied, LedgerCommand, LedgerEntry, NamedJob, StoreError, StoredResult,
};

use crate::{Engine, EngineError, config::format_duration, directory::Destination};

/// How claims of the ledger are labelled in metrics: there is no source of this name, since names begin with a letter
/// or digit.
const METRICS_SOURCE: &str = "_ledger";

/// May the effect begin?
#[derive(Clone, Debug)]
pub struct LedgerClaim {
    /// Of which effect.
    pub key: EventId,
    /// How long the grant holds; [`LedgerClaim::LEASE`] unless told.
    pub lease: Option<DurationMs>,
    /// What the payload is; 1 to [`limits::FINGERPRINT_BYTES_MAX`] bytes.
    pub fingerprint: Option<Box<str>>,
    /// Names this request, so that a repeat gets the same grant; 1 to [`limits::CLAIM_ID_BYTES_MAX`] bytes.
    pub claim_id: Option<Box<str>>,
    /// What becomes of the grant if it runs out.
    pub on_expired: OnExpired,
}

impl LedgerClaim {
    /// How long a grant holds unless told.
    pub const LEASE: DurationMs = DurationMs::from_secs(60);
}

/// A report on a grant, or what an operator asks.
#[derive(Clone, Debug)]
pub enum LedgerSays {
    /// The effect happened, or surely never will.
    Complete {
        /// Which of the two.
        outcome: Outcome,
        /// What duplicates are answered; at most [`limits::RESULT_BYTES_MAX`] bytes.
        result: StoredResult,
    },
    /// The effect surely did not happen.
    Fail {
        /// Why.
        class: Option<Class>,
        /// Why, for people.
        message: Option<Box<str>>,
    },
    /// It takes longer.
    Extend {
        /// From now; [`LedgerClaim::LEASE`] unless told.
        lease: Option<DurationMs>,
    },
    /// The effect is wanted anew. Row C9.
    Reset {
        /// The status that the operator saw.
        status: Status,
        /// Why, for ever shown; 1 to [`limits::REASON_BYTES_MAX`] bytes.
        reason: Box<str>,
    },
}

/// What a claim came to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Claimed {
    /// Go.
    Granted(Shown),
    /// It is done.
    DuplicateDone(Shown),
    /// Somebody else is at it.
    InProgressElsewhere {
        /// Until when at least, unless it ends sooner; `None` while it is held.
        locked_until: Option<Timestamp>,
    },
}

/// An entry as it is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Shown {
    /// The entry.
    pub entry: LedgerEntry,
    /// Its fence on the wire.
    pub fence: Box<str>,
}

/// Why the ledger refused.
#[derive(Debug, thiserror::Error)]
pub enum LedgerError {
    /// Something that is not of the ledger.
    #[error(transparent)]
    Engine(#[from] EngineError),
    /// The key was used for another payload; the entry is untouched.
    #[error("the key was used before with another fingerprint")]
    KeyReused,
    /// There is no entry.
    #[error("there is no ledger entry of this key")]
    Missing,
    /// The grant is not in force: the effect must be rolled back.
    #[error("the grant of this fence is not in force: roll the effect back")]
    StaleFence(Box<Shown>),
    /// The grant ran out; it can be completed, unless somebody else claims, and not be extended.
    #[error("the grant has run out: it can't be extended, but still be completed until somebody else claims")]
    Expired(Box<Shown>),
    /// The entry is a job's: only reports on the job end its grant.
    #[error(
        "this entry is held by a job of its queue: report on the job (queue.ack, queue.reject, queue.extend), or cancel it"
    )]
    HeldByJob(Box<Shown>),
    /// The entry is not as the operator saw it.
    #[error("the entry has changed since it was looked at")]
    Changed(Box<Shown>),
}

impl From<StoreError> for LedgerError {
    fn from(error: StoreError) -> Self {
        Self::Engine(error.into())
    }
}

impl Engine {
    /// Claims an effect: one of four paths. Row C1.
    ///
    /// Durability: the grant, or what a refusal rests on, is committed. Cancel: safe; a grant that nobody heard of ends
    /// with its lease, or is given again to the same `claim_id`.
    pub async fn ledger_claim(
        &self,
        tenant: TenantId,
        actor: &str,
        claim: LedgerClaim,
    ) -> Result<Claimed, LedgerError> {
        within("fingerprint", claim.fingerprint.as_deref(), limits::FINGERPRINT_BYTES_MAX)?;
        within("claim_id", claim.claim_id.as_deref(), limits::CLAIM_ID_BYTES_MAX)?;
        let lease = check_lease(claim.lease)?;
        let action = LedgerAction::Claim {
            lease,
            fingerprint: claim.fingerprint.map(str::into_boxed_bytes),
            claim_id: claim.claim_id,
            on_expired: claim.on_expired,
        };
        let key = claim.key.clone();
        match self.ledger_ask(tenant, actor, claim.key, action).await? {
            LedgerAnswer::Granted(entry) => {
                self.note_claim(&key, entry.entry.path, entry.entry.attempts);
                Ok(Claimed::Granted(self.shown(entry).await?))
            }
            LedgerAnswer::DuplicateDone(entry) => {
                self.note_claim(&key, Path::DuplicateDone, entry.entry.attempts);
                self.metrics.duplicate("ledger");
                Ok(Claimed::DuplicateDone(self.shown(entry).await?))
            }
            LedgerAnswer::InProgressElsewhere { locked_until } => {
                self.note_claim(&key, Path::InProgressElsewhere, 0);
                Ok(Claimed::InProgressElsewhere { locked_until })
            }
            LedgerAnswer::KeyReused => {
                tracing::warn!(event = "key_reused", event_key = %key, field = "fingerprint");
                Err(LedgerError::KeyReused)
            }
            LedgerAnswer::Written(_) | LedgerAnswer::Stale(_) => Err(misfit().into()),
        }
    }

    /// Reports on a grant, or resets an entry. `fence` is as a claim or [`Engine::ledger_entry`] gave it.
    ///
    /// Durability: what was said is committed. Cancel: safe; repeating a report gets its answer again.
    pub async fn ledger_report(
        &self,
        tenant: TenantId,
        actor: &str,
        key: EventId,
        fence: &str,
        says: LedgerSays,
    ) -> Result<Shown, LedgerError> {
        // Of another epoch, or none at all: no grant has fence 0.
        let fence = parse_fence(self.epoch().await?, fence).unwrap_or(0);
        let reset = matches!(says, LedgerSays::Reset { .. });
        let extend = matches!(says, LedgerSays::Extend { .. });
        let action = action_of(says, fence)?;
        match self.ledger_ask(tenant, actor, key, action).await? {
            LedgerAnswer::Written(entry) => Ok(self.shown(entry).await?),
            LedgerAnswer::Stale(None) => Err(LedgerError::Missing),
            LedgerAnswer::Stale(Some(entry)) => {
                let ran_out =
                    extend && entry.entry.fence == fence && entry.entry.status == Status::InProgress;
                let held = entry.of_job.is_some() && !reset || entry.is_held_by_job(self.clock.now());
                let shown = Box::new(self.shown(entry).await?);
                if held {
                    return Err(LedgerError::HeldByJob(shown));
                }
                if reset {
                    return Err(LedgerError::Changed(shown));
                }
                self.metrics.stale_report();
                let entry = &shown.entry;
                tracing::warn!(event = "stale_report", event_key = %entry.key, status = entry.entry.status.as_str());
                Err(if ran_out { LedgerError::Expired(shown) } else { LedgerError::StaleFence(shown) })
            }
            LedgerAnswer::Granted(_)
            | LedgerAnswer::DuplicateDone(_)
            | LedgerAnswer::InProgressElsewhere { .. }
            | LedgerAnswer::KeyReused => Err(misfit().into()),
        }
    }

    /// The entry of a key, if there is one.
    pub async fn ledger_entry(&self, tenant: TenantId, key: EventId) -> Result<Option<Shown>, EngineError> {
        let job = self.job_named(tenant, &key);
        match self.store.entry(tenant, key, job).await? {
            Some(entry) => Ok(Some(self.shown(entry).await?)),
            None => Ok(None),
        }
    }

    async fn ledger_ask(
        &self,
        tenant: TenantId,
        actor: &str,
        key: EventId,
        action: LedgerAction,
    ) -> Result<LedgerAnswer, EngineError> {
        self.refuse_if_draining()?;
        let job = self.job_named(tenant, &key);
        let command = LedgerCommand { tenant, key, job, action, actor: Some(actor.into()) };
        let applied = self.store.ledger(vec![command]).await?.pop();
        let Some(LedgerApplied { answer, settled }) = applied else { return Err(misfit()) };
        if let Some(settled) = settled {
            self.observe_changes(Some(tenant), &[*settled]);
        }
        Ok(answer)
    }

    /// The job that a key would be the event id of, as far as destinations tell.
    fn job_named(&self, tenant: TenantId, key: &EventId) -> Option<NamedJob> {
        let (message, destination) = key.as_str().rsplit_once(':')?;
        let (message, destination) = (MessageKey::new(message).ok()?, DestinationId::new(destination).ok()?);
        let directory = self.directory.load();
        let entry = directory.find(tenant, &destination)?;
        let guarded = match &entry.destination {
            Destination::Queue(queue) => queue.ledger,
            Destination::Endpoint(_) | Destination::Broken { .. } => false,
            Destination::Source(_) => return None,
        };
        Some(NamedJob { key: message, lane: entry.row.lane, guarded })
    }

    fn note_claim(&self, key: &EventId, path: Path, attempts: u32) {
        self.metrics.claim(METRICS_SOURCE, path);
        tracing::info!(event = "claim", event_key = %key, path = path.as_str(), attempts);
    }

    async fn shown(&self, entry: LedgerEntry) -> Result<Shown, EngineError> {
        let entry = self.with_result(entry).await?;
        let fence = show_fence(self.epoch().await?, &entry.entry);
        Ok(Shown { entry, fence })
    }

    /// The store's epoch: it does not change while the store is open.
    async fn epoch(&self) -> Result<Epoch, EngineError> {
        if let Some(epoch) = self.epoch.get() {
            return Ok(*epoch);
        }
        let epoch = self.store.status().await?.epoch;
        Ok(*self.epoch.get_or_init(|| epoch))
    }
}

fn action_of(says: LedgerSays, fence: u64) -> Result<LedgerAction, EngineError> {
    Ok(match says {
        LedgerSays::Complete { outcome, result } => {
            let bytes = result.bytes.as_ref().map_or(0, Bytes::len);
            if bytes > limits::RESULT_BYTES_MAX {
                let problem = format!("at most {} bytes, this one has {bytes}", limits::RESULT_BYTES_MAX);
                return Err(EngineError::invalid("result", problem));
            }
            within("content_type", result.content_type.as_deref(), limits::ERROR_TEXT_BYTES_MAX)?;
            LedgerAction::Complete { fence, outcome, result }
        }
        LedgerSays::Fail { class, message } => {
            within("message", message.as_deref(), limits::ERROR_TEXT_BYTES_MAX)?;
            LedgerAction::Fail { fence, class, message }
        }
        LedgerSays::Extend { lease } => LedgerAction::Extend { fence, lease: check_lease(lease)? },
        LedgerSays::Reset { status, reason } => {
            if reason.trim().is_empty() || reason.len() > limits::REASON_BYTES_MAX {
                let problem = format!("say why, in 1 to {} bytes", limits::REASON_BYTES_MAX);
                return Err(EngineError::invalid("reason", problem));
            }
            LedgerAction::Reset { seen: Seen { fence, status }, reason }
        }
    })
}

fn check_lease(lease: Option<DurationMs>) -> Result<DurationMs, EngineError> {
    let lease = lease.unwrap_or(LedgerClaim::LEASE);
    if lease < limits::LEASE_MIN || lease > limits::LEASE_MAX {
        let (min, max) = (format_duration(limits::LEASE_MIN), format_duration(limits::LEASE_MAX));
        return Err(EngineError::invalid("lease", format!("{min} to {max}, not {}", format_duration(lease))));
    }
    Ok(lease)
}

fn within(field: &'static str, text: Option<&str>, max: usize) -> Result<(), EngineError> {
    match text {
        Some("") => Err(EngineError::invalid(field, "leave it out, or say something")),
        Some(text) if text.len() > max => {
            Err(EngineError::invalid(field, format!("at most {max} bytes, this one has {}", text.len())))
        }
        _ => Ok(()),
    }
}

/// `{epoch}.{fence}`, as of jobs: opaque to users.
fn show_fence(epoch: Epoch, entry: &Entry) -> Box<str> {
    format!("{}.{}", epoch.0, entry.fence).into()
}

fn parse_fence(epoch: Epoch, text: &str) -> Option<u64> {
    let (of, fence) = text.split_once('.')?;
    let number: u64 = fence.parse().ok()?;
    let spelled = (of.to_owned(), fence.to_owned()) == (epoch.0.to_string(), number.to_string());
    spelled.then_some(number)
}

fn misfit() -> EngineError {
    EngineError::Store(StoreError::unavailable("the ledger's answer does not fit the question"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_g4_a_fence_of_another_epoch_was_never_given() {
        assert_eq!(Some(7), parse_fence(Epoch(3), "3.7"));
        for never in ["2.7", "3.07", "3.+7", "3", "", "3.", "3.7.1", "x.7", "3.-1", "+3.7", "03.7"] {
            assert_eq!(None, parse_fence(Epoch(3), never), "{never}");
        }
    }
}
