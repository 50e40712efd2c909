//! One statement that writes many rows, and all of them in one round trip.

use std::{
    future::{Future, poll_fn},
    pin::Pin,
    task::Poll,
};

use crate::postgres::{fault::Fault, params::Param, session::Session};

/// One statement.
pub(super) struct Write {
    sql: &'static str,
    params: Vec<Param>,
    rows: Rows,
}

/// How many rows it must write.
enum Rows {
    /// So many: they are locked, or nobody else can write them.
    Exactly(u64),
    /// So many, or somebody else was first.
    Claimed(u64),
    /// As many as there are.
    Any,
}

impl Write {
    /// Writes `rows` that are locked, or that nobody else can write.
    pub(super) fn exactly(rows: usize, sql: &'static str, params: Vec<Param>) -> Self {
        Self { sql, params, rows: Rows::Exactly(rows as u64) }
    }

    /// Writes `rows` that weren't there; if one is there now, somebody else was first.
    pub(super) fn claimed(rows: usize, sql: &'static str, params: Vec<Param>) -> Self {
        Self { sql, params, rows: Rows::Claimed(rows as u64) }
    }

    /// Writes what is there.
    pub(super) fn any(sql: &'static str, params: Vec<Param>) -> Self {
        Self { sql, params, rows: Rows::Any }
    }

    async fn run(&self, session: &Session<'_>) -> Result<(), Fault> {
        let written = session.run(self.sql, &self.params).await?;
        match self.rows {
            Rows::Exactly(rows) if written != rows => {
                tracing::error!(sql = self.sql, rows, written, "a statement wrote another number of rows");
                Err(Fault::Invariant("a statement wrote another number of rows"))
            }
            Rows::Claimed(rows) if written != rows => Err(Fault::Raced),
            Rows::Exactly(_) | Rows::Claimed(_) | Rows::Any => Ok(()),
        }
    }
}

/// Sends all, which run in this order, and waits for all: what fails first is the fault.
pub(super) async fn run_all(session: &Session<'_>, writes: &[Write]) -> Result<(), Fault> {
    type Running<'w> = Pin<Box<dyn Future<Output = Result<(), Fault>> + Send + 'w>>;
    let mut running: Vec<Running<'_>> = Vec::with_capacity(writes.len());
    for write in writes {
        running.push(Box::pin(write.run(session)));
    }
    let mut outcomes: Vec<Option<Result<(), Fault>>> = writes.iter().map(|_| None).collect();
    poll_fn(|context| {
        let mut waits = false;
        for (future, outcome) in running.iter_mut().zip(&mut outcomes) {
            if outcome.is_none() {
                match future.as_mut().poll(context) {
                    Poll::Ready(done) => *outcome = Some(done),
                    Poll::Pending => waits = true,
                }
            }
        }
        if waits { Poll::Pending } else { Poll::Ready(()) }
    })
    .await;
    outcomes.into_iter().flatten().collect()
}
