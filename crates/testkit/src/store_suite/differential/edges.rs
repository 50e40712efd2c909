//! Every edge and cell of the transition table that a store can reach: found by walking the core itself.
//!
//! A walk over all jobs of at most [`ATTEMPTS`] attempts, with time taken out: an instant is either past or still to
//! come, and time passing is a step of its own.

use std::collections::{BTreeSet, HashSet};

use posthaste_core::{
    Attempt, AttemptEnd, AttemptOutcome, AttemptRecord, Backoff, Cause, Class, Command, CommandName, Details,
    DurationMs, Effect, EffectSpan, Entry, Epoch, Evidence, Facts, Failure, Fence, FinishOutcome, Job, JobId,
    Kind, LateReport, LookUpVerdict, NewJob, OnUnknown, Policy, Report, RetryWish, RowWrite, Share, Start,
    State, StateName, TenantId, Timestamp, Verdict, transition,
};

/// From, command, to, nature: as [`posthaste_core::Decision::edge`].
pub type Edge = (StateName, CommandName, StateName, posthaste_core::Nature);

/// State, command, and whether it was answered yes.
pub type Cell = (StateName, CommandName, bool);

/// What a walk or a run has seen.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Coverage {
    /// Writes.
    pub edges: BTreeSet<Edge>,
    /// Answers.
    pub cells: BTreeSet<Cell>,
}

impl Coverage {
    /// What `self` has and `other` lacks.
    pub fn beyond(&self, other: &Self) -> Self {
        Self {
            edges: self.edges.difference(&other.edges).copied().collect(),
            cells: self.cells.difference(&other.cells).copied().collect(),
        }
    }

    /// Whether nothing was seen.
    pub fn is_empty(&self) -> bool {
        self.edges.is_empty() && self.cells.is_empty()
    }
}

const ATTEMPTS: u32 = 2;
const NOW: Timestamp = Timestamp(1_000_000_000);
const TO_COME: Timestamp = Timestamp(NOW.0 + 1_000);
const EPOCH: Epoch = Epoch(1);

#[derive(Clone, PartialEq, Eq)]
struct Node {
    job: Job,
    ended: Vec<(AttemptEnd, Option<LateReport>, bool)>,
}

/// Walks everything.
pub fn reachable() -> Coverage {
    let mut seen = Coverage::default();
    let commands = commands();
    let policies = policies();
    let start = Job::new(NewJob {
        id: JobId(1 << 64 | 1),
        tenant: TenantId(1),
        kind: Kind::Pull,
        due_at: NOW,
        created_at: NOW,
        share: Share::Fresh,
        lane_held_ms: 0,
    });
    let mut known = HashSet::new();
    let mut open = vec![Node { job: start, ended: Vec::new() }];
    while let Some(node) = open.pop() {
        if !known.insert(format!("{:?}{:?}", node.job, node.ended)) {
            continue;
        }
        open.extend(time_passed(&node));
        for command in &commands {
            if command.name() == CommandName::Lease
                && node.job.attempt.is_some_and(|last| last.get() >= ATTEMPTS)
            {
                decide(&node, command, &policies[0], &mut seen);
                continue;
            }
            for policy in &policies {
                open.extend(step(&node, command, policy, &mut seen));
            }
        }
    }
    seen
}

fn decide(node: &Node, command: &Command, policy: &Policy, seen: &mut Coverage) -> Verdict {
    // What an entry calls for leads to states that others lead to as well.
    for entry in [Entry::NotDone, Entry::Done, Entry::DoneCancelled] {
        decide_beside(node, command, policy, entry, seen);
    }
    decide_beside(node, command, policy, Entry::Unknown, seen)
}

fn decide_beside(
    node: &Node,
    command: &Command,
    policy: &Policy,
    entry: Entry,
    seen: &mut Coverage,
) -> Verdict {
    let facts = Facts { own: own(node, command), span: span(node), entry, ..Facts::bare(EPOCH) };
    let verdict = transition(&node.job, &facts, command, policy, NOW);
    let yes = match &verdict {
        Verdict::Write(decision) => {
            seen.edges.insert(decision.edge());
            decision.reply().is_ok()
        }
        Verdict::Recorded(_) => true,
        Verdict::Refused(_) => false,
    };
    seen.cells.insert((node.job.state.name(), command.name(), yes));
    verdict
}

fn step(node: &Node, command: &Command, policy: &Policy, seen: &mut Coverage) -> Option<Node> {
    let Verdict::Write(decision) = decide(node, command, policy, seen) else { return None };
    let (job, row, _) = decision.into_parts();
    let mut ended = node.ended.clone();
    match row {
        None => {}
        Some(RowWrite::End { row, commit_heard_at }) => ended.push((*row, None, commit_heard_at.is_some())),
        Some(RowWrite::Late { report, commit_heard_at }) => {
            let beside = ended.iter_mut().find(|(end, ..)| end.attempt == report.attempt)?;
            beside.2 |= commit_heard_at.is_some();
            beside.1 = Some(*report);
        }
        Some(RowWrite::Heard { attempt, .. }) => {
            ended.iter_mut().find(|(end, ..)| end.attempt == attempt)?.2 = true;
        }
    }
    Some(without_time(Node { job, ended }))
}

