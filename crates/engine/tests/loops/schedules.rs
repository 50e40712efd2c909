//! Schedules, fired by the loop in virtual time. Rows B10, B14.

use std::{sync::Arc, time::Duration};

use posthaste_core::{DestinationId, DurationMs, MessageKey, StateName, Timestamp};
use posthaste_engine::{
    EngineError,
    config::{ScheduleSpec, parse_duration},
};
use posthaste_store::{ManagedBy, MessageName, MessageView, Reads, ScheduleRow, Schedules};
use serde_json::{Value, json};

use crate::support::{Bench, id};

/// Milliseconds of an instant such as `2026-03-29T01:00:00Z`, by days from 1970.
fn instant(text: &str) -> Timestamp {
    let number = |range: std::ops::Range<usize>| text[range].parse::<i64>().unwrap();
    let (year, month, day) = (number(0..4), number(5..7), number(8..10));
    let months = [0, 31, 59, 90, 120, 151, 181, 212, 243, 273, 304, 334];
    // 2026 is no leap year, and neither is any date of these tests.
    assert_eq!(2026, year);
    let days = 20_454 + months[usize::try_from(month - 1).unwrap()] + day - 1;
    let seconds = days * 86_400 + number(11..13) * 3_600 + number(14..16) * 60 + number(17..19);
    Timestamp(seconds * 1_000)
}

async fn until<T>(what: &str, mut found: impl AsyncFnMut() -> Option<T>) -> T {
    let waiting = async {
        loop {
            if let Some(found) = found().await {
                return found;
            }
            tokio::task::yield_now().await;
        }
    };
    let waited = tokio::time::timeout(Duration::from_secs(20), waiting).await;
    waited.unwrap_or_else(|_| panic!("{what} did not happen"))
}

impl Bench {
    async fn scheduling() -> Self {
        let bench = Self::new().await;
        bench.queue("work").await;
        bench.engine.start_schedules();
        bench
    }

    /// Makes or changes a schedule to the queue `work`.
    async fn schedule(&self, name: &str, mut spec: Value) -> Result<(), EngineError> {
        spec["name"] = name.into();
        if spec["to"].is_null() {
            spec["to"] = json!({"queue": "work"});
        }
        let spec: ScheduleSpec = serde_json::from_value(spec).unwrap();
        self.engine.put_schedule(self.tenant, &spec, ManagedBy::Api, false).await.map(drop)
    }

    async fn row(&self, name: &str) -> ScheduleRow {
        self.store.schedule(self.tenant, id(name)).await.unwrap().unwrap()
    }

    async fn fired(&self, name: &str, at: &str) -> Option<MessageView> {
        let key = MessageKey::new(&format!("schedule:{name}:{at}")).unwrap();
        self.store.message(self.tenant, MessageName::Key(key)).await.unwrap()
    }

    /// Moves the time to `at`, and waits until the schedule is beyond it.
    async fn reach(&self, name: &str, at: Timestamp) {
        self.clock.set(at);
        until(name, async || self.row(name).await.next_fire_at.filter(|next| *next > at)).await;
    }

    /// A new process over the rows.
    async fn restarted(self) -> Self {
        self.engine.drain(DurationMs::ZERO).await;
        let bench = Self::over(Arc::clone(&self.store), Arc::clone(&self.clock)).await;
        bench.engine.start_schedules();
        bench
    }
}

#[tokio::test]
async fn r_b14_a_firing_publishes_and_says_where_it_comes_from() {
    let bench = Bench::scheduling().await;
    let spec = json!({"cron": "0 1 * * *", "type": "report.due", "payload": {"at": "{{scheduled_at}}"}, "metadata": {"a": 1}});
    bench.schedule("nightly", spec).await.unwrap();
    assert_eq!(Some(instant("2026-01-01T01:00:00Z")), bench.row("nightly").await.next_fire_at);
    bench.reach("nightly", instant("2026-01-01T01:00:00Z")).await;
    let message = bench.fired("nightly", "2026-01-01T01:00:00.000Z").await.unwrap();
    assert_eq!(
        (Some("report.due"), Some("application/json")),
        (message.event_type.as_deref(), message.content_type.as_deref())
    );
    assert_eq!(
        Some("{\"a\":1,\"schedule\":\"nightly\",\"scheduled_at\":\"2026-01-01T01:00:00.000Z\"}"),
        message.metadata.as_deref()
    );
    let (payload, _) = bench.store.payload(bench.tenant, message.id).await.unwrap().unwrap();
    assert_eq!(b"{\"at\":\"2026-01-01T01:00:00.000Z\"}", &payload[..]);
    let job = bench.job_in(message.key.as_str(), StateName::Scheduled).await;
    assert_eq!(id("work"), job.destination);
    let row = bench.row("nightly").await;
    assert_eq!(
        (Some(instant("2026-01-01T01:00:00Z")), Some(instant("2026-01-02T01:00:00Z"))),
        (row.last_fired_at, row.next_fire_at)
    );
}

