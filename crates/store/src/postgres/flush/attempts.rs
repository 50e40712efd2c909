//! Ended attempts: written once, with a late report beside.

use posthaste_core::{Attempt, Class, JobId, LateReport, RetryWish, TenantId};

use super::write::Write;
use crate::{
    AttemptView,
    postgres::{
        fault::Fault,
        params::Param,
        session::{Session, diff},
    },
    rows::attempt::details_to_json,
};

type At<'t> = (&'t (TenantId, JobId, Attempt), &'t AttemptView);

impl Session<'_> {
    pub(super) fn write_attempts(&self, writes: &mut Vec<Write>) -> Result<(), Fault> {
        let diff = diff(&self.base.attempts, &self.tables.attempts, PartialEq::eq);
        if !diff.gone.is_empty() {
            let sql = include_str!("../sql/attempts_delete.sql");
            writes.push(Write::exactly(diff.gone.len(), sql, names(&diff.gone)));
        }
        if !diff.new.is_empty() {
            let mut params = names(&diff.new);
            params.extend(run(&diff.new));
            params.extend(end(&diff.new));
            params.push(heard(&diff.new));
            params.extend(late(&diff.new));
            let sql = include_str!("../sql/attempts_insert.sql");
            writes.push(Write::exactly(diff.new.len(), sql, params));
        }
        let (mut late_now, mut heard_now) = (Vec::new(), Vec::new());
        for (at, before, after) in diff.changed {
            let same_end = before.end == after.end;
            match (&before.late, &after.late) {
                (None, Some(_)) if same_end => late_now.push((at, after)),
                (old, new) if same_end && old == new => heard_now.push((at, after)),
                _ => return Err(Fault::Invariant("an attempt that ended was written again")),
            }
        }
        if !late_now.is_empty() {
            let mut params = names(&late_now);
            params.extend(late(&late_now));
            params.push(heard(&late_now));
            let sql = include_str!("../sql/attempts_late.sql");
            writes.push(Write::exactly(late_now.len(), sql, params));
        }
        if !heard_now.is_empty() {
            let mut params = names(&heard_now);
            params.push(heard(&heard_now));
            let sql = include_str!("../sql/attempts_heard.sql");
            writes.push(Write::exactly(heard_now.len(), sql, params));
        }
        Ok(())
    }
}

fn names(rows: &[At<'_>]) -> Vec<Param> {
    vec![
        Param::ints(rows.iter().map(|((tenant, ..), _)| tenant.0)),
        Param::ids(rows.iter().map(|((_, job, _), _)| job.0)),
        Param::ints(rows.iter().map(|((.., attempt), _)| attempt.get())),
    ]
}

/// The kind to the end.
fn run(rows: &[At<'_>]) -> [Param; 7] {
    [
        Param::texts(rows.iter().map(|(_, view)| view.end.kind.as_str())),
        Param::texts(rows.iter().map(|(_, view)| view.end.path.as_str())),
        Param::texts(rows.iter().map(|(_, view)| &view.end.worker)),
        Param::ints(rows.iter().map(|(_, view)| view.end.due_at.0)),
        Param::ints(rows.iter().map(|(_, view)| view.end.leased_at.0)),
        Param::maybe_ints(rows.iter().map(|(_, view)| view.end.started_at.map(|at| at.0))),
        Param::ints(rows.iter().map(|(_, view)| view.end.finished_at.0)),
    ]
}

/// The outcome to the result.
fn end(rows: &[At<'_>]) -> Vec<Param> {
    let ends = || rows.iter().map(|(_, view)| &view.end);
    let details = || rows.iter().map(|(_, view)| &view.end.details);
    vec![
        Param::texts(ends().map(|end| end.report.outcome.as_str())),
        Param::maybe_texts(ends().map(|end| end.report.class.map(Class::as_str))),
        Param::texts(ends().map(|end| end.report.effect.as_str())),
        Param::maybe_texts(ends().map(|end| end.report.wish.map(RetryWish::as_str))),
        Param::flags(ends().map(|end| end.reported)),
        Param::texts(ends().map(|end| end.state.as_str())),
        Param::maybe_ints(ends().map(|end| end.next_at.map(|at| at.0))),
        Param::texts(ends().map(|end| &end.policy)),
        Param::maybe_ints(details().map(|details| details.status)),
        Param::maybe_ints(details().map(|details| details.duration.map(|duration| duration.0))),
        Param::maybe_texts(details().map(|details| details.code.as_deref())),
        Param::maybe_texts(details().map(|details| details.message.as_deref())),
        Param::maybe_blobs(details().map(|details| details.excerpt.as_deref())),
        Param::maybe_blobs(details().map(|details| details.result.as_deref())),
    ]
}

/// When a commit was heard.
fn heard(rows: &[At<'_>]) -> Param {
    Param::maybe_ints(rows.iter().map(|(_, view)| view.commit_heard_at.map(|at| at.0)))
}

fn late(rows: &[At<'_>]) -> Vec<Param> {
    let late = || rows.iter().map(|(_, view)| view.late.as_ref());
    let text = |of: fn(&LateReport) -> &'static str| Param::maybe_texts(late().map(|late| late.map(of)));
    let maybe_text = |of: fn(&LateReport) -> Option<&'static str>| {
        Param::maybe_texts(late().map(|late| late.and_then(of)))
    };
    vec![
        Param::maybe_ints(late().map(|late| late.map(|late| late.at.0))),
        text(|late| late.report.outcome.as_str()),
        maybe_text(|late| late.report.class.map(Class::as_str)),
        text(|late| late.report.effect.as_str()),
        maybe_text(|late| late.report.wish.map(RetryWish::as_str)),
        text(|late| late.state.as_str()),
        Param::maybe_ints(late().map(|late| late.and_then(|late| late.next_at).map(|at| at.0))),
        Param::maybe_ints(late().map(|late| late.map(|late| i64::from(late.accepted)))),
        Param::maybe_texts(late().map(|late| late.map(|late| details_to_json(&late.details)))),
    ]
}
