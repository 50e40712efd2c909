//! Accepting messages: claimed once, found by any name, stored to the byte.

use std::sync::Arc;

use bytes::Bytes;
use posthaste_core::{DestinationId, DurationMs, MessageId, StateName, TenantId, Timestamp, limits};
use posthaste_store::{
    Acceptance, AcceptedMessage, Due, Fingerprint, FingerprintField, KeyKind, MessageName, NewMessage, Stage,
};

use crate::store_suite::{
    bench::{Bench, key},
    case_list,
};

case_list![
    r_a4_what_is_accepted_is_read_back_as_it_was_given,
    r_a5_the_same_delivery_again_is_a_duplicate_of_the_first_acceptance,
    r_a5_of_many_deliveries_at_once_one_is_new,
    r_a5_an_acceptance_sent_again_is_new_again_and_leaves_no_trace,
    r_a7_any_name_finds_the_message,
    r_a7_a_duplicate_by_another_name_adds_its_free_names,
    r_a7_the_business_key_is_looked_for_first_and_names_stay_with_their_message,
    r_a7_a_message_has_no_more_other_names_than_the_limit,
    r_a7_a_name_that_is_given_twice_is_kept_under_its_first_kind,
    r_a10_a_reused_key_names_the_first_field_that_differs,
    r_a10_a_reused_key_stores_and_counts_nothing,
    r_a10_by_another_name_nothing_is_compared,
    r_a5_a_batch_sees_itself_and_answers_in_order,
    r_a5_duplicates_are_all_counted_and_the_first_hundred_noted,
    r_b11_payload_bytes_are_exact,
    r_b11_the_largest_payload_is_kept,
    r_b13_a_message_without_targets_is_stored,
    r_b13_a_lane_that_is_given_twice_is_owed_one_job,
    r_b1_a_job_is_due_when_asked_and_never_in_the_past,
    r_b12_no_due_time_is_too_far,
];

fn duplicate(acceptance: Acceptance) -> AcceptedMessage {
    match acceptance {
        Acceptance::Duplicate(message) => message,
        other => panic!("it is a duplicate: {other:?}"),
    }
}

fn with_aliases(message: NewMessage, aliases: &[(KeyKind, &str)]) -> NewMessage {
    NewMessage { aliases: aliases.iter().map(|(kind, name)| (*kind, key(name))).collect(), ..message }
}

async fn found(bench: &Bench, tenant: TenantId, name: &str) -> Option<MessageId> {
    let view = bench.store().message(tenant, MessageName::Key(key(name))).await.unwrap();
    view.map(|view| view.id)
}

async fn r_a4_what_is_accepted_is_read_back_as_it_was_given(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let new = NewMessage {
        aliases: vec![(KeyKind::Provider, key("z:evt_1")), (KeyKind::Delivery, key("a:dlv_1"))],
        event_type: Some("order.paid \u{1F4B0}\0".into()),
        source: Some(DestinationId::new("shop").unwrap()),
        correlation_id: "req-\u{e4}\0-7".into(),
        traceparent: Some("00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01".into()),
        content_type: Some("application/json; charset=utf-8".into()),
        headers: Some("{\"x-a\":\"1\"}".into()),
        metadata: Some("{\"note\":\"\\u0000 \u{0} raw\"}".into()),
        payload_ref: Some("s3://bucket/one".into()),
        payload: Bytes::from_static(b"\0{}\0"),
        ..bench.message(tenant, "order-1", &[queue])
    };
    let accepted = bench.accept_new(new.clone()).await;
    assert_eq!((new.id, key("order-1"), bench.now()), (accepted.id, accepted.key, accepted.accepted_at));
    assert_eq!((1, false, 1), (accepted.jobs_total, accepted.fanout_running, accepted.jobs.len()));
    assert_eq!(StateName::Scheduled, accepted.jobs[0].state);
    let view = bench.view(tenant, new.id).await;
    assert_eq!(vec![(KeyKind::Delivery, key("a:dlv_1")), (KeyKind::Provider, key("z:evt_1"))], view.aliases);
    assert_eq!((new.id, new.key, bench.now()), (view.id, view.key, view.accepted_at));
    assert_eq!((new.event_type, new.source), (view.event_type, view.source));
    assert_eq!((new.correlation_id, new.traceparent), (view.correlation_id, view.traceparent));
    assert_eq!((new.content_type.clone(), new.headers), (view.content_type, view.headers));
    assert_eq!((new.metadata, new.payload_ref), (view.metadata, view.payload_ref));
    assert_eq!((4, 1, false, 0), (view.payload_bytes, view.jobs_total, view.fanout_running, view.duplicates));
    let payload = bench.store().payload(tenant, new.id).await.unwrap();
    assert_eq!(Some((new.payload, new.content_type)), payload);
}

