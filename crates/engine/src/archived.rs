//! The timeline of a message that left the store: read from the archive, or from what is still known of it. Row C9.

use posthaste_core::{DestinationId, MessageKey, TenantId};
use posthaste_store::{ArchivedMessage, CustodyEntry, JobView, MessageName, MessageView, Stage};
use serde_json::json;

use crate::{
    Engine, EngineError, Timeline, TimelineEntry,
    archive::{ArchiveError, Record},
    timeline::{blank, detail, entries, summary},
};

/// What could be read of a message that left.
enum Read {
    /// All of it.
    Whole(Box<MessageView>, Vec<JobView>, Vec<CustodyEntry>),
    /// Nothing: why, for the operator.
    Nothing(String),
}

impl Engine {
    /// The timeline of an archived key, or of any other name of its message.
    pub(crate) async fn archived_timeline(
        &self,
        tenant: TenantId,
        key: &MessageKey,
        destination: Option<&DestinationId>,
    ) -> Result<Option<Timeline>, EngineError> {
        let Some(known) = self.store.archived(tenant, MessageName::Key(key.clone())).await? else {
            return Ok(None);
        };
        // What came after it left: duplicates.
        let later = self.store.custody(tenant, known.id).await?;
        let (mut message, mut jobs, mut custody, problem) = match self.read_archived(&known).await {
            Read::Whole(message, jobs, custody) => (message, jobs, custody, None),
            Read::Nothing(problem) => (Box::new(bare(&known)), Vec::new(), Vec::new(), Some(problem)),
        };
        message.duplicates = known.duplicates;
        message.aliases.clone_from(&known.aliases);
        custody.extend(later);
        if let Some(destination) = destination {
            jobs.retain(|view| view.destination == *destination);
        }
        let mut effects = Vec::with_capacity(jobs.len());
        for view in &jobs {
            effects.push(self.effects_of(tenant, view).await?);
        }
        let mut all = entries(&message, &jobs, &custody);
        all.push(archived_entry(&known, problem.as_deref()));
        all.sort_by_key(|entry| entry.at);
        let summary = match &problem {
            None => format!("{}; archived", summary(&message, &jobs, &effects)),
            Some(problem) => format!("archived, and its history can't be shown: {problem}"),
        };
        Ok(Some(Timeline { message: *message, summary, jobs, effects, entries: all }))
    }

    async fn read_archived(&self, known: &ArchivedMessage) -> Read {
        let Some(place) = &known.place else {
            return Read::Nothing("it was given up, as `retention.archive = \"none\"` says".to_owned());
        };
        match self.recall(place).await {
            Ok(Record::Message(record)) if record.message.id == known.id => {
                Read::Whole(Box::new(record.message), record.jobs, record.custody)
            }
            Ok(_) => {
                let file = place.file.to_string();
                let problem = "another record is where this one was".to_owned();
                Read::Nothing(
                    ArchiveError::Damaged { place: "the archive".into(), file, problem }.to_string(),
                )
            }
            Err(error) => Read::Nothing(error.to_string()),
        }
    }
}

/// What is known without the archive.
fn bare(known: &ArchivedMessage) -> MessageView {
    MessageView {
        id: known.id,
        key: known.key.clone(),
        aliases: Vec::new(),
        event_type: None,
        source: None,
        accepted_at: known.accepted_at,
        jobs_total: known.jobs_total,
        fanout_running: false,
        duplicates: 0,
        correlation_id: known.correlation_id.clone(),
        traceparent: None,
        content_type: None,
        headers: None,
        metadata: None,
        payload_ref: None,
        payload_bytes: 0,
    }
}

fn archived_entry(known: &ArchivedMessage, problem: Option<&str>) -> TimelineEntry {
    let place = known.place.as_ref();
    TimelineEntry {
        detail: detail(json!({
            "file": place.map(|place| &place.file),
            "at_byte": place.map(|place| place.at_byte),
            "problem": problem,
        })),
        ..blank(known.archived_at, Stage::Archived)
    }
}
