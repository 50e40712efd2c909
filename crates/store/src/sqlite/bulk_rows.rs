//! A bulk run's row to and from SQL.

use posthaste_core::{Cause, Class, RunId, StateName, TenantId};
use rusqlite::{Params, Statement, params};

use super::{
    cells::{Cells, signed},
    fault::Fault,
    job_rows::one,
};
use crate::{
    BulkRun,
    rows::bulk_run::{refused_jobs_text, refused_text, run},
};

pub(super) fn find(
    statement: &mut Statement<'_>,
    tenant: TenantId,
    run: RunId,
) -> Result<Option<BulkRun>, Fault> {
    one_of(statement, params![tenant.0, run.0.to_be_bytes()])
}

/// The first row, if there is one.
pub(super) fn one_of(statement: &mut Statement<'_>, at: impl Params) -> Result<Option<BulkRun>, Fault> {
    let mut rows = statement.query(at)?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(run(Cells::of(row, 0))?))
}

pub(super) fn all_of(statement: &mut Statement<'_>, at: impl Params) -> Result<Vec<BulkRun>, Fault> {
    let mut rows = statement.query(at)?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next()? {
        match run(Cells::of(row, 0)) {
            Ok(run) => runs.push(run),
            Err(corrupt) => tracing::error!(%corrupt, "a bulk run can't be read and is left out"),
        }
    }
    Ok(runs)
}

/// Writes a run that is new.
pub(super) fn insert(statement: &mut Statement<'_>, run: &BulkRun) -> Result<(), Fault> {
    let (request, filter) = (&run.request, &run.request.filter);
    one(statement.execute(params![
        run.tenant.0,
        run.id.0.to_be_bytes(),
        request.kind.as_str(),
        run.state.as_str(),
        filter.state.map(StateName::as_str),
        filter.lane.map(|lane| lane.0),
        request.destination.as_ref().map(posthaste_core::DestinationId::as_str),
        filter.cause.map(Cause::as_str),
        filter.class.map(Class::as_str),
        filter.key_prefix,
        filter.event_type,
        filter.created_since.map(|at| at.0),
        filter.created_until.map(|at| at.0),
        filter.dead_lettered_since.map(|at| at.0),
        filter.dead_lettered_until.map(|at| at.0),
        request.reason,
        request.assume_not_done,
        request.per_second,
        run.idempotency_key,
        run.actor,
        run.expected.map(signed),
        run.began_at.0,
    ])?)
}

/// Writes how a run stands.
pub(super) fn write(statement: &mut Statement<'_>, run: &BulkRun) -> Result<(), Fault> {
    let counts = &run.counts;
    one(statement.execute(params![
        run.tenant.0,
        run.id.0.to_be_bytes(),
        run.state.as_str(),
        run.cursor.map(|cursor| cursor.0.to_be_bytes()),
        signed(counts.examined),
        signed(counts.matched),
        signed(counts.done),
        signed(counts.requested),
        signed(counts.settled),
        signed(counts.skipped),
        refused_text(run),
        refused_jobs_text(run),
        run.problem,
        run.updated_at.0,
        run.finished_at.map(|at| at.0),
    ])?)
}
