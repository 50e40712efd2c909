//! Configuration, schedules, and counts.

use posthaste_core::{DestinationId, StateName, TenantId};
use tokio_postgres::Row;

use super::statements;
use crate::{
    ApiKeyRow, DestinationRow, ScheduleRow, StateCount, Untold,
    postgres::{decode, fault::Fault, params::Param, session::Session},
    rows::cells::Cells,
};

pub(crate) async fn tenants(session: &Session<'_>) -> Result<Vec<(TenantId, Box<str>)>, Fault> {
    let rows = session.rows(statements::TENANTS, &[]).await?;
    rows.iter().map(|row| Ok((decode::tenant(row, 0)?, decode::text(row, 1)?))).collect()
}

pub(crate) async fn destinations(session: &Session<'_>) -> Result<Vec<DestinationRow>, Fault> {
    session.rows(statements::DESTINATIONS, &[]).await?.iter().map(decode::destination).collect()
}

pub(crate) async fn api_keys(session: &Session<'_>) -> Result<Vec<ApiKeyRow>, Fault> {
    session.rows(statements::API_KEYS, &[]).await?.iter().map(decode::api_key).collect()
}

pub(crate) async fn counts(session: &Session<'_>) -> Result<Vec<StateCount>, Fault> {
    let rows = session.rows(statements::COUNTS, &[]).await?;
    let mut counts = rows.iter().map(count).collect::<Result<Vec<_>, _>>()?;
    counts.sort_unstable_by_key(|count| (count.tenant, count.state));
    Ok(counts)
}

fn count(row: &Row) -> Result<StateCount, Fault> {
    let mut cells = Cells::of(row, 0);
    Ok(StateCount {
        tenant: TenantId(cells.int()?),
        state: cells.word(StateName::parse)?,
        jobs: cells.int()?,
    })
}

pub(crate) async fn schedule(
    session: &Session<'_>,
    tenant: TenantId,
    id: &DestinationId,
) -> Result<Option<ScheduleRow>, Fault> {
    let params = [Param::int(tenant.0), Param::text(id.as_str())];
    session.rows(statements::SCHEDULE, &params).await?.first().map(decode::schedule).transpose()
}

pub(crate) async fn schedules(session: &Session<'_>) -> Result<Vec<ScheduleRow>, Fault> {
    session.rows(statements::SCHEDULES, &[]).await?.iter().map(decode::schedule).collect()
}

pub(crate) async fn untold(session: &Session<'_>, limit: usize) -> Result<Vec<Untold>, Fault> {
    session.rows(statements::UNTOLD, &[Param::int(limit)]).await?.iter().map(decode::untold).collect()
}
