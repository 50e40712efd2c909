//! Lanes: what is due in them, what holds them, and what befell them.

use posthaste_core::{JobId, LaneId, Scheduling, Share, TenantId};

use super::statements;
use crate::{
    LaneEvent, LaneHead, LaneView,
    lanes::EVENTS_KEPT,
    memory::tables::Tables,
    postgres::{decode, fault::Fault, params::Param, session::Session},
    rows::cells::Cells,
};

/// How many columns of a lane stand before the times of [`statements::HEADS`].
const LANE_COLUMNS: usize = 21;

pub(crate) async fn heads(session: &Session<'_>) -> Result<Vec<LaneHead>, Fault> {
    let (lanes, scheduling) =
        tokio::try_join!(session.rows(statements::HEADS, &[]), session.rows(statements::SCHEDULING, &[]))?;
    let mut tables = Tables::default();
    for row in &scheduling {
        let (tenant, scheduling) = decode::scheduling(row)?;
        tables.scheduling.insert(tenant, scheduling);
    }
    for row in &lanes {
        let ((tenant, lane), known) = decode::lane(row)?;
        let mut cells = Cells::from(row, u128::from(lane.0), LANE_COLUMNS);
        for share in [Share::Fresh, Share::Retry, Share::Bulk] {
            // Which job it is doesn't matter.
            let due_at = cells.maybe_at()?;
            tables.waiting.extend(due_at.map(|due_at| (tenant, lane, share, due_at, JobId(0))));
        }
        tables.lanes.insert((tenant, lane), known);
    }
    Ok(tables.heads())
}

pub(crate) async fn lanes(session: &Session<'_>) -> Result<Vec<LaneView>, Fault> {
    let rows = session.rows(statements::LANES, &[]).await?;
    let view = |row| {
        let ((tenant, id), known) = decode::lane(row)?;
        Ok(LaneView { tenant, id, destination: known.destination, lane: known.lane })
    };
    rows.iter().map(view).collect()
}

pub(crate) async fn scheduling(session: &Session<'_>) -> Result<Vec<(TenantId, Scheduling)>, Fault> {
    session.rows(statements::SCHEDULING, &[]).await?.iter().map(decode::scheduling).collect()
}

pub(crate) async fn lane_events(
    session: &Session<'_>,
    tenant: TenantId,
    lanes: &[Option<LaneId>],
) -> Result<Vec<LaneEvent>, Fault> {
    let numbers = lanes.iter().map(|lane| lane.map_or(decode::SCHEDULING, |lane| lane.0));
    let params = [Param::int(tenant.0), Param::ints(numbers), Param::int(EVENTS_KEPT)];
    let rows = session.rows(statements::LANE_EVENTS, &params).await?;
    rows.iter().map(|row| Ok(decode::lane_event(row)?.1)).collect()
}

pub(crate) async fn held_jobs(session: &Session<'_>) -> Result<u64, Fault> {
    let rows = session.rows(statements::HELD_JOBS, &[Param::int(session.now.0)]).await?;
    rows.first().map_or(Ok(0), |row| decode::count(row, 0))
}
