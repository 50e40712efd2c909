//! The outside world: the guarded HTTP connector and the clock.
//!
//! Implements the ports of the engine. Every outbound request of the process goes through `sender`,
//! and every destination through [`guard::Guard`]; nothing here decides what an outcome means for a job.

pub mod clock;
pub mod guard;
pub mod s3;
pub mod sender;
