//! What may leave the store, read whole.

use std::collections::{BTreeMap, BTreeSet};

use bytes::Bytes;
use posthaste_core::{LaneId, MessageId, MessageKey, StateName, TenantId, Timestamp};
use tokio_postgres::Row;

use super::{
    messages::bare,
    statements,
    views::{message_of, view, with_attempts},
};
use crate::{
    CustodyEntry, EntryRecord, JobView, KeyKind, MessageRecord, Retention,
    postgres::{decode, fault::Fault, load, params::Param, session::Session},
    retention,
    rows::{cells::Cells, words},
};

/// A message that may have expired.
pub(super) struct Candidate {
    pub(super) seq: i64,
    pub(super) tenant: TenantId,
    pub(super) id: MessageId,
    pub(super) accepted_at: Timestamp,
    pub(super) jobs_total: usize,
    pub(super) payload_bytes: usize,
}

type At = (TenantId, MessageId);

impl Candidate {
    fn at(&self) -> At {
        (self.tenant, self.id)
    }
}

/// Messages after `seq`, in the order of acceptance.
pub(super) async fn candidates(
    session: &Session<'_>,
    seq: i64,
    limit: usize,
) -> Result<Vec<Candidate>, Fault> {
    let rows = session.rows(statements::EXPIRABLE, &[Param::int(seq), Param::int(limit)]).await?;
    let candidate = |row| {
        let mut cells = Cells::of(row, 0);
        Ok(Candidate {
            seq: cells.int()?,
            tenant: TenantId(cells.int()?),
            id: cells.message_id()?,
            accepted_at: cells.at()?,
            jobs_total: cells.int()?,
            payload_bytes: cells.int()?,
        })
    };
    rows.iter().map(candidate).collect()
}

/// The ranges of the messages' jobs, and of each one job more than it should have.
fn job_ranges(candidates: &[Candidate]) -> [Param; 4] {
    let ranges = || candidates.iter().map(|candidate| candidate.id.job_range());
    [
        Param::ints(candidates.iter().map(|candidate| candidate.tenant.0)),
        Param::ids(ranges().map(|(first, _)| first.0)),
        Param::ids(ranges().map(|(_, last)| last.0)),
        Param::ints(candidates.iter().map(|candidate| candidate.jobs_total.saturating_add(1))),
    ]
}

/// When each expires; `None` while it lives.
pub(super) async fn expire_at(
    session: &Session<'_>,
    candidates: &[Candidate],
    retention: &Retention,
) -> Result<Vec<Option<Timestamp>>, Fault> {
    let mut settled: Vec<Vec<(StateName, Timestamp)>> = Vec::new();
    settled.resize_with(candidates.len(), Vec::new);
    for row in session.rows(statements::SETTLED, &job_ranges(candidates)).await? {
        let mut cells = Cells::of(&row, 0);
        let place: usize = cells.int()?;
        let (state, jobs, last) = (cells.word(StateName::parse)?, cells.int()?, cells.at()?);
        let of = place.checked_sub(1).and_then(|place| settled.get_mut(place));
        let of = of.ok_or(Fault::Invariant("what was settled is of no message"))?;
        // Of each state only the last settlement matters.
        of.extend(std::iter::repeat_n((state, last), jobs));
    }
    let expires_at = |(candidate, settled): (&Candidate, Vec<_>)| {
        retention::message_expires_at(retention, candidate.accepted_at, candidate.jobs_total, settled)
    };
    Ok(candidates.iter().zip(settled).map(expires_at).collect())
}

/// What is read of messages beside their rows.
#[derive(Default)]
struct Beside {
    others: BTreeMap<MessageKey, KeyKind>,
    custody: Vec<CustodyEntry>,
    jobs: Vec<JobView>,
}

