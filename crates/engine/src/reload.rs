//! The directory in memory, kept in line with the store and with configuration files. Row G2.

use std::{collections::HashSet, sync::Arc};

use posthaste_core::{DestinationId, TenantId, Timestamp};
use posthaste_store::{Configure, Configured, DestinationKind, DestinationRow, ManagedBy, NewDestination};

use crate::{
    Directory, Engine, EngineError,
    config::{
        EndpointSpec, QueueSpec, ScheduleSpec, SourceSpec, compile_endpoint, compile_queue, compile_source,
    },
    directory::{Destination, Entry},
    manage::parsed,
};

/// Changes of one commit.
const CHANGES_AT_ONCE: usize = 500;

/// The destinations and sources that a file defines for one tenant.
#[derive(Clone, Debug, Default)]
pub struct FileDestinations {
    /// The tenant's name.
    pub tenant: String,
    /// Its endpoints.
    pub endpoints: Vec<EndpointSpec>,
    /// Its queues.
    pub queues: Vec<QueueSpec>,
    /// Its sources.
    pub sources: Vec<SourceSpec>,
    /// Its schedules.
    pub schedules: Vec<ScheduleSpec>,
}

impl Engine {
    /// Brings the store in line with a configuration file: makes and changes what it defines, disables what it
    /// defined once and no longer does.
    pub async fn sync_file_destinations(&self, files: Vec<FileDestinations>) -> Result<(), EngineError> {
        let (mut defined, mut schedules) = (Vec::new(), Vec::new());
        for file in files {
            let tenant = self.ensure_tenant(&file.tenant).await?;
            for spec in file.queues {
                defined.push(self.new_queue(tenant, &spec, ManagedBy::File, false)?);
            }
            for spec in file.endpoints {
                defined.push(self.new_endpoint(tenant, spec, ManagedBy::File, false)?.0);
            }
            for spec in file.sources {
                defined.push(self.new_source(tenant, spec, ManagedBy::File, false)?);
            }
            schedules.extend(file.schedules.into_iter().map(|spec| (tenant, spec)));
        }
        let still: HashSet<(TenantId, DestinationId)> =
            defined.iter().map(|new| (new.tenant, new.id.clone())).collect();
        let mut changes: Vec<Configure> = defined.into_iter().map(Configure::PutDestination).collect();
        let gone = |entry: &&Entry| {
            let row = &entry.row;
            row.managed_by == ManagedBy::File && row.enabled && !still.contains(&(row.tenant, row.id.clone()))
        };
        let directory = self.directory.load_full();
        changes.extend(directory.entries().filter(gone).map(|entry| disabled(&entry.row)));
        {
            let _changing = self.changing.lock().await;
            while !changes.is_empty() {
                let chunk: Vec<Configure> = changes.drain(..changes.len().min(CHANGES_AT_ONCE)).collect();
                let ids: Vec<Option<DestinationId>> = chunk.iter().map(id_of).collect();
                for (id, configured) in ids.into_iter().zip(self.store.configure(chunk).await?) {
                    if let (Some(id), Configured::Taken(by)) = (id, configured) {
                        return Err(EngineError::Taken { id: id.to_string(), by });
                    }
                }
            }
        }
        self.reload_directory().await?;
        self.sync_file_schedules(schedules).await
    }

    /// Reads the directory anew from the store. What has not changed is not understood again.
    pub async fn reload_directory(&self) -> Result<(), EngineError> {
        let _changing = self.changing.lock().await;
        let (tenants, rows, keys) =
            (self.store.tenants().await?, self.store.destinations().await?, self.store.api_keys().await?);
        let known = self.directory.load_full();
        let mut changed = Vec::new();
        let entries: Vec<Entry> = rows
            .into_iter()
            .map(|row| match known.at(row.tenant, row.lane) {
                Some(entry) if *entry.row == row && !entry.is_broken() && !refers(&row) => entry.clone(),
                Some(_) | None => {
                    changed.push((row.tenant, row.lane));
                    Entry { destination: self.understand(&row), row: Arc::new(row) }
                }
            })
            .collect();
        self.directory.store(Arc::new(Directory::new(tenants, entries, keys)));
        // A lane may have been enabled, or got more slots.
        for lane in changed {
            self.dispatcher.note(lane, Timestamp(i64::MIN));
        }
        Ok(())
    }

    /// Takes one row into the directory, as the store answered it. The caller holds `changing`.
    pub(crate) fn take_in(&self, row: &DestinationRow) {
        let entry = Entry { destination: self.understand(row), row: Arc::new(row.clone()) };
        let mut directory = Directory::clone(&self.directory.load());
        directory.put(entry);
        self.directory.store(Arc::new(directory));
        self.dispatcher.note((row.tenant, row.lane), Timestamp(i64::MIN));
    }

    fn understand(&self, row: &DestinationRow) -> Destination {
        let understood = match row.kind {
            DestinationKind::Endpoint => self.understand_endpoint(row),
            DestinationKind::Queue => parsed::<QueueSpec>(row).and_then(|spec| {
                let mut queue = compile_queue(row.tenant, row.lane, &spec).map_err(EngineError::from)?;
                queue.enabled = row.enabled;
                Ok(Destination::Queue(Arc::new(queue)))
            }),
            DestinationKind::Source => self.understand_source(row),
        };
        understood.unwrap_or_else(|error| {
            tracing::error!(event = "destination_broken", destination = row.id.as_str(), error = %error);
            Destination::Broken { kind: row.kind, problem: error.to_string().into() }
        })
    }

    fn understand_endpoint(&self, row: &DestinationRow) -> Result<Destination, EngineError> {
        let spec: EndpointSpec = parsed(row)?;
        let secrets = self.open_all(&spec.secrets)?;
        let spec = self.with_headers(&spec)?;
        let mut endpoint = compile_endpoint(row.tenant, row.lane, &spec, &secrets)?;
        endpoint.enabled = row.enabled;
        Ok(Destination::Endpoint(Arc::new(endpoint)))
    }

    fn understand_source(&self, row: &DestinationRow) -> Result<Destination, EngineError> {
        let spec: SourceSpec = parsed(row)?;
        let secrets = self.open_all(&spec.secrets)?;
        let mut source = compile_source(row.tenant, &self.with_opened(&spec)?, &secrets)?;
        source.enabled = row.enabled;
        Ok(Destination::Source(Arc::new(source)))
    }
}

/// What a file no longer defines is disabled, never deleted.
fn disabled(row: &DestinationRow) -> Configure {
    Configure::PutDestination(NewDestination {
        tenant: row.tenant,
        id: row.id.clone(),
        kind: row.kind,
        config: row.config.clone(),
        managed_by: ManagedBy::File,
        enabled: false,
        owner: row.owner.clone(),
        must_be_new: false,
    })
}

/// Whether its configuration refers to something that may have changed meanwhile.
fn refers(row: &DestinationRow) -> bool {
    ["\"env:", "\"file:"].iter().any(|reference| row.config.contains(reference))
}

fn id_of(change: &Configure) -> Option<DestinationId> {
    match change {
        Configure::PutDestination(new) => Some(new.id.clone()),
        Configure::DeleteDestination { .. }
        | Configure::Tenant { .. }
        | Configure::PutApiKey(_)
        | Configure::RevokeApiKey { .. } => None,
    }
}
