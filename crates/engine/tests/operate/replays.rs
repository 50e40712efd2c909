//! Row B9, cell by cell. What is expected here is worked out from the requirement's words, not from the core.

use posthaste_core::{Attempt, Command, Effect, FinishOutcome, Start, StateName};
use posthaste_engine::{Assume, CameTo, OperateError};
use posthaste_store::Stage;

use crate::bench::{ACTOR, Bench, Ledger, REASON, Subject, failed, finished, on_each_store};

/// What happened to a job before the operator came.
#[derive(Clone, Copy, Debug)]
pub(crate) enum History {
    NeverTried,
    FailedWithoutEffect,
    FailedPerhapsWithEffect,
    FailedWithEffect,
    GivenBack,
    LostBeforeItsStart,
    Lost,
    LostThenFailedWithoutEffect,
    LostThenToldWithoutEffect,
    LostThenToldWithoutEffectOfADeadLetter,
    LostThenToldPerhapsWithEffect,
    LostThenToldCommitted,
    LostThenToldCommittedOfADeadLetter,
    LostThenToldCancelled,
    LostTwiceThenToldWithoutEffect,
    OlderAttemptHeardCommitted,
    Committed,
    Discarded,
}

/// What a person who read the history would say.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Sense {
    /// A dead letter; no attempt can have acted.
    NobodyActed,
    /// A dead letter; somebody may have acted.
    PerhapsActed,
    /// A dead letter; somebody said that it has happened.
    Acted,
    /// It ended well.
    Committed,
    /// It was called off.
    Cancelled,
}

use History::*;

impl History {
    pub(crate) const ALL: [(Self, Sense); 18] = [
        (NeverTried, Sense::NobodyActed),
        (FailedWithoutEffect, Sense::NobodyActed),
        (FailedPerhapsWithEffect, Sense::PerhapsActed),
        (FailedWithEffect, Sense::Acted),
        (GivenBack, Sense::NobodyActed),
        (LostBeforeItsStart, Sense::NobodyActed),
        (Lost, Sense::PerhapsActed),
        (LostThenFailedWithoutEffect, Sense::PerhapsActed),
        (LostThenToldWithoutEffect, Sense::NobodyActed),
        (LostThenToldWithoutEffectOfADeadLetter, Sense::NobodyActed),
        (LostThenToldPerhapsWithEffect, Sense::PerhapsActed),
        (LostThenToldCommitted, Sense::Committed),
        (LostThenToldCommittedOfADeadLetter, Sense::Committed),
        (LostThenToldCancelled, Sense::Cancelled),
        (LostTwiceThenToldWithoutEffect, Sense::PerhapsActed),
        (OlderAttemptHeardCommitted, Sense::Acted),
        (Committed, Sense::Committed),
        (Discarded, Sense::Cancelled),
    ];

    /// Lets it happen; the job ends as a dead letter, unless it ended otherwise.
    pub(crate) async fn happen(self, job: &Subject<'_>) {
        let start = Start::WithLease;
        match self {
            NeverTried => {}
            FailedWithoutEffect => self.fail(job, Effect::None).await,
            FailedPerhapsWithEffect => self.fail(job, Effect::Possible).await,
            FailedWithEffect => self.fail(job, Effect::Reported).await,
            GivenBack => {
                let fence = job.lease(start).await;
                assert!(job.say(Command::Release { fence }).await);
            }
            LostBeforeItsStart => {
                job.lose(Start::Fenced).await;
            }
            Lost => {
                job.lose(start).await;
            }
            LostThenFailedWithoutEffect => {
                job.lose(start).await;
                self.fail(job, Effect::None).await;
            }
            LostThenToldWithoutEffect => {
                let fence = job.lose(start).await;
                assert!(job.say(failed(fence, Effect::None)).await);
            }
            LostThenToldWithoutEffectOfADeadLetter => {
                let fence = job.lose(start).await;
                job.dead_letter().await;
                assert!(job.say(failed(fence, Effect::None)).await);
            }
            LostThenToldPerhapsWithEffect => {
                let fence = job.lose(start).await;
                assert!(job.say(failed(fence, Effect::Possible)).await);
            }
            LostThenToldCommitted => {
                let fence = job.lose(start).await;
                assert!(job.say(finished(fence, FinishOutcome::Committed)).await);
            }
            LostThenToldCommittedOfADeadLetter => {
                let fence = job.lose(start).await;
                job.dead_letter().await;
                assert!(job.say(finished(fence, FinishOutcome::Committed)).await);
            }
            LostThenToldCancelled => {
                let fence = job.lose(start).await;
                assert!(job.say(finished(fence, FinishOutcome::Cancelled)).await);
            }
            LostTwiceThenToldWithoutEffect => {
                job.lose(start).await;
                let fence = job.lose(start).await;
                assert!(job.say(failed(fence, Effect::None)).await);
            }
            OlderAttemptHeardCommitted => {
                let older = job.lose(start).await;
                self.fail(job, Effect::None).await;
                job.dead_letter().await;
                assert!(!job.say(finished(older, FinishOutcome::Committed)).await, "it is stale");
            }
            Committed => {
                let fence = job.lease(start).await;
                assert!(job.say(finished(fence, FinishOutcome::Committed)).await);
            }
            Discarded => {
                job.dead_letter().await;
                assert!(job.say(Command::Cancel { reason: "never mind".into() }).await);
            }
        }
        if matches!(job.state().await, StateName::Scheduled | StateName::Retryable) {
            job.dead_letter().await;
        }
    }

