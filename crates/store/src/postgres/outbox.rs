//! The outbox of applications that share the database.

use super::{PostgresStore, params::Param};
use crate::{BoxFuture, Outbox, OutboxOutcome, OutboxRow, StoreError};

impl Outbox for PostgresStore {
    fn waiting(&self, limit: usize) -> BoxFuture<'_, Result<Vec<OutboxRow>, StoreError>> {
        self.read(limit, |session, limit| {
            Box::pin(async move {
                let rows =
                    session.rows(include_str!("sql/outbox_waiting.sql"), &[Param::int(*limit)]).await?;
                let row = |row: &tokio_postgres::Row| {
                    Ok(OutboxRow {
                        id: row.try_get(0)?,
                        tenant: row.try_get::<_, &str>(1)?.into(),
                        message: row.try_get::<_, &str>(2)?.into(),
                    })
                };
                Ok(rows.iter().map(row).collect::<Result<_, tokio_postgres::Error>>()?)
            })
        })
    }

    fn settle(&self, outcomes: Vec<OutboxOutcome>) -> BoxFuture<'_, Result<(), StoreError>> {
        let (gone, kept): (Vec<_>, Vec<_>) =
            outcomes.into_iter().partition(|outcome| outcome.problem.is_none());
        Box::pin(self.by_itself(move |session| {
            Box::pin(async move {
                let gone = Param::ints(gone.iter().map(|outcome| outcome.id));
                session.run(include_str!("sql/outbox_delete.sql"), &[gone]).await?;
                let ids = Param::ints(kept.iter().map(|outcome| outcome.id));
                let problems = Param::maybe_texts(kept.iter().map(|outcome| outcome.problem.as_deref()));
                session.run(include_str!("sql/outbox_refuse.sql"), &[ids, problems]).await?;
                Ok(())
            })
        }))
    }
}
