//! Other nodes on the same store: what they changed is read again, their work is found, and one of all does the chores.
//! Rows B3, B10, D5, G1.
//!
//! The truth is in the rows: a look at them every second or so is what is relied on. A store that is one process's alone
//! has nothing of this, and the process is always on duty.

use std::sync::Arc;

use parking_lot::Mutex;
use posthaste_core::DurationMs;
use posthaste_store::{Met, Node};
use tokio::sync::watch;

use crate::Engine;

/// Time between two looks at what other nodes did, without the jitter.
const LOOK_EVERY: DurationMs = DurationMs(1_000);

/// Added to it, at most: nodes that were started together don't look together.
const JITTER: u64 = 250;

/// How long a node that is not heard of stays on duty.
const DUTY: DurationMs = DurationMs::from_secs(15);

/// What is known of the others.
pub(crate) struct Nodes {
    known: Mutex<Vec<Node>>,
    on_duty: watch::Sender<bool>,
}

impl Nodes {
    /// `shared`: others may be there, and may be on duty.
    pub(crate) fn new(shared: bool) -> Self {
        Self { known: Mutex::default(), on_duty: watch::Sender::new(!shared) }
    }
}

impl Engine {
    /// The nodes that share the store, as they were seen last; none if it is this process's alone.
    pub fn nodes(&self) -> Vec<Node> {
        self.nodes.known.lock().clone()
    }

    /// Waits until this node is the one that does the chores; false if the engine stops before.
    pub async fn on_duty(&self) -> bool {
        let mut on_duty = self.nodes.on_duty.subscribe();
        tokio::select! {
            called = on_duty.wait_for(|on_duty| *on_duty) => called.is_ok(),
            () = self.stop.cancelled() => false,
        }
    }

    /// Looks at what other nodes did, until the engine stops.
    pub(crate) async fn run_nodes(self: Arc<Self>) {
        if self.store.shared().is_none() {
            return;
        }
        let mut configuration = None;
        let mut heard_at = self.clock.now();
        loop {
            match self.meet().await {
                Some(met) => {
                    heard_at = self.clock.now();
                    self.nodes.on_duty.send_replace(met.on_duty);
                    let changed = configuration.is_some_and(|known| known != met.configuration);
                    if changed && let Err(error) = self.reload_directory().await {
                        tracing::warn!(event = "configuration_unread", error = %error);
                    } else {
                        configuration = Some(met.configuration);
                    }
                    *self.nodes.known.lock() = met.nodes;
                    self.look_at_lanes().await;
                }
                // Somebody else takes over: not before is certain that nobody here goes on.
                None if self.clock.now().since(heard_at) >= half(DUTY) => {
                    self.nodes.on_duty.send_replace(false);
                }
                None => {}
            }
            let wake_at = self.clock.now().after(self.look_after());
            tokio::select! {
                () = self.clock.sleep_until(wake_at) => {}
                () = self.stop.cancelled() => break,
            }
        }
        if let Some(shared) = self.store.shared()
            && let Err(error) = shared.part(self.settings.node.clone()).await
        {
            tracing::debug!(event = "nodes_unreachable", error = %error);
        }
    }

    async fn meet(&self) -> Option<Met> {
        let shared = self.store.shared()?;
        let (name, version) = (self.settings.node.clone(), env!("CARGO_PKG_VERSION").into());
        match shared.meet(name, version, self.clock.wall(), DUTY).await {
            Ok(met) => Some(met),
            Err(error) => {
                tracing::warn!(event = "nodes_unreachable", error = %error);
                None
            }
        }
    }

    fn look_after(&self) -> DurationMs {
        // The low bits of an id are as good as any dice.
        let dice = self.message_ids.next(self.clock.now()).0 % u128::from(JITTER + 1);
        LOOK_EVERY.plus(DurationMs(u64::try_from(dice).unwrap_or(0)))
    }

    /// What other nodes held, let go, or left to be done.
    async fn look_at_lanes(&self) {
        if let Err(error) = self.read_lanes().await {
            tracing::warn!(event = "lanes_unread", error = %error);
        }
        self.wake_due(None).await;
    }
}

fn half(duration: DurationMs) -> DurationMs {
    DurationMs(duration.0 / 2)
}