/// The messages with everything of them: those that are here, with all their jobs settled, and can be read.
pub(super) async fn messages(
    session: &Session<'_>,
    candidates: &[Candidate],
) -> Result<BTreeMap<At, MessageRecord>, Fault> {
    let ids = [
        Param::ints(candidates.iter().map(|candidate| candidate.tenant.0)),
        Param::ids(candidates.iter().map(|candidate| candidate.id.0)),
    ];
    let jobs = job_ranges(candidates);
    let (messages, names, custody, jobs) = tokio::try_join!(
        session.rows(statements::MESSAGES, &ids),
        session.rows(load::statements::OTHER_NAMES, &ids),
        session.rows(load::statements::CUSTODY, &ids),
        session.rows(statements::DONE_OF_MESSAGES, &jobs)
    )?;
    let mut beside: BTreeMap<At, Beside> = BTreeMap::new();
    let mut unread = BTreeSet::new();
    beside_of_rows(&names, &custody, &mut beside, &mut unread)?;
    jobs_of_rows(session, &jobs, &mut beside, &mut unread).await?;
    let mut records = BTreeMap::new();
    for row in &messages {
        let at = (decode::tenant(row, 0)?, MessageId(decode::id(row, 1)?));
        let beside = beside.remove(&at).unwrap_or_default();
        if unread.contains(&at) {
            continue;
        }
        match record(row, beside) {
            Ok(record) => records.extend(record.map(|record| (at, record))),
            Err(fault) => leave_out(&at.1, &fault),
        }
    }
    records.retain(|at, _| candidates.iter().any(|candidate| candidate.at() == *at));
    Ok(records)
}

fn beside_of_rows(
    names: &[Row],
    custody: &[Row],
    beside: &mut BTreeMap<At, Beside>,
    unread: &mut BTreeSet<At>,
) -> Result<(), Fault> {
    for row in names {
        let at = (decode::tenant(row, 0)?, MessageId(decode::id(row, 3)?));
        match decode::key(row) {
            Ok(((_, key), kind, ..)) => drop(beside.entry(at).or_default().others.insert(key, kind)),
            Err(fault) => pass_over(at, fault, unread)?,
        }
    }
    for row in custody {
        let at = (decode::tenant(row, 0)?, MessageId(decode::id(row, 1)?));
        match decode::custody(row) {
            Ok(entry) => beside.entry(at).or_default().custody.push(entry),
            Err(fault) => pass_over(at, fault, unread)?,
        }
    }
    Ok(())
}

async fn jobs_of_rows(
    session: &Session<'_>,
    rows: &[Row],
    beside: &mut BTreeMap<At, Beside>,
    unread: &mut BTreeSet<At>,
) -> Result<(), Fault> {
    let (mut views, mut of) = (Vec::with_capacity(rows.len()), Vec::with_capacity(rows.len()));
    for row in rows {
        // Whose message is missing is nobody's.
        let Some(message) = message_of(row) else { continue };
        let at = (decode::tenant(row, 0)?, message);
        match view(row) {
            Ok(view) => {
                views.push(view);
                of.push(at);
            }
            Err(fault) => pass_over(at, fault, unread)?,
        }
    }
    for (at, view) in of.into_iter().zip(with_attempts(session, views).await?) {
        match view {
            Ok(view) => beside.entry(at).or_default().jobs.push(view),
            Err(corrupt) => pass_over(at, corrupt.into(), unread)?,
        }
    }
    Ok(())
}

/// `None` if not all of its jobs are settled.
fn record(row: &Row, beside: Beside) -> Result<Option<MessageRecord>, Fault> {
    let mut bare = bare(row)?;
    let Beside { others, custody, jobs } = beside;
    if bare.fanout_running || jobs.len() != bare.message.jobs_total {
        return Ok(None);
    }
    bare.message.others = others;
    let message = bare.view();
    let given = bare.message.given;
    let (tenant, fingerprint) = (bare.tenant, given.fingerprint);
    let payload: Bytes = given.payload;
    Ok(Some(MessageRecord { tenant, message, fingerprint, payload, jobs, custody }))
}

/// Leaves out the message if it is a row of its that can't be read.
fn pass_over(at: At, fault: Fault, unread: &mut BTreeSet<At>) -> Result<(), Fault> {
    let Fault::Row(_) = fault else { return Err(fault) };
    leave_out(&at.1, &fault);
    unread.insert(at);
    Ok(())
}

