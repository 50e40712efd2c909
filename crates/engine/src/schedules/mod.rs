//! Schedules: cron expressions that enqueue. Rows B10, B14.
//!
//! A firing only publishes, under the key `schedule:{name}:{instant}`; then the row moves on. A crash between the two
//! publishes again, and is answered as a duplicate: no firing is lost, none is doubled. When a schedule fires is decided
//! by pure functions ([`Timing`], `plan`); what is missed is decided there too.

mod cron;
mod fire;
mod manage;
mod plan;
mod timing;

pub use cron::Cron;
pub use manage::{FiredNow, ScheduleView};
pub use plan::CatchUp;
pub use timing::Timing;

use std::sync::atomic::AtomicBool;

use tokio::sync::Notify;

/// What the engine keeps for its schedules.
#[derive(Default)]
pub(crate) struct Scheduling {
    started: AtomicBool,
    changed: Notify,
}

impl Scheduling {
    /// Something changed of what may fire.
    pub(crate) fn look_again(&self) {
        self.changed.notify_waiters();
    }
}
