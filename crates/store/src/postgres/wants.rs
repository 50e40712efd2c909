//! What the operations of a transaction will look at: said before anything is locked, so that it is locked in one order and
//! loaded with few statements.
//!
//! Each kind of operation has a function that adds its part. [`super::load`] says in which order it is locked.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::{
    ApiKeyId, Attempt, Command, CommandName, DestinationId, EventId, JobId, LaneId, MessageId, MessageKey,
    RunId, TenantId, Timestamp,
};

use crate::{
    ArchiveFile, BulkStep, Configure, CustodyEntry, JobCommand, LaneCommand, LeaseRequest, LedgerCommand,
    NewBulkRun, NewMessage, Retire, ScheduleChange, Untold, accepting, retention, schedules,
};

/// What is looked at. Everything but `accepts` and `leases` is named once.
#[derive(Default)]
pub(crate) struct Wants {
    /// What has no row to lock: a name for each.
    pub(super) guards: BTreeSet<String>,
    pub(super) accepts: Vec<AcceptWant>,
    /// The sources of messages: whether they are paused.
    pub(super) sources: BTreeSet<(TenantId, DestinationId)>,
    /// Lanes that are written, or whose jobs are: locked.
    pub(super) lanes: BTreeSet<(TenantId, LaneId)>,
    /// The same, by their destinations.
    pub(super) lanes_of: BTreeSet<(TenantId, DestinationId)>,
    /// The tenants that may get a lane: their last one is read.
    pub(super) last_lanes: BTreeSet<TenantId>,
    /// The lanes that somebody steers.
    pub(super) turned: BTreeSet<(TenantId, LaneId)>,
    /// The tenants whose scheduling is written: locked.
    pub(super) steered: BTreeSet<TenantId>,
    /// The jobs that get commands.
    pub(super) jobs: BTreeMap<(TenantId, JobId), JobWant>,
    pub(super) leases: BTreeMap<(TenantId, LaneId), Vec<LeaseRequest>>,
    /// Entries of the ledger.
    pub(super) entries: BTreeSet<(TenantId, EventId)>,
    /// The jobs that event ids mean, by the keys of their messages.
    pub(super) named: BTreeSet<(TenantId, MessageKey, LaneId)>,
    pub(super) tenants: BTreeSet<Box<str>>,
    pub(super) destinations: BTreeSet<(TenantId, DestinationId)>,
    pub(super) api_keys: BTreeSet<(TenantId, ApiKeyId)>,
    pub(super) secret_hashes: BTreeSet<[u8; 32]>,
    pub(super) schedules: BTreeSet<(TenantId, DestinationId)>,
    /// Bulk runs that are written: locked.
    pub(super) runs: BTreeSet<(TenantId, RunId)>,
    /// Bulk runs that may begin.
    pub(super) begins: Vec<BeginWant>,
    pub(super) untold: BTreeSet<(TenantId, JobId, Timestamp)>,
    /// The bulk run whose next jobs are taken.
    pub(super) bulk_step: Option<(TenantId, RunId)>,
    /// How many jobs of fan-outs are made.
    pub(super) fan_out: Option<usize>,
    /// Messages that are to leave, and how many jobs they had.
    pub(super) retire: BTreeMap<(TenantId, MessageId), usize>,
    /// The jobs that may pin entries: the keys of their messages, and their destinations.
    pub(super) pins: BTreeSet<(TenantId, MessageKey, DestinationId)>,
    pub(super) archive_files: BTreeSet<Box<str>>,
}

/// A message that comes.
pub(super) struct AcceptWant {
    pub(super) tenant: TenantId,
    /// All its names.
    pub(super) names: Vec<MessageKey>,
    /// The lanes that it is for.
    pub(super) lanes: BTreeSet<LaneId>,
}

/// What the commands on a job ask for beside its own rows.
#[derive(Clone, Copy, Default)]
pub(super) struct JobWant {
    /// Its ended attempts from the first of these to the last.
    pub(super) attempts: Option<(u32, u32)>,
    /// Whether a report may be refused, which is noted so many times only.
    pub(super) reports: bool,
    /// How many commands there are: so many times it may leave what waits.
    pub(super) commands: usize,
}

