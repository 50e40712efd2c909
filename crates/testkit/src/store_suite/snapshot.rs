//! Everything that a store's public reads tell, as text, so that whole stores can be compared.

use std::collections::{BTreeMap, BTreeSet};

use posthaste_core::{EventId, JobId, LaneId, MessageId, MessageKey, StateName, TenantId};
use posthaste_store::{JobFilter, JobView, MessageName, NamedJob, Reads, Store};

/// A job by its event id: its message's key and its lane.
pub type Named = (MessageKey, u32);

/// What a snapshot asks for by name: no read lists messages.
#[derive(Clone, Debug, Default)]
pub struct Scope {
    /// Messages by id, also ones that should not be there.
    pub messages: BTreeSet<(TenantId, MessageId)>,
    /// Messages by name, also names that should not be taken.
    pub names: BTreeSet<(TenantId, MessageKey)>,
    /// Ledger entries by key, with the number of the queue's lane if it is an event id.
    pub entries: BTreeSet<(TenantId, EventId, Option<Named>)>,
}

/// Every row that was read, by a name of its own. Time and the length of the queue are left out.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Snapshot(pub BTreeMap<String, String>);

impl Snapshot {
    /// The rows that differ: name, here, there.
    pub fn differences(&self, other: &Self) -> Vec<(String, String, String)> {
        let names: BTreeSet<&String> = self.0.keys().chain(other.0.keys()).collect();
        let of =
            |rows: &BTreeMap<String, String>, name| rows.get(name).cloned().unwrap_or_else(|| "-".to_owned());
        let pairs = names.into_iter().map(|name| (name.clone(), of(&self.0, name), of(&other.0, name)));
        pairs.filter(|(_, here, there)| here != there).collect()
    }
}

/// Reads all of `store`: what can be listed, and of messages those in `scope`.
pub async fn snapshot(store: &dyn Store, scope: &Scope) -> Snapshot {
    let mut rows = BTreeMap::new();
    rows.insert("epoch".to_owned(), format!("{:?}", store.status().await.unwrap().epoch));
    rows.insert("tenants".to_owned(), format!("{:?}", store.tenants().await.unwrap()));
    rows.insert("destinations".to_owned(), format!("{:?}", store.destinations().await.unwrap()));
    rows.insert("api keys".to_owned(), format!("{:?}", store.api_keys().await.unwrap()));
    rows.insert("heads".to_owned(), format!("{:?}", store.heads().await.unwrap()));
    rows.insert("expired".to_owned(), format!("{:?}", store.expired(usize::MAX >> 1).await.unwrap()));
    rows.insert("counts".to_owned(), format!("{:?}", store.counts().await.unwrap()));
    rows.insert("lanes".to_owned(), format!("{:?}", store.lanes().await.unwrap()));
    rows.insert("scheduling".to_owned(), format!("{:?}", store.scheduling().await.unwrap()));
    rows.insert("held jobs".to_owned(), format!("{:?}", store.held_jobs().await.unwrap()));
    rows.insert("untold".to_owned(), format!("{:?}", store.untold(usize::MAX >> 1).await.unwrap()));
    for (tenant, name) in &scope.names {
        let found = store.message(*tenant, MessageName::Key(name.clone())).await.unwrap();
        rows.insert(format!("name {tenant:?} {name}"), format!("{:?}", found.map(|view| view.id)));
    }
    for (tenant, key, job) in &scope.entries {
        let job = job.clone().map(|(key, lane)| NamedJob { key, lane: LaneId(lane), guarded: true });
        let entry = store.entry(*tenant, key.clone(), job).await.unwrap();
        rows.insert(format!("entry {tenant:?} {key}"), format!("{entry:?}"));
    }
    for (tenant, message) in &scope.messages {
        messages_rows(store, *tenant, *message, &mut rows).await;
    }
    for (tenant, _) in store.tenants().await.unwrap() {
        for listed in all_jobs(store, tenant).await {
            let id = listed.job.id;
            let read = store.job(tenant, id).await.unwrap().expect("a listed job exists");
            assert_eq!(format!("{:?}", listed.job), format!("{:?}", read.job), "the list and the job differ");
            rows.insert(format!("job {tenant:?} {id}"), format!("{read:?}"));
        }
    }
    Snapshot(rows)
}

async fn messages_rows(
    store: &dyn Store,
    tenant: TenantId,
    id: MessageId,
    rows: &mut BTreeMap<String, String>,
) {
    let view = store.message(tenant, MessageName::Id(id)).await.unwrap();
    rows.insert(format!("message {tenant:?} {id}"), format!("{view:?}"));
    rows.insert(
        format!("payload {tenant:?} {id}"),
        format!("{:?}", store.payload(tenant, id).await.unwrap()),
    );
    rows.insert(
        format!("custody {tenant:?} {id}"),
        format!("{:#?}", store.custody(tenant, id).await.unwrap()),
    );
    rows.insert(format!("briefs {tenant:?} {id}"), format!("{:?}", store.briefs(tenant, id).await.unwrap()));
    let jobs = store.message_jobs(tenant, id, usize::MAX >> 1).await.unwrap();
    rows.insert(format!("jobs {tenant:?} {id}"), format!("{jobs:?}"));
}

/// Every job of `tenant`, oldest first, page by page.
pub(crate) async fn all_jobs(store: &(impl Reads + ?Sized), tenant: TenantId) -> Vec<JobView> {
    let mut jobs: Vec<JobView> = Vec::new();
    loop {
        let after: Option<JobId> = jobs.last().map(|view| view.job.id);
        let filter = JobFilter { oldest_first: true, after, limit: 200, ..JobFilter::default() };
        let page = store.jobs(tenant, filter).await.unwrap();
        if page.is_empty() {
            return jobs;
        }
        jobs.extend(page);
    }
}

/// The number of jobs in each state, counted one by one, in the order of [`Reads::counts`].
pub async fn actual_counts(store: &dyn Store) -> Vec<(TenantId, StateName, u64)> {
    let mut counts = BTreeMap::new();
    for (tenant, _) in store.tenants().await.unwrap() {
        for view in all_jobs(store, tenant).await {
            *counts.entry((tenant, view.job.state.name())).or_insert(0) += 1;
        }
    }
    counts.into_iter().map(|((tenant, state), jobs)| (tenant, state, jobs)).collect()
}
