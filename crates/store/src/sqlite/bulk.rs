//! Bulk runs: begun, moved on and looked at.

use posthaste_core::{
    BulkFilter, BulkOutcome, BulkRow, Cause, Class, JobId, RunId, RunKind, RunState, StateName, TenantId,
    limits,
};
use rusqlite::{OptionalExtension, Statement, params};

use super::{
    bulk_rows,
    cells::{Cells, signed},
    fault::Fault,
    job_rows::family,
    readers::ReadSession,
    session::Session,
};
use crate::{
    AppliedOutcome, Begun, BulkChange, BulkCount, BulkCounted, BulkRun, BulkStep, BulkStepped, Change,
    Controlled, NewBulkRun,
    bulk::{COUNT_EXAMINED_MAX, STEP_EXAMINED_MAX},
};

/// A job that a run may be about.
struct Candidate {
    id: JobId,
    row: BulkRow,
}

impl Session<'_> {
    pub(super) fn bulk_begin(&mut self, new: &NewBulkRun) -> Result<Begun, Fault> {
        let by_key = match &new.idempotency_key {
            Some(key) => bulk_rows::one_of(&mut self.sql.bulk_runs_of_key, params![new.tenant.0, key])?,
            None => None,
        };
        let known = match by_key {
            None => bulk_rows::find(&mut self.sql.bulk_runs_find, new.tenant, new.id)?,
            found => found,
        };
        if let Some(known) = known {
            return Ok(new.found(known));
        }
        let live: i64 = self.sql.bulk_runs_live.query_row([new.tenant.0], |row| row.get(0))?;
        if live >= signed(limits::BULK_RUNS_LIVE_MAX) {
            return Ok(Begun::TooMany);
        }
        let run = new.begun(self.now);
        bulk_rows::insert(&mut self.sql.bulk_runs_insert, &run)?;
        Ok(Begun::New(Box::new(run)))
    }

    pub(super) fn bulk_step(&mut self, step: &BulkStep) -> Result<Option<BulkStepped>, Fault> {
        let Some(mut run) = bulk_rows::find(&mut self.sql.bulk_runs_find, step.tenant, step.run)? else {
            return Ok(None);
        };
        let (mut taken, mut changes) = (0, Vec::new());
        if run.state != RunState::Running {
            return Ok(Some(BulkStepped { run, taken, changes }));
        }
        let kind = run.request.kind;
        // As many as it takes, and more each time: most runs are about most of what they look at, some about hardly any.
        let (mut left, mut page, mut ended) = (STEP_EXAMINED_MAX, step.jobs_max + 1, false);
        while left > 0 && !ended && taken < step.jobs_max {
            page = page.min(left);
            let statement = if run.request.filter.about_dead_letters(kind) {
                &mut self.sql.bulk_dead
            } else {
                &mut self.sql.bulk_live
            };
            let window = window(statement, run.tenant, run.cursor, page)?;
            ended = window.len() < page;
            left -= window.len();
            page = page.saturating_mul(4);
            for candidate in window {
                if taken >= step.jobs_max {
                    ended = false;
                    break;
                }
                run.cursor = Some(candidate.id);
                run.counts.examined += 1;
                let beside = (&mut self.sql.bulk_message, &mut self.sql.bulk_class);
                if !fits(&run.request.filter, kind, run.tenant, &candidate, beside)? {
                    continue;
                }
                if !candidate.row.was_so_at(run.began_at) {
                    run.counts.skipped += 1;
                    continue;
                }
                taken += 1;
                let outcome = self.bulk_take(&run, step, candidate.id, &mut changes)?;
                run.count(candidate.id, outcome);
            }
        }
        run.stepped(ended, self.now);
        bulk_rows::write(&mut self.sql.bulk_runs_write, &run)?;
        Ok(Some(BulkStepped { run, taken, changes }))
    }

    fn bulk_take(
        &mut self,
        run: &BulkRun,
        step: &BulkStep,
        id: JobId,
        changes: &mut Vec<Change>,
    ) -> Result<BulkOutcome, Fault> {
        let stored = match self.stored(run.tenant, id)? {
            Some(Ok(stored)) => stored,
            Some(Err(corrupt)) => {
                self.note_corrupt(run.tenant, id, &corrupt);
                return Ok(BulkOutcome::Refused("corrupt"));
            }
            None => return Err(Fault::Invariant("a job was listed that is not there")),
        };
        let command = match run.command_for(&stored.job, &step.gates) {
            Ok(command) => command,
            Err(code) => return Ok(BulkOutcome::Refused(code)),
        };
        match self.apply_in(stored, &command, Some(run.id))? {
            AppliedOutcome::Decided { reply, change } => {
                let outcome = BulkOutcome::of(&reply, change.as_ref().map(|change| change.nature));
                changes.extend(change.map(|change| *change));
                Ok(outcome)
            }
            AppliedOutcome::Corrupt(corrupt) => {
                self.note_corrupt(run.tenant, id, &corrupt);
                Ok(BulkOutcome::Refused("corrupt"))
            }
            AppliedOutcome::Missing => Err(Fault::Invariant("a job was read that is missing")),
        }
    }

    pub(super) fn bulk_control(
        &mut self,
        (tenant, run, change): &(TenantId, RunId, BulkChange),
    ) -> Result<Controlled, Fault> {
        let Some(known) = bulk_rows::find(&mut self.sql.bulk_runs_find, *tenant, *run)? else {
            return Ok(Controlled::Missing);
        };
        let Some(changed) = known.changed(change, self.now) else {
            return Ok(Controlled::Refused(known.state));
        };
        if changed != known {
            bulk_rows::write(&mut self.sql.bulk_runs_write, &changed)?;
        }
        Ok(Controlled::Stands(Box::new(changed)))
    }
}

