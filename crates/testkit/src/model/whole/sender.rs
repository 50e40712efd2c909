//! The sender's half: time, reaper, leases, processes, reports.

use posthaste_core::{Answer, Command, DurationMs, Start};

use super::{
    super::{
        checker::Nature::{self, Fair, Fault},
        job_row::JobState,
        wire::Said,
    },
    Edges, State, WholeExtra, WholeModel,
    state::{REPEATED, Request, Sender},
};

impl WholeModel {
    pub(super) fn time_and_reaper(&self, state: &State, edges: &mut Edges<'_>) {
        let attempt = state.store.job.attempt;
        let mut later = |what, number, changed: JobState| {
            let mut to = state.clone();
            to.store.job.state = changed;
            edges.add(what, number, Fair, to);
        };
        match state.store.job.state {
            JobState::Scheduled { due: false } => later("due", 0, JobState::Scheduled { due: true }),
            JobState::Retryable { due: false, next } => {
                later("due", 0, JobState::Retryable { due: true, next });
            }
            JobState::Leased { started, expired: false } => {
                later("job's lease runs out", attempt, JobState::Leased { started, expired: true });
            }
            JobState::Leased { expired: true, .. }
            | JobState::Scheduled { .. }
            | JobState::Retryable { .. }
            | JobState::Committed
            | JobState::DeadLettered(_)
            | JobState::Cancelled => {}
        }
        let (to, done) = self.ask(state, &Command::Expire);
        edges.add_checked("expire", attempt, Fair, to, done.broken);
    }

    pub(super) fn lease(&self, state: &State, edges: &mut Edges<'_>) {
        if state.store.job.attempt >= self.config.attempts {
            return;
        }
        let command = Command::Lease {
            worker: "w".into(),
            lease_for: DurationMs::from_secs(30),
            deadline_after: DurationMs::from_secs(60),
            starts: Start::WithLease,
        };
        let (mut to, done) = self.ask(state, &command);
        let Ok(Answer::Leased { .. }) = done.reply else {
            edges.add_checked("lease finds evidence", 0, Fair, to, done.broken);
            return;
        };
        let attempt = to.store.job.attempt;
        to.senders[place(attempt)] = Sender::Held;
        edges.add_checked("lease", attempt, Fair, to, done.broken);
    }

    pub(super) fn sender(&self, state: &State, attempt: u8, edges: &mut Edges<'_>) {
        match state.senders[place(attempt)] {
            Sender::None | Sender::Closed => return,
            Sender::Held => {
                let mut to = state.clone();
                to.senders[place(attempt)] = Sender::Waiting;
                to.requests[place(attempt)] = Request::Flying;
                edges.add("send", attempt, Fair, to);
            }
            Sender::Waiting => {
                match state.requests[place(attempt)] {
                    Request::Answered(said) => {
                        report("answer arrives", said, state, attempt, Fair, edges);
                    }
                    Request::AnsweredDuplicate => {
                        report("2xx for a duplicate arrives", Said::Committed, state, attempt, Fair, edges);
                    }
                    Request::None | Request::Flying | Request::Claimed | Request::Did => {}
                }
                report("answer lost", Said::Unknown, state, attempt, Fault, edges);
            }
        }
        let mut to = state.clone();
        to.senders[place(attempt)] = Sender::Closed;
        edges.add("node crashes", attempt, Fault, to);
        if self.covers(WholeExtra::Proxy)
            && !state.repeated
            && state.requests[place(attempt)] == Request::Flying
        {
            let mut to = State { repeated: true, ..state.clone() };
            to.requests[REPEATED] = Request::Flying;
            edges.add("proxy repeats the request", attempt, Fault, to);
        }
    }

    pub(super) fn reports(&self, state: &State, attempt: u8, edges: &mut Edges<'_>) {
        for said in state.net[place(attempt)].iter() {
            let command = said.command(&*self.desk.rules, state.store.epoch, attempt);
            let (to, done) = self.ask(state, &command);
            let what = if done.reply.is_ok() { said.accepted() } else { said.refused() };
            edges.add_checked(what, attempt, Fair, to, done.broken);
        }
    }
}

/// The process ends and its report is on the way.
fn report(what: &'static str, said: Said, state: &State, attempt: u8, nature: Nature, edges: &mut Edges<'_>) {
    let mut to = state.clone();
    to.senders[place(attempt)] = Sender::Closed;
    to.net[place(attempt)].add(said);
    edges.add(what, attempt, nature, to);
}

fn place(attempt: u8) -> usize {
    usize::from(attempt) - 1
}
