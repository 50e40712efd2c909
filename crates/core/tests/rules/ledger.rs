//! The receiver's ledger, and the faults that people copy: each check must catch the statement that has it.
//! Rows C1 to C5, and faults 1 to 3 of REQUIREMENTS.md.

use crate::common::walk::Random;
use posthaste_core::{
    DurationMs, Path, Timestamp,
    ledger::{
        Admission, Claim, Entry, OnExpired, Outcome, Previous, Report, Seen, Status, admit, complete, extend,
        fail, reset,
    },
};

const LEASE: DurationMs = DurationMs::from_secs(30);
const T0: Timestamp = crate::common::T0;

/// The statements of a ledger; a fault is another one in its place.
#[derive(Clone, Copy)]
struct Rules {
    admit: fn(Option<&Entry>, &Claim, Timestamp) -> Admission,
    complete: fn(Option<&Entry>, u64, Outcome) -> Report,
    fail: fn(Option<&Entry>, u64) -> Report,
    extend: fn(Option<&Entry>, u64, DurationMs, Timestamp) -> Report,
    reset: fn(Option<&Entry>, Seen) -> Report,
}

const OURS: Rules = Rules { admit, complete, fail, extend, reset };

fn claim() -> Claim {
    Claim { lease: LEASE, fingerprint: None, claim_id: None, on_expired: OnExpired::Retake, first_fence: 1 }
}

/// A grant as its holder knows it.
#[derive(Clone, Copy)]
struct Grant {
    fence: u64,
    until: Timestamp,
    /// Completed, failed, reset or taken over.
    over: bool,
}

/// One key, everybody who was ever granted it, and the first rule that was broken.
struct Key {
    rules: Rules,
    entry: Option<Entry>,
    grants: Vec<Grant>,
    done: Option<Outcome>,
    highest: u64,
    now: Timestamp,
}

type Checked = Result<(), String>;

impl Key {
    fn new(rules: Rules) -> Self {
        Self { rules, entry: None, grants: Vec::new(), done: None, highest: 0, now: T0 }
    }

    fn claim(&mut self, claim: &Claim) -> Checked {
        let before = self.entry.clone();
        match (self.rules.admit)(self.entry.as_ref(), claim, self.now) {
            Admission::Granted(entry) => self.granted(entry),
            Admission::Repeated(entry) => {
                let same = claim.claim_id.is_some() && Some(&entry) == before.as_ref();
                if same { Ok(()) } else { Err("another's grant was repeated".into()) }
            }
            Admission::DuplicateDone(outcome) if self.done == Some(outcome) => Ok(()),
            Admission::DuplicateDone(_) => Err("told done, and it is not".into()),
            Admission::InProgressElsewhere { .. } | Admission::KeyReused => Ok(()),
        }
    }

    fn granted(&mut self, entry: Entry) -> Checked {
        if self.done.is_some() {
            return Err("a done entry was granted again".into());
        }
        if self.grants.iter().any(|grant| !grant.over && self.now < grant.until) {
            return Err("two grants are in force".into());
        }
        if entry.fence <= self.highest {
            return Err("a fence did not grow".into());
        }
        self.highest = entry.fence;
        self.grants.iter_mut().for_each(|grant| grant.over = true);
        self.grants.push(Grant { fence: entry.fence, until: entry.locked_until, over: false });
        self.entry = Some(entry);
        Ok(())
    }

    /// The last grant may report, until it is over; a complete also after its own fail.
    fn complete(&mut self, fence: u64, outcome: Outcome) -> Checked {
        match (self.rules.complete)(self.entry.as_ref(), fence, outcome) {
            Report::Write(entry) => {
                if self.done.is_some() {
                    return Err("a done entry was written".into());
                }
                if fence != self.highest {
                    return Err("a stale worker completed".into());
                }
                self.done = Some(outcome);
                self.over(entry)
            }
            Report::Recorded if self.done == Some(outcome) && fence == self.highest => Ok(()),
            Report::Recorded => Err("yes was said of what is not recorded".into()),
            Report::Stale => Ok(()),
        }
    }

    fn fail(&mut self, fence: u64) -> Checked {
        match (self.rules.fail)(self.entry.as_ref(), fence) {
            Report::Write(entry) => {
                if self.done.is_some() {
                    return Err("a done entry was reopened".into());
                }
                if fence != self.highest {
                    return Err("a stale worker failed another's grant".into());
                }
                self.over(entry)
            }
            Report::Recorded | Report::Stale => Ok(()),
        }
    }

