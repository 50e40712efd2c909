//! Tenants, destinations, API keys.

use posthaste_core::{ApiKeyId, DestinationId, LaneId, TenantId};
use rusqlite::{OptionalExtension, params};

use super::{cells::Cells, fault::Fault, job_rows::one, session::Session};
use crate::{ApiKeyRow, Configure, Configured, DestinationRow, NewDestination, rows};

impl Session<'_> {
    pub(super) fn configure(&mut self, changes: &[Configure]) -> Result<Vec<Configured>, Fault> {
        changes.iter().map(|change| self.configure_one(change)).collect()
    }

    fn configure_one(&mut self, change: &Configure) -> Result<Configured, Fault> {
        match change {
            Configure::Tenant { name } => self.tenant(name),
            Configure::PutDestination(new) => self.put_destination(new),
            Configure::DeleteDestination { tenant, id, kind } => {
                let at = params![tenant.0, id.as_str(), kind.as_str()];
                if self.sql.destinations_delete.execute(at)? == 0 {
                    return Ok(Configured::Missing);
                }
                let (lane, now) = (self.lane_for(*tenant, id)?, self.now);
                self.change_lane(*tenant, lane, |lane| lane.deleted(now))?;
                Ok(Configured::Deleted)
            }
            Configure::PutApiKey(row) => self.put_api_key(row),
            Configure::RevokeApiKey { tenant, id } => {
                let at = params![tenant.0, id.0.to_be_bytes(), self.now.0];
                self.sql.api_keys_revoke.execute(at)?;
                let found = self.api_key(*tenant, *id)?;
                Ok(found.map_or(Configured::Missing, |row| Configured::ApiKey(Box::new(row))))
            }
        }
    }

    fn tenant(&mut self, name: &str) -> Result<Configured, Fault> {
        let found = self.sql.tenants_find.query_row([name], |row| row.get(0)).optional()?;
        if let Some(tenant) = found {
            return Ok(Configured::Tenant(TenantId(tenant)));
        }
        one(self.sql.tenants_insert.execute(params![name, self.now.0])?)?;
        let tenant = u32::try_from(self.conn.last_insert_rowid());
        tenant
            .map(|tenant| Configured::Tenant(TenantId(tenant)))
            .map_err(|_| Fault::Invariant("too many tenants"))
    }

    fn put_destination(&mut self, new: &NewDestination) -> Result<Configured, Fault> {
        let (lane, created_at) = match self.destination(new.tenant, &new.id)? {
            Some(known) if new.must_be_new || known.kind != new.kind => {
                return Ok(Configured::Taken(known.kind));
            }
            Some(known) => (known.lane, known.created_at),
            None => (self.lane_for(new.tenant, &new.id)?, self.now),
        };
        let row = DestinationRow {
            tenant: new.tenant,
            id: new.id.clone(),
            kind: new.kind,
            lane,
            config: new.config.clone(),
            managed_by: new.managed_by,
            enabled: new.enabled,
            owner: new.owner.clone(),
            created_at,
            updated_at: self.now,
        };
        one(self.sql.destinations_put.execute(params![
            row.tenant.0,
            row.id.as_str(),
            row.kind.as_str(),
            row.lane.0,
            row.config,
            row.managed_by.as_str(),
            row.enabled,
            row.owner,
            row.created_at.0,
            row.updated_at.0,
        ])?)?;
        let now = self.now;
        self.change_lane(row.tenant, row.lane, |lane| lane.switched(!row.enabled, now))?;
        Ok(Configured::Destination(Box::new(row)))
    }

    fn destination(&mut self, tenant: TenantId, id: &DestinationId) -> Result<Option<DestinationRow>, Fault> {
        let mut rows = self.sql.destinations_find.query(params![tenant.0, id.as_str()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(rows::configured::destination(&mut Cells::of(row, 0))?))
    }

    /// The lane that the id has or had; else the tenant's next one.
    fn lane_for(&mut self, tenant: TenantId, id: &DestinationId) -> Result<LaneId, Fault> {
        let at = params![tenant.0, id.as_str()];
        if let Some(lane) = self.sql.lanes_of_destination.query_row(at, |row| row.get(0)).optional()? {
            return Ok(LaneId(lane));
        }
        let last: Option<u32> = self.sql.lanes_last.query_row([tenant.0], |row| row.get(0))?;
        let lane = last.unwrap_or(0).checked_add(1).ok_or(Fault::Invariant("too many lanes"))?;
        one(self.sql.lanes_insert.execute(params![tenant.0, lane, id.as_str()])?)?;
        self.lane_changed(tenant, LaneId(lane));
        Ok(LaneId(lane))
    }

    /// Keys are never changed: whose id or secret is known gets what is stored.
    fn put_api_key(&mut self, new: &ApiKeyRow) -> Result<Configured, Fault> {
        if let Some(known) = self.api_key(new.tenant, new.id)? {
            return Ok(Configured::ApiKey(Box::new(known)));
        }
        if let Some(known) = self.api_key_of_hash(&new.secret_hash)? {
            let own = known.tenant == new.tenant;
            return Ok(if own { Configured::ApiKey(Box::new(known)) } else { Configured::Missing });
        }
        let row = ApiKeyRow { created_at: self.now, revoked_at: None, ..new.clone() };
        one(self.sql.api_keys_insert.execute(params![
            row.tenant.0,
            row.id.0.to_be_bytes(),
            row.name,
            row.secret_hash,
            row.scopes,
            row.created_at.0,
        ])?)?;
        Ok(Configured::ApiKey(Box::new(row)))
    }

    fn api_key(&mut self, tenant: TenantId, id: ApiKeyId) -> Result<Option<ApiKeyRow>, Fault> {
        let mut rows = self.sql.api_keys_find.query(params![tenant.0, id.0.to_be_bytes()])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(rows::configured::api_key(&mut Cells::of(row, 0))?))
    }

    fn api_key_of_hash(&mut self, hash: &[u8; 32]) -> Result<Option<ApiKeyRow>, Fault> {
        let mut rows = self.sql.api_keys_of_hash.query(params![hash])?;
        let Some(row) = rows.next()? else { return Ok(None) };
        Ok(Some(rows::configured::api_key(&mut Cells::of(row, 0))?))
    }
}