async fn r_a5_the_same_delivery_again_is_a_duplicate_of_the_first_acceptance(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let first = bench.accept_new(bench.message(tenant, "order-1", std::slice::from_ref(&queue))).await;
    bench.advance(DurationMs::from_secs(5));
    let leased = bench.lease(tenant, queue.lane).await;
    let again = NewMessage {
        correlation_id: "request-2".into(),
        ..bench.message(tenant, "order-1", std::slice::from_ref(&queue))
    };
    let known = duplicate(bench.accept(again).await);
    assert_eq!((first.id, first.key, first.accepted_at), (known.id, known.key, known.accepted_at));
    assert_eq!((1, StateName::Leased, None), (known.jobs.len(), known.jobs[0].state, known.jobs[0].due_at));
    assert_eq!((leased.job.id, queue.destination), (known.jobs[0].id, known.jobs[0].destination.clone()));
    assert_eq!(1, bench.view(tenant, first.id).await.duplicates);
    let custody = bench.store().custody(tenant, first.id).await.unwrap();
    assert_eq!((1, Stage::Duplicate, bench.now()), (custody.len(), custody[0].stage, custody[0].at));
    let detail = "{\"correlation_id\":\"request-2\",\"kind\":\"key\",\"name\":\"order-1\",\"source\":null}";
    assert_eq!(Some(detail), custody[0].detail.as_deref());
}

async fn r_a5_of_many_deliveries_at_once_one_is_new(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    for round in 0..10 {
        let mut racers = tokio::task::JoinSet::new();
        for _ in 0..20 {
            let message = bench.message(tenant, &format!("order-{round}"), std::slice::from_ref(&queue));
            let store = bench.shared_store();
            racers.spawn(async move { store.accept(vec![message]).await.unwrap().remove(0) });
        }
        let (mut new, mut known) = (Vec::new(), Vec::new());
        while let Some(acceptance) = racers.join_next().await {
            match acceptance.unwrap() {
                Acceptance::New(message) => new.push(message.id),
                Acceptance::Duplicate(message) => known.push(message.id),
                other @ Acceptance::KeyReused { .. } => panic!("{other:?}"),
            }
        }
        assert_eq!((1, 19), (new.len(), known.len()));
        assert!(known.iter().all(|id| *id == new[0]), "all duplicates are of the one that is new");
        assert_eq!(19, bench.view(tenant, new[0]).await.duplicates);
    }
}

async fn r_a5_an_acceptance_sent_again_is_new_again_and_leaves_no_trace(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let message = bench.message(tenant, "order-1", &[queue]);
    let first = bench.accept_new(message.clone()).await;
    let before = bench.snapshot(&[(tenant, first.id)]).await;
    bench.advance(DurationMs::from_secs(3));
    // Also if it says something else this time: nothing is compared.
    let again = NewMessage { fingerprint: Fingerprint([[9; 16]; 5]), ..message };
    let second = bench.accept_new(again).await;
    assert_eq!(format!("{first:?}"), format!("{second:?}"));
    let expected: Vec<(String, String, String)> = Vec::new();
    assert_eq!(expected, before.differences(&bench.snapshot(&[(tenant, first.id)]).await));
}

async fn r_a7_any_name_finds_the_message(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let names = [(KeyKind::Provider, "s:evt_1"), (KeyKind::Delivery, "s:dlv_1"), (KeyKind::Alias, "s:old-1")];
    let message = with_aliases(bench.message(tenant, "order-1", &[]), &names);
    let id = bench.accept_new(message).await.id;
    for name in ["order-1", "s:evt_1", "s:dlv_1", "s:old-1"] {
        assert_eq!(Some(id), found(&bench, tenant, name).await, "{name}");
        // And each of them is claimed: as the business key of another message it is known.
        let other = bench.message(tenant, name, &[]);
        assert_eq!(id, duplicate(bench.accept(other).await).id, "{name}");
    }
    assert_eq!(None, found(&bench, tenant, "s:evt_2").await);
    assert_eq!(4, bench.view(tenant, id).await.duplicates);
}