    fn over(&mut self, entry: Entry) -> Checked {
        if entry.fence != self.highest {
            return Err("a report changed the fence".into());
        }
        self.grants.iter_mut().for_each(|grant| grant.over = true);
        self.entry = Some(entry);
        Ok(())
    }

    fn extend(&mut self, fence: u64) -> Checked {
        if let Report::Write(entry) = (self.rules.extend)(self.entry.as_ref(), fence, LEASE, self.now) {
            let grant = self.grants.iter_mut().find(|grant| grant.fence == fence && !grant.over);
            match grant {
                Some(grant) if self.now < grant.until => grant.until = entry.locked_until,
                Some(_) | None => return Err("a grant that was over was revived".into()),
            }
            self.entry = Some(entry);
        }
        Ok(())
    }

    fn reset(&mut self, seen: Seen) -> Checked {
        if let Report::Write(entry) = (self.rules.reset)(self.entry.as_ref(), seen) {
            let saw = self.entry.as_ref().map(|entry| (entry.fence, entry.status));
            if saw != Some((seen.fence, seen.status)) {
                return Err("a reset of what its asker did not see".into());
            }
            if entry.fence <= self.highest {
                return Err("a fence did not grow".into());
            }
            self.highest = entry.fence;
            self.done = None;
            self.grants.iter_mut().for_each(|grant| grant.over = true);
            self.entry = Some(entry);
        }
        Ok(())
    }

    fn step(&mut self, random: &mut Random) -> Checked {
        let fence = 1 + random.below(self.highest + 1);
        match random.below(10) {
            0..=2 => self.claim(&claim()),
            3 => {
                let claim_id = Some(random.one_of(&["a", "b"]).into());
                let on_expired = random.one_of(OnExpired::ALL);
                self.claim(&Claim { claim_id, on_expired, ..claim() })
            }
            4 => self.complete(fence, random.one_of(Outcome::ALL)),
            5 => self.fail(fence),
            6 => self.extend(fence),
            7 if random.chance(20) => self.reset(Seen { fence, status: random.one_of(Status::ALL) }),
            _ => {
                self.now = self.now.after(DurationMs(random.below(20_000)));
                Ok(())
            }
        }
    }
}

/// Random walks until a rule is broken. Says with which seed.
fn check(rules: Rules) -> Checked {
    for seed in 0..2_000 {
        let mut random = Random(seed);
        let mut key = Key::new(rules);
        for _ in 0..60 {
            key.step(&mut random).map_err(|broken| format!("{broken} (seed {seed})"))?;
        }
    }
    Ok(())
}

#[track_caller]
fn caught(rules: Rules, breaks: &str) {
    let broken = check(rules).expect_err("the fault went through");
    assert!(broken.starts_with(breaks), "{broken}");
}

#[test]
fn r_c3_at_most_one_grant_is_in_force_done_is_final_and_fences_only_grow() {
    check(OURS).unwrap();
}

/// What a claim gets where the entry can be retaken, with something changed.
fn retaken(entry: &Entry, claim: &Claim, now: Timestamp, change: fn(Entry, &Entry) -> Entry) -> Admission {
    match admit(Some(entry), claim, now) {
        Admission::Granted(granted) => Admission::Granted(change(granted, entry)),
        other => other,
    }
}

#[test]
fn fault_1_a_retake_on_the_lease_alone_reruns_done_keys_and_is_caught() {
    let on_lease_alone = |entry: Option<&Entry>, claim: &Claim, now: Timestamp| match entry {
        Some(entry) if entry.status == Status::Done && entry.locked_until < now => {
            admit(Some(&Entry { status: Status::InProgress, ..entry.clone() }), claim, now)
        }
        entry => admit(entry, claim, now),
    };
    caught(Rules { admit: on_lease_alone, ..OURS }, "a done entry was granted again");
}

#[test]
fn fault_2_a_retake_that_leaves_failed_lets_two_run_and_is_caught() {
    let leaves_failed = |entry: Option<&Entry>, claim: &Claim, now: Timestamp| match entry {
        Some(entry) => retaken(entry, claim, now, |granted, entry| Entry { status: entry.status, ..granted }),
        None => admit(None, claim, now),
    };
    caught(Rules { admit: leaves_failed, ..OURS }, "two grants are in force");
}

