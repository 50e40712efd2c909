//! Tenants, destinations, API keys.

use posthaste_core::{ApiKeyId, DestinationId, Lane, LaneId, TenantId, Timestamp};

use super::tables::{LaneRow, Tables};
use crate::{ApiKeyRow, Configure, Configured, DestinationKind, DestinationRow, NewDestination};

impl Tables {
    pub(crate) fn configure(&mut self, change: Configure, now: Timestamp) -> Configured {
        match change {
            Configure::Tenant { name } => self.tenant(name),
            Configure::PutDestination(new) => self.put_destination(new, now),
            Configure::DeleteDestination { tenant, id, kind } => {
                self.delete_destination(tenant, id, kind, now)
            }
            Configure::PutApiKey(row) => self.put_api_key(row, now),
            Configure::RevokeApiKey { tenant, id } => self.revoke_api_key(tenant, id, now),
        }
    }

    fn tenant(&mut self, name: Box<str>) -> Configured {
        if let Some((tenant, _)) = self.tenants.iter().find(|(_, known)| **known == name) {
            return Configured::Tenant(*tenant);
        }
        let tenant = TenantId(self.tenants.last_key_value().map_or(1, |(last, _)| last.0 + 1));
        self.tenants.insert(tenant, name);
        Configured::Tenant(tenant)
    }

    fn put_destination(&mut self, new: NewDestination, now: Timestamp) -> Configured {
        let at = (new.tenant, new.id.clone());
        let (lane, created_at) = match self.destinations.get(&at) {
            Some(known) if new.must_be_new || known.kind != new.kind => return Configured::Taken(known.kind),
            Some(known) => (known.lane, known.created_at),
            None => (self.lane_for(new.tenant, &new.id), now),
        };
        let row = DestinationRow {
            tenant: new.tenant,
            id: new.id,
            kind: new.kind,
            lane,
            config: new.config,
            managed_by: new.managed_by,
            enabled: new.enabled,
            owner: new.owner,
            created_at,
            updated_at: now,
        };
        self.change_lane(row.tenant, row.lane, |lane| lane.switched(!row.enabled, now));
        self.destinations.insert(at, row.clone());
        Configured::Destination(Box::new(row))
    }

    /// The lane that the id has or had; else the tenant's next one.
    fn lane_for(&mut self, tenant: TenantId, destination: &DestinationId) -> LaneId {
        let mut lanes = self.lanes.range((tenant, LaneId(0))..=(tenant, LaneId(u32::MAX)));
        if let Some(((_, lane), _)) = lanes.clone().find(|(_, lane)| lane.destination == *destination) {
            return *lane;
        }
        let lane = LaneId(lanes.next_back().map_or(1, |((_, last), _)| last.0 + 1));
        let new = LaneRow { destination: destination.clone(), lane: Lane::default() };
        self.lanes.insert((tenant, lane), new);
        lane
    }

    fn delete_destination(
        &mut self,
        tenant: TenantId,
        id: DestinationId,
        kind: DestinationKind,
        now: Timestamp,
    ) -> Configured {
        let at = (tenant, id);
        match self.destinations.get(&at) {
            Some(known) if known.kind == kind => {
                let lane = known.lane;
                self.destinations.remove(&at);
                self.change_lane(tenant, lane, |lane| lane.deleted(now));
                Configured::Deleted
            }
            Some(_) | None => Configured::Missing,
        }
    }

    fn put_api_key(&mut self, new: ApiKeyRow, now: Timestamp) -> Configured {
        if let Some(known) = self.api_keys.get(&(new.tenant, new.id)) {
            return Configured::ApiKey(Box::new(known.clone()));
        }
        if let Some(known) = self.api_keys.values().find(|known| known.secret_hash == new.secret_hash) {
            let own = known.tenant == new.tenant;
            return if own { Configured::ApiKey(Box::new(known.clone())) } else { Configured::Missing };
        }
        let row = ApiKeyRow { created_at: now, revoked_at: None, ..new };
        self.api_keys.insert((row.tenant, row.id), row.clone());
        Configured::ApiKey(Box::new(row))
    }

    fn revoke_api_key(&mut self, tenant: TenantId, id: ApiKeyId, now: Timestamp) -> Configured {
        let Some(row) = self.api_keys.get_mut(&(tenant, id)) else {
            return Configured::Missing;
        };
        row.revoked_at = row.revoked_at.or(Some(now));
        Configured::ApiKey(Box::new(row.clone()))
    }
}
