//! Tenants, destinations, API keys.

use std::sync::Arc;

use posthaste_core::{ApiKeyId, DestinationId, DurationMs, LaneId, TenantId, Timestamp};
use posthaste_store::{ApiKeyRow, Configure, Configured, DestinationKind, ManagedBy, NewDestination};

use crate::store_suite::{
    bench::{Bench, new_destination},
    case_list,
};

case_list![
    a_new_store_is_empty,
    r_g6_a_tenant_is_made_once_and_numbered_from_one,
    a_destination_is_made_and_changed_and_keeps_its_lane,
    a_destination_of_another_kind_or_that_must_be_new_is_taken,
    a_deleted_destination_gets_its_lane_again,
    destinations_are_listed_by_tenant_and_id,
    r_e5_an_api_key_is_stored_once_and_revoked_once,
    r_e5_a_hash_that_is_known_is_not_stored_again,
    changes_of_one_call_see_each_other,
];

async fn a_new_store_is_empty(bench: Arc<Bench>) {
    let store = bench.store();
    assert!(store.tenants().await.unwrap().is_empty());
    assert!(store.destinations().await.unwrap().is_empty());
    assert!(store.api_keys().await.unwrap().is_empty());
    assert!(store.heads().await.unwrap().is_empty());
    assert!(store.counts().await.unwrap().is_empty());
    assert_eq!((vec![], None), store.expired(10).await.unwrap());
    let message = bench.message_id();
    let tenant = TenantId(1);
    assert!(store.message(tenant, posthaste_store::MessageName::Id(message)).await.unwrap().is_none());
    assert!(store.payload(tenant, message).await.unwrap().is_none());
    assert!(store.briefs(tenant, message).await.unwrap().is_empty());
    assert!(store.message_jobs(tenant, message, 10).await.unwrap().is_empty());
    assert!(store.custody(tenant, message).await.unwrap().is_empty());
}

async fn r_g6_a_tenant_is_made_once_and_numbered_from_one(bench: Arc<Bench>) {
    let names = ["default", "acme \u{e9}", "Default"];
    for (number, name) in (1..).zip(names) {
        assert_eq!(TenantId(number), bench.tenant(name).await);
        assert_eq!(TenantId(number), bench.tenant(name).await);
    }
    let tenants = bench.store().tenants().await.unwrap();
    let expected: Vec<(TenantId, Box<str>)> = (1..).map(TenantId).zip(names.map(Into::into)).collect();
    assert_eq!(expected, tenants);
}

async fn a_destination_is_made_and_changed_and_keeps_its_lane(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let made_at = bench.now();
    let first = bench.destination(tenant, "orders", DestinationKind::Endpoint).await;
    assert_eq!((LaneId(1), made_at, made_at), (first.lane, first.created_at, first.updated_at));
    assert_eq!(LaneId(2), bench.destination(tenant, "other", DestinationKind::Source).await.lane);
    bench.advance(DurationMs::from_secs(7));
    let changed = NewDestination {
        config: "{\"url\":\"https://\u{e9}/\\u0000\"}".into(),
        managed_by: ManagedBy::File,
        enabled: false,
        owner: Some("team-a".into()),
        ..new_destination(tenant, "orders", DestinationKind::Endpoint)
    };
    let Configured::Destination(row) = bench.configure(Configure::PutDestination(changed.clone())).await
    else {
        panic!("it is changed");
    };
    assert_eq!((LaneId(1), made_at, bench.now()), (row.lane, row.created_at, row.updated_at));
    assert_eq!((changed.config, changed.owner), (row.config.clone(), row.owner.clone()));
    assert_eq!((ManagedBy::File, false), (row.managed_by, row.enabled));
    assert_eq!(*row, bench.store().destinations().await.unwrap()[0]);
}

async fn a_destination_of_another_kind_or_that_must_be_new_is_taken(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let before = bench.destination(tenant, "orders", DestinationKind::Queue).await;
    bench.advance(DurationMs(1));
    let other_kind = new_destination(tenant, "orders", DestinationKind::Endpoint);
    let not_new =
        NewDestination { must_be_new: true, ..new_destination(tenant, "orders", DestinationKind::Queue) };
    for new in [other_kind, not_new] {
        let answer = bench.configure(Configure::PutDestination(new)).await;
        assert_eq!(Configured::Taken(DestinationKind::Queue), answer);
    }
    assert_eq!(vec![before], bench.store().destinations().await.unwrap());
}

async fn a_deleted_destination_gets_its_lane_again(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let job = bench.job(tenant, "order-1", &queue).await;
    let delete = |kind| Configure::DeleteDestination { tenant, id: queue.destination.clone(), kind };
    assert_eq!(Configured::Missing, bench.configure(delete(DestinationKind::Endpoint)).await);
    assert_eq!(Configured::Deleted, bench.configure(delete(DestinationKind::Queue)).await);
    assert_eq!(Configured::Missing, bench.configure(delete(DestinationKind::Queue)).await);
    assert!(bench.store().destinations().await.unwrap().is_empty());
    // Its jobs stay, and can still be read and leased.
    assert_eq!(queue.destination, bench.read(tenant, job).await.destination);
    assert_eq!(job, bench.lease(tenant, queue.lane).await.job.id);
    bench.advance(DurationMs(5));
    assert_eq!(LaneId(2), bench.destination(tenant, "between", DestinationKind::Queue).await.lane);
    let again = bench.destination(tenant, "orders", DestinationKind::Endpoint).await;
    assert_eq!((queue.lane, bench.now()), (again.lane, again.created_at));
    assert_eq!(LaneId(3), bench.destination(tenant, "third", DestinationKind::Queue).await.lane);
}