#[test]
fn fault_3_a_completion_without_a_fence_lets_a_stale_worker_write_and_is_caught() {
    let by_key = |entry: Option<&Entry>, _: u64, outcome| {
        complete(entry, entry.map_or(0, |entry| entry.fence), outcome)
    };
    caught(Rules { complete: by_key, ..OURS }, "a stale worker completed");
    let fail_by_key = |entry: Option<&Entry>, _: u64| fail(entry, entry.map_or(0, |entry| entry.fence));
    caught(Rules { fail: fail_by_key, ..OURS }, "a stale worker failed another's grant");
    let by_status = |entry: Option<&Entry>, fence, outcome| match entry {
        Some(entry) if entry.status == Status::InProgress => complete(Some(entry), entry.fence, outcome),
        entry => complete(entry, fence, outcome),
    };
    caught(Rules { complete: by_status, ..OURS }, "a stale worker completed");
}

#[test]
fn r_c3_a_completion_or_failure_that_forgets_the_status_is_caught() {
    let over_done = |entry: Option<&Entry>, fence, outcome| match entry {
        Some(entry) if entry.fence == fence => {
            Report::Write(Entry { status: Status::Done, outcome: Some(outcome), ..entry.clone() })
        }
        _ => Report::Stale,
    };
    caught(Rules { complete: over_done, ..OURS }, "a done entry was written");
    let reopens = |entry: Option<&Entry>, fence| match entry {
        Some(entry) if entry.fence == fence => {
            Report::Write(Entry { status: Status::Failed, ..entry.clone() })
        }
        _ => Report::Stale,
    };
    caught(Rules { fail: reopens, ..OURS }, "a done entry was reopened");
}

#[test]
fn r_c3_a_takeover_too_early_or_under_the_old_fence_is_caught() {
    let early = |entry: Option<&Entry>, claim: &Claim, now: Timestamp| {
        admit(entry, claim, now.after(DurationMs(9_000)))
    };
    caught(Rules { admit: early, ..OURS }, "two grants are in force");
    let keeps_fence = |entry: Option<&Entry>, claim: &Claim, now: Timestamp| match entry {
        Some(entry) => retaken(entry, claim, now, |granted, entry| Entry { fence: entry.fence, ..granted }),
        None => admit(None, claim, now),
    };
    caught(Rules { admit: keeps_fence, ..OURS }, "a fence did not grow");
    let anybodys = |entry: Option<&Entry>, claim: &Claim, now| match entry {
        Some(entry) if entry.status == Status::InProgress => Admission::Repeated(entry.clone()),
        entry => admit(entry, claim, now),
    };
    caught(Rules { admit: anybodys, ..OURS }, "another's grant was repeated");
}

#[test]
fn r_c9_a_reset_that_restarts_the_fence_or_names_too_little_is_caught() {
    let restarts = |entry: Option<&Entry>, seen| match reset(entry, seen) {
        Report::Write(entry) => Report::Write(Entry { fence: 1, ..entry }),
        other => other,
    };
    caught(Rules { reset: restarts, ..OURS }, "a fence did not grow");
    let keeps = |entry: Option<&Entry>, seen: Seen| match reset(entry, seen) {
        Report::Write(entry) => Report::Write(Entry { fence: seen.fence, ..entry }),
        other => other,
    };
    caught(Rules { reset: keeps, ..OURS }, "a fence did not grow");
    let names_fence_alone = |entry: Option<&Entry>, seen: Seen| {
        let status = entry.map_or(seen.status, |entry| entry.status);
        reset(entry, Seen { status, ..seen })
    };
    caught(Rules { reset: names_fence_alone, ..OURS }, "a reset of what its asker did not see");
}

#[test]
fn r_c3_an_extend_that_revives_is_caught() {
    let revives = |entry: Option<&Entry>, fence, lease, now: Timestamp| match entry {
        Some(entry) if entry.fence == fence => extend(
            Some(&Entry { locked_until: now.after(DurationMs(1)), ..entry.clone() }),
            fence,
            lease,
            now,
        ),
        entry => extend(entry, fence, lease, now),
    };
    caught(Rules { extend: revives, ..OURS }, "a grant that was over was revived");
}

/// The entry after a first grant at [`T0`].
fn first(claim: &Claim) -> Entry {
    match admit(None, claim, T0) {
        Admission::Granted(entry) => entry,
        other => panic!("{other:?}"),
    }
}

fn written(report: Report) -> Entry {
    match report {
        Report::Write(entry) => entry,
        other => panic!("{other:?}"),
    }
}

#[test]
fn r_c1_a_new_key_is_a_first_run() {
    let claim =
        Claim { fingerprint: Some([1].into()), claim_id: Some("c".into()), first_fence: 40, ..claim() };
    let expected = Entry {
        status: Status::InProgress,
        fence: 40,
        attempts: 1,
        locked_until: T0.after(LEASE),
        fingerprint: claim.fingerprint.clone(),
        claim_id: claim.claim_id.clone(),
        path: Path::FirstRun,
        previous: Previous::None,
        on_expired: OnExpired::Retake,
        outcome: None,
    };
    assert_eq!(expected, first(&claim));
}

