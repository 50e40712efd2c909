//! Jobs and their leases: new ones, those that go on, and those that move between the living and the settled.

use std::collections::BTreeMap;

use posthaste_core::{Cause, Evidence, JobId, JobRow, LeaseRow, NextStep, TenantId};

use super::write::Write;
use crate::{
    memory::tables::JobEntry,
    postgres::{
        params::Param,
        session::{Session, diff},
    },
    rows::job::{is_new, only_attempt_differs},
};

/// What is to be done with rows.
#[derive(Default)]
struct Moves<'t> {
    live_gone: Vec<&'t JobRow>,
    done_gone: Vec<&'t JobRow>,
    leases_gone: Vec<&'t JobRow>,
    new: Vec<&'t JobEntry>,
    live: Vec<&'t JobEntry>,
    done: Vec<&'t JobEntry>,
    written: Vec<&'t JobRow>,
    attempt_written: Vec<&'t JobRow>,
    leases: Vec<(&'t JobRow, &'t LeaseRow)>,
    leases_written: Vec<(&'t JobRow, &'t LeaseRow)>,
}

impl<'t> Moves<'t> {
    fn insert(&mut self, entry: &'t JobEntry) {
        if entry.row.state.is_settled() {
            self.done.push(entry);
        } else if is_new(&entry.row) {
            self.new.push(entry);
        } else {
            self.live.push(entry);
        }
        self.leases.extend(entry.lease.as_ref().map(|lease| (&entry.row, lease)));
    }

    fn delete(&mut self, entry: &'t JobEntry) {
        let gone = if entry.row.state.is_settled() { &mut self.done_gone } else { &mut self.live_gone };
        gone.push(&entry.row);
        self.leases_gone.extend(entry.lease.is_some().then_some(&entry.row));
    }

    fn change(&mut self, before: &'t JobEntry, after: &'t JobEntry) {
        if before.row.state.is_settled() || after.row.state.is_settled() {
            self.delete(before);
            self.insert(after);
            return;
        }
        if before.row != after.row {
            let only_attempt = only_attempt_differs(&before.row, &after.row);
            let written = if only_attempt { &mut self.attempt_written } else { &mut self.written };
            written.push(&after.row);
        }
        match (&before.lease, &after.lease) {
            (None, None) => {}
            (None, Some(lease)) => self.leases.push((&after.row, lease)),
            (Some(_), None) => self.leases_gone.push(&after.row),
            (Some(old), Some(lease)) if old == lease => {}
            (Some(_), Some(lease)) => self.leases_written.push((&after.row, lease)),
        }
    }
}

impl Session<'_> {
    pub(super) fn write_jobs(&self, writes: &mut Vec<Write>) {
        let diff = diff(&self.base.jobs, &self.tables.jobs, PartialEq::eq);
        let mut moves = Moves::default();
        for (_, entry) in &diff.gone {
            moves.delete(entry);
        }
        for (_, entry) in &diff.new {
            moves.insert(entry);
        }
        for (_, before, after) in &diff.changed {
            moves.change(before, after);
        }
        write_moves(writes, &moves);
    }

    /// How many jobs are in which state, as far as this transaction changed it. The last that is written: another
    /// connection of this shard waits here for the commit.
    pub(super) fn write_job_counts(&self, writes: &mut Vec<Write>) {
        let mut counts: BTreeMap<(TenantId, &'static str), i64> = BTreeMap::new();
        let diff = diff(&self.base.jobs, &self.tables.jobs, |one, two| one.row.state == two.row.state);
        let mut add = |tenant: TenantId, entry: &JobEntry, jobs: i64| {
            *counts.entry((tenant, entry.row.state.as_str())).or_default() += jobs;
        };
        for ((tenant, _), entry) in diff.gone {
            add(*tenant, entry, -1);
        }
        for ((tenant, _), entry) in diff.new {
            add(*tenant, entry, 1);
        }
        for ((tenant, _), before, after) in diff.changed {
            add(*tenant, before, -1);
            add(*tenant, after, 1);
        }
        counts.retain(|_, jobs| *jobs != 0);
        if counts.is_empty() {
            return;
        }
        let params = vec![
            Param::ints(counts.keys().map(|(tenant, _)| tenant.0)),
            Param::texts(counts.keys().map(|(_, state)| *state)),
            Param::ints(counts.keys().map(|_| self.shard)),
            Param::ints(counts.values().copied()),
        ];
        writes.push(Write::exactly(counts.len(), include_str!("../sql/job_counts_add.sql"), params));
    }
}

