//! What is genuine and doesn't fit: kept, never executed, and run through the pipeline again when somebody asks.
//! Rows A2, A8, A10.
//!
//! A quarantined delivery is a message of its own, named after its bytes, with one job that is owed to the source and
//! is a dead letter from the start. Replaying that job runs the source's pipeline on the kept bytes and headers, with
//! today's configuration; what comes of it is accepted under its own key. Whatever is lost between the steps is found
//! again by asking again: the keys make each step a duplicate of itself.

use aws_lc_rs::digest;
use posthaste_core::{
    Answer, Cause, Command, DestinationId, Evidence, JobId, Kind, MessageId, MessageKey, Path, Refusal,
    State, StateName, TenantId,
};
use posthaste_store::{
    CustodyEntry, Due, Fingerprint, FingerprintField, MessageName, MessageView, NewMessage, Stage, Target,
};
use serde_json::{Map, Value, json};

use crate::{
    CameTo, Directory, Engine, EngineError,
    config::{QUARANTINE_PREFIX, Source, hex},
    directory::Destination,
    intake::{IntakeError, IntakeRequest, Received},
    notice::is_operational,
    operate::{Known, OperateError, Operated, RoundAgain},
    publish::{is_header_text, traceparent},
    reading::{Genuine, SchemeFacts, all_headers, event_type, header},
};

/// Bytes of what a scheme's headers tell, that are kept.
const FACT_BYTES_MAX: usize = 2_048;

/// Why something genuine is not executed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unfit {
    /// What its job is dead-lettered for.
    pub cause: Cause,
    /// A sentence for the operator. Holds nothing of the body but places in it.
    pub problem: String,
    /// If its key was used for another payload: what differs, and the message that has the key.
    pub reuse: Option<(FingerprintField, MessageId)>,
}

impl Unfit {
    pub(crate) fn new(cause: Cause, problem: impl Into<String>) -> Self {
        Self { cause, problem: problem.into(), reuse: None }
    }

    pub(crate) fn key_reused(key: &MessageKey, field: FingerprintField, known: MessageId) -> Self {
        let problem = format!("its key {key} came before with another {}: message {known}", field.as_str());
        Self { cause: Cause::KeyReused, problem, reuse: Some((field, known)) }
    }

    fn detail(&self) -> Map<String, Value> {
        let mut detail = Map::new();
        detail.insert("cause".to_owned(), self.cause.as_str().into());
        detail.insert("problem".to_owned(), self.problem.as_str().into());
        if let Some((field, known)) = self.reuse {
            detail.insert("field".to_owned(), field.as_str().into());
            detail.insert("known_message_id".to_owned(), known.to_string().into());
        }
        detail
    }
}

/// Why a message is in quarantine, for timelines: what was found when it came. `None` if it is not.
pub(crate) fn quarantine_of(message: &MessageView) -> Option<Map<String, Value>> {
    // Messages of a source have no other metadata.
    message.source.as_ref()?;
    let metadata: Map<String, Value> = serde_json::from_str(message.metadata.as_deref()?).ok()?;
    match metadata.get("quarantine") {
        Some(Value::Object(found)) => Some(found.clone()),
        Some(_) | None => None,
    }
}

impl Engine {
    /// Keeps what doesn't fit, and says so. The same bytes again are a duplicate.
    pub(crate) async fn quarantine(
        &self,
        directory: &Directory,
        source: &Source,
        genuine: Genuine<'_>,
        unfit: Unfit,
    ) -> Result<Received, IntakeError> {
        let message = self.quarantined_message(directory, source, genuine, &unfit)?;
        let (path, message) = self.claimed(self.accept(vec![message]).await?.pop())?;
        self.metrics.claim(source.id.as_str(), path);
        if path == Path::FirstRun {
            self.metrics.finished(StateName::DeadLettered, posthaste_core::DurationMs::ZERO);
            self.metrics.dead_lettered(unfit.cause);
            self.tell_soon();
        }
        tracing::warn!(
            event = "quarantined",
            event_key = message.key.as_str(),
            path = path.as_str(),
            source = source.id.as_str(),
            owner = source.owner.as_deref(),
            cause = unfit.cause.as_str(),
            problem = unfit.problem.as_str(),
            message_id = %message.id,
            correlation_id = genuine.request.correlation_id,
            "a genuine delivery does not fit its source's configuration: it is kept, and not executed"
        );
        let (key, message, answer) = (message.key, message.id, source.answer);
        Ok(Received { path, key, message, answer, quarantined: Some(unfit.cause) })
    }

