//! A store with one deliberate fault, to show that the checks would find it.

use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::{
    Command, DestinationId, EventId, JobId, LaneId, MessageId, RunId, RunKind, StateName, TenantId, Timestamp,
};
use posthaste_store::{
    Acceptance, ApiKeyRow, Applied, ArchiveFile, ArchivedMessage, Begun, BoxFuture, Bulk, BulkChange,
    BulkCount, BulkCounted, BulkRun, BulkStep, BulkStepped, Configure, Configured, Controlled, CustodyEntry,
    DestinationRow, Expiry, ExpiryRequest, FanOutStep, Indexed, JobBrief, JobCommand, JobFilter, JobView,
    LaneCommand, LaneEvent, LaneHead, LaneView, Lanes, LeaseGrant, LeaseRequest, LedgerAction, LedgerApplied,
    LedgerCommand, LedgerEntry, LookUps, MessageName, MessageView, NamedJob, NewBulkRun, NewMessage,
    Provable, Reads, Retain, Retire, Retired, ScheduleChange, ScheduleChanged, ScheduleRow, Schedules,
    StateCount, Steered, Store, StoreError, StoreStatus, SweepCursor, Tell, Unsettled, Untold,
};

/// One fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A worker's checkpoint is lost.
    CheckpointLost,
    /// A lane's hold is lost.
    HoldLost,
    /// One dead letter too many is counted.
    DeadLetterOvercounted,
    /// The last of a message's other names is lost.
    NameLost,
    /// Duplicates are answered and not counted.
    DuplicateUncounted,
    /// A fan-out forgets its last job.
    FanOutCutShort,
    /// A grant may have one byte more than was asked for.
    BytesOverrun,
    /// Late reports are not shown.
    LateReportLost,
    /// Fences of another epoch count.
    EpochIgnored,
    /// A list of leases that are over is one short.
    ExpiryCutShort,
    /// A list goes on with the job that it ended with.
    PageRepeats,
    /// What duplicates are answered is lost.
    ResultLost,
}

impl Fault {
    /// Every fault.
    pub const ALL: [Self; 12] = [
        Self::CheckpointLost,
        Self::HoldLost,
        Self::DeadLetterOvercounted,
        Self::NameLost,
        Self::DuplicateUncounted,
        Self::FanOutCutShort,
        Self::BytesOverrun,
        Self::LateReportLost,
        Self::EpochIgnored,
        Self::ExpiryCutShort,
        Self::PageRepeats,
        Self::ResultLost,
    ];
}

/// A store with a fault.
pub struct Faulty {
    /// The store without it.
    pub inner: Arc<dyn Store>,
    /// The fault.
    pub fault: Fault,
}

impl Faulty {
    fn has(&self, fault: Fault) -> bool {
        self.fault == fault
    }

    fn spoil_command(&self, command: &mut JobCommand) {
        if self.has(Fault::HoldLost) {
            command.hold_lane_until = None;
        }
        if self.has(Fault::CheckpointLost)
            && let Command::Extend { checkpoint, .. } = &mut command.command
        {
            *checkpoint = None;
        }
        if self.has(Fault::EpochIgnored)
            && let Command::Start { fence }
            | Command::Extend { fence, .. }
            | Command::Finish { fence, .. }
            | Command::Fail { fence, .. }
            | Command::Release { fence } = &mut command.command
        {
            fence.epoch.0 = 1;
        }
    }

    fn spoil_view(&self, view: &mut JobView) {
        if self.has(Fault::LateReportLost) {
            for attempt in &mut view.attempts {
                attempt.late = None;
            }
        }
    }
}

impl Store for Faulty {
    fn accept(&self, mut messages: Vec<NewMessage>) -> BoxFuture<'_, Result<Vec<Acceptance>, StoreError>> {
        if self.has(Fault::NameLost) {
            for message in &mut messages {
                message.aliases.pop();
            }
        }
        if self.has(Fault::FanOutCutShort) {
            for message in messages.iter_mut().filter(|message| message.targets.len() > 100) {
                message.targets.pop();
            }
        }
        self.inner.accept(messages)
    }

    fn apply(&self, mut commands: Vec<JobCommand>) -> BoxFuture<'_, Result<Vec<Applied>, StoreError>> {
        for command in &mut commands {
            self.spoil_command(command);
        }
        self.inner.apply(commands)
    }

    fn lease(&self, mut requests: Vec<LeaseRequest>) -> BoxFuture<'_, Result<Vec<LeaseGrant>, StoreError>> {
        if self.has(Fault::BytesOverrun) {
            for request in &mut requests {
                request.bytes_max += 1;
            }
        }
        self.inner.lease(requests)
    }

    fn fan_out(&self, jobs_max: usize) -> BoxFuture<'_, Result<FanOutStep, StoreError>> {
        self.inner.fan_out(jobs_max)
    }

    fn configure(&self, changes: Vec<Configure>) -> BoxFuture<'_, Result<Vec<Configured>, StoreError>> {
        self.inner.configure(changes)
    }

    fn ledger(
        &self,
        mut commands: Vec<LedgerCommand>,
    ) -> BoxFuture<'_, Result<Vec<LedgerApplied>, StoreError>> {
        if self.has(Fault::ResultLost) {
            for command in &mut commands {
                if let LedgerAction::Complete { result, .. } = &mut command.action {
                    result.bytes = None;
                }
            }
        }
        self.inner.ledger(commands)
    }

    fn note(&self, entries: Vec<CustodyEntry>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.note(entries)
    }
}

