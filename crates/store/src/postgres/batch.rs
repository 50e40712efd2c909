//! Group commit: one transaction for everything that waited.
//!
//! No answer leaves before the commit that it rests on, refusals and duplicates included.

use std::{
    collections::VecDeque,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::atomic::Ordering,
    time::Duration,
};

use tokio::time::timeout;

use super::{
    connect::Connection,
    fault::{Fault, Reach},
    guard::{guarded, guarded_future},
    open,
    session::Session,
    wants::Wants,
    work::Work,
    writer::Desk,
};
use crate::StoreError;
#[cfg(feature = "faults")]
use crate::faults;

/// How often a transaction is tried in which somebody else was faster.
const TRIES_MAX: u32 = 6;

/// The longest wait before the second try; doubled each time.
const PAUSE: Duration = Duration::from_millis(4);

/// How long a rollback may take.
const ROLLBACK_MAX: Duration = Duration::from_secs(5);

type Batch = Vec<Box<dyn Work>>;

/// Why the connection must be made anew, and what is to be refused once the store says of itself that it is broken:
/// whoever is refused may ask.
pub(super) struct Broken {
    pub(super) fault: Fault,
    refused: Vec<(Box<dyn Work>, StoreError)>,
}

impl Broken {
    pub(super) fn idle(fault: Fault) -> Self {
        Self { fault, refused: Vec::new() }
    }

    /// Nothing was being done.
    pub(super) fn is_idle(&self) -> bool {
        self.refused.is_empty()
    }

    pub(super) fn tell(self) {
        self.refused.into_iter().for_each(|(work, error)| work.refuse(error));
    }

    fn refuse(&mut self, batch: impl IntoIterator<Item = Box<dyn Work>>, error: fn(Fault) -> StoreError) {
        self.refused.extend(batch.into_iter().map(|work| (work, error(self.fault.clone()))));
    }
}

/// What a transaction came to, if not to its commit.
enum Stop {
    /// It was rolled back.
    Fault(Fault),
    /// The operation with this index panicked; it was rolled back.
    Panicked(usize),
    /// The connection is of no use any more, and nothing was committed.
    Broken(Fault),
    /// The commit failed.
    Commit(Fault),
}

/// Runs and commits what waits and answers it. What needs a transaction of its own may stay in `waiting`.
pub(super) async fn run(
    desk: &Desk,
    conn: &Connection,
    waiting: &mut VecDeque<Box<dyn Work>>,
) -> Result<(), Broken> {
    let (batch, wants) = together(waiting);
    // What failed is done again by halves, until the culprit is alone.
    let mut parts = vec![(batch, Some(wants))];
    while let Some((batch, wants)) = parts.pop() {
        if batch.is_empty() {
            continue;
        }
        let wants = wants.unwrap_or_else(|| wants_of(&batch));
        match settle(desk, conn, batch, wants).await {
            Ok(mut failed) => {
                let rest = failed.split_off(failed.len() / 2);
                parts.push((rest, None));
                parts.push((failed, None));
            }
            Err(mut broken) => {
                broken.refuse(parts.into_iter().rev().flat_map(|(batch, _)| batch), Fault::of_batch);
                return Err(broken);
            }
        }
    }
    Ok(())
}

/// Takes from `waiting` what goes into one transaction.
fn together(waiting: &mut VecDeque<Box<dyn Work>>) -> (Batch, Wants) {
    let mut batch = Batch::with_capacity(waiting.len());
    let mut wants = Wants::default();
    while let Some(work) = waiting.pop_front() {
        if work.is_abandoned() {
            continue;
        }
        work.want(&mut wants);
        if wants.alone() {
            if batch.is_empty() {
                return (vec![work], wants);
            }
            waiting.push_front(work);
            let wants = wants_of(&batch);
            return (batch, wants);
        }
        batch.push(work);
    }
    (batch, wants)
}

fn wants_of(batch: &[Box<dyn Work>]) -> Wants {
    let mut wants = Wants::default();
    for work in batch {
        work.want(&mut wants);
    }
    wants
}