    fn quarantined_message(
        &self,
        directory: &Directory,
        source: &Source,
        genuine: Genuine<'_>,
        unfit: &Unfit,
    ) -> Result<NewMessage, IntakeError> {
        let request = genuine.request;
        let body = digest::digest(&digest::SHA256, &request.body);
        let key = format!("{}:{QUARANTINE_PREFIX}{}", source.id, hex(body.as_ref()));
        let missing = || EngineError::not_found("source", &source.id);
        let lane = directory.find(source.tenant, &source.id).ok_or_else(missing)?.row.lane;
        let target = Target {
            lane,
            destination: source.id.clone(),
            kind: Kind::Pull,
            wire_id: None,
            owner: source.owner.clone(),
        };
        let kept = |fact: &Option<String>| fact.clone().filter(|fact| fact.len() <= FACT_BYTES_MAX);
        let scheme = json!({
            "delivery_id": kept(&genuine.facts.delivery_id),
            "event_type": kept(&genuine.facts.event_type),
        });
        let parsed = serde_json::from_slice(genuine.decoded.unwrap_or(&request.body)).ok();
        Ok(NewMessage {
            tenant: source.tenant,
            id: self.new_message_id(),
            key: MessageKey::new(&key).map_err(|error| EngineError::Name { field: "key", error })?,
            aliases: Vec::new(),
            event_type: event_type(source, genuine, parsed.as_ref()).filter(|text| !is_operational(text)),
            source: Some(source.id.clone()),
            fingerprint: Fingerprint([Fingerprint::NOT_COMPARED; 5]),
            correlation_id: request.correlation_id.into(),
            traceparent: header(request, "traceparent").and_then(traceparent).map(Into::into),
            content_type: header(request, "content-type")
                .filter(|text| text.len() <= posthaste_core::limits::CONTENT_TYPE_BYTES_MAX)
                .filter(|text| is_header_text(text))
                .map(Into::into),
            headers: all_headers(request),
            metadata: Some(json!({ "quarantine": unfit.detail(), "scheme": scheme }).to_string().into()),
            payload_ref: None,
            payload: request.body.clone(),
            due: Due::Never(unfit.cause),
            targets: vec![target],
        })
    }

    /// Whether a job's destination is a source: it is what that source quarantined.
    pub(crate) fn is_quarantined(&self, tenant: TenantId, job: JobId) -> bool {
        let directory = self.directory.load();
        let entry = directory.at(tenant, job.lane());
        entry.is_some_and(|entry| matches!(entry.destination, Destination::Source(_)))
    }

