//! Schedules.

use posthaste_core::{DestinationId, TenantId, Timestamp};

use super::{MemoryStore, tables::Tables};
use crate::{
    BoxFuture, ScheduleChange, ScheduleChanged, ScheduleRow, Schedules, StoreError,
    schedules::{Step, named, step},
};

impl Tables {
    pub(crate) fn change_schedule(&mut self, change: &ScheduleChange, now: Timestamp) -> ScheduleChanged {
        let (tenant, id) = named(change);
        let at = (tenant, id.clone());
        match step(change, self.schedules.get(&at).cloned(), now) {
            Step::Write(row) => {
                self.schedules.insert(at, row.clone());
                ScheduleChanged::Schedule(Box::new(row))
            }
            Step::Delete => {
                self.schedules.remove(&at);
                ScheduleChanged::Deleted
            }
            Step::Answer(answer) => answer,
        }
    }
}

impl Schedules for MemoryStore {
    fn change_schedules(
        &self,
        changes: Vec<ScheduleChange>,
    ) -> BoxFuture<'_, Result<Vec<ScheduleChanged>, StoreError>> {
        self.at_once(move |tables, now| {
            changes.iter().map(|change| tables.change_schedule(change, now)).collect()
        })
    }

    fn schedule(
        &self,
        tenant: TenantId,
        id: DestinationId,
    ) -> BoxFuture<'_, Result<Option<ScheduleRow>, StoreError>> {
        self.at_once(move |tables, _| tables.schedules.get(&(tenant, id)).cloned())
    }

    fn schedules(&self) -> BoxFuture<'_, Result<Vec<ScheduleRow>, StoreError>> {
        self.at_once(|tables, _| tables.schedules.values().cloned().collect())
    }
}
