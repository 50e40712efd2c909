//! Random walks: any command at any time, with fences old and new.

use std::fmt::Debug;

use posthaste_core::{
    Answer, Attempt, Cause, Class, Command, DurationMs, Effect, Entry, Epoch, Evidence, Failure, Fence,
    FinishOutcome, Job, LookUpVerdict, Nature, NextStep, OnUnknown, Refusal, RetryWish, Start, State,
    StateName, Timestamp, Verdict,
};

use super::{DEADLINE, LEASE, RECONCILE, World, lease_command};

/// SplitMix64: equal seeds give equal walks.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }

    pub(crate) fn one_of<T: Copy>(&mut self, values: &[T]) -> T {
        values[usize::try_from(self.below(values.len() as u64)).unwrap()]
    }

    pub(crate) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}

/// One job's walk, checked at each step.
pub(crate) struct Walk {
    pub(crate) world: World,
    pub(crate) random: Random,
}

impl Walk {
    pub(crate) fn new(seed: u64) -> Self {
        let mut random = Random(seed);
        let mut world =
            World::on_unknown(random.one_of(&[OnUnknown::Retry, RECONCILE, OnUnknown::DeadLetter]));
        world.policy.idempotent = random.chance(50);
        world.policy.failures_max = random.one_of(&[1, 3, 10]);
        world.policy.lost_leases_max = random.one_of(&[1, 2, 5]);
        world.starts = random.one_of(&[Start::WithLease, Start::Fenced]);
        Self { world, random }
    }

    pub(crate) fn fence(&mut self) -> Fence {
        let last = self.world.job.attempt.map_or(0, Attempt::get);
        let number =
            if self.random.chance(70) { last } else { 1 + u32::try_from(self.random.below(4)).unwrap() };
        let epoch = if self.random.chance(95) { self.world.epoch } else { Epoch(9) };
        Fence { epoch, attempt: Attempt::new(number.max(1)).unwrap() }
    }

    pub(crate) fn failure(&mut self) -> Failure {
        let wish =
            self.random.one_of(&[RetryWish::ByTable, RetryWish::ByTable, RetryWish::Yes, RetryWish::No]);
        let effect = self.random.one_of(&[None, Some(Effect::None), Some(Effect::Possible)]);
        let retry_after = self.random.one_of(&[None, None, Some(DurationMs(1)), Some(DurationMs(u64::MAX))]);
        Failure::of_worker(self.random.one_of(Class::ALL), effect, wish, retry_after)
    }

    fn seen(&mut self) -> Option<Attempt> {
        if self.random.chance(90) { self.world.job.attempt } else { Attempt::new(1) }
    }

    pub(crate) fn command(&mut self) -> Command {
        let fence = self.fence();
        let reason: Box<str> = "reason".into();
        match self.random.below(22) {
            0..=5 => lease_command(self.world.starts),
            6 | 7 => Command::Start { fence },
            8 => {
                let checkpoint = self.random.chance(30).then(|| [7].into());
                Command::Extend { fence, lease_for: LEASE, checkpoint }
            }
            9 | 10 => {
                let outcome = self.random.one_of(FinishOutcome::ALL);
                let evidence = self.random.one_of(Evidence::ALL);
                let reason = self.random.chance(20).then_some(reason);
                Command::Finish {
                    fence,
                    outcome,
                    evidence,
                    reason,
                    details: posthaste_core::Details::default(),
                }
            }
            11..=13 => super::fail_command(fence, self.failure()),
            14 => Command::Release { fence },
            15 | 16 => Command::Expire,
            17 if self.random.chance(30) => Command::Cancel { reason },
            17 => Command::Abandon { cause: self.random.one_of(&[Cause::EndpointGone, Cause::Exhausted]) },
            18 => Command::Settle { evidence: self.random.one_of(Evidence::ALL) },
            19 => {
                let seen = self.seen();
                Command::Replay { seen, assume_not_done: self.random.chance(50), reason }
            }
            20 => Command::Resend { seen: self.seen(), reason },
            _ => {
                let verdict = self.random.one_of(LookUpVerdict::ALL);
                let (seen, asked_at) = (self.seen(), self.world.now);
                Command::LookUp {
                    seen,
                    asked_at,
                    verdict,
                    settled_at: self.world.now.after(DurationMs(self.random.below(2))),
                    said: None,
                }
            }
        }
    }

    /// Moves the world on a little, then gives one command, and checks what came of it.
    pub(crate) fn step(&mut self) {
        match self.random.below(5) {
            0 => drop(self.world.pass(DurationMs(self.random.0 % 60_000))),
            1 => drop(self.world.pass(DEADLINE)),
            2 => {
                if let Some(due_at) = self.world.job.state.due_at() {
                    self.world.now = self.world.now.max(due_at);
                }
            }
            _ => {}
        }
        if self.random.chance(2) {
            self.world.entry =
                self.random.one_of(&[Entry::Unknown, Entry::NotDone, Entry::Done, Entry::DoneCancelled]);
        }
        self.world.held_ms += self.random.0 % 1_000;
        let command = self.command();
        let before = self.world.clone();
        let verdict = self.world.apply(&command);
        check_step(&before, &command, &verdict, &self.world);
        self.check_repeat(&command, &verdict);
    }

