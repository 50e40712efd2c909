//! Names, messages, and jobs that are still to be made.

use posthaste_core::{DestinationId, MessageId, MessageKey, TenantId};

use super::write::Write;
use crate::{
    KeyKind,
    memory::tables::{Message, Tables},
    postgres::{
        fault::Fault,
        params::Param,
        session::{Session, diff},
    },
    targets,
};

/// A name that is new.
struct Name<'t> {
    tenant: TenantId,
    key: &'t MessageKey,
    kind: KeyKind,
    message: MessageId,
    duplicates: u64,
}

impl Session<'_> {
    /// Claims new names, and counts what came again at the names of messages that were known.
    pub(super) fn write_names(&self, writes: &mut Vec<Write>) -> Result<(), Fault> {
        let diff = diff(&self.base.names, &self.tables.names, PartialEq::eq);
        let new = diff.new.into_iter().map(|((tenant, key), message)| self.name(*tenant, key, *message));
        let new: Vec<Name<'_>> = new.collect::<Result<_, _>>()?;
        if !new.is_empty() {
            let params = vec![
                Param::ints(new.iter().map(|name| name.tenant.0)),
                Param::texts(new.iter().map(|name| name.key.as_str())),
                Param::texts(new.iter().map(|name| name.kind.as_str())),
                Param::ids(new.iter().map(|name| name.message.0)),
                Param::ints(new.iter().map(|name| name.duplicates)),
            ];
            writes.push(Write::claimed(new.len(), include_str!("../sql/keys_insert.sql"), params));
        }
        let mut more = self.more_duplicates();
        if !more.is_empty() {
            more.sort_unstable();
            let params = vec![
                Param::ints(more.iter().map(|(tenant, ..)| tenant.0)),
                Param::texts(more.iter().map(|(_, key, _)| key.as_str())),
                Param::ints(more.iter().map(|(.., count)| *count)),
            ];
            writes.push(Write::exactly(more.len(), include_str!("../sql/keys_duplicates_add.sql"), params));
        }
        Ok(())
    }

    /// What a new name of `message` is.
    fn name<'t>(
        &'t self,
        tenant: TenantId,
        key: &'t MessageKey,
        message: MessageId,
    ) -> Result<Name<'t>, Fault> {
        let at = (tenant, message);
        let (kind, counts) = if let Some(known) = self.tables.messages.get(&at) {
            let kind = known.others.get(key).copied();
            (kind.or_else(|| (known.given.key == *key).then_some(KeyKind::Key)), known.duplicates)
        } else if let Some(archived) = self.tables.archived.get(&at) {
            let known = &archived.known;
            let kind = known.aliases.iter().find(|(_, alias)| alias == key).map(|(kind, _)| *kind);
            (kind.or_else(|| (known.key == *key).then_some(KeyKind::Key)), known.duplicates)
        } else {
            return Err(Fault::Invariant("a new name means a message that is missing"));
        };
        let kind = kind.ok_or(Fault::Invariant("a new name is none of its message's"))?;
        let duplicates = if kind == KeyKind::Key { counts } else { 0 };
        Ok(Name { tenant, key, kind, message, duplicates })
    }

    /// By the business key of messages that were known, how often they came again.
    fn more_duplicates(&self) -> Vec<(TenantId, &MessageKey, u64)> {
        let messages = self.tables.messages.iter();
        let messages = messages.map(|(at, message)| (at, &message.given.key, message.duplicates));
        let archived = self.tables.archived.iter();
        let archived = archived.map(|(at, archived)| (at, &archived.known.key, archived.known.duplicates));
        let more = |(at, key, now): (&(TenantId, MessageId), _, u64)| {
            let more = now.saturating_sub(duplicates_in(&self.base, at)?);
            (more > 0).then_some((at.0, key, more))
        };
        messages.chain(archived).filter_map(more).collect()
    }

    /// Messages come and go; of one that is there nothing changes but its names.
    pub(super) fn write_messages(&self, writes: &mut Vec<Write>) {
        let diff = diff(&self.base.messages, &self.tables.messages, |_, _| true);
        if !diff.gone.is_empty() {
            let params = vec![
                Param::ints(diff.gone.iter().map(|((tenant, _), _)| tenant.0)),
                Param::ids(diff.gone.iter().map(|((_, id), _)| id.0)),
            ];
            let sql = include_str!("../sql/messages_delete.sql");
            writes.push(Write::exactly(diff.gone.len(), sql, params));
        }
        if !diff.new.is_empty() {
            let new: Vec<&Message> = diff.new.iter().map(|(_, message)| *message).collect();
            let sql = include_str!("../sql/messages_insert.sql");
            writes.push(Write::exactly(new.len(), sql, messages(&new)));
        }
    }

    pub(super) fn write_fanouts(&self, writes: &mut Vec<Write>) -> Result<(), Fault> {
        let diff = diff(&self.base.fanouts, &self.tables.fanouts, |one, two| one.made == two.made);
        if !diff.gone.is_empty() {
            let params = vec![Param::ints(diff.gone.iter().map(|(seq, _)| **seq))];
            let sql = include_str!("../sql/fanouts_delete.sql");
            writes.push(Write::exactly(diff.gone.len(), sql, params));
        }
        if !diff.new.is_empty() {
            let mut encoded = Vec::with_capacity(diff.new.len());
            for (_, fan_out) in &diff.new {
                let targets: Vec<_> = fan_out.targets.iter().collect();
                encoded.push(targets::encode(&targets).map_err(Fault::Invariant)?);
            }
            let params = vec![
                Param::ints(diff.new.iter().map(|(seq, _)| **seq)),
                Param::ints(diff.new.iter().map(|(_, fan_out)| fan_out.tenant.0)),
                Param::ids(diff.new.iter().map(|(_, fan_out)| fan_out.message.0)),
                Param::ints(diff.new.iter().map(|(_, fan_out)| fan_out.due_at.0)),
                Param::ints(diff.new.iter().map(|(_, fan_out)| fan_out.made)),
                Param::blobs(encoded),
                Param::maybe_ints(diff.new.iter().map(|(_, fan_out)| fan_out.held_by.map(|lane| lane.0))),
            ];
            writes.push(Write::exactly(diff.new.len(), include_str!("../sql/fanouts_insert.sql"), params));
        }
        if !diff.changed.is_empty() {
            let params = vec![
                Param::ints(diff.changed.iter().map(|(seq, ..)| **seq)),
                Param::ints(diff.changed.iter().map(|(.., fan_out)| fan_out.made)),
            ];
            let sql = include_str!("../sql/fanouts_advance.sql");
            writes.push(Write::exactly(diff.changed.len(), sql, params));
        }
        Ok(())
    }
}

