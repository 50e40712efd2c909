//! For tests alone: conformance suites, models, a clock by hand, scripted counterparts, a judge of histories.

mod clock;
pub mod history;
pub mod model;
mod postgres;
mod sender;
pub mod store_suite;
pub mod stores;

pub use clock::ManualClock;
pub use postgres::PostgresServer;
pub use sender::{Scripted, ScriptedSender, answer, header};
