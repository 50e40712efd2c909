//! Operational messages: what somebody should know, published as messages of type `posthaste.*`. Rows B7, A2.
//!
//! Endpoints get them that subscribe to such types by name (`posthaste.*`, `posthaste.job.dead_lettered`), never by `*`:
//! what went wrong here is not for every receiver. A dead letter is told of besides to its destination's dead-letter
//! queue. Dead letters are found again from the rows that the store keeps until they were told, and each message has a
//! key of its own, so that whoever tells twice tells once. What becomes of an operational message is told to nobody.

use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::{DestinationId, DurationMs, MessageKey, TenantId, Timestamp};
use posthaste_store::{Due, Fingerprint, MessageName, MessageView, NewMessage, StoreError, Target, Untold};
use tokio::sync::Notify;

use crate::{
    Directory, Engine, EngineError,
    directory::Destination,
    operate::Known,
    publish::{PublishTo, resolve},
};

/// Types that begin so are ours: publishers and providers can't use them.
pub const OPERATIONAL_PREFIX: &str = "posthaste.";

/// A job became a dead letter.
const DEAD_LETTERED: &str = "posthaste.job.dead_lettered";

/// A genuine delivery was quarantined.
const QUARANTINED: &str = "posthaste.message.quarantined";

/// Dead letters told of in one commit.
const BATCH: usize = 100;

/// Bytes of payloads after which what there is is published.
const BYTES_AT_ONCE: usize = 1024 * 1024;

/// Time between looks for dead letters that nobody announced.
const LOOK_EVERY: DurationMs = DurationMs::from_secs(30);

/// After a store error.
const STORE_PAUSE: DurationMs = DurationMs::from_secs(1);

/// Whether an event type is one of ours.
pub(crate) fn is_operational(event_type: &str) -> bool {
    event_type.starts_with(OPERATIONAL_PREFIX)
}

/// What a message tells.
#[derive(Clone, Copy, Debug)]
pub enum Told<'a> {
    /// A job that became a dead letter, as it is now.
    DeadLetter {
        /// When it became one, and why.
        row: &'a Untold,
        /// The job with all that is known of its effect.
        known: &'a Known,
        /// Its message.
        message: &'a MessageView,
    },
    /// Something else.
    Notice(&'a Notice),
}

/// Writes the payload of an operational message: JSON.
pub type Describe = dyn Fn(Told<'_>) -> Vec<u8> + Send + Sync;

/// Something that somebody should know, beside dead letters: those are found from their rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Notice {
    /// An endpoint was disabled by a rule, or by its receiver.
    EndpointDisabled {
        /// Whose.
        tenant: TenantId,
        /// Which.
        endpoint: DestinationId,
        /// Why.
        reason: Box<str>,
        /// Since when, as its row says: said again after a crash, it is said once.
        at: Timestamp,
    },
    /// An endpoint's circuit opened: nothing is sent to it for a while.
    CircuitOpened {
        /// Whose.
        tenant: TenantId,
        /// Which.
        endpoint: DestinationId,
        /// Until the next probe.
        until: Timestamp,
        /// Since when, as its row says.
        at: Timestamp,
    },
    /// An endpoint's circuit closed: it answers again.
    CircuitClosed {
        /// Whose.
        tenant: TenantId,
        /// Which.
        endpoint: DestinationId,
        /// Since when, as its row says.
        at: Timestamp,
    },
}

impl Notice {
    /// The event type.
    pub const fn event_type(&self) -> &'static str {
        match self {
            Self::EndpointDisabled { .. } => "posthaste.endpoint.disabled",
            Self::CircuitOpened { .. } => "posthaste.circuit.opened",
            Self::CircuitClosed { .. } => "posthaste.circuit.closed",
        }
    }

    /// Whose, of which endpoint, and since when.
    pub const fn about(&self) -> (TenantId, &DestinationId, Timestamp) {
        match self {
            Self::EndpointDisabled { tenant, endpoint, at, .. }
            | Self::CircuitOpened { tenant, endpoint, at, .. }
            | Self::CircuitClosed { tenant, endpoint, at } => (*tenant, endpoint, *at),
        }
    }
}

/// Who tells, once it is known how.
#[derive(Default)]
pub(crate) struct Teller {
    describe: std::sync::OnceLock<Box<Describe>>,
    wake: Notify,
}

