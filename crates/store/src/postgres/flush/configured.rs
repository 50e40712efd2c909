//! Tenants, destinations, API keys, schedules.

use super::write::Write;
use crate::{
    DestinationRow, ScheduleRow,
    postgres::{
        params::Param,
        session::{Session, diff},
    },
};

impl Session<'_> {
    pub(super) fn write_tenants(&self, writes: &mut Vec<Write>) {
        let diff = diff(&self.base.tenants, &self.tables.tenants, PartialEq::eq);
        if diff.new.is_empty() {
            return;
        }
        let params = vec![
            Param::ints(diff.new.iter().map(|(tenant, _)| tenant.0)),
            Param::texts(diff.new.iter().map(|(_, name)| *name)),
            Param::ints(diff.new.iter().map(|_| self.now.0)),
        ];
        writes.push(Write::claimed(diff.new.len(), include_str!("../sql/tenants_insert.sql"), params));
    }

    pub(super) fn write_destinations(&self, writes: &mut Vec<Write>) {
        let diff = diff(&self.base.destinations, &self.tables.destinations, PartialEq::eq);
        if !diff.gone.is_empty() {
            let params = vec![
                Param::ints(diff.gone.iter().map(|((tenant, _), _)| tenant.0)),
                Param::texts(diff.gone.iter().map(|((_, id), _)| id.as_str())),
            ];
            let sql = include_str!("../sql/destinations_delete.sql");
            writes.push(Write::exactly(diff.gone.len(), sql, params));
        }
        if !diff.new.is_empty() {
            let new: Vec<_> = diff.new.iter().map(|(_, row)| *row).collect();
            let sql = include_str!("../sql/destinations_insert.sql");
            writes.push(Write::claimed(new.len(), sql, destinations(&new)));
        }
        if !diff.changed.is_empty() {
            let changed: Vec<_> = diff.changed.iter().map(|(.., row)| *row).collect();
            let sql = include_str!("../sql/destinations_write.sql");
            writes.push(Write::exactly(changed.len(), sql, destinations(&changed)));
        }
    }

    /// Of a key that is there only its end changes.
    pub(super) fn write_api_keys(&self, writes: &mut Vec<Write>) {
        let diff = diff(&self.base.api_keys, &self.tables.api_keys, PartialEq::eq);
        if !diff.new.is_empty() {
            let params = vec![
                Param::ints(diff.new.iter().map(|((tenant, _), _)| tenant.0)),
                Param::ids(diff.new.iter().map(|((_, id), _)| id.0)),
                Param::texts(diff.new.iter().map(|(_, row)| &row.name)),
                Param::blobs(diff.new.iter().map(|(_, row)| row.secret_hash)),
                Param::texts(diff.new.iter().map(|(_, row)| &row.scopes)),
                Param::ints(diff.new.iter().map(|(_, row)| row.created_at.0)),
                Param::maybe_ints(diff.new.iter().map(|(_, row)| row.revoked_at.map(|at| at.0))),
            ];
            writes.push(Write::claimed(diff.new.len(), include_str!("../sql/api_keys_insert.sql"), params));
        }
        if !diff.changed.is_empty() {
            let params = vec![
                Param::ints(diff.changed.iter().map(|((tenant, _), ..)| tenant.0)),
                Param::ids(diff.changed.iter().map(|((_, id), ..)| id.0)),
                Param::maybe_ints(diff.changed.iter().map(|(.., row)| row.revoked_at.map(|at| at.0))),
            ];
            let sql = include_str!("../sql/api_keys_revoke.sql");
            writes.push(Write::exactly(diff.changed.len(), sql, params));
        }
    }

    pub(super) fn write_schedules(&self, writes: &mut Vec<Write>) {
        let diff = diff(&self.base.schedules, &self.tables.schedules, PartialEq::eq);
        if !diff.gone.is_empty() {
            let params = vec![
                Param::ints(diff.gone.iter().map(|((tenant, _), _)| tenant.0)),
                Param::texts(diff.gone.iter().map(|((_, id), _)| id.as_str())),
            ];
            let sql = include_str!("../sql/schedules_delete.sql");
            writes.push(Write::exactly(diff.gone.len(), sql, params));
        }
        if !diff.new.is_empty() {
            let new: Vec<_> = diff.new.iter().map(|(_, row)| *row).collect();
            let sql = include_str!("../sql/schedules_insert.sql");
            writes.push(Write::claimed(new.len(), sql, schedules(&new)));
        }
        if !diff.changed.is_empty() {
            let changed: Vec<_> = diff.changed.iter().map(|(.., row)| *row).collect();
            let sql = include_str!("../sql/schedules_write.sql");
            writes.push(Write::exactly(changed.len(), sql, schedules(&changed)));
        }
    }
}

fn destinations(rows: &[&DestinationRow]) -> Vec<Param> {
    vec![
        Param::ints(rows.iter().map(|row| row.tenant.0)),
        Param::texts(rows.iter().map(|row| row.id.as_str())),
        Param::texts(rows.iter().map(|row| row.kind.as_str())),
        Param::ints(rows.iter().map(|row| row.lane.0)),
        Param::texts(rows.iter().map(|row| &row.config)),
        Param::texts(rows.iter().map(|row| row.managed_by.as_str())),
        Param::flags(rows.iter().map(|row| row.enabled)),
        Param::maybe_texts(rows.iter().map(|row| row.owner.as_deref())),
        Param::ints(rows.iter().map(|row| row.created_at.0)),
        Param::ints(rows.iter().map(|row| row.updated_at.0)),
    ]
}

fn schedules(rows: &[&ScheduleRow]) -> Vec<Param> {
    vec![
        Param::ints(rows.iter().map(|row| row.tenant.0)),
        Param::texts(rows.iter().map(|row| row.id.as_str())),
        Param::texts(rows.iter().map(|row| &row.config)),
        Param::texts(rows.iter().map(|row| row.managed_by.as_str())),
        Param::flags(rows.iter().map(|row| row.enabled)),
        Param::maybe_texts(rows.iter().map(|row| row.owner.as_deref())),
        Param::maybe_ints(rows.iter().map(|row| row.next_fire_at.map(|at| at.0))),
        Param::maybe_ints(rows.iter().map(|row| row.last_fired_at.map(|at| at.0))),
        Param::maybe_ints(rows.iter().map(|row| row.paused.as_ref().map(|paused| paused.at.0))),
        Param::maybe_texts(rows.iter().map(|row| row.paused.as_ref().map(|paused| &paused.by))),
        Param::maybe_texts(rows.iter().map(|row| row.paused.as_ref().map(|paused| &paused.reason))),
        Param::ints(rows.iter().map(|row| row.created_at.0)),
        Param::ints(rows.iter().map(|row| row.updated_at.0)),
    ]
}
