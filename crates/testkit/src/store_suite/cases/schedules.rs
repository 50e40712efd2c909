//! Schedules: kept, changed, paused, and each firing taken once.

use std::sync::Arc;

use posthaste_core::{DestinationId, DurationMs, TenantId, Timestamp};
use posthaste_store::{
    ManagedBy, NewSchedule, NextFire, ScheduleChange, ScheduleChanged, SchedulePause, ScheduleRow,
};

use crate::store_suite::{bench::Bench, case_list};

case_list![
    r_b14_a_schedule_is_made_changed_and_deleted,
    r_b14_schedules_are_listed_by_tenant_and_name,
    r_b14_a_name_that_must_be_new_is_taken,
    r_b14_a_firing_is_taken_by_one_alone,
    r_b14_nothing_is_taken_from_what_is_disabled_or_paused,
    r_b10_a_schedule_is_paused_once_and_resumed_once,
    r_b10_a_pause_outlives_a_change,
    r_b14_changes_of_what_is_not_there_say_so,
];

fn id(text: &str) -> DestinationId {
    DestinationId::new(text).unwrap()
}

fn new(tenant: TenantId, name: &str, next: NextFire) -> NewSchedule {
    NewSchedule {
        tenant,
        id: id(name),
        config: "{}".into(),
        managed_by: ManagedBy::Api,
        enabled: true,
        owner: None,
        next,
        must_be_new: false,
    }
}

fn at(next: i64) -> NextFire {
    NextFire::At(Some(Timestamp(next)))
}

async fn change(bench: &Bench, change: ScheduleChange) -> ScheduleChanged {
    bench.store().change_schedules(vec![change]).await.unwrap().remove(0)
}

async fn put(bench: &Bench, new: NewSchedule) -> ScheduleRow {
    match change(bench, ScheduleChange::Put(new)).await {
        ScheduleChanged::Schedule(row) => *row,
        other => panic!("{other:?}"),
    }
}

async fn stored(bench: &Bench, tenant: TenantId, name: &str) -> ScheduleRow {
    bench.store().schedule(tenant, id(name)).await.unwrap().unwrap()
}

fn advance(tenant: TenantId, name: &str, (from, to): (i64, i64), fired: Option<i64>) -> ScheduleChange {
    ScheduleChange::Advance {
        tenant,
        id: id(name),
        from: Timestamp(from),
        to: Some(Timestamp(to)),
        fired_at: fired.map(Timestamp),
    }
}

async fn r_b14_a_schedule_is_made_changed_and_deleted(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let made_at = bench.now();
    let made = put(&bench, new(tenant, "nightly", at(5))).await;
    let expected = ScheduleRow {
        tenant,
        id: id("nightly"),
        config: "{}".into(),
        managed_by: ManagedBy::Api,
        enabled: true,
        owner: None,
        next_fire_at: Some(Timestamp(5)),
        last_fired_at: None,
        paused: None,
        created_at: made_at,
        updated_at: made_at,
    };
    assert_eq!((&expected, &expected), (&made, &stored(&bench, tenant, "nightly").await));
    bench.advance(DurationMs(7));
    let changed = NewSchedule {
        config: "{\"a\":1}".into(),
        managed_by: ManagedBy::File,
        enabled: false,
        owner: Some("team".into()),
        ..new(tenant, "nightly", NextFire::Keep)
    };
    let changed = put(&bench, changed).await;
    let expected = ScheduleRow {
        config: "{\"a\":1}".into(),
        managed_by: ManagedBy::File,
        enabled: false,
        owner: Some("team".into()),
        updated_at: bench.now(),
        ..expected
    };
    assert_eq!((&expected, &expected), (&changed, &stored(&bench, tenant, "nightly").await));
    let delete = ScheduleChange::Delete { tenant, id: id("nightly") };
    assert_eq!(ScheduleChanged::Deleted, change(&bench, delete.clone()).await);
    assert_eq!(None, bench.store().schedule(tenant, id("nightly")).await.unwrap());
    assert_eq!(ScheduleChanged::Missing, change(&bench, delete).await);
}

async fn r_b14_schedules_are_listed_by_tenant_and_name(bench: Arc<Bench>) {
    let (one, two) = (bench.tenant("one").await, bench.tenant("two").await);
    assert!(bench.store().schedules().await.unwrap().is_empty());
    for (tenant, name) in [(two, "a"), (one, "b"), (one, "a"), (one, "B")] {
        put(&bench, new(tenant, name, at(1))).await;
    }
    let rows = bench.store().schedules().await.unwrap();
    let names: Vec<_> = rows.iter().map(|row| (row.tenant, row.id.as_str())).collect();
    assert_eq!(vec![(one, "B"), (one, "a"), (one, "b"), (two, "a")], names);
}

