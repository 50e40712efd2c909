//! Publishing: from a request to accepted messages. Rows A10, B1, B11.

use aws_lc_rs::digest;
use bytes::Bytes;
use posthaste_core::{
    DestinationId, DurationMs, Kind, MessageId, MessageKey, Path, TenantId, Timestamp, limits,
};
use posthaste_store::{Acceptance, AcceptedMessage, Due, Fingerprint, FingerprintField, NewMessage, Target};

use crate::{
    Directory, Engine, EngineError,
    config::{Endpoint, WebhookId},
    directory::Destination,
};

/// Where a message goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PublishTo {
    /// To a queue.
    Queue(DestinationId),
    /// To these endpoints.
    Endpoints(Vec<DestinationId>),
    /// To every endpoint subscribed to the type.
    Subscribers,
}

/// When a message's jobs may start.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PublishDue {
    /// After so long.
    In(DurationMs),
    /// At this time.
    At(Timestamp),
}

/// A message to be published.
#[derive(Clone, Debug)]
pub struct Publish {
    /// Its key.
    pub key: MessageKey,
    /// Its event type.
    pub event_type: Option<Box<str>>,
    /// The user's metadata, a JSON object.
    pub metadata: Option<Box<str>>,
    /// The payload's media type.
    pub content_type: Option<Box<str>>,
    /// The exact bytes.
    pub payload: Bytes,
    /// Where the payload is, if it is not here.
    pub payload_ref: Option<Box<str>>,
    /// When.
    pub due: PublishDue,
    /// Where to.
    pub to: PublishTo,
    /// W3C trace context.
    pub traceparent: Option<Box<str>>,
    /// The request that brought it.
    pub correlation_id: Box<str>,
}

/// What became of a [`Publish`].
#[derive(Clone, Debug)]
pub struct Published {
    /// Whether it is new: `first_run`, or `duplicate_done`.
    pub new: bool,
    /// The message, new or known.
    pub message: AcceptedMessage,
}

impl Engine {
    /// Publishes messages in one commit. A bad one fails alone; answers in order.
    ///
    /// Durability: what is answered `Ok` is stored. Errors of the whole: the store's, or `accept_deadline` passed.
    /// Cancel: dropping it may leave the messages stored; publishing again finds them.
    pub async fn publish(
        &self,
        tenant: TenantId,
        messages: Vec<Publish>,
    ) -> Result<Vec<Result<Published, EngineError>>, EngineError> {
        self.refuse_if_draining()?;
        let directory = self.directory.load();
        let mut accepted = Vec::with_capacity(messages.len());
        let mut answers = Vec::with_capacity(messages.len());
        for message in messages {
            match self.new_message(&directory, tenant, message) {
                Ok(message) => {
                    accepted.push(message);
                    answers.push(Ok(()));
                }
                Err(error) => answers.push(Err(error)),
            }
        }
        let mut results = self.accept(accepted).await?.into_iter();
        let answers = answers.into_iter().map(|answer| {
            answer?;
            match results.next() {
                Some(Acceptance::New(message)) => {
                    log_claim("claim", Path::FirstRun, &message);
                    Ok(Published { new: true, message })
                }
                Some(Acceptance::Duplicate(message)) => {
                    self.metrics.duplicate("publish");
                    log_claim("duplicate", Path::DuplicateDone, &message);
                    Ok(Published { new: false, message })
                }
                Some(Acceptance::KeyReused { field, message }) => {
                    Err(EngineError::KeyReused { field, message })
                }
                None => {
                    Err(EngineError::Store(posthaste_store::StoreError::unavailable("an answer is missing")))
                }
            }
        });
        Ok(answers.collect())
    }

    /// Accepts messages under the accept deadline, and wakes whoever waits for their jobs.
    pub(crate) async fn accept(&self, messages: Vec<NewMessage>) -> Result<Vec<Acceptance>, EngineError> {
        if messages.is_empty() {
            return Ok(Vec::new());
        }
        let tenants: Vec<TenantId> = messages.iter().map(|message| message.tenant).collect();
        let begun = self.clock.now();
        // What counts for a tenant is what it asks for; the rest is our own.
        let tenant = tenants.first().copied().filter(|first| tenants.iter().all(|tenant| tenant == first));
        let accepting = async {
            let _turn = match tenant {
                Some(tenant) => self.company.enter(tenant, begun).await,
                None => None,
            };
            self.store.accept(messages).await
        };
        let acceptances = tokio::time::timeout(self.settings.accept_deadline, accepting)
            .await
            .map_err(|_| EngineError::DeadlinePassed)??;
        self.metrics.accept_duration(self.clock.now().since(begun));
        for (tenant, acceptance) in tenants.into_iter().zip(&acceptances) {
            if let Acceptance::New(message) = acceptance {
                self.wake_for(tenant, message);
            }
        }
        Ok(acceptances)
    }

