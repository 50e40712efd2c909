//! Jobs as they are shown.

use std::collections::BTreeMap;

use posthaste_core::{CorruptRow, JobId, MessageId, TenantId};
use tokio_postgres::Row;

use crate::{
    AttemptView, JobView,
    postgres::{
        columns::JOB_COLUMNS, decode, fault::Fault, load::statements::ATTEMPTS, params::Param,
        session::Session,
    },
    rows::cells::Cells,
};

/// A job without its attempts: its columns, and behind them its destination, and its message's key and id.
pub(super) fn view(row: &Row) -> Result<JobView, Fault> {
    let (_, id, entry) = decode::job(row)?;
    let entry = entry?;
    let job = entry.job()?;
    let missing = |what| CorruptRow { id: id.0, what };
    let mut cells = Cells::from(row, id.0, JOB_COLUMNS);
    let destination = cells.maybe_destination()?.ok_or_else(|| missing("its lane is missing"))?;
    message_of(row).ok_or_else(|| missing("its message is missing"))?;
    let key = cells.key()?;
    let attempts = Vec::new();
    Ok(JobView { job, key, destination, wire_id: entry.wire_id, owner: entry.owner, attempts })
}

/// The message of the job.
pub(super) fn message_of(row: &Row) -> Option<MessageId> {
    decode::id(row, JOB_COLUMNS + 2).ok().map(MessageId)
}

/// The views of a list, without those that can't be read.
pub(super) fn readable(rows: &[Row]) -> Result<Vec<JobView>, Fault> {
    let mut views = Vec::with_capacity(rows.len());
    for row in rows {
        match view(row) {
            Ok(view) => views.push(view),
            Err(Fault::Row(corrupt)) => {
                tracing::error!(%corrupt, "a job can't be read and is left out of a list");
            }
            Err(fault) => return Err(fault),
        }
    }
    Ok(views)
}

/// The same jobs with their attempts, oldest first; one with an attempt that can't be read is corrupt.
pub(super) async fn with_attempts(
    session: &Session<'_>,
    views: Vec<JobView>,
) -> Result<Vec<Result<JobView, CorruptRow>>, Fault> {
    let tried = || views.iter().map(|view| &view.job).filter(|job| job.attempt.is_some());
    let params = [
        Param::ints(tried().map(|job| job.tenant.0)),
        Param::ids(tried().map(|job| job.id.0)),
        Param::ints(tried().map(|_| 1)),
        Param::ints(tried().map(|_| u32::MAX)),
    ];
    if tried().next().is_none() {
        return Ok(views.into_iter().map(Ok).collect());
    }
    let mut attempts: BTreeMap<(TenantId, JobId), Result<Vec<AttemptView>, CorruptRow>> = BTreeMap::new();
    for row in session.rows(ATTEMPTS, &params).await? {
        let at = (decode::tenant(&row, 0)?, JobId(decode::id(&row, 1)?));
        match (decode::attempt(&row), attempts.entry(at).or_insert_with(|| Ok(Vec::new()))) {
            (Ok((_, view)), Ok(known)) => known.push(view),
            (Ok(_), Err(_)) => {}
            (Err(Fault::Row(corrupt)), known) => *known = Err(corrupt),
            (Err(fault), _) => return Err(fault),
        }
    }
    let with_attempts = |view: JobView| {
        let mut attempts = attempts.remove(&(view.job.tenant, view.job.id)).unwrap_or(Ok(Vec::new()))?;
        attempts.sort_unstable_by_key(|attempt| attempt.end.attempt);
        Ok(JobView { attempts, ..view })
    };
    Ok(views.into_iter().map(with_attempts).collect())
}
