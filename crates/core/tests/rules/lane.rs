//! What a lane may do: pauses, circuits, rates. Rows B4, B6, B10, D4.

use posthaste_core::{
    Class, Classified, Command, Details, Disposition, DurationMs, Effect, Failure, JobId, Kind, Lane,
    LaneRules, Rate, Scheduling, Timestamp,
    lane::{Circuit, Hold, Sign, Turn, sign_of},
};

const RULES: LaneRules = LaneRules::STANDARD;
const NOW: Timestamp = Timestamp(1_800_000_000_000);
const UNTIL: Timestamp = Timestamp(NOW.0 + 30_000);

fn job(number: u128) -> JobId {
    JobId(number)
}

fn hold(at: Timestamp) -> Hold {
    Hold { at, reason: "the database is down".into(), by: "on-call".into() }
}

fn seconds(seconds: u64) -> Timestamp {
    NOW.after(DurationMs::from_secs(seconds))
}

/// A lane on which `signs` were seen at `at`, and what the last one turned.
fn after(lane: &Lane, signs: &[Sign], at: Timestamp) -> (Lane, Option<Turn>) {
    signs.iter().fold((lane.clone(), None), |(lane, _), sign| {
        lane.after_attempt(&RULES, job(1), *sign, at).unwrap_or((lane, None))
    })
}

fn opened() -> Lane {
    let (lane, turn) = after(&Lane::default(), &[Sign::Ill; 10], NOW);
    assert_eq!(Some(Turn::CircuitOpened { until: UNTIL, trips: 1 }), turn);
    lane
}

/// The lane after its probe, the attempt of `job(7)`, began at `at`.
fn probing(lane: &Lane, at: Timestamp) -> Lane {
    lane.after_lease(None, &[job(7)], at.after(DurationMs::from_secs(30)), at).unwrap()
}

#[test]
fn r_d4_ten_failures_in_a_row_open_the_circuit_and_a_success_in_between_does_not() {
    let (lane, turn) = after(&Lane::default(), &[Sign::Ill; 9], NOW);
    assert_eq!((Circuit::Closed, None), (lane.circuit, turn));
    let (well, _) = after(&lane, &[Sign::Well], NOW);
    assert_eq!(Lane::default(), well, "a success forgets them");
    let (answers, _) = after(&lane, &[Sign::Answers], NOW);
    assert_eq!(0, answers.health.failures, "a receiver that says no works");
    assert_eq!(Some(NOW), answers.health.failing_since, "but that is no success");
    assert_eq!(None, lane.after_attempt(&RULES, job(1), Sign::Nothing, NOW));
    let lane = opened();
    assert_eq!(Circuit::Open { since: NOW, until: UNTIL }, lane.circuit);
    assert!(lane.is_held() && !lane.needs_a_person());
}

#[test]
fn r_b4_five_refusals_in_a_row_open_the_circuit() {
    let (lane, turn) = after(&Lane::default(), &[Sign::Refuses; 4], NOW);
    assert_eq!(None, turn);
    let (mixed, turn) = after(&lane, &[Sign::Ill, Sign::Refuses], NOW);
    assert_eq!((None, 1), (turn, mixed.health.refusals), "in a row");
    let (_, turn) = after(&lane, &[Sign::Refuses], NOW);
    assert!(matches!(turn, Some(Turn::CircuitOpened { trips: 1, .. })));
}

#[test]
fn r_d4_an_open_circuit_lets_one_probe_through_after_its_time() {
    let lane = opened();
    assert_eq!(0, lane.admits(None, 10, Timestamp(UNTIL.0 - 1)));
    assert_eq!(1, lane.admits(None, 10, UNTIL));
    assert_eq!(Some(UNTIL), lane.opens_at());
    let lane = probing(&lane, UNTIL);
    assert_eq!(0, lane.admits(None, 10, UNTIL), "exactly one");
    // What began before the circuit opened says nothing about the probe.
    for sign in [Sign::Ill, Sign::Refuses, Sign::Answers, Sign::Nothing] {
        let (other, turn) = after(&lane, &[sign], UNTIL);
        assert_eq!((lane.circuit, None), (other.circuit, turn), "{sign:?}");
    }
    // A probe that nobody ever reports is over with its lease.
    assert_eq!(1, lane.admits(None, 10, UNTIL.after(DurationMs::from_secs(30))));
}

