//! Bulk runs.

use posthaste_core::{Cause, Class, DestinationId, StateName};

use super::write::Write;
use crate::{
    BulkRun,
    postgres::{
        params::Param,
        session::{Session, diff},
    },
    rows::bulk_run::{refused_jobs_text, refused_text},
};

impl Session<'_> {
    pub(super) fn write_bulk_runs(&self, writes: &mut Vec<Write>) {
        let diff = diff(&self.base.bulk_runs, &self.tables.bulk_runs, PartialEq::eq);
        if !diff.new.is_empty() {
            let new: Vec<&BulkRun> = diff.new.iter().map(|(_, run)| *run).collect();
            let mut params = names(&new);
            params.extend(filter(&new));
            params.extend(request(&new));
            params.extend(progress(&new));
            writes.push(Write::claimed(new.len(), include_str!("../sql/bulk_runs_insert.sql"), params));
        }
        if !diff.changed.is_empty() {
            let changed: Vec<&BulkRun> = diff.changed.iter().map(|(.., run)| *run).collect();
            let mut params = names(&changed);
            params.extend(progress(&changed));
            writes.push(Write::exactly(changed.len(), include_str!("../sql/bulk_runs_write.sql"), params));
        }
    }
}

fn names(runs: &[&BulkRun]) -> Vec<Param> {
    vec![Param::ints(runs.iter().map(|run| run.tenant.0)), Param::ids(runs.iter().map(|run| run.id.0))]
}

/// The kind to the filter's end.
fn filter(runs: &[&BulkRun]) -> Vec<Param> {
    let filters = || runs.iter().map(|run| &run.request.filter);
    let destination = |run: &&BulkRun| run.request.destination.clone();
    let destinations: Vec<Option<DestinationId>> = runs.iter().map(destination).collect();
    vec![
        Param::texts(runs.iter().map(|run| run.request.kind.as_str())),
        Param::maybe_texts(filters().map(|filter| filter.state.map(StateName::as_str))),
        Param::maybe_ints(filters().map(|filter| filter.lane.map(|lane| lane.0))),
        Param::maybe_texts(destinations.iter().map(|id| id.as_ref().map(DestinationId::as_str))),
        Param::maybe_texts(filters().map(|filter| filter.cause.map(Cause::as_str))),
        Param::maybe_texts(filters().map(|filter| filter.class.map(Class::as_str))),
        Param::maybe_texts(filters().map(|filter| filter.key_prefix.as_deref())),
        Param::maybe_texts(filters().map(|filter| filter.event_type.as_deref())),
        Param::maybe_ints(filters().map(|filter| filter.created_since.map(|at| at.0))),
        Param::maybe_ints(filters().map(|filter| filter.created_until.map(|at| at.0))),
        Param::maybe_ints(filters().map(|filter| filter.dead_lettered_since.map(|at| at.0))),
        Param::maybe_ints(filters().map(|filter| filter.dead_lettered_until.map(|at| at.0))),
    ]
}

/// The reason to the beginning.
fn request(runs: &[&BulkRun]) -> [Param; 7] {
    [
        Param::texts(runs.iter().map(|run| &run.request.reason)),
        Param::flags(runs.iter().map(|run| run.request.assume_not_done)),
        Param::ints(runs.iter().map(|run| run.request.per_second)),
        Param::maybe_texts(runs.iter().map(|run| run.idempotency_key.as_deref())),
        Param::texts(runs.iter().map(|run| &run.actor)),
        Param::maybe_ints(runs.iter().map(|run| run.expected)),
        Param::ints(runs.iter().map(|run| run.began_at.0)),
    ]
}

/// How it stands.
fn progress(runs: &[&BulkRun]) -> Vec<Param> {
    let counts = || runs.iter().map(|run| &run.counts);
    vec![
        Param::texts(runs.iter().map(|run| run.state.as_str())),
        Param::maybe_ids(runs.iter().map(|run| run.cursor.map(|job| job.0))),
        Param::ints(counts().map(|counts| counts.examined)),
        Param::ints(counts().map(|counts| counts.matched)),
        Param::ints(counts().map(|counts| counts.done)),
        Param::ints(counts().map(|counts| counts.requested)),
        Param::ints(counts().map(|counts| counts.settled)),
        Param::ints(counts().map(|counts| counts.skipped)),
        Param::texts(runs.iter().map(|run| refused_text(run))),
        Param::texts(runs.iter().map(|run| refused_jobs_text(run))),
        Param::maybe_texts(runs.iter().map(|run| run.problem.as_deref())),
        Param::ints(runs.iter().map(|run| run.updated_at.0)),
        Param::maybe_ints(runs.iter().map(|run| run.finished_at.map(|at| at.0))),
    ]
}
