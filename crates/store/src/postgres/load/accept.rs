//! What acceptances look at: who has the names, and what is known of those messages.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::{MessageId, TenantId, limits};
use tokio_postgres::Row;

use super::{
    ids,
    messages::{Names, add_others},
    numbers, ranges, statements, texts,
};
use crate::{
    Stage,
    postgres::{decode, fault::Fault, params::Param, session::Session, wants::Wants},
};

/// What the names mean.
pub(super) struct NamedRows {
    names: Vec<Row>,
    places: Vec<Row>,
}

/// The messages that have names of those that come.
pub(super) type Known = BTreeMap<(TenantId, MessageId), Names>;

/// What is known of them.
#[derive(Default)]
pub(super) struct KnownRows {
    messages: Vec<Row>,
    archived: Vec<Row>,
    others: Vec<Row>,
    running: Vec<Row>,
    duplicates: Vec<Row>,
    jobs: Vec<Row>,
}

impl Session<'_> {
    /// Looks names up, and takes places in the order of acceptance.
    pub(super) async fn read_named(&self, wants: &Wants) -> Result<NamedRows, Fault> {
        if wants.accepts.is_empty() {
            return Ok(NamedRows { names: Vec::new(), places: Vec::new() });
        }
        let names = wants.accepts.iter();
        let names = names.flat_map(|accept| accept.names.iter().map(|key| (accept.tenant, key.as_str())));
        let names: BTreeSet<_> = names.collect();
        let (names, places) = tokio::try_join!(
            self.ask(statements::NAMES, texts(names.into_iter())),
            self.ask(statements::PLACES, vec![Param::int(wants.accepts.len())])
        )?;
        Ok(NamedRows { names, places })
    }

    /// Locks the business keys of the messages that are known: there duplicates are counted.
    pub(super) async fn lock_known(&mut self, rows: NamedRows) -> Result<Known, Fault> {
        for row in &rows.places {
            self.tables.reserved_seqs.push_back(decode::count(row, 0)?);
        }
        let mut found = BTreeSet::new();
        for row in &rows.names {
            found.insert(self.keep_name(row)?);
        }
        let params = ids(found.iter().map(|(tenant, message)| (*tenant, message.0)));
        let mut known = Known::new();
        for row in &self.ask(statements::BUSINESS_KEYS_LOCK, params).await? {
            let (_, _, _, duplicates) = decode::key(row)?;
            known.insert(self.keep_name(row)?, Names { duplicates, ..Names::default() });
        }
        if found.iter().any(|at| !known.contains_key(at)) {
            return Err(Fault::Invariant("a name means a message that is missing"));
        }
        Ok(known)
    }

    pub(super) async fn read_known(&self, known: &Known) -> Result<KnownRows, Fault> {
        if known.is_empty() {
            return Ok(KnownRows::default());
        }
        let named = || ids(known.keys().map(|(tenant, message)| (*tenant, message.0)));
        let first_jobs = || {
            let mut params = ranges(known.keys().map(|(tenant, message)| (*tenant, message.job_range())));
            params.push(Param::ints(known.keys().map(|_| limits::JOBS_LISTED_MAX)));
            params
        };
        let (messages, archived, others, running, duplicates, mut jobs, done) = tokio::try_join!(
            self.ask(statements::MESSAGES, named()),
            self.ask(statements::ARCHIVED, named()),
            self.ask(statements::OTHER_NAMES, named()),
            self.ask(statements::FANOUTS_RUNNING, named()),
            self.ask(statements::DUPLICATES, named()),
            self.ask(statements::FIRST_JOBS, first_jobs()),
            self.ask(statements::FIRST_JOBS_DONE, first_jobs())
        )?;
        jobs.extend(done);
        Ok(KnownRows { messages, archived, others, running, duplicates, jobs })
    }

    pub(super) async fn keep_known(&mut self, mut known: Known, rows: KnownRows) -> Result<(), Fault> {
        self.keep_thin(&rows.messages);
        self.keep_archived(&rows.archived)?;
        self.keep_running(&rows.running)?;
        for row in &rows.duplicates {
            let at = (decode::tenant(row, 0)?, MessageId(decode::id(row, 1)?), None, Stage::Duplicate);
            self.tables
                .noted_before
                .insert(at, usize::try_from(decode::count(row, 2)?).unwrap_or(usize::MAX));
        }
        let here = |at| self.tables.messages.contains_key(at) || self.tables.archived.contains_key(at);
        if !known.keys().all(here) {
            return Err(Fault::Invariant("a name means a message that is missing"));
        }
        add_others(&mut known, &rows.others)?;
        self.keep_names_of(known);
        self.keep_listed(&rows.jobs).await
    }

    /// Keeps jobs that are only listed, with their lanes.
    pub(super) async fn keep_listed(&mut self, rows: &[Row]) -> Result<(), Fault> {
        let mut lanes = BTreeSet::new();
        for row in rows {
            let (tenant, id, entry) = decode::job(row)?;
            lanes.insert((tenant, id.lane()));
            self.keep_job(tenant, id, entry);
        }
        lanes.retain(|at| !self.tables.lanes.contains_key(at));
        let params = numbers(lanes.iter().map(|(tenant, lane)| (*tenant, lane.0)));
        let rows = self.ask(statements::LANES, params).await?;
        self.keep_lanes(&rows)?;
        if lanes.iter().any(|at| !self.tables.lanes.contains_key(at)) {
            return Err(Fault::Invariant("a job's lane is missing"));
        }
        Ok(())
    }

    /// A message that is new has targets whose lanes are there.
    pub(super) fn check_targets(&self, wants: &Wants) -> Result<(), Fault> {
        for accept in &wants.accepts {
            let tenant = accept.tenant;
            let is_known = |key| self.tables.names.contains_key(&(tenant, key));
            let missing = |lane| !self.tables.lanes.contains_key(&(tenant, lane));
            if accept.lanes.iter().copied().any(missing) && !accept.names.iter().cloned().any(is_known) {
                return Err(Fault::Invariant("a target's lane is missing"));
            }
        }
        Ok(())
    }
}
