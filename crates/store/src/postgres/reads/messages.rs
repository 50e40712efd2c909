//! Messages, and what stands in no other row of them.

use std::collections::BTreeMap;

use bytes::Bytes;
use posthaste_core::{MessageId, MessageKey, TenantId};
use tokio_postgres::Row;

use super::statements;
use crate::{
    CustodyEntry, KeyKind, MessageName, MessageView,
    memory::{read::CUSTODY_MAX, tables::Message},
    postgres::{columns::MESSAGE_COLUMNS, decode, fault::Fault, params::Param, session::Session},
    rows::cells::Cells,
};

/// A message without what its names tell.
pub(super) struct Bare {
    pub(super) tenant: TenantId,
    pub(super) message: Message,
    pub(super) payload_bytes: usize,
    pub(super) fanout_running: bool,
}

pub(crate) async fn message(
    session: &Session<'_>,
    tenant: TenantId,
    name: &MessageName,
) -> Result<Option<MessageView>, Fault> {
    let (message, names) = match name {
        MessageName::Id(_) => (statements::MESSAGE, statements::NAMES),
        MessageName::Key(_) => (statements::MESSAGE_NAMED, statements::NAMES_NAMED),
    };
    let params = named(tenant, name);
    let (rows, names) = tokio::try_join!(session.rows(message, &params), session.rows(names, &params))?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut bare = bare(row)?;
    bare.message.others = others(&names)?;
    Ok(Some(bare.view()))
}

/// Where something is that has an id and names.
pub(super) fn named(tenant: TenantId, name: &MessageName) -> [Param; 2] {
    let name = match name {
        MessageName::Id(id) => Param::id(id.0),
        MessageName::Key(key) => Param::text(key.as_str()),
    };
    [Param::int(tenant.0), name]
}

/// The names of one message, in the order of their bytes.
pub(super) fn others(rows: &[Row]) -> Result<BTreeMap<MessageKey, KeyKind>, Fault> {
    let name = |row| {
        let ((_, key), kind, ..) = decode::key(row)?;
        Ok((key, kind))
    };
    rows.iter().map(name).collect()
}

pub(super) fn bare(row: &Row) -> Result<Bare, Fault> {
    let (tenant, _, mut message) = decode::message(row)?;
    let mut cells = Cells::from(row, message.given.id.0, MESSAGE_COLUMNS);
    let payload_bytes = cells.int()?;
    let fanout_running = decode::flag(row, MESSAGE_COLUMNS + 1)?;
    let duplicates = decode::maybe_int(row, MESSAGE_COLUMNS + 2)?;
    let duplicates = duplicates.ok_or(Fault::Invariant("a message's key is missing"))?;
    message.duplicates = duplicates.unsigned_abs();
    Ok(Bare { tenant, message, payload_bytes, fanout_running })
}

impl Bare {
    pub(super) fn view(&self) -> MessageView {
        let view = self.message.view(self.message.given.id, self.fanout_running);
        MessageView { payload_bytes: self.payload_bytes, ..view }
    }
}

#[allow(clippy::type_complexity)] // as in the seam
pub(crate) async fn payload(
    session: &Session<'_>,
    tenant: TenantId,
    message: MessageId,
) -> Result<Option<(Bytes, Option<Box<str>>)>, Fault> {
    let rows = session.rows(statements::PAYLOAD, &[Param::int(tenant.0), Param::id(message.0)]).await?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut cells = Cells::of(row, message.0);
    Ok(Some((Bytes::copy_from_slice(cells.bytes()?), cells.maybe_text()?)))
}

pub(crate) async fn custody(
    session: &Session<'_>,
    tenant: TenantId,
    message: MessageId,
) -> Result<Vec<CustodyEntry>, Fault> {
    let params = [Param::int(tenant.0), Param::id(message.0), Param::int(CUSTODY_MAX)];
    session.rows(statements::CUSTODY, &params).await?.iter().map(decode::custody).collect()
}