impl Reads for Faulty {
    fn status(&self) -> BoxFuture<'_, Result<StoreStatus, StoreError>> {
        self.inner.status()
    }

    fn message(
        &self,
        tenant: TenantId,
        name: MessageName,
    ) -> BoxFuture<'_, Result<Option<MessageView>, StoreError>> {
        Box::pin(async move {
            let mut view = self.inner.message(tenant, name).await?;
            if let Some(view) = view.as_mut().filter(|_| self.has(Fault::DuplicateUncounted)) {
                view.duplicates = 0;
            }
            Ok(view)
        })
    }

    fn payload(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Option<(Bytes, Option<Box<str>>)>, StoreError>> {
        self.inner.payload(tenant, message)
    }

    fn job(&self, tenant: TenantId, job: JobId) -> BoxFuture<'_, Result<Option<JobView>, StoreError>> {
        Box::pin(async move {
            let mut view = self.inner.job(tenant, job).await?;
            if let Some(view) = &mut view {
                self.spoil_view(view);
            }
            Ok(view)
        })
    }

    fn jobs(
        &self,
        tenant: TenantId,
        mut filter: JobFilter,
    ) -> BoxFuture<'_, Result<Vec<JobView>, StoreError>> {
        if self.has(Fault::PageRepeats) && filter.oldest_first && filter.state.is_some() {
            filter.after = filter.after.map(|after| JobId(after.0 - 1));
        }
        self.inner.jobs(tenant, filter)
    }

    fn message_jobs(
        &self,
        tenant: TenantId,
        message: MessageId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<JobView>, StoreError>> {
        Box::pin(async move {
            let mut views = self.inner.message_jobs(tenant, message, limit).await?;
            for view in &mut views {
                self.spoil_view(view);
            }
            Ok(views)
        })
    }

    fn custody(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Vec<CustodyEntry>, StoreError>> {
        self.inner.custody(tenant, message)
    }

    fn tenants(&self) -> BoxFuture<'_, Result<Vec<(TenantId, Box<str>)>, StoreError>> {
        self.inner.tenants()
    }

    fn destinations(&self) -> BoxFuture<'_, Result<Vec<DestinationRow>, StoreError>> {
        self.inner.destinations()
    }

    fn api_keys(&self) -> BoxFuture<'_, Result<Vec<ApiKeyRow>, StoreError>> {
        self.inner.api_keys()
    }

    fn heads(&self) -> BoxFuture<'_, Result<Vec<LaneHead>, StoreError>> {
        self.inner.heads()
    }

    fn expired(
        &self,
        limit: usize,
    ) -> BoxFuture<'_, Result<(Vec<(TenantId, JobId)>, Option<Timestamp>), StoreError>> {
        let limit = if self.has(Fault::ExpiryCutShort) { limit.saturating_sub(1) } else { limit };
        self.inner.expired(limit)
    }

    fn counts(&self) -> BoxFuture<'_, Result<Vec<StateCount>, StoreError>> {
        Box::pin(async move {
            let mut counts = self.inner.counts().await?;
            let dead = counts.iter_mut().filter(|count| count.state == StateName::DeadLettered);
            for count in dead {
                count.jobs += u64::from(self.has(Fault::DeadLetterOvercounted));
            }
            Ok(counts)
        })
    }

    fn entry(
        &self,
        tenant: TenantId,
        key: EventId,
        job: Option<NamedJob>,
    ) -> BoxFuture<'_, Result<Option<LedgerEntry>, StoreError>> {
        self.inner.entry(tenant, key, job)
    }

    fn briefs(
        &self,
        tenant: TenantId,
        message: MessageId,
    ) -> BoxFuture<'_, Result<Vec<JobBrief>, StoreError>> {
        self.inner.briefs(tenant, message)
    }
}