impl Engine {
    /// Begins to tell of what went wrong; `describe` writes the payloads. Asked twice, it goes on as it is.
    ///
    /// Dead letters that an earlier process did not tell of are told of first.
    pub fn tell_by(&self, describe: Box<Describe>) {
        if self.teller.describe.set(describe).is_ok() {
            self.tasks.spawn(self.arc().run_teller());
        }
    }

    /// There may be a dead letter to tell of. A hint: the rows say so.
    pub(crate) fn tell_soon(&self) {
        self.teller.wake.notify_one();
    }

    /// Says it in the log, and to whoever subscribed to it.
    ///
    /// It is published behind the caller's back, so that nobody waits. A crash before that loses it: whoever keeps the
    /// state that it tells of says it again from its row; the same notice, with the same `at`, is published once.
    pub fn notice(&self, notice: &Notice) {
        let (tenant, endpoint, _) = notice.about();
        match notice {
            Notice::EndpointDisabled { reason, .. } => {
                tracing::error!(event = "endpoint_disabled", tenant = tenant.0, %endpoint, %reason);
            }
            Notice::CircuitOpened { until, .. } => {
                tracing::warn!(event = "circuit_opened", tenant = tenant.0, %endpoint, until_ms = until.0);
            }
            Notice::CircuitClosed { .. } => {
                tracing::info!(event = "circuit_closed", tenant = tenant.0, %endpoint);
            }
        }
        if self.directory.load().subscribers(tenant, Some(notice.event_type())).is_empty() {
            return;
        }
        let (engine, notice) = (self.arc(), notice.clone());
        self.tasks.spawn(async move {
            while let Err(error) = engine.publish_notice(&notice).await {
                tracing::warn!(event = "notice_failed", error = %error);
                tokio::select! {
                    () = engine.clock.sleep_until(engine.clock.now().after(STORE_PAUSE)) => {}
                    () = engine.stop.cancelled() => return,
                }
            }
        });
    }

    async fn publish_notice(&self, notice: &Notice) -> Result<(), EngineError> {
        let Some(describe) = self.teller.describe.get() else { return Ok(()) };
        let (tenant, endpoint, at) = notice.about();
        let event = notice.event_type();
        let key = format!("{}:{endpoint}:{}", key_of(event), at.0);
        let directory = self.directory.load_full();
        let message =
            self.operational(&directory, tenant, event, &key, None, describe(Told::Notice(notice)))?;
        self.store_operational(message.into_iter().collect()).await
    }

    async fn run_teller(self: Arc<Self>) {
        while self.on_duty().await {
            let wake_at = match self.tell_all().await {
                Ok(()) => self.clock.now().after(LOOK_EVERY),
                Err(error) => {
                    tracing::warn!(event = "telling_failed", error = %error);
                    self.clock.now().after(STORE_PAUSE)
                }
            };
            tokio::select! {
                () = self.teller.wake.notified() => {}
                () = self.clock.sleep_until(wake_at) => {}
                () = self.stop.cancelled() => return,
            }
        }
    }

    /// Tells of all dead letters that nobody was told of.
    async fn tell_all(&self) -> Result<(), EngineError> {
        loop {
            let rows = self.store.untold(BATCH).await?;
            if rows.is_empty() {
                return Ok(());
            }
            let full = rows.len() == BATCH;
            let mut messages = Vec::new();
            for row in &rows {
                messages.extend(self.messages_about(row).await?);
                let bytes: usize = messages.iter().map(|message: &NewMessage| message.payload.len()).sum();
                if bytes >= BYTES_AT_ONCE {
                    self.store_operational(std::mem::take(&mut messages)).await?;
                }
            }
            self.store_operational(messages).await?;
            // Only now: what is told twice has the same key.
            self.store.told(rows).await?;
            if !full || self.stop.is_cancelled() {
                return Ok(());
            }
        }
    }

