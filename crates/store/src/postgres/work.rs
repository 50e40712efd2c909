//! One operation that waits for its commit.

use posthaste_core::Timestamp;
use tokio::sync::oneshot;

use super::wants::Wants;
use crate::{StoreError, memory::tables::Tables, queue::Queued};

/// An operation on its way through the queue and a transaction.
///
/// It may be run more than once: a transaction that failed is rolled back and done again. Only what the last run put out
/// is answered, and only after the commit.
pub(super) trait Work: Queued {
    /// Nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool;
    /// Says what it will look at.
    fn want(&self, wants: &mut Wants);
    /// Does it to what was loaded.
    fn run(&mut self, tables: &mut Tables, now: Timestamp);
    /// Its rows are committed: gives the answer.
    fn answer(self: Box<Self>);
}

/// The one kind of [`Work`]: an input, what is done with it, and who waits.
pub(super) struct Pending<I, O> {
    pub(super) input: I,
    pub(super) bytes: usize,
    pub(super) wants: fn(&mut Wants, &I),
    pub(super) run: fn(&mut Tables, &I, Timestamp) -> O,
    pub(super) output: Option<O>,
    pub(super) reply: oneshot::Sender<Result<O, StoreError>>,
}

impl<I: Send, O: Send> Queued for Pending<I, O> {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        // Whoever hangs up has what `InDoubt` gives.
        let _ = self.reply.send(Err(error));
    }
}

impl<I: Send, O: Send> Work for Pending<I, O> {
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn want(&self, wants: &mut Wants) {
        (self.wants)(wants, &self.input);
    }

    fn run(&mut self, tables: &mut Tables, now: Timestamp) {
        self.output = None;
        self.output = Some((self.run)(tables, &self.input, now));
    }

    fn answer(self: Box<Self>) {
        if let Some(output) = self.output {
            let _ = self.reply.send(Ok(output));
        }
    }
}