impl Bulk for Faulty {
    fn bulk_begin(&self, new: NewBulkRun) -> BoxFuture<'_, Result<Begun, StoreError>> {
        self.inner.bulk_begin(new)
    }

    fn bulk_step(&self, step: BulkStep) -> BoxFuture<'_, Result<Option<BulkStepped>, StoreError>> {
        self.inner.bulk_step(step)
    }

    fn bulk_control(
        &self,
        tenant: TenantId,
        run: RunId,
        change: BulkChange,
    ) -> BoxFuture<'_, Result<Controlled, StoreError>> {
        self.inner.bulk_control(tenant, run, change)
    }

    fn bulk_count(&self, count: BulkCount) -> BoxFuture<'_, Result<BulkCounted, StoreError>> {
        self.inner.bulk_count(count)
    }

    fn bulk_run(&self, tenant: TenantId, run: RunId) -> BoxFuture<'_, Result<Option<BulkRun>, StoreError>> {
        self.inner.bulk_run(tenant, run)
    }

    fn bulk_runs(
        &self,
        tenant: TenantId,
        kind: RunKind,
        before: Option<RunId>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<BulkRun>, StoreError>> {
        self.inner.bulk_runs(tenant, kind, before, limit)
    }

    fn bulk_running(&self) -> BoxFuture<'_, Result<Vec<BulkRun>, StoreError>> {
        self.inner.bulk_running()
    }
}

impl Unsettled for Faulty {
    fn look_ups(&self, per_lane: usize, limit: usize) -> BoxFuture<'_, Result<LookUps, StoreError>> {
        self.inner.look_ups(per_lane, limit)
    }

    fn lane_look_ups(
        &self,
        tenant: TenantId,
        lane: LaneId,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<JobId>, StoreError>> {
        self.inner.lane_look_ups(tenant, lane, limit)
    }

    fn provable(
        &self,
        after: Option<SweepCursor>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Provable, StoreError>> {
        self.inner.provable(after, limit)
    }

    fn apply_behind(&self, commands: Vec<JobCommand>) -> BoxFuture<'_, Result<Vec<Applied>, StoreError>> {
        self.inner.apply_behind(commands)
    }

    fn lane_held_ms(&self, tenant: TenantId, lane: LaneId) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.inner.lane_held_ms(tenant, lane)
    }
}

impl Retain for Faulty {
    fn expirable(&self, request: ExpiryRequest) -> BoxFuture<'_, Result<Expiry, StoreError>> {
        self.inner.expirable(request)
    }

    fn retire(
        &self,
        file: Option<ArchiveFile>,
        records: Vec<Retire>,
    ) -> BoxFuture<'_, Result<Vec<Retired>, StoreError>> {
        self.inner.retire(file, records)
    }

    fn archived(
        &self,
        tenant: TenantId,
        name: MessageName,
    ) -> BoxFuture<'_, Result<Option<ArchivedMessage>, StoreError>> {
        self.inner.archived(tenant, name)
    }

    fn archive_files(
        &self,
        after: Option<Box<str>>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<ArchiveFile>, StoreError>> {
        self.inner.archive_files(after, limit)
    }

    fn archived_in(
        &self,
        file: Box<str>,
        after: Option<u64>,
        limit: usize,
    ) -> BoxFuture<'_, Result<Vec<Indexed>, StoreError>> {
        self.inner.archived_in(file, after, limit)
    }
}

impl Schedules for Faulty {
    fn change_schedules(
        &self,
        changes: Vec<ScheduleChange>,
    ) -> BoxFuture<'_, Result<Vec<ScheduleChanged>, StoreError>> {
        self.inner.change_schedules(changes)
    }

    fn schedule(
        &self,
        tenant: TenantId,
        id: DestinationId,
    ) -> BoxFuture<'_, Result<Option<ScheduleRow>, StoreError>> {
        self.inner.schedule(tenant, id)
    }

    fn schedules(&self) -> BoxFuture<'_, Result<Vec<ScheduleRow>, StoreError>> {
        self.inner.schedules()
    }
}

impl Lanes for Faulty {
    fn steer(&self, commands: Vec<LaneCommand>) -> BoxFuture<'_, Result<Vec<Steered>, StoreError>> {
        self.inner.steer(commands)
    }

    fn lanes(&self) -> BoxFuture<'_, Result<Vec<LaneView>, StoreError>> {
        self.inner.lanes()
    }

    fn scheduling(&self) -> BoxFuture<'_, Result<Vec<(TenantId, posthaste_core::Scheduling)>, StoreError>> {
        self.inner.scheduling()
    }

    fn lane_events(
        &self,
        tenant: TenantId,
        lanes: Vec<Option<LaneId>>,
    ) -> BoxFuture<'_, Result<Vec<LaneEvent>, StoreError>> {
        self.inner.lane_events(tenant, lanes)
    }

    fn held_jobs(&self) -> BoxFuture<'_, Result<u64, StoreError>> {
        self.inner.held_jobs()
    }
}

impl Tell for Faulty {
    fn untold(&self, limit: usize) -> BoxFuture<'_, Result<Vec<Untold>, StoreError>> {
        self.inner.untold(limit)
    }

    fn told(&self, rows: Vec<Untold>) -> BoxFuture<'_, Result<(), StoreError>> {
        self.inner.told(rows)
    }
}
