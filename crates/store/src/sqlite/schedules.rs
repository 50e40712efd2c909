//! Schedules.

use posthaste_core::{DestinationId, TenantId};
use rusqlite::{Statement, params};

use super::{
    SqliteStore, cells::Cells, fault::Fault, job_rows::one, readers::ReadSession, session::Session, weight,
    work::Rank::Foreground,
};
use crate::{
    BoxFuture, ScheduleChange, ScheduleChanged, ScheduleRow, Schedules, StoreError, rows,
    schedules::{Step, named, step},
};

impl Schedules for SqliteStore {
    fn change_schedules(
        &self,
        changes: Vec<ScheduleChange>,
    ) -> BoxFuture<'_, Result<Vec<ScheduleChanged>, StoreError>> {
        self.write(Foreground, None, weight::of_schedules(&changes), changes, |session, input| {
            session.change_schedules(input)
        })
    }

    fn schedule(
        &self,
        tenant: TenantId,
        id: DestinationId,
    ) -> BoxFuture<'_, Result<Option<ScheduleRow>, StoreError>> {
        self.read((tenant, id), |session, (tenant, id)| find(&mut session.sql.schedules_find, *tenant, id))
    }

    fn schedules(&self) -> BoxFuture<'_, Result<Vec<ScheduleRow>, StoreError>> {
        self.read((), |session, ()| session.schedules())
    }
}

impl Session<'_> {
    fn change_schedules(&mut self, changes: &[ScheduleChange]) -> Result<Vec<ScheduleChanged>, Fault> {
        changes.iter().map(|change| self.change_schedule(change)).collect()
    }

    fn change_schedule(&mut self, change: &ScheduleChange) -> Result<ScheduleChanged, Fault> {
        let (tenant, id) = named(change);
        let known = find(&mut self.sql.schedules_find, tenant, id)?;
        match step(change, known, self.now) {
            Step::Write(row) => {
                let paused = row.paused.as_ref();
                one(self.sql.schedules_put.execute(params![
                    row.tenant.0,
                    row.id.as_str(),
                    row.config,
                    row.managed_by.as_str(),
                    row.enabled,
                    row.owner,
                    row.next_fire_at.map(|at| at.0),
                    row.last_fired_at.map(|at| at.0),
                    paused.map(|paused| paused.at.0),
                    paused.map(|paused| &paused.by),
                    paused.map(|paused| &paused.reason),
                    row.created_at.0,
                    row.updated_at.0,
                ])?)?;
                Ok(ScheduleChanged::Schedule(Box::new(row)))
            }
            Step::Delete => {
                one(self.sql.schedules_delete.execute(params![tenant.0, id.as_str()])?)?;
                Ok(ScheduleChanged::Deleted)
            }
            Step::Answer(answer) => Ok(answer),
        }
    }
}

impl ReadSession<'_> {
    fn schedules(&mut self) -> Result<Vec<ScheduleRow>, Fault> {
        let mut rows = self.sql.schedules_list.query([])?;
        let mut schedules = Vec::new();
        while let Some(row) = rows.next()? {
            schedules.push(rows::configured::schedule(&mut Cells::of(row, 0))?);
        }
        Ok(schedules)
    }
}

fn find(
    statement: &mut Statement<'_>,
    tenant: TenantId,
    id: &DestinationId,
) -> Result<Option<ScheduleRow>, Fault> {
    let mut rows = statement.query(params![tenant.0, id.as_str()])?;
    let Some(row) = rows.next()? else { return Ok(None) };
    Ok(Some(rows::configured::schedule(&mut Cells::of(row, 0))?))
}
