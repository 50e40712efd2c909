//! Jobs, and entries of the ledger.

use posthaste_core::{EventId, JobId, MessageId, StateName, TenantId, Timestamp, limits};
use tokio_postgres::Row;

use super::{
    statements,
    views::{message_of, readable, view, with_attempts},
};
use crate::{
    JobBrief, JobFilter, JobView, LedgerEntry, NamedJob, accepting, ledger,
    postgres::{decode, fault::Fault, load, params::Param, session::Session},
};

pub(crate) async fn job(
    session: &Session<'_>,
    tenant: TenantId,
    job: JobId,
) -> Result<Option<JobView>, Fault> {
    let at = || [Param::int(tenant.0), Param::id(job.0)];
    let (live, done) = (at(), at());
    let (live, done) = tokio::try_join!(
        session.rows(statements::JOB_LIVE, &live),
        session.rows(statements::JOB_DONE, &done)
    )?;
    let Some(row) = live.first().or(done.first()) else { return Ok(None) };
    let views = with_attempts(session, vec![view(row)?]).await?;
    views.into_iter().next().transpose().map_err(Fault::from)
}

pub(crate) async fn jobs(
    session: &Session<'_>,
    tenant: TenantId,
    filter: &JobFilter,
) -> Result<Vec<JobView>, Fault> {
    let (live, done) = if filter.oldest_first {
        (statements::LIVE_OLDEST, statements::DONE_OLDEST)
    } else {
        (statements::LIVE_NEWEST, statements::DONE_NEWEST)
    };
    let params = [
        Param::int(tenant.0),
        Param::maybe_id(filter.after.map(|after| after.0)),
        Param::Int(filter.lane.map(|lane| lane.0.into())),
        Param::Text(filter.state.map(|state| state.as_str().to_owned())),
        Param::int(filter.limit),
    ];
    let rows = match filter.state.map(StateName::is_settled) {
        Some(true) => session.rows(done, &params).await?,
        Some(false) => session.rows(live, &params).await?,
        None => {
            let (mut rows, done) =
                tokio::try_join!(session.rows(live, &params), session.rows(done, &params))?;
            rows.extend(done);
            by_id(&mut rows)?;
            if !filter.oldest_first {
                rows.reverse();
            }
            rows.truncate(filter.limit);
            rows
        }
    };
    readable(&rows)
}

fn by_id(rows: &mut [Row]) -> Result<(), Fault> {
    // So that whatever the key is read from is known to be there.
    rows.iter().try_for_each(|row| decode::id(row, 1).map(drop))?;
    rows.sort_by_cached_key(|row| decode::id(row, 1).unwrap_or_default());
    Ok(())
}

/// A message's first jobs, by lane, without their attempts.
async fn first_jobs(
    session: &Session<'_>,
    tenant: TenantId,
    message: MessageId,
    limit: usize,
) -> Result<Vec<JobView>, Fault> {
    let (first, last) = message.job_range();
    let params = [Param::int(tenant.0), Param::id(first.0), Param::id(last.0), Param::int(limit)];
    let (mut rows, done) = tokio::try_join!(
        session.rows(statements::LIVE_OF_MESSAGE, &params),
        session.rows(statements::DONE_OF_MESSAGE, &params)
    )?;
    rows.extend(done);
    by_id(&mut rows)?;
    rows.truncate(limit);
    rows.retain(|row| message_of(row) == Some(message));
    readable(&rows)
}

pub(crate) async fn message_jobs(
    session: &Session<'_>,
    tenant: TenantId,
    message: MessageId,
    limit: usize,
) -> Result<Vec<JobView>, Fault> {
    let views = first_jobs(session, tenant, message, limit).await?;
    let mut whole = Vec::with_capacity(views.len());
    for view in with_attempts(session, views).await? {
        match view {
            Ok(view) => whole.push(view),
            Err(corrupt) => tracing::error!(%corrupt, "a job can't be read and is left out of a list"),
        }
    }
    Ok(whole)
}

pub(crate) async fn briefs(
    session: &Session<'_>,
    tenant: TenantId,
    message: MessageId,
) -> Result<Vec<JobBrief>, Fault> {
    let views = first_jobs(session, tenant, message, limits::JOBS_LISTED_MAX).await?;
    Ok(views.into_iter().map(|view| accepting::brief(&view.job, view.destination)).collect())
}

#[allow(clippy::type_complexity)] // as in the seam
pub(crate) async fn expired(
    session: &Session<'_>,
    limit: usize,
) -> Result<(Vec<(TenantId, JobId)>, Option<Timestamp>), Fault> {
    let rows = session.rows(statements::LEASES_OVER, &[Param::int(limit.saturating_add(1))]).await?;
    let mut over = Vec::new();
    for row in &rows {
        let expires_at = decode::at(row, 2)?;
        if over.len() >= limit || expires_at > session.now {
            return Ok((over, Some(expires_at)));
        }
        over.push((decode::tenant(row, 0)?, JobId(decode::id(row, 1)?)));
    }
    Ok((over, None))
}

pub(crate) async fn entry(
    session: &Session<'_>,
    tenant: TenantId,
    key: &EventId,
    named: Option<&NamedJob>,
) -> Result<Option<LedgerEntry>, Fault> {
    let named = named.filter(|named| named.guarded);
    let keys = [Param::ints([tenant.0]), Param::texts([key.as_str()])];
    let message = named.map_or("", |named| named.key.as_str());
    let message = [Param::int(tenant.0), Param::text(message)];
    let (own, archived, messages) = tokio::try_join!(
        session.rows(load::statements::ENTRIES, &keys),
        session.rows(load::statements::ARCHIVED_ENTRIES, &keys),
        session.rows(statements::MESSAGE_OF_KEY, &message)
    )?;
    if let Some(row) = own.first() {
        return Ok(Some(decode::entry(row)?.1));
    }
    let archived = archived.first().map(decode::archived_entry).transpose()?.map(|(_, known)| known.entry);
    let Some(named) = named.filter(|_| archived.as_ref().is_none_or(|entry| entry.of_job.is_some())) else {
        return Ok(archived.filter(|entry| entry.of_job.is_none()));
    };
    // Its job may have left with its message.
    let Some(row) = messages.first() else { return Ok(archived) };
    let id = JobId::of(MessageId(decode::id(row, 0)?), named.lane);
    let Some(view) = job(session, tenant, id).await? else { return Ok(archived) };
    Ok(ledger::of_job(&view.job, key, view.attempts.last()))
}
