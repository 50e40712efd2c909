//! The crate's own calls, `two_tx` and `one_tx` as a whole, in a process that is killed at each point on their way: one
//! effect, and the redelivery gets the stored answer byte for byte.
//!
//! The process is this very program, started again. On SQLite it dies after so many steps of SQLite's machine; on
//! PostgreSQL it talks through a relay of its own, and dies before its n-th message is passed on, or when the whole answer to
//! it came and before it is heard.

use std::{env, time::Duration};

use posthaste_receiver::ledger::{Answer, Claim, Completion, Granted, Ran, rusqlite as sqlite_ledger};

use crate::{
    kill::{DIE_AT, MODE, PLACE, die, run},
    support::{self, Database, Sqlite, Statements},
};

const LEASE: Duration = Duration::from_mins(10);
const BYTES: &[u8] = b"\x00answer\xff";
const EFFECT: &str = "INSERT INTO effects VALUES ('k', 0)";

const CHILD: &str = "kill_calls::a_call_works_on_one_delivery";

/// SQLite's steps between two points at which a process is killed: a statement has some tens.
const STRIDE: usize = if cfg!(feature = "long-tests") { 5 } else { 23 };

/// More points than a call has.
const POINTS_MAX: usize = 4_000;

fn claim() -> Claim {
    Claim::new("k", LEASE).unwrap()
}

fn completion() -> Completion {
    Completion::committed(Answer::new(201, "image/png", BYTES))
}

/// Alone it is a delivery like any other; with its environment set, the one that is killed.
#[test]
fn a_call_works_on_one_delivery() {
    let die_at: usize = env::var(DIE_AT).map_or(usize::MAX, |text| text.parse().unwrap());
    let call = env::var(MODE).unwrap_or_else(|_| "sqlite two_tx".to_owned());
    let own = Sqlite::new();
    support::prepare(&mut *own.session(), own.dialect());
    let place = env::var(PLACE).unwrap_or_else(|_| own.place());
    let ran = match call.split_once(' ').unwrap() {
        ("sqlite", mode) => sqlite_call(&place, mode, die_at),
        #[cfg(feature = "services-tests")]
        (driver, mode) => postgres::call(&place, driver, mode, die_at),
        #[cfg(not(feature = "services-tests"))]
        (driver, _) => panic!("{driver}"),
    };
    let Ran::Done(done) = ran else { panic!("in progress elsewhere") };
    assert_eq!(done.answer, completion().answer);
}

fn sqlite_call(place: &str, mode: &str, die_at: usize) -> Ran {
    let mut connection = Sqlite::at(place).connect();
    let mut steps = 0_usize;
    let count = move || {
        steps += 1;
        if steps > die_at {
            die();
        }
        false
    };
    connection.progress_handler(1, Some(count)).unwrap();
    let run = if mode == "one_tx" { sqlite_ledger::one_tx } else { sqlite_ledger::two_tx };
    run(&mut connection, &claim(), |transaction: &rusqlite::Transaction<'_>, _: &Granted| {
        transaction.execute(EFFECT, [])?;
        Ok::<_, rusqlite::Error>(completion())
    })
    .unwrap()
}

/// Kills the call at each point until it lives. How often it was killed, and how often after its effect was durable.
fn killed_everywhere(database: &dyn Database, place: &str, call: &str, stride: usize) -> (usize, usize) {
    let statements = Statements::ours(database.dialect());
    let (mut killed, mut done, mut lived_before) = (0, 0, false);
    for die_at in (0..POINTS_MAX).step_by(stride) {
        support::prepare(&mut *database.session(), database.dialect());
        let context = format!("{}, {call}, killed at {die_at}", database.name());
        let lived = run(CHILD, place, call, die_at);
        let mut ledger = statements.on(database);
        let effects = ledger.effects("k");
        assert!(effects <= 1, "{context}: {effects} effects");
        // Whatever it had been granted is over.
        ledger.pass(2 * i64::try_from(LEASE.as_millis()).unwrap());
        for _ in 0..2 {
            assert!(run(CHILD, place, call, usize::MAX), "{context}: the redelivery");
            assert_eq!(ledger.effects("k"), 1, "{context}");
        }
        if lived && lived_before {
            return (killed, done);
        }
        lived_before = lived;
        if !lived {
            killed += 1;
            done += usize::try_from(effects).unwrap();
        }
    }
    panic!("{call} has more points than {POINTS_MAX}");
}

#[test]
fn r_c2_c4_a_call_killed_anywhere_on_sqlite_does_the_effect_once() {
    let sqlite = Sqlite::new();
    for mode in ["two_tx", "one_tx"] {
        let call = format!("sqlite {mode}");
        let (killed, done) = killed_everywhere(&sqlite, &sqlite.place(), &call, STRIDE);
        println!("{call}: killed {killed} times, {done} after the effect");
        assert!(killed > 10, "{call}: killed {killed} times");
    }
}

#[cfg(feature = "services-tests")]
#[test]
fn r_c2_c4_a_call_killed_between_any_two_messages_to_postgresql_does_the_effect_once() {
    let levels = ["read committed", "repeatable read", "serializable"];
    let calls = ["tokio two_tx", "sqlx one_tx", "tokio one_tx", "sqlx two_tx"];
    let (levels, calls) =
        if cfg!(feature = "long-tests") { (&levels[..], &calls[..]) } else { (&levels[..1], &calls[..2]) };
    for level in levels {
        let database = support::Postgres::new(support::Server::shared(), level);
        for call in calls {
            let (killed, done) = killed_everywhere(&database, &database.place(), call, 1);
            println!("{level}, {call}: killed {killed} times, {done} after the effect");
            // At least: begin, claim, effect, complete and COMMIT, each unsent and unheard; the last one is done.
            assert!(
                killed >= 10 && done >= 1,
                "{level}, {call}: killed {killed} times, {done} after the effect"
            );
        }
    }
}

