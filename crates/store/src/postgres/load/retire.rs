//! What is looked at where something leaves: the messages with everything of theirs, and what may pin entries.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::{JobId, MessageId, TenantId};
use tokio_postgres::Row;

use super::{
    ids,
    jobs::{JobWants, add, attempts_of},
    messages::{Names, add_others},
    ranges, statements,
};
use crate::postgres::{
    decode,
    fault::Fault,
    params::Param,
    session::{Session, keep},
    wants::{JobWant, Wants},
};

/// Jobs of a message beside those that it had when it was read: enough to see that it isn't as it was.
const OTHERS_MAX: usize = 1;

/// What was read of the messages that are to leave.
struct LeavingRows {
    bodies: Vec<Row>,
    running: Vec<Row>,
    others: Vec<Row>,
    custody: Vec<Row>,
    jobs: Vec<Row>,
}

impl Session<'_> {
    pub(super) async fn load_retire(&mut self, wants: &Wants) -> Result<(), Fault> {
        let mut names = self.lock_leaving(wants).await?;
        let files = vec![Param::texts(&wants.archive_files)];
        let (locked, leaving, files) = tokio::try_join!(
            self.lock_lanes(wants),
            self.read_leaving(wants),
            self.ask(statements::ARCHIVE_FILES, files)
        )?;
        self.keep_locked(wants, &locked)?;
        for row in &files {
            let file = decode::archive_file(row)?;
            keep(&mut self.base.archive_files, &mut self.tables.archive_files, file.file.clone(), file);
        }
        self.keep_bodies(&leaving.bodies);
        self.keep_running(&leaving.running)?;
        for row in &leaving.custody {
            let entry = decode::custody(row)?;
            for tables in [&mut self.base, &mut self.tables] {
                tables.custody.entry((entry.tenant, entry.message)).or_default().push(entry.clone());
            }
        }
        add_others(&mut names, &leaving.others)?;
        self.keep_names_of(names);
        self.load_jobs_of(&leaving.jobs).await?;
        self.load_pins(wants).await
    }

    /// Locks the business keys of the messages: whoever counts a duplicate does.
    async fn lock_leaving(&mut self, wants: &Wants) -> Result<BTreeMap<(TenantId, MessageId), Names>, Fault> {
        let messages = ids(wants.retire.keys().map(|(tenant, message)| (*tenant, message.0)));
        let ((), rows) =
            tokio::try_join!(self.lock_guards(wants), self.ask(statements::BUSINESS_KEYS_LOCK, messages))?;
        let mut names = BTreeMap::new();
        for row in &rows {
            let (_, _, _, duplicates) = decode::key(row)?;
            names.insert(self.keep_name(row)?, Names { duplicates, ..Names::default() });
        }
        Ok(names)
    }

    async fn read_leaving(&self, wants: &Wants) -> Result<LeavingRows, Fault> {
        let named = || ids(wants.retire.keys().map(|(tenant, message)| (*tenant, message.0)));
        let jobs = || {
            let ids = wants.retire.keys().map(|(tenant, message)| (*tenant, message.job_range()));
            let mut params = ranges(ids);
            params.push(Param::ints(wants.retire.values().map(|jobs| jobs + OTHERS_MAX)));
            params
        };
        let (bodies, running, others, custody, mut live, done) = tokio::try_join!(
            self.ask(statements::BODIES, named()),
            self.ask(statements::FANOUTS_RUNNING, named()),
            self.ask(statements::OTHER_NAMES, named()),
            self.ask(statements::CUSTODY, named()),
            self.ask(statements::FIRST_JOBS, jobs()),
            self.ask(statements::FIRST_JOBS_DONE, jobs())
        )?;
        live.extend(done);
        Ok(LeavingRows { bodies, running, others, custody, jobs: live })
    }

    /// Keeps jobs with all their attempts.
    async fn load_jobs_of(&mut self, rows: &[Row]) -> Result<(), Fault> {
        let mut wants = JobWants::new();
        for row in rows {
            let (tenant, id, _) = decode::job(row)?;
            add(&mut wants, (tenant, id), JobWant::WHOLE);
        }
        let attempts = self.ask(statements::ATTEMPTS, attempts_of(&wants)).await?;
        for ((tenant, job), corrupt) in self.keep_attempts(&attempts)? {
            self.keep_job(tenant, job, Err(corrupt));
        }
        self.keep_listed(rows).await
    }

    /// What may pin entries: the jobs whose event ids they are.
    async fn load_pins(&mut self, wants: &Wants) -> Result<(), Fault> {
        let mut jobs = JobWants::new();
        let mut messages = BTreeSet::new();
        for (tenant, key, destination) in &wants.pins {
            let mut lanes = self.tables.lanes.iter();
            let lane = lanes.find(|((of, _), row)| of == tenant && row.destination == *destination);
            let named = self.tables.names.get(&(*tenant, key.clone()));
            if let (Some(((_, lane), _)), Some(message)) = (lane, named) {
                messages.insert((*tenant, *message));
                add(&mut jobs, (*tenant, JobId::of(*message, *lane)), JobWant::default());
            }
        }
        let named = || ids(messages.iter().map(|(tenant, message)| (*tenant, message.0)));
        let bodies = BTreeSet::new();
        let (thin, archived, running, jobs) = tokio::try_join!(
            self.ask(statements::MESSAGES, named()),
            self.ask(statements::ARCHIVED, named()),
            self.ask(statements::FANOUTS_RUNNING, named()),
            self.read_jobs(&jobs, &bodies)
        )?;
        self.keep_thin(&thin);
        self.keep_archived(&archived)?;
        self.keep_running(&running)?;
        self.keep_jobs(&jobs)?;
        let here = |at| self.tables.messages.contains_key(at) || self.tables.archived.contains_key(at);
        if messages.iter().all(here) {
            return Ok(());
        }
        Err(Fault::Invariant("a name means a message that is missing"))
    }
}
