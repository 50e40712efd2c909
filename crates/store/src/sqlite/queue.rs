//! The bounded queue before the writer.

use std::{collections::VecDeque, time::Duration};

use parking_lot::{Condvar, Mutex};

use super::work::{Rank, Work};
use crate::StoreError;

/// After so many batches without background work, one piece of it comes first: background is late, never starved.
const BACKGROUND_EVERY: u32 = 16;

/// How much may wait, and how much goes into one batch.
#[derive(Clone, Copy, Debug)]
pub(super) struct Limits {
    pub(super) waiting_ops: usize,
    pub(super) waiting_bytes: usize,
    pub(super) batch_ops: usize,
    pub(super) batch_bytes: usize,
}

/// Whether new work is taken on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Serving,
    /// The database failed and is being opened again.
    Broken,
    Closing,
}

pub(super) struct Queue {
    state: Mutex<State>,
    wake: Condvar,
    limits: Limits,
}

struct State {
    foreground: VecDeque<Box<dyn Work>>,
    background: VecDeque<Box<dyn Work>>,
    bytes: usize,
    health: Health,
    batches_without_background: u32,
}

/// What [`Queue::take`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Taken {
    /// A batch.
    Batch,
    /// Nothing for a while.
    Idle,
    /// Nothing, and nothing will come.
    Closing,
}

impl Queue {
    pub(super) fn new(limits: Limits) -> Self {
        let state = State {
            foreground: VecDeque::new(),
            background: VecDeque::new(),
            bytes: 0,
            health: Health::Serving,
            batches_without_background: 0,
        };
        Self { state: Mutex::new(state), wake: Condvar::new(), limits }
    }

    /// Takes `work` on, or says why not.
    pub(super) fn push(&self, work: Box<dyn Work>, rank: Rank) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        state.check()?;
        // Alone, even something too large is taken on: otherwise it never would be.
        let crowded =
            state.bytes.saturating_add(work.bytes()) > self.limits.waiting_bytes && state.waiting() > 0;
        if crowded || state.waiting() >= self.limits.waiting_ops {
            return Err(StoreError::Overloaded);
        }
        state.bytes += work.bytes();
        match rank {
            Rank::Foreground => state.foreground.push_back(work),
            Rank::Background => state.background.push_back(work),
        }
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    /// Waits for work, at most for `idle_after`, and moves what waits, up to the limits of a batch, to `batch`.
    ///
    /// `batch` may hold work that an earlier batch had no time for; then it doesn't wait.
    pub(super) fn take(&self, batch: &mut VecDeque<Box<dyn Work>>, idle_after: Duration) -> Taken {
        let mut state = self.state.lock();
        while batch.is_empty() && state.waiting() == 0 {
            if state.health == Health::Closing {
                return Taken::Closing;
            }
            if self.wake.wait_for(&mut state, idle_after).timed_out() && state.waiting() == 0 {
                return if state.health == Health::Closing { Taken::Closing } else { Taken::Idle };
            }
        }
        state.fill(batch, self.limits);
        Taken::Batch
    }

    /// The database failed: refuses what waits, and what comes until [`Queue::serve`].
    pub(super) fn break_off(&self, error: impl Fn() -> StoreError) {
        let mut state = self.state.lock();
        if state.health == Health::Serving {
            state.health = Health::Broken;
        }
        state.bytes = 0;
        let waiting: Vec<_> = state.take_all();
        drop(state);
        for work in waiting {
            work.refuse(error());
        }
    }

    /// The database works again.
    pub(super) fn serve(&self) {
        let mut state = self.state.lock();
        if state.health == Health::Broken {
            state.health = Health::Serving;
        }
    }

    /// No new work; what waits is still done.
    pub(super) fn close(&self) {
        self.state.lock().health = Health::Closing;
        self.wake.notify_all();
    }

    /// Waits before the database is tried again; true if the store is closed meanwhile.
    pub(super) fn closed_within(&self, wait: Duration) -> bool {
        let mut state = self.state.lock();
        if state.health != Health::Closing {
            self.wake.wait_for(&mut state, wait);
        }
        state.health == Health::Closing
    }

    /// How much waits; or why nothing does.
    pub(super) fn waiting(&self) -> Result<usize, StoreError> {
        let state = self.state.lock();
        state.check()?;
        Ok(state.waiting())
    }
}

impl State {
    fn check(&self) -> Result<(), StoreError> {
        match self.health {
            Health::Serving => Ok(()),
            Health::Broken => Err(StoreError::unavailable("the database failed and is being opened again")),
            Health::Closing => Err(StoreError::unavailable("the store is closed")),
        }
    }

    fn waiting(&self) -> usize {
        self.foreground.len() + self.background.len()
    }

    fn take_all(&mut self) -> Vec<Box<dyn Work>> {
        self.foreground.drain(..).chain(self.background.drain(..)).collect()
    }

    fn fill(&mut self, batch: &mut VecDeque<Box<dyn Work>>, limits: Limits) {
        let mut bytes: usize = batch.iter().map(|work| work.bytes()).sum();
        if self.batches_without_background >= BACKGROUND_EVERY
            && let Some(work) = self.background.pop_front()
        {
            self.batches_without_background = 0;
            self.bytes -= work.bytes();
            bytes += work.bytes();
            batch.push_front(work);
        }
        for background in [false, true] {
            let queue = if background { &mut self.background } else { &mut self.foreground };
            while batch.len() < limits.batch_ops
                && let Some(work) = queue.front()
                && (batch.is_empty() || bytes + work.bytes() <= limits.batch_bytes)
            {
                let work = queue.pop_front().expect("it is at the front");
                self.bytes -= work.bytes();
                bytes += work.bytes();
                if background {
                    self.batches_without_background = 0;
                }
                batch.push_back(work);
            }
        }
        if !self.background.is_empty() {
            self.batches_without_background += 1;
        }
    }
}
