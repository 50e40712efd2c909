//! The protocol's models over the real functions of core, and over the same functions with one fault each.
//!
//! `cargo test -p posthaste-testkit --test model -- --nocapture` prints what each run explored. With `MODEL_TRACE=1`
//! a shortest trace is printed for each fault. The feature `long-tests` adds larger bounds.

#![allow(clippy::print_stdout)] // what was explored is worth seeing

use posthaste_core::{Start, ledger::OnExpired};
use posthaste_testkit::model::{
    Allowance, Effects, Extra, Ledger, LedgerConfig, LedgerExtra, LedgerModel, LedgerMutant, LookUps, Mode,
    Model, Pin, Property, Report, RestoreModel, Retention, SenderConfig, SenderModel, SenderMutant, Unknown,
    WholeConfig, WholeExtra, WholeModel, explore, find,
};

const POLICIES: [Unknown; 3] = [Unknown::Retry, Unknown::DeadLetter, Unknown::Reconcile];
const STARTS: [Start; 2] = [Start::WithLease, Start::Fenced];

fn run(name: &str, explore: impl FnOnce() -> Report) -> Report {
    let began_at = std::time::Instant::now();
    let report = explore();
    println!("{name}: {}, {:.1} s", report.summary(), began_at.elapsed().as_secs_f64());
    report
}

fn holds<M: Model>(name: &str, model: &M) {
    let report = run(name, || explore(model));
    assert!(report.holds(), "{name}: {report}");
}

fn catches<M: Model>(name: &str, model: &M, property: Property) {
    let report = run(name, || find(model, property));
    let violation = report.violation(property);
    if let Some(violation) = violation.filter(|_| std::env::var_os("MODEL_TRACE").is_some()) {
        println!("{name}: {violation}");
    }
    assert!(violation.is_some(), "{name}: nobody noticed that this is broken: {property}\n{report}");
}

/// Every answer, three attempts, budgets of two.
fn sender(on_unknown: Unknown, start: Start) -> SenderConfig {
    SenderConfig {
        on_unknown,
        start,
        attempts: 3,
        allowance: Allowance { failures: 2, lost_leases: 2 },
        replays: 1,
        resends: 0,
        releases: 0,
        cancels: 0,
        abandons: 0,
        look_ups: LookUps::WrittenOnce,
        extras: vec![Extra::Errors],
    }
}

/// Runs what `change` makes of [`sender`] under every policy, with and without a fenced start.
fn sender_holds(what: &str, change: impl Fn(SenderConfig) -> SenderConfig) {
    for on_unknown in POLICIES {
        for start in STARTS {
            let config = change(sender(on_unknown, start));
            holds(&format!("sender, {what}, {on_unknown:?}, {start:?}"), &SenderModel::new(config));
        }
    }
}

fn with(extras: &[Extra], config: &SenderConfig) -> SenderConfig {
    SenderConfig { extras: [&[Extra::Errors], extras].concat(), ..config.clone() }
}

#[test]
fn model_holds_on_the_real_core_for_every_answer_with_cancel_and_release() {
    sender_holds("every answer", |config| SenderConfig { cancels: 1, releases: 1, ..config });
}

#[test]
fn model_holds_on_the_real_core_for_four_attempts_and_silence() {
    sender_holds("four attempts", |config| SenderConfig {
        attempts: 4,
        cancels: 1,
        releases: 1,
        extras: vec![],
        ..config
    });
}

#[test]
fn model_holds_on_the_real_core_for_repeated_reports_and_guards() {
    sender_holds("repeated reports", |config| SenderConfig {
        releases: 1,
        ..with(&[Extra::Guards, Extra::Answers], &config)
    });
}

#[test]
fn model_holds_on_the_real_core_for_repeated_replays() {
    sender_holds("repeated replays", |config| SenderConfig {
        replays: 2,
        allowance: Allowance { failures: 1, lost_leases: 1 },
        ..with(&[Extra::Guards, Extra::RepeatedReplay], &config)
    });
}

#[test]
fn model_holds_on_the_real_core_past_the_horizon_and_for_endpoints_that_go() {
    sender_holds("horizon, abandon", |config| SenderConfig {
        abandons: 1,
        cancels: 1,
        replays: 0,
        ..with(&[Extra::Horizon], &config)
    });
}

#[test]
fn model_holds_on_the_real_core_with_two_reapers() {
    sender_holds("two reapers", |config| with(&[Extra::SlowReaper], &config));
}