#[test]
fn r_d4_a_probe_that_fails_holds_for_longer_and_one_that_succeeds_closes() {
    let mut lane = opened();
    let mut at = UNTIL;
    let mut holds = Vec::new();
    for trips in 2..=8 {
        lane = probing(&lane, at);
        let (next, turn) = lane.after_attempt(&RULES, job(7), Sign::Ill, at).unwrap();
        let Some(Turn::CircuitOpened { until, trips: told }) = turn else { panic!("{turn:?}") };
        assert_eq!(trips, told);
        holds.push(until.since(at).0 / 1_000);
        (lane, at) = (next, until);
    }
    assert_eq!(vec![60, 120, 240, 480, 900, 900, 900], holds);
    for sign in [Sign::Well, Sign::Answers] {
        let (closed, turn) = probing(&lane, at).after_attempt(&RULES, job(7), sign, at).unwrap();
        assert_eq!((Circuit::Closed, Some(Turn::CircuitClosed)), (closed.circuit, turn), "{sign:?}");
        assert_eq!((0, None), (closed.health.trips, closed.held_since));
        assert_eq!(at.since(NOW).0, closed.held_ms, "all of it was held time");
    }
}

#[test]
fn r_d4_a_probe_without_a_word_makes_room_for_the_next() {
    let lane = probing(&opened(), UNTIL);
    let (lane, turn) = lane.after_attempt(&RULES, job(7), Sign::Nothing, seconds(35)).unwrap();
    assert_eq!(Some(Turn::ProbeLost), turn);
    assert_eq!(1, lane.admits(None, 10, seconds(35)));
    assert_eq!(1, lane.health.trips, "it counts as neither");
}

#[test]
fn r_d4_a_late_success_closes_an_open_circuit() {
    let (lane, turn) = after(&opened(), &[Sign::Well], seconds(1));
    assert_eq!((Circuit::Closed, Some(Turn::CircuitClosed)), (lane.circuit, turn));
}

#[test]
fn r_d4_days_of_failures_without_a_success_disable_the_endpoint() {
    let fail = |lane: &Lane, at| after(lane, &[Sign::Ill], at);
    let (lane, _) = after(&Lane::default(), &[Sign::Ill; 9], NOW);
    let (early, turn) = fail(&lane, Timestamp(NOW.0 + 432_000_000 - 1));
    assert!(early.disabled.is_none() && matches!(turn, Some(Turn::CircuitOpened { .. })));
    let (disabled, turn) = fail(&lane, Timestamp(NOW.0 + 432_000_000));
    assert_eq!(Some(Turn::Disabled), turn);
    let hold = disabled.disabled.clone().unwrap();
    assert!(hold.reason.contains("no success") && &*hold.by == "posthaste", "{hold:?}");
    assert_eq!((None, 0), (disabled.opens_at(), disabled.admits(None, 1, Timestamp(i64::MAX))));
    // Two failures a week apart are no sustained failure.
    let (once, _) = fail(&Lane::default(), NOW);
    let (twice, _) = fail(&once, seconds(700_000));
    assert_eq!(None, twice.disabled);
    // A third one is, however far the circuit is from opening.
    let rules = LaneRules { failures_to_open: 1_000, ..RULES };
    let (thrice, turn) = twice.after_attempt(&rules, job(1), Sign::Ill, seconds(700_001)).unwrap();
    assert!(thrice.disabled.is_some() && turn == Some(Turn::Disabled));
    let enabled = disabled.enabled(seconds(500_000)).unwrap();
    assert_eq!(
        (None, Circuit::Closed, 0),
        (enabled.disabled.as_ref(), enabled.circuit, enabled.health.failures)
    );
    assert_eq!(None, enabled.enabled(seconds(500_000)), "again changes nothing");
    let asked = Lane { not_before: seconds(86_400), ..Lane::default() };
    assert_eq!(Some(Timestamp(0)), asked.enabled(NOW).unwrap().opens_at(), "it goes on at once");
}