impl ReadSession<'_> {
    pub(super) fn bulk_count(&mut self, count: &BulkCount) -> Result<BulkCounted, Fault> {
        let BulkCount { tenant, kind, filter, after } = count;
        let statement =
            if filter.about_dead_letters(*kind) { &mut self.sql.bulk_dead } else { &mut self.sql.bulk_live };
        let window = window(statement, *tenant, *after, COUNT_EXAMINED_MAX)?;
        let mut counted = BulkCounted::default();
        if window.len() == COUNT_EXAMINED_MAX {
            counted.next = window.last().map(|candidate| candidate.id);
        }
        for candidate in window {
            counted.examined += 1;
            let beside = (&mut self.sql.bulk_message, &mut self.sql.bulk_class);
            counted.matched += u64::from(fits(filter, *kind, *tenant, &candidate, beside)?);
        }
        Ok(counted)
    }

    pub(super) fn bulk_run(&mut self, (tenant, run): &(TenantId, RunId)) -> Result<Option<BulkRun>, Fault> {
        bulk_rows::find(&mut self.sql.bulk_runs_find, *tenant, *run)
    }

    pub(super) fn bulk_runs(
        &mut self,
        (tenant, kind, before, limit): &(TenantId, RunKind, Option<RunId>, usize),
    ) -> Result<Vec<BulkRun>, Fault> {
        // A blob that is after all ids, where no id is given.
        let before = before.map_or_else(|| vec![0xff; 17], |before| before.0.to_be_bytes().to_vec());
        let at = params![tenant.0, before, kind.as_str(), signed(*limit)];
        bulk_rows::all_of(&mut self.sql.bulk_runs_list, at)
    }

    pub(super) fn bulk_running(&mut self) -> Result<Vec<BulkRun>, Fault> {
        bulk_rows::all_of(&mut self.sql.bulk_runs_running, [])
    }
}

/// The next jobs by id.
fn window(
    statement: &mut Statement<'_>,
    tenant: TenantId,
    after: Option<JobId>,
    limit: usize,
) -> Result<Vec<Candidate>, Fault> {
    let after = after.map_or_else(Vec::new, |after| after.0.to_be_bytes().to_vec());
    let mut rows = statement.query(params![tenant.0, after, signed(limit)])?;
    let mut window = Vec::new();
    while let Some(row) = rows.next()? {
        let mut cells = Cells::of(row, 0);
        let id = JobId(cells.id()?);
        let row = BulkRow {
            state: cells.word(StateName::parse)?,
            lane: id.lane(),
            cause: cells.maybe_word(Cause::parse)?,
            created_at: cells.at()?,
            settled_at: cells.maybe_at()?,
        };
        window.push(Candidate { id, row });
    }
    Ok(window)
}

/// Whether a job fits, by its row and, where the filter asks, by its message and its last attempt.
fn fits(
    filter: &BulkFilter,
    kind: RunKind,
    tenant: TenantId,
    candidate: &Candidate,
    (message, class): (&mut Statement<'_>, &mut Statement<'_>),
) -> Result<bool, Fault> {
    if !filter.fits_row(kind, &candidate.row) {
        return Ok(false);
    }
    if filter.key_prefix.is_some() || filter.event_type.is_some() {
        let (first, last) = family(candidate.id.0);
        let mut rows = message.query(params![tenant.0, first, last])?;
        let Some(row) = rows.next()? else { return Ok(false) };
        let mut cells = Cells::of(row, candidate.id.0);
        let key = cells.key()?;
        if !filter.fits_message(&key, cells.maybe_str()?.as_deref()) {
            return Ok(false);
        }
    }
    if filter.class.is_none() {
        return Ok(true);
    }
    let at = params![tenant.0, candidate.id.0.to_be_bytes()];
    let word: Option<Option<String>> = class.query_row(at, |row| row.get(0)).optional()?;
    Ok(filter.fits_class(word.flatten().as_deref().and_then(Class::parse)))
}