#[tokio::test]
async fn r_b14_both_changes_of_three_places_and_a_restart_between() {
    for (zone, cron, from, expected) in [
        ("Europe/Berlin", "30 2 * * *", "2026-03-28T12:00:00Z", ["03-29T01:00", "03-30T00:30"]),
        ("Europe/Berlin", "30 2 * * *", "2026-10-24T12:00:00Z", ["10-25T00:30", "10-26T01:30"]),
        ("America/New_York", "30 2 * * *", "2026-03-07T12:00:00Z", ["03-08T07:00", "03-09T06:30"]),
        ("America/New_York", "30 1 * * *", "2026-10-31T12:00:00Z", ["11-01T05:30", "11-02T06:30"]),
        ("Australia/Lord_Howe", "45 1 * * *", "2026-04-03T20:00:00Z", ["04-04T14:45", "04-05T15:15"]),
        ("Australia/Lord_Howe", "15 2 * * *", "2026-10-02T20:00:00Z", ["10-03T15:30", "10-04T15:15"]),
    ] {
        let mut bench = Bench::scheduling().await;
        bench.clock.set(instant(from));
        bench.schedule("daily", json!({"cron": cron, "timezone": zone})).await.unwrap();
        bench.schedule("quarters", json!({"cron": "*/15 * * * *", "timezone": zone})).await.unwrap();
        let (mut daily, mut quarters) = (Vec::new(), 0);
        let end = instant(from).after(DurationMs::from_mins(48 * 60));
        loop {
            let (one, two) = (bench.row("daily").await, bench.row("quarters").await);
            let next = one.next_fire_at.min(two.next_fire_at).unwrap();
            if next > end {
                break;
            }
            bench.reach("daily", next).await;
            bench.reach("quarters", next).await;
            if one.next_fire_at == Some(next) {
                daily.push(next);
                // Between the two: nothing but the rows is left.
                bench = bench.restarted().await;
            }
            quarters += usize::from(two.next_fire_at == Some(next));
        }
        let wanted = expected.map(|at| instant(&format!("2026-{at}:00Z")));
        assert_eq!(wanted.as_slice(), daily, "{zone} {cron}");
        assert_eq!(48 * 4, quarters, "{zone} from {from}");
        for at in expected {
            let at = format!("2026-{at}:00.000Z");
            assert!(bench.fired("daily", &at).await.is_some(), "{zone} at {at}");
        }
    }
}

#[tokio::test]
async fn r_b10_what_was_missed_while_down_is_made_up_for_as_asked() {
    let bench = Bench::scheduling().await;
    for catch_up in ["skip", "once", "all"] {
        bench.schedule(catch_up, json!({"cron": "@every 1h", "catch_up": catch_up})).await.unwrap();
    }
    bench.engine.drain(DurationMs::ZERO).await;
    bench.clock.set(instant("2026-01-01T04:30:00Z"));
    let bench = bench.restarted().await;
    let mut fired = Vec::new();
    for name in ["skip", "once", "all"] {
        bench.reach(name, instant("2026-01-01T04:30:00Z")).await;
        assert_eq!(Some(instant("2026-01-01T05:00:00Z")), bench.row(name).await.next_fire_at);
        for hour in 1..=4 {
            if bench.fired(name, &format!("2026-01-01T0{hour}:00:00.000Z")).await.is_some() {
                fired.push((name, hour));
            }
        }
    }
    assert_eq!(vec![("once", 4), ("all", 1), ("all", 2), ("all", 3), ("all", 4)], fired);
}

