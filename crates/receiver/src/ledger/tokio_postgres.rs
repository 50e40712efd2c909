//! The ledger over `tokio-postgres`.
//!
//! Set `lock_timeout` on the connection: a claim may meet a row that another transaction has locked, and time-outs are
//! answered [`Admission::InProgressElsewhere`]. For [`one_tx`], also set `idle_in_transaction_session_timeout`: a handler
//! that hangs holds the key as long as its transaction lives.
//!
//! ```
//! # use posthaste_receiver::ledger::{Answer, BoxError, Claim, Completion, Ran, tokio_postgres as ledger};
//! # async fn work(client: &mut tokio_postgres::Client, key: &str) -> Result<Ran, BoxError> {
//! let claim = Claim::new(key, std::time::Duration::from_secs(30))?;
//! let ran = ledger::two_tx(client, &claim, async |transaction, _| {
//!     transaction.execute("INSERT INTO orders (number) VALUES ('17')", &[]).await?;
//!     Ok::<_, tokio_postgres::Error>(Completion::committed(Answer::new(200, "text/plain", "thanks")))
//! });
//! # Ok(ran.await?)
//! # }
//! ```

use std::time::Duration;

use tokio_postgres::{
    Client, Error, GenericClient, Row, Transaction,
    error::SqlState,
    types::{ToSql, Type},
};

use super::{
    Admission, BoxError, Claim, CommitError, Completion, Entry, Failure, Grant, Granted, Ledger, LedgerError,
    Ran, Reset, RunError, Unreported,
    claim::millis,
    row::{AnswerColumns, ClaimRow, EntryRow},
    run::{End, LOCK_TIMEOUT, LOCKED_RETRY_AFTER, RUNS_MAX, caught, status_of},
    sql::postgres as sql,
};

type Parameter<'a> = (&'a (dyn ToSql + Sync), Type);

/// Claims a key. On a client: committed on return, for an effect in a transaction of its own. On a transaction: part of
/// it.
///
/// Errors: nothing was granted, or the grant's answer was lost; then the same [`Claim`] may be sent again, or its lease
/// is waited for.
/// Cancel safety: as a lost answer.
pub async fn claim<C: GenericClient + Sync>(
    client: &C,
    claim: &Claim,
) -> Result<Admission, LedgerError<Error>> {
    match claim_row(client, claim).await {
        Ok(row) => row.admission(claim.key()),
        Err(LedgerError::Database(error)) if is_locked(&error) => {
            Ok(Admission::InProgressElsewhere { retry_after: Some(LOCKED_RETRY_AFTER) })
        }
        Err(error) => Err(error),
    }
}

/// Completes a grant inside the transaction that its effect was written in. Then commit that transaction, with nothing
/// between: PostgreSQL answers COMMIT of a transaction that failed in between with a rollback that reads like success.
/// [`commit`] does both.
///
/// Errors: [`CommitError::Superseded`] and every other: roll back, which dropping the transaction does.
/// Cancel safety: drop the transaction too.
pub async fn complete(
    transaction: &Transaction<'_>,
    grant: Grant,
    completion: &Completion,
) -> Result<(), CommitError<Error>> {
    send_complete(transaction, &grant, completion).await
}

/// Completes a grant and commits the transaction that its effect was written in.
///
/// Durability: on return both are committed.
/// Errors: `Superseded` and `NotCommitted`: the effect was rolled back. `Unknown`: COMMIT was sent and its answer missed;
/// report nothing, the next claim of the key will know.
/// Cancel safety: as `Unknown`.
pub async fn commit(
    transaction: Transaction<'_>,
    grant: Grant,
    completion: &Completion,
) -> Result<(), CommitError<Error>> {
    send_commit(transaction, &grant, completion).await
}

/// Fails a grant whose effect surely did not happen. Whether it was counted; if not, it is over already.
///
/// Errors: nothing need be done; the lease ends by itself.
/// Cancel safety: as an error.
pub async fn fail<C: GenericClient + Sync>(
    client: &C,
    grant: &Unreported,
    failure: &Failure,
) -> Result<bool, LedgerError<Error>> {
    let granted = grant.granted();
    let parameters: [Parameter<'_>; 4] = [
        (&granted.key, Type::TEXT),
        (&granted.fence, Type::INT8),
        (&failure.class, Type::TEXT),
        (&failure.message, Type::TEXT),
    ];
    Ok(one(client, sql::FAIL, &parameters).await?.is_some())
}