fn write_moves(writes: &mut Vec<Write>, moves: &Moves<'_>) {
    let mut rows = |rows: &[&JobRow], sql, params: fn(&[&JobRow]) -> Vec<Param>| {
        if !rows.is_empty() {
            writes.push(Write::exactly(rows.len(), sql, params(rows)));
        }
    };
    rows(&moves.live_gone, include_str!("../sql/jobs_delete.sql"), ids);
    rows(&moves.done_gone, include_str!("../sql/jobs_done_delete.sql"), ids);
    rows(&moves.leases_gone, include_str!("../sql/leases_delete.sql"), ids);
    rows(&moves.attempt_written, include_str!("../sql/jobs_write_attempt.sql"), attempt_written);
    rows(&moves.written, include_str!("../sql/jobs_write.sql"), written);
    let mut entries = |entries: &[&JobEntry], sql, params: fn(&[&JobEntry]) -> Vec<Param>| {
        if !entries.is_empty() {
            writes.push(Write::exactly(entries.len(), sql, params(entries)));
        }
    };
    entries(&moves.new, include_str!("../sql/jobs_insert_new.sql"), new);
    entries(&moves.live, include_str!("../sql/jobs_insert.sql"), live);
    entries(&moves.done, include_str!("../sql/jobs_done_insert.sql"), done);
    let mut leases = |rows: &[(&JobRow, &LeaseRow)], sql| {
        if !rows.is_empty() {
            writes.push(Write::exactly(rows.len(), sql, lease_params(rows)));
        }
    };
    leases(&moves.leases, include_str!("../sql/leases_insert.sql"));
    leases(&moves.leases_written, include_str!("../sql/leases_write.sql"));
}

fn ids(rows: &[&JobRow]) -> Vec<Param> {
    vec![Param::ints(rows.iter().map(|row| row.tenant)), Param::ids(rows.iter().map(|row| row.id))]
}

fn attempt_written(rows: &[&JobRow]) -> Vec<Param> {
    let mut params = ids(rows);
    params.extend([
        Param::texts(rows.iter().map(|row| row.state.as_str())),
        Param::maybe_ints(rows.iter().map(|row| row.due_at)),
        Param::maybe_texts(rows.iter().map(|row| row.next_step.map(NextStep::as_str))),
        Param::ints(rows.iter().map(|row| row.attempt)),
        Param::maybe_ints(rows.iter().map(|row| row.started_at)),
    ]);
    params
}

fn written(rows: &[&JobRow]) -> Vec<Param> {
    let mut params = ids(rows);
    params.extend([
        Param::texts(rows.iter().map(|row| row.state.as_str())),
        Param::texts(rows.iter().map(|row| row.share.as_str())),
        Param::maybe_ints(rows.iter().map(|row| row.due_at)),
        Param::maybe_texts(rows.iter().map(|row| row.next_step.map(NextStep::as_str))),
        Param::ints(rows.iter().map(|row| row.attempt)),
        Param::flags(rows.iter().map(|row| row.failed_before)),
        Param::maybe_ints(rows.iter().map(|row| row.started_at)),
    ]);
    params.extend(history(rows));
    params
}

fn new(entries: &[&JobEntry]) -> Vec<Param> {
    let rows = rows_of(entries);
    let mut params = ids(&rows);
    params.extend([
        Param::ints(rows.iter().map(|row| JobId(row.id).lane().0)),
        Param::texts(rows.iter().map(|row| row.kind.as_str())),
        Param::texts(rows.iter().map(|row| row.share.as_str())),
        Param::maybe_ints(rows.iter().map(|row| row.due_at)),
        Param::ints(rows.iter().map(|row| row.created_at)),
        Param::ints(rows.iter().map(|row| row.scheduled_at)),
        Param::ints(rows.iter().map(|row| row.budget_since)),
        Param::ints(rows.iter().map(|row| row.budget_held_ms)),
    ]);
    params.extend(extra(entries));
    params
}

