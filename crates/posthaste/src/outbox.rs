//! Publishes what applications put into the outbox of the database that they share with the store. Row D5.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use bytes::Bytes;
use http::HeaderMap;
use posthaste_core::TenantId;
use posthaste_engine::{Engine, EngineError, Publish};
use posthaste_store::{Outbox, OutboxOutcome, OutboxRow, StoreError};
use tokio_util::sync::CancellationToken;

use crate::http::{Head, Problem, read_publish};

/// Rows of one step.
const STEP: usize = 200;

/// Time between two looks, if there was nothing.
const LOOK_EVERY: Duration = Duration::from_millis(200);

/// After an error.
const PAUSE: Duration = Duration::from_secs(2);

/// Publishes until `stop`. Does nothing on a store that is one process's alone.
pub(crate) async fn forward(engine: Arc<Engine>, stop: CancellationToken) {
    while engine.on_duty().await && !stop.is_cancelled() {
        let Some(outbox) = engine.store().shared().map(posthaste_store::Shared::outbox) else { return };
        let wait = match step(&engine, outbox).await {
            Ok(STEP..) => Duration::ZERO,
            Ok(_) => LOOK_EVERY,
            Err(error) => {
                tracing::warn!(event = "outbox_failed", error = %error);
                PAUSE
            }
        };
        tokio::select! {
            () = tokio::time::sleep(wait) => {}
            () = stop.cancelled() => return,
        }
    }
}

/// One step; gives how many rows waited.
async fn step(engine: &Engine, outbox: &dyn Outbox) -> Result<usize, EngineError> {
    let rows = outbox.waiting(STEP).await?;
    let found = rows.len();
    if found == 0 {
        return Ok(0);
    }
    let mut outcomes = Vec::with_capacity(found);
    let mut of_tenant: BTreeMap<TenantId, (Vec<i64>, Vec<Publish>)> = BTreeMap::new();
    for row in rows {
        match read(engine, &row) {
            Ok((tenant, publish)) => {
                let (ids, publishes) = of_tenant.entry(tenant).or_default();
                ids.push(row.id);
                publishes.push(publish);
            }
            Err(problem) => outcomes.push(refused(row.id, problem)),
        }
    }
    for (tenant, (ids, publishes)) in of_tenant {
        for (id, published) in ids.into_iter().zip(engine.publish(tenant, publishes).await?) {
            match published {
                Ok(_) => outcomes.push(OutboxOutcome { id, problem: None }),
                // It is not the row's fault.
                Err(EngineError::Store(
                    StoreError::Unavailable { .. }
                    | StoreError::Overloaded
                    | StoreError::Conflict
                    | StoreError::InDoubt(_),
                )) => {}
                Err(error) => outcomes.push(refused(id, Problem::from(error).detail().to_owned())),
            }
        }
    }
    // Only now: what is published twice has the same key.
    outbox.settle(outcomes).await?;
    Ok(found)
}

fn read(engine: &Engine, row: &OutboxRow) -> Result<(TenantId, Publish), String> {
    let directory = engine.directory();
    let tenant =
        directory.tenant(&row.tenant).ok_or_else(|| format!("there is no tenant {:?}", row.tenant))?;
    let body = Bytes::copy_from_slice(row.message.as_bytes());
    let said = |problem: Problem| problem.detail().to_owned();
    let head = Head::of(&HeaderMap::new(), engine.now()).map_err(said)?;
    Ok((tenant, read_publish(&body, &body, &head).map_err(said)?))
}

fn refused(id: i64, problem: String) -> OutboxOutcome {
    tracing::error!(event = "outbox_refused", row = id, problem, "the row stays in the outbox");
    OutboxOutcome { id, problem: Some(problem.into()) }
}
