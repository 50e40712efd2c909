//! A store of one job in a few lines: what the tests of the core drive. Every write goes through the flat rows and
//! back, so that each test is one of the row codec too.

pub(crate) mod walk;

use posthaste_core::{
    Answer, Attempt, AttemptEnd, AttemptRecord, Backoff, Class, Command, Decision, Details, DurationMs,
    Effect, EffectSpan, Entry, Epoch, Evidence, Facts, Failure, Fence, FinishOutcome, Job, JobId, Kind,
    LaneId, LateReport, MessageId, NewJob, NextStep, OnUnknown, Permille, Policy, Refusal, RetryWish,
    RowWrite, Share, Start, State, StateName, TenantId, Timestamp, Verdict, transition,
};

/// When every story begins.
pub(crate) const T0: Timestamp = Timestamp(1_800_000_000_000);
/// How long a lease holds.
pub(crate) const LEASE: DurationMs = DurationMs::from_secs(60);
/// How long an attempt may take at most.
pub(crate) const DEADLINE: DurationMs = DurationMs::from_mins(15);
/// How long the last send can still act.
pub(crate) const SETTLE: DurationMs = DurationMs::from_mins(10);

/// The rows of one ended attempt.
#[derive(Clone, Debug)]
pub(crate) struct AttemptRow {
    pub(crate) end: AttemptEnd,
    pub(crate) late: Option<LateReport>,
    pub(crate) commit_heard_at: Option<Timestamp>,
}

impl AttemptRow {
    pub(crate) fn record(&self) -> AttemptRecord {
        AttemptRecord::of(&self.end, self.late.as_ref(), self.commit_heard_at)
    }
}

/// One job, its attempts, and everything that a decision rests on.
#[derive(Clone, Debug)]
pub(crate) struct World {
    pub(crate) job: Job,
    pub(crate) attempts: Vec<AttemptRow>,
    pub(crate) policy: Policy,
    pub(crate) entry: Entry,
    pub(crate) epoch: Epoch,
    pub(crate) held_ms: u64,
    pub(crate) starts: Start,
    pub(crate) now: Timestamp,
}

/// A policy whose delays are exact.
pub(crate) fn exact_policy() -> Policy {
    Policy {
        backoff: Backoff::Exponential {
            base: DurationMs::from_secs(10),
            cap: DurationMs::from_secs(600),
            jitter: Permille::new(0).unwrap(),
        },
        failures_max: 5,
        lost_leases_max: 3,
        horizon: DurationMs::from_hours(24),
        on_unknown: OnUnknown::Retry,
        idempotent: false,
        lane: posthaste_core::LaneRules::STANDARD,
        classes: Vec::new(),
    }
}

pub(crate) const RECONCILE: OnUnknown = OnUnknown::Reconcile { settle: SETTLE };

pub(crate) fn new_job() -> NewJob {
    NewJob {
        id: JobId::of(MessageId(0x0189_0a5d_ac96_774b_bcce_b302_0000_0000), LaneId(7)),
        tenant: TenantId(1),
        kind: Kind::Pull,
        due_at: T0,
        created_at: T0,
        share: Share::Fresh,
        lane_held_ms: 0,
    }
}

pub(crate) fn attempt(number: u32) -> Attempt {
    Attempt::new(number).unwrap()
}

/// A failure of a class that is retried, with the given effect.
pub(crate) fn failure(effect: Effect) -> Failure {
    Failure::of_worker(Class::Worker, Some(effect), RetryWish::ByTable, None)
}

/// A failure that no retry can mend, without effect.
pub(crate) fn permanent() -> Failure {
    Failure::of_worker(Class::Worker, Some(Effect::None), RetryWish::No, None)
}

impl World {
    pub(crate) fn new() -> Self {
        Self::with(exact_policy())
    }

    pub(crate) fn with(policy: Policy) -> Self {
        Self {
            job: Job::new(new_job()),
            attempts: Vec::new(),
            policy,
            entry: Entry::Unknown,
            epoch: Epoch(1),
            held_ms: 0,
            starts: Start::WithLease,
            now: T0,
        }
    }

    pub(crate) fn on_unknown(on_unknown: OnUnknown) -> Self {
        Self::with(Policy { on_unknown, ..exact_policy() })
    }

    /// Everything a decision on `command` rests on.
    pub(crate) fn facts(&self, command: &Command) -> Facts {
        let own = command
            .fence()
            .and_then(|fence| self.attempts.iter().find(|row| row.end.attempt == fence.attempt))
            .map(AttemptRow::record);
        let records: Vec<_> = self.attempts.iter().map(AttemptRow::record).collect();
        Facts {
            epoch: self.epoch,
            own,
            entry: self.entry,
            span: EffectSpan::of_attempts(&records),
            lane_held_ms: self.held_ms,
        }
    }

    /// Decides `command` without writing anything.
    pub(crate) fn decide(&self, command: &Command) -> Verdict {
        transition(&self.job, &self.facts(command), command, &self.policy, self.now)
    }

    /// Decides `command` and writes what the decision says.
    pub(crate) fn apply(&mut self, command: &Command) -> Verdict {
        let verdict = self.decide(command);
        if let Verdict::Write(decision) = &verdict {
            self.write(decision);
        }
        verdict
    }