    /// A report whose answer was lost is sent again, at once or later: the same answer, nothing changed.
    fn check_repeat(&mut self, command: &Command, verdict: &Verdict) {
        let is_report =
            matches!(command, Command::Finish { .. } | Command::Fail { .. } | Command::Release { .. });
        if is_report {
            let job = self.world.job.clone();
            let again = self.world.apply(command);
            expect_eq(&answer(verdict), &answer(&again), "a repeated report's answer", command);
            expect_eq(&job, &self.world.job, "a repeated report's job", command);
        }
    }
}

fn answer(verdict: &Verdict) -> Result<Answer, Refusal> {
    match verdict {
        Verdict::Write(decision) => decision.reply().clone(),
        Verdict::Recorded(answer) => Ok(answer.clone()),
        Verdict::Refused(refusal) => Err(refusal.clone()),
    }
}

fn expect_eq<T: PartialEq + Debug>(expected: &T, got: &T, what: &str, command: &Command) {
    assert_eq!(expected, got, "{what} after {command:?}");
}

/// What holds of every step.
fn check_step(before: &World, command: &Command, verdict: &Verdict, after: &World) {
    let Verdict::Write(decision) = verdict else {
        expect_eq(&before.job, &after.job, "nothing written", command);
        return;
    };
    let (old, new) = (&before.job, &after.job);
    let (from, to) = (old.state.name(), new.state.name());
    let context = || format!("{from} x {command:?} -> {to}: {:?}", decision.nature());
    assert!(from != StateName::Cancelled || to == StateName::Cancelled, "{}", context());
    let resent = matches!(command, Command::Resend { .. });
    assert!(from != StateName::Committed || to == StateName::Committed || resent, "{}", context());
    assert!(from != StateName::DeadLettered || to != StateName::Leased, "{}", context());
    let begun = new.attempt.map_or(0, Attempt::get) - old.attempt.map_or(0, Attempt::get);
    let leased = matches!(decision.reply(), Ok(Answer::Leased { .. }));
    assert_eq!(u32::from(leased), begun, "{}", context());
    if leased {
        assert_eq!(StateName::Leased, to);
        assert!(old.commit_heard.is_none(), "no needless attempt: {}", context());
        let done = matches!(before.entry, Entry::Done | Entry::DoneCancelled);
        assert!(!done || old.evidence_floor > 0, "{}", context());
    }
    if decision.nature() == Nature::Heard {
        let heard = Job { commit_heard: new.commit_heard, ..old.clone() };
        assert_eq!(&heard, new, "{}", context());
    }
    let end = matches!(decision.row(), Some(posthaste_core::RowWrite::End { .. }));
    assert_eq!(from == StateName::Leased && to != StateName::Leased, end, "{}", context());
    assert!(!old.failed_before || new.failed_before);
    check_kept(old, new);
    check_job(after);
}

/// What never changes.
fn check_kept(old: &Job, new: &Job) {
    assert_eq!((old.id, old.tenant, old.lane, old.kind), (new.id, new.tenant, new.lane, new.kind));
    assert_eq!((old.created_at, old.scheduled_at), (new.created_at, new.scheduled_at));
    assert!(old.started_at.is_none() || old.started_at == new.started_at);
    assert!(old.evidence_floor <= new.evidence_floor);
}

/// What holds of every job.
fn check_job(world: &World) {
    let job = &world.job;
    match &job.state {
        State::Leased(lease) => {
            assert!(job.attempt.is_some() && lease.expires_at <= lease.deadline_at);
            assert!(!job.cancel_requested || lease.started_at.is_some());
        }
        State::Retryable { next: NextStep::Attempt, .. } => {
            assert!(job.failed_before && job.abandon.is_none(), "{job:?}");
            assert!(job.budgets.failures < world.policy.failures_allowed(), "{job:?}");
            assert!(job.budgets.lost_leases < world.policy.lost_leases_max, "{job:?}");
        }
        State::Retryable { next: NextStep::LookUp, .. } => {
            assert!(matches!(world.policy.on_unknown, OnUnknown::Reconcile { .. }));
        }
        State::DeadLettered { .. } | State::Scheduled { .. } => {
            assert!(!job.cancel_requested && job.abandon.is_none(), "{job:?}");
        }
        State::Committed { .. } | State::Cancelled { .. } => {}
    }
    let charged = job.budgets.failures + job.budgets.lost_leases;
    assert!(charged <= job.attempt.map_or(0, Attempt::get));
}

/// Runs `steps` steps of the walk that `seed` names. The panic of a failing step is preceded by the seed.
pub(crate) fn walk(seed: u64, steps: usize, mut visit: impl FnMut(&World)) {
    struct Named(u64);
    impl Drop for Named {
        fn drop(&mut self) {
            if std::thread::panicking() {
                eprintln!("walk of seed {}", self.0);
            }
        }
    }
    let _named = Named(seed);
    let mut walk = Walk::new(seed);
    for _ in 0..steps {
        walk.step();
        visit(&walk.world);
    }
}

/// Instants at the ends of the range and in its middle.
pub(crate) const EXTREME_TIMES: [Timestamp; 5] =
    [Timestamp(i64::MIN), Timestamp(-1), Timestamp(0), super::T0, Timestamp(i64::MAX)];
