//! The receiver's ledger: the effect of one key, once.
//!
//! Delivery is at least once, so the same event comes again: after a lost answer, a time-out, a replay. The ledger is one
//! row for each key, in the database that the effect is written to. A delivery claims its key before the effect, in one
//! atomic statement that names a path; then the effect and "done" commit together, or not at all.
//!
//! **Two transactions** (`two_tx`, the default): the claim commits with a lease, so that others are answered at once. If
//! this process dies, the next delivery takes over when the lease ends; if it was only slow, its effect finds its fence
//! superseded and rolls back.
//! **One transaction** (`one_tx`): claim, effect and "done" in one. Others wait for it.
//!
//! What the ledger can't guard is what the effect does outside that database (a mail, a call to a bank): hand the key on
//! as its idempotency key, or do it from rows that the effect writes.
//!
//! - [`sql`]: the statements, for any language. This crate runs the very same.
//! - `tokio_postgres`, `sqlx_postgres`, `rusqlite`: features of these names; each has `two_tx` and `one_tx`, which claim,
//!   run the effect, complete, commit, and report failures; and the steps for those who need them apart.
//! - `axum`: paths as HTTP answers.
//!
//! Rules for those who take the steps apart; the types hold to most:
//! - Only [`Admission::Granted`] is a leave to do the effect. A sender is never answered 2xx for
//!   [`Admission::InProgressElsewhere`].
//! - Complete in the effect's transaction, and roll back if it is refused.
//! - A fail says "surely no effect". Once COMMIT was sent, nobody fails: the lease ends by itself.

mod answer;
mod claim;
mod error;
mod grant;
mod row;
mod run;
pub mod sql;
mod words;

#[cfg(feature = "axum")]
pub mod axum;
#[cfg(feature = "rusqlite")]
pub mod rusqlite;
#[cfg(feature = "sqlx-postgres")]
pub mod sqlx_postgres;
#[cfg(feature = "tokio-postgres")]
pub mod tokio_postgres;

pub use answer::{Admission, Answer, Completion, Done, Entry, Failure, Ran, Reset};
pub use claim::{
    CLAIM_ID_BYTES_MAX, Claim, ClaimError, EVENT_KEY_BYTES_MAX, FINGERPRINT_BYTES_MAX, LEASE_MAX,
};
pub use error::{BoxError, CommitError, LedgerError, RunError};
pub use grant::{Grant, Granted, Unreported, Watch};
pub use words::{OnExpired, Outcome, Path, Previous, Status};

/// Where claims are made and fails reported, each committed by itself: a pool or a connection. For layers that run before
/// and after a handler, which completes inside its own transaction.
pub trait Ledger: Send + Sync {
    /// Why a statement did not run.
    type Error: std::error::Error + Send + Sync + 'static;

    /// Claims a key, committed on return.
    fn claim(&self, claim: &Claim) -> impl Future<Output = Result<Admission, Self::Error>> + Send;

    /// Fails a grant whose effect surely did not happen.
    fn fail(
        &self,
        grant: &Unreported,
        failure: &Failure,
    ) -> impl Future<Output = Result<bool, Self::Error>> + Send;
}