    /// Runs the pipeline of a quarantined job's source on what was kept, with today's configuration.
    ///
    /// It was genuine when it came, so the signature is not checked again: its time is past. What it stands for is
    /// accepted first and the job is settled after: a crash between them leaves a dead letter whose next replay finds a
    /// duplicate and settles it.
    pub(crate) async fn replay_quarantined(
        &self,
        tenant: TenantId,
        again: &RoundAgain,
    ) -> Result<Operated, OperateError> {
        let known = self.known_or_missing(tenant, again.job).await?;
        let message = self.message_of(tenant, &known).await?;
        if !matches!(known.view.job.state, State::DeadLettered { .. }) {
            if known.view.job.state.name() == StateName::Committed
                && let Some(went_to) = self.went_to(tenant, message.id, again).await?
            {
                return Ok(Operated {
                    went_to: Some(went_to),
                    ..Operated::of(&known.view.job, CameTo::Settled)
                });
            }
            let (state, command) = (known.view.job.state.name(), posthaste_core::CommandName::Replay);
            return Err(EngineError::from(Refusal::WrongState { state, command }).into());
        }
        if again.seen != known.view.job.attempt {
            return Err(EngineError::from(Refusal::AttemptChanged { current: known.view.job.attempt }).into());
        }
        match self.run_again(tenant, &known.view.destination, &message).await? {
            Ok((path, accepted)) => {
                let went = json!({
                    "reason": again.reason,
                    "message_id": accepted.id.to_string(),
                    "key": accepted.key.as_str(),
                    "path": path.as_str(),
                });
                let came =
                    json!({ "reason": again.reason, "quarantined_message_id": message.id.to_string() });
                let notes = vec![
                    self.replayed(tenant, message.id, Some(again.job), again, &went),
                    self.replayed(tenant, accepted.id, None, again, &came),
                ];
                // Before the settlement: a note that comes twice harms nobody, one that is lost does.
                self.store.note(notes).await?;
                let settle = Command::Settle { evidence: Evidence::Reconciled };
                match self.decide(tenant, again.job, &again.actor, settle).await? {
                    Ok(change) => {
                        let done = self.done(tenant, "replay", &again.actor, &change, CameTo::Settled);
                        Ok(Operated { went_to: Some(accepted.id), ..done })
                    }
                    Err(refusal) => Err(EngineError::from(refusal).into()),
                }
            }
            Err(unfit) => self.still_unfit(tenant, again, known, &message, unfit).await,
        }
    }

    async fn run_again(
        &self,
        tenant: TenantId,
        source: &DestinationId,
        message: &MessageView,
    ) -> Result<Result<(Path, posthaste_store::AcceptedMessage), Unfit>, OperateError> {
        let directory = self.directory.load_full();
        let gone = || EngineError::not_found("source", source);
        let source = directory.source(tenant, source).ok_or_else(gone)?;
        let kept = self.store.payload(tenant, message.id).await?;
        let (body, _) = kept.ok_or_else(|| EngineError::not_found("payload", &message.id))?;
        let headers = kept_headers_of(message);
        let headers: Vec<(&str, &[u8])> =
            headers.iter().map(|(name, value)| (name.as_str(), value.as_bytes())).collect();
        let correlation_id = &message.correlation_id;
        let request = IntakeRequest { method: "POST", url: "", headers: &headers, body, correlation_id };
        let facts = facts_of(message);
        let genuine = Genuine { request: &request, facts: &facts, decoded: None };
        self.pipeline(&directory, source, genuine).await.map_err(|error| match error {
            IntakeError::Engine(error) => OperateError::Engine(error),
            other @ (IntakeError::UnknownSource(_)
            | IntakeError::Paused
            | IntakeError::SignatureInvalid(_)
            | IntakeError::CertificateUnavailable
            | IntakeError::UnsupportedEncoding
            | IntakeError::MalformedEncoding
            | IntakeError::TooLargeDecoded { .. }) => {
                OperateError::Engine(EngineError::invalid("payload", other.to_string()))
            }
        })
    }