#[test]
fn r_d4_gone_disables_at_once_and_once() {
    let (lane, turn) = after(&Lane::default(), &[Sign::Gone], NOW);
    assert_eq!(Some(Turn::Disabled), turn);
    assert_eq!(None, lane.after_attempt(&RULES, job(2), Sign::Gone, seconds(1)), "who was first stays");
    assert_eq!(None, lane.disabled(hold(NOW), NOW));
    assert!(Lane::default().disabled(hold(NOW), NOW).unwrap().is_held());
}

#[test]
fn r_b10_a_pause_holds_until_one_resume_and_the_first_reason_stays() {
    let lane = Lane::default();
    assert_eq!(None, lane.resumed(NOW));
    let paused = lane.paused(hold(NOW), NOW).unwrap();
    assert_eq!(None, paused.paused(hold(seconds(1)), seconds(1)));
    assert_eq!((None, 0), (paused.opens_at(), paused.admits(None, 5, seconds(99))));
    let resumed = paused.resumed(seconds(60)).unwrap();
    assert_eq!(5, resumed.admits(None, 5, seconds(60)));
    assert_eq!((60_000, None), (resumed.held_ms, resumed.held_since));
}

#[test]
fn r_b6_held_time_is_counted_once_whatever_holds() {
    let lane = opened().paused(hold(seconds(10)), seconds(10)).unwrap();
    assert_eq!(25_000, lane.held_total_ms(seconds(25)), "the hold that goes on counts");
    let (lane, turn) = after(&lane, &[Sign::Well], seconds(40));
    assert_eq!(Some(Turn::CircuitClosed), turn);
    assert_eq!(50_000, lane.held_total_ms(seconds(50)), "the pause goes on");
    let lane = lane.resumed(seconds(60)).unwrap();
    assert_eq!(60_000, lane.held_total_ms(seconds(600)));
    let off = lane.switched(true, seconds(700)).unwrap();
    assert_eq!(None, off.switched(true, seconds(701)));
    assert_eq!(65_000, off.held_total_ms(seconds(705)));
    assert_eq!(65_000, off.switched(false, seconds(705)).unwrap().held_ms);
    let deleted = off.deleted(seconds(710)).unwrap();
    assert_eq!((70_000, Some(Timestamp(0))), (deleted.held_ms, deleted.opens_at()));
    assert_eq!(None, Lane::default().deleted(NOW));
}

#[test]
fn r_d4_a_pause_is_no_sustained_failure() {
    let (lane, _) = after(&Lane::default(), &[Sign::Ill; 9], NOW);
    let resumed = lane.paused(hold(NOW), NOW).unwrap().resumed(seconds(600_000)).unwrap();
    let (lane, turn) = after(&resumed, &[Sign::Ill], seconds(600_001));
    assert!(lane.disabled.is_none(), "{turn:?}");
}

