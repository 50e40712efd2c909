//! Making the jobs of a message with many destinations, a chunk at a time.

use std::collections::BTreeSet;

use posthaste_core::{LaneId, MessageId, TenantId, Timestamp};
use rusqlite::params;

use super::{
    cells::{Cells, signed},
    fault::Fault,
    job_rows::one,
    session::Session,
    targets::{self, Owed},
};
use crate::{FanOutStep, LaneHead, NewMessage, Target, accepting::Birth};

/// The next chunk of a fan-out.
struct Chunk {
    seq: i64,
    tenant: TenantId,
    message: MessageId,
    due_at: Timestamp,
    made: usize,
    owed: Vec<Owed>,
    more: bool,
    accepted_at: Timestamp,
}

impl Session<'_> {
    pub(super) fn insert_fan_out(
        &mut self,
        new: &NewMessage,
        (seq, held_by): (i64, Option<LaneId>),
        due_at: Timestamp,
        targets: &[&Target],
    ) -> Result<(), Fault> {
        for target in targets {
            if self.lane(new.tenant, target.lane)?.is_none() {
                return Err(Fault::Invariant("a target's lane is missing"));
            }
        }
        let targets = targets::encode(targets).map_err(Fault::Invariant)?;
        let held_by = held_by.map(|lane| lane.0);
        let at = params![seq, new.tenant.0, new.id.0.to_be_bytes(), due_at.0, targets, held_by];
        one(self.sql.fanouts_insert.execute(at)?)
    }

    pub(super) fn fan_out(&mut self, jobs_max: usize) -> Result<FanOutStep, Fault> {
        let mut lanes = BTreeSet::new();
        let mut jobs = 0;
        let mut passed = 0;
        while jobs < jobs_max {
            let Some(chunk) = self.next_chunk(&mut passed, jobs_max - jobs)? else { break };
            self.make_chunk(&chunk)?;
            jobs += chunk.owed.len();
            lanes.extend(chunk.owed.iter().map(|owed| (chunk.tenant, owed.lane)));
        }
        let mut heads = Vec::with_capacity(lanes.len());
        for (tenant, lane) in lanes {
            if let Some(due_at) = self.lane_next_due(tenant, lane, None)? {
                heads.push(LaneHead { tenant, lane, due_at });
            }
        }
        let more = self.next_chunk(&mut passed, 1)?.is_some();
        Ok(FanOutStep { jobs, heads, more })
    }

    /// The oldest fan-out after `passed`, which moves on over those that can't be read: first of those that no source
    /// held, then of those whose source goes on.
    fn next_chunk(&mut self, passed: &mut i64, limit: usize) -> Result<Option<Chunk>, Fault> {
        let free = self.next_chunk_of(None, passed, limit)?;
        if free.is_some() {
            return Ok(free);
        }
        match self.resumed_source()? {
            Some(source) => self.next_chunk_of(Some(source), passed, limit),
            None => Ok(None),
        }
    }

    fn next_chunk_of(
        &mut self,
        held_by: Option<(TenantId, LaneId)>,
        passed: &mut i64,
        limit: usize,
    ) -> Result<Option<Chunk>, Fault> {
        loop {
            let mut rows = match held_by {
                None => self.sql.fanouts_oldest.query(params![*passed])?,
                Some((tenant, lane)) => {
                    self.sql.fanouts_oldest_held.query(params![*passed, tenant.0, lane.0])?
                }
            };
            let Some(row) = rows.next()? else { return Ok(None) };
            match chunk(row, limit) {
                Ok(chunk) => return Ok(Some(chunk)),
                Err(fault) => {
                    *passed = row.get(0)?;
                    tracing::error!(seq = *passed, %fault, "a fan-out can't be read and is left alone");
                }
            }
        }
    }

    fn make_chunk(&mut self, chunk: &Chunk) -> Result<(), Fault> {
        let (tenant, message, due_at) = (chunk.tenant, chunk.message, chunk.due_at);
        let share = self.fan_out_share(tenant, chunk.accepted_at, due_at)?;
        let birth = Birth { tenant, message, due_at, now: self.now, share, quarantine: None };
        for owed in &chunk.owed {
            self.make_job(birth, owed.lane, owed.kind, &owed.extra)?;
        }
        if chunk.more {
            let made = signed(chunk.made + chunk.owed.len());
            one(self.sql.fanouts_advance.execute(params![chunk.seq, made])?)
        } else {
            one(self.sql.fanouts_delete.execute(params![chunk.seq])?)
        }
    }
}

fn chunk(row: &rusqlite::Row<'_>, limit: usize) -> Result<Chunk, Fault> {
    let mut cells = Cells::of(row, 0);
    let (seq, tenant, message) = (cells.int()?, TenantId(cells.int()?), cells.message_id()?);
    let (due_at, made) = (cells.at()?, cells.int()?);
    let (owed, more) = targets::decode(cells.bytes()?, made, limit).map_err(Fault::Invariant)?;
    Ok(Chunk { seq, tenant, message, due_at, made, owed, more, accepted_at: cells.at()? })
}
