//! SQLite in a folder of its own.

use std::{path::PathBuf, time::Duration};

use posthaste_receiver::ledger::sql::Dialect;
use rusqlite::{Connection, ErrorCode, types::ValueRef};
use tempfile::TempDir;

use super::{Answer, Database, Refusal, Row, Session, Value};

pub(crate) struct Sqlite {
    path: PathBuf,
    _folder: Option<TempDir>,
}

impl Sqlite {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { path: folder.path().join("receiver.db"), _folder: Some(folder) }
    }

    /// One that another process made.
    pub(crate) fn at(place: &str) -> Self {
        Self { path: place.into(), _folder: None }
    }

    /// Where other processes find it.
    pub(crate) fn place(&self) -> String {
        self.path.display().to_string()
    }

    /// A connection as a careful receiver opens it, but that nobody pulls the plug here.
    pub(crate) fn connect(&self) -> Connection {
        let connection = Connection::open(&self.path).unwrap();
        connection.busy_timeout(Duration::from_secs(20)).unwrap();
        connection.execute_batch("PRAGMA journal_mode = WAL; PRAGMA synchronous = OFF").unwrap();
        connection
    }
}

impl Database for Sqlite {
    fn dialect(&self) -> Dialect {
        Dialect::Sqlite
    }

    fn session(&self) -> Box<dyn Session> {
        Box::new(self.connect())
    }

    fn name(&self) -> String {
        "sqlite".to_owned()
    }
}

impl Session for Connection {
    fn query(&mut self, sql: &str, parameters: &[(&str, Value)]) -> Answer<Vec<Row>> {
        let mut statement = self.prepare_cached(sql).map_err(refusal)?;
        for (name, value) in parameters {
            let Some(index) = statement.parameter_index(&format!(":{name}")).map_err(refusal)? else {
                continue;
            };
            match value {
                Value::Null => statement.raw_bind_parameter(index, None::<i64>),
                Value::Int(value) => statement.raw_bind_parameter(index, value),
                Value::Text(text) => statement.raw_bind_parameter(index, text),
                Value::Bytes(bytes) => statement.raw_bind_parameter(index, bytes),
            }
            .map_err(refusal)?;
        }
        let columns: Vec<String> = statement.column_names().map(str::to_owned).collect();
        let mut rows = statement.raw_query();
        let mut found = Vec::new();
        while let Some(row) = rows.next().map_err(refusal)? {
            let values = columns.iter().enumerate().map(|(at, column)| {
                let value = match row.get_ref(at).unwrap() {
                    ValueRef::Null => Value::Null,
                    ValueRef::Integer(value) => Value::Int(value),
                    ValueRef::Text(text) => Value::Text(String::from_utf8(text.to_vec()).unwrap()),
                    ValueRef::Blob(bytes) => Value::Bytes(bytes.to_vec()),
                    ValueRef::Real(value) => panic!("{column} is the real number {value}"),
                };
                (column.clone(), value)
            });
            found.push(Row(values.collect()));
        }
        Ok(found)
    }

    fn batch(&mut self, sql: &str) -> Answer<()> {
        self.execute_batch(sql).map_err(refusal)
    }

    fn begin(&mut self) -> Answer<()> {
        self.batch("BEGIN IMMEDIATE")
    }
}

#[allow(clippy::needless_pass_by_value, reason = "is mapped over results")]
fn refusal(error: rusqlite::Error) -> Refusal {
    match error.sqlite_error_code() {
        Some(ErrorCode::DatabaseBusy | ErrorCode::DatabaseLocked) => Refusal::Locked,
        Some(ErrorCode::ConstraintViolation) => Refusal::Constraint(error.to_string()),
        _ => Refusal::Other(error.to_string()),
    }
}