async fn r_a7_a_duplicate_by_another_name_adds_its_free_names(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let first = bench.accept_new(bench.message(tenant, "old-rule-1", &[])).await;
    // The derivation rule changed: the old key is an alias now.
    let changed = with_aliases(
        bench.message(tenant, "new-rule-1", &[]),
        &[(KeyKind::Alias, "old-rule-1"), (KeyKind::Delivery, "dlv-2")],
    );
    let known = duplicate(bench.accept(changed).await);
    assert_eq!((first.id, key("old-rule-1")), (known.id, known.key));
    let names = vec![(KeyKind::Delivery, key("dlv-2")), (KeyKind::Alias, key("new-rule-1"))];
    assert_eq!(names, bench.view(tenant, first.id).await.aliases);
    let custody = bench.store().custody(tenant, first.id).await.unwrap();
    let detail =
        "{\"correlation_id\":\"request-1\",\"kind\":\"alias\",\"name\":\"old-rule-1\",\"source\":null}";
    assert_eq!(Some(detail), custody[0].detail.as_deref());
    // From now on the new key alone finds it.
    assert_eq!(first.id, duplicate(bench.accept(bench.message(tenant, "new-rule-1", &[])).await).id);
}

async fn r_a7_the_business_key_is_looked_for_first_and_names_stay_with_their_message(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let one = bench.accept_new(bench.message(tenant, "one", &[])).await;
    let two = with_aliases(bench.message(tenant, "two", &[]), &[(KeyKind::Provider, "evt")]);
    let two = bench.accept_new(two).await;
    let both = with_aliases(bench.message(tenant, "one", &[]), &[(KeyKind::Provider, "evt")]);
    assert_eq!(one.id, duplicate(bench.accept(both).await).id);
    assert_eq!(Some(two.id), found(&bench, tenant, "evt").await);
    // Without a known business key the other names decide, in the order given.
    let neither = with_aliases(
        bench.message(tenant, "three", &[]),
        &[(KeyKind::Provider, "evt"), (KeyKind::Alias, "one")],
    );
    assert_eq!(two.id, duplicate(bench.accept(neither).await).id);
    assert_eq!(Some(two.id), found(&bench, tenant, "three").await);
    assert_eq!(Some(one.id), found(&bench, tenant, "one").await);
}

async fn r_a7_a_message_has_no_more_other_names_than_the_limit(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let id = bench.accept_new(bench.message(tenant, "order-1", &[])).await.id;
    for delivery in 0..limits::ALIASES_MAX + 3 {
        let name = format!("dlv-{delivery:02}");
        let again = with_aliases(bench.message(tenant, "order-1", &[]), &[(KeyKind::Delivery, &name)]);
        assert_eq!(id, duplicate(bench.accept(again).await).id);
    }
    assert_eq!(limits::ALIASES_MAX, bench.view(tenant, id).await.aliases.len());
    assert_eq!(Some(id), found(&bench, tenant, "dlv-07").await);
    assert_eq!(None, found(&bench, tenant, "dlv-08").await);
    assert_eq!(11, bench.view(tenant, id).await.duplicates);
}

async fn r_a7_a_name_that_is_given_twice_is_kept_under_its_first_kind(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let names = [(KeyKind::Provider, "order-1"), (KeyKind::Delivery, "x"), (KeyKind::Alias, "x")];
    let id = bench.accept_new(with_aliases(bench.message(tenant, "order-1", &[]), &names)).await.id;
    assert_eq!(vec![(KeyKind::Delivery, key("x"))], bench.view(tenant, id).await.aliases);
}