#[test]
fn r_c1_after_a_fail_or_an_expiry_the_grant_says_what_it_follows() {
    let entry = first(&claim());
    let failed = written(fail(Some(&entry), entry.fence));
    assert_eq!(Entry { status: Status::Failed, ..entry.clone() }, failed);
    let expired_at = T0.after(LEASE);
    for (entry, now, previous) in [(failed, T0, Previous::Failed), (entry, expired_at, Previous::Expired)] {
        let Admission::Granted(again) = admit(Some(&entry), &claim(), now) else { panic!("not granted") };
        assert_eq!((Path::RetryAfterFailure, previous), (again.path, again.previous));
        assert_eq!((2, 2, Status::InProgress), (again.fence, again.attempts, again.status));
        assert_eq!(now.after(LEASE), again.locked_until);
    }
}

#[test]
fn r_c1_a_running_grant_is_in_progress_elsewhere_until_its_end() {
    let entry = first(&claim());
    let expires_at = T0.after(LEASE);
    let elsewhere = Admission::InProgressElsewhere { locked_until: Some(expires_at) };
    assert_eq!(elsewhere, admit(Some(&entry), &claim(), Timestamp(expires_at.0 - 1)));
    assert!(matches!(admit(Some(&entry), &claim(), expires_at), Admission::Granted(_)));
}

#[test]
fn r_c5_a_done_key_says_how_it_was_done_however_old_its_lease() {
    let entry = first(&claim());
    for outcome in [Outcome::Committed, Outcome::Cancelled] {
        let done = written(complete(Some(&entry), entry.fence, outcome));
        assert_eq!(Entry { status: Status::Done, outcome: Some(outcome), ..entry.clone() }, done);
        for now in [T0, Timestamp(i64::MAX)] {
            assert_eq!(Admission::DuplicateDone(outcome), admit(Some(&done), &claim(), now));
        }
        // The same again is yes; the contrary is not, nor a fail.
        assert_eq!(Report::Recorded, complete(Some(&done), entry.fence, outcome));
        let other = if outcome == Outcome::Committed { Outcome::Cancelled } else { Outcome::Committed };
        assert_eq!(Report::Stale, complete(Some(&done), entry.fence, other));
        assert_eq!(Report::Stale, fail(Some(&done), entry.fence));
        assert_eq!(Report::Stale, extend(Some(&done), entry.fence, LEASE, T0));
    }
    // A team's older table may not say how.
    let adopted = Entry { status: Status::Done, outcome: None, ..entry };
    assert_eq!(Admission::DuplicateDone(Outcome::Committed), admit(Some(&adopted), &claim(), T0));
}

#[test]
fn r_c3_a_complete_counts_after_the_lease_and_after_its_own_fail() {
    let entry = first(&claim());
    let failed = written(fail(Some(&entry), entry.fence));
    assert_eq!(Report::Recorded, fail(Some(&failed), entry.fence));
    assert_eq!(Status::Done, written(complete(Some(&failed), entry.fence, Outcome::Committed)).status);
    assert_eq!(Report::Stale, extend(Some(&failed), entry.fence, LEASE, T0));
}

#[test]
fn r_c3_reports_of_no_entry_or_another_fence_are_stale() {
    let entry = first(&claim());
    for (entry, fence) in [(None, 1), (Some(&entry), 2), (Some(&entry), 0)] {
        assert_eq!(Report::Stale, complete(entry, fence, Outcome::Committed));
        assert_eq!(Report::Stale, fail(entry, fence));
        assert_eq!(Report::Stale, extend(entry, fence, LEASE, T0));
        assert_eq!(Report::Stale, reset(entry, Seen { fence, status: Status::InProgress }));
    }
}

#[test]
fn r_c3_an_extend_counts_from_now_and_not_beyond_the_lease() {
    let entry = first(&claim());
    let now = Timestamp(T0.after(LEASE).0 - 1);
    assert_eq!(now.after(LEASE), written(extend(Some(&entry), 1, LEASE, now)).locked_until);
    assert_eq!(Report::Stale, extend(Some(&entry), 1, LEASE, T0.after(LEASE)));
}

