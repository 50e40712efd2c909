//! Entries of the ledger.

use posthaste_core::{Class, EventId, TenantId, ledger::Outcome};

use super::write::Write;
use crate::{
    LedgerEntry,
    postgres::{
        params::Param,
        session::{Session, diff},
    },
};

/// An entry under its name.
pub(super) type At<'t> = (&'t (TenantId, EventId), &'t LedgerEntry);

impl Session<'_> {
    pub(super) fn write_ledger(&self, writes: &mut Vec<Write>) {
        let diff = diff(&self.base.ledger, &self.tables.ledger, PartialEq::eq);
        if !diff.gone.is_empty() {
            let sql = include_str!("../sql/ledger_delete.sql");
            writes.push(Write::exactly(diff.gone.len(), sql, names(&diff.gone)));
        }
        if !diff.new.is_empty() {
            let sql = include_str!("../sql/ledger_insert.sql");
            writes.push(Write::claimed(diff.new.len(), sql, entries(&diff.new)));
        }
        if !diff.changed.is_empty() {
            let changed: Vec<At<'_>> = diff.changed.iter().map(|(at, _, entry)| (*at, *entry)).collect();
            let sql = include_str!("../sql/ledger_write.sql");
            writes.push(Write::exactly(changed.len(), sql, entries(&changed)));
        }
        if self.tables.first_fence > self.base.first_fence {
            let params = vec![Param::int(self.tables.first_fence)];
            writes.push(Write::exactly(1, include_str!("../sql/ledger_fences_raise.sql"), params));
        }
    }
}

fn names(rows: &[At<'_>]) -> Vec<Param> {
    vec![
        Param::ints(rows.iter().map(|((tenant, _), _)| tenant.0)),
        Param::texts(rows.iter().map(|((_, key), _)| key.as_str())),
    ]
}

/// The columns that entries have, here and archived.
pub(super) fn entries(rows: &[At<'_>]) -> Vec<Param> {
    let core = || rows.iter().map(|(_, row)| &row.entry);
    let result = || rows.iter().map(|(_, row)| &row.result);
    let reset = || rows.iter().map(|(_, row)| row.reset.as_ref());
    let mut params = names(rows);
    params.extend([
        Param::texts(core().map(|entry| entry.status.as_str())),
        Param::ints(core().map(|entry| entry.fence)),
        Param::ints(core().map(|entry| entry.attempts)),
        Param::ints(core().map(|entry| entry.locked_until.0)),
        Param::maybe_blobs(core().map(|entry| entry.fingerprint.as_deref())),
        Param::maybe_texts(core().map(|entry| entry.claim_id.as_deref())),
        Param::texts(core().map(|entry| entry.path.as_str())),
        Param::texts(core().map(|entry| entry.previous.as_str())),
        Param::texts(core().map(|entry| entry.on_expired.as_str())),
        Param::maybe_texts(core().map(|entry| entry.outcome.map(Outcome::as_str))),
        Param::maybe_blobs(result().map(|result| result.bytes.as_deref())),
        Param::maybe_texts(result().map(|result| result.content_type.as_deref())),
        Param::maybe_ints(result().map(|result| result.status)),
        Param::maybe_texts(rows.iter().map(|(_, row)| row.class.map(Class::as_str))),
        Param::maybe_texts(rows.iter().map(|(_, row)| row.message.as_deref())),
        Param::ints(rows.iter().map(|(_, row)| row.created_at.0)),
        Param::ints(rows.iter().map(|(_, row)| row.updated_at.0)),
        Param::maybe_ints(reset().map(|reset| reset.map(|reset| reset.at.0))),
        Param::maybe_texts(reset().map(|reset| reset.and_then(|reset| reset.by.as_deref()))),
        Param::maybe_texts(reset().map(|reset| reset.map(|reset| &reset.reason))),
    ]);
    params
}
