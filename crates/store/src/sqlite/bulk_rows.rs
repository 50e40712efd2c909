//! A bulk run's row to and from SQL.

use std::collections::BTreeMap;

use posthaste_core::{
    BulkFilter, Cause, Class, CorruptRow, JobId, LaneId, RunId, RunKind, RunState, StateName, TenantId,
};
use rusqlite::{Params, Row, Statement, params};
use serde_json::{Value, json};

use super::{
    cells::{Cells, signed},
    fault::Fault,
    job_rows::one,
};
use crate::{BulkCounts, BulkRequest, BulkRun, RefusedJob};

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
    Ok(Some(run(row)?))
}

pub(super) fn all_of(statement: &mut Statement<'_>, at: impl Params) -> Result<Vec<BulkRun>, Fault> {
    let mut rows = statement.query(at)?;
    let mut runs = Vec::new();
    while let Some(row) = rows.next()? {
        match run(row) {
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
    let refused: serde_json::Map<String, Value> =
        counts.refused.iter().map(|(code, count)| (code.to_string(), Value::from(*count))).collect();
    let jobs: Vec<Value> =
        run.refused.iter().map(|refused| json!([refused.job.to_string(), refused.code])).collect();
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
        Value::Object(refused).to_string(),
        Value::Array(jobs).to_string(),
        run.problem,
        run.updated_at.0,
        run.finished_at.map(|at| at.0),
    ])?)
}

fn run(row: &Row<'_>) -> Result<BulkRun, CorruptRow> {
    let mut cells = Cells::of(row, 0);
    let tenant = TenantId(cells.int()?);
    let id = cells.id()?;
    let mut cells = Cells::from(row, id, 2);
    let (kind, state) = (cells.word(RunKind::parse)?, cells.word(RunState::parse)?);
    let job_state = cells.maybe_word(StateName::parse)?;
    let (lane, destination) = (cells.maybe_int()?.map(LaneId), cells.maybe_destination()?);
    let filter = BulkFilter {
        state: job_state,
        lane,
        cause: cells.maybe_word(Cause::parse)?,
        class: cells.maybe_word(Class::parse)?,
        key_prefix: cells.maybe_text()?,
        event_type: cells.maybe_text()?,
        created_since: cells.maybe_at()?,
        created_until: cells.maybe_at()?,
        dead_lettered_since: cells.maybe_at()?,
        dead_lettered_until: cells.maybe_at()?,
    };
    let (reason, assume_not_done, per_second) = (cells.text()?, cells.flag()?, cells.int()?);
    let request = BulkRequest { kind, filter, destination, reason, assume_not_done, per_second };
    let (idempotency_key, actor) = (cells.maybe_text()?, cells.text()?);
    let (expected, began_at, cursor) = (cells.maybe_int()?, cells.at()?, cells.maybe_id()?.map(JobId));
    let counts = BulkCounts {
        examined: cells.int()?,
        matched: cells.int()?,
        done: cells.int()?,
        requested: cells.int()?,
        settled: cells.int()?,
        skipped: cells.int()?,
        refused: refused_counts(id, cells.str()?)?,
    };
    Ok(BulkRun {
        tenant,
        id: RunId(id),
        request,
        idempotency_key,
        actor,
        state,
        expected,
        began_at,
        cursor,
        counts,
        refused: refused_jobs(id, cells.str()?)?,
        problem: cells.maybe_text()?,
        updated_at: cells.at()?,
        finished_at: cells.maybe_at()?,
    })
}

fn refused_counts(id: u128, text: &str) -> Result<BTreeMap<Box<str>, u64>, CorruptRow> {
    let corrupt = || CorruptRow { id, what: "its refusals can't be read" };
    let Ok(Value::Object(counts)) = serde_json::from_str(text) else { return Err(corrupt()) };
    counts.into_iter().map(|(code, count)| Ok((code.into(), count.as_u64().ok_or_else(corrupt)?))).collect()
}

fn refused_jobs(id: u128, text: &str) -> Result<Vec<RefusedJob>, CorruptRow> {
    let corrupt = || CorruptRow { id, what: "its refused jobs can't be read" };
    let Ok(Value::Array(jobs)) = serde_json::from_str(text) else { return Err(corrupt()) };
    let read = |value: &Value| {
        let job = JobId::parse(value[0].as_str()?)?;
        Some(RefusedJob { job, code: value[1].as_str()?.into() })
    };
    jobs.iter().map(|value| read(value).ok_or_else(corrupt)).collect()
}