impl JobWant {
    /// All its attempts.
    pub(super) const WHOLE: Self = Self { attempts: Some((1, u32::MAX)), reports: false, commands: 1 };

    pub(super) fn add(&mut self, other: Self) {
        self.attempts = match (self.attempts, other.attempts) {
            (Some(one), Some(two)) => Some((one.0.min(two.0), one.1.max(two.1))),
            (one, two) => one.or(two),
        };
        self.reports |= other.reports;
        self.commands += other.commands;
    }

    fn of(command: &Command) -> Self {
        let own = command.fence().map(|fence| fence.attempt).map(Attempt::get);
        let is_replay = command.name() == CommandName::Replay;
        let attempts = if is_replay { Self::WHOLE.attempts } else { own.map(|own| (own, own)) };
        Self { attempts, reports: own.is_some(), commands: 1 }
    }
}

/// A bulk run that may begin.
pub(super) struct BeginWant {
    pub(super) tenant: TenantId,
    pub(super) run: RunId,
    pub(super) idempotency_key: Option<Box<str>>,
}

impl Wants {
    /// Whether the operation needs a transaction of its own: which rows it takes is found out on the way.
    pub(crate) fn alone(&self) -> bool {
        self.bulk_step.is_some()
            || self.fan_out.is_some()
            || !self.retire.is_empty()
            || !self.pins.is_empty()
            || !self.archive_files.is_empty()
    }

    /// Whether lanes are locked, for which names must wait.
    pub(super) fn locks_lanes(&self) -> bool {
        !self.lanes.is_empty() || !self.lanes_of.is_empty() || !self.steered.is_empty()
    }

    /// Whether nothing but leases touches the lane.
    pub(super) fn only_leases(&self, tenant: TenantId, lane: LaneId) -> bool {
        let commanded = self.jobs.keys().any(|(of, job)| (*of, job.lane()) == (tenant, lane));
        let named = self.named.iter().any(|(of, _, at)| (*of, *at) == (tenant, lane));
        let turned = self.turned.contains(&(tenant, lane)) || self.steered.contains(&tenant);
        !commanded && !named && !turned && self.lanes_of.is_empty()
    }

    /// A job and the lane that is its lock.
    fn add_job(&mut self, tenant: TenantId, job: JobId, want: JobWant) {
        self.lanes.insert((tenant, job.lane()));
        self.jobs.entry((tenant, job)).or_default().add(want);
    }

    /// An entry, and the lane of the job whose event id it may be.
    fn add_entry(&mut self, tenant: TenantId, key: &EventId) {
        if let Some((_, destination)) = retention::parts_of(key) {
            self.lanes_of.insert((tenant, destination));
        }
        self.entries.insert((tenant, key.clone()));
    }

    /// What locks an entry that is of no job, as far as is known.
    fn guard_entry(&mut self, tenant: TenantId, key: &EventId) {
        self.guards.insert(format!("ledger:{}:{key}", tenant.0));
    }
}

pub(crate) fn wants_of_accept(wants: &mut Wants, messages: &[NewMessage]) {
    for message in messages {
        let tenant = message.tenant;
        wants.sources.extend(message.source.clone().map(|source| (tenant, source)));
        wants.accepts.push(AcceptWant {
            tenant,
            names: accepting::names(message).into_iter().map(|(_, key)| key.clone()).collect(),
            lanes: message.targets.iter().map(|target| target.lane).collect(),
        });
    }
}

/// Of [`crate::Unsettled::apply_behind`] too.
pub(crate) fn wants_of_apply(wants: &mut Wants, commands: &[JobCommand]) {
    for command in commands {
        wants.add_job(command.tenant, command.job, JobWant::of(&command.command));
    }
}

pub(crate) fn wants_of_lease(wants: &mut Wants, requests: &[LeaseRequest]) {
    for request in requests {
        let at = (request.tenant, request.lane);
        wants.lanes.insert(at);
        wants.leases.entry(at).or_default().push(request.clone());
    }
}

pub(crate) fn wants_of_fan_out(wants: &mut Wants, jobs_max: usize) {
    wants.guards.insert("fan_out".to_owned());
    wants.fan_out = Some(jobs_max);
}

