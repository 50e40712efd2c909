//! Who looks on while commits are made.

/// Is told of each commit. Called by whoever writes, so it must not wait.
pub trait CommitWatch: Send + Sync {
    /// A commit begins: what was written goes to the disk.
    fn begun(&self);
    /// It is durable, with so many rows.
    fn committed(&self, rows: u64);
}