#[cfg(feature = "services-tests")]
mod postgres {
    use std::sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    };

    use posthaste_receiver::ledger::{Granted, Ran, sqlx_postgres, tokio_postgres as ledger};
    use sqlx::{PgConnection, PgPool, postgres::PgConnectOptions};
    use tokio::{
        io::{AsyncReadExt as _, AsyncWriteExt as _},
        net::{TcpListener, TcpStream, tcp::OwnedReadHalf, tcp::OwnedWriteHalf},
    };
    use tokio_postgres::{NoTls, Transaction};

    use super::{EFFECT, claim, completion};
    use crate::{kill::die, support::RUNTIME};

    /// What passed since the relay began to count.
    #[derive(Default)]
    pub(super) struct Passed {
        counting: AtomicBool,
        /// Messages that the client sent: it may send several without waiting.
        sent: AtomicUsize,
        /// Answers that were complete: the server was ready for the next message.
        answered: AtomicUsize,
    }

    pub(super) fn call(place: &str, driver: &str, mode: &str, die_at: usize) -> Ran {
        let (url, options) = place.split_once('|').unwrap();
        RUNTIME.block_on(async {
            let passed = Arc::<Passed>::default();
            let url = relayed(url, passed.clone(), die_at).await;
            if driver == "sqlx" {
                sqlx(&url, options, mode, &passed).await
            } else {
                tokio(&url, options, mode, &passed).await
            }
        })
    }

    async fn tokio(url: &str, options: &str, mode: &str, passed: &Passed) -> Ran {
        let mut config: tokio_postgres::Config = url.parse().unwrap();
        config.options(options);
        let (mut client, connection) = config.connect(NoTls).await.unwrap();
        tokio::spawn(connection);
        passed.counting.store(true, Ordering::SeqCst);
        let work = async |transaction: &Transaction<'_>, _: &Granted| {
            transaction.execute(EFFECT, &[]).await?;
            Ok::<_, tokio_postgres::Error>(completion())
        };
        if mode == "one_tx" {
            ledger::one_tx(&mut client, &claim(), work).await.unwrap()
        } else {
            ledger::two_tx(&mut client, &claim(), work).await.unwrap()
        }
    }

    async fn sqlx(url: &str, options: &str, mode: &str, passed: &Passed) -> Ran {
        let mut connect: PgConnectOptions = url.parse().unwrap();
        for option in options.split("-c ").filter(|option| !option.is_empty()) {
            let (name, value) = option.trim().split_once('=').unwrap();
            // sqlx escapes the space itself.
            connect = connect.options([(name, value.replace('\\', ""))]);
        }
        let pool = PgPool::connect_with(connect).await.unwrap();
        passed.counting.store(true, Ordering::SeqCst);
        let work = async |connection: &mut PgConnection, _: &Granted| {
            sqlx::query(EFFECT).execute(connection).await?;
            Ok::<_, sqlx::Error>(completion())
        };
        if mode == "one_tx" {
            sqlx_postgres::one_tx(&pool, &claim(), work).await.unwrap()
        } else {
            sqlx_postgres::two_tx(&pool, &claim(), work).await.unwrap()
        }
    }

    /// The same server through a relay, which ends this process: before it passes on the message of half that number if
    /// `die_at` is even, the end of the answer of that number if it is odd.
    async fn relayed(url: &str, passed: Arc<Passed>, die_at: usize) -> String {
        let server = url.split_once('@').unwrap().1.split_once('/').unwrap().0.to_owned();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let own = listener.local_addr().unwrap().to_string();
        let relayed = url.replace(&server, &own);
        tokio::spawn(async move {
            while let Ok((client, _)) = listener.accept().await {
                let (from_client, to_client) = client.into_split();
                let (from_server, to_server) = TcpStream::connect(&server).await.unwrap().into_split();
                tokio::spawn(questions(from_client, to_server, passed.clone(), die_at));
                tokio::spawn(answers(from_server, to_client, passed.clone(), die_at));
            }
        });
        relayed
    }

    /// Ends this process if this was the one to die at.
    fn count(passed: &Passed, counter: &AtomicUsize, die_at: Option<usize>) {
        if passed.counting.load(Ordering::SeqCst) && Some(counter.fetch_add(1, Ordering::SeqCst)) == die_at {
            die();
        }
    }

    async fn questions(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, passed: Arc<Passed>, die_at: usize) {
        let die_at = Some(die_at / 2).filter(|_| die_at.is_multiple_of(2));
        let mut buffer = vec![0; 65_536];
        while let Ok(read @ 1..) = from.read(&mut buffer).await {
            count(&passed, &passed.sent, die_at);
            to.write_all(&buffer[..read]).await.unwrap();
        }
    }

    /// Each message has a letter, and four bytes that say how long it is without the letter.
    async fn answers(mut from: OwnedReadHalf, mut to: OwnedWriteHalf, passed: Arc<Passed>, die_at: usize) {
        let die_at = Some(die_at / 2).filter(|_| !die_at.is_multiple_of(2));
        let mut head = [0; 5];
        while from.read_exact(&mut head).await.is_ok() {
            let [letter, length @ ..] = head;
            let mut body = vec![0; usize::try_from(u32::from_be_bytes(length)).unwrap() - length.len()];
            from.read_exact(&mut body).await.unwrap();
            if letter == READY {
                count(&passed, &passed.answered, die_at);
            }
            to.write_all(&head).await.unwrap();
            to.write_all(&body).await.unwrap();
        }
    }

    /// "Ready for query".
    const READY: u8 = b'Z';
}
