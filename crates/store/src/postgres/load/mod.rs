//! Locking and loading what the operations of a transaction look at, in one order for all transactions.
//!
//! Guards first, which are locks on names without rows. Then bulk runs and schedules; business keys, at which duplicates are
//! counted; lanes, each of which is the lock of its jobs, of their leases and attempts, and of the entries beside them; the
//! tenants' scheduling. What follows is locked by those. Statements that don't need one another's answers go together: they
//! run in the order in which they are polled first, so what follows a lock sees what whoever had it wrote.

mod accept;
mod bulk;
mod configured;
mod fan_out;
mod jobs;
mod lanes;
mod lease;
mod ledger;
mod messages;
mod retire;
pub(crate) mod statements;

use posthaste_core::{JobId, MessageId, TenantId};
use tokio_postgres::Row;

use super::{fault::Fault, params::Param, session::Session, wants::Wants};

impl Session<'_> {
    /// Locks and loads everything that operations with these `wants` look at.
    pub(crate) async fn load(&mut self, wants: &Wants) -> Result<(), Fault> {
        if wants.alone() {
            return Box::pin(self.load_alone(wants)).await;
        }
        Box::pin(self.load_together(wants)).await
    }

    async fn load_alone(&mut self, wants: &Wants) -> Result<(), Fault> {
        if let Some(run) = wants.bulk_step {
            return self.load_bulk_step(wants, run).await;
        }
        match wants.fan_out {
            Some(jobs_max) => self.load_fan_out(wants, jobs_max).await,
            None => Box::pin(self.load_retire(wants)).await,
        }
    }

    async fn load_together(&mut self, wants: &Wants) -> Result<(), Fault> {
        let ledger_used = self.ledger_used;
        let known = if wants.locks_lanes() {
            // What the names mean may have to be locked before the lanes.
            let (configured, named) = tokio::try_join!(self.lock_configured(wants), self.read_named(wants))?;
            self.keep_configured(&configured)?;
            let known = self.lock_known(named).await?;
            let locked = Box::pin(self.lock_lanes(wants)).await?;
            self.keep_locked(wants, &locked)?;
            known
        } else {
            let (configured, named, locked) = tokio::try_join!(
                self.lock_configured(wants),
                self.read_named(wants),
                self.lock_lanes(wants)
            )?;
            self.keep_configured(&configured)?;
            let known = self.lock_known(named).await?;
            self.keep_locked(wants, &locked)?;
            known
        };
        if self.ledger_used && !ledger_used {
            // Somebody began to use it: the jobs that are here didn't look for their entries.
            let entries = self.read_beside(wants.jobs.keys()).await?;
            self.keep_entries(&entries)?;
        }
        self.look_deeper(wants.waiting()).await?;
        let (jobs, leased, accepted) =
            tokio::try_join!(self.read_named_jobs(wants), self.read_leased(wants), self.read_known(&known))?;
        self.keep_jobs(&jobs)?;
        self.keep_leased(leased).await?;
        self.keep_known(known, accepted).await?;
        self.check_targets(wants)
    }

    /// Asks, unless all arrays are empty: then there is nothing to ask for.
    async fn ask(&self, sql: &str, params: Vec<Param>) -> Result<Vec<Row>, Fault> {
        let lengths = || params.iter().filter_map(length);
        if lengths().next().is_some() && lengths().all(|length| length == 0) {
            return Ok(Vec::new());
        }
        self.rows(sql, &params).await
    }
}

/// The length of an array.
fn length(param: &Param) -> Option<usize> {
    match param {
        Param::Ints(values) => Some(values.len()),
        Param::Texts(values) => Some(values.len()),
        Param::Blobs(values) => Some(values.len()),
        Param::Ids(values) => Some(values.len()),
        Param::Int(_) | Param::Text(_) | Param::Id(_) => None,
    }
}

/// Rows of a tenant and a number.
fn numbers(rows: impl Iterator<Item = (TenantId, u32)>) -> Vec<Param> {
    let (tenants, numbers): (Vec<_>, Vec<_>) = rows.map(|(tenant, number)| (tenant.0, number)).unzip();
    vec![Param::ints(tenants), Param::ints(numbers)]
}

/// Rows of a tenant and a text.
fn texts<'a>(rows: impl Iterator<Item = (TenantId, &'a str)>) -> Vec<Param> {
    let (tenants, texts): (Vec<_>, Vec<_>) = rows.map(|(tenant, text)| (tenant.0, text)).unzip();
    vec![Param::ints(tenants), Param::texts(texts)]
}

/// Rows of a tenant and an id.
fn ids(rows: impl Iterator<Item = (TenantId, u128)>) -> Vec<Param> {
    let (tenants, ids): (Vec<_>, Vec<_>) = rows.map(|(tenant, id)| (tenant.0, id)).unzip();
    vec![Param::ints(tenants), Param::ids(ids)]
}

/// Rows of a tenant and the first and last of a range of ids.
fn ranges(rows: impl Iterator<Item = (TenantId, (JobId, JobId))>) -> Vec<Param> {
    let rows: Vec<_> = rows.collect();
    vec![
        Param::ints(rows.iter().map(|(tenant, _)| tenant.0)),
        Param::ids(rows.iter().map(|(_, (first, _))| first.0)),
        Param::ids(rows.iter().map(|(_, (_, last))| last.0)),
    ]
}

/// The ids that a job, its message and the message's other jobs share but for what tells lanes.
fn family(job: JobId) -> (JobId, JobId) {
    MessageId(job.0).job_range()
}
