//! What expired, and what is still known of what left.

use posthaste_core::TenantId;
use tokio_postgres::Row;

use super::{
    messages::{named, others},
    records::{self, Candidate},
    statements,
};
use crate::{
    ArchiveFile, ArchivedMessage, Expiry, ExpiryCursor, ExpiryRequest, Indexed, MessageName,
    postgres::{columns::ARCHIVED_COLUMNS, decode, fault::Fault, params::Param, session::Session},
    retention::{self, CANDIDATES_MAX},
    rows::cells::Cells,
};

/// Jobs that are looked at with one statement, unless one message has more.
const JOBS_AT_ONCE: usize = 4_096;

/// Messages that are read whole with one statement.
const RECORDS_AT_ONCE: usize = 64;

pub(crate) async fn expirable(session: &Session<'_>, request: &ExpiryRequest) -> Result<Expiry, Fault> {
    match &request.after {
        ExpiryCursor::Messages(seq) => expirable_messages(session, request, *seq).await,
        ExpiryCursor::Entries { at, tenant, key } => {
            let until = session.now.0.saturating_sub_unsigned(request.retention.ledger.0);
            let limit = request.records_max.min(CANDIDATES_MAX);
            let after = (*at, *tenant, &**key);
            let (entries, seen, last) =
                records::entries(session, posthaste_core::Timestamp(until), after, limit).await?;
            let last = last.filter(|_| seen == limit);
            let next = last.map(|(at, tenant, key)| ExpiryCursor::Entries { at, tenant, key });
            Ok(Expiry { entries, next, ..Expiry::default() })
        }
    }
}

async fn expirable_messages(
    session: &Session<'_>,
    request: &ExpiryRequest,
    after: i64,
) -> Result<Expiry, Fault> {
    let (expired, mut next) = expired(session, request, after).await?;
    let mut messages = Vec::new();
    let (mut bytes, mut seq) = (0, after);
    'whole: for some in expired.chunks(RECORDS_AT_ONCE) {
        let mut whole = records::messages(session, some).await?;
        for candidate in some {
            if bytes >= request.bytes_max {
                next = ExpiryCursor::Messages(seq);
                break 'whole;
            }
            seq = candidate.seq;
            if let Some(record) = whole.remove(&(candidate.tenant, candidate.id)) {
                bytes += retention::weight_of(&record);
                messages.push(record);
            }
        }
    }
    Ok(Expiry { messages, next: Some(next), ..Expiry::default() })
}

/// Messages that expired, as many as may be wanted; and where to go on behind them.
async fn expired(
    session: &Session<'_>,
    request: &ExpiryRequest,
    after: i64,
) -> Result<(Vec<Candidate>, ExpiryCursor), Fault> {
    let mut candidates = records::candidates(session, after, CANDIDATES_MAX).await?;
    let mut ended = candidates.len() < CANDIDATES_MAX;
    let shortest = request.retention.committed.min(request.retention.dead_lettered);
    let young = |candidate: &Candidate| candidate.accepted_at.after(shortest) > session.now;
    if let Some(first) = candidates.iter().position(young) {
        // Whoever came later can't have expired either.
        candidates.truncate(first);
        ended = true;
    }
    let (mut expired, mut bytes, mut seq) = (Vec::new(), 0_usize, after);
    while !candidates.is_empty() {
        let rest = candidates.split_off(at_once(&candidates));
        let expire_at = records::expire_at(session, &candidates, &request.retention).await?;
        for (candidate, expires_at) in candidates.into_iter().zip(expire_at) {
            if expired.len() >= request.records_max || bytes >= request.bytes_max {
                return Ok((expired, ExpiryCursor::Messages(seq)));
            }
            seq = candidate.seq;
            if expires_at.is_some_and(|at| at <= session.now) {
                bytes = bytes.saturating_add(candidate.payload_bytes);
                expired.push(candidate);
            }
        }
        candidates = rest;
    }
    Ok((expired, if ended { ExpiryCursor::first_entry() } else { ExpiryCursor::Messages(seq) }))
}

/// How many of the candidates are looked at with one statement.
fn at_once(candidates: &[Candidate]) -> usize {
    let mut jobs = 0_usize;
    let fits = candidates.iter().take_while(|candidate| {
        jobs = jobs.saturating_add(candidate.jobs_total);
        jobs <= JOBS_AT_ONCE
    });
    fits.count().max(1)
}

pub(crate) async fn archived(
    session: &Session<'_>,
    tenant: TenantId,
    name: &MessageName,
) -> Result<Option<ArchivedMessage>, Fault> {
    let (message, names) = match name {
        MessageName::Id(_) => (statements::ARCHIVED, statements::NAMES),
        MessageName::Key(_) => (statements::ARCHIVED_NAMED, statements::NAMES_NAMED),
    };
    let params = named(tenant, name);
    let (rows, names) = tokio::try_join!(session.rows(message, &params), session.rows(names, &params))?;
    let Some(row) = rows.first() else { return Ok(None) };
    let mut known = decode::archived(row)?.1.known;
    let duplicates = decode::maybe_int(row, ARCHIVED_COLUMNS)?;
    known.duplicates = duplicates.ok_or(Fault::Invariant("a message's key is missing"))?.unsigned_abs();
    known.aliases = others(&names)?.into_iter().map(|(key, kind)| (kind, key)).collect();
    Ok(Some(known))
}

pub(crate) async fn archive_files(
    session: &Session<'_>,
    after: Option<&str>,
    limit: usize,
) -> Result<Vec<ArchiveFile>, Fault> {
    let after = after.map_or(Param::Text(None), Param::text);
    let rows = session.rows(statements::ARCHIVE_FILES, &[after, Param::int(limit)]).await?;
    rows.iter().map(decode::archive_file).collect()
}

pub(crate) async fn archived_in(
    session: &Session<'_>,
    file: &str,
    after: Option<u64>,
    limit: usize,
) -> Result<Vec<Indexed>, Fault> {
    let after = after.map_or(-1, crate::rows::cells::signed);
    let params = [Param::text(file), Param::int(after), Param::int(limit)];
    let (messages, entries) = tokio::try_join!(
        session.rows(statements::ARCHIVED_IN, &params),
        session.rows(statements::ARCHIVED_ENTRIES_IN, &params)
    )?;
    let mut indexed = messages.iter().chain(&entries).map(indexed).collect::<Result<Vec<_>, Fault>>()?;
    indexed.sort_by_key(|indexed| indexed.at_byte);
    indexed.truncate(limit);
    Ok(indexed)
}

fn indexed(row: &Row) -> Result<Indexed, Fault> {
    let mut cells = Cells::of(row, 0);
    Ok(Indexed {
        tenant: TenantId(cells.int()?),
        message: cells.maybe_id()?.map(posthaste_core::MessageId),
        key: cells.text()?,
        at_byte: cells.int()?,
        bytes: cells.int()?,
    })
}
