//! What all actors of a run share.

use std::{
    net::SocketAddr,
    ops::Range,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use super::{client::Client, kills::Kill, log::Log};

/// What a run does.
#[derive(Clone, Debug)]
pub(crate) struct Plan {
    /// Of everything that is left to chance.
    pub(crate) seed: u64,
    /// How each life of the server ends, in order; one more life follows.
    pub(crate) kills: Vec<Kill>,
    /// A fault that every life but the first and the last has, in the words of the variable `POSTHASTE_FAULTS`.
    pub(crate) fault: Option<&'static str>,
    /// How long it may take at the end until nothing is left to do.
    pub(crate) settle_patience: Duration,
    /// How many keys are to be acknowledged at least before the load ends.
    pub(crate) keys_min: u64,
    /// How long a publisher pauses between two calls.
    pub(crate) pace_ms: Range<u64>,
    /// How many endpoints a fan-out goes to.
    pub(crate) subscribers: u64,
    /// How long it is from one fan-out to the next.
    pub(crate) fan_out_pace_ms: Range<u64>,
}

/// The shared state of a run.
pub(crate) struct Stage {
    pub(crate) plan: Plan,
    pub(crate) log: Arc<Log>,
    address: SocketAddr,
    load_over: AtomicBool,
    all_over: AtomicBool,
}

impl Stage {
    pub(crate) fn new(plan: Plan, log: Arc<Log>, address: SocketAddr) -> Self {
        Self { plan, log, address, load_over: AtomicBool::new(false), all_over: AtomicBool::new(false) }
    }

    /// A client of the server of this stage.
    pub(crate) fn client(&self) -> Client {
        Client::new(self.address, Arc::clone(&self.log))
    }

    /// Nothing new is published.
    pub(crate) fn load_is_over(&self) -> bool {
        self.load_over.load(Ordering::Relaxed)
    }

    pub(crate) fn end_load(&self) {
        self.load_over.store(true, Ordering::Relaxed);
    }

    /// Nothing is left to do.
    pub(crate) fn all_is_over(&self) -> bool {
        self.all_over.load(Ordering::Relaxed)
    }

    pub(crate) fn end_all(&self) {
        self.all_over.store(true, Ordering::Relaxed);
    }
}
