//! The seam of bulk runs, operation by operation.

// A method of a type with a lifetime is no `fn` for every lifetime, but a closure is.
#![allow(clippy::redundant_closure, clippy::redundant_closure_for_method_calls)]

use posthaste_core::{RunId, RunKind, TenantId};

use super::{
    SqliteStore, weight,
    work::Rank::{Background, Foreground},
};
use crate::{
    Begun, BoxFuture, Bulk, BulkChange, BulkCount, BulkCounted, BulkRun, BulkStep, BulkStepped, Controlled,
    NewBulkRun, StoreError,
};

impl Bulk for SqliteStore {
    fn bulk_begin(&self, new: NewBulkRun) -> BoxFuture<'_, Result<Begun, StoreError>> {
        self.write(Foreground, Some(new.tenant), weight::of_run(), new, |session, input| {
            session.bulk_begin(input)
        })
    }

    fn bulk_step(&self, step: BulkStep) -> BoxFuture<'_, Result<Option<BulkStepped>, StoreError>> {
        self.write(Background, None, weight::of_bulk_step(&step), step, |session, input| {
            session.bulk_step(input)
        })
    }

    fn bulk_control(
        &self,
        tenant: TenantId,
        run: RunId,
        change: BulkChange,
    ) -> BoxFuture<'_, Result<Controlled, StoreError>> {
        self.write(Foreground, Some(tenant), weight::of_run(), (tenant, run, change), |session, input| {
            session.bulk_control(input)
        })
    }

    fn bulk_count(&self, count: BulkCount) -> BoxFuture<'_, Result<BulkCounted, StoreError>> {
        self.read(count, |session, input| session.bulk_count(input))
    }

    fn bulk_run(&self, tenant: TenantId, run: RunId) -> BoxFuture<'_, Result<Option<BulkRun>, StoreError>> {
        self.read((tenant, run), |session, input| session.bulk_run(input))
    }

    fn bulk_runs(
        &self,
        tenant: TenantId,
        kind: RunKind,
        before: Option<RunId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<BulkRun>, StoreError>> {
        self.read((tenant, kind, before, limit), |session, input| session.bulk_runs(input))
    }

    fn bulk_running(&self) -> BoxFuture<'_, Result<Vec<BulkRun>, StoreError>> {
        self.read((), |session, ()| session.bulk_running())
    }
}
