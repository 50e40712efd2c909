//! How many jobs are in each state: kept as sums of changes, flushed once a batch.

use std::collections::HashMap;

use posthaste_core::{StateName, TenantId};
use rusqlite::{Statement, params};

/// States of [`StateName::ALL`].
const STATES: usize = 6;

/// What a batch changed so far. Two layers, so that an operation that fails alone takes its part back.
#[derive(Default)]
pub(super) struct Counts {
    batch: HashMap<TenantId, [i64; STATES]>,
    operation: HashMap<TenantId, [i64; STATES]>,
}

impl Counts {
    /// A job left `from` and is in `to` now.
    pub(super) fn moved(&mut self, tenant: TenantId, from: Option<StateName>, to: StateName) {
        if from == Some(to) {
            return;
        }
        let changes = self.operation.entry(tenant).or_default();
        if let Some(from) = from {
            changes[from as usize] -= 1;
        }
        changes[to as usize] += 1;
    }

    /// A job in `state` is gone.
    pub(super) fn left(&mut self, tenant: TenantId, state: StateName) {
        self.operation.entry(tenant).or_default()[state as usize] -= 1;
    }

    /// The operation stays.
    pub(super) fn keep(&mut self) {
        for (tenant, changes) in self.operation.drain() {
            let sums = self.batch.entry(tenant).or_default();
            sums.iter_mut().zip(changes).for_each(|(sum, change)| *sum += change);
        }
    }

    /// The operation was rolled back.
    pub(super) fn drop_operation(&mut self) {
        self.operation.clear();
    }

    /// The batch was rolled back.
    pub(super) fn drop_batch(&mut self) {
        self.operation.clear();
        self.batch.clear();
    }

    /// Writes the sums, before the commit.
    pub(super) fn flush(&mut self, counts_add: &mut Statement<'_>) -> rusqlite::Result<()> {
        for (tenant, changes) in self.batch.drain() {
            for (state, change) in StateName::ALL.iter().zip(changes).filter(|(_, change)| *change != 0) {
                counts_add.execute(params![tenant.0, state.as_str(), change])?;
            }
        }
        Ok(())
    }
}

const _: () = assert!(StateName::ALL.len() == STATES);
