//! The threads that read. Each read is one transaction, so it sees every commit that was answered before it began.

use std::{
    collections::VecDeque,
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use parking_lot::{Condvar, Mutex};
use posthaste_core::Timestamp;
use rusqlite::{Connection, ErrorCode};
use tokio::sync::oneshot;

use super::{
    fault::{Fault, PanicText, Reach},
    open::open_reader,
    options::SqliteOptions,
    recent_names::RecentNames,
    statements::{ReadStatements, RecordStatements},
    unsettled::PassedOver,
};
use crate::{Clock, StoreError};

/// Steps of SQLite's machine between two looks at the budget.
const STEPS: i32 = 100_000;

/// Looks after which a read is broken off: some seconds.
const LOOKS_MAX: u32 = 2_000;

/// A wait before a connection that failed is opened again.
const RETRY_AFTER: Duration = Duration::from_millis(250);

/// What a read sees.
pub(super) struct ReadSession<'c> {
    pub(super) sql: ReadStatements<'c>,
    pub(super) records: RecordStatements<'c>,
    clock: Arc<dyn Clock>,
    pub(super) recent: Arc<RecentNames>,
    /// Jobs that were told of as unreadable.
    pub(super) passed_over: PassedOver,
}

impl ReadSession<'_> {
    pub(super) fn now(&self) -> Timestamp {
        self.clock.now()
    }
}

/// A read on its way.
pub(super) trait Read: Send {
    fn is_abandoned(&self) -> bool;
    /// Reads and answers; a fault of the connection is given back.
    fn run(self: Box<Self>, session: &mut ReadSession<'_>) -> Result<(), Fault>;
    fn refuse(self: Box<Self>, error: StoreError);
}

/// The one kind of [`Read`].
pub(super) struct PendingRead<I, O> {
    pub(super) input: I,
    pub(super) read: fn(&mut ReadSession<'_>, &I) -> Result<O, Fault>,
    pub(super) reply: oneshot::Sender<Result<O, StoreError>>,
}

impl<I: Send, O: Send> Read for PendingRead<I, O> {
    fn is_abandoned(&self) -> bool {
        self.reply.is_closed()
    }

    fn run(self: Box<Self>, session: &mut ReadSession<'_>) -> Result<(), Fault> {
        let result = session.sql.read_begin.execute([]).map_err(Fault::from);
        let result = result.and_then(|_| (self.read)(session, &self.input));
        let ended = session.sql.read_end.execute([]);
        let (answer, fault) = match result {
            Ok(output) => (Ok(output), None),
            Err(fault) if fault.reach() == Reach::Operation => {
                (Err(StoreError::Corrupt(Box::new(fault))), None)
            }
            Err(fault) if is_interrupted(&fault) => {
                (Err(StoreError::unavailable("the read took too long: ask for less")), None)
            }
            Err(fault) => (Err(fault.clone().of_batch()), Some(fault)),
        };
        // Whoever hangs up needs no answer.
        let _ = self.reply.send(answer);
        ended?;
        fault.map_or(Ok(()), Err)
    }

    fn refuse(self: Box<Self>, error: StoreError) {
        let _ = self.reply.send(Err(error));
    }
}

fn is_interrupted(fault: &Fault) -> bool {
    matches!(fault, Fault::Sql(error) if error.sqlite_error_code() == Some(ErrorCode::OperationInterrupted))
}

/// The reads that wait.
pub(super) struct ReadQueue {
    state: Mutex<State>,
    wake: Condvar,
    waiting_max: usize,
}

struct State {
    waiting: VecDeque<Box<dyn Read>>,
    closed: bool,
}

impl ReadQueue {
    pub(super) fn new(waiting_max: usize) -> Self {
        let state = State { waiting: VecDeque::new(), closed: false };
        Self { state: Mutex::new(state), wake: Condvar::new(), waiting_max }
    }

    pub(super) fn push(&self, read: Box<dyn Read>) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        if state.closed {
            return Err(StoreError::unavailable("the store is closed"));
        }
        if state.waiting.len() >= self.waiting_max {
            return Err(StoreError::Overloaded);
        }
        state.waiting.push_back(read);
        drop(state);
        self.wake.notify_one();
        Ok(())
    }

    pub(super) fn close(&self) {
        self.state.lock().closed = true;
        self.wake.notify_all();
    }

    fn take(&self) -> Option<Box<dyn Read>> {
        let mut state = self.state.lock();
        loop {
            if let Some(read) = state.waiting.pop_front() {
                return Some(read);
            }
            if state.closed {
                return None;
            }
            self.wake.wait(&mut state);
        }
    }

    /// Refuses what waits, and waits itself; true if the store is closed.
    fn rest(&self) -> bool {
        let mut state = self.state.lock();
        for read in state.waiting.drain(..) {
            read.refuse(StoreError::unavailable("the database can't be opened"));
        }
        if !state.closed {
            self.wake.wait_for(&mut state, RETRY_AFTER);
        }
        state.closed
    }
}

/// One thread's work: serves until the store is closed.
pub(super) fn run(options: &SqliteOptions, queue: &ReadQueue, recent: &Arc<RecentNames>, first: Connection) {
    let mut opened = Some(first);
    loop {
        let conn = opened.take().map_or_else(|| open_reader(options), Ok);
        let served = match conn {
            Ok(mut conn) => serve(&mut conn, options, queue, recent),
            Err(error) => {
                tracing::warn!(%error, "a reader can't open the database yet");
                if queue.rest() {
                    return;
                }
                continue;
            }
        };
        match served {
            Ok(()) => return,
            Err(fault) => tracing::error!(%fault, "a reader failed: opening the database again"),
        }
    }
}

fn serve(
    conn: &mut Connection,
    options: &SqliteOptions,
    queue: &ReadQueue,
    recent: &Arc<RecentNames>,
) -> Result<(), Fault> {
    let looks = Arc::new(AtomicU32::new(0));
    let counted = looks.clone();
    conn.progress_handler(STEPS, Some(move || counted.fetch_add(1, Ordering::Relaxed) >= LOOKS_MAX))?;
    let (sql, records) = (ReadStatements::prepare(conn)?, RecordStatements::prepare(conn)?);
    let (clock, recent) = (options.clock.clone(), recent.clone());
    let mut session = ReadSession { sql, records, clock, recent, passed_over: PassedOver::default() };
    while let Some(read) = queue.take() {
        if read.is_abandoned() {
            continue;
        }
        looks.store(0, Ordering::Relaxed);
        // The session is thrown away after a panic; the caller's answer was dropped with the read.
        match catch_unwind(AssertUnwindSafe(|| read.run(&mut session))) {
            Ok(result) => result?,
            Err(panic) => {
                tracing::error!(panic = %PanicText(&*panic), "a read panicked");
                return Err(Fault::Invariant("a read panicked"));
            }
        }
    }
    Ok(())
}