    /// What is to be published about a dead letter: nothing where nobody listens, and nothing is read then.
    async fn messages_about(&self, row: &Untold) -> Result<Vec<NewMessage>, EngineError> {
        let directory = self.directory.load_full();
        let Some(describe) = self.teller.describe.get() else { return Ok(Vec::new()) };
        let queue = dead_letter_queue(&directory, row);
        let quarantined = row.cause.is_quarantine() && row.attempt.is_none();
        let event = if quarantined { QUARANTINED } else { DEAD_LETTERED };
        if queue.is_none() && directory.subscribers(row.tenant, Some(event)).is_empty() {
            return Ok(Vec::new());
        }
        let known = match self.known(row.tenant, row.job).await {
            Ok(known) => known,
            // One bad row never stops the others.
            Err(EngineError::Store(StoreError::Corrupt(corrupt))) => {
                tracing::error!(event = "corrupt", job = %row.job, error = %corrupt);
                None
            }
            Err(error) => return Err(error),
        };
        let Some(known) = known else { return Ok(Vec::new()) };
        let name = MessageName::Key(known.view.key.clone());
        let Some(message) = self.store.message(row.tenant, name).await? else { return Ok(Vec::new()) };
        if message.event_type.as_deref().is_some_and(is_operational) {
            return Ok(Vec::new());
        }
        let payload = describe(Told::DeadLetter { row, known: &known, message: &message });
        let key = |event: &str| format!("{}:{}:{}", key_of(event), row.job, row.at.0);
        let mut told = Vec::with_capacity(2);
        if quarantined && queue.is_some() {
            // Its own message: subscribers hear of one thing once.
            let nobody_else = Directory::default();
            let (event, payload) = (DEAD_LETTERED, payload.clone());
            let queue = queue.clone();
            told.extend(self.operational(&nobody_else, row.tenant, event, &key(event), queue, payload)?);
        }
        let beside = queue.filter(|_| !quarantined);
        told.extend(self.operational(&directory, row.tenant, event, &key(event), beside, payload)?);
        Ok(told)
    }

    /// A message to the subscribers of `event`, and `beside` them to a queue; `None` if that is nobody.
    fn operational(
        &self,
        directory: &Directory,
        tenant: TenantId,
        event: &'static str,
        key: &str,
        beside: Option<Target>,
        payload: Vec<u8>,
    ) -> Result<Option<NewMessage>, EngineError> {
        let id = self.new_message_id();
        let mut targets = resolve(directory, tenant, &PublishTo::Subscribers, Some(event), id)?;
        targets.extend(beside);
        targets.sort_by_key(|target| target.lane);
        if targets.is_empty() {
            return Ok(None);
        }
        Ok(Some(NewMessage {
            tenant,
            id,
            key: MessageKey::new(key).map_err(|error| EngineError::Name { field: "key", error })?,
            aliases: Vec::new(),
            event_type: Some(event.into()),
            source: None,
            fingerprint: Fingerprint([Fingerprint::NOT_COMPARED; 5]),
            correlation_id: id.to_string().into(),
            traceparent: None,
            content_type: Some("application/json".into()),
            headers: None,
            metadata: None,
            payload_ref: None,
            payload: Bytes::from(payload),
            due: Due::In(DurationMs::ZERO),
            targets,
        }))
    }

    async fn store_operational(&self, messages: Vec<NewMessage>) -> Result<(), EngineError> {
        let about: Vec<(TenantId, MessageKey)> =
            messages.iter().map(|message| (message.tenant, message.key.clone())).collect();
        for ((tenant, key), acceptance) in about.into_iter().zip(self.accept(messages).await?) {
            if let posthaste_store::Acceptance::New(message) = acceptance {
                tracing::info!(
                    event = "told",
                    event_key = key.as_str(),
                    tenant = tenant.0,
                    message_id = %message.id,
                    jobs = message.jobs_total,
                );
            }
        }
        Ok(())
    }
}

/// Where a dead letter's destination wants to hear of it. One that is gone is said, and the dead letter stays where it is.
fn dead_letter_queue(directory: &Directory, row: &Untold) -> Option<Target> {
    let name = match directory.at(row.tenant, row.job.lane()).map(|entry| &entry.destination) {
        Some(Destination::Endpoint(endpoint)) => endpoint.dead_letter_queue.as_ref(),
        Some(Destination::Queue(queue)) => queue.dead_letter_queue.as_ref(),
        Some(Destination::Source(source)) => source.dead_letter_queue.as_ref(),
        Some(Destination::Broken { .. }) | None => None,
    }?;
    let Some(queue) = directory.queue(row.tenant, name) else {
        tracing::error!(event = "dead_letter_queue_missing", queue = %name, job = %row.job, "make the queue");
        return None;
    };
    Some(Target {
        lane: queue.lane,
        destination: queue.id.clone(),
        kind: posthaste_core::Kind::Pull,
        wire_id: None,
        owner: queue.owner.clone(),
    })
}

/// `posthaste.job.dead_lettered` as a key begins: `posthaste:job.dead_lettered`.
fn key_of(event: &str) -> String {
    event.replacen('.', ":", 1)
}
