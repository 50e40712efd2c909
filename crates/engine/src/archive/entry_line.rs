//! An entry of the ledger as a line.

use bytes::Bytes;
use posthaste_core::{
    Class, EventId, Path, TenantId, Timestamp,
    ledger::{Entry, OnExpired, Outcome, Previous, Status},
};
use posthaste_store::{EntryRecord, LedgerEntry, ResetNote, StoredResult};

use super::{
    cells::{encoded, maybe_decoded, maybe_word, word},
    lines::{LineError, VERSION, bad, check_version},
    wire::{EntryLine, ResetLine},
};

impl EntryLine {
    pub(super) fn of(record: &EntryRecord, tenant_name: &str) -> Self {
        let LedgerEntry { key, entry, result, class, message, created_at, updated_at, reset, .. } =
            &record.entry;
        Self {
            version: VERSION,
            tenant: record.tenant.0,
            tenant_name: tenant_name.into(),
            key: key.as_str().into(),
            status: entry.status.as_str().into(),
            fence: entry.fence,
            attempts: entry.attempts,
            locked_until: entry.locked_until.0,
            fingerprint_base64: entry.fingerprint.as_deref().map(encoded),
            claim_id: entry.claim_id.clone(),
            path: entry.path.as_str().into(),
            previous: entry.previous.as_str().into(),
            on_expired: entry.on_expired.as_str().into(),
            outcome: entry.outcome.map(|outcome| outcome.as_str().into()),
            result_base64: result.bytes.as_deref().map(encoded),
            content_type: result.content_type.clone(),
            result_status: result.status,
            class: class.map(|class| class.as_str().into()),
            message: message.clone(),
            created_at: created_at.0,
            updated_at: updated_at.0,
            reset: reset.as_ref().map(|reset| ResetLine {
                at: reset.at.0,
                by: reset.by.clone(),
                reason: reset.reason.clone(),
            }),
        }
    }

    pub(super) fn read(self) -> Result<EntryRecord, LineError> {
        check_version(self.version)?;
        let entry = Entry {
            status: word("status", &self.status, Status::parse)?,
            fence: self.fence,
            attempts: self.attempts,
            locked_until: Timestamp(self.locked_until),
            fingerprint: maybe_decoded("fingerprint_base64", self.fingerprint_base64.as_deref())?,
            claim_id: self.claim_id,
            path: word("path", &self.path, Path::parse)?,
            previous: word("previous", &self.previous, Previous::parse)?,
            on_expired: word("on_expired", &self.on_expired, OnExpired::parse)?,
            outcome: maybe_word("outcome", self.outcome.as_deref(), Outcome::parse)?,
        };
        let bytes = maybe_decoded("result_base64", self.result_base64.as_deref())?;
        let entry = LedgerEntry {
            key: EventId::new(&self.key).map_err(|_| bad("key"))?,
            entry,
            result: StoredResult {
                bytes: bytes.map(Bytes::from),
                content_type: self.content_type,
                status: self.result_status,
            },
            class: maybe_word("class", self.class.as_deref(), Class::parse)?,
            message: self.message,
            created_at: Timestamp(self.created_at),
            updated_at: Timestamp(self.updated_at),
            reset: self.reset.map(|reset| ResetNote {
                at: Timestamp(reset.at),
                by: reset.by,
                reason: reset.reason,
            }),
            of_job: None,
            result_at: None,
        };
        Ok(EntryRecord { tenant: TenantId(self.tenant), entry })
    }
}