pub(crate) fn wants_of_configure(wants: &mut Wants, changes: &[Configure]) {
    for change in changes {
        let tenant = match change {
            Configure::Tenant { name } => {
                wants.guards.insert("tenants".to_owned());
                wants.tenants.insert(name.clone());
                continue;
            }
            Configure::PutDestination(new) => {
                wants.last_lanes.insert(new.tenant);
                wants.lanes_of.insert((new.tenant, new.id.clone()));
                wants.destinations.insert((new.tenant, new.id.clone()));
                new.tenant
            }
            Configure::DeleteDestination { tenant, id, .. } => {
                wants.lanes_of.insert((*tenant, id.clone()));
                wants.destinations.insert((*tenant, id.clone()));
                *tenant
            }
            Configure::PutApiKey(row) => {
                wants.api_keys.insert((row.tenant, row.id));
                wants.secret_hashes.insert(row.secret_hash);
                row.tenant
            }
            Configure::RevokeApiKey { tenant, id } => {
                wants.api_keys.insert((*tenant, *id));
                *tenant
            }
        };
        wants.guards.insert(format!("configure:{}", tenant.0));
    }
}

pub(crate) fn wants_of_ledger(wants: &mut Wants, commands: &[LedgerCommand]) {
    for command in commands {
        wants.add_entry(command.tenant, &command.key);
        let Some(named) = &command.job else {
            wants.guard_entry(command.tenant, &command.key);
            continue;
        };
        wants.lanes.insert((command.tenant, named.lane));
        wants.named.insert((command.tenant, named.key.clone(), named.lane));
    }
}

/// Custody is written behind what is there: nothing is looked at.
pub(crate) fn wants_of_note(_: &mut Wants, _: &[CustodyEntry]) {}

pub(crate) fn wants_of_steer(wants: &mut Wants, commands: &[LaneCommand]) {
    for command in commands {
        match command.lane {
            Some(lane) => {
                wants.turned.insert((command.tenant, lane));
                wants.lanes.insert((command.tenant, lane))
            }
            None => wants.steered.insert(command.tenant),
        };
    }
}

pub(crate) fn wants_of_schedules(wants: &mut Wants, changes: &[ScheduleChange]) {
    for change in changes {
        let (tenant, id) = schedules::named(change);
        wants.schedules.insert((tenant, id.clone()));
    }
}

pub(crate) fn wants_of_bulk_begin(wants: &mut Wants, new: &NewBulkRun) {
    wants.guards.insert(format!("bulk:{}", new.tenant.0));
    let idempotency_key = new.idempotency_key.clone();
    wants.begins.push(BeginWant { tenant: new.tenant, run: new.id, idempotency_key });
}

pub(crate) fn wants_of_bulk_step(wants: &mut Wants, step: &BulkStep) {
    wants.runs.insert((step.tenant, step.run));
    wants.bulk_step = Some((step.tenant, step.run));
}

pub(crate) fn wants_of_bulk_control(wants: &mut Wants, tenant: TenantId, run: RunId) {
    wants.runs.insert((tenant, run));
}

pub(crate) fn wants_of_retire(wants: &mut Wants, file: Option<&ArchiveFile>, records: &[Retire]) {
    wants.archive_files.extend(file.map(|file| file.file.clone()));
    for record in records {
        let record = match record {
            Retire::Message { record, .. } => record,
            Retire::Entry { record, .. } => {
                let (tenant, key) = (record.tenant, &record.entry.key);
                wants.add_entry(tenant, key);
                wants.guard_entry(tenant, key);
                if let Some((message, destination)) = retention::parts_of(key) {
                    wants.pins.insert((tenant, message, destination));
                }
                continue;
            }
        };
        let tenant = record.tenant;
        wants.lanes.extend(record.jobs.iter().map(|view| (tenant, view.job.lane)));
        wants.entries.extend(retention::entries_of(record).map(|(_, entry)| (tenant, entry.key)));
        let jobs = wants.retire.entry((tenant, record.message.id)).or_default();
        *jobs = record.jobs.len().max(*jobs);
    }
}

pub(crate) fn wants_of_told(wants: &mut Wants, rows: &[Untold]) {
    wants.untold.extend(rows.iter().map(|row| (row.tenant, row.job, row.at)));
}
