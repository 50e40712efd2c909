//! Group commit: one transaction, one sync, for everything that waited.
//!
//! No answer leaves before the commit that it rests on, refusals and duplicates included.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
};

use posthaste_core::DurationMs;

use super::{
    fault::{Fault, PanicText, Reach},
    session::Session,
    work::Work,
};
use crate::StoreError;
#[cfg(feature = "faults")]
use crate::faults;

/// Why the connection must be opened again.
pub(super) enum Broken {
    /// SQLite, or what is below it.
    Fault(Fault, Refused),
    /// An operation panicked; what else waited is to be done again.
    Panicked,
}

/// What is to be refused, once the store says of itself that it is broken: whoever is refused may ask.
#[derive(Default)]
pub(super) struct Refused(Vec<(Box<dyn Work>, StoreError)>);

impl Refused {
    pub(super) fn tell(self) {
        self.0.into_iter().for_each(|(work, error)| work.refuse(error));
    }
}

/// What a batch came to before its commit.
enum Stop {
    Broken(Fault),
    /// The last operation that ran failed alone: again, each by itself.
    OneByOne,
    /// The operation with this index panicked.
    Panicked(usize),
}

/// Runs and commits what waits, for `work_max` at most, and answers it. The rest stays in `waiting`.
pub(super) fn run(
    session: &mut Session<'_>,
    waiting: &mut VecDeque<Box<dyn Work>>,
    work_max: DurationMs,
) -> Result<(), Broken> {
    let mut batch = Vec::with_capacity(waiting.len());
    let stop = match together(session, waiting, &mut batch, work_max) {
        Ok(()) => return commit(session, batch, Vec::new()),
        Err(stop) => stop,
    };
    let mut failed = Vec::new();
    let stop = match stop {
        Stop::OneByOne => match one_by_one(session, &mut batch, &mut failed) {
            Ok(()) => return commit(session, batch, failed),
            Err(stop) => stop,
        },
        Stop::Broken(_) | Stop::Panicked(_) => stop,
    };
    match stop {
        Stop::Panicked(index) => {
            let culprit = batch.remove(index);
            culprit.refuse(StoreError::unavailable("the operation panicked"));
            batch.into_iter().rev().for_each(|work| waiting.push_front(work));
            Err(Broken::Panicked)
        }
        Stop::Broken(fault) => Err(refuse_all(batch, fault, Fault::of_batch)),
        Stop::OneByOne => {
            Err(refuse_all(batch, Fault::Invariant("a batch could not be separated"), Fault::of_batch))
        }
    }
}

/// The common case: all in one go, without the cost of savepoints.
fn together(
    session: &mut Session<'_>,
    waiting: &mut VecDeque<Box<dyn Work>>,
    batch: &mut Vec<Box<dyn Work>>,
    work_max: DurationMs,
) -> Result<(), Stop> {
    session.sql.begin.execute([]).map_err(|error| Stop::Broken(error.into()))?;
    let until = session.tick().after(work_max);
    while let Some(work) = waiting.pop_front() {
        if work.is_abandoned() {
            continue;
        }
        batch.push(work);
        let index = batch.len() - 1;
        session.tick();
        match guarded(&mut batch[index], session) {
            Some(Ok(())) => session.counts.keep(),
            Some(Err(fault)) => {
                return match fault.reach() {
                    Reach::Operation => {
                        session.forget();
                        session.sql.rollback.execute([]).map_err(|error| Stop::Broken(error.into()))?;
                        Err(Stop::OneByOne)
                    }
                    Reach::Connection => Err(Stop::Broken(fault)),
                };
            }
            None => return Err(Stop::Panicked(index)),
        }
        if session.now >= until {
            break;
        }
    }
    Ok(())
}

/// Again, each within a savepoint, so that only the culprits fail.
fn one_by_one(
    session: &mut Session<'_>,
    batch: &mut [Box<dyn Work>],
    failed: &mut Vec<(usize, Fault)>,
) -> Result<(), Stop> {
    let broken = |error: rusqlite::Error| Stop::Broken(error.into());
    session.sql.begin.execute([]).map_err(broken)?;
    for (index, work) in batch.iter_mut().enumerate() {
        session.tick();
        session.sql.savepoint.execute([]).map_err(broken)?;
        match guarded(work, session) {
            Some(Ok(())) => session.counts.keep(),
            Some(Err(fault)) if fault.reach() == Reach::Operation => {
                session.sql.savepoint_rollback.execute([]).map_err(broken)?;
                session.forget_operation();
                tracing::error!(%fault, "an operation failed alone");
                failed.push((index, fault));
            }
            Some(Err(fault)) => return Err(Stop::Broken(fault)),
            None => return Err(Stop::Panicked(index)),
        }
        session.sql.savepoint_release.execute([]).map_err(broken)?;
    }
    Ok(())
}

/// `None` if it panicked.
fn guarded(work: &mut Box<dyn Work>, session: &mut Session<'_>) -> Option<Result<(), Fault>> {
    // The session is thrown away after a panic, and the operation is refused.
    match catch_unwind(AssertUnwindSafe(|| work.run(session))) {
        Ok(result) => Some(result),
        Err(panic) => {
            tracing::error!(panic = %PanicText(&*panic), "an operation panicked");
            None
        }
    }
}

/// Commits, then answers: `failed` alone is refused, by index.
fn commit(
    session: &mut Session<'_>,
    batch: Vec<Box<dyn Work>>,
    failed: Vec<(usize, Fault)>,
) -> Result<(), Broken> {
    if let Err(fault) = session.move_recent_names() {
        return Err(refuse_all(batch, fault, Fault::of_batch));
    }
    if let Err(error) = session.counts.flush(&mut session.sql.counts_add) {
        return Err(refuse_all(batch, error.into(), Fault::of_batch));
    }
    #[cfg(feature = "faults")]
    let (batch, failed) = faults::answered_early(batch, failed, answer_all);
    #[cfg(feature = "faults")]
    faults::reached(faults::Point::BeforeCommit);
    if let Some(watch) = &session.watch {
        watch.begun();
    }
    if let Err(error) = session.sql.commit.execute([]) {
        return Err(refuse_all(batch, error.into(), Fault::of_commit));
    }
    assert!(session.conn.is_autocommit(), "a commit that succeeded left its transaction open");
    #[cfg(feature = "faults")]
    faults::reached(faults::Point::AfterCommit);
    session.recent_names_moved();
    answer_all(batch, failed);
    let rows = session.rows_written();
    if let Some(watch) = &session.watch {
        watch.committed(rows);
    }
    Ok(())
}

fn answer_all(batch: Vec<Box<dyn Work>>, failed: Vec<(usize, Fault)>) {
    let mut failed = failed.into_iter().peekable();
    for (index, work) in batch.into_iter().enumerate() {
        match failed.next_if(|(culprit, _)| *culprit == index) {
            Some((_, fault)) => work.refuse(fault.of_operation()),
            None => work.answer(),
        }
    }
}

fn refuse_all(batch: Vec<Box<dyn Work>>, fault: Fault, error: fn(Fault) -> StoreError) -> Broken {
    let refused = batch.into_iter().map(|work| (work, error(fault.clone()))).collect();
    Broken::Fault(fault, Refused(refused))
}