/// How often a message came again; `None`: it is not known there.
fn duplicates_in(tables: &Tables, at: &(TenantId, MessageId)) -> Option<u64> {
    let archived = || Some(tables.archived.get(at)?.known.duplicates);
    tables.messages.get(at).map(|message| message.duplicates).or_else(archived)
}

fn messages(rows: &[&Message]) -> Vec<Param> {
    let given = || rows.iter().map(|row| &row.given);
    vec![
        Param::ints(given().map(|given| given.tenant.0)),
        Param::ids(given().map(|given| given.id.0)),
        Param::ints(rows.iter().map(|row| row.seq)),
        Param::texts(given().map(|given| given.key.as_str())),
        Param::maybe_texts(given().map(|given| given.event_type.as_deref())),
        Param::maybe_texts(given().map(|given| given.source.as_ref().map(DestinationId::as_str))),
        Param::ints(rows.iter().map(|row| row.accepted_at.0)),
        Param::ints(rows.iter().map(|row| row.jobs_total)),
        Param::blobs(given().map(|given| given.fingerprint.0.as_flattened())),
        Param::texts(given().map(|given| &given.correlation_id)),
        Param::maybe_texts(given().map(|given| given.traceparent.as_deref())),
        Param::maybe_texts(given().map(|given| given.content_type.as_deref())),
        Param::maybe_texts(given().map(|given| given.headers.as_deref())),
        Param::maybe_texts(given().map(|given| given.metadata.as_deref())),
        Param::maybe_texts(given().map(|given| given.payload_ref.as_deref())),
        Param::blobs(given().map(|given| &given.payload)),
    ]
}