async fn r_a10_a_reused_key_names_the_first_field_that_differs(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let id = bench.accept_new(bench.message(tenant, "order-1", &[])).await.id;
    for (index, expected) in FingerprintField::ALL.into_iter().enumerate() {
        let mut fingerprint = Fingerprint([[1; 16]; 5]);
        fingerprint.0[index..].fill([2; 16]);
        let other = NewMessage { fingerprint, ..bench.message(tenant, "order-1", &[]) };
        match bench.accept(other).await {
            Acceptance::KeyReused { field, message } => assert_eq!((expected, id), (field, message)),
            other => panic!("the key is reused: {other:?}"),
        }
    }
    let unsaid = Fingerprint([Fingerprint::NOT_COMPARED; 5]);
    let other = NewMessage { fingerprint: unsaid, ..bench.message(tenant, "order-1", &[]) };
    assert_eq!(id, duplicate(bench.accept(other).await).id);
}

async fn r_a10_a_reused_key_stores_and_counts_nothing(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let id = bench.accept_new(bench.message(tenant, "order-1", std::slice::from_ref(&queue))).await.id;
    let other = NewMessage {
        fingerprint: Fingerprint([[2; 16]; 5]),
        ..with_aliases(bench.message(tenant, "order-1", &[queue]), &[(KeyKind::Delivery, "dlv-2")])
    };
    let messages = [(tenant, id), (tenant, other.id)];
    let before = bench.snapshot(&messages).await;
    assert!(matches!(bench.accept(other).await, Acceptance::KeyReused { .. }));
    assert_eq!(before, bench.snapshot(&messages).await);
    assert_eq!(None, found(&bench, tenant, "dlv-2").await);
}

async fn r_a10_by_another_name_nothing_is_compared(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let named = with_aliases(bench.message(tenant, "order-1", &[]), &[(KeyKind::Provider, "evt-1")]);
    let id = bench.accept_new(named).await.id;
    let other =
        || NewMessage { fingerprint: Fingerprint([[2; 16]; 5]), ..bench.message(tenant, "evt-1", &[]) };
    assert_eq!(id, duplicate(bench.accept(other()).await).id);
    let other = NewMessage { key: key("order-2"), ..with_aliases(other(), &[(KeyKind::Alias, "order-1")]) };
    assert_eq!(id, duplicate(bench.accept(other).await).id);
}

async fn r_a5_a_batch_sees_itself_and_answers_in_order(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let targets = std::slice::from_ref(&queue);
    let first = bench.message(tenant, "order-1", targets);
    let same_key = bench.message(tenant, "order-1", targets);
    let reused =
        NewMessage { fingerprint: Fingerprint([[2; 16]; 5]), ..bench.message(tenant, "order-1", targets) };
    let other = bench.message(tenant, "order-2", targets);
    let batch = vec![first.clone(), same_key, reused, other.clone(), first.clone()];
    let answers = bench.store().accept(batch).await.unwrap();
    assert!(matches!(&answers[0], Acceptance::New(message) if message.id == first.id));
    assert!(matches!(&answers[1], Acceptance::Duplicate(message) if message.id == first.id));
    assert!(matches!(&answers[2], Acceptance::KeyReused { message, .. } if *message == first.id));
    assert!(matches!(&answers[3], Acceptance::New(message) if message.id == other.id));
    assert!(matches!(&answers[4], Acceptance::New(message) if message.id == first.id));
    assert_eq!(5, answers.len());
    assert_eq!(1, bench.view(tenant, first.id).await.duplicates);
    assert_eq!(0, bench.store().accept(Vec::new()).await.unwrap().len());
}

async fn r_a5_duplicates_are_all_counted_and_the_first_hundred_noted(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let id = bench.accept_new(bench.message(tenant, "order-1", &[])).await.id;
    let recorded = limits::DUPLICATES_RECORDED_MAX as usize;
    let many = |count| (0..count).map(|_| bench.message(tenant, "order-1", &[])).collect::<Vec<_>>();
    bench.store().accept(many(recorded - 1)).await.unwrap();
    bench.store().accept(many(5)).await.unwrap();
    assert_eq!(104, bench.view(tenant, id).await.duplicates);
    assert_eq!(recorded, bench.store().custody(tenant, id).await.unwrap().len());
}

async fn payload_survives(bench: &Bench, tenant: TenantId, payload: Bytes) {
    let queue = bench.queue(tenant, "orders").await;
    let name = format!("payload-{}", payload.len());
    let message =
        NewMessage { payload: payload.clone(), ..bench.message(tenant, &name, std::slice::from_ref(&queue)) };
    let id = bench.accept_new(message).await.id;
    let (stored, _) = bench.store().payload(tenant, id).await.unwrap().unwrap();
    assert!(payload == stored, "{name} is read back as it was");
    let leased = bench.lease(tenant, queue.lane).await;
    assert!(payload == leased.message.payload, "{name} is leased as it was");
    assert_eq!(payload.len(), bench.view(tenant, id).await.payload_bytes);
}

