//! What leases look at: the messages of the jobs that may be taken, with as many payloads as a grant has room for, and the
//! entries beside those jobs.

use std::collections::BTreeMap;

use posthaste_core::{JobId, LaneId, MessageId, Share, TenantId, limits};
use tokio_postgres::Row;

use super::{
    family,
    jobs::{EntryRows, families, without_message},
    numbers, statements,
};
use crate::{
    LeaseRequest,
    memory::tables::JobEntry,
    postgres::{
        columns::MESSAGE_COLUMNS, decode, fault::Fault, params::Param, session::Session, wants::Wants,
    },
};

/// How long payloads are.
type Lengths = BTreeMap<(TenantId, MessageId), usize>;

/// What was read for leases.
pub(super) struct LeasedRows {
    lines: Vec<Line>,
    bodies: Vec<Row>,
    entries: EntryRows,
}

/// The jobs of a lane that may be taken, in the order in which they are tried.
struct Line {
    tenant: TenantId,
    lane: LaneId,
    jobs: Vec<JobId>,
    bytes_max: usize,
}

impl Session<'_> {
    pub(super) async fn read_leased(&self, wants: &Wants) -> Result<LeasedRows, Fault> {
        let lines = wants.leases.iter().map(|(at, requests)| self.line(wants, *at, requests));
        let lines: Vec<Line> = lines.filter(|line| !line.jobs.is_empty()).collect();
        let jobs: Vec<_> =
            lines.iter().flat_map(|line| line.jobs.iter().map(|job| (line.tenant, *job))).collect();
        let (bodies, entries) = tokio::try_join!(
            self.ask(statements::BODIES_TO_LEASE, self.places(&lines)),
            self.read_beside(jobs.iter())
        )?;
        Ok(LeasedRows { lines, bodies, entries })
    }

    /// The jobs that may be taken: those that are due, unless nothing but one lease touches the lane, so that it is known
    /// which it tries.
    fn line(&self, wants: &Wants, (tenant, lane): (TenantId, LaneId), requests: &[LeaseRequest]) -> Line {
        let bytes_max = requests.iter().fold(0_usize, |sum, request| sum.saturating_add(request.bytes_max));
        // Each grant's first job counts whatever its size, and which one that is, is known for one request alone.
        let is_exact = requests.len() == 1 && wants.only_leases(tenant, lane);
        let bytes_max =
            if is_exact { bytes_max } else { bytes_max.saturating_add(limits::PAYLOAD_BYTES_CEILING) };
        let jobs = match requests {
            [request] if wants.only_leases(tenant, lane) => self.tables.candidates(request, self.now),
            _ => {
                let due = |share| self.tables.waiting_of(tenant, lane, share);
                let jobs = [Share::Fresh, Share::Retry, Share::Bulk].into_iter().flat_map(due);
                jobs.filter(|(due_at, _)| *due_at <= self.now).map(|(_, job)| job).collect()
            }
        };
        Line { tenant, lane, jobs, bytes_max }
    }

    fn places(&self, lines: &[Line]) -> Vec<Param> {
        let rows = || lines.iter().flat_map(|line| line.jobs.iter().map(move |job| (line, *job)));
        let places = lines.iter().flat_map(|line| 0..line.jobs.len());
        let mut params = numbers(rows().map(|(line, _)| (line.tenant, line.lane.0)));
        params.push(Param::ints(places));
        params.push(Param::ids(rows().map(|(_, job)| family(job).0.0)));
        params.push(Param::ids(rows().map(|(_, job)| family(job).1.0)));
        params.push(Param::flags(rows().map(|(line, job)| self.weighs(line.tenant, job))));
        params.push(Param::ints(rows().map(|(line, _)| line.bytes_max)));
        params
    }

    /// Whether the job will surely be leased, if it is tried, so that its payload takes room: no commit was heard, which would
    /// settle it.
    fn weighs(&self, tenant: TenantId, job: JobId) -> bool {
        self.tables.jobs.get(&(tenant, job)).is_some_and(|job| job.row.commit_heard == 0)
    }

    pub(super) async fn keep_leased(&mut self, rows: LeasedRows) -> Result<(), Fault> {
        self.keep_entries(&rows.entries)?;
        let (mut whole, mut thin) = (Vec::new(), Vec::new());
        let mut lengths = Lengths::new();
        for row in rows.bodies {
            let at = (decode::tenant(&row, 0)?, MessageId(decode::id(&row, 1)?));
            lengths
                .insert(at, usize::try_from(decode::int(&row, MESSAGE_COLUMNS + 1)?).unwrap_or(usize::MAX));
            if decode::flag(&row, MESSAGE_COLUMNS)? {
                whole.push(row);
            } else {
                thin.push(row);
            }
        }
        self.keep_bodies(&whole);
        self.keep_thin(&thin);
        for line in &rows.lines {
            for job in &line.jobs {
                if !self.has_message_of(line.tenant, *job) {
                    self.forget_job(line.tenant, *job, without_message(*job));
                }
            }
        }
        if !self.ledger_used {
            return Ok(());
        }
        let missing: Vec<_> = rows.lines.iter().flat_map(|line| self.missing(line, &lengths)).collect();
        let bodies = self.ask(statements::BODIES_OF_JOBS, families(&missing)).await?;
        self.keep_bodies(&bodies);
        Ok(())
    }

    /// The jobs whose payloads are needed after all, since the entries beside others may settle those.
    fn missing(&self, line: &Line, lengths: &Lengths) -> Vec<(TenantId, JobId)> {
        let tenant = line.tenant;
        let mut missing = Vec::new();
        let mut taken = None;
        for id in &line.jobs {
            let Some(Ok(job)) = self.tables.jobs.get(&(tenant, *id)).map(JobEntry::job) else { continue };
            let Some(message) = self.message_id_of(tenant, *id) else { continue };
            let length = lengths.get(&(tenant, message)).copied().unwrap_or(0);
            if taken.is_some_and(|taken: usize| taken.saturating_add(length) > line.bytes_max) {
                break;
            }
            if self.tables.unread.contains(&(tenant, message)) {
                missing.push((tenant, *id));
            }
            if self.weighs(tenant, *id) && self.tables.entry_beside(&job).is_none() {
                taken = Some(taken.unwrap_or(0).saturating_add(length));
            }
        }
        missing
    }
}
