//! The crate's own calls, on PostgreSQL: `tokio-postgres` and `sqlx`.

use std::{
    panic::AssertUnwindSafe,
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use axum::{Router, body::to_bytes, http::Request, response::IntoResponse as _, routing::post};
use posthaste_receiver::ledger::{
    Admission, Answer, Claim, CommitError, Completion, Failure, Granted, Path, Previous, Ran, Reset,
    RunError, Status,
    axum::{EventKey, Guard, guard},
    sql::Dialect,
    sqlx_postgres, tokio_postgres as ledger,
};
use sqlx::{PgConnection, PgPool, postgres::PgConnectOptions};
use tokio_postgres::{Client, Transaction};
use tower::ServiceExt as _;

use crate::support::{self, Database as _, Postgres, RUNTIME, Server};

const LEASE: Duration = Duration::from_mins(1);
const BYTES: [u8; 2] = [0, 0xff];

fn claim() -> Claim {
    Claim::new("k", LEASE).unwrap()
}

fn completion() -> Completion {
    Completion::committed(Answer::new(201, "image/png", BYTES))
}

fn prepared(level: &str) -> Postgres {
    let database = Postgres::new(Server::shared(), level);
    support::prepare(&mut *database.session(), Dialect::Postgres);
    database
}

async fn effect(transaction: &Transaction<'_>) -> Result<Completion, tokio_postgres::Error> {
    transaction.execute("INSERT INTO effects VALUES ('k', 0)", &[]).await?;
    Ok(completion())
}

async fn sqlx_effect(connection: &mut PgConnection) -> Result<Completion, sqlx::Error> {
    sqlx::query("INSERT INTO effects VALUES ('k', 0)").execute(connection).await?;
    Ok(completion())
}

async fn effects(client: &Client) -> i64 {
    client.query_one("SELECT count(*) FROM effects", &[]).await.unwrap().get(0)
}

fn pool(database: &Postgres) -> PgPool {
    let place = database.place();
    let (url, options) = place.split_once('|').unwrap();
    let mut connect: PgConnectOptions = url.parse().unwrap();
    for option in options.split("-c ").filter(|option| !option.is_empty()) {
        let (name, value) = option.trim().split_once('=').unwrap();
        // sqlx escapes the space itself.
        connect = connect.options([(name, value.replace('\\', ""))]);
    }
    PgPool::connect_lazy_with(connect)
}

const LEVELS: [&str; 3] = ["read committed", "repeatable read", "serializable"];

#[test]
fn r_c2_both_modes_run_the_effect_once_and_answer_the_same_again() {
    for level in LEVELS {
        for one_tx in [false, true] {
            let database = prepared(level);
            let (mut client, _task) = database.client();
            RUNTIME.block_on(async {
                for path in [Path::FirstRun, Path::DuplicateDone] {
                    let work = async |transaction: &Transaction<'_>, _: &Granted| effect(transaction).await;
                    let ran = if one_tx {
                        ledger::one_tx(&mut client, &claim(), work).await
                    } else {
                        ledger::two_tx(&mut client, &claim(), work).await
                    };
                    let Ran::Done(done) = ran.unwrap() else { panic!("not done") };
                    assert_eq!((done.path, done.answer), (path, completion().answer));
                }
                assert_eq!(effects(&client).await, 1);
            });
        }
    }
}

#[test]
fn r_c2_both_modes_do_so_over_sqlx() {
    for level in LEVELS {
        for one_tx in [false, true] {
            let database = prepared(level);
            let (client, _task) = database.client();
            RUNTIME.block_on(async {
                let pool = pool(&database);
                for path in [Path::FirstRun, Path::DuplicateDone] {
                    let work =
                        async |connection: &mut PgConnection, _: &Granted| sqlx_effect(connection).await;
                    let ran = if one_tx {
                        sqlx_postgres::one_tx(&pool, &claim(), work).await
                    } else {
                        sqlx_postgres::two_tx(&pool, &claim(), work).await
                    };
                    let Ran::Done(done) = ran.unwrap() else { panic!("not done") };
                    assert_eq!((done.path, done.answer), (path, completion().answer));
                }
                pool.close().await;
                assert_eq!(effects(&client).await, 1);
            });
        }
    }
}

#[test]
fn r_c2_an_effect_that_fails_or_panics_is_rolled_back_and_tried_again() {
    let database = prepared("read committed");
    let (mut client, _task) = database.client();
    RUNTIME.block_on(async {
        let asked = claim();
        let failed = ledger::two_tx(&mut client, &asked, async |transaction, _| {
            effect(transaction).await.unwrap();
            Err::<Completion, _>("no stock")
        });
        assert!(matches!(failed.await, Err(RunError::Effect(error)) if error.to_string() == "no stock"));
        let entry = ledger::get(&client, "k").await.unwrap().unwrap();
        assert_eq!((entry.status, entry.failure.message.as_deref()), (Status::Failed, Some("no stock")));
    });
    let panicked = std::panic::catch_unwind(AssertUnwindSafe(|| {
        RUNTIME.block_on(ledger::two_tx(&mut client, &claim(), async |transaction, granted| {
            assert_eq!(granted.previous, Previous::Failed);
            effect(transaction).await.unwrap();
            assert_eq!(transaction.query("SELECT 1", &[]).await.unwrap().len(), 2, "a fault in the effect");
            Ok::<_, String>(completion())
        }))
    }));
    assert!(panicked.is_err());
    RUNTIME.block_on(async {
        let entry = ledger::get(&client, "k").await.unwrap().unwrap();
        assert_eq!(entry.failure.class.as_deref(), Some("panic"));
        assert_eq!(effects(&client).await, 0);
        let asked = claim();
        let ran = ledger::two_tx(&mut client, &asked, async |transaction, _| effect(transaction).await);
        assert_eq!(ran.await.unwrap().path(), Some(Path::RetryAfterFailure));
        assert_eq!(effects(&client).await, 1);
    });
}

#[test]
fn r_c2_an_effect_whose_future_is_dropped_is_rolled_back_and_its_lease_holds() {
    let database = prepared("read committed");
    let (mut client, _task) = database.client();
    RUNTIME.block_on(async {
        let begun = tokio::sync::Notify::new();
        let asked = claim();
        let run = ledger::two_tx(&mut client, &asked, async |transaction, _| {
            let completion = effect(transaction).await?;
            begun.notify_one();
            std::future::pending::<()>().await;
            Ok::<_, tokio_postgres::Error>(completion)
        });
        tokio::select! {
            _ = run => panic!("it never ends"),
            () = begun.notified() => {}
        }
        assert_eq!(effects(&client).await, 0);
        let said = ledger::claim(&client, &claim()).await.unwrap();
        assert!(matches!(said, Admission::InProgressElsewhere { retry_after: Some(_) }), "{said:?}");
    });
}

#[test]
fn r_c2_a_conflict_is_run_again() {
    let database = prepared("serializable");
    let (mut client, _task) = database.client();
    let (other, _other_task) = database.client();
    RUNTIME.block_on(async {
        other.batch_execute("CREATE TABLE stock (n INT); INSERT INTO stock VALUES (5)").await.unwrap();
        let runs = AtomicUsize::new(0);
        let asked = claim();
        let ran = ledger::two_tx(&mut client, &asked, async |transaction, _| {
            transaction.query("SELECT n FROM stock", &[]).await?;
            if runs.fetch_add(1, Ordering::Relaxed) == 0 {
                other.execute("UPDATE stock SET n = n - 1", &[]).await?;
            }
            transaction.execute("UPDATE stock SET n = n - 1", &[]).await?;
            effect(transaction).await
        });
        assert_eq!(ran.await.unwrap().path(), Some(Path::FirstRun));
        assert_eq!(runs.load(Ordering::Relaxed), 2);
        let stock: i32 = other.query_one("SELECT n FROM stock", &[]).await.unwrap().get(0);
        assert_eq!((stock, effects(&client).await), (3, 1));
    });
}

#[test]
fn r_c3_a_superseded_grant_rolls_its_effect_back() {
    let database = prepared("read committed");
    let (mut client, _task) = database.client();
    let (other, _other_task) = database.client();
    RUNTIME.block_on(async {
        let grant = ledger::claim(&client, &claim()).await.unwrap().grant().expect("granted");
        let fence = grant.granted().fence;
        assert!(ledger::extend(&other, grant.granted(), LEASE).await.unwrap());
        let reset = Reset { fence, status: Status::InProgress, reason: "hangs", by: None };
        assert!(ledger::reset(&other, "k", &reset).await.unwrap());
        let transaction = client.transaction().await.unwrap();
        let completion = effect(&transaction).await.unwrap();
        let refused = ledger::commit(transaction, grant, &completion).await;
        assert!(matches!(refused, Err(CommitError::Superseded)), "{refused:?}");
        assert_eq!(effects(&client).await, 0);
        let grant = ledger::claim(&client, &claim()).await.unwrap().grant().expect("granted");
        assert!(ledger::fail(&client, &grant.give_up(), &Failure::default()).await.unwrap());

        let pool = pool(&database);
        let grant = sqlx_postgres::claim(&pool, &claim()).await.unwrap().grant().expect("granted");
        let fence = grant.granted().fence;
        assert!(sqlx_postgres::extend(&pool, grant.granted(), LEASE).await.unwrap());
        let reset = Reset { fence, status: Status::InProgress, reason: "hangs", by: None };
        assert!(sqlx_postgres::reset(&pool, "k", &reset).await.unwrap());
        let mut transaction = pool.begin().await.unwrap();
        let completion = sqlx_effect(&mut transaction).await.unwrap();
        let refused = sqlx_postgres::commit(transaction, grant, &completion).await;
        assert!(matches!(refused, Err(CommitError::Superseded)), "{refused:?}");
        let entry = sqlx_postgres::get(&pool, "k").await.unwrap().unwrap();
        assert_eq!((entry.status, entry.fence), (Status::Failed, fence + 1));
        let grant = sqlx_postgres::claim(&pool, &claim()).await.unwrap().grant().expect("granted");
        assert!(sqlx_postgres::fail(&pool, &grant.give_up(), &Failure::default()).await.unwrap());
        assert_eq!(sqlx_postgres::purge(&pool, LEASE, 10).await.unwrap().len(), 0);
        assert_eq!(ledger::purge(&client, LEASE, 10).await.unwrap().len(), 0);
        pool.close().await;
        assert_eq!(effects(&client).await, 0);
    });
}

#[test]
fn a_commit_whose_answer_is_missed_is_unknown_and_never_failed() {
    let server = Server::start();
    let database = Postgres::new(&server, "read committed").durable();
    support::prepare(&mut *database.session(), Dialect::Postgres);
    let (mut client, _task) = database.client();
    RUNTIME.block_on(async {
        let asked = claim();
        let run = ledger::two_tx(&mut client, &asked, async |transaction, _| {
            // The server dies at COMMIT: a deferred trigger sees to it.
            let deferred = "CREATE FUNCTION die() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                            PERFORM pg_terminate_backend(pg_backend_pid()); RETURN NULL; END $$; \
                            CREATE CONSTRAINT TRIGGER die AFTER INSERT ON effects DEFERRABLE INITIALLY DEFERRED \
                            FOR EACH ROW EXECUTE FUNCTION die()";
            transaction.batch_execute(deferred).await?;
            effect(transaction).await
        });
        let ran = run.await;
        assert!(matches!(ran, Err(RunError::Commit(CommitError::Unknown(_)))), "{ran:?}");
    });
    let (client, _task) = database.client();
    let entry = RUNTIME.block_on(ledger::get(&client, "k")).unwrap().unwrap();
    assert_eq!(entry.status, Status::InProgress, "nobody said that it failed");
}

#[test]
fn in_one_transaction_others_wait_and_are_refused() {
    let database = prepared("read committed");
    let (mut client, _task) = database.client();
    let (mut other, _other_task) = database.client();
    RUNTIME.block_on(async {
        let asked = claim();
        let ran = ledger::one_tx(&mut client, &asked, async |transaction, _| {
            let timeout: String = transaction.query_one("SHOW lock_timeout", &[]).await.unwrap().get(0);
            assert_eq!(timeout, "2s", "as the connection had it");
            assert!(other_is_refused(&database).await);
            effect(transaction).await
        });
        assert_eq!(ran.await.unwrap().path(), Some(Path::FirstRun));
        let asked = claim();
        let ran = ledger::one_tx(&mut other, &asked, async |transaction, _| effect(transaction).await);
        assert_eq!(ran.await.unwrap().path(), Some(Path::DuplicateDone));
    });
}

async fn other_is_refused(database: &Postgres) -> bool {
    let pool = pool(database);
    let mut connection = pool.acquire().await.unwrap();
    sqlx::query("SET lock_timeout = '20ms'").execute(&mut *connection).await.unwrap();
    let said = sqlx_postgres::claim(&mut *connection, &claim()).await.unwrap();
    drop(connection);
    pool.close().await;
    matches!(said, Admission::InProgressElsewhere { retry_after: Some(_) })
}

/// Handlers must be `Send`: this compiles only if runs are.
#[test]
fn runs_and_guards_work_in_handlers() {
    let database = prepared("read committed");
    RUNTIME.block_on(async {
        let pool = pool(&database);
        let by_run = {
            let pool = pool.clone();
            async move |EventKey(key): EventKey| {
                let claim = Claim::new(&key, LEASE)?;
                let ran = sqlx_postgres::two_tx(
                    &pool,
                    &claim,
                    async |connection: &mut PgConnection, _: &Granted| sqlx_effect(connection).await,
                );
                Ok::<_, posthaste_receiver::ledger::ClaimError>(ran.await.into_response())
            }
        };
        let place = database.place();
        let by_client = async move |EventKey(key): EventKey| {
            let database = Postgres::at(&place).unwrap();
            let (mut client, _task) = tokio::task::spawn_blocking(move || database.client()).await.unwrap();
            let claim = Claim::new(&key, LEASE).unwrap();
            let ran =
                ledger::two_tx(&mut client, &claim, async |transaction: &Transaction<'_>, _: &Granted| {
                    effect(transaction).await
                });
            ran.await.into_response()
        };
        let by_guard = {
            let pool = pool.clone();
            async move |grant: posthaste_receiver::ledger::Grant| {
                let mut transaction = pool.begin().await.unwrap();
                let completion = sqlx_effect(&mut transaction).await.unwrap();
                sqlx_postgres::commit(transaction, grant, &completion).await.unwrap();
            }
        };
        let guarded = axum::middleware::from_fn_with_state(Guard::new(pool.clone(), LEASE), guard::<PgPool>);
        let router = Router::new()
            .route("/guard", post(by_guard).layer(guarded))
            .route("/run", post(by_run))
            .route("/client", post(by_client));
        for (path, told) in [
            ("/guard", "path=first_run, outcome=committed, attempt=1"),
            ("/guard", "path=duplicate_done, outcome=committed, attempt=1"),
            ("/run", "path=duplicate_done, outcome=committed, attempt=1"),
            ("/client", "path=duplicate_done, outcome=committed, attempt=1"),
        ] {
            let request =
                Request::post(path).header("webhook-id", "k").body(axum::body::Body::empty()).unwrap();
            let response = router.clone().oneshot(request).await.unwrap();
            assert_eq!(
                (response.status().as_u16(), &response.headers()["posthaste-ledger"]),
                (201, &told.parse().unwrap())
            );
            assert_eq!(to_bytes(response.into_body(), 100).await.unwrap(), BYTES[..]);
        }
        pool.close().await;
    });
}
