//! The state of model A.

use std::fmt::Write as _;

use super::super::{
    desk::Store,
    job_row::ATTEMPTS,
    wire::{Reports, Said},
};

/// An attempt's process.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Worker {
    None,
    /// Has the lease, has sent nothing.
    Held,
    /// Its Start is recorded, nothing is sent.
    Ready,
    /// Has sent.
    Waiting,
    Closed,
}

/// An attempt's request.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Request {
    None,
    Flying,
    /// An answer is on its way back.
    Answered(Said),
    Gone,
}

/// What the operator's cancel was told.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) enum Told {
    Nothing,
    /// Cancelled, and shown without any effect.
    CancelledWithoutEffect,
    Cancelled,
    Requested,
    TooLate,
}

/// A look-up's answer that is not written down yet.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(super) struct Answer {
    pub(super) present: bool,
    /// Whether, when it was asked, no request could act any more.
    pub(super) settled: bool,
    pub(super) attempt: u8,
}

/// One state of the world.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct State {
    pub(super) store: Store,
    pub(super) workers: [Worker; ATTEMPTS],
    pub(super) requests: [Request; ATTEMPTS],
    pub(super) net: [Reports; ATTEMPTS],
    /// Attempts (bits) whose effect happened.
    pub(super) effects: u8,
    pub(super) look_up: Option<Answer>,
    /// A slow reaper has selected the job.
    pub(super) selected: bool,
    /// The attempt that a replay request on its way names, plus one; 0 for none.
    pub(super) replay_asked: u8,
    pub(super) replays: u8,
    pub(super) resends: u8,
    pub(super) releases: u8,
    pub(super) cancels: u8,
    pub(super) abandons: u8,
    pub(super) told: Told,
    // What only promises read.
    /// Attempts (bits) whose commit report has arrived.
    pub(super) heard: u8,
    /// Reports that were answered yes.
    pub(super) answered_yes: [Reports; ATTEMPTS],
    /// The job's attempt at its last replay.
    pub(super) replayed_at: u8,
    /// How often the request in `replay_asked` was carried out.
    pub(super) replays_of_request: u8,
    /// A look-up or an operator found the effect.
    pub(super) found: bool,
}

impl State {
    pub(super) fn new() -> Self {
        Self {
            store: Store::NEW,
            workers: [Worker::None; ATTEMPTS],
            requests: [Request::None; ATTEMPTS],
            net: [Reports::NONE; ATTEMPTS],
            effects: 0,
            look_up: None,
            selected: false,
            replay_asked: 0,
            replays: 0,
            resends: 0,
            releases: 0,
            cancels: 0,
            abandons: 0,
            told: Told::Nothing,
            heard: 0,
            answered_yes: [Reports::NONE; ATTEMPTS],
            replayed_at: 0,
            replays_of_request: 0,
            found: false,
        }
    }

    /// Attempts that ever had a process: more than the job knows of, if a fault restarts the numbers.
    pub(super) fn attempts_given(&self) -> u8 {
        let last = self.workers.iter().rposition(|worker| *worker != Worker::None);
        last.map_or(0, |index| u8::try_from(index + 1).expect("a handful"))
    }

    pub(super) fn alive(&self) -> usize {
        let alive = |worker: &&Worker| matches!(worker, Worker::Held | Worker::Ready | Worker::Waiting);
        self.workers.iter().filter(alive).count()
    }

    pub(super) fn effects_count(&self) -> u32 {
        self.effects.count_ones()
    }

    /// Merges states that no step can tell apart: an answer to a process that is gone reaches nobody.
    pub(super) fn tidy(&mut self) {
        for (worker, request) in self.workers.iter().zip(&mut self.requests) {
            if *worker == Worker::Closed && matches!(request, Request::Answered(_)) {
                *request = Request::Gone;
            }
        }
    }

    pub(super) fn show(&self) -> String {
        let mut text = format!("{:?}, attempt {}", self.store.job.state, self.store.job.attempt);
        let job = &self.store.job;
        let _ = write!(text, ", failures {}, lost leases {}", job.failures, job.lost_leases);
        if job.commit_heard != 0 {
            let _ = write!(text, ", commit heard of {}", job.commit_heard);
        }
        for (attempt, record) in self.store.records.iter() {
            let _ = write!(text, "; row {attempt} {} ({})", record.report.outcome, record.report.effect);
            if let Some((report, ..)) = record.late {
                let _ = write!(text, ", late {} ({})", report.outcome, report.effect);
            }
            if record.commit_heard {
                text.push_str(", commit heard");
            }
        }
        let _ = write!(text, "; effects {}, told {:?}", self.effects_count(), self.told);
        text
    }
}

/// The bit of `attempt` in a set of attempts.
pub(super) fn bit(attempt: u8) -> u8 {
    1 << (attempt - 1)
}

/// The place of `attempt` in an array of attempts.
pub(super) fn place(attempt: u8) -> usize {
    usize::from(attempt) - 1
}