#[test]
fn r_d4_a_rate_is_never_exceeded_in_any_second() {
    for (attempts, per_s) in [(1, 1), (3, 1), (50, 1), (600, 60), (1_000, 1), (7_000, 1)] {
        let rate = Rate::new(attempts, DurationMs::from_secs(per_s)).unwrap();
        let mut lane = Lane::default();
        let mut begun: Vec<Timestamp> = Vec::new();
        for ms in 0..5_000 {
            let now = Timestamp(NOW.0 + ms);
            let free = lane.admits(Some(rate), 10_000, now);
            let jobs: Vec<JobId> = (0..free as u128).map(job).collect();
            lane = lane.after_lease(Some(rate), &jobs, now, now).unwrap_or(lane);
            begun.extend(jobs.iter().map(|_| now));
            if free == 0 {
                let next_at = lane.next_at(Some(rate)).unwrap();
                assert!(next_at > now, "somebody would ask for nothing again and again");
                assert_eq!(0, lane.admits(Some(rate), 1, Timestamp(next_at.0 - 1)), "nor is it too late");
                assert_eq!(1, lane.admits(Some(rate), 1, next_at));
            }
        }
        let allowed = usize::try_from(attempts).unwrap();
        let per_ms = i64::try_from(per_s).unwrap() * 1_000;
        let burst = (allowed * 1_000 / usize::try_from(per_ms).unwrap() / 10).max(1);
        for (at, first) in begun.iter().enumerate() {
            let within = begun[at..].iter().take_while(|later| later.0 < first.0 + per_ms).count();
            assert!(within <= allowed + burst, "{attempts}/{per_s}s: {within}");
        }
        let owed = allowed * 5 / usize::try_from(per_s).unwrap();
        assert!(begun.len() >= owed * 95 / 100, "{attempts}/{per_s}s: {} of {owed}", begun.len());
    }
    for (attempts, per) in [(0, 1_000), (1, 0), (1_001, 1), (1, 86_400_001)] {
        assert_eq!(None, Rate::new(attempts, DurationMs(per)), "{attempts} in {per} ms");
    }
}

#[test]
fn r_b5_a_receivers_word_holds_and_is_no_held_time() {
    let lane = Lane { not_before: seconds(10), ..Lane::default() };
    assert_eq!((0, 1), (lane.admits(None, 1, seconds(9)), lane.admits(None, 1, seconds(10))));
    assert!(!lane.is_held());
    let lane = Lane { not_before: seconds(100), ..opened() };
    assert_eq!(Some(seconds(100)), lane.opens_at(), "the later of the two");
}

#[test]
fn r_b10_paused_scheduling_lets_go_on_what_was_due_before() {
    let scheduling = Scheduling::default();
    assert_eq!(NOW, scheduling.fresh_until(NOW));
    assert_eq!(None, scheduling.resumed(NOW));
    let paused = scheduling.paused(hold(NOW)).unwrap();
    assert_eq!(None, paused.paused(hold(NOW)));
    assert_eq!(Timestamp(NOW.0 - 1), paused.fresh_until(seconds(9)));
    assert_eq!(9_000, paused.held_total_ms(seconds(9)));
    let resumed = paused.resumed(seconds(10)).unwrap();
    assert_eq!((10_000, seconds(11)), (resumed.held_total_ms(seconds(99)), resumed.fresh_until(seconds(11))));
}

#[test]
fn r_b4_what_an_attempts_end_says_of_its_receiver() {
    let fence =
        posthaste_core::Fence { epoch: posthaste_core::Epoch(1), attempt: posthaste_core::Attempt::FIRST };
    let fail = |disposition| Command::Fail {
        fence,
        failure: Failure::classified(
            Classified { class: Class::ServerError, effect: Effect::None, disposition },
            None,
        ),
        details: Details::default(),
    };
    let cases = [
        (Disposition::Retry, Sign::Ill),
        (Disposition::InProgress, Sign::Answers),
        (Disposition::PermanentMessage, Sign::Answers),
        (Disposition::PermanentDestination, Sign::Refuses),
        (Disposition::Gone, Sign::Gone),
    ];
    for (disposition, sign) in cases {
        assert_eq!(Some(sign), sign_of(&fail(disposition), Kind::Push), "{disposition}");
        assert_eq!(None, sign_of(&fail(disposition), Kind::Pull), "a worker's failure is its own");
    }
    for ends in [Command::Release { fence }, Command::Expire, Command::Cancel { reason: "x".into() }] {
        assert_eq!(Some(Sign::Nothing), sign_of(&ends, Kind::Push));
    }
    assert_eq!(None, sign_of(&Command::Start { fence }, Kind::Push));
}