async fn r_b11_payload_bytes_are_exact(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let every_byte: Vec<u8> = (0..=u8::MAX).collect();
    for payload in [&b""[..], b"\0", b"\0\0a\0", b"\xFF\xFE{\xC3\x28}", &every_byte] {
        payload_survives(&bench, tenant, Bytes::copy_from_slice(payload)).await;
    }
    payload_survives(&bench, tenant, Bytes::from(every_byte.repeat(1_024))).await;
}

async fn r_b11_the_largest_payload_is_kept(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let pattern: Vec<u8> = (0..=250).collect();
    let mut payload = pattern.repeat(limits::PAYLOAD_BYTES_CEILING / pattern.len() + 1);
    payload.truncate(limits::PAYLOAD_BYTES_CEILING);
    payload_survives(&bench, tenant, Bytes::from(payload)).await;
}

async fn r_b13_a_message_without_targets_is_stored(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let accepted = bench.accept_new(bench.message(tenant, "nobody-listens", &[])).await;
    assert_eq!((0, false, 0), (accepted.jobs_total, accepted.fanout_running, accepted.jobs.len()));
    assert_eq!(0, bench.view(tenant, accepted.id).await.jobs_total);
    assert_eq!(0, bench.store().counts().await.unwrap().len());
}

async fn r_b13_a_lane_that_is_given_twice_is_owed_one_job(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let mut one = bench.queue(tenant, "one").await;
    let two = bench.queue(tenant, "two").await;
    one.wire_id = Some("the first".into());
    let mut again = one.clone();
    again.wire_id = Some("the second".into());
    let accepted = bench.accept_new(bench.message(tenant, "order-1", &[two, one.clone(), again])).await;
    assert_eq!((2, 2), (accepted.jobs_total, accepted.jobs.len()));
    let destinations: Vec<&str> = accepted.jobs.iter().map(|job| job.destination.as_str()).collect();
    assert_eq!(vec!["one", "two"], destinations, "by lane");
    assert_eq!(Some("the first"), bench.read(tenant, accepted.jobs[0].id).await.wire_id.as_deref());
}

async fn r_b1_a_job_is_due_when_asked_and_never_in_the_past(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    let now = bench.now();
    let hour = DurationMs::from_hours(1);
    let cases = [
        (Due::In(DurationMs::ZERO), now),
        (Due::In(hour), now.after(hour)),
        (Due::At(now.after(hour)), now.after(hour)),
        (Due::At(Timestamp(now.0 - 1)), now),
        (Due::At(Timestamp(-1)), now),
    ];
    for (index, (due, expected)) in cases.into_iter().enumerate() {
        let message = bench.message(tenant, &format!("order-{index}"), std::slice::from_ref(&queue));
        let accepted = bench.accept_new(NewMessage { due, ..message }).await;
        assert_eq!(expected, accepted.jobs[0].scheduled_at, "{due:?}");
        assert_eq!(Some(expected), accepted.jobs[0].due_at, "{due:?}");
    }
}

async fn r_b12_no_due_time_is_too_far(bench: Arc<Bench>) {
    let tenant = bench.tenant("default").await;
    let queue = bench.queue(tenant, "orders").await;
    for (name, due, expected) in [
        ("year 9999", Due::At(limits::TIMESTAMP_MAX), limits::TIMESTAMP_MAX),
        ("for ever", Due::In(DurationMs(u64::MAX)), Timestamp(i64::MAX)),
    ] {
        let message = bench.message(tenant, &name.replace(' ', "-"), std::slice::from_ref(&queue));
        let accepted = bench.accept_new(NewMessage { due, ..message }).await;
        assert_eq!(Some(expected), accepted.jobs[0].due_at, "{name}");
    }
    let heads = bench.store().heads().await.unwrap();
    assert_eq!(vec![limits::TIMESTAMP_MAX], heads.iter().map(|head| head.due_at).collect::<Vec<_>>());
}
