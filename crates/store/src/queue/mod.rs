//! The bounded queue before whoever writes: one thread, or a few tasks.

mod turns;

use std::{collections::VecDeque, time::Duration};

use parking_lot::{Condvar, Mutex};
use posthaste_core::TenantId;
use tokio::sync::Notify;

use self::turns::Turns;
use crate::StoreError;

/// Whether somebody waits for it, or it can wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rank {
    Foreground,
    Background,
}

/// What waits in a [`Queue`].
pub(crate) trait Queued: Send {
    /// Bytes that it holds in memory, and about as many that it writes.
    fn bytes(&self) -> usize;
    /// Nothing of it is committed.
    fn refuse(self: Box<Self>, error: StoreError);
}

/// After so many batches without background work, one piece of it comes first: background is late, never starved.
const BACKGROUND_EVERY: u32 = 16;

/// Background work of at most so many bytes takes no time to speak of, and goes along with any batch.
const SMALL_BYTES: usize = 4_096;

/// How much may wait, and how much goes into one batch.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Limits {
    pub(crate) waiting_ops: usize,
    pub(crate) waiting_bytes: usize,
    pub(crate) batch_ops: usize,
    pub(crate) batch_bytes: usize,
}

/// Whether new work is taken on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Health {
    Serving,
    /// The database failed and is being opened again.
    Broken,
    Closing,
}

pub(crate) struct Queue<W: ?Sized> {
    state: Mutex<State<W>>,
    /// Wakes a thread.
    wake: Condvar,
    /// Wakes a task.
    wake_task: Notify,
    /// A writer is done with a batch, or broken.
    batch_ended: Notify,
    closed: Notify,
    limits: Limits,
}

struct State<W: ?Sized> {
    foreground: Turns<W>,
    background: VecDeque<Box<W>>,
    bytes: usize,
    health: Health,
    /// How many writers have a batch in hand.
    in_batch: usize,
    batches_without_background: u32,
}

/// What [`Queue::take`] found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Taken {
    /// A batch.
    Batch,
    /// Nothing for a while.
    Idle,
    /// Nothing, and nothing will come.
    Closing,
}

impl<W: Queued + ?Sized> Queue<W> {
    pub(crate) fn new(limits: Limits) -> Self {
        let state = State {
            foreground: Turns::default(),
            background: VecDeque::new(),
            bytes: 0,
            health: Health::Serving,
            in_batch: 0,
            batches_without_background: 0,
        };
        Self {
            state: Mutex::new(state),
            wake: Condvar::new(),
            wake_task: Notify::new(),
            batch_ended: Notify::new(),
            closed: Notify::new(),
            limits,
        }
    }