    fn write(&mut self, decision: &Decision) {
        assert_eq!(self.job.state.name(), decision.from());
        let (row, lease) = decision.next().to_rows();
        self.job = Job::from_rows(row, lease).expect("a decision's rows can be read back");
        assert_eq!(decision.next(), &self.job);
        match decision.row() {
            None => {}
            Some(RowWrite::End { row, commit_heard_at }) => {
                let end = (**row).clone();
                assert!(self.attempts.iter().all(|known| known.end.attempt < end.attempt), "written once");
                self.attempts.push(AttemptRow { end, late: None, commit_heard_at: *commit_heard_at });
            }
            Some(RowWrite::Late { report, commit_heard_at }) => {
                let row = self.row_mut(report.attempt);
                assert!(row.late.is_none() && !row.end.reported, "written once");
                row.late = Some((**report).clone());
                if commit_heard_at.is_some() {
                    assert!(row.commit_heard_at.is_none(), "written once");
                    row.commit_heard_at = *commit_heard_at;
                }
            }
            Some(RowWrite::Heard { attempt, at }) => {
                let row = self.row_mut(*attempt);
                assert!(row.commit_heard_at.is_none(), "written once");
                row.commit_heard_at = Some(*at);
            }
        }
    }

    fn row_mut(&mut self, attempt: Attempt) -> &mut AttemptRow {
        self.attempts.iter_mut().find(|row| row.end.attempt == attempt).expect("the attempt has ended")
    }

    pub(crate) fn row(&self, number: u32) -> &AttemptRow {
        self.attempts.iter().find(|row| row.end.attempt == attempt(number)).expect("the attempt has ended")
    }

    /// Applies `command` and returns what the caller is told.
    pub(crate) fn tell(&mut self, command: &Command) -> Result<Answer, Refusal> {
        match self.apply(command) {
            Verdict::Write(decision) => decision.reply().clone(),
            Verdict::Recorded(answer) => Ok(answer),
            Verdict::Refused(refusal) => Err(refusal),
        }
    }

    /// Applies `command`, which must be refused with nothing written.
    pub(crate) fn refused(&mut self, command: &Command) -> Refusal {
        match self.apply(command) {
            Verdict::Refused(refusal) => refusal,
            other => panic!("not refused: {other:?}"),
        }
    }

    pub(crate) fn state(&self) -> StateName {
        self.job.state.name()
    }

    pub(crate) fn cause(&self) -> posthaste_core::Cause {
        match self.job.state {
            State::DeadLettered { cause, .. } => cause,
            ref other => panic!("not dead-lettered: {other:?}"),
        }
    }

    pub(crate) fn next_step(&self) -> NextStep {
        match self.job.state {
            State::Retryable { next, .. } => next,
            ref other => panic!("not retryable: {other:?}"),
        }
    }

    pub(crate) fn due_at(&self) -> Timestamp {
        self.job.state.due_at().expect("the job waits")
    }

    /// Milliseconds from now until the job is due.
    pub(crate) fn wait_ms(&self) -> u64 {
        self.due_at().since(self.now).0
    }

    pub(crate) fn pass(&mut self, time: DurationMs) -> &mut Self {
        self.now = self.now.after(time);
        self
    }

    /// Waits until the job is due and leases it, which must give an attempt.
    pub(crate) fn lease(&mut self) -> Fence {
        self.now = self.now.max(self.due_at());
        let told = self.tell(&lease_command(self.starts));
        match told {
            Ok(Answer::Leased { fence, .. }) => fence,
            other => panic!("no attempt was given: {other:?}"),
        }
    }

    /// Lets the lease run out and expires it.
    pub(crate) fn expire(&mut self) -> &mut Self {
        let State::Leased(lease) = &self.job.state else { panic!("not leased: {:?}", self.job.state) };
        self.now = self.now.max(lease.expires_at);
        self.tell(&Command::Expire).expect("the lease ran out");
        self
    }

    /// One attempt, lost.
    pub(crate) fn lose(&mut self) -> Fence {
        let fence = self.lease();
        self.expire();
        fence
    }

    pub(crate) fn lose_times(&mut self, times: usize) {
        for _ in 0..times {
            self.lose();
        }
    }

    pub(crate) fn fail_times(&mut self, times: usize, failure: Failure) {
        for _ in 0..times {
            self.fail(failure);
        }
    }

    /// One attempt that fails.
    pub(crate) fn fail(&mut self, failure: Failure) -> Fence {
        let fence = self.lease();
        self.tell(&fail_command(fence, failure)).expect("the attempt runs");
        fence
    }

    /// One attempt that commits.
    pub(crate) fn commit(&mut self) -> Fence {
        let fence = self.lease();
        self.tell(&finish_command(fence, FinishOutcome::Committed)).expect("the attempt runs");
        fence
    }

    /// An operator replays what he sees.
    pub(crate) fn replay(&mut self, assume_not_done: bool) -> Result<Answer, Refusal> {
        let seen = self.job.attempt;
        self.tell(&Command::Replay { seen, assume_not_done, reason: "again".into() })
    }

    /// An operator resends what he sees.
    pub(crate) fn resend(&mut self) -> Result<Answer, Refusal> {
        let seen = self.job.attempt;
        self.tell(&Command::Resend { seen, reason: "data lost".into() })
    }
}

pub(crate) fn lease_command(starts: Start) -> Command {
    Command::Lease { worker: "w-1".into(), lease_for: LEASE, deadline_after: DEADLINE, starts }
}

pub(crate) fn finish_command(fence: Fence, outcome: FinishOutcome) -> Command {
    Command::Finish { fence, outcome, evidence: Evidence::Worker, reason: None, details: Details::default() }
}

pub(crate) fn fail_command(fence: Fence, failure: Failure) -> Command {
    Command::Fail { fence, failure, details: Details::default() }
}

pub(crate) fn extend_command(fence: Fence) -> Command {
    Command::Extend { fence, lease_for: LEASE, checkpoint: None }
}

pub(crate) fn cancel_command() -> Command {
    Command::Cancel { reason: "no longer wanted".into() }
}

pub(crate) fn moved(state: StateName) -> Answer {
    Answer::Moved { state, due_at: None }
}