    fn wake_for(&self, tenant: TenantId, message: &AcceptedMessage) {
        if message.jobs_total == 0 {
            self.metrics.unrouted();
        }
        if message.fanout_running {
            self.dispatcher.wake_fan_out();
        }
        for job in &message.jobs {
            if let Some(due_at) = job.due_at {
                self.wake_lane(tenant, job.id.lane(), due_at);
            }
        }
    }

    fn new_message(
        &self,
        directory: &Directory,
        tenant: TenantId,
        publish: Publish,
    ) -> Result<NewMessage, EngineError> {
        check_sizes(&publish, self.settings.payload_bytes_max)?;
        let id = self.new_message_id();
        let event_type = publish.event_type.as_deref();
        let targets = resolve(directory, tenant, &publish.to, event_type, id)?;
        let fingerprint = fingerprint(&publish);
        Ok(NewMessage {
            tenant,
            id,
            key: publish.key,
            aliases: Vec::new(),
            event_type: publish.event_type,
            source: None,
            fingerprint,
            correlation_id: publish.correlation_id,
            traceparent: publish.traceparent.filter(|text| traceparent(text).is_some()),
            content_type: publish.content_type,
            headers: None,
            metadata: publish.metadata,
            payload_ref: publish.payload_ref,
            payload: publish.payload,
            due: match publish.due {
                PublishDue::In(delay) => Due::In(delay),
                PublishDue::At(at) => Due::At(at),
            },
            targets,
        })
    }

    /// A fresh UUIDv7 of the store's time.
    pub(crate) fn new_message_id(&self) -> MessageId {
        self.message_ids.next(self.clock.now())
    }
}

/// One line a decision, so that one query by key reconstructs the history. Row F5.
fn log_claim(event: &'static str, path: Path, message: &AcceptedMessage) {
    tracing::info!(
        event,
        event_key = message.key.as_str(),
        path = path.as_str(),
        message_id = %message.id,
        jobs = message.jobs_total,
    );
}

fn check_sizes(publish: &Publish, payload_bytes_max: usize) -> Result<(), EngineError> {
    let bytes = publish.payload.len();
    if bytes > payload_bytes_max {
        return Err(EngineError::TooLarge { bytes, max: payload_bytes_max });
    }
    check_type(publish.event_type.as_deref())?;
    if publish.event_type.as_deref().is_some_and(crate::notice::is_operational) {
        let problem = "types that begin with \"posthaste.\" are ours: choose another one";
        return Err(EngineError::invalid("type", problem));
    }
    let length = |field, value: Option<&str>, max: usize| match value {
        Some(value) if value.len() > max => {
            Err(EngineError::invalid(field, format!("at most {max} bytes, this one has {}", value.len())))
        }
        _ => Ok(()),
    };
    length("metadata", publish.metadata.as_deref(), limits::METADATA_BYTES_MAX)?;
    length("content_type", publish.content_type.as_deref(), limits::CONTENT_TYPE_BYTES_MAX)?;
    if publish.content_type.as_deref().is_some_and(|text| !is_header_text(text)) {
        return Err(EngineError::invalid("content_type", "a media type, for example application/json"));
    }
    let PublishDue::At(at) = publish.due else {
        return Ok(());
    };
    if at > limits::TIMESTAMP_MAX {
        return Err(EngineError::invalid("due_at", "the last instant is 9999-12-31T23:59:59.999Z"));
    }
    Ok(())
}

/// Whether `text` can stand in a header that we send.
pub(crate) fn is_header_text(text: &str) -> bool {
    !text.is_empty() && text.bytes().all(|byte| (0x20..0x7F).contains(&byte))
}

/// `text` if it is a trace context as we would send it on: <https://www.w3.org/TR/trace-context/#traceparent-header>.
pub(crate) fn traceparent(text: &str) -> Option<&str> {
    let parts: Vec<&str> = text.split('-').collect();
    let hex = |part: &str| part.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
    let lengths: Vec<usize> = parts.iter().map(|part| part.len()).collect();
    (lengths == [2, 32, 16, 2] && parts.iter().all(|part| hex(part)) && parts[0] != "ff").then_some(text)
}

pub(crate) fn check_type(event_type: Option<&str>) -> Result<(), EngineError> {
    match event_type {
        Some(event_type)
            if event_type.is_empty()
                || event_type.len() > limits::TYPE_BYTES_MAX
                || !event_type.bytes().all(|byte| byte.is_ascii_graphic()) =>
        {
            let max = limits::TYPE_BYTES_MAX;
            Err(EngineError::invalid(
                "type",
                format!("1 to {max} bytes of visible ASCII, for example shipment.updated"),
            ))
        }
        _ => Ok(()),
    }
}