#[tokio::test]
async fn r_b10_a_pause_holds_firings_and_a_resume_makes_up_as_asked() {
    let bench = Bench::scheduling().await;
    for catch_up in ["skip", "all"] {
        bench.schedule(catch_up, json!({"cron": "@every 1h", "catch_up": catch_up})).await.unwrap();
        let name = id(catch_up);
        bench.engine.pause_schedule(bench.tenant, &name, "stock-taking", "ops").await.unwrap();
    }
    bench.schedule("z-beacon", json!({"cron": "@every 1h"})).await.unwrap();
    bench.reach("z-beacon", instant("2026-01-01T01:00:00Z")).await;
    bench.reach("z-beacon", instant("2026-01-01T02:00:00Z")).await;
    for name in ["skip", "all"] {
        let row = bench.row(name).await;
        let paused = row.paused.unwrap();
        assert_eq!(("ops", "stock-taking"), (&*paused.by, &*paused.reason));
        assert_eq!(None, row.last_fired_at);
        bench.engine.resume_schedule(bench.tenant, &id(name), "done", "ops").await.unwrap();
        bench.reach(name, instant("2026-01-01T02:00:00Z")).await;
    }
    let last = |row: ScheduleRow| row.last_fired_at;
    assert_eq!(None, last(bench.row("skip").await), "although the last one would be on time");
    assert_eq!(Some(instant("2026-01-01T02:00:00Z")), last(bench.row("all").await));
    assert!(bench.fired("all", "2026-01-01T01:00:00.000Z").await.is_some());
    assert!(bench.engine.pause_schedule(bench.tenant, &id("all"), " ", "ops").await.is_err());
}

#[tokio::test]
async fn r_b14_a_schedule_whose_destination_is_gone_is_broken_and_says_so() {
    let bench = Bench::scheduling().await;
    let missing = json!({"cron": "@every 1h", "to": {"queue": "gone"}});
    let error = bench.schedule("a", missing.clone()).await.unwrap_err();
    assert_eq!("to: there is no queue \"gone\"; make the destination first", error.to_string());
    bench.queue("gone").await;
    bench.schedule("a", missing.clone()).await.unwrap();
    let mut held = missing;
    held["catch_up"] = "all".into();
    bench.schedule("b", held).await.unwrap();
    bench.schedule("z-beacon", json!({"cron": "@every 1h"})).await.unwrap();
    let kind = posthaste_store::DestinationKind::Queue;
    bench.engine.delete_destination(bench.tenant, kind, &id("gone")).await.unwrap();
    bench.reach("z-beacon", instant("2026-01-01T01:00:00Z")).await;
    for name in ["a", "b"] {
        let view = bench.engine.schedule(bench.tenant, &id(name)).await.unwrap();
        assert_eq!(("broken", Some("there is no queue \"gone\"")), (view.state(), view.problem.as_deref()));
        assert_eq!(None, view.row.last_fired_at);
        let error = bench.engine.run_schedule(bench.tenant, &id(name), None).await.unwrap_err();
        assert_eq!("not_available", error.code());
    }
    // What is to be made up for stays due, and fires once the destination is back.
    assert_eq!(Some(instant("2026-01-01T01:00:00Z")), bench.row("b").await.next_fire_at);
    bench.queue("gone").await;
    bench.reach("b", instant("2026-01-01T01:00:30Z")).await;
    assert_eq!(Some(instant("2026-01-01T01:00:00Z")), bench.row("b").await.last_fired_at);
}

#[tokio::test]
async fn r_b14_jitter_delays_the_jobs_and_keeps_the_key() {
    let bench = Bench::scheduling().await;
    bench.schedule("a", json!({"cron": "@every 1h", "jitter": "10m"})).await.unwrap();
    let mut waits = Vec::new();
    for hour in 1..=4 {
        let at = instant(&format!("2026-01-01T0{hour}:00:00Z"));
        bench.reach("a", at).await;
        let key = format!("schedule:a:2026-01-01T0{hour}:00:00.000Z");
        let view = bench.job_in(&key, StateName::Scheduled).await;
        waits.push(view.job.scheduled_at.since(at));
    }
    assert!(waits.iter().all(|wait| *wait <= parse_duration("10m").unwrap()), "{waits:?}");
    waits.dedup();
    assert_eq!(4, waits.len(), "{waits:?}");
}

