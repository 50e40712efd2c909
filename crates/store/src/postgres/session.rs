//! A transaction's part of the store: what it has locked and loaded, as it was and as the rules leave it.
//!
//! The rules are those of [`crate::memory`], run over this part. So what is loaded must be all that they look at; what
//! they changed is found by comparing, and written by [`Session::flush`].

use std::{
    collections::BTreeMap,
    sync::atomic::{AtomicU64, Ordering},
};

use posthaste_core::{CorruptRow, Epoch, JobId, TenantId, Timestamp};
use tokio_postgres::{Client, Row};

use super::{fault::Fault, params::Param};
use crate::memory::tables::{JobEntry, Tables};

pub(crate) struct Session<'c> {
    client: &'c Client,
    /// How many rows were written.
    written: AtomicU64,
    /// The time of the transaction: read once, after its locks were taken or before, never of its statements.
    pub(crate) now: Timestamp,
    /// Whose counts these are: see `job_counts`.
    pub(crate) shard: i64,
    /// There may be ledger entries: jobs look for theirs.
    pub(crate) ledger_used: bool,
    /// As the rules leave it.
    pub(crate) tables: Tables,
    /// As it was loaded.
    pub(crate) base: Tables,
}

impl<'c> Session<'c> {
    pub(crate) fn new(
        client: &'c Client,
        epoch: Epoch,
        now: Timestamp,
        shard: i64,
        ledger_used: bool,
    ) -> Self {
        let tables = Tables { epoch: Some(epoch), ..Tables::default() };
        Self { client, written: AtomicU64::new(0), now, shard, ledger_used, base: tables.clone(), tables }
    }

    /// Asks, in one round trip. Statements that are polled together are pipelined, and run in the order in which they were
    /// polled first.
    pub(crate) async fn rows(&self, sql: &str, params: &[Param]) -> Result<Vec<Row>, Fault> {
        let params: Vec<_> = params.iter().map(Param::parameter).collect();
        Ok(self.client.query_typed(sql, &params).await?)
    }

    /// Writes, and says how many rows.
    pub(crate) async fn run(&self, sql: &str, params: &[Param]) -> Result<u64, Fault> {
        let params: Vec<_> = params.iter().map(Param::parameter).collect();
        let rows = self.client.execute_typed(sql, &params).await?;
        self.written.fetch_add(rows, Ordering::Relaxed);
        Ok(rows)
    }

    pub(crate) fn rows_written(&self) -> u64 {
        self.written.load(Ordering::Relaxed)
    }

    /// Takes in a job that was loaded, or notes that it can't be read. One that is here already stays.
    pub(crate) fn keep_job(&mut self, tenant: TenantId, id: JobId, entry: Result<JobEntry, CorruptRow>) {
        let at = (tenant, id);
        if self.base.jobs.contains_key(&at) || self.tables.corrupt.contains_key(&at) {
            return;
        }
        match entry {
            Ok(entry) => {
                self.tables.load_job(tenant, id, entry.clone());
                self.base.load_job(tenant, id, entry);
            }
            Err(corrupt) => {
                self.tables.corrupt.insert(at, corrupt);
            }
        }
    }
}

/// Takes in what was loaded, unless it is here already: `keep(&mut session.base.lanes, &mut session.tables.lanes, ..)`.
pub(crate) fn keep<K: Ord + Clone, V: Clone>(
    base: &mut BTreeMap<K, V>,
    tables: &mut BTreeMap<K, V>,
    key: K,
    value: V,
) {
    if let std::collections::btree_map::Entry::Vacant(vacant) = base.entry(key.clone()) {
        vacant.insert(value.clone());
        tables.insert(key, value);
    }
}

/// What became of a table's part.
pub(crate) struct Diff<'t, K, V> {
    pub(crate) new: Vec<(&'t K, &'t V)>,
    /// As it was, and as it is.
    pub(crate) changed: Vec<(&'t K, &'t V, &'t V)>,
    pub(crate) gone: Vec<(&'t K, &'t V)>,
}

/// Compares; `same` says whether two rows are written alike.
pub(crate) fn diff<'t, K: Ord, V>(
    base: &'t BTreeMap<K, V>,
    tables: &'t BTreeMap<K, V>,
    same: impl Fn(&V, &V) -> bool,
) -> Diff<'t, K, V> {
    let mut diff = Diff { new: Vec::new(), changed: Vec::new(), gone: Vec::new() };
    for (key, value) in tables {
        match base.get(key) {
            None => diff.new.push((key, value)),
            Some(before) if same(before, value) => {}
            Some(before) => diff.changed.push((key, before, value)),
        }
    }
    diff.gone.extend(base.iter().filter(|(key, _)| !tables.contains_key(key)));
    diff
}
