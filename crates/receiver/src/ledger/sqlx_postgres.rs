//! The ledger over `sqlx`'s PostgreSQL.
//!
//! Set `lock_timeout` in the connect options: a claim may meet a row that another transaction has locked, and time-outs
//! are answered [`Admission::InProgressElsewhere`]. For [`one_tx`], also set `idle_in_transaction_session_timeout`: a
//! handler that hangs holds the key as long as its transaction lives.
//!
//! ```
//! # use posthaste_receiver::ledger::{Answer, BoxError, Claim, Completion, Ran, sqlx_postgres as ledger};
//! # async fn work(pool: &sqlx::PgPool, key: &str) -> Result<Ran, BoxError> {
//! let claim = Claim::new(key, std::time::Duration::from_secs(30))?;
//! let ran = ledger::two_tx(pool, &claim, async |connection, _| {
//!     sqlx::query("INSERT INTO orders (number) VALUES ('17')").execute(connection).await?;
//!     Ok::<_, sqlx::Error>(Completion::committed(Answer::new(200, "text/plain", "thanks")))
//! });
//! # Ok(ran.await?)
//! # }
//! ```

use std::time::Duration;

use sqlx::{
    Error, PgConnection, PgExecutor, PgPool, Postgres, Row as _, Transaction,
    postgres::{PgArguments, PgRow},
    query::Query,
};

use super::{
    Admission, BoxError, Claim, CommitError, Completion, Entry, Failure, Grant, Granted, Ledger, LedgerError,
    Ran, Reset, RunError, Unreported,
    claim::millis,
    row::{AnswerColumns, ClaimRow, EntryRow},
    run::{End, LOCK_TIMEOUT, LOCKED_RETRY_AFTER, RUNS_MAX, caught, status_of},
    sql::postgres as sql,
};

/// Claims a key. On a pool or a connection: committed on return, for an effect in a transaction of its own. On a
/// transaction: part of it.
///
/// Errors: nothing was granted, or the grant's answer was lost; then the same [`Claim`] may be sent again, or its lease
/// is waited for.
/// Cancel safety: as a lost answer.
pub async fn claim<'c>(
    executor: impl PgExecutor<'c>,
    claim: &Claim,
) -> Result<Admission, LedgerError<Error>> {
    match claim_row(executor, claim).await {
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
    transaction: &mut Transaction<'_, Postgres>,
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
    transaction: Transaction<'_, Postgres>,
    grant: Grant,
    completion: &Completion,
) -> Result<(), CommitError<Error>> {
    send_commit(transaction, &grant, completion).await
}

/// Fails a grant whose effect surely did not happen. Whether it was counted; if not, it is over already.
///
/// Errors: nothing need be done; the lease ends by itself.
/// Cancel safety: as an error.
pub async fn fail<'c>(
    executor: impl PgExecutor<'c>,
    grant: &Unreported,
    failure: &Failure,
) -> Result<bool, LedgerError<Error>> {
    let granted = grant.granted();
    let query = sqlx::query(sql::FAIL).bind(&*granted.key).bind(granted.fence);
    found(executor, query.bind(failure.class.as_deref()).bind(failure.message.as_deref())).await
}

/// Keeps a grant in force for `lease` from now. `false`: it is over, stop working. Not on the effect's transaction:
/// others must see it.
pub async fn extend<'c>(
    executor: impl PgExecutor<'c>,
    granted: &Granted,
    lease: Duration,
) -> Result<bool, LedgerError<Error>> {
    found(executor, sqlx::query(sql::EXTEND).bind(&*granted.key).bind(granted.fence).bind(millis(lease)))
        .await
}

/// Lets the effect be done anew, on a person's word. `false`: the entry is not as it was seen; look again.
pub async fn reset<'c>(
    executor: impl PgExecutor<'c>,
    key: &str,
    reset: &Reset<'_>,
) -> Result<bool, LedgerError<Error>> {
    let query = sqlx::query(sql::RESET).bind(key).bind(reset.fence).bind(reset.status.as_str());
    found(executor, query.bind(reset.reason).bind(reset.by)).await
}