/// The destinations of a message, each once, in lane order.
pub(crate) fn resolve(
    directory: &Directory,
    tenant: TenantId,
    to: &PublishTo,
    event_type: Option<&str>,
    message: MessageId,
) -> Result<Vec<Target>, EngineError> {
    let mut targets: Vec<Target> = match to {
        PublishTo::Queue(id) => {
            let queue = directory.queue(tenant, id).ok_or_else(|| EngineError::not_found("queue", &id))?;
            vec![Target {
                lane: queue.lane,
                destination: queue.id.clone(),
                kind: Kind::Pull,
                wire_id: None,
                owner: queue.owner.clone(),
            }]
        }
        PublishTo::Endpoints(ids) => {
            let find = |id: &DestinationId| match directory.find(tenant, id).map(|entry| &entry.destination) {
                Some(Destination::Endpoint(endpoint)) => Ok(target(endpoint, message)),
                Some(Destination::Broken { problem, .. }) => Err(EngineError::NotAvailable {
                    what: "endpoint",
                    id: id.to_string(),
                    problem: problem.to_string(),
                }),
                Some(Destination::Queue(_) | Destination::Source(_)) | None => {
                    Err(EngineError::not_found("endpoint", &id))
                }
            };
            ids.iter().map(find).collect::<Result<_, _>>()?
        }
        PublishTo::Subscribers => {
            let subscribers = directory.subscribers(tenant, event_type);
            subscribers.into_iter().map(|endpoint| target(endpoint, message)).collect()
        }
    };
    targets.sort_by_key(|target| target.lane);
    targets.dedup_by_key(|target| target.lane);
    Ok(targets)
}

fn target(endpoint: &Endpoint, message: MessageId) -> Target {
    Target {
        lane: endpoint.lane,
        destination: endpoint.id.clone(),
        kind: Kind::Push,
        wire_id: match endpoint.webhook_id {
            WebhookId::Job => None,
            WebhookId::Message => Some(message.to_string().into()),
        },
        owner: endpoint.owner.clone(),
    }
}

/// What the key stands for: everything that the publisher chose.
fn fingerprint(publish: &Publish) -> Fingerprint {
    let to = match &publish.to {
        PublishTo::Queue(id) => format!("queue:{id}"),
        PublishTo::Endpoints(ids) => {
            let mut ids: Vec<&str> = ids.iter().map(DestinationId::as_str).collect();
            ids.sort_unstable();
            ids.dedup();
            format!("endpoints:{}", ids.join(","))
        }
        PublishTo::Subscribers => "subscribers".to_owned(),
    };
    let delay = match publish.due {
        PublishDue::In(delay) => format!("in:{}", delay.0),
        PublishDue::At(at) => format!("at:{}", at.0),
    };
    let text = |value: Option<&str>| hash(&[value.unwrap_or("").as_bytes()]);
    Fingerprint(FingerprintField::ALL.map(|field| match field {
        FingerprintField::Type => text(publish.event_type.as_deref()),
        FingerprintField::ContentType => text(publish.content_type.as_deref()),
        FingerprintField::Payload => {
            hash(&[&publish.payload, publish.payload_ref.as_deref().unwrap_or("").as_bytes()])
        }
        FingerprintField::To => text(Some(&to)),
        FingerprintField::Delay => text(Some(&delay)),
    }))
}

/// Half a SHA-256 over length-delimited parts; never all zeros.
pub(crate) fn hash(parts: &[&[u8]]) -> [u8; 16] {
    let mut context = digest::Context::new(&digest::SHA256);
    for part in parts {
        context.update(&u64::try_from(part.len()).unwrap_or(u64::MAX).to_be_bytes());
        context.update(part);
    }
    let digest = context.finish();
    let mut half = [0; 16];
    half.copy_from_slice(&digest.as_ref()[..16]);
    if half == Fingerprint::NOT_COMPARED { [1; 16] } else { half }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn r_f5_only_a_well_formed_trace_context_is_passed_on() {
        let good = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
        assert_eq!(Some(good), traceparent(good));
        for bad in [
            "",
            "00",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331",
            "ff-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01",
            "00-0AF7651916CD43DD8448EB211C80319C-b7ad6b7169203331-01",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-x",
            "00-0af7651916cd43dd8448eb211c80319c-b7ad6b716920333\r-01",
        ] {
            assert_eq!(None, traceparent(bad), "{bad}");
        }
    }

    #[test]
    fn a_content_type_must_fit_into_a_header() {
        assert!(is_header_text("application/json; charset=utf-8"));
        for bad in ["", "a\r\nx: y", "\u{e9}", "a\0"] {
            assert!(!is_header_text(bad), "{bad:?}");
        }
    }
}
