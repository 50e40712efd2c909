//! What a step of fan-out looks at: the oldest fan-outs, the lanes of their next targets, and what waits there.

use std::collections::BTreeSet;

use posthaste_core::{LaneId, MessageId, TenantId, Timestamp};
use tokio_postgres::Row;

use super::{
    ids,
    lanes::{Depths, waiting},
    numbers, statements,
};
use crate::{
    memory::tables::FanOut,
    postgres::{
        decode,
        fault::Fault,
        params::Param,
        session::{Session, keep},
        wants::Wants,
    },
};

/// A fan-out that may go on.
struct Ready {
    seq: u64,
    tenant: TenantId,
    message: MessageId,
    held_by: Option<LaneId>,
    /// Jobs that are left to be made.
    left: usize,
}

impl Session<'_> {
    pub(super) async fn load_fan_out(&mut self, wants: &Wants, jobs_max: usize) -> Result<(), Fault> {
        let limit = || vec![Param::int(jobs_max.saturating_add(1))];
        let ((), free, resumed) = tokio::try_join!(
            self.lock_guards(wants),
            self.ask(statements::FANOUTS_FREE, limit()),
            self.ask(statements::FANOUTS_RESUMED, limit())
        )?;
        let (next, later) = next(free.iter().chain(&resumed), jobs_max)?;
        let messages = ids(next.iter().map(|ready| (ready.tenant, ready.message.0)));
        let seqs = Param::ints(next.iter().map(|ready| ready.seq));
        let (messages, fanouts) = tokio::try_join!(
            self.ask(statements::MESSAGES, messages),
            self.ask(statements::FANOUTS, vec![seqs])
        )?;
        self.keep_thin(&messages);
        for row in &fanouts {
            self.keep_fan_out(row);
        }
        if let Some(Ready { seq, tenant, message, held_by, .. }) = later {
            // It only tells that there are more.
            let due_at = Timestamp(0);
            let later = FanOut { tenant, message, due_at, targets: Vec::new(), made: 0, held_by };
            keep(&mut self.base.fanouts, &mut self.tables.fanouts, seq, later);
        }
        self.load_targets(jobs_max).await
    }

    fn keep_fan_out(&mut self, row: &Row) {
        match decode::fanout(row) {
            Ok((seq, fan_out)) if self.base.messages.contains_key(&(fan_out.tenant, fan_out.message)) => {
                keep(&mut self.base.fanouts, &mut self.tables.fanouts, seq, fan_out);
            }
            Ok((seq, _)) => tracing::error!(seq, "a fan-out has no message and is left alone"),
            Err(fault) => tracing::error!(%fault, "a fan-out can't be read and is left alone"),
        }
    }

    /// The lanes of the next targets, and what waits there first.
    async fn load_targets(&mut self, jobs_max: usize) -> Result<(), Fault> {
        let mut depths = Depths::new();
        for fan_out in self.tables.fanouts.values() {
            let left = fan_out.targets.iter().skip(fan_out.made).take(jobs_max);
            depths.extend(left.map(|target| ((fan_out.tenant, target.lane), 1)));
        }
        let tenants: BTreeSet<TenantId> = depths.keys().map(|(tenant, _)| *tenant).collect();
        let lanes = numbers(depths.keys().map(|(tenant, lane)| (*tenant, lane.0)));
        let (lanes, scheduling, jobs) = tokio::try_join!(
            self.ask(statements::LANES, lanes),
            self.lock_scheduling(std::iter::empty(), tenants),
            self.ask(statements::WAITING, waiting(&depths))
        )?;
        self.keep_lanes(&lanes)?;
        self.keep_scheduling(&scheduling)?;
        self.keep_waiting(&jobs)?;
        if depths.keys().any(|at| !self.tables.lanes.contains_key(at)) {
            return Err(Fault::Invariant("a target's lane is missing"));
        }
        self.look_deeper(depths).await
    }
}

/// The fan-outs that have the next `jobs_max` jobs, and the one after them.
fn next<'r>(
    rows: impl Iterator<Item = &'r Row>,
    jobs_max: usize,
) -> Result<(Vec<Ready>, Option<Ready>), Fault> {
    let (mut next, mut jobs) = (Vec::new(), 0);
    for row in rows {
        let seq = decode::count(row, 0)?;
        let Some(left) = decode::maybe_int(row, 4)? else {
            tracing::error!(seq, "a fan-out has no message and is left alone");
            continue;
        };
        let ready = Ready {
            seq,
            tenant: decode::tenant(row, 1)?,
            message: MessageId(decode::id(row, 2)?),
            held_by: decode::maybe_int(row, 3)?.and_then(|lane| u32::try_from(lane).ok()).map(LaneId),
            left: usize::try_from(left).unwrap_or(0),
        };
        if jobs >= jobs_max {
            return Ok((next, Some(ready)));
        }
        jobs += ready.left;
        next.push(ready);
    }
    Ok((next, None))
}
