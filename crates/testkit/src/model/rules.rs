//! The functions under test, as the models call them: the real ones, unless a mutant overrides a method.

use posthaste_core::{
    Answer, Command, Facts, Job, Policy, Reading, Refusal, RowWrite, Timestamp, Verdict,
    ledger::{self, Admission, Claim, Entry, Outcome, Report, Seen},
    read_status, transition,
};

use super::{job_row::NOW, wire::Said};

/// One question to the sender's core.
#[derive(Clone, Copy)]
pub(crate) struct Asked<'a> {
    pub(crate) job: &'a Job,
    pub(crate) facts: &'a Facts,
    pub(crate) command: &'a Command,
    pub(crate) policy: &'a Policy,
}

/// A verdict in parts. Only core can make a `Decision`, so this is what a mutant tampers with.
pub(crate) struct Ruling {
    /// The job as it must be written; `None` if nothing is.
    pub(crate) next: Option<Job>,
    /// What to write about an attempt.
    pub(crate) row: Option<RowWrite>,
    /// The answer.
    pub(crate) reply: Result<Answer, Refusal>,
}

impl Ruling {
    /// What the real function says.
    pub(crate) fn of_core(asked: &Asked<'_>) -> Self {
        match transition(asked.job, asked.facts, asked.command, asked.policy, NOW) {
            Verdict::Write(decision) => {
                let (next, row, reply) = decision.into_parts();
                Self { next: Some(next), row, reply }
            }
            Verdict::Recorded(answer) => Self { next: None, row: None, reply: Ok(answer) },
            Verdict::Refused(refusal) => Self { next: None, row: None, reply: Err(refusal) },
        }
    }
}

/// The sender's rules, and the duties of those who call them. What a method does unless overridden is the design.
pub(crate) trait SenderRules {
    /// Decides one command.
    fn decide(&self, asked: &Asked<'_>) -> Ruling {
        Ruling::of_core(asked)
    }

    /// Classifies an answer.
    fn read_status(&self, status: u16, retry_after: bool) -> Reading {
        read_status(status, retry_after)
    }

    /// Whether a worker may give back what it has sent already.
    fn releases_what_was_sent(&self) -> bool {
        false
    }

    /// Whether a look-up counts as asked when its answer is written down.
    fn judges_look_ups_when_written(&self) -> bool {
        false
    }

    /// Whether a worker goes on although its Start was refused.
    fn sends_without_start(&self) -> bool {
        false
    }

    /// What a receiver answers while somebody else is at it.
    fn answer_to_busy(&self) -> Said {
        Said::Busy
    }

    /// How a 2xx is reported whose ledger entry says "no longer applies".
    fn report_of_cancelled(&self) -> Said {
        Said::Cancelled
    }
}

/// The ledger's rules, and the duties of those who call them.
pub(crate) trait LedgerRules {
    /// Decides a claim.
    fn admit(&self, entry: Option<&Entry>, claim: &Claim, now: Timestamp) -> Admission {
        ledger::admit(entry, claim, now)
    }

    /// Decides a complete.
    fn complete(&self, entry: Option<&Entry>, fence: u64, outcome: Outcome) -> Report {
        ledger::complete(entry, fence, outcome)
    }

    /// Decides a fail.
    fn fail(&self, entry: Option<&Entry>, fence: u64) -> Report {
        ledger::fail(entry, fence)
    }

    /// Decides a reset.
    fn reset(&self, entry: Option<&Entry>, seen: Seen) -> Report {
        ledger::reset(entry, seen)
    }

    /// The row that a reset leaves.
    fn after_reset(&self, entry: Entry) -> Option<Entry> {
        Some(entry)
    }

    /// Whether a handler rolls its effect back when its complete is stale.
    fn rolls_back(&self) -> bool {
        true
    }

    /// The fence that a key without a row begins with, given one that no grant of this key ever had.
    fn first_fence(&self, unused: u64) -> u64 {
        unused
    }

    /// Whether the clock of a done or failed entry matters.
    fn settled_entries_expire(&self) -> bool {
        false
    }
}

/// The real functions.
pub(crate) struct Real;

impl SenderRules for Real {}
impl LedgerRules for Real {}
