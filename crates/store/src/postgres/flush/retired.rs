//! What stays known of what left, and where it went.

use super::{
    ledger::{At, entries},
    write::Write,
};
use crate::{
    Place,
    memory::retention::ArchivedEntry,
    postgres::{
        params::Param,
        session::{Session, diff},
    },
    rows::words::bytes_of,
};

impl Session<'_> {
    /// Of what is there nothing changes but its names.
    pub(super) fn write_archived(&self, writes: &mut Vec<Write>) {
        let new = diff(&self.base.archived, &self.tables.archived, |_, _| true).new;
        if new.is_empty() {
            return;
        }
        let known = || new.iter().map(|(_, archived)| &archived.known);
        let mut params = vec![
            Param::ints(known().map(|known| known.tenant.0)),
            Param::ids(known().map(|known| known.id.0)),
            Param::texts(known().map(|known| known.key.as_str())),
            Param::ints(known().map(|known| known.accepted_at.0)),
            Param::ints(known().map(|known| known.jobs_total)),
            Param::blobs(new.iter().map(|(_, archived)| archived.fingerprint.0.as_flattened())),
            Param::texts(known().map(|known| &known.correlation_id)),
            Param::maybe_blobs(new.iter().map(|(_, archived)| bytes_of(&archived.dead_lanes))),
            Param::ints(known().map(|known| known.archived_at.0)),
        ];
        params.extend(places(&known().map(|known| known.place.as_ref()).collect::<Vec<_>>()));
        writes.push(Write::exactly(new.len(), include_str!("../sql/archived_insert.sql"), params));
    }

    pub(super) fn write_archived_entries(&self, writes: &mut Vec<Write>) {
        let diff = diff(&self.base.archived_entries, &self.tables.archived_entries, PartialEq::eq);
        let params = |rows: &[(At<'_>, &ArchivedEntry)]| {
            let mut params = entries(&rows.iter().map(|(at, _)| *at).collect::<Vec<_>>());
            let of_job = |(_, row): &(_, &ArchivedEntry)| row.entry.of_job.map(|job| job.0);
            params.extend([
                Param::maybe_ids(rows.iter().map(of_job)),
                Param::flags(rows.iter().map(|(_, row)| row.entry.result_at.is_some())),
                Param::ints(rows.iter().map(|_| self.now.0)),
            ]);
            params.extend(places(&rows.iter().map(|(_, row)| row.place.as_ref()).collect::<Vec<_>>()));
            params
        };
        if !diff.new.is_empty() {
            let new: Vec<_> = diff.new.iter().map(|(at, row)| ((*at, &row.entry), *row)).collect();
            let sql = include_str!("../sql/archived_entries_insert.sql");
            writes.push(Write::claimed(new.len(), sql, params(&new)));
        }
        if !diff.changed.is_empty() {
            let changed: Vec<_> = diff.changed.iter().map(|(at, _, row)| ((*at, &row.entry), *row)).collect();
            let sql = include_str!("../sql/archived_entries_write.sql");
            writes.push(Write::exactly(changed.len(), sql, params(&changed)));
        }
    }

    pub(super) fn write_archive_files(&self, writes: &mut Vec<Write>) {
        let new = diff(&self.base.archive_files, &self.tables.archive_files, |_, _| true).new;
        if new.is_empty() {
            return;
        }
        let params = vec![
            Param::texts(new.iter().map(|(name, _)| *name)),
            Param::ints(new.iter().map(|(_, file)| file.records)),
            Param::ints(new.iter().map(|(_, file)| file.bytes)),
            Param::blobs(new.iter().map(|(_, file)| file.sha256)),
            Param::texts(new.iter().map(|(_, file)| &file.first_key)),
            Param::texts(new.iter().map(|(_, file)| &file.last_key)),
            Param::ints(new.iter().map(|(_, file)| file.written_at.0)),
        ];
        writes.push(Write::claimed(new.len(), include_str!("../sql/archive_files_insert.sql"), params));
    }
}

fn places(places: &[Option<&Place>]) -> [Param; 3] {
    [
        Param::maybe_texts(places.iter().map(|place| place.map(|place| &place.file))),
        Param::maybe_ints(places.iter().map(|place| place.map(|place| place.at_byte))),
        Param::maybe_ints(places.iter().map(|place| place.map(|place| place.bytes))),
    ]
}
