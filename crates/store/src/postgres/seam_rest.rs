//! The rest of the seam, operation by operation: lanes, schedules, bulk runs, retention and what is still to be found out.

// A method of a type with a lifetime is no `fn` for every lifetime, but a closure is.
#![allow(clippy::redundant_closure, clippy::redundant_closure_for_method_calls)]

use posthaste_core::{DestinationId, JobId, LaneId, RunId, RunKind, Scheduling, TenantId};

use super::{PostgresStore, reads, wants, weight};
use crate::{
    Applied, ArchiveFile, ArchivedMessage, Begun, BoxFuture, Bulk, BulkChange, BulkCount, BulkCounted,
    BulkRun, BulkStep, BulkStepped, Controlled, Expiry, ExpiryRequest, Indexed, JobCommand, LaneCommand,
    LaneEvent, LaneView, Lanes, LookUps, MessageName, NewBulkRun, Provable, Retain, Retire, Retired,
    ScheduleChange, ScheduleChanged, ScheduleRow, Schedules, Steered, StoreError, SweepCursor, Tell,
    Unsettled, Untold, lanes,
    queue::Rank::{Background, Foreground},
};

impl Lanes for PostgresStore {
    fn steer(&self, commands: Vec<LaneCommand>) -> BoxFuture<'_, Result<Vec<Steered>, StoreError>> {
        self.write(
            (Foreground, None, lanes::weight_of(&commands)),
            commands,
            |wants, input| wants::wants_of_steer(wants, input),
            |tables, input, now| input.iter().map(|command| tables.steer(command, now)).collect(),
        )
    }

    fn lanes(&self) -> BoxFuture<'_, Result<Vec<LaneView>, StoreError>> {
        self.read((), |session, ()| Box::pin(reads::lanes(session)))
    }

    fn scheduling(&self) -> BoxFuture<'_, Result<Vec<(TenantId, Scheduling)>, StoreError>> {
        self.read((), |session, ()| Box::pin(reads::scheduling(session)))
    }

    fn lane_events(
        &self,
        tenant: TenantId,
        lanes: Vec<Option<LaneId>>,
    ) -> BoxFuture<'_, Result<Vec<LaneEvent>, StoreError>> {
        self.read((tenant, lanes), |session, input| Box::pin(reads::lane_events(session, input.0, &input.1)))
    }

    fn held_jobs(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.read((), |session, ()| Box::pin(reads::held_jobs(session)))
    }
}

impl Schedules for PostgresStore {
    fn change_schedules(
        &self,
        changes: Vec<ScheduleChange>,
    ) -> BoxFuture<'_, Result<Vec<ScheduleChanged>, StoreError>> {
        self.write(
            (Foreground, None, weight::of_schedules(&changes)),
            changes,
            |wants, input| wants::wants_of_schedules(wants, input),
            |tables, input, now| input.iter().map(|change| tables.change_schedule(change, now)).collect(),
        )
    }

    fn schedule(
        &self,
        tenant: TenantId,
        id: DestinationId,
    ) -> BoxFuture<'_, Result<Option<ScheduleRow>, StoreError>> {
        self.read((tenant, id), |session, input| Box::pin(reads::schedule(session, input.0, &input.1)))
    }

    fn schedules(&self) -> BoxFuture<'_, Result<Vec<ScheduleRow>, StoreError>> {
        self.read((), |session, ()| Box::pin(reads::schedules(session)))
    }
}