#[test]
fn model_holds_on_the_real_core_for_workers_that_saw_others_at_work() {
    sender_holds("busy with effect possible", |config| with(&[Extra::BusyUnknown], &config));
}

#[test]
fn model_holds_on_the_real_core_for_jobs_settled_by_hand() {
    sender_holds("settled by hand", |config| with(&[Extra::SettledByHand], &config));
}

#[test]
fn model_holds_on_the_real_core_for_confused_clients() {
    sender_holds("confused client", |config| with(&[Extra::ConfusedClient, Extra::Answers], &config));
}

#[test]
fn model_holds_on_the_real_core_for_resends() {
    sender_holds("resends", |config| SenderConfig { resends: 1, ..with(&[Extra::Answers], &config) });
}

#[test]
fn model_holds_on_the_real_core_for_a_store_that_goes_back_in_time() {
    holds("restore", &RestoreModel::new());
}

/// Two transactions, three handlers started once.
fn ledger(mode: Mode, on_expired: OnExpired) -> LedgerConfig {
    LedgerConfig { mode, on_expired, runs: 1, retention: Retention::Keeps, extras: vec![] }
}

/// One, and two, transactions: effects at most once, whatever leases and clocks do.
fn ledgers_that_hold() -> Vec<(&'static str, LedgerConfig)> {
    use LedgerExtra::{DishonestFail, KeyDownstream, LostClaims, Resets};
    let one = || LedgerConfig { runs: 2, ..ledger(Mode::InOneTransaction, OnExpired::Retake) };
    let two = || ledger(Mode::InTwoTransactions, OnExpired::Retake);
    let http = || ledger(Mode::OverHttp, OnExpired::Hold);
    vec![
        ("one transaction", one()),
        ("one transaction, fail after the commit", LedgerConfig { extras: vec![DishonestFail], ..one() }),
        ("two transactions", LedgerConfig { runs: 2, ..two() }),
        ("two transactions, lost claims", LedgerConfig { extras: vec![LostClaims], ..two() }),
        ("two transactions, fail after the commit", LedgerConfig { extras: vec![DishonestFail], ..two() }),
        ("two transactions, resets", LedgerConfig { extras: vec![Resets], ..two() }),
        (
            "two transactions, held, resets",
            LedgerConfig {
                extras: vec![Resets, LostClaims],
                ..ledger(Mode::InTwoTransactions, OnExpired::Hold)
            },
        ),
        ("two transactions, purged at last", LedgerConfig { retention: Retention::AfterTheLast, ..two() }),
        ("two transactions, archive", LedgerConfig { retention: Retention::Archive, ..two() }),
        ("HTTP, held", LedgerConfig { runs: 2, ..http() }),
        ("HTTP, held, lost claims", LedgerConfig { extras: vec![LostClaims], ..http() }),
        (
            "HTTP, the effect takes the key along",
            LedgerConfig {
                extras: vec![KeyDownstream, DishonestFail],
                ..ledger(Mode::OverHttp, OnExpired::Retake)
            },
        ),
    ]
}

#[test]
fn model_holds_on_the_real_core_for_the_ledger() {
    for (name, config) in ledgers_that_hold() {
        holds(&format!("ledger, {name}"), &LedgerModel::new(config));
    }
}

#[test]
fn model_shows_that_an_http_takeover_can_double_and_that_early_retention_does() {
    let retake = ledger(Mode::OverHttp, OnExpired::Retake);
    catches("ledger, HTTP, retaken", &LedgerModel::new(retake), Property::EffectOnce);
    let early =
        LedgerConfig { retention: Retention::TooEarly, ..ledger(Mode::InTwoTransactions, OnExpired::Retake) };
    catches("ledger, purged too early", &LedgerModel::new(early), Property::EffectOnce);
}

/// Sender and ledger together: three attempts, budgets of two, one replay.
fn whole() -> WholeConfig {
    WholeConfig {
        effects: Effects::WithComplete,
        ledger: Ledger::Ours,
        pin: Pin::UntilSettled,
        attempts: 3,
        allowance: Allowance { failures: 2, lost_leases: 2 },
        replays: 1,
        cancels: 0,
        resets: 0,
        extras: vec![],
    }
}

fn whole_holds(name: &str, config: WholeConfig) {
    holds(&format!("whole, {name}"), &WholeModel::new(config));
}

#[test]
fn model_holds_on_the_real_core_for_sender_and_ledger() {
    whole_holds("refusals", WholeConfig { extras: vec![WholeExtra::Rejects], ..whole() });
    let theirs = WholeConfig { ledger: Ledger::Theirs, extras: vec![WholeExtra::Rejects], ..whole() };
    whole_holds("their own ledger", theirs);
}