    async fn fail(self, job: &Subject<'_>, effect: Effect) {
        let fence = job.lease(Start::WithLease).await;
        assert!(job.say(failed(fence, effect)).await);
    }
}

/// What must come of a replay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Due {
    Replayed,
    Settled(StateName),
    Refused(&'static str),
}

/// Row B9, clause by clause.
fn due(sense: Sense, ledger: Ledger, idempotent: bool, assume: Assume) -> Due {
    // "only dead-lettered jobs"
    if matches!(sense, Sense::Committed | Sense::Cancelled) {
        return Due::Refused("not_dead_lettered");
    }
    // "Where it has happened the job is settled as committed instead" (C5: what was called off, as cancelled)
    match ledger {
        Ledger::Done => return Due::Settled(StateName::Committed),
        Ledger::DoneCancelled => return Due::Settled(StateName::Cancelled),
        Ledger::None | Ledger::InProgress | Ledger::Failed | Ledger::ResetAfterDone => {}
    }
    if sense == Sense::Acted {
        return Due::Settled(StateName::Committed);
    }
    // "no attempt can have acted, or the destination is declared idempotent […] whose entry is not done"
    if sense == Sense::NobodyActed || idempotent {
        return Due::Replayed;
    }
    // "Otherwise refused […] unless the operator says assume: not_done"; no ledger known is not "absent"
    match assume {
        Assume::NotDone => Due::Replayed,
        Assume::Nothing => Due::Refused("outcome_unknown"),
    }
}

#[tokio::test]
async fn r_b9_every_history_is_replayed_settled_or_refused_as_the_requirement_says() {
    on_each_store(|bench| async move {
        let mut counted = [0; 3];
        for (number, (history, sense)) in History::ALL.into_iter().enumerate() {
            for ledger in Ledger::ALL {
                for idempotent in [false, true] {
                    for assume in [Assume::Nothing, Assume::NotDone] {
                        let key = format!("k:{number}:{ledger:?}:{idempotent}:{assume:?}");
                        let due = due(sense, ledger, idempotent, assume);
                        let job = bench.job(&key, idempotent).await;
                        history.happen(&job).await;
                        job.entry(ledger).await;
                        check(&format!("{history:?} {key}"), &job, assume, due).await;
                        job.put_away().await;
                        counted[match due {
                            Due::Replayed => 0,
                            Due::Settled(_) => 1,
                            Due::Refused(_) => 2,
                        }] += 1;
                    }
                }
            }
        }
        // 6 histories in which nobody acted, 5 in which somebody may have, 2 in which somebody has, and 5 others; an
        // entry says in 4 of 6 cases that it is not done.
        let replayed = 6 * 4 * 4 + 5 * 4 * 3;
        let settled = (6 + 5) * 2 * 4 + 2 * 6 * 4;
        let refused = 5 * 4 + 5 * 6 * 4;
        assert_eq!([replayed, settled, refused], counted);
        bench.engine.drain(posthaste_core::DurationMs::ZERO).await;
    })
    .await;
}

