//! The ledger over `rusqlite`.
//!
//! Set a busy time-out on the connection: SQLite lets one transaction write at a time. One that is still refused after it
//! is answered [`Admission::InProgressElsewhere`]. Durability is that of the connection: `synchronous=FULL`.
//!
//! ```
//! use std::time::Duration;
//!
//! use posthaste_receiver::ledger::{Answer, Claim, Completion, Ran, rusqlite as ledger};
//!
//! # let mut connection = rusqlite::Connection::open_in_memory()?;
//! # connection.execute_batch("CREATE TABLE orders (number TEXT)")?;
//! ledger::create(&connection)?;
//! for _ in 0..2 {
//!     let claim = Claim::new("order:17:paid", Duration::from_secs(30))?;
//!     let ran = ledger::two_tx(&mut connection, &claim, |transaction, _| {
//!         transaction.execute("INSERT INTO orders (number) VALUES ('17')", [])?;
//!         Ok::<_, rusqlite::Error>(Completion::committed(Answer::new(200, "text/plain", "thanks")))
//!     })?;
//!     let Ran::Done(done) = ran else { panic!("somebody else is at it") };
//!     assert_eq!(done.answer.bytes.as_deref(), Some(&b"thanks"[..]));
//! }
//! let orders: i64 = connection.query_row("SELECT count(*) FROM orders", [], |row| row.get(0))?;
//! assert_eq!(orders, 1);
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```

use std::{
    panic::{AssertUnwindSafe, catch_unwind},
    sync::{Mutex, PoisonError},
    time::Duration,
};

use rusqlite::{Connection, Error, ErrorCode, Row, Transaction, TransactionBehavior, named_params};

use super::{
    Admission, BoxError, Claim, CommitError, Completion, Entry, Failure, Grant, Granted, Ledger, LedgerError,
    Ran, Reset, RunError, Unreported,
    claim::millis,
    row::{AnswerColumns, ClaimRow, EntryRow},
    run::{End, LOCKED_RETRY_AFTER, status_of},
    sql::sqlite as sql,
};

/// Claims a key. On a connection: committed on return, for an effect in a transaction of its own. On a transaction: part
/// of it.
///
/// Errors: nothing was granted.
pub fn claim(connection: &Connection, claim: &Claim) -> Result<Admission, LedgerError<Error>> {
    match claim_row(connection, claim) {
        Ok(row) => row.admission(claim.key()),
        Err(error) if is_busy(&error) => {
            Ok(Admission::InProgressElsewhere { retry_after: Some(LOCKED_RETRY_AFTER) })
        }
        Err(error) => Err(LedgerError::Database(error)),
    }
}

/// Completes a grant inside the transaction that its effect was written in. Then commit that transaction; [`commit`] does
/// both.
///
/// Errors: [`CommitError::Superseded`] and every other: roll back, which dropping the transaction does.
#[allow(clippy::needless_pass_by_value, reason = "consumed: nothing may be done with it afterwards")]
pub fn complete(
    transaction: &Transaction<'_>,
    grant: Grant,
    completion: &Completion,
) -> Result<(), CommitError<Error>> {
    write_complete(transaction, &grant, completion)
}

/// Completes a grant and commits the transaction that its effect was written in.
///
/// Durability: on return both are committed.
/// Errors: `Superseded` and `NotCommitted`: the effect was rolled back. `Unknown`: COMMIT failed in the middle; report
/// nothing, the next claim of the key will know.
#[allow(clippy::needless_pass_by_value, reason = "consumed: nothing may be done with it afterwards")]
pub fn commit(
    transaction: Transaction<'_>,
    grant: Grant,
    completion: &Completion,
) -> Result<(), CommitError<Error>> {
    write_commit(transaction, &grant, completion)
}

/// Fails a grant whose effect surely did not happen. Whether it was counted; if not, it is over already.
///
/// Errors: nothing need be done; the lease ends by itself.
pub fn fail(
    connection: &Connection,
    grant: &Unreported,
    failure: &Failure,
) -> Result<bool, LedgerError<Error>> {
    let Granted { key, fence, .. } = grant.granted();
    let parameters = named_params! {
        ":event_key": &**key, ":fence": fence, ":class": failure.class, ":message": failure.message,
    };
    found(connection, sql::FAIL, parameters)
}

/// Keeps a grant in force for `lease` from now. `false`: it is over, stop working. Not within the effect's transaction:
/// others must see it.
pub fn extend(
    connection: &Connection,
    granted: &Granted,
    lease: Duration,
) -> Result<bool, LedgerError<Error>> {
    let Granted { key, fence, .. } = granted;
    let parameters = named_params! { ":event_key": &**key, ":fence": fence, ":lease_ms": millis(lease) };
    found(connection, sql::EXTEND, parameters)
}

/// Lets the effect be done anew, on a person's word. `false`: the entry is not as it was seen; look again.
pub fn reset(connection: &Connection, key: &str, reset: &Reset<'_>) -> Result<bool, LedgerError<Error>> {
    let Reset { fence, status, reason, by } = reset;
    let parameters = named_params! {
        ":event_key": key, ":fence": fence, ":status": status.as_str(), ":reason": reason, ":by": by,
    };
    found(connection, sql::RESET, parameters)
}

/// Shows an entry.
pub fn get(connection: &Connection, key: &str) -> Result<Option<Entry>, LedgerError<Error>> {
    let row = one(connection, sql::GET, named_params! { ":event_key": key }, entry_row);
    row.map_err(LedgerError::Database)?.map(EntryRow::entry).transpose()
}

/// Takes out at most `limit` settled entries untouched for `keep`, which is at least an hour, and calls `archive` with
/// each row, which has the columns of the table. How many. `keep` must cover all the retries of the senders.
///
/// In a transaction, `archive` and the purge commit together.
pub fn purge(
    connection: &Connection,
    keep: Duration,
    limit: u32,
    mut archive: impl FnMut(&Row<'_>) -> Result<(), Error>,
) -> Result<usize, LedgerError<Error>> {
    let mut run = || {
        let mut statement = connection.prepare_cached(sql::PURGE)?;
        let mut rows = statement.query(named_params! { ":keep_ms": millis(keep), ":limit": limit })?;
        let mut count = 0;
        while let Some(row) = rows.next()? {
            archive(row)?;
            count += 1;
        }
        Ok(count)
    };
    run().map_err(LedgerError::Database)
}

/// Makes the table where there is none.
pub fn create(connection: &Connection) -> Result<(), LedgerError<Error>> {
    connection.execute_batch(sql::TABLE).map_err(LedgerError::Database)
}

/// Makes a ledger of a table that a team already has; does nothing where that was done. All or nothing.
pub fn adopt(connection: &Connection) -> Result<(), LedgerError<Error>> {
    let known = "SELECT count(*) FROM pragma_table_info('webhook_events') WHERE name = 'fence'";
    let adopted: i64 = connection.query_row(known, [], |row| row.get(0)).map_err(LedgerError::Database)?;
    if adopted > 0 {
        return Ok(());
    }
    connection.execute_batch(sql::ADOPT).map_err(|error| {
        if !connection.is_autocommit() {
            // The first error tells more than one of the rollback would.
            let _ = connection.execute_batch("ROLLBACK");
        }
        LedgerError::Database(error)
    })
}

/// Runs an effect in two transactions: the claim commits with its lease, then the effect and its completion commit
/// together.
///
/// The effect writes through the transaction that it is given and does not commit. If it fails or panics it is rolled
/// back, and the entry told, so that the next delivery tries again at once.
///
/// Durability: on `Ran::Done` effect and entry are committed.
/// Errors: see [`RunError`].
pub fn two_tx<F, E>(connection: &mut Connection, claim: &Claim, effect: F) -> Result<Ran, RunError<Error>>
where
    F: FnOnce(&Transaction<'_>, &Granted) -> Result<Completion, E>,
    E: Into<BoxError>,
{
    let grant = match self::claim(connection, claim).map_err(RunError::Claim)?.grant() {
        Ok(grant) => grant,
        Err(ran) => return Ok(ran),
    };
    let end = match connection.transaction_with_behavior(TransactionBehavior::Immediate) {
        Ok(transaction) => effect_within(transaction, &grant, effect),
        Err(error) => End::Commit(CommitError::NotCommitted(LedgerError::Database(error))),
    };
    let granted = grant.granted().clone();
    if let Some(failure) = end.failure() {
        // Best effort: unheard, the lease ends by itself.
        let _ = fail(connection, &grant.give_up(), &failure);
    }
    end.ran(&granted)
}

/// Runs claim, effect and completion in one transaction. Others wait for it as long as their busy time-outs allow.
///
/// If the effect fails or panics everything is rolled back, the claim too.
///
/// Durability: on `Ran::Done` effect and entry are committed.
/// Errors: see [`RunError`].
pub fn one_tx<F, E>(connection: &mut Connection, claim: &Claim, effect: F) -> Result<Ran, RunError<Error>>
where
    F: FnOnce(&Transaction<'_>, &Granted) -> Result<Completion, E>,
    E: Into<BoxError>,
{
    let transaction = match connection.transaction_with_behavior(TransactionBehavior::Immediate) {
        Ok(transaction) => transaction,
        Err(error) if is_busy(&error) => {
            return Ok(Ran::InProgressElsewhere { retry_after: Some(LOCKED_RETRY_AFTER) });
        }
        Err(error) => return Err(RunError::Claim(LedgerError::Database(error))),
    };
    match self::claim(&transaction, claim).map_err(RunError::Claim)?.grant() {
        Ok(grant) => {
            let end = effect_within(transaction, &grant, effect);
            end.ran(grant.granted())
        }
        Err(ran) => Ok(ran),
    }
}

/// Blocks while SQLite writes: for small services. Others claim in a task that may block.
impl Ledger for Mutex<Connection> {
    type Error = LedgerError<Error>;

    async fn claim(&self, claim: &Claim) -> Result<Admission, Self::Error> {
        self::claim(&self.lock().unwrap_or_else(PoisonError::into_inner), claim)
    }

    async fn fail(&self, grant: &Unreported, failure: &Failure) -> Result<bool, Self::Error> {
        fail(&self.lock().unwrap_or_else(PoisonError::into_inner), grant, failure)
    }
}

/// Dropping the transaction rolls it back.
fn effect_within<F, E>(transaction: Transaction<'_>, grant: &Grant, effect: F) -> End<Error>
where
    F: FnOnce(&Transaction<'_>, &Granted) -> Result<Completion, E>,
    E: Into<BoxError>,
{
    match catch_unwind(AssertUnwindSafe(|| effect(&transaction, grant.granted()))) {
        Err(panic) => End::Panicked(panic),
        Ok(Err(error)) => End::Failed(error.into()),
        Ok(Ok(completion)) => match write_commit(transaction, grant, &completion) {
            Ok(()) => End::Committed(completion),
            Err(error) => End::Commit(error),
        },
    }
}

fn write_complete(
    connection: &Connection,
    grant: &Grant,
    completion: &Completion,
) -> Result<(), CommitError<Error>> {
    grant.sending(completion);
    let Granted { key, fence, .. } = grant.granted();
    let Completion { outcome, answer } = completion;
    let parameters = named_params! {
        ":event_key": &**key, ":fence": fence, ":outcome": outcome.as_str(), ":result_bytes": answer.bytes,
        ":result_type": answer.content_type, ":result_status": status_of(answer),
    };
    match found(connection, sql::COMPLETE, parameters) {
        Ok(true) => Ok(()),
        Ok(false) => Err(CommitError::Superseded),
        Err(error) => Err(CommitError::NotCommitted(error)),
    }
}

#[allow(clippy::needless_pass_by_value, reason = "consumed: nothing may be done with it afterwards")]
fn write_commit(
    transaction: Transaction<'_>,
    grant: &Grant,
    completion: &Completion,
) -> Result<(), CommitError<Error>> {
    write_complete(&transaction, grant, completion)?;
    transaction.execute_batch("COMMIT").map_err(|error| {
        // A reader in the way: nothing was written yet, and dropping the transaction rolls it back.
        if is_busy(&error) {
            CommitError::NotCommitted(LedgerError::Database(error))
        } else {
            CommitError::Unknown(error)
        }
    })
}

fn found(
    connection: &Connection,
    sql: &str,
    parameters: &[(&str, &dyn rusqlite::ToSql)],
) -> Result<bool, LedgerError<Error>> {
    one(connection, sql, parameters, |_| Ok(())).map(|row| row.is_some()).map_err(LedgerError::Database)
}

/// The only row, if any. The statement runs to its end: outside a transaction that is where it commits, or fails to.
fn one<T>(
    connection: &Connection,
    sql: &str,
    parameters: &[(&str, &dyn rusqlite::ToSql)],
    read: impl FnOnce(&Row<'_>) -> Result<T, Error>,
) -> Result<Option<T>, Error> {
    let mut statement = connection.prepare_cached(sql)?;
    let mut rows = statement.query(parameters)?;
    let first = rows.next()?.map(read).transpose()?;
    while rows.next()?.is_some() {}
    Ok(first)
}

fn claim_row(connection: &Connection, claim: &Claim) -> Result<ClaimRow, Error> {
    let parameters = named_params! {
        ":event_key": &*claim.key, ":claim_id": &*claim.claim_id, ":lease_ms": claim.lease_ms(),
        ":fingerprint": claim.fingerprint.as_deref(), ":on_expired": claim.on_expired.as_str(),
    };
    let row = one(connection, sql::CLAIM, parameters, |row| {
        Ok(ClaimRow {
            path: row.get("path")?,
            fence: row.get("fence")?,
            attempts: row.get("attempts")?,
            previous: row.get("previous")?,
            retry_after_ms: row.get("retry_after_ms")?,
            outcome: row.get("outcome")?,
            answer: answer_columns(row)?,
        })
    })?;
    row.ok_or(Error::QueryReturnedNoRows)
}

fn answer_columns(row: &Row<'_>) -> Result<AnswerColumns, Error> {
    Ok(AnswerColumns {
        bytes: row.get("result_bytes")?,
        content_type: row.get("result_type")?,
        status: row.get("result_status")?,
    })
}

fn entry_row(row: &Row<'_>) -> Result<EntryRow, Error> {
    Ok(EntryRow {
        key: row.get("event_key")?,
        status: row.get("status")?,
        attempts: row.get("attempts")?,
        fence: row.get("fence")?,
        fingerprint: row.get("fingerprint")?,
        previous: row.get("previous")?,
        on_expired: row.get("on_expired")?,
        outcome: row.get("outcome")?,
        answer: answer_columns(row)?,
        class: row.get("error_class")?,
        message: row.get("error_message")?,
        reset_reason: row.get("reset_reason")?,
        reset_by: row.get("reset_by")?,
        retry_after_ms: row.get("retry_after_ms")?,
    })
}

fn is_busy(error: &Error) -> bool {
    matches!(error.sqlite_error_code(), Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked))
}
