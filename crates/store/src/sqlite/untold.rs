//! Dead letters that nobody was told of yet.

use posthaste_core::{Attempt, Cause, JobId, JobRow, StateName, TenantId};
use rusqlite::params;

use super::{
    cells::{Cells, signed},
    fault::Fault,
    job_rows::one,
    readers::ReadSession,
    session::Session,
};
use crate::Untold;

impl Session<'_> {
    /// Notes a row that became a dead letter; any other is none of it.
    pub(super) fn note_untold(&mut self, row: &JobRow) -> Result<(), Fault> {
        let (StateName::DeadLettered, Some(at), Some(cause)) = (row.state, row.settled_at, row.cause) else {
            return Ok(());
        };
        let cells = params![row.tenant, row.id.to_be_bytes(), at, row.attempt, cause.as_str()];
        one(self.sql.untold_put.execute(cells)?)
    }

    pub(super) fn told(&mut self, rows: &[Untold]) -> Result<(), Fault> {
        for row in rows {
            self.sql.untold_delete.execute(params![row.tenant.0, row.job.0.to_be_bytes(), row.at.0])?;
        }
        Ok(())
    }
}

impl ReadSession<'_> {
    pub(super) fn untold(&mut self, limit: usize) -> Result<Vec<Untold>, Fault> {
        let mut rows = self.sql.untold_list.query(params![signed(limit)])?;
        let mut untold = Vec::new();
        while let Some(row) = rows.next()? {
            let mut cells = Cells::of(row, 0);
            let (tenant, job, at) = (TenantId(cells.int()?), JobId(cells.id()?), cells.at()?);
            let (attempt, cause) = (Attempt::new(cells.int()?), cells.word(Cause::parse)?);
            untold.push(Untold { tenant, job, at, attempt, cause });
        }
        Ok(untold)
    }
}