#[tokio::test]
async fn r_b14_a_firing_that_was_published_before_a_crash_is_not_doubled() {
    let bench = Bench::scheduling().await;
    bench.schedule("a", json!({"cron": "@every 1h"})).await.unwrap();
    let before = bench.row("a").await;
    bench.reach("a", instant("2026-01-01T01:00:00Z")).await;
    // As after a crash between the two: published, and the row as it was.
    bench.engine.drain(DurationMs::ZERO).await;
    let back = posthaste_store::NewSchedule {
        tenant: bench.tenant,
        id: id("a"),
        config: before.config,
        managed_by: ManagedBy::Api,
        enabled: true,
        owner: None,
        next: posthaste_store::NextFire::At(before.next_fire_at),
        must_be_new: false,
    };
    bench.store.change_schedules(vec![posthaste_store::ScheduleChange::Put(back)]).await.unwrap();
    let bench = bench.restarted().await;
    bench.reach("a", instant("2026-01-01T01:00:00Z")).await;
    let message = bench.fired("a", "2026-01-01T01:00:00.000Z").await.unwrap();
    assert_eq!((1, 1), (message.jobs_total, message.duplicates));
}

#[tokio::test]
async fn r_b14_a_firing_out_of_turn_has_a_key_of_its_own() {
    let bench = Bench::scheduling().await;
    bench.schedule("a", json!({"cron": "@every 1h"})).await.unwrap();
    let due = bench.row("a").await.next_fire_at;
    let run = async |request| bench.engine.run_schedule(bench.tenant, &id("a"), request).await.unwrap();
    let first = run(Some("r-1")).await;
    assert_eq!((true, "schedule:a:run:r-1"), (first.new, first.key.as_str()));
    bench.advance(5);
    let again = run(Some("r-1")).await;
    assert_eq!((false, first.message), (again.new, again.message));
    let plain = run(None).await;
    assert_eq!((true, "schedule:a:run:2026-01-01T00:00:05.000Z"), (plain.new, plain.key.as_str()));
    assert_eq!(due, bench.row("a").await.next_fire_at);
}

#[tokio::test]
async fn r_b14_a_changed_time_counts_from_now_and_anything_else_leaves_it() {
    let bench = Bench::scheduling().await;
    bench.schedule("a", json!({"cron": "0 12 * * *"})).await.unwrap();
    let noon = Some(instant("2026-01-01T12:00:00Z"));
    bench.advance(3_600);
    bench.schedule("a", json!({"cron": "0 12 * * *", "owner": "team"})).await.unwrap();
    assert_eq!(noon, bench.row("a").await.next_fire_at);
    bench.schedule("a", json!({"cron": "0 12 * * *", "timezone": "Europe/Berlin"})).await.unwrap();
    assert_eq!(Some(instant("2026-01-01T11:00:00Z")), bench.row("a").await.next_fire_at);
    bench.schedule("a", json!({"cron": "0 12 * * *", "enabled": false})).await.unwrap();
    bench.clock.set(instant("2026-01-03T00:00:00Z"));
    bench.schedule("a", json!({"cron": "0 12 * * *"})).await.unwrap();
    assert_eq!(Some(instant("2026-01-03T12:00:00Z")), bench.row("a").await.next_fire_at);
}

#[tokio::test]
async fn r_g2_what_a_file_defines_is_changed_there_and_disabled_when_it_is_gone() {
    let bench = Bench::scheduling().await;
    let spec: ScheduleSpec =
        serde_json::from_value(json!({"name": "a", "cron": "@daily", "to": {"queue": "work"}})).unwrap();
    let file = |schedules| posthaste_engine::FileDestinations {
        tenant: "default".to_owned(),
        schedules,
        ..posthaste_engine::FileDestinations::default()
    };
    bench.engine.sync_file_destinations(vec![file(vec![spec.clone()])]).await.unwrap();
    let row = bench.row("a").await;
    assert_eq!((ManagedBy::File, true), (row.managed_by, row.enabled));
    let error = bench.engine.put_schedule(bench.tenant, &spec, ManagedBy::Api, false).await.unwrap_err();
    assert_eq!("managed_by_file", error.code());
    let name: DestinationId = id("a");
    let error = bench.engine.delete_schedule(bench.tenant, &name).await.unwrap_err();
    assert_eq!("managed_by_file", error.code());
    bench.engine.pause_schedule(bench.tenant, &name, "a pause is no configuration", "ops").await.unwrap();
    bench.engine.sync_file_destinations(vec![file(Vec::new())]).await.unwrap();
    let row = bench.row("a").await;
    assert_eq!((ManagedBy::File, false, true), (row.managed_by, row.enabled, row.paused.is_some()));
}
