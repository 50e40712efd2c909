//! Resend and reconcile, and what a job's rows and the ledger say together. Rows B9, C8.

use posthaste_core::{Attempt, Command, Effect, FinishOutcome, Start, StateName};
use posthaste_engine::{Assume, CameTo};
use posthaste_store::Stage;

use crate::{
    bench::{ACTOR, Ledger, REASON, failed, finished, on_each_store},
    replays::{History, Sense},
};

#[tokio::test]
async fn r_c8_reconcile_settles_by_what_is_known_and_by_nothing_else() {
    on_each_store(|bench| async move {
        for (number, (history, sense)) in History::ALL.into_iter().enumerate() {
            for ledger in Ledger::ALL {
                let case = format!("k:{number}:{ledger:?}");
                let job = bench.job(&case, false).await;
                history.happen(&job).await;
                job.entry(ledger).await;
                let (before, noted) = (job.snapshot().await, job.custody().await.len());
                let answer = bench.engine.reconcile(bench.tenant, job.id, Some(REASON), ACTOR).await;
                let due = match (sense, ledger) {
                    (Sense::Cancelled, _)
                    | (Sense::NobodyActed | Sense::PerhapsActed | Sense::Acted, Ledger::DoneCancelled) => {
                        Some(StateName::Cancelled)
                    }
                    (Sense::Committed | Sense::Acted, _) | (_, Ledger::Done) => Some(StateName::Committed),
                    (Sense::NobodyActed | Sense::PerhapsActed, _) => None,
                };
                let Some(state) = due else {
                    assert_eq!("no_evidence", answer.unwrap_err().code(), "{history:?} {case}");
                    assert_eq!(before, job.snapshot().await, "{history:?} {case}: nothing is written");
                    continue;
                };
                let operated = answer.unwrap_or_else(|error| panic!("{history:?} {case}: {error}"));
                assert_eq!((CameTo::Settled, state), (operated.result, operated.state), "{history:?} {case}");
                let custody = job.custody().await;
                let noted = &custody[noted..];
                if matches!(sense, Sense::Committed | Sense::Cancelled) {
                    assert_eq!(before, job.snapshot().await, "{history:?} {case}: it was settled before");
                } else {
                    let told = |entry: &&posthaste_store::CustodyEntry| {
                        entry.stage == Stage::Reconciled
                            && entry.actor.as_deref() == Some(ACTOR)
                            && entry.detail.as_ref().is_some_and(|detail| detail.contains(REASON))
                    };
                    assert_eq!(1, noted.iter().filter(told).count(), "{history:?} {case}: {noted:?}");
                }
                let again = bench.engine.reconcile(bench.tenant, job.id, None, ACTOR).await.unwrap();
                assert_eq!(state, again.state, "{history:?} {case}: again is harmless");
            }
        }
    })
    .await;
}

#[tokio::test]
async fn r_c8_reconcile_leaves_alone_what_is_on_its_way() {
    on_each_store(|bench| async move {
        let job = bench.job("k", false).await;
        let code =
            async || bench.engine.reconcile(bench.tenant, job.id, None, ACTOR).await.unwrap_err().code();
        assert_eq!("wrong_state", code().await, "scheduled");
        let fence = job.lease(Start::WithLease).await;
        assert_eq!("wrong_state", code().await, "leased");
        assert!(job.say(failed(fence, Effect::Possible)).await);
        assert_eq!("no_evidence", code().await, "retryable");
        job.entry(Ledger::Done).await;
        let operated = bench.engine.reconcile(bench.tenant, job.id, None, ACTOR).await.unwrap();
        assert_eq!((CameTo::Settled, StateName::Committed), (operated.result, operated.state));
        assert_eq!(Some(posthaste_core::Evidence::Ledger), operated.evidence);
    })
    .await;
}