/// Keeps a grant in force for `lease` from now. `false`: it is over, stop working. Not on the effect's transaction:
/// others must see it.
pub async fn extend<C: GenericClient + Sync>(
    client: &C,
    granted: &Granted,
    lease: Duration,
) -> Result<bool, LedgerError<Error>> {
    let parameters: [Parameter<'_>; 3] =
        [(&granted.key, Type::TEXT), (&granted.fence, Type::INT8), (&millis(lease), Type::INT8)];
    Ok(one(client, sql::EXTEND, &parameters).await?.is_some())
}

/// Lets the effect be done anew, on a person's word. `false`: the entry is not as it was seen; look again.
pub async fn reset<C: GenericClient + Sync>(
    client: &C,
    key: &str,
    reset: &Reset<'_>,
) -> Result<bool, LedgerError<Error>> {
    let parameters: [Parameter<'_>; 5] = [
        (&key, Type::TEXT),
        (&reset.fence, Type::INT8),
        (&reset.status.as_str(), Type::TEXT),
        (&reset.reason, Type::TEXT),
        (&reset.by, Type::TEXT),
    ];
    Ok(one(client, sql::RESET, &parameters).await?.is_some())
}

/// Shows an entry.
pub async fn get<C: GenericClient + Sync>(
    client: &C,
    key: &str,
) -> Result<Option<Entry>, LedgerError<Error>> {
    match one(client, sql::GET, &[(&key, Type::TEXT)]).await? {
        None => Ok(None),
        Some(row) => entry_row(&row).map_err(LedgerError::Database)?.entry().map(Some),
    }
}

/// Takes out at most `limit` settled entries untouched for `keep`, which is at least an hour, and returns their rows,
/// with the columns of the table, for an archive. `keep` must cover all the retries of the senders.
pub async fn purge<C: GenericClient + Sync>(
    client: &C,
    keep: Duration,
    limit: u32,
) -> Result<Vec<Row>, LedgerError<Error>> {
    let parameters: [Parameter<'_>; 2] = [(&millis(keep), Type::INT8), (&i64::from(limit), Type::INT8)];
    client.query_typed(sql::PURGE, &parameters).await.map_err(LedgerError::Database)
}

/// Makes the table where there is none.
pub async fn create<C: GenericClient + Sync>(client: &C) -> Result<(), LedgerError<Error>> {
    client.batch_execute(sql::TABLE).await.map_err(LedgerError::Database)
}

/// Runs an effect in two transactions: the claim commits with its lease, then the effect and its completion commit
/// together. Others are answered at once meanwhile.
///
/// The effect writes through the transaction that it is given and does not commit. It may run several times, if the
/// database undoes its transaction for its own reasons (40001, 40P01): what it does elsewhere must take the key along.
/// If it fails or panics it is rolled back, and the entry told, so that the next delivery tries again at once.
///
/// Durability: on `Ran::Done` effect and entry are committed.
/// Errors: see [`RunError`].
/// Cancel safety: dropped, the effect is rolled back, unless COMMIT was under way; the lease ends by itself.
pub async fn two_tx<F, E>(client: &mut Client, claim: &Claim, effect: F) -> Result<Ran, RunError<Error>>
where
    F: AsyncFn(&Transaction<'_>, &Granted) -> Result<Completion, E>,
    E: Into<BoxError>,
{
    let grant = match claim_again(client, claim).await.map_err(RunError::Claim)?.grant() {
        Ok(grant) => grant,
        Err(ran) => return Ok(ran),
    };
    let mut runs = 0;
    let end = loop {
        runs += 1;
        let end = effect_once(client, &grant, &effect).await;
        if runs == RUNS_MAX || !end.is_conflict(is_conflict) {
            break end;
        }
    };
    let granted = grant.granted().clone();
    if let Some(failure) = end.failure() {
        // Best effort: unheard, the lease ends by itself.
        let _ = fail(client, &grant.give_up(), &failure).await;
    }
    end.ran(&granted)
}

/// Runs claim, effect and completion in one transaction. Nothing is seen of it until it commits: others wait for it, two
/// seconds at most.
///
/// If the effect fails or panics everything is rolled back, the claim too. The effect may run several times, as in
/// [`two_tx`].
///
/// Durability: on `Ran::Done` effect and entry are committed.
/// Errors: see [`RunError`].
/// Cancel safety: dropped, all is rolled back, unless COMMIT was under way.
pub async fn one_tx<F, E>(client: &mut Client, claim: &Claim, effect: F) -> Result<Ran, RunError<Error>>
where
    F: AsyncFn(&Transaction<'_>, &Granted) -> Result<Completion, E>,
    E: Into<BoxError>,
{
    let mut runs = 0;
    loop {
        runs += 1;
        let transaction =
            client.transaction().await.map_err(|e| RunError::Claim(LedgerError::Database(e)))?;
        let grant = match claim_within(&transaction, claim).await.map(Admission::grant) {
            Ok(Ok(grant)) => grant,
            Ok(Err(ran)) => return Ok(ran),
            Err(LedgerError::Database(error)) if runs < RUNS_MAX && is_conflict(&error) => continue,
            Err(error) => return Err(RunError::Claim(error)),
        };
        let end = effect_within(transaction, &grant, &effect).await;
        if runs == RUNS_MAX || !end.is_conflict(is_conflict) {
            return end.ran(grant.granted());
        }
    }
}

impl Ledger for Client {
    type Error = LedgerError<Error>;

    async fn claim(&self, claim: &Claim) -> Result<Admission, Self::Error> {
        claim_again(self, claim).await
    }

    async fn fail(&self, grant: &Unreported, failure: &Failure) -> Result<bool, Self::Error> {
        fail(self, grant, failure).await
    }
}

/// Claims in a transaction that waits for others, though not for long; the effect's own waits are the caller's.
async fn claim_within(transaction: &Transaction<'_>, asked: &Claim) -> Result<Admission, LedgerError<Error>> {
    let set = "SELECT current_setting('lock_timeout'), set_config('lock_timeout', $1, true)";
    let ours = LOCK_TIMEOUT.as_millis().to_string();
    let row = transaction.query_typed(set, &[(&ours, Type::TEXT)]).await.map_err(LedgerError::Database)?;
    let before: String = match row.first() {
        Some(row) => row.try_get(0).map_err(LedgerError::Database)?,
        None => return Err(LedgerError::Row("lock_timeout")),
    };
    let admission = claim(transaction, asked).await?;
    if matches!(admission, Admission::Granted(_)) {
        transaction.query_typed(set, &[(&before, Type::TEXT)]).await.map_err(LedgerError::Database)?;
    }
    Ok(admission)
}

/// Claims on its own; run again where the database asks for it.
async fn claim_again(client: &Client, asked: &Claim) -> Result<Admission, LedgerError<Error>> {
    let mut runs = 0;
    loop {
        runs += 1;
        match claim(client, asked).await {
            Err(LedgerError::Database(error)) if runs < RUNS_MAX && is_conflict(&error) => {}
            answer => return answer,
        }
    }
}

async fn effect_once<F, E>(client: &mut Client, grant: &Grant, effect: &F) -> End<Error>
where
    F: AsyncFn(&Transaction<'_>, &Granted) -> Result<Completion, E>,
    E: Into<BoxError>,
{
    match client.transaction().await {
        Ok(transaction) => effect_within(transaction, grant, effect).await,
        Err(error) => End::Commit(CommitError::NotCommitted(LedgerError::Database(error))),
    }
}

/// Dropping the transaction rolls it back before anything else is sent on its connection.
async fn effect_within<F, E>(transaction: Transaction<'_>, grant: &Grant, effect: &F) -> End<Error>
where
    F: AsyncFn(&Transaction<'_>, &Granted) -> Result<Completion, E>,
    E: Into<BoxError>,
{
    match caught(effect(&transaction, grant.granted())).await {
        Err(panic) => End::Panicked(panic),
        Ok(Err(error)) => End::Failed(error.into()),
        Ok(Ok(completion)) => match send_commit(transaction, grant, &completion).await {
            Ok(()) => End::Committed(completion),
            Err(error) => End::Commit(error),
        },
    }
}

async fn send_complete(
    transaction: &Transaction<'_>,
    grant: &Grant,
    completion: &Completion,
) -> Result<(), CommitError<Error>> {
    grant.sending(completion);
    let granted = grant.granted();
    let Completion { outcome, answer } = completion;
    let parameters: [Parameter<'_>; 6] = [
        (&granted.key, Type::TEXT),
        (&granted.fence, Type::INT8),
        (&outcome.as_str(), Type::TEXT),
        (&answer.bytes, Type::BYTEA),
        (&answer.content_type, Type::TEXT),
        (&status_of(answer), Type::INT4),
    ];
    match one(transaction, sql::COMPLETE, &parameters).await {
        Ok(Some(_)) => Ok(()),
        Ok(None) => Err(CommitError::Superseded),
        Err(error) => Err(CommitError::NotCommitted(error)),
    }
}

async fn send_commit(
    transaction: Transaction<'_>,
    grant: &Grant,
    completion: &Completion,
) -> Result<(), CommitError<Error>> {
    send_complete(&transaction, grant, completion).await?;
    transaction.commit().await.map_err(|error| {
        // An error that the server answered says that it rolled back; any other, that no answer came.
        if error.as_db_error().is_some_and(|answer| !ends_connection(answer.code())) {
            CommitError::NotCommitted(LedgerError::Database(error))
        } else {
            CommitError::Unknown(error)
        }
    })
}

/// A server that goes down may say so after it has committed.
fn ends_connection(code: &SqlState) -> bool {
    code.code().starts_with("57P") || code.code().starts_with("08")
}

async fn one<C: GenericClient + Sync>(
    client: &C,
    sql: &str,
    parameters: &[Parameter<'_>],
) -> Result<Option<Row>, LedgerError<Error>> {
    let rows = client.query_typed(sql, parameters).await.map_err(LedgerError::Database)?;
    Ok(rows.into_iter().next())
}

async fn claim_row<C: GenericClient + Sync>(
    client: &C,
    claim: &Claim,
) -> Result<ClaimRow, LedgerError<Error>> {
    let parameters: [Parameter<'_>; 5] = [
        (&claim.key, Type::TEXT),
        (&claim.claim_id, Type::TEXT),
        (&claim.lease_ms(), Type::INT8),
        (&claim.fingerprint, Type::TEXT),
        (&claim.on_expired.as_str(), Type::TEXT),
    ];
    let row = one(client, sql::CLAIM, &parameters).await?.ok_or(LedgerError::Row("none"))?;
    let read = || -> Result<ClaimRow, Error> {
        Ok(ClaimRow {
            path: row.try_get("path")?,
            fence: row.try_get("fence")?,
            attempts: row.try_get("attempts")?,
            previous: row.try_get("previous")?,
            retry_after_ms: row.try_get("retry_after_ms")?,
            outcome: row.try_get("outcome")?,
            answer: answer_columns(&row)?,
        })
    };
    read().map_err(LedgerError::Database)
}

fn answer_columns(row: &Row) -> Result<AnswerColumns, Error> {
    Ok(AnswerColumns {
        bytes: row.try_get("result_bytes")?,
        content_type: row.try_get("result_type")?,
        status: row.try_get("result_status")?,
    })
}

fn entry_row(row: &Row) -> Result<EntryRow, Error> {
    Ok(EntryRow {
        key: row.try_get("event_key")?,
        status: row.try_get("status")?,
        attempts: row.try_get("attempts")?,
        fence: row.try_get("fence")?,
        fingerprint: row.try_get("fingerprint")?,
        previous: row.try_get("previous")?,
        on_expired: row.try_get("on_expired")?,
        outcome: row.try_get("outcome")?,
        answer: answer_columns(row)?,
        class: row.try_get("error_class")?,
        message: row.try_get("error_message")?,
        reset_reason: row.try_get("reset_reason")?,
        reset_by: row.try_get("reset_by")?,
        retry_after_ms: row.try_get("retry_after_ms")?,
    })
}

fn is_locked(error: &Error) -> bool {
    error.code() == Some(&SqlState::LOCK_NOT_AVAILABLE)
}

fn is_conflict(error: &Error) -> bool {
    [Some(&SqlState::T_R_SERIALIZATION_FAILURE), Some(&SqlState::T_R_DEADLOCK_DETECTED)]
        .contains(&error.code())
}
