//! What is configured at run time, and files of the archive.

use posthaste_core::{ApiKeyId, CorruptRow, LaneId, TenantId, Timestamp};

use super::{cells::Cells, words::managed_by};
use crate::{ApiKeyRow, ArchiveFile, DestinationKind, DestinationRow, SchedulePause, ScheduleRow};

/// All columns of a destination.
pub(crate) fn destination(cells: &mut Cells<'_>) -> Result<DestinationRow, CorruptRow> {
    Ok(DestinationRow {
        tenant: TenantId(cells.int()?),
        id: cells.destination()?,
        kind: cells.word(DestinationKind::parse)?,
        lane: LaneId(cells.int()?),
        config: cells.text()?,
        managed_by: cells.word(managed_by)?,
        enabled: cells.flag()?,
        owner: cells.maybe_text()?,
        created_at: cells.at()?,
        updated_at: cells.at()?,
    })
}

/// All columns of an API key.
pub(crate) fn api_key(cells: &mut Cells<'_>) -> Result<ApiKeyRow, CorruptRow> {
    Ok(ApiKeyRow {
        tenant: TenantId(cells.int()?),
        id: ApiKeyId(cells.id()?),
        name: cells.text()?,
        secret_hash: cells.array()?,
        scopes: cells.text()?,
        created_at: cells.at()?,
        revoked_at: cells.maybe_at()?,
    })
}

/// All columns of a schedule.
pub(crate) fn schedule(cells: &mut Cells<'_>) -> Result<ScheduleRow, CorruptRow> {
    let mut schedule = ScheduleRow {
        tenant: TenantId(cells.int()?),
        id: cells.destination()?,
        config: cells.text()?,
        managed_by: cells.word(managed_by)?,
        enabled: cells.flag()?,
        owner: cells.maybe_text()?,
        next_fire_at: cells.maybe_at()?,
        last_fired_at: cells.maybe_at()?,
        paused: None,
        created_at: Timestamp(0),
        updated_at: Timestamp(0),
    };
    let pause = (cells.maybe_at()?, cells.maybe_text()?, cells.maybe_text()?);
    if let (Some(at), Some(by), Some(reason)) = pause {
        schedule.paused = Some(SchedulePause { at, by, reason });
    }
    schedule.created_at = cells.at()?;
    schedule.updated_at = cells.at()?;
    Ok(schedule)
}

/// All columns of a file of the archive.
pub(crate) fn archive_file(cells: &mut Cells<'_>) -> Result<ArchiveFile, CorruptRow> {
    Ok(ArchiveFile {
        file: cells.text()?,
        records: cells.int()?,
        bytes: cells.int()?,
        sha256: cells.array()?,
        first_key: cells.text()?,
        last_key: cells.text()?,
        written_at: cells.at()?,
    })
}
