//! A lane's row, and that of a tenant's scheduling.

use posthaste_core::{
    CorruptRow, JobId, Lane, Scheduling,
    lane::{Circuit, Health, Hold},
};

use super::cells::Cells;

/// The columns of a lane after its destination.
pub(crate) fn lane(cells: &mut Cells<'_>) -> Result<Lane, CorruptRow> {
    let not_before = cells.at()?;
    let (paused, disabled, switched_off) = (hold(cells)?, hold(cells)?, cells.flag()?);
    let (since, until) = (cells.maybe_at()?, cells.maybe_at()?);
    let probe = cells.maybe_id()?.map(JobId);
    let circuit = match (since.zip(until), probe) {
        (None, _) => Circuit::Closed,
        (Some((since, until)), None) => Circuit::Open { since, until },
        (Some((since, until)), Some(probe)) => Circuit::HalfOpen { since, until, probe },
    };
    let (failures, refusals) = (cells.int()?, cells.int()?);
    let (failing_since, trips) = (cells.maybe_at()?, cells.int()?);
    Ok(Lane {
        not_before,
        paused,
        disabled,
        switched_off,
        circuit,
        health: Health { failures, refusals, failing_since, trips },
        held_ms: cells.int()?,
        held_since: cells.maybe_at()?,
        rate_used_us: cells.int()?,
    })
}

fn hold(cells: &mut Cells<'_>) -> Result<Option<Hold>, CorruptRow> {
    let (at, reason, by) = (cells.maybe_at()?, cells.maybe_text()?, cells.maybe_text()?);
    Ok(at.map(|at| Hold { at, reason: reason.unwrap_or_default(), by: by.unwrap_or_default() }))
}

/// The columns of a tenant's scheduling after the tenant.
pub(crate) fn scheduling(cells: &mut Cells<'_>) -> Result<Scheduling, CorruptRow> {
    Ok(Scheduling { paused: hold(cells)?, held_ms: cells.int()? })
}