/// Commits and answers the batch, or gives back what is to be done in parts.
async fn settle(desk: &Desk, conn: &Connection, mut batch: Batch, mut wants: Wants) -> Result<Batch, Broken> {
    let mut tries = 1;
    loop {
        let fault = match transact(desk, conn, &mut batch, &wants).await {
            Ok(rows) => {
                answer(desk, batch, rows);
                return Ok(Batch::new());
            }
            Err(Stop::Panicked(index)) => {
                batch.remove(index).refuse(StoreError::unavailable("the operation panicked"));
                if batch.is_empty() {
                    return Ok(batch);
                }
                wants = wants_of(&batch);
                continue;
            }
            Err(Stop::Broken(fault)) => return Err(refuse_all(batch, fault, Fault::of_batch)),
            Err(Stop::Commit(fault)) => return Err(refuse_all(batch, fault, Fault::of_commit)),
            Err(Stop::Fault(fault)) => fault,
        };
        let again = fault.reach() == Reach::Transaction;
        if again && tries < TRIES_MAX {
            tracing::debug!(%fault, tries, "a transaction is done again");
            tokio::time::sleep(pause(desk, tries)).await;
            tries += 1;
            continue;
        }
        if batch.len() > 1 {
            return Ok(batch);
        }
        tracing::error!(%fault, "an operation failed alone");
        for work in batch {
            work.refuse(if again {
                StoreError::unavailable_because("others were faster each time", fault.clone())
            } else {
                fault.clone().of_operation()
            });
        }
        return Ok(Batch::new());
    }
}

/// Different for each writer, so that two don't meet again and again.
fn pause(desk: &Desk, tries: u32) -> Duration {
    let most = PAUSE * (1 << (tries - 1));
    let mut hasher = DefaultHasher::new();
    (desk.shard, tries, std::process::id()).hash(&mut hasher);
    let part = u32::try_from(hasher.finish() % 1_024).unwrap_or_default();
    most * part / 1_024
}

/// One transaction, up to its commit. Says how many rows it wrote.
async fn transact(desk: &Desk, conn: &Connection, batch: &mut Batch, wants: &Wants) -> Result<u64, Stop> {
    let working = guarded_future(work_on(desk, conn, batch, wants));
    let worked = timeout(desk.options.work_timeout, working).await;
    let stop = match worked {
        Err(_) => return Err(Stop::Broken(Fault::Unreachable("the transaction took too long"))),
        Ok(None) => Stop::Fault(Fault::Invariant("the transaction panicked")),
        Ok(Some(Err(stop))) => stop,
        Ok(Some(Ok(rows))) => return commit(desk, conn).await.map(|()| rows),
    };
    if let Stop::Fault(fault) = &stop
        && fault.reach() == Reach::Connection
    {
        return Err(Stop::Broken(fault.clone()));
    }
    match timeout(ROLLBACK_MAX, conn.client.batch_execute("ROLLBACK")).await {
        Ok(Ok(())) => Err(stop),
        Ok(Err(error)) => Err(Stop::Broken(error.into())),
        Err(_) => Err(Stop::Broken(Fault::Unreachable("the rollback took too long"))),
    }
}

async fn work_on(desk: &Desk, conn: &Connection, batch: &mut Batch, wants: &Wants) -> Result<u64, Stop> {
    let clock = desk.options.clock.as_deref();
    let now = open::begin(&conn.client, &conn.begin, clock).await.map_err(Stop::Fault)?;
    let ledger_used = desk.ledger_used.load(Ordering::Relaxed);
    let mut session = Session::new(&conn.client, desk.epoch, now, desk.shard, ledger_used);
    session.load(wants).await.map_err(Stop::Fault)?;
    for (index, work) in batch.iter_mut().enumerate() {
        guarded(|| work.run(&mut session.tables, session.now)).ok_or(Stop::Panicked(index))?;
    }
    session.flush().await.map_err(Stop::Fault)?;
    if session.ledger_used {
        desk.ledger_used.store(true, Ordering::Relaxed);
    }
    Ok(session.rows_written())
}

async fn commit(desk: &Desk, conn: &Connection) -> Result<(), Stop> {
    #[cfg(feature = "faults")]
    faults::reached(faults::Point::BeforeCommit);
    if let Some(watch) = &desk.options.watch {
        watch.begun();
    }
    match timeout(desk.options.commit_timeout, conn.client.batch_execute("COMMIT")).await {
        Ok(Ok(())) => {}
        Ok(Err(error)) => return Err(Stop::Commit(error.into())),
        Err(_) => return Err(Stop::Commit(Fault::Unreachable("the commit took too long"))),
    }
    #[cfg(feature = "faults")]
    faults::reached(faults::Point::AfterCommit);
    Ok(())
}

fn answer(desk: &Desk, batch: Batch, rows: u64) {
    for work in batch {
        work.answer();
    }
    if let Some(watch) = &desk.options.watch {
        watch.committed(rows);
    }
}

fn refuse_all(batch: Batch, fault: Fault, error: fn(Fault) -> StoreError) -> Broken {
    let mut broken = Broken::idle(fault);
    broken.refuse(batch, error);
    broken
}
