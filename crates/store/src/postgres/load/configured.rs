//! What is locked before anything of messages: guards, bulk runs, schedules, dead letters to tell of; and what changes of
//! configuration look at.

use std::collections::BTreeSet;

use posthaste_core::TenantId;
use tokio_postgres::Row;

use super::{ids, statements, texts};
use crate::postgres::{
    decode,
    fault::Fault,
    params::Param,
    session::{Session, keep},
    wants::Wants,
};

/// What was read.
pub(super) struct ConfiguredRows {
    runs: Vec<Row>,
    schedules: Vec<Row>,
    untold: Vec<Row>,
    tenants: Vec<Row>,
    destinations: Vec<Row>,
    api_keys: Vec<Row>,
}

impl Session<'_> {
    pub(super) async fn lock_configured(&self, wants: &Wants) -> Result<ConfiguredRows, Fault> {
        let mut untold = ids(wants.untold.iter().map(|(tenant, job, _)| (*tenant, job.0)));
        untold.push(Param::ints(wants.untold.iter().map(|(.., at)| at.0)));
        let destinations = texts(wants.destinations.iter().map(|(tenant, id)| (*tenant, id.as_str())));
        let ((), runs, schedules, untold, tenants, destinations, api_keys) = tokio::try_join!(
            self.lock_guards(wants),
            self.lock_runs(wants),
            self.ask(
                statements::SCHEDULES_LOCK,
                texts(wants.schedules.iter().map(|(tenant, id)| (*tenant, id.as_str())))
            ),
            self.ask(statements::UNTOLD_LOCK, untold),
            self.ask(statements::TENANTS, vec![Param::texts(&wants.tenants)]),
            self.ask(statements::DESTINATIONS, destinations),
            self.read_api_keys(wants)
        )?;
        Ok(ConfiguredRows { runs, schedules, untold, tenants, destinations, api_keys })
    }

    pub(super) async fn lock_guards(&self, wants: &Wants) -> Result<(), Fault> {
        self.ask(statements::GUARDS, vec![Param::texts(&wants.guards)]).await?;
        Ok(())
    }

    /// Locks runs, and reads those that a request may have begun before, or that stand in its way.
    pub(super) async fn lock_runs(&self, wants: &Wants) -> Result<Vec<Row>, Fault> {
        let begins = || wants.begins.iter();
        let keyed = begins().filter_map(|new| Some((new.tenant, new.idempotency_key.as_deref()?)));
        let tenants: BTreeSet<TenantId> = begins().map(|new| new.tenant).collect();
        let (mut runs, same, keyed, live) = tokio::try_join!(
            self.ask(statements::RUNS_LOCK, ids(wants.runs.iter().map(|(tenant, run)| (*tenant, run.0)))),
            self.ask(statements::RUNS, ids(begins().map(|new| (new.tenant, new.run.0)))),
            self.ask(statements::RUNS_OF_KEYS, texts(keyed)),
            self.ask(statements::RUNS_LIVE, vec![Param::ints(tenants.into_iter().map(|tenant| tenant.0))])
        )?;
        runs.extend(same.into_iter().chain(keyed).chain(live));
        Ok(runs)
    }

    async fn read_api_keys(&self, wants: &Wants) -> Result<Vec<Row>, Fault> {
        let (mut keys, of_hashes) = tokio::try_join!(
            self.ask(statements::API_KEYS, ids(wants.api_keys.iter().map(|(tenant, id)| (*tenant, id.0)))),
            self.ask(statements::API_KEYS_OF_HASHES, vec![Param::blobs(&wants.secret_hashes)])
        )?;
        keys.extend(of_hashes);
        Ok(keys)
    }

    pub(super) fn keep_configured(&mut self, rows: &ConfiguredRows) -> Result<(), Fault> {
        let (base, tables) = (&mut self.base, &mut self.tables);
        for row in &rows.schedules {
            let schedule = decode::schedule(row)?;
            let at = (schedule.tenant, schedule.id.clone());
            keep(&mut base.schedules, &mut tables.schedules, at, schedule);
        }
        for row in &rows.untold {
            let untold = decode::untold(row)?;
            keep(&mut base.untold, &mut tables.untold, (untold.tenant, untold.job, untold.at), untold);
        }
        for row in &rows.tenants {
            let (tenant, name) = (decode::tenant(row, 0)?, decode::text(row, 1)?);
            keep(&mut base.tenants, &mut tables.tenants, tenant, name);
        }
        for row in &rows.destinations {
            let destination = decode::destination(row)?;
            let at = (destination.tenant, destination.id.clone());
            keep(&mut base.destinations, &mut tables.destinations, at, destination);
        }
        for row in &rows.api_keys {
            let key = decode::api_key(row)?;
            keep(&mut base.api_keys, &mut tables.api_keys, (key.tenant, key.id), key);
        }
        self.keep_runs(&rows.runs)
    }

    pub(super) fn keep_runs(&mut self, rows: &[Row]) -> Result<(), Fault> {
        for row in rows {
            let run = decode::bulk_run(row)?;
            keep(&mut self.base.bulk_runs, &mut self.tables.bulk_runs, (run.tenant, run.id), run);
        }
        Ok(())
    }
}
