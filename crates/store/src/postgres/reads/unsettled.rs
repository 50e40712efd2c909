//! What is still to be found out: read here, decided by the core.

use std::collections::{BTreeMap, BTreeSet};

use parking_lot::Mutex;
use posthaste_core::{CorruptRow, Entry, EventId, JobId, LaneId, TenantId, is_settled_by_evidence};
use tokio_postgres::Row;

use super::{statements, views::view};
use crate::{
    JobView, LookUpDue, LookUps, Provable, SweepCursor, ledger,
    memory::tables::Tables,
    postgres::{decode, fault::Fault, load, params::Param, session::Session},
    rows::cells::Cells,
};

/// Rows that a process remembers having told of.
const PASSED_OVER_MAX: usize = 65_536;

pub(crate) async fn look_ups(session: &Session<'_>, per_lane: usize, limit: usize) -> Result<LookUps, Fault> {
    let params = [Param::int(per_lane), Param::int(limit), Param::int(session.now.0)];
    let mut found = LookUps::default();
    for row in session.rows(statements::LOOK_UPS, &params).await? {
        let mut cells = Cells::of(&row, 0);
        let (due_at, tenant, job) = (cells.maybe_at()?, cells.maybe_int()?, cells.maybe_id()?);
        match (due_at, tenant, job) {
            (Some(due_at), Some(tenant), Some(job)) => {
                found.due.push(LookUpDue { due_at, tenant: TenantId(tenant), job: JobId(job) });
            }
            (next_due, ..) => found.next_due = next_due,
        }
    }
    found.due.sort_unstable();
    Ok(found)
}

pub(crate) async fn lane_look_ups(
    session: &Session<'_>,
    tenant: TenantId,
    lane: LaneId,
    limit: usize,
) -> Result<Vec<JobId>, Fault> {
    let params = [Param::int(tenant.0), Param::int(lane.0), Param::int(session.now.0), Param::int(limit)];
    let rows = session.rows(statements::LOOK_UPS_OF_LANE, &params).await?;
    rows.iter().map(|row| Ok(JobId(decode::id(row, 0)?))).collect()
}

pub(crate) async fn provable(
    session: &Session<'_>,
    after: Option<SweepCursor>,
    limit: usize,
) -> Result<Provable, Fault> {
    let after = after.unwrap_or(SweepCursor::START);
    let sql = if after.dead { statements::SWEEP_DEAD } else { statements::SWEEP_LIVE };
    let params = [Param::int(after.tenant.0), Param::id(after.job.0), Param::int(limit)];
    let (rows, used) =
        tokio::try_join!(session.rows(sql, &params), session.rows(load::statements::LEDGER_ANY, &[]))?;
    let last = rows.last().map(named).transpose()?;
    let mut provable = Provable { next: after.following(rows.len(), limit, last), ..Provable::default() };
    let mut views = Vec::new();
    for row in &rows {
        match view(row) {
            Ok(view) => views.push(view),
            Err(Fault::Row(corrupt)) => {
                provable.corrupt += 1;
                pass_over(named(row)?, &corrupt);
            }
            Err(fault) => return Err(fault),
        }
    }
    let used = used.first().map_or(Ok(false), |row| decode::flag(row, 0))?;
    let facts = if used { facts(session, &views).await? } else { Facts::new() };
    let settled = |view: &&JobView| {
        let fact = facts.get(&(view.job.tenant, event_id(view))).copied().unwrap_or(Entry::Unknown);
        is_settled_by_evidence(&view.job, fact)
    };
    provable.jobs = views.iter().filter(settled).map(|view| (view.job.tenant, view.job.id)).collect();
    Ok(provable)
}

fn named(row: &Row) -> Result<(TenantId, JobId), Fault> {
    Ok((decode::tenant(row, 0)?, JobId(decode::id(row, 1)?)))
}

fn event_id(view: &JobView) -> EventId {
    EventId::of(&view.key, &view.destination)
}

type Facts = BTreeMap<(TenantId, EventId), Entry>;

/// What the entries beside jobs say, where anybody made one.
async fn facts(session: &Session<'_>, views: &[JobView]) -> Result<Facts, Fault> {
    let keys = [
        Param::ints(views.iter().map(|view| view.job.tenant.0)),
        Param::texts(views.iter().map(|view| event_id(view).as_str().to_owned())),
    ];
    let (own, archived) = tokio::try_join!(
        session.rows(load::statements::ENTRIES, &keys),
        session.rows(load::statements::ARCHIVED_ENTRIES, &keys)
    )?;
    let mut facts = Facts::new();
    for row in &archived {
        let (at, known) = decode::archived_entry(row)?;
        if known.entry.of_job.is_none() {
            facts.insert(at, ledger::fact_of(&known.entry.entry));
        }
    }
    for row in &own {
        let (at, entry) = decode::entry(row)?;
        facts.insert(at, ledger::fact_of(&entry.entry));
    }
    Ok(facts)
}

/// Tells of a job that can't be read: of each once.
fn pass_over((tenant, job): (TenantId, JobId), corrupt: &CorruptRow) {
    static TOLD: Mutex<BTreeSet<(TenantId, JobId)>> = Mutex::new(BTreeSet::new());
    let mut told = TOLD.lock();
    if told.len() < PASSED_OVER_MAX && told.insert((tenant, job)) {
        tracing::error!(tenant = tenant.0, %job, %corrupt, "a job can't be read and is left alone");
    }
}

pub(crate) async fn lane_held_ms(
    session: &Session<'_>,
    tenant: TenantId,
    lane: LaneId,
) -> Result<u64, Fault> {
    let at = [Param::int(tenant.0), Param::int(lane.0)];
    let of = [Param::int(tenant.0)];
    let (lanes, scheduling) =
        tokio::try_join!(session.rows(statements::LANE, &at), session.rows(statements::SCHEDULING_OF, &of))?;
    let mut tables = Tables::default();
    for row in &lanes {
        let (at, known) = decode::lane(row)?;
        tables.lanes.insert(at, known);
    }
    for row in &scheduling {
        let (tenant, known) = decode::scheduling(row)?;
        tables.scheduling.insert(tenant, known);
    }
    Ok(tables.held_ms(tenant, lane, session.now))
}