fn live(entries: &[&JobEntry]) -> Vec<Param> {
    let rows = rows_of(entries);
    let mut params = what(&rows);
    params.extend([
        Param::maybe_ints(rows.iter().map(|row| row.due_at)),
        Param::maybe_texts(rows.iter().map(|row| row.next_step.map(NextStep::as_str))),
    ]);
    params.extend(times(&rows));
    params.extend(history(&rows));
    params.extend(extra(entries));
    params
}

fn done(entries: &[&JobEntry]) -> Vec<Param> {
    let rows = rows_of(entries);
    let mut params = what(&rows);
    params.extend([
        Param::maybe_ints(rows.iter().map(|row| row.settled_at)),
        Param::maybe_texts(rows.iter().map(|row| row.cause.map(Cause::as_str))),
        Param::maybe_texts(rows.iter().map(|row| row.evidence.map(Evidence::as_str))),
    ]);
    params.extend(times(&rows));
    params.extend(history(&rows));
    params.extend(extra(entries));
    params
}

fn rows_of<'t>(entries: &[&'t JobEntry]) -> Vec<&'t JobRow> {
    entries.iter().map(|entry| &entry.row).collect()
}

/// The tenant to the share.
fn what(rows: &[&JobRow]) -> Vec<Param> {
    let mut params = ids(rows);
    params.extend([
        Param::ints(rows.iter().map(|row| JobId(row.id).lane().0)),
        Param::texts(rows.iter().map(|row| row.kind.as_str())),
        Param::texts(rows.iter().map(|row| row.state.as_str())),
        Param::texts(rows.iter().map(|row| row.share.as_str())),
    ]);
    params
}

/// The attempt to the start.
fn times(rows: &[&JobRow]) -> [Param; 5] {
    [
        Param::ints(rows.iter().map(|row| row.attempt)),
        Param::flags(rows.iter().map(|row| row.failed_before)),
        Param::ints(rows.iter().map(|row| row.created_at)),
        Param::ints(rows.iter().map(|row| row.scheduled_at)),
        Param::maybe_ints(rows.iter().map(|row| row.started_at)),
    ]
}

/// The failures to the checkpoint.
fn history(rows: &[&JobRow]) -> [Param; 11] {
    [
        Param::ints(rows.iter().map(|row| row.failures)),
        Param::ints(rows.iter().map(|row| row.lost_leases)),
        Param::ints(rows.iter().map(|row| row.uncharged)),
        Param::ints(rows.iter().map(|row| row.budget_since)),
        Param::ints(rows.iter().map(|row| row.budget_held_ms)),
        Param::maybe_texts(rows.iter().map(|row| row.reason.as_deref())),
        Param::flags(rows.iter().map(|row| row.cancel_requested)),
        Param::maybe_texts(rows.iter().map(|row| row.abandon.map(Cause::as_str))),
        Param::ints(rows.iter().map(|row| row.commit_heard)),
        Param::ints(rows.iter().map(|row| row.evidence_floor)),
        Param::maybe_blobs(rows.iter().map(|row| row.checkpoint.as_deref())),
    ]
}

/// What no decision reads.
fn extra(entries: &[&JobEntry]) -> [Param; 2] {
    [
        Param::maybe_texts(entries.iter().map(|entry| entry.wire_id.as_deref())),
        Param::maybe_texts(entries.iter().map(|entry| entry.owner.as_deref())),
    ]
}

fn lease_params(rows: &[(&JobRow, &LeaseRow)]) -> Vec<Param> {
    vec![
        Param::ints(rows.iter().map(|(row, _)| row.tenant)),
        Param::ids(rows.iter().map(|(row, _)| row.id)),
        Param::texts(rows.iter().map(|(_, lease)| &lease.worker)),
        Param::ints(rows.iter().map(|(_, lease)| lease.due_at)),
        Param::ints(rows.iter().map(|(_, lease)| lease.leased_at)),
        Param::maybe_ints(rows.iter().map(|(_, lease)| lease.started_at)),
        Param::ints(rows.iter().map(|(_, lease)| lease.expires_at)),
        Param::ints(rows.iter().map(|(_, lease)| lease.deadline_at)),
    ]
}