#[tokio::test]
async fn r_b9_only_what_is_committed_is_resent_and_under_its_identity() {
    on_each_store(|bench| async move {
        for (number, (history, sense)) in History::ALL.into_iter().enumerate() {
            let job = bench.job(&format!("k:{number}"), false).await;
            history.happen(&job).await;
            let (before, noted) = (job.snapshot().await, job.custody().await.len());
            let request = job.again().await;
            let blind = job.again_after(Attempt::following(request.seen));
            let blind = bench.engine.resend(bench.tenant, blind).await.unwrap_err();
            let code = if sense == Sense::Committed { "attempt_changed" } else { "not_committed" };
            assert_eq!(code, blind.code(), "{history:?}");
            assert_eq!(before, job.snapshot().await, "{history:?}: a refusal writes nothing");
            let answer = bench.engine.resend(bench.tenant, request.clone()).await;
            if sense != Sense::Committed {
                assert_eq!("not_committed", answer.unwrap_err().code(), "{history:?}");
                assert_eq!(before, job.snapshot().await, "{history:?}: a refusal writes nothing");
                continue;
            }
            let operated = answer.unwrap();
            assert_eq!((CameTo::Resent, StateName::Scheduled), (operated.result, operated.state));
            let custody = job.custody().await;
            let [entry] = &custody[noted..] else { panic!("{history:?}: one entry is noted") };
            assert_eq!((Stage::Resent, Some(ACTOR)), (entry.stage, entry.actor.as_deref()));
            let after = job.snapshot().await;
            let again = bench.engine.resend(bench.tenant, request.clone()).await.unwrap();
            assert_eq!(CameTo::Resent, again.result, "{history:?}: again is harmless");
            assert_eq!(after, job.snapshot().await);
            // What was reported of the first effect settles nothing of the second.
            let fence = job.lease(Start::WithLease).await;
            assert_eq!(Attempt::following(request.seen), Some(fence.attempt), "{history:?}: numbers go on");
            assert!(job.say(failed(fence, Effect::None)).await);
            job.dead_letter().await;
            let refused = bench.engine.reconcile(bench.tenant, job.id, None, ACTOR).await.unwrap_err();
            assert_eq!("no_evidence", refused.code(), "{history:?}");
        }
    })
    .await;
}

#[tokio::test]
async fn r_b9_a_job_that_only_the_ledger_settled_is_resent_after_a_reset() {
    on_each_store(|bench| async move {
        let job = bench.job("k", false).await;
        job.dead_letter().await;
        job.entry(Ledger::Done).await;
        bench.engine.reconcile(bench.tenant, job.id, None, ACTOR).await.unwrap();
        let refused = bench.engine.resend(bench.tenant, job.again().await).await.unwrap_err();
        assert_eq!("invalid_value", refused.code(), "it would be settled at once: {refused}");
        assert_eq!(StateName::Committed, job.state().await);
    })
    .await;
}

#[tokio::test]
async fn r_c8_a_done_entry_counts_as_an_effect_and_is_seen_beside_the_attempts() {
    on_each_store(|bench| async move {
        let job = bench.job("k", false).await;
        let spans = async || {
            let span = bench.engine.known(bench.tenant, job.id).await.unwrap().unwrap().span;
            (span.effect, span.lo, span.hi)
        };
        assert_eq!((Effect::None, 0, 0), spans().await);
        job.lose(Start::WithLease).await;
        job.lose(Start::WithLease).await;
        assert_eq!((Effect::Possible, 0, 2), spans().await);
        job.entry(Ledger::Done).await;
        assert_eq!((Effect::Confirmed, 1, 2), spans().await);
        let key = posthaste_core::MessageKey::new("k").unwrap();
        let timeline = bench.engine.timeline(bench.tenant, &key, None).await.unwrap().unwrap();
        assert_eq!((1, 2), (timeline.effects[0].lo, timeline.effects[0].hi), "the timeline says the same");
        let called_off = bench.job("k:2", false).await;
        called_off.entry(Ledger::DoneCancelled).await;
        let known = bench.engine.known(bench.tenant, called_off.id).await.unwrap().unwrap();
        assert_eq!((Effect::None, 0, 0), (known.span.effect, known.span.lo, known.span.hi));
        assert!(known.entry.is_some());
    })
    .await;
}

#[tokio::test]
async fn r_f2_the_timeline_keeps_every_dead_letter_and_who_led_on() {
    on_each_store(|bench| async move {
        let job = bench.job("k", false).await;
        let fence = job.lease(Start::WithLease).await;
        let permanent = posthaste_core::Failure::of_worker(
            posthaste_core::Class::Worker,
            Some(Effect::None),
            posthaste_core::RetryWish::No,
            None,
        );
        let details = posthaste_core::Details::default();
        assert!(job.say(Command::Fail { fence, failure: permanent, details }).await);
        bench.engine.replay(bench.tenant, job.again().await, Assume::Nothing).await.unwrap();
        let fence = job.lease(Start::WithLease).await;
        assert!(job.say(finished(fence, FinishOutcome::Committed)).await);
        bench.engine.resend(bench.tenant, job.again().await).await.unwrap();
        let key = posthaste_core::MessageKey::new("k").unwrap();
        let timeline = bench.engine.timeline(bench.tenant, &key, None).await.unwrap().unwrap();
        let told = |stage: Stage| timeline.entries.iter().filter(move |entry| entry.stage == stage);
        assert_eq!(1, told(Stage::DeadLettered).count(), "though it is none any more");
        for stage in [Stage::Replayed, Stage::Resent] {
            let entry = told(stage).next().unwrap();
            assert_eq!(Some(ACTOR), entry.actor.as_deref());
            assert_eq!(REASON, entry.detail["reason"]);
            assert_eq!(Some("k:bare"), entry.event_id.as_deref());
        }
    })
    .await;
}
