//! Jobs with everything that a decision about them looks at.

use std::collections::{BTreeMap, BTreeSet, btree_map::Entry};

use posthaste_core::{CorruptRow, JobId, MessageId, TenantId};
use tokio_postgres::Row;

use super::{family, ids, ranges, statements};
use crate::{
    Stage,
    postgres::{
        decode,
        fault::Fault,
        params::Param,
        session::{Session, keep},
        wants::JobWant,
    },
};

/// Which jobs, and what of them.
pub(super) type JobWants = BTreeMap<(TenantId, JobId), JobWant>;

/// What was read of jobs.
#[derive(Default)]
pub(super) struct JobRows {
    jobs: Vec<Row>,
    messages: Vec<Row>,
    bodies: Vec<Row>,
    attempts: Vec<Row>,
    stale_reports: Vec<Row>,
    entries: EntryRows,
}

/// Entries of the ledger, and those that left.
#[derive(Default)]
pub(super) struct EntryRows {
    pub(super) entries: Vec<Row>,
    pub(super) archived: Vec<Row>,
}

impl Session<'_> {
    /// Reads jobs with what is wanted of them; `bodies`: those whose messages are to have their payloads.
    pub(super) async fn read_jobs(
        &self,
        wants: &JobWants,
        bodies: &BTreeSet<(TenantId, JobId)>,
    ) -> Result<JobRows, Fault> {
        let named = || ids(wants.keys().map(|(tenant, job)| (*tenant, job.0)));
        let thin = wants.keys().filter(|at| !bodies.contains(*at));
        let reports = wants.iter().filter(|(_, want)| want.reports);
        let reports = ids(reports.map(|((tenant, job), _)| (*tenant, job.0)));
        let (mut jobs, done, messages, bodies, attempts, stale_reports, entries) = tokio::try_join!(
            self.ask(statements::JOBS, named()),
            self.ask(statements::JOBS_DONE, named()),
            self.ask(statements::MESSAGES_OF_JOBS, families(thin)),
            self.ask(statements::BODIES_OF_JOBS, families(bodies)),
            self.ask(statements::ATTEMPTS, attempts_of(wants)),
            self.ask(statements::STALE_REPORTS, reports),
            self.read_beside(wants.keys())
        )?;
        jobs.extend(done);
        Ok(JobRows { jobs, messages, bodies, attempts, stale_reports, entries })
    }

    /// Reads the entries beside jobs, if the ledger is used.
    pub(super) async fn read_beside<'j>(
        &self,
        jobs: impl Iterator<Item = &'j (TenantId, JobId)>,
    ) -> Result<EntryRows, Fault> {
        if !self.ledger_used {
            return Ok(EntryRows::default());
        }
        let jobs: Vec<_> = jobs.collect();
        let params = || {
            let mut params = ranges(jobs.iter().map(|(tenant, job)| (*tenant, family(*job))));
            params.push(Param::ints(jobs.iter().map(|(_, job)| job.lane().0)));
            params
        };
        let (entries, archived) = tokio::try_join!(
            self.ask(statements::ENTRIES_BESIDE, params()),
            self.ask(statements::ARCHIVED_ENTRIES_BESIDE, params())
        )?;
        Ok(EntryRows { entries, archived })
    }

    pub(super) fn keep_jobs(&mut self, rows: &JobRows) -> Result<(), Fault> {
        self.keep_bodies(&rows.bodies);
        self.keep_thin(&rows.messages);
        let unreadable = self.keep_attempts(&rows.attempts)?;
        for row in &rows.stale_reports {
            let (tenant, message) = (decode::tenant(row, 0)?, MessageId(decode::id(row, 1)?));
            let at = (tenant, message, Some(JobId(decode::id(row, 2)?)), Stage::StaleReport);
            self.tables
                .noted_before
                .insert(at, usize::try_from(decode::count(row, 3)?).unwrap_or(usize::MAX));
        }
        self.keep_entries(&rows.entries)?;
        for row in &rows.jobs {
            let (tenant, id, entry) = decode::job(row)?;
            let entry = match unreadable.get(&(tenant, id)) {
                Some(corrupt) => Err(corrupt.clone()),
                None if !self.has_message_of(tenant, id) => Err(without_message(id)),
                None => entry,
            };
            self.keep_job(tenant, id, entry);
        }
        Ok(())
    }

    /// Keeps attempts; gives the jobs that have one that can't be read.
    pub(super) fn keep_attempts(
        &mut self,
        rows: &[Row],
    ) -> Result<BTreeMap<(TenantId, JobId), CorruptRow>, Fault> {
        let mut unreadable = BTreeMap::new();
        for row in rows {
            match decode::attempt(row) {
                Ok((at, view)) => keep(&mut self.base.attempts, &mut self.tables.attempts, at, view),
                Err(Fault::Row(corrupt)) => {
                    unreadable.insert((decode::tenant(row, 0)?, JobId(decode::id(row, 1)?)), corrupt);
                }
                Err(fault) => return Err(fault),
            }
        }
        Ok(unreadable)
    }

    pub(super) fn keep_entries(&mut self, rows: &EntryRows) -> Result<(), Fault> {
        for row in &rows.entries {
            let (at, entry) = decode::entry(row)?;
            keep(&mut self.base.ledger, &mut self.tables.ledger, at, entry);
        }
        for row in &rows.archived {
            let (at, entry) = decode::archived_entry(row)?;
            keep(&mut self.base.archived_entries, &mut self.tables.archived_entries, at, entry);
        }
        Ok(())
    }

    /// Takes a job that turned out to be unreadable away again.
    pub(super) fn forget_job(&mut self, tenant: TenantId, job: JobId, corrupt: CorruptRow) {
        tracing::error!(%corrupt, "a job can't be read and is left alone");
        for tables in [&mut self.base, &mut self.tables] {
            tables.jobs.remove(&(tenant, job));
            tables.waiting.retain(|(of, .., id)| (*of, *id) != (tenant, job));
            tables.owed.retain(|(of, .., id)| (*of, *id) != (tenant, job));
            tables.leased.retain(|(_, of, id)| (*of, *id) != (tenant, job));
        }
        self.tables.corrupt.insert((tenant, job), corrupt);
    }
}

/// What is said of a job whose message can't be read.
pub(super) fn without_message(job: JobId) -> CorruptRow {
    CorruptRow { id: job.0, what: "its message is missing" }
}

/// The ranges of ids of the jobs' messages, each once.
pub(super) fn families<'j>(jobs: impl IntoIterator<Item = &'j (TenantId, JobId)>) -> Vec<Param> {
    let families: BTreeSet<_> = jobs.into_iter().map(|(tenant, job)| (*tenant, family(*job))).collect();
    ranges(families.into_iter())
}

pub(super) fn attempts_of(wants: &JobWants) -> Vec<Param> {
    let wanted = wants.iter().filter_map(|(at, want)| Some((at, want.attempts?)));
    let wanted: Vec<_> = wanted.collect();
    let mut params = ids(wanted.iter().map(|((tenant, job), _)| (*tenant, job.0)));
    params.push(Param::ints(wanted.iter().map(|(_, (first, _))| *first)));
    params.push(Param::ints(wanted.iter().map(|(_, (_, last))| *last)));
    params
}

/// Adds a job.
pub(super) fn add(wants: &mut JobWants, at: (TenantId, JobId), want: JobWant) {
    match wants.entry(at) {
        Entry::Vacant(vacant) => drop(vacant.insert(want)),
        Entry::Occupied(mut known) => known.get_mut().add(want),
    }
}
