//! What stands beside jobs and messages: custody, and dead letters that nobody was told of yet.

use posthaste_core::{Attempt, MessageId, TenantId};

use super::write::Write;
use crate::{
    CustodyEntry, Untold,
    postgres::{
        params::{Param, signed},
        session::{Session, diff},
    },
};

impl Session<'_> {
    /// Appends what is new. All of a message that left goes.
    pub(super) fn write_custody(&self, writes: &mut Vec<Write>) {
        let gone = diff(&self.base.messages, &self.tables.messages, |_, _| true).gone;
        let gone: Vec<&(TenantId, MessageId)> = gone.into_iter().map(|(at, _)| at).collect();
        if !gone.is_empty() {
            let params = vec![
                Param::ints(gone.iter().map(|(tenant, _)| tenant.0)),
                Param::ids(gone.iter().map(|(_, message)| message.0)),
            ];
            writes.push(Write::any(include_str!("../sql/custody_delete.sql"), params));
        }
        let new = self.tables.custody.iter().flat_map(|(at, entries)| {
            let known = if gone.binary_search(&at).is_ok() { None } else { self.base.custody.get(at) };
            entries.get(known.map_or(0, Vec::len)..).unwrap_or_default()
        });
        let new: Vec<&CustodyEntry> = new.collect();
        if new.is_empty() {
            return;
        }
        let params = vec![
            Param::ints(new.iter().map(|entry| entry.tenant.0)),
            Param::ids(new.iter().map(|entry| entry.message.0)),
            Param::maybe_ids(new.iter().map(|entry| entry.job.map(|job| job.0))),
            Param::ints(new.iter().map(|entry| entry.at.0)),
            Param::texts(new.iter().map(|entry| entry.stage.as_str())),
            Param::maybe_ints(new.iter().map(|entry| entry.attempt.map(Attempt::get))),
            Param::maybe_texts(new.iter().map(|entry| entry.actor.as_deref())),
            Param::maybe_texts(new.iter().map(|entry| entry.detail.as_deref())),
        ];
        writes.push(Write::exactly(new.len(), include_str!("../sql/custody_insert.sql"), params));
    }

    /// Another node may have let go of the same rows, or noted them.
    pub(super) fn write_untold(&self, writes: &mut Vec<Write>) {
        let diff = diff(&self.base.untold, &self.tables.untold, PartialEq::eq);
        if !diff.gone.is_empty() {
            let gone: Vec<&Untold> = diff.gone.iter().map(|(_, untold)| *untold).collect();
            writes.push(Write::any(include_str!("../sql/untold_delete.sql"), names(&gone)));
        }
        let changed = diff.changed.iter().map(|(.., untold)| *untold);
        let put: Vec<&Untold> = diff.new.iter().map(|(_, untold)| *untold).chain(changed).collect();
        if !put.is_empty() {
            let mut params = names(&put);
            let attempt = |untold: &&Untold| untold.attempt.map_or(0, |attempt| signed(attempt.get()));
            params.push(Param::ints(put.iter().map(attempt)));
            params.push(Param::texts(put.iter().map(|untold| untold.cause.as_str())));
            writes.push(Write::exactly(put.len(), include_str!("../sql/untold_put.sql"), params));
        }
    }
}

fn names(rows: &[&Untold]) -> Vec<Param> {
    vec![
        Param::ints(rows.iter().map(|untold| untold.tenant.0)),
        Param::ids(rows.iter().map(|untold| untold.job.0)),
        Param::ints(rows.iter().map(|untold| untold.at.0)),
    ]
}
