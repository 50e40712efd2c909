//! Reading messages, custody, configuration and counts.

use bytes::Bytes;
use posthaste_core::{Attempt, JobId, MessageId, MessageKey, StateName, TenantId};
use rusqlite::{Params, Statement, params};

use super::{
    cells::{Cells, signed},
    fault::Fault,
    readers::ReadSession,
};
use crate::{
    ApiKeyRow, CustodyEntry, DestinationRow, KeyKind, MessageName, MessageView, Stage, StateCount,
    rows::{self, words},
};

/// Custody entries in one answer.
const CUSTODY_MAX: usize = 1_000;

/// A payload and its media type.
pub(super) type Payload = (Bytes, Option<Box<str>>);

/// The first cell of the first row, if there is one.
pub(super) fn one_number(statement: &mut Statement<'_>, at: impl Params) -> Result<Option<u64>, Fault> {
    let mut rows = statement.query(at)?;
    match rows.next()? {
        Some(row) => Ok(Some(Cells::of(row, 0).int()?)),
        None => Ok(None),
    }
}

impl ReadSession<'_> {
    pub(super) fn message(
        &mut self,
        (tenant, name, recent): &(TenantId, MessageName, Option<i64>),
    ) -> Result<Option<MessageView>, Fault> {
        let id = match name {
            MessageName::Id(id) => *id,
            MessageName::Key(key) => {
                let Some(id) = self.message_named(*tenant, key, *recent)? else { return Ok(None) };
                id
            }
        };
        let Some(mut view) = self.bare_message(*tenant, id)? else { return Ok(None) };
        view.duplicates = self.duplicates(*tenant, &view.key)?;
        view.aliases = self.other_names(*tenant, id)?;
        Ok(Some(view))
    }

    fn bare_message(&mut self, tenant: TenantId, id: MessageId) -> Result<Option<MessageView>, Fault> {
        let mut rows = self.sql.messages_view.query(params![tenant.0, id.0.to_be_bytes()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let mut cells = Cells::of(row, id.0);
        let mut view = MessageView {
            id,
            key: cells.key()?,
            aliases: Vec::new(),
            event_type: cells.maybe_text()?,
            source: cells.maybe_destination()?,
            accepted_at: cells.at()?,
            jobs_total: cells.int()?,
            fanout_running: false,
            duplicates: 0,
            correlation_id: cells.text()?,
            traceparent: cells.maybe_text()?,
            content_type: cells.maybe_text()?,
            headers: cells.maybe_text()?,
            metadata: cells.maybe_text()?,
            payload_ref: cells.maybe_text()?,
            payload_bytes: cells.int()?,
        };
        view.fanout_running = cells.flag()?;
        Ok(Some(view))
    }

    /// `recent` is where the name was before this read's snapshot was taken, unless it was in `keys`.
    pub(super) fn message_named(
        &mut self,
        tenant: TenantId,
        key: &MessageKey,
        recent: Option<i64>,
    ) -> Result<Option<MessageId>, Fault> {
        let mut rows = self.sql.keys_find.query(params![tenant.0, key.as_str()])?;
        if let Some(row) = rows.next()? {
            return Ok(Some(Cells::of(row, 0).message_id()?));
        }
        let Some(recent) = recent else { return Ok(None) };
        let mut rows = self.sql.keys_new_find.query(params![recent, tenant.0, key.as_str()])?;
        match rows.next()? {
            Some(row) => Ok(Some(Cells::of(row, 0).message_id()?)),
            None => Ok(None),
        }
    }

    fn duplicates(&mut self, tenant: TenantId, key: &MessageKey) -> Result<u64, Fault> {
        let name = params![tenant.0, key.as_str()];
        if let Some(duplicates) = one_number(&mut self.sql.keys_duplicates, name)? {
            return Ok(duplicates);
        }
        if let Some(row) = self.recent.row_of(tenant, key) {
            let at = params![row, tenant.0, key.as_str()];
            if let Some(duplicates) = one_number(&mut self.sql.keys_new_duplicates, at)? {
                return Ok(duplicates);
            }
        }
        let found = one_number(&mut self.sql.keys_new_duplicates_anywhere, name)?;
        found.ok_or(Fault::Invariant("a message's key is missing"))
    }

    fn other_names(&mut self, tenant: TenantId, id: MessageId) -> Result<Vec<(KeyKind, MessageKey)>, Fault> {
        let mut rows = self.sql.keys_of_message.query(params![tenant.0, id.0.to_be_bytes()])?;
        let mut names = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, id.0);
            names.push((cells.word(words::key_kind)?, cells.key()?));
        }
        Ok(names)
    }

    pub(super) fn payload(&mut self, (tenant, id): &(TenantId, MessageId)) -> Result<Option<Payload>, Fault> {
        let mut rows = self.sql.messages_payload.query(params![tenant.0, id.0.to_be_bytes()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        let mut cells = Cells::of(row, id.0);
        Ok(Some((Bytes::copy_from_slice(cells.bytes()?), cells.maybe_text()?)))
    }

    pub(super) fn custody(
        &mut self,
        (tenant, message): &(TenantId, MessageId),
    ) -> Result<Vec<CustodyEntry>, Fault> {
        let at = params![tenant.0, message.0.to_be_bytes(), signed(CUSTODY_MAX)];
        let mut rows = self.sql.custody_of_message.query(at)?;
        let mut entries = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, message.0);
            entries.push(CustodyEntry {
                tenant: *tenant,
                message: *message,
                job: cells.maybe_id()?.map(JobId),
                at: cells.at()?,
                stage: cells.word(Stage::parse)?,
                attempt: cells.maybe_int()?.and_then(Attempt::new),
                actor: cells.maybe_text()?,
                detail: cells.maybe_text()?,
            });
        }
        Ok(entries)
    }

    pub(super) fn tenants(&mut self) -> Result<Vec<(TenantId, Box<str>)>, Fault> {
        let mut rows = self.sql.tenants_list.query([])?;
        let mut tenants = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, 0);
            tenants.push((TenantId(cells.int()?), cells.text()?));
        }
        Ok(tenants)
    }

    pub(super) fn destinations(&mut self) -> Result<Vec<DestinationRow>, Fault> {
        let mut rows = self.sql.destinations_list.query([])?;
        let mut destinations = Vec::new();
        while let Some(row) = rows.next()? {
            destinations.push(rows::configured::destination(&mut Cells::of(row, 0))?);
        }
        Ok(destinations)
    }

    pub(super) fn api_keys(&mut self) -> Result<Vec<ApiKeyRow>, Fault> {
        let mut rows = self.sql.api_keys_list.query([])?;
        let mut keys = Vec::new();
        while let Some(row) = rows.next()? {
            keys.push(rows::configured::api_key(&mut Cells::of(row, 0))?);
        }
        Ok(keys)
    }

    pub(super) fn counts(&mut self) -> Result<Vec<StateCount>, Fault> {
        let mut rows = self.sql.counts_list.query([])?;
        let mut counts = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, 0);
            counts.push(StateCount {
                tenant: TenantId(cells.int()?),
                state: cells.word(StateName::parse)?,
                jobs: cells.int()?,
            });
        }
        counts.sort_unstable_by_key(|count| (count.tenant, count.state));
        Ok(counts)
    }
}
