//! The databases under test, behind one small interface, so that a test is written once.

#[cfg(feature = "services-tests")]
mod postgres;
mod sqlite;
mod statements;

use std::{collections::BTreeMap, fmt};

#[cfg(feature = "services-tests")]
pub(crate) use postgres::{Postgres, RUNTIME, Server};
use posthaste_receiver::ledger::sql::Dialect;
pub(crate) use sqlite::Sqlite;
pub(crate) use statements::{Claimed, Entry, Ledger, Statements};

/// A value of a column or parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Null,
    Int(i64),
    Text(String),
    Bytes(Vec<u8>),
}

impl From<i64> for Value {
    fn from(value: i64) -> Self {
        Self::Int(value)
    }
}

impl From<&str> for Value {
    fn from(value: &str) -> Self {
        Self::Text(value.to_owned())
    }
}

impl From<&[u8]> for Value {
    fn from(value: &[u8]) -> Self {
        Self::Bytes(value.to_owned())
    }
}

impl<T: Into<Self>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::Null, Into::into)
    }
}

/// A row by column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Row(pub(crate) BTreeMap<String, Value>);

impl Row {
    pub(crate) fn text(&self, column: &str) -> Option<String> {
        match &self.0[column] {
            Value::Text(text) => Some(text.clone()),
            Value::Null => None,
            other @ (Value::Int(_) | Value::Bytes(_)) => panic!("{column} is {other:?}"),
        }
    }

    pub(crate) fn int(&self, column: &str) -> Option<i64> {
        match &self.0[column] {
            Value::Int(value) => Some(*value),
            Value::Null => None,
            other @ (Value::Text(_) | Value::Bytes(_)) => panic!("{column} is {other:?}"),
        }
    }

    pub(crate) fn bytes(&self, column: &str) -> Option<Vec<u8>> {
        match &self.0[column] {
            Value::Bytes(bytes) => Some(bytes.clone()),
            Value::Null => None,
            other @ (Value::Int(_) | Value::Text(_)) => panic!("{column} is {other:?}"),
        }
    }
}

/// What a database refused.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// It undid the transaction for its own reasons: run it again. PostgreSQL alone says so.
    #[cfg_attr(not(feature = "services-tests"), allow(dead_code, reason = "SQLite never says so"))]
    Conflict,
    /// Somebody else's lock was in the way too long.
    Locked,
    /// A constraint, by name or text.
    Constraint(String),
    /// Anything else.
    Other(String),
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

pub(crate) type Answer<T> = Result<T, Refusal>;

/// One connection. Dropped inside a transaction, it is what a crash is to the database.
pub(crate) trait Session: Send {
    fn query(&mut self, sql: &str, parameters: &[(&str, Value)]) -> Answer<Vec<Row>>;
    /// Statements without parameters.
    fn batch(&mut self, sql: &str) -> Answer<()>;
    /// Begins a transaction that may write.
    fn begin(&mut self) -> Answer<()>;
}

/// A database to which sessions are opened.
pub(crate) trait Database: Sync {
    fn dialect(&self) -> Dialect;
    fn session(&self) -> Box<dyn Session>;
    /// What is varied, such as the isolation level.
    fn name(&self) -> String;
}

/// Chances that can be had again: printed when the test fails.
pub(crate) fn seed() -> u64 {
    let seed = std::env::var("POSTHASTE_TEST_SEED").ok().and_then(|text| text.parse().ok());
    let seed = seed.unwrap_or_else(rand::random);
    println!("seed: POSTHASTE_TEST_SEED={seed}");
    seed
}

/// An empty ledger and an empty table of effects.
pub(crate) fn prepare(session: &mut dyn Session, dialect: Dialect) {
    let table = posthaste_receiver::ledger::sql::file(dialect, "table.sql").unwrap();
    let index = posthaste_receiver::ledger::sql::file(dialect, "index.sql").unwrap();
    session.batch("DROP TABLE IF EXISTS webhook_events").unwrap();
    session.batch("DROP TABLE IF EXISTS effects").unwrap();
    session.batch(table).unwrap();
    // Built concurrently it would wait for the transactions of other tests.
    session.batch(&index.replace(" CONCURRENTLY", "")).unwrap();
    session.batch("CREATE TABLE effects (event_key TEXT NOT NULL, fence BIGINT NOT NULL)").unwrap();
}

/// Every database under test, its ledger empty; PostgreSQL at each of its levels, where it is asked for.
pub(crate) fn each(mut check: impl FnMut(&dyn Database)) {
    let sqlite = Sqlite::new();
    prepare(&mut *sqlite.session(), Dialect::Sqlite);
    check(&sqlite);
    #[cfg(feature = "services-tests")]
    {
        let server = Server::shared();
        for level in ["read committed", "repeatable read", "serializable"] {
            let postgres = Postgres::new(server, level);
            prepare(&mut *postgres.session(), Dialect::Postgres);
            check(&postgres);
        }
    }
}
