//! Bulk runs, and what one would be about.

use posthaste_core::{
    BulkFilter, BulkRow, Cause, Class, JobId, MessageId, RunId, RunKind, StateName, TenantId,
};
use tokio_postgres::Row;

use super::statements;
use crate::{
    BulkCount, BulkCounted, BulkRun,
    bulk::COUNT_EXAMINED_MAX,
    postgres::{decode, fault::Fault, params::Param, session::Session},
    rows::cells::Cells,
};

pub(crate) async fn bulk_count(session: &Session<'_>, count: &BulkCount) -> Result<BulkCounted, Fault> {
    let BulkCount { tenant, kind, filter, after } = count;
    let dead = filter.about_dead_letters(*kind);
    let sql = if dead { statements::BULK_DEAD } else { statements::BULK_LIVE };
    let params =
        [Param::int(tenant.0), Param::maybe_id(after.map(|after| after.0)), Param::int(COUNT_EXAMINED_MAX)];
    let rows = session.rows(sql, &params).await?;
    let window: Vec<_> = rows.iter().map(candidate).collect::<Result<_, _>>()?;
    let examined = u64::try_from(window.len()).unwrap_or(u64::MAX);
    let next = window.last().map(|(id, _)| *id).filter(|_| window.len() == COUNT_EXAMINED_MAX);
    let fits = window.into_iter().filter(|(_, row)| filter.fits_row(*kind, row));
    let fits: Vec<_> = fits.map(|(id, _)| id).collect();
    let matched =
        if filter.needs_row_only() { fits.len() } else { fitting(session, *tenant, filter, &fits).await? };
    Ok(BulkCounted { examined, matched: u64::try_from(matched).unwrap_or(u64::MAX), next })
}

fn candidate(row: &Row) -> Result<(JobId, BulkRow), Fault> {
    let id = JobId(decode::id(row, 0)?);
    let mut cells = Cells::from(row, id.0, 1);
    let row = BulkRow {
        state: cells.word(StateName::parse)?,
        lane: id.lane(),
        cause: cells.maybe_word(Cause::parse)?,
        created_at: cells.at()?,
        settled_at: cells.maybe_at()?,
    };
    Ok((id, row))
}

/// How many of the jobs fit by their messages and their last attempts.
async fn fitting(
    session: &Session<'_>,
    tenant: TenantId,
    filter: &BulkFilter,
    jobs: &[JobId],
) -> Result<usize, Fault> {
    let ranges = || jobs.iter().map(|job| MessageId(job.0).job_range());
    let params = [
        Param::int(tenant.0),
        Param::ids(jobs.iter().map(|job| job.0)),
        Param::ids(ranges().map(|(first, _)| first.0)),
        Param::ids(ranges().map(|(_, last)| last.0)),
    ];
    let mut fitting = 0;
    for row in session.rows(statements::BULK_BESIDE, &params).await? {
        let mut cells = Cells::from(&row, decode::id(&row, 0)?, 1);
        let (key, event_type) = (cells.key()?, cells.maybe_str()?);
        let class = cells.maybe_str()?.as_deref().and_then(Class::parse);
        if filter.fits_message(&key, event_type.as_deref()) && filter.fits_class(class) {
            fitting += 1;
        }
    }
    Ok(fitting)
}

pub(crate) async fn bulk_run(
    session: &Session<'_>,
    tenant: TenantId,
    run: RunId,
) -> Result<Option<BulkRun>, Fault> {
    let rows = session.rows(statements::BULK_RUN, &[Param::int(tenant.0), Param::id(run.0)]).await?;
    rows.first().map(decode::bulk_run).transpose()
}

pub(crate) async fn bulk_runs(
    session: &Session<'_>,
    tenant: TenantId,
    kind: RunKind,
    before: Option<RunId>,
    limit: usize,
) -> Result<Vec<BulkRun>, Fault> {
    let before = Param::maybe_id(before.map(|before| before.0));
    let params = [Param::int(tenant.0), Param::text(kind.as_str()), before, Param::int(limit)];
    session.rows(statements::BULK_RUNS, &params).await?.iter().map(decode::bulk_run).collect()
}

pub(crate) async fn bulk_running(session: &Session<'_>) -> Result<Vec<BulkRun>, Fault> {
    session.rows(statements::BULK_RUNNING, &[]).await?.iter().map(decode::bulk_run).collect()
}