    /// Takes `work` of `tenant`, or of none or several, on, or says why not.
    pub(crate) fn push(&self, work: Box<W>, rank: Rank, tenant: Option<TenantId>) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        state.check()?;
        // Alone, even something too large is taken on: otherwise it never would be.
        let crowded =
            state.bytes.saturating_add(work.bytes()) > self.limits.waiting_bytes && state.waiting() > 0;
        let Limits { waiting_ops, waiting_bytes, .. } = self.limits;
        let flooded =
            rank == Rank::Foreground && state.foreground.holds_too_much(tenant, waiting_ops, waiting_bytes);
        if crowded || flooded || state.waiting() >= waiting_ops {
            return Err(StoreError::Overloaded);
        }
        state.bytes += work.bytes();
        match rank {
            Rank::Foreground => state.foreground.push(tenant, work),
            Rank::Background => state.background.push_back(work),
        }
        drop(state);
        self.wake.notify_one();
        self.wake_task.notify_one();
        Ok(())
    }

    /// Waits for work, at most for `idle_after`, and moves what waits, up to the limits of a batch, to `batch`.
    ///
    /// `batch` may hold work that an earlier batch had no time for; then it doesn't wait.
    pub(crate) fn take(&self, batch: &mut VecDeque<Box<W>>, idle_after: Duration) -> Taken {
        let mut state = self.state.lock();
        state.in_batch = 0;
        self.batch_ended.notify_waiters();
        while batch.is_empty() && state.waiting() == 0 {
            if state.health == Health::Closing {
                return Taken::Closing;
            }
            if self.wake.wait_for(&mut state, idle_after).timed_out() && state.waiting() == 0 {
                return if state.health == Health::Closing { Taken::Closing } else { Taken::Idle };
            }
        }
        state.fill(batch, self.limits);
        state.in_batch = 1;
        Taken::Batch
    }

    /// The same for a task, one of several: whoever took a batch says with [`Queue::end_batch`] when it is over. False if
    /// nothing will come any more. Cancel: safe; nothing is taken.
    pub(crate) async fn next_batch(&self, batch: &mut VecDeque<Box<W>>) -> bool {
        loop {
            let woken = self.wake_task.notified();
            tokio::pin!(woken);
            // Registered before the look, so that what comes in between is not missed.
            woken.as_mut().enable();
            if let Some(taken) = self.try_take(batch) {
                return taken;
            }
            woken.await;
        }
    }

    fn try_take(&self, batch: &mut VecDeque<Box<W>>) -> Option<bool> {
        let mut state = self.state.lock();
        if batch.is_empty() && state.waiting() == 0 {
            return (state.health == Health::Closing).then_some(false);
        }
        state.fill(batch, self.limits);
        state.in_batch += 1;
        if state.waiting() > 0 {
            self.wake_task.notify_one();
        }
        Some(true)
    }

    /// A batch of [`Queue::next_batch`] is over, however it ended.
    pub(crate) fn end_batch(&self) {
        let mut state = self.state.lock();
        state.in_batch = state.in_batch.saturating_sub(1);
        self.batch_ended.notify_waiters();
    }

    /// The database failed: refuses what waits, and what comes until [`Queue::serve`].
    pub(crate) fn break_off(&self, error: impl Fn() -> StoreError) {
        let mut state = self.state.lock();
        if state.health == Health::Serving {
            state.health = Health::Broken;
        }
        state.in_batch = 0;
        self.batch_ended.notify_waiters();
        state.bytes = 0;
        let waiting: Vec<_> = state.take_all();
        drop(state);
        for work in waiting {
            work.refuse(error());
        }
    }

    /// The database works again.
    pub(crate) fn serve(&self) {
        let mut state = self.state.lock();
        if state.health == Health::Broken {
            state.health = Health::Serving;
        }
    }

    /// No new work; what waits is still done.
    pub(crate) fn close(&self) {
        self.state.lock().health = Health::Closing;
        self.wake.notify_all();
        self.wake_task.notify_waiters();
        self.closed.notify_waiters();
    }

    /// Waits until [`Queue::close`]. Cancel: safe.
    pub(crate) async fn closed(&self) {
        let closed = self.closed.notified();
        tokio::pin!(closed);
        closed.as_mut().enable();
        if self.state.lock().health != Health::Closing {
            closed.await;
        }
    }

    /// Waits before the database is tried again; true if the store is closed meanwhile.
    pub(crate) fn closed_within(&self, wait: Duration) -> bool {
        let mut state = self.state.lock();
        if state.health != Health::Closing {
            self.wake.wait_for(&mut state, wait);
        }
        state.health == Health::Closing
    }

    /// How much waits; or why nothing does. Waits for a batch that is in hand: a disk that hangs is no
    /// disk that works.
    pub(crate) async fn waiting(&self) -> Result<usize, StoreError> {
        let ended = self.batch_ended.notified();
        tokio::pin!(ended);
        // Registered before the look, so that an end that comes in between is not missed.
        ended.as_mut().enable();
        let look = || {
            let state = self.state.lock();
            state.check()?;
            Ok((state.in_batch > 0, state.waiting()))
        };
        let (in_batch, waiting) = look()?;
        if !in_batch {
            return Ok(waiting);
        }
        ended.await;
        Ok(look()?.1)
    }
}

impl<W: Queued + ?Sized> State<W> {
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

    fn take_all(&mut self) -> Vec<Box<W>> {
        let mut all = self.foreground.drain();
        all.extend(self.background.drain(..));
        all
    }

