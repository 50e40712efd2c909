//! One line of the archive: JSON, everything that a timeline needs, and nothing that only this version understands.
//!
//! Times are Unix milliseconds; bytes are base64; states, outcomes and classes are the contract's words. A message's
//! texts are kept as they were given. What is written is read back and compared before anything is deleted.

use super::{
    cells::{decoded, destination, encoded, key, key_kind, maybe_decoded, maybe_word, word},
    wire::{
        AttemptLine, CustodyLine, DetailsLine, EntryLine, JobLine, LateLine, Line, MessageLine, NameLine,
        ReportLine,
    },
};
use bytes::Bytes;
use posthaste_core::{
    Attempt, AttemptEnd, AttemptOutcome, Cause, Class, Details, DurationMs, Effect, EventId, Evidence, Job,
    JobId, JobRow, Kind, LateReport, MessageId, MessageKey, NextStep, Path, Report, RetryWish, Share,
    StateName, TenantId, Timestamp,
};
use posthaste_store::{
    AttemptView, CustodyEntry, EntryRecord, Fingerprint, JobView, KeyKind, MessageRecord, MessageView, Stage,
    policy_line,
};

/// The version of the form.
pub(super) const VERSION: u32 = 1;

/// What a line holds.
#[derive(Clone, Debug, PartialEq)]
pub enum Record {
    /// A message with its jobs, attempts and custody.
    Message(Box<MessageRecord>),
    /// An entry of the ledger.
    Entry(Box<EntryRecord>),
}

/// A line that can't be understood.
#[derive(Debug, thiserror::Error)]
pub enum LineError {
    /// It is no JSON, or not of this form.
    #[error("the line is not of this form: {0}")]
    Form(#[from] serde_json::Error),
    /// It is of a later version.
    #[error("the line is of version {0}, which a later posthaste wrote")]
    Version(u32),
    /// A value is none of its kind.
    #[error("`{field}` is not understood")]
    Value {
        /// Which.
        field: &'static str,
    },
}

pub(super) fn bad(field: &'static str) -> LineError {
    LineError::Value { field }
}

impl Record {
    /// The line, with its end. `tenant` is the tenant's name, for people who search.
    pub fn to_line(&self, tenant: &str) -> Vec<u8> {
        let line = match self {
            Self::Message(record) => Line::Message(Box::new(MessageLine::of(record, tenant))),
            Self::Entry(record) => Line::Entry(Box::new(EntryLine::of(record, tenant))),
        };
        let mut bytes = serde_json::to_vec(&line).expect("a line is plain data");
        bytes.push(b'\n');
        bytes
    }

    /// Reads a line. Errors: what is not understood.
    pub fn from_line(line: &[u8]) -> Result<Self, LineError> {
        match serde_json::from_slice(line)? {
            Line::Message(line) => line.read().map(Box::new).map(Self::Message),
            Line::Entry(line) => line.read().map(Box::new).map(Self::Entry),
        }
    }

    /// Its key.
    pub fn key(&self) -> &str {
        match self {
            Self::Message(record) => record.message.key.as_str(),
            Self::Entry(record) => record.entry.key.as_str(),
        }
    }

    /// Whose.
    pub fn tenant(&self) -> TenantId {
        match self {
            Self::Message(record) => record.tenant,
            Self::Entry(record) => record.tenant,
        }
    }
}

pub(super) fn check_version(version: u32) -> Result<(), LineError> {
    if version == VERSION { Ok(()) } else { Err(LineError::Version(version)) }
}

impl MessageLine {
    fn of(record: &MessageRecord, tenant_name: &str) -> Self {
        let MessageView {
            id,
            key,
            aliases,
            event_type,
            source,
            accepted_at,
            jobs_total: _,
            fanout_running: _,
            duplicates,
            correlation_id,
            traceparent,
            content_type,
            headers,
            metadata,
            payload_ref,
            payload_bytes: _,
        } = record.message.clone();
        let name = |(kind, key): (KeyKind, MessageKey)| NameLine {
            kind: kind.as_str().into(),
            key: key.as_str().into(),
        };
        Self {
            version: VERSION,
            tenant: record.tenant.0,
            tenant_name: tenant_name.into(),
            id: id.to_string().into(),
            key: key.as_str().into(),
            aliases: aliases.into_iter().map(name).collect(),
            r#type: event_type,
            source: source.map(|source| source.as_str().into()),
            accepted_at: accepted_at.0,
            correlation_id,
            traceparent,
            content_type,
            headers,
            metadata,
            payload_ref,
            payload_base64: encoded(&record.payload),
            fingerprint_base64: encoded(record.fingerprint.0.as_flattened()),
            duplicates,
            jobs: record.jobs.iter().map(JobLine::of).collect(),
            custody: record.custody.iter().map(CustodyLine::of).collect(),
        }
    }

