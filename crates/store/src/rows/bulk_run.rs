//! A bulk run's row.

use std::collections::BTreeMap;

use posthaste_core::{
    BulkFilter, Cause, Class, CorruptRow, JobId, LaneId, RunId, RunKind, RunState, StateName, TenantId,
};
use serde_json::{Value, json};

use super::cells::Cells;
use crate::{BulkCounts, BulkRequest, BulkRun, RefusedJob};

/// All columns of a run.
pub(crate) fn run(mut cells: Cells<'_>) -> Result<BulkRun, CorruptRow> {
    let tenant = TenantId(cells.int()?);
    let id = cells.id()?;
    let mut cells = cells.named(id);
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
        refused: refused_counts(id, &cells.str()?)?,
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
        refused: refused_jobs(id, &cells.str()?)?,
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

/// The refusals of a run by their code, as its row has them.
pub(crate) fn refused_text(run: &BulkRun) -> String {
    let refused: serde_json::Map<String, Value> =
        run.counts.refused.iter().map(|(code, count)| (code.to_string(), Value::from(*count))).collect();
    Value::Object(refused).to_string()
}

/// The first refused jobs of a run, as its row has them.
pub(crate) fn refused_jobs_text(run: &BulkRun) -> String {
    let jobs: Vec<Value> =
        run.refused.iter().map(|refused| json!([refused.job.to_string(), refused.code])).collect();
    Value::Array(jobs).to_string()
}