    /// It stays where it is, under the cause that it has today.
    async fn still_unfit(
        &self,
        tenant: TenantId,
        again: &RoundAgain,
        known: Known,
        message: &MessageView,
        unfit: Unfit,
    ) -> Result<Operated, OperateError> {
        let mut detail = unfit.detail();
        detail.insert("reason".to_owned(), Value::from(&*again.reason));
        let note = CustodyEntry {
            stage: Stage::Quarantined,
            ..self.replayed(tenant, message.id, Some(again.job), again, &Value::Object(detail))
        };
        self.store.note(vec![note]).await?;
        // Only what differs is written. A refusal means that somebody was faster, and the answer is true all the same.
        if let Err(refusal) = self
            .decide_quietly(tenant, again.job, &again.actor, Command::Abandon { cause: unfit.cause })
            .await?
        {
            tracing::info!(event = "replay", job = %again.job, code = refusal.code(), "the cause stays as it was");
        }
        tracing::info!(
            event = "replay",
            event_key = format_args!("{}:{}", known.view.key, known.view.destination),
            outcome = "refused",
            code = "still_quarantined",
            cause = unfit.cause.as_str(),
            actor = &*again.actor,
        );
        Err(OperateError::StillQuarantined(unfit))
    }

    fn replayed(
        &self,
        tenant: TenantId,
        message: MessageId,
        job: Option<JobId>,
        again: &RoundAgain,
        detail: &Value,
    ) -> CustodyEntry {
        CustodyEntry {
            tenant,
            message,
            job,
            at: self.clock.now(),
            stage: Stage::Replayed,
            attempt: None,
            actor: Some(again.actor.clone()),
            detail: Some(detail.to_string().into()),
        }
    }

    /// Where this very replay led before, if it did.
    async fn went_to(
        &self,
        tenant: TenantId,
        message: MessageId,
        again: &RoundAgain,
    ) -> Result<Option<MessageId>, OperateError> {
        let custody = self.store.custody(tenant, message).await?;
        let notes = custody.iter().filter(|entry| entry.stage == Stage::Replayed);
        let details = notes.filter_map(|entry| serde_json::from_str::<Value>(entry.detail.as_deref()?).ok());
        let same = details.filter(|detail| detail["reason"] == *again.reason);
        Ok(same.filter_map(|detail| MessageId::parse(detail["message_id"].as_str()?)).next_back())
    }

    async fn message_of(&self, tenant: TenantId, known: &Known) -> Result<MessageView, EngineError> {
        let found = self.store.message(tenant, MessageName::Key(known.view.key.clone())).await?;
        found.ok_or_else(|| EngineError::not_found("message", &known.view.key))
    }

    /// Applies a command whose answer may be one that was recorded before.
    async fn decide_quietly(
        &self,
        tenant: TenantId,
        job: JobId,
        actor: &str,
        command: Command,
    ) -> Result<Result<Answer, Refusal>, EngineError> {
        let command = posthaste_store::JobCommand {
            tenant,
            job,
            command,
            policy: self.directory.load().policy(tenant, job.lane()),
            hold_lane_until: None,
            actor: Some(actor.into()),
        };
        match self.apply(vec![command]).await?.pop().map(|applied| applied.outcome) {
            Some(posthaste_store::AppliedOutcome::Decided { reply, .. }) => Ok(reply),
            Some(posthaste_store::AppliedOutcome::Corrupt(corrupt)) => {
                Err(EngineError::Store(posthaste_store::StoreError::Corrupt(Box::new(corrupt))))
            }
            Some(posthaste_store::AppliedOutcome::Missing) | None => Err(EngineError::not_found("job", &job)),
        }
    }
}

fn kept_headers_of(message: &MessageView) -> Vec<(String, String)> {
    let kept = message.headers.as_deref().unwrap_or("{}");
    let headers: Map<String, Value> = serde_json::from_str(kept).unwrap_or_default();
    let texts = headers.into_iter().filter_map(|(name, value)| match value {
        Value::String(text) => Some((name, text)),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::Array(_) | Value::Object(_) => None,
    });
    texts.collect()
}

fn facts_of(message: &MessageView) -> SchemeFacts {
    let metadata: Value =
        serde_json::from_str(message.metadata.as_deref().unwrap_or("{}")).unwrap_or_default();
    let fact = |name: &str| metadata["scheme"][name].as_str().map(str::to_owned);
    SchemeFacts { delivery_id: fact("delivery_id"), event_type: fact("event_type") }
}