    fn read(self) -> Result<MessageRecord, LineError> {
        check_version(self.version)?;
        let tenant = TenantId(self.tenant);
        let id = MessageId::parse(&self.id).ok_or(bad("id"))?;
        let message_key = key("key", &self.key)?;
        let payload = Bytes::from(decoded("payload_base64", &self.payload_base64)?);
        let prints = decoded("fingerprint_base64", &self.fingerprint_base64)?;
        let mut fingerprint = Fingerprint([[0; 16]; 5]);
        if prints.len() != fingerprint.0.as_flattened().len() {
            return Err(bad("fingerprint_base64"));
        }
        fingerprint.0.as_flattened_mut().copy_from_slice(&prints);
        let alias = |name: NameLine| Ok((word("kind", &name.kind, key_kind)?, key("key", &name.key)?));
        let job = |line: JobLine| line.read(tenant, &message_key);
        let jobs = self.jobs.into_iter().map(job).collect::<Result<Vec<_>, LineError>>()?;
        let custody = self.custody.into_iter().map(|line| line.read(tenant, id));
        let message = MessageView {
            id,
            key: message_key.clone(),
            aliases: self.aliases.into_iter().map(alias).collect::<Result<_, LineError>>()?,
            event_type: self.r#type,
            source: self.source.map(|source| destination("source", &source)).transpose()?,
            accepted_at: Timestamp(self.accepted_at),
            jobs_total: jobs.len(),
            fanout_running: false,
            duplicates: self.duplicates,
            correlation_id: self.correlation_id,
            traceparent: self.traceparent,
            content_type: self.content_type,
            headers: self.headers,
            metadata: self.metadata,
            payload_ref: self.payload_ref,
            payload_bytes: payload.len(),
        };
        let custody = custody.collect::<Result<_, LineError>>()?;
        Ok(MessageRecord { tenant, message, fingerprint, payload, jobs, custody })
    }
}

impl JobLine {
    fn of(view: &JobView) -> Self {
        let (row, _) = view.job.to_rows();
        Self {
            id: view.job.id.to_string().into(),
            event_id: EventId::of(&view.key, &view.destination).as_str().into(),
            destination: view.destination.as_str().into(),
            kind: row.kind.as_str().into(),
            state: row.state.as_str().into(),
            share: row.share.as_str().into(),
            settled_at: row.settled_at,
            cause: row.cause.map(|cause| cause.as_str().into()),
            evidence: row.evidence.map(|evidence| evidence.as_str().into()),
            attempt: row.attempt,
            failed_before: row.failed_before,
            created_at: row.created_at,
            scheduled_at: row.scheduled_at,
            started_at: row.started_at,
            failures: row.failures,
            lost_leases: row.lost_leases,
            uncharged: row.uncharged,
            budget_since: row.budget_since,
            budget_held_ms: row.budget_held_ms,
            reason: row.reason,
            cancel_requested: row.cancel_requested,
            abandon: row.abandon.map(|cause| cause.as_str().into()),
            commit_heard: row.commit_heard,
            evidence_floor: row.evidence_floor,
            checkpoint_base64: row.checkpoint.as_deref().map(encoded),
            wire_id: view.wire_id.clone(),
            owner: view.owner.clone(),
            attempts: view.attempts.iter().map(AttemptLine::of).collect(),
        }
    }

    fn read(self, tenant: TenantId, key: &MessageKey) -> Result<JobView, LineError> {
        let id = JobId::parse(&self.id).ok_or(bad("job.id"))?;
        let row = JobRow {
            tenant: tenant.0,
            id: id.0,
            kind: word("job.kind", &self.kind, Kind::parse)?,
            state: word("job.state", &self.state, StateName::parse)?,
            due_at: None,
            next_step: None::<NextStep>,
            settled_at: self.settled_at,
            cause: maybe_word("cause", self.cause.as_deref(), Cause::parse)?,
            evidence: maybe_word("evidence", self.evidence.as_deref(), Evidence::parse)?,
            share: word("share", &self.share, Share::parse)?,
            attempt: self.attempt,
            failed_before: self.failed_before,
            created_at: self.created_at,
            scheduled_at: self.scheduled_at,
            started_at: self.started_at,
            failures: self.failures,
            lost_leases: self.lost_leases,
            uncharged: self.uncharged,
            budget_since: self.budget_since,
            budget_held_ms: self.budget_held_ms,
            reason: self.reason,
            cancel_requested: self.cancel_requested,
            abandon: maybe_word("abandon", self.abandon.as_deref(), Cause::parse)?,
            commit_heard: self.commit_heard,
            evidence_floor: self.evidence_floor,
            checkpoint: maybe_decoded("checkpoint_base64", self.checkpoint_base64.as_deref())?,
        };
        let attempts = self.attempts.into_iter().map(AttemptLine::read);
        Ok(JobView {
            job: Job::from_rows(row, None).map_err(|corrupt| bad(corrupt.what))?,
            key: key.clone(),
            destination: destination("destination", &self.destination)?,
            wire_id: self.wire_id,
            owner: self.owner,
            attempts: attempts.collect::<Result<_, _>>()?,
        })
    }
}

impl AttemptLine {
    fn of(view: &AttemptView) -> Self {
        let end = &view.end;
        Self {
            attempt: end.attempt.get(),
            kind: end.kind.as_str().into(),
            path: end.path.as_str().into(),
            worker: end.worker.clone(),
            due_at: end.due_at.0,
            leased_at: end.leased_at.0,
            started_at: end.started_at.map(|at| at.0),
            finished_at: end.finished_at.0,
            report: ReportLine::of(end.report),
            reported: end.reported,
            state: end.state.as_str().into(),
            next_at: end.next_at.map(|at| at.0),
            policy: (*end.policy).into(),
            details: DetailsLine::of(&end.details),
            commit_heard_at: view.commit_heard_at.map(|at| at.0),
            late: view.late.as_ref().map(|late| LateLine {
                at: late.at.0,
                report: ReportLine::of(late.report),
                state: late.state.as_str().into(),
                next_at: late.next_at.map(|at| at.0),
                accepted: late.accepted,
                details: DetailsLine::of(&late.details),
            }),
        }
    }

