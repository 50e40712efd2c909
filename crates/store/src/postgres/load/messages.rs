//! Messages, here or archived, and their names.

use std::collections::BTreeMap;

use posthaste_core::{JobId, MessageId, MessageKey, TenantId};
use tokio_postgres::Row;

use super::family;
use crate::{
    KeyKind,
    memory::tables::{FanOut, Message},
    postgres::{
        decode,
        fault::Fault,
        session::{Session, keep},
    },
};

/// The names of a message, as far as they are kept beside it.
#[derive(Default)]
pub(super) struct Names {
    pub(super) duplicates: u64,
    pub(super) others: BTreeMap<MessageKey, KeyKind>,
}

impl Session<'_> {
    /// Keeps messages without their payloads.
    pub(super) fn keep_thin(&mut self, rows: &[Row]) {
        for (at, message) in rows.iter().filter_map(read) {
            if !self.base.messages.contains_key(&at) {
                self.tables.unread.insert(at);
                self.base.messages.insert(at, message.clone());
                self.tables.messages.insert(at, message);
            }
        }
    }

    /// Keeps messages with their payloads.
    pub(super) fn keep_bodies<'r>(&mut self, rows: impl IntoIterator<Item = &'r Row>) {
        for (at, message) in rows.into_iter().filter_map(read) {
            if self.tables.unread.remove(&at) {
                for tables in [&mut self.base, &mut self.tables] {
                    if let Some(known) = tables.messages.get_mut(&at) {
                        known.given = message.given.clone();
                    }
                }
            } else {
                keep(&mut self.base.messages, &mut self.tables.messages, at, message);
            }
        }
    }

    pub(super) fn keep_archived(&mut self, rows: &[Row]) -> Result<(), Fault> {
        for row in rows {
            let (at, archived) = decode::archived(row)?;
            keep(&mut self.base.archived, &mut self.tables.archived, at, archived);
        }
        Ok(())
    }

    /// Keeps which fan-outs are running; their targets are not here.
    pub(super) fn keep_running(&mut self, rows: &[Row]) -> Result<(), Fault> {
        for row in rows {
            let seq = decode::count(row, 0)?;
            let (tenant, message) = (decode::tenant(row, 1)?, MessageId(decode::id(row, 2)?));
            let due_at = posthaste_core::Timestamp(0);
            let running = FanOut { tenant, message, due_at, targets: Vec::new(), made: 0, held_by: None };
            keep(&mut self.base.fanouts, &mut self.tables.fanouts, seq, running);
        }
        Ok(())
    }

    pub(super) fn keep_name(&mut self, row: &Row) -> Result<(TenantId, MessageId), Fault> {
        let ((tenant, key), _, message, _) = decode::key(row)?;
        keep(&mut self.base.names, &mut self.tables.names, (tenant, key), message);
        Ok((tenant, message))
    }

    /// Tells messages their names.
    pub(super) fn keep_names_of(&mut self, names: BTreeMap<(TenantId, MessageId), Names>) {
        for (at, Names { duplicates, others }) in names {
            for tables in [&mut self.base, &mut self.tables] {
                if let Some(message) = tables.messages.get_mut(&at) {
                    (message.duplicates, message.others) = (duplicates, others.clone());
                }
                if let Some(archived) = tables.archived.get_mut(&at) {
                    let aliases = others.iter().map(|(key, kind)| (*kind, key.clone()));
                    (archived.known.duplicates, archived.known.aliases) = (duplicates, aliases.collect());
                }
            }
        }
    }

    /// Whether the message of a job is here.
    pub(super) fn has_message_of(&self, tenant: TenantId, job: JobId) -> bool {
        self.message_id_of(tenant, job).is_some()
    }

    pub(super) fn message_id_of(&self, tenant: TenantId, job: JobId) -> Option<MessageId> {
        let (first, last) = family(job);
        let mut range =
            self.tables.messages.range((tenant, MessageId(first.0))..=(tenant, MessageId(last.0)));
        range.next().map(|((_, id), _)| *id)
    }
}

/// A message; one that can't be read is said once, and then missing.
fn read(row: &Row) -> Option<((TenantId, MessageId), Message)> {
    match decode::message(row) {
        Ok((tenant, id, message)) => Some(((tenant, id), message)),
        Err(fault) => {
            tracing::error!(%fault, "a message can't be read and is left alone");
            None
        }
    }
}

/// Adds the other names of messages to what is known of them.
pub(super) fn add_others(
    names: &mut BTreeMap<(TenantId, MessageId), Names>,
    rows: &[Row],
) -> Result<(), Fault> {
    for row in rows {
        let ((tenant, key), kind, message, _) = decode::key(row)?;
        names.entry((tenant, message)).or_default().others.insert(key, kind);
    }
    Ok(())
}
