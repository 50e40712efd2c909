//! The history as it grows, and the one clock.

use std::{sync::Mutex, time::Instant};

use posthaste_testkit::history::record::{HarnessAt, Record};

/// What was seen so far.
pub(crate) struct Log {
    began: Instant,
    /// Unix time when it began, in microseconds.
    began_us: i64,
    records: Mutex<Vec<Record>>,
}

impl Log {
    pub(crate) fn start() -> Self {
        let began_us = jiff::Timestamp::now().as_microsecond();
        Self { began: Instant::now(), began_us, records: Mutex::default() }
    }

    /// Now, by the monotonic clock.
    pub(crate) fn now(&self) -> HarnessAt {
        HarnessAt(self.began_us + i64::try_from(self.began.elapsed().as_micros()).unwrap())
    }

    pub(crate) fn add(&self, record: Record) {
        self.records.lock().unwrap().push(record);
    }

    /// What `read` makes of everything seen so far.
    pub(crate) fn with<T>(&self, read: impl FnOnce(&[Record]) -> T) -> T {
        read(&self.records.lock().unwrap())
    }
}