#[test]
fn model_holds_on_the_real_core_for_sender_and_ledger_with_cancel_and_reset() {
    whole_holds("cancel, reset", WholeConfig { cancels: 1, resets: 1, ..whole() });
}

#[test]
fn model_holds_on_the_real_core_for_handlers_that_find_the_work_obsolete() {
    whole_holds("guards", WholeConfig { extras: vec![WholeExtra::Guards], ..whole() });
}

#[test]
fn model_holds_on_the_real_core_behind_a_proxy_that_repeats_a_request() {
    let allowance = Allowance { failures: 1, lost_leases: 1 };
    whole_holds("proxy", WholeConfig { allowance, extras: vec![WholeExtra::Proxy], ..whole() });
}

#[test]
fn model_holds_on_the_real_core_for_a_held_http_ledger() {
    whole_holds("HTTP, held", WholeConfig { effects: Effects::BeforeCompleteHeld, ..whole() });
}

#[test]
fn model_shows_that_a_dead_letter_must_pin_its_entry() {
    let config = WholeConfig { pin: Pin::UntilNotLive, ..whole() };
    catches("whole, not pinned", &WholeModel::new(config), Property::EffectOnce);
}

#[test]
fn model_shows_that_a_retaken_http_ledger_doubles() {
    let config = WholeConfig { effects: Effects::BeforeCompleteRetaken, ..whole() };
    catches("whole, HTTP, retaken", &WholeModel::new(config), Property::EffectOnce);
}

#[test]
fn model_holds_on_the_real_core_for_look_ups_that_are_written_again() {
    sender_holds("look-ups written again", |config| SenderConfig {
        look_ups: LookUps::WrittenAgain,
        ..config
    });
}

