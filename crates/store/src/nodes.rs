//! Nodes that share a store: who they are, and which of them does what only one should. Rows D5, G1.

use posthaste_core::{DurationMs, Timestamp};

use crate::{BoxFuture, StoreError};

/// One process on a store that several share.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Node {
    /// Unique to each start.
    pub name: Box<str>,
    /// Its version.
    pub version: Box<str>,
    /// How far its machine's clock is ahead of the store's, in milliseconds; below zero if it is behind.
    pub skew_ms: i64,
    /// When it was seen first, by the store's clock.
    pub started_at: Timestamp,
    /// When it was seen last, by the store's clock.
    pub seen_at: Timestamp,
}

/// What a node is told when it says that it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Met {
    /// All nodes that were seen lately, by name.
    pub nodes: Vec<Node>,
    /// Grows with every change of tenants, destinations, sources and API keys.
    pub configuration: u64,
    /// Whether this node is the one on duty.
    pub on_duty: bool,
}

/// A store that several processes share. Errors as for [`crate::Store`]; background.
pub trait Shared: Send + Sync {
    /// Says that a node is there, and that it would be on duty for `duty` if nobody is: the first to ask is, until it has
    /// not asked again for so long. Nodes that were not seen for ten times as long are forgotten.
    ///
    /// `wall` is the time of the node's machine. Times are the store's. Cancel: safe.
    fn meet(
        &self,
        name: Box<str>,
        version: Box<str>,
        wall: Timestamp,
        duty: DurationMs,
    ) -> BoxFuture<'_, Result<Met, StoreError>>;

    /// What applications published in transactions of their own.
    fn outbox(&self) -> &dyn crate::Outbox;

    /// Says that a node goes: its duty is free. Cancel: safe.
    fn part(&self, name: Box<str>) -> BoxFuture<'_, Result<(), StoreError>>;
}