/// Shows an entry.
pub async fn get<'c>(executor: impl PgExecutor<'c>, key: &str) -> Result<Option<Entry>, LedgerError<Error>> {
    let row =
        sqlx::query(sql::GET).bind(key).fetch_optional(executor).await.map_err(LedgerError::Database)?;
    match row {
        None => Ok(None),
        Some(row) => entry_row(&row).map_err(LedgerError::Database)?.entry().map(Some),
    }
}

/// Takes out at most `limit` settled entries untouched for `keep`, which is at least an hour, and returns their rows,
/// with the columns of the table, for an archive. `keep` must cover all the retries of the senders.
pub async fn purge<'c>(
    executor: impl PgExecutor<'c>,
    keep: Duration,
    limit: u32,
) -> Result<Vec<PgRow>, LedgerError<Error>> {
    let query = sqlx::query(sql::PURGE).bind(millis(keep)).bind(i64::from(limit));
    query.fetch_all(executor).await.map_err(LedgerError::Database)
}

/// Makes the table where there is none.
pub async fn create<'c>(executor: impl PgExecutor<'c>) -> Result<(), LedgerError<Error>> {
    sqlx::query(sql::TABLE).execute(executor).await.map(drop).map_err(LedgerError::Database)
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
pub async fn two_tx<F, E>(pool: &PgPool, claim: &Claim, effect: F) -> Result<Ran, RunError<Error>>
where
    F: AsyncFn(&mut PgConnection, &Granted) -> Result<Completion, E>,
    E: Into<BoxError>,
{
    let grant = match claim_again(pool, claim).await.map_err(RunError::Claim)?.grant() {
        Ok(grant) => grant,
        Err(ran) => return Ok(ran),
    };
    let mut runs = 0;
    let end = loop {
        runs += 1;
        let end = effect_once(pool, &grant, &effect).await;
        if runs == RUNS_MAX || !end.is_conflict(is_conflict) {
            break end;
        }
    };
    let granted = grant.granted().clone();
    if let Some(failure) = end.failure() {
        // Best effort: unheard, the lease ends by itself.
        let _ = fail(pool, &grant.give_up(), &failure).await;
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
pub async fn one_tx<F, E>(pool: &PgPool, claim: &Claim, effect: F) -> Result<Ran, RunError<Error>>
where
    F: AsyncFn(&mut PgConnection, &Granted) -> Result<Completion, E>,
    E: Into<BoxError>,
{
    let mut runs = 0;
    loop {
        runs += 1;
        let mut transaction = pool.begin().await.map_err(|e| RunError::Claim(LedgerError::Database(e)))?;
        let grant = match claim_within(&mut transaction, claim).await.map(Admission::grant) {
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

impl Ledger for PgPool {
    type Error = LedgerError<Error>;

    async fn claim(&self, claim: &Claim) -> Result<Admission, Self::Error> {
        claim_again(self, claim).await
    }

    async fn fail(&self, grant: &Unreported, failure: &Failure) -> Result<bool, Self::Error> {
        fail(self, grant, failure).await
    }
}

/// Claims in a transaction that waits for others, though not for long; the effect's own waits are the caller's.
async fn claim_within(
    transaction: &mut Transaction<'_, Postgres>,
    asked: &Claim,
) -> Result<Admission, LedgerError<Error>> {
    let ours = LOCK_TIMEOUT.as_millis().to_string();
    let before = set_lock_timeout(transaction, &ours).await.map_err(LedgerError::Database)?;
    let admission = claim(&mut **transaction, asked).await?;
    if matches!(admission, Admission::Granted(_)) {
        set_lock_timeout(transaction, &before).await.map_err(LedgerError::Database)?;
    }
    Ok(admission)
}

/// Sets it for the rest of the transaction, and tells what it was.
async fn set_lock_timeout(transaction: &mut PgConnection, value: &str) -> Result<String, Error> {
    let set = "SELECT current_setting('lock_timeout'), set_config('lock_timeout', $1, true)";
    sqlx::query(set).bind(value).fetch_one(transaction).await?.try_get(0)
}

/// Claims on its own; run again where the database asks for it.
async fn claim_again(pool: &PgPool, asked: &Claim) -> Result<Admission, LedgerError<Error>> {
    let mut runs = 0;
    loop {
        runs += 1;
        match claim(pool, asked).await {
            Err(LedgerError::Database(error)) if runs < RUNS_MAX && is_conflict(&error) => {}
            answer => return answer,
        }
    }
}

async fn effect_once<F, E>(pool: &PgPool, grant: &Grant, effect: &F) -> End<Error>
where
    F: AsyncFn(&mut PgConnection, &Granted) -> Result<Completion, E>,
    E: Into<BoxError>,
{
    match pool.begin().await {
        Ok(transaction) => effect_within(transaction, grant, effect).await,
        Err(error) => End::Commit(CommitError::NotCommitted(LedgerError::Database(error))),
    }
}

/// Dropping the transaction rolls it back before anything else is sent on its connection.
async fn effect_within<F, E>(
    mut transaction: Transaction<'_, Postgres>,
    grant: &Grant,
    effect: &F,
) -> End<Error>
where
    F: AsyncFn(&mut PgConnection, &Granted) -> Result<Completion, E>,
    E: Into<BoxError>,
{
    match caught(effect(&mut transaction, grant.granted())).await {
        Err(panic) => End::Panicked(panic),
        Ok(Err(error)) => End::Failed(error.into()),
        Ok(Ok(completion)) => match send_commit(transaction, grant, &completion).await {
            Ok(()) => End::Committed(completion),
            Err(error) => End::Commit(error),
        },
    }
}

async fn send_complete(
    connection: &mut PgConnection,
    grant: &Grant,
    completion: &Completion,
) -> Result<(), CommitError<Error>> {
    grant.sending(completion);
    let granted = grant.granted();
    let Completion { outcome, answer } = completion;
    let query = sqlx::query(sql::COMPLETE).bind(&*granted.key).bind(granted.fence).bind(outcome.as_str());
    let query =
        query.bind(answer.bytes.as_deref()).bind(answer.content_type.as_deref()).bind(status_of(answer));
    match found(connection, query).await {
        Ok(true) => Ok(()),
        Ok(false) => Err(CommitError::Superseded),
        Err(error) => Err(CommitError::NotCommitted(error)),
    }
}

async fn send_commit(
    mut transaction: Transaction<'_, Postgres>,
    grant: &Grant,
    completion: &Completion,
) -> Result<(), CommitError<Error>> {
    send_complete(&mut transaction, grant, completion).await?;
    transaction.commit().await.map_err(|error| {
        // An error that the server answered says that it rolled back; any other, that no answer came.
        if code(&error).is_some_and(|code| !ends_connection(&code)) {
            CommitError::NotCommitted(LedgerError::Database(error))
        } else {
            CommitError::Unknown(error)
        }
    })
}

/// A server that goes down may say so after it has committed.
fn ends_connection(code: &str) -> bool {
    code.starts_with("57P") || code.starts_with("08")
}

async fn found<'c>(
    executor: impl PgExecutor<'c>,
    query: Query<'_, Postgres, PgArguments>,
) -> Result<bool, LedgerError<Error>> {
    query.fetch_optional(executor).await.map(|row| row.is_some()).map_err(LedgerError::Database)
}

async fn claim_row<'c>(executor: impl PgExecutor<'c>, claim: &Claim) -> Result<ClaimRow, LedgerError<Error>> {
    let query = sqlx::query(sql::CLAIM).bind(&*claim.key).bind(&*claim.claim_id).bind(claim.lease_ms());
    let query = query.bind(claim.fingerprint.as_deref()).bind(claim.on_expired.as_str());
    let row = query.fetch_one(executor).await.map_err(LedgerError::Database)?;
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

fn answer_columns(row: &PgRow) -> Result<AnswerColumns, Error> {
    Ok(AnswerColumns {
        bytes: row.try_get("result_bytes")?,
        content_type: row.try_get("result_type")?,
        status: row.try_get("result_status")?,
    })
}

fn entry_row(row: &PgRow) -> Result<EntryRow, Error> {
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

fn code(error: &Error) -> Option<String> {
    error.as_database_error()?.code().map(Into::into)
}

fn is_locked(error: &Error) -> bool {
    code(error).as_deref() == Some("55P03")
}

fn is_conflict(error: &Error) -> bool {
    matches!(code(error).as_deref(), Some("40001" | "40P01"))
}
