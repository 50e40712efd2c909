//! An attempt's row to and from SQL: written once when it ends, with a late report beside it.

use posthaste_core::{
    AttemptEnd, Class, CorruptRow, JobId, LateReport, RetryWish, RowWrite, TenantId, Timestamp,
};
use rusqlite::{Statement, params};

use super::{
    cells::{Cells, signed},
    fault::Fault,
    job_rows::one,
    session::Session,
};
use crate::{
    AttemptView,
    rows::attempt::{details_to_json, view},
};

/// Every ended attempt of a job, oldest first.
pub(super) fn all_of(
    attempts_of_job: &mut Statement<'_>,
    tenant: TenantId,
    job: JobId,
) -> Result<Result<Vec<AttemptView>, CorruptRow>, Fault> {
    let mut rows = attempts_of_job.query(params![tenant.0, job.0.to_be_bytes()])?;
    let mut views = Vec::new();
    while let Some(row) = rows.next()? {
        match view(&mut Cells::of(row, job.0), job) {
            Ok(view) => views.push(view),
            Err(corrupt) => return Ok(Err(corrupt)),
        }
    }
    Ok(Ok(views))
}

impl Session<'_> {
    /// Writes the attempt's row, or beside it; gives the row if it is new.
    pub(super) fn write_attempt(
        &mut self,
        tenant: TenantId,
        job: JobId,
        row: RowWrite,
    ) -> Result<Option<Box<AttemptEnd>>, Fault> {
        match row {
            RowWrite::End { row, commit_heard_at } => {
                self.insert_attempt(tenant, job, &row, commit_heard_at)?;
                Ok(Some(row))
            }
            RowWrite::Late { report, commit_heard_at } => {
                self.write_late(tenant, job, &report, commit_heard_at)?;
                Ok(None)
            }
            RowWrite::Heard { attempt, at } => {
                let at = params![tenant.0, job.0.to_be_bytes(), attempt.get(), at.0];
                one(self.sql.attempts_heard.execute(at)?)?;
                Ok(None)
            }
        }
    }

    fn insert_attempt(
        &mut self,
        tenant: TenantId,
        job: JobId,
        end: &AttemptEnd,
        commit_heard_at: Option<Timestamp>,
    ) -> Result<(), Fault> {
        let details = &end.details;
        let inserted = self.sql.attempts_insert.execute(params![
            tenant.0,
            job.0.to_be_bytes(),
            end.attempt.get(),
            end.kind.as_str(),
            end.path.as_str(),
            end.worker,
            end.due_at.0,
            end.leased_at.0,
            end.started_at.map(|at| at.0),
            end.finished_at.0,
            end.report.outcome.as_str(),
            end.report.class.map(Class::as_str),
            end.report.effect.as_str(),
            end.report.wish.map(RetryWish::as_str),
            end.reported,
            end.state.as_str(),
            end.next_at.map(|at| at.0),
            end.policy,
            details.status,
            details.duration.map(|duration| signed(duration.0)),
            details.code,
            details.message,
            details.excerpt,
            details.result,
            commit_heard_at.map(|at| at.0),
        ])?;
        one(inserted)
    }

    fn write_late(
        &mut self,
        tenant: TenantId,
        job: JobId,
        late: &LateReport,
        commit_heard_at: Option<Timestamp>,
    ) -> Result<(), Fault> {
        let written = self.sql.attempts_late.execute(params![
            tenant.0,
            job.0.to_be_bytes(),
            late.attempt.get(),
            late.at.0,
            late.report.outcome.as_str(),
            late.report.class.map(Class::as_str),
            late.report.effect.as_str(),
            late.report.wish.map(RetryWish::as_str),
            late.state.as_str(),
            late.next_at.map(|at| at.0),
            late.accepted,
            details_to_json(&late.details),
            commit_heard_at.map(|at| at.0),
        ])?;
        one(written)
    }
}