    fn fill(&mut self, batch: &mut VecDeque<Box<W>>, limits: Limits) {
        let mut bytes: usize = batch.iter().map(|work| work.bytes()).sum();
        let carried = batch.len();
        if self.batches_without_background >= BACKGROUND_EVERY
            && let Some(work) = self.background.pop_front()
        {
            self.batches_without_background = 0;
            self.bytes -= work.bytes();
            bytes += work.bytes();
            batch.push_front(work);
        }
        let mut ops = batch.len();
        let mut room = |size: usize| {
            let fits = ops < limits.batch_ops && (ops == 0 || bytes + size <= limits.batch_bytes);
            if fits {
                (ops, bytes) = (ops + 1, bytes + size);
            }
            fits
        };
        let waiting = &mut self.bytes;
        let mut take = |work: Box<W>| {
            *waiting -= work.bytes();
            batch.push_back(work);
        };
        let before = self.foreground.len();
        self.foreground.take_while(&mut room, &mut take);
        let mut alone = carried == 0 && self.foreground.len() == before;
        // Whoever waits is answered with the batch: what takes long and can wait goes into one of its own.
        while let Some(work) = self.background.front()
            && (alone || work.bytes() <= SMALL_BYTES)
            && room(work.bytes())
        {
            alone &= work.bytes() <= SMALL_BYTES;
            self.batches_without_background = 0;
            take(self.background.pop_front().expect("it is at the front"));
        }
        if !self.background.is_empty() {
            self.batches_without_background += 1;
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex as Plain};

    use super::*;

    const LIMITS: Limits = Limits { waiting_ops: 100, waiting_bytes: 1_000, batch_ops: 4, batch_bytes: 100 };

    /// Work that is known by its size, and notes that it was refused.
    struct Piece(usize, Arc<Plain<Vec<usize>>>);

    impl Queued for Piece {
        fn bytes(&self) -> usize {
            self.0
        }

        fn refuse(self: Box<Self>, _error: StoreError) {
            self.1.lock().unwrap().push(self.0);
        }
    }

    fn push(queue: &Queue<Piece>, bytes: usize, rank: Rank) -> Result<(), StoreError> {
        queue.push(Box::new(Piece(bytes, Arc::default())), rank, None)
    }

    fn push_of(queue: &Queue<Piece>, tenant: u32, bytes: usize) -> Result<(), StoreError> {
        queue.push(Box::new(Piece(bytes, Arc::default())), Rank::Foreground, Some(TenantId(tenant)))
    }

    /// The next batch, by the sizes of what is in it.
    fn next(queue: &Queue<Piece>) -> Vec<usize> {
        let mut batch = VecDeque::new();
        assert_eq!(Taken::Batch, queue.take(&mut batch, Duration::ZERO));
        batch.iter().map(|work| work.bytes()).collect()
    }

    #[test]
    fn a_batch_has_its_bytes_and_its_operations() {
        let queue = Queue::<Piece>::new(LIMITS);
        for bytes in [40, 40, 40, 300, 1, 2, 3, 4, 5] {
            push(&queue, bytes, Rank::Foreground).unwrap();
        }
        let batches: Vec<_> = (0..4).map(|_| next(&queue)).collect();
        assert_eq!([&[40, 40][..], &[40], &[300], &[1, 2, 3, 4]], *batches, "what is too large is alone");
    }

    #[test]
    fn the_foreground_goes_first_and_the_background_is_never_starved() {
        let queue = Queue::<Piece>::new(LIMITS);
        push(&queue, 9, Rank::Background).unwrap();
        let mut batches = 0;
        loop {
            while queue.state.lock().foreground.len() < 8 {
                push(&queue, 1, Rank::Foreground).unwrap();
            }
            batches += 1;
            let batch = next(&queue);
            if batch.contains(&9) {
                assert_eq!(4, batch.len(), "the foreground goes on beside it");
                break;
            }
        }
        assert_eq!(BACKGROUND_EVERY + 1, batches);
        push(&queue, 8, Rank::Background).unwrap();
        let rest: Vec<usize> = std::iter::repeat_with(|| next(&queue)).take(2).flatten().collect();
        assert_eq!([1, 1, 1, 1, 1, 8], *rest, "it comes at once where there is room");
    }

    #[test]
    fn what_is_more_than_may_wait_is_refused_at_once() {
        let queue = Queue::<Piece>::new(LIMITS);
        push(&queue, 5_000, Rank::Foreground).expect("alone, anything is taken on");
        assert!(matches!(push(&queue, 1, Rank::Foreground), Err(StoreError::Overloaded)));
        next(&queue);
        for _ in 0..100 {
            push(&queue, 1, Rank::Background).unwrap();
        }
        assert!(matches!(push(&queue, 1, Rank::Foreground), Err(StoreError::Overloaded)));
        next(&queue);
        push(&queue, 900, Rank::Foreground).expect("there is room again");
        assert!(matches!(push(&queue, 5, Rank::Foreground), Err(StoreError::Overloaded)));
    }

    #[test]
    fn r_a6_whoever_waits_does_not_wait_for_long_background_work_as_well() {
        let queue = Queue::<Piece>::new(Limits { waiting_bytes: 100_000, batch_bytes: 100_000, ..LIMITS });
        let long = SMALL_BYTES + 1;
        for bytes in [9, long, long, 8] {
            push(&queue, bytes, Rank::Background).unwrap();
        }
        push(&queue, 1, Rank::Foreground).unwrap();
        assert_eq!([1, 9], *next(&queue), "a small piece goes along");
        assert_eq!([long], *next(&queue), "a long one alone");
        assert_eq!([long, 8], *next(&queue));
    }

    #[test]
    fn r_g6_a_tenant_that_floods_is_served_in_turn_and_leaves_room() {
        let queue = Queue::<Piece>::new(Limits { batch_ops: 40, batch_bytes: 1_000, ..LIMITS });
        for _ in 0..50 {
            push_of(&queue, 1, 1).unwrap();
        }
        let flooded = push_of(&queue, 1, 1);
        assert!(matches!(flooded, Err(StoreError::Overloaded)), "half of what may wait is one tenant's");
        assert_eq!(vec![1; 40], next(&queue), "alone, it has whole batches");
        for _ in 0..40 {
            push_of(&queue, 1, 1).unwrap();
        }
        push_of(&queue, 2, 2).unwrap();
        push_of(&queue, 2, 3).unwrap();
        let batch = next(&queue);
        assert_eq!([1, 2, 1, 3, 1], batch[..5], "in turn");
        assert_eq!(turns::SHARED_OPS_MAX + 2, batch.len(), "and no long batch beside others");
        push(&queue, 7, Rank::Foreground).unwrap();
        assert_eq!(7, next(&queue)[0], "the store's own work goes first");
        let rest: usize = std::iter::repeat_with(|| next(&queue).len()).take(2).sum();
        assert_eq!(50 - 2 * turns::SHARED_OPS_MAX, rest, "nothing is lost");
    }

    #[tokio::test]
    async fn whoever_asks_how_it_is_waits_for_the_batch_in_hand() {
        let queue = Queue::<Piece>::new(LIMITS);
        assert_eq!(0, queue.waiting().await.unwrap());
        push(&queue, 1, Rank::Foreground).unwrap();
        next(&queue);
        let mut asked = std::pin::pin!(queue.waiting());
        let waits = tokio::select! {
            biased;
            _ = &mut asked => false,
            () = std::future::ready(()) => true,
        };
        assert!(waits, "a disk that hangs is no disk that works");
        assert_eq!(Taken::Idle, queue.take(&mut VecDeque::new(), Duration::ZERO));
        assert_eq!(0, asked.await.unwrap());
    }

    #[tokio::test]
    async fn a_broken_database_refuses_what_waits_and_what_comes() {
        let queue = Queue::<Piece>::new(LIMITS);
        let refused = Arc::default();
        for (bytes, rank) in [(1, Rank::Foreground), (2, Rank::Background)] {
            queue.push(Box::new(Piece(bytes, Arc::clone(&refused))), rank, None).unwrap();
        }
        queue.break_off(|| StoreError::unavailable("on purpose"));
        assert_eq!([1, 2], **refused.lock().unwrap());
        assert!(matches!(push(&queue, 1, Rank::Foreground), Err(StoreError::Unavailable { .. })));
        assert!(matches!(queue.waiting().await, Err(StoreError::Unavailable { .. })));
        queue.serve();
        push(&queue, 1, Rank::Foreground).unwrap();
        assert_eq!(1, queue.waiting().await.unwrap());
    }
}
