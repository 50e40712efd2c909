//! One operation that waits for its commit.

use tokio::sync::oneshot;

use super::{fault::Fault, session::Session};
pub(super) use crate::queue::Rank;
use crate::{StoreError, queue::Queued};

/// An operation on its way through the queue and a batch.
///
/// It may be run more than once: a batch that failed is rolled back and done again. Only what the last run put out is
/// answered, and only after the commit.
pub(super) trait Work: Queued {
    /// Nobody waits for the answer any more.
    fn is_abandoned(&self) -> bool;
    /// Does it within the transaction that is open.
    fn run(&mut self, session: &mut Session<'_>) -> Result<(), Fault>;
    /// Its rows are committed: gives the answer.
    fn answer(self: Box<Self>);
}

/// The one kind of [`Work`]: an input, what is done with it, and who waits.
pub(super) struct Pending<I, O> {
    pub(super) input: I,
    pub(super) bytes: usize,
    pub(super) run: fn(&mut Session<'_>, &I) -> Result<O, Fault>,
    pub(super) output: Option<O>,
    pub(super) reply: oneshot::Sender<Result<O, StoreError>>,
}

impl<I: Send, O: Send> Queued for Pending<I, O> {
    fn bytes(&self) -> usize {
        self.bytes
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        let _ = self.reply.send(Err(error));
    }
}

impl<I: Send, O: Send> Work for Pending<I, O> {
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(&mut self, session: &mut Session<'_>) -> Result<(), Fault> {
        self.output = None;
        self.output = Some((self.run)(session, &self.input)?);
        Ok(())
    }

    fn answer(self: Box<Self>) {
        // Without an output it was abandoned before it ran, and nobody listens.
        if let Some(output) = self.output {
            // Whoever hangs up has what `InDoubt` gives.
            let _ = self.reply.send(Ok(output));
        }
    }
}