    fn read(self) -> Result<AttemptView, LineError> {
        let attempt = Attempt::new(self.attempt).ok_or(bad("attempt"))?;
        let end = AttemptEnd {
            attempt,
            kind: word("attempt.kind", &self.kind, Kind::parse)?,
            path: word("path", &self.path, Path::parse)?,
            worker: self.worker,
            due_at: Timestamp(self.due_at),
            leased_at: Timestamp(self.leased_at),
            started_at: self.started_at.map(Timestamp),
            finished_at: Timestamp(self.finished_at),
            report: self.report.read()?,
            reported: self.reported,
            state: word("attempt.state", &self.state, StateName::parse)?,
            next_at: self.next_at.map(Timestamp),
            policy: policy_line(&self.policy),
            details: self.details.read()?,
        };
        let late = |late: LateLine| {
            Ok::<_, LineError>(LateReport {
                attempt,
                at: Timestamp(late.at),
                report: late.report.read()?,
                state: word("late.state", &late.state, StateName::parse)?,
                next_at: late.next_at.map(Timestamp),
                accepted: late.accepted,
                details: late.details.read()?,
            })
        };
        let late = self.late.map(late).transpose()?;
        Ok(AttemptView { end, late, commit_heard_at: self.commit_heard_at.map(Timestamp) })
    }
}

impl ReportLine {
    fn of(report: Report) -> Self {
        Self {
            outcome: report.outcome.as_str().into(),
            class: report.class.map(|class| class.as_str().into()),
            effect: report.effect.as_str().into(),
            wish: report.wish.map(|wish| wish.as_str().into()),
        }
    }

    fn read(self) -> Result<Report, LineError> {
        Ok(Report {
            outcome: word("outcome", &self.outcome, AttemptOutcome::parse)?,
            class: maybe_word("class", self.class.as_deref(), Class::parse)?,
            effect: word("effect", &self.effect, Effect::parse)?,
            wish: maybe_word("wish", self.wish.as_deref(), RetryWish::parse)?,
        })
    }
}

impl DetailsLine {
    fn of(details: &Details) -> Self {
        Self {
            status: details.status,
            duration_ms: details.duration.map(|duration| duration.0),
            code: details.code.clone(),
            message: details.message.clone(),
            excerpt_base64: details.excerpt.as_deref().map(encoded),
            result_base64: details.result.as_deref().map(encoded),
        }
    }

    fn read(self) -> Result<Details, LineError> {
        Ok(Details {
            status: self.status,
            duration: self.duration_ms.map(DurationMs),
            code: self.code,
            message: self.message,
            excerpt: maybe_decoded("excerpt_base64", self.excerpt_base64.as_deref())?,
            result: maybe_decoded("result_base64", self.result_base64.as_deref())?,
        })
    }
}

impl CustodyLine {
    fn of(entry: &CustodyEntry) -> Self {
        Self {
            job: entry.job.map(|job| job.to_string().into()),
            at: entry.at.0,
            stage: entry.stage.as_str().into(),
            attempt: entry.attempt.map(Attempt::get),
            actor: entry.actor.clone(),
            detail: entry.detail.clone(),
        }
    }

    fn read(self, tenant: TenantId, message: MessageId) -> Result<CustodyEntry, LineError> {
        Ok(CustodyEntry {
            tenant,
            message,
            job: maybe_word("custody.job", self.job.as_deref(), JobId::parse)?,
            at: Timestamp(self.at),
            stage: word("stage", &self.stage, Stage::parse)?,
            attempt: self.attempt.and_then(Attempt::new),
            actor: self.actor,
            detail: self.detail,
        })
    }
}