async fn destinations_are_listed_by_tenant_and_id(bench: Arc<Bench>) {
    let (one, two) = (bench.tenant("one").await, bench.tenant("two").await);
    for (tenant, id) in
        [(two, "b"), (one, "c"), (one, "B"), (two, "a"), (one, "a.b"), (one, "a-b"), (one, "a")]
    {
        bench.destination(tenant, id, DestinationKind::Queue).await;
    }
    let listed = bench.store().destinations().await.unwrap();
    let listed: Vec<(TenantId, &str)> = listed.iter().map(|row| (row.tenant, row.id.as_str())).collect();
    let expected =
        vec![(one, "B"), (one, "a"), (one, "a-b"), (one, "a.b"), (one, "c"), (two, "a"), (two, "b")];
    assert_eq!(expected, listed);
    // Lanes are numbered for each tenant.
    assert_eq!(
        1,
        bench.store().destinations().await.unwrap().iter().filter(|row| row.lane == LaneId(5)).count()
    );
}

fn api_key(tenant: TenantId, id: u128, hash: u8) -> ApiKeyRow {
    ApiKeyRow {
        tenant,
        id: ApiKeyId(id),
        name: format!("key {id}").into(),
        secret_hash: [hash; 32],
        scopes: "publish read".into(),
        created_at: Timestamp(5),
        revoked_at: Some(Timestamp(6)),
    }
}

async fn r_e5_an_api_key_is_stored_once_and_revoked_once(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let stored = ApiKeyRow { created_at: bench.now(), revoked_at: None, ..api_key(tenant, 7, 1) };
    let answer = Configured::ApiKey(Box::new(stored.clone()));
    assert_eq!(answer, bench.configure(Configure::PutApiKey(api_key(tenant, 7, 1))).await);
    bench.advance(DurationMs(10));
    let other = ApiKeyRow { name: "renamed".into(), ..api_key(tenant, 7, 2) };
    assert_eq!(answer, bench.configure(Configure::PutApiKey(other)).await, "the first one stays");
    let revoke = |id| Configure::RevokeApiKey { tenant, id: ApiKeyId(id) };
    let revoked = ApiKeyRow { revoked_at: Some(bench.now()), ..stored };
    let answer = Configured::ApiKey(Box::new(revoked.clone()));
    assert_eq!(answer, bench.configure(revoke(7)).await);
    bench.advance(DurationMs(10));
    assert_eq!(answer, bench.configure(revoke(7)).await, "and keeps the time of its revocation");
    assert_eq!(Configured::Missing, bench.configure(revoke(8)).await);
    assert_eq!(vec![revoked], bench.store().api_keys().await.unwrap());
}

async fn r_e5_a_hash_that_is_known_is_not_stored_again(bench: Arc<Bench>) {
    let (one, two) = (bench.tenant("one").await, bench.tenant("two").await);
    let first = bench.configure(Configure::PutApiKey(api_key(one, 1, 1))).await;
    assert_eq!(first, bench.configure(Configure::PutApiKey(api_key(one, 2, 1))).await);
    let missing = bench.configure(Configure::PutApiKey(api_key(two, 3, 1))).await;
    assert_eq!(Configured::Missing, missing, "another tenant's key is not shown");
    bench.configure(Configure::PutApiKey(api_key(two, 1, 2))).await;
    bench.configure(Configure::PutApiKey(api_key(one, 0, 3))).await;
    let listed = bench.store().api_keys().await.unwrap();
    let listed: Vec<(TenantId, u128)> = listed.iter().map(|row| (row.tenant, row.id.0)).collect();
    assert_eq!(vec![(one, 0), (one, 1), (two, 1)], listed);
}

async fn changes_of_one_call_see_each_other(bench: Arc<Bench>) {
    let tenant = TenantId(1);
    let id = DestinationId::new("orders").unwrap();
    let put = |kind| Configure::PutDestination(new_destination(tenant, "orders", kind));
    let changes = vec![
        Configure::Tenant { name: "default".into() },
        put(DestinationKind::Queue),
        put(DestinationKind::Source),
        Configure::DeleteDestination { tenant, id, kind: DestinationKind::Queue },
        put(DestinationKind::Source),
        Configure::Tenant { name: "default".into() },
    ];
    let answers = bench.store().configure(changes).await.unwrap();
    assert_eq!(6, answers.len());
    assert_eq!((&Configured::Tenant(tenant), &Configured::Tenant(tenant)), (&answers[0], &answers[5]));
    assert_eq!(Configured::Taken(DestinationKind::Queue), answers[2]);
    assert_eq!(Configured::Deleted, answers[3]);
    assert!(matches!(&answers[4], Configured::Destination(row) if row.lane == LaneId(1)));
}