async fn check(case: &str, job: &Subject<'_>, assume: Assume, due: Due) {
    let engine = &job.bench.engine;
    let before = (job.view().await, job.custody().await, job.snapshot().await);
    let was = before.0.job.clone();
    // Somebody who saw another attempt is refused, whatever else is true.
    let other = Attempt::following(was.attempt);
    let blind = engine.replay(job.bench.tenant, job.again_after(other), assume).await.unwrap_err();
    let code = if due == Due::Refused("not_dead_lettered") { "not_dead_lettered" } else { "attempt_changed" };
    assert_eq!(code, blind.code(), "{case}");
    assert_eq!(before.2, job.snapshot().await, "{case}: a refusal writes nothing");

    let request = job.again().await;
    let answer = engine.replay(job.bench.tenant, request.clone(), assume).await;
    let (view, custody) = (job.view().await, job.custody().await);
    let noted = &custody[before.1.len()..];
    match due {
        Due::Replayed => {
            let operated = answer.unwrap_or_else(|error| panic!("{case}: {error}"));
            assert_eq!((CameTo::Replayed, StateName::Scheduled), (operated.result, operated.state), "{case}");
            assert_eq!(Some(engine.now()), operated.due_at, "{case}");
            let budgets = view.job.budgets;
            let spent = (budgets.failures, budgets.lost_leases, budgets.uncharged, budgets.since);
            assert_eq!((0, 0, 0, engine.now()), spent, "{case}: the budgets begin anew");
        }
        Due::Settled(state) => {
            let operated = answer.unwrap_or_else(|error| panic!("{case}: {error}"));
            assert_eq!((CameTo::Settled, state), (operated.result, operated.state), "{case}");
            assert_eq!(state, view.job.state.name(), "{case}");
        }
        Due::Refused(code) => {
            let error = answer.err().unwrap_or_else(|| panic!("{case}: it is refused"));
            assert_eq!(code, error.code(), "{case}");
            assert_eq!(before.2, job.snapshot().await, "{case}: a refusal writes nothing");
            if let OperateError::OutcomeUnknown { known, .. } = &error {
                assert!(known.suspects().count() > 0 && known.span.hi > 0, "{case}: with the evidence");
            }
            return;
        }
    }
    let stage = if due == Due::Replayed { Stage::Replayed } else { Stage::Reconciled };
    let [entry] = noted else { panic!("{case}: one entry is noted: {noted:?}") };
    assert_eq!((stage, Some(ACTOR)), (entry.stage, entry.actor.as_deref()), "{case}");
    assert!(entry.detail.as_ref().unwrap().contains(REASON), "{case}: {entry:?}");
    let same = (view.job.id, view.job.attempt, view.job.scheduled_at, view.job.created_at, &view.attempts);
    let expected = (was.id, was.attempt, was.scheduled_at, was.created_at, &before.0.attempts);
    assert_eq!(expected, same, "{case}: identity and history stay");
    repeat(case, job, request, assume, due).await;
}

/// The very same request again is harmless; the next attempt has the next number.
async fn repeat(
    case: &str,
    job: &Subject<'_>,
    request: posthaste_engine::RoundAgain,
    assume: Assume,
    due: Due,
) {
    let engine = &job.bench.engine;
    let after = job.snapshot().await;
    let again = engine.replay(job.bench.tenant, request.clone(), assume).await;
    let again = again.unwrap_or_else(|error| panic!("{case}: {error}"));
    let result = if due == Due::Replayed { CameTo::Replayed } else { CameTo::Settled };
    assert_eq!(result, again.result, "{case}");
    let other = posthaste_engine::RoundAgain { reason: "another".into(), ..request.clone() };
    let other = engine.replay(job.bench.tenant, other, assume).await.unwrap_err();
    assert_eq!("not_dead_lettered", other.code(), "{case}");
    assert_eq!(after, job.snapshot().await, "{case}: a repeat writes nothing");
    if due == Due::Replayed {
        let fence = job.lease(Start::WithLease).await;
        assert_eq!(Attempt::following(request.seen), Some(fence.attempt), "{case}: numbers go on");
        let late = engine.replay(job.bench.tenant, request, assume).await.unwrap_err();
        assert_eq!("not_dead_lettered", late.code(), "{case}: it is on its way");
    }
}

#[tokio::test]
async fn r_b9_a_replay_says_why_and_where_to() {
    on_each_store(|bench| async move {
        let job = bench.job("k", false).await;
        job.dead_letter().await;
        for reason in ["", "  ", &"x".repeat(1_025)] {
            let request = posthaste_engine::RoundAgain { reason: reason.into(), ..job.again().await };
            let refused = bench.engine.replay(bench.tenant, request.clone(), Assume::Nothing).await;
            assert_eq!("invalid_value", refused.unwrap_err().code());
            assert_eq!("invalid_value", bench.engine.resend(bench.tenant, request).await.unwrap_err().code());
        }
        let (queue, kind) = (job.view().await.destination, posthaste_store::DestinationKind::Queue);
        bench.engine.delete_destination(bench.tenant, kind, &queue).await.unwrap();
        let refused = bench.engine.replay(bench.tenant, job.again().await, Assume::Nothing).await;
        assert_eq!("not_available", refused.unwrap_err().code(), "it would be dead-lettered again");
        assert_eq!(StateName::DeadLettered, job.state().await);
        unknown(&bench, &job).await;
    })
    .await;
}

/// Neither a job that is not there, nor another tenant's, is told apart.
async fn unknown(bench: &Bench, job: &Subject<'_>) {
    let elsewhere = bench.engine.ensure_tenant("elsewhere").await.unwrap();
    let again = job.again().await;
    let refused = bench.engine.reconcile(elsewhere, job.id, None, ACTOR).await.unwrap_err();
    assert_eq!("not_found", refused.code());
    let refused = bench.engine.replay(elsewhere, again, Assume::Nothing).await.unwrap_err();
    assert_eq!("not_found", refused.code());
}