impl Bulk for PostgresStore {
    fn bulk_begin(&self, new: NewBulkRun) -> BoxFuture<'_, Result<Begun, StoreError>> {
        self.write(
            (Foreground, Some(new.tenant), weight::of_run()),
            new,
            |wants, input| wants::wants_of_bulk_begin(wants, input),
            |tables, input, now| tables.bulk_begin(input, now),
        )
    }

    fn bulk_step(&self, step: BulkStep) -> BoxFuture<'_, Result<Option<BulkStepped>, StoreError>> {
        self.write(
            (Background, None, weight::of_bulk_step(&step)),
            step,
            |wants, input| wants::wants_of_bulk_step(wants, input),
            |tables, input, now| tables.bulk_step(input, now),
        )
    }

    fn bulk_control(
        &self,
        tenant: TenantId,
        run: RunId,
        change: BulkChange,
    ) -> BoxFuture<'_, Result<Controlled, StoreError>> {
        self.write(
            (Foreground, Some(tenant), weight::of_run()),
            (tenant, run, change),
            |wants, (tenant, run, _)| wants::wants_of_bulk_control(wants, *tenant, *run),
            |tables, (tenant, run, change), now| tables.bulk_control(*tenant, *run, change, now),
        )
    }

    fn bulk_count(&self, count: BulkCount) -> BoxFuture<'_, Result<BulkCounted, StoreError>> {
        self.read(count, |session, input| Box::pin(reads::bulk_count(session, input)))
    }

    fn bulk_run(&self, tenant: TenantId, run: RunId) -> BoxFuture<'_, Result<Option<BulkRun>, StoreError>> {
        self.read((tenant, run), |session, input| Box::pin(reads::bulk_run(session, input.0, input.1)))
    }

    fn bulk_runs(
        &self,
        tenant: TenantId,
        kind: RunKind,
        before: Option<RunId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<BulkRun>, StoreError>> {
        self.read((tenant, kind, before, limit), |session, input| {
            Box::pin(reads::bulk_runs(session, input.0, input.1, input.2, input.3))
        })
    }

    fn bulk_running(&self) -> BoxFuture<'_, Result<Vec<BulkRun>, StoreError>> {
        self.read((), |session, ()| Box::pin(reads::bulk_running(session)))
    }
}

impl Retain for PostgresStore {
    fn expirable(&self, request: ExpiryRequest) -> BoxFuture<'_, Result<Expiry, StoreError>> {
        self.read(request, |session, input| Box::pin(reads::expirable(session, input)))
    }

    fn retire(
        &self,
        file: Option<ArchiveFile>,
        records: Vec<Retire>,
    ) -> BoxFuture<'_, Result<Vec<Retired>, StoreError>> {
        self.write(
            (Background, None, weight::of_retired(&records)),
            (file, records),
            |wants, (file, records)| wants::wants_of_retire(wants, file.as_ref(), records),
            |tables, (file, records), now| tables.retire(file.clone(), records, now),
        )
    }

    fn archived(
        &self,
        tenant: TenantId,
        name: MessageName,
    ) -> BoxFuture<'_, Result<Option<ArchivedMessage>, StoreError>> {
        self.read((tenant, name), |session, input| Box::pin(reads::archived(session, input.0, &input.1)))
    }

    fn archive_files(
        &self,
        after: Option<Box<str>>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<ArchiveFile>, StoreError>> {
        self.read((after, limit), |session, input| {
            Box::pin(reads::archive_files(session, input.0.as_deref(), input.1))
        })
    }

    fn archived_in(
        &self,
        file: Box<str>,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Indexed>, StoreError>> {
        self.read((file, after, limit), |session, input| {
            Box::pin(reads::archived_in(session, &input.0, input.1, input.2))
        })
    }
}

impl Unsettled for PostgresStore {
    fn look_ups(&self, per_lane: usize, limit: usize) -> BoxFuture<'_, Result<LookUps, StoreError>> {
        self.read((per_lane, limit), |session, input| Box::pin(reads::look_ups(session, input.0, input.1)))
    }

    fn lane_look_ups(
        &self,
        tenant: TenantId,
        lane: LaneId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<JobId>, StoreError>> {
        self.read((tenant, lane, limit), |session, input| {
            Box::pin(reads::lane_look_ups(session, input.0, input.1, input.2))
        })
    }

    fn provable(
        &self,
        after: Option<SweepCursor>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Provable, StoreError>> {
        self.read((after, limit), |session, input| Box::pin(reads::provable(session, input.0, input.1)))
    }

    fn apply_behind(&self, commands: Vec<JobCommand>) -> BoxFuture<'_, Result<Vec<Applied>, StoreError>> {
        self.write(
            (Background, None, weight::of_commands(&commands)),
            commands,
            |wants, input| wants::wants_of_apply(wants, input),
            |tables, input, now| input.iter().map(|command| tables.apply(command, now)).collect(),
        )
    }

    fn lane_held_ms(&self, tenant: TenantId, lane: LaneId) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.read((tenant, lane), |session, input| Box::pin(reads::lane_held_ms(session, input.0, input.1)))
    }
}

impl Tell for PostgresStore {
    fn untold(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Untold>, StoreError>> {
        self.read(limit, |session, input| Box::pin(reads::untold(session, *input)))
    }

    fn told(&self, rows: Vec<Untold>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.write(
            (Background, None, weight::of_untold(&rows)),
            rows,
            |wants, input| wants::wants_of_told(wants, input),
            |tables, input, _| {
                for row in input {
                    tables.untold.remove(&(row.tenant, row.job, row.at));
                }
            },
        )
    }
}