fn leave_out(what: &dyn std::fmt::Display, fault: &Fault) {
    tracing::error!(%what, %fault, "it can't be read and is not archived");
}

/// Done entries after `after` that were done by `until`, and the last that was looked at; without those that are pinned or
/// can't be read.
pub(super) async fn entries(
    session: &Session<'_>,
    until: Timestamp,
    (at, tenant, key): (Timestamp, TenantId, &str),
    limit: usize,
) -> Result<(Vec<EntryRecord>, usize, Option<EntryPlace>), Fault> {
    let params =
        [Param::int(until.0), Param::int(at.0), Param::int(tenant.0), Param::text(key), Param::int(limit)];
    let rows = session.rows(statements::EXPIRABLE_ENTRIES, &params).await?;
    let mut records = Vec::new();
    let mut last = None;
    for row in &rows {
        let key = decode::text(row, 1)?;
        match decode::entry(row) {
            Ok(((tenant, _), entry)) => records.push(EntryRecord { tenant, entry }),
            Err(fault @ Fault::Row(_)) => leave_out(&key, &fault),
            Err(fault) => return Err(fault),
        }
        last = Some((decode::at(row, UPDATED_AT)?, decode::tenant(row, 0)?, key));
    }
    let pinned = pinned(session, &records).await?;
    let free = records.into_iter().zip(pinned).filter(|(_, pinned)| !pinned);
    Ok((free.map(|(record, _)| record).collect(), rows.len(), last))
}

/// When an entry was done, whose it is, and its key.
pub(super) type EntryPlace = (Timestamp, TenantId, Box<str>);

/// Which column of an entry says when it was written.
const UPDATED_AT: usize = 18;

/// Which entries are pinned: their jobs are neither committed nor cancelled, or not made yet.
async fn pinned(session: &Session<'_>, records: &[EntryRecord]) -> Result<Vec<bool>, Fault> {
    let mut pinned = vec![false; records.len()];
    let parts = records.iter().enumerate().filter_map(|(place, record)| {
        let (key, destination) = retention::parts_of(&record.entry.key)?;
        Some((place, record.tenant, key, destination))
    });
    let parts: Vec<_> = parts.collect();
    if parts.is_empty() {
        return Ok(pinned);
    }
    let params = [
        Param::ints(parts.iter().map(|(_, tenant, ..)| tenant.0)),
        Param::texts(parts.iter().map(|(_, _, key, _)| key.as_str())),
        Param::texts(parts.iter().map(|(.., destination)| destination.as_str())),
        Param::ints(parts.iter().map(|(place, ..)| *place)),
    ];
    for row in session.rows(statements::PINS, &params).await? {
        let place = usize::try_from(decode::int(&row, 0)?).unwrap_or(usize::MAX);
        if let Some(pinned) = pinned.get_mut(place) {
            *pinned = pins(&row).unwrap_or_else(|fault| {
                leave_out(&records[place].entry.key, &fault);
                true
            });
        }
    }
    Ok(pinned)
}

/// Whether the job that the row tells of pins its entry.
fn pins(row: &Row) -> Result<bool, Fault> {
    let lane: LaneId = decode::lane_id(row, 1)?;
    // By another of its message's names it is another event id.
    let (of_message, of_archived): (Option<bool>, Option<bool>) = (row.try_get(2)?, row.try_get(3)?);
    let mut cells = Cells::from(row, 0, 4);
    let (dead, state) = (cells.maybe_bytes()?, cells.maybe_word(StateName::parse)?);
    if let Some(is_its_key) = of_archived {
        return Ok(is_its_key && words::lanes_of(dead.unwrap_or_default()).contains(&lane));
    }
    match (of_message, state) {
        (Some(is_its_key), Some(state)) => Ok(is_its_key && retention::pins(state)),
        // Of a fan-out that runs, the job may be made yet.
        (Some(_), None) => decode::flag(row, 6),
        (None, _) => Ok(false),
    }
}
