//! Opening: the schema brought up to date by one node at a time, and the store found again after a fault.

use std::time::Duration;

use posthaste_core::{Epoch, Timestamp};
use tokio_postgres::{
    Client, Row,
    types::{ToSql, Type},
};

use super::{
    connect::{Connection, Connector},
    fault::Fault,
    open_error::OpenError,
    options::PostgresOptions,
};
use crate::Clock;

refinery::embed_migrations!("migrations/postgres");

/// How long a migration, and waiting for that of another node, may take.
const MIGRATION_MAX: Duration = Duration::from_mins(10);

/// How long looking for the store again may take.
const LOOK_MAX: Duration = Duration::from_secs(10);

/// What a store is found to be when it is opened.
pub(super) struct Opened {
    pub(super) epoch: Epoch,
    /// One for each writer.
    pub(super) shards: Vec<i64>,
}

/// Brings the schema up to date, making it if it is not there.
pub(super) async fn open_first(
    conn: &Connection,
    connector: &Connector,
    options: &PostgresOptions,
) -> Result<Opened, OpenError> {
    let migrating = Migrating { client: &conn.client, at: &connector.at, options };
    let late = OpenError::database(&connector.at, "bringing its schema up to date");
    let migrated = tokio::time::timeout(MIGRATION_MAX, migrating.run(&conn.begin)).await;
    migrated.map_err(late)?
}

struct Migrating<'o> {
    client: &'o Client,
    at: &'o str,
    options: &'o PostgresOptions,
}

impl Migrating<'_> {
    /// All in one transaction: it is done, or nothing is.
    async fn run(&self, begin: &str) -> Result<Opened, OpenError> {
        self.batch(begin, "beginning a transaction").await?;
        self.batch("SET LOCAL statement_timeout = 0; SET LOCAL lock_timeout = 0", "changing a setting")
            .await?;
        let schema = &self.options.schema;
        self.ask(include_str!("sql/schema_lock.sql"), &[schema], "waiting for its schema").await?;
        let now = now(self.client, self.options.clock.as_deref()).await;
        let now = now.map_err(OpenError::database(self.at, "asking for the time"))?;
        self.make_schema().await?;
        self.migrate(now).await?;
        let doing = "reading `meta`";
        let made =
            self.client.execute_typed(include_str!("sql/meta_create.sql"), &[(&now.0, Type::INT8)]).await;
        made.map_err(OpenError::database(self.at, doing))?;
        let epoch = epoch_of(&self.ask(include_str!("sql/meta_read.sql"), &[], doing).await?);
        let epoch = epoch.ok_or("it has no row").map_err(OpenError::database(self.at, doing))?;
        let shards = self.shards().await.map_err(OpenError::database(self.at, "taking shards"))?;
        self.batch("COMMIT", "bringing its schema up to date").await?;
        Ok(Opened { epoch, shards })
    }

    async fn shards(&self) -> Result<Vec<i64>, tokio_postgres::Error> {
        let writers = i64::try_from(self.options.writers.get()).unwrap_or(i64::MAX);
        let sql = include_str!("sql/shards_take.sql");
        let rows = self.client.query_typed(sql, &[(&writers, Type::INT8)]).await?;
        rows.iter().map(|row| row.try_get(0)).collect()
    }

    /// Refuses the schema of another program before anything is written to it.
    async fn make_schema(&self) -> Result<(), OpenError> {
        let (schema, doing) = (&self.options.schema, "looking at its schema");
        let rows = self.ask(include_str!("sql/schema_look.sql"), &[schema], doing).await?;
        let look = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?, row.try_get(2)?));
        let looked = rows.first().map_or(Ok((false, 0, false)), look);
        let (there, tables, ours): (bool, i64, bool) =
            looked.map_err(|error: tokio_postgres::Error| OpenError::database(self.at, doing)(error))?;
        if ours {
            return Ok(());
        }
        if tables > 0 {
            return Err(OpenError::Foreign { at: self.at.into(), schema: schema.clone() });
        }
        if !there {
            self.batch(&format!("CREATE SCHEMA \"{schema}\""), "making its schema").await?;
        }
        self.batch(include_str!("sql/schema_history_create.sql"), "making its schema").await
    }

    async fn migrate(&self, now: Timestamp) -> Result<(), OpenError> {
        let doing = "reading its schema's history";
        let rows = self.ask(include_str!("sql/schema_history_read.sql"), &[], doing).await?;
        let applied = |row: &Row| Ok((row.try_get(0)?, row.try_get(1)?));
        let applied = rows.iter().map(applied).collect::<Result<Vec<(i64, String)>, tokio_postgres::Error>>();
        let applied = applied.map_err(OpenError::database(self.at, doing))?;
        let runner = migrations::runner();
        let mut migrations: Vec<_> = runner.get_migrations().iter().collect();
        migrations.sort_unstable_by_key(|migration| migration.version());
        let known = migrations.last().map_or(0, |last| i64::from(last.version()));
        let found = applied.last().map_or(0, |(version, _)| *version);
        if found > known {
            return Err(OpenError::NewerSchema { at: self.at.into(), found, known });
        }
        for migration in migrations {
            let (version, checksum) = (i64::from(migration.version()), migration.checksum().to_string());
            match applied.iter().find(|(known, _)| *known == version) {
                Some((_, found)) if *found == checksum => {}
                Some(_) => return Err(OpenError::ChangedSchema { at: self.at.into(), version }),
                None => {
                    tracing::info!(version, name = migration.name(), "bringing the schema up to date");
                    self.batch(migration.sql().unwrap_or_default(), "bringing its schema up to date").await?;
                    self.note(version, migration.name(), &checksum, now).await?;
                }
            }
        }
        Ok(())
    }

    async fn note(&self, version: i64, name: &str, checksum: &str, now: Timestamp) -> Result<(), OpenError> {
        let sql = include_str!("sql/schema_history_insert.sql");
        let params: [(&(dyn ToSql + Sync), Type); 4] =
            [(&version, Type::INT8), (&name, Type::TEXT), (&checksum, Type::TEXT), (&now.0, Type::INT8)];
        let noted = self.client.execute_typed(sql, &params);
        noted.await.map_err(OpenError::database(self.at, "writing its schema's history"))?;
        Ok(())
    }

    async fn ask(&self, sql: &str, texts: &[&str], doing: &'static str) -> Result<Vec<Row>, OpenError> {
        let params: Vec<_> = texts.iter().map(|text| (text as _, Type::TEXT)).collect();
        self.client.query_typed(sql, &params).await.map_err(OpenError::database(self.at, doing))
    }

    async fn batch(&self, sql: &str, doing: &'static str) -> Result<(), OpenError> {
        self.client.batch_execute(sql).await.map_err(OpenError::database(self.at, doing))
    }
}