/// Makes one test a fault, and one that no fault is left without its test.
macro_rules! faults {
    ($all:ident, $mutants:ident, $catch:ident, $($test:ident: $mutant:ident,)+) => {
        $(#[test] fn $test() { $catch($mutants::$mutant); })+

        #[test]
        fn $all() {
            assert_eq!($mutants::ALL, &[$($mutants::$mutant,)+]);
        }
    };
}

faults! {
    model_catches_every_fault_of_the_sender, SenderMutant, catch_in_the_sender,
    model_catches_a_missing_fence: NoFence,
    model_catches_numbers_that_restart_at_a_replay: NumbersRestart,
    model_catches_a_blind_expire: BlindExpire,
    model_catches_two_leases: TwoLeases,
    model_catches_a_lease_over_an_expired_one: LeaseOverExpired,
    model_catches_a_release_of_what_was_sent: ReleasesWhatWasSent,
    model_catches_a_500_read_as_nothing_happened: ServerErrorMeansNothing,
    model_catches_an_absent_believed_at_once: AbsentBelievedAtOnce,
    model_catches_a_look_up_judged_when_it_is_written: LookUpJudgedWhenWritten,
    model_catches_a_look_up_that_names_no_attempt: LookUpUnnamed,
    model_catches_a_replay_without_its_gate: ReplayWithoutGate,
    model_catches_a_replay_that_names_no_attempt: ReplayUnnamed,
    model_catches_a_guard_that_cancels_unfenced: GuardCancelsUnfenced,
    model_catches_rows_that_are_not_asked: RowsNotAsked,
    model_catches_a_cancel_that_ends_what_runs: CancelAtOnce,
    model_catches_a_start_that_is_not_fenced: StartNotFenced,
    model_catches_late_commits_refused: LateCommitRefused,
    model_catches_a_heard_commit_forgotten: HeardCommitForgotten,
    model_catches_lost_leases_for_free: LostLeaseFree,
    model_catches_possible_effects_retried: PossibleIsRetried,
    model_catches_an_epoch_ignored: EpochIgnored,
    model_catches_in_progress_answered_2xx: BusyIsAccepted,
    model_catches_in_progress_read_as_permanent: BusyIsPermanent,
    model_catches_an_outcome_that_is_not_told: OutcomeNotTold,
    model_catches_done_effects_in_dead_letters: NoSettle,
}

fn catch_in_the_sender(mutant: SenderMutant) {
    use SenderMutant as M;
    let bare = || sender(Unknown::Retry, Start::WithLease);
    let careful = |on_unknown| sender(on_unknown, Start::Fenced);
    let silent = SenderConfig { extras: vec![], ..sender(Unknown::DeadLetter, Start::WithLease) };
    let guards = WholeConfig { extras: vec![WholeExtra::Guards], ..whole() };
    let (config, property) = match mutant {
        M::NoFence => (bare(), Property::StaleChangesNothing),
        M::NumbersRestart => (careful(Unknown::DeadLetter), Property::NumberUnique),
        M::BlindExpire => (with(&[Extra::SlowReaper], &bare()), Property::LeaseRespected),
        M::TwoLeases => (bare(), Property::OneLiveLease),
        M::LeaseOverExpired => (silent, Property::AtMostOnce),
        M::ReleasesWhatWasSent => (SenderConfig { releases: 1, ..silent }, Property::AtMostOnce),
        M::ServerErrorMeansNothing | M::StartNotFenced => {
            (careful(Unknown::DeadLetter), Property::AtMostOnce)
        }
        M::AbsentBelievedAtOnce | M::LookUpJudgedWhenWritten => {
            (careful(Unknown::Reconcile), Property::AtMostOnce)
        }
        M::LookUpUnnamed => {
            let config = careful(Unknown::Reconcile);
            (SenderConfig { look_ups: LookUps::WrittenAgain, ..config }, Property::AtMostOnce)
        }
        M::ReplayWithoutGate => (careful(Unknown::DeadLetter), Property::ReplaySafe),
        M::ReplayUnnamed => {
            let allowance = Allowance { failures: 1, lost_leases: 1 };
            let config = SenderConfig { replays: 2, allowance, ..bare() };
            (with(&[Extra::RepeatedReplay], &config), Property::ReplayOnce)
        }
        M::GuardCancelsUnfenced => (with(&[Extra::Guards], &bare()), Property::StaleChangesNothing),
        M::RowsNotAsked => (with(&[Extra::Answers], &bare()), Property::SameAnswer),
        M::CancelAtOnce => (SenderConfig { cancels: 1, ..bare() }, Property::CancelIsTrue),
        M::LateCommitRefused => (bare(), Property::DeadLetterTrue),
        M::HeardCommitForgotten => (bare(), Property::NoNeedlessRun),
        M::LostLeaseFree => (bare(), Property::LostBudget),
        M::PossibleIsRetried => (careful(Unknown::DeadLetter), Property::PolicyHolds),
        M::EpochIgnored => {
            return catches(mutant.text(), &RestoreModel::mutated(mutant), Property::HolderCommits);
        }
        M::BusyIsAccepted | M::OutcomeNotTold => {
            return catches(mutant.text(), &WholeModel::mutated(guards, mutant), Property::CommittedIsTrue);
        }
        M::BusyIsPermanent => {
            return catches(mutant.text(), &WholeModel::mutated(whole(), mutant), Property::BusyIsNoFailure);
        }
        M::NoSettle => {
            return catches(mutant.text(), &WholeModel::mutated(whole(), mutant), Property::GoodEndReachable);
        }
    };
    catches(mutant.text(), &SenderModel::mutated(config, mutant), property);
}

faults! {
    model_catches_every_fault_of_the_ledger, LedgerMutant, catch_in_the_ledger,
    model_catches_a_done_entry_that_runs_again: RetakesOnTimeAlone,
    model_catches_a_retake_that_leaves_failed: RetakeLeavesFailed,
    model_catches_a_complete_without_fence: CompleteWithoutFence,
    model_catches_a_fail_without_fence: FailWithoutFence,
    model_catches_a_fail_by_fence_without_status: FailWithoutStatus,
    model_catches_a_takeover_that_keeps_the_fence: TakeoverKeepsFence,
    model_catches_an_early_takeover: EarlyTakeover,
    model_catches_an_effect_that_is_not_rolled_back: NoRollback,
    model_catches_a_reset_that_names_nothing: ResetUnnamed,
    model_catches_a_reset_that_names_no_status: ResetWithoutStatus,
    model_catches_a_reset_that_deletes: ResetDeletes,
    model_catches_fences_that_restart: FencesRestart,
    model_catches_a_claim_that_is_not_known_by_its_name: ClaimNameIgnored,
}

fn catch_in_the_ledger(mutant: LedgerMutant) {
    use LedgerMutant as M;
    let two = || ledger(Mode::InTwoTransactions, OnExpired::Retake);
    let extra = |extra| LedgerConfig { extras: vec![extra], ..two() };
    let early = LedgerConfig { retention: Retention::TooEarly, ..ledger(Mode::OverHttp, OnExpired::Retake) };
    let (config, property) = match mutant {
        M::RetakesOnTimeAlone => (two(), Property::DoneFinal),
        M::RetakeLeavesFailed | M::EarlyTakeover => (two(), Property::OneGrant),
        M::CompleteWithoutFence | M::FailWithoutFence | M::TakeoverKeepsFence => {
            (two(), Property::StaleChangesNothing)
        }
        M::FailWithoutStatus => (extra(LedgerExtra::DishonestFail), Property::EffectOnce),
        M::NoRollback => (two(), Property::EffectOnce),
        M::ResetUnnamed => (extra(LedgerExtra::Resets), Property::ResetOnce),
        M::ResetWithoutStatus => (extra(LedgerExtra::Resets), Property::EffectOnce),
        M::ResetDeletes => (extra(LedgerExtra::Resets), Property::StaleChangesNothing),
        M::FencesRestart => (early, Property::StaleChangesNothing),
        M::ClaimNameIgnored => (extra(LedgerExtra::LostClaims), Property::RepeatedClaimIsOwn),
    };
    catches(mutant.text(), &LedgerModel::mutated(config, mutant), property);
}

/// The effect itself doubles in the whole, not only the ledger's own promises.
#[test]
fn model_catches_ledger_faults_by_their_effects() {
    for mutant in [LedgerMutant::RetakesOnTimeAlone, LedgerMutant::NoRollback] {
        let model = WholeModel::mutated_ledger(whole(), mutant);
        catches(&format!("whole, {mutant}"), &model, Property::EffectOnce);
    }
}

/// Larger bounds, some minutes.
#[cfg(feature = "long-tests")]
mod long {
    use super::*;

    #[test]
    fn model_holds_on_the_real_core_for_every_answer_and_two_replays() {
        let more = |config| SenderConfig { replays: 2, releases: 1, cancels: 1, ..config };
        let allowance = Allowance { failures: 3, lost_leases: 3 };
        for start in STARTS {
            let five = SenderConfig { attempts: 5, allowance, ..more(sender(Unknown::DeadLetter, start)) };
            holds(&format!("sender, five attempts, DeadLetter, {start:?}"), &SenderModel::new(five));
            // Five would be twenty million states.
            let four = SenderConfig { attempts: 4, ..more(sender(Unknown::Reconcile, start)) };
            holds(&format!("sender, four attempts, Reconcile, {start:?}"), &SenderModel::new(four));
        }
    }

    #[test]
    fn model_holds_on_the_real_core_for_five_attempts_and_silence() {
        sender_holds("five attempts, silence", |config| SenderConfig {
            attempts: 5,
            allowance: Allowance { failures: 3, lost_leases: 3 },
            replays: 2,
            releases: 1,
            extras: vec![],
            ..config
        });
    }

    #[test]
    fn model_holds_on_the_real_core_for_everything_at_three_attempts() {
        use Extra::{Answers, BusyUnknown, Guards, SettledByHand, SlowReaper};
        let extras = [Guards, Answers, BusyUnknown, SettledByHand, SlowReaper];
        sender_holds("everything", |config| SenderConfig {
            cancels: 1,
            releases: 1,
            ..with(&extras, &config)
        });
        sender_holds("horizon, abandon, replay", |config| SenderConfig {
            abandons: 1,
            cancels: 1,
            ..with(&[Extra::Horizon], &config)
        });
    }

    #[test]
    fn model_holds_on_the_real_core_for_the_ledger_with_two_runs_each() {
        for (name, config) in ledgers_that_hold() {
            holds(
                &format!("ledger, {name}, two runs"),
                &LedgerModel::new(LedgerConfig { runs: 2, ..config }),
            );
        }
    }

    #[test]
    fn model_holds_on_the_real_core_for_sender_and_ledger_at_four_attempts() {
        whole_holds("four attempts", WholeConfig { attempts: 4, ..whole() });
        let allowance = Allowance { failures: 1, lost_leases: 1 };
        whole_holds("three replays", WholeConfig { attempts: 4, replays: 3, allowance, ..whole() });
    }

    #[test]
    fn model_holds_on_the_real_core_for_everything_of_the_whole() {
        whole_holds("proxy, all budgets", WholeConfig { extras: vec![WholeExtra::Proxy], ..whole() });
        let extras = vec![WholeExtra::Rejects, WholeExtra::Guards];
        whole_holds("cancel, reset, all ends", WholeConfig { cancels: 1, resets: 1, extras, ..whole() });
    }
}