async fn r_b14_a_name_that_must_be_new_is_taken(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let first = NewSchedule { must_be_new: true, ..new(tenant, "a", at(1)) };
    let before = put(&bench, first.clone()).await;
    bench.advance(DurationMs(1));
    let again = NewSchedule { config: "[]".into(), next: at(2), ..first };
    assert_eq!(ScheduleChanged::Taken, change(&bench, ScheduleChange::Put(again)).await);
    assert_eq!(before, stored(&bench, tenant, "a").await);
}

async fn r_b14_a_firing_is_taken_by_one_alone(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let made = put(&bench, new(tenant, "a", at(10))).await;
    let take = advance(tenant, "a", (10, 20), Some(10));
    let answers = bench.store().change_schedules(vec![take.clone(), take.clone()]).await.unwrap();
    let taken = ScheduleRow { next_fire_at: Some(Timestamp(20)), last_fired_at: Some(Timestamp(10)), ..made };
    let expected =
        [ScheduleChanged::Schedule(Box::new(taken.clone())), ScheduleChanged::Moved(Box::new(taken.clone()))];
    assert_eq!(expected, answers[..]);
    assert_eq!(ScheduleChanged::Moved(Box::new(taken.clone())), change(&bench, take).await);
    // What was passed over leaves the last firing as it is.
    let passed = change(&bench, advance(tenant, "a", (20, 30), None)).await;
    let passed_row = ScheduleRow { next_fire_at: Some(Timestamp(30)), ..taken };
    assert_eq!(ScheduleChanged::Schedule(Box::new(passed_row.clone())), passed);
    assert_eq!(passed_row, stored(&bench, tenant, "a").await);
}

async fn r_b14_nothing_is_taken_from_what_is_disabled_or_paused(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let disabled = NewSchedule { enabled: false, ..new(tenant, "off", at(10)) };
    put(&bench, disabled).await;
    put(&bench, new(tenant, "held", at(10))).await;
    let (by, reason) = ("ops".into(), "stock-taking".into());
    change(&bench, ScheduleChange::Pause { tenant, id: id("held"), by, reason }).await;
    for name in ["off", "held"] {
        let before = stored(&bench, tenant, name).await;
        let answer = change(&bench, advance(tenant, name, (10, 20), Some(10))).await;
        assert_eq!(ScheduleChanged::Moved(Box::new(before.clone())), answer);
        assert_eq!(before, stored(&bench, tenant, name).await);
    }
}

async fn r_b10_a_schedule_is_paused_once_and_resumed_once(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    put(&bench, new(tenant, "a", at(10))).await;
    let paused_at = bench.now();
    let pause = |by: &str, reason: &str| ScheduleChange::Pause {
        tenant,
        id: id("a"),
        by: by.into(),
        reason: reason.into(),
    };
    change(&bench, pause("ops", "one \u{e9}")).await;
    bench.advance(DurationMs(5));
    change(&bench, pause("other", "two")).await;
    let row = stored(&bench, tenant, "a").await;
    let first = SchedulePause { at: paused_at, by: "ops".into(), reason: "one \u{e9}".into() };
    assert_eq!(Some(first), row.paused);
    let resume = |next| ScheduleChange::Resume { tenant, id: id("a"), next };
    change(&bench, resume(at(40))).await;
    let resumed = stored(&bench, tenant, "a").await;
    assert_eq!((None, Some(Timestamp(40))), (resumed.paused.clone(), resumed.next_fire_at));
    change(&bench, resume(at(50))).await;
    assert_eq!(resumed, stored(&bench, tenant, "a").await, "it was not paused");
    change(&bench, pause("ops", "again")).await;
    change(&bench, resume(NextFire::Keep)).await;
    assert_eq!(resumed, stored(&bench, tenant, "a").await);
}

async fn r_b10_a_pause_outlives_a_change(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    put(&bench, new(tenant, "a", at(10))).await;
    change(&bench, advance(tenant, "a", (10, 20), Some(10))).await;
    let (by, reason) = ("ops".into(), "stock-taking".into());
    change(&bench, ScheduleChange::Pause { tenant, id: id("a"), by, reason }).await;
    let before = stored(&bench, tenant, "a").await;
    let after = put(&bench, new(tenant, "a", NextFire::At(None))).await;
    assert_eq!(
        (before.paused, before.last_fired_at, None),
        (after.paused, after.last_fired_at, after.next_fire_at)
    );
}

async fn r_b14_changes_of_what_is_not_there_say_so(bench: Arc<Bench>) {
    let (tenant, other) = (bench.tenant("default").await, bench.tenant("other").await);
    put(&bench, new(other, "a", at(10))).await;
    for one in [
        ScheduleChange::Delete { tenant, id: id("a") },
        ScheduleChange::Pause { tenant, id: id("a"), by: "ops".into(), reason: "x".into() },
        ScheduleChange::Resume { tenant, id: id("a"), next: NextFire::Keep },
        advance(tenant, "a", (10, 20), Some(10)),
    ] {
        assert_eq!(ScheduleChanged::Missing, change(&bench, one).await);
    }
    assert_eq!(Some(Timestamp(10)), stored(&bench, other, "a").await.next_fire_at);
}