/// Rounds every instant to past or to come, and forgets what changes no edge: who, why, and how much of a budget is
/// used, since each policy here allows either any number or none.
fn without_time(mut node: Node) -> Node {
    let round = |at: &mut Timestamp| *at = if *at <= NOW { NOW } else { TO_COME };
    let job = &mut node.job;
    match &mut job.state {
        State::Scheduled { due_at } | State::Retryable { due_at, .. } => round(due_at),
        State::Leased(lease) => {
            round(&mut lease.expires_at);
            lease.due_at = NOW;
            lease.deadline_at = TO_COME;
        }
        State::Committed { evidence, .. } => *evidence = Evidence::Worker,
        State::DeadLettered { cause, .. } => {
            *cause = if cause.is_quarantine() { Cause::MissingKey } else { Cause::Permanent };
        }
        State::Cancelled { .. } => {}
    }
    job.reason = None;
    job.share = Share::Fresh;
    job.started_at = None;
    job.budgets = posthaste_core::Budgets::fresh(NOW, 0);
    for (end, late, _) in &mut node.ended {
        (end.policy, end.due_at, end.path) = ("".into(), NOW, posthaste_core::Path::FirstRun);
        (end.state, end.next_at, end.started_at) = (StateName::Retryable, None, None);
        forget_class(&mut end.report);
        if let Some(late) = late {
            late.next_at = None;
            late.state = StateName::Retryable;
            forget_class(&mut late.report);
        }
    }
    node
}

fn forget_class(report: &mut Report) {
    if report.outcome == AttemptOutcome::Failed {
        (report.class, report.wish) = (Some(Class::Worker), Some(RetryWish::Yes));
    }
}

fn time_passed(node: &Node) -> Option<Node> {
    let mut later = node.clone();
    match &mut later.job.state {
        State::Scheduled { due_at } | State::Retryable { due_at, .. } => *due_at = NOW,
        State::Leased(lease) => lease.expires_at = NOW,
        State::Committed { .. } | State::DeadLettered { .. } | State::Cancelled { .. } => return None,
    }
    (later != *node).then_some(later)
}

fn own(node: &Node, command: &Command) -> Option<AttemptRecord> {
    let named = command.fence()?.attempt;
    let (end, late, heard) = node.ended.iter().find(|(end, ..)| end.attempt == named)?;
    Some(AttemptRecord::of(end, late.as_ref(), heard.then_some(NOW)))
}

fn span(node: &Node) -> EffectSpan {
    let records = node
        .ended
        .iter()
        .map(|(end, late, heard)| AttemptRecord::of(end, late.as_ref(), heard.then_some(NOW)));
    EffectSpan::over(records.map(|record| record.effect()))
}

fn policies() -> Vec<Policy> {
    let delay = DurationMs::from_secs(5);
    let jitter = posthaste_core::Permille::new(0).expect("none is allowed");
    let backoff = Backoff::Exponential { base: delay, cap: delay, jitter };
    let of = |on_unknown, failures_max, lost_leases_max, horizon| Policy {
        backoff: backoff.clone(),
        failures_max,
        lost_leases_max,
        horizon,
        on_unknown,
        idempotent: false,
        lane: posthaste_core::LaneRules::STANDARD,
        classes: Vec::new(),
    };
    let long = DurationMs::from_hours(1);
    let reconcile = OnUnknown::Reconcile { settle: delay };
    vec![
        of(OnUnknown::Retry, 9, 9, long),
        of(OnUnknown::Retry, 1, 1, DurationMs::ZERO),
        of(reconcile, 9, 9, long),
        of(reconcile, 1, 1, DurationMs::ZERO),
        of(OnUnknown::DeadLetter, 9, 9, long),
    ]
}

fn commands() -> Vec<Command> {
    let attempts = || (1..=ATTEMPTS).filter_map(Attempt::new);
    let minute = DurationMs::from_mins(1);
    let lease =
        |starts| Command::Lease { worker: "w".into(), lease_for: minute, deadline_after: minute, starts };
    let mut commands = vec![
        lease(Start::WithLease),
        lease(Start::Fenced),
        Command::Expire,
        Command::Cancel { reason: "".into() },
        Command::Settle { evidence: Evidence::Reconciled },
        Command::Settle { evidence: Evidence::Ledger },
        Command::Abandon { cause: Cause::MissingKey },
        Command::Abandon { cause: Cause::InvalidPayload },
    ];
    for seen in attempts().map(Some).chain([None]) {
        commands.push(Command::Resend { seen, reason: "".into() });
        for assume_not_done in [false, true] {
            commands.push(Command::Replay { seen, assume_not_done, reason: "".into() });
        }
    }
    for verdict in LookUpVerdict::ALL.iter().copied() {
        for seen in attempts().map(Some).chain([None]) {
            commands.push(Command::LookUp { seen, asked_at: NOW, verdict, settled_at: NOW, said: None });
        }
    }
    for attempt in attempts().chain(Attempt::new(9)) {
        commands.extend(of_worker(Fence { epoch: EPOCH, attempt }));
    }
    commands
}

fn of_worker(fence: Fence) -> Vec<Command> {
    let details = Details::default;
    let lease_for = DurationMs::from_mins(1);
    let mut commands = vec![
        Command::Start { fence },
        Command::Extend { fence, lease_for, checkpoint: None },
        Command::Release { fence },
    ];
    for outcome in FinishOutcome::ALL.iter().copied() {
        commands.push(Command::Finish {
            fence,
            outcome,
            evidence: Evidence::Worker,
            reason: None,
            details: details(),
        });
    }
    let classes = [Class::Worker, Class::InProgress];
    for (class, effect, wish) in [
        (classes[0], Effect::None, RetryWish::Yes),
        (classes[0], Effect::Possible, RetryWish::Yes),
        (classes[0], Effect::None, RetryWish::No),
        (classes[1], Effect::None, RetryWish::ByTable),
    ] {
        let failure = Failure::of_worker(class, Some(effect), wish, None);
        commands.push(Command::Fail { fence, failure, details: details() });
    }
    commands
}