#[test]
fn r_a10_another_fingerprint_is_key_reused_and_none_is_no_contradiction() {
    let with = |bytes: &[u8]| Claim { fingerprint: Some(bytes.into()), ..claim() };
    let entry = first(&with(b"x"));
    let done = written(complete(Some(&entry), entry.fence, Outcome::Committed));
    let failed = written(fail(Some(&entry), entry.fence));
    for entry in [&entry, &done, &failed] {
        assert_eq!(Admission::KeyReused, admit(Some(entry), &with(b"y"), T0.after(LEASE)));
        assert_ne!(Admission::KeyReused, admit(Some(entry), &with(b"x"), T0));
        assert_ne!(Admission::KeyReused, admit(Some(entry), &claim(), T0));
    }
    // The first that says it fixes it; a later claim without one doesn't forget it.
    let silent = written(fail(Some(&first(&claim())), 1));
    let Admission::Granted(fixed) = admit(Some(&silent), &with(b"z"), T0) else { panic!() };
    assert_eq!(Some(b"z".as_slice()), fixed.fingerprint.as_deref());
    let failed = written(fail(Some(&fixed), 2));
    let Admission::Granted(kept) = admit(Some(&failed), &claim(), T0) else { panic!() };
    assert_eq!(Some(b"z".as_slice()), kept.fingerprint.as_deref());
}

#[test]
fn r_c1_a_repeated_request_gets_its_own_grant_and_nobody_elses() {
    let with = |id: &str, on_expired| Claim { claim_id: Some(id.into()), on_expired, ..claim() };
    let entry = first(&with("a", OnExpired::Retake));
    assert_eq!(Admission::Repeated(entry.clone()), admit(Some(&entry), &with("a", OnExpired::Retake), T0));
    for other in [with("b", OnExpired::Retake), claim()] {
        assert!(matches!(admit(Some(&entry), &other, T0), Admission::InProgressElsewhere { .. }));
    }
    // Its grant ran out: a new one. Without a claim id there is nothing to repeat.
    let later = T0.after(LEASE);
    assert!(matches!(admit(Some(&entry), &with("a", OnExpired::Retake), later), Admission::Granted(_)));
    let nameless = first(&claim());
    assert!(matches!(admit(Some(&nameless), &claim(), T0), Admission::InProgressElsewhere { .. }));
}

#[test]
fn r_c10_a_held_key_is_not_taken_over_but_its_own_claim_is_repeated() {
    let holding = Claim { claim_id: Some("a".into()), on_expired: OnExpired::Hold, ..claim() };
    let entry = first(&holding);
    let later = T0.after(LEASE);
    let held = Admission::InProgressElsewhere { locked_until: None };
    assert_eq!(held, admit(Some(&entry), &claim(), later));
    assert_eq!(Admission::Repeated(entry.clone()), admit(Some(&entry), &holding, later));
    // A person ends it.
    let seen = Seen { fence: 1, status: Status::InProgress };
    let freed = written(reset(Some(&entry), seen));
    let expected = Entry { status: Status::Failed, fence: 2, claim_id: None, outcome: None, ..entry.clone() };
    assert_eq!(expected, freed);
    assert_eq!(Report::Stale, complete(Some(&freed), 1, Outcome::Committed), "the old worker stays fenced");
    let Admission::Granted(again) = admit(Some(&freed), &holding, later) else { panic!() };
    assert_eq!((3, OnExpired::Hold), (again.fence, again.on_expired));
}

#[test]
fn r_c9_a_reset_of_a_done_key_forgets_how_it_was_done() {
    let done = written(complete(Some(&first(&claim())), 1, Outcome::Cancelled));
    let reopened = written(reset(Some(&done), Seen { fence: 1, status: Status::Done }));
    assert_eq!((Status::Failed, 2, None), (reopened.status, reopened.fence, reopened.outcome));
    assert_eq!(Report::Stale, reset(Some(&done), Seen { fence: 1, status: Status::InProgress }));
}

#[test]
fn r_c3_at_the_last_fence_nothing_is_granted_any_more() {
    let last = Entry { fence: u64::MAX, status: Status::Failed, attempts: u32::MAX, ..first(&claim()) };
    assert_eq!(Admission::InProgressElsewhere { locked_until: None }, admit(Some(&last), &claim(), T0));
    assert_eq!(Report::Stale, reset(Some(&last), Seen { fence: u64::MAX, status: Status::Failed }));
    let before = Entry { fence: u64::MAX - 1, ..last };
    let Admission::Granted(entry) = admit(Some(&before), &claim(), T0) else { panic!() };
    assert_eq!((u64::MAX, u32::MAX), (entry.fence, entry.attempts));
}