/// Whether a new connection is there to write too.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Use {
    Write,
    Read,
}

/// Connects again, and checks that the store is still the one that it was, and that it can be written to.
pub(super) async fn open_again(
    connector: &Connector,
    epoch: Epoch,
    wanted: Use,
) -> Result<Connection, OpenError> {
    let conn = connector.connect().await?;
    let looking = look_again(&conn, wanted);
    let doing = "looking for the store";
    let looked = tokio::time::timeout(LOOK_MAX, looking).await;
    let looked = looked.map_err(OpenError::database(&connector.at, doing))?;
    let found = looked.map_err(OpenError::database(&connector.at, doing))?;
    if found == Some(epoch) { Ok(conn) } else { Err(OpenError::OtherStore { at: connector.at.clone() }) }
}

async fn look_again(conn: &Connection, wanted: Use) -> Result<Option<Epoch>, tokio_postgres::Error> {
    let client = &conn.client;
    let begin = match wanted {
        Use::Write => &conn.begin,
        Use::Read => &conn.begin_read,
    };
    client.batch_execute(begin).await?;
    let epoch = epoch_of(&client.query_typed(include_str!("sql/meta_read.sql"), &[]).await?);
    if wanted == Use::Write {
        // A disk that is full can be read: only a commit shows that it works again.
        client.execute_typed(include_str!("sql/meta_touch.sql"), &[]).await?;
    }
    client.batch_execute("COMMIT").await?;
    Ok(epoch)
}

fn epoch_of(rows: &[Row]) -> Option<Epoch> {
    let epoch: i64 = rows.first()?.try_get(0).ok()?;
    Some(Epoch(epoch.try_into().ok()?))
}

/// The time of a transaction: the given clock's, or else the server's.
async fn now(client: &Client, clock: Option<&dyn Clock>) -> Result<Timestamp, Fault> {
    if let Some(clock) = clock {
        return Ok(clock.now());
    }
    let rows = client.query_typed(include_str!("sql/clock.sql"), &[]).await?;
    let row = rows.first().ok_or(Fault::Invariant("the server told no time"))?;
    Ok(Timestamp(row.try_get(0)?))
}

/// Begins a transaction, in one round trip, and says when it is.
pub(super) async fn begin(
    client: &Client,
    begin: &str,
    clock: Option<&dyn Clock>,
) -> Result<Timestamp, Fault> {
    let begun = async { Ok(client.batch_execute(begin).await?) };
    let ((), now) = tokio::try_join!(begun, now(client, clock))?;
    Ok(now)
}
