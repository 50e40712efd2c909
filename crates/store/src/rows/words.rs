//! Small things that several rows have.

use posthaste_core::{CorruptRow, LaneId};

use super::cells::Cells;
use crate::{Fingerprint, KeyKind, ManagedBy, Place};

pub(crate) fn key_kind(word: &str) -> Option<KeyKind> {
    let all = [KeyKind::Key, KeyKind::Provider, KeyKind::Delivery, KeyKind::Alias];
    all.into_iter().find(|kind| kind.as_str() == word)
}

pub(crate) fn managed_by(word: &str) -> Option<ManagedBy> {
    [ManagedBy::File, ManagedBy::Api].into_iter().find(|known| known.as_str() == word)
}

pub(crate) fn fingerprint(bytes: &[u8; 80]) -> Fingerprint {
    let mut fields = [[0; 16]; 5];
    fields.as_flattened_mut().copy_from_slice(bytes);
    Fingerprint(fields)
}

/// Lanes as four bytes each.
pub(crate) fn lanes_of(bytes: &[u8]) -> Vec<LaneId> {
    let lanes = bytes.chunks_exact(4);
    lanes.map(|lane| LaneId(u32::from_be_bytes([lane[0], lane[1], lane[2], lane[3]]))).collect()
}

/// What [`lanes_of`] reads; `None` for none.
pub(crate) fn bytes_of(lanes: &[LaneId]) -> Option<Vec<u8>> {
    (!lanes.is_empty()).then(|| lanes.iter().flat_map(|LaneId(lane)| lane.to_be_bytes()).collect())
}

/// Three cells that say where something is.
pub(crate) fn place(cells: &mut Cells<'_>) -> Result<Option<Place>, CorruptRow> {
    let (file, at_byte, bytes) = (cells.maybe_text()?, cells.maybe_int()?, cells.maybe_int()?);
    let Some(file) = file else { return Ok(None) };
    Ok(Some(Place { file, at_byte: at_byte.unwrap_or(0), bytes: bytes.unwrap_or(0) }))
}
