//! Bulk runs.

use posthaste_core::{
    BulkFilter, BulkOutcome, BulkRow, JobId, RunId, RunKind, RunState, TenantId, Timestamp, limits,
};

use super::tables::{JobEntry, Tables};
use crate::{
    Begun, BulkChange, BulkCount, BulkCounted, BulkRun, BulkStep, BulkStepped, Controlled, NewBulkRun,
    bulk::{COUNT_EXAMINED_MAX, STEP_EXAMINED_MAX},
};

impl Tables {
    pub(crate) fn bulk_begin(&mut self, new: &NewBulkRun, now: Timestamp) -> Begun {
        let known = |run: &&BulkRun| {
            run.tenant == new.tenant
                && (run.id == new.id
                    || (run.idempotency_key.is_some() && run.idempotency_key == new.idempotency_key))
        };
        if let Some(known) = self.bulk_runs.values().find(known) {
            return new.found(known.clone());
        }
        let live = |run: &&BulkRun| run.tenant == new.tenant && run.state.is_live();
        if self.bulk_runs.values().filter(live).count() >= limits::BULK_RUNS_LIVE_MAX {
            return Begun::TooMany;
        }
        let run = new.begun(now);
        self.bulk_runs.insert((run.tenant, run.id), run.clone());
        Begun::New(Box::new(run))
    }

    pub(crate) fn bulk_step(&mut self, step: &BulkStep, now: Timestamp) -> Option<BulkStepped> {
        let mut run = self.bulk_runs.get(&(step.tenant, step.run))?.clone();
        let (mut taken, mut changes) = (0, Vec::new());
        if run.state != RunState::Running {
            return Some(BulkStepped { run, taken, changes });
        }
        let kind = run.request.kind;
        let dead = run.request.filter.about_dead_letters(kind);
        let window = self.bulk_window(run.tenant, dead, run.cursor, STEP_EXAMINED_MAX);
        let mut ended = window.len() < STEP_EXAMINED_MAX;
        for (id, row) in window {
            if taken >= step.jobs_max {
                ended = false;
                break;
            }
            run.cursor = Some(id);
            run.counts.examined += 1;
            if !self.bulk_fits(run.tenant, kind, &run.request.filter, id, &row) {
                continue;
            }
            if !row.was_so_at(run.began_at) {
                run.counts.skipped += 1;
                continue;
            }
            taken += 1;
            let outcome = self.bulk_take(&run, step, id, &mut changes, now);
            run.count(id, outcome);
        }
        run.stepped(ended, now);
        self.bulk_runs.insert((run.tenant, run.id), run.clone());
        Some(BulkStepped { run, taken, changes })
    }

    fn bulk_take(
        &mut self,
        run: &BulkRun,
        step: &BulkStep,
        id: JobId,
        changes: &mut Vec<crate::Change>,
        now: Timestamp,
    ) -> BulkOutcome {
        let job = self.jobs.get(&(run.tenant, id)).map(JobEntry::job);
        let Some(Ok(job)) = job else { return BulkOutcome::Refused("corrupt") };
        match run.command_for(&job, &step.gates) {
            Err(code) => BulkOutcome::Refused(code),
            Ok(command) => {
                let (reply, change) = self.decide_in(&job, &command, false, Some(run.id), now);
                let outcome = BulkOutcome::of(&reply, change.as_ref().map(|change| change.nature));
                changes.extend(change);
                outcome
            }
        }
    }

    /// The next jobs by id, dead letters or those that live.
    fn bulk_window(
        &self,
        tenant: TenantId,
        dead: bool,
        after: Option<JobId>,
        limit: usize,
    ) -> Vec<(JobId, BulkRow)> {
        let from = after.unwrap_or(JobId(u128::MIN));
        let jobs = self.jobs.range((tenant, from)..=(tenant, JobId(u128::MAX)));
        let jobs = jobs.map(|((_, id), entry)| (*id, &entry.row)).filter(|(id, row)| {
            let wanted = if dead {
                row.state == posthaste_core::StateName::DeadLettered
            } else {
                !row.state.is_settled()
            };
            wanted && after != Some(*id)
        });
        let row = |row: &posthaste_core::JobRow, id: JobId| BulkRow {
            state: row.state,
            lane: id.lane(),
            cause: row.cause,
            created_at: Timestamp(row.created_at),
            settled_at: row.settled_at.map(Timestamp),
        };
        jobs.take(limit).map(|(id, job)| (id, row(job, id))).collect()
    }

    fn bulk_fits(
        &self,
        tenant: TenantId,
        kind: RunKind,
        filter: &BulkFilter,
        id: JobId,
        row: &BulkRow,
    ) -> bool {
        if !filter.fits_row(kind, row) {
            return false;
        }
        if filter.needs_row_only() {
            return true;
        }
        let given = &self.message_of(tenant, id).1.given;
        let class = self.attempts_of(tenant, id).last().and_then(|view| view.end.report.class);
        filter.fits_message(&given.key, given.event_type.as_deref()) && filter.fits_class(class)
    }

    pub(crate) fn bulk_control(
        &mut self,
        tenant: TenantId,
        run: RunId,
        change: &BulkChange,
        now: Timestamp,
    ) -> Controlled {
        let Some(known) = self.bulk_runs.get_mut(&(tenant, run)) else { return Controlled::Missing };
        match known.changed(change, now) {
            None => Controlled::Refused(known.state),
            Some(changed) => {
                *known = changed.clone();
                Controlled::Stands(Box::new(changed))
            }
        }
    }

    pub(crate) fn bulk_count(&self, count: &BulkCount) -> BulkCounted {
        let BulkCount { tenant, kind, filter, after } = count;
        let dead = filter.about_dead_letters(*kind);
        let window = self.bulk_window(*tenant, dead, *after, COUNT_EXAMINED_MAX);
        let mut counted = BulkCounted::default();
        if window.len() == COUNT_EXAMINED_MAX {
            counted.next = window.last().map(|(id, _)| *id);
        }
        for (id, row) in window {
            counted.examined += 1;
            counted.matched += u64::from(self.bulk_fits(*tenant, *kind, filter, id, &row));
        }
        counted
    }

    pub(crate) fn bulk_run(&self, tenant: TenantId, run: RunId) -> Option<BulkRun> {
        self.bulk_runs.get(&(tenant, run)).cloned()
    }

    pub(crate) fn bulk_list(
        &self,
        tenant: TenantId,
        kind: RunKind,
        before: Option<RunId>,
        limit: usize,
    ) -> Vec<BulkRun> {
        let runs = self.bulk_runs.range((tenant, RunId(u128::MIN))..=(tenant, RunId(u128::MAX)));
        let wanted = |run: &&BulkRun| run.request.kind == kind && before.is_none_or(|before| run.id < before);
        runs.rev().map(|(_, run)| run).filter(wanted).take(limit).cloned().collect()
    }

    pub(crate) fn bulk_running(&self) -> Vec<BulkRun> {
        self.bulk_runs.values().filter(|run| run.state == RunState::Running).cloned().collect()
    }
}
