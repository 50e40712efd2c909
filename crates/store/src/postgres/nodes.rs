//! Nodes, and who of them is on duty.

use posthaste_core::{DurationMs, Timestamp};
use tokio::time::timeout;

use super::{
    PostgresStore,
    fault::Fault,
    open::{self, Use},
    params::Param,
    session::Session,
};
use crate::{BoxFuture, Met, Node, Shared, StoreError};

/// Nodes that were not seen for so many times the length of a duty are forgotten.
const FORGOTTEN_AFTER: i64 = 10;

impl Shared for PostgresStore {
    fn meet(
        &self,
        name: Box<str>,
        version: Box<str>,
        wall: Timestamp,
        duty: DurationMs,
    ) -> BoxFuture<'_, Result<Met, StoreError>> {
        Box::pin(self.by_itself(move |session| {
            Box::pin(async move { session.meet(&name, &version, wall, duty).await })
        }))
    }

    fn outbox(&self) -> &dyn crate::Outbox {
        self
    }

    fn part(&self, name: Box<str>) -> BoxFuture<'_, Result<(), StoreError>> {
        Box::pin(self.by_itself(move |session| {
            Box::pin(async move {
                session.run(include_str!("sql/duties_free.sql"), &[Param::text(&name)]).await?;
                session.run(include_str!("sql/nodes_delete.sql"), &[Param::text(&name)]).await?;
                Ok(())
            })
        }))
    }
}

impl PostgresStore {
    /// One transaction on a connection of its own: what is said here must not wait behind what others wait for.
    pub(super) async fn by_itself<T>(
        &self,
        work: impl for<'s> FnOnce(&'s Session<'_>) -> BoxFuture<'s, Result<T, Fault>>,
    ) -> Result<T, StoreError> {
        let options = &self.room.options;
        let done = async {
            let conn = open::open_again(&self.room.connector, self.room.epoch, Use::Read).await;
            let conn = conn
                .map_err(|error| StoreError::unavailable_because("the database can't be reached", error))?;
            let begun = open::begin(&conn.client, &conn.begin, options.clock.as_deref()).await;
            let now = begun.map_err(Fault::of_batch)?;
            let session = Session::new(&conn.client, self.room.epoch, now, 0, false);
            let out = work(&session).await.map_err(Fault::of_batch)?;
            conn.client.batch_execute("COMMIT").await.map_err(|error| Fault::from(error).of_commit())?;
            Ok(out)
        };
        let late = |_| StoreError::unavailable("the database took too long");
        timeout(options.read_timeout, done).await.map_err(late)?
    }
}

impl Session<'_> {
    async fn meet(&self, name: &str, version: &str, wall: Timestamp, duty: DurationMs) -> Result<Met, Fault> {
        let now = self.now;
        let (wall, lasts) = (wall.0, i64::try_from(duty.0).unwrap_or(i64::MAX));
        let own = [
            Param::text(name),
            Param::text(version),
            Param::int(now.0),
            Param::int(wall.saturating_sub(now.0)),
        ];
        self.run(include_str!("sql/nodes_put.sql"), &own).await?;
        let forgotten = now.0.saturating_sub(lasts.saturating_mul(FORGOTTEN_AFTER));
        self.run(include_str!("sql/nodes_forget.sql"), &[Param::int(forgotten)]).await?;
        let until = now.0.saturating_add(lasts);
        let taken = [Param::text(name), Param::int(now.0), Param::int(until)];
        let on_duty = self.run(include_str!("sql/duties_take.sql"), &taken).await? == 1;
        let rows = self.rows(include_str!("sql/nodes_list.sql"), &[]).await?;
        let nodes = rows.iter().map(|row| {
            Ok(Node {
                name: row.try_get::<_, &str>(0)?.into(),
                version: row.try_get::<_, &str>(1)?.into(),
                started_at: Timestamp(row.try_get(2)?),
                seen_at: Timestamp(row.try_get(3)?),
                skew_ms: row.try_get(4)?,
            })
        });
        let nodes = nodes.collect::<Result<_, tokio_postgres::Error>>()?;
        let changes = self.rows(include_str!("sql/configuration_read.sql"), &[]).await?;
        let changes = changes.first().map_or(Ok(0), |row| row.try_get::<_, i64>(0))?;
        Ok(Met { nodes, configuration: changes.unsigned_abs(), on_duty })
    }
}
