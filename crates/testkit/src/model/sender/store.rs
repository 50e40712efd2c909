//! What happens at the store by itself: time, the reaper, leases.

use posthaste_core::{Answer, Command, DurationMs};

use super::{
    super::{
        checker::Nature::{Fair, Fault},
        desk::Horizon,
        job_row::JobState,
        property::Property,
    },
    Edges, Extra, SenderModel, State, Unknown,
    state::{Worker, place},
};

/// Processes that may be alive at once.
const WORKERS: usize = 2;

impl SenderModel {
    pub(super) fn time_and_reaper(&self, state: &State, edges: &mut Edges<'_>) {
        let later = |changed: JobState| {
            let mut to = state.clone();
            to.store.job.state = changed;
            to
        };
        let attempt = state.store.job.attempt;
        match state.store.job.state {
            JobState::Scheduled { due: false } => {
                edges.add("due", 0, Fair, later(JobState::Scheduled { due: true }));
            }
            JobState::Retryable { due: false, next } => {
                edges.add("due", 0, Fair, later(JobState::Retryable { due: true, next }));
            }
            JobState::Leased { started, expired: false } => {
                let changed = JobState::Leased { started, expired: true };
                edges.add("lease runs out", attempt, Fair, later(changed));
            }
            JobState::Leased { expired: true, .. } => {
                self.expire("expire", state, edges);
                if self.covers(Extra::SlowReaper) {
                    let to = State { selected: true, ..state.clone() };
                    edges.add("a slow reaper selects", attempt, Fault, to);
                }
            }
            JobState::Scheduled { .. }
            | JobState::Retryable { .. }
            | JobState::Committed
            | JobState::DeadLettered(_)
            | JobState::Cancelled => {}
        }
        if state.selected {
            let unselected = State { selected: false, ..state.clone() };
            self.expire("the slow reaper expires", &unselected, edges);
            edges.add("the slow reaper dies", 0, Fault, unselected);
        }
    }

    fn expire(&self, what: &'static str, state: &State, edges: &mut Edges<'_>) {
        let attempt = state.store.job.attempt;
        let (to, done) = self.ask(state, &Command::Expire);
        edges.add_checked(what, attempt, Fair, to, done.broken);
        if self.covers(Extra::Horizon) {
            let (to, done) = self.ask_at(state, &Command::Expire, Horizon::Passed);
            edges.add_checked("expire past the horizon", attempt, Fault, to, done.broken);
        }
    }

    /// Asked in every state: whether a lease is given is core's to say.
    pub(super) fn lease(&self, state: &State, edges: &mut Edges<'_>) {
        if state.alive() >= WORKERS || state.store.job.attempt >= self.config.attempts {
            return;
        }
        let command = Command::Lease {
            worker: "w".into(),
            lease_for: DurationMs::from_secs(30),
            deadline_after: DurationMs::from_secs(60),
            starts: self.config.start,
        };
        let (mut to, done) = self.ask(state, &command);
        let Ok(Answer::Leased { fence, .. }) = done.reply else {
            edges.add_checked("lease finds evidence", 0, Fair, to, done.broken);
            return;
        };
        let attempt = u8::try_from(fence.attempt.get()).expect("a handful");
        to.workers[place(attempt)] = Worker::Held;
        let mut broken = done.broken;
        let counting = u32::from(state.heard) >> state.store.job.evidence_floor;
        broken.note(Property::NoNeedlessRun, counting != 0);
        let unknown = state.store.records.span().hi > 0;
        broken.note(Property::PolicyHolds, unknown && self.config.on_unknown == Unknown::DeadLetter);
        edges.add_checked("lease", attempt, Fair, to, broken);
    }
}
